/* An object of which many members are looked up, set and removed by name: by a table when there are
 * many, since json.h goes through the members each time. While it is open the object's members are
 * changed through it alone. */
#pragma once

#include "apiserver/base/json.h"
#include "apiserver/base/map.h"

struct json_members {  /* json_members_fini */
    cJSON *object;     /* borrowed */
    struct map *table; /* NULL = so few look-ups that it does not pay */
};
/* n: look-ups to come, about. */
struct json_members json_members_of(cJSON *object, size_t n);
void json_members_fini(struct json_members *m);
/* As those of json.h. */
cJSON *json_members_get(const struct json_members *m, const char *name);
void json_members_set(struct json_members *m, const char *name, cJSON *take_value);
void json_members_remove(struct json_members *m, const char *name);
