/* The macros of CEL over lists, maps and optionals. Source: cel-spec, "Macros", and the extensions
 * for two variables and optional values. */
#include "admission/cel_tree.h"

typedef const struct cel_node *node;

static bool is_true(const struct cel_value *v)
{
    return v->type == CEL_BOOL && v->b;
}

static bool is_false(const struct cel_value *v)
{
    return v->type == CEL_BOOL && !v->b;
}

/* The i-th item of a range as the variables of a macro: of a list its items, with two variables
 * indices and items; of a map its keys, with two variables keys and values. */
static struct cel_scope bind(node x, const struct cel_value *range, size_t i,
                             const struct cel_scope *up)
{
    const struct cel_value *v = range->items.v;
    struct cel_scope s = {.name = x->name, .second_name = x->second, .up = up};
    if (range->type == CEL_MAP) {
        s.value = v[2 * i];
        s.second = v[2 * i + 1];
    } else {
        s.value = x->second ? cel_int((int64_t)i) : v[i];
        s.second = v[i];
    }
    return s;
}

static size_t count_items(const struct cel_value *range)
{
    return range->items.n / (range->type == CEL_MAP ? 2 : 1);
}

/* all, exists: an item that decides outweighs errors of others. */
static struct cel_value decide(const struct cel_eval *e, node x, const struct cel_scope *scope,
                               const struct cel_value *range)
{
    bool deciding = x->op == CEL_OP_EXISTS;
    struct cel_value result = cel_bool(!deciding);
    for (size_t i = 0; i < count_items(range) && !e->c->is_exhausted; i++) {
        struct cel_scope inner = bind(x, range, i, scope);
        struct cel_value v = cel_as_logic(cel_eval_node(e, x->args[1], &inner));
        if (v.type == CEL_BOOL && v.b == deciding)
            return v;
        if (v.type == CEL_ERROR && result.type != CEL_ERROR)
            result = v;
    }
    return result;
}

static struct cel_value exactly_one(const struct cel_eval *e, node x, const struct cel_scope *scope,
                                    const struct cel_value *range)
{
    size_t n = 0;
    for (size_t i = 0; i < count_items(range); i++) {
        struct cel_scope inner = bind(x, range, i, scope);
        struct cel_value v = cel_as_logic(cel_eval_node(e, x->args[1], &inner));
        if (v.type == CEL_ERROR)
            return v;
        n += v.b;
    }
    return cel_bool(n == 1);
}

/* The filter of a macro that changes what it keeps; NULL = it keeps all. */
static node filter_of(node x)
{
    return x->op == CEL_OP_FILTER || x->n == 3 ? x->args[1] : NULL;
}

static struct cel_value is_kept(const struct cel_eval *e, node x, const struct cel_scope *inner)
{
    node filter = filter_of(x);
    return filter ? cel_as_logic(cel_eval_node(e, filter, inner)) : cel_bool(true);
}

/* filter, map, transformList: what is kept of the items, and what it becomes. */
static struct cel_value collect(const struct cel_eval *e, node x, const struct cel_scope *scope,
                                const struct cel_value *range)
{
    struct cel_value *kept = cel_alloc(e->c, count_items(range), sizeof *kept);
    size_t n = 0;
    for (size_t i = 0; kept && i < count_items(range); i++) {
        struct cel_scope inner = bind(x, range, i, scope);
        struct cel_value v = is_kept(e, x, &inner);
        if (is_false(&v))
            continue;
        if (is_true(&v))
            v = x->op == CEL_OP_FILTER ? inner.value : cel_eval_node(e, x->args[x->n - 1], &inner);
        if (v.type == CEL_ERROR)
            return v;
        kept[n++] = v;
    }
    return kept ? cel_list(kept, n) : cel_spent();
}

/* What a map's entry becomes: its value, or with transformMapEntry a map of one entry. */
static struct cel_value put_entry(struct cel_ctx *c, node x, const struct cel_scope *inner,
                                  const struct cel_value *made, struct cel_value *items, size_t *n)
{
    if (x->op == CEL_OP_TRANSFORM_MAP || made->type == CEL_ERROR)
        return cel_map_put(c, items, n, &inner->value, made);
    struct cel_value entry = made->type == CEL_MAP ? cel_open(c, made) : cel_no_overload();
    if (entry.type == CEL_ERROR)
        return entry;
    if (entry.items.n != 2)
        return cel_error("an entry is a map with one key");
    return cel_map_put(c, items, n, &entry.items.v[0], &entry.items.v[1]);
}

static struct cel_value transform_map(const struct cel_eval *e, node x,
                                      const struct cel_scope *scope, const struct cel_value *range)
{
    size_t count = count_items(range), n = 0;
    struct cel_value *items = cel_alloc(e->c, 2 * count, sizeof *items);
    for (size_t i = 0; items && i < count; i++) {
        struct cel_scope inner = bind(x, range, i, scope);
        struct cel_value v = is_kept(e, x, &inner);
        if (is_false(&v))
            continue;
        if (is_true(&v))
            v = cel_eval_node(e, x->args[x->n - 1], &inner);
        struct cel_value wrong = put_entry(e->c, x, &inner, &v, items, &n);
        if (wrong.type == CEL_ERROR)
            return wrong;
    }
    return items ? (struct cel_value){.type = CEL_MAP, .items = {items, n}} : cel_spent();
}

/* optMap, optFlatMap: over a value that may be absent. */
static struct cel_value map_optional(const struct cel_eval *e, node x,
                                     const struct cel_scope *scope,
                                     const struct cel_value *optional)
{
    if (optional->type != CEL_OPTIONAL)
        return cel_no_overload();
    if (!optional->inner)
        return *optional;
    struct cel_scope inner = {.name = x->name, .value = *optional->inner, .up = scope};
    struct cel_value v = cel_eval_node(e, x->args[1], &inner);
    if (v.type == CEL_ERROR || (x->op == CEL_OP_OPTIONAL_FLAT_MAP && v.type == CEL_OPTIONAL))
        return v;
    return x->op == CEL_OP_OPTIONAL_MAP ? cel_some(e->c, &v) : cel_no_overload();
}

struct cel_value cel_eval_macro(const struct cel_eval *e, node x, const struct cel_scope *scope)
{
    struct cel_value range = cel_eval_node(e, x->args[0], scope);
    if (range.type == CEL_ERROR)
        return range;
    if (x->op == CEL_OP_OPTIONAL_MAP || x->op == CEL_OP_OPTIONAL_FLAT_MAP)
        return map_optional(e, x, scope, &range);
    if (range.type != CEL_LIST && range.type != CEL_MAP)
        return cel_no_overload();
    range = cel_open(e->c, &range);
    if (range.type == CEL_ERROR || !cel_spend(e->c, count_items(&range)))
        return cel_spent();
    switch (x->op) {
    case CEL_OP_ALL:
    case CEL_OP_EXISTS:
        return decide(e, x, scope, &range);
    case CEL_OP_EXISTS_ONE:
        return exactly_one(e, x, scope, &range);
    case CEL_OP_TRANSFORM_MAP:
    case CEL_OP_TRANSFORM_ENTRY:
        return transform_map(e, x, scope, &range);
    default:
        return collect(e, x, scope, &range);
    }
}
