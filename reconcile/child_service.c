/* The headless Service of a Sandbox and its ports, derived from the containers (S12, S13). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "reconcile/child.h"
#include "reconcile/keys.h"

struct port {
    int64_t number;
    const char *protocol;
    const char *name; /* first explicit one; NULL = to be generated */
    char *generated;
};
struct ports { /* a Sandbox may have tens of thousands: nothing here looks through all of them */
    struct port *v;
    size_t n, cap;
    struct map *places; /* NUMBER/protocol -> index in v, and one */
    struct map *names;  /* those in use: a set */
};

static bool ports_take_name(struct ports *ports, const char *name)
{
    if (map_get(ports->names, name))
        return false;
    map_put(ports->names, name, ports);
    return true;
}

/* That one, made when there is none yet. */
static struct port *ports_get(struct ports *ports, int64_t number, const char *protocol)
{
    SCOPED_FREE char *place = xasprintf("%" PRId64 "/%s", number, protocol);
    uintptr_t at = (uintptr_t)map_get(ports->places, place);
    if (at)
        return &ports->v[at - 1];
    if (ports->n == ports->cap) {
        ports->cap = ports->cap ? 2 * ports->cap : 8;
        ports->v = xreallocarray(ports->v, ports->cap, sizeof *ports->v);
    }
    ports->v[ports->n++] = (struct port){.number = number, .protocol = protocol};
    map_put(ports->places, place, (void *)(uintptr_t)ports->n);
    return &ports->v[ports->n - 1];
}

static void ports_add(struct ports *ports, const cJSON *container_port)
{
    int64_t number = json_i64_or(container_port, "containerPort", 0);
    const char *protocol = json_str_or(container_port, "protocol", "TCP");
    const char *name = json_str_or(container_port, "name", "");
    if (number == 0)
        return;
    struct port *p = ports_get(ports, number, *protocol ? protocol : "TCP");
    if (!p->name && *name && ports_take_name(ports, name))
        p->name = name;
}

static void ports_add_containers(struct ports *ports, const cJSON *containers, bool sidecars_only)
{
    const cJSON *c;
    cJSON_ArrayForEach(c, containers)
    {
        if (sidecars_only && !str_equal(json_str(c, "restartPolicy"), "Always"))
            continue;
        const cJSON *p;
        cJSON_ArrayForEach(p, json_get(c, "ports"))
        {
            ports_add(ports, p);
        }
    }
}

static int port_order(const void *a, const void *b)
{
    const struct port *x = a, *y = b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return strcmp(x->protocol, y->protocol);
}

/* p-PORT-protocol, with -2, -3, ... when the name is in use. */
static char *port_generate_name(struct ports *ports, const struct port *p)
{
    SCOPED_FREE char *protocol = xstrdup(p->protocol);
    str_lower(protocol);
    char *name = xasprintf("p-%" PRId64 "-%s", p->number, protocol);
    for (unsigned i = 2; !ports_take_name(ports, name); i++) {
        free(name);
        name = xasprintf("p-%" PRId64 "-%s-%u", p->number, protocol, i);
    }
    return name;
}

cJSON *service_ports(const cJSON *pod_spec)
{
    struct ports ports = {.places = map_new(), .names = map_new()};
    ports_add_containers(&ports, json_get(pod_spec, "containers"), false);
    ports_add_containers(&ports, json_get(pod_spec, "initContainers"), true);
    if (ports.n)
        qsort(ports.v, ports.n, sizeof *ports.v, port_order);
    cJSON *out = json_array();
    for (size_t i = 0; i < ports.n; i++) {
        struct port *p = &ports.v[i];
        if (!p->name)
            p->generated = port_generate_name(&ports, p);
        cJSON *port = json_object();
        json_set_str(port, "name", p->name ? p->name : p->generated);
        json_set_str(port, "protocol", p->protocol);
        json_set_int(port, "port", p->number);
        json_set_int(port, "targetPort", p->number);
        json_push(out, port);
    }
    for (size_t i = 0; i < ports.n; i++)
        free(ports.v[i].generated);
    free(ports.v);
    map_free(ports.places);
    map_free(ports.names);
    return out;
}

static cJSON *ports_of(const cJSON *sandbox)
{
    return service_ports(json_at(sandbox, "spec.podTemplate.spec"));
}

static cJSON *tracking_map(const cJSON *sandbox)
{
    char hash[NAME_HASH_SIZE];
    tracking_hash(sandbox, hash);
    cJSON *map = json_object();
    json_set_str(map, LABEL_NAME_HASH, hash);
    return map;
}

cJSON *service_desired(const cJSON *sandbox)
{
    cJSON *service = json_object(), *meta = json_object(), *spec = json_object(),
          *owners = json_array();
    json_set_str(service, "apiVersion", "v1");
    json_set_str(service, "kind", "Service");
    json_set_str(meta, "name", meta_name(sandbox));
    json_set_str(meta, "namespace", meta_namespace(sandbox));
    json_set(meta, "labels", tracking_map(sandbox));
    json_push(owners, owner_reference(sandbox));
    json_set(meta, "ownerReferences", owners);
    json_set(service, "metadata", meta);
    json_set_str(spec, "clusterIP", "None");
    json_set(spec, "selector", tracking_map(sandbox));
    cJSON *ports = ports_of(sandbox);
    if (json_len(ports))
        json_set(spec, "ports", ports);
    else
        json_free(ports);
    json_set(service, "spec", spec);
    return service;
}

/* Only name, protocol, port and targetPort count, in order; what else a port carries is somebody
 * else's. */
static bool ports_match(const cJSON *is, const cJSON *should_be)
{
    static const char *const fields[] = {"name", "protocol", "port", "targetPort"};
    if (json_len(is) != json_len(should_be))
        return false;
    const cJSON *a = is ? is->child : NULL;
    for (const cJSON *b = should_be->child; b; b = b->next, a = a->next) {
        for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
            if (!json_equal(json_get(a, fields[i]), json_get(b, fields[i])))
                return false;
        }
    }
    return true;
}

cJSON *service_patch(const cJSON *sandbox, const cJSON *service, bool with_ports)
{
    SCOPED(json_free_p) cJSON *tracking = tracking_map(sandbox);
    SCOPED(json_free_p) cJSON *ports = ports_of(sandbox);
    SCOPED(json_free_p) cJSON *spec = json_object();
    cJSON *meta = json_object(), *patch = json_object();
    json_set(patch, "metadata", meta);
    json_set_str(meta, "uid", meta_uid(service));
    bool differs = false;
    if (!str_equal(meta_label(service, LABEL_NAME_HASH), tracking->child->valuestring)) {
        json_set(meta, "labels", json_copy(tracking));
        differs = true;
    }
    const cJSON *selector = json_at(service, "spec.selector");
    if (!json_equal(selector, tracking)) {
        /* A merge patch merges maps: what should not be there is set to null. */
        cJSON *repaired = json_copy(tracking);
        const cJSON *entry;
        cJSON_ArrayForEach(entry, selector)
        {
            if (!json_get(tracking, entry->string))
                json_set(repaired, entry->string, json_null());
        }
        json_set(spec, "selector", repaired);
    }
    if (with_ports && !ports_match(json_at(service, "spec.ports"), ports))
        json_set(spec, "ports", json_len(ports) ? steal(&ports) : json_null());
    if (json_len(spec)) {
        json_set(patch, "spec", steal(&spec));
        differs = true;
    }
    if (!differs) {
        json_free(patch);
        return NULL;
    }
    return patch;
}

cJSON *service_adopted(const cJSON *sandbox, const cJSON *service)
{
    cJSON *adopted = json_copy(service);
    cJSON *meta = json_ensure_object(adopted, "metadata");
    cJSON *spec = json_ensure_object(adopted, "spec");
    char hash[NAME_HASH_SIZE];
    tracking_hash(sandbox, hash);
    json_set_str(json_ensure_object(meta, "labels"), LABEL_NAME_HASH, hash);
    json_set(meta, "ownerReferences", owner_references_with(service, sandbox));
    json_set(spec, "selector", tracking_map(sandbox));
    cJSON *ports = ports_of(sandbox);
    if (json_len(ports)) {
        json_set(spec, "ports", ports);
    } else {
        json_free(ports);
        json_remove(spec, "ports");
    }
    return adopted;
}
