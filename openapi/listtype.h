/* Lists with keys: the keys of an item as text, and the values that a list may not hold twice.
 * Pure; any thread. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "apiserver/base/buf.h"
#include "openapi/shape.h"

/* What must be unique in the list: the object of an item's keys that are there, or the item itself
 * (LIST_SET), as JSON. */
void listtype_key_print(const cJSON *item, const struct field *list, struct buf *out);
/* Whether an item of a map list has all keys, as scalars; without, it has no counterpart in another
 * list. */
bool listtype_has_keys(const cJSON *item, const struct field *list);
/* Calls found for every value that is there twice, once, with the index of its first repetition. In
 * a map list with an item that is no object (nor null), only the first such item is found, with a
 * key of NULL. */
typedef void listtype_found_fn(void *ctx, size_t index, const cJSON *item, const char *key);
void listtype_find_duplicates(const cJSON *list, const struct field *f, listtype_found_fn *found,
                              void *ctx);
