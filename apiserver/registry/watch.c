/* Watches. A watch is a cursor into its table's ring plus a filter; nothing is copied for it and no
 * queue grows. The store's watch thread moves cursors over what a caught-up watch does not want,
 * and wakes it for what it wants; watch_next reads on under the table's lock for reading. A watch
 * whose cursor falls out of the ring is cut off. One timer thread per registry moves waves and
 * brings bookmarks and time-outs. */
#include <inttypes.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/thread.h"
#include "apiserver/registry/cache.h"

#define BOOKMARK_BEFORE_END_MS 2000
#define TIMER_STEP_MS 50 /* bookmarks and time-outs due within that are done together */
/* Telling a watch costs some microseconds however much there is to tell. So where many watch, each
 * is told at most once in a millisecond per so many of them: the first change after a pause goes to
 * all at once; those that follow soon go out together, in a wave that tells so many watches in each
 * millisecond and goes round as long as there are changes. Not all in one go, for then everything
 * else, their clients above all, would wait for the last of them each time. */
#define WATCHES_PER_MS 50
#define WAVE_STEP_MS 4

struct watch {
    unsigned refs; /* atomic: the table's list, and a wake that is on its way */
    struct table *table;
    struct watch *next, *prev; /* of the table's list */
    char *namespace_name;      /* NULL = all */
    struct selector *selector; /* NULL = everything */
    bool wants_bookmarks, is_prompt;
    void (*wake)(void *ctx);
    void *ctx;

    pthread_mutex_t wake_mutex; /* held while wake runs; guards is_closed */
    bool is_closed;

    /* By the table's lock: watch_next holds it for reading and is called by one thread at a time,
     * others hold it for writing. */
    uint64_t next_seq;
    int64_t min_rev;         /* changes up to it are not for this watch */
    int64_t sent_rev;        /* newest revision that was sent */
    struct object **initial; /* what is still to be sent first; references */
    size_t initial_n, initial_next;
    bool is_end_marker_due, is_bookmark_due, is_over;
    bool is_awake;    /* watch_next has not said "nothing now" since the last wake */
    struct err error; /* sent as last event when its code is set */
    int64_t bookmark_at_ms, end_at_ms; /* INT64_MAX = never */
    bool has_last_bookmark;            /* the one before the end was sent */
};

static int64_t now_ms(void)
{
    return clock_monotonic_ms(&clock_system);
}

static void watch_unref(struct watch *w)
{
    if (__atomic_sub_fetch(&w->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (size_t i = w->initial_next; i < w->initial_n; i++)
        object_unref(w->initial[i]);
    free(w->initial);
    free(w->namespace_name);
    selector_free(w->selector);
    err_fini(&w->error);
    pthread_mutex_destroy(&w->wake_mutex);
    free_counted(w);
}

/* ---- waking ---- */

static void wake_list_force(struct wake_list *wake, struct watch *w)
{
    w->is_awake = true;
    if (wake->n == wake->cap) {
        wake->cap = wake->cap ? 2 * wake->cap : 16;
        wake->v = xreallocarray(wake->v, wake->cap, sizeof(struct watch *));
    }
    __atomic_fetch_add(&w->refs, 1, __ATOMIC_RELAXED);
    wake->v[wake->n++] = w;
}

/* Once until watch_next says "nothing now": a busy or stalled reader is not told again and again.
 */
static void wake_list_add(struct wake_list *wake, struct watch *w)
{
    if (!w->is_awake)
        wake_list_force(wake, w);
}

/* The end is told even to a reader who does not come for events. */
static void watch_end(struct watch *w, struct wake_list *wake)
{
    if (w->is_over)
        return;
    w->is_over = true;
    wake_list_force(wake, w);
}

/* Has the timer thread look at that time, if it would not have looked before; false when the
 * registry stops. */
static bool timer_by(struct registry *r, enum watch_timer timer, int64_t at_ms)
{
    pthread_mutex_lock(&r->mutex);
    if (at_ms < r->timer_at_ms[timer]) {
        r->timer_at_ms[timer] = at_ms;
        pthread_cond_signal(&r->timer);
    }
    bool is_stopping = r->is_stopping;
    pthread_mutex_unlock(&r->mutex);
    return !is_stopping;
}

void wake_list_run(struct registry *r, struct wake_list *wake)
{
    if (wake->has_wave)
        timer_by(r, WATCH_WAVES, now_ms() + WAVE_STEP_MS);
    for (size_t i = 0; i < wake->n; i++) {
        struct watch *w = wake->v[i];
        pthread_mutex_lock(&w->wake_mutex);
        if (!w->is_closed && w->wake)
            w->wake(w->ctx);
        pthread_mutex_unlock(&w->wake_mutex);
        watch_unref(w);
    }
    free(wake->v);
    *wake = (struct wake_list){0};
}

/* ---- filtering ---- */

static bool is_in_namespace(const struct watch *w, const struct object *o)
{
    return !w->namespace_name || strcmp(w->namespace_name, o->namespace_name) == 0;
}

/* What the change is to this watch; false = nothing. Source: docs/kubernetes-api.md 24.6. */
static bool watch_judge(const struct watch *w, const struct change *c, enum watch_type *ret)
{
    if (c->rev <= w->min_rev || !is_in_namespace(w, c->now))
        return false;
    bool had = c->before && selector_matches(w->selector, c->before);
    bool has = !c->is_delete && selector_matches(w->selector, c->now);
    *ret = had ? (has ? WATCH_MODIFIED : WATCH_DELETED) : WATCH_ADDED;
    return had || has;
}

/* Moves the cursor to the next change that is wanted; false when there is none. */
static bool watch_is_behind(struct watch *w, enum watch_type *ret_type)
{
    const struct table *t = w->table;
    for (; w->next_seq < t->first_seq + t->ring_n; w->next_seq++)
        if (watch_judge(w, table_change(t, w->next_seq), ret_type))
            return true;
    return false;
}

/* Who fell out of the ring is too slow: it resumes from its last revision. */
static void tell(struct watch *w, struct wake_list *wake)
{
    enum watch_type type;
    if (w->next_seq < w->table->first_seq)
        watch_end(w, wake);
    else if (!w->is_awake && watch_is_behind(w, &type))
        wake_list_force(wake, w);
}

/* Everybody, or only those who must not wait. */
static void tell_all(struct table *t, bool is_prompt_only, struct wake_list *wake)
{
    for (struct watch *w = t->watches; w && (w->is_prompt || !is_prompt_only); w = w->next)
        tell(w, wake);
}

/* After everybody was told, for how long that has to do. */
static int64_t rest_ms(const struct table *t)
{
    return (int64_t)(t->n_watches / WATCHES_PER_MS);
}

void watches_note(struct table *t, struct wake_list *wake)
{
    int64_t now = now_ms();
    if (t->wave_left == 0 && now >= t->told_till_ms) {
        tell_all(t, false, wake);
        t->told_till_ms = now + rest_ms(t);
        return;
    }
    if (t->wave_left == 0) {
        t->wave_at_ms = now;
        wake->has_wave = true;
    }
    t->wave_left = t->n_watches;
    tell_all(t, true, wake);
}

/* Moves the wave to where it should be by now; returns when it goes on. */
static int64_t wave_move(struct table *t, int64_t now, struct wake_list *wake)
{
    size_t n = now > t->wave_at_ms ? (size_t)(now - t->wave_at_ms) * WATCHES_PER_MS : 0;
    for (; n > 0 && t->wave_left > 0; n--, t->wave_left--) {
        struct watch *w = t->wave ? t->wave : t->watches;
        if (!w)
            t->wave_left = 1; /* they are all closed */
        else
            tell(w, wake);
        t->wave = w ? w->next : NULL;
    }
    t->wave_at_ms = now;
    if (t->wave_left > 0)
        return now + WAVE_STEP_MS;
    t->told_till_ms = now + rest_ms(t);
    return INT64_MAX;
}

/* ---- starting ---- */

struct snapshot {
    struct watch *watch;
    const char *prefix; /* NAMESPACE/, or NULL */
    size_t cap;
};

static bool snapshot_object(void *ctx, const char *item, void *value)
{
    struct snapshot *s = ctx;
    struct watch *w = s->watch;
    if (s->prefix && !str_has_prefix(item, s->prefix))
        return false;
    if (!is_in_namespace(w, value) || !selector_matches(w->selector, value))
        return true;
    if (w->initial_n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 64;
        w->initial = xreallocarray(w->initial, s->cap, sizeof *w->initial);
    }
    w->initial[w->initial_n++] = object_ref(value);
    return true;
}

static void watch_snapshot(struct watch *w)
{
    SCOPED_FREE char *prefix = w->namespace_name ? xasprintf("%s/", w->namespace_name) : NULL;
    struct snapshot s = {.watch = w, .prefix = prefix};
    omap_each(w->table->objects, prefix, snapshot_object, &s);
}

/* Whether the watch is of one object, from the revision at which that was made with its status in
 * place, as a claim is that was bound in its POST. */
static bool begins_at_its_making(const struct watch *w)
{
    const char *name = selector_name(w->selector);
    uint64_t seq = table_seq_after(w->table, w->min_rev - 1);
    if (!name || seq >= w->table->first_seq + w->table->ring_n)
        return false;
    const struct change *c = table_change(w->table, seq);
    if (c->rev != w->min_rev || c->before || c->is_delete || strcmp(c->now->name, name) != 0)
        return false;
    SCOPED(json_free_p) cJSON *tree = object_tree(c->now);
    return json_get(tree, "status") != NULL;
}

/* Sets the cursor; with the table's lock held for writing. A start that history does not reach
 * becomes the 410 event. */
static void watch_position(struct watch *w, const struct watch_request *req)
{
    struct table *t = w->table;
    int64_t rev = table_rev(t);
    bool is_from_rev = !req->send_initial && req->version.match == READ_AT_LEAST;
    w->min_rev = is_from_rev ? req->version.rev : rev;
    w->sent_rev = w->min_rev;
    w->next_seq = table_seq_after(t, w->min_rev);
    if (is_from_rev && w->min_rev < t->history_since) {
        err_set(&w->error, ERR_EXPIRED, "too old resource version: %" PRId64 " (%" PRId64 ")",
                w->min_rev, t->history_since);
        return;
    }
    /* Clients (the Python SDK) wait for what becomes of a claim from the revision of its POST,
     * whose answer they do not look at: nothing else might ever come. */
    if (is_from_rev && begins_at_its_making(w))
        w->next_seq = table_seq_after(t, --w->min_rev);
    if (req->send_initial)
        watch_snapshot(w);
    w->is_end_marker_due = req->send_initial_end;
}

/* Behind those who must not wait, for whom the list is gone through with every change. */
static void put_into_list(struct watch *w)
{
    struct table *t = w->table;
    w->next = t->watches;
    while (!w->is_prompt && w->next && w->next->is_prompt) {
        w->prev = w->next;
        w->next = w->next->next;
    }
    if (w->next)
        w->next->prev = w;
    if (w->prev)
        w->prev->next = w;
    else
        t->watches = w;
    t->n_watches++;
}

static void watch_join_table(struct watch *w, const struct watch_request *req)
{
    struct table *t = w->table;
    pthread_rwlock_wrlock(&t->lock);
    if (w->error.code == ERR_NONE)
        watch_position(w, req);
    w->is_awake = true; /* until it was asked for the first time */
    put_into_list(w);
    pthread_rwlock_unlock(&t->lock);
}

static struct watch *watch_new(struct registry *r, const struct watch_request *req,
                               void (*wake)(void *ctx), void *ctx)
{
    struct watch *w = xcalloc(1, sizeof *w);
    int64_t now = now_ms();
    w->refs = 1;
    w->table = registry_table(r, req->kind);
    if (req->namespace_name && req->namespace_name[0])
        w->namespace_name = xstrdup(req->namespace_name);
    if (selector_is_empty(req->take_selector))
        selector_free(req->take_selector);
    else
        w->selector = req->take_selector;
    w->wants_bookmarks = req->bookmarks;
    w->is_prompt = req->is_prompt;
    w->wake = wake;
    w->ctx = ctx;
    w->end_at_ms = req->timeout_ms > 0 ? now + req->timeout_ms : INT64_MAX;
    w->bookmark_at_ms = req->bookmarks ? now + r->bookmark_period_ms : INT64_MAX;
    w->has_last_bookmark = w->end_at_ms - now <= BOOKMARK_BEFORE_END_MS; /* too short for one */
    pthread_mutex_init(&w->wake_mutex, NULL);
    return w;
}

/* Makes sure that the cache is where the watch shall begin. A version of the future is an ERROR
 * event for who wants the state first, and no error at all for others. */
static int watch_reach(struct registry *r, struct watch *w, const struct watch_request *req,
                       struct err *err)
{
    int64_t deadline_ms = req->deadline_ms, wait_ms = now_ms() + REV_WAIT_MS;
    deadline_default(&deadline_ms);
    if (req->send_initial || req->version.match != READ_AT_LEAST) {
        int rc = registry_reach(r, req->kind, "watch", req->version, deadline_ms, &w->error);
        return rc == 0 || rc == -ERR_TIMEOUT ? 0 : err_move(err, &w->error);
    }
    if (registry_wait_loaded(r, req->kind, err) < 0)
        return -ERR_UNAVAILABLE;
    return registry_wait_history(r, req->kind, wait_ms < deadline_ms ? wait_ms : deadline_ms, err);
}

int registry_watch(struct registry *r, const struct watch_request *req, void (*wake)(void *ctx),
                   void *ctx, struct watch **ret, struct err *err)
{
    struct watch *w = watch_new(r, req, wake, ctx);
    int rc = watch_reach(r, w, req, err);
    if (rc < 0) {
        watch_unref(w);
        return rc;
    }
    watch_join_table(w, req);
    if (!timer_by(r, WATCH_TICKS, 0)) { /* nobody would end it */
        watch_close(w);
        return err_set(err, ERR_CANCELLED, "the server is shutting down");
    }
    *ret = w;
    return 0;
}

void watch_close(struct watch *w)
{
    if (!w)
        return;
    struct table *t = w->table;
    pthread_rwlock_wrlock(&t->lock);
    if (w->prev)
        w->prev->next = w->next;
    else
        t->watches = w->next;
    if (w->next)
        w->next->prev = w->prev;
    if (t->wave == w)
        t->wave = w->next;
    t->n_watches--;
    pthread_rwlock_unlock(&t->lock);
    pthread_mutex_lock(&w->wake_mutex); /* waits for a wake that runs */
    w->is_closed = true;
    pthread_mutex_unlock(&w->wake_mutex);
    watch_unref(w);
}

/* ---- the next event; with the table's lock held for reading ---- */

static int next_initial(struct watch *w, struct watch_event *ret)
{
    ret->type = WATCH_ADDED;
    ret->object = w->initial[w->initial_next++];
    if (w->initial_next == w->initial_n) {
        free(w->initial);
        w->initial = NULL;
        w->initial_n = w->initial_next = 0;
    }
    return 1;
}

static int next_marker(struct watch *w, struct watch_event *ret)
{
    w->is_end_marker_due = false;
    ret->type = WATCH_BOOKMARK;
    ret->rev = w->min_rev;
    ret->is_initial_end = true;
    return 1;
}

/* The next change that is wanted, NULL when there is none. */
static const struct change *take_change(struct watch *w, enum watch_type *ret_type)
{
    if (!watch_is_behind(w, ret_type))
        return NULL;
    const struct change *c = table_change(w->table, w->next_seq++);
    w->sent_rev = c->rev;
    return c;
}

static bool has_left_selection(const struct change *c, enum watch_type type)
{
    return type == WATCH_DELETED && !c->is_delete;
}

/* A reference. What left the selection has its old content and the new revision. */
static struct object *object_of(const struct change *c, enum watch_type type)
{
    return has_left_selection(c, type) ? object_at_rev(c->before, c->rev) : object_ref(c->now);
}

/* 0 when there is none, -1 when the cursor fell out of the ring. */
static int next_change(struct watch *w, struct watch_event *ret)
{
    if (w->next_seq < w->table->first_seq)
        return -1;
    const struct change *c = take_change(w, &ret->type);
    if (c)
        ret->object = object_of(c, ret->type);
    return c != NULL;
}

/* Everything up to the table's revision was sent. */
static int next_bookmark(struct watch *w, struct watch_event *ret)
{
    int64_t rev = table_rev(w->table);
    w->is_bookmark_due = false;
    if (rev < w->sent_rev)
        return 0; /* it waits for a version of the future */
    w->sent_rev = rev;
    ret->type = WATCH_BOOKMARK;
    ret->rev = rev;
    return 1;
}

static int next_event(struct watch *w, struct watch_event *ret)
{
    if (w->is_over)
        return -1;
    if (w->error.code != ERR_NONE) {
        ret->type = WATCH_ERROR;
        ret->err = steal(&w->error);
        w->is_over = true;
        return 1;
    }
    if (w->initial_n > 0)
        return next_initial(w, ret);
    if (w->is_end_marker_due)
        return next_marker(w, ret);
    int rc = next_change(w, ret);
    if (rc == 0 && w->is_bookmark_due)
        rc = next_bookmark(w, ret);
    w->is_over = rc < 0;
    w->is_awake = rc != 0;
    return rc;
}

static void count_told(struct watch *w, size_t n)
{
    __atomic_fetch_add(&w->table->n_told, n, __ATOMIC_RELAXED);
}

int watch_next(struct watch *w, struct watch_event *ret)
{
    *ret = (struct watch_event){0};
    pthread_rwlock_rdlock(&w->table->lock);
    int rc = next_event(w, ret);
    pthread_rwlock_unlock(&w->table->lock);
    if (rc > 0)
        count_told(w, 1);
    return rc;
}

/* Whether nothing but changes comes next. */
static bool is_following(const struct watch *w)
{
    return !w->is_over && w->error.code == ERR_NONE && w->initial_n == 0 && !w->is_end_marker_due &&
           w->next_seq >= w->table->first_seq;
}

void watch_each_change(struct watch *w,
                       bool (*put)(void *ctx, enum watch_type type, const struct object *o),
                       void *ctx)
{
    const struct change *c;
    enum watch_type type;
    size_t n = 0;
    pthread_rwlock_rdlock(&w->table->lock);
    for (bool goes_on = is_following(w); goes_on && (c = take_change(w, &type)) != NULL; n++) {
        if (has_left_selection(c, type)) {
            struct object *left = object_of(c, type);
            goes_on = put(ctx, type, left);
            object_unref(left);
        } else {
            goes_on = put(ctx, type, c->now);
        }
    }
    pthread_rwlock_unlock(&w->table->lock);
    if (n > 0)
        count_told(w, n);
}

void watch_event_fini(struct watch_event *e)
{
    object_unref(e->object);
    err_fini(&e->err);
    *e = (struct watch_event){0};
}

/* ---- ends, bookmarks, time-outs ---- */

void watches_expire(struct table *t, int64_t rev, struct wake_list *wake)
{
    for (struct watch *w = t->watches; w; w = w->next) {
        if (w->min_rev >= rev || w->error.code != ERR_NONE)
            continue; /* it begins behind the load, or ends anyway */
        err_set(&w->error, ERR_EXPIRED, "too old resource version: %" PRId64 " (%" PRId64 ")",
                w->sent_rev, rev);
        wake_list_force(wake, w);
    }
}

void watches_end(struct registry *r)
{
    struct wake_list wake = {0};
    for (size_t i = 0; i < r->n_tables; i++) {
        struct table *t = &r->tables[i];
        pthread_rwlock_wrlock(&t->lock);
        for (struct watch *w = t->watches; w; w = w->next)
            watch_end(w, &wake);
        pthread_rwlock_unlock(&t->lock);
    }
    wake_list_run(r, &wake);
}

static int64_t earlier(int64_t a_ms, int64_t b_ms)
{
    return a_ms < b_ms ? a_ms : b_ms;
}

/* Does what is due for one watch; returns when it is due next. */
static int64_t watch_tick(struct watch *w, int64_t now, int64_t period_ms, struct wake_list *wake)
{
    if (w->is_over)
        return INT64_MAX;
    if (now >= w->end_at_ms) {
        watch_end(w, wake);
        return INT64_MAX;
    }
    int64_t last_ms = w->end_at_ms == INT64_MAX ? INT64_MAX : w->end_at_ms - BOOKMARK_BEFORE_END_MS;
    bool is_last = w->wants_bookmarks && !w->has_last_bookmark && now >= last_ms;
    if (is_last || now >= w->bookmark_at_ms) {
        w->has_last_bookmark = w->has_last_bookmark || is_last;
        w->bookmark_at_ms = now + period_ms;
        w->is_bookmark_due = true;
        wake_list_add(wake, w);
    }
    int64_t next_ms = earlier(w->end_at_ms, w->bookmark_at_ms);
    bool has_last_ahead = w->wants_bookmarks && !w->has_last_bookmark;
    return has_last_ahead ? earlier(last_ms, next_ms) : next_ms;
}

static int64_t move_waves(struct registry *r)
{
    struct wake_list wake = {0};
    int64_t now = now_ms(), next_ms = INT64_MAX;
    for (size_t i = 0; i < r->n_tables; i++) {
        struct table *t = &r->tables[i];
        pthread_rwlock_wrlock(&t->lock);
        if (t->wave_left > 0)
            next_ms = earlier(next_ms, wave_move(t, now, &wake));
        pthread_rwlock_unlock(&t->lock);
    }
    wake_list_run(r, &wake);
    return next_ms;
}

static int64_t tick_watches(struct registry *r)
{
    struct wake_list wake = {0};
    int64_t now = now_ms(), next_ms = INT64_MAX;
    for (size_t i = 0; i < r->n_tables; i++) {
        struct table *t = &r->tables[i];
        pthread_rwlock_wrlock(&t->lock);
        for (struct watch *w = t->watches; w; w = w->next)
            next_ms = earlier(next_ms, watch_tick(w, now, r->bookmark_period_ms, &wake));
        pthread_rwlock_unlock(&t->lock);
    }
    wake_list_run(r, &wake);
    return next_ms < now + TIMER_STEP_MS ? now + TIMER_STEP_MS : next_ms;
}

/* Runs what is due. Who needs it earlier than it finds says so meanwhile. */
static void run_timer(struct registry *r, enum watch_timer timer)
{
    static int64_t (*const runs[])(struct registry *) = {
        [WATCH_WAVES] = move_waves, [WATCH_TICKS] = tick_watches};
    r->timer_at_ms[timer] = INT64_MAX;
    pthread_mutex_unlock(&r->mutex);
    int64_t next_ms = runs[timer](r);
    pthread_mutex_lock(&r->mutex);
    r->timer_at_ms[timer] = earlier(next_ms, r->timer_at_ms[timer]);
}

void *watch_timer_run(void *registry)
{
    struct registry *r = registry;
    pthread_mutex_lock(&r->mutex);
    while (!r->is_stopping) {
        int64_t next_ms = INT64_MAX;
        for (enum watch_timer timer = 0; timer < WATCH_TIMERS; timer++) {
            if (now_ms() >= r->timer_at_ms[timer])
                run_timer(r, timer);
            next_ms = earlier(next_ms, r->timer_at_ms[timer]);
        }
        if (!r->is_stopping && now_ms() < next_ms)
            thread_cond_wait_until(&r->timer, &r->mutex, next_ms);
    }
    pthread_mutex_unlock(&r->mutex);
    return NULL;
}
