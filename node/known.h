/* What is known of Pods, policies and Namespaces, as the cluster tells it in whatever order, and of
 * the sandboxes that run here. Counts what changes, so that somebody can tell whether there is
 * something to do. Not locked; trees that are given are borrowed, and what counts of them
 * copied. */
#pragma once

#include "node/link.h"
#include "node/policy.h"

enum known_source { KNOWN_PODS, KNOWN_POLICIES, KNOWN_NAMESPACES, KNOWN_SOURCES };

struct known {              /* known_init, known_fini */
    const char *node;       /* borrowed */
    struct map *pods;       /* uid to struct known_pod */
    struct map *policies;   /* NAMESPACE/NAME to its namespace and spec */
    struct map *namespaces; /* name to its labels */
    bool is_listed[KNOWN_SOURCES];
    uint64_t changes;
};
struct known_sandbox {
    char *netns; /* NULL = there is none */
    uint32_t ip;
    struct link_port at;
    uint64_t since; /* number of the change that brought it */
};
struct known_pod {
    char *uid, *namespace_name;
    cJSON *labels, *ports;
    uint64_t version;   /* 0 = the cluster has not told of it yet */
    bool is_there;      /* in the cluster */
    uint32_t elsewhere; /* its address on another node, 0 = none */
    struct known_sandbox sandbox;
    bool is_selected; /* the owner's */
    struct policy_pod view;
};
void known_init(struct known *k, const char *node);
void known_fini(struct known *k);
bool known_is_whole(const struct known *k); /* every list has come */

/* The cluster's news. A list is the whole of a kind. */
void known_take(struct known *k, enum known_source source, const cJSON *object, bool is_delete);
void known_take_list(struct known *k, enum known_source source, const cJSON *const *objects,
                     size_t n);

/* Whoever had the address before has it no more. */
void known_attach(struct known *k, const char *uid, const char *netns, uint32_t ip,
                  const struct link_port *at);
void known_detach(struct known *k, const char *uid);

/* Pods that have an address, and all policies. Of this node those that the cluster has told of and
 * whose sandbox runs. */
struct known_view { /* known_view_fini; borrows from k until that changes */
    const struct policy_pod **pods;
    const cJSON **policies;
    size_t n_pods, n_policies;
};
struct known_view known_look(struct known *k);
void known_view_fini(struct known_view *v);
