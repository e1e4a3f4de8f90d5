/* Conversions of CEL: numbers, texts, bytes, times. Ranges and texts as cel-spec has them; what Go
 * prints for a double or a duration is printed here too. */
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
    case CEL_INT:
        return *v;
    case CEL_UINT:
        return v->u <= INT64_MAX ? cel_int((int64_t)v->u) : out_of_range();
    case CEL_DOUBLE: /* both ends are left out, as their neighbours cannot be told from them */
        return v->d > -0x1p63 && v->d < 0x1p63 ? cel_int((int64_t)v->d) : out_of_range();
    case CEL_STRING: {
        const char *text = short_text(c, v);
        return text && str_to_i64(text, &i) == 0 ? cel_int(i) : cel_error("no integer");
    }
    case CEL_TIMESTAMP:
        return cel_int(v->at.s);
    default:
        return cel_no_overload();
    }
}

static struct cel_value to_uint(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    uint64_t u;
    switch (v->type) {
    case CEL_UINT:
        return *v;
    case CEL_INT:
        return v->i >= 0 ? cel_uint((uint64_t)v->i) : out_of_range();
    case CEL_DOUBLE:
        return v->d >= 0 && v->d < 0x1p64 ? cel_uint((uint64_t)v->d) : out_of_range();
    case CEL_STRING: {
        const char *text = short_text(c, v);
        return text && str_to_u64(text, &u) == 0 ? cel_uint(u) : cel_error("no unsigned integer");
    }
    default:
        return cel_no_overload();
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
    case CEL_DOUBLE:
        return *v;
    case CEL_INT:
        return cel_double((double)v->i);
    case CEL_UINT:
        return cel_double((double)v->u);
    case CEL_STRING:
        return double_of_text(short_text(c, v));
    default:
        return cel_no_overload();
    }
}

static struct cel_value to_bool(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    bool b;
    if (v->type == CEL_BOOL)
        return *v;
    if (v->type != CEL_STRING)
        return cel_no_overload();
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
        return cel_error("");
    for (size_t i = 0, n; i < v->s.n; i += n)
        if ((n = str_utf8_decode(v->s.p + i, v->s.n - i, &rune)) == 0)
            return cel_error("invalid UTF-8");
    return cel_string(v->s.p, v->s.n);
}

static struct cel_value to_string(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    switch (v->type) {
    case CEL_STRING:
        return *v;
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
    default:
        return cel_no_overload();
    }
}

static struct cel_value to_bytes(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)c, (void)n;
    if (v->type != CEL_STRING && v->type != CEL_BYTES)
        return cel_no_overload();
    struct cel_value bytes = *v;
    bytes.type = CEL_BYTES;
    return bytes;
}

/* ---- times ---- */

/* The digits behind the point, at most nine of them, as ns. */
static int32_t fraction_ns(const char *text)
{
    const char *point = strchr(text, '.');
    int32_t ns = 0;
    for (int i = 1; point && i <= 9; i++) {
        bool is_digit = *point && point[1] >= '0' && point[1] <= '9';
        ns = ns * 10 + (is_digit ? *++point - '0' : 0);
    }
    return ns;
}

/* A time; ms rounded down give the second, the text its fraction. */
static struct cel_value time_of_text(const char *text)
{
    int64_t ms;
    if (!text || clock_parse_rfc3339(text, &ms) < 0)
        return cel_error("no time");
    int64_t s = ms / 1000 - (ms % 1000 < 0);
    return (struct cel_value){.type = CEL_TIMESTAMP, .at = {s, fraction_ns(text)}};
}

static struct cel_value to_timestamp(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    if (v->type == CEL_TIMESTAMP)
        return *v;
    if (v->type == CEL_STRING)
        return time_of_text(short_text(c, v));
    if (v->type != CEL_INT)
        return cel_no_overload();
    if (v->i < INT64_C(-62135596800) || v->i > INT64_C(253402300799)) /* years 1 to 9999 */
        return out_of_range();
    return (struct cel_value){.type = CEL_TIMESTAMP, .at = {v->i, 0}};
}

static long double unit_ns(const char **p)
{
    static const struct {
        const char *unit;
        long double ns;
    } units[] = {{"ns", 1},   {"us", 1e3L}, {"\xc2\xb5s", 1e3L}, {"ms", 1e6L},
                 {"s", 1e9L}, {"m", 60e9L}, {"h", 3600e9L}};
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (str_has_prefix(*p, units[i].unit)) {
            *p += strlen(units[i].unit);
            return units[i].ns;
        }
    return 0;
}

/* Decimal digits with at most one point, no sign and no exponent. */
static bool read_decimal(const char **p, long double *ret)
{
    size_t whole = strspn(*p, "0123456789");
    const char *end = *p + whole;
    size_t fraction = *end == '.' ? strspn(end + 1, "0123456789") : 0;
    if (whole + fraction == 0)
        return false;
    *ret = strtold(*p, NULL);
    *p = end + (*end == '.' ? 1 + fraction : 0);
    return true;
}

/* Source: Go's time.ParseDuration: 1h2m3.5s, -5ms, 0. */
static struct cel_value duration_of_text(const char *text)
{
    if (!text || !*text)
        return cel_error("no duration");
    bool is_negative = *text == '-';
    const char *p = text + (*text == '-' || *text == '+');
    if (str_equal(p, "0"))
        return (struct cel_value){.type = CEL_DURATION};
    long double total = 0, number = 0;
    do {
        long double unit = read_decimal(&p, &number) ? unit_ns(&p) : 0;
        if (unit == 0)
            return cel_error("no duration");
        total += number * unit;
    } while (*p);
    if (total > (long double)INT64_MAX)
        return out_of_range();
    return (struct cel_value){.type = CEL_DURATION, .i = (int64_t)(is_negative ? -total : total)};
}

static struct cel_value to_duration(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)n;
    if (v->type == CEL_DURATION)
        return *v;
    return v->type == CEL_STRING ? duration_of_text(short_text(c, v)) : cel_no_overload();
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
    {"bool", true, false, 1, 1, to_bool},
    {"bytes", true, false, 1, 1, to_bytes},
    {"double", true, false, 1, 1, to_double},
    {"duration", true, false, 1, 1, to_duration},
    {"dyn", true, false, 1, 1, unchanged},
    {"int", true, false, 1, 1, to_int},
    {"string", true, false, 1, 1, to_string},
    {"timestamp", true, false, 1, 1, to_timestamp},
    {"type", true, false, 1, 1, type_of},
    {"uint", true, false, 1, 1, to_uint},
    {0},
};
