/* Answers of other servers, in pieces of any size. */
#include "apiserver/http/reply.h"

#include "tests/lib/suite.h"

#define OK "HTTP/1.1 200 OK\r\n"

static const struct row {
    const char *name, *text;
    int status;              /* 0 = refused */
    const char *body, *rest; /* rest: what is not of the answer any more */
} rows[] = {
    {"a length", OK "Content-Length: 3\r\n\r\nabcd", 200, "abc", "d"},
    {"nothing", OK "content-length: 0\r\n\r\n", 200, "", ""},
    {"no content", "HTTP/1.1 204 No Content\r\n\r\n", 204, "", ""},
    {"to the end", "HTTP/1.0 200 OK\r\n\r\nall of it", 200, "all of it", ""},
    {"chunks", OK "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x=1\r\n0123456789\r\n0\r\n\r\n!",
     200, "abc0123456789", "!"},
    {"a trailer", OK "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nA: b\r\n\r\n", 200, "a", ""},
    {"line feeds alone", "HTTP/1.1 400 No\nContent-Length: 1\n\nx", 400, "x", ""},
    {"an interim answer", "HTTP/1.1 100 Continue\r\nA: b\r\n\r\n" OK "Content-Length: 1\r\n\r\nx",
     200, "x", ""},
    {"an upgrade", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: a\r\n\r\nraw", 101, "", "raw"},
    {"behind a chunk", OK "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n", 200, "a", ""},
    {"another protocol", "SSH-2.0-x\r\n\r\n", 0},
    {"another version", "HTTP/2 200 OK\r\n\r\n", 0},
    {"a status of two digits", "HTTP/1.1 20 OK\r\n\r\n", 0},
    {"no colon", OK "Content-Length 3\r\n\r\n", 0},
    {"a blank before the colon", OK "Content-Length : 3\r\n\r\n", 0},
    {"a negative length", OK "Content-Length: -1\r\n\r\n", 0},
    {"an unknown coding", OK "Transfer-Encoding: gzip\r\n\r\n", 0},
    {"a chunk without a size", OK "Transfer-Encoding: chunked\r\n\r\n\r\n", 0},
    {"a chunk of too many digits", OK "Transfer-Encoding: chunked\r\n\r\n1234567890123456\r\n", 0},
    {"a chunk longer than it says", OK "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", 0},
};

/* False when it is refused. *ret_rest is where the answer ended. */
static bool feed(struct reply *r, const char *text, size_t n, size_t step, struct buf *body,
                 size_t *ret_rest)
{
    size_t at = 0;
    while (at < n && r->state != REPLY_OVER && r->state != REPLY_RAW) {
        size_t used = 0, left = n - at;
        if (!reply_feed(r, text + at, left < step ? left : step, &used, body))
            return false;
        at += used;
    }
    *ret_rest = at;
    return true;
}

START_TEST(test_answer_is_read)
{
    const struct row *row = &rows[_i];
    for (size_t step = 1; step <= strlen(row->text); step++) {
        SCOPED(reply_fini) struct reply r = {0};
        SCOPED(buf_fini) struct buf body = {0};
        size_t rest = 0;
        bool is_good = feed(&r, row->text, strlen(row->text), step, &body, &rest);
        ck_assert_msg(is_good == (row->status != 0), "%s, by %zu", row->name, step);
        if (!is_good)
            continue;
        ck_assert_msg(r.status == row->status, "%s: %d", row->name, r.status);
        ck_assert_msg(strcmp(buf_cstr(&body), row->body) == 0, "%s, by %zu: %s", row->name, step,
                      buf_cstr(&body));
        ck_assert_msg(strcmp(row->text + rest, row->rest) == 0, "%s: %s", row->name,
                      row->text + rest);
    }
}
END_TEST

START_TEST(test_headers_are_kept)
{
    static const char text[] = OK "A:  b c \r\nContent-Length: 0\r\nA: d\r\n\r\n";
    SCOPED(reply_fini) struct reply r = {0};
    SCOPED(buf_fini) struct buf body = {0};
    size_t rest;
    ck_assert(feed(&r, text, sizeof text - 1, sizeof text, &body, &rest));
    ck_assert_uint_eq(r.headers.n, 3);
    ck_assert_str_eq(pairs_get_ci(&r.headers, "a"), "b c");
    ck_assert_str_eq(r.headers.v[2].value, "d");
}
END_TEST

START_TEST(test_an_endless_head_is_refused)
{
    static const char line[] = "A: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n";
    SCOPED(reply_fini) struct reply r = {0};
    SCOPED(buf_fini) struct buf text = {0}, body = {0};
    size_t rest;
    buf_puts(&text, OK);
    while (text.len < 40000)
        buf_puts(&text, line);
    ck_assert(!feed(&r, text.data, text.len, 1000, &body, &rest));
}
END_TEST

SUITE(reply)
{
    LOOP("answers", test_answer_is_read, 0, ARRAY_LEN(rows));
    TESTS("heads", test_headers_are_kept, test_an_endless_head_is_refused);
}
