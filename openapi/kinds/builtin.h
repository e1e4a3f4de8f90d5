/* Kinds of Kubernetes itself, as a server without a cluster serves them: their shapes, generated
 * from a kube-apiserver's documents, and what those documents do not say: rules, defaults, columns,
 * endpoints (core.c, groups.c). */
#pragma once

#include "openapi/shape.h"

/* What several of their tables have. */
#define COLUMN_AGE                                                                                 \
    {                                                                                              \
        .name = "Age", .type = COL_DATE, .path = ".metadata.creationTimestamp",                    \
        .doc = "Time since the object was made."                                                   \
    }
#define COLUMNS_EVENT(object_path, message_path)                                                   \
    {.name = "Last Seen",                                                                          \
     .type = COL_DATE,                                                                             \
     .cell = CELL_LAST_SEEN,                                                                       \
     .path = ".metadata.creationTimestamp",                                                        \
     .doc = "Time since it last happened."},                                                       \
        {.name = "Type", .type = COL_STRING, .path = ".type", .doc = "Normal or Warning."},        \
        {.name = "Reason",                                                                         \
         .type = COL_STRING,                                                                       \
         .path = ".reason",                                                                        \
         .doc = "What happened, in a word."},                                                      \
        {.name = "Object",                                                                         \
         .type = COL_STRING,                                                                       \
         .cell = CELL_REFERENCE,                                                                   \
         .path = object_path,                                                                      \
         .doc = "What it happened to."},                                                           \
    {                                                                                              \
        .name = "Message", .type = COL_STRING, .path = message_path, .doc = "What happened."       \
    }

extern const struct kind kind_config_map, kind_core_event, kind_namespace, kind_node,
    kind_persistent_volume, kind_persistent_volume_claim, kind_pod, kind_secret, kind_service,
    kind_service_account;
extern const struct kind kind_endpoint_slice, kind_event, kind_lease, kind_network_policy,
    kind_storage_class;
extern const struct kind kind_cluster_role, kind_cluster_role_binding, kind_role, kind_role_binding;

extern const struct kind kind_custom_resource_definition;
extern const struct kind kind_local_subject_access_review, kind_self_subject_access_review,
    kind_self_subject_review, kind_self_subject_rules_review, kind_subject_access_review,
    kind_token_review;

extern const struct shape shape_config_map, shape_core_event, shape_namespace, shape_node,
    shape_persistent_volume, shape_persistent_volume_claim, shape_pod, shape_secret, shape_service,
    shape_service_account;
extern const struct shape shape_endpoint_slice, shape_event, shape_lease, shape_network_policy,
    shape_storage_class;
extern const struct shape shape_cluster_role, shape_cluster_role_binding, shape_role,
    shape_role_binding;
extern const struct shape shape_local_subject_access_review, shape_self_subject_access_review,
    shape_self_subject_review, shape_self_subject_rules_review, shape_subject_access_review,
    shape_token_review;

/* The ConfigMap of each namespace that has the authority Pods trust the server by. */
#define KUBE_ROOT_CA "kube-root-ca.crt"

/* Named by the kinds; ended by an empty row (checks.c). */
extern const struct path_check checks_config_map[], checks_persistent_volume_claim[], checks_pod[],
    checks_secret[], checks_service[];

/* Named by the generated shapes; ended by an empty row. */
extern const struct rule rules_config_map[], rules_persistent_volume_claim[], rules_pod[],
    rules_secret[], rules_service[];
extern const struct rule rules_endpoint_slice[], rules_storage_class[],
    rules_cluster_role_binding[], rules_role_binding[];
