#include "apiserver/base/json_members.h"

#define FEW 16 /* look-ups without a table */

struct json_members json_members_of(cJSON *object, size_t n)
{
    struct json_members m = {.object = object, .table = n > FEW ? map_new() : NULL};
    cJSON *member;
    if (m.table)
        cJSON_ArrayForEach(member, object) map_put(m.table, member->string, member);
    return m;
}

void json_members_fini(struct json_members *m)
{
    map_free(m->table);
    *m = (struct json_members){0};
}

cJSON *json_members_get(const struct json_members *m, const char *name)
{
    return m->table ? map_get(m->table, name) : json_get(m->object, name);
}

void json_members_set(struct json_members *m, const char *name, cJSON *take_value)
{
    if (!m->table) {
        json_set(m->object, name, take_value);
        return;
    }
    cJSON *old = map_put(m->table, name, take_value);
    if (old)
        json_replace_item(m->object, old, take_value);
    else
        json_add(m->object, name, take_value);
}

void json_members_remove(struct json_members *m, const char *name)
{
    cJSON *old = m->table ? map_del(m->table, name) : json_get(m->object, name);
    if (old)
        json_remove_node(m->object, old);
}
