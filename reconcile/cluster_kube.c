/* One cache per kind of child fed by a reflector, and writes by kube_do. Pods and
 * PersistentVolumeClaims are watched by tracking label, so a cluster's other Pods cost nothing;
 * Services are watched all, because a Sandbox without one must know whether somebody else's has its
 * name; NetworkPolicies all, because ours have no label. Entries hold reduced JSON text, parsed
 * when a pass asks: a pass is rare, memory is not. */
#include "reconcile/cluster_kube.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/queue.h"
#include "apiserver/base/thread.h"
#include "reconcile/child.h"
#include "reconcile/keys.h"

#define EVENT_QUEUE_MAX 1000
#define CALL_TIMEOUT_MS 10000

struct entry {
    char *json;   /* reduced object */
    char *owner;  /* name of the object of ours that its changes concern, or NULL */
    char *hash;   /* tracking label, or NULL */
    uint64_t rev; /* numeric resourceVersion */
};

struct cache {
    struct kube_cluster *owner;
    enum child child;
    pthread_mutex_t lock; /* guards all below, and the entries: others may exchange them */
    struct omap *by_name; /* ns/name -> entry */
    struct omap *by_hash; /* ns/hash/name -> the same entry; Pods only */
    bool is_synced;
    struct reflector *reflector; /* not guarded: constant until the end */
};

struct kube_cluster {
    struct cluster base;
    struct cluster_kube_config config;
    struct cache caches[CHILD_KINDS];
    struct queue *events;
    pthread_t event_thread;
};

struct queued_event {
    char *path;
    cJSON *event;
};

static const struct child_kind {
    const char *api; /* what comes before /namespaces and /plural in paths */
    const char *plural;
    const char *selector;                 /* labels of those that are watched; NULL = all */
    const char *owner_group, *owner_kind; /* of whose children it is */
} child_kinds[CHILD_KINDS] = {
    [CHILD_POD] = {"/api/v1", "pods", LABEL_NAME_HASH, GROUP_AGENTS, KIND_SANDBOX},
    [CHILD_SERVICE] = {"/api/v1", "services", NULL, GROUP_AGENTS, KIND_SANDBOX},
    [CHILD_PVC] = {"/api/v1", "persistentvolumeclaims", LABEL_NAME_HASH, GROUP_AGENTS,
                   KIND_SANDBOX},
    [CHILD_NETPOL] = {"/apis/networking.k8s.io/v1", "networkpolicies", NULL, GROUP_EXTENSIONS,
                      KIND_TEMPLATE},
};

const char *cluster_plural(enum child child)
{
    return child_kinds[child].plural;
}

/* ---- cache entries ---- */

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
    if (child == CHILD_POD && node) {
        cJSON *spec = json_object();
        json_set(spec, "nodeName", json_copy(node));
        json_set(out, "spec", spec);
    }
    if (child == CHILD_POD && json_get(object, "status")) {
        cJSON *status = json_object();
        static const char *const kept[] = {"phase", "podIPs", "conditions"};
        for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
            const cJSON *v = json_at(json_get(object, "status"), kept[i]);
            if (v)
                json_set(status, kept[i], json_copy(v));
        }
        json_set(out, "status", status);
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

static struct entry *entry_new(enum child child, const cJSON *object)
{
    SCOPED(json_free_p) cJSON *reduced = reduce(child, object);
    struct entry *e = xcalloc(1, sizeof *e);
    e->json = json_to_str(reduced);
    e->owner = owner_name(child, object);
    const char *hash = meta_label(object, LABEL_NAME_HASH);
    e->hash = hash ? xstrdup(hash) : NULL;
    if (str_to_u64(json_str_or(object, "metadata.resourceVersion", "0"), &e->rev) < 0)
        e->rev = 0;
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
static struct entry *cache_exchange(struct cache *cache, const char *key, struct entry *e)
{
    struct entry *old = e ? omap_put(cache->by_name, key, e) : omap_del(cache->by_name, key);
    if (old && old->hash) {
        SCOPED_FREE char *old_key = hash_key(key, old->hash);
        omap_del(cache->by_hash, old_key);
    }
    if (e && e->hash) {
        SCOPED_FREE char *new_key = hash_key(key, e->hash);
        omap_put(cache->by_hash, new_key, e);
    }
    return old;
}

/* ---- reflector callbacks ---- */

/* owner: its name, or NULL. */
static void tell(struct cache *cache, const char *key, const char *owner)
{
    if (!owner)
        return;
    const char *slash = strchr(key, '/');
    SCOPED_FREE char *namespace_name = xstrndup(key, (size_t)(slash - key));
    const struct cluster_kube_config *config = &cache->owner->config;
    config->on_child(config->ctx, child_kinds[cache->child].owner_kind, namespace_name, owner);
}

/* Tells the Sandboxes of both the old and the new owner reference (G10). What came with a write's
 * answer already may be newer than the event, and stays. */
static void on_event(void *ctx, const cJSON *object, bool is_delete)
{
    struct cache *cache = ctx;
    SCOPED_FREE char *key = name_key(meta_namespace(object), meta_name(object));
    struct entry *e = entry_new(cache->child, object), *old = NULL;
    SCOPED_FREE char *owner = e->owner ? xstrdup(e->owner) : NULL;
    pthread_mutex_lock(&cache->lock);
    const struct entry *is = omap_get(cache->by_name, key);
    bool is_stale = is && is->rev > e->rev;
    if (!is_stale)
        old = cache_exchange(cache, key, is_delete ? NULL : e);
    pthread_mutex_unlock(&cache->lock);
    if (is_stale || is_delete)
        entry_free(e);
    if (old && !str_equal(old->owner, owner))
        tell(cache, key, old->owner);
    tell(cache, key, owner);
    entry_free(old);
}

static bool drop_each(void *ctx, const char *key, void *value)
{
    const struct entry *e = value;
    tell(ctx, key, e->owner);
    entry_free(value);
    return true;
}

static void on_replace(void *ctx, const cJSON *const *objects, size_t n,
                       const char *resource_version)
{
    (void)resource_version;
    struct cache *cache = ctx;
    pthread_mutex_lock(&cache->lock);
    struct omap *old = cache->by_name;
    omap_free(cache->by_hash);
    cache->by_name = omap_new();
    cache->by_hash = omap_new();
    for (size_t i = 0; i < n; i++) {
        SCOPED_FREE char *key = name_key(meta_namespace(objects[i]), meta_name(objects[i]));
        entry_free(cache_exchange(cache, key, entry_new(cache->child, objects[i])));
    }
    cache->is_synced = true;
    pthread_mutex_unlock(&cache->lock);
    omap_each(old, NULL, drop_each, cache); /* owners of what is gone look again */
    omap_free(old);
    for (size_t i = 0; i < n; i++) {
        SCOPED_FREE char *key = name_key(meta_namespace(objects[i]), meta_name(objects[i]));
        SCOPED_FREE char *owner = owner_name(cache->child, objects[i]);
        tell(cache, key, owner);
    }
    log_info("cluster cache loaded resource=%s objects=%zu", child_kinds[cache->child].plural, n);
}

/* ---- the table ---- */

static struct cache *cache_of(struct cluster *c, enum child child)
{
    return &((struct kube_cluster *)c)->caches[child];
}

static cJSON *entry_tree(const struct entry *e)
{
    cJSON *tree = NULL;
    if (e)
        json_parse_str(e->json, &tree, NULL);
    return tree;
}

static char *child_path(enum child child, const char *namespace_name, const char *name,
                        const char *query)
{
    struct buf path = {0};
    buf_printf(&path, "%s/namespaces/", child_kinds[child].api);
    fetch_escape(namespace_name, &path);
    buf_printf(&path, "/%s", child_kinds[child].plural);
    if (name) {
        buf_putc(&path, '/');
        fetch_escape(name, &path);
    }
    buf_puts(&path, query);
    return buf_take(&path, NULL);
}

static struct kube *kube_of(struct cluster *c)
{
    return ((struct kube_cluster *)c)->config.kube;
}

static int get(struct cluster *c, enum child child, const char *namespace_name, const char *name,
               bool live, cJSON **ret, struct err *err)
{
    struct cache *cache = cache_of(c, child);
    SCOPED_FREE char *key = name_key(namespace_name, name);
    pthread_mutex_lock(&cache->lock);
    cJSON *tree = entry_tree(omap_get(cache->by_name, key));
    pthread_mutex_unlock(&cache->lock);
    *ret = tree;
    if (tree || !live)
        return 0;
    SCOPED_FREE char *path = child_path(child, namespace_name, name, "");
    struct err e = {0};
    int rc = kube_do(kube_of(c), &(struct kube_call){.method = "GET", .path = path}, ret, &e);
    if (rc == -ERR_NOT_FOUND) {
        err_fini(&e);
        *ret = NULL;
        return 0;
    }
    return rc < 0 ? err_move(err, &e) : 0;
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

static cJSON *list_pods(struct cluster *c, const char *namespace_name, const char *hash)
{
    struct cache *cache = cache_of(c, CHILD_POD);
    SCOPED_FREE char *prefix = xasprintf("%s/%s/", namespace_name, hash);
    struct collect collect = {.out = json_array(), .prefix = prefix};
    pthread_mutex_lock(&cache->lock);
    omap_each(cache->by_hash, prefix, collect_each, &collect);
    pthread_mutex_unlock(&cache->lock);
    return collect.out;
}

/* A write's answer is newer than the cache: without it the next pass would repeat the write. Only
 * over a cached object with the same uid, so that nothing deleted comes back. */
static void cache_refresh(struct cluster *c, enum child child, const cJSON *object)
{
    struct cache *cache = cache_of(c, child);
    SCOPED_FREE char *key = name_key(meta_namespace(object), meta_name(object));
    struct entry *e = entry_new(child, object);
    pthread_mutex_lock(&cache->lock);
    const struct entry *is = omap_get(cache->by_name, key);
    SCOPED(json_free_p) cJSON *tree = entry_tree(is);
    if (is && is->rev < e->rev && str_equal(meta_uid(tree), meta_uid(object)))
        e = cache_exchange(cache, key, e);
    pthread_mutex_unlock(&cache->lock);
    entry_free(e);
}

static int write_child(struct cluster *c, enum child child, const struct kube_call *call,
                       cJSON **ret, struct err *err)
{
    int rc = kube_do(kube_of(c), call, ret, err);
    if (rc == 0)
        cache_refresh(c, child, *ret);
    return rc;
}

static int create(struct cluster *c, enum child child, const char *namespace_name,
                  const cJSON *body, cJSON **ret, struct err *err)
{
    SCOPED_FREE char *path =
        child_path(child, namespace_name, NULL, "?fieldManager=" FIELD_MANAGER);
    return write_child(
        c, child,
        &(struct kube_call){
            .method = "POST", .path = path, .body = body, .timeout_ms = CALL_TIMEOUT_MS},
        ret, err);
}

static int patch(struct cluster *c, enum child child, const char *namespace_name, const char *name,
                 const cJSON *merge_patch, cJSON **ret, struct err *err)
{
    SCOPED_FREE char *path =
        child_path(child, namespace_name, name, "?fieldManager=" FIELD_MANAGER);
    return write_child(c, child,
                       &(struct kube_call){.method = "PATCH",
                                           .path = path,
                                           .body = merge_patch,
                                           .content_type = "application/merge-patch+json",
                                           .timeout_ms = CALL_TIMEOUT_MS},
                       ret, err);
}

static int update(struct cluster *c, enum child child, const char *namespace_name, const char *name,
                  const cJSON *body, cJSON **ret, struct err *err)
{
    SCOPED_FREE char *path =
        child_path(child, namespace_name, name, "?fieldManager=" FIELD_MANAGER);
    return write_child(
        c, child,
        &(struct kube_call){
            .method = "PUT", .path = path, .body = body, .timeout_ms = CALL_TIMEOUT_MS},
        ret, err);
}

static int del(struct cluster *c, enum child child, const char *namespace_name, const char *name,
               const char *uid, struct err *err)
{
    SCOPED_FREE char *path = child_path(child, namespace_name, name, "");
    SCOPED(json_free_p) cJSON *options = json_object();
    json_set_str(options, "apiVersion", "v1");
    json_set_str(options, "kind", "DeleteOptions");
    json_set_str(json_ensure_object(options, "preconditions"), "uid", uid);
    return kube_do(
        kube_of(c),
        &(struct kube_call){
            .method = "DELETE", .path = path, .body = options, .timeout_ms = CALL_TIMEOUT_MS},
        NULL, err);
}

/* ---- events ---- */

static void event_free(struct queued_event *e)
{
    free(e->path);
    json_free(e->event);
    free(e);
}

static void emit(struct cluster *c, const char *namespace_name, cJSON *take_event)
{
    struct kube_cluster *k = (struct kube_cluster *)c;
    struct queued_event *e = xcalloc(1, sizeof *e);
    struct buf path = {0};
    buf_puts(&path, "/apis/events.k8s.io/v1/namespaces/");
    fetch_escape(namespace_name, &path);
    buf_puts(&path, "/events");
    e->path = buf_take(&path, NULL);
    e->event = take_event;
    if (!queue_put(k->events, e))
        event_free(e); /* the cluster does not keep up; events are best effort */
}

static void *send_events(void *arg)
{
    struct kube_cluster *k = arg;
    for (struct queued_event *e; (e = queue_get(k->events, -1)) != NULL;) {
        SCOPED(err_fini) struct err err = {0};
        if (kube_do(k->config.kube,
                    &(struct kube_call){.method = "POST", .path = e->path, .body = e->event}, NULL,
                    &err) < 0)
            log_debug("event lost: %s", err_text(&err));
        event_free(e);
    }
    return NULL;
}

/* ---- life ---- */

static bool free_each(void *ctx, const char *key, void *value)
{
    (void)ctx;
    (void)key;
    entry_free(value);
    return true;
}

static void cluster_free(struct cluster *c)
{
    struct kube_cluster *k = (struct kube_cluster *)c;
    for (int i = 0; i < CHILD_KINDS; i++)
        reflector_stop(k->caches[i].reflector);
    /* Events that were not sent are lost, lest the end waits for a cluster that does not answer. */
    for (struct queued_event *e; (e = queue_get(k->events, 0)) != NULL;)
        event_free(e);
    queue_close(k->events);
    pthread_join(k->event_thread, NULL);
    queue_free(k->events);
    for (int i = 0; i < CHILD_KINDS; i++) {
        struct cache *cache = &k->caches[i];
        omap_each(cache->by_name, NULL, free_each, NULL);
        omap_free(cache->by_name);
        omap_free(cache->by_hash);
        pthread_mutex_destroy(&cache->lock);
    }
    free(k);
}

static const struct cluster_vtable kube_vtable = {
    .get = get,
    .list_pods = list_pods,
    .create = create,
    .patch = patch,
    .update = update,
    .del = del,
    .emit = emit,
    .free = cluster_free,
};

static const struct reflector_ops cache_ops = {.on_replace = on_replace, .on_event = on_event};

struct cluster *cluster_kube_new(const struct cluster_kube_config *config)
{
    struct kube_cluster *k = xcalloc(1, sizeof *k);
    k->base.v = &kube_vtable;
    k->config = *config;
    k->events = queue_new(EVENT_QUEUE_MAX);
    for (int i = 0; i < CHILD_KINDS; i++) {
        struct cache *cache = &k->caches[i];
        cache->owner = k;
        cache->child = (enum child)i;
        pthread_mutex_init(&cache->lock, NULL);
        cache->by_name = omap_new();
        cache->by_hash = omap_new();
    }
    for (int i = 0; i < CHILD_KINDS; i++) {
        const struct child_kind *kind = &child_kinds[i];
        SCOPED_FREE char *path = xasprintf("%s/%s", kind->api, kind->plural);
        k->caches[i].reflector =
            reflector_start(config->kube, path, kind->selector, NULL, &cache_ops, &k->caches[i]);
    }
    thread_start(&k->event_thread, "events", send_events, k);
    return &k->base;
}

bool cluster_kube_is_synced(struct cluster *c)
{
    struct kube_cluster *k = (struct kube_cluster *)c;
    bool all = true;
    for (int i = 0; i < CHILD_KINDS; i++) {
        pthread_mutex_lock(&k->caches[i].lock);
        all = all && k->caches[i].is_synced;
        pthread_mutex_unlock(&k->caches[i].lock);
    }
    return all;
}
