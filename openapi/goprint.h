/* Values as Go prints them in the texts of API errors. Pure; any thread. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "apiserver/base/buf.h"

void goprint_quoted(const char *s, struct buf *out);       /* %q: "a\n" */
void goprint_number(const cJSON *number, struct buf *out); /* %v: -1, 1.5, 3e+09 */
void goprint_value(const cJSON *value,
                   struct buf *out); /* %v of any value: x, map[a:1], [1 2], <nil> */
void goprint_syntax(const cJSON *value, struct buf *out); /* %#v: "x", 1, []interface {}{"a"} */
const char *goprint_type(const cJSON *value); /* %T: int64, float64, map[string]interface {} */
/* The value of a field error: strings quoted, numbers and booleans bare, null, everything else as
 * JSON with <, > and & escaped. */
void goprint_bad_value(const cJSON *value, struct buf *out);
bool goprint_is_int64(const cJSON *number); /* Go decodes it to int64; else to float64 */
