/* The objects of a node: Node, its status, its Lease. Pure; trees are the caller's. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#define OBJECT_LEASES "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

struct node_facts {
    const char *name, *address; /* borrowed */
    int pods;                   /* room */
    bool is_simulated;          /* room for whatever Pods ask for: only their number is limited */
    int64_t cpus, memory_bytes; /* of one that is not simulated */
    int port;                   /* of its server; 0 = it has none */
};
cJSON *object_node(const struct node_facts *facts);
/* A strategic merge patch. */
cJSON *object_node_status(const struct node_facts *facts, int64_t now_unix_s);
/* Whole, and a merge patch as well. Who does not renew it for four times renew_ms is gone. */
cJSON *object_lease(const char *name, int64_t renew_ms, int64_t now_unix_ms);
