/* Streams over HTTP/2, as watches are: events, peers that vanish or do not read, windows, and what
 * many that have nothing to say cost. */
#include <pthread.h>
#include <sys/socket.h>

#include "tests/unit/http/h2_fixture.h"

START_TEST(test_stream_events)
{
    start();
    struct h2_client c;
    open_client(&c, NULL);
    struct h2_reply *r = open_stream(&c);
    for (int i = 0; i < 20; i++) {
        SCOPED_FREE char *event = xasprintf("event %d.\n", i);
        wait_ms(i < 3 ? 120 : 1);
        test_stream_put(&transport.streams[0], event);
        ck_assert(H2_UNTIL(&c, has(r, event)));
    }
    test_stream_put(&transport.streams[0], NULL);
    ck_assert(H2_UNTIL(&c, r->is_closed));
    ck_assert_uint_eq(r->error, NGHTTP2_NO_ERROR);
    WAIT_FOR(closed(0) == 1);
    ck_assert(has(get(&c, "/after"), "path=/after\n")); /* and the connection goes on */
    h2_client_close(&c);
    transport_stop();
    ck_assert_int_eq(closed(0), 1);
}
END_TEST

START_TEST(test_stream_large_events)
{
    start();
    struct h2_client c;
    open_client(&c, NULL);
    struct h2_reply *r = open_stream(&c);
    SCOPED(buf_fini) struct buf b = {0};
    for (int i = 0; i < 2000000; i++)
        buf_putc(&b, (char)('a' + i % 26));
    for (size_t i = 1; i <= 3; i++) {
        test_stream_put(&transport.streams[0], buf_cstr(&b));
        ck_assert(H2_UNTIL(&c, r->body.len == i * b.len));
        ck_assert_int_eq(memcmp(r->body.data + (i - 1) * b.len, b.data, b.len), 0);
    }
    h2_client_close(&c);
    transport_stop();
}
END_TEST

START_TEST(test_stream_cancelled)
{
    start();
    struct h2_client c;
    open_client(&c, NULL);
    struct h2_reply *first = open_stream(&c), *second = open_stream(&c);
    h2_client_cancel(&c, first);
    WAIT_FOR(closed(0) == 1);
    test_stream_put(&transport.streams[0], "nobody hears this\n");
    test_stream_put(&transport.streams[1], "still here\n");
    ck_assert(H2_UNTIL(&c, has(second, "still here\n")));
    ck_assert_int_eq(closed(1), 0);
    h2_client_close(&c);
    WAIT_FOR(closed(1) == 1);
    transport_stop();
}
END_TEST

START_TEST(test_stream_peer_vanishes)
{
    start();
    struct h2_client c[4];
    for (size_t i = 0; i < 4; i++) {
        open_client(&c[i], NULL);
        open_stream(&c[i]);
    }
    h2_client_close(&c[0]); /* without a word */
    WAIT_FOR(closed(0) == 1);
    SSL_shutdown(c[1].tls.ssl); /* in order */
    WAIT_FOR(closed(1) == 1);
    struct linger reset = {.l_onoff = 1};
    setsockopt(c[2].tls.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    h2_client_close(&c[2]);
    WAIT_FOR(closed(2) == 1);
    ck_assert_int_eq(closed(3), 0);
    h2_client_close(&c[1]);
    h2_client_close(&c[3]);
    transport_stop();
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_eq(closed(i), 1);
}
END_TEST

/* A client that says that it will send no more still gets its answer; bodies under way are lost. */
START_TEST(test_half_close)
{
    start();
    struct h2_client c;
    open_client(&c, NULL);
    struct h2_reply *held = h2_client_send(&c, "GET", "/held", NULL, NULL, 0);
    h2_client_send(&c, "POST", "/", NULL, NULL, 1);
    h2_client_flush(&c);
    WAIT_FOR(atomic_load(&transport.n_held) == 1);
    SSL_shutdown(c.tls.ssl);
    shutdown(c.tls.fd, SHUT_WR);
    wait_ms(300);
    atomic_store(&transport.is_released, true);
    ck_assert(H2_UNTIL(&c, held->is_closed));
    ck_assert(has(held, "released"));
    ck_assert(!H2_UNTIL(&c, false)); /* to its end */
    h2_client_close(&c);
    transport_stop();
}
END_TEST

#define WATCHES 200
START_TEST(test_idle_streams_cost_nothing)
{
    start();
    struct h2_client c;
    struct h2_reply *r = NULL;
    open_client(&c, NULL);
    for (size_t i = 0; i < WATCHES; i++)
        r = open_stream(&c);
    wait_ms(600); /* the last deadlines are taken off */
    int64_t before = cpu_us();
    wait_ms(2000);
    int64_t used = cpu_us() - before;
    ck_assert_msg(used < 20000, "%d us", (int)used); /* of two seconds: a hundredth */
    test_stream_put(&transport.streams[WATCHES - 1], "hello\n");
    ck_assert(H2_UNTIL(&c, has(r, "hello\n")));
    h2_client_close(&c);
    transport_stop();
    for (size_t i = 0; i < WATCHES; i++)
        ck_assert_int_eq(closed(i), 1);
}
END_TEST

static atomic_bool is_storming;
static void *storm(void *arg)
{
    (void)arg;
    while (atomic_load(&is_storming))
        for (size_t i = 0; i < 3; i++)
            test_stream_wake(&transport.streams[i]);
    return NULL;
}

START_TEST(test_wake_storm)
{
    start();
    struct h2_client c;
    struct h2_reply *r[3];
    open_client(&c, NULL);
    for (size_t i = 0; i < 3; i++)
        r[i] = open_stream(&c);
    pthread_t threads[4];
    atomic_store(&is_storming, true);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, storm, NULL);
    for (int n = 0; n < 300; n++) {
        for (size_t i = 0; i < 3; i++) {
            SCOPED_FREE char *event = xasprintf("event %d.\n", n);
            test_stream_put(&transport.streams[i], event);
            ck_assert(H2_UNTIL(&c, has(r[i], event)));
        }
    }
    h2_client_cancel(&c, r[0]); /* in the middle of it */
    WAIT_FOR(closed(0) == 1);
    h2_client_close(&c);
    WAIT_FOR(closed(1) == 1 && closed(2) == 1);
    atomic_store(&is_storming, false);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    transport_stop();
}
END_TEST

/* A stream whose window is closed is not pulled; others go on. */
START_TEST(test_stream_backpressure)
{
    start();
    struct h2_client c;
    open_client(&c, &(struct h2_client_opts){.window = 100000, .is_lazy = true});
    struct h2_reply *slow = open_stream(&c), *other = open_stream(&c);
    SCOPED_FREE char *event = xmalloc(65537);
    memset(event, 'e', 65536);
    event[65536] = '\0';
    for (int i = 0; i < 50; i++)
        test_stream_put(&transport.streams[0], event);
    ck_assert(H2_UNTIL(&c, slow->body.len == 100000));
    int pulls = atomic_load(&transport.streams[0].pulls);
    for (int i = 0; i < 50; i++)
        test_stream_put(&transport.streams[0], event);
    test_stream_put(&transport.streams[1], "other\n");
    ck_assert(H2_UNTIL(&c, has(other, "other\n")));
    wait_ms(50);
    ck_assert_int_le(atomic_load(&transport.streams[0].pulls), pulls + 2);
    size_t consumed = 0;
    while (slow->body.len < 100 * (size_t)65536) {
        h2_client_consume(&c, slow, slow->body.len - consumed);
        consumed = slow->body.len;
        ck_assert(h2_client_step(&c));
    }
    h2_client_close(&c);
    transport_stop();
}
END_TEST

/* With data waiting and its window closed for too long it is ended; who only waits is not. */
START_TEST(test_stalled_stream_is_reset)
{
    transport_start((struct server_config){.idle_timeout_ms = 1000});
    struct h2_client c;
    open_client(&c, &(struct h2_client_opts){.window = 1000, .is_lazy = true});
    struct h2_reply *slow = open_stream(&c), *quiet = open_stream(&c);
    SCOPED_FREE char *event = xmalloc(2001);
    memset(event, 'e', 2000);
    event[2000] = '\0';
    int64_t before = now_ms();
    test_stream_put(&transport.streams[0], event);
    ck_assert(H2_UNTIL(&c, slow->is_closed));
    ck_assert_uint_eq(slow->error, NGHTTP2_CANCEL);
    ck_assert_uint_eq(slow->body.len, 1000);
    ck_assert_int_ge((int)(now_ms() - before), 900);
    WAIT_FOR(closed(0) == 1);
    ck_assert(!quiet->is_closed && closed(1) == 0);
    h2_client_close(&c);
    transport_stop();
}
END_TEST

/* A client that takes nothing at all from its connection. */
START_TEST(test_stalled_connection_is_cut)
{
    transport_start((struct server_config){.idle_timeout_ms = 1000});
    struct h2_client c;
    open_client(&c, NULL);
    open_stream(&c);
    SCOPED_FREE char *event = xmalloc(4000001);
    memset(event, 'e', 4000000);
    event[4000000] = '\0';
    for (int i = 0; i < 5; i++)
        test_stream_put(&transport.streams[0], event);
    WAIT_FOR(closed(0) == 1);
    h2_client_close(&c);
    transport_stop();
}
END_TEST

SUITE(h2_stream)
{
    transport_certificates();
    TESTS("streams", test_stream_events, test_stream_large_events, test_stream_cancelled,
          test_stream_peer_vanishes, test_half_close, test_idle_streams_cost_nothing,
          test_wake_storm, test_stream_backpressure, test_stalled_stream_is_reset,
          test_stalled_connection_is_cut);
}
