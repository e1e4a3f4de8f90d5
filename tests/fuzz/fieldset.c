/* Fuzz target for sets of field paths: two FieldsV1, a line each. What is read prints to a text
 * that reads as the same set; sets combine by the laws of sets; paths have texts. */
#include <stdint.h>
#include <stdlib.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/fieldpath.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_stable(struct arena *arena, const struct fieldset *set)
{
    SCOPED(buf_fini) struct buf first = {0}, second = {0};
    const struct fieldset *again = NULL;
    fieldset_print(set, &first);
    struct scan s = {buf_cstr(&first), buf_cstr(&first) + first.len};
    require(fieldset_parse(arena, &s, false, &again) == 0 && scan_at_end(&s));
    fieldset_print(again, &second);
    require(fieldset_equal(set, again) && strcmp(buf_cstr(&first), buf_cstr(&second)) == 0);
}

static void check_laws(struct arena *arena, const struct fieldset *a, const struct fieldset *b)
{
    const struct fieldset *both = fieldset_union(arena, a, b),
                          *common = fieldset_intersection(arena, a, b),
                          *left = fieldset_difference(arena, a, b),
                          *beyond = fieldset_exclude(arena, a, b);
    require(fieldset_equal(both, fieldset_union(arena, b, a)));
    require(fieldset_equal(common, fieldset_intersection(arena, b, a)));
    require(fieldset_equal(a, fieldset_union(arena, left, common)));
    require(!fieldset_intersection(arena, left, b) && !fieldset_difference(arena, a, both));
    require(!fieldset_difference(arena, beyond, left)); /* excluding takes more */
    check_stable(arena, both);
    check_stable(arena, beyond);
}

static void print_path(void *ctx, const struct fieldpath *path)
{
    fieldpath_print(path, ctx);
}

/* The reader is given what was JSON once; what is not must only do no harm. */
static bool is_json(const char *from, const char *to)
{
    const struct json_opts opts = {.flags = JSON_KEEP_LAST_DUPLICATE};
    SCOPED(json_free_p) cJSON *tree = NULL;
    return json_parse(from, (size_t)(to - from), &opts, &tree, NULL) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *end = text + size;
    const char *eol = size ? memchr(text, '\n', size) : NULL;
    const struct fieldset *a = NULL, *b = NULL;
    struct arena arena = {0};
    SCOPED(buf_fini) struct buf paths = {.max = (size_t)1 << 20};
    struct scan first = {text, eol ? eol : end}, second = {eol ? eol : end, end};
    bool reads = fieldset_parse(&arena, &first, true, &a) == 0,
         reads_second = fieldset_parse(&arena, &second, true, &b) == 0;
    if (reads && is_json(text, eol ? eol : end)) {
        check_stable(&arena, a);
        fieldpath_each(a, print_path, &paths);
        if (reads_second && is_json(eol ? eol : end, end))
            check_laws(&arena, a, b);
    }
    arena_fini(&arena);
    return 0;
}
