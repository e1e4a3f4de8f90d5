/* Fuzz target for base/scan and registry/object: the walk over stored bytes takes what the
 * parser takes, and an object that is indexed gives its contents back. */
#include <stdint.h>
#include <stdlib.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/scan.h"
#include "apiserver/registry/object.h"
#include "openapi/kinds.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_scan(const char *p, size_t n, bool parses)
{
    struct scan s = {p, p + n};
    bool scans = scan_value(&s, NULL) && scan_at_end(&s);
    require(scans || !parses); /* the parser refuses more: NUL characters in strings */
}

static void check_object(const char *p, size_t n)
{
    struct object *o = NULL;
    if (object_from_bytes(&kind_sandbox, xmemdup(p, n), n, 7, &o, NULL) < 0) {
        require(!o);
        return;
    }
    require(o->name[0] && o->uid[0] && o->splice_at < n);
    SCOPED(buf_fini) struct buf text = {0};
    object_write(o, &text);
    struct scan s = {text.data, text.data + text.len};
    require(scan_value(&s, NULL) && scan_at_end(&s));
    object_unref(object_at_rev(o, 9));
    object_unref(o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    SCOPED(json_free_p) cJSON *tree = NULL;
    const struct json_opts lenient = {.flags = JSON_REPLACE_BAD_UTF8 | JSON_KEEP_LAST_DUPLICATE};
    const char *p = (const char *)data;
    bool parses = json_parse(p, size, &lenient, &tree, NULL) == 0;
    check_scan(p, size, parses);
    check_object(p, size);
    return 0;
}
