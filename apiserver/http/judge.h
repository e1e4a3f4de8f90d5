/* Answers reviews from the roles and bindings that this server stores itself. Any thread. */
#pragma once

#include "apiserver/auth/auth.h"
#include "apiserver/registry/registry.h"

/* For auth_judge: ctx is the registry. From the cache as it is: a server that has just started
 * refuses until it is loaded. */
int judge_access(void *registry, const cJSON *spec, cJSON **ret_status, struct err *err);
/* The status of a SelfSubjectRulesReview for the user of spec in that namespace. */
int judge_rules(struct registry *r, const cJSON *spec, const char *namespace_name,
                cJSON **ret_status, struct err *err);
