/* The list of kinds served, and look-up in it. Pure; any thread. */
#pragma once

#include "openapi/shape.h"

extern const struct kind kind_sandbox, kind_sandbox_template, kind_sandbox_claim,
    kind_sandbox_warm_pool;
extern const struct kind *const kinds_all[]; /* ended by NULL; in order of group, then plural */
/* The same and the kinds of Kubernetes that a server without a cluster has to serve itself. */
extern const struct kind *const kinds_standalone[];
#define KINDS_MAX 48
/* What this process serves: kinds_all, unless main has chosen the other list, once, at start. */
extern const struct kind *const *kinds_served;

const struct kind *kind_find(const char *group, const char *version,
                             const char *plural); /* NULL when unknown */
const struct kind *kind_find_by_kind(const char *group, const char *kind);
char *kind_resource_name(const struct kind *k); /* sandboxes.agents.x-k8s.io; without the dot for
                                                   the   core group */
char *kind_api_path(const struct kind *k); /* /apis/agents.x-k8s.io/v1beta1; /api/v1 for that */
const struct subresource *kind_subresource(const struct kind *k, const char *name); /* or NULL */
char *kind_api_version(const struct kind *k); /* agents.x-k8s.io/v1beta1; v1 for the core group */
bool kind_group_version_served(const char *group, const char *version);

extern const struct shape shape_pod_spec; /* generated: kinds/podspec.gen.c */
extern const struct shape shape_pvc_spec; /* generated: kinds/pvcspec.gen.c */
extern const struct shape shape_network_policy_ingress,
    shape_network_policy_egress; /* generated: kinds/netpol.gen.c */
extern const struct shape shape_condition, shape_pod_template, shape_pod_metadata,
    shape_volume_claim_template; /* kinds/meta.c */
#define ANNOTATION_IDLE_TIMEOUT "sandbox-apiserver/idle-timeout"
extern const struct duration_annotation idle_durations[]; /* kinds/meta.c */

const struct field *shape_field(const struct shape *s,
                                const char *name); /* NULL when it has none of that name */
/* Mistakes in the tables (names twice, missing texts, keys that do not exist, defaults that do not
 * validate, unknown ref, columns that lead nowhere): number found; each printed to the callback.
 * For start-up and tests. */
size_t kinds_check(void (*report)(void *ctx, const char *text), void *ctx);
