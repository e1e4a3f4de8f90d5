/* A session over SPDY between a peer made of the codec and a user that writes down what it is
 * told. */
#include "node/spdy_session.h"

#include "tests/unit/node/spdy_fixture.h"

/* What the session says reaches the peer. */
static void listen(struct table *t)
{
    hear_frames(t, buf_str(&t->s->out));
    buf_clear(&t->s->out);
}

/* What the peer has put reaches the session, in pieces; and back. */
static void talk_in(struct table *t, size_t piece)
{
    for (size_t i = 0; i < t->in.len; i += piece)
        session_feed(t->s, t->in.data + i, t->in.len - i < piece ? t->in.len - i : piece);
    buf_clear(&t->in);
    listen(t);
}

static void talk(struct table *t)
{
    talk_in(t, SIZE_MAX);
}

/* ---- streams ---- */

START_TEST(test_command)
{
    const size_t pieces[] = {1, 2, 3, 7, SIZE_MAX};
    SCOPED(table_fini) struct table t;
    table_init(&t, spdy_session_new, false);
    session_start(t.s);
    peer_open(&t, 1, 0, "error", NULL, NULL);
    peer_open(&t, 3, 0, "stdin", NULL, NULL);
    peer_open(&t, 5, 0, "stdout", NULL, NULL);
    peer_data(&t, 3, 0, "ab");
    peer_data(&t, 3, SPDY_FLAG_FIN, "");
    peer_put(&t, SPDY_PING, 1, 0);
    talk_in(&t, pieces[_i]);
    expect_lines(&t.told, "open 1 error\nopen 3 stdin\nopen 5 stdout\ndata 3 a\ndata 3 b\nend 3\n");
    expect_lines(&t.said, "settings 0\nreply 1\nreply 3\nreply 5\nping 1\n");
    session_send(t.s, t.streams[5], "out", 3);
    session_end(t.s, t.streams[5]);
    session_send(t.s, t.streams[5], "more", 4);
    session_end(t.s, t.streams[5]);
    session_end(t.s, t.streams[3]);
    ck_assert_ptr_null(t.streams[3]);
    session_send(t.s, t.streams[1], "status", 6);
    session_close(t.s);
    ck_assert(t.s->is_over);
    talk(&t);
    expect_lines(&t.told, "gone 3\n");
    expect_lines(&t.said, "data 5 out\ndata 5 fin\ndata 3 fin\ndata 1 status\ngoaway 5\n");
    session_send(t.s, t.streams[1], "late", 4);
    peer_put(&t, SPDY_PING, 3, 0);
    talk(&t);
    expect_lines(&t.said, "");
}
END_TEST

START_TEST(test_ports)
{
    SCOPED(table_fini) struct table t;
    table_init(&t, spdy_session_new, true);
    peer_open(&t, 1, 0, "error", "8080", "0");
    peer_data(&t, 1, SPDY_FLAG_FIN, "");
    peer_open(&t, 3, 0, "data", "8080", "0");
    peer_open(&t, 5, SPDY_FLAG_FIN, "error", "80", "some id");
    peer_open(&t, 7, SPDY_FLAG_FIN | SPDY_FLAG_UNIDIRECTIONAL, "data", "80", "some id");
    talk(&t);
    expect_lines(&t.told,
                 "open 1 error 8080 0\nend 1\nopen 3 data 8080 0\nopen 5 error 80 some id\nend 5\n"
                 "open 7 data 80 some id\nend 7\ngone 7\n");
    expect_lines(&t.said, "reply 1\nreply 3\nreply 5\nreply 7\n");
    peer_put(&t, SPDY_RST_STREAM, 3, SPDY_RST_CANCEL);
    peer_put(&t, SPDY_RST_STREAM, 3, SPDY_RST_CANCEL);
    peer_data(&t, 3, 0, "late");
    t.ends_others = true;
    talk(&t);
    expect_lines(&t.told, "gone 3\ngone 1\ngone 5\n");
    expect_lines(&t.said, "data 1 fin\ndata 5 fin\n");
}
END_TEST

START_TEST(test_old_clients_number_no_requests)
{
    SCOPED(table_fini) struct table t;
    table_init(&t, spdy_session_new, true);
    peer_open(&t, 1, 0, "error", "80", NULL);
    peer_open(&t, 3, 0, "data", "80", "");
    peer_open(&t, 5, 0, "error", "81", NULL);
    peer_open(&t, 7, 0, "data", "81", NULL);
    talk(&t);
    expect_lines(&t.told,
                 "open 1 error 80 stream 1\nopen 3 data 80 stream 1\nopen 5 error 81 stream 5\n"
                 "open 7 data 81 stream 5\n");
}
END_TEST

static char *long_request(void)
{
    SCOPED(buf_fini) struct buf b = {0};
    for (int i = 0; i < 257; i++)
        buf_putc(&b, '1');
    return buf_take(&b, NULL);
}

START_TEST(test_refuses_streams)
{
    SCOPED(table_fini) struct table command, ports;
    table_init(&command, spdy_session_new, false);
    table_init(&ports, spdy_session_new, true);
    peer_open(&command, 1, 0, NULL, NULL, NULL);
    peer_open(&command, 3, 0, "stderr", NULL, NULL);
    peer_open(&command, 5, 0, "Error", NULL, NULL);
    peer_open(&command, 7, SPDY_FLAG_FIN, "data", "80", "1");
    peer_open(&command, 9, 0, "stdout", NULL, NULL);
    peer_open(&command, 11, 0, "stdout", NULL, NULL);
    talk(&command);
    expect_lines(&command.told, "open 9 stdout\n");
    expect_lines(&command.said,
                 "reset 1 3\nreset 3 3\nreset 5 3\nreset 7 3\nreply 9\nreset 11 3\n");
    SCOPED_FREE char *request = long_request();
    peer_open(&ports, 1, 0, "data", NULL, "1");
    peer_open(&ports, 3, 0, "data", "0", "1");
    peer_open(&ports, 5, 0, "data", "65536", "1");
    peer_open(&ports, 7, 0, "data", "80x", "1");
    peer_open(&ports, 9, 0, "stdin", "80", "1");
    peer_open(&ports, 11, 0, "data", "80", request);
    talk(&ports);
    expect_lines(&ports.told, "");
    expect_lines(&ports.said,
                 "reset 1 3\nreset 3 3\nreset 5 3\nreset 7 3\nreset 9 3\nreset 11 3\n");
    ports.refuses = ports.greets = true;
    peer_open(&ports, 13, SPDY_FLAG_FIN, "data", "80", "1");
    talk(&ports);
    expect_lines(&ports.told, "open 13 data 80 1\n");
    expect_lines(&ports.said, "data 13 hello\nreset 13 3\n");
}
END_TEST

START_TEST(test_greeting_follows_the_answer)
{
    SCOPED(table_fini) struct table t;
    table_init(&t, spdy_session_new, true);
    t.greets = t.answers_end = true;
    peer_open(&t, 1, SPDY_FLAG_FIN, "data", "80", "1");
    talk(&t);
    expect_lines(&t.told, "open 1 data 80 1\nend 1\ngone 1\n");
    expect_lines(&t.said, "reply 1\ndata 1 hello\ndata 1 fin\n");
}
END_TEST

START_TEST(test_streams_have_a_ceiling)
{
    SCOPED(table_fini) struct table t;
    table_init(&t, spdy_session_new, true);
    for (uint32_t i = 0; i <= SESSION_STREAMS_MAX; i++)
        peer_open(&t, 2 * i + 1, 0, "data", "80", "1");
    talk_in(&t, 1000);
    ck_assert_ptr_nonnull(strstr(buf_cstr(&t.said), "reply 2047\nreset 2049 3\n"));
    buf_clear(&t.said);
    peer_put(&t, SPDY_RST_STREAM, 1, SPDY_RST_CANCEL);
    peer_open(&t, 2051, 0, "data", "80", "1");
    talk(&t);
    expect_lines(&t.said, "reply 2051\n");
}
END_TEST

/* ---- mistakes of the peer ---- */

static void open_data(struct table *t)
{
    table_init(t, spdy_session_new, true);
    peer_open(t, 1, 0, "data", "80", "1");
    talk(t);
    expect_lines(&t->told, "open 1 data 80 1\n");
    expect_lines(&t->said, "reply 1\n");
}

START_TEST(test_stream_mistakes)
{
    SCOPED(table_fini) struct table t;
    open_data(&t);
    peer_data(&t, 5, 0, "unknown");
    peer_put(&t, SPDY_SYN_REPLY, 1, 0);
    peer_open(&t, 4, 0, "data", "80", "1");
    peer_open(&t, 1, 0, "data", "80", "1");
    peer_open(&t, 7, 0, "data", "80", "1");
    peer_open(&t, 5, 0, "data", "80", "1");
    peer_data(&t, 7, SPDY_FLAG_FIN, "");
    peer_data(&t, 7, 0, "after the end");
    peer_put(&t, SPDY_PING, 2, 0);
    talk(&t);
    expect_lines(&t.told, "gone 1\nopen 7 data 80 1\nend 7\ngone 7\n");
    expect_lines(&t.said,
                 "reset 5 2\nreset 1 2\nreset 4 1\nreset 1 1\nreply 7\nreset 5 1\nreset 7 9\n");
    ck_assert(!t.s->is_over);
}
END_TEST

START_TEST(test_bad_headers)
{
    SCOPED(table_fini) struct table t;
    open_data(&t);
    SCOPED(pairs_fini) struct pairs headers = {0};
    pairs_add(&headers, "Port", "1");
    struct spdy_frame f = {.type = SPDY_HEADERS, .id = 1, .headers = headers};
    spdy_write(t.peer, &f, &t.in);
    f.type = SPDY_SYN_STREAM, f.id = 9;
    spdy_write(t.peer, &f, &t.in);
    peer_open(&t, 7, 0, "data", "80", "1");
    peer_open(&t, 11, 0, "data", "80", "1");
    f = (struct spdy_frame){.type = SPDY_HEADERS, .id = 11, .flags = SPDY_FLAG_FIN};
    spdy_write(t.peer, &f, &t.in);
    talk(&t);
    expect_lines(&t.told, "gone 1\nopen 11 data 80 1\nend 11\n");
    expect_lines(&t.said, "reset 1 1\nreset 9 1\nreset 7 1\nreply 11\n");
}
END_TEST

START_TEST(test_session_mistakes)
{
    SCOPED(table_fini) struct table t;
    open_data(&t);
    buf_append(&t.in, "\x80\x02\0\6\0\0\0\4\0\0\0\1", 12);
    peer_put(&t, SPDY_PING, 1, 0);
    talk(&t);
    expect_lines(&t.told, "");
    expect_lines(&t.said, "goaway 1 1\n");
    ck_assert(t.s->is_over);
    ck_assert_uint_eq(session_room(t.s, t.streams[1]), 0);
    session_free(steal(&t.s));
    expect_lines(&t.told, "gone 1\n");
}
END_TEST

START_TEST(test_who_reads_nothing_goes)
{
    SCOPED(table_fini) struct table t;
    open_data(&t);
    for (int i = 0; i < 10000; i++)
        peer_put(&t, SPDY_PING, 1, 0);
    while (!t.s->is_over && t.s->out.len < 8 * SESSION_OUT_MAX)
        session_feed(t.s, t.in.data, t.in.len);
    ck_assert(t.s->is_over);
    ck_assert_uint_le(t.s->out.len, 4 * SESSION_OUT_MAX + 32);
}
END_TEST

START_TEST(test_goodbye)
{
    SCOPED(table_fini) struct table t;
    open_data(&t);
    peer_put(&t, SPDY_GOAWAY, 0, SPDY_GOAWAY_OK);
    peer_data(&t, 1, 0, "a");
    talk(&t);
    ck_assert(t.s->is_over);
    expect_lines(&t.told, "");
    expect_lines(&t.said, "");
}
END_TEST

/* ---- windows ---- */

static void send_many(struct table *t, size_t n)
{
    SCOPED_FREE char *bytes = xcalloc(n, 1);
    session_send(t->s, t->streams[1], bytes, n);
    listen(t);
}

START_TEST(test_a_peer_without_windows)
{
    SCOPED(table_fini) struct table t;
    open_data(&t);
    ck_assert_uint_eq(session_room(t.s, t.streams[1]), SESSION_OUT_MAX);
    for (int i = 0; i < 4; i++)
        send_many(&t, 40000);
    expect_lines(&t.said,
                 "data 1 32768\ndata 1 7232\ndata 1 32768\ndata 1 7232\ndata 1 32768\ndata 1 7232\n"
                 "data 1 32768\ndata 1 7232\n");
    char bytes[100] = {0};
    for (int i = 0; i < 3000; i++)
        session_send(t.s, t.streams[1], bytes, sizeof bytes);
    ck_assert_uint_eq(session_room(t.s, t.streams[1]), 0);
}
END_TEST

START_TEST(test_windows_of_the_peer)
{
    SCOPED(table_fini) struct table t;
    open_data(&t);
    peer_setting(&t, SPDY_SETTING_INITIAL_WINDOW, 30);
    talk(&t);
    ck_assert_uint_eq(session_room(t.s, t.streams[1]), 30);
    send_many(&t, 70);
    expect_lines(&t.said, "data 1 30\n");
    ck_assert_uint_eq(session_room(t.s, t.streams[1]), 0);
    send_many(&t, 25);
    session_end(t.s, t.streams[1]);
    peer_data(&t, 1, SPDY_FLAG_FIN, "");
    talk(&t);
    expect_lines(&t.told, "end 1\n");
    expect_lines(&t.said, "");
    peer_put(&t, SPDY_WINDOW_UPDATE, 1, 21);
    talk(&t);
    expect_lines(&t.said, "data 1 21\n");
    peer_put(&t, SPDY_WINDOW_UPDATE, 9, 21);
    peer_put(&t, SPDY_WINDOW_UPDATE, 1, 50);
    talk(&t);
    expect_lines(&t.told, "gone 1\n");
    expect_lines(&t.said, "data 1 44\ndata 1 fin\n");
    peer_open(&t, 3, 0, "error", "80", "1");
    talk(&t);
    ck_assert_uint_eq(session_room(t.s, t.streams[3]), 30);
}
END_TEST

START_TEST(test_windows_said_late)
{
    SCOPED(table_fini) struct table t;
    open_data(&t);
    send_many(&t, 70000);
    buf_clear(&t.said);
    peer_put(&t, SPDY_WINDOW_UPDATE, 1, 10000);
    talk(&t);
    ck_assert_uint_eq(session_room(t.s, t.streams[1]), 0);
    send_many(&t, 30);
    expect_lines(&t.said, "");
    peer_put(&t, SPDY_WINDOW_UPDATE, 0, 5000);
    talk(&t);
    expect_lines(&t.said, "data 1 30\n");
    ck_assert_uint_eq(session_room(t.s, t.streams[1]), 65536 - 70000 + 5000 - 30);
}
END_TEST

START_TEST(test_windows_overflow)
{
    SCOPED(table_fini) struct table t;
    open_data(&t);
    peer_put(&t, SPDY_WINDOW_UPDATE, 1, SPDY_ID_MAX);
    talk(&t);
    expect_lines(&t.told, "gone 1\n");
    expect_lines(&t.said, "reset 1 7\n");
    peer_put(&t, SPDY_WINDOW_UPDATE, 0, SPDY_ID_MAX);
    talk(&t);
    expect_lines(&t.said, "goaway 1 1\n");
    ck_assert(t.s->is_over);
}
END_TEST

START_TEST(test_a_window_too_large)
{
    SCOPED(table_fini) struct table t;
    open_data(&t);
    peer_setting(&t, SPDY_SETTING_MAX_STREAMS, 1);
    peer_setting(&t, SPDY_SETTING_INITIAL_WINDOW, 0x80000000);
    talk(&t);
    expect_lines(&t.said, "goaway 1 1\n");
}
END_TEST

START_TEST(test_gives_leave)
{
    SCOPED(table_fini) struct table t;
    open_data(&t);
    SCOPED(buf_fini) struct buf bytes = {0};
    for (int i = 0; i < 20000; i++)
        buf_putc(&bytes, 'x');
    peer_data(&t, 1, 0, buf_cstr(&bytes));
    talk(&t);
    expect_lines(&t.said, "");
    peer_data(&t, 1, 0, buf_cstr(&bytes));
    talk(&t);
    expect_lines(&t.said, "window 0 40000\nwindow 1 40000\n");
    peer_data(&t, 1, 0, buf_cstr(&bytes));
    peer_data(&t, 1, SPDY_FLAG_FIN, buf_cstr(&bytes));
    talk(&t);
    expect_lines(&t.said, "window 0 40000\n");
}
END_TEST

/* ---- the request ---- */

static const struct {
    const char *name;
    bool is_for_ports;
    const char *headers[3]; /* X-Stream-Protocol-Version */
    int code;
    const char *version;
    bool has_status, has_resize;
} requests[] = {
    {"client-go",
     false,
     {"v5.channel.k8s.io", "v4.channel.k8s.io", "channel.k8s.io"},
     0,
     "v4.channel.k8s.io",
     true,
     true},
    {"one header",
     false,
     {"v5.channel.k8s.io,v3.channel.k8s.io, channel.k8s.io"},
     0,
     "v3.channel.k8s.io",
     false,
     true},
    {"an old one", false, {"v2.channel.k8s.io"}, 0, "v2.channel.k8s.io", false, false},
    {"the oldest", false, {"channel.k8s.io"}, 0, "channel.k8s.io", false, false},
    {"none", false, {NULL}, ERR_BAD_REQUEST, NULL, false, false},
    {"empty", false, {" , "}, ERR_FORBIDDEN, NULL, false, false},
    {"a later one", false, {"v6.channel.k8s.io"}, ERR_FORBIDDEN, NULL, false, false},
    {"ports for a command", false, {"portforward.k8s.io"}, ERR_FORBIDDEN, NULL, false, false},
    {"ports", true, {"portforward.k8s.io"}, 0, "portforward.k8s.io", false, false},
    {"a command for ports", true, {"v4.channel.k8s.io"}, ERR_FORBIDDEN, NULL, false, false},
};

START_TEST(test_accepts)
{
    SCOPED(pairs_fini) struct pairs headers = {0};
    for (size_t i = 0; i < 3 && requests[_i].headers[i] != NULL; i++)
        pairs_add(&headers, "x-stream-protocol-version", requests[_i].headers[i]);
    const struct head head = {.headers = headers};
    struct session_wish wish = {0};
    wish.kinds[requests[_i].is_for_ports ? STREAM_DATA : STREAM_RESIZE] = true;
    SCOPED(table_fini) struct table t;
    table_init(&t, spdy_session_new, true);
    session_free(steal(&t.s));
    int r = session_spdy.accept(&head, &wish, &user, &t, &t.s, NULL);
    ck_assert_msg(r == -requests[_i].code, "%s: %d", requests[_i].name, r);
    if (r < 0)
        return;
    SCOPED_FREE char *want = xasprintf("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
                                       "Upgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: %s\r\n\r\n",
                                       requests[_i].version);
    ck_assert_str_eq(buf_cstr(&t.s->out), want);
    ck_assert_int_eq(t.s->has_status, requests[_i].has_status);
    ck_assert_int_eq(t.s->lacks_resize, !requests[_i].has_resize);
    buf_clear(&t.s->out);
    peer_open(&t, 1, 0, "resize", NULL, NULL);
    talk(&t);
    expect_lines(&t.said, requests[_i].has_resize ? "reply 1\n" : "reset 1 3\n");
}
END_TEST

SUITE(spdy_session)
{
    LOOP("command", test_command, 0, 5);
    TESTS("streams", test_ports, test_old_clients_number_no_requests, test_refuses_streams,
          test_greeting_follows_the_answer, test_streams_have_a_ceiling);
    TESTS("mistakes", test_stream_mistakes, test_bad_headers, test_session_mistakes,
          test_who_reads_nothing_goes, test_goodbye);
    TESTS("windows", test_a_peer_without_windows, test_windows_of_the_peer, test_windows_said_late,
          test_windows_overflow, test_a_window_too_large, test_gives_leave);
    LOOP("requests", test_accepts, 0, ARRAY_LEN(requests));
}
