/* Cells of Kubernetes' own kinds that are no single value of the object. Pure; any thread. */
#pragma once

#include <cjson/cJSON.h>
#include <stdint.h>

#include "openapi/shape.h"

cJSON *columns_builtin_cell(const struct column *c, const cJSON *object, int64_t now_unix_ms);
