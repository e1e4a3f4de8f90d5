/* Rights are a table of resources, limits of what is written a table of kinds; both ask whether the
 * node stands for the Node in question. */
#include "apiserver/http/node_access.h"

#include <stdlib.h>

#include "apiserver/auth/local.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/http/node_graph.h"
#include "openapi/kinds/builtin.h"

#define USER_PREFIX "system:node:"
#define USER_GROUP "system:nodes"
/* Of a Node: the user with a certificate of its own name who has written it. */
#define NODE_USER "sandbox-apiserver/node-user"
#define LEASES "kube-node-lease"

struct node_access {
    struct registry *registry;
    struct node_graph *graph;
};

struct who {
    const char *user, *name; /* name: what is behind the prefix; in user */
    bool is_local;           /* whatever name its Node has */
};

struct node_access *node_access_new(struct registry *registry)
{
    struct node_access *n = xcalloc(1, sizeof *n);
    n->registry = registry;
    n->graph = node_graph_new(registry);
    return n;
}

void node_access_free(struct node_access *n)
{
    if (!n)
        return;
    node_graph_free(n->graph);
    free(n);
}

/* ---- who ---- */

/* False when it is no node. */
static bool identify(const char *user, bool is_in_group, struct who *ret)
{
    if (!is_in_group || !str_has_prefix(user, USER_PREFIX) || !user[strlen(USER_PREFIX)])
        return false;
    *ret = (struct who){.user = user,
                        .name = user + strlen(USER_PREFIX),
                        .is_local = strcmp(user, LOCAL_NODE_USER) == 0};
    return true;
}

static bool identify_spec(const cJSON *spec, struct who *ret)
{
    return identify(json_str_or(spec, "user", ""),
                    json_has_str(json_get(spec, "groups"), USER_GROUP), ret);
}

bool node_access_is_node(const cJSON *spec)
{
    struct who who;
    return identify_spec(spec, &who);
}

bool node_access_has_user(const cJSON *node)
{
    const cJSON *by = json_get(json_at(node, "metadata.annotations"), NODE_USER);
    return cJSON_IsString(by) && by->valuestring[0];
}

/* Does it stand for the Node of that name, which is there? */
static bool stands_for(const struct node_access *n, const struct who *who, const char *node)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    if (!who->is_local || !*node)
        return *node && strcmp(who->name, node) == 0;
    if (registry_get(n->registry, &kind_node, "", node, (struct read_version){READ_ANY, 0}, 0, &o,
                     NULL) < 0)
        return false;
    SCOPED(json_free_p) cJSON *tree = object_tree(o);
    return !node_access_has_user(tree);
}

/* ---- which objects ---- */

struct asked {
    struct node_access *access;
    struct who who;
    const char *verb, *namespace_name, *name;
};

/* NULL = yes; else why not, the caller's. */
typedef char *ask_fn(const struct asked *a);

/* The guard decides, on the object. */
static char *ask_guard_later(const struct asked *a)
{
    (void)a;
    return NULL;
}

static char *ask_own_node(const struct asked *a)
{
    if (!*a->name)
        return xasprintf("node '%s' cannot read all nodes, only its own Node object", a->who.name);
    if (stands_for(a->access, &a->who, a->name))
        return NULL;
    return xasprintf("node '%s' cannot read '%s', only its own Node object", a->who.name, a->name);
}

/* Its name is not known when it is made; the guard asks again. */
static char *ask_lease(const struct asked *a)
{
    if (strcmp(a->namespace_name, LEASES) != 0)
        return xstrdup("can only access leases in the \"" LEASES "\" system namespace");
    if (strcmp(a->verb, "create") == 0 || stands_for(a->access, &a->who, a->name))
        return NULL;
    return xstrdup("can only access node lease with the same name as the requesting node");
}

static bool is_referred_to(const struct asked *a, const struct reference *to)
{
    char **nodes = NULL;
    bool is = false;
    if (!a->who.is_local)
        return node_graph_ask(a->access->graph, to, a->who.name, &is, NULL) == 0 && is;
    if (node_graph_nodes(a->access->graph, to, &nodes, NULL) < 0)
        return false;
    for (char **node = nodes; node && *node && !is; node++)
        is = stands_for(a->access, &a->who, *node);
    strv_free(nodes);
    return is;
}

static char *ask_reference(const struct asked *a, const char *resource)
{
    const struct reference to = {resource, a->namespace_name, a->name};
    if (!*a->namespace_name)
        return xstrdup("can only read namespaced object of this type");
    if (!*a->name)
        return xstrdup("No Object name found");
    if (is_referred_to(a, &to))
        return NULL;
    return xasprintf("no relationship found between node '%s' and this object", a->who.name);
}

static char *ask_secret(const struct asked *a)
{
    return ask_reference(a, "secrets");
}

static char *ask_config_map(const struct asked *a)
{
    return ask_reference(a, "configmaps");
}

static char *ask_claim(const struct asked *a)
{
    return ask_reference(a, "persistentvolumeclaims");
}

static char *ask_account(const struct asked *a)
{
    return ask_reference(a, "serviceaccounts");
}

/* Those of the same resource together, the last with what is said of other verbs. */
static const struct right {
    const char *group, *resource, *subresource;
    const char *verbs; /* with a comma on either side */
    ask_fn *ask;
    const char *otherwise;
} rights[] = {
    {"", "nodes", "", ",create,patch,update,", ask_guard_later, NULL},
    {"", "nodes", "", ",get,list,watch,", ask_own_node, NULL},
    {"", "nodes", "status", ",patch,update,", ask_guard_later, NULL},
    {"coordination.k8s.io", "leases", "", ",create,get,patch,update,", ask_lease,
     "can only get, create, update, or patch a node lease"},
    {"", "pods", "", ",delete,", ask_guard_later, NULL},
    {"", "pods", "status", ",patch,update,", ask_guard_later, NULL},
    {"", "configmaps", "", ",get,list,watch,", ask_config_map,
     "can only read resources of this type"},
    {"", "secrets", "", ",get,list,watch,", ask_secret, "can only read resources of this type"},
    {"", "persistentvolumeclaims", "", ",get,", ask_claim,
     "can only get individual resources of this type"},
    {"", "serviceaccounts", "", ",get,", ask_account,
     "can only get individual resources of this type"},
    {"", "serviceaccounts", "token", ",create,", ask_account,
     "can only create tokens for individual service accounts"},
};

static bool is_about(const struct right *r, const cJSON *what)
{
    return strcmp(r->group, json_str_or(what, "group", "")) == 0 &&
           strcmp(r->resource, json_str_or(what, "resource", "")) == 0 &&
           strcmp(r->subresource, json_str_or(what, "subresource", "")) == 0;
}

static bool has_verb(const struct right *r, const char *verb)
{
    SCOPED_FREE char *word = xasprintf(",%s,", verb);
    return !strchr(verb, ',') && strstr(r->verbs, word);
}

bool node_access_allows(struct node_access *n, const cJSON *spec, char **ret_why)
{
    const cJSON *what = json_get(spec, "resourceAttributes");
    struct asked a = {.access = n,
                      .verb = json_str_or(what, "verb", ""),
                      .namespace_name = json_str_or(what, "namespace", ""),
                      .name = json_str_or(what, "name", "")};
    const char *otherwise = NULL;
    *ret_why = NULL;
    if (!what || !identify_spec(spec, &a.who))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(rights); i++) {
        if (!is_about(&rights[i], what))
            continue;
        if (has_verb(&rights[i], a.verb))
            return (*ret_why = rights[i].ask(&a)) == NULL;
        otherwise = rights[i].otherwise;
    }
    *ret_why = otherwise ? xstrdup(otherwise) : NULL;
    return false;
}

/* ---- what is written ---- */

struct writer { /* behind a guard, in the request's arena */
    struct write_guard guard;
    struct node_access *access;
    struct who who;
};

static int refuse(const struct kind *k, const char *name, struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static int refuse(const struct kind *k, const char *name, struct err *err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    SCOPED_FREE char *why = xvasprintf(fmt, args);
    va_end(args);
    err_set(err, ERR_FORBIDDEN, "%s%s%s \"%s\" is forbidden: %s", k->plural, k->group[0] ? "." : "",
            k->group, name, why);
    return err_details(err, k->group, k->plural, name, NULL);
}

static const char *name_of(const cJSON *object)
{
    return json_str_or(object, "metadata.name", "");
}

/* Labels of Kubernetes' own that a node may set, by name, or by the domain before the slash and
 * those below it. Source: the Kubernetes reference, NodeRestriction. */
static const char *const node_labels[] = {
    "beta.kubernetes.io/arch",
    "beta.kubernetes.io/instance-type",
    "beta.kubernetes.io/os",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "kubernetes.io/arch",
    "kubernetes.io/hostname",
    "kubernetes.io/os",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
};
static const char *const node_domains[] = {"kubelet.kubernetes.io", "node.kubernetes.io"};
static const char *const kubernetes_domains[] = {"k8s.io", "kubernetes.io"};

/* Is the key's domain one of these, or below one? */
static bool is_in_domain(const char *key, const char *const *domains, size_t n)
{
    const char *slash = strchr(key, '/');
    if (!slash)
        return false;
    SCOPED_FREE char *domain = xstrndup(key, (size_t)(slash - key));
    for (size_t i = 0; i < n; i++) {
        SCOPED_FREE char *below = xasprintf(".%s", domains[i]);
        if (strcmp(domain, domains[i]) == 0 || str_has_suffix(domain, below))
            return true;
    }
    return false;
}

static bool is_label_for_nodes(const char *key)
{
    for (size_t i = 0; i < ARRAY_LEN(node_labels); i++)
        if (strcmp(key, node_labels[i]) == 0)
            return true;
    return is_in_domain(key, node_domains, ARRAY_LEN(node_domains)) ||
           !is_in_domain(key, kubernetes_domains, ARRAY_LEN(kubernetes_domains));
}

/* Adds the keys of a that are not the same in b. */
static void add_differing(const cJSON *a, const cJSON *b, char ***keys)
{
    const cJSON *label;
    cJSON_ArrayForEach(label, a)
    {
        const cJSON *other = json_get(b, label->string);
        if ((!other || !json_equal(label, other)) && !strv_has(*keys, label->string) &&
            !is_label_for_nodes(label->string))
            strv_add(keys, xstrdup(label->string));
    }
}

/* Keys that may not differ, sorted, with commas between them; NULL = none. */
static char *differing_labels(const cJSON *old, const cJSON *object)
{
    const cJSON *before = json_at(old, "metadata.labels"),
                *after = json_at(object, "metadata.labels");
    SCOPED(buf_fini) struct buf text = {0};
    char **keys = NULL;
    size_t n = 0;
    add_differing(after, before, &keys);
    add_differing(before, after, &keys);
    while (keys && keys[n])
        n++;
    if (n > 0)
        qsort(keys, n, sizeof *keys, str_cmp_ptr);
    for (size_t i = 0; i < n; i++)
        buf_printf(&text, "%s%s", i ? ", " : "", keys[i]);
    strv_free(keys);
    return n ? xstrdup(buf_cstr(&text)) : NULL;
}

static int check_labels(const cJSON *old, const struct writer *w, const cJSON *object,
                        struct err *err)
{
    SCOPED_FREE char *keys = differing_labels(old, object);
    if (!keys)
        return 0;
    if (old)
        return refuse(&kind_node, name_of(object), err, "is not allowed to modify labels: %s",
                      keys);
    return refuse(&kind_node, name_of(object), err,
                  "node \"%s\" is not allowed to set the following labels: %s", w->who.name, keys);
}

/* Whoever comes with a certificate of the Node's name has it for himself from then on. */
static void note_user(const struct writer *w, cJSON *node)
{
    cJSON *metadata = json_ensure_object(node, "metadata");
    if (!w->who.is_local)
        json_set_str(json_ensure_object(metadata, "annotations"), NODE_USER, w->who.user);
}

static bool may_write_node(const struct writer *w, const cJSON *old, const char *name)
{
    return w->who.is_local ? !node_access_has_user(old) : strcmp(w->who.name, name) == 0;
}

static int check_node(const struct writer *w, const cJSON *old, cJSON *object, struct err *err)
{
    const char *name = name_of(old ? old : object);
    if (!may_write_node(w, old, name))
        return refuse(&kind_node, name, err, "node \"%s\" is not allowed to modify node \"%s\"",
                      w->who.name, name);
    if (!object)
        return 0;
    if (old && !json_equal(json_at(old, "spec.taints"), json_at(object, "spec.taints")))
        return refuse(&kind_node, name, err, "node \"%s\" is not allowed to modify taints",
                      w->who.name);
    int rc = check_labels(old, w, object, err);
    if (rc == 0)
        note_user(w, object);
    return rc;
}

static int check_lease(const struct writer *w, const cJSON *old, cJSON *object, struct err *err)
{
    const cJSON *lease = old ? old : object;
    const struct asked a = {.access = w->access,
                            .who = w->who,
                            .verb = "update",
                            .namespace_name = json_str_or(lease, "metadata.namespace", ""),
                            .name = name_of(lease)};
    SCOPED_FREE char *why = ask_lease(&a);
    return why ? refuse(&kind_lease, a.name, err, "%s", why) : 0;
}

/* By roles of its own a node could be allowed more than to delete and to tell of their status. */
static int check_pod(const struct writer *w, const cJSON *old, cJSON *object, struct err *err)
{
    if (!old)
        return refuse(&kind_pod, name_of(object), err, "node \"%s\" cannot create pods",
                      w->who.name);
    if (stands_for(w->access, &w->who, json_str_or(old, "spec.nodeName", "")))
        return 0;
    return refuse(&kind_pod, name_of(old), err,
                  object ? "node \"%s\" can only update pod status for pods with spec.nodeName set "
                           "to itself"
                         : "node \"%s\" can only delete pods with spec.nodeName set to itself",
                  w->who.name);
}

static const struct limit {
    const struct kind *kind;
    int (*check)(const struct writer *w, const cJSON *old, cJSON *object, struct err *err);
} limits[] = {
    {&kind_node, check_node},
    {&kind_lease, check_lease},
    {&kind_pod, check_pod},
};

static int check_write(void *ctx, const struct kind *kind, const cJSON *old, cJSON *object,
                       struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(limits); i++)
        if (limits[i].kind == kind)
            return limits[i].check(ctx, old, object, err);
    return 0;
}

const struct write_guard *node_access_guard(struct node_access *n, const struct user *u,
                                            struct arena *arena)
{
    struct who who;
    if (!n || !u->name || !identify(u->name, user_in_group(u, USER_GROUP), &who))
        return NULL;
    struct writer *w = arena_alloc(arena, sizeof *w);
    *w = (struct writer){.guard = {check_write, w}, .access = n, .who = who};
    return &w->guard;
}

/* ---- tokens ---- */

/* "" = the server itself, which a projection without an audience means. */
static bool asks_for(const cJSON *pod, const char *audience)
{
    const cJSON *volume, *source;
    cJSON_ArrayForEach(volume, json_at(pod, "spec.volumes"))
    {
        cJSON_ArrayForEach(source, json_at(volume, "projected.sources"))
        {
            const cJSON *token = json_get(source, "serviceAccountToken");
            if (token && strcmp(json_str_or(token, "audience", ""), audience) == 0)
                return true;
        }
    }
    return false;
}

static int check_audience(const struct writer *w, const char *account, const cJSON *pod,
                          const cJSON *audiences, struct err *err)
{
    const cJSON *first = audiences ? audiences->child : NULL;
    const char *audience = cJSON_IsString(first) ? first->valuestring : "";
    if (json_len(audiences) > 1)
        return refuse(&kind_service_account, account, err,
                      "node may only request 0 or 1 audiences");
    if (asks_for(pod, audience))
        return 0;
    return refuse(&kind_service_account, account, err,
                  "audience \"%s\" not found in pod spec volume, %s is not authorized to request "
                  "tokens for this audience",
                  audience, w->who.user);
}

int node_access_token(const struct write_guard *guard, const struct object *account,
                      const struct object *pod, const cJSON *spec, struct err *err)
{
    const struct writer *w = guard->ctx;
    const struct kind *k = &kind_service_account;
    if (!pod)
        return refuse(k, account->name, err, "node requested token not bound to a pod");
    if (!json_str_or(spec, "boundObjectRef.uid", "")[0])
        return refuse(k, account->name, err,
                      "node requested token with a pod binding without a uid");
    SCOPED(json_free_p) cJSON *tree = object_tree(pod);
    if (!stands_for(w->access, &w->who, json_str_or(tree, "spec.nodeName", "")))
        return refuse(k, account->name, err,
                      "node requested token bound to a pod scheduled on a different node");
    return check_audience(w, account->name, tree, json_get(spec, "audiences"), err);
}
