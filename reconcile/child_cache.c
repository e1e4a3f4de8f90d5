#include "reconcile/child_cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "reconcile/child.h"
#include "reconcile/keys.h"
#include "reconcile/trouble.h"

struct entry {
    char *json;   /* reduced object */
    char *owner;  /* name of the object of ours that its changes concern, or NULL */
    char *hash;   /* tracking label, or NULL */
    uint64_t rev; /* numeric resourceVersion */
};

struct child_cache {
    enum child child; /* these three are constant */
    child_change_fn on_child;
    void *ctx;
    pthread_mutex_t lock; /* guards all below, and the entries: others may exchange them */
    struct omap *by_name; /* ns/name -> entry */
    struct omap *by_hash; /* ns/hash/name -> the same entry */
    uint64_t seen_rev;    /* the watch has told everything up to it */
    bool is_synced;
};

static const struct child_kind child_kinds[CHILD_KINDS] = {
    [CHILD_POD] = {"/api/v1", "pods", LABEL_NAME_HASH, GROUP_AGENTS, KIND_SANDBOX},
    [CHILD_SERVICE] = {"/api/v1", "services", NULL, GROUP_AGENTS, KIND_SANDBOX},
    [CHILD_PVC] = {"/api/v1", "persistentvolumeclaims", LABEL_NAME_HASH, GROUP_AGENTS,
                   KIND_SANDBOX},
    [CHILD_NETPOL] = {"/apis/networking.k8s.io/v1", "networkpolicies", NULL, GROUP_EXTENSIONS,
                      KIND_TEMPLATE},
};

const struct child_kind *child_kind_of(enum child child)
{
    return &child_kinds[child];
}

/* ---- entries ---- */

static void entry_free(struct entry *e)
{
    if (!e)
        return;
    free(e->json);
    free(e->owner);
    free(e->hash);
    free(e);
}

/* What passes look at; the rest of a Pod (its spec above all) is not kept. */
static cJSON *reduce(enum child child, const cJSON *object)
{
    cJSON *out = json_object();
    cJSON *meta = json_copy(json_get(object, "metadata"));
    json_remove(meta, "managedFields");
    json_set(out, "metadata", meta ? meta : json_object());
    if (child == CHILD_SERVICE || child == CHILD_NETPOL) {
        bool is_service = child == CHILD_SERVICE;
        json_set_str(out, "apiVersion", is_service ? "v1" : "networking.k8s.io/v1");
        json_set_str(out, "kind", is_service ? "Service" : "NetworkPolicy");
        json_set(out, "spec", json_copy(json_get(object, "spec")));
        return out;
    }
    const cJSON *node = json_at(object, "spec.nodeName");
    if (child == CHILD_POD && node)
        json_set(json_ensure_object(out, "spec"), "nodeName", json_copy(node));
    if (child == CHILD_POD && json_get(object, "status")) {
        static const char *const kept[] = {"phase", "reason", "message", "podIPs", "conditions"};
        cJSON *status = json_ensure_object(out, "status");
        for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
            const cJSON *v = json_get(json_get(object, "status"), kept[i]);
            if (v)
                json_set(status, kept[i], json_copy(v));
        }
        static const char *const lists[] = {"initContainerStatuses", "containerStatuses"};
        for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
            cJSON *list = trouble_keep(object, lists[i]);
            if (list)
                json_set(status, lists[i], list);
        }
    }
    return out;
}

/* Name of the object of ours that a change of this one concerns, owned by the caller, or NULL: its
 * controller. A NetworkPolicy of another owner may stand in a template's way by its name. */
static char *owner_name(enum child child, const cJSON *object)
{
    const cJSON *owner = owner_controller(object);
    const struct child_kind *kind = &child_kinds[child];
    if (owner_is_kind(owner, kind->owner_group, kind->owner_kind))
        return xstrdup(json_str_or(owner, "name", ""));
    const char *name = meta_name(object);
    if (child == CHILD_NETPOL && str_has_suffix(name, POLICY_SUFFIX))
        return xstrndup(name, strlen(name) - strlen(POLICY_SUFFIX));
    return NULL;
}

static uint64_t rev_of(const char *text)
{
    uint64_t rev;
    return str_to_u64(text ? text : "", &rev) == 0 ? rev : 0;
}

static struct entry *entry_new(enum child child, const cJSON *object)
{
    SCOPED(json_free_p) cJSON *reduced = reduce(child, object);
    struct entry *e = xcalloc(1, sizeof *e);
    e->json = json_to_str(reduced);
    e->owner = owner_name(child, object);
    const char *hash = meta_label(object, LABEL_NAME_HASH);
    e->hash = hash ? xstrdup(hash) : NULL;
    e->rev = rev_of(json_str(object, "metadata.resourceVersion"));
    return e;
}

static char *name_key(const char *namespace_name, const char *name)
{
    return xasprintf("%s/%s", namespace_name, name);
}

static char *hash_key(const char *key, const char *hash)
{
    const char *slash = strchr(key, '/');
    return xasprintf("%.*s/%s%s", (int)(slash - key), key, hash, slash);
}

/* Lock held. e NULL = remove. Returns what was there before. */
static struct entry *exchange(struct child_cache *c, const char *key, struct entry *e)
{
    struct entry *old = e ? omap_put(c->by_name, key, e) : omap_del(c->by_name, key);
    if (old && old->hash) {
        SCOPED_FREE char *old_key = hash_key(key, old->hash);
        omap_del(c->by_hash, old_key);
    }
    if (e && e->hash) {
        SCOPED_FREE char *new_key = hash_key(key, e->hash);
        omap_put(c->by_hash, new_key, e);
    }
    return old;
}

/* ---- changes ---- */

/* owner: its name, or NULL. */
static void tell(const struct child_cache *c, const char *key, const char *owner)
{
    if (!owner)
        return;
    const char *slash = strchr(key, '/');
    SCOPED_FREE char *namespace_name = xstrndup(key, (size_t)(slash - key));
    c->on_child(c->ctx, child_kinds[c->child].owner_kind, namespace_name, owner);
}

/* Tells those of both the old and the new owner reference (G10). */
void child_cache_event(struct child_cache *c, const cJSON *object, bool is_delete)
{
    SCOPED_FREE char *key = name_key(meta_namespace(object), meta_name(object));
    struct entry *e = entry_new(c->child, object), *old = NULL;
    SCOPED_FREE char *owner = e->owner ? xstrdup(e->owner) : NULL;
    pthread_mutex_lock(&c->lock);
    if (e->rev > c->seen_rev)
        c->seen_rev = e->rev;
    const struct entry *is = omap_get(c->by_name, key);
    bool is_stale = is && is->rev > e->rev;
    if (!is_stale)
        old = exchange(c, key, is_delete ? NULL : e);
    pthread_mutex_unlock(&c->lock);
    if (is_stale || is_delete)
        entry_free(e);
    if (old && !str_equal(old->owner, owner))
        tell(c, key, old->owner);
    tell(c, key, owner);
    entry_free(old);
}

/* Without an entry: what the watch has passed is gone again, and what it does not show would never
 * be brought up to date. */
void child_cache_answer(struct child_cache *c, const cJSON *object)
{
    const char *label = child_kinds[c->child].label;
    SCOPED_FREE char *key = name_key(meta_namespace(object), meta_name(object));
    struct entry *e = entry_new(c->child, object);
    bool is_watched = !label || meta_label(object, label);
    pthread_mutex_lock(&c->lock);
    const struct entry *is = omap_get(c->by_name, key);
    if (is ? e->rev > is->rev : is_watched && c->is_synced && e->rev > c->seen_rev)
        e = exchange(c, key, e);
    pthread_mutex_unlock(&c->lock);
    entry_free(e);
}

/* Lock held. Puts e in unless what is there is newer; frees the other one. */
static void put_newer(struct child_cache *c, const char *key, struct entry *e)
{
    const struct entry *is = omap_get(c->by_name, key);
    entry_free(is && is->rev > e->rev ? e : exchange(c, key, e));
}

struct leaving {
    struct child_cache *cache;
    struct pairs owners; /* key, name: to be told */
};

/* Lock held. An entry of before the list: newer than it, so that its events are yet to come, or
 * gone. */
static bool keep_or_drop(void *ctx, const char *key, void *value)
{
    struct leaving *l = ctx;
    struct entry *e = value;
    if (e->owner)
        pairs_add(&l->owners, key, e->owner);
    if (e->rev > l->cache->seen_rev)
        put_newer(l->cache, key, e);
    else
        entry_free(e);
    return true;
}

void child_cache_replace(struct child_cache *c, const cJSON *const *objects, size_t n,
                         const char *resource_version)
{
    struct leaving leaving = {.cache = c};
    pthread_mutex_lock(&c->lock);
    struct omap *old = c->by_name;
    omap_free(c->by_hash);
    c->by_name = omap_new();
    c->by_hash = omap_new();
    c->seen_rev = rev_of(resource_version);
    for (size_t i = 0; i < n; i++) {
        SCOPED_FREE char *key = name_key(meta_namespace(objects[i]), meta_name(objects[i]));
        put_newer(c, key, entry_new(c->child, objects[i]));
    }
    omap_each(old, NULL, keep_or_drop, &leaving);
    c->is_synced = true;
    pthread_mutex_unlock(&c->lock);
    omap_free(old);
    for (size_t i = 0; i < leaving.owners.n; i++)
        tell(c, leaving.owners.v[i].name, leaving.owners.v[i].value);
    pairs_fini(&leaving.owners);
    for (size_t i = 0; i < n; i++) {
        SCOPED_FREE char *key = name_key(meta_namespace(objects[i]), meta_name(objects[i]));
        SCOPED_FREE char *owner = owner_name(c->child, objects[i]);
        tell(c, key, owner);
    }
    log_info("cluster cache loaded resource=%s objects=%zu", child_kinds[c->child].plural, n);
}

/* ---- reading ---- */

static cJSON *entry_tree(const struct entry *e)
{
    cJSON *tree = NULL;
    if (e)
        json_parse_str(e->json, &tree, NULL);
    return tree;
}

bool child_cache_is_synced(struct child_cache *c)
{
    pthread_mutex_lock(&c->lock);
    bool is_synced = c->is_synced;
    pthread_mutex_unlock(&c->lock);
    return is_synced;
}

cJSON *child_cache_get(struct child_cache *c, const char *namespace_name, const char *name)
{
    SCOPED_FREE char *key = name_key(namespace_name, name);
    pthread_mutex_lock(&c->lock);
    cJSON *tree = entry_tree(omap_get(c->by_name, key));
    pthread_mutex_unlock(&c->lock);
    return tree;
}

struct collect {
    cJSON *out;
    const char *prefix;
};

static bool collect_each(void *ctx, const char *key, void *value)
{
    struct collect *collect = ctx;
    if (!str_has_prefix(key, collect->prefix))
        return false;
    cJSON *tree = entry_tree(value);
    if (tree)
        json_push(collect->out, tree);
    return true;
}

cJSON *child_cache_list(struct child_cache *c, const char *namespace_name, const char *hash)
{
    SCOPED_FREE char *prefix = xasprintf("%s/%s/", namespace_name, hash);
    struct collect collect = {.out = json_array(), .prefix = prefix};
    pthread_mutex_lock(&c->lock);
    omap_each(c->by_hash, prefix, collect_each, &collect);
    pthread_mutex_unlock(&c->lock);
    return collect.out;
}

/* ---- life ---- */

struct child_cache *child_cache_new(enum child child, child_change_fn on_child, void *ctx)
{
    struct child_cache *c = xcalloc(1, sizeof *c);
    c->child = child;
    c->on_child = on_child;
    c->ctx = ctx;
    pthread_mutex_init(&c->lock, NULL);
    c->by_name = omap_new();
    c->by_hash = omap_new();
    return c;
}

static bool free_each(void *ctx, const char *key, void *value)
{
    (void)ctx;
    (void)key;
    entry_free(value);
    return true;
}

void child_cache_free(struct child_cache *c)
{
    if (!c)
        return;
    omap_each(c->by_name, NULL, free_each, NULL);
    omap_free(c->by_name);
    omap_free(c->by_hash);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
