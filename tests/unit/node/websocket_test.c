/* Frames in and out, whole and byte by byte; then sessions over them. */
#include "apiserver/base/websocket.h"

#include "node/head.h"
#include "node/session.h"
#include "tests/lib/suite.h"

/* ---- the codec ---- */

/* What was read, as text: [part with its marks] for parts, p: and c: for pings and closes. */
static void note_part(void *ctx, const char *p, size_t n, bool is_first, bool is_last)
{
    buf_printf(ctx, "%s%.*s%s", is_first ? "[" : "", (int)n, p, is_last ? "]" : "");
}

static void note_ping(void *ctx, const char *p, size_t n)
{
    buf_printf(ctx, "p:%.*s;", (int)n, p);
}

static void note_close(void *ctx, int code)
{
    buf_printf(ctx, "c:%d;", code);
}

static const struct websocket_reader_ops notes = {note_part, note_ping, note_close};

#define FRAME(s)                                                                                   \
    {                                                                                              \
        s, sizeof(s) - 1                                                                           \
    }
static const struct {
    struct str bytes;
    const char *want;
} frames[] = {
    {FRAME("\x82\x83\0\0\0\0abc"), "[abc]"},
    {FRAME("\x82\x80\1\2\3\4"), "[]"},
    {FRAME("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), "[Hello]"}, /* RFC 6455, 5.7 */
    {FRAME("\x02\x82\0\0\0\0ab\x89\x81\0\0\0\0!\x80\x81\0\0\0\0c"), "[abp:!;c]"},
    {FRAME("\x88\x82\0\0\0\0\x03\xe8\x82\x81\0\0\0\0x"), "c:1000;"},
    {FRAME("\x88\x80\0\0\0\0"), "c:1005;"},
    {FRAME("\x88\x81\0\0\0\0\x03"), "c:1002;"},
    {FRAME("\x8a\x80\0\0\0\0"), ""},
    {FRAME("\x82\x03\x61\x62\x63zzz"), "c:1002;"},              /* not masked */
    {FRAME("\xc2\x80\0\0\0\0"), "c:1002;"},                     /* a reserved bit */
    {FRAME("\x83\x80\0\0\0\0"), "c:1002;"},                     /* no such frame */
    {FRAME("\x80\x80\0\0\0\0"), "c:1002;"},                     /* goes on with nothing */
    {FRAME("\x02\x81\0\0\0\0a\x82\x81\0\0\0\0b"), "[ac:1002;"}, /* in another's middle */
    {FRAME("\x09\x80\0\0\0\0"), "c:1002;"},                     /* a ping in parts */
    {FRAME("\x89\xfe\0\x7e\0\0\0\0"), "c:1002;"},               /* a long one */
    {FRAME("\x82\xfe\0\x7d\0\0\0\0"), "c:1002;"},               /* a length too long */
    {FRAME("\x82\xff\0\0\0\0\0\0\xff\xff\0\0\0\0"), "c:1002;"}, /* the same */
    {FRAME("\x82\xff\x80\0\0\0\0\1\0\0\0\0\0\0"), "c:1002;"},   /* the highest bit */
};

START_TEST(test_read)
{
    for (size_t step = 1; step <= frames[_i].bytes.n; step++) {
        SCOPED(buf_fini) struct buf got = {0};
        struct websocket_reader r = {.ops = &notes, .ctx = &got};
        for (size_t at = 0; at < frames[_i].bytes.n; at += step) {
            size_t left = frames[_i].bytes.n - at;
            websocket_read(&r, frames[_i].bytes.p + at, left < step ? left : step);
        }
        ck_assert_str_eq(buf_cstr(&got), frames[_i].want);
    }
}
END_TEST

static const struct {
    size_t n;
    struct str head;
} lengths[] = {
    {0, FRAME("\x82\x00")},
    {125, FRAME("\x82\x7d")},
    {126, FRAME("\x82\x7e\x00\x7e")},
    {65535, FRAME("\x82\x7e\xff\xff")},
    {65536, FRAME("\x82\x7f\0\0\0\0\0\x01\0\0")},
};

START_TEST(test_print)
{
    SCOPED(buf_fini) struct buf out = {0};
    websocket_print_head(&out, WEBSOCKET_BINARY, lengths[_i].n);
    ck_assert_uint_eq(out.len, lengths[_i].head.n);
    ck_assert_mem_eq(out.data, lengths[_i].head.p, out.len);
}
END_TEST

START_TEST(test_key)
{
    char key[WEBSOCKET_KEY_SIZE];
    websocket_key("dGhlIHNhbXBsZSBub25jZQ==", key); /* RFC 6455, 1.3 */
    ck_assert_str_eq(key, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}
END_TEST

/* ---- sessions ---- */

static bool on_open(void *ctx, struct stream *s)
{
    buf_printf(ctx, "+%s", stream_kind_names[s->kind]);
    if (s->port)
        buf_printf(ctx, ":%d/%s", s->port, s->request);
    buf_putc(ctx, ' ');
    s->user = ctx;
    return true;
}

static void on_data(void *ctx, struct stream *s, const char *p, size_t n)
{
    buf_printf(ctx, "%s=%.*s ", stream_kind_names[s->kind], (int)n, p);
}

static void on_end(void *ctx, struct stream *s)
{
    buf_printf(ctx, "%s. ", stream_kind_names[s->kind]);
}

static void on_gone(void *ctx, struct stream *s)
{
    buf_printf(ctx, "-%s ", stream_kind_names[s->kind]);
}

static const struct session_user user = {on_open, on_data, on_end, on_gone};
static const int ports[] = {80, 0x1234};
static const struct session_wish command_wish = {
    .kinds = {[STREAM_ERROR] = true, [STREAM_STDIN] = true, [STREAM_STDOUT] = true}};
static const struct session_wish ports_wish = {
    .kinds = {[STREAM_ERROR] = true, [STREAM_DATA] = true}, .ports = ports, .n_ports = 2};

/* The error's code, negative. */
static int accept_with(const char *headers, const struct session_wish *wish, struct buf *notes_of,
                       struct session **ret)
{
    SCOPED(head_fini) struct head head = {0};
    SCOPED_FREE char *text = xasprintf("GET /exec HTTP/1.1\r\n%s\r\n", headers);
    ck_assert_int_eq(head_parse(text, strlen(text), &head, NULL), 0);
    return session_websocket.accept(&head, wish, &user, notes_of, ret, NULL);
}

#define COMMON "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define OFFER "Sec-WebSocket-Protocol: "
static const struct {
    const char *headers;
    const struct session_wish *wish;
    int code;
    const char *chosen; /* NULL = none is said */
    bool has_status;
} handshakes[] = {
    {COMMON OFFER "v5.channel.k8s.io, v4.channel.k8s.io\r\n", &command_wish, 0, "v5.channel.k8s.io",
     true},
    {COMMON OFFER "x\r\n" OFFER "v4.channel.k8s.io\r\n", &command_wish, 0, "v4.channel.k8s.io",
     true},
    {COMMON OFFER "channel.k8s.io\r\n", &command_wish, 0, "channel.k8s.io", false},
    {COMMON, &command_wish, 0, NULL, false},
    {COMMON OFFER "chat\r\n", &command_wish, -ERR_FORBIDDEN, NULL, false},
    {COMMON OFFER "v5.channel.k8s.io\r\n", &ports_wish, -ERR_FORBIDDEN, NULL, false},
    {COMMON OFFER "v4.channel.k8s.io\r\n", &ports_wish, 0, "v4.channel.k8s.io", true},
    {COMMON, &ports_wish, 0, NULL, true},
    {"Sec-WebSocket-Version: 13\r\n", &command_wish, -ERR_BAD_REQUEST, NULL, false},
    {"Sec-WebSocket-Version: 8\r\nSec-WebSocket-Key: x\r\n", &command_wish, -ERR_BAD_REQUEST, NULL,
     false},
};

START_TEST(test_handshake)
{
    struct session *s = NULL;
    SCOPED(buf_fini) struct buf got = {0};
    int rc = accept_with(handshakes[_i].headers, handshakes[_i].wish, &got, &s);
    ck_assert_int_eq(rc, handshakes[_i].code);
    if (rc < 0)
        return;
    const char *said = strstr(buf_cstr(&s->out), "Sec-WebSocket-Protocol: ");
    ck_assert_int_eq(said != NULL, handshakes[_i].chosen != NULL);
    ck_assert(!said || str_has_prefix(said + 24, handshakes[_i].chosen));
    ck_assert(str_has_prefix(buf_cstr(&s->out), "HTTP/1.1 101 "));
    ck_assert(strstr(buf_cstr(&s->out), "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
    ck_assert_int_eq(s->has_status, handshakes[_i].has_status);
    session_free(s);
}
END_TEST

static void feed(struct session *s, const char *bytes, size_t n)
{
    SCOPED(buf_fini) struct buf frame = {0};
    websocket_print_head(&frame, WEBSOCKET_BINARY, n);
    frame.data[1] = (char)(frame.data[1] | 0x80);
    buf_append(&frame, "\0\0\0\0", 4);
    buf_append(&frame, bytes, n);
    session_feed(s, frame.data, frame.len);
}

START_TEST(test_command)
{
    struct session *s = NULL;
    SCOPED(buf_fini) struct buf got = {0};
    ck_assert_int_eq(accept_with(COMMON OFFER "v5.channel.k8s.io\r\n", &command_wish, &got, &s), 0);
    buf_clear(&s->out);
    session_start(s);
    feed(s, "\0hello", 6);
    feed(s, "\0", 1);
    feed(s, "\x04{}", 3); /* nobody asked for resizes */
    feed(s, "\x07x", 2);
    feed(s, "\xff\0", 2);
    feed(s, "\0more", 5);
    ck_assert_str_eq(buf_cstr(&got), "+stdin +stdout +error stdin=hello stdin. ");
    session_feed(s, "\x89\x81\0\0\0\0!", 7);
    session_feed(s, "\x88\x80\0\0\0\0", 6);
    ck_assert(s->is_over);
    ck_assert_uint_eq(s->out.len, 7);
    ck_assert_mem_eq(s->out.data, "\x8a\x01!\x88\x02\x03\xe8", 7);
    buf_clear(&got);
    session_free(s);
    ck_assert_str_eq(buf_cstr(&got), "-stdin -stdout -error ");
}
END_TEST

START_TEST(test_ports)
{
    struct session *s = NULL;
    SCOPED(buf_fini) struct buf got = {0};
    ck_assert_int_eq(accept_with(COMMON OFFER "v4.channel.k8s.io\r\n", &ports_wish, &got, &s), 0);
    buf_clear(&s->out);
    session_start(s);
    ck_assert_str_eq(buf_cstr(&got), "+data:80/0 +error:80/0 +data:4660/1 +error:4660/1 ");
    static const char first[] = "\x82\x03\x00\x50\x00\x82\x03\x01\x50\x00"
                                "\x82\x03\x02\x34\x12\x82\x03\x03\x34\x12";
    ck_assert_uint_eq(s->out.len, sizeof first - 1);
    ck_assert_mem_eq(s->out.data, first, sizeof first - 1);
    feed(s, "\xff\0", 2); /* no close in this version */
    feed(s, "\x02x", 2);
    ck_assert(strstr(buf_cstr(&got), "data=x "));
    ck_assert(!strstr(buf_cstr(&got), ". "));
    session_free(s);
}
END_TEST

/* What is sent comes in frames of its channel, as much as there is room for is enough, and nothing
 * comes after the end. */
static struct stream *out_stream;

static bool keep_open(void *ctx, struct stream *s)
{
    (void)ctx;
    if (s->kind == STREAM_STDOUT)
        out_stream = s;
    return s->kind != STREAM_STDIN; /* refused */
}

START_TEST(test_send)
{
    static char bytes[SESSION_OUT_MAX];
    static const struct session_user keeper = {keep_open, on_data, on_end, on_gone};
    struct session *s = NULL;
    SCOPED(buf_fini) struct buf got = {0};
    ck_assert_int_eq(accept_with(COMMON, &command_wish, &got, &s), 0);
    s->user = &keeper;
    buf_clear(&s->out);
    session_start(s);
    feed(s, "\0x", 2);
    ck_assert_str_eq(buf_cstr(&got), "");
    session_send(s, out_stream, "ab", 2);
    ck_assert_mem_eq(s->out.data,
                     "\x82\x03\x01"
                     "ab",
                     5);
    ck_assert_uint_gt(session_room(s, out_stream), 0);
    session_send(s, out_stream, bytes, sizeof bytes);
    ck_assert_uint_eq(session_room(s, out_stream), 0);
    ck_assert_uint_gt(s->out.len, sizeof bytes);
    session_end(s, out_stream);
    size_t before = s->out.len;
    session_send(s, out_stream, "ab", 2);
    ck_assert_uint_eq(s->out.len, before);
    session_close(s);
    session_close(s);
    ck_assert_uint_eq(s->out.len, before + 4);
    feed(s, "\x03x", 2);
    session_free(s);
    ck_assert_str_eq(buf_cstr(&got), "-stdout -error ");
}
END_TEST

SUITE(websocket)
{
    LOOP("read", test_read, 0, ARRAY_LEN(frames));
    LOOP("print", test_print, 0, ARRAY_LEN(lengths));
    LOOP("handshake", test_handshake, 0, ARRAY_LEN(handshakes));
    TESTS("key", test_key);
    TESTS("session", test_command, test_ports, test_send);
}
