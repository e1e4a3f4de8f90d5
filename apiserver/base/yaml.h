/* The door to libyaml: YAML 1.1 as Kubernetes reads it, into the JSON trees of base/json.h, and
 * trees printed as YAML. One document, a byte order mark before it is left out; anchors, aliases and
 * merge keys (<<) are expanded under a ceiling; non-string keys become their JSON text. Plain
 * y/yes/on/true are booleans, ~ and empty are null; a tag that is not known makes a string. Any
 * thread. */
#pragma once

#include "apiserver/base/json.h"

/* of a text that is not JSON: libyaml's time for a token grows with the depth */
#define YAML_DEPTH_MAX 1000

/* further documents are not looked at; otherwise they are an error */
enum yaml_flags { YAML_FIRST_DOCUMENT = 1 << 8 };

/* Parse p[0..n) under the same limits as json_parse. opts as there (duplicates are reported as
 * `line 5: key "a" already set in map`). Errors: ERR_BAD_REQUEST "yaml: line 1: ...". */
int yaml_parse(const char *p, size_t n, const struct json_opts *opts, cJSON **ret, struct err *err);
void yaml_print(const cJSON *tree, struct buf *out); /* block style, ends with a newline */
