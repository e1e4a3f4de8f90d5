/* Unit tests of base/yaml: what scalars mean, structure, anchors and their allowance, errors with
 * lines, and that what is printed reads back as what it was. */
#include "apiserver/base/yaml.h"

#include <time.h>

#include "tests/lib/suite.h"

static cJSON *parse(const char *text)
{
    cJSON *tree = NULL;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_msg(yaml_parse(text, strlen(text), NULL, &tree, &err) == 0, "%s: %s", text,
                  err_text(&err));
    return tree;
}

static const struct {
    const char *in, *out;
} good[] = {
    {"", "null"},
    {"# nothing\n", "null"},
    {"---\n...\n", "null"},
    {"~", "null"},
    {"Null", "null"},
    {"nUll", "\"nUll\""},
    {"[y, Y, yes, Yes, YES, true, True, TRUE, on, On, ON]",
     "[true,true,true,true,true,true,true,true,true,true,true]"},
    {"[n, N, no, No, NO, false, False, FALSE, off, Off, OFF]",
     "[false,false,false,false,false,false,false,false,false,false,false]"},
    {"[yEs, oN, tRUE]", "[\"yEs\",\"oN\",\"tRUE\"]"},
    {"['yes', \"true\", '5', \"\", '~']", "[\"yes\",\"true\",\"5\",\"\",\"~\"]"},
    {"[0, -0, +5, 1_000, 0x1F, 0X1f, 017, 0o17, 0b101, -0x10]", "[0,0,5,1000,31,31,15,15,5,-16]"},
    {"[9223372036854775807, 9223372036854775808, 18446744073709551615, -9223372036854775808]",
     "[9223372036854775807,9223372036854775808,18446744073709551615,-9223372036854775808]"},
    {"[18446744073709551616, -9223372036854775809]", "[18446744073709552000,-9223372036854776000]"},
    {"[08, 1., .5, -.5, 1.50, 2.0, 1e3, 1e+2, 1E-7, 1e21]",
     "[8,1,0.5,-0.5,1.5,2,1000,100,1e-7,1e+21]"},
    {"[-, +, ., 1e, 0x, 0b2, 0o8, 0xG, 1e999, 1.2.3, _1, .5_0, -.e1]",
     "[\"-\",\"+\",\".\",\"1e\",\"0x\",\"0b2\",\"0o8\",\"0xG\",\"1e999\",\"1.2.3\",\"_1\",\".5_0\","
     "\"-.e1\"]"},
    {"[2001-01-01, 2001-12-14t21:59:43.10-05:00, 12:30:45]",
     "[\"2001-01-01\",\"2001-12-14t21:59:43.10-05:00\",\"12:30:45\"]"},
    {"[!!str 5, !!int \"5\", !!float 5, !!bool \"yes\", !!null '', !!binary aGVsbG8=, ! 5]",
     "[\"5\",5,5,true,null,\"hello\",\"5\"]"},
    {"[!foo 5, !!timestamp 2001-01-01, !foo [x], !!set {x: y}, !!map x]",
     "[\"5\",\"2001-01-01\",[\"x\"],{\"x\":true},\"x\"]"},
    {"!!map {a: !!seq [1]}", "{\"a\":[1]}"},
    {"a: 1\nb:\n  - x\n  - k: z\n    w: v\nc:\n- d\n",
     "{\"a\":1,\"b\":[\"x\",{\"k\":\"z\",\"w\":\"v\"}],\"c\":[\"d\"]}"},
    {"1: a\ntrue: b\n1.50: c\nnull: d\n'2': e\n",
     "{\"1\":\"a\",\"true\":\"b\",\"1.5\":\"c\",\"null\":\"d\",\"2\":\"e\"}"},
    {"y: 1", "{\"true\":1}"},
    {"a: |\n  x\n   y\n\n  z\nb: >\n  x\n  y\n\n  z\nc: |-\n  x\nd: |+\n  x\n\n",
     "{\"a\":\"x\\n y\\n\\nz\\n\",\"b\":\"x y\\nz\\n\",\"c\":\"x\",\"d\":\"x\\n\\n\"}"},
    {"\"a\\tb\\x41\\u00e9\\U0001F600\\\n  c\"", "\"a\\tbA\xc3\xa9\xf0\x9f\x98\x80"
                                                "c\""},
    {"a: &x {b: 1}\nc: *x\nd: [*x, *x]",
     "{\"a\":{\"b\":1},\"c\":{\"b\":1},\"d\":[{\"b\":1},{\"b\":1}]}"},
    {"&k a: 1\nb: *k\n", "{\"a\":1,\"b\":\"a\"}"},
    {"[&x 1, *x, &x 2, *x]", "[1,1,2,2]"},
    {"'<<': 1\nv: <<", "{\"<<\":1,\"v\":\"<<\"}"},
    {"a: &x {p: 1, q: 2}\nb:\n  <<: *x\n  r: 3\n",
     "{\"a\":{\"p\":1,\"q\":2},\"b\":{\"p\":1,\"q\":2,\"r\":3}}"},
    {"{<<: [{p: 1}, {q: 2}], <<: {}, r: {<<: {<<: {s: 4}}}, t: [{<<: []}]}",
     "{\"q\":2,\"p\":1,\"r\":{\"s\":4},\"t\":[{}]}"},
    {"? a\n: b\n? c\n", "{\"a\":\"b\",\"c\":null}"},
    {"{\"a\":[1,{\"b\":\"\\ud83d\\ude00\"}],\"c\":2.0,\"d\":1e2,\"e\":-0.0}",
     "{\"a\":[1,{\"b\":\"\xf0\x9f\x98\x80\"}],\"c\":2,\"d\":100,\"e\":0}"},
    {"\t{\"a\":\n\t1}\n", "{\"a\":1}"},
    {"{\"a\":1, b: [x, 'y']}", "{\"a\":1,\"b\":[\"x\",\"y\"]}"},
    {"%YAML 1.1\n---\na: 1\n", "{\"a\":1}"},
    {"\xef\xbb\xbf"
     "a: 1\nb: 2\n",
     "{\"a\":1,\"b\":2}"},
    {"a: 1\n...\n---\n", "{\"a\":1}"},
    {"a: b#c\nd: e:f\n", "{\"a\":\"b#c\",\"d\":\"e:f\"}"},
    {"a: \"b\\0\"", "{\"a\":\"b\\u0000\"}"},
    {"!!binary AAA=", "\"\\u0000\\u0000\""},
};
START_TEST(reads)
{
    cJSON *tree = NULL;
    SCOPED(err_fini) struct err err = {0};
    int r = yaml_parse(good[_i].in, strlen(good[_i].in), NULL, &tree, &err);
    ck_assert_msg(r == 0, "%s: %s", good[_i].in, err_text(&err));
    SCOPED_FREE char *out = json_to_str(tree);
    json_free(tree);
    ck_assert_str_eq(out, good[_i].out);
}
END_TEST

/* The texts and lines that a kube-apiserver answers, where it has been recorded; else Go's
 * rules. */
static const struct {
    const char *in, *text;
} bad[] = {
    {"apiVersion: [", "yaml: line 1: did not find expected node content"},
    {"apiVersion: a\n\tkind: b\n", "yaml: line 2: found a tab character that violates indentation"},
    {"a: b: c", "yaml: mapping values are not allowed in this context"},
    {"a: 1\nb: c: d", "yaml: line 2: mapping values are not allowed in this context"},
    {"\xff", "yaml: invalid leading UTF-8 octet"},
    {"a: \x01", "yaml: control characters are not allowed"},
    {"a: .inf", "json: unsupported value: +Inf"},
    {"a: -.INF", "json: unsupported value: -Inf"},
    {"a: .nan", "json: unsupported value: NaN"},
    {"{<<: x}", "yaml: map merge requires map or sequence of maps as the value"},
    {"{<<: [{}, x]}", "yaml: map merge requires map or sequence of maps as the value"},
    {"<<: {a: 1}\na: 2\nb:\n  c: 1\n  <<: {c: 2}",
     "yaml: unmarshal errors:\n  line 2: key \"a\" already set in map\n  line 5: key \"c\" already "
     "set in map"},
    {"a: &x [*x]", "yaml: anchor 'x' value contains itself"},
    {"a: *x", "yaml: unknown anchor 'x' referenced"},
    {"[a]: b", "yaml: line 1: invalid map key"},
    {".inf: a", "json: unsupported value: +Inf"},
    {"x: &k [a]\n*k : b", "yaml: line 2: invalid map key"},
    {"!!int abc", "yaml: cannot decode !!str `abc` as a !!int"},
    {"!!int 1.5", "yaml: cannot decode !!float `1.5` as a !!int"},
    {"!!bool 1", "yaml: cannot decode !!int `1` as a !!bool"},
    {"!!binary a", "yaml: !!binary value contains invalid base64 data"},
    {"!!binary wIA=", "yaml: line 1: !!binary value is no UTF-8 text"},
    {"!!binary /w==", "yaml: line 1: !!binary value is no UTF-8 text"},
    {"a: 1\n---\nb: 2\n", "yaml: only one document is expected"},
    {"a: 1\na: 2\nb: {c: 1, c: 2}", "yaml: unmarshal errors:\n  line 2: key \"a\" already set in "
                                    "map\n  line 3: key \"c\" already set in map"},
    {"{\"service\":1,\"service\":2}",
     "yaml: unmarshal errors:\n  line 1: key \"service\" already set in map"},
    {"1: a\n1: b", "yaml: unmarshal errors:\n  line 2: key 1 already set in map"},
};
START_TEST(refuses)
{
    cJSON *tree = NULL;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_msg(yaml_parse(bad[_i].in, strlen(bad[_i].in), NULL, &tree, &err) == -ERR_BAD_REQUEST,
                  "%s", bad[_i].in);
    ck_assert_str_eq(err_text(&err), bad[_i].text);
    ck_assert_ptr_null(tree);
}
END_TEST

START_TEST(keeps_last_duplicate)
{
    SCOPED(pairs_fini) struct pairs repeated = {0};
    const struct json_opts opts = {.flags = JSON_KEEP_LAST_DUPLICATE, .duplicates = &repeated};
    static const char text[] = "a: &x {p: 1}\nb: *x\nm:\n  name: x\n  name: z\na:\n- 1\nc: *x\n";
    SCOPED(json_free_p) cJSON *tree = NULL;
    ck_assert_int_eq(yaml_parse(text, strlen(text), &opts, &tree, NULL), 0);
    SCOPED_FREE char *out = json_to_str(tree);
    ck_assert_str_eq(out, "{\"a\":[1],\"b\":{\"p\":1},\"m\":{\"name\":\"z\"},\"c\":{\"p\":1}}");
    ck_assert_uint_eq(repeated.n, 2);
    ck_assert_str_eq(repeated.v[0].name, "line 5: key \"name\" already set in map");
    ck_assert_str_eq(repeated.v[1].name, "line 7: key \"a\" already set in map");
}
END_TEST

START_TEST(replaces_bad_utf8)
{
    const struct json_opts opts = {.flags = JSON_REPLACE_BAD_UTF8};
    SCOPED(json_free_p) cJSON *tree = NULL;
    ck_assert_int_eq(yaml_parse("!!binary Yf8=", 13, &opts, &tree, NULL), 0);
    ck_assert_str_eq(tree->valuestring, "a\xef\xbf\xbd");
}
END_TEST

START_TEST(reads_only_the_given_bytes)
{
    SCOPED(json_free_p) cJSON *tree = NULL;
    ck_assert_int_eq(yaml_parse("12345", 3, NULL, &tree, NULL), 0);
    ck_assert_int_eq(tree->valueint, 123);
    cJSON *none = NULL;
    ck_assert_int_eq(yaml_parse(NULL, 0, NULL, &none, NULL), 0);
    json_free(none);
}
END_TEST

START_TEST(first_document)
{
    static const char text[] = "a: 1\n---\nb: [\n";
    SCOPED(json_free_p) cJSON *tree = NULL;
    const struct json_opts opts = {.flags = YAML_FIRST_DOCUMENT};
    cJSON *none = NULL;
    ck_assert_int_eq(yaml_parse(text, strlen(text), &opts, &tree, NULL), 0);
    SCOPED_FREE char *out = json_to_str(tree);
    ck_assert_str_eq(out, "{\"a\":1}");
    ck_assert_int_eq(yaml_parse("a: 1\n---\nb: 2\n", 15, NULL, &none, NULL), -ERR_BAD_REQUEST);
}
END_TEST

/* ---- limits ---- */

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void expect_too_large(const struct buf *text)
{
    SCOPED(err_fini) struct err err = {0};
    cJSON *tree = NULL;
    double start = seconds();
    ck_assert_int_eq(yaml_parse(text->data, text->len, NULL, &tree, &err), -ERR_TOO_LARGE);
    ck_assert_msg(seconds() - start < 20, "%.1f s", seconds() - start);
}

/* Every level holds the one before ten times. */
START_TEST(alias_expansion_is_bounded)
{
    SCOPED(buf_fini) struct buf text = {0};
    buf_puts(&text, "a0: &a0 [x]\n");
    for (int i = 1; i < 12; i++) {
        buf_printf(&text, "a%d: &a%d [", i, i);
        for (int k = 0; k < 10; k++)
            buf_printf(&text, "*a%d,", i - 1);
        buf_puts(&text, "]\n");
    }
    expect_too_large(&text);
}
END_TEST

/* An anchor of a Pod template, in all of a long list; and a short text that would grow large. */
START_TEST(copies_are_paid_for_with_text)
{
    SCOPED(buf_fini) struct buf text = {0};
    SCOPED(json_free_p) cJSON *tree = NULL;
    buf_puts(&text, "x: &x [");
    for (int i = 0; i < 99; i++)
        buf_puts(&text, "a long word,");
    buf_puts(&text, "]\nall:\n");
    for (int i = 0; i < 100; i++)
        buf_puts(&text, "- *x\n");
    ck_assert_int_eq(yaml_parse(text.data, text.len, NULL, &tree, NULL), 0);
    ck_assert_int_eq(json_len(json_at(tree, "all")), 100);
    for (int i = 0; i < 4000; i++)
        buf_puts(&text, "- *x\n");
    expect_too_large(&text);
}
END_TEST

START_TEST(alias_bytes_are_bounded)
{
    SCOPED(buf_fini) struct buf text = {0};
    buf_puts(&text, "a: &a ");
    for (int i = 0; i < 100000; i++)
        buf_puts(&text, "0123456789");
    buf_puts(&text, "x\nb:\n");
    for (int i = 0; i < 100; i++)
        buf_puts(&text, "- *a\n");
    expect_too_large(&text);
}
END_TEST

/* Anchors within anchors are copied once for each level. */
START_TEST(nested_anchors_are_bounded)
{
    SCOPED(buf_fini) struct buf text = {0};
    for (int i = 0; i < 900; i++)
        buf_printf(&text, "&a%d [", i);
    for (int i = 0; i < 5000; i++)
        buf_puts(&text, "x,");
    for (int i = 0; i < 900; i++)
        buf_puts(&text, "]");
    expect_too_large(&text);
}
END_TEST

START_TEST(depth_is_bounded)
{
    SCOPED(buf_fini) struct buf text = {0};
    SCOPED(err_fini) struct err err = {0};
    cJSON *tree = NULL;
    for (int i = 0; i < YAML_DEPTH_MAX + 1; i++)
        buf_puts(&text, "- ");
    buf_puts(&text, "x\n");
    ck_assert_int_eq(yaml_parse(text.data + 2, text.len - 2, NULL, &tree, &err), 0);
    json_free(tree);
    ck_assert_int_eq(yaml_parse(text.data, text.len, NULL, &tree, &err), -ERR_BAD_REQUEST);
    ck_assert_str_eq(err_text(&err), "yaml: exceeded max depth of 1000");
    const struct json_opts two = {.max_depth = 2, .max_nodes = 3};
    ck_assert_int_eq(yaml_parse("[[[x]]]", 7, &two, &tree, &err), -ERR_BAD_REQUEST);
    ck_assert_int_eq(yaml_parse("[x,[x,x]]", 9, &two, &tree, &err), -ERR_TOO_LARGE);
}
END_TEST

/* Deep and long at once is where libyaml is slowest. */
START_TEST(deep_and_long)
{
    SCOPED(buf_fini) struct buf text = {0};
    cJSON *tree = NULL;
    for (int i = 0; i < 998; i++)
        buf_puts(&text, "[");
    for (int i = 0; i < 300000; i++)
        buf_puts(&text, "[],");
    double start = seconds();
    ck_assert_int_eq(yaml_parse(text.data, text.len, NULL, &tree, NULL), -ERR_BAD_REQUEST);
    ck_assert_msg(seconds() - start < 20, "%.1f s", seconds() - start);
}
END_TEST

/* ---- printing ---- */

START_TEST(prints_as_kubectl_does)
{
    static const char text[] = "apiVersion: v1\n"
                               "empty: {}\n"
                               "items: []\n"
                               "metadata:\n"
                               "  annotations:\n"
                               "    \"\": \"\"\n"
                               "    \"n\": \"5\"\n"
                               "    script: |\n"
                               "      #!/bin/sh\n"
                               "\n"
                               "        exit 1\n"
                               "    tail: |+\n"
                               "      x\n"
                               "\n"
                               "  name: 'it''s: a'\n"
                               "spec:\n"
                               "- - a\n"
                               "  - b: 1\n"
                               "    c:\n"
                               "    - |-\n"
                               "      two\n"
                               "      lines\n"
                               "- d: true\n"
                               "  e: null\n"
                               "- 1.5\n";
    SCOPED(json_free_p) cJSON *tree = NULL;
    SCOPED(buf_fini) struct buf out = {0};
    ck_assert_int_eq(yaml_parse(text, strlen(text), NULL, &tree, NULL), 0);
    yaml_print(tree, &out);
    ck_assert_str_eq(out.data, text);
}
END_TEST

/* Strings that are hard to print, as values, in lists, as keys and alone. */
static const char *const strings[] = {
    "",
    " ",
    "a",
    " a",
    "a ",
    "\n",
    "\n\n",
    "a\n",
    "a\n\n",
    "a\nb",
    "\na",
    " a\nb",
    "a\n b",
    "a\n\n\n b\n",
    "a \nb ",
    "a\n  ",
    "a\n  \n",
    "\ta",
    "a\tb",
    "\ta\nb",
    "a\n\tb",
    "a\rb",
    "a\r\nb\n",
    "-",
    "- a",
    "-a",
    "--",
    "---",
    "--- a",
    "...",
    "...a",
    "?",
    "? a",
    "?a",
    ":",
    ": a",
    ":a",
    "a:",
    "a: b",
    "a:b",
    "#",
    "#a",
    "a#",
    "a #b",
    "a\n#b",
    "[",
    "]",
    "{",
    "}",
    "a]",
    ",",
    "a,b",
    "&a",
    "*a",
    "!a",
    "|",
    "|a",
    ">",
    ">-",
    "'",
    "''",
    "it's",
    "\"",
    "\"a\"",
    "a\"b",
    "%a",
    "@a",
    "`a",
    "~",
    "=",
    "<<",
    "<",
    "null",
    "Null",
    "true",
    "yes",
    "y",
    "n",
    "on",
    "off",
    "no",
    "1",
    "-1",
    "+1",
    "1.0",
    "1e3",
    "0x1f",
    "0o7",
    "017",
    "1_000",
    "_1",
    ".5",
    ".inf",
    ".nan",
    "-.inf",
    "1e999",
    "2001-01-01",
    "12:30:45",
    "\\",
    "a\\n",
    "\x01",
    "\x7f",
    "\x1b[0m",
    "\xc2\x85",
    ("a\xc2\x85"
     "b"),
    "\xc2\xa0",
    "\xe2\x80\xa8",
    "a\xe2\x80\xa9\n",
    "\xef\xbb\xbf",
    "a\xef\xbb\xbf",
    "\xef\xbf\xbe",
    "\xef\xbf\xbd",
    "\xc3\xa9",
    "\xf0\x9f\x98\x80\n\xf0\x9f\x98\x80",
    "a\n---\nb\n",
    "---\na\n",
    "a\n...\n",
    "key: |\n  x\n",
    "{{ x }}",
    "a: b\nc: d\n",
    "\xe2\x82\xac uro",
    "a\v\f",
};
START_TEST(string_reads_back)
{
    const char *s = strings[_i];
    SCOPED(json_free_p) cJSON *alone = json_string(s), *tree = json_object(), *again = NULL;
    SCOPED(buf_fini) struct buf out = {0};
    SCOPED(err_fini) struct err err = {0};
    json_set_str(tree, s, s);
    cJSON *list = json_array(), *inner = json_array();
    json_push(inner, json_string(s));
    json_push(inner, json_string("after"));
    json_push(list, json_copy(tree));
    json_push(list, json_string(s));
    json_push(list, inner);
    json_set(tree, "list", list);
    json_set_str(json_ensure_object(json_ensure_object(tree, "deep"), "er"), "x", s);
    yaml_print(tree, &out);
    ck_assert_msg(yaml_parse(out.data, out.len, NULL, &again, &err) == 0, "%s\n%s", err_text(&err),
                  out.data);
    ck_assert_msg(json_equal(tree, again), "%s", out.data);
    json_free(again);
    buf_clear(&out);
    yaml_print(alone, &out);
    ck_assert_msg(yaml_parse(out.data, out.len, NULL, &again, &err) == 0, "%s", out.data);
    ck_assert_msg(json_equal(alone, again), "%s", out.data);
}
END_TEST

START_TEST(long_keys_read_back)
{
    SCOPED(json_free_p) cJSON *tree = json_object(), *again = NULL;
    SCOPED(buf_fini) struct buf key = {0}, out = {0};
    for (int i = 0; i < 3000; i++)
        buf_putc(&key, (char)('a' + i % 26));
    cJSON *list = json_array();
    json_push(list, json_string("x"));
    json_set(json_ensure_object(tree, "m"), key.data, list);
    json_set(json_ensure_object(tree, "n"), key.data, json_copy(tree));
    json_set_str(json_ensure_object(tree, "o"), key.data, "a\nb");
    yaml_print(tree, &out);
    ck_assert_int_eq(yaml_parse(out.data, out.len, NULL, &again, NULL), 0);
    ck_assert(json_equal(tree, again));
}
END_TEST

#define ALMOST "0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 012345678901"
#define ALMOST_EIGHTY ALMOST " "

/* At the first blank behind the 80th column that has no blank beside it; one column further in than
 * the member. The first text is recorded. */
START_TEST(folds_long_lines)
{
    static const char text[] =
        "message: 'only the following media types are accepted: application/json;stream=watch,\n"
        "  application/vnd.kubernetes.protobuf;stream=watch'\n"
        "list:\n"
        "- " ALMOST_EIGHTY "a\n"
        "  b c\n"
        "- \"\\t" ALMOST "\n"
        "  a  b\"\n"
        "plain: " ALMOST_EIGHTY "  x\n"
        "  y\n";
    SCOPED(json_free_p) cJSON *tree = json_object(), *again = NULL;
    SCOPED(buf_fini) struct buf out = {0};
    cJSON *list = json_array();
    json_set_str(tree, "message",
                 "only the following media types are accepted: application/json;stream=watch, "
                 "application/vnd.kubernetes.protobuf;stream=watch");
    json_push(list, json_string(ALMOST_EIGHTY "a b c"));
    json_push(list, json_string("\t" ALMOST_EIGHTY "a  b"));
    json_set(tree, "list", list);
    json_set_str(tree, "plain", ALMOST_EIGHTY "  x y");
    yaml_print(tree, &out);
    ck_assert_str_eq(buf_cstr(&out), text);
    ck_assert_int_eq(yaml_parse(out.data, out.len, NULL, &again, NULL), 0);
    ck_assert(json_equal(tree, again));
}
END_TEST

/* So deep that a line begins behind the 80th column: each may hold a word alone, and blanks stay.
 */
START_TEST(folds_at_each_blank_where_lines_begin_behind_the_width)
{
    SCOPED(json_free_p) cJSON *tree = json_string("\ta  b   c d"), *again = NULL;
    SCOPED(buf_fini) struct buf out = {0}, expected = {0};
    for (int depth = 0; depth < 45; depth++) {
        cJSON *list = json_array();
        json_push(list, tree);
        tree = list;
        buf_puts(&expected, "- ");
    }
    buf_printf(&expected, "\"\\ta\n%90s\\ b\n%90s\\  c\n%90sd\"\n", "", "", "");
    yaml_print(tree, &out);
    ck_assert_str_eq(buf_cstr(&out), buf_cstr(&expected));
    ck_assert_int_eq(yaml_parse(out.data, out.len, NULL, &again, NULL), 0);
    ck_assert(json_equal(tree, again));
}
END_TEST

/* Most clients send JSON as an apply patch, and YAML 1.1 knows neither these escapes nor these
 * characters. */
START_TEST(reads_json_as_json)
{
    static const char *const rows[][2] = {
        {"\"\\ud83d\\ude00\"", "😀"},
        {"\"a\\/b\"", "a/b"},
        {"\"a\x7f\"", "a\x7f"},
        {"\"a\xc2\x81\"", "a\xc2\x81"},
        {" \"a \u2028 b\"", "a \u2028 b"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        SCOPED(json_free_p) cJSON *alone = parse(rows[i][0]), *list = NULL;
        SCOPED(buf_fini) struct buf text = {0};
        ck_assert_str_eq(alone->valuestring, rows[i][1]);
        buf_printf(&text, "[%s]", rows[i][0]);
        list = parse(buf_cstr(&text));
        ck_assert_str_eq(list->child->valuestring, rows[i][1]);
    }
}
END_TEST

START_TEST(prints_scalars_and_nothing)
{
    SCOPED(json_free_p) cJSON *tree = parse("[1, 9007199254740993, {}]");
    SCOPED(buf_fini) struct buf out = {0};
    yaml_print(tree, &out);
    ck_assert_str_eq(out.data, "- 1\n- 9007199254740993\n- {}\n");
    buf_clear(&out);
    yaml_print(NULL, &out);
    ck_assert_str_eq(out.data, "null\n");
    buf_clear(&out);
    yaml_print(tree->child, &out);
    ck_assert_str_eq(out.data, "1\n");
}
END_TEST

/* How strings look, as kube-apiserver prints them. */
static const struct {
    const char *text, *printed;
} looks[] = {
    {"<a", "<a"},
    {"=a", "=a"},
    {"?a", "?a"},
    {":a", ":a"},
    {"? a", "'? a'"},
    {":", "':'"},
    {"<<", "<<"},
    {"12:30", "\"12:30\""},
    {"190:20:30.5", "\"190:20:30.5\""},
    {"12:60", "12:60"},
    {"12:", "'12:'"},
    {"2026-13-01", "2026-13-01"},
    {"2026-02-30", "2026-02-30"},
    {"\x07\x1b", "\"\\a\\e\""},
    {"\xf0\x9f\x98\x80", "\"\\U0001F600\""},
    {"a \nb", "\"a \\nb\""},
    {"a\n\tb", "\"a\\n\\tb\""},
    {" a\nb", "|2-\n   a\n  b"},
    {"\na\n", "|2\n\n  a"},
};

START_TEST(prints_strings)
{
    SCOPED(json_free_p) cJSON *tree = json_string(looks[_i].text);
    SCOPED(buf_fini) struct buf out = {0};
    SCOPED_FREE char *line = xasprintf("%s\n", looks[_i].printed);
    yaml_print(tree, &out);
    ck_assert_str_eq(out.data, line);
}
END_TEST

/* YAML 1.1 has a type for times, so that they are quoted; what only resembles them is not. */
START_TEST(quotes_times)
{
    SCOPED(json_free_p)
    cJSON *tree = parse(
        "[\"2026-01-02T03:04:05Z\", \"2026-1-2\", \"2026-01-02 x\", \"2026-01\", \"12026-01-02\", "
        "\"2026-01-02x\", \"2026-012-02\"]");
    SCOPED(buf_fini) struct buf out = {0};
    yaml_print(tree, &out);
    ck_assert_str_eq(
        out.data,
        "- \"2026-01-02T03:04:05Z\"\n- \"2026-1-2\"\n- \"2026-01-02 x\"\n- 2026-01\n- 12026-01-02\n"
        "- 2026-01-02x\n- 2026-012-02\n");
}
END_TEST

SUITE(yaml)
{
    LOOP("reads", reads, 0, ARRAY_LEN(good));
    LOOP("refuses", refuses, 0, ARRAY_LEN(bad));
    TESTS("reading", keeps_last_duplicate, replaces_bad_utf8, reads_only_the_given_bytes,
          first_document);
    TESTS("limits", alias_expansion_is_bounded, copies_are_paid_for_with_text,
          alias_bytes_are_bounded, nested_anchors_are_bounded, depth_is_bounded, deep_and_long);
    TESTS("json", reads_json_as_json);
    TESTS("printing", prints_as_kubectl_does, folds_long_lines,
          folds_at_each_blank_where_lines_begin_behind_the_width, long_keys_read_back,
          prints_scalars_and_nothing, quotes_times);
    LOOP("strings", string_reads_back, 0, ARRAY_LEN(strings));
    LOOP("looks", prints_strings, 0, ARRAY_LEN(looks));
}
