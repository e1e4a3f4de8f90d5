/* One form for the spellings of a value that mean the same to Kubernetes: quantities by number,
 * times by instant, empty lists and maps as absent, members in one order. Whether two values differ
 * is then a comparison of forms, and a hash of the form stays the same when only the spelling
 * changes. Pure; any thread. Source: apimachinery equality.Semantic. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "apiserver/base/buf.h"
#include "openapi/shape.h"

/* Changes tree, an object of that shape. What the shape does not know is only put in order. */
void semantic_normalize(const struct shape *shape, cJSON *tree);
/* NULL is absent: equal to NULL alone. */
bool semantic_equal(const struct shape *shape, const cJSON *a, const cJSON *b);
/* The quantity as digits and a power of ten (1Gi: 1073741824e0); the text as it is when it is no
 * quantity or has more than about 20 digits. */
void semantic_quantity(const char *text, struct buf *out);
