/* Who a request comes from. */
#include <stdlib.h>

#include "apiserver/auth/auth.h"

void user_fini(struct user *u)
{
    if (!u)
        return;
    free(u->name);
    free(u->uid);
    strv_free(u->groups);
    pairs_fini(&u->extra);
    *u = (struct user){0};
}

bool user_in_group(const struct user *u, const char *group)
{
    return strv_has(u->groups, group);
}
