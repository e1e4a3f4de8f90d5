/* Fuzz target for base/json: whatever parses prints as a text that parses again, equal and printing
 * the same; so do its copy, its sorted and its pretty form. A text that is refused leaves nothing
 * behind but an error. */
#include <stdint.h>
#include <stdlib.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* out is JSON for a tree equal to tree. */
static void check_text(const cJSON *tree, const struct buf *out)
{
    SCOPED(json_free_p) cJSON *again = NULL;
    require(json_parse(out->data, out->len, NULL, &again, NULL) == 0);
    require(json_equal(tree, again) && json_equal(again, tree));
}

static void check_tree(const cJSON *tree)
{
    SCOPED(buf_fini) struct buf compact = {0}, pretty = {0}, twice = {0};
    SCOPED(json_free_p) cJSON *copy = json_copy(tree), *again = NULL;
    json_print(tree, &compact);
    check_text(tree, &compact);
    require(json_parse(compact.data, compact.len, NULL, &again, NULL) == 0);
    json_print(again, &twice);
    require(compact.len == twice.len && memcmp(compact.data, twice.data, twice.len) == 0);
    json_print_pretty(tree, &pretty);
    if (!buf_failed(&pretty)) /* indenting deep trees grows with the square of the depth */
        check_text(tree, &pretty);
    json_sort(copy);
    require(json_equal(tree, copy));
}

static void check_flags(const uint8_t *data, size_t size, unsigned flags)
{
    SCOPED(pairs_fini) struct pairs repeated = {0};
    SCOPED(json_free_p) cJSON *tree = NULL;
    SCOPED(err_fini) struct err err = {0};
    const struct json_opts opts = {.flags = flags, .duplicates = &repeated};
    int r = json_parse((const char *)data, size, &opts, &tree, &err);
    require((r == 0) == (tree != NULL) && r == -(int)err.code);
    require(r == 0 || *err_text(&err));
    require(repeated.n <= 100);
    if (tree)
        check_tree(tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_flags(data, size, JSON_STRICT);
    check_flags(data, size, JSON_REPLACE_BAD_UTF8 | JSON_KEEP_LAST_DUPLICATE);
    return 0;
}
