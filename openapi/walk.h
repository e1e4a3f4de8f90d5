/* What the visitors share when they walk a tree beside its table: where they are, and what a place
 * is called in texts. A path is a chain of links on the stack, so that nothing is built until
 * something has to be said. Pure; any thread. */
#pragma once

#include <cjson/cJSON.h>
#include <stddef.h>

#include "apiserver/base/buf.h"
#include "openapi/kinds.h"
#include "openapi/shape.h"

struct walk_path {
    const struct walk_path *up; /* NULL = the root of the walk */
    const char *name;           /* a member's name; NULL for a list item */
    size_t index;               /* of a list item */
};

/* spec.containers[0].name; "" for the root (NULL). */
void walk_path_print(const struct walk_path *path, struct buf *out);

/* The row that describes each item of a list or each value of a map: its type and shape, nothing
 * else. */
struct field walk_item_field(const struct field *f);
/* A new tree of the row's default; the row has one. */
cJSON *walk_default(const struct field *f);
