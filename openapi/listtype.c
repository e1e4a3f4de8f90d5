/* Lists with keys; see listtype.h. Source: kubernetes-api.md 13.6, and kube-apiserver asked (a
 * value met three times is reported once; items without keys are equal). */
#include "openapi/listtype.h"

#include "apiserver/base/json.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"

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
static bool find_misfit(const cJSON *list,
                        void (*found)(void *ctx, size_t index, const cJSON *item, const char *key),
                        void *ctx)
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

void listtype_find_duplicates(const cJSON *list, const struct field *f,
                              void (*found)(void *ctx, size_t index, const cJSON *item,
                                            const char *key),
                              void *ctx)
{
    static char seen_once, reported; /* only their addresses count */
    if ((f->list != LIST_MAP && f->list != LIST_SET) || !list->child)
        return;
    if (f->list == LIST_MAP && find_misfit(list, found, ctx))
        return;
    if (!list->child->next)
        return;
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
