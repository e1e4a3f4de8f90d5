/* Evaluation of CEL: operators, members, macros. An error is a value like others; && || and the
 * macros over lists absorb it when the other side decides. Source: the language definition of
 * cel-spec, sections "Logical Operators" and "Macros". */
#include <inttypes.h>

#include "admission/cel_tree.h"
#include "apiserver/base/buf.h"
#include "apiserver/base/mem.h"

/* Variables of the macros around, the innermost first. */
struct scope {
    const char *name;
    struct cel_value value;
    const struct scope *up;
};
struct eval {
    struct cel_ctx *c;
    const struct cel_variable *vars;
};
typedef const struct cel_node *node;

static struct cel_value eval(const struct eval *e, node x, const struct scope *scope);

static bool is_true(const struct cel_value *v)
{
    return v->type == CEL_BOOL && v->b;
}

static bool is_false(const struct cel_value *v)
{
    return v->type == CEL_BOOL && !v->b;
}

/* ---- names and members ---- */

static struct cel_value eval_variable(const struct eval *e, node x, const struct scope *scope)
{
    for (; scope; scope = scope->up)
        if (str_equal(scope->name, x->name))
            return scope->value;
    for (const struct cel_variable *v = e->vars; v && v->name; v++)
        if (str_equal(v->name, x->name))
            return v->value;
    return cel_error("a variable without value");
}

static struct cel_value no_such_key(struct cel_ctx *c, const struct cel_value *key)
{
    if (key->type != CEL_STRING)
        return cel_error("no such key");
    return cel_error(arena_printf(c->arena, "no such key: %.*s",
                                  key->s.n < 100 ? (int)key->s.n : 100, key->s.p));
}

/* Members that a table names are written so that they are names in CEL. Source: Kubernetes,
 * "Validation rules", on escaping. */
static const char *property_name(struct arena *arena, const char *name)
{
    static const struct {
        const char *escape, *meant;
    } escapes[] = {
        {"__underscores__", "__"}, {"__dot__", "."}, {"__dash__", "-"}, {"__slash__", "/"}};
    if (!strstr(name, "__"))
        return name;
    size_t n = strlen(name);
    SCOPED(buf_fini) struct buf out = {0};
    for (const char *p = name; *p;) {
        size_t i = 0;
        while (i < ARRAY_LEN(escapes) && !str_has_prefix(p, escapes[i].escape))
            i++;
        if (i < ARRAY_LEN(escapes)) {
            buf_puts(&out, escapes[i].meant);
            p += strlen(escapes[i].escape);
        } else {
            buf_putc(&out, *p++);
        }
    }
    bool is_keyword = out.len == n && n > 4 && str_has_prefix(name, "__") &&
                      str_has_suffix(name, "__"); /* __namespace__ */
    return is_keyword ? arena_strndup(arena, name + 2, n - 4) : arena_strdup(arena, buf_cstr(&out));
}

static struct cel_value eval_select(const struct eval *e, node x, const struct scope *scope)
{
    struct cel_value target = eval(e, x->args[0], scope);
    if (target.type == CEL_ERROR)
        return target;
    if (target.type != CEL_MAP)
        return x->op == CEL_OP_HAS ? cel_no_overload() : cel_error("no such member: not an object");
    bool is_property = target.node && target.shape && !target.has_item;
    const char *name = is_property ? property_name(e->c->arena, x->name) : x->name;
    struct cel_value key = cel_string(name, strlen(name)), found;
    bool is_there = cel_find(e->c, &target, &key, &found);
    if (x->op == CEL_OP_HAS)
        return cel_bool(is_there);
    return is_there ? found : no_such_key(e->c, &key);
}

/* A number as an index: whole, in any of the three types. */
static bool index_of(const struct cel_value *v, int64_t *ret)
{
    if (v->type == CEL_INT)
        *ret = v->i;
    else if (v->type == CEL_UINT && v->u <= INT64_MAX)
        *ret = (int64_t)v->u;
    else if (v->type == CEL_DOUBLE && v->d >= 0 && v->d < 0x1p53 && v->d == (double)(int64_t)v->d)
        *ret = (int64_t)v->d;
    else
        return false;
    return true;
}

static struct cel_value index_list(struct cel_ctx *c, const struct cel_value *list,
                                   const struct cel_value *at)
{
    int64_t i;
    if (!index_of(at, &i))
        return cel_error("invalid index");
    struct cel_value open = cel_open(c, list);
    if (i < 0 || (uint64_t)i >= open.items.n)
        return cel_error(arena_printf(c->arena, "index out of bounds: %" PRId64, i));
    return open.items.v[i];
}

static struct cel_value index_value(struct cel_ctx *c, const struct cel_value *target,
                                    const struct cel_value *at)
{
    struct cel_value found;
    if (target->type == CEL_LIST)
        return index_list(c, target, at);
    if (target->type != CEL_MAP)
        return cel_no_overload();
    return cel_find(c, target, at, &found) ? found : no_such_key(c, at);
}

/* ---- comparisons ---- */

static struct cel_value ordered(enum cel_op op, const struct cel_value *a,
                                const struct cel_value *b)
{
    switch (cel_compare(a, b)) {
    case CEL_BEFORE:
        return cel_bool(op == CEL_OP_LESS || op == CEL_OP_LESS_EQUAL);
    case CEL_SAME:
        return cel_bool(op == CEL_OP_LESS_EQUAL || op == CEL_OP_GREATER_EQUAL);
    case CEL_AFTER:
        return cel_bool(op == CEL_OP_GREATER || op == CEL_OP_GREATER_EQUAL);
    case CEL_UNORDERED:
        return cel_bool(false);
    default:
        return cel_no_overload();
    }
}

static struct cel_value is_in(struct cel_ctx *c, const struct cel_value *v,
                              const struct cel_value *range)
{
    struct cel_value found;
    if (range->type == CEL_MAP)
        return cel_bool(cel_find(c, range, v, &found));
    if (range->type != CEL_LIST)
        return cel_no_overload();
    struct cel_value open = cel_open(c, range);
    for (size_t i = 0; i < open.items.n && cel_spend(c, 1); i++)
        if (cel_equal(c, v, &open.items.v[i]))
            return cel_bool(true);
    return cel_bool(false);
}

static struct cel_value eval_binary(const struct eval *e, node x, const struct scope *scope)
{
    struct cel_value a = eval(e, x->args[0], scope);
    if (a.type == CEL_ERROR)
        return a;
    struct cel_value b = eval(e, x->args[1], scope);
    if (b.type == CEL_ERROR)
        return b;
    switch (x->op) {
    case CEL_OP_INDEX:
        return index_value(e->c, &a, &b);
    case CEL_OP_EQUAL:
        return cel_bool(cel_equal(e->c, &a, &b));
    case CEL_OP_NOT_EQUAL:
        return cel_bool(!cel_equal(e->c, &a, &b));
    case CEL_OP_IN:
        return is_in(e->c, &a, &b);
    case CEL_OP_LESS:
    case CEL_OP_LESS_EQUAL:
    case CEL_OP_GREATER:
    case CEL_OP_GREATER_EQUAL:
        return ordered(x->op, &a, &b);
    default:
        return cel_arithmetic(e->c, x->op, &a, &b);
    }
}

/* ---- logic ---- */

static struct cel_value as_logic(struct cel_value v)
{
    return v.type == CEL_BOOL || v.type == CEL_ERROR ? v : cel_no_overload();
}

/* What one side decides, it decides whatever the other is. */
static struct cel_value eval_logic(const struct eval *e, node x, const struct scope *scope)
{
    bool deciding = x->op == CEL_OP_OR;
    struct cel_value a = as_logic(eval(e, x->args[0], scope));
    if (a.type == CEL_BOOL && a.b == deciding)
        return a;
    struct cel_value b = as_logic(eval(e, x->args[1], scope));
    if (b.type == CEL_BOOL && b.b == deciding)
        return b;
    return a.type == CEL_ERROR ? a : b;
}

static struct cel_value eval_not(const struct eval *e, node x, const struct scope *scope)
{
    struct cel_value v = as_logic(eval(e, x->args[0], scope));
    return v.type == CEL_BOOL ? cel_bool(!v.b) : v;
}

static struct cel_value eval_negate(const struct eval *e, node x, const struct scope *scope)
{
    struct cel_value v = eval(e, x->args[0], scope);
    return v.type == CEL_ERROR ? v : cel_negate(&v);
}

static struct cel_value eval_choose(const struct eval *e, node x, const struct scope *scope)
{
    struct cel_value v = as_logic(eval(e, x->args[0], scope));
    return v.type == CEL_BOOL ? eval(e, x->args[v.b ? 1 : 2], scope) : v;
}

/* ---- lists, maps, calls ---- */

static struct cel_value eval_list(const struct eval *e, node x, const struct scope *scope)
{
    struct cel_value *items = arena_alloc(e->c->arena, (x->n + 1) * sizeof *items);
    for (size_t i = 0; i < x->n; i++) {
        items[i] = eval(e, x->args[i], scope);
        if (items[i].type == CEL_ERROR)
            return items[i];
    }
    cel_spend(e->c, x->n);
    return cel_list(items, x->n);
}

static bool may_be_key(const struct cel_value *v)
{
    return v->type == CEL_BOOL || v->type == CEL_INT || v->type == CEL_UINT ||
           v->type == CEL_STRING;
}

static struct cel_value eval_map(const struct eval *e, node x, const struct scope *scope)
{
    struct cel_value map = eval_list(e, x, scope), found;
    if (map.type == CEL_ERROR)
        return map;
    map.type = CEL_MAP;
    for (size_t i = 0; i < map.items.n; i += 2) {
        struct cel_value before = {.type = CEL_MAP, .items = {map.items.v, i}};
        if (!may_be_key(&map.items.v[i]))
            return cel_error("unsupported key type");
        if (cel_find(e->c, &before, &map.items.v[i], &found))
            return cel_error("repeated key");
    }
    return map;
}

#define CALL_ARGS_MAX 4 /* of any function in the tables */

static struct cel_value eval_call(const struct eval *e, node x, const struct scope *scope)
{
    struct cel_value args[CALL_ARGS_MAX] = {0};
    for (size_t i = 0; i < x->n && i < CALL_ARGS_MAX; i++) {
        args[i] = eval(e, x->args[i], scope);
        if (args[i].type == CEL_ERROR)
            return args[i];
    }
    return x->fn->call(e->c, args, x->n);
}

/* ---- macros ---- */

/* Items of a list, keys of a map. */
static struct cel_value range_of(const struct eval *e, node x, const struct scope *scope)
{
    struct cel_value range = eval(e, x->args[0], scope);
    if (range.type == CEL_ERROR)
        return range;
    if (range.type != CEL_LIST && range.type != CEL_MAP)
        return cel_no_overload();
    struct cel_value open = cel_open(e->c, &range);
    if (open.type == CEL_LIST)
        return open;
    size_t n = open.items.n / 2;
    struct cel_value *keys = arena_alloc(e->c->arena, (n + 1) * sizeof *keys);
    for (size_t i = 0; i < n; i++)
        keys[i] = open.items.v[2 * i];
    return cel_list(keys, n);
}

/* all, exists: an item that decides outweighs errors of others. */
static struct cel_value decide(const struct eval *e, node x, const struct scope *scope,
                               const struct cel_value *range)
{
    bool deciding = x->op == CEL_OP_EXISTS;
    struct cel_value result = cel_bool(!deciding);
    for (size_t i = 0; i < range->items.n; i++) {
        struct scope inner = {x->name, range->items.v[i], scope};
        struct cel_value v = as_logic(eval(e, x->args[1], &inner));
        if (v.type == CEL_BOOL && v.b == deciding)
            return v;
        if (v.type == CEL_ERROR && result.type != CEL_ERROR)
            result = v;
        if (e->c->is_exhausted)
            break;
    }
    return result;
}

static struct cel_value exactly_one(const struct eval *e, node x, const struct scope *scope,
                                    const struct cel_value *range)
{
    size_t n = 0;
    for (size_t i = 0; i < range->items.n; i++) {
        struct scope inner = {x->name, range->items.v[i], scope};
        struct cel_value v = as_logic(eval(e, x->args[1], &inner));
        if (v.type == CEL_ERROR)
            return v;
        n += v.b;
    }
    return cel_bool(n == 1);
}

/* filter, map and both: what is kept of the items, and what it becomes. */
static struct cel_value collect(const struct eval *e, node x, const struct scope *scope,
                                const struct cel_value *range)
{
    node filter = x->op == CEL_OP_MAP ? NULL : x->args[1];
    node transform = x->op == CEL_OP_FILTER ? NULL : x->args[x->n - 1];
    struct cel_value *kept = arena_alloc(e->c->arena, (range->items.n + 1) * sizeof *kept);
    size_t n = 0;
    for (size_t i = 0; i < range->items.n; i++) {
        struct scope inner = {x->name, range->items.v[i], scope};
        struct cel_value v = filter ? as_logic(eval(e, filter, &inner)) : cel_bool(true);
        if (is_false(&v))
            continue;
        if (is_true(&v))
            v = transform ? eval(e, transform, &inner) : inner.value;
        if (v.type == CEL_ERROR)
            return v;
        kept[n++] = v;
    }
    return cel_list(kept, n);
}

static struct cel_value eval_macro(const struct eval *e, node x, const struct scope *scope)
{
    struct cel_value range = range_of(e, x, scope);
    if (range.type == CEL_ERROR)
        return range;
    if (!cel_spend(e->c, range.items.n))
        return cel_error("");
    if (x->op == CEL_OP_ALL || x->op == CEL_OP_EXISTS)
        return decide(e, x, scope, &range);
    return x->op == CEL_OP_EXISTS_ONE ? exactly_one(e, x, scope, &range)
                                      : collect(e, x, scope, &range);
}

static struct cel_value eval(const struct eval *e, node x, const struct scope *scope)
{
    if (!cel_spend(e->c, 1))
        return cel_error("");
    switch (x->op) {
    case CEL_OP_LITERAL:
        return x->value;
    case CEL_OP_VARIABLE:
        return eval_variable(e, x, scope);
    case CEL_OP_SELECT:
    case CEL_OP_HAS:
        return eval_select(e, x, scope);
    case CEL_OP_CALL:
        return eval_call(e, x, scope);
    case CEL_OP_MAKE_LIST:
        return eval_list(e, x, scope);
    case CEL_OP_MAKE_MAP:
        return eval_map(e, x, scope);
    case CEL_OP_NOT:
        return eval_not(e, x, scope);
    case CEL_OP_NEGATE:
        return eval_negate(e, x, scope);
    case CEL_OP_AND:
    case CEL_OP_OR:
        return eval_logic(e, x, scope);
    case CEL_OP_CHOOSE:
        return eval_choose(e, x, scope);
    case CEL_OP_ALL:
    case CEL_OP_EXISTS:
    case CEL_OP_EXISTS_ONE:
    case CEL_OP_FILTER:
    case CEL_OP_MAP:
    case CEL_OP_MAP_FILTER:
        return eval_macro(e, x, scope);
    default:
        return eval_binary(e, x, scope);
    }
}

struct cel_value cel_eval(struct arena *arena, const struct cel_node *expr,
                          const struct cel_variable *vars, uint64_t steps_max)
{
    struct cel_ctx c = {.arena = arena, .steps = steps_max};
    struct cel_value v = eval(&(struct eval){&c, vars}, expr, NULL);
    return c.is_exhausted ? cel_error(CEL_TOO_COSTLY) : v;
}
