/* Evaluation of CEL: operators, members, lists and maps; the macros are in cel_macro.c. An error is
 * a value like others; && || and some macros absorb it when the other side decides. Source: the
 * language definition of cel-spec, "Logical Operators". */
#include <inttypes.h>

#include "admission/cel_tree.h"
#include "apiserver/base/buf.h"
#include "apiserver/base/mem.h"

typedef const struct cel_node *node;

/* ---- names and members ---- */

const struct cel_value *cel_scope_find(const struct cel_scope *scope,
                                       const struct cel_node *variable)
{
    for (; scope && !variable->is_root; scope = scope->up) {
        if (str_equal(scope->name, variable->name))
            return &scope->value;
        if (str_equal(scope->second_name, variable->name))
            return &scope->second;
    }
    return NULL;
}

static struct cel_value eval_variable(const struct cel_eval *e, node x,
                                      const struct cel_scope *scope)
{
    const struct cel_value *local = cel_scope_find(scope, x);
    if (local)
        return *local;
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

/* What an escape in the name of a member means; NULL when none begins there. */
static const char *meant_by_escape(const char **p)
{
    static const struct {
        const char *escape, *meant;
    } escapes[] = {
        {"__underscores__", "__"}, {"__dot__", "."}, {"__dash__", "-"}, {"__slash__", "/"}};
    for (size_t i = 0; i < ARRAY_LEN(escapes); i++)
        if (str_has_prefix(*p, escapes[i].escape)) {
            *p += strlen(escapes[i].escape);
            return escapes[i].meant;
        }
    return NULL;
}

const char *cel_member_name(struct arena *arena, const char *name)
{
    if (!strstr(name, "__"))
        return name;
    size_t n = strlen(name);
    SCOPED(buf_fini) struct buf out = {0};
    for (const char *p = name; *p;) {
        const char *meant = meant_by_escape(&p);
        if (meant)
            buf_puts(&out, meant);
        else
            buf_putc(&out, *p++);
    }
    bool is_keyword = out.len == n && n > 4 && str_has_prefix(name, "__") &&
                      str_has_suffix(name, "__"); /* __namespace__ */
    return is_keyword ? arena_strndup(arena, name + 2, n - 4) : arena_strdup(arena, buf_cstr(&out));
}

/* The member of a map by a name that is written in the expression. */
static bool find_member(struct cel_ctx *c, const struct cel_value *map, const char *name,
                        struct cel_value *ret_key, struct cel_value *ret)
{
    bool is_property = map->node && map->shape && !map->has_item;
    const char *meant = is_property ? cel_member_name(c->arena, name) : name;
    *ret_key = cel_string(meant, strlen(meant));
    return cel_find(c, map, ret_key, ret);
}

/* A member of what may be absent: of an optional too, and then the member is optional as well. */
static struct cel_value select_optional(struct cel_ctx *c, node x, const struct cel_value *target)
{
    struct cel_value key, found;
    const struct cel_value *map = target->type == CEL_OPTIONAL ? target->inner : target;
    if (!map)
        return cel_some(c, NULL);
    if (map->type != CEL_MAP)
        return cel_no_overload();
    bool is_there = find_member(c, map, x->name, &key, &found);
    return cel_some(c, is_there ? &found : NULL);
}

static struct cel_value eval_select(const struct cel_eval *e, node x, const struct cel_scope *scope)
{
    struct cel_value target = cel_eval_node(e, x->args[0], scope), key, found;
    if (target.type == CEL_ERROR)
        return target;
    if (target.type == CEL_OPTIONAL || x->op == CEL_OP_OPTIONAL_SELECT) {
        found = select_optional(e->c, x, &target);
        bool asks = x->op == CEL_OP_HAS && found.type == CEL_OPTIONAL;
        return asks ? cel_bool(found.inner != NULL) : found;
    }
    if (target.type != CEL_MAP)
        return x->op == CEL_OP_HAS ? cel_no_overload() : cel_error("no such member: not an object");
    bool is_there = find_member(e->c, &target, x->name, &key, &found);
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
    if (open.type == CEL_ERROR)
        return open;
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

/* The same of what may be absent. That it is of another type is an error still. */
static struct cel_value index_optional(struct cel_ctx *c, const struct cel_value *target,
                                       const struct cel_value *at)
{
    const struct cel_value *range = target->type == CEL_OPTIONAL ? target->inner : target;
    int64_t i;
    if (!range)
        return cel_some(c, NULL);
    if (range->type != CEL_LIST && range->type != CEL_MAP)
        return cel_no_overload();
    if (range->type == CEL_LIST && !index_of(at, &i))
        return cel_error("invalid index");
    struct cel_value found = index_value(c, range, at);
    return cel_some(c, found.type == CEL_ERROR ? NULL : &found);
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
    if (open.type == CEL_ERROR)
        return open;
    for (size_t i = 0; i < open.items.n && cel_spend(c, 1); i++)
        if (cel_equal(c, v, &open.items.v[i]))
            return cel_bool(true);
    return cel_bool(false);
}

static struct cel_value eval_binary(const struct cel_eval *e, node x, const struct cel_scope *scope)
{
    struct cel_value a = cel_eval_node(e, x->args[0], scope);
    if (a.type == CEL_ERROR)
        return a;
    struct cel_value b = cel_eval_node(e, x->args[1], scope);
    if (b.type == CEL_ERROR)
        return b;
    switch (x->op) {
    case CEL_OP_INDEX:
        return a.type == CEL_OPTIONAL ? index_optional(e->c, &a, &b) : index_value(e->c, &a, &b);
    case CEL_OP_OPTIONAL_INDEX:
        return index_optional(e->c, &a, &b);
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

struct cel_value cel_as_logic(struct cel_value v)
{
    return v.type == CEL_BOOL || v.type == CEL_ERROR ? v : cel_no_overload();
}

/* What one side decides, it decides whatever the other is. */
static struct cel_value eval_logic(const struct cel_eval *e, node x, const struct cel_scope *scope)
{
    bool deciding = x->op == CEL_OP_OR;
    struct cel_value a = cel_as_logic(cel_eval_node(e, x->args[0], scope));
    if (a.type == CEL_BOOL && a.b == deciding)
        return a;
    struct cel_value b = cel_as_logic(cel_eval_node(e, x->args[1], scope));
    if (b.type == CEL_BOOL && b.b == deciding)
        return b;
    return a.type == CEL_ERROR ? a : b;
}

static struct cel_value eval_not(const struct cel_eval *e, node x, const struct cel_scope *scope)
{
    struct cel_value v = cel_as_logic(cel_eval_node(e, x->args[0], scope));
    return v.type == CEL_BOOL ? cel_bool(!v.b) : v;
}

static struct cel_value eval_negate(const struct cel_eval *e, node x, const struct cel_scope *scope)
{
    struct cel_value v = cel_eval_node(e, x->args[0], scope);
    return v.type == CEL_ERROR ? v : cel_negate(&v);
}

static struct cel_value eval_choose(const struct cel_eval *e, node x, const struct cel_scope *scope)
{
    struct cel_value v = cel_as_logic(cel_eval_node(e, x->args[0], scope));
    return v.type == CEL_BOOL ? cel_eval_node(e, x->args[v.b ? 1 : 2], scope) : v;
}

/* ---- lists, maps, calls ---- */

/* An item or a map's value. False when it is optional and absent. */
static bool eval_item(const struct cel_eval *e, node x, const struct cel_scope *scope,
                      struct cel_value *ret)
{
    bool is_optional = x->op == CEL_OP_IF_PRESENT;
    *ret = cel_eval_node(e, is_optional ? x->args[0] : x, scope);
    if (!is_optional || ret->type == CEL_ERROR)
        return true;
    if (ret->type != CEL_OPTIONAL) {
        *ret = cel_no_overload();
        return true;
    }
    bool is_there = ret->inner != NULL;
    if (is_there)
        *ret = *ret->inner;
    return is_there;
}

static struct cel_value eval_list(const struct cel_eval *e, node x, const struct cel_scope *scope)
{
    struct cel_value *items = cel_alloc(e->c, x->n, sizeof *items);
    size_t n = 0;
    for (size_t i = 0; items && i < x->n; i++) {
        n += eval_item(e, x->args[i], scope, &items[n]);
        if (n > 0 && items[n - 1].type == CEL_ERROR)
            return items[n - 1];
    }
    return items ? cel_list(items, n) : cel_spent();
}

static bool may_be_key(const struct cel_value *v)
{
    return v->type == CEL_BOOL || v->type == CEL_INT || v->type == CEL_UINT ||
           v->type == CEL_STRING;
}

struct cel_value cel_map_put(struct cel_ctx *c, struct cel_value *items, size_t *n,
                             const struct cel_value *key, const struct cel_value *value)
{
    struct cel_value before = {.type = CEL_MAP, .items = {items, *n}}, found;
    if (key->type == CEL_ERROR || value->type == CEL_ERROR)
        return key->type == CEL_ERROR ? *key : *value;
    if (!may_be_key(key))
        return cel_error("unsupported key type");
    if (cel_find(c, &before, key, &found))
        return cel_error("repeated key");
    items[(*n)++] = *key;
    items[(*n)++] = *value;
    return (struct cel_value){.type = CEL_NULL};
}

static struct cel_value eval_map(const struct cel_eval *e, node x, const struct cel_scope *scope)
{
    struct cel_value *items = cel_alloc(e->c, x->n, sizeof *items), value;
    size_t n = 0;
    for (size_t i = 0; items && i < x->n; i += 2) {
        struct cel_value key = cel_eval_node(e, x->args[i], scope);
        if (key.type != CEL_ERROR && !eval_item(e, x->args[i + 1], scope, &value))
            continue;
        struct cel_value wrong = cel_map_put(e->c, items, &n, &key, &value);
        if (wrong.type == CEL_ERROR)
            return wrong;
    }
    return items ? (struct cel_value){.type = CEL_MAP, .items = {items, n}} : cel_spent();
}

#define CALL_ARGS_MAX 4 /* of any function in the tables */

static struct cel_value eval_call(const struct cel_eval *e, node x, const struct cel_scope *scope)
{
    struct cel_value args[CALL_ARGS_MAX] = {0};
    for (size_t i = 0; i < x->n && i < CALL_ARGS_MAX; i++) {
        args[i] = cel_eval_node(e, x->args[i], scope);
        if (args[i].type == CEL_ERROR)
            return args[i];
    }
    return cel_function_call(e->c, x, args);
}

struct cel_value cel_eval_node(const struct cel_eval *e, node x, const struct cel_scope *scope)
{
    if (!cel_spend(e->c, 1))
        return cel_spent();
    switch (x->op) {
    case CEL_OP_LITERAL:
        return x->value;
    case CEL_OP_VARIABLE:
        return eval_variable(e, x, scope);
    case CEL_OP_SELECT:
    case CEL_OP_HAS:
    case CEL_OP_OPTIONAL_SELECT:
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
    case CEL_OP_TRANSFORM_MAP:
    case CEL_OP_TRANSFORM_ENTRY:
    case CEL_OP_OPTIONAL_MAP:
    case CEL_OP_OPTIONAL_FLAT_MAP:
        return cel_eval_macro(e, x, scope);
    default:
        return eval_binary(e, x, scope);
    }
}

struct cel_value cel_eval(struct arena *arena, const struct cel_node *expr,
                          const struct cel_variable *vars, uint64_t steps_max, uint64_t *ret_taken)
{
    struct cel_ctx c = {.arena = arena, .steps = steps_max};
    struct cel_value v = cel_eval_node(&(struct cel_eval){&c, vars}, expr, NULL);
    if (ret_taken)
        *ret_taken = steps_max - c.steps;
    return c.is_exhausted ? cel_spent() : v;
}
