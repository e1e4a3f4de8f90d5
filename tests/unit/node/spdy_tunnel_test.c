/* SPDY inside a websocket: a peer that masks what the codec writes, and a user that greets. */
#include "node/spdy_tunnel.h"

#include "node/head.h"
#include "node/spdy.h"
#include "node/websocket.h"
#include "tests/lib/suite.h"

struct table {
    struct session *s;
    struct spdy *peer, *ear;
    struct buf in, told,
        said; /* of the peer, as frames of a websocket; of the user; of the session */
    struct stream *stream;
    bool closes; /* the user, when a stream is opened */
};

static bool user_open(void *ctx, struct stream *s)
{
    struct table *t = ctx;
    buf_printf(&t->told, "open %u\n", s->id);
    t->stream = s;
    session_send(t->s, s, "hello", 5);
    if (t->closes)
        session_close(t->s);
    return true;
}

static void user_data(void *ctx, struct stream *s, const char *p, size_t n)
{
    struct table *t = ctx;
    for (size_t i = 0; i < n; i++)
        buf_printf(&t->told, "data %u %c\n", s->id, p[i]);
}

static void user_end(void *ctx, struct stream *s)
{
    struct table *t = ctx;
    buf_printf(&t->told, "end %u\n", s->id);
}

static void user_gone(void *ctx, struct stream *s)
{
    struct table *t = ctx;
    buf_printf(&t->told, "gone %u\n", s->id);
    t->stream = NULL;
}

static const struct session_user user = {user_open, user_data, user_end, user_gone};

static void table_init(struct table *t)
{
    const struct session_wish wish = {.kinds = {[STREAM_ERROR] = true, [STREAM_DATA] = true}};
    *t = (struct table){.s = spdy_tunnel_new(&wish, &user, t)};
    t->peer = spdy_new();
    t->ear = spdy_new();
}

static void table_fini(struct table *t)
{
    session_free(t->s);
    spdy_free(t->peer);
    spdy_free(t->ear);
    buf_fini(&t->in);
    buf_fini(&t->told);
    buf_fini(&t->said);
}

/* ---- the peer ---- */

#define MASK "\1\2\3\4"

static void put_websocket(struct table *t, enum websocket_opcode opcode, struct str payload)
{
    ck_assert_uint_lt(payload.n, 126);
    buf_putc(&t->in, (char)(0x80 | opcode));
    buf_putc(&t->in, (char)(0x80 | payload.n));
    buf_append(&t->in, MASK, 4);
    for (size_t i = 0; i < payload.n; i++)
        buf_putc(&t->in, (char)(payload.p[i] ^ MASK[i % 4]));
}

/* A message for every so many bytes of the frame. */
static void put(struct table *t, size_t message, const struct spdy_frame *f)
{
    SCOPED(buf_fini) struct buf bytes = {0};
    spdy_write(t->peer, f, &bytes);
    for (size_t i = 0; i < bytes.len; i += message) {
        size_t n = bytes.len - i < message ? bytes.len - i : message;
        put_websocket(t, WEBSOCKET_BINARY, (struct str){bytes.data + i, n});
    }
}

static void put_open(struct table *t, size_t message)
{
    SCOPED(pairs_fini) struct pairs headers = {0};
    pairs_add(&headers, "streamtype", "data");
    pairs_add(&headers, "port", "80");
    put(t, message, &(struct spdy_frame){.type = SPDY_SYN_STREAM, .id = 1, .headers = headers});
}

static void hear_spdy(struct table *t, struct str left)
{
    for (bool is_done = false; !is_done;) {
        SCOPED(spdy_frame_fini) struct spdy_frame f = {0};
        size_t used;
        ck_assert_int_eq(spdy_read(t->ear, left.p, left.n, &used, &f, NULL), 0);
        left = (struct str){left.p + used, left.n - used};
        is_done = f.type == SPDY_NONE;
        if (!is_done)
            buf_printf(&t->said, "%d:%u%.*s ", f.type, f.id, (int)f.data.n,
                       f.data.n > 0 ? f.data.p : "");
    }
}

/* What the session has said, a line a frame of the websocket. */
static void hear(struct table *t)
{
    struct str left = buf_str(&t->s->out);
    while (left.n > 0) {
        ck_assert_uint_ge(left.n, 2);
        size_t n = (unsigned char)left.p[1];
        ck_assert_uint_lt(n, 126);
        ck_assert_uint_ge(left.n, 2 + n);
        buf_printf(&t->said, "%x: ", (unsigned char)left.p[0]);
        if ((unsigned char)left.p[0] == (0x80 | WEBSOCKET_BINARY))
            hear_spdy(t, (struct str){left.p + 2, n});
        else if ((unsigned char)left.p[0] == (0x80 | WEBSOCKET_CLOSE))
            buf_printf(&t->said, "%u", (unsigned char)left.p[2] << 8 | (unsigned char)left.p[3]);
        else
            buf_append(&t->said, left.p + 2, n);
        buf_putc(&t->said, '\n');
        left = (struct str){left.p + 2 + n, left.n - 2 - n};
    }
    buf_clear(&t->s->out);
}

static void talk(struct table *t, size_t piece)
{
    for (size_t i = 0; i < t->in.len; i += piece)
        session_feed(t->s, t->in.data + i, t->in.len - i < piece ? t->in.len - i : piece);
    buf_clear(&t->in);
    hear(t);
}

static void expect_lines(struct buf *lines, const char *want)
{
    ck_assert_str_eq(buf_cstr(lines), want);
    buf_clear(lines);
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
    table_init(&t);
    session_free(steal(&t.s));
    ck_assert_int_eq(session_websocket.accept(&head, &wish, &user, &t, &t.s, NULL), 0);
    ck_assert_str_eq(buf_cstr(&t.s->out),
                     "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
                     "Connection: Upgrade\r\n"
                     "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
                     "Sec-WebSocket-Protocol: SPDY/3.1+portforward.k8s.io\r\n\r\n");
    buf_clear(&t.s->out);
    put_open(&t, 100);
    talk(&t, 1000);
    expect_lines(&t.said, "82: 2:1 10:1hello \n");
}
END_TEST

START_TEST(test_both_ways)
{
    const size_t sizes[] = {1, 2, 3, 7, 100};
    size_t size = sizes[_i];
    SCOPED(table_fini) struct table t;
    table_init(&t);
    session_start(t.s);
    hear(&t);
    expect_lines(&t.said, "82: 4:0 \n");
    put_open(&t, size);
    talk(&t, 1000);
    expect_lines(&t.told, "open 1\n");
    expect_lines(&t.said, "82: 2:1 10:1hello \n");
    put(&t, size, &(struct spdy_frame){.type = SPDY_DATA, .id = 1, .data = STR("ab")});
    put_websocket(&t, WEBSOCKET_PING, STR("who"));
    put(&t, size, &(struct spdy_frame){.type = SPDY_DATA, .id = 1, .flags = SPDY_FLAG_FIN});
    talk(&t, size);
    expect_lines(&t.told, "data 1 a\ndata 1 b\nend 1\n");
    expect_lines(&t.said, "8a: who\n");
    session_send(t.s, t.stream, "xy", 2);
    session_end(t.s, t.stream);
    hear(&t);
    expect_lines(&t.told, "gone 1\n");
    expect_lines(&t.said, "82: 10:1xy \n82: 10:1 \n");
}
END_TEST

START_TEST(test_the_peer_closes)
{
    SCOPED(table_fini) struct table t;
    table_init(&t);
    put_open(&t, 100);
    put_websocket(&t, WEBSOCKET_CLOSE, (struct str){"\3\350", 2});
    put_websocket(&t, WEBSOCKET_PING, STR("late"));
    talk(&t, 1000);
    ck_assert(t.s->is_over);
    expect_lines(&t.said, "88: 1000\n");
    session_send(t.s, t.stream, "late", 4);
    hear(&t);
    expect_lines(&t.said, "");
    session_free(steal(&t.s));
    expect_lines(&t.told, "open 1\ngone 1\n");
}
END_TEST

START_TEST(test_the_peer_says_goodbye)
{
    SCOPED(table_fini) struct table t;
    table_init(&t);
    put(&t, 100, &(struct spdy_frame){.type = SPDY_GOAWAY});
    talk(&t, 1000);
    ck_assert(t.s->is_over);
    expect_lines(&t.said, "88: 1000\n");
}
END_TEST

START_TEST(test_we_close)
{
    SCOPED(table_fini) struct table t;
    table_init(&t);
    t.closes = _i == 1;
    put_open(&t, 100);
    talk(&t, 1000);
    ck_assert_int_eq(t.s->is_over, t.closes);
    session_close(t.s);
    hear(&t);
    expect_lines(&t.said, t.closes ? "82: 2:1 10:1hello 7:1 \n88: 1000\n"
                                   : "82: 2:1 10:1hello \n82: 7:1 \n88: 1000\n");
}
END_TEST

START_TEST(test_who_reads_nothing_goes)
{
    SCOPED(table_fini) struct table t;
    table_init(&t);
    for (int i = 0; i < 10000; i++)
        put(&t, 100, &(struct spdy_frame){.type = SPDY_PING, .id = 1});
    while (!t.s->is_over && t.s->out.len < 8 * SESSION_OUT_MAX)
        session_feed(t.s, t.in.data, t.in.len);
    ck_assert(t.s->is_over);
}
END_TEST

START_TEST(test_mistakes)
{
    SCOPED(table_fini) struct table spdy, websocket;
    table_init(&spdy);
    put_websocket(&spdy, WEBSOCKET_BINARY, STR("\x80\2aaaaaa"));
    talk(&spdy, 1000);
    ck_assert(spdy.s->is_over);
    expect_lines(&spdy.said, "82: 7:0 \n88: 1000\n");
    table_init(&websocket);
    buf_puts(&websocket.in, "no frame");
    talk(&websocket, 1000);
    ck_assert(websocket.s->is_over);
    expect_lines(&websocket.said, "88: 1002\n");
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
