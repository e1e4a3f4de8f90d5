/* What is carried between clients and nodes: bytes as they come, ends, ceilings, time-outs, stops.
 * The client is one end of a socket pair, as from libmicrohttpd; the node runs a script. */
#include "apiserver/http/tunnel.h"

#include <poll.h>

#include "tests/unit/http/node_fixture.h"

struct world {
    struct dialer *dialer;
    struct tunnels *tunnels;
    struct node node;
    int client, carried; /* ends of the pair; carried is closed when the tunnel is done */
    atomic_int done;
};

static void world_start(struct world *w, const struct tunnels_config *config, node_script *script,
                        const void *ctx)
{
    *w = (struct world){.dialer = dialer_start(), .client = -1};
    node_start(&w->node, "n1", script, ctx);
    ck_assert_int_eq(tunnels_new(config, &w->tunnels, NULL), 0);
}

static void world_stop(struct world *w)
{
    tunnels_stop(w->tunnels);
    node_join(&w->node);
}

static void world_fini(struct world *w)
{
    tunnels_free(w->tunnels);
    node_fini(&w->node);
    dialer_free(w->dialer);
    if (w->client >= 0)
        close(w->client);
}

/* ---- raw ---- */

static void on_done(void *ctx)
{
    struct world *w = ctx;
    atomic_fetch_add(&w->done, 1);
    close(w->carried);
}

static struct upgrade *dial_raw(struct world *w, const char *from_node)
{
    struct line line = {0};
    struct buf ahead = {0};
    ck_assert(tunnels_take_place(w->tunnels));
    dial_node(w->dialer, &w->node, &line);
    buf_puts(&ahead, from_node);
    return tunnels_raw(w->tunnels, &line, &ahead);
}

/* from_node, from_client: what came with the heads. */
static void open_raw(struct world *w, const char *from_node, const char *from_client)
{
    int fds[2];
    struct upgrade *u = dial_raw(w, from_node);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    w->client = fds[0];
    w->carried = fds[1];
    u->take(u, &(struct raw){.fd = w->carried,
                             .ahead = from_client,
                             .n_ahead = strlen(from_client),
                             .done = on_done,
                             .ctx = w});
}

static void client_say(struct world *w, const char *text)
{
    ck_assert_int_eq(send(w->client, text, strlen(text), MSG_NOSIGNAL), (int)strlen(text));
}

/* Until its end, or until text has come. */
static void client_hear(struct world *w, const char *text, struct buf *heard)
{
    char piece[4096];
    ssize_t n = 1;
    while (n > 0 && !(text && strstr(buf_cstr(heard), text))) {
        struct pollfd p = {.fd = w->client, .events = POLLIN};
        ck_assert_int_eq(poll(&p, 1, PATIENCE_TEST_MS), 1);
        n = recv(w->client, piece, sizeof piece, 0);
        if (n > 0)
            buf_append(heard, piece, (size_t)n);
    }
}

static void expect_client_hears(struct world *w, const char *want)
{
    SCOPED(buf_fini) struct buf heard = {0};
    client_hear(w, NULL, &heard);
    ck_assert_str_eq(buf_cstr(&heard), want);
    ck_assert_int_eq(atomic_load(&w->done), 1);
}

static void talk(struct node *n, struct tls_conn *c)
{
    if (node_hear(n, c, "first ") && node_say(n, c, "welcome ") && node_hear(n, c, "second ") &&
        node_say(n, c, "good-bye"))
        tls_conn_end(c, n->stop[0], soon_ms());
}

START_TEST(test_both_ways)
{
    struct world w;
    SCOPED(buf_fini) struct buf heard = {0};
    world_start(&w, &(struct tunnels_config){.max = 1}, talk, NULL);
    open_raw(&w, "ahead ", "fir");
    ck_assert(!tunnels_take_place(w.tunnels));
    client_say(&w, "st ");
    client_hear(&w, "welcome ", &heard);
    ck_assert_str_eq(buf_cstr(&heard), "ahead welcome ");
    client_say(&w, "second ");
    expect_client_hears(&w, "good-bye");
    world_stop(&w);
    ck_assert_str_eq(buf_cstr(&w.node.heard), "first second ");
    ck_assert(tunnels_take_place(w.tunnels)); /* it is free again */
    world_fini(&w);
}
END_TEST

static void answer_at_the_end(struct node *n, struct tls_conn *c)
{
    if (!node_hear(n, c, "never said") && node_say(n, c, "all of it: ") &&
        node_say(n, c, buf_cstr(&n->heard)))
        tls_conn_end(c, n->stop[0], soon_ms());
}

START_TEST(test_client_ends_its_side)
{
    struct world w;
    world_start(&w, &(struct tunnels_config){0}, answer_at_the_end, NULL);
    open_raw(&w, "", "one ");
    client_say(&w, "two");
    shutdown(w.client, SHUT_WR);
    expect_client_hears(&w, "all of it: one two");
    world_stop(&w);
    world_fini(&w);
}
END_TEST

static void listen_to_the_end(struct node *n, struct tls_conn *c)
{
    while (node_hear(n, c, "never said"))
        ;
}

START_TEST(test_client_vanishes)
{
    struct world w;
    world_start(&w, &(struct tunnels_config){0}, listen_to_the_end, NULL);
    open_raw(&w, "", "hello");
    close(steal(&w.client));
    node_join(&w.node); /* its connection has ended */
    w.client = -1;
    tunnels_free(steal(&w.tunnels));
    ck_assert_int_eq(atomic_load(&w.done), 1);
    node_fini(&w.node);
    dialer_free(w.dialer);
}
END_TEST

START_TEST(test_node_vanishes)
{
    struct world w;
    world_start(&w, &(struct tunnels_config){0}, NULL, NULL);
    open_raw(&w, "the last words", "");
    expect_client_hears(&w, "the last words");
    world_stop(&w);
    world_fini(&w);
}
END_TEST

#define NUMBERS 500000 /* of four bytes each */

static void count_up(struct node *n, struct tls_conn *c)
{
    uint32_t numbers[1000];
    bool goes_on = true;
    for (uint32_t i = 0; goes_on && i < NUMBERS; i += ARRAY_LEN(numbers)) {
        for (uint32_t k = 0; k < ARRAY_LEN(numbers); k++)
            numbers[k] = i + k;
        goes_on = tls_conn_send(c, numbers, sizeof numbers, n->stop[0], soon_ms(), NULL) == 0;
    }
    if (goes_on)
        tls_conn_end(c, n->stop[0], soon_ms());
}

START_TEST(test_much)
{
    struct world w;
    SCOPED(buf_fini) struct buf heard = {0};
    world_start(&w, &(struct tunnels_config){0}, count_up, NULL);
    open_raw(&w, "", "");
    client_hear(&w, NULL, &heard);
    ck_assert_uint_eq(heard.len, NUMBERS * sizeof(uint32_t));
    for (uint32_t i = 0; i < NUMBERS; i++) {
        uint32_t number;
        memcpy(&number, heard.data + i * sizeof number, sizeof number);
        ck_assert_uint_eq(number, i);
    }
    world_stop(&w);
    world_fini(&w);
}
END_TEST

/* ---- who does not take stops who sends ---- */

#define FLOOD ((size_t)256 << 20)
/* By the kernel's sockets, too, whose sizes grow by themselves. */
#define KEPT_MAX ((size_t)64 << 20)
#define NO_ROOM_MS 500

static struct { /* of this test's node */
    atomic_size_t sent;
    atomic_bool is_over;
} flooded;

/* Sends until there is no room for a while. */
static void flood(struct node *n, struct tls_conn *c)
{
    static const char bytes[16384];
    ssize_t sent = 0;
    while (sent >= 0 && atomic_load(&flooded.sent) < FLOOD) {
        sent = tls_conn_write(c, bytes, sizeof bytes);
        atomic_fetch_add(&flooded.sent, sent > 0 ? (size_t)sent : 0);
        struct pollfd p = {.fd = tls_conn_fd(c), .events = tls_conn_events(c, false, true)};
        if (sent == 0 && poll(&p, 1, NO_ROOM_MS) == 0)
            break;
    }
    atomic_store(&flooded.is_over, true);
    node_hear(n, c, "never said");
}

static void wait_for_flood(void)
{
    while (!atomic_load(&flooded.is_over))
        usleep(1000);
    ck_assert_uint_gt(atomic_load(&flooded.sent), 0);
    ck_assert_uint_lt(atomic_load(&flooded.sent), KEPT_MAX);
}

START_TEST(test_client_does_not_read)
{
    struct world w;
    world_start(&w, &(struct tunnels_config){0}, flood, NULL);
    open_raw(&w, "", "");
    wait_for_flood();
    ck_assert_int_eq(atomic_load(&w.done), 0); /* nobody is cut off for it */
    world_stop(&w);
    ck_assert_int_eq(atomic_load(&w.done), 1);
    world_fini(&w);
}
END_TEST

static void read_nothing(struct node *n, struct tls_conn *c)
{
    (void)c;
    char any;
    (void)!read(n->stop[0], &any, 1);
}

START_TEST(test_node_does_not_read)
{
    static const char bytes[16384];
    struct world w;
    size_t sent = 0;
    world_start(&w, &(struct tunnels_config){0}, read_nothing, NULL);
    open_raw(&w, "", "");
    for (ssize_t n = 1; n > 0 && sent<FLOOD; sent += n> 0 ? (size_t)n : 0) {
        struct pollfd p = {.fd = w.client, .events = POLLOUT};
        n = poll(&p, 1, NO_ROOM_MS) == 1 ? send(w.client, bytes, sizeof bytes, MSG_DONTWAIT) : 0;
    }
    ck_assert_uint_lt(sent, KEPT_MAX);
    ck_assert_int_eq(write(w.node.stop[1], "", 1), 1);
    world_stop(&w);
    world_fini(&w);
}
END_TEST

/* ---- time and places ---- */

START_TEST(test_nothing_moves)
{
    struct world w;
    world_start(&w, &(struct tunnels_config){.idle_timeout_ms = 50}, listen_to_the_end, NULL);
    open_raw(&w, "", "hello");
    expect_client_hears(&w, "");
    node_join(&w.node);
    ck_assert_str_eq(buf_cstr(&w.node.heard), "hello");
    world_fini(&w);
}
END_TEST

START_TEST(test_places)
{
    struct world w;
    world_start(&w, &(struct tunnels_config){.max = 2}, listen_to_the_end, NULL);
    ck_assert(tunnels_take_place(w.tunnels));
    struct upgrade *u = dial_raw(&w, "");
    ck_assert(!tunnels_take_place(w.tunnels));
    u->close(u); /* the client's connection could not be had */
    node_join(&w.node);
    ck_assert(tunnels_take_place(w.tunnels));
    ck_assert(!tunnels_take_place(w.tunnels));
    tunnels_give_place(w.tunnels);
    ck_assert(tunnels_take_place(w.tunnels));
    world_fini(&w);
}
END_TEST

START_TEST(test_stop)
{
    struct world w;
    world_start(&w, &(struct tunnels_config){0}, listen_to_the_end, NULL);
    open_raw(&w, "", "hello");
    world_stop(&w);
    expect_client_hears(&w, "");
    world_fini(&w);
}
END_TEST

START_TEST(test_too_late)
{
    struct world w;
    int fds[2];
    world_start(&w, &(struct tunnels_config){0}, listen_to_the_end, NULL);
    struct upgrade *u = dial_raw(&w, "");
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    w.client = fds[0];
    w.carried = fds[1];
    tunnels_stop(w.tunnels);
    u->take(u, &(struct raw){.fd = w.carried, .done = on_done, .ctx = &w});
    expect_client_hears(&w, "");
    node_join(&w.node);
    world_fini(&w);
}
END_TEST

/* ---- logs ---- */

struct reader {
    struct stream *stream;
    pthread_mutex_t lock;
    pthread_cond_t woken;
    bool is_woken;
};

static void wake_reader(void *ctx)
{
    struct reader *r = ctx;
    pthread_mutex_lock(&r->lock);
    r->is_woken = true;
    pthread_cond_signal(&r->woken);
    pthread_mutex_unlock(&r->lock);
}

static void open_log(struct world *w, struct reader *r)
{
    struct line line = {0};
    struct reply reply = {0};
    struct buf ahead = {0};
    SCOPED(buf_fini) struct buf request = {0};
    buf_puts(&request, "GET /containerLogs/ns/p/c HTTP/1.1\r\n\r\n");
    ck_assert(tunnels_take_place(w->tunnels));
    dial_node(w->dialer, &w->node, &line);
    ck_assert_int_eq(line_ask(&line, &request, soon_ms(), &reply, &ahead, NULL), 0);
    *r = (struct reader){.stream = tunnels_log(w->tunnels, &line, &reply, &ahead)};
    reply_fini(&reply);
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->woken, NULL);
    r->stream->wake = wake_reader;
    r->stream->wake_ctx = r;
}

static void close_log(struct reader *r)
{
    r->stream->close(r->stream);
    pthread_cond_destroy(&r->woken);
    pthread_mutex_destroy(&r->lock);
}

/* All of it, as a transport does: pulls until there is nothing, then waits for a wake. */
static void read_log(struct reader *r, struct buf *into)
{
    for (;;) {
        int n = r->stream->pull(r->stream, into);
        if (n < 0)
            return;
        if (n > 0)
            continue;
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += PATIENCE_TEST_MS / 1000;
        int error = 0;
        pthread_mutex_lock(&r->lock);
        while (!r->is_woken && error == 0)
            error = pthread_cond_timedwait(&r->woken, &r->lock, &until);
        r->is_woken = false;
        pthread_mutex_unlock(&r->lock);
        ck_assert_int_eq(error, 0);
    }
}

static const struct log_row {
    const char *id, *pieces[4], *want;
} log_rows[] = {
    {"a length", {"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\none ", "two "}, "one two "},
    {"chunks",
     {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "4\r\none \r\n", "4\r\ntwo \r\n",
      "0\r\n\r\n"},
     "one two "},
    {"all with the head", {"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\none "}, "one "},
    {"empty", {"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"}, ""},
    {"no HTTP any more",
     {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "4\r\none \r\n", "zz\r\n"},
     "one "},
};

static void say_pieces(struct node *n, struct tls_conn *c)
{
    const struct log_row *row = n->ctx;
    if (!node_hear(n, c, "\r\n\r\n"))
        return;
    for (size_t i = 0; i < ARRAY_LEN(row->pieces) && row->pieces[i]; i++)
        node_say(n, c, row->pieces[i]);
    node_hear(n, c, "never said"); /* the other side hangs up first */
}

START_TEST(test_log)
{
    struct world w;
    struct reader r;
    SCOPED(buf_fini) struct buf log = {0};
    world_start(&w, &(struct tunnels_config){.max = 1}, say_pieces, &log_rows[_i]);
    open_log(&w, &r);
    read_log(&r, &log);
    ck_assert_msg(strcmp(buf_cstr(&log), log_rows[_i].want) == 0, "%s: %s", log_rows[_i].id,
                  buf_cstr(&log));
    node_join(&w.node);
    ck_assert_int_eq(r.stream->pull(r.stream, &log), -1);
    close_log(&r);
    tunnels_stop(w.tunnels);
    ck_assert(tunnels_take_place(w.tunnels));
    world_fini(&w);
}
END_TEST

static void begin_log(struct node *n, struct tls_conn *c)
{
    if (node_hear(n, c, "\r\n\r\n") && node_say(n, c, "HTTP/1.1 200 OK\r\n\r\n"))
        n->ctx ? flood(n, c) : listen_to_the_end(n, c);
}

START_TEST(test_log_nobody_reads)
{
    struct world w;
    struct reader r;
    SCOPED(buf_fini) struct buf log = {0};
    world_start(&w, &(struct tunnels_config){0}, begin_log, &flooded);
    open_log(&w, &r);
    wait_for_flood();
    ck_assert_int_eq(r.stream->pull(r.stream, &log), 1);
    ck_assert_uint_lt(log.len, (64 << 10) + (16 << 10)); /* 64 KiB, and the read beyond them */
    size_t first = log.len;
    while (log.len < first + 1000) { /* there is room again */
        ck_assert_int_ge(r.stream->pull(r.stream, &log), 0);
        usleep(1000);
    }
    close_log(&r);
    world_stop(&w);
    world_fini(&w);
}
END_TEST

START_TEST(test_log_reader_goes)
{
    struct world w;
    struct reader r;
    SCOPED(buf_fini) struct buf log = {0};
    world_start(&w, &(struct tunnels_config){0}, begin_log, NULL);
    open_log(&w, &r);
    ck_assert_int_eq(r.stream->pull(r.stream, &log), 0);
    close_log(&r);
    node_join(&w.node); /* its connection has ended */
    world_fini(&w);
}
END_TEST

START_TEST(test_log_at_the_stop)
{
    struct world w;
    struct reader r;
    SCOPED(buf_fini) struct buf log = {0};
    world_start(&w, &(struct tunnels_config){0}, begin_log, NULL);
    open_log(&w, &r);
    ck_assert_int_eq(r.stream->pull(r.stream, &log), 0);
    world_stop(&w);
    ck_assert(r.is_woken);
    read_log(&r, &log); /* there is an end */
    ck_assert_uint_eq(log.len, 0);
    close_log(&r);
    world_fini(&w);
}
END_TEST

SUITE(tunnel)
{
    node_certificates();
    TESTS("raw", test_both_ways, test_client_ends_its_side, test_client_vanishes,
          test_node_vanishes, test_much, test_client_does_not_read, test_node_does_not_read);
    TESTS("time and places", test_nothing_moves, test_places, test_stop, test_too_late);
    LOOP("logs", test_log, 0, ARRAY_LEN(log_rows));
    TESTS("readers", test_log_nobody_reads, test_log_reader_goes, test_log_at_the_stop);
}
