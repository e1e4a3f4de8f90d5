/* On top of world.h: templates, pools, members and claims, bound by the rules of claims. */
#pragma once

#include "reconcile/claim_bind.h"
#include "tests/lib/world.h"

struct pool_world {
    struct world w;
    struct claim_binder binder;
};
extern const char *const pool_world_domains[]; /* that labels may have */

void pool_world_start(struct pool_world *pw); /* template t, pool p of it */
void pool_world_stop(struct pool_world *pw);
/* These fail the test unless they work; references are the caller's. They write as the system, so
 * status counts. */
struct object *pool_world_put(struct registry *r, const struct kind *kind, const char *json);
cJSON *pool_world_read(struct registry *r, const struct kind *kind,
                       const char *name); /* NULL when absent */
/* Changes a member at path. */
void pool_world_edit(struct registry *r, const struct kind *kind, const char *name,
                     const char *path, const char *json);
enum member_state { MEMBER_READY, MEMBER_ADDRESS, MEMBER_PENDING };
/* A member of pool p made from template t as it is; node "" = none. */
void pool_world_member(struct registry *r, const char *name, const char *node,
                       enum member_state state);
/* more: further members of metadata and spec, as JSON text beginning with a comma, or "". */
cJSON *pool_world_claim(const char *name, const char *metadata, const char *spec);
/* As a client does. 0 or the error's code. */
int pool_world_post(struct registry *r, cJSON *take_claim, bool dry_run, cJSON **ret,
                    struct err *err);
/* The Sandbox that a claim is bound to; "" = none. Fails the test when claim and Sandbox do not
 * agree. */
const char *pool_world_bound(struct registry *r, const cJSON *claim);
size_t
pool_world_owned(struct registry *r,
                 const char *claim_uid); /* Sandboxes that it controls; NULL: that any claim does */
