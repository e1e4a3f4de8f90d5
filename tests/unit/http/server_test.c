/* The transport on a real socket, over HTTP/1.1 (h2_test.c: over HTTP/2): what arrives in struct
 * request, what leaves from struct response, streams, limits, stop. */
#include "apiserver/http/server.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/certs.h"
#include "tests/lib/suite.h"
#include "tests/lib/tls_client.h"
#include "tests/lib/transport.h"

#define BODY_MAX ((size_t)3145728)

#define STREAMS 200

static void start_with(struct server_config config)
{
    config.disable_http2 = true;
    transport_start(config);
}

static void start(void)
{
    start_with((struct server_config){0});
}

/* ---- requests ---- */

START_TEST(test_get)
{
    start();
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
    start();
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

START_TEST(test_absolute_target)
{
    start();
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
    start();
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
    start();
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
    start();
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
    start();
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
    start();
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
    start();
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
    start();
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
    start();
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
    start();
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
    start();
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
    start_with((struct server_config){.workers = 1});
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

/* ---- TLS ---- */

START_TEST(test_client_chain)
{
    start();
    SCOPED(fetch_response_fini) struct fetch_response r = {0};
    transport_call(&(struct transport_call){.method = "GET", .path = "/", .with_certificate = true},
                   &r);
    ck_assert(transport_says(&r, "chain=2\nder="));
    ck_assert(transport_says(&r, " first=30\n"));
    transport_stop();
}
END_TEST

static SSL_SESSION *kept_session;
static int keep_session(SSL *ssl, SSL_SESSION *session)
{
    (void)ssl;
    SSL_SESSION_free(kept_session);
    kept_session = session;
    return 1;
}

/* Opens twice in one client context, the second time with the first one's session; whether it was
 * resumed. */
static bool is_resumed(int max_version, bool with_certificate, const char *want)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_max_proto_version(ctx, max_version);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT);
    SSL_CTX_sess_set_new_cb(ctx, keep_session);
    if (with_certificate) {
        SSL_CTX_use_certificate_chain_file(ctx, certs_path("client-chain.crt"));
        SSL_CTX_use_PrivateKey_file(ctx, certs_path("client.key"), SSL_FILETYPE_PEM);
    }
    bool reused = false;
    for (int i = 0; i < 2; i++) {
        struct tls_client c;
        struct tls_client_opts opts = {.ctx = ctx, .session = i ? kept_session : NULL};
        ck_assert(tls_client_open(&c, transport_port(), &opts));
        ck_assert(tls_client_send(&c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
        ck_assert(tls_client_read_until(&c, "sum="));
        ck_assert_msg(strstr(buf_cstr(&c.got), want) != NULL, "%s", buf_cstr(&c.got));
        reused = SSL_session_reused(c.ssl);
        SSL_shutdown(c.ssl); /* or the client holds the session for a bad one */
        tls_client_close(&c);
    }
    SSL_SESSION_free(kept_session);
    kept_session = NULL;
    SSL_CTX_free(ctx);
    return reused;
}

/* Who has no certificate resumes; who has one shows all of it each time. */
START_TEST(test_resumption)
{
    start();
    ck_assert(is_resumed(TLS1_3_VERSION, false, "chain=0\n"));
    ck_assert(is_resumed(TLS1_2_VERSION, false, "chain=0\n"));
    ck_assert(!is_resumed(TLS1_3_VERSION, true, "chain=2\n"));
    ck_assert(!is_resumed(TLS1_2_VERSION, true, "chain=2\n"));
    transport_stop();
}
END_TEST

static void expect_protocol(const char *offered, const char *want)
{
    struct tls_client c;
    bool is_open =
        tls_client_open(&c, transport_port(), &(struct tls_client_opts){.alpn = offered});
    const unsigned char *name = NULL;
    unsigned n = 0;
    ck_assert_msg(is_open == (want != NULL), "%s", offered ? offered : "nothing");
    if (is_open)
        SSL_get0_alpn_selected(c.ssl, &name, &n);
    ck_assert(!want || (n == strlen(want) && memcmp(name ? name : (const void *)"", want, n) == 0));
    tls_client_close(&c);
}

START_TEST(test_alpn)
{
    transport_start((struct server_config){0});
    expect_protocol("\x08http/1.1\x02h2", "h2");
    expect_protocol("\x02h2", "h2");
    expect_protocol("\x08http/1.1", "http/1.1");
    expect_protocol("\x08http/1.0\x03h2c", NULL);
    expect_protocol(NULL, "");
    transport_stop();
    start();
    expect_protocol("\x02h2\x08http/1.1", "http/1.1");
    expect_protocol("\x02h2", NULL);
    struct tls_client c;
    ck_assert(!tls_client_open(&c, transport_port(),
                               &(struct tls_client_opts){.max_version = TLS1_1_VERSION}));
    tls_client_close(&c);
    transport_stop();
}
END_TEST

static void common_name(struct tls_client *c, char *out, int n)
{
    X509 *x = SSL_get1_peer_certificate(c->ssl);
    X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, out, n);
    X509_free(x);
}

static void expect_certificate(const char *want)
{
    struct tls_client c;
    char cn[64] = "";
    ck_assert(tls_client_open(&c, transport_port(), NULL));
    common_name(&c, cn, sizeof cn);
    ck_assert_str_eq(cn, want);
    tls_client_close(&c);
}

START_TEST(test_reload) /* */
{
    certs_join("live.crt", (const char *[]){"server.crt", NULL});
    certs_join("live.key", (const char *[]){"server.key", NULL});
    start_with((struct server_config){
        .workers = 2, .cert_file = certs_path("live.crt"), .key_file = certs_path("live.key")});
    expect_certificate("first");
    struct tls_client old;
    ck_assert(tls_client_open(&old, transport_port(), NULL));
    certs_join("live.crt", (const char *[]){"renewed.crt", NULL});
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(server_reload(transport.server, &err),
                     -ERR_INVALID); /* the key does not fit */
    expect_certificate("first");
    certs_join("live.key", (const char *[]){"renewed.key", NULL});
    ck_assert_int_eq(server_reload(transport.server, &err), 0);
    expect_certificate("renewed");
    certs_write("live.crt", "rubbish");
    ck_assert_int_eq(server_reload(transport.server, &err), -ERR_INVALID);
    expect_certificate("renewed");
    ck_assert(tls_client_send(&old, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    ck_assert(tls_client_read_until(&old, "sum="));
    tls_client_close(&old);
    /* and without being told */
    certs_join("live.crt", (const char *[]){"server.crt", NULL});
    certs_join("live.key", (const char *[]){"server.key", NULL});
    wait_ms(6000);
    expect_certificate("first");
    transport_stop();
}
END_TEST

START_TEST(test_start_errors)
{
    SCOPED(err_fini) struct err err = {0};
    struct server *s = NULL;
    struct server_config config = {
        .bind_address = "127.0.0.1", .cert_file = "/nonexistent", .key_file = "/nonexistent"};
    ck_assert_int_eq(server_start(&config, &s, &err), -ERR_INVALID);
    config.cert_file = certs_path("server.crt");
    config.key_file = certs_path("server.key");
    config.bind_address = "localhost";
    ck_assert_int_eq(server_start(&config, &s, &err), -ERR_INVALID);
    start();
    config.bind_address = "127.0.0.1";
    config.port = transport_port();
    ck_assert_int_eq(server_start(&config, &s, &err), -ERR_UNAVAILABLE);
    ck_assert_ptr_null(s);
    transport_stop();
}
END_TEST

/* ---- streams ---- */

static void open_stream(struct tls_client *c, size_t i)
{
    ck_assert(tls_client_open(c, transport_port(), NULL));
    ck_assert(tls_client_send(c, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"));
    ck_assert(tls_client_read_until(c, "\r\n\r\n")); /* the head comes before any event */
    ck_assert_ptr_nonnull(strstr(buf_cstr(&c->got), "Transfer-Encoding: chunked\r\n"));
    WAIT_FOR(atomic_load(&transport.streams[i].pulls) > 0);
}

START_TEST(test_stream_events)
{
    start();
    struct tls_client c;
    open_stream(&c, 0);
    for (int i = 0; i < 20; i++) {
        SCOPED_FREE char *event = xasprintf("event %d.\n", i);
        wait_ms(i < 3 ? 120 : 1);
        test_stream_put(&transport.streams[0], event);
        ck_assert(tls_client_read_until(&c, event));
    }
    test_stream_put(&transport.streams[0], NULL);
    ck_assert(tls_client_read_until(&c, "\r\n0\r\n\r\n"));
    WAIT_FOR(atomic_load(&transport.streams[0].closed) == 1);
    tls_client_clear(&c); /* and the connection goes on */
    ck_assert(tls_client_send(&c, "GET /after HTTP/1.1\r\nHost: x\r\n\r\n"));
    ck_assert(tls_client_read_until(&c, "path=/after\n"));
    tls_client_close(&c);
    transport_stop();
    ck_assert_int_eq(atomic_load(&transport.streams[0].closed), 1);
}
END_TEST

START_TEST(test_stream_large_events)
{
    start();
    struct tls_client c;
    open_stream(&c, 0);
    SCOPED(buf_fini) struct buf b = {0};
    for (int i = 0; i < 2000000; i++)
        buf_putc(&b, (char)('a' + i % 26));
    buf_puts(&b, "END\n");
    for (int i = 0; i < 3; i++) {
        tls_client_clear(&c);
        test_stream_put(&transport.streams[0], buf_cstr(&b));
        ck_assert(tls_client_read_until(&c, "END\n"));
        ck_assert_uint_gt(c.got.len, b.len);
    }
    tls_client_close(&c);
    transport_stop();
}
END_TEST

START_TEST(test_stream_peer_vanishes)
{
    start();
    struct tls_client c[4];
    for (size_t i = 0; i < 4; i++)
        open_stream(&c[i], i);
    tls_client_close(&c[0]); /* without a word */
    WAIT_FOR(atomic_load(&transport.streams[0].closed) == 1);
    SSL_shutdown(c[1].ssl); /* in order */
    WAIT_FOR(atomic_load(&transport.streams[1].closed) == 1);
    struct linger reset = {.l_onoff = 1};
    setsockopt(c[2].fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    tls_client_close(&c[2]);
    WAIT_FOR(atomic_load(&transport.streams[2].closed) == 1);
    ck_assert_int_eq(atomic_load(&transport.streams[3].closed), 0);
    tls_client_close(&c[1]);
    tls_client_close(&c[3]);
    transport_stop();
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_eq(atomic_load(&transport.streams[i].closed), 1);
}
END_TEST

/* A client that fills its way in with things nobody reads, and then goes. */
START_TEST(test_stream_peer_vanishes_behind_rubbish)
{
    start();
    struct tls_client c;
    open_stream(&c, 0);
    struct timeval brief = {.tv_usec = 200000};
    setsockopt(c.fd, SOL_SOCKET, SO_SNDTIMEO, &brief, sizeof brief);
    SCOPED_FREE char *rubbish = xmalloc(16385);
    memset(rubbish, 'r', 16384);
    rubbish[16384] = '\0';
    for (int i = 0; i < 1000; i++)
        if (!tls_client_send(&c, rubbish))
            break;
    struct linger reset = {.l_onoff = 1};
    setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    tls_client_close(&c);
    WAIT_FOR(atomic_load(&transport.streams[0].closed) == 1);
    transport_stop();
}
END_TEST

START_TEST(test_idle_streams_cost_nothing)
{
    start();
    struct tls_client *c = xcalloc(STREAMS, sizeof *c);
    for (size_t i = 0; i < STREAMS; i++)
        open_stream(&c[i], i);
    wait_ms(600); /* the last deadlines are taken off */
    int64_t before = cpu_us();
    wait_ms(2000);
    int64_t used = cpu_us() - before;
    ck_assert_msg(used < 20000, "%d us", (int)used); /* of two seconds: a hundredth */
    test_stream_put(&transport.streams[STREAMS - 1], "hello\n");
    ck_assert(tls_client_read_until(&c[STREAMS - 1], "hello\n"));
    for (size_t i = 0; i < STREAMS; i++)
        tls_client_close(&c[i]);
    free(c);
    transport_stop();
    for (size_t i = 0; i < STREAMS; i++)
        ck_assert_int_eq(atomic_load(&transport.streams[i].closed), 1);
}
END_TEST

static atomic_bool is_storming;
static void *storm(void *arg)
{
    (void)arg;
    while (atomic_load(&is_storming)) {
        for (size_t i = 0; i < 3; i++) {
            test_stream_wake(&transport.streams[i]);
        }
    }
    return NULL;
}

START_TEST(test_wake_storm)
{
    start();
    struct tls_client c[3];
    for (size_t i = 0; i < 3; i++)
        open_stream(&c[i], i);
    pthread_t threads[4];
    atomic_store(&is_storming, true);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, storm, NULL);
    for (int n = 0; n < 300; n++) {
        for (size_t i = 0; i < 3; i++) {
            SCOPED_FREE char *event = xasprintf("event %d.\n", n);
            test_stream_put(&transport.streams[i], event);
            ck_assert(tls_client_read_until(&c[i], event));
            tls_client_clear(&c[i]);
        }
    }
    tls_client_close(&c[0]); /* in the middle of it */
    WAIT_FOR(atomic_load(&transport.streams[0].closed) == 1);
    atomic_store(&is_storming, false);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    tls_client_close(&c[1]);
    tls_client_close(&c[2]);
    transport_stop();
}
END_TEST

/* A stream whose client does not read is not pulled for ever. */
START_TEST(test_stream_backpressure)
{
    start();
    struct tls_client c;
    open_stream(&c, 0);
    SCOPED_FREE char *event = xmalloc(65537);
    memset(event, 'e', 65536);
    event[65536] = '\0';
    int pulls = -1;
    for (int i = 0; i < 400 && pulls != atomic_load(&transport.streams[0].pulls); i++) {
        pulls = atomic_load(&transport.streams[0].pulls);
        test_stream_put(&transport.streams[0], event);
        wait_ms(20);
    }
    ck_assert_int_lt(pulls, 800);
    tls_client_close(&c);
    WAIT_FOR(atomic_load(&transport.streams[0].closed) == 1);
    transport_stop();
}
END_TEST

/* ---- hostile and absent clients ---- */

START_TEST(test_early_close)
{
    start();
    static const char *const texts[] = {
        "",
        "G",
        "GET / HT",
        "GET / HTTP/1.1\r\nHost:",
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        "GET /big HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"};
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
            struct tls_client c;
            ck_assert(tls_client_open(&c, transport_port(), NULL));
            ck_assert(tls_client_send(&c, texts[i]) || !*texts[i]);
            wait_ms(round * 5);
            tls_client_close(&c);
        }
    }
    int fd = tcp_connect(transport_port());
    ck_assert_int_eq(send(fd, "no handshake\r\n\r\n", 16, 0), 16);
    char c;
    while (recv(fd, &c, 1, 0) > 0)
        ;
    close(fd);
    transport_stop();
    ck_assert_int_eq(atomic_load(&transport.n_running), 0);
}
END_TEST

static const struct {
    const char *text, *want;
} malformed[] = {
    {"rubbish\r\n\r\n", ""},
    {"GET /\r\n\r\n", ""},
    {"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400"},
    {"GET / HTTP/9.9\r\nHost: x\r\n\r\n", "HTTP/1.1 505"},
    {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 400"},
    {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "HTTP/1.1 400"},
};

START_TEST(test_malformed)
{
    start();
    struct tls_client c;
    ck_assert(tls_client_open(&c, transport_port(), NULL));
    ck_assert(tls_client_send(&c, malformed[_i].text));
    tls_client_read_all(&c);
    ck_assert_msg(strncmp(buf_cstr(&c.got), malformed[_i].want, strlen(malformed[_i].want)) == 0,
                  "%s -> %s", malformed[_i].text, buf_cstr(&c.got));
    tls_client_close(&c);
    transport_stop();
}
END_TEST

START_TEST(test_slow_head_is_cut)
{
    start_with((struct server_config){.workers = 2, .header_timeout_ms = 1000});
    struct tls_client c;
    ck_assert(tls_client_open(&c, transport_port(), NULL));
    ck_assert(tls_client_send(&c, "GET /first HTTP/1.1\r\nHost: x\r\n\r\n"));
    ck_assert(tls_client_read_until(&c, "path=/first\n"));
    wait_ms(1500); /* an idle connection is none */
    ck_assert(tls_client_send(&c, "GET / HTTP/1.1\r\n"));
    int64_t before = now_ms();
    bool is_cut = false;
    while (!is_cut && now_ms() - before < 5000) {
        is_cut = !tls_client_send(&c, "X: y\r\n");
        wait_ms(100);
    }
    ck_assert(is_cut);
    ck_assert_int_lt((int)(now_ms() - before), 3000);
    tls_client_close(&c);
    transport_stop();
}
END_TEST

START_TEST(test_slow_handshake_is_cut)
{
    start_with((struct server_config){.workers = 2, .handshake_timeout_ms = 500});
    int64_t before = now_ms();
    int fd = tcp_connect(transport_port());
    char c;
    ck_assert_int_eq(recv(fd, &c, 1, 0), 0);
    ck_assert_int_lt((int)(now_ms() - before), 2000);
    close(fd);
    transport_stop();
}
END_TEST

START_TEST(test_idle_is_ended)
{
    start_with((struct server_config){.workers = 2, .idle_timeout_ms = 1000});
    struct tls_client c;
    int64_t before = now_ms();
    ck_assert(tls_client_open(&c, transport_port(), NULL));
    ck_assert(tls_client_send(&c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    ck_assert(tls_client_read_all(&c));
    ck_assert_ptr_nonnull(strstr(buf_cstr(&c.got), "sum="));
    ck_assert_int_ge((int)(now_ms() - before), 900);
    tls_client_close(&c);
    transport_stop();
}
END_TEST

START_TEST(test_connection_ceiling)
{
    start_with((struct server_config){.workers = 2, .max_connections = 3});
    struct tls_client c[4];
    for (int i = 0; i < 3; i++)
        ck_assert(tls_client_open(&c[i], transport_port(), NULL));
    ck_assert(!tls_client_open(&c[3], transport_port(), NULL));
    tls_client_close(&c[3]);
    tls_client_close(&c[0]);
    for (int i = 0; i < 1000 && !tls_client_open(&c[0], transport_port(), NULL); i++) {
        tls_client_close(&c[0]);
        wait_ms(5);
    }
    ck_assert(tls_client_send(&c[0], "GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    ck_assert(tls_client_read_until(&c[0], "sum="));
    for (int i = 0; i < 3; i++)
        tls_client_close(&c[i]);
    transport_stop();
}
END_TEST

/* ---- stop ---- */

static void *stop_slowly(void *arg)
{
    (void)arg;
    server_stop(transport.server, 5000);
    return NULL;
}

START_TEST(test_stop)
{
    start();
    struct tls_client idle, stream, held;
    ck_assert(tls_client_open(&idle, transport_port(), NULL));
    ck_assert(tls_client_send(&idle, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    ck_assert(tls_client_read_until(&idle, "sum="));
    open_stream(&stream, 0);
    ck_assert(tls_client_open(&held, transport_port(), NULL));
    ck_assert(tls_client_send(&held, "GET /held HTTP/1.1\r\nHost: x\r\n\r\n"));
    WAIT_FOR(atomic_load(&transport.n_held) == 1);
    pthread_t t;
    int64_t before = now_ms();
    pthread_create(&t, NULL, stop_slowly, NULL);
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
    start();
    struct tls_client used, stream, fresh;
    ck_assert(tls_client_open(&used, transport_port(), NULL));
    ck_assert(tls_client_send(&used, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    ck_assert(tls_client_read_until(&used, "sum="));
    open_stream(&stream, 0);
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
    start();
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
    TESTS("requests", test_get, test_absolute_target, test_repeated_headers, test_body_sizes,
          test_chunked_body, test_expect_continue, test_large_head, test_head_and_empty,
          test_keep_alive_and_pipelining, test_big_answer_to_slow_reader, test_half_close,
          test_parallel, test_too_many);
    LOOP("targets", test_raw_target, 0, ARRAY_LEN(raw_targets));
    TESTS("tls", test_client_chain, test_resumption, test_alpn, test_reload, test_start_errors);
    TESTS("streams", test_stream_events, test_stream_large_events, test_stream_peer_vanishes,
          test_stream_peer_vanishes_behind_rubbish, test_idle_streams_cost_nothing, test_wake_storm,
          test_stream_backpressure);
    TESTS("hostile", test_early_close, test_slow_head_is_cut, test_slow_handshake_is_cut,
          test_idle_is_ended, test_connection_ceiling);
    LOOP("malformed", test_malformed, 0, ARRAY_LEN(malformed));
    TESTS("stop", test_stop, test_send_away, test_stop_cuts);
}
