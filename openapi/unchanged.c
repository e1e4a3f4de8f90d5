/* What an update left as it was; see unchanged.h. Source: apiextensions' CorrelatedObject, and
 * kube-apiserver asked. */
#include "openapi/unchanged.h"

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "openapi/listtype.h"
#include "openapi/walk.h"

struct map *unchanged_index(const cJSON *old, const struct field *f)
{
    if (!cJSON_IsArray(old) || f->list != LIST_MAP)
        return NULL;
    struct map *index = map_new();
    SCOPED(buf_fini) struct buf key = {0};
    for (cJSON *item = old->child; item; item = item->next) {
        if (!listtype_has_keys(item, f))
            continue;
        buf_clear(&key);
        listtype_key_print(item, f, &key);
        if (!map_get(index, buf_cstr(&key)))
            (void)map_put(index, buf_cstr(&key), item);
    }
    return index;
}

const cJSON *unchanged_counterpart(const struct map *index, const cJSON *item,
                                   const struct field *f)
{
    if (!index || !listtype_has_keys(item, f))
        return NULL;
    SCOPED(buf_fini) struct buf key = {0};
    listtype_key_print(item, f, &key);
    return map_get(index, buf_cstr(&key));
}

static bool items_unchanged(const cJSON *list, const cJSON *old, const struct field *f)
{
    struct map *index = unchanged_index(old, f);
    struct field item_field = walk_item_field(f);
    const cJSON *item = list->child, *old_item = old->child;
    bool same = json_len(list) == json_len(old);
    for (; same && item; item = item->next, old_item = old_item->next) {
        const cJSON *counterpart = unchanged_counterpart(index, item, f);
        same = index ? counterpart && unchanged_value(item, counterpart, &item_field)
                     : json_equal(item, old_item);
    }
    map_free(index);
    return same;
}

static bool members_unchanged(const cJSON *object, const cJSON *old, const struct field *f)
{
    if (json_len(object) != json_len(old))
        return false;
    struct field item = walk_item_field(f);
    const cJSON *member;
    cJSON_ArrayForEach(member, object)
    {
        const struct field *row = f->type == F_MAP ? &item : shape_field(f->of, member->string);
        const cJSON *counterpart = json_get(old, member->string);
        if (!row || !counterpart || !unchanged_value(member, counterpart, row))
            return false;
    }
    return true;
}

bool unchanged_value(const cJSON *value, const cJSON *old, const struct field *f)
{
    if (cJSON_IsArray(value) && cJSON_IsArray(old) && f->type == F_LIST)
        return items_unchanged(value, old, f);
    if (cJSON_IsObject(value) && cJSON_IsObject(old) && (f->type == F_OBJECT || f->type == F_MAP))
        return members_unchanged(value, old, f);
    return json_equal(value, old);
}
