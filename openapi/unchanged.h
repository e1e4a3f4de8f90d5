/* What an update left as it was, for ratcheting: parts of the new object and their counterparts in
 * the stored one. Pure; any thread. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "apiserver/base/map.h"
#include "openapi/shape.h"

/* The items of a stored map list by their keys, of equal ones the first; NULL for other lists,
 * whose items have no counterpart. map_free. */
struct map *unchanged_index(const cJSON *old, const struct field *f);
/* The stored item with the keys of item; NULL when there is none, or when item lacks a key. */
const cJSON *unchanged_counterpart(const struct map *index, const cJSON *item,
                                   const struct field *f);
/* Equal as far as the parts have counterparts: items of a map list by their keys, whatever their
 * order, and one without keys never; items of other lists by their place. */
bool unchanged_value(const cJSON *value, const cJSON *old, const struct field *f);
