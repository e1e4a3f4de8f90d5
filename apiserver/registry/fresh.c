/* How far the cache is, and waiting for it. A read that must be the most recent asks the store for
 * its revision; one call serves every reader that came before it was sent, so a crowd of readers
 * costs the store one call at a time. */
#include "apiserver/base/clock.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/thread.h"
#include "apiserver/registry/cache.h"

#define CALL_MS 5000 /* ceiling of one call for the store's revision */
#define CATCH_UP_MS                                                                                \
    10000 /* and of the cache's getting there; longer means that its link is broken */

static int64_t now_ms(void)
{
    return clock_monotonic_ms(&clock_system);
}

int64_t registry_revision(const struct registry *r)
{
    return __atomic_load_n(&r->rev, __ATOMIC_ACQUIRE);
}

/* Each has a condition of its own: with one for all, every write would wake all who wait for
 * theirs. */
struct rev_waiter { /* on the stack of who waits */
    int64_t rev;
    pthread_cond_t reached;
    struct rev_waiter *next;
};

void wake_rev_waiters(struct registry *r, int64_t rev)
{
    for (struct rev_waiter *w = r->rev_waiters; w; w = w->next)
        if (w->rev <= rev)
            pthread_cond_signal(&w->reached);
}

void registry_move(struct registry *r, int64_t rev)
{
    pthread_mutex_lock(&r->mutex);
    if (rev > r->rev)
        __atomic_store_n(&r->rev, rev, __ATOMIC_RELEASE);
    wake_rev_waiters(r, r->rev);
    pthread_mutex_unlock(&r->mutex);
}

/* The mutex is held. */
static void wait_for_move(struct registry *r, int64_t rev, int64_t until_ms)
{
    struct rev_waiter self = {.rev = rev, .next = r->rev_waiters};
    thread_cond_init(&self.reached);
    r->rev_waiters = &self;
    while (r->rev < rev && !r->is_stopping && now_ms() < until_ms)
        thread_cond_wait_until(&self.reached, &r->mutex, until_ms);
    struct rev_waiter **at = &r->rev_waiters;
    while (*at != &self)
        at = &(*at)->next;
    *at = self.next;
    pthread_cond_destroy(&self.reached);
}

int registry_wait_rev(struct registry *r, int64_t rev, int64_t until_ms)
{
    if (registry_revision(r) >= rev)
        return 0;
    pthread_mutex_lock(&r->mutex);
    wait_for_move(r, rev, until_ms);
    int rc = r->rev >= rev ? 0 : r->is_stopping ? -ERR_CANCELLED : -ERR_TIMEOUT;
    pthread_mutex_unlock(&r->mutex);
    return rc;
}

int registry_wait_loaded(struct registry *r, const struct kind *kind, struct err *err)
{
    pthread_mutex_lock(&r->mutex);
    bool is_loaded = r->is_loaded;
    pthread_mutex_unlock(&r->mutex);
    return is_loaded ? 0 : refuse_not_ready(kind, err);
}

int registry_wait_history(struct registry *r, const struct kind *kind, int64_t until_ms,
                          struct err *err)
{
    pthread_mutex_lock(&r->mutex);
    while (!r->has_history && !r->is_stopping && now_ms() < until_ms)
        thread_cond_wait_until(&r->moved, &r->mutex, until_ms);
    bool has_history = r->has_history;
    pthread_mutex_unlock(&r->mutex);
    return has_history ? 0 : refuse_not_ready(kind, err);
}

/* Sends the call as number n_started; the mutex is held before and after. */
static uint64_t fresh_send(struct registry *r, int64_t deadline_ms)
{
    struct fresh *f = &r->fresh;
    SCOPED(err_fini) struct err err = {0};
    int64_t rev = 0, ceiling_ms = now_ms() + CALL_MS;
    uint64_t n = ++f->n_started;
    f->is_in_flight = true;
    pthread_mutex_unlock(&r->mutex);
    store_revision(r->store, deadline_ms < ceiling_ms ? deadline_ms : ceiling_ms, &rev, &err);
    pthread_mutex_lock(&r->mutex);
    err_fini(&f->err);
    f->err = steal(&err);
    f->rev = rev;
    f->is_cut = deadline_ms < ceiling_ms;
    f->n_finished = n;
    f->is_in_flight = false;
    pthread_cond_broadcast(&r->moved);
    return n;
}

/* A copy of what counts of a shared error: the next reader needs it too. */
static int copy_err(const struct err *from, struct err *to)
{
    return err_set(to, from->code, "%s", err_text(from));
}

/* The store's revision as a call tells that is sent after now. */
static int fresh_rev(struct registry *r, int64_t deadline_ms, int64_t *ret, struct err *err)
{
    struct fresh *f = &r->fresh;
    int rc = -ERR_SERVER_TIMEOUT;
    pthread_mutex_lock(&r->mutex);
    uint64_t wanted = f->n_started + 1, own = 0;
    for (;;) {
        if (f->n_finished >= wanted) {
            bool is_others_timeout =
                f->is_cut && f->err.code == ERR_SERVER_TIMEOUT && f->n_finished != own;
            if (!is_others_timeout)
                break;
            wanted = f->n_started + 1; /* it ran out of somebody else's time */
        }
        if (r->is_stopping || now_ms() >= deadline_ms)
            break;
        if (f->is_in_flight)
            thread_cond_wait_until(&r->moved, &r->mutex, deadline_ms);
        else
            own = fresh_send(r, deadline_ms);
    }
    if (f->n_finished < wanted)
        rc = err_set(err, r->is_stopping ? ERR_CANCELLED : ERR_SERVER_TIMEOUT,
                     "the store did not answer in time");
    else if (f->err.code != ERR_NONE)
        rc = copy_err(&f->err, err);
    else
        rc = 0;
    *ret = f->rev;
    pthread_mutex_unlock(&r->mutex);
    return rc;
}

static int reach_latest(struct registry *r, const struct kind *kind, const char *op,
                        int64_t deadline_ms, struct err *err)
{
    SCOPED(err_fini) struct err e = {0};
    int64_t rev = 0;
    if (fresh_rev(r, deadline_ms, &rev, &e) < 0)
        return refuse_store(kind, op, &e, err);
    int64_t until_ms = now_ms() + CATCH_UP_MS;
    int rc = registry_wait_rev(r, rev, until_ms < deadline_ms ? until_ms : deadline_ms);
    if (rc == 0)
        return 0;
    err_set(&e, rc == -ERR_CANCELLED ? ERR_CANCELLED : ERR_SERVER_TIMEOUT,
            "the cache is behind the store");
    return refuse_store(kind, op, &e, err);
}

int registry_reach(struct registry *r, const struct kind *kind, const char *op,
                   struct read_version version, int64_t deadline_ms, struct err *err)
{
    deadline_default(&deadline_ms);
    if (registry_wait_loaded(r, kind, err) < 0)
        return -ERR_UNAVAILABLE;
    if (version.match == READ_ANY)
        return 0;
    if (version.match == READ_LATEST)
        return reach_latest(r, kind, op, deadline_ms, err);
    int64_t until_ms = now_ms() + REV_WAIT_MS;
    int rc = registry_wait_rev(r, version.rev, until_ms < deadline_ms ? until_ms : deadline_ms);
    if (rc == -ERR_CANCELLED)
        return err_set(err, ERR_CANCELLED, "the server is shutting down");
    return rc == 0 ? 0 : refuse_too_large_rev(version.rev, registry_revision(r), err);
}
