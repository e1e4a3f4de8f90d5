#include "apiserver/base/duration.h"
#include "apiserver/base/str.h"
#include "tests/lib/suite.h"

static const struct {
    const char *text;
    int64_t ms; /* -1 = refused */
    const char *printed;
} rows[] = {
    {"0", 0, "0s"},
    {"0s", 0, "0s"},
    {"20s", 20000, "20s"},
    {"5m", 300000, "5m0s"},
    {"1h", 3600000, "1h0m0s"},
    {"1h30m", 5400000, "1h30m0s"},
    {"1h2m3.004s", 3723004, "1h2m3.004s"},
    {"1.5s", 1500, "1.5s"},
    {".5s", 500, "500ms"},
    {"1.s", 1000, "1s"},
    {"0.1h", 360000, "6m0s"},
    {"100ms", 100, "100ms"},
    {"1500us", 1, "1ms"},
    {"1500µs", 1, "1ms"},
    {"999999ns", 0, "0s"},
    {"1m61s", 121000, "2m1s"},
    {"1s1s", 2000, "2s"},
    {"", -1, NULL},
    {"5", -1, NULL},
    {"-5s", -1, NULL},
    {"+5s", -1, NULL},
    {"5 s", -1, NULL},
    {"5s ", -1, NULL},
    {"s", -1, NULL},
    {".s", -1, NULL},
    {"5d", -1, NULL},
    {"5m0", -1, NULL},
    {"99999999999999999999h", -1, NULL},
    {"9999999h", -1, NULL},
};

START_TEST(test_row)
{
    int64_t ms = -1;
    int rc = duration_parse_ms(rows[_i].text, &ms);
    ck_assert_msg(rc == (rows[_i].ms < 0 ? -1 : 0), "%s: %d", rows[_i].text, rc);
    ck_assert_msg(ms == rows[_i].ms, "%s: %lld", rows[_i].text, (long long)ms);
    if (rc < 0)
        return;
    struct buf out = {0};
    duration_print_ms(ms, &out);
    ck_assert_msg(str_equal(buf_cstr(&out), rows[_i].printed), "%s: %s", rows[_i].text,
                  buf_cstr(&out));
    buf_fini(&out);
}
END_TEST

SUITE(duration)
{
    LOOP("rows", test_row, 0, ARRAY_LEN(rows));
}
