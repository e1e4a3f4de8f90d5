/* The paths and operations of the kinds, for doc_v3.c and doc_v2.c. Pure; any thread. */
#pragma once

#include <cjson/cJSON.h>

#include "openapi/doc_schema.h"

/* Adds the paths of one kind: all namespaces, one namespace, one object, and its subresources. */
void doc_paths_add(cJSON *paths, const struct kind *kind, enum doc_form form);
/* Swagger 2.0: the parameters that operations refer to. */
cJSON *doc_paths_parameters(void);
