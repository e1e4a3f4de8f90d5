/* Fuzz target for patches: a document, a line end, a patch. Neither is changed; a result prints and
 * parses to itself; merging twice is merging once. */
#include <stdint.h>
#include <stdlib.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/registry/patch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_stable(const cJSON *tree)
{
    SCOPED(buf_fini) struct buf text = {0};
    SCOPED(json_free_p) cJSON *again = NULL;
    json_print(tree, &text);
    require(json_parse(buf_cstr(&text), text.len, NULL, &again, NULL) == 0 &&
            json_equal(tree, again));
}

static void check_merge(const cJSON *doc, const cJSON *patch)
{
    SCOPED(json_free_p) cJSON *once = NULL, *twice = NULL;
    patch_merge(doc, patch, &once);
    patch_merge(once, patch, &twice);
    check_stable(once);
    require(json_equal(once, twice));
}

static void check_json(const cJSON *doc, const cJSON *patch)
{
    SCOPED(json_free_p) cJSON *result = NULL;
    SCOPED(err_fini) struct err err = {0};
    int r = patch_json(doc, patch, &result, &err);
    require((r == 0) == (result != NULL) && r == -(int)err.code);
    if (result)
        check_stable(result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *eol = size ? memchr(text, '\n', size) : NULL;
    SCOPED(json_free_p) cJSON *doc = NULL, *patch = NULL;
    size_t n = eol ? (size_t)(eol - text) : size;
    if (!eol || json_parse(text, n, NULL, &doc, NULL) < 0 ||
        json_parse(eol + 1, size - n - 1, NULL, &patch, NULL) < 0)
        return 0;
    SCOPED(json_free_p) cJSON *doc_before = json_copy(doc), *patch_before = json_copy(patch);
    if (cJSON_IsArray(patch) || cJSON_IsNull(patch))
        check_json(doc, patch);
    if (cJSON_IsObject(patch))
        check_merge(doc, patch);
    require(json_equal(doc, doc_before) && json_equal(patch, patch_before));
    return 0;
}
