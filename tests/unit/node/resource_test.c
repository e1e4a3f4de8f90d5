#include "node/resource.h"

#include "apiserver/base/json.h"
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
    int rc = resource_parse_milli(quantities[_i].text, &milli);
    ck_assert_msg(rc == (quantities[_i].milli < 0 ? -1 : 0), "\"%s\"", quantities[_i].text);
    ck_assert_msg(milli == quantities[_i].milli, "\"%s\": %lld", quantities[_i].text,
                  (long long)milli);
}
END_TEST

static const struct {
    const char *resources, *limits; /* NULL = nothing is limited */
} containers[] = {
    {"{}", NULL},
    {"{\"limits\":{\"memory\":\"64Mi\"}}", "{\"memory\":{\"limit\":67108864}}"},
    {"{\"limits\":{\"cpu\":\"250m\"}}",
     "{\"cpu\":{\"shares\":256,\"period\":100000,\"quota\":25000}}"},
    {"{\"limits\":{\"cpu\":2},\"requests\":{\"cpu\":\"1m\"}}",
     "{\"cpu\":{\"shares\":2,\"period\":100000,\"quota\":200000}}"},
    {"{\"limits\":{\"cpu\":\"1m\"}}", "{\"cpu\":{\"shares\":2,\"period\":100000,\"quota\":1000}}"},
    {"{\"requests\":{\"cpu\":\"1000000\"}}", "{\"cpu\":{\"shares\":262144}}"},
    {"{\"requests\":{\"memory\":\"1Gi\"}}", NULL},
};

START_TEST(test_limits)
{
    SCOPED(json_free_p) cJSON *container = json_object();
    cJSON *resources = NULL;
    ck_assert_int_eq(json_parse_str(containers[_i].resources, &resources, NULL), 0);
    json_add(container, "resources", resources);
    SCOPED(json_free_p) cJSON *limits = resource_limits(container);
    if (!containers[_i].limits) {
        ck_assert_ptr_null(limits);
        return;
    }
    ck_assert_ptr_nonnull(limits);
    SCOPED_FREE char *text = json_to_str(limits);
    ck_assert_str_eq(text, containers[_i].limits);
}
END_TEST

SUITE(resource)
{
    LOOP("quantities", test_quantity, 0, ARRAY_LEN(quantities));
    LOOP("limits", test_limits, 0, ARRAY_LEN(containers));
}
