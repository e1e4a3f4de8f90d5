/* The cells of a Table row, from a kind's columns. Pure; any thread. */
#pragma once

#include <cjson/cJSON.h>
#include <stdint.h>

#include "openapi/shape.h"

/* As OpenAPI and a CustomResourceDefinition name it. */
const char *column_type_name(enum column_type type);
/* columnDefinitions as a JSON array: Name first, Age last when the kind declares no columns. */
cJSON *columns_definitions(const struct kind *kind);
/* The cells of one object as a JSON array; ages are rendered against now. Strings are made of any
 * scalar; missing values are null. */
cJSON *columns_cells(const struct kind *kind, const cJSON *object, int64_t now_unix_ms);
/* The value at a JSONPath of the subset that columns use (.a.b, [0], [?(@.key=='value')]), borrowed
 * from tree; NULL when absent. */
const cJSON *columns_path(const cJSON *tree, const char *path);
