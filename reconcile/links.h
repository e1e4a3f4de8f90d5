/* Which keys name what, told key by key and looked up the other way: of what a change concerns. Any
 * thread. */
#pragma once

#include <stdbool.h>

struct links;
struct links *links_new(void);
void links_free(struct links *l); /* NULL is fine */
/* What the key names from now on, NULL-terminated; NULL = nothing. True when it names something
 * else than before. */
bool links_set(struct links *l, const char *key, char **take_names);
/* The keys that name it, NULL-terminated, the caller's; NULL when there are none. */
char **links_to(struct links *l, const char *name);
