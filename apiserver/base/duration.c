#include "apiserver/base/duration.h"

#include <inttypes.h>
#include <string.h>

#include "apiserver/base/mem.h"

#define NS_MAX (INT64_MAX / 2) /* so that sums do not overflow; about 146 years */

static const struct unit {
    const char *text;
    int64_t ns;
} units[] = {
    /* longer names before those they begin with */
    {"ns", 1},
    {"us", 1000},
    {"µs", 1000},
    {"ms", 1000000},
    {"s", INT64_C(1000000000)},
    {"m", 60 * INT64_C(1000000000)},
    {"h", 3600 * INT64_C(1000000000)},
};

static const struct unit *unit_at(const char *p)
{
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (strncmp(p, units[i].text, strlen(units[i].text)) == 0)
            return &units[i];
    }
    return NULL;
}

/* One number with its unit; NULL when it is none or too large. */
static const char *read_part(const char *p, int64_t *ret_ns)
{
    int64_t whole = 0, fraction = 0, scale = 1;
    const char *start = p;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (whole > NS_MAX / 10 - 10)
            return NULL;
        whole = whole * 10 + (*p - '0');
    }
    bool has_digits = p > start;
    if (*p == '.') {
        for (p++; *p >= '0' && *p <= '9'; p++) {
            has_digits = true;
            if (scale < INT64_C(100000)) { /* finer than a ms of an hour would not be seen */
                fraction = fraction * 10 + (*p - '0');
                scale *= 10;
            }
        }
    }
    const struct unit *u = unit_at(p);
    if (!has_digits || !u || whole > NS_MAX / u->ns)
        return NULL;
    *ret_ns = whole * u->ns + fraction * (u->ns / scale) + fraction * (u->ns % scale) / scale;
    return p + strlen(u->text);
}

int duration_parse_ms(const char *text, int64_t *ret_ms)
{
    int64_t sum = 0, part;
    if (strcmp(text, "0") == 0) {
        *ret_ms = 0;
        return 0;
    }
    const char *p = text;
    do {
        p = read_part(p, &part);
        if (!p || sum > NS_MAX - part)
            return -1;
        sum += part;
    } while (*p);
    *ret_ms = sum / 1000000;
    return 0;
}

void duration_print_ms(int64_t ms, struct buf *out)
{
    if (ms < 0) {
        buf_putc(out, '-');
        ms = -ms;
    }
    if (ms > 0 && ms < 1000) {
        buf_printf(out, "%" PRId64 "ms", ms);
        return;
    }
    int64_t hours = ms / 3600000, minutes = ms / 60000 % 60, fraction = ms % 1000;
    if (hours)
        buf_printf(out, "%" PRId64 "h", hours);
    if (hours || minutes)
        buf_printf(out, "%" PRId64 "m", minutes);
    buf_printf(out, "%" PRId64, ms / 1000 % 60);
    if (fraction) {
        int digits = 3;
        for (; fraction % 10 == 0; digits--)
            fraction /= 10;
        buf_printf(out, ".%0*" PRId64, digits, fraction);
    }
    buf_putc(out, 's');
}
