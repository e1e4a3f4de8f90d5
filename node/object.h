/* The objects of a simulated node: Node, its status, its Lease. Pure; trees are the caller's. */
#pragma once

#include <cjson/cJSON.h>
#include <stdint.h>

#define OBJECT_LEASES "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

cJSON *object_node(const char *name);
/* A strategic merge patch. */
cJSON *object_node_status(const char *name, const char *address, int pods, int64_t now_unix_s);
/* Whole, and a merge patch as well. Who does not renew it for four times renew_ms is gone. */
cJSON *object_lease(const char *name, int64_t renew_ms, int64_t now_unix_ms);
