/* Lists with keys: the keys of an item as text, and the values that a list may not hold twice.
 * Pure; any thread. */
#pragma once

#include <cjson/cJSON.h>

#include "apiserver/base/buf.h"
#include "openapi/shape.h"

/* What must be unique in the list: the object of an item's keys that are there, or the item itself
 * (LIST_SET), as JSON. */
void listtype_key_print(const cJSON *item, const struct field *list, struct buf *out);
/* Calls found for every value that is there twice, once, with the index of its first repetition; a
 * map list that has an item which is no object (nor null) gets found with a text of NULL for each
 * of those instead. */
void listtype_find_duplicates(const cJSON *list, const struct field *f,
                              void (*found)(void *ctx, size_t index, const cJSON *item,
                                            const char *key),
                              void *ctx);
