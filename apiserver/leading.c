/* The reconciler of clusters and, standalone, of the house: made at the start, they run while the
 * lease of the store is ours. */
#include "apiserver/leading.h"

#include <stdlib.h>

#include "apiserver/base/file.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/http/server.h"
#include "apiserver/standalone.h"
#include "reconcile/house.h"
#include "reconcile/reconcile.h"
#include "storage/lease.h"

#define AUTHORITY_MAX ((size_t)64 << 10) /* bytes of the file */

static void on_lead(void *ctx)
{
    struct app *a = ctx;
    log_info("leading identity=%s", a->identity);
    if (a->house)
        house_start(a->house);
    reconcile_start(a->reconcile);
}

static void on_follow(void *ctx, const char *why)
{
    struct app *a = ctx;
    log_info("not leading any more identity=%s why=\"%s\"", a->identity, why);
    reconcile_stop(a->reconcile);
    if (a->house)
        house_stop(a->house);
}

static const struct store_leader_ops leader_ops = {.on_started = on_lead, .on_stopped = on_follow};

/* The first passes may come before store_leader_start has returned: then nothing is written yet. */
static bool fence(void *ctx, struct store_compare *ret)
{
    struct app *a = ctx;
    struct store_leader *leader = atomic_load(&a->leader);
    return leader && store_leader_fence(leader, ret);
}

void leading_suspect(void *app)
{
    struct store_leader *leader = atomic_load(&((struct app *)app)->leader);
    if (leader)
        store_leader_suspect(leader);
}

static struct reconcile *make_reconciler(struct app *a)
{
    const struct options *o = &a->options;
    return reconcile_new(&(struct reconcile_config){
        .registry = a->registry,
        .kube = a->kube,
        .clock = &clock_system,
        .randomness = &rand_system,
        .cluster_domain = o->cluster_domain,
        .no_sandbox_events = o->disable_sandbox_events,
        .detailed_reasons = o->detailed_ready_reasons,
        .no_claim_events = o->disable_claim_events,
        .claim = a->binder.settings,
        .template.resolvers = (const char *const *)o->policy_resolvers,
        .sandbox_workers = (int)o->sandbox_workers,
        .claim_workers = (int)o->claim_workers,
        .template_workers = (int)o->template_workers,
        .warm_pool_workers = (int)o->warm_pool_workers,
        .warm_pool = {.max_batch = o->warm_pool_batch,
                      .replenish_delay_ms = o->warm_pool_delay_ms,
                      .lull_ms = o->warm_pool_lull_ms,
                      .max_refill_rate = o->warm_pool_rate,
                      .readiness_grace_ms = o->warm_pool_grace_ms,
                      .recheck_ms = o->warm_pool_recheck_ms,
                      .no_eviction = !o->warm_pool_eviction},
        .fence = fence,
        .ctx = a,
    });
}

static int make_house(struct app *a, struct err *err)
{
    SCOPED(buf_fini) struct buf authority = {0};
    if (file_read(a->local.ca_cert, AUTHORITY_MAX, &authority, err) < 0)
        return -(int)err->code;
    a->authority = buf_take(&authority, NULL);
    a->house =
        house_new(&(struct house_config){.registry = a->registry,
                                         .clock = &clock_system,
                                         .fence = fence,
                                         .ctx = a,
                                         .authority = a->authority,
                                         .api = {standalone_address(a), server_port(a->server)}});
    return 0;
}

int leading_start(struct app *a, struct err *err)
{
    if (!a->options.reconcile || !a->kube)
        return 0;
    if (a->options.standalone && make_house(a, err) < 0)
        return -(int)err->code;
    a->reconcile = make_reconciler(a);
    const struct store_leader_config config = {.holder = a->identity,
                                               .ttl_s = a->options.leader_lease_ms / 1000};
    atomic_store(&a->leader, store_leader_start(a->store, &config, &leader_ops, a));
    return 0;
}

void leading_stop(struct app *a)
{
    store_leader_stop(atomic_load(&a->leader));
    atomic_store(&a->leader, NULL);
    reconcile_free(a->reconcile);
    house_free(a->house);
    free(a->authority);
}
