/* Unit tests of base/json: what is read and what is refused with which words, exact numbers,
 * printing, order, equality, editing, and that nothing is quadratic or recursive. */
#include "apiserver/base/json.h"

#include <stdio.h>
#include <time.h>

#include "tests/lib/suite.h"

static cJSON *parse(const char *text)
{
    cJSON *tree = NULL;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_msg(json_parse_str(text, &tree, &err) == 0, "%s: %s", text, err_text(&err));
    return tree;
}

static char *repeat(const char *s, size_t times)
{
    struct buf b = {0};
    for (size_t i = 0; i < times; i++)
        buf_puts(&b, s);
    return buf_take(&b, NULL);
}

/* ---- reading ---- */

static const struct {
    const char *in, *out; /* out NULL: prints as it came */
} good[] = {
    {"null", NULL},
    {"true", NULL},
    {"false", NULL},
    {"\"\"", NULL},
    {"0", NULL},
    {"-1", NULL},
    {"-0", "0"},
    {"9007199254740992", NULL},
    {"9007199254740993", NULL},
    {"-9223372036854775808", NULL},
    {"18446744073709551616", NULL},
    {"1000000000000000", NULL},
    {"1e15", NULL},
    {"0.1", NULL},
    {"1.0", NULL},
    {"-0.0", NULL},
    {"3.141592653589793238462643383279", NULL},
    {"1E+2", NULL},
    {"1e-400", NULL},
    {"[]", NULL},
    {"{}", NULL},
    {" [ 1 , 2 ] ", "[1,2]"},
    {"\t{\r\n\"b\" : 1 , \"a\" : [ ] }\n", "{\"b\":1,\"a\":[]}"},
    {"{\"\":{\"\":[[],{},[{}]]}}", NULL},
    {"\"\\u0041\\/\\b\\f\\n\\r\\t\\\\\\\"\"", "\"A/\\b\\f\\n\\r\\t\\\\\\\"\""},
    {"\"\\ud83d\\uDE00\"", "\"\xf0\x9f\x98\x80\""},
    {"\"\\ue000\\uffff\"", "\"\xee\x80\x80\xef\xbf\xbf\""},
    {"\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\x7f\"", NULL},
    {"\"\\u2028\"", NULL},
    {"\"\\u001f\"", NULL},
    {"\"<>&\"", NULL},
    {"{\"\\u0000\":\"a\\u0000b\"}", NULL},
};
START_TEST(reads)
{
    SCOPED(json_free_p) cJSON *tree = parse(good[_i].in);
    SCOPED_FREE char *out = json_to_str(tree);
    ck_assert_str_eq(out, good[_i].out ? good[_i].out : good[_i].in);
    ck_assert_ptr_null(tree->next);
}
END_TEST

static const struct {
    const char *in, *text;
} bad[] = {
    {"", "unexpected end of JSON input"},
    {" \n", "unexpected end of JSON input"},
    {"{", "unexpected end of JSON input"},
    {"[", "unexpected end of JSON input"},
    {"[1,", "unexpected end of JSON input"},
    {"{\"a\"", "unexpected end of JSON input"},
    {"{\"a\":", "unexpected end of JSON input"},
    {"{\"a\":1,", "unexpected end of JSON input"},
    {"\"abc", "unexpected end of JSON input"},
    {"\"abc\\n", "unexpected end of JSON input"},
    {"hello", "invalid character 'h' looking for beginning of value"},
    {"'a'", "invalid character '\\'' looking for beginning of value"},
    {"\xef\xbb\xbf{}", "invalid character '\xc3\xaf' looking for beginning of value"},
    {"\x81", "invalid character '\\u0081' looking for beginning of value"},
    {"\xa0", "invalid character '\\u00a0' looking for beginning of value"},
    {"\x01", "invalid character '\\x01' looking for beginning of value"},
    {"\x7f", "invalid character '\\x7f' looking for beginning of value"},
    {"\v", "invalid character '\\v' looking for beginning of value"},
    {"\\", "invalid character '\\\\' looking for beginning of value"},
    {"+1", "invalid character '+' looking for beginning of value"},
    {".5", "invalid character '.' looking for beginning of value"},
    {"NaN", "invalid character 'N' looking for beginning of value"},
    {"[,]", "invalid character ',' looking for beginning of value"},
    {"[1,]", "invalid character ']' looking for beginning of value"},
    {"{\"a\":}", "invalid character '}' looking for beginning of value"},
    {"{\"a\":1,}", "invalid character '}' looking for beginning of object key string"},
    {"{,}", "invalid character ',' looking for beginning of object key string"},
    {"{a:1}", "invalid character 'a' looking for beginning of object key string"},
    {"{1:1}", "invalid character '1' looking for beginning of object key string"},
    {"{\"a\" 1}", "invalid character '1' after object key"},
    {"{\"a\"}", "invalid character '}' after object key"},
    {"{\"a\":1]", "invalid character ']' after object key:value pair"},
    {"{\"a\":1 \"b\":2}", "invalid character '\"' after object key:value pair"},
    {"[1}", "invalid character '}' after array element"},
    {"[1 2]", "invalid character '2' after array element"},
    {"1 x", "invalid character 'x' after top-level value"},
    {"{}{}", "invalid character '{' after top-level value"},
    {"01", "invalid character '1' after top-level value"},
    {"-01", "invalid character '1' after top-level value"},
    {"0x10", "invalid character 'x' after top-level value"},
    {"/* */ 1", "invalid character '/' looking for beginning of value"},
    {"\"a\nb\"", "invalid character '\\n' in string literal"},
    {"\"a\tb\"", "invalid character '\\t' in string literal"},
    {"\"\\x\"", "invalid character 'x' in string escape code"},
    {"\"\\'\"", "invalid character '\\'' in string escape code"},
    {"\"\\", "invalid character ' ' in string escape code"},
    {"\"\\u12g4\"", "invalid character 'g' in \\u hexadecimal character escape"},
    {"\"\\u12", "invalid character ' ' in \\u hexadecimal character escape"},
    {"txue", "invalid character 'x' in literal true (expecting 'r')"},
    {"tr", "invalid character ' ' in literal true (expecting 'u')"},
    {"falsy", "invalid character 'y' in literal false (expecting 'e')"},
    {"nil", "invalid character 'i' in literal null (expecting 'u')"},
    {"-", "invalid character ' ' in numeric literal"},
    {"-a", "invalid character 'a' in numeric literal"},
    {"1.", "invalid character ' ' after decimal point in numeric literal"},
    {"1.e1", "invalid character 'e' after decimal point in numeric literal"},
    {"1e", "invalid character ' ' in exponent of numeric literal"},
    {"1e+", "invalid character ' ' in exponent of numeric literal"},
    {"[1ex]", "invalid character 'x' in exponent of numeric literal"},
    {"1e999", "json: cannot unmarshal number 1e999 into Go value of type float64"},
    {"{\"a\":[-1e309]}", "json: cannot unmarshal number -1e309 into Go value of type float64"},
    {"[1e999,1", "unexpected end of JSON input"},
    {"[1e999,1e998]", "json: cannot unmarshal number 1e999 into Go value of type float64"},
    {"\"\\ud83d\"", "lone surrogate in string literal at offset 7"},
    {"\"\\ude00\"", "lone surrogate in string literal at offset 7"},
    {"\"\\ud83d\\ud83d\"", "lone surrogate in string literal at offset 7"},
    {"\"\xff\"", "invalid UTF-8 in string literal at offset 1"},
    {"\"\xed\xa0\x80\"", "invalid UTF-8 in string literal at offset 1"},
    {"\"\xc0\x80\"", "invalid UTF-8 in string literal at offset 1"},
    {"{\"a\":{\"b\":[1,{\"c\":1,\"d\":2,\"c\":3}]}}", "duplicate field \"a.b[1].c\""},
    {"[{\"a\":1,\"\\u0061\":2}]", "duplicate field \"[0].a\""},
    {"{\"a\":1,\"a\":2", "unexpected end of JSON input"},
};
START_TEST(refuses)
{
    cJSON *tree = NULL;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_msg(json_parse_str(bad[_i].in, &tree, &err) == -ERR_BAD_REQUEST, "%s", bad[_i].in);
    ck_assert_str_eq(err_text(&err), bad[_i].text);
    ck_assert_ptr_null(tree);
    ck_assert_int_eq(json_parse_str(bad[_i].in, &tree, NULL), -ERR_BAD_REQUEST);
}
END_TEST

START_TEST(reads_only_the_given_bytes)
{
    cJSON *tree = NULL;
    ck_assert_int_eq(json_parse("123", 2, NULL, &tree, NULL), 0);
    ck_assert_int_eq(tree->valueint, 12);
    json_free(tree);
    ck_assert_int_eq(json_parse("1\0", 2, NULL, &tree, NULL), -ERR_BAD_REQUEST);
    ck_assert_int_eq(json_parse("\"a\0b\"", 5, NULL, &tree, NULL), -ERR_BAD_REQUEST);
    ck_assert_int_eq(json_parse(NULL, 0, NULL, &tree, NULL), -ERR_BAD_REQUEST);
}
END_TEST

/* No prefix of a text may be read past its end: each is in memory of exactly its size. */
START_TEST(reads_no_prefix_too_far)
{
    static const char text[] = "{\"a\\n\\ud83d\\ude00\":[1.5e+3,true,null,-0,\"\xe2\x82\xac\"]}";
    for (size_t n = 0; n < sizeof text - 1; n++) {
        cJSON *tree = NULL;
        SCOPED_FREE char *copy = xmemdup(text, n);
        ck_assert_int_eq(json_parse(copy, n, NULL, &tree, NULL), -ERR_BAD_REQUEST);
    }
}
END_TEST

START_TEST(replaces_bad_utf8)
{
    const struct json_opts opts = {.flags = JSON_REPLACE_BAD_UTF8};
    static const char text[] =
        "[\"a\xff\xfe\",\"\\ud83d!\",\"\\ude00\\ud83d\\ude00\",\"\xe2\x82\",\"\\ud800\\u0041\"]";
    SCOPED(json_free_p) cJSON *tree = NULL;
    ck_assert_int_eq(json_parse(text, strlen(text), &opts, &tree, NULL), 0);
    SCOPED_FREE char *out = json_to_str(tree);
#define R "\xef\xbf\xbd"
    ck_assert_str_eq(out,
                     "[\"a" R R "\",\"" R "!\",\"" R "\xf0\x9f\x98\x80\",\"" R R "\",\"" R "A\"]");
}
END_TEST

START_TEST(keeps_last_duplicate)
{
    SCOPED(pairs_fini) struct pairs repeated = {0};
    const struct json_opts opts = {.flags = JSON_KEEP_LAST_DUPLICATE, .duplicates = &repeated};
    static const char text[] = "{\"a\":{\"x\":[1]},\"b\":{\"c\":1,\"c\":\"two\"},\"l\":[{\"k\":1,"
                               "\"k\":2,\"k\":3}],\"a\":3}";
    SCOPED(json_free_p) cJSON *tree = NULL;
    ck_assert_int_eq(json_parse(text, strlen(text), &opts, &tree, NULL), 0);
    SCOPED_FREE char *out = json_to_str(tree);
    ck_assert_str_eq(out, "{\"a\":3,\"b\":{\"c\":\"two\"},\"l\":[{\"k\":3}]}");
    ck_assert_uint_eq(repeated.n, 3);
    ck_assert_str_eq(repeated.v[0].name, "b.c");
    ck_assert_str_eq(repeated.v[1].name, "l[0].k");
    ck_assert_str_eq(repeated.v[2].name, "a");
}
END_TEST

START_TEST(reports_a_hundred_duplicates)
{
    SCOPED(pairs_fini) struct pairs repeated = {0};
    const struct json_opts opts = {.flags = JSON_KEEP_LAST_DUPLICATE, .duplicates = &repeated};
    SCOPED(buf_fini) struct buf text = {0};
    for (int i = 0; i < 600; i++)
        buf_printf(&text, "%s\"k%d\":%d", i ? "," : "{", i % 300, i);
    buf_puts(&text, "}");
    SCOPED(json_free_p) cJSON *tree = NULL;
    ck_assert_int_eq(json_parse(text.data, text.len, &opts, &tree, NULL), 0);
    ck_assert_uint_eq(repeated.n, 100);
    ck_assert_uint_eq(json_len(tree), 300);
    ck_assert_int_eq(json_i64_or(tree, "k7", 0), 307);
    ck_assert_int_eq(json_i64_or(tree, "k299", 0), 599);
}
END_TEST

START_TEST(depth)
{
    SCOPED_FREE char *open = repeat("[", JSON_DEPTH_MAX + 1),
                     *close = repeat("]", JSON_DEPTH_MAX + 1);
    SCOPED(buf_fini) struct buf text = {0};
    SCOPED(err_fini) struct err err = {0};
    SCOPED(json_free_p) cJSON *tree = NULL;
    buf_printf(&text, "%s%s", open + 1, close + 1);
    ck_assert_int_eq(json_parse(text.data, text.len, NULL, &tree, NULL), 0);
    SCOPED_FREE char *out = json_to_str(tree);
    ck_assert_str_eq(out, text.data);
    SCOPED(json_free_p) cJSON *copy = json_copy(tree);
    json_sort(copy);
    ck_assert(json_equal(tree, copy));
    cJSON *none = NULL;
    ck_assert_int_eq(json_parse(open, strlen(open), NULL, &none, &err), -ERR_BAD_REQUEST);
    ck_assert_str_eq(err_text(&err), "invalid character '[' exceeded max depth");
    const struct json_opts two = {.max_depth = 2};
    ck_assert_int_eq(json_parse("{\"a\":[{}]}", 10, &two, &none, &err), -ERR_BAD_REQUEST);
    ck_assert_str_eq(err_text(&err), "invalid character '{' exceeded max depth");
}
END_TEST

START_TEST(number_of_values_is_bounded)
{
    const struct json_opts opts = {.max_nodes = 5};
    cJSON *tree = NULL;
    ck_assert_int_eq(json_parse("[1,{\"a\":1},2]", 13, &opts, &tree, NULL), 0);
    json_free(tree);
    ck_assert_int_eq(json_parse("[1,{\"a\":1},2,3]", 15, &opts, &tree, NULL), -ERR_TOO_LARGE);
    ck_assert_int_eq(json_parse("[1,2,{\"a\":1,\"b\":1}]", 19, &opts, &tree, NULL), -ERR_TOO_LARGE);
}
END_TEST

/* ---- numbers ---- */

static const struct {
    const char *text;
    bool has_text, is_int, fits;
    int64_t value;
} numbers[] = {
    {"0", false, true, true, 0},
    {"-7", false, true, true, -7},
    {"9007199254740992", false, true, true, 9007199254740992},
    {"-9007199254740992", false, true, true, -9007199254740992},
    {"9007199254740993", true, true, true, 9007199254740993},
    {"9223372036854775807", true, true, true, INT64_MAX},
    {"-9223372036854775808", true, true, true, INT64_MIN},
    {"9223372036854775808", true, true, false, 0},
    {"100000000000000000000000", true, true, false, 0},
    {"2.0", true, false, true, 2},
    {"-2.50e1", true, false, true, -25},
    {"1e3", true, false, true, 1000},
    {"0.0", true, false, true, 0},
    {"0e999999999999999999999", true, false, true, 0},
    {"9.223372036854775807e18", true, false, true, INT64_MAX},
    {"9.223372036854775808e18", true, false, false, 0},
    {"2.5", true, false, false, 0},
    {"1e-1", true, false, false, 0},
    {"1e-99999999999999999999", true, false, false, 0},
    {"0.000000000000000000001e21", true, false, true, 1},
};
START_TEST(number)
{
    int64_t v = 77;
    SCOPED(json_free_p) cJSON *tree = parse(numbers[_i].text);
    ck_assert(cJSON_IsNumber(tree));
    ck_assert_msg((tree->valuestring != NULL) == numbers[_i].has_text, "%s", numbers[_i].text);
    ck_assert_msg(json_node_is_int(tree) == numbers[_i].is_int, "%s", numbers[_i].text);
    ck_assert_msg((json_node_i64(tree, &v) == 0) == numbers[_i].fits, "%s", numbers[_i].text);
    ck_assert_int_eq(v, numbers[_i].fits ? numbers[_i].value : 77);
}
END_TEST

/* What code built from doubles prints as the shortest text that reads back, in Go's form. */
static const struct {
    double value;
    const char *text;
} doubles[] = {
    {0.1, "0.1"},
    {-0.0, "0"},
    {1.0, "1"},
    {-2.5, "-2.5"},
    {100, "100"},
    {1e15, "1000000000000000"},
    {123456789012345680000.0, "123456789012345680000"},
    {1e20, "100000000000000000000"},
    {1e21, "1e+21"},
    {1.5e300, "1.5e+300"},
    {1e-6, "0.000001"},
    {1.25e-5, "0.0000125"},
    {1e-7, "1e-7"},
    {5e-324, "5e-324"},
    {1.7976931348623157e308, "1.7976931348623157e+308"},
    {0.30000000000000004, "0.30000000000000004"},
    {9007199254740994, "9007199254740994"},
};
START_TEST(double_prints)
{
    SCOPED(json_free_p) cJSON *node = json_int(0);
    node->valuedouble = doubles[_i].value;
    SCOPED_FREE char *out = json_to_str(node);
    ck_assert_str_eq(out, doubles[_i].text);
}
END_TEST

START_TEST(no_number_prints_null)
{
    SCOPED(json_free_p) cJSON *node = json_int(0);
    int64_t v;
    node->valuedouble = __builtin_nan("");
    SCOPED_FREE char *out = json_to_str(node);
    ck_assert_str_eq(out, "null");
    ck_assert(json_node_i64(node, &v) < 0 && !json_node_is_int(node));
}
END_TEST

START_TEST(ints_survive)
{
    static const int64_t rows[] = {0,
                                   1,
                                   -1,
                                   INT32_MAX,
                                   (int64_t)INT32_MAX + 1,
                                   9007199254740992,
                                   9007199254740993,
                                   -9007199254740993,
                                   INT64_MAX,
                                   INT64_MIN};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        int64_t v;
        SCOPED(json_free_p) cJSON *node = json_int(rows[i]);
        SCOPED_FREE char *text = json_to_str(node);
        SCOPED(json_free_p) cJSON *again = parse(text);
        ck_assert(json_node_i64(node, &v) == 0 && v == rows[i]);
        ck_assert(json_node_i64(again, &v) == 0 && v == rows[i]);
        ck_assert(json_equal(node, again) && json_node_is_int(node));
    }
}
END_TEST

/* ---- printing, order, equality, copies ---- */

START_TEST(floats_settle)
{
    SCOPED(json_free_p)
    cJSON *tree =
        parse("[1.0,{\"a\":1e2,\"b\":[1.50,9007199254740993]},99999999999999999999,\"2.0\"]");
    json_settle_floats(tree);
    SCOPED_FREE char *out = json_to_str(tree);
    ck_assert_str_eq(out,
                     "[1,{\"a\":100,\"b\":[1.5,9007199254740993]},100000000000000000000,\"2.0\"]");
}
END_TEST

START_TEST(pretty)
{
    SCOPED(json_free_p) cJSON *tree = parse("{\"a\":[1,{\"b\":null}],\"c\":{},\"d\":[]}");
    SCOPED(buf_fini) struct buf out = {0};
    json_print_pretty(tree, &out);
    ck_assert_str_eq(out.data, "{\n  \"a\": [\n    1,\n    {\n      \"b\": null\n    }\n  ],\n"
                               "  \"c\": {},\n  \"d\": []\n}");
}
END_TEST

/* A member prints alone, without what follows it in its object. */
START_TEST(part_of_a_tree)
{
    SCOPED(json_free_p) cJSON *tree = parse("{\"a\":[1,2],\"b\":3}");
    SCOPED_FREE char *a = json_to_str(json_get(tree, "a")), *none = json_to_str(NULL);
    SCOPED(json_free_p) cJSON *copy = json_copy(json_get(tree, "a"));
    ck_assert_str_eq(a, "[1,2]");
    ck_assert_str_eq(none, "null");
    ck_assert_ptr_null(copy->string);
    ck_assert_ptr_null(copy->next);
    ck_assert(json_equal(copy, json_get(tree, "a")));
    ck_assert_ptr_null(json_copy(NULL));
}
END_TEST

START_TEST(printing_stops_at_the_ceiling)
{
    SCOPED(json_free_p) cJSON *tree = parse("[\"aaaaaaaaaa\",\"bbbbbbbbbb\"]");
    SCOPED(buf_fini) struct buf out = {.max = 15};
    json_print(tree, &out);
    ck_assert(buf_failed(&out));
}
END_TEST

START_TEST(sorting)
{
    SCOPED(json_free_p)
    cJSON *tree = parse(
        "{\"b\":[{\"z\":1,\"y\":{\"d\":1,\"c\":2}},3],\"a\":1,\"B\":{},\"\xc3\xa9\":0,\"\":5}");
    json_sort(tree);
    SCOPED_FREE char *out = json_to_str(tree);
    ck_assert_str_eq(
        out,
        "{\"\":5,\"B\":{},\"a\":1,\"b\":[{\"y\":{\"c\":2,\"d\":1},\"z\":1},3],\"\xc3\xa9\":0}");
    json_push(json_get(tree, "b"), json_null());
    json_set_int(tree, "zz", 1);
    ck_assert_str_eq(tree->child->prev->string, "zz");
}
END_TEST

static const struct {
    const char *a, *b;
    bool equal;
} equalities[] = {
    {"1", "1.0", true},
    {"1", "10e-1", true},
    {"1", "2", false},
    {"0", "-0.0", true},
    {"0e5", "0.00", true},
    {"100", "1e2", true},
    {"0.1", "1e-1", true},
    {"0.1", "0.10000000000000000001", false},
    {"9007199254740993", "9007199254740992", false},
    {"9007199254740993", "9007199254740993.0", true},
    {"-1", "1", false},
    {"12.5", "1.25e1", true},
    {"1.205", "12.05e-1", true},
    {"105", "15", false},
    {"1", "\"1\"", false},
    {"true", "false", false},
    {"null", "false", false},
    {"[1,2]", "[2,1]", false},
    {"[1,2]", "[1,2,3]", false},
    {"[1,2,3]", "[1,2]", false},
    {"{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", true},
    {"{\"a\":1,\"b\":2}", "{\"a\":1}", false},
    {"{\"a\":1}", "{\"A\":1}", false},
    {"{\"a\":{\"x\":[{}]},\"b\":2}", "{\"b\":2,\"a\":{\"x\":[{}]}}", true},
    {"{\"a\":{\"x\":[{}]},\"b\":2}", "{\"b\":2,\"a\":{\"x\":[[]]}}", false},
    {"{}", "[]", false},
    {"\"a\"", "\"a\"", true},
    {"\"a\"", "\"b\"", false},
};
START_TEST(equality)
{
    SCOPED(json_free_p) cJSON *a = parse(equalities[_i].a), *b = parse(equalities[_i].b);
    ck_assert_msg(json_equal(a, b) == equalities[_i].equal, "%s %s", equalities[_i].a,
                  equalities[_i].b);
    ck_assert(json_equal(b, a) == equalities[_i].equal);
    ck_assert(json_equal(a, a) && !json_equal(a, NULL) && json_equal(NULL, NULL));
}
END_TEST

/* ---- access and editing ---- */

START_TEST(access)
{
    SCOPED(json_free_p)
    cJSON *tree =
        parse("{\"spec\":{\"name\":\"n\",\"on\":true,\"n\":5,\"big\":9007199254740993,\"f\":1.5,"
              "\"a.b\":1,\"nil\":null},\"list\":[1,2,3]}");
    ck_assert_str_eq(json_str(tree, "spec.name"), "n");
    ck_assert_ptr_null(json_str(tree, "spec.n"));
    ck_assert_ptr_null(json_str(tree, "spec.Name"));
    ck_assert_ptr_null(json_str(NULL, "a"));
    ck_assert_str_eq(json_str_or(tree, "spec.none", "x"), "x");
    ck_assert(json_bool_or(tree, "spec.on", false));
    ck_assert(json_bool_or(tree, "spec.name", true));
    ck_assert_int_eq(json_i64_or(tree, "spec.n", 0), 5);
    ck_assert_int_eq(json_i64_or(tree, "spec.big", 0), 9007199254740993);
    ck_assert_int_eq(json_i64_or(tree, "spec.f", 7), 7);
    ck_assert_int_eq(json_i64_or(tree, "spec.name", 7), 7);
    ck_assert_ptr_null(json_at(tree, "spec.a.b"));
    ck_assert_ptr_nonnull(json_get(json_get(tree, "spec"), "a.b"));
    ck_assert_ptr_null(json_at(tree, "spec.name.x"));
    ck_assert_ptr_null(json_at(tree, "list.0"));
    ck_assert_ptr_null(json_get(json_get(tree, "list"), "a"));
    ck_assert_uint_eq(json_len(json_get(tree, "list")), 3);
    ck_assert_uint_eq(json_len(json_get(tree, "spec")), 7);
    ck_assert_uint_eq(json_len(NULL), 0);
}
END_TEST

static void expect(const cJSON *tree, const char *text)
{
    SCOPED_FREE char *out = json_to_str(tree);
    ck_assert_str_eq(out, text);
    const cJSON *child, *last = NULL;
    cJSON_ArrayForEach(child, tree)
    {
        ck_assert(!last || child->prev == last);
        last = child;
    }
    if (last)
        ck_assert_ptr_eq(tree->child->prev, last);
}

START_TEST(building)
{
    SCOPED(json_free_p) cJSON *o = json_object();
    json_set_str(o, "a", "x");
    json_set_int(o, "b", INT64_MAX);
    json_set_bool(o, "c", true);
    expect(o, "{\"a\":\"x\",\"b\":9223372036854775807,\"c\":true}");
    json_set(o, "a", json_null());
    expect(o, "{\"a\":null,\"b\":9223372036854775807,\"c\":true}");
    json_set(o, "c", json_array());
    json_push(json_get(o, "c"), json_boolean(false));
    json_push(json_get(o, "c"), json_string("s"));
    expect(json_get(o, "c"), "[false,\"s\"]");
    json_set_int(o, "b", 1);
    expect(o, "{\"a\":null,\"b\":1,\"c\":[false,\"s\"]}");
    json_set(o, "b", json_get(o, "b"));
    expect(o, "{\"a\":null,\"b\":1,\"c\":[false,\"s\"]}");
    json_set_int(json_ensure_object(o, "d"), "e", 2);
    json_set_int(json_ensure_object(o, "d"), "f", 3);
    json_ensure_object(o, "a");
    json_set_at(o, "d.g.h", json_int(4));
    json_set_at(o, "d.e", json_int(5));
    expect(o, "{\"a\":{},\"b\":1,\"c\":[false,\"s\"],\"d\":{\"e\":5,\"f\":3,\"g\":{\"h\":4}}}");
}
END_TEST

START_TEST(removing)
{
    SCOPED(json_free_p) cJSON *o = parse("{\"a\":1,\"b\":2,\"c\":3,\"d\":4}");
    json_remove(o, "b");
    expect(o, "{\"a\":1,\"c\":3,\"d\":4}");
    json_remove(o, "d");
    expect(o, "{\"a\":1,\"c\":3}");
    json_set_int(o, "e", 5);
    json_remove(o, "none");
    expect(o, "{\"a\":1,\"c\":3,\"e\":5}");
    cJSON *a = json_detach(o, "a");
    expect(o, "{\"c\":3,\"e\":5}");
    json_set(o, "z", a);
    expect(o, "{\"c\":3,\"e\":5,\"z\":1}");
    json_remove(o, "c");
    json_remove(o, "e");
    json_remove(o, "z");
    expect(o, "{}");
    ck_assert_ptr_null(json_detach(o, "z"));
    SCOPED(json_free_p) cJSON *only = parse("{\"a\":{\"b\":1}}");
    json_set(only, "a", json_detach(json_get(only, "a"), "b"));
    expect(only, "{\"a\":1}");
}
END_TEST

/* cJSON's own functions work on our trees and ours on its trees. */
START_TEST(goes_with_cjson)
{
    SCOPED(json_free_p) cJSON *tree = parse("{\"a\":[1,2.5,\"x\",9007199254740993]}");
    cJSON *twin = cJSON_Duplicate(tree, true);
    ck_assert(json_equal(tree, twin));
    cJSON_Delete(twin);
    cJSON *made = cJSON_CreateObject();
    cJSON_AddItemToObjectCS(made, "const", cJSON_CreateNumber(1.5));
    cJSON_AddStringToObject(made, "s", "t");
    expect(made, "{\"const\":1.5,\"s\":\"t\"}");
    json_set(made, "const", json_int(2));
    json_push(json_get(tree, "a"), cJSON_CreateNumber(7));
    expect(json_get(tree, "a"), "[1,2.5,\"x\",9007199254740993,7]");
    json_free(made);
}
END_TEST

/* ---- cost ---- */

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* 200,000 members: with anything quadratic this takes minutes. */
START_TEST(large_objects)
{
    SCOPED(buf_fini) struct buf text = {0};
    for (unsigned i = 0; i < 200000; i++)
        buf_printf(&text, "%s\"key-%u\":%u", i ? "," : "{", i * 2654435761u, i);
    buf_puts(&text, "}");
    double start = seconds();
    SCOPED(json_free_p) cJSON *a = NULL;
    ck_assert_int_eq(json_parse(text.data, text.len, NULL, &a, NULL), 0);
    SCOPED(json_free_p) cJSON *b = json_copy(a);
    json_sort(b);
    ck_assert(json_equal(a, b));
    ck_assert_msg(seconds() - start < 20, "%.1f s", seconds() - start);
}
END_TEST

START_TEST(long_numbers)
{
    SCOPED_FREE char *nines = repeat("9", 1000000);
    SCOPED_FREE char *text = xasprintf("0.%s", nines);
    double start = seconds();
    SCOPED(json_free_p) cJSON *a = parse(text);
    SCOPED(json_free_p) cJSON *b = parse(text);
    ck_assert(json_equal(a, b));
    cJSON *none = NULL;
    ck_assert_int_eq(json_parse_str(nines, &none, NULL), -ERR_BAD_REQUEST);
    ck_assert_msg(seconds() - start < 5, "%.1f s", seconds() - start);
}
END_TEST

START_TEST(has_str)
{
    SCOPED(json_free_p) cJSON *list = NULL;
    ck_assert_int_eq(json_parse_str("[1,\"a\",null]", &list, NULL), 0);
    ck_assert(json_has_str(list, "a"));
    ck_assert(!json_has_str(list, "1"));
    ck_assert(!json_has_str(NULL, "a"));
}
END_TEST

START_TEST(remove_str)
{
    SCOPED(json_free_p) cJSON *list = NULL;
    ck_assert_int_eq(json_parse_str("[1,\"a\",\"b\",\"a\"]", &list, NULL), 0);
    ck_assert(json_remove_str(list, "a"));
    SCOPED_FREE char *text = json_to_str(list);
    ck_assert_str_eq(text, "[1,\"b\",\"a\"]");
    ck_assert(!json_remove_str(list, "1"));
    ck_assert(!json_remove_str(NULL, "a"));
}
END_TEST

SUITE(json)
{
    LOOP("reads", reads, 0, ARRAY_LEN(good));
    LOOP("refuses", refuses, 0, ARRAY_LEN(bad));
    TESTS("reading", reads_only_the_given_bytes, reads_no_prefix_too_far, replaces_bad_utf8,
          keeps_last_duplicate, reports_a_hundred_duplicates, depth, number_of_values_is_bounded);
    LOOP("numbers", number, 0, ARRAY_LEN(numbers));
    LOOP("doubles", double_prints, 0, ARRAY_LEN(doubles));
    TESTS("numbers", no_number_prints_null, ints_survive, floats_settle);
    TESTS("printing", pretty, part_of_a_tree, printing_stops_at_the_ceiling, sorting);
    LOOP("equality", equality, 0, ARRAY_LEN(equalities));
    TESTS("editing", access, building, removing, goes_with_cjson, has_str, remove_str);
    TESTS("cost", large_objects, long_numbers);
}
