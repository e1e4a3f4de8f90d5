/* Which Pods a node does not take: fields that it does not know or does not support, and wishes
 * that reach out of the Pod and are not allowed here. Everything is refused that no table allows,
 * so that nothing is left out silently. Pure. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "apiserver/base/buf.h"

struct refuse_policy {         /* borrowed; lists end with NULL, NULL is the empty one */
    char *const *host_paths;   /* folders that hostPath volumes may name, with what is below */
    char *const *capabilities; /* that containers may add, without CAP_ */
    char *const *runtimes;     /* CLASS=RUNTIME, for runtimeClassName */
};
#define REFUSE_UNSUPPORTED "UnsupportedPod"
#define REFUSE_FORBIDDEN "ForbiddenPod"

/* NULL when it is taken; else the reason, and into why each field with what is wrong. */
const char *refuse_pod(const cJSON *pod, const struct refuse_policy *policy, struct buf *why);
/* The engine's runtime for a Pod's runtimeClassName; NULL = its default. */
const char *refuse_runtime(const cJSON *pod, const struct refuse_policy *policy);
/* Bytes of path that name the allowed folder that it is, or is below, as text: of several the
 * outermost, for what is in it may be a container's. 0 = there is none. */
size_t refuse_allowed_length(const char *path, char *const *folders);
