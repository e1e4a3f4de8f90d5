/* One ordered map: RESOURCE/NAMESPACE/NAME/NODE to how often Pods on the node refer to it. What a
 * Pod refers to, and its node, never change once it has one, so a Pod is parsed twice: when it is
 * first seen there, and when it is gone. Source of what counts: the Kubernetes reference, Node
 * authorization. */
#include "apiserver/http/node_graph.h"

#include <pthread.h>
#include <stdint.h>

#include "apiserver/base/json.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds/builtin.h"

#define OPENINGS 3 /* of the watch in one question: it may be told at once that it is too late */

struct node_graph {
    struct registry *registry;
    pthread_mutex_t lock; /* guards all below */
    struct watch *watch;  /* NULL = not yet, or lost: all is counted anew */
    struct map *known;    /* uids of the Pods that are counted */
    struct omap *counts;
};

static void forget(struct node_graph *g)
{
    if (g->watch)
        watch_close(g->watch);
    g->watch = NULL;
    map_free(g->known);
    omap_free(g->counts);
    g->known = map_new();
    g->counts = omap_new();
}

struct node_graph *node_graph_new(struct registry *registry)
{
    struct node_graph *g = xcalloc(1, sizeof *g);
    g->registry = registry;
    pthread_mutex_init(&g->lock, NULL);
    forget(g);
    return g;
}

void node_graph_free(struct node_graph *g)
{
    if (!g)
        return;
    forget(g);
    map_free(g->known);
    omap_free(g->counts);
    pthread_mutex_destroy(&g->lock);
    free(g);
}

/* ---- what a Pod refers to ---- */

#define OF_CONTAINERS(list)                                                                        \
    {"secrets", "spec." list "[].env[].valueFrom.secretKeyRef.name"},                              \
        {"secrets", "spec." list "[].envFrom[].secretRef.name"},                                   \
        {"configmaps", "spec." list "[].env[].valueFrom.configMapKeyRef.name"},                    \
    {                                                                                              \
        "configmaps", "spec." list "[].envFrom[].configMapRef.name"                                \
    }

/* The item behind [] is each of the list's. */
static const struct {
    const char *resource, *path;
} references[] = {
    {"secrets", "spec.imagePullSecrets[].name"},
    {"secrets", "spec.volumes[].secret.secretName"},
    {"secrets", "spec.volumes[].projected.sources[].secret.name"},
    {"configmaps", "spec.volumes[].configMap.name"},
    {"configmaps", "spec.volumes[].projected.sources[].configMap.name"},
    {"persistentvolumeclaims", "spec.volumes[].persistentVolumeClaim.claimName"},
    OF_CONTAINERS("initContainers"),
    OF_CONTAINERS("containers"),
    OF_CONTAINERS("ephemeralContainers"),
};

struct counting {
    struct node_graph *graph;
    const char *resource, *namespace_name, *node;
    bool is_gone;
};

static char *print_object(const struct reference *to)
{
    return xasprintf("%s/%s/%s/", to->resource, to->namespace_name, to->name);
}

static void count(const struct counting *c, const char *name)
{
    const struct reference to = {c->resource, c->namespace_name, name};
    SCOPED_FREE char *object = print_object(&to);
    SCOPED_FREE char *key = xasprintf("%s%s", object, c->node);
    uintptr_t before = (uintptr_t)omap_get(c->graph->counts, key);
    uintptr_t n = c->is_gone ? before - 1 : before + 1;
    if (n > 0)
        omap_put(c->graph->counts, key, (void *)n);
    else
        omap_del(c->graph->counts, key);
}

/* Every text at that path below at. */
static void count_at(const struct counting *c, const cJSON *at, const char *path)
{
    const char *list = strstr(path, "[].");
    if (!list) {
        const char *name = json_str_or(at, path, "");
        if (*name)
            count(c, name);
        return;
    }
    SCOPED_FREE char *before = xstrndup(path, (size_t)(list - path));
    const cJSON *item;
    cJSON_ArrayForEach(item, json_at(at, before)) count_at(c, item, list + strlen("[]."));
}

static void count_pod(struct node_graph *g, const struct object *pod, bool is_gone)
{
    SCOPED(json_free_p) cJSON *tree = object_tree(pod);
    struct counting c = {.graph = g,
                         .namespace_name = pod->namespace_name,
                         .node = json_str_or(tree, "spec.nodeName", ""),
                         .is_gone = is_gone};
    for (size_t i = 0; i < ARRAY_LEN(references); i++) {
        c.resource = references[i].resource;
        count_at(&c, tree, references[i].path);
    }
    c.resource = "serviceaccounts";
    count(&c, json_str_or(tree, "spec.serviceAccountName", "default"));
}

/* ---- following ---- */

/* The field spec.nodeName is the first of its kind's. */
static bool has_node(const struct object *pod)
{
    return pod->fields && pod->fields[0][0];
}

static void note(struct node_graph *g, const struct watch_event *e)
{
    const struct object *pod = e->object;
    bool is_known = map_get(g->known, pod->uid) != NULL;
    if (e->type == WATCH_DELETED && is_known) {
        map_del(g->known, pod->uid);
        count_pod(g, pod, true);
    } else if (e->type != WATCH_DELETED && !is_known && has_node(pod)) {
        map_put(g->known, pod->uid, g);
        count_pod(g, pod, false);
    }
}

static int open_watch(struct node_graph *g, struct err *err)
{
    const struct watch_request all = {
        .kind = &kind_pod, .send_initial = true, .version = {READ_ANY, 0}};
    forget(g);
    return registry_watch(g->registry, &all, NULL, NULL, &g->watch, err);
}

/* All that the watch has: 0; or -1 when it is over. */
static int drain(struct node_graph *g)
{
    for (;;) {
        SCOPED(watch_event_fini) struct watch_event e = {0};
        int rc = watch_next(g->watch, &e);
        if (rc <= 0)
            return rc;
        if (e.type == WATCH_ERROR)
            return -1;
        if (e.object)
            note(g, &e);
    }
}

static int follow(struct node_graph *g, struct err *err)
{
    for (int i = 0; i < OPENINGS; i++) {
        if (!g->watch && open_watch(g, err) < 0)
            return -(int)err->code;
        if (drain(g) == 0)
            return 0;
        forget(g);
    }
    return err_set(err, ERR_UNAVAILABLE, "which Pods a node has is not known");
}

/* ---- asking ---- */

int node_graph_ask(struct node_graph *g, const struct reference *to, const char *node, bool *ret,
                   struct err *err)
{
    SCOPED_FREE char *object = print_object(to);
    SCOPED_FREE char *key = xasprintf("%s%s", object, node);
    pthread_mutex_lock(&g->lock);
    int rc = follow(g, err);
    if (rc == 0)
        *ret = omap_get(g->counts, key) != NULL;
    pthread_mutex_unlock(&g->lock);
    return rc;
}

struct search {
    const char *prefix;
    char **nodes;
};

static bool add_node(void *ctx, const char *key, void *value)
{
    struct search *s = ctx;
    (void)value;
    if (!str_has_prefix(key, s->prefix))
        return false;
    strv_add(&s->nodes, xstrdup(key + strlen(s->prefix)));
    return true;
}

int node_graph_nodes(struct node_graph *g, const struct reference *to, char ***ret, struct err *err)
{
    SCOPED_FREE char *prefix = print_object(to);
    struct search s = {.prefix = prefix};
    pthread_mutex_lock(&g->lock);
    int rc = follow(g, err);
    if (rc == 0)
        omap_each(g->counts, prefix, add_node, &s);
    pthread_mutex_unlock(&g->lock);
    if (rc == 0)
        *ret = s.nodes;
    return rc;
}
