/* From a SandboxTemplate to Sandboxes: the spec that a template gives, its secure defaults, its
 * hashes, and whether a Sandbox made earlier still is what the template says. Pools and claims
 * share it, so both judge by one measure. Pure; any thread. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "apiserver/base/rand.h"

/* Hash of the template's name: the value of LABEL_TEMPLATE_REF_HASH, and what its NetworkPolicy
 * selects. */
void template_ref_hash(const char *template_name, char out[NAME_HASH_SIZE]);

struct blueprint {
    const cJSON *template; /* borrowed for as long as this is used */
    char ref_hash[NAME_HASH_SIZE];
    /* FNV-1a 32 over the semantic normal form of spec's podTemplate, volumeClaimTemplates and
     * service, and of podTemplate alone. Metadata of the pod is in it: another hash alone does not
     * mean stale. The original hashes the bytes of Go's encoding instead, so its hashes are other
     * ones, and members with those are compared by content. */
    char hash[NAME_HASH_SIZE], pod_template_hash[NAME_HASH_SIZE];
};
void blueprint_init(struct blueprint *ret, const cJSON *template);

/* The spec of a new Sandbox, with secure defaults; the caller's. */
cJSON *blueprint_spec(const cJSON *template);
bool template_is_managed(const cJSON *template); /* networkPolicyManagement is not Unmanaged */

/* Same pod spec (with secure defaults), volume claims (name and spec, in order) and service;
 * metadata never counts. */
bool blueprint_equals(const cJSON *template, const cJSON *sandbox_spec);
/* W5: not of this template, or not current: it neither carries the present hash nor is equal.
 * trust_labels = false compares in any case. One predicate for pools and claims. */
bool blueprint_is_stale(const struct blueprint *b, const cJSON *sandbox, bool trust_labels);
