/* Which PersistentVolume a claim gets, and how both look then. Pure: trees in, trees out; any
 * thread. Source: the Kubernetes documentation, persistent volumes: binding, class, selector,
 * reserving, reclaiming. */
#pragma once

#include "apiserver/registry/object.h"

/* The name of a volume that is made for that claim; the caller's. */
char *volume_name_for(const struct object *claim);
/* Made for the claim, bound to it from the start; a folder of sandbox-node's. class_tree: its
 * StorageClass. The caller's. */
cJSON *volume_make(const struct object *claim, const cJSON *claim_tree, const cJSON *class_tree);
bool volume_is_ours(const cJSON *volume); /* sandbox-node keeps its data */

enum volume_hold {
    VOLUME_FREE,
    VOLUME_RESERVED, /* its claimRef names this claim, and no other of that name */
    VOLUME_TAKEN
};
enum volume_hold volume_hold(const cJSON *claim_ref, const struct object *claim);
/* Size, modes, kind and, where the claim names one, class are: what a claim that names a volume
 * must find in it. */
bool volume_satisfies(const cJSON *volume_tree, const cJSON *claim_tree);
/* These, class and labels are what the claim asks for. */
bool volume_suits(const struct object *volume, const cJSON *volume_tree, const cJSON *claim_tree);
int64_t volume_size(const cJSON *volume); /* thousandths of a byte; for comparing */

/* Each returns whether it changed anything. */
bool volume_give(cJSON *volume, const struct object *claim);
bool volume_set_phase(cJSON *object, const char *phase, const char *message);
/* claim: the tree to change. */
bool volume_take(cJSON *claim, const cJSON *volume);
