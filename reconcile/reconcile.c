#include "reconcile/reconcile.h"

#include <stdlib.h>

#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/thread.h"
#include "openapi/kinds.h"
#include "reconcile/cluster_kube.h"

#define SANDBOX_WORKERS 20
#define RESYNC_MS                                                                                  \
    (10 * 3600 * INT64_C(1000)) /* every object again; controller-runtime's default                \
                                 */
#define REOPEN_MS 1000          /* before a lost watch is opened again */
#define SYNC_POLL_MS 100

struct reconcile {
    struct reconcile_config config;
    struct cluster *cluster;
    struct sandbox_reconciler *sandboxes;
    struct loop *sandbox_loop;
    pthread_mutex_t lock; /* guards has_news and is_stopping */
    pthread_cond_t woken;
    bool has_news, is_stopping;
    bool is_running; /* of whoever starts and stops */
    pthread_t feeder;
};

struct reconcile *reconcile_new(const struct reconcile_config *config)
{
    struct reconcile *r = xcalloc(1, sizeof *r);
    r->config = *config;
    pthread_mutex_init(&r->lock, NULL);
    thread_cond_init(&r->woken);
    return r;
}

void reconcile_free(struct reconcile *r)
{
    if (!r)
        return;
    reconcile_stop(r);
    pthread_cond_destroy(&r->woken);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

/* ---- feeding the queue from the registry ---- */

static void wake(void *ctx)
{
    struct reconcile *r = ctx;
    pthread_mutex_lock(&r->lock);
    r->has_news = true;
    pthread_cond_signal(&r->woken);
    pthread_mutex_unlock(&r->lock);
}

/* Until there is news, the time is over (-1 = none), or the end. False at the end. */
static bool wait_news(struct reconcile *r, int64_t timeout_ms)
{
    int64_t until_ms = timeout_ms < 0 ? INT64_MAX : clock_monotonic_ms(&clock_system) + timeout_ms;
    pthread_mutex_lock(&r->lock);
    while (!r->has_news && !r->is_stopping && clock_monotonic_ms(&clock_system) < until_ms)
        thread_cond_wait_until(&r->woken, &r->lock, until_ms);
    r->has_news = false;
    bool goes_on = !r->is_stopping;
    pthread_mutex_unlock(&r->lock);
    return goes_on;
}

static void enqueue(struct reconcile *r, const struct object *o)
{
    SCOPED_FREE char *key = xasprintf("%s/%s", o->namespace_name, o->name);
    loop_add(r->sandbox_loop, key);
}

/* 0 = nothing more now, -1 = the watch is over. */
static int drain(struct reconcile *r, struct watch *w)
{
    for (;;) {
        SCOPED(watch_event_fini) struct watch_event e = {0};
        int rc = watch_next(w, &e);
        if (rc <= 0)
            return rc;
        if (e.type == WATCH_ERROR)
            return -1;
        if (e.object)
            enqueue(r, e.object);
    }
}

/* One watch from its opening to its end. */
static void follow(struct reconcile *r)
{
    struct watch *w;
    SCOPED(err_fini) struct err err = {0};
    struct watch_request request = {
        .kind = &kind_sandbox,
        .send_initial = true,
        .version = {.match = READ_ANY},
        .timeout_ms = RESYNC_MS,
        .deadline_ms = clock_monotonic_ms(r->config.clock) + REOPEN_MS,
    };
    if (registry_watch(r->config.registry, &request, wake, r, &w, &err) < 0) {
        log_debug("sandboxes cannot be watched yet: %s", err_text(&err));
        wait_news(r, REOPEN_MS);
        return;
    }
    while (drain(r, w) == 0 && wait_news(r, -1))
        ;
    watch_close(w);
}

static bool is_ending(struct reconcile *r)
{
    pthread_mutex_lock(&r->lock);
    bool ending = r->is_stopping;
    pthread_mutex_unlock(&r->lock);
    return ending;
}

/* Passes begin only when the cluster's caches are there: an empty cache would look like a cluster
 * without Pods. */
static void *feed(void *arg)
{
    struct reconcile *r = arg;
    while (!is_ending(r) && !cluster_kube_is_synced(r->cluster))
        wait_news(r, SYNC_POLL_MS);
    if (!is_ending(r))
        loop_start(r->sandbox_loop);
    while (!is_ending(r))
        follow(r);
    return NULL;
}

static void on_child(void *ctx, const char *namespace_name, const char *sandbox_name)
{
    struct reconcile *r = ctx;
    SCOPED_FREE char *key = xasprintf("%s/%s", namespace_name, sandbox_name);
    loop_add(r->sandbox_loop, key);
}

static int work_sandbox(void *ctx, const char *key, struct loop_result *ret)
{
    const struct reconcile *r = ctx;
    return sandbox_pass(r->sandboxes, key, ret);
}

void reconcile_start(struct reconcile *r)
{
    const struct reconcile_config *c = &r->config;
    if (r->is_running)
        return;
    r->is_running = true;
    r->is_stopping = false;
    r->has_news = false;
    /* The cluster feeds the queue from its first moment; workers begin later, in feed(). */
    r->sandbox_loop = loop_new(&(struct loop_config){
        .name = "sandbox",
        .workers = c->sandbox_workers ? c->sandbox_workers : SANDBOX_WORKERS,
        .clock = c->clock,
        .work = work_sandbox,
        .ctx = r,
    });
    r->cluster = cluster_kube_new(
        &(struct cluster_kube_config){.kube = c->kube, .on_child = on_child, .ctx = r});
    r->sandboxes = sandbox_reconciler_new(&(struct sandbox_reconciler_config){
        .env = {.registry = c->registry,
                .cluster = r->cluster,
                .clock = c->clock,
                .randomness = c->randomness,
                .fence = c->fence,
                .ctx = c->ctx},
        .cluster_domain = c->cluster_domain,
        .no_events = c->no_sandbox_events,
    });
    thread_start(&r->feeder, "reconcile-feed", feed, r);
    log_info("reconciler started");
}

void reconcile_stop(struct reconcile *r)
{
    if (!r->is_running)
        return;
    pthread_mutex_lock(&r->lock);
    r->is_stopping = true;
    pthread_cond_signal(&r->woken);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->feeder, NULL);
    loop_stop(r->sandbox_loop);
    r->cluster->v->free(r->cluster);
    sandbox_reconciler_free(r->sandboxes);
    loop_free(r->sandbox_loop);
    r->is_running = false;
    log_info("reconciler stopped");
}
