#include "apiserver/base/url.h"

#include "apiserver/base/buf.h"
#include "tests/lib/suite.h"

static const struct {
    const char *text, *plain, *blank; /* plain: '+' stays; NULL = broken */
} escapes[] = {
    {"", "", ""},
    {"a+b%2F%c3%A4", "a+b/\xc3\xa4", "a b/\xc3\xa4"},
    {"a%00b", "a" STR_NUL "b", "a" STR_NUL "b"},
    {"%", NULL, NULL},
    {"%4", NULL, NULL},
    {"a%4gb", NULL, NULL},
};

START_TEST(test_escape)
{
    SCOPED_FREE char *plain = url_unescape(STR(escapes[_i].text), false);
    SCOPED_FREE char *blank = url_unescape(STR(escapes[_i].text), true);
    ck_assert_msg(str_equal(plain, escapes[_i].plain), "%s", escapes[_i].text);
    ck_assert_msg(str_equal(blank, escapes[_i].blank), "%s", escapes[_i].text);
}
END_TEST

static const struct {
    const char *query, *params; /* name=value; joined by ' ' */
} queries[] = {
    {"", ""},
    {"a=1", "a=1;"},
    {"a=1&b=2&a=3", "a=1;b=2;a=3;"},
    {"a", "a=;"},
    {"a=", "a=;"},
    {"&&a=1&", "a=1;"},
    {"a=b=c", "a=b=c;"},
    {"a=x+y%2Bz", "a=x y+z;"},
    {"a%20b=1", "a b=1;"},
    {"a=%zz&b=1", "b=1;"},
    {"%z=1&b=1", "b=1;"},
    {"limit=1;watch=true&b=1", "b=1;"},
    {"=1", "=1;"},
};

START_TEST(test_query)
{
    SCOPED(pairs_fini) struct pairs params = {0};
    SCOPED(buf_fini) struct buf got = {0};
    url_parse_query(queries[_i].query, &params);
    for (size_t i = 0; i < params.n; i++)
        buf_printf(&got, "%s=%s;", params.v[i].name, params.v[i].value);
    ck_assert_str_eq(buf_cstr(&got), queries[_i].params);
}
END_TEST

SUITE(url)
{
    LOOP("escape", test_escape, 0, ARRAY_LEN(escapes));
    LOOP("query", test_query, 0, ARRAY_LEN(queries));
}
