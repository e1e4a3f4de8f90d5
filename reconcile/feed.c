#include "reconcile/feed.h"

#include <stdlib.h>

#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/thread.h"
#include "openapi/kinds.h"

/* Every object comes again after so long. Source: controller-runtime's default. */
#define RESYNC_MS (10 * 3600 * INT64_C(1000))
#define REOPEN_MS 1000 /* before a lost watch is opened again */
#define READY_POLL_MS 100

struct source {
    const struct kind *kind;
    struct watch *watch; /* NULL = closed */
    bool was_open;
};

struct feed {
    struct feed_config config;
    struct source sources[KINDS_MAX + 1]; /* of the thread */
    pthread_mutex_t lock;                 /* guards the two below */
    pthread_cond_t woken;
    bool has_news, is_stopping;
    pthread_t thread;
};

static void wake(void *ctx)
{
    struct feed *f = ctx;
    pthread_mutex_lock(&f->lock);
    f->has_news = true;
    pthread_cond_signal(&f->woken);
    pthread_mutex_unlock(&f->lock);
}

/* Until there is news, the time is over (-1 = none), or the end. False at the end. */
static bool wait_news(struct feed *f, int64_t timeout_ms)
{
    int64_t until = timeout_ms < 0 ? INT64_MAX : clock_monotonic_ms(&clock_system) + timeout_ms;
    pthread_mutex_lock(&f->lock);
    while (!f->has_news && !f->is_stopping && clock_monotonic_ms(&clock_system) < until)
        thread_cond_wait_until(&f->woken, &f->lock, until);
    f->has_news = false;
    bool goes_on = !f->is_stopping;
    pthread_mutex_unlock(&f->lock);
    return goes_on;
}

static bool open_source(struct feed *f, struct source *s)
{
    SCOPED(err_fini) struct err err = {0};
    if (s->was_open)
        f->config.on_gap(f->config.ctx, s->kind);
    struct watch_request request = {
        .kind = s->kind,
        .send_initial = true,
        .is_prompt = true,
        .version = {.match = READ_ANY},
        .timeout_ms = RESYNC_MS,
        .deadline_ms = clock_monotonic_ms(f->config.clock) + REOPEN_MS,
    };
    if (registry_watch(f->config.registry, &request, wake, f, &s->watch, &err) < 0) {
        log_debug("%s cannot be watched yet: %s", s->kind->plural, err_text(&err));
        s->watch = NULL;
        return false;
    }
    s->was_open = true;
    return true;
}

/* 0 = nothing more now, -1 = the watch is over. */
static int drain(struct feed *f, struct source *s)
{
    for (;;) {
        SCOPED(watch_event_fini) struct watch_event e = {0};
        int rc = watch_next(s->watch, &e);
        if (rc <= 0)
            return rc;
        if (e.type == WATCH_ERROR)
            return -1;
        if (e.object)
            f->config.on_object(f->config.ctx, e.object, e.type == WATCH_DELETED);
    }
}

/* Tells what is new of every kind. False: a watch could not be opened, or ended. */
static bool look(struct feed *f)
{
    bool all_open = true;
    for (struct source *s = f->sources; s->kind; s++) {
        if (!s->watch && !open_source(f, s)) {
            all_open = false;
        } else if (drain(f, s) < 0) {
            watch_close(s->watch);
            s->watch = NULL;
            all_open = false;
        }
    }
    return all_open;
}

static void *run(void *arg)
{
    struct feed *f = arg;
    bool goes_on = true;
    while (goes_on && f->config.is_ready && !f->config.is_ready(f->config.ctx))
        goes_on = wait_news(f, READY_POLL_MS);
    if (goes_on)
        f->config.on_begin(f->config.ctx);
    while (goes_on)
        goes_on = wait_news(f, look(f) ? -1 : REOPEN_MS);
    for (struct source *s = f->sources; s->kind; s++) {
        if (s->watch)
            watch_close(s->watch);
    }
    return NULL;
}

struct feed *feed_start(const struct feed_config *config)
{
    struct feed *f = xcalloc(1, sizeof *f);
    f->config = *config;
    for (size_t i = 0, n = 0; config->kinds[i]; i++)
        if (!config->kinds[i]->is_review)
            f->sources[n++].kind = config->kinds[i];
    pthread_mutex_init(&f->lock, NULL);
    thread_cond_init(&f->woken);
    thread_start(&f->thread, "reconcile-feed", run, f);
    return f;
}

void feed_stop(struct feed *f)
{
    pthread_mutex_lock(&f->lock);
    f->is_stopping = true;
    pthread_cond_signal(&f->woken);
    pthread_mutex_unlock(&f->lock);
    pthread_join(f->thread, NULL);
    pthread_cond_destroy(&f->woken);
    pthread_mutex_destroy(&f->lock);
    free(f);
}
