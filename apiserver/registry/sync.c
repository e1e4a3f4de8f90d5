/* Keeps the tables equal to the store: loads them at one revision, then follows one watch over the
 * whole key space, so that every revision that exists moves the cache's, ours or not. The watch
 * starts a little before the load: what came before it fills the history, and clients resume their
 * watches after a restart as if nothing had been. When the watch is lost for good (compacted away),
 * everything is loaded anew and all watches have to start over. */
#include <assert.h>
#include <inttypes.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/thread.h"
#include "apiserver/registry/cache.h"

#define PAGE_KEYS 500
#define PAGE_MS 10000 /* for one page */
/* Revisions before the load that are asked for; a restart should not read much. */
#define HISTORY_AT_START 5000
#define RETRY_MIN_MS 100
#define RETRY_MAX_MS 2000

/* ---- loading ---- */

static void load_kv(struct table *t, struct store_kv *kv)
{
    const char *item = kv->key + strlen(t->prefix);
    struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    if (alias_object(t->kind, kv, &o, &err) == 0) {
        table_put_loaded(t, item, o);
        return;
    }
    log_error("object not readable key=%s: %s; reads of it fail until it is mended", kv->key,
              err_text(&err));
    table_put_unreadable(t, item);
}

/* All keys of a table at *rev; 0 = the newest, which *rev then tells. */
static int load_table(struct registry *r, struct table *t, int64_t *rev, struct err *err)
{
    SCOPED_FREE char *end = store_prefix_end(t->prefix);
    SCOPED_FREE char *from = xstrdup(t->prefix);
    for (bool more = true; more;) {
        SCOPED(store_page_fini) struct store_page page = {0};
        int64_t deadline_ms = clock_monotonic_ms(&clock_system) + PAGE_MS;
        int rc = store_range(r->store, from, end, PAGE_KEYS, *rev, false, deadline_ms, &page, err);
        if (rc < 0)
            return rc;
        *rev = page.rev;
        more = page.more && page.n > 0;
        if (more) {
            free(from);
            from = xasprintf("%s\001", page.kvs[page.n - 1].key);
        }
        for (size_t i = 0; i < page.n; i++)
            load_kv(t, &page.kvs[i]);
    }
    return 0;
}

/* A registry-shaped holder of fresh tables, filled while the old ones go on serving. */
static struct table *tables_new(struct registry *r)
{
    struct table *tables = xcalloc(r->n_tables, sizeof *tables);
    for (size_t i = 0; i < r->n_tables; i++) {
        table_init(&tables[i], r, r->tables[i].kind);
        table_clear(&tables[i], 0);
    }
    return tables;
}

static void tables_free(struct registry *r, struct table *tables)
{
    for (size_t i = 0; i < r->n_tables; i++)
        table_fini(&tables[i]);
    free(tables);
}

/* Gives the table what was loaded for it; what it had goes with loaded. In the same moment watches
 * hear that they have to start over: a bookmark in between would tell them that they have all. */
static void table_take(struct table *t, struct table *loaded, int64_t rev, struct wake_list *wake)
{
    pthread_rwlock_wrlock(&t->lock);
    struct omap *objects = t->objects, *unreadable = t->unreadable;
    t->objects = omap_new();
    t->unreadable = omap_new();
    table_clear(t, rev);
    omap_free(t->objects);
    omap_free(t->unreadable);
    t->objects = loaded->objects;
    t->unreadable = loaded->unreadable;
    loaded->objects = objects;
    loaded->unreadable = unreadable;
    watches_expire(t, rev, wake);
    pthread_rwlock_unlock(&t->lock);
}

static int load(struct registry *r, struct err *err)
{
    int64_t rev = 0;
    struct table *loaded = tables_new(r);
    int rc = 0;
    for (size_t i = 0; i < r->n_tables && rc == 0; i++)
        rc = load_table(r, &loaded[i], &rev, err);
    if (rc == 0) {
        struct wake_list wake = {0};
        for (size_t i = 0; i < r->n_tables; i++)
            table_take(&r->tables[i], &loaded[i], rev, &wake);
        bind_reload(r->bind, r);
        pthread_mutex_lock(&r->mutex);
        r->loaded_rev = rev;
        r->is_loaded = true;
        r->has_history = false;
        r->is_lost = false;
        pthread_mutex_unlock(&r->mutex);
        wake_list_run(r, &wake);
        registry_move(r, rev);
    }
    tables_free(r, loaded);
    return rc;
}

/* ---- the store's watch; its thread ---- */

static void end_replay(struct registry *r, int64_t since)
{
    for (size_t i = 0; i < r->n_tables; i++) {
        struct table *t = &r->tables[i];
        pthread_rwlock_wrlock(&t->lock);
        table_end_replay(t, since);
        pthread_rwlock_unlock(&t->lock);
    }
    pthread_mutex_lock(&r->mutex);
    r->has_history = true;
    pthread_cond_broadcast(&r->moved);
    pthread_mutex_unlock(&r->mutex);
}

/* What a watch brought that was lost before it reached the load does not count: the next one begins
 * anew. */
static void restart_replay(struct registry *r)
{
    for (size_t i = 0; i < r->n_tables; i++) {
        pthread_rwlock_wrlock(&r->tables[i].lock);
        table_restart_replay(&r->tables[i]);
        pthread_rwlock_unlock(&r->tables[i].lock);
    }
}

static void apply_to(struct registry *r, struct table *t, const char *item, struct store_event *e,
                     struct wake_list *wake)
{
    const struct change *c = NULL;
    pthread_rwlock_wrlock(&t->lock);
    if (e->kv.mod_rev <= r->watch_loaded_rev) {
        table_replay(t, item, e);
    } else {
        c = table_apply(t, item, e);
        if (c)
            watches_note(t, wake);
    }
    pthread_rwlock_unlock(&t->lock);
    if (c)
        bind_note(r->bind, t, item, c); /* only this thread changes the ring, so c is still there */
}

static struct store_kv copy_kv(const struct store_kv *kv)
{
    struct store_kv copy = *kv;
    copy.key = kv->key ? xstrdup(kv->key) : NULL;
    copy.value = kv->value ? xmemdup(kv->value, kv->value_len + 1) : NULL;
    return copy;
}

/* Few keys are in two tables; the last takes the event's own bytes. */
static void apply_event(struct registry *r, struct store_event *e, struct wake_list *wake)
{
    const char *item, *next_item;
    size_t index = 0;
    struct table *t = key_table(r, e->kv.key, &index, &item), *next;
    while (t && (next = key_table(r, e->kv.key, &index, &next_item)) != NULL) {
        SCOPED(store_kv_fini) struct store_kv kv = copy_kv(&e->kv);
        SCOPED(store_kv_fini) struct store_kv prev = copy_kv(&e->prev);
        struct store_event copy = {.is_delete = e->is_delete, .kv = kv, .prev = prev};
        apply_to(r, t, item, &copy, wake);
        kv.value = copy.kv.value; /* taken, or still ours */
        prev.value = copy.prev.value;
        t = next;
        item = next_item;
    }
    if (t)
        apply_to(r, t, item, e, wake);
}

static void on_events(void *ctx, struct store_event *events, size_t n, int64_t rev)
{
    struct registry *r = ctx;
    struct wake_list wake = {0};
    for (size_t i = 0; i < n; i++) {
        if (r->is_replaying && events[i].kv.mod_rev > r->watch_loaded_rev) {
            r->is_replaying = false;
            end_replay(r, r->watch_since);
        }
        apply_event(r, &events[i], &wake);
    }
    if (r->is_replaying && rev >= r->watch_loaded_rev) {
        r->is_replaying = false;
        end_replay(r, r->watch_since);
    }
    registry_move(r, rev);
    wake_list_run(r, &wake);
}

static void on_lost(void *ctx, const struct err *err, int64_t compact_rev)
{
    struct registry *r = ctx;
    if (err->code == ERR_EXPIRED && r->is_replaying && compact_rev <= r->watch_loaded_rev)
        log_info("history begins behind compact_rev=%" PRId64, compact_rev);
    else if (err->code == ERR_EXPIRED)
        log_warn("watch of the store lost compact_rev=%" PRId64 ": %s, loading anew", compact_rev,
                 err_text(err));
    pthread_mutex_lock(&r->mutex);
    r->is_lost = true;
    r->lost_compact_rev = compact_rev;
    pthread_cond_broadcast(&r->moved);
    pthread_mutex_unlock(&r->mutex);
}

static void on_link(void *ctx, bool is_up)
{
    struct registry *r = ctx;
    pthread_mutex_lock(&r->mutex);
    r->is_link_up = is_up;
    pthread_mutex_unlock(&r->mutex);
}

static const struct store_watch_ops watch_ops = {
    .on_events = on_events, .on_lost = on_lost, .on_link = on_link};

/* ---- the sync thread ---- */

/* Waits that long, or until the registry stops; true then. */
static bool pause_or_stop(struct registry *r, int64_t ms)
{
    int64_t until_ms = clock_monotonic_ms(&clock_system) + ms;
    pthread_mutex_lock(&r->mutex);
    while (!r->is_stopping && clock_monotonic_ms(&clock_system) < until_ms)
        thread_cond_wait_until(&r->moved, &r->mutex, until_ms);
    bool is_stopping = r->is_stopping;
    pthread_mutex_unlock(&r->mutex);
    return is_stopping;
}

/* Loads until it works; false when stopping. */
static bool load_until_done(struct registry *r)
{
    int64_t wait_ms = RETRY_MIN_MS;
    for (int tries = 0;; tries++) {
        SCOPED(err_fini) struct err err = {0};
        if (load(r, &err) == 0)
            return true;
        if (tries == 0)
            log_warn("cannot load from the store: %s, trying again", err_text(&err));
        if (pause_or_stop(r, wait_ms))
            return false;
        wait_ms = 2 * wait_ms < RETRY_MAX_MS ? 2 * wait_ms : RETRY_MAX_MS;
    }
}

/* Follows the store until the watch is lost (true) or the registry stops (false). */
static bool follow(struct registry *r, int64_t start_rev)
{
    r->watch_loaded_rev = r->loaded_rev;
    r->watch_since = start_rev - 1;
    r->is_replaying = start_rev <= r->loaded_rev;
    restart_replay(r);
    if (!r->is_replaying)
        end_replay(r, r->loaded_rev);
    pthread_mutex_lock(&r->mutex);
    r->is_lost = false;
    r->is_link_up = true; /* the load worked a moment ago; on_link tells when that ends */
    pthread_mutex_unlock(&r->mutex);
    struct store_watch *watch = store_watch(r->store, "", start_rev, &watch_ops, r);
    pthread_mutex_lock(&r->mutex);
    while (!r->is_lost && !r->is_stopping)
        thread_cond_wait_until(&r->moved, &r->mutex, INT64_MAX);
    bool is_stopping = r->is_stopping;
    r->is_link_up = false;
    pthread_mutex_unlock(&r->mutex);
    store_unwatch(r->store, watch);
    return !is_stopping;
}

/* Where to follow from after losing the watch: behind what was compacted, if nothing newer than the
 * load is missing. */
static bool may_follow_from(const struct registry *r, int64_t *start_rev)
{
    if (!r->is_replaying || r->lost_compact_rev > r->loaded_rev || r->lost_compact_rev < *start_rev)
        return false;
    *start_rev = r->lost_compact_rev + 1;
    return true;
}

void *sync_run(void *registry)
{
    struct registry *r = registry;
    bool goes_on = true;
    while (goes_on && load_until_done(r)) {
        int64_t start_rev = r->loaded_rev - HISTORY_AT_START;
        start_rev = start_rev > 2 ? start_rev : 2; /* revision 1 is the empty store */
        log_info("loaded rev=%" PRId64 ", following from rev=%" PRId64, r->loaded_rev, start_rev);
        do
            goes_on = follow(r, start_rev);
        while (goes_on && may_follow_from(r, &start_rev));
    }
    return NULL;
}
