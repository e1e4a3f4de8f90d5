/* Questions about users: who is it, may they. Nothing of them is stored. Source: the Kubernetes API
 * reference, v1.37. */
#include "openapi/kinds.h"
#include "openapi/kinds/builtin.h"

#define REVIEW(c_group, c_kind, plural_name, singular_name, text)                                  \
    .group = c_group ".k8s.io", .version = "v1", .kind = c_kind, .list_kind = c_kind "List",       \
    .plural = plural_name, .singular = singular_name, .is_builtin = true, .is_review = true,       \
    .schema_name = "io.k8s.api." c_group ".v1." c_kind, .doc = text

const struct kind kind_self_subject_review = {
    REVIEW("authentication", "SelfSubjectReview", "selfsubjectreviews", "selfsubjectreview",
           "Who am I?"),
    .is_cluster_scoped = true,
    .shape = &shape_self_subject_review,
};
const struct kind kind_token_review = {
    REVIEW("authentication", "TokenReview", "tokenreviews", "tokenreview", "Whose token is this?"),
    .is_cluster_scoped = true,
    .shape = &shape_token_review,
};
const struct kind kind_local_subject_access_review = {
    REVIEW("authorization", "LocalSubjectAccessReview", "localsubjectaccessreviews",
           "localsubjectaccessreview", "May somebody do this in a namespace?"),
    .shape = &shape_local_subject_access_review,
};
const struct kind kind_self_subject_access_review = {
    REVIEW("authorization", "SelfSubjectAccessReview", "selfsubjectaccessreviews",
           "selfsubjectaccessreview", "May I do this?"),
    .is_cluster_scoped = true,
    .shape = &shape_self_subject_access_review,
};
const struct kind kind_self_subject_rules_review = {
    REVIEW("authorization", "SelfSubjectRulesReview", "selfsubjectrulesreviews",
           "selfsubjectrulesreview", "What may I do?"),
    .is_cluster_scoped = true,
    .shape = &shape_self_subject_rules_review,
};
const struct kind kind_subject_access_review = {
    REVIEW("authorization", "SubjectAccessReview", "subjectaccessreviews", "subjectaccessreview",
           "May somebody do this?"),
    .is_cluster_scoped = true,
    .shape = &shape_subject_access_review,
};
