/* The thread of a watch goes round in sessions: look where the store stands, open the stream, take
 * documents until it breaks, wait a little.
 *
 * Before each stream a linearizable read at the revision before the first one wanted settles two
 * things that the stream does not tell: etcd 3.4 accepts a watch from exactly the compacted
 * revision although a deletion in it is gone already, and a store that was set back to an older
 * state makes a watch wait for revisions that will be given out a second time. */
#include "storage/etcd_watch.h"

#include <inttypes.h>
#include <pthread.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/rand.h"
#include "apiserver/base/thread.h"
#include "storage/etcd_msg.h"

const struct etcd_watch_limits etcd_watch_defaults = {
    .idle_ms = 30000,
    .lag_ms = 5000,
    .probe_ms = 3000,
    .backoff_min_ms = 100,
    .backoff_max_ms = 5000,
    .document_max = (size_t)128 << 20,
};

#define PROBES_FAILED_MAX 2

struct store_watch {
    struct etcd_conn *conn;
    char *prefix;
    const struct store_watch_ops *ops;
    void *ctx;
    const struct etcd_watch_limits *limits;
    pthread_t thread;

    pthread_mutex_t lock; /* guards what follows, up to the next blank line */
    pthread_cond_t woken;
    bool is_stopped;
    struct fetch_stream *stream; /* open now, or NULL */

    /* Of the watch's thread. */
    int64_t next_rev; /* the first one not delivered; 0 = not known yet: from now */
    bool is_resuming; /* next_rev - 1 was seen to exist */
    bool is_link_up;
    bool is_created;        /* etcd has confirmed the present stream */
    bool is_asking_history; /* the present stream is only opened to be told where history begins */
    int64_t backoff_ms;
    struct store_event *held; /* of a revision of which more may come */
    size_t n_held;
};

/* How a session, or a step of one, went. */
enum outcome {
    GOES_ON,
    BROKEN, /* to be resumed */
    LOST,   /* reported; nothing more to do */
};

static int64_t now_ms(void)
{
    return clock_monotonic_ms(&clock_system);
}

static bool is_stopped(struct store_watch *w)
{
    pthread_mutex_lock(&w->lock);
    bool is = w->is_stopped;
    pthread_mutex_unlock(&w->lock);
    return is;
}

/* ---- what is reported ---- */

static enum outcome report_lost(struct store_watch *w, const struct err *err, int64_t compact_rev)
{
    w->ops->on_lost(w->ctx, err, compact_rev);
    return LOST;
}

static enum outcome report_expired(struct store_watch *w, const char *why, int64_t compact_rev)
{
    SCOPED(err_fini) struct err err = {0};
    err_set(&err, ERR_EXPIRED, "watch from revision %" PRId64 ": %s", w->next_rev, why);
    return report_lost(w, &err, compact_rev);
}

static void report_link(struct store_watch *w, bool is_up)
{
    if (w->is_link_up == is_up)
        return;
    w->is_link_up = is_up;
    if (w->ops->on_link != NULL)
        w->ops->on_link(w->ctx, is_up);
}

static void events_fini(struct store_event *events, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        store_kv_fini(&events[i].kv);
        store_kv_fini(&events[i].prev);
    }
}

static void drop_held(struct store_watch *w)
{
    events_fini(w->held, w->n_held);
    free(w->held);
    w->held = NULL;
    w->n_held = 0;
}

/* Everything up to rev is complete: hand it out. */
static void deliver(struct store_watch *w, int64_t rev)
{
    size_t n = 0;
    while (n < w->n_held && w->held[n].kv.mod_rev <= rev)
        n++;
    w->next_rev = rev + 1;
    w->is_resuming = true;
    w->ops->on_events(w->ctx, w->held, n, rev);
    events_fini(w->held, n);
    w->n_held -= n;
    if (w->n_held > 0)
        memmove(w->held, w->held + n, w->n_held * sizeof *w->held);
    else
        drop_held(w);
}

/* Moves the events of m to the end of those held. */
static void hold(struct store_watch *w, struct etcd_watch_msg *m)
{
    if (w->n_held == 0) {
        free(w->held);
        w->held = m->events;
    } else {
        w->held = xreallocarray(w->held, w->n_held + m->n_events, sizeof *w->held);
        memcpy(w->held + w->n_held, m->events, m->n_events * sizeof *w->held);
        free(m->events);
    }
    w->n_held += m->n_events;
    m->events = NULL;
    m->n_events = 0;
}

/* ---- documents ---- */

static enum outcome take_created(struct store_watch *w, const struct etcd_watch_msg *m)
{
    w->is_created = true;
    if (w->is_asking_history)
        return GOES_ON;
    w->backoff_ms = 0;
    report_link(w, true);
    if (w->next_rev == 0)
        deliver(w, m->rev); /* etcd starts after the revision it tells */
    return GOES_ON;
}

static enum outcome take_canceled(struct store_watch *w, const struct etcd_watch_msg *m)
{
    if (m->compact_rev > 0)
        return report_expired(w, "required revision has been compacted", m->compact_rev);
    log_debug("etcd cancelled a watch rev=%" PRId64 " reason=\"%s\"", w->next_rev,
              m->cancel_reason == NULL ? "" : m->cancel_reason);
    return BROKEN;
}

static enum outcome take_events(struct store_watch *w, struct etcd_watch_msg *m)
{
    if (w->is_asking_history)
        return report_expired(w, "required revision has been compacted", 0);
    int64_t complete_rev = m->is_fragment ? m->last_rev - 1 : m->last_rev;
    if (m->n_events > 0)
        hold(w, m);
    if (complete_rev >= w->next_rev)
        deliver(w, complete_rev);
    return GOES_ON;
}

static enum outcome take_document(struct store_watch *w, const char *p, size_t n)
{
    SCOPED(etcd_watch_msg_fini) struct etcd_watch_msg m = {0};
    SCOPED(err_fini) struct err err = {0};
    if (etcd_msg_read_watch(p, n, w->prefix, &m, &err) < 0) {
        log_debug("watch broken rev=%" PRId64 " error=\"%s\"", w->next_rev, err_text(&err));
        return BROKEN;
    }
    if (m.is_canceled)
        return take_canceled(w, &m);
    if (m.is_created)
        return take_created(w, &m);
    return m.last_rev > 0 ? take_events(w, &m) : GOES_ON;
}

/* Takes all complete documents of data, leaves the rest there. */
static enum outcome take_documents(struct store_watch *w, struct etcd_split *split,
                                   struct buf *data, size_t *scanned)
{
    size_t start = 0, n;
    enum outcome outcome = GOES_ON;
    while (outcome == GOES_ON &&
           (n = etcd_split_next(split, data->data + *scanned, data->len - *scanned)) > 0) {
        size_t end = *scanned + n;
        outcome = is_stopped(w) ? BROKEN : take_document(w, data->data + start, end - start);
        *scanned = start = end;
    }
    if (start > 0)
        memmove(data->data, data->data + start, data->len - start);
    data->len -= start;
    *scanned = data->len;
    return outcome;
}

/* ---- is the stream still alive? ---- */

struct liveness {
    int64_t next_look_ms;
    int64_t suspect_rev; /* etcd was there at the last look; 0 = no suspicion */
    unsigned n_failed;   /* looks in a row */
};

/* A linearizable read at rev (0 = newest) that tells the store's newest revision. */
static int read_newest(struct store_watch *w, int64_t rev, int64_t *ret_newest, struct err *err)
{
    SCOPED(buf_fini) struct buf body = {0};
    SCOPED(fetch_response_fini) struct fetch_response res = {0};
    SCOPED(store_page_fini) struct store_page page = {0};
    etcd_msg_range(&body,
                   &(struct etcd_range){.from = "/", .limit = 1, .rev = rev, .keys_only = true});
    int r = etcd_conn_call(w->conn, ETCD_READ, "/v3/kv/range", &body,
                           now_ms() + w->limits->probe_ms, &res, err);
    if (r == 0)
        r = etcd_msg_read_range(buf_cstr(&res.body), res.body.len, 0, &page, err);
    if (r == 0)
        *ret_newest = page.rev;
    return r;
}

static void live_reset(struct store_watch *w, struct liveness *l)
{
    *l = (struct liveness){.next_look_ms = now_ms() + w->limits->idle_ms};
}

/* Nothing came for a while. A dead connection may look idle for a long time, so compare with the
 * store. */
static enum outcome look(struct store_watch *w, struct liveness *l)
{
    if (!w->is_created || l->suspect_rev >= w->next_rev) {
        log_debug("watch behind rev=%" PRId64 " store=%" PRId64 ", cutting", w->next_rev - 1,
                  l->suspect_rev);
        return BROKEN;
    }
    l->suspect_rev = 0;
    l->next_look_ms = now_ms() + w->limits->idle_ms;
    int64_t newest = 0;
    if (read_newest(w, 0, &newest, NULL) < 0)
        return ++l->n_failed >= PROBES_FAILED_MAX ? BROKEN : GOES_ON;
    l->n_failed = 0;
    if (newest >= w->next_rev) {
        l->suspect_rev = newest;
        l->next_look_ms = now_ms() + w->limits->lag_ms;
    }
    return GOES_ON;
}

/* ---- sessions ---- */

static void stream_use(struct store_watch *w, struct fetch_stream *s)
{
    drop_held(w);
    w->is_created = false;
    pthread_mutex_lock(&w->lock);
    w->stream = s;
    pthread_mutex_unlock(&w->lock);
}

static void stream_close(struct store_watch *w)
{
    pthread_mutex_lock(&w->lock);
    struct fetch_stream *s = w->stream;
    w->stream = NULL;
    pthread_mutex_unlock(&w->lock);
    fetch_close(s);
}

static enum outcome pump(struct store_watch *w, struct fetch_stream *s, struct err *ret_why)
{
    SCOPED(buf_fini) struct buf data = {.max = w->limits->document_max};
    struct etcd_split split = {0};
    struct liveness live;
    size_t scanned = 0;
    live_reset(w, &live);
    for (;;) {
        enum fetch_news news = fetch_read(s, live.next_look_ms, &data, ret_why);
        if (is_stopped(w))
            return BROKEN;
        if (news == FETCH_ENDED)
            return ret_why->code == ERR_CANCELLED ? LOST : BROKEN;
        enum outcome outcome = GOES_ON;
        if (news == FETCH_SOME) {
            live_reset(w, &live);
            outcome = take_documents(w, &split, &data, &scanned);
        } else if (now_ms() >= live.next_look_ms) {
            outcome = look(w, &live);
        }
        if (outcome != GOES_ON)
            return outcome;
    }
}

static enum outcome stream(struct store_watch *w, int64_t start_rev)
{
    SCOPED(buf_fini) struct buf body = {0};
    SCOPED(err_fini) struct err why = {0};
    size_t endpoint;
    etcd_msg_watch(&body, start_rev);
    struct fetch_stream *s = etcd_conn_open(w->conn, "/v3/watch", &body, &endpoint);
    stream_use(w, s);
    enum outcome outcome = pump(w, s, &why);
    stream_close(w);
    if (outcome == LOST && why.code != ERR_NONE)
        report_lost(w, &why, 0);
    if (outcome == BROKEN)
        etcd_conn_failed(w->conn, endpoint);
    return outcome;
}

/* Is the revision before the first one wanted there, not yet there (*ret_is_future), or compacted
 * (-ERR_EXPIRED)? */
static int look_at_start(struct store_watch *w, bool *ret_is_future, struct err *err)
{
    int64_t newest = 0;
    int r = 0;
    /* A future revision may come to be between the two reads; a second round tells it from a
     * compacted one. */
    for (int round = 0; round < 2; round++) {
        r = read_newest(w, w->next_rev - 1, &newest, err);
        if (r != -ERR_EXPIRED)
            return r;
        int r2 = read_newest(w, 0, &newest, err);
        if (r2 < 0)
            return r2;
        if (newest < w->next_rev - 1) {
            *ret_is_future = true;
            return 0;
        }
    }
    return r;
}

/* See the head of this file. */
static enum outcome look_before(struct store_watch *w)
{
    SCOPED(err_fini) struct err err = {0};
    bool is_future = false;
    int r = w->next_rev <= 1 ? 0 : look_at_start(w, &is_future, &err);
    w->is_asking_history = r == -ERR_EXPIRED;
    if (r == -ERR_CANCELLED)
        return report_lost(w, &err, 0);
    if (r < 0 && !w->is_asking_history)
        return BROKEN;
    if (is_future && w->is_resuming)
        return report_expired(w, "the store was set back to an older revision", 0);
    return GOES_ON;
}

static enum outcome session(struct store_watch *w)
{
    enum outcome outcome = look_before(w);
    if (outcome != GOES_ON)
        return outcome;
    /* A watch from the beginning is refused and told where history begins. */
    return stream(w, w->is_asking_history ? 1 : w->next_rev);
}

/* Waits before the next session: doubling, and up to a half of it less, so that servers do not come
 * back in step. */
static void back_off(struct store_watch *w)
{
    const struct etcd_watch_limits *l = w->limits;
    w->backoff_ms = w->backoff_ms == 0 ? l->backoff_min_ms : w->backoff_ms * 2;
    if (w->backoff_ms > l->backoff_max_ms)
        w->backoff_ms = l->backoff_max_ms;
    int64_t half_ms = w->backoff_ms / 2;
    int64_t until_ms =
        now_ms() + half_ms + (int64_t)rand_below(&rand_system, (uint64_t)half_ms + 1);
    pthread_mutex_lock(&w->lock);
    while (!w->is_stopped && now_ms() < until_ms)
        thread_cond_wait_until(&w->woken, &w->lock, until_ms);
    pthread_mutex_unlock(&w->lock);
}

static void *watch_main(void *arg)
{
    struct store_watch *w = arg;
    while (!is_stopped(w) && session(w) == BROKEN && !is_stopped(w)) {
        report_link(w, false);
        back_off(w);
    }
    return NULL;
}

struct store_watch *etcd_watch_new(struct etcd_conn *conn, const char *prefix, int64_t start_rev,
                                   const struct store_watch_ops *ops, void *ctx,
                                   const struct etcd_watch_limits *limits)
{
    struct store_watch *w = xcalloc(1, sizeof *w);
    w->conn = conn;
    w->prefix = xstrdup(prefix);
    w->ops = ops;
    w->ctx = ctx;
    w->limits = limits;
    w->is_link_up = true;
    w->next_rev = start_rev == 1 ? 2 : start_rev; /* revision 1 is the empty store */
    pthread_mutex_init(&w->lock, NULL);
    thread_cond_init(&w->woken);
    thread_start(&w->thread, "etcd watch", watch_main, w);
    return w;
}

void etcd_watch_free(struct store_watch *w)
{
    pthread_mutex_lock(&w->lock);
    w->is_stopped = true;
    pthread_cond_signal(&w->woken);
    if (w->stream)
        fetch_wake(w->stream);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    drop_held(w);
    pthread_cond_destroy(&w->woken);
    pthread_mutex_destroy(&w->lock);
    free(w->prefix);
    free(w);
}
