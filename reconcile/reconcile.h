/* The reconciler: brings the cluster to what the objects say, while this process leads. Owns the
 * queues, their workers, the caches of the cluster and the watches on the registry. */
#pragma once

#include "apiserver/kube/kube.h"
#include "reconcile/claim_pass.h"
#include "reconcile/sandbox_pass.h"
#include "reconcile/template.h"
#include "reconcile/warmpool_pass.h"

struct reconcile_config {
    struct registry *registry; /* borrowed, like all below */
    struct kube *kube;
    const struct clock *clock;
    const struct randomness *randomness;
    const char *cluster_domain;
    bool no_sandbox_events, no_claim_events;
    bool detailed_reasons; /* see struct sandbox_outcome */
    int sandbox_workers;   /* at once; 0 = 20 */
    int claim_workers;     /* 0 = 50 */
    int template_workers;  /* 0 = 1 */
    int warm_pool_workers; /* 0 = 1 */
    struct warmpool_settings warm_pool;
    struct claim_settings claim;
    struct template_settings template;
    bool (*fence)(void *ctx, struct store_compare *ret); /* see struct pass_env */
    void *ctx;
};
struct reconcile;
struct reconcile *reconcile_new(const struct reconcile_config *config);
/* Begins to work; every object is looked at once. Called when leadership is won; main or the
 * leader's thread. */
void reconcile_start(struct reconcile *r);
void reconcile_stop(struct reconcile *r); /* waits for passes under way; may be started again */
void reconcile_free(struct reconcile *r);
