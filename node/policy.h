/* From NetworkPolicies, Pods and Namespaces to the rules that the kernel holds: which packets may
 * pass the bridge of this node's Pods. Pure; any thread.
 *
 * Every packet is judged by its connection, as the kernel tracks it: who began it and who was
 * meant, in both directions. So answers need no rule of their own, and what a policy no longer
 * allows ends at once, though it had begun. Texts of rules that are alike stand there once: a
 * thousand Pods of one template are one chain and a thousand elements of a map. Source of the
 * semantics: the Kubernetes reference, NetworkPolicy. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/map.h"

struct policy_pod { /* borrowed */
    const char *namespace_name;
    const cJSON *labels; /* may be NULL */
    const cJSON *ports;  /* of all its containers, those with a name; may be NULL */
    uint32_t ip;         /* host order */
    /* Of this node: its port of the bridge and the hardware address behind it; NULL = elsewhere. */
    const char *port, *mac;
};
struct policy_world { /* borrowed */
    const char *bridge;
    const cJSON *const *policies;
    size_t n_policies;
    const struct policy_pod *const *pods; /* no two of this node have the same address */
    size_t n_pods;
    const struct map *namespaces; /* name to its labels, a cJSON */
};

/* A policy that says more allows nothing: rules, peers and ports together; bytes for one Pod. */
#define POLICY_ENTRIES_MAX 4096
#define POLICY_TEXT_MAX ((size_t)1 << 20)
#define POLICY_RULES_MAX ((size_t)16 << 20) /* bytes of a ruleset; more is refused as a whole */

/* The ruleset, for one transaction of nftables that replaces what was there; false when it is too
 * large. Without Pods of this node it only takes away. */
bool policy_compile(const struct policy_world *world, struct buf *out);
bool policy_is_too_large(const cJSON *policy);
/* Whether a policy is for that Pod. */
bool policy_selects(const cJSON *policy, const struct policy_pod *pod);
/* Whether the name of an interface can stand in a ruleset. */
bool policy_can_name(const char *interface);
/* A label selector, {matchLabels, matchExpressions}; NULL and {} match everything. */
bool policy_match_labels(const cJSON *selector, const cJSON *labels);
