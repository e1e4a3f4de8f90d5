/* Client of the cluster's API server: configuration, requests, and a reflector (list + watch).
 * Knows no HTTP beyond base/fetch. Any thread. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "apiserver/base/err.h"
#include "apiserver/base/fetch.h"

struct kube;
/* From a kubeconfig file (current context), or in-cluster when path is NULL. fetch is borrowed.
 * Errors: ERR_INVALID with what is wrong in the file, ERR_NOT_FOUND no such file or not in a
 * cluster. */
int kube_new(const char *kubeconfig_path, struct fetch *fetch, struct kube **ret, struct err *err);
void kube_free(struct kube *k);
/* How it reaches the cluster: server and paths of files, which stay the same until kube_free; what
 * is in the files follows the kubeconfig (config.h). */
struct kube_config;
const struct kube_config *kube_get_config(const struct kube *k);

/* Content types of patches. */
#define KUBE_MERGE_PATCH "application/merge-patch+json"
#define KUBE_STRATEGIC_PATCH "application/strategic-merge-patch+json"

struct kube_place {
    const char *api;            /* /api/v1 or /apis/GROUP/VERSION */
    const char *namespace_name; /* NULL = of the whole cluster */
    const char *resource;       /* pods */
    const char *name;           /* NULL = all of them */
    const char *subresource;    /* NULL = the object itself */
};
char *kube_path(const struct kube_place *place); /* names escaped; the caller's */

struct kube_call {
    const char *method;       /* GET, POST, PUT, PATCH, DELETE */
    const char *path;         /* /api/v1/namespaces/x/pods, escaped, query included */
    const cJSON *body;        /* NULL = none */
    const char *content_type; /* NULL = application/json */
    int64_t timeout_ms;       /* 0 = 10,000 */
};
/* ret (may be NULL) gets the answer's tree. A Status answer becomes err: code by status and reason,
 * message and details kept. Other errors as fetch_do. Writes are never repeated by this
 * function. */
int kube_do(struct kube *k, const struct kube_call *call, cJSON **ret, struct err *err);

/* List and watch of one resource, resumed for ever. Callbacks run on one thread of the reflector's
 * own. */
struct reflector_ops {
    /* The whole present content (borrowed trees); what is not in it is gone. Called at the start
     * and after every relist. */
    void (*on_replace)(void *ctx, const cJSON *const *objects, size_t n,
                       const char *resource_version);
    /* One change; object is borrowed. is_delete: its last state. */
    void (*on_event)(void *ctx, const cJSON *object, bool is_delete);
    /* The connection to the cluster broke (false) or works (true); may be NULL. */
    void (*on_link)(void *ctx, bool is_up);
};
struct reflector;
/* path like /api/v1/pods; selectors may be NULL. Starts at once; on_replace comes as soon as the
 * cluster answers. */
struct reflector *reflector_start(struct kube *k, const char *path, const char *label_selector,
                                  const char *field_selector, const struct reflector_ops *ops,
                                  void *ctx);
void reflector_stop(struct reflector *r); /* waits until no callback runs; frees; NULL is fine */
