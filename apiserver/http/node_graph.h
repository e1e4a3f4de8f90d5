/* Which nodes have a Pod that refers to an object: what a node may know of (node_access.h). Follows
 * the cache's changes of Pods when it is asked, so it is as new as the cache and costs nothing
 * meanwhile; a change costs O(log objects) for each reference of a Pod that got a node or went, a
 * question the same. Any thread. */
#pragma once

#include "apiserver/registry/registry.h"

struct node_graph;
struct node_graph *node_graph_new(struct registry *registry); /* borrowed */
void node_graph_free(struct node_graph *g);                   /* before registry_stop */

struct reference {
    /* configmaps, persistentvolumeclaims, secrets or serviceaccounts; others nobody refers to */
    const char *resource, *namespace_name, *name;
};
/* Has the node such a Pod? Errors, here and below: the cache is not loaded. */
int node_graph_ask(struct node_graph *g, const struct reference *to, const char *node, bool *ret,
                   struct err *err);
/* All nodes that have one, the caller's; NULL = none. */
int node_graph_nodes(struct node_graph *g, const struct reference *to, char ***ret,
                     struct err *err);
