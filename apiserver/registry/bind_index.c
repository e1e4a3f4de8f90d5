/* Members are entries; those that are not reserved are also in the order of their pool: by class,
 * then by node (most members first, then the oldest member, members without a node last), then by
 * age. Reserved ones wait in the order of their time. Source of the order: C8 to C11 in
 * docs/reconcile.md. */
#include "apiserver/registry/bind_index.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"

struct node {
    char *rank;           /* its key in order->nodes_by_rank; NULL = not in it */
    struct omap *members; /* by age → struct entry */
};
struct order {         /* of one pool and class */
    struct map *nodes; /* by name → struct node; only those with members */
    struct omap *nodes_by_rank;
    size_t n;
};
struct pool {
    char *key; /* NAMESPACE/POOL */
    struct order orders[BIND_CLASSES];
    size_t n_entries; /* reserved ones too; the pool goes with the last */
};
struct entry {
    char *item, *node;
    struct pool *pool;
    enum bind_class class;
    char *age;           /* its key among the members of a node */
    int64_t until_ms;    /* reserved; 0 = free */
    char *timer;         /* its key in reserved; NULL = free */
    bool ends_by_change; /* of the reservation */
};
struct bind_index {
    pthread_mutex_t lock;
    struct map *pools, *entries; /* by NAMESPACE/POOL, by NAMESPACE/NAME */
    struct omap *reserved;       /* by time */
    uint64_t seq;                /* arrivals so far: the order within one second */
};

struct bind_index *bind_index_new(void)
{
    struct bind_index *x = xcalloc(1, sizeof *x);
    pthread_mutex_init(&x->lock, NULL);
    x->pools = map_new();
    x->entries = map_new();
    x->reserved = omap_new();
    return x;
}

/* ---- one order ---- */

/* Members without a node come last: which node they will burden is not known. */
static char *rank_of(const char *node_name, const struct node *node, const char *first_age)
{
    uint64_t weight = *node_name ? omap_len(node->members) : 0;
    return xasprintf("%016" PRIx64 " %s", UINT64_MAX - weight, first_age);
}

static bool take_key(void *ctx, const char *key, void *value)
{
    (void)value;
    *(const char **)ctx = key;
    return false;
}

/* ctx: a pointer to a pointer of the value's type. */
static bool take_value(void *ctx, const char *key, void *value)
{
    (void)key;
    memcpy(ctx, &value, sizeof value);
    return false;
}

/* Takes the node out of the ranks, or puts it to where it belongs now. */
static void rank_drop(struct order *o, struct node *node)
{
    if (node->rank)
        omap_del(o->nodes_by_rank, node->rank);
    free(node->rank);
    node->rank = NULL;
}

static void rank_set(struct order *o, const char *name, struct node *node)
{
    const char *first = NULL;
    omap_each(node->members, NULL, take_key, &first);
    rank_drop(o, node);
    node->rank = rank_of(name, node, first);
    omap_put(o->nodes_by_rank, node->rank, node);
}

static void order_add(struct order *o, struct entry *e)
{
    if (!o->nodes) {
        o->nodes = map_new();
        o->nodes_by_rank = omap_new();
    }
    struct node *node = map_get(o->nodes, e->node);
    if (!node) {
        node = xcalloc(1, sizeof *node);
        node->members = omap_new();
        map_put(o->nodes, e->node, node);
    }
    omap_put(node->members, e->age, e);
    rank_set(o, e->node, node);
    o->n++;
}

static void order_remove(struct order *o, const struct entry *e)
{
    struct node *node = map_get(o->nodes, e->node);
    omap_del(node->members, e->age);
    o->n--;
    if (omap_len(node->members) > 0) {
        rank_set(o, e->node, node);
        return;
    }
    rank_drop(o, node);
    map_del(o->nodes, e->node);
    omap_free(node->members);
    free(node);
}

struct nth {
    unsigned left;
    struct entry *found;
};

static bool take_nth(void *ctx, const char *key, void *value)
{
    struct nth *nth = ctx;
    (void)key;
    nth->found = value;
    return nth->left-- > 0;
}

static struct entry *order_first(const struct order *o, unsigned skip)
{
    struct node *node = NULL;
    if (o->n == 0)
        return NULL;
    omap_each(o->nodes_by_rank, NULL, take_value, &node);
    assert(node);
    struct nth nth = {.left = (unsigned)(skip % omap_len(node->members))};
    omap_each(node->members, NULL, take_nth, &nth);
    return nth.found;
}

static void order_fini(struct order *o)
{
    assert(o->n == 0);
    map_free(o->nodes);
    omap_free(o->nodes_by_rank);
}

/* ---- entries; the lock is held ---- */

static void unreserve(struct bind_index *x, struct entry *e)
{
    if (!e->timer)
        return;
    omap_del(x->reserved, e->timer);
    free(e->timer);
    e->timer = NULL;
    e->until_ms = 0;
    e->ends_by_change = false;
}

static void reserve(struct bind_index *x, struct entry *e, int64_t until_ms, bool ends_by_change)
{
    unreserve(x, e);
    e->until_ms = until_ms;
    e->ends_by_change = ends_by_change;
    e->timer = xasprintf("%016" PRIx64 " %s", (uint64_t)until_ms, e->item);
    omap_put(x->reserved, e->timer, e);
}

static struct pool *pool_of(struct bind_index *x, const char *item, const char *pool_name)
{
    const char *slash = strchr(item, '/');
    SCOPED_FREE char *key = xasprintf("%.*s/%s", (int)(slash - item), item, pool_name);
    struct pool *pool = map_get(x->pools, key);
    if (!pool) {
        pool = xcalloc(1, sizeof *pool);
        pool->key = steal(&key);
        map_put(x->pools, pool->key, pool);
    }
    return pool;
}

static void pool_leave(struct bind_index *x, struct pool *pool)
{
    if (--pool->n_entries > 0)
        return;
    map_del(x->pools, pool->key);
    for (size_t i = 0; i < BIND_CLASSES; i++)
        order_fini(&pool->orders[i]);
    free(pool->key);
    free(pool);
}

static void entry_hide(struct entry *e)
{
    if (!e->timer)
        order_remove(&e->pool->orders[e->class], e);
}

static void entry_show(struct entry *e)
{
    if (!e->timer)
        order_add(&e->pool->orders[e->class], e);
}

static void entry_drop(struct bind_index *x, struct entry *e)
{
    entry_hide(e);
    unreserve(x, e);
    pool_leave(x, e->pool);
    map_del(x->entries, e->item);
    free(e->item);
    free(e->node);
    free(e->age);
    free(e);
}

static struct entry *entry_new(struct bind_index *x, const char *item, int64_t created_s)
{
    struct entry *e = xcalloc(1, sizeof *e);
    e->item = xstrdup(item);
    e->age = xasprintf("%016" PRIx64 "%016" PRIx64, (uint64_t)created_s, ++x->seq);
    map_put(x->entries, e->item, e);
    return e;
}

void bind_index_put(struct bind_index *x, const char *item, const struct bind_member *m)
{
    pthread_mutex_lock(&x->lock);
    struct entry *e = map_get(x->entries, item);
    struct pool *pool = pool_of(x, item, m->pool);
    pool->n_entries++;
    if (e) {
        entry_hide(e);
        if (e->ends_by_change)
            unreserve(x, e);
        pool_leave(x, e->pool);
        free(e->node);
    } else {
        e = entry_new(x, item, m->created_s);
    }
    e->pool = pool;
    e->node = xstrdup(m->node);
    e->class = m->class;
    entry_show(e);
    pthread_mutex_unlock(&x->lock);
}

void bind_index_remove(struct bind_index *x, const char *item)
{
    pthread_mutex_lock(&x->lock);
    struct entry *e = map_get(x->entries, item);
    if (e)
        entry_drop(x, e);
    pthread_mutex_unlock(&x->lock);
}

/* ---- taking ---- */

/* Reservations whose time is over: whoever took them never came back. */
static void end_reservations(struct bind_index *x, int64_t now_ms)
{
    for (;;) {
        struct entry *e = NULL;
        omap_each(x->reserved, NULL, take_value, &e);
        if (!e || e->until_ms > now_ms)
            return;
        unreserve(x, e);
        entry_show(e);
    }
}

static void take(struct bind_index *x, struct entry *e, int64_t until_ms)
{
    if (until_ms == 0)
        return;
    entry_hide(e);
    reserve(x, e, until_ms, false);
}

static struct pool *pool_find(const struct bind_index *x, const char *namespace_name,
                              const char *pool)
{
    SCOPED_FREE char *key = xasprintf("%s/%s", namespace_name, pool);
    return map_get(x->pools, key);
}

char *bind_index_take(struct bind_index *x, const char *namespace_name, const char *pool_name,
                      unsigned skip, int64_t now_ms, int64_t until_ms)
{
    char *name = NULL;
    pthread_mutex_lock(&x->lock);
    end_reservations(x, now_ms);
    const struct pool *pool = pool_find(x, namespace_name, pool_name);
    struct entry *e = NULL;
    for (int class = BIND_READY; pool && !e && class < BIND_PENDING; class ++)
        e = order_first(&pool->orders[class], skip);
    if (e) {
        name = xstrdup(strchr(e->item, '/') + 1);
        take(x, e, until_ms);
    }
    pthread_mutex_unlock(&x->lock);
    return name;
}

bool bind_index_take_item(struct bind_index *x, const char *item, int64_t now_ms, int64_t until_ms)
{
    pthread_mutex_lock(&x->lock);
    end_reservations(x, now_ms);
    struct entry *e = map_get(x->entries, item);
    bool is_taken = e && !e->timer;
    if (is_taken)
        take(x, e, until_ms);
    pthread_mutex_unlock(&x->lock);
    return is_taken;
}

void bind_index_release(struct bind_index *x, const char *item)
{
    pthread_mutex_lock(&x->lock);
    struct entry *e = map_get(x->entries, item);
    if (e && e->timer) {
        unreserve(x, e);
        entry_show(e);
    }
    pthread_mutex_unlock(&x->lock);
}

void bind_index_put_aside(struct bind_index *x, const char *item, int64_t until_ms)
{
    pthread_mutex_lock(&x->lock);
    struct entry *e = map_get(x->entries, item);
    if (e && e->timer)
        reserve(x, e, until_ms, true);
    pthread_mutex_unlock(&x->lock);
}

size_t bind_index_count(struct bind_index *x, const char *namespace_name, const char *pool_name,
                        enum bind_class class)
{
    pthread_mutex_lock(&x->lock);
    const struct pool *pool = pool_find(x, namespace_name, pool_name);
    size_t n = pool ? pool->orders[class].n : 0;
    pthread_mutex_unlock(&x->lock);
    return n;
}

/* ---- the end ---- */

struct all {
    struct entry **v;
    size_t n;
};

static bool collect(void *ctx, const char *key, void *value)
{
    struct all *all = ctx;
    (void)key;
    all->v[all->n++] = value;
    return true;
}

void bind_index_clear(struct bind_index *x)
{
    pthread_mutex_lock(&x->lock);
    struct all all = {.v = xcalloc(map_len(x->entries) + 1, sizeof *all.v)};
    map_each(x->entries, collect, &all);
    for (size_t i = 0; i < all.n; i++)
        entry_drop(x, all.v[i]);
    free(all.v);
    pthread_mutex_unlock(&x->lock);
}

void bind_index_free(struct bind_index *x)
{
    if (!x)
        return;
    bind_index_clear(x);
    map_free(x->pools);
    map_free(x->entries);
    omap_free(x->reserved);
    pthread_mutex_destroy(&x->lock);
    free(x);
}
