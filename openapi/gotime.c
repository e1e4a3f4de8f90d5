/* Go's time.Parse walks over its layout and names the element at which the text left it. */
#include "openapi/gotime.h"

#include <stdbool.h>
#include <stddef.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/clock.h"
#include "apiserver/base/mem.h"

#define LAYOUT "2006-01-02T15:04:05Z07:00"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A number of n digits, the first of which may be missing when is_short; -1 when there is none. */
static int take_number(const char **p, int n, bool is_short)
{
    int v = 0, i = 0;
    for (; i < n && is_digit((*p)[i]); i++)
        v = v * 10 + (*p)[i] - '0';
    if (i < n && !(is_short && i > 0))
        return -1;
    *p += i;
    return v;
}

/* Reading a text along the layout. */
struct walk {
    const char *p;
    const char *out_of_range; /* which number is, NULL = none */
    int year, month, day;
};

static void skip_fraction(struct walk *w)
{
    if ((*w->p != '.' && *w->p != ',') || !is_digit(w->p[1]))
        return;
    for (w->p++; is_digit(*w->p);)
        w->p++;
}

/* Zone of the layout: Z or ±hh:mm. Of two numbers out of range Go names the second. */
static bool take_zone(struct walk *w)
{
    const char *s = w->p;
    if (*s == 'Z') {
        w->p++;
        return true;
    }
    if (*s != '+' && *s != '-')
        return false;
    s++;
    int hours = take_number(&s, 2, false);
    if (hours < 0 || *s++ != ':')
        return false;
    int minutes = take_number(&s, 2, false);
    if (minutes < 0)
        return false;
    w->p = s;
    if (hours > 24)
        w->out_of_range = "time zone offset hour";
    if (minutes > 60)
        w->out_of_range = "time zone offset minute";
    return true;
}

static bool take_bounded(struct walk *w, bool is_short, int min, int max, const char *name)
{
    int v = take_number(&w->p, 2, is_short);
    if (v >= 0 && (v < min || v > max))
        w->out_of_range = name;
    return v >= 0;
}

static bool take_year(struct walk *w)
{
    return (w->year = take_number(&w->p, 4, false)) >= 0;
}

static bool take_month(struct walk *w)
{
    const char *s = w->p;
    w->month = take_number(&s, 2, false);
    return take_bounded(w, false, 1, 12, "month");
}

static bool take_day(struct walk *w) /* its range is looked at last */
{
    return (w->day = take_number(&w->p, 2, false)) >= 0;
}

static bool take_hour(struct walk *w)
{
    return take_bounded(w, true, 0, 23, "hour");
}

static bool take_minute(struct walk *w)
{
    return take_bounded(w, false, 0, 59, "minute");
}

static bool take_second(struct walk *w)
{
    if (!take_bounded(w, false, 0, 59, "second"))
        return false;
    if (!w->out_of_range)
        skip_fraction(w);
    return true;
}

/* The layout's elements in their order; a mark stands for itself. */
static const struct {
    const char *text;
    bool (*take)(struct walk *w);
} elements[] = {
    {"2006", take_year}, {"-", NULL}, {"01", take_month},  {"-", NULL},
    {"02", take_day},    {"T", NULL}, {"15", take_hour},   {":", NULL},
    {"04", take_minute}, {":", NULL}, {"05", take_second}, {"Z07:00", take_zone},
};

static bool take_element(struct walk *w, size_t i)
{
    if (elements[i].take)
        return elements[i].take(w);
    if (*w->p != *elements[i].text)
        return false;
    w->p++;
    return true;
}

static bool is_day_of_month(const struct walk *w)
{
    return w->day >= 1 && w->day <= clock_days_in_month(w->year, w->month);
}

/* Package time quotes bytes, where Go has characters elsewhere. */
static void quote(struct buf *out, const char *s)
{
    buf_putc(out, '"');
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c < ' ' || c >= 0x80)
            buf_printf(out, "\\x%02x", c);
        else
            buf_printf(out, "%s%c", c == '"' || c == '\\' ? "\\" : "", c);
    }
    buf_putc(out, '"');
}

/* What follows the head of the error's text; nothing when s is a time. */
static void print_fault(const char *s, struct buf *out)
{
    struct walk w = {.p = s};
    for (size_t i = 0; i < ARRAY_LEN(elements); i++) {
        const char *rest = w.p;
        if (!take_element(&w, i)) {
            buf_puts(out, " as \"" LAYOUT "\": cannot parse ");
            quote(out, rest);
            buf_printf(out, " as \"%s\"", elements[i].text);
            return;
        }
        if (w.out_of_range) {
            buf_printf(out, ": %s out of range", w.out_of_range);
            return;
        }
    }
    if (*w.p) {
        buf_puts(out, ": extra text: ");
        quote(out, w.p);
    } else if (!is_day_of_month(&w)) {
        buf_puts(out, ": day out of range");
    }
}

char *gotime_check_rfc3339(const char *s)
{
    SCOPED(buf_fini) struct buf fault = {0}, text = {0};
    print_fault(s, &fault);
    if (fault.len == 0)
        return NULL;
    buf_puts(&text, "parsing time ");
    quote(&text, s);
    buf_append(&text, fault.data, fault.len);
    return buf_take(&text, NULL);
}
