/* Binding a claim to a member of a warm pool: both objects are written by one transaction, so a
 * claim holds a live member or none and a member has one claim, whoever else writes and whenever a
 * server dies. A claim is bound inside its own POST when it can be (registry_create does it), else
 * by the reconciler (registry_bind).
 *
 * What a claim, a member and a pool are is said from above by a table of functions (struct bind_ops
 * in registry_config): here is only the choice, the reservation and the transaction. */
#pragma once

#include <cjson/cJSON.h>

#include "apiserver/registry/bind_index.h"
#include "apiserver/registry/registry.h"

/* What is known of one claim: its pool, the template behind it, ... Embedded first in what
 * bind_ops.plan returns. */
struct bind_plan {
    const char *pool; /* whose members are candidates */
};
enum bind_verdict {
    BIND_TAKE,  /* the two trees are to be written */
    BIND_SKIP,  /* not this member: it is looked at again when it changes, or a while later */
    BIND_LEAVE, /* the claim is not to be bound at all now */
};
/* Functions are called without locks and from any thread. Trees are borrowed unless said otherwise.
 */
struct bind_ops {
    const struct kind *claim, *member;
    const char *member_label; /* an object without it is no candidate, nor looked at any further */
    /* False: this is no candidate. Strings of ret are borrowed from the tree. */
    bool (*describe)(void *ctx, const cJSON *member, struct bind_member *ret);
    /* NULL: the claim is stored as it is. Reads what it needs from r (READ_ANY: from memory). */
    struct bind_plan *(*plan)(void *ctx, struct registry *r, const cJSON *claim);
    void (*plan_free)(struct bind_plan *plan);
    /* claim is complete (uid, name, status as it is); member with resourceVersion. For BIND_TAKE
     * the new states, owned by the caller; their metadata.resourceVersion must be unchanged. */
    enum bind_verdict (*adopt)(void *ctx, const struct bind_plan *plan, const cJSON *claim,
                               const cJSON *member, cJSON **ret_claim, cJSON **ret_member);
    const char *manager; /* who writes claims and adopted members, for managedFields */
    void *ctx;
};

struct bind_request {
    const struct object *claim; /* must still be at that revision */
    const char *member;         /* its name, when only that one will do; NULL = the best one */
};
enum bind_outcome {
    BIND_DONE,    /* bound; both are stored */
    BIND_NOBODY,  /* no member can be bound */
    BIND_WAITING, /* nor now, but there are members that only lack an address */
};
/* For a claim that is stored already. Of opts fence and deadline_ms count. ret_claim and ret_member
 * are new references, set for BIND_DONE only. ERR_CONFLICT: the claim changed meanwhile, or we do
 * not lead any more. */
int registry_bind(struct registry *r, const struct bind_request *req,
                  const struct write_options *opts, enum bind_outcome *ret,
                  struct object **ret_claim, struct object **ret_member, struct err *err);
/* ms since this server bound a claim last, in its POST or for the reconciler; INT64_MAX = it has
 * not. */
int64_t registry_bound_ago_ms(const struct registry *r);
