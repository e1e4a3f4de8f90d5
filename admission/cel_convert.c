/* Conversions of CEL: numbers, texts, bytes, times. Ranges and texts as cel-spec has them; what Go
 * prints for a double or a duration is printed here too. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "admission/cel_tree.h"
#include "apiserver/base/buf.h"
#include "apiserver/base/clock.h"
#include "apiserver/base/mem.h"

#define NS_PER_S INT64_C(1000000000)

static struct cel_value out_of_range(void)
{
    return cel_error("range error");
}

/* A text as a C string; NULL when it has a NUL byte or is longer than any number or time. */
static const char *short_text(struct cel_ctx *c, const struct cel_value *v)
{
    return v->s.n > 400 || memchr(v->s.p, 0, v->s.n) ? NULL
                                                     : arena_strndup(c->arena, v->s.p, v->s.n);
}

static struct cel_value made_text(struct cel_ctx *c, const char *s)
{
    return cel_string(arena_strdup(c->arena, s), strlen(s));
}

static struct cel_value to_int(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    int64_t i;
    switch (v->type) {
    case CEL_UINT:
        return v->u <= INT64_MAX ? cel_int((int64_t)v->u) : out_of_range();
    case CEL_DOUBLE: /* both ends are left out, as their neighbours cannot be told from them */
        return v->d > -0x1p63 && v->d < 0x1p63 ? cel_int((int64_t)v->d) : out_of_range();
    case CEL_STRING: {
        const char *text = short_text(c, v);
        return text && str_to_i64(text, &i) == 0 ? cel_int(i) : cel_error("no integer");
    }
    default: /* a time */
        return cel_int(v->at.s);
    }
}

static struct cel_value to_uint(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    uint64_t u;
    switch (v->type) {
    case CEL_INT:
        return v->i >= 0 ? cel_uint((uint64_t)v->i) : out_of_range();
    case CEL_DOUBLE:
        return v->d >= 0 && v->d < 0x1p64 ? cel_uint((uint64_t)v->d) : out_of_range();
    default: {
        const char *text = short_text(c, v);
        return text && str_to_u64(text, &u) == 0 ? cel_uint(u) : cel_error("no unsigned integer");
    }
    }
}

static struct cel_value double_of_text(const char *text)
{
    char *end;
    if (!text || !*text || strspn(text, " \t\n\r\f\v"))
        return cel_error("no number");
    double d = strtod(text, &end);
    return *end ? cel_error("no number") : cel_double(d);
}

static struct cel_value to_double(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    switch (v->type) {
    case CEL_INT:
        return cel_double((double)v->i);
    case CEL_UINT:
        return cel_double((double)v->u);
    default:
        return double_of_text(short_text(c, v));
    }
}

static struct cel_value bool_of_text(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    bool b;
    const char *text = short_text(c, v);
    return text && str_to_bool(text, &b) == 0 ? cel_bool(b) : cel_error("no truth value");
}

/* ---- texts ---- */

/* The shortest digits that give the number back; in full from 1e-4 to below 1e21. */
static struct cel_value text_of_double(struct cel_ctx *c, double d)
{
    if (!isfinite(d))
        return made_text(c, isnan(d) ? "NaN" : d > 0 ? "+Inf" : "-Inf");
    char text[64] = "";
    int digits = 1;
    for (; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*e", digits - 1, d);
        if (strtod(text, NULL) == d)
            break;
    }
    const char *exponent = strchr(text, 'e');
    int64_t e = exponent ? strtol(exponent + 1, NULL, 10) : 0;
    if (e >= -4 && e < 21)
        snprintf(text, sizeof text, "%.*f", digits - 1 > e ? (int)(digits - 1 - e) : 0, d);
    return made_text(c, text);
}

/* A fraction of a second without the zeros at its end; "" for none. */
static const char *print_fraction(struct cel_ctx *c, int64_t ns)
{
    if (ns == 0)
        return "";
    char *text = arena_printf(c->arena, ".%09" PRId64, ns);
    for (size_t n = strlen(text); text[n - 1] == '0'; n--)
        text[n - 1] = '\0';
    return text;
}

static struct cel_value text_of_time(struct cel_ctx *c, const struct cel_value *v)
{
    char text[CLOCK_TEXT_SIZE];
    clock_print_rfc3339(v->at.s, text);
    size_t n = strlen(text);
    return made_text(
        c, arena_printf(c->arena, "%.*s%sZ", (int)(n - 1), text, print_fraction(c, v->at.ns)));
}

static struct cel_value text_of_duration(struct cel_ctx *c, int64_t ns)
{
    int64_t s = ns / NS_PER_S, rest = ns % NS_PER_S;
    return made_text(c, arena_printf(c->arena, "%s%" PRId64 "%ss", ns < 0 ? "-" : "",
                                     s < 0 ? -s : s, print_fraction(c, rest < 0 ? -rest : rest)));
}

static struct cel_value text_of_bytes(struct cel_ctx *c, const struct cel_value *v)
{
    uint32_t rune;
    if (!cel_spend(c, v->s.n / 16))
        return cel_spent();
    for (size_t i = 0, n; i < v->s.n; i += n)
        if ((n = str_utf8_decode(v->s.p + i, v->s.n - i, &rune)) == 0)
            return cel_error("invalid UTF-8");
    return cel_string(v->s.p, v->s.n);
}

static struct cel_value text_of_address(struct cel_ctx *c, const struct cel_address *a)
{
    char text[INET6_ADDRSTRLEN] = "";
    inet_ntop(a->size == 4 ? AF_INET : AF_INET6, a->bytes, text, sizeof text);
    bool is_cidr = a->prefix != CEL_NO_PREFIX;
    return made_text(c, is_cidr ? arena_printf(c->arena, "%s/%d", text, a->prefix) : text);
}

struct cel_value cel_to_string(struct cel_ctx *c, const struct cel_value *v)
{
    switch (v->type) {
    case CEL_BOOL:
        return made_text(c, v->b ? "true" : "false");
    case CEL_INT:
        return made_text(c, arena_printf(c->arena, "%" PRId64, v->i));
    case CEL_UINT:
        return made_text(c, arena_printf(c->arena, "%" PRIu64, v->u));
    case CEL_DOUBLE:
        return text_of_double(c, v->d);
    case CEL_BYTES:
        return text_of_bytes(c, v);
    case CEL_TIMESTAMP:
        return text_of_time(c, v);
    case CEL_DURATION:
        return text_of_duration(c, v->i);
    case CEL_IP:
    case CEL_CIDR:
        return text_of_address(c, v->address);
    default:
        return cel_no_overload();
    }
}

static struct cel_value to_string(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    return cel_to_string(c, v);
}

static struct cel_value to_bytes(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)c, (void)n;
    struct cel_value bytes = *v;
    bytes.type = CEL_BYTES;
    return bytes;
}

static struct cel_value type_of(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)c, (void)n;
    return (struct cel_value){.type = CEL_TYPE, .named = v->type};
}

static struct cel_value unchanged(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)c, (void)n;
    return *v;
}

const struct cel_function cel_conversions[] = {
    {"bool", "b:b", unchanged},   {"bool", "s:b", bool_of_text}, {"bytes", "s:y", to_bytes},
    {"bytes", "y:y", unchanged},  {"double", "d:d", unchanged},  {"double", "i:d", to_double},
    {"double", "s:d", to_double}, {"double", "u:d", to_double},  {"dyn", "?:?", unchanged},
    {"int", "d:i", to_int},       {"int", "i:i", unchanged},     {"int", "s:i", to_int},
    {"int", "t:i", to_int},       {"int", "u:i", to_int},        {"string", "b:s", to_string},
    {"string", "c:s", to_string}, {"string", "D:s", to_string},  {"string", "d:s", to_string},
    {"string", "i:s", to_string}, {"string", "p:s", to_string},  {"string", "s:s", unchanged},
    {"string", "t:s", to_string}, {"string", "u:s", to_string},  {"string", "y:s", to_string},
    {"type", "?:T", type_of},     {"uint", "d:u", to_uint},      {"uint", "i:u", to_uint},
    {"uint", "s:u", to_uint},     {"uint", "u:u", unchanged},    {0},
};
