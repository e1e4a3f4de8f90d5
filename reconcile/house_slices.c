/* EndpointSlices of Services: the addresses of the Pods that they select, one slice a Service.
 * Source: the Kubernetes documentation, EndpointSlices: conditions, labels, ownership. */
#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/rand.h"
#include "openapi/kinds/builtin.h"
#include "reconcile/house_pass.h"
#include "reconcile/peek.h"

#define ENDPOINTS_MAX 1000 /* Source: validation of EndpointSlice */
#define MANAGED_BY "endpointslice-controller.k8s.io"
#define HASH_CHARS 5

/* ---- who selects whom ---- */

char *house_label_key(const char *namespace_name, const char *name, const char *value)
{
    return xasprintf("%s/%s=%s", namespace_name, name, value);
}

char **house_selected_by(const struct object *service)
{
    SCOPED(json_free_p) cJSON *selector = object_peek(service, "spec", "selector");
    const cJSON *first = selector ? selector->child : NULL;
    char **keys = NULL;
    if (cJSON_IsString(first))
        strv_add(&keys,
                 house_label_key(service->namespace_name, first->string, first->valuestring));
    return keys;
}

/* ---- one endpoint ---- */

static bool has_condition(const cJSON *pod, const char *type)
{
    const cJSON *c;
    cJSON_ArrayForEach(c, json_at(pod, "status.conditions"))
    {
        if (str_equal(json_str(c, "type"), type))
            return str_equal(json_str(c, "status"), "True");
    }
    return false;
}

static cJSON *conditions_of(const cJSON *pod, bool is_terminating, bool is_published)
{
    cJSON *c = json_object();
    bool serves = has_condition(pod, "Ready");
    json_set_bool(c, "ready", is_published || (serves && !is_terminating));
    json_set_bool(c, "serving", is_published || serves);
    json_set_bool(c, "terminating", is_terminating);
    return c;
}

static cJSON *target_of(const struct object *pod)
{
    cJSON *ref = json_object();
    json_set_str(ref, "kind", "Pod");
    json_set_str(ref, "name", pod->name);
    json_set_str(ref, "namespace", pod->namespace_name);
    json_set_str(ref, "uid", pod->uid);
    return ref;
}

/* NULL for a Pod without an address of that family, and one that has ended. */
static cJSON *endpoint_of(const struct object *pod, const cJSON *tree, const cJSON *service,
                          bool is_ipv6)
{
    const char *ip = json_str_or(tree, "status.podIP", ""),
               *phase = json_str_or(tree, "status.phase", ""),
               *hostname = json_str(tree, "spec.hostname"), *node = json_str(tree, "spec.nodeName");
    if (!*ip || (strchr(ip, ':') != NULL) != is_ipv6 || strcmp(phase, "Succeeded") == 0 ||
        strcmp(phase, "Failed") == 0)
        return NULL;
    cJSON *e = json_object(), *addresses = json_array();
    json_push(addresses, json_string(ip));
    json_set(e, "addresses", addresses);
    json_set(e, "conditions",
             conditions_of(tree, pod->is_terminating,
                           json_bool_or(service, "spec.publishNotReadyAddresses", false)));
    if (hostname && str_equal(json_str(tree, "spec.subdomain"), json_str(service, "metadata.name")))
        json_set_str(e, "hostname", hostname);
    if (node)
        json_set_str(e, "nodeName", node);
    json_set(e, "targetRef", target_of(pod));
    return e;
}

/* ---- ports ---- */

/* A number, or the name of a port of the Pod's containers; -1 = none has it. */
static int64_t target_port(const cJSON *port, const cJSON *pod)
{
    const cJSON *target = json_get(port, "targetPort"), *container, *p;
    if (!cJSON_IsString(target))
        return json_i64_or(port, "targetPort", json_i64_or(port, "port", -1));
    cJSON_ArrayForEach(container, json_at(pod, "spec.containers"))
    {
        cJSON_ArrayForEach(p, json_get(container, "ports"))
        {
            if (str_equal(json_str(p, "name"), target->valuestring))
                return json_i64_or(p, "containerPort", -1);
        }
    }
    return -1;
}

/* pod: of the first endpoint, or NULL. */
static cJSON *ports_of(const cJSON *service, const cJSON *pod)
{
    cJSON *list = json_array();
    const cJSON *p;
    cJSON_ArrayForEach(p, json_at(service, "spec.ports"))
    {
        int64_t number = target_port(p, pod);
        if (number < 0)
            continue;
        cJSON *port = json_object();
        json_set_str(port, "name", json_str_or(p, "name", ""));
        json_set(port, "port", json_int(number));
        json_set_str(port, "protocol", json_str_or(p, "protocol", "TCP"));
        json_push(list, port);
    }
    return list;
}

/* ---- the slice ---- */

/* A Service that is made anew has another. */
static char *slice_name(const struct object *service)
{
    unsigned char digest[32];
    char hex[2 * sizeof digest + 1];
    digest_sha256(service->uid, strlen(service->uid), digest);
    digest_print_hex(digest, sizeof digest, hex);
    return xasprintf("%s-%.*s", service->name, HASH_CHARS, hex);
}

static cJSON *owner_of(const struct object *service)
{
    cJSON *list = json_array(), *ref = json_object();
    json_set_str(ref, "apiVersion", "v1");
    json_set_bool(ref, "blockOwnerDeletion", true);
    json_set_bool(ref, "controller", true);
    json_set_str(ref, "kind", "Service");
    json_set_str(ref, "name", service->name);
    json_set_str(ref, "uid", service->uid);
    json_push(list, ref);
    return list;
}

static cJSON *labels_of(const struct object *service, const cJSON *tree)
{
    const cJSON *own = json_at(tree, "metadata.labels");
    cJSON *labels = own ? json_copy(own) : json_object();
    json_set_str(labels, "endpointslice.kubernetes.io/managed-by", MANAGED_BY);
    json_set_str(labels, "kubernetes.io/service-name", service->name);
    if (str_equal(json_str(tree, "spec.clusterIP"), "None"))
        json_set_str(labels, "service.kubernetes.io/headless", "");
    return labels;
}

struct wanted {
    cJSON *labels, *endpoints, *ports;
};

static bool adapt_member(cJSON *object, const char *name, const cJSON *value)
{
    if (json_equal(json_get(object, name), value))
        return false;
    json_set(object, name, json_copy(value));
    return true;
}

static bool adapt(void *ctx, cJSON *slice)
{
    const struct wanted *w = ctx;
    bool is_new = adapt_member(json_ensure_object(slice, "metadata"), "labels", w->labels);
    is_new |= adapt_member(slice, "endpoints", w->endpoints);
    return adapt_member(slice, "ports", w->ports) || is_new;
}

static int write_slice(const struct pass_env *env, const struct object *service, bool is_ipv6,
                       struct wanted *w, struct err *err)
{
    SCOPED_FREE char *name = slice_name(service);
    SCOPED(object_unref_p) struct object *present = NULL;
    int rc = pass_get(env, &kind_endpoint_slice, service->namespace_name, name, &present, err);
    if (rc < 0)
        return rc;
    if (present) {
        SCOPED(json_free_p) cJSON *tree = object_tree(present);
        return adapt(w, tree) ? house_forgive(house_change(env, present, adapt, w, err), err) : 0;
    }
    cJSON *slice = house_named("discovery.k8s.io/v1", "EndpointSlice", name);
    json_set_str(slice, "addressType", is_ipv6 ? "IPv6" : "IPv4");
    json_set(json_get(slice, "metadata"), "ownerReferences", owner_of(service));
    (void)adapt(w, slice);
    return pass_ensure(env, &kind_endpoint_slice, service->namespace_name, slice, HOUSE_MANAGER,
                       err);
}

/* ---- the pass ---- */

static bool is_selected(const struct object *pod, const cJSON *selector)
{
    const cJSON *l;
    cJSON_ArrayForEach(l, selector)
    {
        if (!cJSON_IsString(l) || !str_equal(pairs_get(&pod->labels, l->string), l->valuestring))
            return false;
    }
    return true;
}

static int collect(const struct pass_env *env, const struct object *service, const cJSON *tree,
                   bool *ret_ipv6, struct wanted *w, char ***ret_pods, struct err *err)
{
    SCOPED(list_result_fini) struct list_result pods = {0};
    const struct list_request list = {.kind = &kind_pod,
                                      .namespace_name = service->namespace_name,
                                      .version = {READ_ANY, 0},
                                      .deadline_ms = house_deadline(env)};
    const cJSON *selector = json_at(tree, "spec.selector");
    int rc = registry_list(env->registry, &list, &pods, err);
    for (size_t i = 0; rc == 0 && i < pods.n && json_len(w->endpoints) < ENDPOINTS_MAX; i++) {
        const struct object *o = pods.objects[i];
        if (!is_selected(o, selector))
            continue;
        SCOPED(json_free_p) cJSON *pod = object_tree(o);
        bool is_first = json_len(w->endpoints) == 0;
        if (is_first)
            *ret_ipv6 = strchr(json_str_or(pod, "status.podIP", ""), ':') != NULL;
        cJSON *endpoint = endpoint_of(o, pod, tree, *ret_ipv6);
        if (endpoint && is_first)
            w->ports = ports_of(tree, pod);
        if (endpoint)
            json_push(w->endpoints, endpoint);
        strv_add(ret_pods, pass_key(o->namespace_name, o->name));
    }
    if (!w->ports)
        w->ports = ports_of(tree, NULL);
    return rc;
}

int house_slices_pass(const struct pass_env *env, struct links *selected, const char *key,
                      struct err *err)
{
    SCOPED_FREE char *namespace_name = NULL;
    const char *name = pass_key_split(key, &namespace_name);
    SCOPED(object_unref_p) struct object *service = NULL;
    bool is_ipv6 = false;
    char **pods = NULL;
    int rc = pass_get(env, &kind_service, namespace_name, name, &service, err);
    if (rc < 0 || !service || service->is_terminating) {
        (void)links_set(selected, key, NULL);
        return rc;
    }
    SCOPED(json_free_p) cJSON *tree = object_tree(service);
    if (json_len(json_at(tree, "spec.selector")) == 0 ||
        str_equal(json_str(tree, "spec.type"), "ExternalName"))
        return 0;
    struct wanted w = {.labels = labels_of(service, tree), .endpoints = json_array()};
    rc = collect(env, service, tree, &is_ipv6, &w, &pods, err);
    if (rc == 0)
        (void)links_set(selected, key, steal(&pods));
    if (rc == 0)
        rc = write_slice(env, service, is_ipv6, &w, err);
    strv_free(pods);
    json_free(w.labels);
    json_free(w.endpoints);
    json_free(w.ports);
    return rc;
}
