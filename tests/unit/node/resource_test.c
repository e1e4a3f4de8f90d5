#include "node/resource.h"

#include "apiserver/base/json.h"
#include "tests/lib/suite.h"

static const struct {
    const char *resources, *limits; /* NULL = nothing is limited */
} containers[] = {
    {"{}", NULL},
    {"{\"limits\":{\"memory\":\"64Mi\"}}", "{\"memory\":{\"limit\":67108864}}"},
    {"{\"limits\":{\"memory\":\"1m\"}}", "{\"memory\":{\"limit\":1}}"}, /* 0 would be none */
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
    LOOP("limits", test_limits, 0, ARRAY_LEN(containers));
}
