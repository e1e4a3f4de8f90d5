/* Pruning: unknown members and nulls. Where the table has a scalar and the tree an object, that
 * object loses its members and stays, as in kube-apiserver; validation then reports its type. */
#include "openapi/prune.h"

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "openapi/kinds/apimachinery.h"
#include "openapi/walk.h"

#define UNKNOWN_MAX 1000 /* names reported; what is beyond is removed all the same */

static void report(const struct walk_path *path, struct pairs *unknown)
{
    if (!unknown || unknown->n >= UNKNOWN_MAX)
        return;
    SCOPED(buf_fini) struct buf text = {0};
    walk_path_print(path, &text);
    pairs_add(unknown, buf_cstr(&text), "");
}

static void prune_value(cJSON *value, const struct field *f, const struct walk_path *path,
                        struct pairs *unknown);

/* Members that shape lacks go; a shape of NULL knows none. */
static void prune_members(cJSON *object, const struct shape *shape, const struct walk_path *path,
                          struct pairs *unknown)
{
    for (cJSON *member = object->child, *next; member; member = next) {
        next = member->next;
        struct walk_path here = {.up = path, .name = member->string};
        const struct field *f = shape_field(shape, member->string);
        if (f) {
            prune_value(member, f, &here, unknown);
        } else {
            report(&here, unknown);
            json_remove(object, member->string);
        }
    }
}

static void prune_map(cJSON *object, const struct field *item, const struct walk_path *path,
                      struct pairs *unknown)
{
    cJSON *member;
    cJSON_ArrayForEach(member, object)
    {
        struct walk_path here = {.up = path, .name = member->string};
        prune_value(member, item, &here, unknown);
    }
}

static void prune_items(cJSON *list, const struct field *item, const struct walk_path *path,
                        struct pairs *unknown)
{
    struct walk_path here = {.up = path};
    cJSON *value;
    cJSON_ArrayForEach(value, list)
    {
        prune_value(value, item, &here, unknown);
        here.index++;
    }
}

/* f is NULL below a place where the table has no children. */
static void prune_value(cJSON *value, const struct field *f, const struct walk_path *path,
                        struct pairs *unknown)
{
    if (f && f->type == F_ANY)
        return;
    if (cJSON_IsArray(value)) {
        struct field item = f && f->type == F_LIST ? walk_item_field(f) : (struct field){0};
        prune_items(value, f && f->type == F_LIST ? &item : NULL, path, unknown);
        return;
    }
    if (!cJSON_IsObject(value))
        return;
    if (f && f->type == F_MAP) {
        struct field item = walk_item_field(f);
        prune_map(value, &item, path, unknown);
        return;
    }
    const struct shape *shape = !f                    ? NULL
                                : f->type == F_OBJECT ? f->of
                                : f->type == F_META   ? &shape_object_meta
                                                      : NULL;
    prune_members(value, shape, path, unknown);
}

void prune_unknown(cJSON *tree, const struct shape *shape, struct pairs *unknown)
{
    if (cJSON_IsObject(tree))
        prune_members(tree, shape, NULL, unknown);
}

/* ---- nulls ------------------------------------------------------------------------------- */

static void nulls_of_value(cJSON *value, const struct field *f, bool is_applied);

/* null labels and annotations read as "" in Go; other null members of metadata are its zero values,
 * which are not printed. */
static void nulls_of_metadata(cJSON *metadata)
{
    for (cJSON *member = metadata->child, *next; member; member = next) {
        next = member->next;
        if (cJSON_IsNull(member)) {
            json_remove(metadata, member->string);
            continue;
        }
        const struct field *f = shape_field(&shape_object_meta, member->string);
        if (!f || f->type != F_MAP || !cJSON_IsObject(member))
            continue;
        for (cJSON *entry = member->child, *next_entry; entry; entry = next_entry) {
            next_entry = entry->next;
            if (cJSON_IsNull(entry))
                json_set(member, entry->string, json_string(""));
        }
    }
}

static void nulls_of_members(cJSON *object, const struct shape *shape, bool is_applied)
{
    for (cJSON *member = object->child, *next; member; member = next) {
        next = member->next;
        const struct field *f = shape_field(shape, member->string);
        if (!f)
            continue;
        if (!cJSON_IsNull(member))
            nulls_of_value(member, f, is_applied);
        else if (f->dflt)
            json_set(object, member->string, walk_default(f));
        else if (f->type != F_ANY && !is_applied)
            json_remove(object, member->string);
    }
}

static void nulls_of_map(cJSON *object, const struct field *item, bool is_applied)
{
    for (cJSON *member = object->child, *next; member; member = next) {
        next = member->next;
        if (!cJSON_IsNull(member))
            nulls_of_value(member, item, is_applied);
        else if (!is_applied)
            json_remove(object, member->string);
    }
}

static void nulls_of_value(cJSON *value, const struct field *f, bool is_applied)
{
    if (f->type == F_LIST && cJSON_IsArray(value)) {
        struct field item = walk_item_field(f);
        cJSON *child;
        cJSON_ArrayForEach(child, value)
        {
            nulls_of_value(child, &item, is_applied);
        }
    } else if (f->type == F_META && cJSON_IsObject(value)) {
        nulls_of_metadata(value);
    } else if (f->type == F_MAP && cJSON_IsObject(value)) {
        struct field item = walk_item_field(f);
        nulls_of_map(value, &item, is_applied);
    } else if (f->type == F_OBJECT && cJSON_IsObject(value)) {
        nulls_of_members(value, f->of, is_applied);
    }
}

void prune_nulls(cJSON *tree, const struct shape *shape)
{
    if (cJSON_IsObject(tree))
        nulls_of_members(tree, shape, false);
}

void prune_nulls_of_apply(cJSON *tree, const struct shape *shape)
{
    if (cJSON_IsObject(tree))
        nulls_of_members(tree, shape, true);
}
