/* The grammar of CEL, by recursive descent. Names of variables and functions, numbers of arguments
 * and macros are settled here, so that a rule which parses can only fail on its values. */
#include "admission/cel_tree.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/regex.h"

#define ARGS_MAX 256 /* of one call, list or map */

struct parser {
    struct arena *arena;
    const char *start, *p;
    const char *at; /* where the present token begins */
    struct cel_token t;
    const char *const *vars;
    const struct local *locals; /* variables of the macros around */
    const char *mistake;        /* the first */
    const char *mistake_at;
    size_t nodes;
    int depth;
};
struct local {
    const char *name;
    const struct local *up;
};
typedef const struct cel_node *node;
struct args {
    node v[ARGS_MAX];
    size_t n;
};

static node fail(struct parser *ps, const char *mistake)
{
    if (!ps->mistake) {
        ps->mistake = mistake;
        ps->mistake_at = ps->at;
    }
    return NULL;
}

static void next(struct parser *ps)
{
    const char *before = ps->p;
    ps->t = cel_lex(ps->arena, &ps->p);
    ps->at = before + strspn(before, " \t\n\r\f");
    if (ps->t.kind == CEL_T_BAD)
        fail(ps, ps->t.mistake);
}

static bool is_sign(const struct parser *ps, const char *sign)
{
    return ps->t.kind == CEL_T_SIGN && str_eq(ps->t.text, sign);
}

static bool is_word(const struct parser *ps, const char *word)
{
    return ps->t.kind == CEL_T_NAME && str_eq(ps->t.text, word);
}

static bool take(struct parser *ps, const char *sign)
{
    if (!is_sign(ps, sign))
        return false;
    next(ps);
    return true;
}

static bool expect(struct parser *ps, const char *sign)
{
    if (!take(ps, sign))
        fail(ps, "a sign is missing, or another was expected");
    return !ps->mistake;
}

static struct cel_node *make(struct parser *ps, enum cel_op op, const node *args, size_t n)
{
    struct cel_node *made = arena_alloc(ps->arena, sizeof *made);
    node *copy = arena_alloc(ps->arena, (n + 1) * sizeof *copy);
    for (size_t i = 0; i < n; i++) {
        copy[i] = args[i];
        if (args[i] && args[i]->depth > made->depth)
            made->depth = args[i]->depth;
    }
    made->op = op;
    made->args = copy;
    made->n = n;
    if (++ps->nodes > CEL_NODES_MAX || ++made->depth > CEL_DEPTH_MAX)
        fail(ps, "the expression is too large");
    return made;
}

static node literal(struct parser *ps, struct cel_value value)
{
    if (value.type == CEL_ERROR)
        return fail(ps, value.error);
    struct cel_node *made = make(ps, CEL_OP_LITERAL, NULL, 0);
    made->value = value;
    return made;
}

static node parse_expr(struct parser *ps);

/* An item of a list or a value of a map; behind a question mark, an optional one. */
static node parse_item(struct parser *ps, bool is_optional)
{
    node inner = parse_expr(ps);
    return is_optional && inner ? make(ps, CEL_OP_IF_PRESENT, &inner, 1) : inner;
}

/* Expressions up to the closing sign, which is eaten. In a list a comma may follow the last, and
 * items may be optional. */
static void parse_args(struct parser *ps, const char *close, bool is_list, struct args *ret)
{
    if (take(ps, close))
        return;
    do {
        if (is_list && is_sign(ps, close))
            break;
        if (ret->n == ARGS_MAX)
            fail(ps, "too many arguments");
        else
            ret->v[ret->n++] = parse_item(ps, is_list && take(ps, "?"));
    } while (!ps->mistake && take(ps, ","));
    expect(ps, close);
}

/* ---- names ---- */

static bool is_reserved(struct str name)
{
    static const char *const words[] = {
        "as", "break", "const", "continue",  "else",    "for",    "function", "if",   "import",
        "in", "let",   "loop",  "namespace", "package", "return", "var",      "void", "while"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (str_eq(name, words[i]))
            return true;
    return false;
}

/* A pattern that is written in the expression is compiled with it: what is wrong with it is known
 * before it is used, and it is cheap then. */
static node with_pattern(struct parser *ps, node x)
{
    const char *mistake = NULL;
    if (x->op != CEL_OP_LITERAL || x->value.type != CEL_STRING)
        return x;
    struct cel_node *made = make(ps, CEL_OP_LITERAL, NULL, 0);
    made->value = x->value;
    made->value.regex = regex_compile(ps->arena, x->value.s, &mistake);
    if (!made->value.regex)
        fail(ps, arena_printf(ps->arena, "a regular expression: %s", mistake));
    return made;
}

static bool takes_pattern(const char *name)
{
    return str_equal(name, "matches") || str_equal(name, "find") || str_equal(name, "findAll");
}

static node make_call(struct parser *ps, const char *name, bool is_method, struct args *args)
{
    const char *mistake = NULL;
    const struct cel_function *const *forms;
    size_t n = cel_function_find(ps->arena, name, is_method, args->n, &forms, &mistake);
    if (n == 0)
        return fail(ps, mistake);
    if (takes_pattern(name))
        args->v[1] = with_pattern(ps, args->v[1]);
    struct cel_node *made = make(ps, CEL_OP_CALL, args->v, args->n);
    made->name = name;
    made->forms = forms;
    made->n_forms = n;
    return made;
}

static bool is_local(const struct parser *ps, const char *name)
{
    for (const struct local *l = ps->locals; l; l = l->up)
        if (str_equal(l->name, name))
            return true;
    return false;
}

static bool is_declared(const struct parser *ps, const char *name)
{
    for (const char *const *v = ps->vars; v && *v; v++)
        if (str_equal(*v, name))
            return true;
    return false;
}

/* What a name with dots means, the longest one: a function of a name space, called here, or a type.
 * NULL when it is neither. */
static node parse_qualified(struct parser *ps, const char *name)
{
    enum cel_type named;
    while (is_sign(ps, ".")) {
        next(ps);
        if (ps->t.kind != CEL_T_NAME)
            return NULL;
        name = arena_printf(ps->arena, "%s.%.*s", name, (int)ps->t.text.n, ps->t.text.p);
        next(ps);
        if (cel_type_of_name(name, &named))
            return literal(ps, (struct cel_value){.type = CEL_TYPE, .named = named});
        if (is_sign(ps, "(") && cel_function_is_qualified(name)) {
            struct args *args = arena_alloc(ps->arena, sizeof *args);
            next(ps);
            parse_args(ps, ")", false, args);
            return ps->mistake ? NULL : make_call(ps, name, false, args);
        }
    }
    return NULL;
}

static node make_name(struct parser *ps, const char *name, bool is_root)
{
    if ((!is_root && is_local(ps, name)) || is_declared(ps, name)) {
        struct cel_node *made = make(ps, CEL_OP_VARIABLE, NULL, 0);
        made->name = name;
        made->is_root = is_root;
        return made;
    }
    enum cel_type named;
    if (cel_type_of_name(name, &named))
        return literal(ps, (struct cel_value){.type = CEL_TYPE, .named = named});
    if (is_sign(ps, "{"))
        return fail(ps, "messages are not supported");
    struct parser before = *ps;
    node qualified = parse_qualified(ps, name);
    if (qualified || ps->mistake)
        return qualified;
    *ps = before;
    return fail(ps, arena_printf(ps->arena, "a name that is not declared: %s", name));
}

/* ---- macros ---- */

static node parse_has(struct parser *ps)
{
    node inner = parse_expr(ps);
    if (!expect(ps, ")") || !inner)
        return NULL;
    if (inner->op != CEL_OP_SELECT)
        return fail(ps, "has() needs a member");
    struct cel_node *made = make(ps, CEL_OP_HAS, inner->args, inner->n);
    made->name = inner->name;
    return made;
}

/* Macros by the number of their variables; a body that is a filter can be left out of some. */
static const struct macro {
    const char *name;
    enum cel_op op;
    size_t variables, min_bodies, max_bodies;
} macros[] = {
    {"all", CEL_OP_ALL, 1, 1, 1},
    {"all", CEL_OP_ALL, 2, 1, 1},
    {"exists", CEL_OP_EXISTS, 1, 1, 1},
    {"exists", CEL_OP_EXISTS, 2, 1, 1},
    {"exists_one", CEL_OP_EXISTS_ONE, 1, 1, 1},
    {"existsOne", CEL_OP_EXISTS_ONE, 1, 1, 1},
    {"existsOne", CEL_OP_EXISTS_ONE, 2, 1, 1},
    {"filter", CEL_OP_FILTER, 1, 1, 1},
    {"map", CEL_OP_MAP, 1, 1, 2},
    {"optFlatMap", CEL_OP_OPTIONAL_FLAT_MAP, 1, 1, 1},
    {"optMap", CEL_OP_OPTIONAL_MAP, 1, 1, 1},
    {"transformList", CEL_OP_MAP, 2, 1, 2},
    {"transformMap", CEL_OP_TRANSFORM_MAP, 2, 1, 2},
    {"transformMapEntry", CEL_OP_TRANSFORM_ENTRY, 2, 1, 2},
};

static const struct macro *find_macro(const char *name, size_t variables)
{
    for (size_t i = 0; i < ARRAY_LEN(macros); i++)
        if (str_equal(macros[i].name, name) && macros[i].variables == variables)
            return &macros[i];
    return NULL;
}

static bool is_macro(const char *name)
{
    return find_macro(name, 1) || find_macro(name, 2);
}

static const char *take_variable(struct parser *ps)
{
    if (ps->t.kind != CEL_T_NAME || is_reserved(ps->t.text)) {
        fail(ps, "a macro needs a variable");
        return NULL;
    }
    const char *name = arena_strndup(ps->arena, ps->t.text.p, ps->t.text.n);
    next(ps);
    return name;
}

/* Whether another variable comes: a name with a comma behind it. */
static bool has_second_variable(const struct parser *ps)
{
    struct parser ahead = *ps;
    if (ahead.t.kind != CEL_T_NAME)
        return false;
    next(&ahead);
    return is_sign(&ahead, ",");
}

/* The bodies of a macro; its variables are known in them. */
static node parse_bodies(struct parser *ps, const struct macro *macro, node range,
                         const char *first, const char *second)
{
    struct local outer = {first, ps->locals}, inner = {second, &outer};
    node args[3] = {range};
    size_t n = 1;
    ps->locals = second ? &inner : &outer;
    do
        args[n++] = parse_expr(ps);
    while (n < ARRAY_LEN(args) && take(ps, ","));
    ps->locals = outer.up;
    if (!expect(ps, ")"))
        return NULL;
    if (n - 1 < macro->min_bodies || n - 1 > macro->max_bodies)
        return fail(ps, "a macro with another number of arguments");
    struct cel_node *made = make(ps, macro->op, args, n);
    made->name = first;
    made->second = second;
    return made;
}

/* Behind "range.all(". */
static node parse_macro(struct parser *ps, const char *name, node range)
{
    const char *first = take_variable(ps), *second = NULL;
    if (!first)
        return NULL;
    if (!take(ps, ","))
        return fail(ps, "a macro with another number of arguments");
    bool takes_two = find_macro(name, 2) && has_second_variable(ps);
    if (takes_two) {
        second = take_variable(ps);
        take(ps, ",");
    }
    const struct macro *macro = find_macro(name, takes_two ? 2 : 1);
    if (!macro)
        return fail(ps, "a macro with another number of variables");
    if (takes_two && str_equal(first, second))
        return fail(ps, "two variables of one name");
    return parse_bodies(ps, macro, range, first, second);
}

/* ---- from the inside out ---- */

static node parse_map(struct parser *ps)
{
    struct args *args = arena_alloc(ps->arena, sizeof *args);
    while (!take(ps, "}")) {
        if (args->n + 2 > ARGS_MAX)
            return fail(ps, "too many members");
        bool is_optional = take(ps, "?");
        args->v[args->n++] = parse_expr(ps);
        if (!expect(ps, ":"))
            return NULL;
        args->v[args->n++] = parse_item(ps, is_optional);
        if (ps->mistake || (!is_sign(ps, "}") && !expect(ps, ",")))
            return NULL;
    }
    return make(ps, CEL_OP_MAKE_MAP, args->v, args->n);
}

static node parse_word(struct parser *ps, bool is_root)
{
    const char *name = arena_strndup(ps->arena, ps->t.text.p, ps->t.text.n);
    if (is_reserved(ps->t.text))
        return fail(ps, "a reserved word");
    next(ps);
    if (str_equal(name, "true") || str_equal(name, "false"))
        return literal(ps, cel_bool(name[0] == 't'));
    if (str_equal(name, "null"))
        return literal(ps, (struct cel_value){.type = CEL_NULL});
    if (!take(ps, "("))
        return make_name(ps, name, is_root);
    if (str_equal(name, "has"))
        return parse_has(ps);
    struct args *args = arena_alloc(ps->arena, sizeof *args);
    parse_args(ps, ")", false, args);
    return ps->mistake ? NULL : make_call(ps, name, false, args);
}

static node parse_text(struct parser *ps)
{
    struct cel_value v = cel_string(ps->t.text.p, ps->t.text.n);
    if (ps->t.kind == CEL_T_BYTES)
        v.type = CEL_BYTES;
    next(ps);
    return literal(ps, v);
}

static node parse_number(struct parser *ps, bool is_negative)
{
    struct cel_value v = cel_number(ps->arena, &ps->t, is_negative);
    next(ps);
    return literal(ps, v);
}

static bool is_number(const struct parser *ps)
{
    return ps->t.kind == CEL_T_INT || ps->t.kind == CEL_T_UINT || ps->t.kind == CEL_T_DOUBLE;
}

static node parse_primary(struct parser *ps)
{
    if (ps->t.kind == CEL_T_STRING || ps->t.kind == CEL_T_BYTES)
        return parse_text(ps);
    if (is_number(ps))
        return parse_number(ps, false);
    if (take(ps, "(")) {
        node inner = parse_expr(ps);
        return expect(ps, ")") ? inner : NULL;
    }
    if (take(ps, "[")) {
        struct args *args = arena_alloc(ps->arena, sizeof *args);
        parse_args(ps, "]", true, args);
        return ps->mistake ? NULL : make(ps, CEL_OP_MAKE_LIST, args->v, args->n);
    }
    if (take(ps, "{"))
        return parse_map(ps);
    bool is_root = take(ps, ".");
    return ps->t.kind == CEL_T_NAME ? parse_word(ps, is_root)
                                    : fail(ps, "an expression is missing");
}

/* Behind "target.": a member, a method or a macro. */
static node parse_member(struct parser *ps, node target)
{
    bool is_optional = take(ps, "?"), is_quoted = ps->t.kind == CEL_T_QUOTED_NAME;
    if (ps->t.kind != CEL_T_NAME && !is_quoted)
        return fail(ps, "the name of a member is missing");
    if (is_word(ps, "in") || is_word(ps, "true") || is_word(ps, "false") || is_word(ps, "null"))
        return fail(ps, "a reserved word");
    const char *name = arena_strndup(ps->arena, ps->t.text.p, ps->t.text.n);
    next(ps);
    if (is_quoted || is_optional || !take(ps, "(")) {
        struct cel_node *made =
            make(ps, is_optional ? CEL_OP_OPTIONAL_SELECT : CEL_OP_SELECT, &target, 1);
        made->name = name;
        return made;
    }
    if (is_macro(name))
        return parse_macro(ps, name, target);
    struct args *args = arena_alloc(ps->arena, sizeof *args);
    args->v[args->n++] = target;
    parse_args(ps, ")", false, args);
    return ps->mistake ? NULL : make_call(ps, name, true, args);
}

static node parse_members(struct parser *ps, node target)
{
    while (target && !ps->mistake) {
        if (take(ps, ".")) {
            target = parse_member(ps, target);
        } else if (take(ps, "[")) {
            bool is_optional = take(ps, "?");
            node args[] = {target, parse_expr(ps)};
            if (!expect(ps, "]"))
                return NULL;
            target = make(ps, is_optional ? CEL_OP_OPTIONAL_INDEX : CEL_OP_INDEX, args, 2);
        } else {
            return target;
        }
    }
    return NULL;
}

static node parse_unary(struct parser *ps)
{
    if (++ps->depth > CEL_DEPTH_MAX)
        return fail(ps, "the expression is too large");
    node made;
    if (take(ps, "!")) {
        node inner = parse_unary(ps);
        made = make(ps, CEL_OP_NOT, &inner, 1);
    } else if (take(ps, "-")) {
        bool is_literal = is_number(ps);
        node inner = is_literal ? parse_members(ps, parse_number(ps, true)) : parse_unary(ps);
        made = is_literal ? inner : make(ps, CEL_OP_NEGATE, &inner, 1);
    } else {
        made = parse_members(ps, parse_primary(ps));
    }
    ps->depth--;
    return ps->mistake ? NULL : made;
}

struct level {
    const char *sign;
    enum cel_op op;
};
#define LEVEL_SIGNS 8
/* Binary operators, those that bind least first. */
static const struct level levels[][LEVEL_SIGNS] = {
    {{"||", CEL_OP_OR}},
    {{"&&", CEL_OP_AND}},
    {{"==", CEL_OP_EQUAL},
     {"!=", CEL_OP_NOT_EQUAL},
     {"<", CEL_OP_LESS},
     {"<=", CEL_OP_LESS_EQUAL},
     {">", CEL_OP_GREATER},
     {">=", CEL_OP_GREATER_EQUAL},
     {"in", CEL_OP_IN}},
    {{"+", CEL_OP_ADD}, {"-", CEL_OP_SUBTRACT}},
    {{"*", CEL_OP_MULTIPLY}, {"/", CEL_OP_DIVIDE}, {"%", CEL_OP_MODULO}},
};

static const struct level *find_operator(const struct parser *ps, size_t level)
{
    for (const struct level *l = levels[level]; l->sign; l++)
        if (is_sign(ps, l->sign) || (l->op == CEL_OP_IN && is_word(ps, "in")))
            return l;
    return NULL;
}

static node parse_level(struct parser *ps, size_t level)
{
    if (level == ARRAY_LEN(levels))
        return parse_unary(ps);
    node left = parse_level(ps, level + 1);
    const struct level *l;
    while (!ps->mistake && (l = find_operator(ps, level))) {
        next(ps);
        node args[] = {left, parse_level(ps, level + 1)};
        left = make(ps, l->op, args, 2);
    }
    return ps->mistake ? NULL : left;
}

static node parse_expr(struct parser *ps)
{
    if (++ps->depth > CEL_DEPTH_MAX)
        return fail(ps, "the expression is too large");
    node made = parse_level(ps, 0);
    if (!ps->mistake && take(ps, "?")) {
        node args[] = {made, parse_level(ps, 0), NULL};
        if (!expect(ps, ":"))
            return NULL;
        args[2] = parse_expr(ps);
        made = make(ps, CEL_OP_CHOOSE, args, 3);
    }
    ps->depth--;
    return ps->mistake ? NULL : made;
}

static bool is_utf8(const char *s)
{
    for (uint32_t rune; *s;) {
        size_t n = str_utf8_decode(s, strlen(s) < 4 ? strlen(s) : 4, &rune);
        if (n == 0)
            return false;
        s += n;
    }
    return true;
}

int cel_parse(struct arena *arena, const char *text, const char *const *vars,
              const struct cel_node **ret, struct err *err)
{
    if (strnlen(text, CEL_TEXT_MAX + 1) > CEL_TEXT_MAX)
        return err_set(err, ERR_BAD_REQUEST, "the expression is too large");
    if (!is_utf8(text))
        return err_set(err, ERR_BAD_REQUEST, "the expression is not UTF-8");
    struct parser ps = {.arena = arena, .start = text, .p = text, .at = text, .vars = vars};
    next(&ps);
    node made = ps.mistake ? NULL : parse_expr(&ps);
    if (!ps.mistake && ps.t.kind != CEL_T_END)
        fail(&ps, "more text than an expression");
    if (ps.mistake || !made)
        return err_set(err, ERR_BAD_REQUEST, "character %zu: %s",
                       (size_t)(ps.mistake_at - text) + 1, ps.mistake);
    *ret = made;
    return 0;
}
