/* One cache per kind of child (child_cache.c) fed by a reflector, and writes by kube_do. Pods and
 * PersistentVolumeClaims are watched by tracking label, so a cluster's other Pods cost nothing;
 * Services are watched all, because a Sandbox without one must know whether somebody else's has its
 * name; NetworkPolicies all, because ours have no label. */
#include "reconcile/cluster_kube.h"

#include <stdlib.h>
#include <string.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/metric.h"
#include "apiserver/base/queue.h"
#include "apiserver/base/thread.h"
#include "reconcile/child_cache.h"
#include "reconcile/event_gate.h"
#include "reconcile/keys.h"

#define EVENT_QUEUE_MAX 1000 /* that wait to be sent; further ones are dropped and counted */
#define CALL_TIMEOUT_MS 10000

static struct metric events_metric = {
    .name = "agent_sandbox_events_total",
    .help = "Events for the cluster: sent, repeated (counted with one that was sent), failed (not "
            "taken), dropped (too many were waiting), limited (too many of one object).",
    .type = METRIC_COUNTER,
    .labels = {"result"},
};

static void count_event(const char *result)
{
    metric_add(&events_metric, 1, (const char *const[]){result});
}

struct followed {
    struct child_cache *cache;
    struct reflector *reflector;
};

struct kube_cluster {
    struct cluster base;
    struct cluster_kube_config config;
    struct followed children[CHILD_KINDS];
    struct event_gate *gate;
    struct queue *events;
    pthread_t event_thread;
};

struct queued_event {
    char *path;                 /* of the namespace's events */
    struct event_repeat repeat; /* of an earlier one; name NULL = this is a new one */
    cJSON *event;
};

static void on_event(void *ctx, const cJSON *object, bool is_delete)
{
    child_cache_event(ctx, object, is_delete);
}

static void on_replace(void *ctx, const cJSON *const *objects, size_t n,
                       const char *resource_version)
{
    child_cache_replace(ctx, objects, n, resource_version);
}

/* ---- the table ---- */

static struct child_cache *cache_of(struct cluster *c, enum child child)
{
    return ((struct kube_cluster *)c)->children[child].cache;
}

static char *child_path(enum child child, const char *namespace_name, const char *name,
                        const char *query)
{
    SCOPED_FREE char *path =
        kube_path(&(struct kube_place){.api = child_kind_of(child)->api,
                                       .namespace_name = namespace_name,
                                       .resource = child_kind_of(child)->plural,
                                       .name = name});
    return xasprintf("%s%s", path, query);
}

static struct kube *kube_of(struct cluster *c)
{
    return ((struct kube_cluster *)c)->config.kube;
}

static int get(struct cluster *c, enum child child, const char *namespace_name, const char *name,
               bool live, cJSON **ret, struct err *err)
{
    *ret = child_cache_get(cache_of(c, child), namespace_name, name);
    if (*ret || !live)
        return 0;
    SCOPED_FREE char *path = child_path(child, namespace_name, name, "");
    struct err e = {0};
    int rc = kube_do(kube_of(c), &(struct kube_call){.method = "GET", .path = path}, ret, &e);
    if (rc == -ERR_NOT_FOUND) {
        err_fini(&e);
        *ret = NULL;
        return 0;
    }
    if (rc < 0)
        return err_move(err, &e);
    child_cache_answer(cache_of(c, child), *ret);
    return 0;
}

static cJSON *list(struct cluster *c, enum child child, const char *namespace_name,
                   const char *hash)
{
    return child_cache_list(cache_of(c, child), namespace_name, hash);
}

static int write_child(struct cluster *c, enum child child, const struct kube_call *call,
                       cJSON **ret, struct err *err)
{
    int rc = kube_do(kube_of(c), call, ret, err);
    if (rc == 0)
        child_cache_answer(cache_of(c, child), *ret);
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
                                           .content_type = KUBE_MERGE_PATCH,
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
    free(e->repeat.name);
    json_free(e->event);
    free(e);
}

static void emit(struct cluster *c, const char *namespace_name, cJSON *take_event)
{
    struct kube_cluster *k = (struct kube_cluster *)c;
    struct event_repeat repeat = {0};
    if (event_gate_judge(k->gate, take_event, clock_monotonic_ms(&clock_system), &repeat) ==
        EVENT_LIMITED) {
        count_event("limited");
        json_free(take_event);
        return;
    }
    struct queued_event *e = xcalloc(1, sizeof *e);
    e->path = kube_path(&(struct kube_place){
        .api = "/apis/events.k8s.io/v1", .namespace_name = namespace_name, .resource = "events"});
    e->repeat = repeat;
    e->event = take_event;
    if (queue_put(k->events, e))
        return;
    count_event("dropped"); /* the cluster does not keep up; events are best effort */
    event_free(e);
}

/* The event that says the same is told how often it was said. -ERR_NOT_FOUND: it is gone. */
static int send_repeat(struct kube_cluster *k, const struct queued_event *e, struct err *err)
{
    SCOPED(json_free_p) cJSON *patch = json_object();
    SCOPED(buf_fini) struct buf path = {0};
    cJSON *series = json_ensure_object(patch, "series");
    json_set_int(series, "count", e->repeat.count);
    json_set_str(series, "lastObservedTime", json_str_or(e->event, "eventTime", ""));
    buf_printf(&path, "%s/", e->path);
    fetch_escape(e->repeat.name, &path);
    return kube_do(k->config.kube,
                   &(struct kube_call){.method = "PATCH",
                                       .path = buf_cstr(&path),
                                       .body = patch,
                                       .content_type = KUBE_MERGE_PATCH},
                   NULL, err);
}

static int send_new(struct kube_cluster *k, const struct queued_event *e, struct err *err)
{
    return kube_do(k->config.kube,
                   &(struct kube_call){.method = "POST", .path = e->path, .body = e->event}, NULL,
                   err);
}

static void send_event(struct kube_cluster *k, const struct queued_event *e)
{
    SCOPED(err_fini) struct err err = {0}, gone = {0};
    int rc = e->repeat.name ? send_repeat(k, e, &gone) : -ERR_NOT_FOUND;
    bool is_new = rc == -ERR_NOT_FOUND;
    if (is_new)
        rc = send_new(k, e, &err);
    count_event(rc < 0 ? "failed" : is_new ? "sent" : "repeated");
    if (rc < 0)
        log_debug("event lost: %s", err_text(is_new ? &err : &gone));
}

static void *send_events(void *arg)
{
    struct kube_cluster *k = arg;
    for (struct queued_event *e; (e = queue_get(k->events, -1)) != NULL;) {
        send_event(k, e);
        event_free(e);
    }
    return NULL;
}

/* ---- life ---- */

static void cluster_free(struct cluster *c)
{
    struct kube_cluster *k = (struct kube_cluster *)c;
    for (int i = 0; i < CHILD_KINDS; i++)
        reflector_stop(k->children[i].reflector);
    /* Events that were not sent are lost, lest the end waits for a cluster that does not answer. */
    for (struct queued_event *e; (e = queue_get(k->events, 0)) != NULL;)
        event_free(e);
    queue_close(k->events);
    pthread_join(k->event_thread, NULL);
    queue_free(k->events);
    event_gate_free(k->gate);
    for (int i = 0; i < CHILD_KINDS; i++)
        child_cache_free(k->children[i].cache);
    free(k);
}

static const struct cluster_vtable kube_vtable = {
    .get = get,
    .list = list,
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
    k->gate = event_gate_new();
    k->events = queue_new(EVENT_QUEUE_MAX);
    for (int i = 0; i < CHILD_KINDS; i++)
        k->children[i].cache = child_cache_new((enum child)i, config->on_child, config->ctx);
    for (int i = 0; i < CHILD_KINDS; i++) {
        const struct child_kind *kind = child_kind_of((enum child)i);
        SCOPED_FREE char *path = xasprintf("%s/%s", kind->api, kind->plural);
        k->children[i].reflector = reflector_start(config->kube, path, kind->label, NULL,
                                                   &cache_ops, k->children[i].cache);
    }
    thread_start(&k->event_thread, "events", send_events, k);
    return &k->base;
}

bool cluster_kube_is_synced(struct cluster *c)
{
    struct kube_cluster *k = (struct kube_cluster *)c;
    bool all = true;
    for (int i = 0; i < CHILD_KINDS; i++)
        all = all && child_cache_is_synced(k->children[i].cache);
    return all;
}
