/* What is known of one kind of children in the cluster: the content of a watch, and answers to
 * reads and writes that the watch has not reached yet. It never goes back in time: a state is kept
 * only if it is newer than the one that is there, and one that the watch has passed already is not
 * taken for present. Entries hold reduced JSON text, parsed when a pass asks: a pass is rare,
 * memory is not. Any thread. */
#pragma once

#include "reconcile/cluster.h"

struct child_kind {
    const char *api; /* what comes before /namespaces and /plural in paths */
    const char *plural;
    const char *label;                    /* those that are watched have it; NULL = all are */
    const char *owner_group, *owner_kind; /* of whose children it is */
};
const struct child_kind *child_kind_of(enum child child);

/* A child concerns the owner_kind of ours called owner_name in that namespace and was added,
 * changed or deleted. */
typedef void (*child_change_fn)(void *ctx, const char *owner_kind, const char *namespace_name,
                                const char *owner_name);

struct child_cache;
struct child_cache *child_cache_new(enum child child, child_change_fn on_child, void *ctx);
void child_cache_free(struct child_cache *c);

/* From the watch, in its order, on one thread. */
void child_cache_replace(struct child_cache *c, const cJSON *const *objects, size_t n,
                         const char *resource_version);
void child_cache_event(struct child_cache *c, const cJSON *object, bool is_delete);
/* From the cluster's answer to a read or write. */
void child_cache_answer(struct child_cache *c, const cJSON *object);

bool child_cache_is_synced(struct child_cache *c);
/* the caller's; NULL when absent */
cJSON *child_cache_get(struct child_cache *c, const char *namespace_name, const char *name);
/* array: those with that tracking hash */
cJSON *child_cache_list(struct child_cache *c, const char *namespace_name, const char *hash);
