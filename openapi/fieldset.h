/* Sets of field paths, as managedFields know them: which fields of an object somebody owns. A set
 * is a tree; each item stands for one step of a path, and says whether the path that ends there is
 * in the set and what of its inside is. Sets are made in an arena, never change once finished, and
 * share what is equal. NULL is the empty set, for arguments and results alike; no other set is
 * empty. Texts are borrowed from the trees that a set was made of. One thread at a time. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "apiserver/base/arena.h"
#include "apiserver/base/buf.h"
#include "apiserver/base/scan.h"

/* One step of a path, by its letter in FieldsV1. */
enum fieldset_kind {
    STEP_FIELD = 'f', /* member of an object; text = its name */
    STEP_INDEX = 'i', /* item of a list by position; text = decimal */
    STEP_KEYS = 'k',  /* item of a list by its keys; text = JSON object, sorted */
    STEP_VALUE = 'v', /* item of a set; text = JSON value */
};

struct fieldset;
struct fieldset_item {
    const char *text;
    const struct fieldset *inside; /* NULL = nothing */
    char kind;                     /* enum fieldset_kind */
    bool is_member;
};
struct fieldset { /* items by kind and text, bytewise, none twice */
    struct fieldset_item *v;
    size_t n, cap;
};

#define FIELDSET_DEPTH_MAX 100 /* steps of a path that is read; real objects stay below 20 */

/* ---- making ---- */
struct fieldset *fieldset_new(struct arena *arena);
/* Appends in any order; nothing when it is neither a member nor has an inside. */
void fieldset_add(struct arena *arena, struct fieldset *set, struct fieldset_item item);
/* Sorts what was added and joins items that were added twice. The set is finished: NULL if
 * empty. */
const struct fieldset *fieldset_finish(struct arena *arena, struct fieldset *set);
/* The set of one path of names, ended by NULL. */
const struct fieldset *fieldset_of_path(struct arena *arena, const char *const *names);

/* From the text of FieldsV1, which is the next value of s. Steps of unknown letters are left out.
 * as_client rewrites keys and values in the one form that compares (sorted, without blanks); not
 * needed for what fieldset_print wrote. Nothing of the text is needed afterwards. -1 = no FieldsV1,
 * or deeper than FIELDSET_DEPTH_MAX. */
int fieldset_parse(struct arena *arena, struct scan *s, bool as_client,
                   const struct fieldset **ret);
/* As FieldsV1 text: {} for NULL, keys sorted bytewise, the same bytes for equal sets. */
void fieldset_print(const struct fieldset *set, struct buf *out);
/* A value as it stands in a step's text: compact, members sorted, whole numbers without fraction,
 * <, > and & escaped. Source: structured-merge-diff's serialize-pe. */
void fieldset_value_print(const cJSON *value, struct buf *out);

/* ---- using ---- */
const struct fieldset_item *fieldset_find(const struct fieldset *set, char kind, const char *text);
bool fieldset_has_path(const struct fieldset *set, const char *const *names); /* ended by NULL */
bool fieldset_equal(const struct fieldset *a, const struct fieldset *b);
const struct fieldset *fieldset_union(struct arena *arena, const struct fieldset *a,
                                      const struct fieldset *b);
const struct fieldset *fieldset_intersection(struct arena *arena, const struct fieldset *a,
                                             const struct fieldset *b);
/* Paths of a that are not in b; what is below a path of b stays. */
const struct fieldset *fieldset_difference(struct arena *arena, const struct fieldset *a,
                                           const struct fieldset *b);
/* The same, and what is below a path of b goes too. */
const struct fieldset *fieldset_exclude(struct arena *arena, const struct fieldset *a,
                                        const struct fieldset *b);
