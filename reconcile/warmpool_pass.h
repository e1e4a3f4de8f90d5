/* One pass over one SandboxWarmPool: count its members, sort out which may stay, make or delete to
 * the size wanted, and write what came of it in one update (warmpool.c decides).
 *
 * Why a pass never makes a member twice: it counts from this server's own cache, and it waits for
 * the cache to have the revision of the pool's last write before it counts. The first count after
 * taking the lead, and one after a write whose outcome is not known, asks the store what the newest
 * revision is. No list of expected events is kept, so none can be lost. */
#pragma once

#include "apiserver/base/loop.h"
#include "reconcile/pass.h"

struct warmpool_settings {      /* 0 = the default */
    int64_t max_batch;          /* members made or deleted in one pass; 300 */
    int64_t replenish_delay_ms; /* W10; 0 = none */
    int64_t lull_ms;            /* without a claim, before members are made; 0 = not waited for */
    double max_refill_rate;     /* members a second and pool, W11; 0 = unlimited */
    int64_t readiness_grace_ms; /* W6; 5 min */
    int64_t recheck_ms;         /* W12; 1 min */
    bool no_eviction;           /* do not mark members as safe to evict */
};
struct warmpool_reconciler;
struct warmpool_reconciler *warmpool_reconciler_new(const struct pass_env *env,
                                                    const struct warmpool_settings *settings);
void warmpool_reconciler_free(struct warmpool_reconciler *r);
/* A loop_work_fn; ctx is the reconciler, key is NAMESPACE/NAME. */
int warmpool_pass(void *ctx, const char *key, struct loop_result *ret);
