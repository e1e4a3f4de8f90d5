/* The patch is walked beside the table and the object, which is changed in place. Lists are merged
 * through a map from the printed key to the item, so that a long patch of a long list stays
 * cheap. */
#include "apiserver/registry/patch_strategic.h"

#include <stdlib.h>
#include <string.h>

#include "apiserver/base/json_members.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "openapi/kinds/apimachinery.h"
#include "openapi/walk.h"

static const char directive[] = "$patch", retain[] = "$retainKeys",
                  delete_from[] = "$deleteFromPrimitiveList/", set_order[] = "$setElementOrder/";

static bool is_directive(const char *name)
{
    return strcmp(name, directive) == 0 || strcmp(name, retain) == 0 ||
           str_has_prefix(name, delete_from) || str_has_prefix(name, set_order);
}

/* What $patch of an object says; "" when it says nothing. */
static const char *directive_of(const cJSON *patch)
{
    return json_str_or(patch, directive, "");
}

static int check_directive(const cJSON *patch, struct err *err)
{
    const char *what = directive_of(patch);
    if (!json_get(patch, directive) || strcmp(what, "merge") == 0 || strcmp(what, "replace") == 0 ||
        strcmp(what, "delete") == 0)
        return 0;
    return err_set(err, ERR_BAD_REQUEST, "Unknown patch type found: %s", what);
}

/* ---- tables ---- */

/* The row of an object's member; NULL when the table has none. f describes the object. */
static const struct field *member_field(const struct field *f, const char *name,
                                        struct field *space)
{
    if (!f)
        return NULL;
    if (f->type == F_MAP) {
        *space = walk_item_field(f);
        return space;
    }
    return shape_field(f->type == F_META ? &shape_object_meta : f->of, name);
}

static int merge_object(cJSON *target, const cJSON *patch, const struct field *f, struct err *err);

/* A patch of what is not there yet: itself, without what only steers. */
static int fresh_value(const cJSON *patch, const struct field *f, cJSON **ret, struct err *err)
{
    if (!cJSON_IsObject(patch)) {
        *ret = json_copy(patch);
        return 0;
    }
    cJSON *object = json_object();
    int rc = strcmp(directive_of(patch), "delete") == 0 ? 0 : merge_object(object, patch, f, err);
    if (rc < 0)
        json_free(object);
    else
        *ret = object;
    return rc;
}

/* ---- lists ---- */

/* What items are told by: the key's value, or the whole of a plain value, as text. NULL = none. */
static char *item_key(const cJSON *item, const char *merge_key)
{
    const cJSON *key = *merge_key ? json_get(item, merge_key) : item;
    return key && !cJSON_IsNull(key) ? json_to_str(key) : NULL;
}

static int missing_key(const char *merge_key, struct err *err)
{
    return err_set(err, ERR_BAD_REQUEST, "map: does not contain declared merge key: %s", merge_key);
}

/* key -> first item with it. */
static struct map *index_items(const cJSON *list, const char *merge_key)
{
    struct map *index = map_new();
    cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        SCOPED_FREE char *key = item_key(item, merge_key);
        if (key && !map_get(index, key))
            map_put(index, key, item);
    }
    return index;
}

static int merge_item(cJSON *list, struct map *index, const cJSON *patch, const struct field *f,
                      struct err *err)
{
    struct field row = walk_item_field(f);
    SCOPED_FREE char *key = item_key(patch, f->merge_key);
    if (!key)
        return missing_key(f->merge_key, err);
    cJSON *present = map_get(index, key), *fresh = NULL;
    const char *what = directive_of(patch);
    if (strcmp(what, "delete") == 0) {
        if (present)
            json_remove_node(list, present);
        map_del(index, key);
        return 0;
    }
    if (present && cJSON_IsObject(present))
        return merge_object(present, patch, &row, err);
    if (present)
        return 0; /* a plain value that is there already */
    if (fresh_value(patch, &row, &fresh, err) < 0)
        return -(int)err->code;
    json_push(list, fresh);
    map_put(index, key, fresh);
    return 0;
}

/* Whether an item says that the others of the patch are the whole list. */
static bool replaces_list(const cJSON *patch)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, patch)
    {
        if (strcmp(directive_of(item), "replace") == 0)
            return true;
    }
    return false;
}

static int merge_list(cJSON *list, const cJSON *patch, const struct field *f, struct err *err)
{
    struct map *index = index_items(list, f->merge_key);
    bool replaces = replaces_list(patch);
    const cJSON *item;
    int rc = 0;
    if (replaces) {
        while (list->child)
            json_remove_node(list, list->child);
        map_free(index);
        index = map_new();
    }
    cJSON_ArrayForEach(item, patch)
    {
        bool only_steers = replaces && strcmp(directive_of(item), "replace") == 0;
        rc = check_directive(item, err);
        if (rc == 0 && !only_steers)
            rc = merge_item(list, index, item, f, err);
        if (rc < 0)
            break;
    }
    map_free(index);
    return rc;
}

static void delete_values(cJSON *list, const cJSON *values)
{
    struct map *gone = index_items(values, "");
    for (cJSON *item = list ? list->child : NULL, *next; item; item = next) {
        next = item->next;
        SCOPED_FREE char *key = item_key(item, "");
        if (key && map_get(gone, key))
            json_remove_node(list, item);
    }
    map_free(gone);
}

/* Behind those of to. */
static void move_items(cJSON *to, cJSON *from)
{
    while (from->child)
        json_push(to, json_detach_item(from, from->child));
}

/* The items in the order that is asked for; those it does not name stay before what they stood
 * before. */
static void order_list(cJSON *list, const cJSON *order, const char *merge_key)
{
    SCOPED(json_free_p) cJSON *rest = json_array();
    struct map *wanted = index_items(order, merge_key), *named = map_new();
    const cJSON *o;
    while (list->child) {
        cJSON *item = json_detach_item(list, list->child);
        SCOPED_FREE char *key = item_key(item, merge_key);
        if (key && map_get(wanted, key) && !map_get(named, key))
            map_put(named, key, item);
        json_push(rest, item);
    }
    cJSON_ArrayForEach(o, order)
    {
        SCOPED_FREE char *key = item_key(o, merge_key);
        cJSON *item = key ? map_del(named, key) : NULL;
        if (item)
            json_push(list, json_detach_item(rest, item));
    }
    /* What the order does not name came from the server, and goes to the front as it was there. */
    move_items(rest, list);
    move_items(list, rest);
    map_free(wanted);
    map_free(named);
}

/* ---- objects ---- */

static int merge_member(struct json_members *target, const cJSON *patch, const struct field *f,
                        struct err *err)
{
    cJSON *present = json_members_get(target, patch->string), *fresh = NULL;
    if (cJSON_IsNull(patch)) {
        json_members_remove(target, patch->string);
        return 0;
    }
    if (cJSON_IsObject(patch) && cJSON_IsObject(present)) {
        if (strcmp(directive_of(patch), "delete") == 0) {
            json_members_remove(target, patch->string);
            return 0;
        }
        return merge_object(present, patch, f, err);
    }
    bool is_merged = f && f->type == F_LIST && f->merge_key && cJSON_IsArray(patch);
    if (is_merged) {
        if (!cJSON_IsArray(present))
            json_members_set(target, patch->string, json_array());
        return merge_list(json_members_get(target, patch->string), patch, f, err);
    }
    if (fresh_value(patch, f, &fresh, err) < 0)
        return -(int)err->code;
    json_members_set(target, patch->string, fresh);
    return 0;
}

static void keep_only(struct json_members *target, const cJSON *names)
{
    struct map *kept = map_new();
    const cJSON *name;
    cJSON_ArrayForEach(name, names)
    {
        if (cJSON_IsString(name))
            map_put(kept, name->valuestring, target);
    }
    for (cJSON *m = target->object->child, *next; m; m = next) {
        next = m->next;
        if (!map_get(kept, m->string))
            json_members_remove(target, m->string);
    }
    map_free(kept);
}

/* What steers the lists beside it; before the members are merged and after. */
static void steer(const struct json_members *target, const cJSON *patch, const struct field *f,
                  bool is_after)
{
    const cJSON *m;
    cJSON_ArrayForEach(m, patch)
    {
        struct field space;
        const char *prefix = is_after ? set_order : delete_from;
        if (!cJSON_IsArray(m) || !str_has_prefix(m->string, prefix))
            continue;
        const char *name = m->string + strlen(prefix);
        const struct field *row = member_field(f, name, &space);
        cJSON *list = json_members_get(target, name);
        if (!cJSON_IsArray(list))
            continue;
        if (!is_after)
            delete_values(list, m);
        else if (row && row->merge_key)
            order_list(list, m, row->merge_key);
    }
}

/* Depth is that of the patch, which json.h bounds when it parses. */
static int merge_object(cJSON *target, const cJSON *patch, const struct field *f, struct err *err)
{
    const cJSON *m, *names = json_get(patch, retain);
    int rc = check_directive(patch, err);
    if (rc == 0 && strcmp(directive_of(patch), "replace") == 0) {
        while (target->child)
            json_remove_node(target, target->child);
    }
    SCOPED(json_members_fini)
    struct json_members members = json_members_of(target, json_len(patch) + json_len(names));
    steer(&members, patch, f, false);
    cJSON_ArrayForEach(m, patch)
    {
        struct field space;
        if (rc < 0)
            return rc;
        if (!is_directive(m->string))
            rc = merge_member(&members, m, member_field(f, m->string, &space), err);
    }
    if (rc == 0 && cJSON_IsArray(names))
        keep_only(&members, names);
    steer(&members, patch, f, true);
    return rc;
}

int patch_strategic(const cJSON *doc, const cJSON *patch, const struct shape *shape, cJSON **ret,
                    struct err *err)
{
    SCOPED(json_free_p)
    cJSON *work = cJSON_IsObject(doc) ? json_copy(doc) : json_object();
    SCOPED(err_fini) struct err own = {0}; /* err may be NULL */
    const struct field root = {.name = "", .type = F_OBJECT, .of = shape};
    int rc = merge_object(work, patch, &root, &own);
    if (rc < 0)
        return err_move(err, &own);
    *ret = steal(&work);
    return 0;
}
