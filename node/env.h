/* What containers get from outside their own spec: environment variables, and the values of fields
 * of the Pod. Pure but for the look-up of other objects, which the caller gives. */
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/err.h"

/* Where a Pod finds the API server; without address nothing is said of it. */
#define ENV_API_HOST "kubernetes.default.svc" /* as its certificate has it */
struct env_api {
    const char *address; /* borrowed */
    int port;
};

struct sources { /* all borrowed */
    const cJSON *pod;
    const char *pod_ip, *host_ip;
    struct env_api api;
    /* resource is a plural like configmaps, of the Pod's namespace; or persistentvolumes. Errors:
     * ERR_NOT_FOUND. */
    int (*get)(void *ctx, const char *resource, const char *name, cJSON **ret, struct err *err);
    /* An object of that name was got before, and is of those that cannot change. */
    bool (*is_immutable)(void *ctx, const char *resource, const char *name);
    /* Of the Pod's service account, for a serviceAccountToken projection. */
    int (*token)(void *ctx, const cJSON *projection, char **ret, struct err *err);
    void *ctx;
};

#define ENV_MAX 4096                       /* variables of a container */
#define ENV_BYTES_MAX ((size_t)1024 << 10) /* together; the kernel takes about twice that */

/* An object, name to value; first, so that the container may say otherwise, KUBERNETES_SERVICE_HOST
 * and what belongs to it. Errors: ERR_INVALID or ERR_NOT_FOUND with a text for the user. */
int env_make(const struct sources *s, const cJSON *container, cJSON **ret, struct err *err);
/* $(NAME) becomes its value when env has it, $$ becomes $. Source: Kubernetes, "define dependent
 * environment variables". */
void env_expand(const char *text, const cJSON *env, struct buf *out);
/* A fieldRef's path: metadata.name, metadata.labels['x'], status.podIP, ... */
int env_field(const struct sources *s, const char *path, struct buf *out, struct err *err);
/* A resourceFieldRef. container is the one that the values are of. */
int env_resource(const cJSON *container, const cJSON *ref, struct buf *out, struct err *err);
