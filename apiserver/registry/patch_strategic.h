/* Strategic merge patch: a merge patch that merges lists where the kind's table says by which key.
 * Pure; any thread. Source: the Kubernetes API conventions, strategic merge patch: $patch,
 * $retainKeys, $deleteFromPrimitiveList/F, $setElementOrder/F. */
#pragma once

#include <cjson/cJSON.h>

#include "apiserver/base/err.h"
#include "openapi/shape.h"

/* ret is a new tree; patch is an object, shape that of the whole object. Errors: ERR_BAD_REQUEST
 * for an item without its key and for a directive that is none. */
int patch_strategic(const cJSON *doc, const cJSON *patch, const struct shape *shape, cJSON **ret,
                    struct err *err);
