/* The transport on a real socket, over HTTP/1.1 (h2_test.c: over HTTP/2): what arrives in struct
 * request, what leaves from struct response, and how it stops. */
#include "apiserver/http/server.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "tests/lib/suite.h"
#include "tests/lib/tls_client.h"
#include "tests/lib/transport.h"

#define BODY_MAX ((size_t)3145728)

/* ---- requests ---- */

START_TEST(test_get)
{
    transport_start_http1(NULL);
    SCOPED(fetch_response_fini) struct fetch_response r = {0};
    ck_assert_int_eq(
        transport_call(&(struct transport_call){.method = "GET", .path = "/a?x=1&y=%20"}, &r), 200);
    ck_assert(
        transport_says(&r, "method=GET\npath=/a\nquery=x=1&y=%20\nbody=0\ntoo_large=0\nchain=0\n"));
    ck_assert_str_eq(pairs_get_ci(&r.headers, "Content-Type"), "text/plain");
    ck_assert_ptr_nonnull(pairs_get_ci(&r.headers, "Date"));
    SCOPED_FREE char *n = xasprintf("%zu", r.body.len);
    ck_assert_str_eq(pairs_get_ci(&r.headers, "Content-Length"), n);
    transport_stop();
}
END_TEST

static const char *const raw_targets[] = {"/a%2Fb",
                                          "/a//b/",
                                          "/a/../b/./c",
                                          "/%zz",
                                          "/a%00b",
                                          "/a+b?c+d=%2B&e",
                                          "/a?labelSelector=a%3Db%2Cc&watch",
                                          "/a?x=1?y=2",
                                          "/%E2%82%AC",
                                          "/",
                                          "/?"};

START_TEST(test_raw_target)
{
    const char *target = raw_targets[_i];
    transport_start_http1(NULL);
    struct tls_client c;
    ck_assert(tls_client_open(&c, transport_port(), NULL));
    SCOPED_FREE char *text =
        xasprintf("GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", target);
    ck_assert(tls_client_send(&c, text));
    ck_assert(tls_client_read_all(&c));
    size_t n = strcspn(target, "?");
    SCOPED_FREE char *want =
        xasprintf("path=%.*s\nquery=%s\nbody", (int)n, target, target[n] ? target + n + 1 : "");
    ck_assert_msg(strstr(buf_cstr(&c.got), want) != NULL, "%s: %s", target, buf_cstr(&c.got));
    tls_client_close(&c);
    transport_stop();
}
END_TEST

/* However many there are, as long as the target has room in a head. */
START_TEST(test_many_params)
{
    transport_start_http1(NULL);
    struct tls_client c;
    SCOPED(buf_fini) struct buf b = {0};
    buf_puts(&b, "GET /a?x");
    for (int i = 0; i < 10000; i++)
        buf_puts(&b, "&a=b");
    buf_puts(&b, "&last=1 HTTP/1.1\r\nHost: x\r\n\r\n");
    ck_assert(tls_client_open(&c, transport_port(), NULL));
    ck_assert(tls_client_send(&c, buf_cstr(&b)));
    ck_assert(tls_client_read_until(&c, "&a=b&last=1\n"));
    ck_assert_ptr_nonnull(strstr(buf_cstr(&c.got), "path=/a\nquery=x&a=b&a=b"));
    tls_client_close(&c);
    transport_stop();
}
END_TEST

static const char *const unsound[] = {"X: a\001b", "X: \177", "Host: y", "Host: x", "X : a"};

START_TEST(test_unsound_head)
{
    transport_start_http1(NULL);
    struct tls_client c;
    SCOPED_FREE char *text = xasprintf("GET / HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n", unsound[_i]);
    ck_assert(tls_client_open(&c, transport_port(), NULL));
    ck_assert(tls_client_send(&c, text));
    ck_assert(tls_client_read_all(&c)); /* and the connection ends */
    ck_assert(str_has_prefix(buf_cstr(&c.got), "HTTP/1.1 400 "));
    tls_client_close(&c);
    transport_stop();
}
END_TEST

START_TEST(test_absolute_target)
{
    transport_start_http1(NULL);
    struct tls_client c;
    ck_assert(tls_client_open(&c, transport_port(), NULL));
    ck_assert(tls_client_send(&c, "GET https://h:1/a%2Fb?q HTTP/1.1\r\nHost: h:1\r\n\r\n"));
    ck_assert(tls_client_read_until(&c, "path=/a%2Fb\nquery=q\n"));
    tls_client_clear(&c);
    ck_assert(tls_client_send(&c, "GET https://h:1 HTTP/1.1\r\nHost: h:1\r\n\r\n"));
    ck_assert(tls_client_read_until(&c, "path=/\nquery=\n"));
    tls_client_close(&c);
    transport_stop();
}
END_TEST

START_TEST(test_repeated_headers)
{
    transport_start_http1(NULL);
    SCOPED(fetch_response_fini) struct fetch_response r = {0};
    struct transport_call call = {.method = "GET", .path = "/"};
    pairs_add(&call.headers, "X-Remote-Group", "b");
    pairs_add(&call.headers, "X-Other", "o");
    pairs_add(&call.headers, "X-Remote-Group", "a");
    pairs_add(&call.headers, "X-Remote-Group", "c, d");
    transport_call(&call, &r);
    const char *first = strstr(buf_cstr(&r.body), "X-Remote-Group: b\n");
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_nonnull(strstr(first, "X-Other: o\nX-Remote-Group: a\nX-Remote-Group: c, d\n"));
    pairs_fini(&call.headers);
    transport_stop();
}
END_TEST

static void post(size_t n, bool is_chunked, int want_status, const char *want)
{
    SCOPED_FREE char *body = xmalloc(n + 1);
    memset(body, 'x', n);
    SCOPED(fetch_response_fini) struct fetch_response r = {0};
    struct transport_call call = {.method = "POST", .path = "/", .body = body, .body_len = n};
    if (is_chunked)
        pairs_add(&call.headers, "Transfer-Encoding", "chunked");
    ck_assert_int_eq(transport_call(&call, &r), want_status);
    ck_assert_msg(transport_says(&r, want), "%zu: %s", n, buf_cstr(&r.body));
    pairs_fini(&call.headers);
}

START_TEST(test_body_sizes)
{
    transport_start_http1(NULL);
    post(1, false, 200, "body=1\ntoo_large=0");
    post(100000, false, 200, "body=100000\ntoo_large=0");
    post(BODY_MAX, false, 200, "body=3145728\ntoo_large=0");
    post(BODY_MAX + 1, false, 413, "body=0\ntoo_large=1");
    post(9 * BODY_MAX, false, 413, "body=0\ntoo_large=1");
    transport_stop();
}
END_TEST

static void send_chunks(struct tls_client *c, size_t chunk, size_t n)
{
    SCOPED(buf_fini) struct buf b = {0};
    buf_puts(&b, "POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (size_t sent = 0; sent < n; sent += chunk) {
        buf_printf(&b, "%zx\r\n", chunk);
        for (size_t i = 0; i < chunk; i++)
            buf_putc(&b, 'y');
        buf_puts(&b, "\r\n");
    }
    buf_puts(&b, "0\r\n\r\n");
    ck_assert(tls_client_send(c, buf_cstr(&b)));
}

START_TEST(test_chunked_body)
{
    transport_start_http1(NULL);
    struct tls_client c;
    ck_assert(tls_client_open(&c, transport_port(), NULL));
    send_chunks(&c, 7, 700);
    ck_assert(tls_client_read_until(&c, "body=700\ntoo_large=0"));
    tls_client_clear(&c);
    send_chunks(&c, 65536, BODY_MAX);
    ck_assert(tls_client_read_until(&c, "body=3145728\ntoo_large=0"));
    tls_client_clear(&c);
    send_chunks(&c, 65536, BODY_MAX + 65536);
    ck_assert(tls_client_read_until(&c, "HTTP/1.1 413"));
    ck_assert(tls_client_read_until(&c, "body=0\ntoo_large=1"));
    tls_client_close(&c);
    transport_stop();
}
END_TEST

START_TEST(test_expect_continue)
{
    transport_start_http1(NULL);
    struct tls_client c;
    ck_assert(tls_client_open(&c, transport_port(), NULL));
    ck_assert(tls_client_send(
        &c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"));
    ck_assert(tls_client_read_until(&c, "HTTP/1.1 100 Continue\r\n\r\n"));
    ck_assert(tls_client_send(&c, "hello"));
    ck_assert(tls_client_read_until(&c, "body=5\n"));
    tls_client_clear(&c);
    ck_assert(tls_client_send(
        &c,
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3145729\r\nExpect: 100-continue\r\n\r\n"));
    ck_assert(tls_client_read_until(&c, "too_large=1"));
    ck_assert_ptr_null(strstr(buf_cstr(&c.got), "100 Continue"));
    tls_client_close(&c);
    transport_stop();
}
END_TEST

START_TEST(test_large_head)
{
    transport_start_http1(NULL);
    SCOPED(buf_fini) struct buf b = {0};
    struct tls_client c;
    ck_assert(tls_client_open(&c, transport_port(), NULL));
    buf_puts(&b, "GET /");
    for (int i = 0; i < 8192; i++)
        buf_putc(&b, 'p');
    buf_puts(&b, " HTTP/1.1\r\nHost: x\r\n");
    for (int i = 0; i < 64; i++) {
        buf_printf(&b, "X-Header-%d: ", i);
        for (int j = 0; j < 1000; j++)
            buf_putc(&b, 'v');
        buf_puts(&b, "\r\n");
    }
    buf_puts(&b, "\r\n");
    ck_assert(tls_client_send(&c, buf_cstr(&b)));
    ck_assert(tls_client_read_until(&c, "X-Header-63: vvv"));
    ck_assert(tls_client_read_until(&c, "sum="));
    /* again on the same connection, then too much */
    tls_client_clear(&c);
    ck_assert(tls_client_send(&c, buf_cstr(&b)));
    ck_assert(tls_client_read_until(&c, "sum="));
    tls_client_clear(&c);
    buf_clear(&b);
    buf_puts(&b, "GET / HTTP/1.1\r\nHost: x\r\nX: ");
    for (int i = 0; i < 200000; i++)
        buf_putc(&b, 'v');
    buf_puts(&b, "\r\n\r\n");
    tls_client_send(&c, buf_cstr(&b));
    ck_assert(tls_client_read_until(&c, "HTTP/1.1 431"));
    tls_client_close(&c);
    transport_stop();
}
END_TEST

START_TEST(test_head_and_empty)
{
    transport_start_http1(NULL);
    struct tls_client c;
    ck_assert(tls_client_open(&c, transport_port(), NULL));
    ck_assert(tls_client_send(
        &c, "HEAD /big HTTP/1.1\r\nHost: x\r\n\r\nGET /empty HTTP/1.1\r\nHost: x\r\n\r\n"));
    ck_assert(tls_client_read_until(&c, "HTTP/1.1 204"));
    ck_assert_ptr_nonnull(strstr(buf_cstr(&c.got), "Content-Length: 3200000"));
    ck_assert_ptr_null(strstr(buf_cstr(&c.got), "0123456789abcdef"));
    tls_client_clear(&c);
    ck_assert(tls_client_send(&c, "HEAD /stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
    ck_assert(tls_client_read_all(&c));
    const char *end = strstr(buf_cstr(&c.got), "\r\n\r\n");
    ck_assert_ptr_nonnull(end);
    ck_assert_str_eq(end, "\r\n\r\n");
    ck_assert_int_eq(atomic_load(&transport.streams[0].closed), 1);
    tls_client_close(&c);
    transport_stop();
}
END_TEST

START_TEST(test_keep_alive_and_pipelining)
{
    transport_start_http1(NULL);
    struct tls_client c;
    ck_assert(tls_client_open(&c, transport_port(), NULL));
    for (int i = 0; i < 50; i++) {
        SCOPED_FREE char *text = xasprintf("GET /n%d. HTTP/1.1\r\nHost: x\r\n\r\n", i);
        SCOPED_FREE char *want = xasprintf("path=/n%d.\n", i);
        ck_assert(tls_client_send(&c, text));
        ck_assert(tls_client_read_until(&c, want));
        tls_client_clear(&c);
    }
    SCOPED(buf_fini) struct buf b = {0};
    for (int i = 0; i < 100; i++)
        buf_printf(&b, "GET /p%d. HTTP/1.1\r\nHost: x\r\n\r\n", i);
    ck_assert(tls_client_send(&c, buf_cstr(&b)));
    ck_assert(tls_client_read_until(&c, "path=/p99.\n"));
    tls_client_close(&c);
    transport_stop();
}
END_TEST

START_TEST(test_big_answer_to_slow_reader)
{
    transport_start_http1(NULL);
    struct tls_client c;
    ck_assert(tls_client_open(&c, transport_port(), NULL));
    ck_assert(tls_client_send(&c, "GET /big HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
    wait_ms(300);
    ck_assert(tls_client_read_all(&c));
    const char *body = strstr(buf_cstr(&c.got), "\r\n\r\n") + 4;
    ck_assert_uint_eq(strlen(body), 3200000);
    tls_client_close(&c);
    transport_stop();
}
END_TEST

/* A client that says that it will send no more still gets its answer. */
START_TEST(test_half_close)
{
    transport_start_http1(NULL);
    struct tls_client c;
    ck_assert(tls_client_open(&c, transport_port(), NULL));
    ck_assert(tls_client_send(&c, "GET /held HTTP/1.1\r\nHost: x\r\n\r\n"));
    SSL_shutdown(c.ssl);
    shutdown(c.fd, SHUT_WR);
    wait_ms(400);
    atomic_store(&transport.is_released, true);
    tls_client_read_all(&c);
    ck_assert_ptr_nonnull(strstr(buf_cstr(&c.got), "released"));
    tls_client_close(&c);
    transport_stop();
}
END_TEST

static void *one_of_many(void *arg)
{
    char *path = arg;
    SCOPED(fetch_response_fini) struct fetch_response r = {0};
    SCOPED_FREE char *want = xasprintf("path=%s\n", path);
    SCOPED_FREE char *body = xmalloc(20000);
    memset(body, 'z', 20000);
    ck_assert_int_eq(transport_call(
                         &(struct transport_call){
                             .method = "POST", .path = path, .body = body, .body_len = 20000},
                         &r),
                     200);
    ck_assert(transport_says(&r, want));
    ck_assert(transport_says(&r, "body=20000\n"));
    free(path);
    return NULL;
}

START_TEST(test_parallel)
{
    transport_start_http1(NULL);
    pthread_t threads[100];
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, one_of_many, xasprintf("/parallel/%d", i)), 0);
    for (int i = 0; i < 100; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(atomic_load(&transport.n_running), 0);
    transport_stop();
}
END_TEST

/* How many of these have something to read. TLS 1.2: nothing comes that was not asked for. */
static int count_answered(const struct tls_client *c, int n)
{
    int answered = 0;
    char byte;
    for (int i = 0; i < n; i++)
        answered += recv(c[i].fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
    return answered;
}

#define ROOM 52 /* one worker, 19 more when it is held up, and 32 may wait */
#define MORE 4
START_TEST(test_too_many)
{
    transport_start_http1(&(struct server_config){.workers = 1});
    struct tls_client c[ROOM + MORE];
    int refused = 0;
    for (int i = 0; i < ROOM + MORE; i++) {
        ck_assert(tls_client_open(&c[i], transport_port(),
                                  &(struct tls_client_opts){.max_version = TLS1_2_VERSION}));
        ck_assert(tls_client_send(&c[i], "GET /held HTTP/1.1\r\nHost: x\r\n\r\n"));
        if (i == 0)
            WAIT_FOR(atomic_load(&transport.n_held) == 1);
    }
    for (int i = 0; i < 1000 && count_answered(c, ROOM + MORE) != MORE; i++)
        wait_ms(2);
    ck_assert_int_eq(count_answered(c, ROOM + MORE), MORE);
    atomic_store(&transport.is_released, true);
    for (int i = 0; i < ROOM + MORE; i++) {
        ck_assert(tls_client_read_until(&c[i], "\r\n"));
        bool is_refused = strstr(buf_cstr(&c[i].got), "HTTP/1.1 429") != NULL;
        refused += is_refused;
        ck_assert(tls_client_read_until(
            &c[i], is_refused ? "Too many requests, please try again later." : "released"));
        ck_assert(!is_refused || strstr(buf_cstr(&c[i].got), "Retry-After: 1\r\n"));
        tls_client_close(&c[i]);
    }
    ck_assert_int_eq(refused, MORE);
    transport_stop();
}
END_TEST

/* ---- stop ---- */

START_TEST(test_stop)
{
    transport_start_http1(NULL);
    struct tls_client idle, stream, held;
    ck_assert(tls_client_open(&idle, transport_port(), NULL));
    ck_assert(tls_client_send(&idle, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    ck_assert(tls_client_read_until(&idle, "sum="));
    transport_open_stream(&stream, 0, NULL);
    ck_assert(tls_client_open(&held, transport_port(), NULL));
    ck_assert(tls_client_send(&held, "GET /held HTTP/1.1\r\nHost: x\r\n\r\n"));
    WAIT_FOR(atomic_load(&transport.n_held) == 1);
    int64_t before = now_ms();
    pthread_t t = transport_stop_behind();
    ck_assert(tls_client_read_all(&stream)); /* in order, with the last chunk */
    ck_assert_str_eq(buf_cstr(&stream.got) + stream.got.len - 5, "0\r\n\r\n");
    ck_assert(tls_client_read_all(&idle));
    tls_client_close(&idle);
    tls_client_close(&stream);
    WAIT_FOR(tcp_connect(transport_port()) < 0 || now_ms() - before > 200);
    atomic_store(&transport.is_released, true);
    ck_assert(tls_client_read_all(&held));
    ck_assert_ptr_nonnull(strstr(buf_cstr(&held.got), "released"));
    ck_assert_ptr_nonnull(strstr(buf_cstr(&held.got), "Connection: close\r\n"));
    tls_client_close(&held);
    pthread_join(t, NULL);
    ck_assert_int_lt((int)(now_ms() - before), 4500);
    ck_assert_int_lt(tcp_connect(transport_port()), 0);
    ck_assert_int_eq(atomic_load(&transport.streams[0].closed), 1);
    transport_stop();
}
END_TEST

START_TEST(test_send_away)
{
    transport_start_http1(NULL);
    struct tls_client used, stream, fresh;
    ck_assert(tls_client_open(&used, transport_port(), NULL));
    ck_assert(tls_client_send(&used, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    ck_assert(tls_client_read_until(&used, "sum="));
    transport_open_stream(&stream, 0, NULL);
    server_send_away(transport.server);
    ck_assert(tls_client_read_until(&stream, "0\r\n\r\n")); /* its last chunk */
    ck_assert(tls_client_send(&used, "GET /once HTTP/1.1\r\nHost: x\r\n\r\n"));
    ck_assert(tls_client_read_all(&used)); /* it was not closed before that */
    ck_assert_ptr_nonnull(strstr(buf_cstr(&used.got), "path=/once\n"));
    ck_assert_ptr_nonnull(strstr(buf_cstr(&used.got), "Connection: close\r\n"));
    ck_assert(tls_client_open(&fresh, transport_port(), NULL));
    ck_assert(tls_client_send(&fresh, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    ck_assert(tls_client_read_until(&fresh, "sum="));
    tls_client_close(&used);
    tls_client_close(&stream);
    tls_client_close(&fresh);
    transport_stop();
}
END_TEST

/* Grace is over before the handler is: the client is cut off, freeing waits for the handler. */
START_TEST(test_stop_cuts)
{
    transport_start_http1(NULL);
    struct tls_client held;
    ck_assert(tls_client_open(&held, transport_port(), NULL));
    ck_assert(tls_client_send(&held, "GET /held HTTP/1.1\r\nHost: x\r\n\r\n"));
    WAIT_FOR(atomic_load(&transport.n_held) == 1);
    server_stop(transport.server, 100);
    tls_client_read_all(&held);
    ck_assert_ptr_null(held.got.data);
    atomic_store(&transport.is_released, true);
    tls_client_close(&held);
    transport_stop();
    ck_assert_int_eq(atomic_load(&transport.n_running), 0);
}
END_TEST

SUITE(server)
{
    transport_certificates();
    TESTS("requests", test_get, test_absolute_target, test_many_params, test_repeated_headers,
          test_body_sizes, test_chunked_body, test_expect_continue, test_large_head,
          test_head_and_empty, test_keep_alive_and_pipelining, test_big_answer_to_slow_reader,
          test_half_close, test_parallel, test_too_many);
    LOOP("targets", test_raw_target, 0, ARRAY_LEN(raw_targets));
    LOOP("unsound", test_unsound_head, 0, ARRAY_LEN(unsound));
    TESTS("stop", test_stop, test_send_away, test_stop_cuts);
}
