/* Which clients may ask the node for what: the cluster says so, by a SubjectAccessReview of the
 * verb on nodes/proxy, as for a kubelet. Answers count for a while. Whatever goes wrong: no. Any
 * thread; blocks on reviews. */
#pragma once

#include "apiserver/base/clock.h"
#include "apiserver/base/subject.h"
#include "apiserver/kube/kube.h"

struct callers;
/* All is borrowed. */
struct callers *callers_new(struct kube *kube, const char *node, const struct clock *clock);
void callers_free(struct callers *c); /* NULL is fine */
/* verb: get, create. Errors: ERR_FORBIDDEN; others when the review could not be had. */
int callers_check(struct callers *c, const struct subject *who, const char *verb, struct err *err);
