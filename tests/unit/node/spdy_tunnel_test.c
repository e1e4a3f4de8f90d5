/* SPDY inside a websocket: the peer of spdy_fixture.h, whose bytes are masked and framed. */
#include "node/spdy_tunnel.h"

#include "apiserver/base/websocket.h"
#include "tests/unit/node/spdy_fixture.h"

#define MASK "\1\2\3\4"

static void put_websocket(struct buf *frames, enum websocket_opcode opcode, struct str payload)
{
    ck_assert_uint_lt(payload.n, 126);
    buf_putc(frames, (char)(0x80 | opcode));
    buf_putc(frames, (char)(0x80 | payload.n));
    buf_append(frames, MASK, 4);
    for (size_t i = 0; i < payload.n; i++)
        buf_putc(frames, (char)(payload.p[i] ^ MASK[i % 4]));
}

/* What the peer has put, in messages of so many bytes. */
static void wrap(struct table *t, size_t message, struct buf *frames)
{
    for (size_t i = 0; i < t->in.len; i += message) {
        size_t n = t->in.len - i < message ? t->in.len - i : message;
        put_websocket(frames, WEBSOCKET_BINARY, (struct str){t->in.data + i, n});
    }
    buf_clear(&t->in);
}

static void hear_payload(struct table *t, enum websocket_opcode opcode, struct str payload)
{
    switch (opcode) {
    case WEBSOCKET_BINARY:
        buf_puts(&t->said, "> ");
        hear_frames(t, payload);
        break;
    case WEBSOCKET_CLOSE:
        ck_assert_uint_eq(payload.n, 2);
        buf_printf(&t->said, "close %u\n",
                   (unsigned char)payload.p[0] << 8 | (unsigned char)payload.p[1]);
        break;
    case WEBSOCKET_PONG:
        buf_printf(&t->said, "pong %.*s\n", (int)payload.n, payload.p);
        break;
    default:
        ck_abort_msg("opcode %d", opcode);
    }
}

/* What the session has said, frames that are neither masked nor fragments: "> " is where a message
 * begins. */
static void hear(struct table *t)
{
    struct str left = buf_str(&t->s->out);
    while (left.n > 0) {
        ck_assert_uint_ge(left.n, 2);
        size_t n = (unsigned char)left.p[1];
        ck_assert_uint_lt(n, 126);
        ck_assert_uint_ge(left.n, 2 + n);
        ck_assert_uint_eq((unsigned char)left.p[0] & 0xf0, 0x80);
        hear_payload(t, left.p[0] & 0xf, (struct str){left.p + 2, n});
        left = (struct str){left.p + 2 + n, left.n - 2 - n};
    }
    buf_clear(&t->s->out);
}

static void feed(struct table *t, struct buf *frames, size_t piece)
{
    for (size_t i = 0; i < frames->len; i += piece)
        session_feed(t->s, frames->data + i, frames->len - i < piece ? frames->len - i : piece);
    buf_clear(frames);
    hear(t);
}

/* What the peer has put reaches the session, and back. */
static void talk(struct table *t)
{
    SCOPED(buf_fini) struct buf frames = {0};
    wrap(t, 100, &frames);
    feed(t, &frames, SIZE_MAX);
}

static void start(struct table *t)
{
    table_init(t, spdy_tunnel_new, true);
}

/* ---- tests ---- */

START_TEST(test_handshake)
{
    SCOPED(pairs_fini) struct pairs headers = {0};
    pairs_add(&headers, "Sec-WebSocket-Version", "13");
    pairs_add(&headers, "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="); /* RFC 6455, 1.3 */
    pairs_add(&headers, "Sec-WebSocket-Protocol", SPDY_TUNNEL_SUBPROTOCOL);
    char method[] = "GET";
    const struct head head = {.method = method, .headers = headers};
    const struct session_wish wish = {.kinds = {[STREAM_ERROR] = true, [STREAM_DATA] = true}};
    SCOPED(table_fini) struct table t;
    start(&t);
    session_free(steal(&t.s));
    ck_assert_int_eq(session_websocket.accept(&head, &wish, &user, &t, &t.s, NULL), 0);
    ck_assert_str_eq(buf_cstr(&t.s->out),
                     "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                     "Connection: Upgrade\r\n"
                     "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
                     "Sec-WebSocket-Protocol: SPDY/3.1+portforward.k8s.io\r\n\r\n");
    buf_clear(&t.s->out);
    t.greets = true;
    peer_open(&t, 1, 0, "data", "80", "1");
    talk(&t);
    expect_lines(&t.said, "> reply 1\ndata 1 hello\n");
}
END_TEST

START_TEST(test_both_ways)
{
    const size_t sizes[] = {1, 2, 3, 7, 100};
    size_t size = sizes[_i];
    SCOPED(table_fini) struct table t;
    SCOPED(buf_fini) struct buf frames = {0};
    start(&t);
    session_start(t.s);
    hear(&t);
    expect_lines(&t.said, "> settings 0\n");
    peer_open(&t, 1, 0, "data", "80", "1");
    wrap(&t, size, &frames);
    feed(&t, &frames, 1000);
    expect_lines(&t.told, "open 1 data 80 1\n");
    expect_lines(&t.said, "> reply 1\n");
    peer_data(&t, 1, 0, "ab");
    wrap(&t, size, &frames);
    put_websocket(&frames, WEBSOCKET_PING, STR("who"));
    peer_data(&t, 1, SPDY_FLAG_FIN, "");
    wrap(&t, size, &frames);
    feed(&t, &frames, size);
    expect_lines(&t.told, "data 1 a\ndata 1 b\nend 1\n");
    expect_lines(&t.said, "pong who\n");
    session_send(t.s, t.streams[1], "xy", 2);
    session_end(t.s, t.streams[1]);
    hear(&t);
    expect_lines(&t.told, "gone 1\n");
    expect_lines(&t.said, "> data 1 xy\n> data 1 fin\n");
}
END_TEST

START_TEST(test_the_peer_closes)
{
    SCOPED(table_fini) struct table t;
    SCOPED(buf_fini) struct buf frames = {0};
    start(&t);
    peer_open(&t, 1, 0, "data", "80", "1");
    wrap(&t, 100, &frames);
    put_websocket(&frames, WEBSOCKET_CLOSE, (struct str){"\3\350", 2});
    put_websocket(&frames, WEBSOCKET_PING, STR("late"));
    feed(&t, &frames, 1000);
    ck_assert(t.s->is_over);
    expect_lines(&t.said, "close 1000\n");
    session_send(t.s, t.streams[1], "late", 4);
    hear(&t);
    expect_lines(&t.said, "");
    session_free(steal(&t.s));
    expect_lines(&t.told, "open 1 data 80 1\ngone 1\n");
}
END_TEST

START_TEST(test_the_peer_says_goodbye)
{
    SCOPED(table_fini) struct table t;
    start(&t);
    peer_put(&t, SPDY_GOAWAY, 0, 0);
    talk(&t);
    ck_assert(t.s->is_over);
    expect_lines(&t.said, "close 1000\n");
}
END_TEST

START_TEST(test_we_close)
{
    SCOPED(table_fini) struct table t;
    start(&t);
    t.greets = true;
    t.closes = _i == 1;
    peer_open(&t, 1, 0, "data", "80", "1");
    talk(&t);
    ck_assert_int_eq(t.s->is_over, t.closes);
    session_close(t.s);
    hear(&t);
    expect_lines(&t.said, t.closes ? "> reply 1\ndata 1 hello\ngoaway 1\nclose 1000\n"
                                   : "> reply 1\ndata 1 hello\n> goaway 1\nclose 1000\n");
}
END_TEST

START_TEST(test_who_reads_nothing_goes)
{
    SCOPED(table_fini) struct table t;
    SCOPED(buf_fini) struct buf frames = {0};
    start(&t);
    for (int i = 0; i < 10000; i++)
        peer_put(&t, SPDY_PING, 1, 0);
    wrap(&t, 100, &frames);
    while (!t.s->is_over && t.s->out.len < 8 * SESSION_OUT_MAX)
        session_feed(t.s, frames.data, frames.len);
    ck_assert(t.s->is_over);
}
END_TEST

START_TEST(test_mistakes)
{
    SCOPED(table_fini) struct table spdy, websocket;
    SCOPED(buf_fini) struct buf frames = {0};
    start(&spdy);
    put_websocket(&frames, WEBSOCKET_BINARY, STR("\x80\2aaaaaa"));
    feed(&spdy, &frames, 1000);
    ck_assert(spdy.s->is_over);
    expect_lines(&spdy.said, "> goaway 0 1\nclose 1000\n");
    start(&websocket);
    buf_puts(&frames, "no frame");
    feed(&websocket, &frames, 1000);
    ck_assert(websocket.s->is_over);
    expect_lines(&websocket.said, "close 1002\n");
}
END_TEST

SUITE(spdy_tunnel)
{
    TESTS("handshake", test_handshake);
    LOOP("both ways", test_both_ways, 0, 5);
    LOOP("we close", test_we_close, 0, 2);
    TESTS("ends", test_the_peer_closes, test_the_peer_says_goodbye, test_who_reads_nothing_goes,
          test_mistakes);
}
