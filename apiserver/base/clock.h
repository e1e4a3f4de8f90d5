/* Time as a table of functions, so that tests own it, and RFC 3339 text. Any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct clock {
    int64_t (*unix_ms)(const struct clock *c);      /* wall clock, ms since 1970 */
    int64_t (*monotonic_ms)(const struct clock *c); /* for deadlines and durations */
    void *ctx;
};
extern const struct clock clock_system;
/* A clock that stands still until told; both of its times move together. Thread-safe. */
struct clock_fake {
    struct clock clock; /* pass &fake.clock */
    int64_t now_ms;     /* set by clock_fake_init and clock_fake_advance only */
};
void clock_fake_init(struct clock_fake *f, int64_t now_ms);
void clock_fake_advance(struct clock_fake *f, int64_t by_ms);

int64_t clock_unix_ms(const struct clock *c);
int64_t clock_unix_s(const struct clock *c);
int64_t clock_monotonic_ms(const struct clock *c);

#define CLOCK_TEXT_SIZE 40
/* 2026-01-02T03:04:05Z (seconds), for metav1.Time; out has CLOCK_TEXT_SIZE bytes. */
void clock_print_rfc3339(int64_t unix_s, char *out);
/* 2026-01-02T03:04:05.000000Z, metav1.MicroTime */
void clock_print_rfc3339_micro(int64_t unix_us, char *out);
int clock_days_in_month(int64_t year, int month); /* month from 1 */
/* RFC 3339 with zone and optional fraction, after a point or a comma; T and Z in either case; no
 * leap second, no hour 24, no impossible day, but a zone of any size. ret_unix_ms gets
 * milliseconds, rounded down. 0 or -1. Source: go-openapi strfmt date-time, as CRDs use it. */
int clock_parse_rfc3339(const char *s, int64_t *ret_unix_ms);
/* Age as kubectl shows it: 5s, 2m3s, 4h5m, 3d2h, 2y45d. Source: apimachinery
 * duration.HumanDuration. */
void clock_print_age(int64_t age_ms, char *out);
