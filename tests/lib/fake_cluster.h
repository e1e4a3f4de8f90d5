/* A cluster in memory for tests of passes: children as trees, calls counted, calls that fail or
 * refuse on demand. One thread. */
#pragma once

#include "apiserver/base/map.h"
#include "reconcile/cluster.h"

struct fake_cluster {
    struct cluster base;
    struct omap *objects; /* plural/ns/name -> cJSON */
    int creates, patches, updates, deletes, events;
    int calls, fail_at; /* the call of that number (from 1) fails; 0 = none */
    enum err_code fail_code;
    const char *refuse_pods;                 /* text: creating a Pod is refused */
    enum err_code refuse_code;               /* as what; 0 = Invalid */
    void (*before_create)(enum child child); /* what happens as a child is about to be made */
    bool hold_deleted;                       /* Pods get a deletionTimestamp and stay */
    char last_event[64], last_note[256];
};
void fake_cluster_init(struct fake_cluster *f);
void fake_cluster_fini(struct fake_cluster *f);
/* As if somebody had made it; replaces one of that name. */
void fake_cluster_put(struct fake_cluster *f, enum child child, const char *ns, cJSON *take_object);
/* borrowed; NULL */
cJSON *fake_cluster_find(struct fake_cluster *f, enum child child, const char *ns,
                         const char *name);
void fake_cluster_remove(struct fake_cluster *f, enum child child, const char *ns,
                         const char *name);
