/* Values in the words of Go's fmt, patterns and list keys: the small tools of validation. */
#include "openapi/goprint.h"

#include "apiserver/base/json.h"
#include "openapi/listtype.h"
#include "openapi/pattern.h"
#include "openapi/walk.h"
#include "tests/lib/suite.h"

static const struct {
    const char *json, *value, *bad_value, *type; /* %v, the value of a field error, %T */
} rows[] = {
    {"1", "1", "1", "int64"},
    {"-9223372036854775808", "-9223372036854775808", "-9223372036854775808", "int64"},
    {"9223372036854775808", "9.223372036854776e+18", "9.223372036854776e+18", "float64"},
    {"2.0", "2", "2", "float64"},
    {"1e2", "100", "100", "float64"},
    {"1000000.0", "1e+06", "1e+06", "float64"},
    {"3e9", "3e+09", "3e+09", "float64"},
    {"123456789.5", "1.234567895e+08", "1.234567895e+08", "float64"},
    {"0.0001", "0.0001", "0.0001", "float64"},
    {"0.00001", "1e-05", "1e-05", "float64"},
    {"0.1", "0.1", "0.1", "float64"},
    {"true", "true", "true", "bool"},
    {"null", "<nil>", "null", "<nil>"},
    {"\"a\\\"b\"", "a\"b", "\"a\\\"b\"", "string"},
    {"[1,\"a\",null]", "[1 a <nil>]", "[1,\"a\",null]", "[]interface {}"},
    {"{\"b\":1,\"a\":{}}", "map[a:map[] b:1]", "{\"a\":{},\"b\":1}", "map[string]interface {}"},
    {"[\"<>&\"]", "[<>&]", "[\"\\u003c\\u003e\\u0026\"]", "[]interface {}"},
};

START_TEST(test_values)
{
    SCOPED(json_free_p) cJSON *tree = NULL;
    SCOPED(buf_fini) struct buf value = {0}, bad_value = {0};
    ck_assert_int_eq(json_parse_str(rows[_i].json, &tree, NULL), 0);
    goprint_value(tree, &value);
    goprint_bad_value(tree, &bad_value);
    ck_assert_str_eq(buf_cstr(&value), rows[_i].value);
    ck_assert_str_eq(buf_cstr(&bad_value), rows[_i].bad_value);
    ck_assert_str_eq(goprint_type(tree), rows[_i].type);
}
END_TEST

START_TEST(test_quoted)
{
    SCOPED(buf_fini) struct buf out = {0};
    goprint_quoted("\a\b\t\n\v\f\r\\\x01\x7f\xc3\xa9\xe2\x80\xa8", &out);
    ck_assert_str_eq(buf_cstr(&out), "\"\\a\\b\\t\\n\\v\\f\\r\\\\\\x01\\x7f\xc3\xa9\\u2028\"");
}
END_TEST

START_TEST(test_patterns)
{
    ck_assert(pattern_matches("^a+$", "aa"));
    ck_assert(!pattern_matches("^a+$", "aa\n")); /* as in Go, no newline before the end */
    ck_assert(pattern_matches("b", "abc"));      /* not anchored by itself */
    ck_assert(pattern_matches("^.$", "\xc3\xa9"));
    ck_assert(pattern_is_valid("^a+$"));
    ck_assert(!pattern_is_valid("(a"));
    ck_assert(!pattern_matches("(a", "a"));
    ck_assert(pattern_matches(PATTERN_QUANTITY, "1.5Gi"));
    ck_assert(!pattern_matches(PATTERN_QUANTITY, "1.5gi"));
}
END_TEST

/* A pattern that backtracks without end is stopped, and counts as no match. */
START_TEST(test_pattern_limits)
{
    SCOPED(buf_fini) struct buf text = {0};
    for (int i = 0; i < 5000; i++)
        buf_putc(&text, 'a');
    buf_putc(&text, 'b');
    ck_assert(!pattern_matches("^(a+)+$", buf_cstr(&text)));
}
END_TEST

START_TEST(test_path)
{
    SCOPED(buf_fini) struct buf out = {0};
    const struct walk_path a = {.name = "spec"}, b = {.up = &a, .name = "list"},
                           c = {.up = &b, .index = 2}, d = {.up = &c, .name = "a.b/c"};
    walk_path_print(&d, &out);
    ck_assert_str_eq(buf_cstr(&out), "spec.list[2].a.b/c");
    buf_clear(&out);
    walk_path_print(NULL, &out);
    ck_assert_str_eq(buf_cstr(&out), "");
}
END_TEST

START_TEST(test_list_keys)
{
    const char *const keys[] = {"containerPort", "protocol", NULL};
    const struct field ports = {
        .name = "ports", .type = F_LIST, .item = F_OBJECT, .list = LIST_MAP, .keys = keys};
    SCOPED(json_free_p) cJSON *item = json_object();
    SCOPED(buf_fini) struct buf key = {0};
    json_set_str(item, "protocol", "TCP");
    listtype_key_print(item, &ports, &key);
    ck_assert_str_eq(buf_cstr(&key), "{\"protocol\":\"TCP\"}");
    ck_assert(!listtype_has_keys(item, &ports));
    json_set_int(item, "containerPort", 80);
    ck_assert(listtype_has_keys(item, &ports));
    buf_clear(&key);
    listtype_key_print(item, &ports, &key);
    ck_assert_str_eq(buf_cstr(&key), "{\"containerPort\":80,\"protocol\":\"TCP\"}");
    json_set(item, "containerPort", json_object());
    ck_assert(!listtype_has_keys(item, &ports));
}
END_TEST

SUITE(goprint)
{
    LOOP("values", test_values, 0, ARRAY_LEN(rows));
    TESTS("other", test_quoted, test_patterns, test_pattern_limits, test_path, test_list_keys);
}
