/* The numbers and the selector that the scale subresource reads, checked on every write besides the
 * schema. Pure; any thread. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "apiserver/base/err.h"
#include "openapi/shape.h"

/* Adds a cause for each that the scale subresource could not use; nothing for kinds without one.
 * Looks at the object whatever its schema says, and at what an update left alone, too. */
void validate_scale(const cJSON *tree, const struct shape *shape, bool only_status,
                    struct err *causes);
