/* Words of CEL: names, numbers, strings with their escapes, signs. */
#include <errno.h>
#include <stdlib.h>

#include "admission/cel_tree.h"
#include "apiserver/base/buf.h"
#include "apiserver/base/mem.h"

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static struct cel_token bad(const char *mistake)
{
    return (struct cel_token){.kind = CEL_T_BAD, .mistake = mistake};
}

static struct cel_token made(enum cel_token_kind kind, const char *from, const char *to)
{
    return (struct cel_token){.kind = kind, .text = {from, (size_t)(to - from)}};
}

static const char *skip_blanks(const char *p)
{
    for (;;) {
        p += strspn(p, " \t\n\r\f");
        if (p[0] != '/' || p[1] != '/')
            return p;
        p += strcspn(p, "\n");
    }
}

static struct cel_token lex_hex(const char **p)
{
    const char *from = *p, *end = from + 2;
    while (str_hex_digit(*end) >= 0)
        end++;
    if (end == from + 2)
        return bad("a hexadecimal number without digits");
    bool is_unsigned = *end == 'u' || *end == 'U';
    *p = end + is_unsigned;
    return made(is_unsigned ? CEL_T_UINT : CEL_T_INT, from, end);
}

/* Behind an exponent, when there is one at p. */
static const char *skip_exponent(const char *p)
{
    if (*p != 'e' && *p != 'E')
        return p;
    const char *digits = p + 1 + (p[1] == '+' || p[1] == '-');
    return is_digit(*digits) ? digits + strspn(digits, "0123456789") : p;
}

static struct cel_token lex_number(const char **p)
{
    const char *from = *p;
    if (from[0] == '0' && (from[1] == 'x' || from[1] == 'X'))
        return lex_hex(p);
    const char *end = from + strspn(from, "0123456789"), *whole = end;
    if (end[0] == '.' && is_digit(end[1]))
        end += 1 + strspn(end + 1, "0123456789");
    end = skip_exponent(end);
    if (end > whole) {
        *p = end;
        return made(CEL_T_DOUBLE, from, end);
    }
    bool is_unsigned = *end == 'u' || *end == 'U';
    *p = end + is_unsigned;
    return made(is_unsigned ? CEL_T_UINT : CEL_T_INT, from, end);
}

/* ---- strings ---- */

/* n digits of a base as a number, or -1. */
static int64_t read_digits(const char *p, size_t n, int base)
{
    int64_t v = 0;
    for (size_t i = 0; i < n; i++) {
        int digit = str_hex_digit(p[i]);
        if (digit < 0 || digit >= base)
            return -1;
        v = v * base + digit;
    }
    return v;
}

static bool put_rune(struct buf *out, int64_t rune)
{
    if (rune < 0 || rune > 0x10FFFF || (rune >= 0xD800 && rune <= 0xDFFF))
        return false;
    char bytes[4];
    buf_append(out, bytes, str_utf8_encode((uint32_t)rune, bytes));
    return true;
}

/* An escape that gives a number: how many digits there are, and their base. 0 = none such. */
static size_t number_escape(char c, int *ret_base)
{
    *ret_base = 16;
    switch (c) {
    case 'x':
    case 'X':
        return 2;
    case 'u':
        return 4;
    case 'U':
        return 8;
    default:
        *ret_base = 8;
        return c >= '0' && c <= '3' ? 3 : 0;
    }
}

/* The escape behind a backslash at **p; steps over it. */
static bool read_escape(const char **p, bool is_bytes, struct buf *out)
{
    static const char simple[] = "abfnrtv\\?\"'`", meant[] = "\a\b\f\n\r\t\v\\?\"'`";
    const char *at = **p ? strchr(simple, **p) : NULL;
    if (at) {
        buf_putc(out, meant[at - simple]);
        ++*p;
        return true;
    }
    int base;
    size_t n = number_escape(**p, &base);
    if (n == 0 || (is_bytes && (n == 4 || n == 8)))
        return false;
    const char *digits = *p + (base == 16);
    int64_t v = read_digits(digits, n, base);
    if (v < 0)
        return false;
    *p = digits + n;
    if (is_bytes) {
        buf_putc(out, (char)v);
        return true;
    }
    return put_rune(out, v);
}

static bool ends_here(const char *p, char quote, bool is_triple)
{
    return p[0] == quote && (!is_triple || (p[1] == quote && p[2] == quote));
}

static struct cel_token lex_string(struct arena *arena, const char **p, bool is_raw, bool is_bytes)
{
    char quote = **p;
    bool is_triple = (*p)[1] == quote && (*p)[2] == quote;
    const char *at = *p + (is_triple ? 3 : 1);
    SCOPED(buf_fini) struct buf out = {.max = CEL_TEXT_MAX};
    while (!ends_here(at, quote, is_triple)) {
        if (!*at || (!is_triple && (*at == '\n' || *at == '\r')))
            return bad("a string without end");
        if (*at == '\\' && !is_raw) {
            at++;
            if (!read_escape(&at, is_bytes, &out))
                return bad("an unknown escape in a string");
        } else {
            buf_putc(&out, *at++);
        }
    }
    *p = at + (is_triple ? 3 : 1);
    const char *text = arena_strndup(arena, "", 0);
    if (out.len > 0) {
        char *copy = arena_alloc(arena, out.len + 1); /* may have NUL bytes */
        memcpy(copy, out.data, out.len);
        text = copy;
    }
    return made(is_bytes ? CEL_T_BYTES : CEL_T_STRING, text, text + out.len);
}

/* A string with its prefix: r, b, both, in either case. False when there is none at *p. */
static bool try_string(struct arena *arena, const char **p, struct cel_token *ret)
{
    const char *at = *p;
    bool is_raw = false, is_bytes = false;
    for (;; at++) {
        if ((*at == 'r' || *at == 'R') && !is_raw)
            is_raw = true;
        else if ((*at == 'b' || *at == 'B') && !is_bytes)
            is_bytes = true;
        else
            break;
    }
    if (*at != '"' && *at != '\'')
        return false;
    *p = at;
    *ret = lex_string(arena, p, is_raw, is_bytes);
    return true;
}

static struct cel_token lex_quoted_name(const char **p)
{
    const char *from = *p + 1, *end = from;
    while (is_letter(*end) || is_digit(*end) || (*end && strchr("./- ", *end)))
        end++;
    if (*end != '`' || end == from)
        return bad("a quoted name without end");
    *p = end + 1;
    return made(CEL_T_QUOTED_NAME, from, end);
}

static struct cel_token lex_sign(const char **p)
{
    static const char *const signs[] = {"&&", "||", "==", "!=", "<=", ">=", "+", "-",
                                        "*",  "/",  "%",  "<",  ">",  "!",  "?", ":",
                                        ".",  ",",  "(",  ")",  "[",  "]",  "{", "}"};
    for (size_t i = 0; i < ARRAY_LEN(signs); i++)
        if (str_has_prefix(*p, signs[i])) {
            const char *from = *p;
            *p += strlen(signs[i]);
            return made(CEL_T_SIGN, from, *p);
        }
    return bad("an unexpected character");
}

struct cel_token cel_lex(struct arena *arena, const char **p)
{
    *p = skip_blanks(*p);
    struct cel_token t;
    if (!**p)
        return made(CEL_T_END, *p, *p);
    if (try_string(arena, p, &t))
        return t;
    if (is_digit(**p) || (**p == '.' && is_digit((*p)[1])))
        return lex_number(p);
    if (**p == '`')
        return lex_quoted_name(p);
    if (!is_letter(**p))
        return lex_sign(p);
    const char *from = *p;
    while (is_letter(**p) || is_digit(**p))
        ++*p;
    return made(CEL_T_NAME, from, *p);
}

/* ---- numbers ---- */

static struct cel_value whole_number(const struct cel_token *t, uint64_t v, bool is_negative)
{
    if (t->kind == CEL_T_UINT)
        return is_negative ? cel_no_overload() : cel_uint(v);
    if (v > (uint64_t)INT64_MAX + is_negative)
        return cel_error("an integer out of range");
    return cel_int(is_negative ? (int64_t)(0 - v) : (int64_t)v);
}

struct cel_value cel_number(struct arena *arena, const struct cel_token *t, bool is_negative)
{
    const char *text = arena_strndup(arena, t->text.p, t->text.n);
    if (t->kind == CEL_T_DOUBLE) {
        double d = strtod(text, NULL);
        return cel_double(is_negative ? -d : d);
    }
    bool is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    errno = 0;
    uint64_t v = strtoull(text, NULL, is_hex ? 16 : 10);
    return errno ? cel_error("an integer out of range") : whole_number(t, v, is_negative);
}
