/* Role-based access control: does a binding name this user, and do a role's rules allow this? Works
 * on the objects' own trees and on the spec of a SubjectAccessReview. Pure; any thread. Source: the
 * Kubernetes reference, RBAC. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

/* subjects of a RoleBinding or ClusterRoleBinding, of that namespace ("" = none). */
bool rbac_names(const cJSON *subjects, const char *binding_namespace, const cJSON *spec);
/* rules of a Role or ClusterRole; is_cluster: of a binding everywhere, where paths count as
 * well. */
bool rbac_allows(const cJSON *rules, bool is_cluster, const cJSON *spec);
