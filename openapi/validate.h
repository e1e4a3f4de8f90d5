/* Checks a tree against its table and reports every failure with its field path, in the words of
 * kube-apiserver's CRD validation (docs/kubernetes-api.md 13.6). Pure; any thread. Rules written in
 * CEL are admission's. */
#pragma once

#include <cjson/cJSON.h>

#include "apiserver/base/err.h"
#include "openapi/shape.h"

struct validate_opts {
    /* The stored object on update, NULL on create: errors below a value unchanged from it are
     * dropped (ratcheting). */
    const cJSON *old;
    /* Check only the status member, with paths and texts as the status subresource gives them. */
    bool only_status;
    /* Only what stands twice in a list: of an object of another kind nothing else is asked. */
    bool only_lists;
    /* Items of a list may have the same keys: of Kubernetes' own kinds, whose checks say which may
     * not. */
    bool may_repeat;
};
/* Adds one cause per failure to causes (err_cause) and leaves message and code otherwise alone.
 * Returns 0 when there was none, else -ERR_INVALID. *ret_structural (may be NULL) tells whether any
 * Required, NotSupported, TooLong, TooMany or TypeInvalid was among them, in which case rules are
 * not evaluated. metadata is not looked at. */
int validate_tree(const cJSON *tree, const struct shape *shape, const struct validate_opts *opts,
                  struct err *causes, bool *ret_structural);
