/* Clients over HTTP/2 that mean no good or know no better: floods of frames, broken prefaces, slow
 * and idle ones, and answers that nobody reads; on a socket, and fed by hand. */
#include "apiserver/http/h2.h"
#include "tests/unit/http/h2_fixture.h"

static void put_many(struct buf *out, int n, uint8_t type, const void *payload, size_t len)
{
    for (int i = 0; i < n; i++)
        h2_put_frame(out, type, 0, 0, payload, len);
}

static void put_pings(struct buf *out)
{
    put_many(out, 6000, NGHTTP2_PING, "12345678", 8);
}

static void put_settings(struct buf *out)
{
    put_many(out, 6000, NGHTTP2_SETTINGS, "", 0);
}

static void put_window_updates(struct buf *out)
{
    put_many(out, 6000, NGHTTP2_WINDOW_UPDATE, "\0\0\0\1", 4);
}

static void put_priorities(struct buf *out)
{
    for (int i = 0; i < 6000; i++)
        h2_put_frame(out, NGHTTP2_PRIORITY, 0, 2 * i + 1, "\0\0\0\0\1", 5);
}

static void put_empty_data(struct buf *out)
{
    SCOPED(buf_fini) struct buf head = {0};
    h2_put_field(&head, ":method", "POST");
    h2_put_field(&head, ":scheme", "https");
    h2_put_field(&head, ":path", "/");
    h2_put_field(&head, ":authority", "x");
    h2_put_frame(out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, head.data, head.len);
    for (int i = 0; i < 6000; i++) /* half of them all padding */
        h2_put_frame(out, NGHTTP2_DATA, i & 1 ? NGHTTP2_FLAG_PADDED : 0, 1, "\3\0\0\0",
                     i & 1 ? 4 : 0);
}

static void put_continuations(struct buf *out)
{
    h2_put_frame(out, NGHTTP2_HEADERS, 0, 1, "\x82\x87\x84", 3);
    for (int i = 0; i < 200; i++)
        h2_put_frame(out, NGHTTP2_CONTINUATION, 0, 1, "", 0);
}

static void put_rapid_resets(struct buf *out)
{
    for (int i = 0; i < 1500; i++) {
        h2_put_get(out, 2 * i + 1, "/");
        h2_put_frame(out, NGHTTP2_RST_STREAM, 0, 2 * i + 1, "\0\0\0\x8", 4);
    }
}

/* Requests that make the server take them back itself. */
static void put_made_resets(struct buf *out)
{
    SCOPED(buf_fini) struct buf head = {0};
    h2_put_field(&head, ":method", "GET");
    h2_put_field(&head, "connection", "close");
    for (int i = 0; i < 2500; i++)
        h2_put_frame(out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM,
                     2 * i + 1, head.data, head.len);
}

/* A field of 100 bytes is put into the table of the compression, then named 10,000 times by a byte
 * each. */
static void put_bomb(struct buf *out)
{
    SCOPED(buf_fini) struct buf head = {0};
    buf_puts(&head, "\x82\x87\x84\x40\x03x-a\x60");
    for (int i = 0; i < 96; i++)
        buf_putc(&head, 'v');
    for (int i = 0; i < 10000; i++)
        buf_putc(&head, '\xbe');
    h2_put_frame(out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 1,
                 head.data, head.len);
}

static void put_broken_compression(struct buf *out)
{
    h2_put_frame(out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, "\xff\xff\xff\xff\xff\xff", 6);
}

static void put_oversized(struct buf *out)
{
    static const char zeros[20000];
    h2_put_frame(out, NGHTTP2_DATA, 0, 1, zeros, sizeof zeros);
}

static void put_even_stream(struct buf *out)
{
    h2_put_get(out, 2, "/");
}

static void put_window_overflow(struct buf *out)
{
    h2_put_frame(out, NGHTTP2_WINDOW_UPDATE, 0, 0, "\x7f\xff\xff\xff", 4);
}

static void put_priority_of_none(struct buf *out)
{
    h2_put_frame(out, NGHTTP2_PRIORITY, 0, 0, "\0\0\0\0\1", 5);
}

static void put_push(struct buf *out)
{
    h2_put_frame(out, NGHTTP2_PUSH_PROMISE, NGHTTP2_FLAG_END_HEADERS, 1, "\0\0\0\2", 4);
}

static void put_nothing(struct buf *out)
{
    (void)out;
}

static const struct {
    const char *name;
    void (*put)(struct buf *out);
    uint32_t want;
} floods[] = {
    {"pings", put_pings, NGHTTP2_ENHANCE_YOUR_CALM},
    {"settings", put_settings, NGHTTP2_ENHANCE_YOUR_CALM},
    {"window updates", put_window_updates, NGHTTP2_ENHANCE_YOUR_CALM},
    {"priorities", put_priorities, NGHTTP2_ENHANCE_YOUR_CALM},
    {"empty data", put_empty_data, NGHTTP2_ENHANCE_YOUR_CALM},
    {"continuations", put_continuations, NGHTTP2_PROTOCOL_ERROR},
    {"rapid resets", put_rapid_resets, NGHTTP2_ENHANCE_YOUR_CALM},
    {"resets it makes us send", put_made_resets, NGHTTP2_ENHANCE_YOUR_CALM},
    {"compression bomb", put_bomb, NGHTTP2_ENHANCE_YOUR_CALM},
    {"broken compression", put_broken_compression, NGHTTP2_COMPRESSION_ERROR},
    {"oversized frame", put_oversized, NGHTTP2_FRAME_SIZE_ERROR},
    {"even stream", put_even_stream, NGHTTP2_PROTOCOL_ERROR},
    {"window overflow", put_window_overflow, NGHTTP2_FLOW_CONTROL_ERROR},
    {"push", put_push, NGHTTP2_PROTOCOL_ERROR},
    {"priority of no stream", put_priority_of_none, NGHTTP2_PROTOCOL_ERROR},
};

START_TEST(test_flood)
{
    start();
    struct tls_client c;
    SCOPED(buf_fini) struct buf out = {0};
    floods[_i].put(&out);
    ck_assert(h2_raw_open(&c, transport_port()));
    tls_client_send_bytes(&c, out.data, out.len); /* may be cut off within */
    uint32_t code = h2_raw_goaway(&c);
    ck_assert_msg(code == floods[_i].want, "%s: %u", floods[_i].name, code);
    tls_client_close(&c);
    struct h2_client next; /* and the server is well */
    open_client(&next, NULL);
    ck_assert_int_eq(get(&next, "/")->status, 200);
    h2_client_close(&next);
    transport_stop();
}
END_TEST

/* What well-behaved clients do a lot of is no flood: ending all of many watches at once. */
START_TEST(test_many_cancelled)
{
    start();
    struct h2_client c;
    open_client(&c, NULL);
    for (int round = 0; round < 2; round++) {
        struct h2_reply *r[900];
        for (int i = 0; i < 900; i++)
            r[i] = h2_client_send(&c, "GET", "/stream", NULL, NULL, 0);
        for (int i = 0; i < 900; i++)
            ck_assert(H2_UNTIL(&c, r[i]->status != 0));
        for (int i = 0; i < 900; i++)
            h2_client_cancel(&c, r[i]);
    }
    ck_assert_int_eq(get(&c, "/")->status, 200);
    h2_client_close(&c);
    transport_stop();
}
END_TEST

START_TEST(test_stream_ceiling)
{
    start();
    struct tls_client c;
    struct h2_frame f;
    SCOPED(buf_fini) struct buf out = {0};
    ck_assert(h2_raw_open(&c, transport_port()));
    for (int i = 0; i < H2_STREAMS_MAX; i++) {
        buf_clear(&out);
        h2_put_get(&out, 2 * i + 1, "/stream");
        ck_assert(tls_client_send_bytes(&c, out.data, out.len));
        ck_assert(h2_raw_until(&c, NGHTTP2_HEADERS, 2 * i + 1, &f));
    }
    buf_clear(&out);
    h2_put_get(&out, 2 * H2_STREAMS_MAX + 1, "/stream");
    ck_assert(tls_client_send_bytes(&c, out.data, out.len));
    ck_assert_uint_eq(h2_raw_reset(&c, 2 * H2_STREAMS_MAX + 1), NGHTTP2_REFUSED_STREAM);
    buf_clear(&out);
    h2_put_frame(&out, NGHTTP2_RST_STREAM, 0, 1, "\0\0\0\x8", 4);
    h2_put_get(&out, 2 * H2_STREAMS_MAX + 3, "/");
    ck_assert(tls_client_send_bytes(&c, out.data, out.len));
    ck_assert(h2_raw_until(&c, NGHTTP2_HEADERS, 2 * H2_STREAMS_MAX + 3, &f));
    tls_client_close(&c);
    transport_stop();
}
END_TEST

START_TEST(test_settings)
{
    static const uint32_t want[][2] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, H2_STREAMS_MAX},
                                       {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, 65536},
                                       {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1}};
    start();
    struct tls_client c;
    struct h2_frame f;
    size_t found = 0;
    ck_assert(h2_raw_open(&c, transport_port()));
    ck_assert(h2_raw_next(&c, &f)); /* the first of all frames */
    ck_assert_int_eq(f.type, NGHTTP2_SETTINGS);
    for (size_t i = 0; i + 6 <= f.n; i += 6)
        for (size_t j = 0; j < ARRAY_LEN(want); j++)
            found += (uint32_t)(f.payload[i] << 8 | f.payload[i + 1]) == want[j][0] &&
                     ((uint32_t)f.payload[i + 2] << 24 | (uint32_t)f.payload[i + 3] << 16 |
                      (uint32_t)f.payload[i + 4] << 8 | f.payload[i + 5]) == want[j][1];
    ck_assert_uint_eq(found, ARRAY_LEN(want));
    tls_client_close(&c);
    transport_stop();
}
END_TEST

/* A body that is not read opens no window: what comes beyond it is an error of the client's. The
 * stream is with a worker, so nothing else ends it. */
START_TEST(test_body_beyond_its_window)
{
    start();
    struct tls_client c;
    SCOPED(buf_fini) struct buf out = {0}, head = {0};
    static const char zeros[16384];
    h2_put_field(&head, ":method", "POST");
    h2_put_field(&head, ":scheme", "https");
    h2_put_field(&head, ":path", "/held");
    h2_put_field(&head, ":authority", "x");
    h2_put_field(&head, "content-length", "99999999");
    h2_put_frame(&out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, head.data, head.len);
    for (int i = 0; i < 30; i++)
        h2_put_frame(&out, NGHTTP2_DATA, 0, 1, zeros, sizeof zeros);
    ck_assert(h2_raw_open(&c, transport_port()));
    tls_client_send_bytes(&c, out.data, out.len);
    ck_assert_uint_eq(h2_raw_reset(&c, 1), NGHTTP2_FLOW_CONTROL_ERROR);
    atomic_store(&transport.is_released, true);
    tls_client_close(&c);
    transport_stop();
}
END_TEST

START_TEST(test_early_close)
{
    start();
    static void (*const puts[])(struct buf *) = {put_nothing,       put_pings,
                                                 put_continuations, put_rapid_resets,
                                                 put_even_stream,   put_empty_data};
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < ARRAY_LEN(puts); i++) {
            struct tls_client c;
            SCOPED(buf_fini) struct buf out = {0};
            puts[i](&out);
            h2_put_get(&out, 10001, "/big");
            ck_assert(h2_raw_open(&c, transport_port()));
            tls_client_send_bytes(&c, out.data, out.len - (size_t)round);
            wait_ms(round * 5);
            tls_client_close(&c);
        }
    }
    transport_stop();
    ck_assert_int_eq(atomic_load(&transport.n_running), 0);
}
END_TEST

static const char *const prefaces[] = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "rubbish of any kind",
                                       "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n"};

START_TEST(test_bad_preface)
{
    start();
    struct tls_client c;
    ck_assert(tls_client_open(&c, transport_port(), &(struct tls_client_opts){.alpn = "\x02h2"}));
    ck_assert(tls_client_send(&c, prefaces[_i]));
    int64_t before = now_ms();
    ck_assert_uint_eq(h2_raw_goaway(&c), NGHTTP2_PROTOCOL_ERROR);
    struct h2_frame f;
    ck_assert(!h2_raw_next(&c, &f));
    ck_assert_int_lt((int)(now_ms() - before), 3000);
    tls_client_close(&c);
    transport_stop();
}
END_TEST

static void expect_end(struct tls_client *c, uint32_t code, int at_least_ms, int64_t since)
{
    struct h2_frame f;
    ck_assert_uint_eq(h2_raw_goaway(c), code);
    ck_assert(!h2_raw_next(c, &f));
    ck_assert_int_ge((int)(now_ms() - since), at_least_ms);
    ck_assert_int_lt((int)(now_ms() - since), at_least_ms + 3000);
    tls_client_close(c);
}

START_TEST(test_slow_ones_are_cut)
{
    transport_start((struct server_config){.header_timeout_ms = 1000});
    struct tls_client silent, slow;
    SCOPED(buf_fini) struct buf out = {0};
    int64_t before = now_ms();
    ck_assert(
        tls_client_open(&silent, transport_port(), &(struct tls_client_opts){.alpn = "\x02h2"}));
    ck_assert(h2_raw_open(&slow, transport_port()));
    h2_put_frame(&out, NGHTTP2_HEADERS, 0, 1, "\x82\x87\x84", 3);
    ck_assert(tls_client_send_bytes(&slow, out.data, out.len));
    expect_end(&silent, NGHTTP2_ENHANCE_YOUR_CALM, 900, before);
    expect_end(&slow, NGHTTP2_ENHANCE_YOUR_CALM, 900, before);
    transport_stop();
}
END_TEST

START_TEST(test_idle_is_ended)
{
    transport_start((struct server_config){.idle_timeout_ms = 1000});
    struct tls_client c;
    SCOPED(buf_fini) struct buf out = {0};
    struct h2_frame f;
    h2_put_get(&out, 1, "/");
    ck_assert(h2_raw_open(&c, transport_port()));
    ck_assert(tls_client_send_bytes(&c, out.data, out.len));
    ck_assert(h2_raw_until(&c, NGHTTP2_DATA, 1, &f));
    expect_end(&c, NGHTTP2_NO_ERROR, 900, now_ms());
    transport_stop();
}
END_TEST

/* ---- without a socket ---- */

static void notify_nobody(void *ctx)
{
    (void)ctx;
}

static void answer_plainly(void *ctx, struct request *req, struct response *resp)
{
    (void)ctx;
    (void)req;
    resp->status = 200;
}

/* What a client may have us keep by not reading. */
static bool feeds_on(void (*put)(struct buf *out))
{
    struct budget bodies = {.max = 1 << 20};
    struct h2_config config = {.handler = answer_plainly,
                               .bodies = &bodies,
                               .max_body = 1000,
                               .header_timeout_ms = 1000,
                               .idle_timeout_ms = 1000};
    struct mailbox box;
    SCOPED(buf_fini) struct buf spare = {0};
    mailbox_init(&box, notify_nobody, NULL);
    struct peer *peer = peer_new(NULL, 0, "test");
    struct h2 *h = h2_new(&config, peer, &box, &spare, notify_nobody, NULL);
    SCOPED(buf_fini) struct buf out = {0};
    h2_put_preface(&out);
    put(&out);
    bool goes_on = true;
    for (size_t i = 0; goes_on && i < out.len; i += 1000) {
        goes_on = h2_feed(h, out.data + i, out.len - i < 1000 ? out.len - i : 1000);
        mailbox_open(&box);
    }
    h2_free(h);
    mailbox_open(&box);
    mailbox_fini(&box);
    peer_unref(peer);
    ck_assert_uint_eq(atomic_load(&bodies.used), 0);
    return goes_on;
}

static void put_some_pings(struct buf *out)
{
    put_many(out, 900, NGHTTP2_PING, "12345678", 8);
}

static void put_more_pings(struct buf *out)
{
    put_many(out, 1200, NGHTTP2_PING, "12345678", 8);
}

static void put_closed_streams(struct buf *out)
{
    for (int i = 0; i < 900; i++)
        h2_put_get(out, 2 * i + 1, "/");
}

START_TEST(test_answers_that_pile_up)
{
    ck_assert(feeds_on(put_nothing));
    ck_assert(feeds_on(put_some_pings));
    ck_assert(!feeds_on(put_more_pings));
    ck_assert(feeds_on(put_closed_streams)); /* 900 answers: as many as there are streams */
}
END_TEST

static void put_posts(struct buf *out)
{
    static const char zeros[900];
    SCOPED(buf_fini) struct buf head = {0};
    h2_put_field(&head, ":method", "POST");
    h2_put_field(&head, ":scheme", "https");
    h2_put_field(&head, ":path", "/");
    h2_put_field(&head, ":authority", "x");
    for (int i = 0; i < 900; i++) { /* more than the budget, none of them complete */
        h2_put_frame(out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 2 * i + 1, head.data,
                     head.len);
        h2_put_frame(out, NGHTTP2_DATA, 0, 2 * i + 1, zeros, sizeof zeros);
    }
}

/* Each is answered 429 once there is no room; none is kept. */
START_TEST(test_budget_of_bodies)
{
    ck_assert(feeds_on(put_posts));
}
END_TEST

SUITE(h2_hostile)
{
    transport_certificates();
    LOOP("floods", test_flood, 0, ARRAY_LEN(floods));
    LOOP("prefaces", test_bad_preface, 0, ARRAY_LEN(prefaces));
    TESTS("hostile", test_many_cancelled, test_stream_ceiling, test_settings,
          test_body_beyond_its_window, test_early_close, test_slow_ones_are_cut, test_idle_is_ended,
          test_answers_that_pile_up, test_budget_of_bodies);
}
