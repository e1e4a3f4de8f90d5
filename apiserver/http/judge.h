/* Answers reviews from the roles, bindings and accounts that this server stores itself. Any
 * thread. */
#pragma once

#include "apiserver/auth/auth.h"
#include "apiserver/auth/jwt.h"
#include "apiserver/registry/registry.h"

struct node_access;
struct judge {
    struct registry *registry;             /* borrowed */
    const struct clock *clock;             /* borrowed */
    unsigned char token_key[JWT_KEY_SIZE]; /* of tokens of ServiceAccounts */
    struct node_access *nodes;             /* borrowed; NULL = nobody is a node */
};
/* For auth_judge: ctx is a struct judge. From the cache as it is: a server that has just started
 * refuses until it is loaded. */
int judge_access(void *judge, const cJSON *spec, cJSON **ret_status, struct err *err);
/* The status of a TokenReview: whose token it is, while its account (and Pod) is there. */
int judge_token_review(void *judge, const char *token, cJSON **ret_status, struct err *err);
/* A token for the account, bound to the Pod unless that is NULL; audiences NULL = this server.
 * Owned by the caller. */
char *judge_token(const struct judge *j, const struct object *account, const struct object *pod,
                  const cJSON *audiences, int64_t now_unix_s, int64_t life_s);
/* The status of a SelfSubjectRulesReview for the user of spec in that namespace. */
int judge_rules(const struct judge *j, const cJSON *spec, const char *namespace_name,
                cJSON **ret_status, struct err *err);
