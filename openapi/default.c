/* Defaults of absent fields. A default below an absent parent is not applied: only objects that are
 * there are filled. */
#include "openapi/default.h"

#include "apiserver/base/json.h"
#include "openapi/walk.h"

static void default_value(cJSON *value, const struct field *f);

static const struct field *has_defaults(const struct shape *shape)
{
    const struct field *f = shape->fields;
    while (f->name && !f->dflt)
        f++;
    return f->name ? f : NULL;
}

static void default_members(cJSON *object, const struct shape *shape)
{
    cJSON *member;
    cJSON_ArrayForEach(member, object)
    {
        if (cJSON_IsObject(member) || cJSON_IsArray(member)) {
            const struct field *f = shape_field(shape, member->string);
            if (f)
                default_value(member, f);
        }
    }
    for (const struct field *f = has_defaults(shape); f && f->name; f++)
        if (f->dflt && !json_get(object, f->name))
            json_set(object, f->name, walk_default(f));
}

static void default_value(cJSON *value, const struct field *f)
{
    if (f->type == F_OBJECT && cJSON_IsObject(value)) {
        default_members(value, f->of);
        return;
    }
    bool has_items =
        (f->type == F_LIST && cJSON_IsArray(value)) || (f->type == F_MAP && cJSON_IsObject(value));
    if (!has_items || (f->item != F_OBJECT && f->item != F_LIST && f->item != F_MAP))
        return;
    struct field item = walk_item_field(f);
    cJSON *child;
    cJSON_ArrayForEach(child, value)
    {
        default_value(child, &item);
    }
}

void default_apply(cJSON *tree, const struct shape *shape)
{
    if (cJSON_IsObject(tree))
        default_members(tree, shape);
}
