/* The normal form of values: spellings that mean the same, and those that do not. */
#include "apiserver/base/json.h"
#include "apiserver/base/str.h"
#include "openapi/kinds.h"
#include "openapi/semantic.h"
#include "tests/lib/suite.h"

static cJSON *parse(const char *text)
{
    cJSON *tree;
    struct err err = {0};
    if (json_parse_str(text, &tree, &err) < 0)
        ck_abort_msg("%s: %s", err_text(&err), text);
    return tree;
}

static const struct {
    const char *text, *form;
} quantities[] = {
    {"1Gi", "1073741824e0"},
    {"1024Mi", "1073741824e0"},
    {"0.5Ki", "512e0"},
    {"1", "1e0"},
    {"1000m", "1e0"},
    {"0.1", "1e-1"},
    {"100m", "1e-1"},
    {"1k", "1e3"},
    {"1e3", "1e3"},
    {"1E3", "1e3"},
    {"1E", "1e18"},
    {"1e+3", "1e3"},
    {"12e-1", "12e-1"},
    {"-5Mi", "-524288e1"},
    {"+5", "5e0"},
    {"-0", "0e0"},
    {"000", "0e0"},
    {"8Ei", "9223372036854775808e0"},
    {"5.", "5e0"},
    {".5", "5e-1"},
    {"", ""},
    {".", "."},
    {"1Zi", "1Zi"},
    {"x", "x"},
    {"1e9999", "1e9999"},
    {"1E++5", "1E++5"},
    {"1e+-5", "1e+-5"},
    {"99999999999999999999999999999", "99999999999999999999999999999"},
};

START_TEST(test_quantity)
{
    struct buf out = {0};
    semantic_quantity(quantities[_i].text, &out);
    ck_assert_msg(str_equal(buf_cstr(&out), quantities[_i].form), "%s: %s", quantities[_i].text,
                  buf_cstr(&out));
    buf_fini(&out);
}
END_TEST

#define POD(container) "{\"containers\":[{\"name\":\"c\"" container "}]}"

static const struct {
    const char *what, *a, *b;
    bool equal;
} pods[] = {
    {"order of members", "{\"containers\":[],\"hostname\":\"h\",\"nodeName\":\"n\"}",
     "{\"nodeName\":\"n\",\"hostname\":\"h\"}", true},
    {"quantity", POD(",\"resources\":{\"limits\":{\"memory\":\"1Gi\",\"cpu\":1}}"),
     POD(",\"resources\":{\"limits\":{\"cpu\":\"1000m\",\"memory\":\"1024Mi\"}}"), true},
    {"other quantity", POD(",\"resources\":{\"limits\":{\"memory\":\"1Gi\"}}"),
     POD(",\"resources\":{\"limits\":{\"memory\":\"1G\"}}"), false},
    {"empty list", POD(",\"env\":[]"), POD(""), true},
    {"empty map", "{\"nodeSelector\":{}}", "{}", true},
    {"null", "{\"hostname\":null}", "{}", true},
    {"empty resources", POD(",\"resources\":{}"), POD(""), true},
    {"resources with an empty map", POD(",\"resources\":{\"limits\":{}}"), POD(""), true},
    {"empty pointer", POD(",\"securityContext\":{}"), POD(""), false},
    {"false where false is absent", "{\"hostNetwork\":false}", "{}", true},
    {"false of three states", "{\"automountServiceAccountToken\":false}", "{}", false},
    {"zero where zero is absent", POD(",\"ports\":[{\"containerPort\":1,\"hostPort\":0}]"),
     POD(",\"ports\":[{\"containerPort\":1}]"), true},
    {"zero that counts", "{\"terminationGracePeriodSeconds\":0}", "{}", false},
    {"image", POD(",\"image\":\"a\""), POD(",\"image\":\"b\""), false},
    {"order of a list", POD(",\"args\":[\"a\",\"b\"]"), POD(",\"args\":[\"b\",\"a\"]"), false},
    {"unknown member", "{\"news\":[]}", "{}", false},
    {"size limit", "{\"volumes\":[{\"name\":\"v\",\"emptyDir\":{\"sizeLimit\":\"1Ki\"}}]}",
     "{\"volumes\":[{\"name\":\"v\",\"emptyDir\":{\"sizeLimit\":\"1024\"}}]}", true},
    {"emptyDir counts", "{\"volumes\":[{\"name\":\"v\",\"emptyDir\":{}}]}",
     "{\"volumes\":[{\"name\":\"v\"}]}", false},
};

START_TEST(test_pods)
{
    cJSON *a = parse(pods[_i].a), *b = parse(pods[_i].b);
    ck_assert_msg(semantic_equal(&shape_pod_spec, a, b) == pods[_i].equal, "%s", pods[_i].what);
    ck_assert_msg(semantic_equal(&shape_pod_spec, b, a) == pods[_i].equal, "%s", pods[_i].what);
    json_free(a);
    json_free(b);
}
END_TEST

START_TEST(test_times)
{
    static const struct field fields[] = {{.name = "at", .type = F_TIME, .doc = "t"}, {0}};
    static const struct shape shape = {.name = "T", .fields = fields, .doc = "t"};
    cJSON *a = parse("{\"at\":\"2026-01-01T02:00:00+02:00\"}");
    cJSON *b = parse("{\"at\":\"2026-01-01T00:00:00Z\"}"), *c = parse("{\"at\":\"soon\"}");
    ck_assert(semantic_equal(&shape, a, b));
    ck_assert(!semantic_equal(&shape, a, c));
    ck_assert(semantic_equal(&shape, NULL, NULL));
    ck_assert(!semantic_equal(&shape, NULL, b));
    json_free(a);
    json_free(b);
    json_free(c);
}
END_TEST

SUITE(semantic)
{
    LOOP("quantities", test_quantity, 0, ARRAY_LEN(quantities));
    LOOP("pods", test_pods, 0, ARRAY_LEN(pods));
    TESTS("times", test_times);
}
