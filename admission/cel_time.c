/* Times and durations of CEL: made from texts and numbers, and taken apart. Zones are UTC and fixed
 * offsets: the names of zones depend on a data base that a server need not have. Source: cel-spec,
 * "Timestamp" and "Duration". */
#include <time.h>

#include "admission/cel_tree.h"
#include "apiserver/base/clock.h"
#include "apiserver/base/mem.h"

/* Years 1 to 9999. */
#define TIME_MIN_S INT64_C(-62135596800)
#define TIME_MAX_S INT64_C(253402300799)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

#define TEXT_MAX 100 /* bytes; longer than any time or duration that means something */

/* As a C string, "" when it has a NUL byte or is too long. */
static void copy_text(struct str s, char out[TEXT_MAX + 1])
{
    size_t n = s.n > TEXT_MAX || memchr(s.p, 0, s.n) ? 0 : s.n;
    memcpy(out, s.p, n);
    out[n] = '\0';
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

/* ms rounded down give the second, the text its fraction. */
struct cel_value cel_timestamp(struct str s)
{
    int64_t ms;
    char text[TEXT_MAX + 1];
    copy_text(s, text);
    if (clock_parse_rfc3339(text, &ms) < 0)
        return cel_error("no time");
    int64_t at_s = ms / 1000 - (ms % 1000 < 0);
    if (at_s < TIME_MIN_S || at_s > TIME_MAX_S)
        return cel_error("range error");
    return (struct cel_value){.type = CEL_TIMESTAMP, .at = {at_s, fraction_ns(text)}};
}

static struct cel_value time_of_text(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)c, (void)n;
    return cel_timestamp(v->s);
}

static struct cel_value time_of_int(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)c, (void)n;
    if (v->i < TIME_MIN_S || v->i > TIME_MAX_S)
        return cel_error("range error");
    return (struct cel_value){.type = CEL_TIMESTAMP, .at = {v->i, 0}};
}

/* A zone's offset: UTC, or hours and minutes with or without a sign. */
static bool offset_of(struct str zone, int64_t *ret_s)
{
    bool has_sign = zone.n > 0 && (zone.p[0] == '+' || zone.p[0] == '-');
    bool is_negative = has_sign && zone.p[0] == '-';
    *ret_s = 0;
    if (str_eq(zone, "UTC") || zone.n == 0)
        return true;
    zone = (struct str){zone.p + has_sign, zone.n - has_sign};
    if (zone.n != 5 || zone.p[2] != ':')
        return false;
    int64_t v = 0;
    for (size_t i = 0; i < 5; i++) {
        if (i == 2)
            continue;
        if (zone.p[i] < '0' || zone.p[i] > '9')
            return false;
        v = v * 10 + (zone.p[i] - '0');
    }
    *ret_s = (v / 100 * 3600 + v % 100 * 60) * (is_negative ? -1 : 1);
    return v / 100 < 24 && v % 100 < 60;
}

/* The parts of a time in a zone, the second argument; false when that is none. */
static bool parts_of(const struct cel_value *v, size_t n, struct tm *ret)
{
    int64_t offset = 0;
    if (n == 2 && !offset_of(v[1].s, &offset))
        return false;
    time_t s = v->at.s + offset;
    return gmtime_r(&s, ret) != NULL;
}

/* An accessor of one part of a time. */
#define TIME_PART(name, part)                                                                      \
    static struct cel_value name(struct cel_ctx *c, const struct cel_value *v, size_t n)           \
    {                                                                                              \
        (void)c;                                                                                   \
        struct tm tm;                                                                              \
        return parts_of(v, n, &tm) ? cel_int(part)                                                 \
                                   : cel_error("a time zone that is neither UTC nor an offset");   \
    }
TIME_PART(get_full_year, tm.tm_year + 1900)
TIME_PART(get_month, tm.tm_mon)
TIME_PART(get_date, tm.tm_mday)
TIME_PART(get_day_of_month, tm.tm_mday - 1)
TIME_PART(get_day_of_week, tm.tm_wday)
TIME_PART(get_day_of_year, tm.tm_yday)
TIME_PART(get_hours, tm.tm_hour)
TIME_PART(get_minutes, tm.tm_min)
TIME_PART(get_seconds, tm.tm_sec)
TIME_PART(get_milliseconds, v->at.ns / NS_PER_MS)

/* ---- durations ---- */

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
static struct cel_value duration_of_text(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)c, (void)n;
    char text[TEXT_MAX + 1];
    copy_text(v->s, text);
    bool is_negative = *text == '-';
    const char *p = text + (*text == '-' || *text == '+');
    if (str_equal(p, "0"))
        return cel_duration(0);
    long double total = 0, number = 0;
    do {
        long double unit = read_decimal(&p, &number) ? unit_ns(&p) : 0;
        if (unit == 0)
            return cel_error("no duration");
        total += number * unit;
    } while (*p);
    if (total > (long double)INT64_MAX)
        return cel_error("range error");
    return cel_duration((int64_t)(is_negative ? -total : total));
}

static struct cel_value whole_hours(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)c, (void)n;
    return cel_int(v->i / (3600 * NS_PER_S));
}

static struct cel_value whole_minutes(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)c, (void)n;
    return cel_int(v->i / (60 * NS_PER_S));
}

static struct cel_value whole_seconds(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)c, (void)n;
    return cel_int(v->i / NS_PER_S);
}

/* Of the last second only, unlike the others. */
static struct cel_value milliseconds(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)c, (void)n;
    return cel_int(v->i % NS_PER_S / NS_PER_MS);
}

static struct cel_value unchanged(struct cel_ctx *c, const struct cel_value *v, size_t n)
{
    (void)c, (void)n;
    return *v;
}

/* Of a time alone, and in a zone. */
#define IN_ZONES(name, call)                                                                       \
    {name, "t.:i", call},                                                                          \
    {                                                                                              \
        name, "t.s:i", call                                                                        \
    }
const struct cel_function cel_time_functions[] = {
    {"duration", "D:D", unchanged},
    {"duration", "s:D", duration_of_text},
    {"timestamp", "i:t", time_of_int},
    {"timestamp", "s:t", time_of_text},
    {"timestamp", "t:t", unchanged},
    IN_ZONES("getDate", get_date),
    IN_ZONES("getDayOfMonth", get_day_of_month),
    IN_ZONES("getDayOfWeek", get_day_of_week),
    IN_ZONES("getDayOfYear", get_day_of_year),
    IN_ZONES("getFullYear", get_full_year),
    IN_ZONES("getHours", get_hours),
    IN_ZONES("getMilliseconds", get_milliseconds),
    IN_ZONES("getMinutes", get_minutes),
    IN_ZONES("getMonth", get_month),
    IN_ZONES("getSeconds", get_seconds),
    {"getHours", "D.:i", whole_hours},
    {"getMilliseconds", "D.:i", milliseconds},
    {"getMinutes", "D.:i", whole_minutes},
    {"getSeconds", "D.:i", whole_seconds},
    {0},
};
