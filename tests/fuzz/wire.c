/* Fuzz target for openapi/wire: whatever bytes come, there is a tree that JSON can say and that has
 * no null, or an error; a field that no table has changes nothing. The first byte chooses the
 * message; all of them are tried as an envelope too. */
#include <stdint.h>
#include <stdlib.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* What is inside raw JSON may be null. */
static void require_no_null(const cJSON *node)
{
    const cJSON *child;
    require(!cJSON_IsNull(node));
    cJSON_ArrayForEach(child, node)
    {
        if (!str_equal(child->string, "fieldsV1"))
            require_no_null(child);
    }
}

static void require_printable(const cJSON *tree)
{
    SCOPED(json_free_p) cJSON *again = NULL;
    SCOPED_FREE char *text = json_to_str(tree);
    require(json_parse_str(text, &again, NULL) == 0);
    require(json_equal(tree, again));
}

static void require_unknown_is_skipped(const struct wire_message *m, struct str raw,
                                       const cJSON *tree)
{
    static const char unknown[] = "\xb8\x3e\x01"; /* number 999 */
    SCOPED(json_free_p) cJSON *again = NULL;
    SCOPED(buf_fini) struct buf longer = {0};
    buf_append(&longer, raw.p, raw.n);
    buf_append(&longer, unknown, sizeof unknown - 1);
    require(wire_decode(m, buf_str(&longer), &again, NULL) == 0);
    require(json_equal(tree, again));
}

static void check_message(const struct wire_message *m, struct str raw)
{
    SCOPED(json_free_p) cJSON *tree = NULL;
    SCOPED(err_fini) struct err err = {0};
    int r = wire_decode(m, raw, &tree, &err);
    require((r == 0) == (tree != NULL) && r == -(int)err.code);
    if (r < 0)
        return;
    require_no_null(tree);
    require_printable(tree);
    require_unknown_is_skipped(m, raw, tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str bytes = {(const char *)data, size};
    struct wire_envelope e = {0};
    size_t n = 0;
    if (wire_open(bytes, &e, NULL) == 0)
        require(e.raw.n + e.kind.n + e.api_version.n < size);
    while (wire_roots[n].kind)
        n++;
    if (size)
        check_message(wire_roots[*data % n].message, (struct str){bytes.p + 1, bytes.n - 1});
    return 0;
}
