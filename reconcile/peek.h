/* A part of a stored object without building the whole tree: for who looks at many objects and at
 * little of each. Pure; any thread. */
#pragma once

#include <cjson/cJSON.h>

#include "apiserver/registry/object.h"

/* The member inner of the top-level member outer (metadata, ownerReferences) as a tree of the
 * caller's own; NULL when absent. */
cJSON *object_peek(const struct object *o, const char *outer, const char *inner);
