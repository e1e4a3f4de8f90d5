/* What a YAML scalar means, shared by the reader and the printer of base/yaml*.c. Any thread. */
#pragma once

#include "apiserver/base/json.h"

enum yaml_kind {
    YAML_KIND_STRING,
    YAML_KIND_NULL,
    YAML_KIND_BOOL,
    YAML_KIND_INT,
    YAML_KIND_FLOAT,
    YAML_KIND_NO_JSON, /* .inf, .nan: a float that JSON cannot hold */
};

/* What an untagged plain scalar is, and its value in node (which must be empty; NULL if only the
 * kind matters). */
enum yaml_kind yaml_resolve(const char *text, cJSON *node);
const char *yaml_kind_tag(enum yaml_kind kind); /* "!!str", ... */
