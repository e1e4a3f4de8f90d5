/* Unit tests of base/str: numbers, UTF-8, pairs. */
#include "apiserver/base/str.h"

#include "tests/lib/suite.h"

static const struct {
    const char *text;
    int rc;
    int64_t value;
} signed_rows[] = {
    {"0", 0, 0},
    {"-0", 0, 0},
    {"+5", 0, 5},
    {"007", 0, 7},
    {"9223372036854775807", 0, INT64_MAX},
    {"-9223372036854775808", 0, INT64_MIN},
    {"9223372036854775808", -1, 0},
    {"-9223372036854775809", -1, 0},
    {"99999999999999999999999", -1, 0},
    {"", -1, 0},
    {"-", -1, 0},
    {"+", -1, 0},
    {"--1", -1, 0},
    {" 1", -1, 0},
    {"1 ", -1, 0},
    {"0x1", -1, 0},
    {"1.0", -1, 0},
    {"1e3", -1, 0},
};
START_TEST(to_i64)
{
    int64_t v = 77;
    ck_assert_msg(str_to_i64(signed_rows[_i].text, &v) == signed_rows[_i].rc, "\"%s\"",
                  signed_rows[_i].text);
    ck_assert_int_eq(v, signed_rows[_i].rc == 0 ? signed_rows[_i].value : 77);
}
END_TEST

START_TEST(to_u64)
{
    uint64_t v = 77;
    ck_assert_int_eq(str_to_u64("18446744073709551616", &v), -1);
    ck_assert_int_eq(str_to_u64("-1", &v), -1);
    ck_assert_int_eq(str_to_u64("+1", &v), -1);
    ck_assert_int_eq(str_to_u64("", &v), -1);
    ck_assert_uint_eq(v, 77);
    ck_assert_int_eq(str_to_u64("18446744073709551615", &v), 0);
    ck_assert_uint_eq(v, UINT64_MAX);
}
END_TEST

START_TEST(to_bool)
{
    bool v = false;
    ck_assert(str_to_bool("True", &v) == 0 && v);
    ck_assert(str_to_bool("0", &v) == 0 && !v);
    ck_assert(str_to_bool("t", &v) == 0 && v);
    ck_assert(str_to_bool("FALSE", &v) == 0 && !v);
    ck_assert_int_eq(str_to_bool("tRUE", &v), -1);
    ck_assert_int_eq(str_to_bool("", &v), -1);
    ck_assert_int_eq(str_to_bool("yes", &v), -1);
}
END_TEST

START_TEST(comparing)
{
    const char *names[] = {"b", "a", "ab", "\xc3\xa9", "A"};
    ck_assert(str_eq(STR("abc"), "abc") && !str_eq(STR("abc"), "ab") && !str_eq(STR("ab"), "abc"));
    ck_assert(str_eq((struct str){0}, ""));
    ck_assert(str_has_prefix("abc", "ab") && str_has_prefix("abc", "") &&
              !str_has_prefix("a", "ab"));
    ck_assert(str_has_suffix("abc", "bc") && str_has_suffix("abc", "") &&
              !str_has_suffix("c", "bc"));
    ck_assert(str_equal(NULL, NULL) && !str_equal("", NULL) && !str_equal(NULL, "") &&
              str_equal("a", "a"));
    qsort(names, ARRAY_LEN(names), sizeof names[0], str_cmp_ptr);
    ck_assert_str_eq(names[0], "A");
    ck_assert_str_eq(names[4], "\xc3\xa9");
}
END_TEST

static const struct {
    const char *bytes;
    size_t len;
    uint32_t rune;
} utf8_rows[] = {
    {"a", 1, 'a'},
    {"\x7f", 1, 0x7f},
    {"\xc2\x80", 2, 0x80},
    {"\xdf\xbf", 2, 0x7ff},
    {"\xe0\xa0\x80", 3, 0x800},
    {"\xed\x9f\xbf", 3, 0xd7ff},
    {"\xee\x80\x80", 3, 0xe000},
    {"\xef\xbf\xbf", 3, 0xffff},
    {"\xf0\x90\x80\x80", 4, 0x10000},
    {"\xf4\x8f\xbf\xbf", 4, 0x10ffff},
    {"\x80", 0, 0},     /* continuation alone */
    {"\xc0\x81", 0, 0}, /* overlong */
    {"\xc1\xbf", 0, 0},
    {"\xe0\x9f\xbf", 0, 0},
    {"\xf0\x8f\xbf\xbf", 0, 0},
    {"\xed\xa0\x80", 0, 0},     /* surrogate */
    {"\xf4\x90\x80\x80", 0, 0}, /* beyond U+10FFFF */
    {"\xf5\x80\x80\x80", 0, 0},
    {"\xff", 0, 0},
    {"\xe2\x82", 0, 0}, /* cut off */
    {"\xe2\x28\xa1", 0, 0},
    {"", 0, 0},
};
START_TEST(utf8)
{
    uint32_t rune = 0;
    char back[4];
    const char *s = utf8_rows[_i].bytes;
    size_t n = str_utf8_decode(s, strlen(s), &rune);
    ck_assert_msg(n == utf8_rows[_i].len && rune == utf8_rows[_i].rune, "row %d: %zu U+%04X", _i, n,
                  rune);
    if (n) {
        ck_assert_uint_eq(str_utf8_encode(rune, back), n);
        ck_assert_mem_eq(back, s, n);
    }
}
END_TEST

/* The one overlong sequence that is read: what NUL is held as. */
START_TEST(held_nul)
{
    uint32_t rune = 7;
    SCOPED_FREE char *held = str_hold("a\0b", 3);
    ck_assert_str_eq(held, "a" STR_NUL "b");
    ck_assert_uint_eq(str_utf8_decode(held + 1, 3, &rune), 2);
    ck_assert_uint_eq(rune, 0);
    ck_assert_uint_eq(str_utf8_decode(STR_NUL, 1, &rune), 0);
    ck_assert_uint_eq(str_utf8_count(held), 3);
}
END_TEST

START_TEST(pairs)
{
    SCOPED(pairs_fini) struct pairs p = {0};
    pairs_add(&p, "Accept", "a");
    pairs_add(&p, "accept", "b");
    pairs_add(&p, "Host", "h");
    ck_assert_str_eq(pairs_get(&p, "accept"), "b");
    ck_assert_str_eq(pairs_get_ci(&p, "ACCEPT"), "a");
    ck_assert_ptr_null(pairs_get(&p, "HOST"));
    pairs_remove_ci(&p, "ACCEPT");
    ck_assert_uint_eq(p.n, 1);
    ck_assert_str_eq(p.v[0].name, "Host");
    pairs_remove_ci(&p, "nothing");
    pairs_remove_ci(&p, "host");
    ck_assert_uint_eq(p.n, 0);
    pairs_fini(NULL);
}
END_TEST

/* Removing and adding in every number must keep the room that adding relies on. */
START_TEST(pairs_grow_after_removing)
{
    for (int n = 0; n < 40; n++) {
        SCOPED(pairs_fini) struct pairs p = {0};
        for (int i = 0; i < n; i++)
            pairs_add(&p, i % 2 ? "odd" : "even", "x");
        pairs_remove_ci(&p, "odd");
        for (int i = 0; i < 40; i++)
            pairs_add(&p, "more", "y");
        ck_assert_uint_eq(p.n, (size_t)(n + 1) / 2 + 40);
        ck_assert_str_eq(p.v[p.n - 1].value, "y");
    }
}
END_TEST

START_TEST(pairs_remove_by_prefix)
{
    SCOPED(pairs_fini) struct pairs p = {0};
    pairs_add(&p, "X-Remote-User", "a");
    pairs_add(&p, "Host", "h");
    pairs_add(&p, "x-remote-", "b");
    pairs_add(&p, "X-Remote", "c");
    pairs_remove_prefix_ci(&p, "");
    ck_assert_uint_eq(p.n, 4);
    pairs_remove_prefix_ci(&p, "x-REMOTE-");
    ck_assert_uint_eq(p.n, 2);
    ck_assert_str_eq(p.v[0].name, "Host");
    ck_assert_str_eq(p.v[1].name, "X-Remote");
}
END_TEST

START_TEST(lists)
{
    static const char *const two[] = {"a", "b", NULL};
    char **list = NULL;
    ck_assert(!strv_has(list, "a"));
    strv_add(&list, xstrdup("a"));
    strv_add(&list, xstrdup("b"));
    char **copy = strv_copy(two), **empty = strv_copy(NULL);
    ck_assert(strv_has(list, "b") && strv_has(copy, "a") && !strv_has(copy, "c"));
    ck_assert_ptr_null(copy[2]);
    ck_assert_ptr_null(empty[0]);
    strv_free(list);
    strv_free(copy);
    strv_free(empty);
    strv_free(NULL);
}
END_TEST

START_TEST(small_tools)
{
    char text[] = "AbZ\xc3\x89[";
    str_lower(text);
    ck_assert_str_eq(text, "abz\xc3\x89[");
    ck_assert_int_eq(str_hex_digit('9'), 9);
    ck_assert_int_eq(str_hex_digit('a'), 10);
    ck_assert_int_eq(str_hex_digit('F'), 15);
    for (const char *c = "/:@Gg`\xff"; *c; c++)
        ck_assert_int_eq(str_hex_digit(*c), -1);
    ck_assert_uint_eq(str_utf8_count("a\xc3\xa9\xe2\x82\xac"), 3);
    ck_assert_uint_eq(str_utf8_cut("a\xc3\xa9", 3, 3), 3);
    ck_assert_uint_eq(str_utf8_cut("a\xc3\xa9", 3, 2), 1);
}
END_TEST

SUITE(str)
{
    LOOP("to_i64", to_i64, 0, ARRAY_LEN(signed_rows));
    LOOP("utf8", utf8, 0, ARRAY_LEN(utf8_rows));
    TESTS("str", to_u64, to_bool, comparing, held_nul, pairs, pairs_grow_after_removing,
          pairs_remove_by_prefix, lists, small_tools);
}
