/* May they: the group that may all, the paths that are open, and the cluster's SubjectAccessReview.
 * Any thread; blocks. */
#pragma once

#include "apiserver/auth/auth.h"

struct authorizer;
/* Both may be NULL: then what needs a review is refused. */
struct authorizer *authorizer_new(struct kube *kube, const struct auth_judge *judge,
                                  const struct clock *clock);
void authorizer_free(struct authorizer *a);
int authorizer_check(struct authorizer *a, const struct user *u, const struct access *access,
                     struct err *err);
/* With a judge only: see auth_review_access. */
int authorizer_review(struct authorizer *a, const cJSON *spec, cJSON **ret_status, struct err *err);
