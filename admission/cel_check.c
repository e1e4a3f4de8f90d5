/* Types of CEL, known before there are values: an expression is walked once with what the tables
 * say of its variables, so that a rule with a misspelt member or an operator that cannot work is
 * refused when it is compiled. What is known of a value is a struct cel_value without the value;
 * type CEL_ERROR stands for "anything". Weaker than CEL's own checker where tables say nothing:
 * items of lists that an expression makes, and values of optionals, are anything. */
#include "admission/cel_tree.h"
#include "apiserver/base/buf.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"

struct checker {
    struct arena *arena;
    const struct cel_variable *vars;
    const char *mistake; /* the first */
};
typedef const struct cel_node *node;

static const struct cel_value anything;

static struct cel_value a(enum cel_type type)
{
    return (struct cel_value){.type = type};
}

static bool is_known(const struct cel_value *v)
{
    return v->type != CEL_ERROR;
}

/* Whether a value may be of a type. */
static bool may_be(const struct cel_value *v, enum cel_type type)
{
    return !is_known(v) || v->type == type;
}

static const char *name_of(const struct cel_value *v)
{
    return is_known(v) ? cel_type_name(v->type) : "any";
}

static struct cel_value fail(struct checker *c, const char *mistake)
{
    c->mistake = c->mistake ? c->mistake : mistake;
    return anything;
}

static struct cel_value no_overload(struct checker *c, const char *what,
                                    const struct cel_value *args, size_t n)
{
    SCOPED(buf_fini) struct buf types = {0};
    for (size_t i = 0; i < n; i++)
        buf_printf(&types, "%s%s", i ? ", " : "", name_of(&args[i]));
    return fail(
        c, arena_printf(c->arena, "no matching overload for %s of (%s)", what, buf_cstr(&types)));
}

static struct cel_value expect(struct checker *c, const struct cel_value *v, enum cel_type type,
                               const char *what)
{
    return may_be(v, type) ? a(type) : no_overload(c, what, v, 1);
}

/* ---- what the tables say ---- */

/* What rules may see of the metadata of a whole object. Source: Kubernetes, "Validation rules". */
static const struct field meta_fields[] = {
    {.name = "name", .type = F_STRING}, {.name = "generateName", .type = F_STRING}, {0}};
static const struct shape meta_shape = {.name = "ObjectMeta", .fields = meta_fields};

static struct cel_value of_type(enum field_type type, const struct shape *shape)
{
    static const enum cel_type types[] = {
        [F_OBJECT] = CEL_MAP,     [F_STRING] = CEL_STRING, [F_BOOL] = CEL_BOOL,
        [F_INT32] = CEL_INT,      [F_INT64] = CEL_INT,     [F_NUMBER] = CEL_DOUBLE,
        [F_TIME] = CEL_TIMESTAMP, [F_META] = CEL_MAP,
    };
    struct cel_value v = {.type = type < ARRAY_LEN(types) ? types[type] : CEL_ERROR};
    if (v.type == CEL_MAP)
        v.shape = type == F_META ? &meta_shape : shape;
    return v;
}

static struct cel_value of_row(const struct field *row)
{
    if (row->type != F_LIST && row->type != F_MAP)
        return of_type(row->type, row->of);
    return (struct cel_value){.type = row->type == F_LIST ? CEL_LIST : CEL_MAP,
                              .shape = row->of,
                              .item = row->item,
                              .has_item = true};
}

static struct cel_value item_of(const struct cel_value *v)
{
    return v->has_item ? of_type(v->item, v->shape) : anything;
}

static bool is_object(const struct cel_value *v)
{
    return v->type == CEL_MAP && v->shape && !v->has_item;
}

/* ---- names and members ---- */

static struct cel_value check(struct checker *c, node x, const struct cel_scope *scope);

static struct cel_value check_variable(struct checker *c, node x, const struct cel_scope *scope)
{
    const struct cel_value *local = cel_scope_find(scope, x);
    if (local)
        return *local;
    for (const struct cel_variable *v = c->vars; v->name; v++)
        if (str_equal(v->name, x->name))
            return v->value;
    return anything;
}

static struct cel_value member_of(struct checker *c, const struct cel_value *target,
                                  const char *name)
{
    if (!is_object(target))
        return target->type == CEL_MAP || !is_known(target)
                   ? item_of(target)
                   : fail(c, arena_printf(c->arena, "type %s has no member %s", name_of(target),
                                          name));
    const struct field *row = shape_field(target->shape, cel_member_name(c->arena, name));
    return row ? of_row(row) : fail(c, arena_printf(c->arena, "undefined field: %s", name));
}

static struct cel_value check_select(struct checker *c, node x, const struct cel_scope *scope)
{
    struct cel_value target = check(c, x->args[0], scope);
    if (target.type == CEL_OPTIONAL)
        return a(x->op == CEL_OP_HAS ? CEL_BOOL : CEL_OPTIONAL);
    struct cel_value member = member_of(c, &target, x->name);
    if (x->op == CEL_OP_SELECT)
        return member;
    return a(x->op == CEL_OP_HAS ? CEL_BOOL : CEL_OPTIONAL);
}

static bool is_number(enum cel_type type)
{
    return type == CEL_INT || type == CEL_UINT || type == CEL_DOUBLE;
}

static struct cel_value check_index(struct checker *c, node x, const struct cel_scope *scope)
{
    struct cel_value args[] = {check(c, x->args[0], scope), check(c, x->args[1], scope)};
    if (args[0].type == CEL_OPTIONAL)
        return args[0];
    bool is_list = args[0].type == CEL_LIST, is_map = args[0].type == CEL_MAP;
    bool has_place = !is_known(&args[1]) || !is_list || is_number(args[1].type);
    if (is_object(&args[0]) || !has_place || (is_known(&args[0]) && !is_list && !is_map))
        return no_overload(c, "[]", args, 2);
    return x->op == CEL_OP_OPTIONAL_INDEX ? a(CEL_OPTIONAL) : item_of(&args[0]);
}

/* ---- operators ---- */

static const char *sign_of(enum cel_op op)
{
    static const char *const signs[] = {
        [CEL_OP_ADD] = "+",
        [CEL_OP_SUBTRACT] = "-",
        [CEL_OP_MULTIPLY] = "*",
        [CEL_OP_DIVIDE] = "/",
        [CEL_OP_MODULO] = "%",
        [CEL_OP_EQUAL] = "==",
        [CEL_OP_NOT_EQUAL] = "!=",
        [CEL_OP_LESS] = "<",
        [CEL_OP_LESS_EQUAL] = "<=",
        [CEL_OP_GREATER] = ">",
        [CEL_OP_IN] = "in",
        [CEL_OP_AND] = "&&",
        [CEL_OP_GREATER_EQUAL] = ">=",
        [CEL_OP_OR] = "||",
    };
    return signs[op];
}

/* What + and - make of times; CEL_ERROR when they take no such pair. */
static enum cel_type time_result(enum cel_op op, enum cel_type x, enum cel_type y)
{
    bool is_add = op == CEL_OP_ADD;
    if (!is_add && op != CEL_OP_SUBTRACT)
        return CEL_ERROR;
    if (x == CEL_DURATION && y == CEL_DURATION)
        return CEL_DURATION;
    if (x == CEL_TIMESTAMP && y == CEL_DURATION)
        return CEL_TIMESTAMP;
    if (x == CEL_DURATION && y == CEL_TIMESTAMP && is_add)
        return CEL_TIMESTAMP;
    return x == CEL_TIMESTAMP && y == CEL_TIMESTAMP && !is_add ? CEL_DURATION : CEL_ERROR;
}

static enum cel_type arithmetic_result(enum cel_op op, enum cel_type x, enum cel_type y)
{
    if (x == CEL_TIMESTAMP || x == CEL_DURATION)
        return time_result(op, x, y);
    bool is_joined = x == CEL_STRING || x == CEL_BYTES || x == CEL_LIST;
    bool is_right = x == y && ((is_number(x) && !(x == CEL_DOUBLE && op == CEL_OP_MODULO)) ||
                               (is_joined && op == CEL_OP_ADD));
    return is_right ? x : CEL_ERROR;
}

/* Numbers of different types can be ordered, but are not expected to be equal. */
static bool are_comparable(enum cel_op op, enum cel_type x, enum cel_type y)
{
    if (op == CEL_OP_EQUAL || op == CEL_OP_NOT_EQUAL)
        return x == y || x == CEL_NULL || y == CEL_NULL;
    if (is_number(x) && is_number(y))
        return true;
    return x == y && (x == CEL_BOOL || x == CEL_STRING || x == CEL_BYTES || x == CEL_TIMESTAMP ||
                      x == CEL_DURATION);
}

static struct cel_value check_binary(struct checker *c, node x, const struct cel_scope *scope)
{
    struct cel_value args[] = {check(c, x->args[0], scope), check(c, x->args[1], scope)};
    bool are_known = is_known(&args[0]) && is_known(&args[1]);
    switch (x->op) {
    case CEL_OP_AND:
    case CEL_OP_OR:
        return may_be(&args[0], CEL_BOOL) && may_be(&args[1], CEL_BOOL)
                   ? a(CEL_BOOL)
                   : no_overload(c, sign_of(x->op), args, 2);
    case CEL_OP_IN:
        return may_be(&args[1], CEL_LIST) || may_be(&args[1], CEL_MAP)
                   ? a(CEL_BOOL)
                   : no_overload(c, "in", args, 2);
    case CEL_OP_ADD:
    case CEL_OP_SUBTRACT:
    case CEL_OP_MULTIPLY:
    case CEL_OP_DIVIDE:
    case CEL_OP_MODULO: {
        enum cel_type result = arithmetic_result(x->op, args[0].type, args[1].type);
        return are_known && result == CEL_ERROR ? no_overload(c, sign_of(x->op), args, 2)
                                                : a(result);
    }
    default:
        return are_known && !are_comparable(x->op, args[0].type, args[1].type)
                   ? no_overload(c, sign_of(x->op), args, 2)
                   : a(CEL_BOOL);
    }
}

static struct cel_value check_negate(struct checker *c, node x, const struct cel_scope *scope)
{
    struct cel_value v = check(c, x->args[0], scope);
    bool is_right = may_be(&v, CEL_INT) || may_be(&v, CEL_DOUBLE) || may_be(&v, CEL_DURATION);
    return is_right ? v : no_overload(c, "-", &v, 1);
}

static struct cel_value check_choose(struct checker *c, node x, const struct cel_scope *scope)
{
    struct cel_value condition = check(c, x->args[0], scope);
    struct cel_value ways[] = {check(c, x->args[1], scope), check(c, x->args[2], scope)};
    expect(c, &condition, CEL_BOOL, "?:");
    if (!is_known(&ways[0]) || !is_known(&ways[1]))
        return anything;
    return ways[0].type == ways[1].type ? ways[0] : no_overload(c, "?:", ways, 2);
}

/* ---- lists, maps, calls ---- */

/* The type of an item of a literal, seen through a question mark. */
static void check_items(struct checker *c, node x, const struct cel_scope *scope)
{
    for (size_t i = 0; i < x->n; i++) {
        bool is_optional = x->args[i]->op == CEL_OP_IF_PRESENT;
        struct cel_value v = check(c, is_optional ? x->args[i]->args[0] : x->args[i], scope);
        if (is_optional)
            expect(c, &v, CEL_OPTIONAL, "?");
    }
}

#define CALL_ARGS_MAX 4 /* of any function in the tables */

static struct cel_value check_call(struct checker *c, node x, const struct cel_scope *scope)
{
    struct cel_value args[CALL_ARGS_MAX] = {0};
    enum cel_type result = CEL_ERROR;
    size_t matching = 0;
    for (size_t i = 0; i < x->n && i < CALL_ARGS_MAX; i++)
        args[i] = check(c, x->args[i], scope);
    for (size_t i = 0; i < x->n_forms; i++) {
        if (!cel_function_may_take(x->forms[i], args))
            continue;
        enum cel_type gives = cel_function_result(x->forms[i]);
        result = matching++ == 0 || gives == result ? gives : CEL_ERROR;
    }
    return matching == 0 ? no_overload(c, x->name, args, x->n) : a(result);
}

/* ---- macros ---- */

/* The variables of a macro over a range; see bind in cel_macro.c. */
static struct cel_scope bind(node x, const struct cel_value *range, const struct cel_scope *up)
{
    struct cel_scope s = {.name = x->name, .second_name = x->second, .up = up};
    bool is_json_map = range->type == CEL_MAP && (range->shape || range->has_item);
    struct cel_value item = is_object(range) ? anything : item_of(range);
    struct cel_value key = is_json_map               ? a(CEL_STRING)
                           : range->type == CEL_LIST ? a(CEL_INT)
                                                     : anything;
    s.second = item;
    s.value = x->second || range->type != CEL_LIST ? key : item;
    return s;
}

static struct cel_value macro_result(node x, const struct cel_value *range,
                                     const struct cel_value *last)
{
    switch (x->op) {
    case CEL_OP_ALL:
    case CEL_OP_EXISTS:
    case CEL_OP_EXISTS_ONE:
        return a(CEL_BOOL);
    case CEL_OP_FILTER:
        return range->type == CEL_LIST ? *range : a(CEL_LIST);
    case CEL_OP_MAP:
        return a(CEL_LIST);
    case CEL_OP_OPTIONAL_FLAT_MAP:
        return is_known(last) ? *last : a(CEL_OPTIONAL);
    case CEL_OP_OPTIONAL_MAP:
        return a(CEL_OPTIONAL);
    default:
        return a(CEL_MAP);
    }
}

static bool is_over_optional(node x)
{
    return x->op == CEL_OP_OPTIONAL_MAP || x->op == CEL_OP_OPTIONAL_FLAT_MAP;
}

/* Whether the i-th argument of a macro must be a truth value. */
static bool is_filter(node x, size_t i)
{
    return i == 1 && (x->n == 3 || x->op == CEL_OP_ALL || x->op == CEL_OP_EXISTS ||
                      x->op == CEL_OP_EXISTS_ONE || x->op == CEL_OP_FILTER);
}

static struct cel_value check_macro(struct checker *c, node x, const struct cel_scope *scope)
{
    struct cel_value range = check(c, x->args[0], scope), last = anything;
    bool is_right = is_over_optional(x) ? may_be(&range, CEL_OPTIONAL)
                                        : may_be(&range, CEL_LIST) || may_be(&range, CEL_MAP);
    if (!is_right)
        return no_overload(c, "a macro", &range, 1);
    struct cel_scope inner = bind(x, &range, scope);
    if (is_over_optional(x))
        inner.value = anything;
    for (size_t i = 1; i < x->n; i++) {
        last = check(c, x->args[i], &inner);
        if (is_filter(x, i))
            expect(c, &last, CEL_BOOL, "a macro's condition");
    }
    return macro_result(x, &range, &last);
}

static struct cel_value check(struct checker *c, node x, const struct cel_scope *scope)
{
    if (c->mistake)
        return anything;
    switch (x->op) {
    case CEL_OP_LITERAL:
        return a(x->value.type);
    case CEL_OP_VARIABLE:
        return check_variable(c, x, scope);
    case CEL_OP_SELECT:
    case CEL_OP_HAS:
    case CEL_OP_OPTIONAL_SELECT:
        return check_select(c, x, scope);
    case CEL_OP_INDEX:
    case CEL_OP_OPTIONAL_INDEX:
        return check_index(c, x, scope);
    case CEL_OP_CALL:
        return check_call(c, x, scope);
    case CEL_OP_MAKE_LIST:
    case CEL_OP_MAKE_MAP:
        check_items(c, x, scope);
        return a(x->op == CEL_OP_MAKE_LIST ? CEL_LIST : CEL_MAP);
    case CEL_OP_NOT: {
        struct cel_value v = check(c, x->args[0], scope);
        return expect(c, &v, CEL_BOOL, "!");
    }
    case CEL_OP_NEGATE:
        return check_negate(c, x, scope);
    case CEL_OP_CHOOSE:
        return check_choose(c, x, scope);
    default:
        return x->op >= CEL_OP_ALL ? check_macro(c, x, scope) : check_binary(c, x, scope);
    }
}

struct cel_value cel_typed(const struct shape *shape)
{
    return of_type(F_OBJECT, shape);
}

int cel_check(struct arena *arena, const struct cel_node *expr, const struct cel_variable *vars,
              enum cel_type result, struct err *err)
{
    struct checker c = {.arena = arena, .vars = vars};
    struct cel_value v = check(&c, expr, NULL);
    if (!c.mistake && !may_be(&v, result))
        fail(&c, arena_printf(arena, "it gives %s, not %s", name_of(&v), cel_type_name(result)));
    return c.mistake ? err_set(err, ERR_BAD_REQUEST, "%s", c.mistake) : 0;
}
