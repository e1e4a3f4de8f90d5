/* One pass over one Sandbox: look, decide (sandbox.c), carry out, write what came of it in one
 * update. */
#pragma once

#include <stdbool.h>

#include "apiserver/base/loop.h"
#include "reconcile/pass.h"

struct sandbox_reconciler_config {
    struct pass_env env;
    const char *cluster_domain; /* cluster.local; borrowed */
    bool no_events;
    bool detailed_reasons; /* see struct sandbox_outcome */
};
struct sandbox_reconciler;
struct sandbox_reconciler *sandbox_reconciler_new(const struct sandbox_reconciler_config *config);
void sandbox_reconciler_free(struct sandbox_reconciler *r);
/* A loop_work_fn; ctx is the reconciler, key is NAMESPACE/NAME. */
int sandbox_pass(void *ctx, const char *key, struct loop_result *ret);
