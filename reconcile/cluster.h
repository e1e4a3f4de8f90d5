/* The cluster as the reconciler needs it: children and events, as a table of functions. Behind it
 * stands the real cluster (cluster_kube.c: watch-fed caches and kube calls); tests have a twin in
 * memory. Any thread; trees that come back are the caller's. Errors are those of kube_do. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "apiserver/base/err.h"

enum child { CHILD_POD, CHILD_SERVICE, CHILD_PVC, CHILD_NETPOL, CHILD_KINDS };

struct cluster;
struct cluster_vtable {
    /* *ret is NULL when there is none. live: ask the cluster when the cache has none (a cache may
     * be behind, and those of Pods and claims hold only objects with the tracking label). Pods come
     * without spec but for nodeName. */
    int (*get)(struct cluster *c, enum child child, const char *namespace_name, const char *name,
               bool live, cJSON **ret, struct err *err);
    /* Array of the cached ones with that tracking hash. */
    cJSON *(*list)(struct cluster *c, enum child child, const char *namespace_name,
                   const char *hash);
    int (*create)(struct cluster *c, enum child child, const char *namespace_name,
                  const cJSON *body, cJSON **ret, struct err *err);
    int (*patch)(struct cluster *c, enum child child, const char *namespace_name, const char *name,
                 const cJSON *merge_patch, cJSON **ret, struct err *err);
    int (*update)(struct cluster *c, enum child child, const char *namespace_name, const char *name,
                  const cJSON *body, cJSON **ret, struct err *err);
    /* With uid as precondition; ERR_NOT_FOUND when it is gone already. */
    int (*del)(struct cluster *c, enum child child, const char *namespace_name, const char *name,
               const char *uid, struct err *err);
    /* Sends an events.k8s.io/v1 Event some time soon; lost when the cluster does not take it. Takes
     * event over. */
    void (*emit)(struct cluster *c, const char *namespace_name, cJSON *take_event);
    void (*free)(struct cluster *c);
};
struct cluster { /* embedded first in each implementation */
    const struct cluster_vtable *v;
};
