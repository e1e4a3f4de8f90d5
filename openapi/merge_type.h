/* What the visitors of server-side apply share: how a field is owned, the type of what is inside of
 * it, an object's members in order, and the steps to a list's items. Only openapi/merge*.c include
 * it. */
#pragma once

#include <cjson/cJSON.h>

#include "apiserver/base/arena.h"
#include "openapi/fieldset.h"
#include "openapi/shape.h"

/* How a value of a field is looked at. */
enum atom { ATOM_SCALAR, ATOM_MAP, ATOM_LIST };

/* The type of a value: a row of a table, or NULL where there is none and the value itself tells. */
struct merge_type {
    const struct field *f;
    struct field space; /* of an item's row, which is made up */
};
void merge_type_root(struct merge_type *t, const struct shape *shape);
/* The value decides where the type leaves it open; null and absent count as maps then. */
enum atom merge_atom(const struct field *f, const cJSON *value);
bool merge_is_open(const struct field *f); /* any form of value will do */
bool merge_is_atomic(const struct field *f, enum atom atom);

enum member_status { MEMBER_UNKNOWN, MEMBER_NAMED /* in the table */, MEMBER_FREE /* of a map */ };
/* The type of an object's member of that name. */
enum member_status merge_member_type(const struct field *f, const char *name,
                                     struct merge_type *ret);
void merge_item_type(const struct field *list, struct merge_type *ret);

/* Members by name, each once. */
struct members {
    const cJSON *next; /* while they are in order by themselves */
    const cJSON **v;   /* else sorted */
    size_t i, n;
};
struct members merge_members(struct arena *arena, const cJSON *object); /* none unless an object */
const cJSON *members_next(struct members *m);                           /* NULL at the end */

/* Why an item cannot be told from others in a keyed list; NULL when it can. keys_text is where a
 * text that names the keys is written to. */
const char *merge_item_problem(const cJSON *item, const struct field *list, struct buf *keys_text);
/* The step to an item that can be told from others. */
struct fieldset_item merge_item_step(struct arena *arena, const cJSON *item,
                                     const struct field *list);

/* The items of a keyed list by their steps; repeated ones are neighbours, in their order. Items
 * that cannot be told are left out. */
struct keyed_item {
    struct fieldset_item step;
    const cJSON *node;
    size_t at; /* place in the list */
};
struct keyed_item *merge_keyed_items(struct arena *arena, const cJSON *list, const struct field *f,
                                     size_t *ret_n);
int merge_compare_steps(const struct keyed_item *a, const struct keyed_item *b);
size_t merge_repeats(const struct keyed_item *v, size_t i, size_t n); /* how many are as v[i] */
