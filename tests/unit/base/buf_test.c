/* Unit tests of base/buf: growth, the ceiling, and what is written into buffers. */
#include "apiserver/base/buf.h"

#include <inttypes.h>

#include "tests/lib/suite.h"

START_TEST(empty)
{
    SCOPED(buf_fini) struct buf b = {0};
    ck_assert_str_eq(buf_cstr(&b), "");
    ck_assert_uint_eq(buf_str(&b).n, 0);
    size_t n = 9;
    SCOPED_FREE char *taken = buf_take(&b, &n);
    ck_assert_str_eq(taken, "");
    ck_assert_uint_eq(n, 0);
    buf_clear(&b);
    buf_append(&b, NULL, 0);
    ck_assert_str_eq(buf_cstr(&b), "");
    buf_fini(NULL);
}
END_TEST

START_TEST(appending)
{
    SCOPED(buf_fini) struct buf b = {0};
    for (int i = 0; i < 1000; i++) {
        buf_puts(&b, "ab");
        buf_putc(&b, 'c');
        buf_printf(&b, "%d", i % 10);
        buf_append(&b, "\0", 1);
        ck_assert_uint_eq(b.len, (size_t)(i + 1) * 5);
        ck_assert_int_eq(b.data[b.len], 0);
    }
    ck_assert_mem_eq(b.data + 5, "abc1\0", 5);
    size_t n;
    SCOPED_FREE char *taken = buf_take(&b, &n);
    ck_assert_uint_eq(n, 5000);
    ck_assert_ptr_null(b.data);
}
END_TEST

/* What does not fit is dropped whole, and so is everything after it. */
START_TEST(ceiling)
{
    SCOPED(buf_fini) struct buf b = {.max = 10};
    buf_puts(&b, "12345678");
    ck_assert(!buf_failed(&b));
    buf_puts(&b, "abc");
    ck_assert(buf_failed(&b));
    buf_putc(&b, 'x');
    buf_printf(&b, "%d", 1);
    buf_json_string(&b, "", 0);
    buf_base64(&b, "abc", 3);
    ck_assert_str_eq(buf_cstr(&b), "12345678");
    buf_clear(&b);
    ck_assert(!buf_failed(&b));
    buf_puts(&b, "1234567890");
    ck_assert(!buf_failed(&b));
    buf_putc(&b, 'x');
    ck_assert(buf_failed(&b));
}
END_TEST

/* Whether what is printed fits into the room there is or not. */
START_TEST(printing)
{
    for (int n = 1; n < 300; n++) {
        SCOPED(buf_fini) struct buf b = {.max = 600};
        buf_puts(&b, "begin ");
        buf_printf(&b, "%0*d", n, 7);
        ck_assert_uint_eq(b.len, 6 + (size_t)n);
        ck_assert_uint_eq(strspn(b.data + 6, "0"), (size_t)n - 1);
        ck_assert_str_eq(b.data + b.len - 1, "7");
        buf_printf(&b, "%0*d", 600 - n - 6, 8);
        ck_assert(!buf_failed(&b) && b.len == 600 && strlen(b.data) == 600);
        buf_printf(&b, "%d", 9);
        ck_assert(buf_failed(&b) && b.len == 600 && strlen(b.data) == 600);
    }
    SCOPED(buf_fini) struct buf small = {.max = 10};
    buf_puts(&small, "12345678");
    buf_printf(&small, "%s", "abc"); /* into room that it may not have */
    ck_assert(buf_failed(&small));
    ck_assert_str_eq(buf_cstr(&small), "12345678");
}
END_TEST

static const struct {
    const char *in, *out;
} json_rows[] = {
    {"", "\"\""},
    {"plain <b>&'", "\"plain <b>&'\""},
    {"\"\\/", "\"\\\"\\\\/\""},
    {"\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\""},
    {"\x01\x1f\x7f", "\"\\u0001\\u001f\x7f\""},
    {"\xc3\xa9\xf0\x9f\x98\x80", "\"\xc3\xa9\xf0\x9f\x98\x80\""},
    {"\xe2\x80\xa8|\xe2\x80\xa9|\xe2\x80\xaa", "\"\\u2028|\\u2029|\xe2\x80\xaa\""},
    {"a\xff\xc3z", "\"a\\ufffd\\ufffdz\""},
};
START_TEST(decimals)
{
    static const int64_t numbers[] = {0, 1, -1, 9, 10, -10, 1234567890, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        SCOPED(buf_fini) struct buf got = {0}, want = {0};
        buf_i64(&got, numbers[i]);
        buf_printf(&want, "%" PRId64, numbers[i]);
        ck_assert_str_eq(buf_cstr(&got), buf_cstr(&want));
    }
}
END_TEST

START_TEST(json_string)
{
    SCOPED(buf_fini) struct buf b = {0};
    buf_json_string(&b, json_rows[_i].in, strlen(json_rows[_i].in));
    ck_assert_str_eq(buf_cstr(&b), json_rows[_i].out);
}
END_TEST

START_TEST(json_string_with_nul)
{
    SCOPED(buf_fini) struct buf b = {0};
    buf_json_string(&b, "a\0b", 3);
    ck_assert_str_eq(buf_cstr(&b), "\"a\\u0000b\"");
}
END_TEST

static const struct {
    const char *in, *out;
} base64_rows[] = {
    {"", ""},
    {"f", "Zg=="},
    {"fo", "Zm8="},
    {"foo", "Zm9v"},
    {"foob", "Zm9vYg=="},
    {"fooba", "Zm9vYmE="},
    {"foobar", "Zm9vYmFy"},
    {"\xff\xfe\xfb", "//77"},
};
START_TEST(base64)
{
    SCOPED(buf_fini) struct buf b = {0};
    const char *in = base64_rows[_i].in, *out = base64_rows[_i].out;
    buf_base64(&b, in, strlen(in));
    ck_assert_str_eq(buf_cstr(&b), out);
    buf_clear(&b);
    ck_assert(buf_unbase64(&b, out, strlen(out)));
    ck_assert_str_eq(buf_cstr(&b), in);
}
END_TEST

static const char *const not_base64[] = {
    "Z",        "Zg",   "Zg=",  "Zg===", "====",  "=",   "Z===",     "Zm9v=",
    "Zg==Zg==", "Zm-v", "Zm_v", "Zm 9v", "Zg==x", "Zm9", "Zg=\n=Z=", "\xc3\xa9==",
};
START_TEST(bad_base64)
{
    SCOPED(buf_fini) struct buf b = {0};
    buf_puts(&b, "x");
    ck_assert_msg(!buf_unbase64(&b, not_base64[_i], strlen(not_base64[_i])), "%s", not_base64[_i]);
    ck_assert_str_eq(buf_cstr(&b), "x");
}
END_TEST

START_TEST(base64_may_have_line_ends)
{
    SCOPED(buf_fini) struct buf b = {0};
    ck_assert(buf_unbase64(&b, "Zm9v\r\nYg\n==\n", 12));
    ck_assert_str_eq(buf_cstr(&b), "foob");
}
END_TEST

START_TEST(go_quote)
{
    SCOPED(buf_fini) struct buf b = {0};
    buf_go_quote(&b, "a\"\\\n\x01\xc3\xa9\xff\xe2\x80\xa8", 11);
    ck_assert_str_eq(buf_cstr(&b), "\"a\\\"\\\\\\n\\x01\xc3\xa9\\xff\\u2028\"");
}
END_TEST

START_TEST(base64url)
{
    SCOPED(buf_fini) struct buf text = {0}, bytes = {0};
    size_t good = 0;
    buf_base64url(&text, "\xfb\xff\xfe\xff", 4);
    ck_assert_str_eq(buf_cstr(&text), "-__-_w");
    ck_assert(buf_unbase64url(&bytes, "-__-_w", 6, &good));
    ck_assert_uint_eq(good, 6);
    ck_assert_mem_eq(bytes.data, "\xfb\xff\xfe\xff", 4);
    ck_assert(buf_unbase64url(&bytes, "", 0, &good));
    for (const char *c = "+/=* "; *c; c++) {
        char bad[] = {'Y', 'W', 'J', *c};
        ck_assert(!buf_unbase64url(&bytes, bad, 4, &good));
        ck_assert_uint_eq(good, 3);
    }
    ck_assert(!buf_unbase64url(&bytes, "YWJjZ", 5, &good)); /* a digit that says nothing */
    ck_assert_uint_eq(good, 4);
    ck_assert_uint_eq(bytes.len, 4);
}
END_TEST

/* Memory goes round, clean, and no more of it than was said is kept. */
START_TEST(handing_round)
{
    struct buf spare = {0}, a, b;
    buf_borrow(&a, &spare);
    ck_assert_ptr_null(a.data);
    a.max = 10;
    buf_puts(&a, "0123456789");
    buf_putc(&a, 'x');
    ck_assert(buf_failed(&a));
    const char *memory = a.data;
    buf_give_back(&a, &spare, 100);
    ck_assert_ptr_null(a.data);
    ck_assert_ptr_eq(spare.data, memory);
    buf_borrow(&b, &spare);
    ck_assert_ptr_null(spare.data);
    ck_assert_ptr_eq(b.data, memory);
    buf_puts(&b, "0123456789abc");
    ck_assert(!buf_failed(&b));
    ck_assert_str_eq(buf_cstr(&b), "0123456789abc");
    buf_puts(&a, "another");
    buf_give_back(&a, &spare, 100);
    memory = spare.data;
    buf_give_back(&b, &spare, 100); /* there is one */
    ck_assert_ptr_eq(spare.data, memory);
    buf_borrow(&b, &spare);
    buf_give_back(&b, &spare, 5); /* too much */
    ck_assert_ptr_null(b.data);
    ck_assert_ptr_null(spare.data);
}
END_TEST

SUITE(buf)
{
    TESTS("buf", empty, appending, ceiling, printing, decimals, json_string_with_nul,
          base64_may_have_line_ends, base64url, go_quote, handing_round);
    LOOP("json_string", json_string, 0, ARRAY_LEN(json_rows));
    LOOP("base64", base64, 0, ARRAY_LEN(base64_rows));
    LOOP("bad_base64", bad_base64, 0, ARRAY_LEN(not_base64));
}
