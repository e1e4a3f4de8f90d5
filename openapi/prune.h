/* Drops what the tables do not know, and nulls where they stand for absence. Pure; any thread. */
#pragma once

#include <cjson/cJSON.h>

#include "apiserver/base/str.h"
#include "openapi/shape.h"

/* Removes members below tree (an object of that shape) that the shape lacks; metadata's own unknown
 * members too. Paths of what was removed, such as spec.list[0].bar, are added to unknown as names
 * in walking order (at most 1,000; NULL = do not report). F_META members are checked against
 * ObjectMeta's field names. */
void prune_unknown(cJSON *tree, const struct shape *shape, struct pairs *unknown);
/* null members: a field with a default takes it, another one is removed; null in lists is left for
 * validation; a null label or annotation value becomes "". Source: docs/kubernetes-api.md 14.1,
 * 15. */
void prune_nulls(cJSON *tree, const struct shape *shape);
/* The same for what apply made: nulls without a default stay, so that validation refuses them;
 * metadata is as above. Source: docs/kubernetes-api.md 13.6. */
void prune_nulls_of_apply(cJSON *tree, const struct shape *shape);
