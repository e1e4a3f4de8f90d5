#include "node/head.h"

#include "apiserver/base/buf.h"
#include "apiserver/base/mem.h"
#include "tests/lib/suite.h"

static const struct {
    const char *text, *want; /* METHOD PATH query; headers; NULL = refused */
} rows[] = {
    {"GET / HTTP/1.1\r\n\r\n", "GET / "},
    {"POST /exec/a/b%2Fc?command=ls&command=-l&x=%20 HTTP/1.1\r\nHost: x\r\nA:  b c \t\r\n\r\n",
     "POST /exec/a/b/c command=ls;command=-l;x= ; Host=x; A=b c;"},
    {"GET / HTTP/1.1\r\nA: 1\r\nA:2\r\n\r\n", "GET /  A=1; A=2;"},
    {"GET / HTTP/1.1\nA: 1\r\n\r\n", NULL},
    {"GET / HTTP/2\r\n\r\n", NULL},
    {"GET /  HTTP/1.1\r\n\r\n", NULL},
    {"GET http://x/ HTTP/1.1\r\n\r\n", NULL},
    {"GET /%zz HTTP/1.1\r\n\r\n", NULL},
    {"G@T / HTTP/1.1\r\n\r\n", NULL},
    {"GET / HTTP/1.1\r\n folded\r\n\r\n", NULL},
    {"GET / HTTP/1.1\r\nA b: 1\r\n\r\n", NULL},
    {"GET / HTTP/1.1\r\nA: \x01\r\n\r\n", NULL},
    {"\r\n\r\n", NULL},
};

START_TEST(test_row)
{
    SCOPED(head_fini) struct head h = {0};
    const char *text = rows[_i].text;
    ck_assert_uint_eq(head_length(text, strlen(text)), strlen(text));
    ck_assert_uint_eq(head_length(text, strlen(text) - 1), 0);
    int rc = head_parse(text, strlen(text), &h, NULL);
    ck_assert_msg((rc == 0) == (rows[_i].want != NULL), "%s", text);
    if (rc < 0)
        return;
    SCOPED(buf_fini) struct buf got = {0};
    buf_printf(&got, "%s %s ", h.method, h.path);
    for (size_t i = 0; i < h.query.n; i++)
        buf_printf(&got, "%s=%s;", h.query.v[i].name, h.query.v[i].value);
    for (size_t i = 0; i < h.headers.n; i++)
        buf_printf(&got, " %s=%s;", h.headers.v[i].name, h.headers.v[i].value);
    ck_assert_str_eq(buf_cstr(&got), rows[_i].want);
}
END_TEST

START_TEST(test_tokens)
{
    static const char text[] =
        "GET / HTTP/1.0\r\nConnection: keep-alive, upgrade\r\nconnection: X\r\n\r\n";
    SCOPED(head_fini) struct head h = {0};
    ck_assert_int_eq(head_parse(text, sizeof text - 1, &h, NULL), 0);
    ck_assert(h.is_old);
    ck_assert(head_has_token(&h, "Connection", "Upgrade"));
    ck_assert(head_has_token(&h, "Connection", "x"));
    ck_assert(!head_has_token(&h, "Connection", "up"));
    ck_assert(!head_has_token(&h, "Upgrade", "upgrade"));
}
END_TEST

START_TEST(test_many_headers)
{
    SCOPED(head_fini) struct head h = {0};
    SCOPED(buf_fini) struct buf text = {0};
    buf_puts(&text, "GET / HTTP/1.1\r\n");
    for (int i = 0; i < 101; i++)
        buf_puts(&text, "A: b\r\n");
    buf_puts(&text, "\r\n");
    ck_assert_int_eq(head_parse(text.data, text.len, &h, NULL), -ERR_BAD_REQUEST);
}
END_TEST

SUITE(head)
{
    LOOP("request", test_row, 0, ARRAY_LEN(rows));
    TESTS("tokens", test_tokens);
    TESTS("many headers", test_many_headers);
}
