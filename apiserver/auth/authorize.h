/* May they: the group that may all, the paths that are open, and the cluster's SubjectAccessReview.
 * Any thread; blocks. */
#pragma once

#include "apiserver/auth/auth.h"

struct authorizer;
/* kube may be NULL: then what needs a review is refused. */
struct authorizer *authorizer_new(struct kube *kube, const struct clock *clock);
void authorizer_free(struct authorizer *a);
int authorizer_check(struct authorizer *a, const struct user *u, const struct access *access,
                     struct err *err);
