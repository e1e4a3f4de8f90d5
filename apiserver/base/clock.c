/* Days and dates are counted here by hand: timegm and strptime know locales, leap seconds and short
 * years, and RFC 3339 has none of these. Dates are proleptic Gregorian, years 0000 to 9999. */
#include "apiserver/base/clock.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int64_t read_ms(clockid_t id)
{
    struct timespec ts = {0};
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int64_t system_unix_ms(const struct clock *c)
{
    (void)c;
    return read_ms(CLOCK_REALTIME);
}

static int64_t system_monotonic_ms(const struct clock *c)
{
    (void)c;
    return read_ms(CLOCK_MONOTONIC);
}

const struct clock clock_system = {.unix_ms = system_unix_ms, .monotonic_ms = system_monotonic_ms};

static int64_t fake_ms(const struct clock *c)
{
    const struct clock_fake *f = c->ctx;
    return __atomic_load_n(&f->now_ms, __ATOMIC_ACQUIRE);
}

void clock_fake_init(struct clock_fake *f, int64_t now_ms)
{
    f->clock = (struct clock){.unix_ms = fake_ms, .monotonic_ms = fake_ms, .ctx = f};
    __atomic_store_n(&f->now_ms, now_ms, __ATOMIC_RELEASE);
}

void clock_fake_advance(struct clock_fake *f, int64_t by_ms)
{
    __atomic_fetch_add(&f->now_ms, by_ms, __ATOMIC_ACQ_REL);
}

int64_t clock_unix_ms(const struct clock *c)
{
    return c->unix_ms(c);
}

/* Division that rounds down for times before 1970 too. */
static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t clock_unix_s(const struct clock *c)
{
    return floor_div(c->unix_ms(c), 1000);
}

int64_t clock_monotonic_ms(const struct clock *c)
{
    return c->monotonic_ms(c);
}

struct date {
    int64_t year;
    int month, day; /* from 1 */
};

/* A year that starts in March has its leap day last, so a day's number within it is linear in the
 * month: 153 days in five months. An era is the 400 years (146,097 days) after which the calendar
 * repeats; 719,468 days lie between 0000-03-01 and 1970-01-01. */
static int64_t days_from_date(struct date d)
{
    int64_t year = d.year - (d.month <= 2);
    int64_t era = floor_div(year, 400);
    int64_t year_of_era = year - era * 400;
    int64_t month = d.month > 2 ? d.month - 3 : d.month + 9;
    int64_t day_of_year = (153 * month + 2) / 5 + d.day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

static struct date date_from_days(int64_t days)
{
    days += 719468;
    int64_t era = floor_div(days, 146097);
    int64_t day_of_era = days - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153;
    struct date d = {.day = (int)(day_of_year - (153 * month + 2) / 5 + 1),
                     .month = (int)(month < 10 ? month + 3 : month - 9)};
    d.year = year_of_era + era * 400 + (d.month <= 2);
    return d;
}

/* Everything up to the seconds, without zone. */
static int print_seconds(int64_t unix_s, char *out)
{
    int64_t days = floor_div(unix_s, 86400);
    int of_day = (int)(unix_s - days * 86400);
    struct date d = date_from_days(days);
    int n = snprintf(out, CLOCK_TEXT_SIZE, "%04lld-%02d-%02dT%02d:%02d:%02d", (long long)d.year,
                     d.month, d.day, of_day / 3600, of_day / 60 % 60, of_day % 60);
    return n < CLOCK_TEXT_SIZE ? n : CLOCK_TEXT_SIZE - 1;
}

void clock_print_rfc3339(int64_t unix_s, char *out)
{
    int n = print_seconds(unix_s, out);
    snprintf(out + n, (size_t)(CLOCK_TEXT_SIZE - n), "Z");
}

void clock_print_rfc3339_micro(int64_t unix_us, char *out)
{
    int us = (int)(unix_us % 1000000);
    int n = print_seconds(floor_div(unix_us, 1000000), out);
    snprintf(out + n, (size_t)(CLOCK_TEXT_SIZE - n), ".%06dZ", us < 0 ? us + 1000000 : us);
}

/* n decimal digits at *s, moving it on; -1 when there are fewer. */
static int take_digits(const char **s, int n)
{
    int v = 0;
    for (int i = 0; i < n; i++, (*s)++) {
        if (**s < '0' || **s > '9')
            return -1;
        v = v * 10 + (**s - '0');
    }
    return v;
}

static bool take_char(const char **s, char lower)
{
    char c = **s;
    if (c >= 'A' && c <= 'Z')
        c = (char)(c - 'A' + 'a');
    if (c != lower)
        return false;
    (*s)++;
    return true;
}

static bool is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

int clock_days_in_month(int64_t year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return month == 2 && is_leap(year) ? 29 : days[month - 1];
}

static int parse_date(const char **s, struct date *ret)
{
    struct date d = {.year = take_digits(s, 4)};
    if (d.year < 0 || !take_char(s, '-'))
        return -1;
    d.month = take_digits(s, 2);
    if (d.month < 1 || d.month > 12 || !take_char(s, '-'))
        return -1;
    d.day = take_digits(s, 2);
    if (d.day < 1 || d.day > clock_days_in_month(d.year, d.month))
        return -1;
    *ret = d;
    return 0;
}

/* hh:mm as minutes, -1 when it is none. */
static int parse_hour_minute(const char **s)
{
    int hour = take_digits(s, 2);
    if (hour < 0 || hour > 23 || !take_char(s, ':'))
        return -1;
    int minute = take_digits(s, 2);
    return minute < 0 || minute > 59 ? -1 : hour * 60 + minute;
}

/* The fraction in ms, 0 when there is none; digits past the third only have to be digits. */
static int parse_fraction(const char **s)
{
    if (!take_char(s, '.') && !take_char(s, ','))
        return 0;
    int ms = 0, n = 0;
    for (; **s >= '0' && **s <= '9'; (*s)++, n++)
        if (n < 3)
            ms = ms * 10 + (**s - '0');
    for (int i = n; i < 3; i++)
        ms *= 10;
    return n == 0 ? -1 : ms;
}

/* The zone's offset from UTC in minutes, which may be more than a day. */
static int parse_zone(const char **s, int *ret_minutes)
{
    if (take_char(s, 'z')) {
        *ret_minutes = 0;
        return 0;
    }
    int sign = take_char(s, '+') ? 1 : take_char(s, '-') ? -1 : 0;
    int hours = sign == 0 ? -1 : take_digits(s, 2);
    int minutes = hours < 0 || !take_char(s, ':') ? -1 : take_digits(s, 2);
    if (minutes < 0)
        return -1;
    *ret_minutes = sign * (hours * 60 + minutes);
    return 0;
}

int clock_parse_rfc3339(const char *s, int64_t *ret_unix_ms)
{
    struct date d;
    int zone;
    if (parse_date(&s, &d) < 0 || !take_char(&s, 't'))
        return -1;
    int minutes = parse_hour_minute(&s);
    if (minutes < 0 || !take_char(&s, ':'))
        return -1;
    int seconds = take_digits(&s, 2);
    if (seconds < 0 || seconds > 59)
        return -1;
    int ms = parse_fraction(&s);
    if (ms < 0 || parse_zone(&s, &zone) < 0 || *s != '\0')
        return -1;
    int64_t total_s = days_from_date(d) * 86400 + (int64_t)(minutes - zone) * 60 + seconds;
    *ret_unix_ms = total_s * 1000 + ms;
    return 0;
}

#define MINUTE ((int64_t)60)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define YEAR (365 * DAY)

/* Up to `below` seconds an age is shown in `unit`s, and if `rest` is not 0 also in what is left
 * over in `rest`s. */
struct age_step {
    int64_t below, unit, rest;
    char unit_letter, rest_letter;
};
static const struct age_step age_steps[] = {
    {.below = 2 * MINUTE, .unit = 1, .unit_letter = 's'},
    {.below = 10 * MINUTE, .unit = MINUTE, .unit_letter = 'm', .rest = 1, .rest_letter = 's'},
    {.below = 3 * HOUR, .unit = MINUTE, .unit_letter = 'm'},
    {.below = 8 * HOUR, .unit = HOUR, .unit_letter = 'h', .rest = MINUTE, .rest_letter = 'm'},
    {.below = 48 * HOUR, .unit = HOUR, .unit_letter = 'h'},
    {.below = 8 * DAY, .unit = DAY, .unit_letter = 'd', .rest = HOUR, .rest_letter = 'h'},
    {.below = 2 * YEAR, .unit = DAY, .unit_letter = 'd'},
    {.below = 8 * YEAR, .unit = YEAR, .unit_letter = 'y', .rest = DAY, .rest_letter = 'd'},
    {.below = INT64_MAX, .unit = YEAR, .unit_letter = 'y'},
};

void clock_print_age(int64_t age_ms, char *out)
{
    if (age_ms <= -2000) { /* less is taken for clocks that differ */
        snprintf(out, CLOCK_TEXT_SIZE, "<invalid>");
        return;
    }
    int64_t s = age_ms < 0 ? 0 : age_ms / 1000;
    const struct age_step *step = age_steps;
    while (s >= step->below)
        step++;
    int64_t rest = step->rest == 0 ? 0 : s % step->unit / step->rest;
    if (rest == 0)
        snprintf(out, CLOCK_TEXT_SIZE, "%lld%c", (long long)(s / step->unit), step->unit_letter);
    else
        snprintf(out, CLOCK_TEXT_SIZE, "%lld%c%lld%c", (long long)(s / step->unit),
                 step->unit_letter, (long long)rest, step->rest_letter);
}
