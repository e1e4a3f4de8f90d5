/* Selectors. The label grammar and its error texts are those of kube-apiserver's parser
 * (docs/kubernetes-api.md 25.1); the lexer cuts the text into tokens, a small recursive descent
 * makes requirements of them. Field selectors know two fields of every kind, and those that its
 * table names. */
#include "apiserver/registry/select.h"

#include "admission/admit.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"

enum operator{ OP_IN, OP_NOT_IN, OP_EXISTS, OP_NOT_EXISTS, OP_GREATER, OP_LESS };
struct requirement {
    char *key;
    enum operator op;
    char **values; /* sorted, each once */
    size_t n_values;
    int64_t bound; /* OP_GREATER, OP_LESS */
};
#define FIELD_NAME "metadata.name"
#define FIELD_NAMESPACE "metadata.namespace"
struct field_term {
    const char *field; /* one of those, or of the kind's table */
    size_t index;      /* in that table */
    bool is_not;
    char *value;
};
struct selector {
    struct requirement *labels; /* by key */
    size_t n_labels;
    struct field_term *fields;
    size_t n_fields;
    char *unknown; /* the first field that objects of the kind are not selected by, or NULL */
};

/* ---- tokens ---- */

enum token {
    T_END,
    T_WORD,
    T_IN,
    T_NOT_IN,
    T_OPEN,
    T_CLOSE,
    T_COMMA,
    T_NOT,
    T_EQUAL,
    T_NOT_EQUAL,
    T_GREATER,
    T_LESS
};
struct lexer {
    const char *p;
    enum token token; /* the one that was looked at */
    struct str text;  /* as it was written */
    bool is_ahead;    /* token and text are not consumed yet */
};
/* In values the words in and notin are plain words. */
enum context { IN_VALUES, AT_OPERATOR };

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_symbol(char c)
{
    return c != '\0' && strchr("=!()><,", c) != NULL;
}

static enum token symbol_token(const char *p, size_t *ret_n)
{
    *ret_n = 1;
    switch (*p) {
    case '=':
        *ret_n = p[1] == '=' ? 2 : 1;
        return T_EQUAL;
    case '!':
        *ret_n = p[1] == '=' ? 2 : 1;
        return p[1] == '=' ? T_NOT_EQUAL : T_NOT;
    case '(':
        return T_OPEN;
    case ')':
        return T_CLOSE;
    case '>':
        return T_GREATER;
    case '<':
        return T_LESS;
    default:
        return T_COMMA;
    }
}

/* The byte NUL, which kube-apiserver's lexer takes for the end where a token might begin, and for a
 * mere separator behind one. */
static bool is_nul(const char *p)
{
    return str_has_prefix(p, STR_NUL);
}

static void lexer_scan(struct lexer *l)
{
    while (is_blank(*l->p))
        l->p++;
    size_t n = 0;
    if (*l->p == '\0' || is_nul(l->p)) {
        l->token = T_END;
    } else if (is_symbol(*l->p)) {
        l->token = symbol_token(l->p, &n);
    } else {
        while (l->p[n] != '\0' && !is_blank(l->p[n]) && !is_symbol(l->p[n]) && !is_nul(l->p + n))
            n++;
        struct str word = {l->p, n};
        l->token = str_eq(word, "in") ? T_IN : str_eq(word, "notin") ? T_NOT_IN : T_WORD;
    }
    l->text = (struct str){l->p, n};
    l->p += n;
    if (n > 0 && is_nul(l->p))
        l->p += sizeof STR_NUL - 1;
}

static enum token look(struct lexer *l, enum context context)
{
    if (!l->is_ahead) {
        lexer_scan(l);
        l->is_ahead = true;
    }
    if (context == IN_VALUES && (l->token == T_IN || l->token == T_NOT_IN))
        return T_WORD;
    return l->token;
}

static enum token take(struct lexer *l, enum context context)
{
    enum token t = look(l, context);
    l->is_ahead = false;
    return t;
}

static int unexpected(const struct lexer *l, const char *what, struct err *err)
{
    return err_set(err, ERR_BAD_REQUEST, "found '%.*s'%s", (int)l->text.n, l->text.p, what);
}

/* ---- label requirements ---- */

static void requirement_fini(struct requirement *r)
{
    free(r->key);
    for (size_t i = 0; i < r->n_values; i++)
        free(r->values[i]);
    free(r->values);
    *r = (struct requirement){0};
}

/* Keeps the values a sorted set. */
static void add_value(struct requirement *r, struct str value)
{
    char *s = xstrndup(value.p, value.n);
    size_t at = 0;
    while (at < r->n_values && strcmp(r->values[at], s) < 0)
        at++;
    if (at < r->n_values && strcmp(r->values[at], s) == 0) {
        free(s);
        return;
    }
    r->values = xreallocarray(r->values, r->n_values + 1, sizeof *r->values);
    memmove(r->values + at + 1, r->values + at, (r->n_values - at) * sizeof *r->values);
    r->values[at] = s;
    r->n_values++;
}

#define VALUES_MAX 1000 /* of one requirement; the set is kept sorted by insertion */

/* Behind '(' up to but without ')'. Empty members are the empty value: (,a) (a,) (,). */
static int parse_members(struct lexer *l, struct requirement *r, struct err *err)
{
    const struct str empty = {"", 0};
    for (;;) {
        if (r->n_values >= VALUES_MAX)
            return err_set(err, ERR_BAD_REQUEST, "more than %d values", VALUES_MAX);
        enum token t = take(l, IN_VALUES);
        if (t == T_WORD) {
            add_value(r, l->text);
            enum token next = look(l, IN_VALUES);
            if (next == T_CLOSE)
                return 0;
            if (next != T_COMMA)
                return unexpected(l, ", expected: ',' or ')'", err);
        } else if (t == T_COMMA) {
            if (r->n_values == 0)
                add_value(r, empty);
            enum token next = look(l, IN_VALUES);
            if (next == T_CLOSE) {
                add_value(r, empty);
                return 0;
            }
            if (next == T_COMMA) {
                take(l, IN_VALUES);
                add_value(r, empty);
            }
        } else {
            return unexpected(l, ", expected: ',', or identifier", err);
        }
    }
}

static int parse_set(struct lexer *l, struct requirement *r, struct err *err)
{
    if (take(l, IN_VALUES) != T_OPEN)
        return unexpected(l, " expected: '('", err);
    enum token t = look(l, IN_VALUES);
    if (t == T_CLOSE)
        add_value(r, (struct str){"", 0});
    else if (t != T_WORD && t != T_COMMA)
        return unexpected(l, ", expected: ',', ')' or identifier", err);
    else if (parse_members(l, r, err) < 0)
        return -(int)err->code;
    if (take(l, IN_VALUES) != T_CLOSE)
        return unexpected(l, ", expected: ')'", err);
    return 0;
}

static int parse_exact(struct lexer *l, struct requirement *r, struct err *err)
{
    enum token t = look(l, IN_VALUES);
    if (t == T_END || t == T_COMMA) {
        add_value(r, (struct str){"", 0});
        return 0;
    }
    if (take(l, IN_VALUES) != T_WORD)
        return unexpected(l, ", expected: identifier", err);
    add_value(r, l->text);
    return 0;
}

/* The causes that name checks left in found, as one text: field: message, several in brackets. */
static int refuse_found(struct err *found, struct err *err)
{
    SCOPED(buf_fini) struct buf text = {0};
    size_t n_fields = 0;
    for (size_t i = 0; i < found->n_causes; i++) {
        const char *field = found->causes[i].field, *message = found->causes[i].message;
        const char *reason = strstr(message, "\": ");
        if (i && reason && strcmp(field, found->causes[i - 1].field) == 0)
            buf_printf(&text, "; %s", reason + strlen("\": "));
        else
            buf_printf(&text, "%s%s: %s", n_fields++ ? ", " : "", field, message);
    }
    const char *open = n_fields > 1 ? "[" : "", *close = n_fields > 1 ? "]" : "";
    return err_set(err, ERR_BAD_REQUEST, "%s%s%s", open, buf_cstr(&text), close);
}

static int check_key(const char *key, struct err *err)
{
    SCOPED(err_fini) struct err found = {0};
    if (name_check_label_key(key, "<nil>", &found) == 0)
        return 0;
    return refuse_found(&found, err);
}

static int check_values(struct requirement *r, struct err *err)
{
    SCOPED(err_fini) struct err found = {0};
    for (size_t i = 0; i < r->n_values; i++) {
        SCOPED_FREE char *field = xasprintf("values[%zu][%s]", i, r->key);
        bool is_bound = r->op == OP_GREATER || r->op == OP_LESS;
        if (is_bound && str_to_i64(r->values[i], &r->bound) < 0) {
            SCOPED_FREE char *bare = xasprintf("values[%zu]", i);
            SCOPED(buf_fini) struct buf quoted = {0};
            buf_go_quote(&quoted, r->values[i], strlen(r->values[i]));
            err_cause(&found, "FieldValueInvalid", bare,
                      "Invalid value: %s: for 'Gt', 'Lt' operators, the value must be an integer",
                      buf_cstr(&quoted));
        }
        name_check_label_value(r->values[i], field, &found);
    }
    return found.n_causes ? refuse_found(&found, err) : 0;
}

static int parse_operator(struct lexer *l, struct requirement *r, bool *ret_is_set, struct err *err)
{
    enum token t = take(l, AT_OPERATOR);
    *ret_is_set = t == T_IN || t == T_NOT_IN;
    switch (t) {
    case T_IN:
    case T_EQUAL:
        r->op = OP_IN;
        return 0;
    case T_NOT_IN:
    case T_NOT_EQUAL:
        r->op = OP_NOT_IN;
        return 0;
    case T_GREATER:
        r->op = OP_GREATER;
        return 0;
    case T_LESS:
        r->op = OP_LESS;
        return 0;
    default:
        return unexpected(l, ", expected: in, notin, =, ==, !=, gt, lt", err);
    }
}

static int parse_requirement(struct lexer *l, struct requirement *r, struct err *err)
{
    enum token t = take(l, IN_VALUES);
    bool is_not = t == T_NOT;
    if (is_not)
        t = take(l, IN_VALUES);
    if (t != T_WORD)
        return unexpected(l, ", expected: identifier", err);
    r->key = xstrndup(l->text.p, l->text.n);
    if (check_key(r->key, err) < 0)
        return -(int)err->code;
    enum token next = look(l, IN_VALUES);
    if (is_not || next == T_END || next == T_COMMA) {
        r->op = is_not ? OP_NOT_EXISTS : OP_EXISTS;
        return 0;
    }
    bool is_set;
    if (parse_operator(l, r, &is_set, err) < 0)
        return -(int)err->code;
    int rc = is_set ? parse_set(l, r, err) : parse_exact(l, r, err);
    return rc < 0 ? rc : check_values(r, err);
}

#define TERMS_MAX 1000 /* requirements of one selector */

static void add_requirement(struct selector *s, struct requirement *take_r)
{
    size_t at = s->n_labels;
    while (at > 0 && strcmp(s->labels[at - 1].key, take_r->key) > 0)
        at--;
    s->labels = xreallocarray(s->labels, s->n_labels + 1, sizeof *s->labels);
    memmove(s->labels + at + 1, s->labels + at, (s->n_labels - at) * sizeof *s->labels);
    s->labels[at] = steal(take_r);
    s->n_labels++;
}

/* Behind a requirement: the end (*ret_done), or a comma that something must follow. */
static int parse_separator(struct lexer *l, bool *ret_done, struct err *err)
{
    enum token t = take(l, IN_VALUES);
    *ret_done = t == T_END;
    if (t == T_END)
        return 0;
    if (t != T_COMMA)
        return unexpected(l, ", expected: ',' or 'end of string'", err);
    t = look(l, IN_VALUES);
    if (t != T_WORD && t != T_NOT)
        return unexpected(l, ", expected: identifier after ','", err);
    return 0;
}

static int parse_labels(struct selector *s, const char *text, struct err *err)
{
    struct lexer l = {.p = text};
    for (bool done = look(&l, IN_VALUES) == T_END; !done;) {
        if (l.token != T_NOT && look(&l, IN_VALUES) != T_WORD)
            return unexpected(&l, ", expected: !, identifier, or 'end of string'", err);
        if (s->n_labels >= TERMS_MAX)
            return err_set(err, ERR_BAD_REQUEST, "more than %d requirements", TERMS_MAX);
        SCOPED(requirement_fini) struct requirement r = {0};
        if (parse_requirement(&l, &r, err) < 0)
            return err_wrap(err, "unable to parse requirement");
        add_requirement(s, &r);
        if (parse_separator(&l, &done, err) < 0)
            return -(int)err->code;
    }
    return 0;
}

/* ---- field terms ---- */

/* The end of the term that begins at p: an unescaped comma or the end of the text. */
static const char *term_end(const char *p)
{
    for (; *p != '\0' && *p != ','; p++)
        if (*p == '\\' && p[1] != '\0')
            p++;
    return p;
}

/* First unescaped operator in [p, end); NULL when there is none. */
static const char *find_operator(const char *p, const char *end, size_t *ret_n)
{
    for (; p < end; p++) {
        if (*p == '\\' && p + 1 < end) {
            p++;
        } else if ((*p == '!' || *p == '=') && p + 1 < end && p[1] == '=') {
            *ret_n = 2;
            return p;
        } else if (*p == '=') {
            *ret_n = 1;
            return p;
        }
    }
    return NULL;
}

static int unescape(const char *p, const char *end, char **ret, struct err *err)
{
    SCOPED(buf_fini) struct buf out = {0};
    for (; p < end; p++) {
        if (*p == '\\') {
            if (++p == end || !strchr("\\,=", *p))
                return err_set(err, ERR_BAD_REQUEST,
                               "invalid field selector: invalid escape sequence: \\%.*s",
                               p < end ? 1 : 0, p);
        } else if (*p == '=') {
            return err_set(err, ERR_BAD_REQUEST,
                           "invalid field selector: unescaped character in value: %d", *p);
        }
        buf_putc(&out, *p);
    }
    *ret = buf_take(&out, NULL);
    return 0;
}

static bool find_field(const struct kind *kind, struct str name, struct field_term *ret)
{
    ret->field = str_eq(name, FIELD_NAME)        ? FIELD_NAME
                 : str_eq(name, FIELD_NAMESPACE) ? FIELD_NAMESPACE
                                                 : NULL;
    for (size_t i = 0; !ret->field && kind && kind->field_labels && kind->field_labels[i]; i++) {
        if (str_eq(name, kind->field_labels[i])) {
            ret->field = kind->field_labels[i];
            ret->index = i;
        }
    }
    return ret->field != NULL;
}

static void add_term(struct selector *s, struct field_term take_term)
{
    s->fields = xreallocarray(s->fields, s->n_fields + 1, sizeof *s->fields);
    s->fields[s->n_fields++] = take_term;
}

/* Adds the term, or notes that the kind has no such field. */
static int parse_term(struct selector *s, const struct kind *kind, const char *text, const char *p,
                      const char *end, struct err *err)
{
    size_t n = 0;
    const char *op = find_operator(p, end, &n);
    if (!op)
        return err_set(err, ERR_BAD_REQUEST, "invalid selector: '%s'; can't understand '%.*s'",
                       text, (int)(end - p), p);
    struct field_term term = {.is_not = *op == '!'};
    if (unescape(op + n, end, &term.value, err) < 0)
        return -(int)err->code;
    if (op == p && !*term.value) { /* asks for nothing */
        free(term.value);
        return 0;
    }
    if (!find_field(kind, (struct str){p, (size_t)(op - p)}, &term)) {
        free(term.value);
        if (!s->unknown)
            s->unknown = xstrndup(p, (size_t)(op - p));
        return 0;
    }
    add_term(s, term);
    return 0;
}

static int parse_fields(struct selector *s, const struct kind *kind, const char *text,
                        struct err *err)
{
    for (const char *p = text; *p != '\0';) {
        const char *end = term_end(p);
        if (s->n_fields >= TERMS_MAX)
            return err_set(err, ERR_BAD_REQUEST, "more than %d terms", TERMS_MAX);
        if (end > p && parse_term(s, kind, text, p, end, err) < 0)
            return -(int)err->code;
        p = *end == ',' ? end + 1 : end;
    }
    return 0;
}

/* ---- the selector ---- */

static void selector_free_p(struct selector **s)
{
    selector_free(*s);
}

int selector_parse(const char *label_text, const char *field_text, struct selector **ret,
                   struct err *err)
{
    return selector_parse_of(NULL, label_text, field_text, ret, err);
}

int selector_parse_of(const struct kind *kind, const char *label_text, const char *field_text,
                      struct selector **ret, struct err *err)
{
    SCOPED(selector_free_p) struct selector *s = NULL;
    int rc = selector_read(kind, label_text, field_text, &s, err);
    if (rc < 0 || (rc = selector_check(s, err)) < 0)
        return rc;
    *ret = steal(&s);
    return 0;
}

int selector_check(const struct selector *s, struct err *err)
{
    return s->unknown ? err_set(err, ERR_BAD_REQUEST, "field label not supported: %s", s->unknown)
                      : 0;
}

int selector_read(const struct kind *kind, const char *label_text, const char *field_text,
                  struct selector **ret, struct err *err)
{
    SCOPED(err_fini) struct err own = {0}; /* err may be NULL, and the parser reads the code back */
    SCOPED(selector_free_p) struct selector *s = xcalloc(1, sizeof *s);
    if (parse_labels(s, label_text ? label_text : "", &own) < 0)
        return err_move(err, &own);
    if (parse_fields(s, kind, field_text ? field_text : "", &own) < 0)
        return err_move(err, &own);
    *ret = steal(&s);
    return 0;
}

void selector_add_name(struct selector *s, const char *name)
{
    add_term(s, (struct field_term){.field = FIELD_NAME, .value = xstrdup(name)});
}

bool selector_has_fields(const struct selector *s)
{
    return s->n_fields > 0;
}

void selector_free(struct selector *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_labels; i++)
        requirement_fini(&s->labels[i]);
    for (size_t i = 0; i < s->n_fields; i++)
        free(s->fields[i].value);
    free(s->labels);
    free(s->fields);
    free(s->unknown);
    free(s);
}

bool selector_is_empty(const struct selector *s)
{
    return !s || (s->n_labels == 0 && s->n_fields == 0);
}

static bool has_value(const struct requirement *r, const char *value)
{
    for (size_t i = 0; i < r->n_values; i++)
        if (strcmp(r->values[i], value) == 0)
            return true;
    return false;
}

static bool requirement_holds(const struct requirement *r, const struct pairs *labels)
{
    const char *value = pairs_get(labels, r->key);
    int64_t number;
    switch (r->op) {
    case OP_EXISTS:
        return value != NULL;
    case OP_NOT_EXISTS:
        return value == NULL;
    case OP_IN:
        return value && has_value(r, value);
    case OP_NOT_IN:
        return !value || !has_value(r, value);
    case OP_GREATER:
        return value && str_to_i64(value, &number) == 0 && number > r->bound;
    case OP_LESS:
        return value && str_to_i64(value, &number) == 0 && number < r->bound;
    }
    return false;
}

static const char *field_value(const struct field_term *t, const struct object *o)
{
    if (str_equal(t->field, FIELD_NAME))
        return o->name;
    if (str_equal(t->field, FIELD_NAMESPACE))
        return o->namespace_name;
    return o->fields ? o->fields[t->index] : "";
}

bool selector_matches(const struct selector *s, const struct object *o)
{
    if (!s)
        return true;
    for (size_t i = 0; i < s->n_fields; i++) {
        const struct field_term *t = &s->fields[i];
        if ((strcmp(field_value(t, o), t->value) == 0) == t->is_not)
            return false;
    }
    for (size_t i = 0; i < s->n_labels; i++)
        if (!requirement_holds(&s->labels[i], &o->labels))
            return false;
    return true;
}

const char *selector_name(const struct selector *s)
{
    for (size_t i = 0; s && i < s->n_fields; i++)
        if (str_equal(s->fields[i].field, FIELD_NAME) && !s->fields[i].is_not)
            return s->fields[i].value;
    return NULL;
}

/* ---- requirements for authorization ---- */

static void push_requirement(cJSON **list, const char *key, const char *op, char *const *values,
                             size_t n_values)
{
    if (!*list)
        *list = json_array();
    cJSON *entry = json_object();
    json_set_str(entry, "key", key);
    json_set_str(entry, "operator", op);
    if (n_values > 0) {
        cJSON *v = json_array();
        for (size_t i = 0; i < n_values; i++)
            json_push(v, json_string(values[i]));
        json_set(entry, "values", v);
    }
    json_push(*list, entry);
}

static cJSON *wrap_requirements(cJSON *list)
{
    if (!list)
        return NULL;
    cJSON *whole = json_object();
    json_set(whole, "requirements", list);
    return whole;
}

cJSON *selector_label_requirements(const struct selector *s)
{
    cJSON *list = NULL;
    for (size_t i = 0; s && i < s->n_labels; i++) {
        const struct requirement *r = &s->labels[i];
        /* A review knows no greater and less; leaving them out asks for more, which is the safe
         * side. */
        if (r->op == OP_IN || r->op == OP_NOT_IN)
            push_requirement(&list, r->key, r->op == OP_IN ? "In" : "NotIn", r->values,
                             r->n_values);
        else if (r->op == OP_EXISTS || r->op == OP_NOT_EXISTS)
            push_requirement(&list, r->key, r->op == OP_EXISTS ? "Exists" : "DoesNotExist", NULL,
                             0);
    }
    return wrap_requirements(list);
}

cJSON *selector_field_requirements(const struct selector *s)
{
    cJSON *list = NULL;
    for (size_t i = 0; s && i < s->n_fields; i++) {
        const struct field_term *t = &s->fields[i];
        push_requirement(&list, t->field, t->is_not ? "NotIn" : "In", &t->value, 1);
    }
    return wrap_requirements(list);
}
