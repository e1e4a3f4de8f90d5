/* Evaluation of CEL: operators, members, macros. An error is a value like others; && || and the
 * macros over lists absorb it when the other side decides. Source: the language definition of
 * cel-spec, sections "Logical Operators" and "Macros". */
#include <inttypes.h>
#include <math.h>

#include "admission/cel_tree.h"
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

static struct cel_value eval_select(const struct eval *e, node x, const struct scope *scope)
{
    struct cel_value target = eval(e, x->args[0], scope);
    if (target.type == CEL_ERROR)
        return target;
    if (target.type != CEL_MAP)
        return x->op == CEL_OP_HAS ? cel_no_overload() : cel_error("no such member: not an object");
    struct cel_value key = cel_string(x->name, strlen(x->name)), found;
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

/* ---- arithmetic ---- */

static struct cel_value overflow(void)
{
    return cel_error("integer overflow");
}

static struct cel_value int_arithmetic(enum cel_op op, int64_t a, int64_t b)
{
    int64_t r;
    switch (op) {
    case CEL_OP_ADD:
        return __builtin_add_overflow(a, b, &r) ? overflow() : cel_int(r);
    case CEL_OP_SUBTRACT:
        return __builtin_sub_overflow(a, b, &r) ? overflow() : cel_int(r);
    case CEL_OP_MULTIPLY:
        return __builtin_mul_overflow(a, b, &r) ? overflow() : cel_int(r);
    default:
        if (b == 0)
            return cel_error(op == CEL_OP_DIVIDE ? "division by zero" : "modulus by zero");
        if (a == INT64_MIN && b == -1)
            return overflow();
        return cel_int(op == CEL_OP_DIVIDE ? a / b : a % b);
    }
}

static struct cel_value uint_arithmetic(enum cel_op op, uint64_t a, uint64_t b)
{
    uint64_t r;
    switch (op) {
    case CEL_OP_ADD:
        return __builtin_add_overflow(a, b, &r) ? overflow() : cel_uint(r);
    case CEL_OP_SUBTRACT:
        return __builtin_sub_overflow(a, b, &r) ? overflow() : cel_uint(r);
    case CEL_OP_MULTIPLY:
        return __builtin_mul_overflow(a, b, &r) ? overflow() : cel_uint(r);
    default:
        if (b == 0)
            return cel_error(op == CEL_OP_DIVIDE ? "division by zero" : "modulus by zero");
        return cel_uint(op == CEL_OP_DIVIDE ? a / b : a % b);
    }
}

/* a / b as IEEE 754 says, also where the language C leaves it open. */
static double divide(double a, double b)
{
    if (b != 0)
        return a / b;
    if (a == 0 || isnan(a))
        return NAN;
    return signbit(a) == signbit(b) ? INFINITY : -INFINITY;
}

static struct cel_value double_arithmetic(enum cel_op op, double a, double b)
{
    switch (op) {
    case CEL_OP_ADD:
        return cel_double(a + b);
    case CEL_OP_SUBTRACT:
        return cel_double(a - b);
    case CEL_OP_MULTIPLY:
        return cel_double(a * b);
    case CEL_OP_DIVIDE:
        return cel_double(divide(a, b));
    default:
        return cel_no_overload();
    }
}

static struct cel_value join_text(struct cel_ctx *c, const struct cel_value *a,
                                  const struct cel_value *b)
{
    size_t n = a->s.n + b->s.n;
    if (!cel_spend(c, n / 16))
        return cel_error("");
    char *text = arena_alloc(c->arena, n + 1);
    memcpy(text, a->s.p, a->s.n);
    memcpy(text + a->s.n, b->s.p, b->s.n);
    struct cel_value v = cel_string(text, n);
    v.type = a->type;
    return v;
}

static struct cel_value join_lists(struct cel_ctx *c, const struct cel_value *a,
                                   const struct cel_value *b)
{
    struct cel_value x = cel_open(c, a), y = cel_open(c, b);
    size_t n = x.items.n + y.items.n;
    if (!cel_spend(c, n))
        return cel_error("");
    struct cel_value *items = arena_alloc(c->arena, (n + 1) * sizeof *items);
    for (size_t i = 0; i < n; i++)
        items[i] = i < x.items.n ? x.items.v[i] : y.items.v[i - x.items.n];
    return cel_list(items, n);
}

/* Times: 0001-01-01 to 9999-12-31. Source: cel-spec, "Timestamp". */
#define TIME_MIN_S INT64_C(-62135596800)
#define TIME_MAX_S INT64_C(253402300799)
#define NS_PER_S INT64_C(1000000000)

static struct cel_value time_plus(const struct cel_value *at, int64_t ns)
{
    int64_t s = at->at.s + ns / NS_PER_S, rest = at->at.ns + ns % NS_PER_S;
    s += rest < 0 ? -1 : rest / NS_PER_S;
    rest = (rest + NS_PER_S) % NS_PER_S;
    if (s < TIME_MIN_S || s > TIME_MAX_S)
        return cel_error("timestamp overflow");
    return (struct cel_value){.type = CEL_TIMESTAMP, .at = {s, (int32_t)rest}};
}

static struct cel_value time_between(const struct cel_value *a, const struct cel_value *b)
{
    int64_t ns;
    if (__builtin_mul_overflow(a->at.s - b->at.s, NS_PER_S, &ns) ||
        __builtin_add_overflow(ns, (int64_t)a->at.ns - b->at.ns, &ns))
        return cel_error("duration overflow");
    return (struct cel_value){.type = CEL_DURATION, .i = ns};
}

static struct cel_value time_arithmetic(enum cel_op op, const struct cel_value *a,
                                        const struct cel_value *b)
{
    bool is_add = op == CEL_OP_ADD;
    if (!is_add && op != CEL_OP_SUBTRACT)
        return cel_no_overload();
    if (a->type == CEL_DURATION && b->type == CEL_DURATION) {
        struct cel_value v = int_arithmetic(op, a->i, b->i);
        v.type = v.type == CEL_INT ? CEL_DURATION : CEL_ERROR;
        return v;
    }
    if (a->type == CEL_TIMESTAMP && b->type == CEL_TIMESTAMP && !is_add)
        return time_between(a, b);
    if (a->type == CEL_TIMESTAMP && b->type == CEL_DURATION && b->i != INT64_MIN)
        return time_plus(a, is_add ? b->i : -b->i);
    if (a->type == CEL_DURATION && b->type == CEL_TIMESTAMP && is_add)
        return time_plus(b, a->i);
    return cel_no_overload();
}

static bool is_time(const struct cel_value *v)
{
    return v->type == CEL_TIMESTAMP || v->type == CEL_DURATION;
}

static struct cel_value arithmetic(struct cel_ctx *c, enum cel_op op, const struct cel_value *a,
                                   const struct cel_value *b)
{
    if (is_time(a) && is_time(b))
        return time_arithmetic(op, a, b);
    if (a->type != b->type)
        return cel_no_overload();
    switch (a->type) {
    case CEL_INT:
        return int_arithmetic(op, a->i, b->i);
    case CEL_UINT:
        return uint_arithmetic(op, a->u, b->u);
    case CEL_DOUBLE:
        return double_arithmetic(op, a->d, b->d);
    case CEL_STRING:
    case CEL_BYTES:
        return op == CEL_OP_ADD ? join_text(c, a, b) : cel_no_overload();
    case CEL_LIST:
        return op == CEL_OP_ADD ? join_lists(c, a, b) : cel_no_overload();
    default:
        return cel_no_overload();
    }
}

static struct cel_value negate(const struct cel_value *v)
{
    if (v->type == CEL_DOUBLE)
        return cel_double(-v->d);
    if (v->type != CEL_INT && v->type != CEL_DURATION)
        return cel_no_overload();
    if (v->i == INT64_MIN)
        return overflow();
    struct cel_value r = *v;
    r.i = -v->i;
    return r;
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
        return arithmetic(e->c, x->op, &a, &b);
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
    return v.type == CEL_ERROR ? v : negate(&v);
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
