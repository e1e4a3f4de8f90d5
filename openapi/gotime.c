/* Go's time.Parse walks over its layout and names the element at which the text left it. */
#include "openapi/gotime.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/clock.h"
#include "apiserver/base/mem.h"

#define LAYOUT "2006-01-02T15:04:05Z07:00"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Zone of the layout: Z or ±hh:mm. */
static bool skip_zone(const char **p)
{
    if (**p == 'Z') {
        ++*p;
        return true;
    }
    const char *s = *p;
    bool fits = (s[0] == '+' || s[0] == '-') && is_digit(s[1]) && is_digit(s[2]) && s[3] == ':' &&
                is_digit(s[4]) && is_digit(s[5]);
    if (fits)
        *p += 6;
    return fits;
}

static bool skip_element(const char **p, const char *element)
{
    if (element[0] == 'Z')
        return skip_zone(p);
    for (const char *e = element; *e; e++, ++*p)
        if (is_digit(*e) ? !is_digit(**p) : **p != *e)
            return false;
    if (strcmp(element, "05") == 0 && **p == '.' && is_digit((*p)[1]))
        for (++*p; is_digit(**p);)
            ++*p;
    return true;
}

/* Where the text is well formed: which number is out of its range. */
static const char *range_text(const char *s)
{
    int month = (s[5] - '0') * 10 + s[6] - '0', hour = (s[11] - '0') * 10 + s[12] - '0';
    int minute = (s[14] - '0') * 10 + s[15] - '0', second = (s[17] - '0') * 10 + s[18] - '0';
    return month < 1 || month > 12 ? "month out of range"
           : hour > 23             ? "hour out of range"
           : minute > 59           ? "minute out of range"
           : second > 59           ? "second out of range"
                                   : "day out of range";
}

char *gotime_check_rfc3339(const char *s)
{
    static const char *const elements[] = {"2006", "-", "01", "-", "02", "T",
                                           "15",   ":", "04", ":", "05", "Z07:00"};
    int64_t ignored;
    if (clock_parse_rfc3339(s, &ignored) == 0)
        return NULL;
    SCOPED(buf_fini) struct buf text = {0};
    buf_puts(&text, "parsing time ");
    buf_go_quote(&text, s, strlen(s));
    const char *p = s;
    for (size_t i = 0; i < ARRAY_LEN(elements); i++) {
        const char *rest = p;
        if (skip_element(&p, elements[i]))
            continue;
        buf_puts(&text, " as \"" LAYOUT "\": cannot parse ");
        buf_go_quote(&text, rest, strlen(rest));
        buf_printf(&text, " as \"%s\"", elements[i]);
        return buf_take(&text, NULL);
    }
    if (*p) {
        buf_puts(&text, ": extra text: ");
        buf_go_quote(&text, p, strlen(p));
    } else {
        buf_printf(&text, ": %s", range_text(s));
    }
    return buf_take(&text, NULL);
}
