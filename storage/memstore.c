/* The store in memory. Every key keeps its versions since the last compaction, and a log of changes
 * in order of revision feeds the watches, each from a thread of its own. One lock guards all; it is
 * never held over a callback of a watch.
 *
 * It behaves like etcd where callers can tell: it starts at revision 1, a transaction that changes
 * nothing moves no revision, a lease's keys vanish in one revision, a key may occur once among a
 * transaction's operations. Left out: disk, quota, several members. */
#include "storage/memstore.h"

#include <assert.h>
#include <pthread.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/thread.h"

#define HISTORY_DEFAULT 100000
#define BATCH_EVENTS 500 /* events a call of on_events, rounded up to whole revisions */
/* Bytes of a transaction. Source: etcd --max-request-bytes. */
#define REQUEST_MAX ((size_t)1536 << 10)

/* One state of a key. Shared by the key's history and the log. */
struct version {
    size_t refs;
    bool is_delete;
    int64_t create_rev, mod_rev, lease;
    size_t value_len;
    char *key, *value; /* in the same block; value is NUL-terminated after value_len bytes */
};
struct history { /* of one key, oldest first, never empty */
    struct version **v;
    size_t n, cap;
};
struct change {
    struct version *now, *prev; /* prev NULL = the key did not exist */
};
struct lease {
    int64_t id, ttl_s, expires_ms; /* ms of the monotonic clock */
};

struct memstore {
    struct store store;
    pthread_mutex_t lock;
    pthread_cond_t changed;   /* a revision, the links, or a watch's end */
    struct omap *keys;        /* key → struct history */
    int64_t rev, compact_rev; /* reads below compact_rev fail */
    size_t max_history;       /* revisions */
    struct change *log; /* [log_start, log_end), in order of revision, none below compact_rev */
    size_t log_start, log_end, log_cap;
    struct lease *leases;
    size_t n_leases;
    int64_t next_lease;
    enum memstore_fault (*fault)(void *ctx, const char *call, uint64_t n);
    void *fault_ctx;
    uint64_t n_calls;
    bool is_watch_down;
    size_t n_watches;
};

struct store_watch {
    struct memstore *m;
    char *prefix;
    int64_t next_rev; /* the first one not delivered yet; its thread's only */
    bool is_from_now; /* tell first where it starts */
    const struct store_watch_ops *ops;
    void *ctx;
    pthread_t thread;
    bool is_stopped; /* guarded by the store's lock */
};

static struct memstore *memstore_of(struct store *s)
{
    return (struct memstore *)(void *)s; /* store is its first member */
}

/* ---- versions and their history ---- */

static struct version *version_new(const char *key, const char *value, size_t value_len)
{
    size_t key_size = strlen(key) + 1;
    struct version *v = xcalloc(1, sizeof *v + key_size + value_len + 1);
    v->refs = 1;
    v->key = (char *)(v + 1);
    v->value = v->key + key_size;
    v->value_len = value_len;
    memcpy(v->key, key, key_size);
    if (value_len > 0)
        memcpy(v->value, value, value_len);
    return v;
}

static struct version *version_ref(struct version *v)
{
    if (v != NULL)
        v->refs++;
    return v;
}

static void version_unref(struct version *v)
{
    if (v != NULL && --v->refs == 0)
        free(v);
}

static void version_copy(const struct version *v, bool with_value, struct store_kv *ret)
{
    *ret = (struct store_kv){
        .key = xstrdup(v->key),
        .value = with_value ? xmemdup(v->value, v->value_len + 1) : xstrdup(""),
        .value_len = with_value ? v->value_len : 0,
        .create_rev = v->create_rev,
        .mod_rev = v->mod_rev,
        .lease = v->lease,
    };
}

/* The state of the key at that revision, NULL when it did not exist. */
static struct version *history_at(const struct history *h, int64_t rev)
{
    if (h == NULL)
        return NULL;
    for (size_t i = h->n; i-- > 0;)
        if (h->v[i]->mod_rev <= rev)
            return h->v[i]->is_delete ? NULL : h->v[i];
    return NULL;
}

static struct version *current(struct memstore *m, const char *key)
{
    return history_at(omap_get(m->keys, key), m->rev);
}

static void history_add(struct memstore *m, struct version *v)
{
    struct history *h = omap_get(m->keys, v->key);
    if (h == NULL) {
        h = xcalloc(1, sizeof *h);
        omap_put(m->keys, v->key, h);
    }
    if (h->n == h->cap) {
        h->cap = h->cap == 0 ? 2 : h->cap * 2;
        h->v = xreallocarray(h->v, h->cap, sizeof(struct version *));
    }
    h->v[h->n++] = version_ref(v);
}

static void history_free(struct history *h)
{
    for (size_t i = 0; i < h->n; i++)
        version_unref(h->v[i]);
    free(h->v);
    free(h);
}

/* Drop what no read at compact_rev or later can see; the key too when nothing is left. */
static void history_compact(struct memstore *m, const char *key)
{
    struct history *h = omap_get(m->keys, key);
    if (h == NULL)
        return;
    size_t keep =
        h->n; /* index of the newest version at or below compact_rev, else the first one */
    while (keep > 0 && h->v[keep - 1]->mod_rev > m->compact_rev)
        keep--;
    if (keep > 0 && !h->v[keep - 1]->is_delete)
        keep--;
    for (size_t i = 0; i < keep; i++)
        version_unref(h->v[i]);
    memmove(h->v, h->v + keep, (h->n - keep) * sizeof(struct version *));
    h->n -= keep;
    if (h->n == 0) {
        omap_del(m->keys, key);
        history_free(h);
    }
}

/* ---- the log of changes ---- */

static void log_add(struct memstore *m, struct version *take_now, struct version *prev)
{
    if (m->log_end == m->log_cap) {
        size_t n = m->log_end - m->log_start;
        if (m->log_start > m->log_cap / 2) {
            memmove(m->log, m->log + m->log_start, n * sizeof *m->log);
        } else {
            m->log_cap = m->log_cap == 0 ? 64 : m->log_cap * 2;
            struct change *log = xreallocarray(NULL, m->log_cap, sizeof *log);
            if (n > 0)
                memcpy(log, m->log + m->log_start, n * sizeof *log);
            free(m->log);
            m->log = log;
        }
        m->log_start = 0;
        m->log_end = n;
    }
    m->log[m->log_end++] = (struct change){.now = take_now, .prev = prev};
}

/* Index of the first change at or after rev. */
static size_t log_find(const struct memstore *m, int64_t rev)
{
    size_t lo = m->log_start, hi = m->log_end;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (m->log[mid].now->mod_rev < rev)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void compact_to(struct memstore *m, int64_t rev)
{
    m->compact_rev = rev;
    while (m->log_start < m->log_end && m->log[m->log_start].now->mod_rev <= rev) {
        struct change *c = &m->log[m->log_start];
        history_compact(m, c->now->key);
        if (c->now->mod_rev == rev)
            break; /* a watch may still start here */
        version_unref(c->now);
        version_unref(c->prev);
        m->log_start++;
    }
    for (size_t i = m->log_start; i < m->log_end && m->log[i].now->mod_rev == rev; i++)
        history_compact(m, m->log[i].now->key);
}

/* One change at revision m->rev; value NULL deletes. The key's current state comes in as prev. */
static void apply(struct memstore *m, const struct store_op *op, struct version *prev)
{
    struct version *now = version_new(op->key, op->value, op->value == NULL ? 0 : op->value_len);
    now->is_delete = op->value == NULL;
    now->mod_rev = m->rev;
    now->create_rev = now->is_delete ? 0 : prev != NULL ? prev->create_rev : m->rev;
    now->lease = op->lease;
    version_ref(prev); /* before the history may let go of it */
    history_add(m, now);
    log_add(m, now, prev);
}

/* After the last change of a revision. */
static void publish(struct memstore *m)
{
    if (m->max_history > 0 && m->rev - m->compact_rev > (int64_t)m->max_history)
        compact_to(m, m->rev - (int64_t)m->max_history);
    pthread_cond_broadcast(&m->changed);
}

/* ---- leases ---- */

static struct lease *lease_find(struct memstore *m, int64_t id)
{
    for (size_t i = 0; i < m->n_leases; i++)
        if (m->leases[i].id == id)
            return &m->leases[i];
    return NULL;
}

struct doomed { /* the keys of a lease that ends */
    int64_t lease, rev;
    struct store_op *ops;
    size_t n;
};

static bool collect_doomed(void *ctx, const char *key, void *value)
{
    struct doomed *d = ctx;
    struct version *v = history_at(value, d->rev);
    if (v != NULL && v->lease == d->lease) {
        d->ops = xreallocarray(d->ops, d->n + 1, sizeof *d->ops);
        d->ops[d->n++] = (struct store_op){.key = key};
    }
    return true;
}

/* Ends the lease; its keys are deleted in one revision. */
static void lease_end(struct memstore *m, struct lease *l)
{
    struct doomed d = {.lease = l->id, .rev = m->rev};
    *l = m->leases[--m->n_leases];
    omap_each(m->keys, NULL, collect_doomed, &d);
    if (d.n > 0) {
        m->rev++;
        for (size_t i = 0; i < d.n; i++)
            apply(m, &d.ops[i], current(m, d.ops[i].key));
        publish(m);
    }
    free(d.ops);
}

static void leases_expire(struct memstore *m)
{
    int64_t now_ms = clock_monotonic_ms(&clock_system);
    for (size_t i = 0; i < m->n_leases;) {
        if (m->leases[i].expires_ms <= now_ms)
            lease_end(m, &m->leases[i]); /* moves the last one here */
        else
            i++;
    }
}

static int64_t leases_next_expiry_ms(const struct memstore *m)
{
    int64_t next_ms = INT64_MAX;
    for (size_t i = 0; i < m->n_leases; i++)
        if (m->leases[i].expires_ms < next_ms)
            next_ms = m->leases[i].expires_ms;
    return next_ms;
}

/* ---- calls ---- */

static void unlock(struct memstore **m)
{
    pthread_mutex_unlock(&(*m)->lock);
}

/* Every call starts here: takes the lock, lets due leases end, asks for a fault. */
static struct memstore *enter(struct store *s, const char *call, enum memstore_fault *ret_fault)
{
    struct memstore *m = memstore_of(s);
    pthread_mutex_lock(&m->lock);
    leases_expire(m);
    *ret_fault = MEMSTORE_OK;
    if (call != NULL && m->fault != NULL)
        *ret_fault = m->fault(m->fault_ctx, call, ++m->n_calls);
    return m;
}

static int fault_read(enum memstore_fault fault, struct err *err)
{
    if (fault == MEMSTORE_OK)
        return 0;
    if (fault == MEMSTORE_UNAVAILABLE)
        return err_set(err, ERR_UNAVAILABLE, "store unavailable");
    return err_set(err, ERR_SERVER_TIMEOUT, "the store did not answer in time");
}

/* Faults of a write that are known before it is done. */
static int fault_before_write(enum memstore_fault fault, struct err *err)
{
    if (fault == MEMSTORE_UNAVAILABLE)
        return err_set(err, ERR_UNAVAILABLE, "store unavailable");
    if (fault == MEMSTORE_UNDETERMINED_LOST)
        return err_set(err, ERR_UNDETERMINED, "connection to the store lost");
    return 0;
}

static int fault_after_write(enum memstore_fault fault, struct err *err)
{
    if (fault == MEMSTORE_UNDETERMINED_DONE)
        return err_set(err, ERR_UNDETERMINED, "connection to the store lost");
    return 0;
}

static int check_rev(const struct memstore *m, int64_t rev, struct err *err)
{
    if (rev > m->rev)
        return err_set(err, ERR_EXPIRED, "required revision is a future revision");
    if (rev != 0 && rev < m->compact_rev)
        return err_set(err, ERR_EXPIRED, "required revision has been compacted");
    return 0;
}

struct range_walk {
    const char *end; /* "" = none */
    int64_t limit, rev;
    bool keys_only;
    struct store_page *page;
    size_t cap;
};

static bool range_step(void *ctx, const char *key, void *value)
{
    struct range_walk *w = ctx;
    if (w->end[0] != '\0' && strcmp(key, w->end) >= 0)
        return false;
    struct version *v = history_at(value, w->rev);
    if (v == NULL)
        return true;
    struct store_page *p = w->page;
    p->count++;
    if (w->limit > 0 && p->n == (size_t)w->limit) {
        p->more = true;
        return true; /* go on counting */
    }
    if (p->n == w->cap) {
        w->cap = w->cap == 0 ? 16 : w->cap * 2;
        p->kvs = xreallocarray(p->kvs, w->cap, sizeof *p->kvs);
    }
    version_copy(v, !w->keys_only, &p->kvs[p->n++]);
    return true;
}

static int mem_range(struct store *s, const char *from, const char *end, int64_t limit, int64_t rev,
                     bool keys_only, int64_t deadline_ms, struct store_page *ret, struct err *err)
{
    (void)deadline_ms; /* memory does not keep anybody waiting */
    enum memstore_fault fault;
    SCOPED(unlock) struct memstore *m = enter(s, "range", &fault);
    int r = fault_read(fault, err);
    if (r == 0)
        r = check_rev(m, rev, err);
    if (r < 0)
        return r;
    *ret = (struct store_page){.rev = rev == 0 ? m->rev : rev};
    struct range_walk w = {
        .end = end, .limit = limit, .rev = ret->rev, .keys_only = keys_only, .page = ret};
    if (end != NULL) {
        omap_each(m->keys, from, range_step, &w);
        return 0;
    }
    struct history *h = omap_get(m->keys, from);
    w.end = "";
    if (h != NULL)
        range_step(&w, from, h);
    return 0;
}

static int check_txn(struct memstore *m, const struct store_txn *txn, struct err *err)
{
    assert(txn->n_compares <= STORE_TXN_MAX && txn->n_ops <= STORE_TXN_MAX);
    size_t bytes = 0;
    for (size_t i = 0; i < txn->n_ops; i++) {
        const struct store_op *op = &txn->ops[i];
        bytes += strlen(op->key) + (op->value == NULL ? 0 : op->value_len);
        for (size_t j = 0; j < i; j++)
            if (strcmp(op->key, txn->ops[j].key) == 0)
                return err_set(err, ERR_INTERNAL, "duplicate key given in txn request");
        if (op->lease != 0 && lease_find(m, op->lease) == NULL)
            return err_set(err, ERR_NOT_FOUND, "requested lease not found");
    }
    if (bytes > REQUEST_MAX)
        return err_set(err, ERR_TOO_LARGE, "etcdserver: request is too large");
    return 0;
}

static bool compares_hold(struct memstore *m, const struct store_txn *txn)
{
    for (size_t i = 0; i < txn->n_compares; i++) {
        const struct store_compare *c = &txn->compares[i];
        const struct version *v = current(m, c->key);
        int64_t rev = v == NULL ? 0 : c->target == STORE_MOD ? v->mod_rev : v->create_rev;
        if (rev != c->rev)
            return false;
    }
    return true;
}

static void txn_apply(struct memstore *m, const struct store_txn *txn)
{
    struct version *prev[STORE_TXN_MAX];
    size_t n_changes = 0;
    for (size_t i = 0; i < txn->n_ops; i++) {
        prev[i] = current(m, txn->ops[i].key);
        n_changes += txn->ops[i].value != NULL || prev[i] != NULL;
    }
    if (n_changes == 0)
        return;
    m->rev++;
    for (size_t i = 0; i < txn->n_ops; i++)
        if (txn->ops[i].value != NULL || prev[i] != NULL)
            apply(m, &txn->ops[i], prev[i]);
    publish(m);
}

static int mem_txn(struct store *s, const struct store_txn *txn, int64_t deadline_ms,
                   struct store_txn_result *ret, struct err *err)
{
    (void)deadline_ms;
    enum memstore_fault fault;
    SCOPED(unlock) struct memstore *m = enter(s, "txn", &fault);
    int r = fault_before_write(fault, err);
    if (r == 0)
        r = check_txn(m, txn, err);
    if (r < 0)
        return r;
    bool succeeded = compares_hold(m, txn);
    if (succeeded)
        txn_apply(m, txn);
    r = fault_after_write(fault, err);
    if (r < 0)
        return r;
    *ret = (struct store_txn_result){.succeeded = succeeded, .rev = m->rev};
    if (succeeded)
        return 0;
    ret->n_current = txn->n_compares;
    ret->current = xcalloc(txn->n_compares, sizeof *ret->current);
    for (size_t i = 0; i < txn->n_compares; i++) {
        const struct version *v = current(m, txn->compares[i].key);
        if (v != NULL)
            version_copy(v, true, &ret->current[i]);
    }
    return 0;
}

static int mem_compact(struct store *s, int64_t rev, int64_t deadline_ms, struct err *err)
{
    (void)deadline_ms;
    enum memstore_fault fault;
    SCOPED(unlock) struct memstore *m = enter(s, NULL, &fault);
    if (rev <= m->compact_rev)
        return err_set(err, ERR_EXPIRED, "required revision has been compacted");
    int r = check_rev(m, rev, err);
    if (r == 0)
        compact_to(m, rev);
    return r;
}

static int mem_lease_grant(struct store *s, int64_t ttl_s, int64_t deadline_ms, int64_t *ret_id,
                           struct err *err)
{
    (void)deadline_ms;
    enum memstore_fault fault;
    SCOPED(unlock) struct memstore *m = enter(s, "lease", &fault);
    int r = fault_before_write(fault, err);
    if (r < 0)
        return r;
    struct lease l = {.id = ++m->next_lease, .ttl_s = ttl_s};
    l.expires_ms = clock_monotonic_ms(&clock_system) + ttl_s * 1000;
    m->leases = xreallocarray(m->leases, m->n_leases + 1, sizeof *m->leases);
    m->leases[m->n_leases++] = l;
    pthread_cond_broadcast(&m->changed); /* the watches wait for the next expiry too */
    r = fault_after_write(fault, err);
    if (r == 0)
        *ret_id = l.id;
    return r;
}

static int mem_lease_keepalive(struct store *s, int64_t id, int64_t deadline_ms, int64_t *ret_ttl_s,
                               struct err *err)
{
    (void)deadline_ms;
    enum memstore_fault fault;
    SCOPED(unlock) struct memstore *m = enter(s, "lease", &fault);
    int r = fault_read(fault, err); /* like a read it can simply be tried again */
    if (r < 0)
        return r;
    struct lease *l = lease_find(m, id);
    if (l == NULL)
        return err_set(err, ERR_NOT_FOUND, "requested lease not found");
    l->expires_ms = clock_monotonic_ms(&clock_system) + l->ttl_s * 1000;
    *ret_ttl_s = l->ttl_s;
    return 0;
}

static int mem_lease_revoke(struct store *s, int64_t id, int64_t deadline_ms, struct err *err)
{
    (void)deadline_ms;
    enum memstore_fault fault;
    SCOPED(unlock) struct memstore *m = enter(s, "lease", &fault);
    int r = fault_before_write(fault, err);
    if (r < 0)
        return r;
    struct lease *l = lease_find(m, id);
    if (l == NULL)
        return err_set(err, ERR_NOT_FOUND, "requested lease not found");
    lease_end(m, l);
    return fault_after_write(fault, err);
}

static int mem_status(struct store *s, int64_t deadline_ms, int64_t *ret_db_bytes, struct err *err)
{
    (void)deadline_ms;
    enum memstore_fault fault;
    SCOPED(unlock) struct memstore *m = enter(s, "status", &fault);
    int r = fault_read(fault, err);
    if (r < 0)
        return r;
    int64_t bytes = 0;
    for (size_t i = m->log_start; i < m->log_end; i++)
        bytes += (int64_t)m->log[i].now->value_len;
    *ret_db_bytes = bytes;
    return 0;
}

/* ---- watches ---- */

struct batch {
    struct store_event *events;
    size_t n, cap;
    int64_t rev; /* newest revision covered */
};

static void batch_clear(struct batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        store_kv_fini(&b->events[i].kv);
        store_kv_fini(&b->events[i].prev);
    }
    b->n = 0;
}

static void batch_add(struct batch *b, const struct change *c)
{
    if (b->n == b->cap) {
        b->cap = b->cap == 0 ? 16 : b->cap * 2;
        b->events = xreallocarray(b->events, b->cap, sizeof *b->events);
    }
    struct store_event *e = &b->events[b->n++];
    *e = (struct store_event){.is_delete = c->now->is_delete};
    version_copy(c->now, true, &e->kv);
    if (c->prev != NULL)
        version_copy(c->prev, true, &e->prev);
}

/* Whole revisions from w->next_rev on, with the lock held. */
static void batch_fill(struct batch *b, const struct store_watch *w)
{
    const struct memstore *m = w->m;
    size_t prefix_len = strlen(w->prefix);
    b->rev = m->rev;
    for (size_t i = log_find(m, w->next_rev); i < m->log_end; i++) {
        const struct change *c = &m->log[i];
        if (b->n >= BATCH_EVENTS && c->now->mod_rev > m->log[i - 1].now->mod_rev) {
            b->rev = m->log[i - 1].now->mod_rev;
            return;
        }
        if (strncmp(c->now->key, w->prefix, prefix_len) == 0)
            batch_add(b, c);
    }
}

/* Sleeps, with the lock held, until something changed or the next lease ends. */
static void watch_sleep(struct memstore *m)
{
    thread_cond_wait_until(&m->changed, &m->lock, leases_next_expiry_ms(m));
    leases_expire(m);
}

static void watch_report_link(struct store_watch *w, bool is_up)
{
    if (w->ops->on_link == NULL)
        return;
    pthread_mutex_unlock(&w->m->lock);
    w->ops->on_link(w->ctx, is_up);
    pthread_mutex_lock(&w->m->lock);
}

static void watch_deliver(struct store_watch *w, struct batch *b)
{
    batch_fill(b, w);
    w->next_rev = b->rev + 1;
    pthread_mutex_unlock(&w->m->lock);
    w->ops->on_events(w->ctx, b->events, b->n, b->rev);
    batch_clear(b);
    pthread_mutex_lock(&w->m->lock);
}

static void watch_report_lost(struct store_watch *w)
{
    SCOPED(err_fini) struct err err = {0};
    int64_t compact_rev = w->m->compact_rev;
    err_set(&err, ERR_EXPIRED, "required revision has been compacted");
    pthread_mutex_unlock(&w->m->lock);
    w->ops->on_lost(w->ctx, &err, compact_rev);
    pthread_mutex_lock(&w->m->lock);
}

static void *watch_main(void *arg)
{
    struct store_watch *w = arg;
    struct memstore *m = w->m;
    struct batch b = {0};
    bool is_link_up = true;
    if (w->is_from_now)
        w->ops->on_events(w->ctx, NULL, 0, w->next_rev - 1);
    pthread_mutex_lock(&m->lock);
    while (!w->is_stopped) {
        if (is_link_up == m->is_watch_down) {
            is_link_up = !is_link_up;
            watch_report_link(w, is_link_up);
        } else if (!is_link_up || w->next_rev > m->rev) {
            watch_sleep(m);
        } else if (w->next_rev < m->compact_rev) {
            watch_report_lost(w);
            break;
        } else {
            watch_deliver(w, &b);
        }
    }
    pthread_mutex_unlock(&m->lock);
    free(b.events);
    return NULL;
}

static struct store_watch *mem_watch(struct store *s, const char *prefix, int64_t start_rev,
                                     const struct store_watch_ops *ops, void *ctx)
{
    enum memstore_fault fault;
    struct store_watch *w = xcalloc(1, sizeof *w);
    SCOPED(unlock) struct memstore *m = enter(s, NULL, &fault);
    *w = (struct store_watch){.m = m,
                              .prefix = xstrdup(prefix),
                              .next_rev = start_rev == 0 ? m->rev + 1 : start_rev,
                              .is_from_now = start_rev == 0,
                              .ops = ops,
                              .ctx = ctx};
    m->n_watches++;
    thread_start(&w->thread, "memstore watch", watch_main, w);
    return w;
}

static void mem_unwatch(struct store_watch *w)
{
    struct memstore *m = w->m;
    pthread_mutex_lock(&m->lock);
    w->is_stopped = true;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    pthread_join(w->thread, NULL);
    pthread_mutex_lock(&m->lock);
    m->n_watches--;
    pthread_mutex_unlock(&m->lock);
    free(w->prefix);
    free(w);
}

/* ---- start and end ---- */

static bool free_key(void *ctx, const char *key, void *value)
{
    (void)ctx;
    (void)key;
    history_free(value);
    return true;
}

static void mem_free(struct store *s)
{
    struct memstore *m = memstore_of(s);
    assert(m->n_watches == 0);
    for (size_t i = m->log_start; i < m->log_end; i++) {
        version_unref(m->log[i].now);
        version_unref(m->log[i].prev);
    }
    free(m->log);
    omap_each(m->keys, NULL, free_key, NULL);
    omap_free(m->keys);
    free(m->leases);
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

static const struct store_vtable memstore_vtable = {
    .range = mem_range,
    .txn = mem_txn,
    .watch = mem_watch,
    .unwatch = mem_unwatch,
    .compact = mem_compact,
    .lease_grant = mem_lease_grant,
    .lease_keepalive = mem_lease_keepalive,
    .lease_revoke = mem_lease_revoke,
    .status = mem_status,
    .free = mem_free,
};

struct store *memstore_new(void)
{
    struct memstore *m = xcalloc(1, sizeof *m);
    *m = (struct memstore){.store = {.v = &memstore_vtable},
                           .keys = omap_new(),
                           .rev = 1,
                           .max_history = HISTORY_DEFAULT};
    pthread_mutex_init(&m->lock, NULL);
    thread_cond_init(&m->changed);
    return &m->store;
}

void memstore_set_history(struct store *s, size_t revisions)
{
    enum memstore_fault fault;
    SCOPED(unlock) struct memstore *m = enter(s, NULL, &fault);
    m->max_history = revisions;
    publish(m);
}

void memstore_set_fault(struct store *s,
                        enum memstore_fault (*fault)(void *ctx, const char *call, uint64_t n),
                        void *ctx)
{
    enum memstore_fault none;
    SCOPED(unlock) struct memstore *m = enter(s, NULL, &none);
    m->fault = fault;
    m->fault_ctx = ctx;
    m->n_calls = 0;
}

void memstore_set_watch_down(struct store *s, bool is_down)
{
    enum memstore_fault fault;
    SCOPED(unlock) struct memstore *m = enter(s, NULL, &fault);
    m->is_watch_down = is_down;
    pthread_cond_broadcast(&m->changed);
}
