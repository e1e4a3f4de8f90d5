/* One pass over one Sandbox: look, decide (sandbox.c), carry out, write what came of it in one update. */
#pragma once

#include <stdbool.h>

#include "apiserver/base/clock.h"
#include "apiserver/registry/registry.h"
#include "reconcile/cluster.h"
#include "reconcile/loop.h"

struct sandbox_reconciler_config {
    struct registry *registry; /* borrowed, like all below */
    struct cluster *cluster;
    const struct clock *clock;
    const struct randomness *randomness;
    const char *cluster_domain; /* cluster.local */
    bool no_events;
    /* The compare that every write carries; false when this process does not lead (then nothing is written). NULL = no leader needed. */
    bool (*fence)(void *ctx, struct store_compare *ret);
    void *ctx;
};
struct sandbox_reconciler;
struct sandbox_reconciler *sandbox_reconciler_new(const struct sandbox_reconciler_config *config);
void sandbox_reconciler_free(struct sandbox_reconciler *r);
/* A loop_work_fn; ctx is the reconciler, key is NAMESPACE/NAME. */
int sandbox_pass(void *ctx, const char *key, struct loop_result *ret);
