#include "apiserver/base/loop.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "apiserver/base/log.h"
#include "apiserver/base/loop_metric.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/metric.h"
#include "apiserver/base/thread.h"

#define BACKOFF_FIRST_MS 5
#define BACKOFF_MAX_MS 1000000

/* One key that is queued, delayed, worked on, or has failed before. */
struct item {
    char *key;
    struct item *next; /* in its family */
    bool is_ready;     /* in its family */
    bool is_running;   /* a worker has it */
    bool is_dirty;     /* added while a worker had it */
    int64_t dirty_rev; /* by that change alone; 0 = by others, too */
    int64_t own_rev;   /* written by its last pass, which failed; 0 = nothing */
    int64_t due_ms;    /* monotonic; 0 = not delayed */
    int64_t added_ms;  /* monotonic; since when it waits */
    unsigned failures;
};

/* Ready items of alike keys, and its place in the round of families. */
struct family {
    char *name;
    struct family *next;
    struct item *head, *tail; /* never empty */
};

/* A pass under way, on its worker's stack. */
struct run {
    struct run *next, **from;
    int64_t since_ms; /* monotonic */
};

/* Delays often stand for a time of day, and the wall clock can be set, or go on while the machine
 * sleeps. So it is looked at now and then; when it went otherwise than the monotonic clock by more
 * than that, every delayed key is worked on, and asks for its time anew. */
#define WALL_LOOK_MS 60000
#define WALL_JUMP_MS 5000

/* That two clocks, read one after the other, may differ from one time to the next. */
#define CLOCKS_MS 2

/* A worker that waits, on its stack. The one that came last is woken first: what it works with is
 * at hand, and those that are not needed stay as small as they are. */
struct sleeper {
    pthread_cond_t wake;
    struct sleeper *next, **from; /* from: NULL = it is not listed */
    int64_t until_ms;             /* monotonic */
};

struct loop {
    struct loop_config config;
    pthread_mutex_t lock; /* guards all below but the threads, which start and stop own */
    struct sleeper *sleepers;
    struct map *items;
    struct map *families;       /* those with ready items */
    struct family *head, *tail; /* whose turn it is, in this order */
    size_t ready;
    struct run *runs;
    struct omap *timers; /* delayed items, by time */
    int64_t wall_ms;     /* of the wall clock, ahead of the monotonic one, when last looked at */
    bool is_stopping;
    pthread_t *threads;
    int n_threads;
};

int64_t loop_backoff_ms(unsigned failures)
{
    int64_t ms = BACKOFF_FIRST_MS;
    for (unsigned i = 1; i < failures && ms < BACKOFF_MAX_MS; i++)
        ms *= 2;
    return ms < BACKOFF_MAX_MS ? ms : BACKOFF_MAX_MS;
}

static int64_t now_ms(const struct loop *l)
{
    return clock_monotonic_ms(l->config.clock);
}

static int64_t wall_ms(const struct loop *l)
{
    return clock_unix_ms(l->config.clock) - now_ms(l);
}

/* For whoever asks for the metrics. */
static void collect_state(void *ctx)
{
    struct loop *l = ctx;
    size_t n = 0;
    int64_t all_ms = 0, longest_ms = 0, now = now_ms(l);
    pthread_mutex_lock(&l->lock);
    for (const struct run *r = l->runs; r; r = r->next, n++) {
        all_ms += now - r->since_ms;
        longest_ms = now - r->since_ms > longest_ms ? now - r->since_ms : longest_ms;
    }
    size_t waiting = l->ready;
    pthread_mutex_unlock(&l->lock);
    loop_metric_state(l->config.name, waiting, n, all_ms, longest_ms);
}

struct loop *loop_new(const struct loop_config *config)
{
    struct loop *l = xcalloc(1, sizeof *l);
    l->config = *config;
    pthread_mutex_init(&l->lock, NULL);
    l->items = map_new();
    l->families = map_new();
    l->timers = omap_new();
    l->wall_ms = wall_ms(l);
    metric_collect_on(collect_state, l);
    return l;
}

static bool item_drop(void *ctx, const char *key, void *value)
{
    (void)ctx;
    (void)key;
    struct item *it = value;
    free(it->key);
    free(it);
    return true;
}

/* The family whose turn it is leaves the round. */
static struct family *round_take(struct loop *l)
{
    struct family *f = l->head;
    l->head = f->next;
    if (!l->head)
        l->tail = NULL;
    return f;
}

static void round_put(struct loop *l, struct family *f)
{
    f->next = NULL;
    *(l->tail ? &l->tail->next : &l->head) = f;
    l->tail = f;
}

static void family_free(struct loop *l, struct family *f)
{
    map_del(l->families, f->name);
    free(f->name);
    free(f);
}

static void loop_clear(struct loop *l)
{
    while (l->head)
        family_free(l, round_take(l));
    map_each(l->items, item_drop, NULL);
    map_free(l->items);
    omap_free(l->timers);
    l->items = map_new();
    l->timers = omap_new();
    l->ready = 0;
}

void loop_free(struct loop *l)
{
    if (!l)
        return;
    metric_collect_off(collect_state, l);
    loop_stop(l);
    map_free(l->items);
    map_free(l->families);
    omap_free(l->timers);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

static struct item *item_of(struct loop *l, const char *key)
{
    struct item *it = map_get(l->items, key);
    if (it)
        return it;
    it = xcalloc(1, sizeof *it);
    it->key = xstrdup(key);
    map_put(l->items, key, it);
    return it;
}

/* The key of an item in timers: its time first, so that the order is that of time. */
static char *timer_key(const struct item *it)
{
    return xasprintf("%016" PRIx64 " %s", (uint64_t)it->due_ms, it->key);
}

/* Lock held. due_ms 0 = not delayed. */
static void set_due(struct loop *l, struct item *it, int64_t due_ms)
{
    if (it->due_ms) {
        SCOPED_FREE char *old = timer_key(it);
        omap_del(l->timers, old);
    }
    it->due_ms = due_ms;
    if (due_ms) {
        SCOPED_FREE char *key = timer_key(it);
        omap_put(l->timers, key, it);
    }
}

static char *family_name(const char *key)
{
    const char *slash = strrchr(key, '/'); /* a namespace may have hyphens of its own */
    const char *hyphen = strrchr(slash ? slash : key, '-');
    return hyphen ? xstrndup(key, (size_t)(hyphen - key)) : xstrdup(key);
}

/* Lock held. */
static void unlist(struct sleeper *s)
{
    if (!s->from)
        return;
    *s->from = s->next;
    if (s->next)
        s->next->from = s->from;
    s->from = NULL;
}

static void list(struct loop *l, struct sleeper *s)
{
    s->next = l->sleepers;
    s->from = &l->sleepers;
    if (s->next)
        s->next->from = &s->next;
    l->sleepers = s;
}

/* Lock held. */
static void wake_one(struct loop *l)
{
    struct sleeper *s = l->sleepers;
    if (!s)
        return;
    unlist(s);
    pthread_cond_signal(&s->wake);
}

/* Lock held: the last of its family; one that had nobody waiting comes last in the round. */
static void put_last(struct loop *l, struct item *it)
{
    SCOPED_FREE char *name = family_name(it->key);
    struct family *f = map_get(l->families, name);
    it->is_ready = true;
    it->next = NULL;
    if (f) {
        f->tail = f->tail->next = it;
    } else {
        f = xcalloc(1, sizeof *f);
        *f = (struct family){.name = steal(&name), .head = it, .tail = it};
        map_put(l->families, f->name, f);
        round_put(l, f);
    }
    l->ready++;
    wake_one(l);
}

/* Lock held: the first of the family whose turn it is; NULL = nobody waits. */
static struct item *take_first(struct loop *l)
{
    if (!l->head)
        return NULL;
    struct family *f = round_take(l);
    struct item *it = f->head;
    f->head = it->next;
    if (f->head)
        round_put(l, f);
    else
        family_free(l, f);
    l->ready--;
    it->is_ready = false;
    return it;
}

/* Lock held: the key is to be worked on now. rev: for a change of its object, else 0. */
static void make_ready(struct loop *l, struct item *it, int64_t rev)
{
    if (rev && rev == it->own_rev)
        return;
    set_due(l, it, 0);
    if (it->is_dirty && it->dirty_rev != rev)
        it->dirty_rev = 0;
    if (it->is_ready || it->is_dirty)
        return;
    it->added_ms = now_ms(l);
    loop_metric_add(l->config.name);
    it->dirty_rev = rev;
    if (it->is_running)
        it->is_dirty = true;
    else
        put_last(l, it);
}

void loop_add_change(struct loop *l, const char *key, int64_t rev)
{
    pthread_mutex_lock(&l->lock);
    if (!l->is_stopping)
        make_ready(l, item_of(l, key), rev);
    pthread_mutex_unlock(&l->lock);
}

void loop_add(struct loop *l, const char *key)
{
    loop_add_change(l, key, 0);
}

/* Lock held. */
static void delay(struct loop *l, struct item *it, int64_t after_ms)
{
    int64_t due = now_ms(l) + (after_ms > 0 ? after_ms : 0);
    if (it->due_ms && it->due_ms <= due)
        return;
    set_due(l, it, due);
    wake_one(l); /* it may be the first one now */
}

void loop_add_after(struct loop *l, const char *key, int64_t after_ms)
{
    pthread_mutex_lock(&l->lock);
    if (!l->is_stopping)
        delay(l, item_of(l, key), after_ms);
    pthread_mutex_unlock(&l->lock);
}

/* Lock held: drops a key that nothing is known about any more. */
static void item_release(struct loop *l, struct item *it)
{
    if (it->is_ready || it->is_running || it->due_ms || it->failures)
        return;
    map_del(l->items, it->key);
    item_drop(NULL, NULL, it);
}

void loop_forget(struct loop *l, const char *key)
{
    pthread_mutex_lock(&l->lock);
    struct item *it = map_get(l->items, key);
    if (it) {
        set_due(l, it, 0);
        it->failures = 0;
        item_release(l, it);
    }
    pthread_mutex_unlock(&l->lock);
}

size_t loop_len(struct loop *l)
{
    pthread_mutex_lock(&l->lock);
    size_t n = l->ready;
    pthread_mutex_unlock(&l->lock);
    return n;
}

static bool first_of(void *ctx, const char *key, void *value)
{
    (void)key;
    *(struct item **)ctx = value;
    return false;
}

/* Lock held: the delayed key whose time comes first, or NULL. */
static struct item *next_due(const struct loop *l)
{
    struct item *it = NULL;
    omap_each(l->timers, NULL, first_of, &it);
    return it;
}

struct delayed {
    struct item **v;
    size_t n;
};

static bool note_delayed(void *ctx, const char *key, void *value)
{
    struct delayed *d = ctx;
    (void)key;
    d->v[d->n++] = value;
    return true;
}

/* Lock held. Delays of failures are no times of day. */
static void follow_wall_clock(struct loop *l)
{
    int64_t by_ms = wall_ms(l) - l->wall_ms;
    if (by_ms < WALL_JUMP_MS && by_ms > -WALL_JUMP_MS)
        return;
    l->wall_ms += by_ms;
    struct delayed d = {.v = xcalloc(omap_len(l->timers) + 1, sizeof *d.v)};
    omap_each(l->timers, NULL, note_delayed, &d);
    for (size_t i = 0; i < d.n; i++) {
        if (d.v[i]->failures == 0)
            make_ready(l, d.v[i], 0);
    }
    log_info("the wall clock was set, looking at all times anew queue=%s by_ms=%" PRId64
             " delayed=%zu",
             l->config.name, by_ms, d.n);
    free(d.v);
}

/* Lock held: moves what is due to the ready list. */
static void collect_due(struct loop *l)
{
    int64_t now = now_ms(l);
    follow_wall_clock(l);
    for (struct item *it; (it = next_due(l)) != NULL && it->due_ms <= now;)
        make_ready(l, it, 0);
}

/* Lock held: when the first delayed key is due, by the system's clock; the loop's may be a fake. */
static int64_t due_at_ms(const struct loop *l)
{
    const struct item *first = next_due(l);
    return first ? clock_monotonic_ms(&clock_system) + first->due_ms - now_ms(l) : INT64_MAX;
}

/* Lock held. Sleeps until something is ready, something falls due, or the loop stops. */
static void wait_for_work(struct loop *l, struct sleeper *me)
{
    int64_t due_ms = due_at_ms(l), look_ms = clock_monotonic_ms(&clock_system) + WALL_LOOK_MS;
    me->until_ms = due_ms < INT64_MAX && look_ms < due_ms ? look_ms : due_ms;
    list(l, me);
    thread_cond_wait_until(&me->wake, &l->lock, me->until_ms);
    unlist(me);
}

/* Lock held. NULL when stopping. Who goes to work leaves the clock to the next. */
static struct item *take(struct loop *l, struct sleeper *me)
{
    for (;;) {
        if (l->is_stopping)
            return NULL;
        collect_due(l);
        struct item *it = take_first(l);
        if (it) {
            it->is_running = true;
            it->own_rev = 0;
            if (l->sleepers && due_at_ms(l) < l->sleepers->until_ms - CLOCKS_MS)
                wake_one(l);
            return it;
        }
        wait_for_work(l, me);
    }
}

/* Lock held: what the pass said. */
static void settle(struct loop *l, struct item *it, int rc, const struct loop_result *result)
{
    it->is_running = false;
    it->own_rev = rc < 0 ? result->own_rev : 0;
    if (it->own_rev && it->dirty_rev == it->own_rev)
        it->is_dirty = false;
    if (rc < 0) {
        delay(l, it, loop_backoff_ms(++it->failures));
    } else {
        it->failures = 0;
        if (result->again_after_ms > 0)
            delay(l, it, result->again_after_ms);
    }
    if (it->is_dirty) {
        it->is_dirty = false;
        set_due(l, it, 0);
        put_last(l, it);
    }
    item_release(l, it);
}

static void run_begin(struct loop *l, struct run *r)
{
    *r = (struct run){.next = l->runs, .from = &l->runs, .since_ms = now_ms(l)};
    if (r->next)
        r->next->from = &r->next;
    l->runs = r;
}

static void run_end(struct run *r)
{
    *r->from = r->next;
    if (r->next)
        r->next->from = r->from;
}

static const char *result_name(int rc, const struct loop_result *result)
{
    return rc < 0 ? "error" : result->again_after_ms > 0 ? "requeue_after" : "success";
}

static void *worker(void *arg)
{
    struct loop *l = arg;
    struct sleeper me = {0};
    thread_cond_init(&me.wake);
    pthread_mutex_lock(&l->lock);
    for (struct item *it; (it = take(l, &me)) != NULL;) {
        struct run run;
        struct loop_result result = {0};
        run_begin(l, &run);
        int64_t waited_ms = run.since_ms - it->added_ms;
        pthread_mutex_unlock(&l->lock);
        loop_metric_take(l->config.name, waited_ms);
        int rc = l->config.work(l->config.ctx, it->key, &result);
        loop_metric_done(l->config.name, result_name(rc, &result), now_ms(l) - run.since_ms);
        pthread_mutex_lock(&l->lock);
        run_end(&run);
        settle(l, it, rc, &result);
    }
    pthread_mutex_unlock(&l->lock);
    pthread_cond_destroy(&me.wake);
    return NULL;
}

void loop_start(struct loop *l)
{
    pthread_mutex_lock(&l->lock);
    l->is_stopping = false; /* keys may be added already */
    pthread_mutex_unlock(&l->lock);
    l->n_threads = l->config.workers;
    loop_metric_start(l->config.name, l->n_threads);
    l->threads = xcalloc((size_t)l->n_threads, sizeof *l->threads);
    for (int i = 0; i < l->n_threads; i++)
        thread_start(&l->threads[i], "work", worker, l);
    log_info("work queue started name=%s workers=%d", l->config.name, l->n_threads);
}

void loop_stop(struct loop *l)
{
    pthread_mutex_lock(&l->lock);
    l->is_stopping = true;
    while (l->sleepers)
        wake_one(l);
    pthread_mutex_unlock(&l->lock);
    for (int i = 0; i < l->n_threads; i++)
        pthread_join(l->threads[i], NULL);
    free(l->threads);
    l->threads = NULL;
    l->n_threads = 0;
    pthread_mutex_lock(&l->lock);
    loop_clear(l);
    pthread_mutex_unlock(&l->lock);
}
