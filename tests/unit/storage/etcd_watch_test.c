/* The watch against a gateway made of a few lines here, which does what a real one does seldom:
 * cuts documents anywhere, falls silent, breaks off, is compacted or set back between two streams.
 * Each test is a script of what each stream sends. */
#include "storage/etcd_watch.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "apiserver/base/clock.h"
#include "tests/lib/suite.h"

#define WAIT_MS 120000
#define STREAMS_MAX 50

static int64_t now_ms(void)
{
    return clock_monotonic_ms(&clock_system);
}
static void nap(void)
{
    struct timespec t = {.tv_nsec = 2 * 1000000};
    nanosleep(&t, NULL);
}

/* ---- the gateway ---- */

struct gateway {
    int fd;
    char endpoint[40];
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    int64_t newest, compact_rev;
    bool is_hanging; /* ranges are not answered */
    int n_streams;
    int64_t starts[STREAMS_MAX]; /* start revision of each stream */
    int connections[200];
    size_t n_connections;
    pthread_t threads[200];
    void (*script)(struct gateway *g, int fd,
                   int n); /* of the n-th stream, from 1; it ends when this returns */
};
static struct gateway gateway;

static bool send_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t k = send(fd, p, n, MSG_NOSIGNAL);
        if (k <= 0)
            return false;
        p += k;
        n -= (size_t)k;
    }
    return true;
}
/* One chunk of a chunked answer. */
static void send_bytes(int fd, const char *p, size_t n)
{
    char head[20];
    int k = snprintf(head, sizeof head, "%zx\r\n", n);
    send_all(fd, head, (size_t)k);
    send_all(fd, p, n);
    send_all(fd, "\r\n", 2);
}
static void send_text(int fd, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void send_text(int fd, const char *fmt, ...)
{
    char text[20000];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    send_bytes(fd, text, (size_t)n);
}
#define CREATED "{\"result\":{\"header\":{\"revision\":\"%d\"},\"created\":true}}\n"
#define EVENT(rev)                                                                                 \
    "{\"kv\":{\"key\":\"L2E=\",\"mod_revision\":\"" #rev "\",\"create_revision\":\"" #rev          \
    "\",\"value\":\"eA==\"}}"
#define EVENTS(...) "{\"result\":{\"header\":{\"revision\":\"99\"},\"events\":[" __VA_ARGS__ "]}}\n"

/* Until the other side closes, or the test is over. */
static void stay(int fd)
{
    char c;
    while (recv(fd, &c, 1, 0) > 0)
        continue;
}

static int64_t number_in(const char *body, const char *name)
{
    const char *at = strstr(body, name);
    return at == NULL ? 0 : strtoll(at + strlen(name), NULL, 10);
}

static bool answer_range(struct gateway *g, int fd, const char *body)
{
    char text[300], whole[500];
    int64_t rev = number_in(body, "\"revision\":\"");
    pthread_mutex_lock(&g->lock);
    int64_t newest = g->newest, compact_rev = g->compact_rev;
    bool is_hanging = g->is_hanging;
    pthread_mutex_unlock(&g->lock);
    if (is_hanging) {
        stay(fd);
        return false;
    }
    int status = 400;
    if (rev > newest)
        snprintf(text, sizeof text,
                 "{\"code\":11,\"message\":\"mvcc: required revision is a future revision\"}");
    else if (rev > 0 && rev < compact_rev)
        snprintf(text, sizeof text,
                 "{\"code\":11,\"message\":\"mvcc: required revision has been compacted\"}");
    else
        status =
            snprintf(text, sizeof text, "{\"header\":{\"revision\":\"%" PRId64 "\"}}", newest) > 0
                ? 200
                : 0;
    int n = snprintf(whole, sizeof whole, "HTTP/1.1 %d x\r\nContent-Length: %zu\r\n\r\n%s", status,
                     strlen(text), text);
    return send_all(fd, whole, (size_t)n);
}

static void answer_watch(struct gateway *g, int fd, const char *body)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    pthread_mutex_lock(&g->lock);
    int n = ++g->n_streams;
    ck_assert_int_lt(n, STREAMS_MAX);
    g->starts[n - 1] = number_in(body, "\"start_revision\":\"");
    pthread_mutex_unlock(&g->lock);
    send_all(fd, head, sizeof head - 1);
    g->script(g, fd, n);
}

/* Reads one request into buf; its body, or NULL at the end. */
static const char *read_request(int fd, char *buf, size_t size)
{
    size_t len = 0;
    while (len < size - 1) {
        ssize_t n = recv(fd, buf + len, size - 1 - len, 0);
        if (n <= 0)
            return NULL;
        len += (size_t)n;
        buf[len] = '\0';
        const char *body = strstr(buf, "\r\n\r\n");
        if (body != NULL && strlen(body + 4) >= (size_t)number_in(buf, "Content-Length: "))
            return body + 4;
    }
    return NULL;
}

static void *serve(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char buf[4000];
    const char *body;
    while ((body = read_request(fd, buf, sizeof buf)) != NULL) {
        bool is_watch = strncmp(buf, "POST /v3/watch ", 15) == 0;
        if (is_watch)
            answer_watch(&gateway, fd, body);
        if (is_watch || !answer_range(&gateway, fd, body))
            break;
    }
    shutdown(fd, SHUT_RDWR);
    return NULL;
}

static void *accept_all(void *arg)
{
    struct gateway *g = arg;
    int fd;
    while ((fd = accept(g->fd, NULL, NULL)) >= 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        pthread_mutex_lock(&g->lock);
        ck_assert_uint_lt(g->n_connections, 200);
        g->connections[g->n_connections] = fd;
        pthread_create(&g->threads[g->n_connections++], NULL, serve, (void *)(intptr_t)fd);
        pthread_mutex_unlock(&g->lock);
    }
    return NULL;
}

static void open_gateway(int64_t newest, void (*script)(struct gateway *g, int fd, int n))
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    gateway =
        (struct gateway){.newest = newest, .script = script, .lock = PTHREAD_MUTEX_INITIALIZER};
    gateway.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(gateway.fd, (const struct sockaddr *)&a, sizeof a), 0);
    ck_assert_int_eq(listen(gateway.fd, 20), 0);
    ck_assert_int_eq(getsockname(gateway.fd, (struct sockaddr *)&a, &len), 0);
    snprintf(gateway.endpoint, sizeof gateway.endpoint, "http://127.0.0.1:%d", ntohs(a.sin_port));
    pthread_create(&gateway.thread, NULL, accept_all, &gateway);
}
static void close_gateway(void)
{
    shutdown(gateway.fd, SHUT_RDWR);
    pthread_join(gateway.thread, NULL);
    for (size_t i = 0; i < gateway.n_connections; i++)
        shutdown(gateway.connections[i], SHUT_RDWR);
    for (size_t i = 0; i < gateway.n_connections; i++) {
        pthread_join(gateway.threads[i], NULL);
        close(gateway.connections[i]);
    }
    close(gateway.fd);
}
static void set_revs(int64_t newest, int64_t compact_rev)
{
    pthread_mutex_lock(&gateway.lock);
    gateway.newest = newest;
    gateway.compact_rev = compact_rev;
    pthread_mutex_unlock(&gateway.lock);
}
static int n_streams(void)
{
    pthread_mutex_lock(&gateway.lock);
    int n = gateway.n_streams;
    pthread_mutex_unlock(&gateway.lock);
    return n;
}

/* ---- the watcher ---- */

static struct {
    pthread_mutex_t lock; /* guards what follows */
    int64_t rev;
    char
        calls[2000]; /* "2 3;" = one call with events of revisions 2 and 3; "-" link down, "+" up */
    enum err_code lost;
    int64_t compact_rev;
    int64_t block_ms; /* each call of on_events takes so long */
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *fmt, ...)
{
    size_t len = strlen(seen.calls);
    va_list args;
    va_start(args, fmt);
    vsnprintf(seen.calls + len, sizeof seen.calls - len, fmt, args);
    va_end(args);
}
static void on_events(void *ctx, struct store_event *events, size_t n, int64_t rev)
{
    (void)ctx;
    pthread_mutex_lock(&seen.lock);
    for (size_t i = 0; i < n; i++)
        note("%s%" PRId64, i > 0 ? " " : "", events[i].kv.mod_rev);
    note(n == 0 ? "(%" PRId64 ")" : ";", rev);
    seen.rev = rev;
    int64_t block_ms = seen.block_ms;
    pthread_mutex_unlock(&seen.lock);
    for (int64_t until_ms = now_ms() + block_ms; now_ms() < until_ms;)
        nap();
}
static void on_lost(void *ctx, const struct err *err, int64_t compact_rev)
{
    (void)ctx;
    pthread_mutex_lock(&seen.lock);
    seen.lost = err->code;
    seen.compact_rev = compact_rev;
    pthread_mutex_unlock(&seen.lock);
}
static void on_link(void *ctx, bool is_up)
{
    (void)ctx;
    pthread_mutex_lock(&seen.lock);
    note(is_up ? "+" : "-");
    pthread_mutex_unlock(&seen.lock);
}
static const struct store_watch_ops ops = {
    .on_events = on_events, .on_lost = on_lost, .on_link = on_link};

static const struct etcd_watch_limits quick = {.idle_ms = 10000,
                                               .lag_ms = 100,
                                               .probe_ms = 500,
                                               .backoff_min_ms = 5,
                                               .backoff_max_ms = 50,
                                               .document_max = 1 << 20};
static struct fetch *fetch;
static struct etcd_conn *conn;
static struct store_watch *watch;

static void start(int64_t start_rev, const struct etcd_watch_limits *limits)
{
    const char *endpoints[] = {gateway.endpoint, NULL};
    fetch = fetch_new();
    conn = etcd_conn_new(fetch, &(struct etcd_config){.endpoints = endpoints});
    watch = etcd_watch_new(conn, "/", start_rev, &ops, NULL, limits);
}
static void finish(void)
{
    etcd_watch_free(watch);
    close_gateway();
    etcd_conn_free(conn);
    fetch_free(fetch);
}
/* Until rev is covered, or the watch is lost when rev is INT64_MAX. */
static void wait_rev(int64_t rev)
{
    for (int64_t until_ms = now_ms() + WAIT_MS;; nap()) {
        pthread_mutex_lock(&seen.lock);
        bool is_done = seen.rev >= rev || seen.lost != ERR_NONE;
        pthread_mutex_unlock(&seen.lock);
        if (is_done)
            return;
        ck_assert_msg(now_ms() < until_ms, "waiting for %" PRId64 ", seen %s", rev, seen.calls);
    }
}

/* ---- documents and chunks ---- */

static void script_pieces(struct gateway *g, int fd, int n)
{
    static const char text[] =
        "{\"result\":{\"header\":{\"revision\":\"5\"},\"created\":true}}\n" EVENTS(EVENT(2))
            EVENTS(EVENT(3) "," EVENT(4)) "\n" EVENTS(EVENT(5));
    (void)g, (void)n;
    for (size_t i = 0; i < sizeof text - 1; i += 7)
        send_bytes(fd, text + i, sizeof text - 1 - i < 7 ? sizeof text - 1 - i : 7);
    stay(fd);
}
START_TEST(test_documents_in_pieces)
{
    open_gateway(5, script_pieces);
    start(2, &quick);
    wait_rev(5);
    finish();
    ck_assert_str_eq(seen.calls, "2;3 4;5;");
}
END_TEST

static void script_one_chunk(struct gateway *g, int fd, int n)
{
    (void)g, (void)n;
    send_text(fd, CREATED EVENTS(EVENT(2)) EVENTS(EVENT(3)), 3);
    stay(fd);
}
START_TEST(test_documents_in_one_chunk)
{
    open_gateway(3, script_one_chunk);
    start(1, &quick);
    wait_rev(3);
    finish();
    ck_assert_str_eq(seen.calls, "2;3;");
}
END_TEST

#define FRAGMENT(...)                                                                              \
    "{\"result\":{\"header\":{\"revision\":\"9\"},\"fragment\":true,\"events\":[" __VA_ARGS__      \
    "]}}\n"
static void script_fragments(struct gateway *g, int fd, int n)
{
    (void)g;
    send_text(fd, CREATED, 9);
    if (n == 1) { /* breaks off inside revision 4 */
        send_text(fd, FRAGMENT(EVENT(2) "," EVENT(3) "," EVENT(4)));
        return;
    }
    send_text(fd, FRAGMENT(EVENT(4)) FRAGMENT(EVENT(4)) FRAGMENT(EVENT(4) "," EVENT(5)));
    send_text(fd, EVENTS(EVENT(5) "," EVENT(6)));
    stay(fd);
}
START_TEST(test_only_whole_revisions)
{
    open_gateway(9, script_fragments);
    start(2, &quick);
    wait_rev(6);
    finish();
    ck_assert_str_eq(seen.calls, "2 3;-+4 4 4;5 5 6;");
    ck_assert_int_eq(gateway.starts[1], 4);
}
END_TEST

static void script_now(struct gateway *g, int fd, int n)
{
    (void)g, (void)n;
    send_text(fd, CREATED, 7);
    send_text(fd, EVENTS(EVENT(8)));
    stay(fd);
}
START_TEST(test_from_now)
{
    open_gateway(7, script_now);
    start(0, &quick);
    wait_rev(8);
    finish();
    ck_assert_str_eq(seen.calls, "(7)8;");
    ck_assert_int_eq(gateway.starts[0], 0);
}
END_TEST

static void script_other_keys(struct gateway *g, int fd, int n)
{
    (void)g, (void)n;
    send_text(fd, CREATED, 3);
    send_text(fd, EVENTS("{\"kv\":{\"key\":\"Yg==\",\"mod_revision\":\"4\"}},{\"kv\":{\"key\":\"AA="
                         "=\",\"mod_revision\":\"5\"}}"));
    stay(fd);
}
START_TEST(test_other_keys_move_the_revision)
{
    open_gateway(3, script_other_keys);
    start(4, &quick);
    wait_rev(5);
    finish();
    ck_assert_str_eq(seen.calls, "(5)");
}
END_TEST

/* ---- broken streams ---- */

static void script_breaks(struct gateway *g, int fd, int n)
{
    (void)g;
    switch (n) {
    case 1:
        send_text(fd, CREATED EVENTS(EVENT(2)), 9);
        return; /* without an end of the chunked answer */
    case 2:
        send_text(fd, CREATED EVENTS(EVENT(3)), 9);
        send_bytes(fd, "", 0); /* a clean end */
        return;
    case 3:
        send_text(fd, "{\"error\":{\"grpc_code\":14,\"message\":\"etcdserver: no leader\"}}\n");
        break;
    case 4:
        send_text(fd, "}}} garbage");
        break;
    case 5:
        send_text(fd, CREATED "{\"result\":{\"events\":7}}", 9);
        break;
    case 6:
        send_text(fd, CREATED "{\"result\":{\"canceled\":true,\"cancel_reason\":\"no reason\"}}",
                  9);
        break;
    default:
        send_text(fd, CREATED EVENTS(EVENT(4)), 9);
    }
    stay(fd);
}
START_TEST(test_resumes_after_the_last_revision)
{
    static const int64_t starts[] = {2, 3, 4, 4, 4, 4, 4};
    open_gateway(9, script_breaks);
    start(2, &quick);
    wait_rev(4);
    finish();
    ck_assert_str_eq(seen.calls, "2;-+3;-+-+-+4;");
    ck_assert_int_eq(gateway.n_streams, 7);
    for (int i = 0; i < 7; i++)
        ck_assert_int_eq(gateway.starts[i], starts[i]);
}
END_TEST

static void script_refuses(struct gateway *g, int fd, int n)
{
    (void)g, (void)fd, (void)n;
}
START_TEST(test_backs_off)
{
    static const struct etcd_watch_limits slow = {.idle_ms = 10000,
                                                  .lag_ms = 100,
                                                  .probe_ms = 500,
                                                  .backoff_min_ms = 40,
                                                  .backoff_max_ms = 400,
                                                  .document_max = 1 << 20};
    open_gateway(9, script_refuses);
    start(2, &slow);
    for (int64_t until_ms = now_ms() + 1500; now_ms() < until_ms;)
        nap();
    int n = n_streams();
    finish();
    ck_assert_msg(n >= 3 && n <= 13, "%d streams",
                  n); /* 40 80 160 320 400 400 400 ms, each up to a half less */
    ck_assert_str_eq(seen.calls, "-");
}
END_TEST

/* ---- silent streams ---- */

static void script_silent(struct gateway *g, int fd, int n)
{
    (void)g;
    send_text(fd, CREATED, 3);
    if (n > 1)
        send_text(fd, EVENTS(EVENT(3)));
    stay(fd);
}
START_TEST(test_dead_stream_is_cut)
{
    static const struct etcd_watch_limits limits = {.idle_ms = 100,
                                                    .lag_ms = 100,
                                                    .probe_ms = 500,
                                                    .backoff_min_ms = 5,
                                                    .backoff_max_ms = 50,
                                                    .document_max = 1 << 20};
    open_gateway(3, script_silent);
    start(3, &limits);
    wait_rev(3);
    finish();
    ck_assert_str_eq(seen.calls, "-+3;");
    ck_assert_int_eq(gateway.starts[1], 3);
}
END_TEST

START_TEST(test_idle_stream_is_left_alone)
{
    static const struct etcd_watch_limits limits = {.idle_ms = 300,
                                                    .lag_ms = 30,
                                                    .probe_ms = 500,
                                                    .backoff_min_ms = 5,
                                                    .backoff_max_ms = 50,
                                                    .document_max = 1 << 20};
    open_gateway(3, script_silent);
    start(4, &limits);
    for (int64_t until_ms = now_ms() + 1500; now_ms() < until_ms;)
        nap();
    finish();
    ck_assert_int_eq(gateway.n_streams, 1);
    ck_assert_str_eq(seen.calls, "");
}
END_TEST

static void script_nothing_at_all(struct gateway *g, int fd, int n)
{
    (void)g;
    if (n > 1)
        send_text(fd, CREATED EVENTS(EVENT(2)), 3);
    stay(fd);
}
START_TEST(test_never_confirmed_is_cut)
{
    static const struct etcd_watch_limits limits = {.idle_ms = 50,
                                                    .lag_ms = 50,
                                                    .probe_ms = 500,
                                                    .backoff_min_ms = 5,
                                                    .backoff_max_ms = 50,
                                                    .document_max = 1 << 20};
    open_gateway(1, script_nothing_at_all);
    start(2, &limits);
    wait_rev(2);
    finish();
    ck_assert_str_eq(seen.calls, "-+2;");
}
END_TEST

START_TEST(test_unwatch_while_all_hangs)
{
    open_gateway(3, script_silent);
    gateway.is_hanging = true;
    start(3, &quick);
    for (int64_t until_ms = now_ms() + 100; now_ms() < until_ms;)
        nap();
    int64_t before_ms = now_ms();
    finish();
    ck_assert_int_lt(now_ms() - before_ms, 3000);
}
END_TEST

/* ---- history that is gone ---- */

static void script_compacted(struct gateway *g, int fd, int n)
{
    if (n == 1) {
        send_text(fd, CREATED EVENTS(EVENT(2)), 2);
        set_revs(50, 40);
        return;
    }
    (void)g;
    send_text(fd, CREATED, 50);
    send_text(fd, "{\"result\":{\"header\":{},\"canceled\":true,\"compact_revision\":\"40\"}}\n");
    stay(fd);
}
START_TEST(test_compacted_while_broken)
{
    open_gateway(2, script_compacted);
    start(2, &quick);
    wait_rev(INT64_MAX);
    finish();
    ck_assert_int_eq(seen.lost, ERR_EXPIRED);
    ck_assert_int_eq(seen.compact_rev, 40);
    ck_assert_str_eq(seen.calls, "2;-");
    ck_assert_int_eq(gateway.starts[1], 1); /* only asked to be told */
}
END_TEST

/* A watch from exactly the compacted revision: etcd 3.4 would go on without the deletion that was
 * there. */
static void script_lenient(struct gateway *g, int fd, int n)
{
    (void)g, (void)n;
    send_text(fd, CREATED EVENTS(EVENT(41)), 50);
    stay(fd);
}
START_TEST(test_from_exactly_the_compacted_revision)
{
    open_gateway(50, script_lenient);
    gateway.compact_rev = 40;
    start(40, &quick);
    wait_rev(INT64_MAX);
    finish();
    ck_assert_int_eq(seen.lost, ERR_EXPIRED);
    ck_assert_str_eq(seen.calls, "");
}
END_TEST

static void script_set_back(struct gateway *g, int fd, int n)
{
    (void)g;
    if (n == 1) {
        send_text(fd, CREATED EVENTS(EVENT(20)), 20);
        set_revs(10, 0);
        return;
    }
    stay(fd);
}
START_TEST(test_store_set_back)
{
    open_gateway(20, script_set_back);
    start(20, &quick);
    wait_rev(INT64_MAX);
    finish();
    ck_assert_int_eq(seen.lost, ERR_EXPIRED);
    ck_assert_str_eq(seen.calls, "20;-");
}
END_TEST

/* ---- ceilings and ends ---- */

static void script_flood(struct gateway *g, int fd, int n)
{
    (void)n;
    pthread_mutex_lock(&g->lock);
    int64_t from = g->starts[g->n_streams - 1];
    pthread_mutex_unlock(&g->lock);
    send_text(fd, CREATED, 200);
    for (int64_t rev = from; rev <= 200; rev++)
        send_text(fd,
                  "{\"result\":{\"events\":[{\"kv\":{\"key\":\"L2E=\",\"mod_revision\":\"%" PRId64
                  "\",\"value\":\"%02000d\"}}]}}\n",
                  rev, 0);
    stay(fd);
}
/* What a slow watcher has not read waits in the connection. */
START_TEST(test_slow_watcher_misses_nothing)
{
    open_gateway(200, script_flood);
    seen.block_ms = 3;
    start(2, &quick);
    wait_rev(200);
    finish();
    ck_assert_int_eq(gateway.n_streams, 1);
    SCOPED(buf_fini) struct buf all = {0};
    for (int rev = 2; rev <= 200; rev++)
        buf_printf(&all, "%d;", rev);
    char events[2000];
    size_t n = 0;
    for (const char *p = seen.calls; *p != '\0'; p++)
        if (*p != '-' && *p != '+')
            events[n++] = *p;
    events[n] = '\0';
    ck_assert_str_eq(events, buf_cstr(&all)); /* each once, in order */
}
END_TEST

static void script_large_first(struct gateway *g, int fd, int n)
{
    (void)g;
    send_text(fd, CREATED, 2);
    send_text(fd,
              "{\"result\":{\"events\":[{\"kv\":{\"key\":\"L2E=\",\"mod_revision\":\"2\","
              "\"value\":\"%0*d\"}}]}}\n",
              n == 1 ? 16000 : 4, 0);
    stay(fd);
}

START_TEST(test_large_document_cuts)
{
    static const struct etcd_watch_limits limits = {.idle_ms = 10000,
                                                    .lag_ms = 100,
                                                    .probe_ms = 500,
                                                    .backoff_min_ms = 5,
                                                    .backoff_max_ms = 50,
                                                    .document_max = 10000};
    open_gateway(2, script_large_first);
    start(2, &limits);
    wait_rev(2);
    finish();
    ck_assert_int_eq(gateway.n_streams, 2);
}
END_TEST

START_TEST(test_fetch_ends)
{
    open_gateway(3, script_silent);
    start(4, &quick);
    while (n_streams() == 0)
        nap();
    fetch_free(fetch);
    fetch = NULL;
    wait_rev(INT64_MAX);
    finish();
    ck_assert_int_eq(seen.lost, ERR_CANCELLED);
}
END_TEST

START_TEST(test_other_endpoint_takes_over)
{
    open_gateway(3, script_silent);
    /* nobody listens on the discard port */
    const char *endpoints[] = {"http://127.0.0.1:9/", gateway.endpoint, NULL};
    fetch = fetch_new();
    conn = etcd_conn_new(fetch, &(struct etcd_config){.endpoints = endpoints});
    watch = etcd_watch_new(conn, "/", 0, &ops, NULL, &quick);
    wait_rev(3);
    finish();
    ck_assert_str_eq(seen.calls, "-+(3)");
}
END_TEST

SUITE(etcd_watch)
{
    TESTS("documents", test_documents_in_pieces, test_documents_in_one_chunk,
          test_only_whole_revisions, test_from_now, test_other_keys_move_the_revision);
    TESTS("broken", test_resumes_after_the_last_revision, test_backs_off,
          test_other_endpoint_takes_over);
    TESTS("silent", test_dead_stream_is_cut, test_idle_stream_is_left_alone,
          test_never_confirmed_is_cut, test_unwatch_while_all_hangs);
    TESTS("history", test_compacted_while_broken, test_from_exactly_the_compacted_revision,
          test_store_set_back);
    TESTS("ends", test_slow_watcher_misses_nothing, test_large_document_cuts, test_fetch_ends);
}
