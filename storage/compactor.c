#include "storage/compactor.h"

#include <inttypes.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/thread.h"

#define PERIOD_MS (INT64_C(5) * 60000)
#define CALL_MS 10000

struct store_compactor {
    struct store *store;
    int64_t period_ms;
    pthread_t thread;
    pthread_mutex_t lock; /* guards is_stopping */
    pthread_cond_t stop;
    bool is_stopping;
};

/* False when it is time to end. */
static bool wait_period(struct store_compactor *c)
{
    int64_t until_ms = clock_monotonic_ms(&clock_system) + c->period_ms;
    pthread_mutex_lock(&c->lock);
    while (!c->is_stopping && clock_monotonic_ms(&clock_system) < until_ms)
        thread_cond_wait_until(&c->stop, &c->lock, until_ms);
    bool goes_on = !c->is_stopping;
    pthread_mutex_unlock(&c->lock);
    return goes_on;
}

static void compact(struct store_compactor *c, int64_t rev)
{
    SCOPED(err_fini) struct err err = {0};
    int rc = store_compact(c->store, rev, clock_monotonic_ms(&clock_system) + CALL_MS, &err);
    if (rc < 0 && rc != -ERR_EXPIRED) /* expired: another replica was first */
        log_warn("compaction failed rev=%" PRId64 ", trying again in a period: %s", rev,
                 err_text(&err));
}

static void *run(void *arg)
{
    struct store_compactor *c = arg;
    int64_t before = 0;
    do {
        int64_t now = 0;
        int64_t deadline_ms = clock_monotonic_ms(&clock_system) + CALL_MS;
        if (store_revision(c->store, deadline_ms, &now, NULL) < 0)
            continue; /* what was noted stays good */
        if (before > 0)
            compact(c, before);
        before = now;
    } while (wait_period(c));
    return NULL;
}

struct store_compactor *store_compactor_start(struct store *store, int64_t period_ms)
{
    struct store_compactor *c = xcalloc(1, sizeof *c);
    c->store = store;
    c->period_ms = period_ms > 0 ? period_ms : PERIOD_MS;
    pthread_mutex_init(&c->lock, NULL);
    thread_cond_init(&c->stop);
    thread_start(&c->thread, "compactor", run, c);
    return c;
}

void store_compactor_stop(struct store_compactor *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->is_stopping = true;
    pthread_cond_signal(&c->stop);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
    pthread_cond_destroy(&c->stop);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
