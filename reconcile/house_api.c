/* The Service kubernetes in the namespace default, and its EndpointSlice: where the server itself
 * is, as a kube-apiserver says of itself. Both are held to that, and made again. The Service is
 * headless, for nobody forwards packets here: its name leads to the server, not an address of its
 * own. Source: the Kubernetes documentation, Services, and what kube-apiserver v1.37 makes. */
#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds/builtin.h"
#include "reconcile/house_pass.h"

#define PORT 443 /* of the Service */

bool house_is_api(const struct object *o)
{
    if (o->kind == &kind_namespace)
        return strcmp(o->name, HOUSE_API_NAMESPACE) == 0;
    return (o->kind == &kind_service || o->kind == &kind_endpoint_slice) &&
           strcmp(o->namespace_name, HOUSE_API_NAMESPACE) == 0 &&
           strcmp(o->name, HOUSE_API_NAME) == 0;
}

/* ---- what is wanted ---- */

static cJSON *one(cJSON *take_item)
{
    cJSON *list = json_array();
    json_push(list, take_item);
    return list;
}

static cJSON *make_port(int port)
{
    cJSON *p = json_object();
    json_set_str(p, "name", "https");
    json_set_int(p, "port", port);
    json_set_str(p, "protocol", "TCP");
    return p;
}

static cJSON *make_service(const struct house_api *api)
{
    cJSON *s = house_named("v1", "Service", HOUSE_API_NAME), *port = make_port(PORT);
    json_set_at(s, "metadata.labels.component", json_string("apiserver"));
    json_set_at(s, "metadata.labels.provider", json_string("kubernetes"));
    json_set_int(port, "targetPort", api->port);
    json_set_at(s, "spec.clusterIP", json_string("None"));
    json_set_at(s, "spec.type", json_string("ClusterIP"));
    json_set_at(s, "spec.ports", one(port));
    return s;
}

static cJSON *make_slice(const struct house_api *api)
{
    cJSON *s = house_named("discovery.k8s.io/v1", "EndpointSlice", HOUSE_API_NAME),
          *labels = json_object(), *endpoint = json_object();
    json_set_str(labels, "kubernetes.io/service-name", HOUSE_API_NAME);
    json_set_at(s, "metadata.labels", labels);
    json_set(endpoint, "addresses", one(json_string(api->address)));
    json_set_at(endpoint, "conditions.ready", json_boolean(true));
    json_set_str(s, "addressType", strchr(api->address, ':') ? "IPv6" : "IPv4");
    json_set(s, "endpoints", one(endpoint));
    json_set(s, "ports", one(make_port(api->port)));
    return s;
}

/* Members beside the labels that nobody else has a say in; those that are not wanted go. */
static const struct row {
    const struct kind *kind;
    cJSON *(*make)(const struct house_api *api);
    const char *held[6];
} rows[] = {
    {&kind_service,
     make_service,
     {"spec.clusterIP", "spec.externalName", "spec.ports", "spec.selector", "spec.type"}},
    {&kind_endpoint_slice, make_slice, {"endpoints", "ports"}},
};

/* ---- holding ---- */

struct holding {
    const struct row *row;
    const cJSON *wanted;
};

static bool hold_label(cJSON *object, const cJSON *label)
{
    cJSON *labels = json_ensure_object(json_get(object, "metadata"), "labels");
    const cJSON *is = json_get(labels, label->string);
    if (is && json_equal(is, label))
        return false;
    json_set(labels, label->string, json_copy(label));
    return true;
}

static bool hold_member(cJSON *object, const cJSON *wanted, const char *path)
{
    const cJSON *is = json_at(object, path), *to_be = json_at(wanted, path);
    if (!is && !to_be)
        return false;
    if (is && to_be && json_equal(is, to_be))
        return false;
    if (to_be)
        json_set_at(object, path, json_copy(to_be));
    else
        json_remove(json_get(object, "spec"), strchr(path, '.') + 1);
    return true;
}

static bool hold(void *ctx, cJSON *object)
{
    const struct holding *h = ctx;
    bool is_new = false;
    const cJSON *label;
    cJSON_ArrayForEach(label, json_at(h->wanted, "metadata.labels")) is_new |=
        hold_label(object, label);
    for (const char *const *path = h->row->held; *path; path++)
        is_new |= hold_member(object, h->wanted, *path);
    return is_new;
}

/* The family of a slice's addresses stays what it was made with. */
static bool is_other_family(const struct object *present, const cJSON *wanted)
{
    SCOPED(json_free_p) cJSON *tree = object_tree(present);
    return !str_equal(json_str(tree, "addressType"), json_str(wanted, "addressType"));
}

static int drop(const struct pass_env *env, const struct object *o, struct err *err)
{
    const struct pass_delete del = {
        .kind = o->kind, .namespace_name = o->namespace_name, .name = o->name, .uid = o->uid};
    return house_forgive(pass_delete(env, &del, err), err);
}

static int ensure(const struct pass_env *env, const struct row *row, const struct house_api *api,
                  struct err *err)
{
    SCOPED(json_free_p) cJSON *wanted = row->make(api);
    SCOPED(object_unref_p) struct object *present = NULL;
    struct holding holding = {row, wanted};
    struct err e = {0};
    int rc = pass_get(env, row->kind, HOUSE_API_NAMESPACE, HOUSE_API_NAME, &present, err);
    if (rc < 0)
        return rc;
    if (present && !is_other_family(present, wanted))
        return house_forgive(house_change(env, present, hold, &holding, err), err);
    if (present && (rc = drop(env, present, err)) < 0)
        return rc;
    rc = pass_ensure(env, row->kind, HOUSE_API_NAMESPACE, json_copy(wanted), HOUSE_MANAGER, &e);
    return house_forgive_ending(rc, &e, err);
}

int house_api_pass(const struct pass_env *env, const struct house_api *api, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && api->address && i < ARRAY_LEN(rows); i++)
        rc = ensure(env, &rows[i], api, err);
    return rc;
}
