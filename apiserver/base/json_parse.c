/* The JSON reader: one pass, no recursion, a state for what may come next and a stack of open
 * containers. Its syntax errors are those of Go's encoding/json, letter by letter, because clients
 * compare them; the end of the text counts as a blank, as it does there. A number out of range or a
 * repeated key is reported only when the syntax is right to the end. */
#include <stdio.h>

#include "apiserver/base/json_node.h"
#include "apiserver/base/mem.h"

#define DUPLICATES_MAX 100 /* Source: sigs.k8s.io/json */
/* A longer path of a repeated key is cut between two steps. */
#define PATH_MAX_BYTES ((size_t)8 << 10)

enum expect {
    EXPECT_VALUE,
    EXPECT_VALUE_OR_END,
    EXPECT_KEY,
    EXPECT_KEY_OR_END,
    EXPECT_MORE,
    EXPECT_NOTHING
};

struct frame {
    cJSON *node;
    struct json_keys keys; /* of an object */
    size_t n;              /* items of a list so far */
};

struct parser {
    const char *at, *end, *start;
    unsigned flags;
    size_t max_depth, nodes_left;
    struct pairs *duplicates;
    enum expect expect;
    cJSON *root;
    cJSON *target; /* the member whose value comes next; NULL in a list and at the top */
    struct frame *frames;
    size_t depth, cap;
    struct buf scratch; /* for strings with escapes */
    struct err late;    /* the first error that is none of syntax */
    struct err *err;
};

static bool fail_end(struct parser *p)
{
    err_set(p->err, ERR_BAD_REQUEST, "unexpected end of JSON input");
    return false;
}

/* One byte as Go quotes it: bytes from 0x80 on are shown as the Latin-1 character. */
static void quote_byte(unsigned char c, char out[16])
{
    static const char from[] = "\a\b\f\n\r\t\v'\\", to[] = "abfnrtv'\\";
    const char *at = c ? strchr(from, c) : NULL;
    if (at)
        snprintf(out, 16, "'\\%c'", to[at - from]);
    else if (c < 0x20 || c == 0x7f)
        snprintf(out, 16, "'\\x%02x'", c);
    else if (c < 0x80)
        snprintf(out, 16, "'%c'", c);
    else if (c <= 0xa0 || c == 0xad)
        snprintf(out, 16, "'\\u%04x'", c);
    else
        snprintf(out, 16, "'%c%c'", 0xc0 | c >> 6, 0x80 | (c & 0x3f));
}

static unsigned char peek(const struct parser *p)
{
    return p->at < p->end ? (unsigned char)*p->at : ' ';
}

/* "invalid character 'x' <context>" about the byte at hand. */
static bool fail(struct parser *p, const char *context)
{
    char quoted[16];
    quote_byte(peek(p), quoted);
    err_set(p->err, ERR_BAD_REQUEST, "invalid character %s %s", quoted, context);
    return false;
}

static bool fail_string(struct parser *p, const char *what)
{
    err_set(p->err, ERR_BAD_REQUEST, "%s in string literal at offset %zu", what,
            (size_t)(p->at - p->start));
    return false;
}

static bool skip_blanks(struct parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\n' || *p->at == '\t' || *p->at == '\r'))
        p->at++;
    return p->at < p->end;
}

/* ---- strings ---- */

/* Whether one of eight bytes is a control, a quote, a backslash or not ASCII. */
static bool has_special(uint64_t eight)
{
    const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
    uint64_t quote = eight ^ ones * '"', backslash = eight ^ ones * '\\';
    uint64_t control = (eight - ones * 0x20) & ~eight;
    return ((eight | control | ((quote - ones) & ~quote) | ((backslash - ones) & ~backslash)) &
            tops) != 0;
}

static void skip_plain_words(struct parser *p)
{
    uint64_t eight;
    while (p->end - p->at >= 8) {
        memcpy(&eight, p->at, 8);
        if (has_special(eight))
            return;
        p->at += 8;
    }
}

/* Moves over bytes that stand for themselves. */
static void skip_plain(struct parser *p)
{
    uint32_t rune;
    skip_plain_words(p);
    while (p->at < p->end) {
        unsigned char c = (unsigned char)*p->at;
        size_t n = c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
        if (c >= 0x80)
            n = str_utf8_decode(p->at, (size_t)(p->end - p->at), &rune);
        if (n == 0 || (c >= 0x80 && rune == 0)) /* STR_NUL is ours */
            return;
        p->at += n;
    }
}

/* Four hexadecimal digits at p->at. */
static bool read_hex(struct parser *p, uint32_t *ret)
{
    uint32_t v = 0;
    for (int i = 0; i < 4; i++, p->at++) {
        int d = str_hex_digit((char)peek(p));
        if (d < 0)
            return fail(p, "in \\u hexadecimal character escape");
        v = v << 4 | (uint32_t)d;
    }
    *ret = v;
    return true;
}

/* The low surrogate escape that follows a high one, if it does. */
static bool take_low_surrogate(struct parser *p, uint32_t *ret)
{
    uint32_t v = 0;
    if (p->end - p->at < 6 || p->at[0] != '\\' || p->at[1] != 'u')
        return false;
    for (int i = 2; i < 6; i++) {
        int d = str_hex_digit(p->at[i]);
        if (d < 0)
            return false;
        v = v << 4 | (uint32_t)d;
    }
    if (v < 0xdc00 || v > 0xdfff)
        return false;
    p->at += 6;
    *ret = v;
    return true;
}

static bool read_unicode_escape(struct parser *p)
{
    uint32_t rune = 0, low = 0;
    char bytes[4];
    if (!read_hex(p, &rune))
        return false;
    if (rune == 0) {
        buf_puts(&p->scratch, STR_NUL);
        return true;
    }
    if (rune >= 0xd800 && rune < 0xdc00 && take_low_surrogate(p, &low))
        rune = 0x10000 + ((rune - 0xd800) << 10) + (low - 0xdc00);
    if (rune >= 0xd800 && rune < 0xe000) {
        if (!(p->flags & JSON_REPLACE_BAD_UTF8))
            return fail_string(p, "lone surrogate");
        rune = 0xfffd;
    }
    buf_append(&p->scratch, bytes, str_utf8_encode(rune, bytes));
    return true;
}

static bool read_escape(struct parser *p)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    p->at++;
    unsigned char c = peek(p);
    if (c == 'u') {
        p->at++;
        return read_unicode_escape(p);
    }
    const char *known = c ? strchr(from, c) : NULL;
    if (!known)
        return fail(p, "in string escape code");
    buf_putc(&p->scratch, to[known - from]);
    p->at++;
    return true;
}

static bool replace_broken_byte(struct parser *p)
{
    if (!(p->flags & JSON_REPLACE_BAD_UTF8))
        return fail_string(p, "invalid UTF-8");
    buf_puts(&p->scratch, "\xef\xbf\xbd");
    p->at++;
    return true;
}

/* The rest of a string that does not stand for itself; from is its first byte. */
static bool read_escaped_string(struct parser *p, const char *from, char **ret)
{
    buf_clear(&p->scratch);
    for (;;) {
        buf_append(&p->scratch, from, (size_t)(p->at - from));
        if (p->at == p->end)
            return fail_end(p);
        unsigned char c = (unsigned char)*p->at;
        if (c == '"')
            break;
        if (c < 0x20)
            return fail(p, "in string literal");
        if (!(c == '\\' ? read_escape(p) : replace_broken_byte(p)))
            return false;
        from = p->at;
        skip_plain(p);
    }
    p->at++;
    *ret = xstrndup(buf_cstr(&p->scratch), p->scratch.len);
    return true;
}

/* The string whose opening quote is at p->at. */
static bool read_string(struct parser *p, char **ret)
{
    const char *from = ++p->at;
    skip_plain(p);
    if (p->at == p->end || *p->at != '"')
        return read_escaped_string(p, from, ret);
    size_t n = (size_t)(p->at - from);
    char *s = xmalloc(n + 1);
    memcpy(s, from, n);
    s[n] = '\0';
    p->at++;
    *ret = s;
    return true;
}

/* ---- nodes ---- */

static bool count_node(struct parser *p)
{
    if (p->nodes_left-- > 0)
        return true;
    err_set(p->err, ERR_TOO_LARGE, "the JSON text has too many values");
    return false;
}

/* The node that the value at hand goes to: the member's, a new item of the list, or the root. */
static cJSON *take_target(struct parser *p)
{
    cJSON *node = p->target;
    p->target = NULL;
    if (node || !count_node(p))
        return node;
    node = json_node_new(cJSON_Invalid);
    if (p->depth == 0) {
        p->root = node;
    } else {
        struct frame *f = &p->frames[p->depth - 1];
        json_node_append(f->node, node);
        f->n++;
    }
    return node;
}

/* The path of member key of the innermost object: a.list[0].b */
static void write_path(const struct parser *p, const char *key, struct buf *out)
{
    out->max = PATH_MAX_BYTES;
    for (size_t i = 0; i < p->depth; i++) {
        const struct frame *f = &p->frames[i];
        const char *step = i + 1 < p->depth ? p->frames[i + 1].node->string : key;
        if (cJSON_IsArray(f->node))
            buf_printf(out, "[%zu]", f->n - 1);
        else
            buf_printf(out, "%s%s", out->len ? "." : "", step);
    }
}

static void note_duplicate(struct parser *p, const char *key)
{
    SCOPED(buf_fini) struct buf path = {0};
    write_path(p, key, &path);
    if (!(p->flags & JSON_KEEP_LAST_DUPLICATE)) {
        if (!p->late.code)
            err_set(&p->late, ERR_BAD_REQUEST, "duplicate field \"%s\"", buf_cstr(&path));
    } else if (p->duplicates && p->duplicates->n < DUPLICATES_MAX &&
               !pairs_get(p->duplicates, buf_cstr(&path))) {
        pairs_add(p->duplicates, buf_cstr(&path), "");
    }
}

/* Makes key the member whose value comes next. */
static bool start_member(struct parser *p, char *take_key)
{
    SCOPED_FREE char *key = take_key;
    struct frame *f = &p->frames[p->depth - 1];
    cJSON *node = json_keys_find(&f->keys, f->node, key);
    if (node) {
        note_duplicate(p, key);
        json_node_clear(node);
    } else {
        if (!count_node(p))
            return false;
        node = json_node_new(cJSON_Invalid);
        node->string = steal(&key);
        json_node_append(f->node, node);
        json_keys_add(&f->keys, f->node, node);
    }
    p->target = node;
    return true;
}

/* ---- values ---- */

static void after_value(struct parser *p)
{
    p->expect = p->depth ? EXPECT_MORE : EXPECT_NOTHING;
}

static bool open_container(struct parser *p, cJSON *node, int type)
{
    if (p->depth >= p->max_depth)
        return fail(p, "exceeded max depth");
    if (p->depth == p->cap) {
        p->cap = p->cap ? p->cap * 2 : 16;
        p->frames = xreallocarray(p->frames, p->cap, sizeof *p->frames);
    }
    node->type = type;
    p->frames[p->depth++] = (struct frame){.node = node};
    p->expect = type == cJSON_Object ? EXPECT_KEY_OR_END : EXPECT_VALUE_OR_END;
    p->at++;
    return true;
}

static bool close_container(struct parser *p)
{
    json_keys_fini(&p->frames[--p->depth].keys);
    p->at++;
    after_value(p);
    return true;
}

static bool read_literal(struct parser *p, cJSON *node, const char *word, int type)
{
    for (size_t i = 0; word[i]; i++, p->at++) {
        char context[48];
        if (peek(p) == (unsigned char)word[i])
            continue;
        snprintf(context, sizeof context, "in literal %s (expecting '%c')", word, word[i]);
        return fail(p, context);
    }
    node->type = type;
    return true;
}

static bool is_digit(unsigned char c)
{
    return c >= '0' && c <= '9';
}

static bool skip_digits(struct parser *p, const char *context)
{
    if (!is_digit(peek(p)))
        return fail(p, context);
    while (is_digit(peek(p)))
        p->at++;
    return true;
}

static bool skip_fraction_and_exponent(struct parser *p)
{
    if (peek(p) == '.') {
        p->at++;
        if (!skip_digits(p, "after decimal point in numeric literal"))
            return false;
    }
    if (peek(p) == 'e' || peek(p) == 'E') {
        p->at++;
        if (peek(p) == '+' || peek(p) == '-')
            p->at++;
        if (!skip_digits(p, "in exponent of numeric literal"))
            return false;
    }
    return true;
}

static bool read_number(struct parser *p, cJSON *node)
{
    const char *from = p->at;
    if (*p->at == '-')
        p->at++;
    if (peek(p) == '0')
        p->at++;
    else if (!skip_digits(p, "in numeric literal"))
        return false;
    const char *int_end = p->at;
    if (!skip_fraction_and_exponent(p))
        return false;
    size_t n = (size_t)(p->at - from);
    if (!json_node_set_number(node, from, n, p->at == int_end) && !p->late.code)
        err_set(&p->late, ERR_BAD_REQUEST,
                "json: cannot unmarshal number %s into Go value of type float64",
                node->valuestring);
    return true;
}

static bool read_string_value(struct parser *p, cJSON *node)
{
    char *text;
    if (!read_string(p, &text))
        return false;
    json_node_set_string(node, text);
    return true;
}

static bool read_scalar(struct parser *p, cJSON *node)
{
    switch (*p->at) {
    case '"':
        return read_string_value(p, node);
    case 't':
        return read_literal(p, node, "true", cJSON_True);
    case 'f':
        return read_literal(p, node, "false", cJSON_False);
    case 'n':
        return read_literal(p, node, "null", cJSON_NULL);
    default:
        return read_number(p, node);
    }
}

static bool starts_value(unsigned char c)
{
    switch (c) {
    case '{':
    case '[':
    case '"':
    case '-':
    case 't':
    case 'f':
    case 'n':
        return true;
    default:
        return is_digit(c);
    }
}

static bool read_value(struct parser *p)
{
    unsigned char c = (unsigned char)*p->at;
    if (!starts_value(c))
        return fail(p, "looking for beginning of value");
    cJSON *node = take_target(p);
    if (!node)
        return false;
    if (c == '{')
        return open_container(p, node, cJSON_Object);
    if (c == '[')
        return open_container(p, node, cJSON_Array);
    if (!read_scalar(p, node))
        return false;
    after_value(p);
    return true;
}

static bool read_key(struct parser *p)
{
    char *key;
    if (*p->at != '"')
        return fail(p, "looking for beginning of object key string");
    if (!read_string(p, &key) || !start_member(p, key))
        return false;
    if (!skip_blanks(p))
        return fail_end(p);
    if (*p->at != ':')
        return fail(p, "after object key");
    p->at++;
    p->expect = EXPECT_VALUE;
    return true;
}

/* A comma or the end of the container. */
static bool read_more(struct parser *p)
{
    bool in_object = cJSON_IsObject(p->frames[p->depth - 1].node);
    if (*p->at == (in_object ? '}' : ']'))
        return close_container(p);
    if (*p->at != ',')
        return fail(p, in_object ? "after object key:value pair" : "after array element");
    p->at++;
    p->expect = in_object ? EXPECT_KEY : EXPECT_VALUE;
    return true;
}

/* One token, or a key with its colon; p->at is on no blank and before the end. */
static bool step(struct parser *p)
{
    switch (p->expect) {
    case EXPECT_KEY_OR_END:
        return *p->at == '}' ? close_container(p) : read_key(p);
    case EXPECT_KEY:
        return read_key(p);
    case EXPECT_VALUE_OR_END:
        return *p->at == ']' ? close_container(p) : read_value(p);
    case EXPECT_MORE:
        return read_more(p);
    case EXPECT_NOTHING:
        return fail(p, "after top-level value");
    case EXPECT_VALUE:
        break;
    }
    return read_value(p);
}

static bool read_all(struct parser *p)
{
    while (skip_blanks(p))
        if (!step(p))
            return false;
    return p->expect == EXPECT_NOTHING || fail_end(p);
}

static void parser_fini(struct parser *p)
{
    for (size_t i = 0; i < p->depth; i++)
        json_keys_fini(&p->frames[i].keys);
    free(p->frames);
    json_free(p->root);
    buf_fini(&p->scratch);
    err_fini(&p->late);
}

int json_parse(const char *p, size_t n, const struct json_opts *opts, cJSON **ret, struct err *err)
{
    static const struct json_opts strict = {0};
    SCOPED(err_fini) struct err own = {0}; /* a caller may want no error, we need its code */
    if (!opts)
        opts = &strict;
    if (!p || n == 0)
        p = "", n = 0;
    SCOPED(parser_fini)
    struct parser parser = {
        .start = p,
        .at = p,
        .end = p + n,
        .flags = opts->flags,
        .max_depth =
            opts->max_depth && opts->max_depth < JSON_DEPTH_MAX ? opts->max_depth : JSON_DEPTH_MAX,
        .nodes_left =
            opts->max_nodes && opts->max_nodes < JSON_NODES_MAX ? opts->max_nodes : JSON_NODES_MAX,
        .duplicates = opts->duplicates,
        .scratch = {.max = SIZE_MAX / 2}, /* bounded by the text */
        .err = &own,
    };
    if (!read_all(&parser))
        return err_move(err, &own);
    if (parser.late.code)
        return err_move(err, &parser.late);
    *ret = steal(&parser.root);
    return 0;
}

int json_parse_str(const char *s, cJSON **ret, struct err *err)
{
    return json_parse(s, strlen(s), NULL, ret, err);
}
