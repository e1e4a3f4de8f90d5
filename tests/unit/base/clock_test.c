#include "apiserver/base/clock.h"

#include "tests/lib/suite.h"

/* ---- parsing ---- */

static const struct {
    const char *text;
    int64_t ms;
} good[] = {
    {"1970-01-01T00:00:00Z", 0},
    {"1970-01-01t00:00:00z", 0},
    {"2026-01-02T03:04:05Z", 1767323045000},
    {"2026-01-02T03:04:05.5Z", 1767323045500},
    {"2026-01-02T03:04:05.0019999Z", 1767323045001},
    {"2026-01-02T03:04:05.123456789+00:00", 1767323045123},
    {"2026-01-02T05:34:05+02:30", 1767323045000},
    {"2026-01-01T22:04:05-05:00", 1767323045000},
    {"2024-02-29T23:59:59Z", 1709251199000},
    {"2000-02-29T00:00:00Z", 951782400000},
    {"1969-12-31T23:59:59.999Z", -1},
    {"1969-12-31T23:59:59.9Z", -100},
    {"0000-01-01T00:00:00Z", -62167219200000},
    {"0001-01-01T00:00:00Z", -62135596800000},
    {"9999-12-31T23:59:59Z", 253402300799000},
    {"2026-01-02T00:00:00+23:59", 1767225660000},
    {"2026-01-02T03:04:05,5Z", 1767323045500},
    {"2026-01-03T03:04:05+24:00", 1767323045000},
    {"2026-01-02T06:04:05+02:60", 1767323045000},
};

START_TEST(test_parse)
{
    int64_t ms = 42;
    ck_assert_msg(clock_parse_rfc3339(good[_i].text, &ms) == 0, "%s", good[_i].text);
    ck_assert_msg(ms == good[_i].ms, "%s: %lld", good[_i].text, (long long)ms);
}
END_TEST

static const char *const bad[] = {
    "",
    "tomorrow",
    "2026-01-02",
    "2026-01-02T03:04:05",
    "2026-01-02 03:04:05Z",
    "2026-01-02T03:04Z",
    "2026-01-02T24:00:00Z",
    "2026-01-02T23:60:00Z",
    "2026-12-31T23:59:60Z",
    "2026-02-29T00:00:00Z",
    "1900-02-29T00:00:00Z",
    "2026-04-31T00:00:00Z",
    "2026-13-01T00:00:00Z",
    "2026-00-01T00:00:00Z",
    "2026-01-00T00:00:00Z",
    "2026-1-2T03:04:05Z",
    "26-01-02T03:04:05Z",
    "12026-01-02T03:04:05Z",
    "-026-01-02T03:04:05Z",
    "2026-01-02T03:04:05.Z",
    "2026-01-02T03:04:05,Z",
    "2026-01-02T03:04:05,5,5Z",
    "2026-01-02T03:04:05+0200",
    "2026-01-02T03:04:05+02",
    "2026-01-02T03:04:05+2:00",
    "2026-01-02T03:04:05Z ",
    " 2026-01-02T03:04:05Z",
    "2026-01-02T03:04:05ZZ",
    "2026-01-02T+3:04:05Z",
};

START_TEST(test_refuse)
{
    int64_t ms = 42;
    ck_assert_msg(clock_parse_rfc3339(bad[_i], &ms) == -1, "%s", bad[_i]);
    ck_assert_int_eq(ms, 42);
}
END_TEST

/* ---- printing ---- */

START_TEST(test_print)
{
    char text[CLOCK_TEXT_SIZE];
    clock_print_rfc3339(1767323045, text);
    ck_assert_str_eq(text, "2026-01-02T03:04:05Z");
    clock_print_rfc3339(-1, text);
    ck_assert_str_eq(text, "1969-12-31T23:59:59Z");
    clock_print_rfc3339_micro(1767323045000007, text);
    ck_assert_str_eq(text, "2026-01-02T03:04:05.000007Z");
    clock_print_rfc3339_micro(-1, text);
    ck_assert_str_eq(text, "1969-12-31T23:59:59.999999Z");
    clock_print_rfc3339(INT64_MAX / 1000, text); /* far out, but nothing breaks */
    clock_print_rfc3339_micro(INT64_MIN, text);
    ck_assert_uint_lt(strlen(text), CLOCK_TEXT_SIZE);
}
END_TEST

/* Every day of 800 years, at a time of day that wanders. */
START_TEST(test_print_and_parse_agree)
{
    char text[CLOCK_TEXT_SIZE];
    for (int64_t day = -135140; day < 157055; day++) {
        int64_t s = day * 86400 + (day * 7919 % 86400 + 86400) % 86400, ms;
        clock_print_rfc3339(s, text);
        ck_assert_msg(clock_parse_rfc3339(text, &ms) == 0 && ms == s * 1000, "%s", text);
    }
}
END_TEST

/* ---- age ---- */

#define M 60
#define H 3600
#define D 86400
#define Y (365 * (int64_t)D)

static const struct {
    int64_t ms;
    const char *text;
} ages[] = {
    {-2000, "<invalid>"},
    {INT64_MIN, "<invalid>"},
    {-1999, "0s"},
    {-1, "0s"},
    {0, "0s"},
    {999, "0s"},
    {5000, "5s"},
    {119999, "119s"},
    {120 * 1000, "2m"},
    {123 * 1000, "2m3s"},
    {(10 * M - 1) * 1000, "9m59s"},
    {10 * M * 1000, "10m"},
    {(10 * M + 30) * 1000, "10m"},
    {(3 * H - 1) * 1000, "179m"},
    {3 * H * 1000, "3h"},
    {(4 * H + 5 * M) * 1000, "4h5m"},
    {(8 * H - 1) * 1000, "7h59m"},
    {8 * H * 1000, "8h"},
    {(47 * H + 59 * M) * 1000, "47h"},
    {2 * D * (int64_t)1000, "2d"},
    {(3 * D + 2 * H) * (int64_t)1000, "3d2h"},
    {(8 * D - 1) * (int64_t)1000, "7d23h"},
    {8 * D * (int64_t)1000, "8d"},
    {(2 * Y - 1) * 1000, "729d"},
    {2 * Y * 1000, "2y"},
    {(2 * Y + 45 * D) * 1000, "2y45d"},
    {(8 * Y - 1) * 1000, "7y364d"},
    {8 * Y * 1000, "8y"},
    {(100 * Y + 3 * D) * 1000, "100y"},
};

START_TEST(test_age)
{
    char text[CLOCK_TEXT_SIZE];
    clock_print_age(ages[_i].ms, text);
    ck_assert_str_eq(text, ages[_i].text);
}
END_TEST

/* ---- clocks ---- */

START_TEST(test_fake)
{
    struct clock_fake f;
    clock_fake_init(&f, 1767323045678);
    ck_assert_int_eq(clock_unix_ms(&f.clock), 1767323045678);
    ck_assert_int_eq(clock_unix_s(&f.clock), 1767323045);
    clock_fake_advance(&f, 1000);
    ck_assert_int_eq(clock_monotonic_ms(&f.clock), 1767323046678);
    clock_fake_init(&f, -1);
    ck_assert_int_eq(clock_unix_s(&f.clock), -1);
}
END_TEST

START_TEST(test_system)
{
    int64_t before = clock_monotonic_ms(&clock_system);
    ck_assert_int_gt(clock_unix_ms(&clock_system), 1700000000000);
    ck_assert_int_ge(clock_monotonic_ms(&clock_system), before);
}
END_TEST

SUITE(clock)
{
    LOOP("parse", test_parse, 0, ARRAY_LEN(good));
    LOOP("refuse", test_refuse, 0, ARRAY_LEN(bad));
    TESTS("print", test_print, test_print_and_parse_agree);
    LOOP("age", test_age, 0, ARRAY_LEN(ages));
    TESTS("clocks", test_fake, test_system);
}
