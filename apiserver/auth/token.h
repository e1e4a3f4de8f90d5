/* Bearer tokens, judged by the cluster's TokenReview, or by the judge that there is instead. Any
 * thread; blocks. */
#pragma once

#include "apiserver/auth/auth.h"

struct tokens;
/* Both may be NULL: every token is refused. */
struct tokens *tokens_new(struct kube *kube, const struct auth_judge *judge,
                          const struct clock *clock);
void tokens_free(struct tokens *t);
/* ret (must be {0}) gets name, uid, groups and extra. Errors: ERR_UNAUTHORIZED; ERR_UNAVAILABLE
 * when the cluster did not say. */
int tokens_identify(struct tokens *t, const char *token, struct user *ret, struct err *err);
