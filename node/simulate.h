/* Nodes that are not there: registers Node objects, keeps their leases, and does for the Pods bound
 * to them what a kubelet would report, by the rules of pod.h; binds Pods itself when asked to. No
 * container ever runs. Its size is bounded: what is remembered, by the Pods that fit on the nodes;
 * calls under way and connections, by the workers. */
#pragma once

#include "apiserver/base/clock.h"
#include "apiserver/kube/kube.h"
#include "node/pod.h"

struct simulation_config {
    struct kube *kube; /* borrowed */
    const struct clock *clock;
    const char *name; /* of the node; of several, NAME-0, NAME-1, ... */
    int nodes, workers;
    int pods_per_node;
    int64_t lease_ms; /* between renewals */
    struct pod_settings pods;
};
struct simulation;
struct simulation *simulation_start(const struct simulation_config *config);
/* Waits for calls under way; frees. Nodes and Pods stay as they are, as when a kubelet ends. */
void simulation_stop(struct simulation *s);
