#include "node/object.h"

#include <inttypes.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "node/pod.h"

static cJSON *named(const char *api_version, const char *kind, const char *name)
{
    cJSON *o = json_object();
    json_add(o, "apiVersion", json_string(api_version));
    json_add(o, "kind", json_string(kind));
    json_set_at(o, "metadata.name", json_string(name));
    return o;
}

cJSON *object_node(const struct node_facts *facts)
{
    cJSON *node = named("v1", "Node", facts->name), *labels = json_object();
    json_add(labels, "kubernetes.io/hostname", json_string(facts->name));
    json_add(labels, "kubernetes.io/os", json_string("linux"));
    if (facts->is_simulated)
        json_add(labels, POD_LABEL_SIMULATED, json_string("true"));
    json_set_at(node, "metadata.labels", labels);
    return node;
}

static cJSON *room(const struct node_facts *facts)
{
    cJSON *r = json_object();
    SCOPED_FREE char *pods = xasprintf("%d", facts->pods);
    SCOPED_FREE char *cpus = xasprintf("%" PRId64, facts->cpus);
    SCOPED_FREE char *memory = xasprintf("%" PRId64, facts->memory_bytes);
    json_add(r, "cpu", json_string(facts->is_simulated ? "100k" : cpus));
    json_add(r, "memory", json_string(facts->is_simulated ? "1Pi" : memory));
    if (facts->is_simulated)
        json_add(r, "ephemeral-storage", json_string("1Pi"));
    json_add(r, "pods", json_string(pods));
    return r;
}

static const struct {
    const char *type, *status;
} conditions[] = {
    {"MemoryPressure", "False"},
    {"DiskPressure", "False"},
    {"PIDPressure", "False"},
    {"Ready", "True"},
};

static cJSON *condition_list(const struct node_facts *facts, const char *at)
{
    cJSON *list = json_array();
    for (size_t i = 0; i < ARRAY_LEN(conditions); i++) {
        cJSON *c = json_object();
        json_add(c, "type", json_string(conditions[i].type));
        json_add(c, "status", json_string(conditions[i].status));
        json_add(c, "reason", json_string(facts->is_simulated ? "Simulated" : "NodeRuns"));
        json_add(c, "message",
                 json_string(facts->is_simulated ? "no container runs here"
                                                 : "sandbox-node runs containers by Podman"));
        json_add(c, "lastHeartbeatTime", json_string(at));
        json_add(c, "lastTransitionTime", json_string(at));
        json_push(list, c);
    }
    return list;
}

static cJSON *address(const char *type, const char *value)
{
    cJSON *a = json_object();
    json_add(a, "type", json_string(type));
    json_add(a, "address", json_string(value));
    return a;
}

cJSON *object_node_status(const struct node_facts *facts, int64_t now_unix_s)
{
    char at[CLOCK_TEXT_SIZE];
    clock_print_rfc3339(now_unix_s, at);
    cJSON *node = json_object(), *addresses = json_array();
    json_push(addresses, address("InternalIP", facts->address));
    json_push(addresses, address("Hostname", facts->name));
    json_set_at(node, "status.capacity", room(facts));
    json_set_at(node, "status.allocatable", room(facts));
    json_set_at(node, "status.addresses", addresses);
    if (facts->port)
        json_set_at(node, "status.daemonEndpoints.kubeletEndpoint.Port", json_int(facts->port));
    json_set_at(node, "status.conditions", condition_list(facts, at));
    json_set_at(node, "status.nodeInfo.kubeletVersion",
                json_string(facts->is_simulated ? "simulated" : "sandbox-node " VERSION));
    return node;
}

cJSON *object_lease(const char *name, int64_t renew_ms, int64_t now_unix_ms)
{
    char at[CLOCK_TEXT_SIZE];
    clock_print_rfc3339_micro(now_unix_ms * 1000, at);
    cJSON *lease = named("coordination.k8s.io/v1", "Lease", name);
    int64_t seconds = (4 * renew_ms + 999) / 1000;
    json_set_at(lease, "spec.holderIdentity", json_string(name));
    json_set_at(lease, "spec.leaseDurationSeconds", json_int(seconds));
    json_set_at(lease, "spec.renewTime", json_string(at));
    return lease;
}
