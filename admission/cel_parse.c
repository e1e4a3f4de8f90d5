/* The grammar of CEL, by recursive descent. Names of variables and functions, numbers of arguments
 * and macros are settled here, so that a rule which parses can only fail on its values. */
#include "admission/cel_tree.h"
#include "apiserver/base/mem.h"

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

/* Expressions up to the closing sign, which is eaten; a comma may follow the last where told. */
static void parse_args(struct parser *ps, const char *close, bool may_trail, struct args *ret)
{
    while (!take(ps, close)) {
        if (ret->n == ARGS_MAX) {
            fail(ps, "too many arguments");
            return;
        }
        ret->v[ret->n++] = parse_expr(ps);
        if (ps->mistake)
            return;
        if (!is_sign(ps, close) && !expect(ps, ","))
            return;
        if (!may_trail && ret->n > 0 && is_sign(ps, close) && ps->p > ps->start &&
            ps->at[-1] == ',')
            fail(ps, "an argument is missing");
        if (ps->mistake)
            return;
    }
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

static const struct cel_function *find_in(const struct cel_function *table, const char *name,
                                          bool is_method)
{
    for (const struct cel_function *f = table; f->name; f++)
        if ((is_method ? f->is_method : f->is_global) && str_equal(f->name, name))
            return f;
    return NULL;
}

static node make_call(struct parser *ps, const char *name, bool is_method, const struct args *args)
{
    const struct cel_function *fn = find_in(cel_text_functions, name, is_method);
    if (!fn)
        fn = find_in(cel_conversions, name, is_method);
    if (!fn)
        return fail(ps, "a function that does not exist");
    if (args->n < fn->min || args->n > fn->max)
        return fail(ps, "a function with another number of arguments");
    struct cel_node *made = make(ps, CEL_OP_CALL, args->v, args->n);
    made->fn = fn;
    return made;
}

static bool type_of_name(const char *name, enum cel_type *ret)
{
    static const struct {
        const char *name;
        enum cel_type type;
    } types[] = {
        {"bool", CEL_BOOL},      {"int", CEL_INT},     {"uint", CEL_UINT}, {"double", CEL_DOUBLE},
        {"string", CEL_STRING},  {"bytes", CEL_BYTES}, {"list", CEL_LIST}, {"map", CEL_MAP},
        {"null_type", CEL_NULL}, {"type", CEL_TYPE},
    };
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (str_equal(types[i].name, name)) {
            *ret = types[i].type;
            return true;
        }
    return false;
}

static bool is_variable(const struct parser *ps, const char *name)
{
    for (const struct local *l = ps->locals; l; l = l->up)
        if (str_equal(l->name, name))
            return true;
    for (const char *const *v = ps->vars; v && *v; v++)
        if (str_equal(*v, name))
            return true;
    return false;
}

static node make_name(struct parser *ps, const char *name)
{
    if (is_variable(ps, name)) {
        struct cel_node *made = make(ps, CEL_OP_VARIABLE, NULL, 0);
        made->name = name;
        return made;
    }
    enum cel_type named;
    if (!type_of_name(name, &named))
        return fail(ps, "a name that is not declared");
    return literal(ps, (struct cel_value){.type = CEL_TYPE, .named = named});
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

static bool macro_of_name(const char *name, enum cel_op *ret)
{
    static const struct {
        const char *name;
        enum cel_op op;
    } macros[] = {
        {"all", CEL_OP_ALL},       {"exists", CEL_OP_EXISTS}, {"exists_one", CEL_OP_EXISTS_ONE},
        {"filter", CEL_OP_FILTER}, {"map", CEL_OP_MAP},
    };
    for (size_t i = 0; i < ARRAY_LEN(macros); i++)
        if (str_equal(macros[i].name, name)) {
            *ret = macros[i].op;
            return true;
        }
    return false;
}

/* Behind "range.all(": the variable and the bodies. */
static node parse_macro(struct parser *ps, node range, enum cel_op op)
{
    if (ps->t.kind != CEL_T_NAME || is_reserved(ps->t.text))
        return fail(ps, "a macro needs a variable");
    struct local local = {arena_strndup(ps->arena, ps->t.text.p, ps->t.text.n), ps->locals};
    next(ps);
    node args[3] = {range};
    size_t n = 1;
    ps->locals = &local;
    while (n < ARRAY_LEN(args) && take(ps, ","))
        args[n++] = parse_expr(ps);
    ps->locals = local.up;
    if (!expect(ps, ")"))
        return NULL;
    if (n == 1 || (n == 3 && op != CEL_OP_MAP))
        return fail(ps, "a macro with another number of arguments");
    struct cel_node *made = make(ps, n == 3 ? CEL_OP_MAP_FILTER : op, args, n);
    made->name = local.name;
    return made;
}

/* ---- from the inside out ---- */

static node parse_map(struct parser *ps)
{
    struct args *args = arena_alloc(ps->arena, sizeof *args);
    while (!take(ps, "}")) {
        if (args->n + 2 > ARGS_MAX)
            return fail(ps, "too many members");
        args->v[args->n++] = parse_expr(ps);
        if (!expect(ps, ":"))
            return NULL;
        args->v[args->n++] = parse_expr(ps);
        if (ps->mistake || (!is_sign(ps, "}") && !expect(ps, ",")))
            return NULL;
    }
    return make(ps, CEL_OP_MAKE_MAP, args->v, args->n);
}

static node parse_word(struct parser *ps)
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
        return make_name(ps, name);
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
    take(ps, "."); /* of a name from the root */
    return ps->t.kind == CEL_T_NAME ? parse_word(ps) : fail(ps, "an expression is missing");
}

/* Behind "target.": a member, a method or a macro. */
static node parse_member(struct parser *ps, node target)
{
    bool is_quoted = ps->t.kind == CEL_T_QUOTED_NAME;
    if (ps->t.kind != CEL_T_NAME && !is_quoted)
        return fail(ps, "the name of a member is missing");
    if (is_word(ps, "in") || is_word(ps, "true") || is_word(ps, "false") || is_word(ps, "null"))
        return fail(ps, "a reserved word");
    const char *name = arena_strndup(ps->arena, ps->t.text.p, ps->t.text.n);
    next(ps);
    if (is_quoted || !take(ps, "(")) {
        struct cel_node *made = make(ps, CEL_OP_SELECT, &target, 1);
        made->name = name;
        return made;
    }
    enum cel_op op;
    if (macro_of_name(name, &op))
        return parse_macro(ps, target, op);
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
            node args[] = {target, parse_expr(ps)};
            if (!expect(ps, "]"))
                return NULL;
            target = make(ps, CEL_OP_INDEX, args, 2);
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

bool cel_uses(const struct cel_node *expr, const char *variable)
{
    if (expr->op == CEL_OP_VARIABLE && str_equal(expr->name, variable))
        return true;
    for (size_t i = 0; i < expr->n; i++)
        if (cel_uses(expr->args[i], variable))
            return true;
    return false;
}
