#include "apiserver/base/quantity.h"

#include "tests/lib/suite.h"

static const struct {
    const char *text;
    int64_t milli; /* -1 = refused */
} quantities[] = {
    {"0", 0},
    {"1", 1000},
    {"+1", 1000},
    {"100m", 100},
    {"1.5", 1500},
    {".5", 500},
    {"0.0001", 1},
    {"1n", 1},
    {"64Mi", 67108864000},
    {"1.5Gi", 1610612736000},
    {"1k", 1000000},
    {"8Pi", INT64_MAX < 8 * 1000 * (1LL << 50) ? INT64_MAX : 8 * 1000 * (1LL << 50)},
    {"9223372036854775807", INT64_MAX},
    {"", -1},
    {"-1", -1},
    {"1.2.3", -1},
    {"1 Gi", -1},
    {"1gi", -1},
    {".", -1},
    {"99999999999999999999999999999999999999999", -1},
};

START_TEST(test_quantity)
{
    int64_t milli = -1;
    int rc = quantity_parse_milli(quantities[_i].text, &milli);
    ck_assert_msg(rc == (quantities[_i].milli < 0 ? -1 : 0), "\"%s\"", quantities[_i].text);
    ck_assert_msg(milli == quantities[_i].milli, "\"%s\": %lld", quantities[_i].text,
                  (long long)milli);
}
END_TEST

SUITE(quantity)
{
    LOOP("quantities", test_quantity, 0, ARRAY_LEN(quantities));
}
