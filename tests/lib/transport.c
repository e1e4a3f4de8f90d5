/* The server under test and what it answers. */
#include "tests/lib/transport.h"

#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#include "apiserver/base/clock.h"
#include "apiserver/http/socket.h"
#include "tests/lib/certs.h"
#include "tests/lib/suite.h"

struct transport transport;

/* ---- streams ---- */

static int stream_pull(struct stream *s, struct buf *out)
{
    struct test_stream *t = (struct test_stream *)s;
    atomic_fetch_add(&t->pulls, 1);
    pthread_mutex_lock(&t->lock);
    t->is_armed = true;
    int r = t->ready.len > 0 ? 1 : t->is_over ? -1 : 0;
    buf_append(out, buf_cstr(&t->ready), t->ready.len);
    buf_clear(&t->ready);
    pthread_mutex_unlock(&t->lock);
    return r;
}

/* After this nobody wakes, as the interface demands. */
static void stream_close(struct stream *s)
{
    struct test_stream *t = (struct test_stream *)s;
    pthread_mutex_lock(&t->lock);
    t->is_armed = false;
    pthread_mutex_unlock(&t->lock);
    atomic_fetch_add(&t->closed, 1);
}

static void stream_init(struct test_stream *t)
{
    *t = (struct test_stream){.s = {.pull = stream_pull, .close = stream_close}};
    pthread_mutex_init(&t->lock, NULL);
}

static void stream_fini(struct test_stream *t)
{
    pthread_mutex_destroy(&t->lock);
    buf_fini(&t->ready);
}

void test_stream_put(struct test_stream *t, const char *text)
{
    pthread_mutex_lock(&t->lock);
    if (text)
        buf_puts(&t->ready, text);
    else
        t->is_over = true;
    if (t->is_armed)
        t->s.wake(t->s.wake_ctx);
    pthread_mutex_unlock(&t->lock);
}

void test_stream_wake(struct test_stream *t)
{
    pthread_mutex_lock(&t->lock);
    if (t->is_armed)
        t->s.wake(t->s.wake_ctx);
    pthread_mutex_unlock(&t->lock);
}

/* ---- answers ---- */

static void print_request(const struct request *req, struct buf *out)
{
    buf_printf(out, "method=%s\npath=%s\nquery=%s\nbody=%zu\ntoo_large=%d\nchain=%zu\n",
               req->method, req->path, req->query, req->body.len, req->body_too_large,
               req->n_chain);
    for (size_t i = 0; i < req->n_chain; i++)
        buf_printf(out, "der=%zu first=%02x\n", req->chain[i].n, req->chain[i].p[0]);
    for (size_t i = 0; i < req->headers.n; i++)
        buf_printf(out, "%s: %s\n", req->headers.v[i].name, req->headers.v[i].value);
    uint32_t sum = 0;
    for (size_t i = 0; i < req->body.len; i++)
        sum = sum * 31 + (unsigned char)req->body.data[i];
    buf_printf(out, "sum=%u\n", sum);
}

void wait_ms(int ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    nanosleep(&t, NULL);
}

static void hold(void)
{
    atomic_fetch_add(&transport.n_held, 1);
    while (!atomic_load(&transport.is_released))
        wait_ms(2);
}

static void handle(void *ctx, struct request *req, struct response *resp)
{
    struct transport *t = ctx;
    atomic_fetch_add(&t->n_running, 1);
    resp->status = req->body_too_large ? 413 : 200;
    pairs_add(&resp->headers, "Content-Type", "text/plain");
    if (strcmp(req->path, "/stream") == 0) {
        resp->stream = &t->streams[atomic_fetch_add(&t->n_streams, 1)].s;
    } else if (strcmp(req->path, "/socket") == 0) {
        resp->stream = &t->streams[atomic_fetch_add(&t->n_streams, 1)].s;
        socket_upgrade(req, resp);
    } else if (strcmp(req->path, "/held") == 0) {
        hold();
        buf_puts(&resp->body, "released");
    } else if (strcmp(req->path, "/big") == 0) {
        for (int i = 0; i < 100000; i++)
            buf_puts(&resp->body, "0123456789abcdef0123456789abcdef");
    } else if (strcmp(req->path, "/headers") == 0) {
        pairs_add(&resp->headers, "Warning", "299 - \"one\"");
        pairs_add(&resp->headers, "Warning", "299 - \"two\"");
        pairs_add(&resp->headers, "Connection", "close");
        pairs_add(&resp->headers, "Broken", "a\r\nb");
    } else if (strcmp(req->path, "/empty") == 0) {
        resp->status = 204;
    } else {
        print_request(req, &resp->body);
    }
    atomic_fetch_sub(&t->n_running, 1);
}

/* ---- start and stop ---- */

void transport_certificates(void)
{
    certs_init();
    certs_make("ca", NULL, "/CN=server-ca", CERTS_CA, 10);
    certs_make("server", "ca", "/CN=first", CERTS_SERVER, 10);
    certs_make("renewed", "ca", "/CN=renewed", CERTS_SERVER, 10);
    certs_make("client-ca", NULL, "/CN=client-ca", CERTS_CA, 10);
    certs_make("middle", "client-ca", "/CN=middle", CERTS_CA, 10);
    certs_make("client", "middle", "/O=team/CN=jane", CERTS_CLIENT, 10);
    certs_join("client-chain.crt", (const char *[]){"client.crt", "middle.crt", NULL});
}

void transport_start(struct server_config config)
{
    struct err err = {0};
    config.bind_address = "127.0.0.1";
    config.cert_file = config.cert_file ? config.cert_file : certs_path("server.crt");
    config.key_file = config.key_file ? config.key_file : certs_path("server.key");
    config.workers = config.workers ? config.workers : 8;
    config.handler = handle;
    config.ctx = &transport;
    for (size_t i = 0; i < TRANSPORT_STREAMS; i++)
        stream_init(&transport.streams[i]);
    ck_assert_msg(server_start(&config, &transport.server, &err) == 0, "%s", err_text(&err));
    transport.fetch = fetch_new();
}

void transport_start_http1(const struct server_config *config)
{
    struct server_config c = config ? *config : (struct server_config){0};
    c.disable_http2 = true;
    transport_start(c);
}

static void *stop(void *unused)
{
    (void)unused;
    server_stop(transport.server, 10000);
    return NULL;
}

pthread_t transport_stop_behind(void)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, stop, NULL), 0);
    return thread;
}

void transport_stop(void)
{
    fetch_free(transport.fetch);
    server_stop(transport.server, 2000);
    server_free(transport.server);
    for (size_t i = 0; i < TRANSPORT_STREAMS; i++)
        stream_fini(&transport.streams[i]);
}

int transport_port(void)
{
    return server_port(transport.server);
}

void transport_open_stream(struct tls_client *c, size_t i, const char *request)
{
    ck_assert(tls_client_open(c, transport_port(), NULL));
    ck_assert(tls_client_send(c, request ? request : "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"));
    ck_assert(tls_client_read_until(c, "\r\n\r\n")); /* the head comes before any event */
    WAIT_FOR(atomic_load(&transport.streams[i].pulls) > 0);
}

int transport_call(const struct transport_call *call, struct fetch_response *ret)
{
    SCOPED(err_fini) struct err err = {0};
    SCOPED_FREE char *url = xasprintf("https://127.0.0.1:%d%s", transport_port(), call->path);
    struct fetch_tls tls = {.ca_file = certs_path("ca.crt")};
    if (call->with_certificate) {
        tls.cert_file = certs_path("client-chain.crt");
        tls.key_file = certs_path("client.key");
    }
    struct fetch_request req = {.method = call->method,
                                .url = url,
                                .headers = &call->headers,
                                .body = call->body,
                                .body_len = call->body_len,
                                .tls = &tls,
                                .timeout_ms = 20000};
    int r = fetch_do(transport.fetch, &req, ret, &err);
    ck_assert_msg(r == 0, "%s %s: %s", call->method, call->path, err_text(&err));
    return ret->status;
}

bool transport_says(const struct fetch_response *r, const char *text)
{
    return strstr(buf_cstr(&r->body), text) != NULL;
}

int64_t now_ms(void)
{
    return clock_monotonic_ms(&clock_system);
}

int64_t cpu_us(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (int64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 + u.ru_utime.tv_usec +
           u.ru_stime.tv_usec;
}
