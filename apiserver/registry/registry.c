/* Start and end of the registry. What it does is in the files beside: cache.c tables, sync.c
 * following the store, fresh.c revisions, read.c, watch.c, commit.c with create.c, update.c and
 * delete.c. */
#include "apiserver/registry/registry.h"

#include "apiserver/base/mem.h"
#include "apiserver/base/metric.h"
#include "apiserver/base/thread.h"
#include "apiserver/registry/cache.h"

#define HISTORY_EVENTS 10000
#define HISTORY_BYTES ((size_t)16 << 20)
#define BOOKMARK_PERIOD_MS 60000

static void measure(void *registry)
{
    struct registry *r = registry;
    for (size_t i = 0; i < r->n_tables; i++)
        table_measure(&r->tables[i]);
}

struct registry *registry_new(const struct registry_config *config)
{
    struct registry *r = xcalloc(1, sizeof *r);
    r->store = config->store;
    r->admit = config->admit;
    r->on_fenced = config->on_fenced;
    r->fence_ctx = config->fence_ctx;
    r->bind = bind_new(config->bind);
    r->prefix = xstrdup(config->prefix ? config->prefix : "/registry/");
    r->history_events = config->history_events ? config->history_events : HISTORY_EVENTS;
    r->history_bytes = config->history_bytes ? config->history_bytes : HISTORY_BYTES;
    r->bookmark_period_ms =
        config->bookmark_period_ms ? config->bookmark_period_ms : BOOKMARK_PERIOD_MS;
    pthread_mutex_init(&r->mutex, NULL);
    thread_cond_init(&r->moved);
    thread_cond_init(&r->timer);
    size_t n_kinds = 0;
    while (config->kinds[n_kinds])
        n_kinds++;
    r->tables = xcalloc(n_kinds, sizeof *r->tables);
    for (size_t i = 0; i < n_kinds; i++)
        if (!config->kinds[i]->is_review)
            table_init(&r->tables[r->n_tables++], r, config->kinds[i]);
    metric_collect_on(measure, r);
    return r;
}

void registry_start(struct registry *r)
{
    r->is_started = true;
    thread_start(&r->sync_thread, "sync", sync_run, r);
    thread_start(&r->timer_thread, "watch-timer", watch_timer_run, r);
}

void registry_stop(struct registry *r)
{
    pthread_mutex_lock(&r->mutex);
    bool is_first = r->is_started && !r->is_stopping;
    r->is_stopping = true;
    pthread_cond_broadcast(&r->moved);
    wake_rev_waiters(r, INT64_MAX);
    pthread_cond_broadcast(&r->timer);
    pthread_mutex_unlock(&r->mutex);
    watches_end(r);
    if (!is_first)
        return;
    pthread_join(r->sync_thread, NULL);
    pthread_join(r->timer_thread, NULL);
}

void registry_free(struct registry *r)
{
    if (!r)
        return;
    metric_collect_off(measure, r);
    measure(r);
    for (size_t i = 0; i < r->n_tables; i++)
        table_fini(&r->tables[i]);
    free(r->tables);
    bind_free(r->bind);
    err_fini(&r->fresh.err);
    pthread_cond_destroy(&r->moved);
    pthread_cond_destroy(&r->timer);
    pthread_mutex_destroy(&r->mutex);
    free(r->prefix);
    free(r);
}

bool registry_is_synced(struct registry *r)
{
    pthread_mutex_lock(&r->mutex);
    bool is_synced = r->is_loaded && r->has_history && r->is_link_up && !r->is_lost;
    pthread_mutex_unlock(&r->mutex);
    return is_synced;
}
