/* Lists with keys; see listtype.h. Source: docs/kubernetes-api.md 13.6, and kube-apiserver asked (a
 * value met three times is reported once; items without keys are equal). */
#include "openapi/listtype.h"

#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "openapi/goprint.h"

#define FEW 24 /* items up to which comparing all pairs is quicker than a map */

void listtype_key_print(const cJSON *item, const struct field *list, struct buf *out)
{
    if (list->list != LIST_MAP) {
        json_print(item, out);
        return;
    }
    bool first = true;
    buf_putc(out, '{');
    for (const char *const *key = list->keys; *key; key++) {
        const cJSON *value = cJSON_IsObject(item) ? json_get(item, *key) : NULL;
        if (!value)
            continue;
        buf_printf(out, "%s\"%s\":", first ? "" : ",", *key);
        json_print(value, out);
        first = false;
    }
    buf_putc(out, '}');
}

bool listtype_has_keys(const cJSON *item, const struct field *list)
{
    for (const char *const *key = list->keys; *key; key++) {
        const cJSON *value = cJSON_IsObject(item) ? json_get(item, *key) : NULL;
        if (!cJSON_IsString(value) && !cJSON_IsNumber(value) && !cJSON_IsBool(value))
            return false;
    }
    return true;
}

/* Reports the first item of a map list that is no object; whether there was one. */
static bool find_misfit(const cJSON *list, listtype_found_fn *found, void *ctx)
{
    size_t i = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        if (!cJSON_IsObject(item) && !cJSON_IsNull(item)) {
            found(ctx, i, item, NULL);
            return true;
        }
        i++;
    }
    return false;
}

/* Go decodes 1 and 1.0 to different types, which are never equal. */
static bool values_equal(const cJSON *a, const cJSON *b)
{
    if (cJSON_IsString(a) && cJSON_IsString(b)) /* nearly always */
        return strcmp(a->valuestring, b->valuestring) == 0;
    if (cJSON_IsNumber(a) && cJSON_IsNumber(b) && goprint_is_int64(a) != goprint_is_int64(b))
        return false;
    return json_equal(a, b);
}

static bool keys_equal(const cJSON *a, const cJSON *b, const struct field *f)
{
    if (f->list == LIST_SET)
        return values_equal(a, b);
    for (const char *const *key = f->keys; *key; key++) {
        const cJSON *in_a = cJSON_IsObject(a) ? json_get(a, *key) : NULL;
        const cJSON *in_b = cJSON_IsObject(b) ? json_get(b, *key) : NULL;
        bool is_equal = in_a && in_b ? values_equal(in_a, in_b) : in_a == in_b;
        if (!is_equal)
            return false;
    }
    return true;
}

static void report_repeated(const cJSON *item, size_t index, const struct field *f,
                            listtype_found_fn *found, void *ctx)
{
    SCOPED(buf_fini) struct buf key = {0};
    listtype_key_print(item, f, &key);
    found(ctx, index, item, buf_cstr(&key));
}

/* Each with those before it: no memory, and quick as long as they are few. */
static void compare_pairs(const cJSON *list, const struct field *f, listtype_found_fn *found,
                          void *ctx)
{
    size_t i = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        size_t equal = 0;
        for (const cJSON *before = list->child; before != item && equal < 2; before = before->next)
            equal += keys_equal(before, item, f);
        if (equal == 1)
            report_repeated(item, i, f, found, ctx);
        i++;
    }
}

static void compare_by_map(const cJSON *list, const struct field *f, listtype_found_fn *found,
                           void *ctx)
{
    static char seen_once, reported; /* only their addresses count */
    struct map *seen = map_new();
    SCOPED(buf_fini) struct buf key = {0};
    size_t i = 0;
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        buf_clear(&key);
        listtype_key_print(item, f, &key);
        void *state = map_get(seen, buf_cstr(&key));
        if (state == &seen_once)
            found(ctx, i, item, buf_cstr(&key));
        (void)map_put(seen, buf_cstr(&key), state ? &reported : &seen_once);
        i++;
    }
    map_free(seen);
}

void listtype_find_duplicates(const cJSON *list, const struct field *f, listtype_found_fn *found,
                              void *ctx)
{
    if ((f->list != LIST_MAP && f->list != LIST_SET) || !list->child)
        return;
    if (f->list == LIST_MAP && find_misfit(list, found, ctx))
        return;
    if (json_len(list) <= FEW)
        compare_pairs(list, f, found, ctx);
    else
        compare_by_map(list, f, found, ctx);
}
