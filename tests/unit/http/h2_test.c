/* The transport over HTTP/2 on a real socket: the same requests as over HTTP/1.1 (server_test.c),
 * and what only HTTP/2 has: many requests on one connection, trailers, pseudo-headers, GOAWAY at
 * the end. */
#include <curl/curl.h>
#include <pthread.h>

#include "tests/lib/certs.h"
#include "tests/unit/http/h2_fixture.h"

#define BODY_MAX ((size_t)3145728)

/* ---- requests ---- */

START_TEST(test_get)
{
    start();
    struct h2_client c;
    open_client(&c, NULL);
    struct h2_reply *r = get(&c, "/a?x=1&y=%20");
    ck_assert_int_eq(r->status, 200);
    ck_assert_uint_eq(r->error, NGHTTP2_NO_ERROR);
    ck_assert(has(r, "method=GET\npath=/a\nquery=x=1&y=%20\nbody=0\ntoo_large=0\nchain=0\n"));
    ck_assert(has(r, "\nhost: test.example\n"));
    ck_assert_str_eq(pairs_get(&r->headers, "content-type"), "text/plain");
    SCOPED_FREE char *n = xasprintf("%zu", r->body.len);
    ck_assert_str_eq(pairs_get(&r->headers, "content-length"), n);
    const char *date = pairs_get(&r->headers, "date");
    ck_assert(date && strlen(date) == 29 && strcmp(date + 25, " GMT") == 0);
    h2_client_close(&c);
    transport_stop();
}
END_TEST

static size_t append_body(char *p, size_t size, size_t n, void *body)
{
    buf_append(body, p, size * n);
    return size * n;
}

/* By a client that offers both protocols: ALPN chooses this one. Straight to libcurl, for the
 * project's own door to it offers HTTP/1.1 alone. */
START_TEST(test_chosen_by_curl)
{
    start();
    SCOPED(buf_fini) struct buf body = {0};
    SCOPED_FREE char *url = xasprintf("https://127.0.0.1:%d/", transport_port());
    CURL *curl = curl_easy_init();
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    curl_easy_setopt(curl, CURLOPT_CAINFO, certs_path("ca.crt"));
    curl_easy_setopt(curl, CURLOPT_SSLCERT, certs_path("client-chain.crt"));
    curl_easy_setopt(curl, CURLOPT_SSLKEY, certs_path("client.key"));
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, append_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &body);
    CURLcode rc = curl_easy_perform(curl);
    ck_assert_msg(rc == CURLE_OK, "%s", curl_easy_strerror(rc));
    long version = 0;
    curl_easy_getinfo(curl, CURLINFO_HTTP_VERSION, &version);
    ck_assert_int_eq(version, CURL_HTTP_VERSION_2_0);
    ck_assert_ptr_nonnull(strstr(buf_cstr(&body), "chain=2\nder="));
    curl_easy_cleanup(curl);
    transport_stop();
}
END_TEST

static const char *const raw_targets[] = {"/a%2Fb",
                                          "/a//b/",
                                          "/a/../b/./c",
                                          "/%zz",
                                          "/a%00b",
                                          "/a+b?c+d=%2B&e",
                                          "/a?x=1?y=2",
                                          "/%E2%82%AC",
                                          "/",
                                          "/?",
                                          "/a?labelSelector=a%3Db%2Cc&watch"};

START_TEST(test_raw_target)
{
    const char *target = raw_targets[_i];
    start();
    struct h2_client c;
    open_client(&c, NULL);
    struct h2_reply *r = get(&c, target);
    size_t n = strcspn(target, "?");
    SCOPED_FREE char *want =
        xasprintf("path=%.*s\nquery=%s\nbody", (int)n, target, target[n] ? target + n + 1 : "");
    ck_assert_msg(has(r, want), "%s: %s", target, buf_cstr(&r->body));
    h2_client_close(&c);
    transport_stop();
}
END_TEST

START_TEST(test_repeated_headers)
{
    start();
    struct h2_client c;
    open_client(&c, NULL);
    struct pairs h = {0};
    pairs_add(&h, "x-remote-group", "b");
    pairs_add(&h, "x-other", "o");
    pairs_add(&h, "x-remote-group", "a");
    pairs_add(&h, "cookie", "k=1");
    pairs_add(&h, "x-remote-group", "c, d");
    pairs_add(&h, "cookie", "l=2");
    pairs_add(&h, "x-empty", "");
    struct h2_reply *r = ask(&c, "GET", "/", &h, NULL, 0);
    ck_assert(has(r, "host: test.example\nx-remote-group: b\nx-other: o\nx-remote-group: a\n"
                     "x-remote-group: c, d\nx-empty: \ncookie: k=1; l=2\n"));
    pairs_fini(&h);
    h2_client_close(&c);
    transport_stop();
}
END_TEST

START_TEST(test_body_sizes)
{
    static const size_t sizes[] = {1, 16384, 100000, BODY_MAX};
    start();
    SCOPED_FREE char *body = xmalloc(9 * BODY_MAX);
    memset(body, 'x', 9 * BODY_MAX);
    struct h2_client c;
    open_client(&c, NULL);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct h2_reply *r = ask(&c, "POST", "/", NULL, body, sizes[i]);
        SCOPED_FREE char *want = xasprintf("body=%zu\ntoo_large=0", sizes[i]);
        ck_assert_msg(r->status == 200 && has(r, want), "%zu: %s", sizes[i], buf_cstr(&r->body));
    }
    struct h2_reply *r = ask(&c, "POST", "/", NULL, body, BODY_MAX + 1);
    ck_assert(r->status == 413 && has(r, "body=0\ntoo_large=1"));
    r = h2_client_send(&c, "POST", "/", NULL, body, 2 * BODY_MAX);
    ck_assert(H2_UNTIL(&c, r->status != 0) && r->status == 413);
    ck_assert_uint_eq(r->sending_n, 0); /* read to its end, and answered then */
    ck_assert(H2_UNTIL(&c, r->is_closed) && has(r, "body=0\ntoo_large=1"));
    r = ask(&c, "POST", "/", NULL, body, 9 * BODY_MAX);
    ck_assert(r->status == 413 && has(r, "body=0\ntoo_large=1"));
    ck_assert_uint_eq(r->error, NGHTTP2_NO_ERROR);
    ck_assert_uint_gt(r->sending_n, BODY_MAX / 2); /* but not for ever */
    ck_assert_int_eq(get(&c, "/")->status, 200);
    h2_client_close(&c);
    transport_stop();
}
END_TEST

START_TEST(test_announced_too_large)
{
    start();
    struct h2_client c;
    struct pairs h = {0};
    open_client(&c, NULL);
    pairs_add(&h, "content-length", "29000000");            /* more than would be read */
    struct h2_reply *r = ask(&c, "POST", "/", &h, NULL, 1); /* nothing of it is sent */
    ck_assert(r->status == 413 && has(r, "too_large=1"));
    ck_assert_uint_eq(r->error, NGHTTP2_NO_ERROR);
    pairs_fini(&h);
    h = (struct pairs){0};
    pairs_add(&h, "content-length", "3145729");
    pairs_add(&h, "expect", "100-continue");
    r = ask(&c, "POST", "/", &h, NULL, 1);
    ck_assert(r->status == 413 && r->n_interim == 0 && has(r, "too_large=1"));
    pairs_fini(&h);
    h2_client_close(&c);
    transport_stop();
}
END_TEST

START_TEST(test_expect_continue)
{
    start();
    struct h2_client c;
    struct pairs h = {0};
    open_client(&c, NULL);
    pairs_add(&h, "expect", "100-continue");
    struct h2_reply *r = h2_client_send(&c, "POST", "/", &h, NULL, 1);
    ck_assert(H2_UNTIL(&c, r->status == 100));
    r->is_body_held = false;
    r->sending = "hello";
    r->sending_n = 5;
    nghttp2_session_resume_data(c.session, r->id);
    ck_assert(H2_UNTIL(&c, r->is_closed));
    ck_assert_int_eq(r->status, 200);
    ck_assert_int_eq(r->n_interim, 1);
    ck_assert(has(r, "body=5\n"));
    /* Of the aggregator, who does not wait, the client would get 100 for the answer. */
    pairs_add(&h, "x-remote-user", "somebody");
    r = ask(&c, "POST", "/", &h, "hello", 5);
    ck_assert(r->status == 200 && r->n_interim == 0 && has(r, "body=5\n"));
    pairs_fini(&h);
    h2_client_close(&c);
    transport_stop();
}
END_TEST

static void fill_headers(struct pairs *h, int n, size_t each)
{
    SCOPED_FREE char *value = xmalloc(each + 1);
    memset(value, 'v', each);
    value[each] = '\0';
    for (int i = 0; i < n; i++) {
        SCOPED_FREE char *name = xasprintf("x-header-%d", i);
        pairs_add(h, name, value);
    }
}

START_TEST(test_large_head)
{
    start();
    struct h2_client c;
    struct pairs fits = {0}, too_large = {0};
    char path[8193] = "/";
    memset(path + 1, 'p', sizeof path - 2);
    fill_headers(&fits, 50, 1000);
    fill_headers(&too_large, 70, 1000);
    open_client(&c, NULL);
    for (int i = 0; i < 3; i++) {
        struct h2_reply *r = ask(&c, "GET", path, &fits, NULL, 0);
        ck_assert(r->status == 200 && has(r, "x-header-49: vvv"));
        ck_assert_int_eq(ask(&c, "GET", "/", &too_large, NULL, 0)->status, 431);
    }
    pairs_fini(&fits);
    pairs_fini(&too_large);
    h2_client_close(&c);
    transport_stop();
}
END_TEST

START_TEST(test_head_and_empty)
{
    start();
    struct h2_client c;
    open_client(&c, NULL);
    struct h2_reply *r = ask(&c, "HEAD", "/big", NULL, NULL, 0);
    ck_assert_str_eq(pairs_get(&r->headers, "content-length"), "3200000");
    ck_assert_uint_eq(r->body.len, 0);
    r = get(&c, "/empty");
    ck_assert_int_eq(r->status, 204);
    ck_assert_ptr_null(pairs_get(&r->headers, "content-length"));
    r = ask(&c, "HEAD", "/stream", NULL, NULL, 0);
    ck_assert(r->status == 200 && r->body.len == 0);
    WAIT_FOR(atomic_load(&transport.streams[0].closed) == 1);
    h2_client_close(&c);
    transport_stop();
}
END_TEST

START_TEST(test_answer_headers)
{
    start();
    struct h2_client c;
    open_client(&c, NULL);
    struct h2_reply *r = get(&c, "/headers");
    ck_assert_str_eq(r->headers.v[0].name, "content-type");
    ck_assert_str_eq(r->headers.v[1].value, "299 - \"one\"");
    ck_assert_str_eq(r->headers.v[2].value, "299 - \"two\"");
    ck_assert_ptr_null(pairs_get(&r->headers, "connection"));
    ck_assert_ptr_null(pairs_get(&r->headers, "broken"));
    ck_assert_str_eq(pairs_get(&r->headers, "content-length"), "0");
    h2_client_close(&c);
    transport_stop();
}
END_TEST

START_TEST(test_one_after_the_other)
{
    start();
    struct h2_client c;
    open_client(&c, NULL);
    for (int i = 0; i < 300; i++) {
        SCOPED_FREE char *path = xasprintf("/n%d.", i);
        SCOPED_FREE char *want = xasprintf("path=%s\n", path);
        ck_assert(has(get(&c, path), want));
    }
    h2_client_close(&c);
    transport_stop();
}
END_TEST

#define PARALLEL 100
START_TEST(test_parallel)
{
    start();
    struct h2_client c;
    struct h2_reply *r[PARALLEL];
    SCOPED_FREE char *body = xmalloc(20000);
    memset(body, 'z', 20000);
    open_client(&c, NULL);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < PARALLEL; i++) {
            SCOPED_FREE char *path = xasprintf("/parallel/%d", i);
            r[i] = h2_client_send(&c, "POST", path, NULL, body, 20000);
        }
        for (int i = 0; i < PARALLEL; i++) {
            SCOPED_FREE char *want = xasprintf("path=/parallel/%d\nquery=\nbody=20000\n", i);
            ck_assert(H2_UNTIL(&c, r[i]->is_closed));
            ck_assert_msg(r[i]->status == 200 && has(r[i], want), "%s", buf_cstr(&r[i]->body));
        }
    }
    h2_client_close(&c);
    WAIT_FOR(atomic_load(&transport.n_running) == 0);
    transport_stop();
}
END_TEST

/* One that is slow holds up no others of its connection. */
START_TEST(test_no_waiting_in_line)
{
    start();
    struct h2_client c;
    open_client(&c, NULL);
    struct h2_reply *held = h2_client_send(&c, "GET", "/held", NULL, NULL, 0);
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(get(&c, "/")->status, 200);
    ck_assert(!held->is_closed);
    atomic_store(&transport.is_released, true);
    ck_assert(H2_UNTIL(&c, held->is_closed));
    ck_assert(has(held, "released"));
    h2_client_close(&c);
    transport_stop();
}
END_TEST

/* A long answer waits for its window, and shares the connection meanwhile. */
START_TEST(test_big_answer_to_slow_reader)
{
    start();
    struct h2_client c;
    open_client(&c, &(struct h2_client_opts){.window = 65535, .is_lazy = true});
    struct h2_reply *big = h2_client_send(&c, "GET", "/big", NULL, NULL, 0);
    ck_assert(H2_UNTIL(&c, big->body.len == 65535));
    struct h2_reply *small = get(&c, "/");
    ck_assert_int_eq(small->status, 200);
    ck_assert_uint_eq(big->body.len, 65535);
    size_t consumed = 0;
    while (!big->is_closed) {
        h2_client_consume(&c, big, big->body.len - consumed);
        consumed = big->body.len;
        ck_assert(h2_client_step(&c));
    }
    ck_assert_uint_eq(big->body.len, 3200000);
    h2_client_close(&c);
    transport_stop();
}
END_TEST

/* Two long answers whose windows open at the same time: neither waits for the other's end. */
START_TEST(test_streams_take_turns)
{
    start();
    struct h2_client c;
    struct h2_reply *r[2];
    open_client(&c, &(struct h2_client_opts){.window = 1000, .is_lazy = true});
    for (int i = 0; i < 2; i++)
        r[i] = h2_client_send(&c, "GET", "/big", NULL, NULL, 0);
    ck_assert(H2_UNTIL(&c, r[0]->body.len == 1000 && r[1]->body.len == 1000));
    for (int i = 0; i < 2; i++)
        nghttp2_submit_window_update(c.session, NGHTTP2_FLAG_NONE, r[i]->id, 4000000);
    ck_assert(H2_UNTIL(&c, r[0]->is_closed || r[1]->is_closed));
    ck_assert_uint_gt(r[0]->body.len, 2500000);
    ck_assert_uint_gt(r[1]->body.len, 2500000);
    h2_client_close(&c);
    transport_stop();
}
END_TEST

#define ROOM 52 /* one worker, 19 more when it is held up, and 32 may wait */
#define MORE 4
START_TEST(test_too_many)
{
    transport_start((struct server_config){.workers = 1});
    struct h2_client c;
    struct h2_reply *r[ROOM + MORE];
    int refused = 0;
    open_client(&c, NULL);
    for (int i = 0; i < ROOM + MORE; i++) {
        r[i] = h2_client_send(&c, "GET", "/held", NULL, NULL, 0);
        h2_client_flush(&c);
        if (i < 20)
            WAIT_FOR(atomic_load(&transport.n_held) == i + 1);
    }
    ck_assert(H2_UNTIL(&c, r[ROOM + MORE - 1]->is_closed));
    atomic_store(&transport.is_released, true);
    for (int i = 0; i < ROOM + MORE; i++) {
        ck_assert(H2_UNTIL(&c, r[i]->is_closed));
        if (r[i]->status == 429) {
            refused++;
            ck_assert(has(r[i], "Too many requests, please try again later."));
            ck_assert_str_eq(pairs_get(&r[i]->headers, "retry-after"), "1");
        } else {
            ck_assert(has(r[i], "released"));
        }
    }
    ck_assert_int_eq(refused, MORE);
    h2_client_close(&c);
    transport_stop();
}
END_TEST

/* What was taken back before a worker came to it is not run. 20 are with the workers, 20 wait and
 * are taken back, 12 more wait; that the next one finds no room says that all before it are
 * known. */
START_TEST(test_taken_back_is_not_run)
{
    transport_start((struct server_config){.workers = 1});
    struct h2_client c;
    struct h2_reply *r[ROOM + 1];
    open_client(&c, NULL);
    for (int i = 0; i <= ROOM; i++) {
        r[i] = h2_client_send(&c, "GET", "/held", NULL, NULL, 0);
        h2_client_flush(&c);
        if (i < 20)
            WAIT_FOR(atomic_load(&transport.n_held) == i + 1);
        if (i >= 20 && i < 40)
            h2_client_cancel(&c, r[i]);
    }
    ck_assert(H2_UNTIL(&c, r[ROOM]->is_closed));
    ck_assert_int_eq(r[ROOM]->status, 429);
    atomic_store(&transport.is_released, true);
    for (int i = 40; i < ROOM; i++)
        ck_assert(H2_UNTIL(&c, r[i]->is_closed));
    ck_assert_int_eq(atomic_load(&transport.n_held), ROOM - 20);
    h2_client_close(&c);
    transport_stop();
}
END_TEST

START_TEST(test_trailers)
{
    start();
    struct tls_client c;
    SCOPED(buf_fini) struct buf out = {0}, head = {0}, trailers = {0};
    h2_put_field(&head, ":method", "POST");
    h2_put_field(&head, ":scheme", "https");
    h2_put_field(&head, ":path", "/t");
    h2_put_field(&head, "host", "h.example");
    h2_put_field(&head, "te", "trailers");
    h2_put_field(&trailers, "x-late", "1");
    h2_put_frame(&out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, head.data, head.len);
    h2_put_frame(&out, NGHTTP2_DATA, 0, 1, "abc", 3);
    h2_put_frame(&out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 1,
                 trailers.data, trailers.len);
    ck_assert(h2_raw_open(&c, transport_port()));
    ck_assert(tls_client_send_bytes(&c, out.data, out.len));
    struct h2_frame f;
    ck_assert(h2_raw_until(&c, NGHTTP2_DATA, 1, &f));
    SCOPED_FREE char *text = xstrndup((const char *)f.payload, f.n);
    ck_assert_ptr_nonnull(strstr(text, "path=/t\nquery=\nbody=3\n"));
    ck_assert_ptr_nonnull(strstr(text, "\nhost: h.example\n"));
    ck_assert_ptr_null(strstr(text, "x-late"));
    tls_client_close(&c);
    transport_stop();
}
END_TEST

/* ---- malformed requests: the stream ends, the connection goes on ---- */

static const struct {
    const char *name;
    const char *fields[12]; /* name, value, ... */
    uint32_t want;          /* code of RST_STREAM; 0 = answered */
    int status;
} heads[] = {
    {"upper case", {":method", "GET", ":scheme", "https", ":path", "/", "X-Upper", "1"}, 1, 0},
    {"connection",
     {":method", "GET", ":scheme", "https", ":path", "/", "connection", "close"},
     1,
     0},
    {"keep-alive", {":method", "GET", ":scheme", "https", ":path", "/", "keep-alive", "1"}, 1, 0},
    {"upgrade", {":method", "GET", ":scheme", "https", ":path", "/", "upgrade", "websocket"}, 1, 0},
    {"coding",
     {":method", "GET", ":scheme", "https", ":path", "/", "transfer-encoding", "chunked"},
     1,
     0},
    {"te", {":method", "GET", ":scheme", "https", ":path", "/", "te", "gzip"}, 1, 0},
    {"no path", {":method", "GET", ":scheme", "https"}, 1, 0},
    {"empty path", {":method", "GET", ":scheme", "https", ":path", ""}, 1, 0},
    {"no scheme", {":method", "GET", ":path", "/"}, 1, 0},
    {"no method", {":scheme", "https", ":path", "/"}, 1, 0},
    {"two paths", {":method", "GET", ":scheme", "https", ":path", "/", ":path", "/b"}, 1, 0},
    {"late pseudo", {":method", "GET", ":scheme", "https", "x-a", "1", ":path", "/"}, 1, 0},
    {"answer's pseudo",
     {":method", "GET", ":scheme", "https", ":path", "/", ":status", "200"},
     1,
     0},
    {"two hosts",
     {":method", "GET", ":scheme", "https", ":path", "/", "host", "a", "host", "b"},
     1,
     0},
    {"blank in name", {":method", "GET", ":scheme", "https", ":path", "/", "x a", "1"}, 1, 0},
    {"control in value",
     {":method", "GET", ":scheme", "https", ":path", "/", "x-a", "1\r\n2"},
     1,
     0},
    {"blank at end", {":method", "GET", ":scheme", "https", ":path", "/", "x-a", "1 "}, 1, 0},
    {"length", {":method", "GET", ":scheme", "https", ":path", "/", "content-length", "5"}, 1, 0},
    {"two lengths",
     {":method", "GET", ":scheme", "https", ":path", "/", "content-length", "0", "content-length",
      "0"},
     1,
     0},
    {"relative path", {":method", "GET", ":scheme", "https", ":path", "a"}, 1, 0},
    {"tunnel", {":method", "CONNECT", ":authority", "a:1"}, 0, 501},
    {"extended tunnel",
     {":method", "CONNECT", ":scheme", "https", ":path", "/", ":protocol", "websocket"},
     1,
     0},
    {"all servers",
     {":method", "OPTIONS", ":scheme", "https", ":path", "*", ":authority", "x"},
     0,
     200},
    {"host and authority",
     {":method", "GET", ":scheme", "https", ":path", "/", ":authority", "x", "host", "y"},
     0,
     200},
};

static void put_head(struct buf *out, int32_t id, const char *const *fields)
{
    SCOPED(buf_fini) struct buf block = {0};
    for (; *fields; fields += 2)
        h2_put_field(&block, fields[0], fields[1]);
    h2_put_frame(out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, id,
                 block.data, block.len);
}

/* Statuses that HPACK's static table has are one byte; the others a literal with the name from
 * it. */
static int status_of(const struct h2_frame *f)
{
    static const int known[] = {200, 204, 206, 304, 400, 404, 500};
    if (f->payload[0] >= 0x88 && f->payload[0] <= 0x8e)
        return known[f->payload[0] - 0x88];
    return f->payload[1] & 0x80 ? -1 : 0; /* compressed: some other */
}

START_TEST(test_malformed_head)
{
    start();
    struct tls_client c;
    SCOPED(buf_fini) struct buf out = {0};
    struct h2_frame f;
    put_head(&out, 1, heads[_i].fields);
    h2_put_get(&out, 3, "/next");
    ck_assert(h2_raw_open(&c, transport_port()));
    ck_assert(tls_client_send_bytes(&c, out.data, out.len));
    if (heads[_i].want) {
        ck_assert_msg(h2_raw_reset(&c, 1) == heads[_i].want, "%s", heads[_i].name);
    } else {
        ck_assert_msg(h2_raw_until(&c, NGHTTP2_HEADERS, 1, &f), "%s", heads[_i].name);
        ck_assert_msg((status_of(&f) == 200) == (heads[_i].status == 200), "%s", heads[_i].name);
    }
    tls_client_close(&c);
    /* the next one, on a connection of its own so that the order of answers does not matter */
    ck_assert(h2_raw_open(&c, transport_port()));
    ck_assert(tls_client_send_bytes(&c, out.data, out.len));
    ck_assert_msg(h2_raw_until(&c, NGHTTP2_DATA, 3, &f), "%s", heads[_i].name);
    tls_client_close(&c);
    transport_stop();
}
END_TEST

/* A malformed head whose stream is ended already does not count as a slow one. */
START_TEST(test_malformed_is_not_slow)
{
    transport_start((struct server_config){.header_timeout_ms = 500});
    struct tls_client c;
    SCOPED(buf_fini) struct buf out = {0};
    struct h2_frame f;
    put_head(&out, 1, heads[0].fields);
    ck_assert(h2_raw_open(&c, transport_port()));
    ck_assert(tls_client_send_bytes(&c, out.data, out.len));
    ck_assert_uint_eq(h2_raw_reset(&c, 1), NGHTTP2_PROTOCOL_ERROR);
    wait_ms(1200);
    buf_clear(&out);
    h2_put_get(&out, 3, "/");
    ck_assert(tls_client_send_bytes(&c, out.data, out.len));
    ck_assert(h2_raw_until(&c, NGHTTP2_DATA, 3, &f));
    tls_client_close(&c);
    transport_stop();
}
END_TEST

START_TEST(test_host_is_the_authority)
{
    start();
    struct h2_client c;
    struct pairs h = {0};
    open_client(&c, NULL);
    pairs_add(&h, "host", "other.example");
    struct h2_reply *r = ask(&c, "GET", "/", &h, NULL, 0);
    ck_assert(has(r, "\nhost: test.example\n") && !has(r, "other.example"));
    pairs_fini(&h);
    h2_client_close(&c);
    transport_stop();
}
END_TEST

/* ---- certificates, stop ---- */

START_TEST(test_reload)
{
    certs_join("live.crt", (const char *[]){"server.crt", NULL});
    certs_join("live.key", (const char *[]){"server.key", NULL});
    transport_start((struct server_config){.cert_file = certs_path("live.crt"),
                                           .key_file = certs_path("live.key")});
    struct h2_client old, fresh;
    open_client(&old, NULL);
    struct h2_reply *r = open_stream(&old);
    certs_join("live.crt", (const char *[]){"renewed.crt", NULL});
    certs_join("live.key", (const char *[]){"renewed.key", NULL});
    ck_assert_int_eq(server_reload(transport.server, NULL), 0);
    open_client(&fresh, NULL);
    ck_assert_int_eq(get(&fresh, "/")->status, 200);
    test_stream_put(&transport.streams[0], "goes on\n");
    ck_assert(H2_UNTIL(&old, has(r, "goes on\n")));
    h2_client_close(&old);
    h2_client_close(&fresh);
    transport_stop();
}
END_TEST

START_TEST(test_stop) /* IL-141 */
{
    start();
    struct h2_client idle, busy;
    open_client(&idle, NULL);
    get(&idle, "/");
    open_client(&busy, NULL);
    struct h2_reply *stream = open_stream(&busy);
    test_stream_put(&transport.streams[0], "last words\n");
    struct h2_reply *held = h2_client_send(&busy, "GET", "/held", NULL, NULL, 0);
    h2_client_flush(&busy);
    WAIT_FOR(atomic_load(&transport.n_held) == 1);
    int64_t before = now_ms();
    pthread_t t = transport_stop_behind();
    ck_assert(H2_UNTIL(&busy, stream->is_closed)); /* in order, with END_STREAM */
    ck_assert_uint_eq(stream->error, NGHTTP2_NO_ERROR);
    ck_assert(has(stream, "last words\n"));
    ck_assert(busy.has_goaway);
    ck_assert(H2_UNTIL(&busy, busy.goaway_last_id == held->id)); /* after the notice: the last */
    ck_assert_uint_eq(busy.goaway_code, NGHTTP2_NO_ERROR);
    ck_assert(!H2_UNTIL(&idle, false)); /* to its end */
    ck_assert(idle.has_goaway);
    h2_client_close(&idle);
    ck_assert(!held->is_closed);
    atomic_store(&transport.is_released, true);
    ck_assert(H2_UNTIL(&busy, held->is_closed));
    ck_assert(has(held, "released"));
    ck_assert(!H2_UNTIL(&busy, false));
    h2_client_close(&busy);
    pthread_join(t, NULL);
    ck_assert_int_lt((int)(now_ms() - before), 4500);
    ck_assert_int_eq(closed(0), 1);
    transport_stop();
}
END_TEST

/* What was under way when the server began to stop is still taken, from a client that is slow to
 * hear of it, too. */
START_TEST(test_stop_takes_what_was_under_way)
{
    start();
    struct h2_client c;
    open_client(&c, NULL);
    struct h2_reply *stream = open_stream(&c);
    pthread_t t = transport_stop_behind();
    WAIT_FOR(closed(0) == 1);
    wait_ms(600);
    struct h2_reply *late = h2_client_send(&c, "GET", "/late", NULL, NULL, 0);
    ck_assert(H2_UNTIL(&c, late->is_closed));
    ck_assert(has(late, "path=/late\n"));
    ck_assert(stream->is_closed);
    h2_client_close(&c);
    pthread_join(t, NULL);
    transport_stop();
}
END_TEST

/* A connection that was used ends when its client has heard of it, streams first; one over which
 * nothing came yet answers once, and whoever comes anew is served as well. */
START_TEST(test_send_away)
{
    start();
    struct h2_client used, fresh, later;
    open_client(&used, NULL);
    struct h2_reply *stream = open_stream(&used);
    open_client(&fresh, NULL);
    server_send_away(transport.server);
    ck_assert(H2_UNTIL(&used, stream->is_closed));
    ck_assert_uint_eq(stream->error, NGHTTP2_NO_ERROR);
    ck_assert(!H2_UNTIL(&used, false));
    ck_assert(used.has_goaway);
    wait_ms(600);
    ck_assert_int_eq(get(&fresh, "/")->status, 200);
    ck_assert(!H2_UNTIL(&fresh, false));
    ck_assert(fresh.has_goaway);
    open_client(&later, NULL);
    ck_assert_int_eq(get(&later, "/")->status, 200);
    h2_client_close(&used);
    h2_client_close(&fresh);
    h2_client_close(&later);
    transport_stop();
}
END_TEST

/* Grace is over before the handler is: the client is cut off, freeing waits for the handler. */
START_TEST(test_stop_cuts)
{
    start();
    struct h2_client c;
    open_client(&c, NULL);
    struct h2_reply *held = h2_client_send(&c, "GET", "/held", NULL, NULL, 0);
    h2_client_flush(&c);
    WAIT_FOR(atomic_load(&transport.n_held) == 1);
    server_stop(transport.server, 100);
    ck_assert(!H2_UNTIL(&c, held->is_closed));
    atomic_store(&transport.is_released, true);
    h2_client_close(&c);
    transport_stop();
    ck_assert_int_eq(atomic_load(&transport.n_running), 0);
}
END_TEST

SUITE(h2)
{
    transport_certificates();
    TESTS("requests", test_get, test_chosen_by_curl, test_repeated_headers, test_body_sizes,
          test_announced_too_large, test_expect_continue, test_large_head, test_head_and_empty,
          test_answer_headers, test_one_after_the_other, test_parallel, test_no_waiting_in_line,
          test_big_answer_to_slow_reader, test_streams_take_turns, test_too_many,
          test_taken_back_is_not_run, test_trailers, test_host_is_the_authority,
          test_malformed_is_not_slow);
    LOOP("targets", test_raw_target, 0, ARRAY_LEN(raw_targets));
    LOOP("malformed", test_malformed_head, 0, ARRAY_LEN(heads));
    TESTS("stop", test_reload, test_stop, test_stop_takes_what_was_under_way, test_send_away,
          test_stop_cuts);
}
