/* Functions on lists and maps: CEL's size, and Kubernetes's lists and sets. Source: Kubernetes,
 * "CEL in Kubernetes", lists and sets libraries. */
#include "admission/cel_tree.h"
#include "apiserver/base/json.h"

static struct cel_value size(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)c, (void)n;
    size_t of_map = v->type == CEL_MAP ? 2 : 1;
    return cel_int((int64_t)(v->node ? json_len(v->node) : v->items.n / of_map));
}

/* ---- order ---- */

static struct cel_value is_sorted(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    struct cel_value list = cel_open(c, v);
    for (size_t i = 1; i < list.items.n && cel_spend(c, 1); i++) {
        enum cel_order order = cel_compare(&list.items.v[i - 1], &list.items.v[i]);
        if (order == CEL_INCOMPARABLE)
            return cel_no_overload();
        if (order == CEL_AFTER)
            return cel_bool(false);
    }
    return cel_bool(true);
}

/* The item that comes before (or after) all others. */
static struct cel_value extreme(struct cel_ctx *c, const struct cel_value *v, enum cel_order wanted)
{
    struct cel_value list = cel_open(c, v);
    if (list.type == CEL_ERROR)
        return list;
    if (list.items.n == 0)
        return cel_error("min or max of an empty list");
    struct cel_value best = list.items.v[0];
    for (size_t i = 1; i < list.items.n && cel_spend(c, 1); i++) {
        enum cel_order order = cel_compare(&list.items.v[i], &best);
        if (order == CEL_INCOMPARABLE)
            return cel_no_overload();
        if (order == wanted)
            best = list.items.v[i];
    }
    return best;
}

static struct cel_value min(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    return extreme(c, v, CEL_BEFORE);
}

static struct cel_value max(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    return extreme(c, v, CEL_AFTER);
}

static struct cel_value sum(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    struct cel_value list = cel_open(c, v);
    if (list.type == CEL_ERROR)
        return list;
    struct cel_value total = list.items.n ? list.items.v[0] : cel_int(0);
    if (total.type == CEL_STRING || total.type == CEL_BYTES || total.type == CEL_LIST)
        return cel_no_overload();
    for (size_t i = 1; i < list.items.n && total.type != CEL_ERROR && cel_spend(c, 1); i++)
        total = cel_arithmetic(c, CEL_OP_ADD, &total, &list.items.v[i]);
    return total;
}

/* ---- places ---- */

static struct cel_value index_of(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    struct cel_value list = cel_open(c, v);
    for (size_t i = 0; i < list.items.n && cel_spend(c, 1); i++)
        if (cel_equal(c, &list.items.v[i], &v[1]))
            return cel_int((int64_t)i);
    return cel_int(-1);
}

static struct cel_value last_index_of(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    struct cel_value list = cel_open(c, v);
    for (size_t i = list.items.n; i > 0 && cel_spend(c, 1); i--)
        if (cel_equal(c, &list.items.v[i - 1], &v[1]))
            return cel_int((int64_t)i - 1);
    return cel_int(-1);
}

/* ---- lists as sets ---- */

static bool has_item(struct cel_ctx *c, const struct cel_value *list, const struct cel_value *item)
{
    for (size_t i = 0; i < list->items.n && cel_spend(c, 1); i++)
        if (cel_equal(c, &list->items.v[i], item))
            return true;
    return false;
}

/* How many items of b are in a. */
static size_t count_common(struct cel_ctx *c, const struct cel_value *a, const struct cel_value *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->items.n && cel_spend(c, 1); i++)
        n += has_item(c, a, &b->items.v[i]);
    return n;
}

static struct cel_value set_contains(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    struct cel_value a = cel_open(c, &v[0]), b = cel_open(c, &v[1]);
    if (c->is_exhausted)
        return cel_spent();
    return cel_bool(count_common(c, &a, &b) == b.items.n);
}

static struct cel_value set_equivalent(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    struct cel_value a = cel_open(c, &v[0]), b = cel_open(c, &v[1]);
    if (c->is_exhausted)
        return cel_spent();
    return cel_bool(count_common(c, &a, &b) == b.items.n && count_common(c, &b, &a) == a.items.n);
}

static struct cel_value set_intersects(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    struct cel_value a = cel_open(c, &v[0]), b = cel_open(c, &v[1]);
    if (c->is_exhausted)
        return cel_spent();
    return cel_bool(count_common(c, &a, &b) > 0);
}

const struct cel_function cel_list_functions[] = {
    {"indexOf", "l.?:i", index_of},
    {"isSorted", "l.:b", is_sorted},
    {"lastIndexOf", "l.?:i", last_index_of},
    {"max", "l.:?", max},
    {"min", "l.:?", min},
    {"sets.contains", "ll:b", set_contains},
    {"sets.equivalent", "ll:b", set_equivalent},
    {"sets.intersects", "ll:b", set_intersects},
    {"size", "l.:i", size},
    {"size", "l:i", size},
    {"size", "m.:i", size},
    {"size", "m:i", size},
    {"sum", "l.:?", sum},
    {0},
};
