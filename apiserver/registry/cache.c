/* A table: the objects of one kind and the ring of its latest changes. Objects are shared between
 * map, ring, watches and readers by reference, so the ring costs only what is no longer live. */
#include <assert.h>

#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/metric.h"
#include "apiserver/registry/cache.h"
#include "openapi/kinds.h"

static struct metric objects_gauge = {
    .name = "apiserver_storage_objects",
    .help = "Objects stored, by resource.",
    .type = METRIC_GAUGE,
    .labels = {"resource"},
};

static struct metric bytes_gauge = {
    .name = "agent_sandbox_cache_bytes",
    .help =
        "JSON in the cache, by resource: of live objects, and of states that running watches may "
        "still ask for.",
    .type = METRIC_GAUGE,
    .labels = {"resource", "part"},
};

static struct metric events_counter = {
    .name = "apiserver_watch_events_total",
    .help = "Events sent to watches.",
    .type = METRIC_COUNTER,
    .labels = {"group", "version", "resource"},
};

void table_measure(struct table *t)
{
    SCOPED_FREE char *resource = kind_resource_name(t->kind);
    const struct kind *k = t->kind;
    uint64_t n_told = __atomic_exchange_n(&t->n_told, 0, __ATOMIC_RELAXED);
    metric_add(&events_counter, (double)n_told,
               (const char *const[]){k->group, k->version, k->plural});
    pthread_rwlock_rdlock(&t->lock);
    metric_set(&objects_gauge, (double)omap_len(t->objects), (const char *const[]){resource});
    metric_set(&bytes_gauge, (double)t->object_bytes, (const char *const[]){resource, "objects"});
    metric_set(&bytes_gauge, (double)t->ring_bytes, (const char *const[]){resource, "history"});
    pthread_rwlock_unlock(&t->lock);
}

/* ---- the ring ---- */

#define RING_FIRST_CAP ((size_t)64)

static struct change *ring_at(const struct table *t, size_t i)
{
    return &t->ring[(t->ring_first + i) % t->ring_cap];
}

static void change_fini(struct change *c)
{
    object_unref(c->now);
    object_unref(c->before);
    *c = (struct change){0};
}

/* What a change keeps alive that would be gone without it. */
static size_t change_bytes(const struct change *c)
{
    return sizeof *c + (c->before ? c->before->json_len + sizeof *c->before : 0);
}

static void ring_drop_oldest(struct table *t)
{
    struct change *c = ring_at(t, 0);
    int64_t *since = t->replay ? &t->replay_since : &t->history_since;
    if (c->rev > *since)
        *since = c->rev;
    t->ring_bytes -= change_bytes(c);
    change_fini(c);
    t->ring_first = (t->ring_first + 1) % t->ring_cap;
    t->ring_n--;
    t->first_seq++;
}

static void ring_clear(struct table *t)
{
    while (t->ring_n > 0)
        ring_drop_oldest(t);
}

static void ring_grow(struct table *t)
{
    size_t cap = t->ring_cap ? 2 * t->ring_cap : RING_FIRST_CAP;
    struct change *ring = xcalloc(cap, sizeof *ring);
    for (size_t i = 0; i < t->ring_n; i++)
        ring[i] = *ring_at(t, i);
    free(t->ring);
    t->ring = ring;
    t->ring_cap = cap;
    t->ring_first = 0;
}

/* Appends; the newest change always stays, however big. */
static const struct change *ring_add(struct table *t, struct change take_c)
{
    while (t->ring_n > 0 && (t->ring_n >= t->registry->history_events ||
                             t->ring_bytes + change_bytes(&take_c) > t->registry->history_bytes))
        ring_drop_oldest(t);
    if (t->ring_n == t->ring_cap)
        ring_grow(t);
    struct change *c = ring_at(t, t->ring_n++);
    *c = take_c;
    t->ring_bytes += change_bytes(c);
    return c;
}

const struct change *table_change(const struct table *t, uint64_t seq)
{
    assert(seq >= t->first_seq && seq - t->first_seq < t->ring_n);
    return ring_at(t, (size_t)(seq - t->first_seq));
}

uint64_t table_seq_after(const struct table *t, int64_t rev)
{
    size_t low = 0, high = t->ring_n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ring_at(t, middle)->rev > rev)
            high = middle;
        else
            low = middle + 1;
    }
    return t->first_seq + low;
}

int64_t table_find_write(const struct table *t, const char *namespace_name, const char *name,
                         int64_t rev, const char *uid, const char *json, bool is_delete)
{
    for (uint64_t seq = table_seq_after(t, rev); seq < t->first_seq + t->ring_n; seq++) {
        const struct change *c = table_change(t, seq);
        const struct object *o = c->now;
        if (c->is_delete != is_delete || strcmp(o->name, name) != 0 ||
            strcmp(o->namespace_name, namespace_name) != 0 || strcmp(o->uid, uid) != 0)
            continue;
        if (is_delete ? c->before->rev == rev : !json || strcmp(o->json, json) == 0)
            return c->rev;
    }
    return 0;
}

/* ---- the table ---- */

void table_init(struct table *t, struct registry *r, const struct kind *kind)
{
    *t = (struct table){.registry = r, .kind = kind};
    const struct kind *stored = alias_stored_kind(kind);
    t->prefix =
        xasprintf("%s%s/%s/", r->prefix, stored->group[0] ? stored->group : "core", stored->plural);
    pthread_rwlockattr_t attr;
    pthread_rwlockattr_init(&attr);
    /* Readers come in crowds; without this they could keep changes waiting. */
    pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&t->lock, &attr);
    pthread_rwlockattr_destroy(&attr);
    t->objects = omap_new();
    t->unreadable = omap_new();
}

static bool unref_each(void *ctx, const char *key, void *value)
{
    (void)ctx, (void)key;
    object_unref(value);
    return true;
}

static void object_map_free(struct omap *m)
{
    if (m)
        omap_each(m, NULL, unref_each, NULL);
    omap_free(m);
}

void table_fini(struct table *t)
{
    ring_clear(t);
    free(t->ring);
    object_map_free(t->objects);
    object_map_free(t->replay);
    omap_free(t->unreadable);
    pthread_rwlock_destroy(&t->lock);
    free(t->prefix);
}

void table_clear(struct table *t, int64_t rev)
{
    ring_clear(t);
    object_map_free(t->objects);
    object_map_free(t->replay);
    omap_free(t->unreadable);
    t->objects = omap_new();
    t->object_bytes = 0;
    t->unreadable = omap_new();
    t->replay = omap_new();
    t->history_since = rev;
    t->replay_since = 0;
    t->last_change = rev; /* what was deleted until now is not known */
}

/* take_object left the map; may be NULL. */
static void forget_object(struct table *t, struct object *take_object)
{
    t->object_bytes -= take_object ? take_object->json_len : 0;
    object_unref(take_object);
}

static void put_object(struct table *t, const char *item, struct object *take_object)
{
    if (omap_len(t->unreadable) > 0)
        omap_del(t->unreadable, item);
    t->object_bytes += take_object->json_len;
    forget_object(t, omap_put(t->objects, item, take_object));
}

void table_put_loaded(struct table *t, const char *item, struct object *take_object)
{
    put_object(t, item, take_object);
}

static char marker[] = "";

void table_put_unreadable(struct table *t, const char *item)
{
    omap_put(t->unreadable, item, marker);
    forget_object(t, omap_del(t->objects, item));
}

int64_t table_rev(const struct table *t)
{
    int64_t reached = __atomic_load_n(&t->registry->rev, __ATOMIC_ACQUIRE);
    return reached > t->last_change ? reached : t->last_change;
}

/* ---- changes ---- */

static struct object *object_of_event(const struct table *t, struct store_kv *kv)
{
    struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    if (alias_object(t->kind, kv, &o, &err) < 0)
        log_error("object not readable key=%s: %s; reads of it fail until it is mended", kv->key,
                  err_text(&err));
    return o;
}

static const struct change *apply_delete(struct table *t, const char *item, int64_t rev)
{
    if (omap_len(t->unreadable) > 0)
        omap_del(t->unreadable, item);
    struct object *before = omap_del(t->objects, item);
    if (!before)
        return NULL;
    t->object_bytes -= before->json_len;
    return ring_add(t, (struct change){rev, object_at_rev(before, rev), before, true});
}

static const struct change *apply_put(struct table *t, const char *item, struct store_event *e)
{
    struct object *now = object_of_event(t, &e->kv);
    if (!now) {
        /* For watchers it is as good as gone; readers are told the truth. */
        const struct change *c = apply_delete(t, item, e->kv.mod_rev);
        table_put_unreadable(t, item);
        return c;
    }
    struct object *before = omap_get(t->objects, item);
    struct change c = {now->rev, object_ref(now), before ? object_ref(before) : NULL, false};
    put_object(t, item, now);
    return ring_add(t, c);
}

const struct change *table_apply(struct table *t, const char *item, struct store_event *e)
{
    const struct object *before = omap_get(t->objects, item);
    if (before && before->rev >= e->kv.mod_rev)
        return NULL; /* loaded already */
    const struct change *c =
        e->is_delete ? apply_delete(t, item, e->kv.mod_rev) : apply_put(t, item, e);
    t->last_change = e->kv.mod_rev;
    return c;
}

/* ---- changes before the load ---- */

/* The state at kv: the live object when it is that one, else made of the event's bytes. NULL when
 * it cannot be known. */
static struct object *replayed(struct table *t, const char *item, struct store_kv *kv)
{
    struct object *live = omap_get(t->objects, item);
    struct object *last = omap_get(t->replay, item);
    if (live && live->rev == kv->mod_rev)
        return object_ref(live);
    if (last && last->rev == kv->mod_rev)
        return object_ref(last);
    return kv->value ? object_of_event(t, kv) : NULL;
}

void table_replay(struct table *t, const char *item, struct store_event *e)
{
    bool has_before = e->prev.key != NULL;
    struct object *before = has_before ? replayed(t, item, &e->prev) : NULL;
    bool is_update = e->is_delete || e->kv.create_rev < e->kv.mod_rev;
    struct object *now = NULL;
    if (e->is_delete && before)
        now = object_at_rev(before, e->kv.mod_rev);
    else if (!e->is_delete)
        now = replayed(t, item, &e->kv);
    if (!now || (is_update && !before)) {
        /* The state before was compacted: what watchers would have to be told is not known, so
         * history begins behind. */
        ring_clear(t);
        t->replay_since = e->kv.mod_rev;
        object_unref(before);
    } else {
        ring_add(t, (struct change){e->kv.mod_rev, object_ref(now), before, e->is_delete});
    }
    if (e->is_delete || !now) {
        object_unref(omap_del(t->replay, item));
        object_unref(now);
    } else {
        object_unref(omap_put(t->replay, item, now));
    }
}

void table_restart_replay(struct table *t)
{
    object_map_free(t->replay);
    t->replay = omap_new();
    t->replay_since = 0;
    ring_clear(t);
    t->replay_since = 0;
}

void table_end_replay(struct table *t, int64_t since)
{
    object_map_free(t->replay);
    t->replay = NULL;
    t->history_since = t->replay_since > since ? t->replay_since : since;
}
