/* Server-side apply over trees and tables: does a tree fit its table, which fields does it set,
 * what distinguishes two trees, and what do two trees make together. How far a field is split into
 * parts that somebody may own comes from the table: objects and maps by member unless atomic, lists
 * by key or value if declared so, else as a whole; where the table says nothing, maps by member and
 * lists as a whole. Sets come from the arena and borrow names from trees and tables. Pure; any
 * thread. Source: structured-merge-diff's typed values; docs/kubernetes-api.md 28.3-28.5. */
#pragma once

#include <cjson/cJSON.h>

#include "openapi/fieldset.h"
#include "openapi/shape.h"

#define MERGE_DEPTH_MAX 500 /* levels of a tree; tables end below 20, free-form parts may not */

/* Whether the tree has the types of its table, and no unknown members, null and doubled keys in
 * keyed lists. The first MERGE_ERRORS_MAX failures are written to why: path and text, several under
 * "errors:". Doubled keys pass with may_repeat. */
#define MERGE_ERRORS_MAX 100
bool merge_fits(const cJSON *tree, const struct shape *shape, bool may_repeat, struct buf *why);

/* What the tree sets: leaves, items of keyed lists, empty objects, nulls. Items and members in
 * without count as absent; NULL = nothing is. */
const struct fieldset *merge_leaves(struct arena *arena, const cJSON *tree,
                                    const struct shape *shape, const struct fieldset *without);
/* set, and with each path the fields of the table that lead there. */
const struct fieldset *merge_named(struct arena *arena, const struct fieldset *set,
                                   const struct shape *shape);
/* set as an earlier or foreign table may have it: what is inside of an atomic field becomes that
 * field. */
const struct fieldset *merge_adapt(struct arena *arena, const struct fieldset *set,
                                   const struct shape *shape);

struct comparison { /* no path is in two of them */
    const struct fieldset *added, *modified, *removed;
};
/* Trees that fit. old may be NULL. */
void merge_compare(struct arena *arena, const cJSON *old, const cJSON *new,
                   const struct shape *shape, struct comparison *ret);

/* Trees that fit; the results are the caller's. */
cJSON *merge_apply(struct arena *arena, const cJSON *live, const cJSON *applied,
                   const struct shape *shape);
cJSON *merge_without(struct arena *arena, const cJSON *tree, const struct shape *shape,
                     const struct fieldset *set);
