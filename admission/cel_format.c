/* format, quote and reverse of CEL's texts. Source: cel-go's ext.Strings, versions 1 to 3. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "admission/cel_tree.h"
#include "apiserver/base/buf.h"
#include "apiserver/base/mem.h"

#define PRECISION_DEFAULT 6
#define PRECISION_MAX 100
#define TEXT_MAX ((size_t)1 << 20) /* bytes that format may make */

/* What is printed, and what went wrong: NULL or a static text. */
struct printer {
    struct cel_ctx *c;
    struct buf out;
    const char *mistake;
};

static void printer_fini(struct printer *p)
{
    buf_fini(&p->out);
}

static void fail(struct printer *p, const char *mistake)
{
    p->mistake = p->mistake ? p->mistake : mistake;
}

static struct cel_value finish(struct printer *p)
{
    if (p->mistake)
        return cel_error(p->mistake);
    if (buf_failed(&p->out))
        return cel_error("the text is too long");
    char *copy = cel_alloc(p->c, p->out.len, 1);
    if (!copy)
        return cel_spent();
    if (p->out.len > 0)
        memcpy(copy, p->out.data, p->out.len);
    return cel_string(copy, p->out.len);
}

/* ---- %s ---- */

/* Bytes as text; what is no UTF-8 in them becomes U+FFFD. */
static void print_text(struct printer *p, struct str s)
{
    if (!cel_spend(p->c, s.n / CEL_STEP_BYTES))
        return;
    size_t n;
    for (size_t i = 0; i < s.n; i += n) {
        uint32_t rune;
        n = str_utf8_decode(s.p + i, s.n - i, &rune);
        buf_append(&p->out, n ? s.p + i : "\xef\xbf\xbd", n ? n : 3);
        n += n == 0;
    }
}

static void print_value(struct printer *p, const struct cel_value *v, int depth);

static void print_list(struct printer *p, const struct cel_value *v, int depth)
{
    struct cel_value list = cel_open(p->c, v);
    buf_putc(&p->out, '[');
    for (size_t i = 0; list.type == CEL_LIST && i < list.items.n; i++) {
        buf_puts(&p->out, i ? ", " : "");
        print_value(p, &list.items.v[i], depth + 1);
    }
    buf_putc(&p->out, ']');
}

struct entry {
    struct str key; /* as printed */
    const struct cel_value *value;
};

static int by_key(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = memcmp(x->key.p, y->key.p, x->key.n < y->key.n ? x->key.n : y->key.n);
    return order ? order : (x->key.n > y->key.n) - (x->key.n < y->key.n);
}

static struct str printed_key(struct printer *p, const struct cel_value *key)
{
    struct cel_value text = key->type == CEL_STRING ? *key : cel_to_string(p->c, key);
    return text.type == CEL_STRING ? text.s : STR("");
}

static void print_map(struct printer *p, const struct cel_value *v, int depth)
{
    struct cel_value map = cel_open(p->c, v);
    size_t n = map.type == CEL_MAP ? map.items.n / 2 : 0;
    struct entry *entries = cel_alloc(p->c, n, sizeof *entries);
    if (!entries)
        return;
    for (size_t i = 0; i < n; i++)
        entries[i] = (struct entry){printed_key(p, &map.items.v[2 * i]), &map.items.v[2 * i + 1]};
    qsort(entries, n, sizeof *entries, by_key);
    buf_putc(&p->out, '{');
    for (size_t i = 0; i < n; i++) {
        buf_puts(&p->out, i ? ", " : "");
        buf_append(&p->out, entries[i].key.p, entries[i].key.n);
        buf_puts(&p->out, ": ");
        print_value(p, entries[i].value, depth + 1);
    }
    buf_putc(&p->out, '}');
}

/* NaN and infinities have names of their own here. */
static bool print_special(struct printer *p, double d)
{
    if (isfinite(d))
        return false;
    buf_puts(&p->out, isnan(d) ? "NaN" : d > 0 ? "Infinity" : "-Infinity");
    return true;
}

static void print_scalar(struct printer *p, const struct cel_value *v)
{
    if (v->type == CEL_DOUBLE && print_special(p, v->d))
        return;
    struct cel_value text = cel_to_string(p->c, v);
    if (text.type == CEL_STRING)
        buf_append(&p->out, text.s.p, text.s.n);
    else
        fail(p, "error during formatting: a value that has no text");
}

static void print_value(struct printer *p, const struct cel_value *v, int depth)
{
    if (depth > CEL_DEPTH_MAX)
        fail(p, "error during formatting: lists and maps are nested too deep");
    if (p->mistake || !cel_spend(p->c, 1))
        return;
    switch (v->type) {
    case CEL_NULL:
        buf_puts(&p->out, "null");
        break;
    case CEL_STRING:
    case CEL_BYTES:
        print_text(p, v->s);
        break;
    case CEL_TYPE:
        buf_puts(&p->out, cel_type_name(v->named));
        break;
    case CEL_LIST:
        print_list(p, v, depth);
        break;
    case CEL_MAP:
        print_map(p, v, depth);
        break;
    default:
        print_scalar(p, v);
    }
}

/* ---- numbers ---- */

static void print_digits(struct printer *p, uint64_t v, unsigned base, bool is_upper)
{
    char digits[64];
    size_t n = 0;
    do {
        digits[n++] = (is_upper ? "0123456789ABCDEF" : "0123456789abcdef")[v % base];
        v /= base;
    } while (v > 0);
    while (n > 0)
        buf_putc(&p->out, digits[--n]);
}

/* An integer in a base; false for other values. */
static bool print_integer(struct printer *p, const struct cel_value *v, unsigned base,
                          bool is_upper)
{
    if (v->type != CEL_INT && v->type != CEL_UINT)
        return false;
    bool is_negative = v->type == CEL_INT && v->i < 0;
    buf_puts(&p->out, is_negative ? "-" : "");
    print_digits(p, is_negative ? 0 - v->u : v->u, base, is_upper);
    return true;
}

static void print_decimal(struct printer *p, const struct cel_value *v)
{
    if (!print_integer(p, v, 10, false) && !(v->type == CEL_DOUBLE && print_special(p, v->d)))
        fail(p, "error during formatting: decimal clause can only be used on integers");
}

static void print_binary(struct printer *p, const struct cel_value *v)
{
    if (v->type == CEL_BOOL)
        buf_putc(&p->out, v->b ? '1' : '0');
    else if (!print_integer(p, v, 2, false))
        fail(p, "error during formatting: only integers and bools can be formatted as binary");
}

static void print_octal(struct printer *p, const struct cel_value *v)
{
    if (!print_integer(p, v, 8, false))
        fail(p, "error during formatting: octal clause can only be used on integers");
}

static void print_hex(struct printer *p, const struct cel_value *v, bool is_upper)
{
    if (print_integer(p, v, 16, is_upper))
        return;
    if (v->type != CEL_STRING && v->type != CEL_BYTES) {
        fail(p,
             "error during formatting: only integers, bytes and strings can be formatted as hex");
        return;
    }
    for (size_t i = 0; i < v->s.n && cel_spend(p->c, i % 16 == 0); i++)
        buf_printf(&p->out, is_upper ? "%02X" : "%02x", (unsigned)(unsigned char)v->s.p[i]);
}

static void print_double(struct printer *p, const struct cel_value *v, int precision,
                         bool is_scientific)
{
    double d = v->type == CEL_DOUBLE ? v->d : v->type == CEL_INT ? (double)v->i : (double)v->u;
    if (v->type != CEL_DOUBLE && v->type != CEL_INT && v->type != CEL_UINT)
        fail(p, "error during formatting: this clause can only be used on numbers");
    else if (!print_special(p, d))
        buf_printf(&p->out, is_scientific ? "%.*e" : "%.*f", precision, d);
}

/* ---- clauses ---- */

static void print_clause(struct printer *p, char verb, int precision, const struct cel_value *v)
{
    switch (verb) {
    case 's':
        print_value(p, v, 0);
        break;
    case 'd':
        print_decimal(p, v);
        break;
    case 'f':
    case 'e':
        print_double(p, v, precision, verb == 'e');
        break;
    case 'b':
        print_binary(p, v);
        break;
    case 'o':
        print_octal(p, v);
        break;
    case 'x':
    case 'X':
        print_hex(p, v, verb == 'X');
        break;
    default:
        fail(p, "could not parse formatting clause: unrecognized formatting clause");
    }
}

/* ".3" at *at; the default when there is none. */
static int take_precision(struct printer *p, struct str s, size_t *at)
{
    int v = 0;
    if (*at >= s.n || s.p[*at] != '.')
        return PRECISION_DEFAULT;
    for (++*at; *at < s.n && s.p[*at] >= '0' && s.p[*at] <= '9'; ++*at)
        v = v > PRECISION_MAX ? v : v * 10 + (s.p[*at] - '0');
    if (v > PRECISION_MAX)
        fail(p, "could not parse formatting clause: the precision is too large");
    return v;
}

static struct cel_value format(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    struct cel_value args = cel_open(c, &v[1]);
    SCOPED(printer_fini) struct printer p = {.c = c, .out = {.max = TEXT_MAX}};
    struct str s = v[0].s;
    size_t used = 0;
    for (size_t i = 0; i < s.n && !p.mistake && cel_spend(c, 1); i++) {
        if (s.p[i] != '%') {
            buf_putc(&p.out, s.p[i]);
            continue;
        }
        i++;
        if (i < s.n && s.p[i] == '%') {
            buf_putc(&p.out, '%');
            continue;
        }
        int precision = take_precision(&p, s, &i);
        if (i >= s.n)
            fail(&p, "could not parse formatting clause: it has no end");
        else if (args.type != CEL_LIST || used >= args.items.n)
            fail(&p, "a formatting clause without a value: index out of range");
        else
            print_clause(&p, s.p[i], precision, &args.items.v[used++]);
    }
    return finish(&p);
}

/* ---- quote and reverse ---- */

static struct cel_value quote(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    static const char plain[] = "\a\b\f\n\r\t\v\\\"", letters[] = "abfnrtv\\\"";
    SCOPED(printer_fini) struct printer p = {.c = c, .out = {.max = TEXT_MAX}};
    buf_putc(&p.out, '"');
    for (size_t i = 0; i < v->s.n && cel_spend(c, i % 16 == 0); i++) {
        const char *at = memchr(plain, v->s.p[i], sizeof plain - 1);
        if (at)
            buf_putc(&p.out, '\\');
        buf_putc(&p.out, at ? letters[at - plain] : v->s.p[i]);
    }
    buf_putc(&p.out, '"');
    return finish(&p);
}

static struct cel_value reverse(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    char *copy = cel_alloc(c, v->s.n, 1);
    if (!copy)
        return cel_spent();
    size_t length;
    for (size_t i = 0; i < v->s.n; i += length) {
        uint32_t rune;
        length = str_utf8_decode(v->s.p + i, v->s.n - i, &rune);
        length += length == 0;
        memcpy(copy + v->s.n - i - length, v->s.p + i, length);
    }
    return cel_string(copy, v->s.n);
}

const struct cel_function cel_format_functions[] = {
    {"format", "s.l:s", format},
    {"reverse", "s.:s", reverse},
    {"strings.quote", "s:s", quote},
    {0},
};
