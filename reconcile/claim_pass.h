/* One pass over one SandboxClaim: find its Sandbox, or get one from the pool or make one, keep that
 * in line, mirror it, end it in time (claim.c decides). Most claims come bound from their POST, and
 * their first pass has nothing to write. */
#pragma once

#include <stdbool.h>

#include "apiserver/base/loop.h"
#include "reconcile/claim.h"
#include "reconcile/pass.h"

struct claim_reconciler_config {
    struct pass_env env;
    struct claim_settings settings;
    bool no_events;
};
struct claim_reconciler;
struct claim_reconciler *claim_reconciler_new(const struct claim_reconciler_config *config);
void claim_reconciler_free(struct claim_reconciler *r);
/* How many claims it remembers to have seen. */
size_t claim_reconciler_seen(struct claim_reconciler *r);
/* A loop_work_fn; ctx is the reconciler, key is NAMESPACE/NAME. */
int claim_pass(void *ctx, const char *key, struct loop_result *ret);
