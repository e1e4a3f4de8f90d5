/* What a node may, where nodes are kinds of this server: which objects (an authorizer beside
 * roles), and what it may not write although it may write the kind (a guard). A node is a user
 * system:node:NAME of the group system:nodes, and stands for the Node of that name. One of them,
 * system:node:local, is the node of the server's folder, by whatever name it registers: it stands
 * for every Node that no node with a certificate of its own name has written. Source: the
 * Kubernetes reference, Node authorization and NodeRestriction. Any thread. */
#pragma once

#include "apiserver/auth/auth.h"
#include "apiserver/base/arena.h"
#include "apiserver/registry/registry.h"

struct node_access;
struct node_access *node_access_new(struct registry *registry); /* borrowed */
void node_access_free(struct node_access *n); /* before registry_stop; NULL is fine */

/* Whether the user of that SubjectAccessReview is a node, and so has rights beyond those of its
 * roles. */
bool node_access_is_node(const cJSON *spec);
/* True when a node may what spec asks. Else *ret_why, the caller's, says why not; NULL = nothing to
 * say, or it is no node. */
bool node_access_allows(struct node_access *n, const cJSON *spec, char **ret_why);

/* What the user may not write; NULL = it is no node. n NULL = nobody is. The user's name is
 * borrowed. */
const struct write_guard *node_access_guard(struct node_access *n, const struct user *u,
                                            struct arena *arena);
/* Whether the node of the guard may have a token of the account for the spec of that TokenRequest:
 * bound to a Pod of its own, for whom that asks for it. pod: which spec names, NULL = none.
 * ERR_FORBIDDEN. */
int node_access_token(const struct write_guard *guard, const struct object *account,
                      const struct object *pod, const cJSON *spec, struct err *err);

/* Whether a node with a certificate of the Node's own name has written it, which then is its alone.
 */
bool node_access_has_user(const cJSON *node);
