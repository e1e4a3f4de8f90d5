/* The engine's events, as a stream of JSON lines. A thread of its own reads them, cuts lines and
 * calls back, and opens the stream anew when it has ended. */
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
    pthread_t thread;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    bool is_stopping;
    struct fetch_stream *stream; /* open now, or NULL */
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

/* Takes all whole lines and leaves the rest there. */
static void take_lines(struct podman_watch *w, struct buf *lines)
{
    size_t from = 0;
    const char *end;
    while (from < lines->len &&
           (end = memchr(lines->data + from, '\n', lines->len - from)) != NULL) {
        size_t len = (size_t)(end - lines->data) - from;
        take_line(w, lines->data + from, len);
        from += len + 1;
    }
    if (from == 0)
        return;
    memmove(lines->data, lines->data + from, lines->len - from + 1);
    lines->len -= from;
}

static bool is_stopping(struct podman_watch *w)
{
    pthread_mutex_lock(&w->lock);
    bool is = w->is_stopping;
    pthread_mutex_unlock(&w->lock);
    return is;
}

/* The stream that podman_watch_stop has to wake. */
static void set_stream(struct podman_watch *w, struct fetch_stream *s)
{
    pthread_mutex_lock(&w->lock);
    w->stream = s;
    pthread_mutex_unlock(&w->lock);
}

static void follow(struct podman_watch *w)
{
    SCOPED(buf_fini) struct buf lines = {.max = LINE_MAX_BYTES};
    SCOPED(err_fini) struct err err = {0};
    struct fetch_stream *s = podman_open(
        w->podman, "/events?stream=true&filters=%7B%22type%22%3A%5B%22container%22%5D%7D");
    set_stream(w, s);
    while (!is_stopping(w) && fetch_read(s, INT64_MAX, &lines, &err) != FETCH_ENDED)
        take_lines(w, &lines);
    if (!is_stopping(w))
        log_debug("the engine's events end: %s", err_text(&err));
    set_stream(w, NULL);
    fetch_close(s);
}

static void pause_before_again(struct podman_watch *w)
{
    int64_t until_ms = clock_monotonic_ms(&clock_system) + AGAIN_MS;
    pthread_mutex_lock(&w->lock);
    while (!w->is_stopping && clock_monotonic_ms(&clock_system) < until_ms)
        thread_cond_wait_until(&w->wake, &w->lock, until_ms);
    pthread_mutex_unlock(&w->lock);
}

static void *run(void *ctx)
{
    struct podman_watch *w = ctx;
    while (!is_stopping(w)) {
        follow(w);
        pause_before_again(w);
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
    if (w->stream)
        fetch_wake(w->stream);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    free(w->label);
    free(w);
}
