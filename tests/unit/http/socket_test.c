/* Watches over websockets on a real socket: messages out, pings and closes in, clients that go; and
 * which requests ask for one. */
#include "apiserver/http/socket.h"

#include <sys/socket.h>

#include "tests/lib/certs.h"
#include "tests/lib/suite.h"
#include "tests/lib/tls_client.h"
#include "tests/lib/transport.h"

#define HANDSHAKE                                                                                  \
    "GET /socket HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"             \
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
/* As a client sends them, each byte of what is inside masked by 1. */
#define MASKED(opcode, length) opcode length "\1\1\1\1"
#define PING MASKED("\x89", "\x82") "\x69\x68" /* hi */
#define PONG "\x8a\2hi"
#define CLOSE MASKED("\x88", "\x82") "\2\xe9" /* 1000 */
#define CLOSED "\x88\2\3\xe8"

static struct test_stream *stream(size_t i)
{
    return &transport.streams[i];
}

static int closed(size_t i)
{
    return atomic_load(&stream(i)->closed);
}

static void open_socket(struct tls_client *c, const char *more)
{
    SCOPED_FREE char *request = xasprintf(HANDSHAKE "\r\n%s", more);
    transport_start_http1(NULL);
    transport_open_stream(c, 0, request);
}

static void end(struct tls_client *c)
{
    tls_client_close(c);
    transport_stop();
    ck_assert_int_eq(closed(0), 1);
}

/* Everything that came after the head, up to the end of the connection. */
static void expect_to_the_end(struct tls_client *c, const char *want)
{
    ck_assert(tls_client_read_all(c));
    ck_assert_str_eq(strstr(buf_cstr(&c->got), "\r\n\r\n") + 4, want);
}

START_TEST(test_messages)
{
    struct tls_client c;
    open_socket(&c, "");
    const char *head = buf_cstr(&c.got);
    ck_assert_int_eq(strncmp(head, "HTTP/1.1 101 Switching Protocols\r\n", 34), 0);
    ck_assert_ptr_nonnull(strstr(head, "\r\nUpgrade: websocket\r\n"));
    /* Source: RFC 6455, 1.3 */
    ck_assert_ptr_nonnull(
        strstr(head, "\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
    ck_assert_ptr_null(strstr(head, "chunked"));
    test_stream_put(stream(0), "{\"a\":1}\n{\"b\":22}\n");
    ck_assert(tls_client_read_until(&c, "22}\n"));
    test_stream_put(stream(0), "later\n");
    test_stream_put(stream(0), NULL);
    expect_to_the_end(&c, "\x81\x08{\"a\":1}\n\x81\x09{\"b\":22}\n\x81\6later\n" CLOSED);
    end(&c);
}
END_TEST

START_TEST(test_pings)
{
    struct tls_client c;
    open_socket(&c, PING); /* with the handshake */
    ck_assert(tls_client_read_until(&c, PONG));
    for (const char *p = PING; *p; p++) {
        tls_client_clear(&c);
        ck_assert(tls_client_send_bytes(&c, p, 1));
    }
    ck_assert(tls_client_read_until(&c, PONG));
    test_stream_put(stream(0), "after\n");
    ck_assert(tls_client_read_until(&c, PONG "\x81\6after\n"));
    end(&c);
}
END_TEST

START_TEST(test_close)
{
    struct tls_client c;
    open_socket(&c, "");
    test_stream_put(stream(0), "an event\n");
    ck_assert(tls_client_read_until(&c, "event\n"));
    ck_assert(tls_client_send(&c, CLOSE));
    expect_to_the_end(&c, "\x81\x09"
                          "an event\n" CLOSED);
    WAIT_FOR(closed(0) == 1);
    end(&c);
}
END_TEST

/* Another request, for one: nobody is asked what it means. */
START_TEST(test_no_frames)
{
    struct tls_client c;
    open_socket(&c, "");
    ck_assert(tls_client_send(&c, "GET /secret HTTP/1.1\r\nHost: x\r\n\r\n"));
    expect_to_the_end(&c, "\x88\2\3\xea"); /* 1002 */
    end(&c);
}
END_TEST

/* Words that nobody asked for are dropped, however many. */
START_TEST(test_talkative_client)
{
    char frame[4096 + 8] = "\x81\xfe\x10\0\1\1\1\1";
    struct tls_client c;
    open_socket(&c, "");
    for (int i = 0; i < 100; i++)
        ck_assert(tls_client_send_bytes(&c, frame, sizeof frame));
    ck_assert(tls_client_send(&c, PING));
    ck_assert(tls_client_read_until(&c, PONG));
    end(&c);
}
END_TEST

START_TEST(test_gone)
{
    struct tls_client c;
    open_socket(&c, "");
    tls_client_close(&c);
    WAIT_FOR(closed(0) == 1);
    transport_stop();
    ck_assert_int_eq(closed(0), 1);
}
END_TEST

START_TEST(test_stop)
{
    struct tls_client c;
    open_socket(&c, "");
    transport_stop();
    ck_assert_int_eq(closed(0), 1);
    tls_client_read_all(&c);
    tls_client_close(&c);
}
END_TEST

/* ---- who asks for one ---- */

static const struct {
    const char *method, *verb, *upgrade, *connection;
    bool can_upgrade, is_wanted;
} wishes[] = {
    {"GET", "watch", "websocket", "Upgrade", true, true},
    {"GET", "watch", "WebSocket", "keep-alive, upgrade", true, true},
    {"GET", "watch", "websocket", "Upgrade", false, false}, /* HTTP/2 */
    {"HEAD", "watch", "websocket", "Upgrade", true, false},
    {"GET", "list", "websocket", "Upgrade", true, false},
    {"GET", "watch", "SPDY/3.1", "Upgrade", true, false},
    {"GET", "watch", "websocket", "close", true, false},
};

START_TEST(test_wishes)
{
    for (size_t i = 0; i < ARRAY_LEN(wishes); i++) {
        SCOPED(request_fini)
        struct request req = {.method = xstrdup(wishes[i].method),
                              .can_upgrade = wishes[i].can_upgrade};
        req.route.verb = wishes[i].verb;
        pairs_add(&req.headers, "Upgrade", wishes[i].upgrade);
        pairs_add(&req.headers, "Connection", wishes[i].connection);
        ck_assert_msg(socket_is_wanted(&req) == wishes[i].is_wanted, "%zu", i);
    }
}
END_TEST

#define KEY "dGhlIHNhbXBsZSBub25jZQ=="
static const struct {
    const char *key, *version, *protocol;
    bool is_good;
} handshakes[] = {
    {KEY, "13", NULL, true},      {KEY, "13", "one", true}, {KEY, "13", "one, two", false},
    {KEY, "8", NULL, false},      {KEY, NULL, NULL, false}, {NULL, "13", NULL, false},
    {"short", "13", NULL, false},
};

START_TEST(test_handshakes)
{
    for (size_t i = 0; i < ARRAY_LEN(handshakes); i++) {
        SCOPED(request_fini) struct request req = {0};
        SCOPED(err_fini) struct err err = {0};
        if (handshakes[i].key)
            pairs_add(&req.headers, "Sec-WebSocket-Key", handshakes[i].key);
        if (handshakes[i].version)
            pairs_add(&req.headers, "Sec-WebSocket-Version", handshakes[i].version);
        if (handshakes[i].protocol)
            pairs_add(&req.headers, "Sec-WebSocket-Protocol", handshakes[i].protocol);
        int rc = socket_check(&req, &err);
        ck_assert_msg(rc == (handshakes[i].is_good ? 0 : -ERR_BAD_REQUEST), "%zu: %d", i, rc);
    }
}
END_TEST

SUITE(socket)
{
    transport_certificates();
    TESTS("messages", test_messages, test_pings, test_close, test_no_frames, test_talkative_client);
    TESTS("ends", test_gone, test_stop);
    TESTS("requests", test_wishes, test_handshakes);
}
