/* A session carried over a real TLS connection: what is fed and sent and when, who is waited for,
 * and every way that it ends. The session writes down what it is told; its user holds what the test
 * says. */
#include "node/carry.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apiserver/base/clock.h"
#include "tests/lib/certs.h"
#include "tests/lib/suite.h"
#include "tests/lib/tls_client.h"

#define SOON_MS 20000 /* for what is going to happen */
#define STALL_MS 300  /* without a move: nothing more is taken */

static struct world {
    struct tls_server *tls;
    int listener, port, stop[2], news[2]; /* news: what the session's user waits for */
    pthread_t thread;
    struct session session;
    const char *first; /* what came behind the request's head */
    struct buf log;    /* of the session: start, fed and so on; to be read once carried */
    int64_t wake_in_ms;
    atomic_size_t fed;
    atomic_bool is_full;
    atomic_int acts, hears; /* of the user; news that it has heard */
    bool answers;           /* the session sends back all that it is fed */
} w;

/* ---- the session and its user ---- */

static void start(struct session *s)
{
    buf_puts(&w.log, "start;");
    buf_puts(&s->out, "welcome;");
}

static void feed(struct session *s, const char *p, size_t n)
{
    if (atomic_fetch_add(&w.fed, n) < 1000)
        buf_append(&w.log, p, n);
    if (w.answers)
        buf_append(&s->out, p, n);
    if (p[n - 1] == '.') {
        buf_puts(&s->out, "that was all;");
        s->is_over = true;
    }
}

static void close_session(struct session *s)
{
    buf_puts(&w.log, "close;");
    buf_puts(&s->out, "good-bye");
    s->is_over = true;
}

static const struct session_ops session_ops = {
    .start = start, .feed = feed, .close = close_session};

static void user_wait(void *ctx, struct waits *waits)
{
    (void)ctx;
    size_t at = waits_add(waits, w.news[0], POLLIN);
    ck_assert_uint_eq(at, 2); /* behind the end of the node, and the client */
    if (w.wake_in_ms > 0)
        waits_until(waits, clock_monotonic_ms(&clock_system) + w.wake_in_ms);
}

static void user_act(void *ctx, const struct waits *waits)
{
    (void)ctx;
    char news;
    if (atomic_fetch_add(&w.acts, 1) == 10 && w.wake_in_ms > 0)
        session_close(&w.session);
    if (!(waits_result(waits, 2) & POLLIN))
        return;
    ck_assert_int_eq(read(w.news[0], &news, 1), 1);
    atomic_fetch_add(&w.hears, 1);
    buf_printf(&w.session.out, "news %c;", news);
}

static bool user_is_full(void *ctx)
{
    (void)ctx;
    return atomic_load(&w.is_full);
}

static const struct carry_user user = {user_wait, user_act, user_is_full};

/* ---- the connection ---- */

static int64_t soon_ms(void)
{
    return clock_monotonic_ms(&clock_system) + SOON_MS;
}

static void *run(void *arg)
{
    struct tls_conn *c;
    int fd = accept(w.listener, NULL, NULL);
    if (tls_conn_accept(w.tls, fd, w.stop[0], soon_ms(), &c, NULL) < 0)
        return NULL;
    w.session = (struct session){.ops = &session_ops};
    carry(&(struct carry){.conn = c, .session = &w.session, .stop_fd = w.stop[0], .user = &user},
          w.first, strlen(w.first));
    tls_conn_free(c);
    return arg;
}

static void setup(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof at;
    signal(SIGPIPE, SIG_IGN); /* as the program does */
    w = (struct world){.first = "first;"};
    ck_assert_int_eq(tls_server_new(certs_path("node.crt"), certs_path("node.key"),
                                    certs_path("ca.crt"), &w.tls, NULL),
                     0);
    ck_assert_int_eq(pipe(w.stop), 0);
    ck_assert_int_eq(pipe(w.news), 0);
    w.listener = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(w.listener, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(listen(w.listener, 1), 0);
    ck_assert_int_eq(getsockname(w.listener, (struct sockaddr *)&at, &n), 0);
    w.port = ntohs(at.sin_port);
}

static void open_client(struct tls_client *c)
{
    ck_assert_int_eq(pthread_create(&w.thread, NULL, run, &w), 0);
    ck_assert(tls_client_open(c, w.port, NULL));
}

static void expect_carried(const char *log)
{
    void *result;
    pthread_join(w.thread, &result);
    ck_assert_ptr_nonnull(result);
    ck_assert_str_eq(buf_cstr(&w.log), log);
}

static void teardown(void)
{
    close(w.listener);
    for (int i = 0; i < 2; i++) {
        close(w.stop[i]);
        close(w.news[i]);
    }
    tls_server_free(w.tls);
    buf_fini(&w.log);
    buf_fini(&w.session.out);
}

/* ---- ends ---- */

START_TEST(test_a_whole_session)
{
    struct tls_client c;
    open_client(&c);
    ck_assert(tls_client_read_until(&c, "welcome;"));
    ck_assert(tls_client_send(&c, "second;last."));
    ck_assert(tls_client_read_all(&c)); /* in order: all that was to say has come */
    ck_assert_str_eq(buf_cstr(&c.got), "welcome;that was all;");
    tls_client_close(&c);
    expect_carried("start;first;second;last.");
}
END_TEST

START_TEST(test_over_at_once)
{
    struct tls_client c;
    w.first = "all in one.";
    open_client(&c);
    ck_assert(tls_client_read_all(&c));
    ck_assert_str_eq(buf_cstr(&c.got), "welcome;that was all;");
    tls_client_close(&c);
    expect_carried("start;all in one.");
}
END_TEST

START_TEST(test_client_goes)
{
    struct tls_client c;
    open_client(&c);
    ck_assert(tls_client_read_until(&c, "welcome;"));
    ck_assert(tls_client_send(&c, "second;"));
    tls_client_close(&c);
    expect_carried("start;first;second;close;");
}
END_TEST

/* It is heard of although nothing is read: a break, not an end, which would only be seen so. */
START_TEST(test_client_breaks_while_full)
{
    struct tls_client c;
    const struct linger reset = {.l_onoff = 1};
    atomic_store(&w.is_full, true);
    open_client(&c);
    ck_assert(tls_client_read_until(&c, "welcome;"));
    setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    tls_client_close(&c);
    expect_carried("start;first;close;");
}
END_TEST

START_TEST(test_node_ends)
{
    struct tls_client c;
    open_client(&c);
    ck_assert(tls_client_read_until(&c, "welcome;"));
    close(w.stop[1]);
    w.stop[1] = dup(w.stop[0]);
    tls_client_read_all(&c);
    tls_client_close(&c);
    expect_carried("start;first;close;");
}
END_TEST

/* ---- waiting ---- */

START_TEST(test_news)
{
    struct tls_client c;
    open_client(&c);
    ck_assert_int_eq(write(w.news[1], "1", 1), 1);
    ck_assert(tls_client_read_until(&c, "news 1;"));
    ck_assert_int_eq(write(w.news[1], "2", 1), 1);
    ck_assert(tls_client_read_until(&c, "news 2;"));
    ck_assert(tls_client_send(&c, "."));
    tls_client_close(&c);
    expect_carried("start;first;.");
    ck_assert_int_eq(atomic_load(&w.hears), 2);
}
END_TEST

START_TEST(test_clock)
{
    struct tls_client c;
    w.wake_in_ms = 1;
    open_client(&c); /* says nothing; the user closes when it was woken often enough */
    ck_assert(tls_client_read_all(&c));
    ck_assert_str_eq(buf_cstr(&c.got), "welcome;good-bye");
    tls_client_close(&c);
    expect_carried("start;first;close;");
}
END_TEST

/* ---- who is full stops who sends ---- */

#define FLOOD ((size_t)256 << 20)
/* By the kernel's sockets, too, whose sizes grow by themselves. */
#define KEPT_MAX ((size_t)64 << 20)

struct sender {
    pthread_t thread;
    struct tls_client *client;
    size_t n;
};

/* Until all is taken or the connection is broken. */
static void *send_zeros(void *arg)
{
    static const char zeros[16384];
    struct sender *s = arg;
    for (bool goes_on = true; goes_on && s->n > 0; s->n -= sizeof zeros)
        goes_on = tls_client_send_bytes(s->client, zeros, sizeof zeros);
    return NULL;
}

static void start_sender(struct sender *s, struct tls_client *c, size_t n)
{
    *s = (struct sender){.client = c, .n = n};
    ck_assert_int_eq(pthread_create(&s->thread, NULL, send_zeros, s), 0);
}

/* How much was fed when nothing more is for a while. */
static size_t wait_for_stall(void)
{
    size_t before, after = atomic_load(&w.fed);
    do {
        before = after;
        usleep(STALL_MS * 1000);
        after = atomic_load(&w.fed);
    } while (after != before);
    return after;
}

START_TEST(test_user_is_full)
{
    const size_t n = (size_t)32 << 20; /* more than the sockets keep */
    struct tls_client c;
    struct sender sender;
    atomic_store(&w.is_full, true);
    open_client(&c);
    start_sender(&sender, &c, n);
    ck_assert_uint_eq(wait_for_stall(), strlen("first;"));
    atomic_store(&w.is_full, false);
    ck_assert_int_eq(write(w.news[1], "1", 1), 1); /* look again */
    pthread_join(sender.thread, NULL);
    ck_assert(tls_client_send(&c, "."));
    ck_assert(tls_client_read_until(&c, "that was all;"));
    tls_client_close(&c);
    pthread_join(w.thread, NULL);
    ck_assert_uint_eq(atomic_load(&w.fed), strlen("first;.") + n);
}
END_TEST

START_TEST(test_client_does_not_read)
{
    struct tls_client c;
    struct sender sender;
    w.answers = true;
    open_client(&c);
    start_sender(&sender, &c, FLOOD);
    ck_assert_uint_lt(wait_for_stall(), KEPT_MAX);
    shutdown(c.fd, SHUT_RDWR);
    pthread_join(sender.thread, NULL);
    tls_client_close(&c);
    pthread_join(w.thread, NULL);
    /* At most one read beyond what there is room for. */
    ck_assert_uint_lt(w.session.out.len, 2 * SESSION_OUT_MAX + (64 << 10));
}
END_TEST

SUITE(carry)
{
    const TTest *const tests[] = {test_a_whole_session,
                                  test_over_at_once,
                                  test_client_goes,
                                  test_client_breaks_while_full,
                                  test_node_ends,
                                  test_news,
                                  test_clock,
                                  test_user_is_full,
                                  test_client_does_not_read};
    certs_init();
    certs_make("ca", NULL, "/CN=ca", CERTS_CA, 2);
    certs_make("node", "ca", "/CN=system:node:n1", CERTS_SERVER, 2);
    TCase *tc = tcase_create("sessions");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        tcase_add_test(tc, tests[i]);
    suite_add_tcase(s, tc);
}
