/* Answers over HTTP/1.1 that are streams, on a real socket: how their bytes are framed, what comes
 * before and after them, and clients that go, stop reading or never read. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "apiserver/base/log.h"
#include "apiserver/http/server.h"
#include "tests/lib/certs.h"
#include "tests/lib/suite.h"
#include "tests/lib/tls_client.h"
#include "tests/lib/transport.h"

#define MANY 200

static struct test_stream *stream(size_t i)
{
    return &transport.streams[i];
}

static int closed(size_t i)
{
    return atomic_load(&stream(i)->closed);
}

static void open_client(struct tls_client *c, const char *request)
{
    ck_assert(tls_client_open(c, transport_port(), NULL));
    ck_assert(tls_client_send(c, request));
}

static char *letters(size_t n)
{
    char *p = xmalloc(n + 1);
    for (size_t i = 0; i < n; i++)
        p[i] = (char)('a' + i * 7 % 26);
    p[n] = '\0';
    return p;
}

/* ---- framing ---- */

/* The data of chunks, which must be well formed to the last; what follows that one. Source: RFC
 * 9112, 7.1. */
static const char *take_chunks(const char *p, struct buf *data)
{
    for (;;) {
        char *end = NULL;
        ck_assert_msg(*p != '0' || p[1] == '\r', "a leading zero: %.20s", p);
        size_t n = strtoul(p, &end, 16);
        ck_assert_msg(end > p && strncmp(end, "\r\n", 2) == 0, "no chunk: %.20s", p);
        p = end + 2;
        ck_assert_uint_ge(strlen(p), n + 2);
        buf_append(data, p, n);
        ck_assert_msg(strncmp(p + n, "\r\n", 2) == 0, "no end of a chunk: %.20s", p + n);
        p += n + 2;
        if (n == 0)
            return p;
    }
}

static const char *body_of(const struct tls_client *c)
{
    const char *end = strstr(buf_cstr(&c->got), "\r\n\r\n");
    ck_assert_ptr_nonnull(end);
    return end + 4;
}

static const size_t sizes[] = {1,     15,    16,    255,   256,   4095,   4096,
                               16383, 16384, 16385, 65536, 99999, 1 << 20};

/* Puts one event of each size, each when the one before has arrived. */
static void put_sizes(struct tls_client *c, struct buf *want)
{
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        SCOPED_FREE char *text = letters(sizes[i]);
        SCOPED_FREE char *end = xasprintf("<%zu>\n", i);
        SCOPED_FREE char *event = xasprintf("%s%s", text, end);
        test_stream_put(stream(0), event);
        buf_puts(want, event);
        ck_assert(tls_client_read_until(c, end));
    }
    test_stream_put(stream(0), NULL);
    ck_assert(tls_client_read_all(c));
}

START_TEST(test_chunks)
{
    transport_start_http1(NULL);
    struct tls_client c;
    SCOPED(buf_fini) struct buf want = {0}, got = {0};
    transport_open_stream(&c, 0, "GET /stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    ck_assert_ptr_nonnull(strstr(buf_cstr(&c.got), "HTTP/1.1 200 OK\r\n"));
    ck_assert_ptr_nonnull(strstr(buf_cstr(&c.got), "\r\nTransfer-Encoding: chunked\r\n"));
    ck_assert_ptr_nonnull(strstr(buf_cstr(&c.got), "\r\nContent-Type: text/plain\r\n"));
    ck_assert_ptr_null(strstr(buf_cstr(&c.got), "Content-Length"));
    put_sizes(&c, &want);
    ck_assert_str_eq(take_chunks(body_of(&c), &got), "");
    ck_assert_str_eq(buf_cstr(&got), buf_cstr(&want));
    tls_client_close(&c);
    transport_stop();
    ck_assert_int_eq(closed(0), 1);
}
END_TEST

/* The eldest clients know no chunks, and an answer to CONNECT has none: the end of the connection
 * is the end. */
static const char *const unchunked[] = {
    "GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "CONNECT /stream HTTP/1.1\r\nHost: x\r\n\r\n",
};

START_TEST(test_without_chunks)
{
    transport_start_http1(NULL);
    struct tls_client c;
    SCOPED(buf_fini) struct buf want = {0};
    transport_open_stream(&c, 0, unchunked[_i]);
    ck_assert_ptr_null(strstr(buf_cstr(&c.got), "chunked"));
    put_sizes(&c, &want);
    ck_assert_str_eq(body_of(&c), buf_cstr(&want));
    tls_client_close(&c);
    transport_stop();
    ck_assert_int_eq(closed(0), 1);
}
END_TEST

/* What is over before it begins. */
START_TEST(test_short_streams)
{
    static const char *const texts[] = {"", "only words\n"};
    transport_start_http1(NULL);
    struct tls_client c;
    open_client(&c, "");
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        SCOPED(buf_fini) struct buf got = {0};
        test_stream_put(stream(i), texts[i]);
        test_stream_put(stream(i), NULL);
        ck_assert(tls_client_send(&c, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"));
        ck_assert(tls_client_read_until(&c, "0\r\n\r\n"));
        ck_assert_str_eq(take_chunks(body_of(&c), &got), "");
        ck_assert_str_eq(buf_cstr(&got), texts[i]);
        WAIT_FOR(closed(i) == 1);
        tls_client_clear(&c);
    }
    tls_client_close(&c);
    transport_stop();
}
END_TEST

/* What a client sends before the stream is over is answered after it. */
START_TEST(test_next_request)
{
    transport_start_http1(NULL);
    struct tls_client c;
    open_client(&c, "");
    for (size_t i = 0; i < 10; i++) {
        SCOPED(buf_fini) struct buf got = {0};
        tls_client_clear(&c);
        ck_assert(tls_client_send(&c, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"
                                      "GET /pipelined HTTP/1.1\r\nHost: x\r\n\r\n"));
        WAIT_FOR(atomic_load(&stream(i)->pulls) > 0);
        ck_assert(tls_client_send(&c, "GET /later HTTP/1.1\r\nHost: x\r\n\r\n"));
        test_stream_put(stream(i), "an event\n");
        ck_assert(tls_client_read_until(&c, "an event\n"));
        ck_assert_ptr_null(strstr(buf_cstr(&c.got), "path="));
        test_stream_put(stream(i), "the last\n");
        test_stream_put(stream(i), NULL);
        ck_assert(tls_client_read_until(&c, "path=/later\n"));
        const char *next = take_chunks(body_of(&c), &got);
        ck_assert_str_eq(buf_cstr(&got), "an event\nthe last\n");
        ck_assert_int_eq(strncmp(next, "HTTP/1.1 200 OK\r\n", 17), 0);
        ck_assert(strstr(next, "path=/pipelined\n") < strstr(next, "path=/later\n"));
        ck_assert(tls_client_read_until(&c, "sum="));
    }
    tls_client_close(&c);
    transport_stop();
}
END_TEST

/* ---- clients ---- */

/* Who sends no more is away, also with TLS still open; there is no last chunk then. */
START_TEST(test_half_close)
{
    transport_start_http1(NULL);
    struct tls_client c;
    transport_open_stream(&c, 0, NULL);
    tls_client_clear(&c);
    shutdown(c.fd, SHUT_WR);
    WAIT_FOR(closed(0) == 1);
    tls_client_read_all(&c);
    ck_assert_uint_eq(c.got.len, 0);
    tls_client_close(&c);
    transport_stop();
}
END_TEST

/* They go while the stream is on its way from the worker to them, in each of its stages. */
START_TEST(test_gone_meanwhile)
{
    transport_start_http1(NULL);
    for (int i = 0; i < MANY; i++) {
        struct tls_client c;
        size_t before = atomic_load(&transport.n_streams);
        open_client(&c, "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
        if (i % 4 == 3)
            WAIT_FOR(atomic_load(&transport.n_streams) > before);
        if (i % 2)
            shutdown(c.fd, SHUT_WR);
        tls_client_close(&c);
    }
    WAIT_FOR(atomic_load(&transport.n_running) == 0);
    transport_stop();
    size_t n = atomic_load(&transport.n_streams);
    ck_assert_uint_ge(n, MANY / 4);
    for (size_t i = 0; i < n; i++)
        ck_assert_int_eq(closed(i), 1);
}
END_TEST

/* A client that takes its time gets all of it. */
START_TEST(test_slow_reader)
{
    transport_start_http1(NULL);
    struct tls_client c;
    SCOPED(buf_fini) struct buf got = {0}, want = {0};
    SCOPED_FREE char *event = letters(50000);
    transport_open_stream(&c, 0, "GET /stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    for (int i = 0; i < 100; i++) {
        SCOPED_FREE char *mark = xasprintf("<%d>\n", i);
        buf_puts(&want, event);
        buf_puts(&want, mark);
        test_stream_put(stream(0), event);
        test_stream_put(stream(0), mark);
        if (i % 10 == 9)
            ck_assert(tls_client_read_until(&c, i < 50 ? "<0>" : "<30>"));
    }
    test_stream_put(stream(0), NULL);
    ck_assert(tls_client_read_all(&c));
    ck_assert_str_eq(take_chunks(body_of(&c), &got), "");
    ck_assert_str_eq(buf_cstr(&got), buf_cstr(&want));
    tls_client_close(&c);
    transport_stop();
}
END_TEST

static atomic_int n_cut;
static void count_cut(void *ctx, const char *line)
{
    (void)ctx;
    if (strstr(line, "client takes nothing"))
        atomic_fetch_add(&n_cut, 1);
}

/* One that never reads is cut off, by us when the kernel takes no more for it, by the kernel when
 * all that waits fits in there; who has nothing to read is not. */
static const size_t unread[] = {120000, 8000000};
START_TEST(test_silent_client_is_cut)
{
    transport_start_http1(&(struct server_config){.idle_timeout_ms = 1000});
    log_set_sink(count_cut, NULL);
    struct tls_client silent, quiet;
    transport_open_stream(&silent, 0, NULL);
    transport_open_stream(&quiet, 1, NULL);
    int small = 4096; /* no more than the window that was told already */
    setsockopt(silent.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    SCOPED_FREE char *event = letters(unread[_i]);
    int64_t before = now_ms();
    test_stream_put(stream(0), event);
    WAIT_FOR(closed(0) == 1);
    ck_assert_int_ge((int)(now_ms() - before), 900);
    WAIT_FOR(atomic_load(&n_cut) == 1);
    ck_assert_int_eq(closed(1), 0);
    test_stream_put(stream(1), "hello\n");
    ck_assert(tls_client_read_until(&quiet, "hello\n"));
    tls_client_close(&silent);
    tls_client_close(&quiet);
    transport_stop();
    log_set_sink(NULL, NULL);
    ck_assert_int_eq(atomic_load(&n_cut), 1);
}
END_TEST

/* ---- events ---- */

START_TEST(test_events)
{
    transport_start_http1(NULL);
    struct tls_client c;
    transport_open_stream(&c, 0, NULL);
    for (int i = 0; i < 20; i++) {
        SCOPED_FREE char *event = xasprintf("event %d.\n", i);
        wait_ms(i < 3 ? 120 : 1);
        test_stream_put(stream(0), event);
        ck_assert(tls_client_read_until(&c, event));
    }
    test_stream_put(stream(0), NULL);
    ck_assert(tls_client_read_until(&c, "\r\n0\r\n\r\n"));
    WAIT_FOR(closed(0) == 1);
    tls_client_clear(&c); /* and the connection goes on */
    ck_assert(tls_client_send(&c, "GET /after HTTP/1.1\r\nHost: x\r\n\r\n"));
    ck_assert(tls_client_read_until(&c, "path=/after\n"));
    tls_client_close(&c);
    transport_stop();
    ck_assert_int_eq(closed(0), 1);
}
END_TEST

START_TEST(test_large_events)
{
    transport_start_http1(NULL);
    struct tls_client c;
    transport_open_stream(&c, 0, NULL);
    SCOPED(buf_fini) struct buf b = {0};
    for (int i = 0; i < 2000000; i++)
        buf_putc(&b, (char)('a' + i % 26));
    buf_puts(&b, "END\n");
    for (int i = 0; i < 3; i++) {
        tls_client_clear(&c);
        test_stream_put(stream(0), buf_cstr(&b));
        ck_assert(tls_client_read_until(&c, "END\n"));
        ck_assert_uint_gt(c.got.len, b.len);
    }
    tls_client_close(&c);
    transport_stop();
}
END_TEST

START_TEST(test_peer_vanishes)
{
    transport_start_http1(NULL);
    struct tls_client c[4];
    for (size_t i = 0; i < 4; i++)
        transport_open_stream(&c[i], i, NULL);
    tls_client_close(&c[0]); /* without a word */
    WAIT_FOR(closed(0) == 1);
    SSL_shutdown(c[1].ssl); /* in order */
    WAIT_FOR(closed(1) == 1);
    struct linger reset = {.l_onoff = 1};
    setsockopt(c[2].fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    tls_client_close(&c[2]);
    WAIT_FOR(closed(2) == 1);
    ck_assert_int_eq(closed(3), 0);
    tls_client_close(&c[1]);
    tls_client_close(&c[3]);
    transport_stop();
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_eq(closed(i), 1);
}
END_TEST

/* A client that fills its way in with things nobody reads, and then goes. */
START_TEST(test_peer_vanishes_behind_rubbish)
{
    transport_start_http1(NULL);
    struct tls_client c;
    transport_open_stream(&c, 0, NULL);
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
    WAIT_FOR(closed(0) == 1);
    transport_stop();
}
END_TEST

START_TEST(test_idle_streams_cost_nothing)
{
    transport_start_http1(NULL);
    struct tls_client *c = xcalloc(MANY, sizeof *c);
    for (size_t i = 0; i < MANY; i++)
        transport_open_stream(&c[i], i, NULL);
    wait_ms(600); /* the last deadlines are taken off */
    int64_t before = cpu_us();
    wait_ms(2000);
    int64_t used = cpu_us() - before;
    ck_assert_msg(used < 20000, "%d us", (int)used); /* of two seconds: a hundredth */
    test_stream_put(stream(MANY - 1), "hello\n");
    ck_assert(tls_client_read_until(&c[MANY - 1], "hello\n"));
    for (size_t i = 0; i < MANY; i++)
        tls_client_close(&c[i]);
    free(c);
    transport_stop();
    for (size_t i = 0; i < MANY; i++)
        ck_assert_int_eq(closed(i), 1);
}
END_TEST

static atomic_bool is_storming;
static void *storm(void *arg)
{
    (void)arg;
    while (atomic_load(&is_storming)) {
        for (size_t i = 0; i < 3; i++) {
            test_stream_wake(stream(i));
        }
    }
    return NULL;
}

START_TEST(test_wake_storm)
{
    transport_start_http1(NULL);
    struct tls_client c[3];
    for (size_t i = 0; i < 3; i++)
        transport_open_stream(&c[i], i, NULL);
    pthread_t threads[4];
    atomic_store(&is_storming, true);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, storm, NULL);
    for (int n = 0; n < 300; n++) {
        for (size_t i = 0; i < 3; i++) {
            SCOPED_FREE char *event = xasprintf("event %d.\n", n);
            test_stream_put(stream(i), event);
            ck_assert(tls_client_read_until(&c[i], event));
            tls_client_clear(&c[i]);
        }
    }
    tls_client_close(&c[0]); /* in the middle of it */
    WAIT_FOR(closed(0) == 1);
    atomic_store(&is_storming, false);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    tls_client_close(&c[1]);
    tls_client_close(&c[2]);
    transport_stop();
}
END_TEST

/* A stream whose client does not read is not pulled for ever. */
START_TEST(test_backpressure)
{
    transport_start_http1(NULL);
    struct tls_client c;
    transport_open_stream(&c, 0, NULL);
    SCOPED_FREE char *event = xmalloc(65537);
    memset(event, 'e', 65536);
    event[65536] = '\0';
    int pulls = -1;
    for (int i = 0; i < 400 && pulls != atomic_load(&stream(0)->pulls); i++) {
        pulls = atomic_load(&stream(0)->pulls);
        test_stream_put(stream(0), event);
        wait_ms(20);
    }
    ck_assert_int_lt(pulls, 800);
    tls_client_close(&c);
    WAIT_FOR(closed(0) == 1);
    transport_stop();
}
END_TEST

/* ---- stop ---- */

/* All end in order, the last of them while they are handed over. */
START_TEST(test_stop_ends_all)
{
    transport_start_http1(NULL);
    struct tls_client *c = xcalloc(MANY, sizeof *c);
    for (size_t i = 0; i < MANY; i++) {
        if (i < MANY - 20)
            transport_open_stream(&c[i], i, NULL);
        else
            open_client(&c[i], "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    WAIT_FOR(atomic_load(&transport.n_streams) == MANY);
    pthread_t t = transport_stop_behind();
    for (size_t i = 0; i < MANY; i++) {
        SCOPED(buf_fini) struct buf got = {0};
        ck_assert(tls_client_read_all(&c[i]));
        ck_assert_str_eq(take_chunks(body_of(&c[i]), &got), "");
        tls_client_close(&c[i]);
    }
    pthread_join(t, NULL);
    transport_stop();
    for (size_t i = 0; i < MANY; i++)
        ck_assert_int_eq(closed(i), 1);
    free(c);
}
END_TEST

SUITE(stream)
{
    transport_certificates();
    TESTS("framing", test_chunks, test_short_streams, test_next_request);
    LOOP("no chunks", test_without_chunks, 0, ARRAY_LEN(unchunked));
    TESTS("clients", test_half_close, test_gone_meanwhile, test_slow_reader);
    TESTS("events", test_events, test_large_events, test_peer_vanishes,
          test_peer_vanishes_behind_rubbish, test_idle_streams_cost_nothing, test_wake_storm,
          test_backpressure);
    LOOP("silent", test_silent_client_is_cut, 0, ARRAY_LEN(unread));
    TESTS("stop", test_stop_ends_all);
}
