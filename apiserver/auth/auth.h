/* Who is asking, and may they: front proxy, client certificates, bearer tokens;
 * SubjectAccessReview. Fails closed. Knows no transport: certificates come as DER, headers as
 * pairs. Source: docs/kubernetes-api.md 5 and 6. Any thread; blocks on reviews. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/err.h"
#include "apiserver/base/str.h"
#include "apiserver/kube/kube.h"

struct user { /* starts as {0}; user_fini */
    char *name, *uid;
    char **groups; /* NULL-terminated */
    struct pairs extra;
    bool is_proxied; /* named by the front proxy, which has the answer first */
};
void user_fini(struct user *u);
bool user_in_group(const struct user *u, const char *group);
void user_join_common(struct user *u); /* the group of all who are known, unless it is there */
/* What headers of that prefix say; the rest of their names is the key. */
void user_take_extra(struct user *u, const struct pairs *headers, const char *prefix);

struct cert_der {
    const unsigned char *p;
    size_t n;
};
/* What a connection and a request bring. Borrowed. */
struct credentials {
    const struct cert_der *chain; /* peer's certificates, leaf first; as sent, not verified */
    size_t n_chain;
    struct pairs
        *headers; /* identity headers and Authorization are removed once used, X-Remote-* always */
};

/* Who answers reviews where there is no cluster to ask. Neither is remembered: a change counts at
 * once. ret_status is what a review's status would be; errors as of a review that could not be
 * had. */
struct auth_judge {
    int (*access)(void *ctx, const cJSON *spec, cJSON **ret_status, struct err *err);
    int (*token)(void *ctx, const char *token, cJSON **ret_status, struct err *err);
    void *ctx;
};

struct auth;
struct auth_config {
    struct kube *kube; /* borrowed; NULL = no reviews: bearer tokens are refused, only rules below
                          authorize */
    const struct auth_judge *judge; /* borrowed; instead of the cluster, or NULL */
    const struct clock *clock;
    /* Static settings; NULL = read from (and follow)
     * kube-system/extension-apiserver-authentication. */
    const char *client_ca_file, *requestheader_ca_file;
    const char *const *requestheader_allowed_names; /* NULL-terminated */
    const char *const *username_headers;
    const char *const *group_headers;
    const char *const *extra_prefixes;
    const char *const *uid_headers;
};
/* Errors: unreadable files. */
int auth_new(const struct auth_config *config, struct auth **ret, struct err *err);
void auth_start(struct auth *a); /* begins to follow the ConfigMap */
void auth_free(struct auth *a);
bool auth_is_ready(const struct auth *a); /* CAs are known */

/* ERR_UNAUTHORIZED with the text Unauthorized; ERR_UNAVAILABLE only when a review could not be had,
 * or a certificate came before the authorities are known; ERR_FORBIDDEN for Impersonate-* headers,
 * unless there is a judge (impersonate.h).
 * Without credentials ret is system:anonymous. */
int auth_identify(struct auth *a, const struct credentials *creds, struct user *ret,
                  struct err *err);

/* Do these headers ask for a websocket? */
bool auth_is_socket_request(const struct pairs *headers);

struct access { /* borrowed strings, NULL or "" = absent */
    const char *verb;
    bool is_resource;
    const char *path; /* non-resource */
    const char *namespace_name, *group, *version, *resource, *subresource, *name;
    const cJSON *field_selector, *label_selector; /* {"requirements":[...]}, may be NULL */
};
/* 0 = allowed. ERR_FORBIDDEN with kube-apiserver's text and details; ERR_INTERNAL when the review
 * failed (never allowed then). */
int auth_authorize(struct auth *a, const struct user *u, const struct access *access,
                   struct err *err);
/* The status of a SubjectAccessReview with that spec, for answering one; only with a judge. */
int auth_review_access(struct auth *a, const cJSON *spec, cJSON **ret_status, struct err *err);
/* What a SubjectAccessReview's spec says of a user; added to spec. */
void auth_describe_user(const struct user *u, cJSON *spec);
