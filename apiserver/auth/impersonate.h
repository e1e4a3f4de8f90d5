/* Acting for somebody else: headers Impersonate-*, each of whose values is a right of its own.
 * Any thread; blocks on reviews. */
#pragma once

#include "apiserver/auth/authorize.h"

/* True when the headers ask for it. */
bool impersonate_is_wanted(const struct pairs *headers);
/* user becomes whom the headers name, if it may be each of them; they are removed. Errors:
 * ERR_FORBIDDEN, ERR_BAD_REQUEST nobody is named, ERR_INTERNAL a review failed. */
int impersonate(struct authorizer *a, struct pairs *headers, struct user *user, struct err *err);
