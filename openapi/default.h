/* Fills in the defaults of absent fields whose parent is present. Pure; any thread. */
#pragma once

#include <cjson/cJSON.h>

#include "openapi/shape.h"

void default_apply(cJSON *tree, const struct shape *shape);
