/* The real cluster behind cluster.h. */
#pragma once

#include "apiserver/kube/kube.h"
#include "reconcile/cluster.h"

struct cluster_kube_config {
    struct kube *kube; /* borrowed */
    /* A child was added, changed or deleted that concerns the owner_kind (KIND_SANDBOX,
     * KIND_TEMPLATE) of ours called owner_name in that namespace. Runs on reflector threads. */
    void (*on_child)(void *ctx, const char *owner_kind, const char *namespace_name,
                     const char *owner_name);
    void *ctx;
};
/* Starts the reflectors. free stops them. */
struct cluster *cluster_kube_new(const struct cluster_kube_config *config);
/* Every cache has its first content. */
bool cluster_kube_is_synced(struct cluster *c);
