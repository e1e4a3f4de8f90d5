/* The engine's events, as a stream of JSON lines. A thread of its own opens the stream anew when it
 * has ended; the fetch thread cuts lines and calls back. */
#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/thread.h"
#include "node/podman_conn.h"

#define LINE_MAX_BYTES ((size_t)1 << 20)
#define AGAIN_MS 1000

struct podman_watch {
    struct podman *podman; /* borrowed */
    char *label;
    void (*on_change)(void *ctx, const char *value);
    void *ctx;
    struct buf lines; /* of the fetch thread */
    pthread_t thread;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    bool has_ended, is_stopping;
};

/* A container that ends is seen as running still when its death is told, and surely as ended when
 * the engine has cleaned up after it. */
static const char *const events[] = {"start", "died", "cleanup", "remove"};

static void take_line(struct podman_watch *w, const char *line, size_t n)
{
    SCOPED(json_free_p) cJSON *event = NULL;
    if (n == 0 || json_parse(line, n, NULL, &event, NULL) < 0)
        return;
    const char *action = json_str_or(event, "Action", "");
    const cJSON *value = json_get(json_at(event, "Actor.Attributes"), w->label);
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        if (strcmp(action, events[i]) == 0 && cJSON_IsString(value))
            w->on_change(w->ctx, value->valuestring);
    }
}

static bool on_data(void *ctx, const char *p, size_t n)
{
    struct podman_watch *w = ctx;
    w->lines.max = LINE_MAX_BYTES;
    buf_append(&w->lines, p, n);
    if (buf_failed(&w->lines))
        return false;
    size_t from = 0;
    const char *end;
    while ((end = memchr(w->lines.data + from, '\n', w->lines.len - from)) != NULL) {
        size_t len = (size_t)(end - w->lines.data) - from;
        take_line(w, w->lines.data + from, len);
        from += len + 1;
    }
    memmove(w->lines.data, w->lines.data + from, w->lines.len - from + 1);
    w->lines.len -= from;
    return true;
}

static void on_end(void *ctx, const struct err *err)
{
    struct podman_watch *w = ctx;
    pthread_mutex_lock(&w->lock);
    if (!w->is_stopping)
        log_debug("the engine's events end: %s", err_text(err));
    w->has_ended = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
}

static const struct fetch_stream_ops stream_ops = {.on_data = on_data, .on_end = on_end};

/* Until the stream ends, or for so many ms; false when stopping. */
static bool wait_for(struct podman_watch *w, int64_t until_ms)
{
    pthread_mutex_lock(&w->lock);
    while (!w->is_stopping && !w->has_ended && clock_monotonic_ms(&clock_system) < until_ms)
        thread_cond_wait_until(&w->wake, &w->lock, until_ms);
    bool goes_on = !w->is_stopping;
    w->has_ended = false;
    pthread_mutex_unlock(&w->lock);
    return goes_on;
}

static void *run(void *ctx)
{
    struct podman_watch *w = ctx;
    bool goes_on = true;
    while (goes_on) {
        buf_fini(&w->lines);
        struct fetch_stream *s = podman_open(
            w->podman, "/events?stream=true&filters=%7B%22type%22%3A%5B%22container%22%5D%7D",
            &stream_ops, w);
        goes_on = wait_for(w, INT64_MAX);
        fetch_close(s);
        goes_on = goes_on && wait_for(w, clock_monotonic_ms(&clock_system) + AGAIN_MS);
    }
    return NULL;
}

struct podman_watch *podman_watch_start(struct podman *p, const char *label,
                                        void (*on_change)(void *ctx, const char *value), void *ctx)
{
    struct podman_watch *w = xcalloc(1, sizeof *w);
    w->podman = p;
    w->label = xstrdup(label);
    w->on_change = on_change;
    w->ctx = ctx;
    pthread_mutex_init(&w->lock, NULL);
    thread_cond_init(&w->wake);
    thread_start(&w->thread, "podman-events", run, w);
    return w;
}

void podman_watch_stop(struct podman_watch *w)
{
    if (!w)
        return;
    pthread_mutex_lock(&w->lock);
    w->is_stopping = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    buf_fini(&w->lines);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    free(w->label);
    free(w);
}
