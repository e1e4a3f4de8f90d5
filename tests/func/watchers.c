/* Many watches of one collection while others write to it: does every watch see every change once,
 * in order and soon, also when it resumes, and are those that never read cut off?
 *
 *   watchers -U PORT -c FOLDER [-n 900] [-x 100] [-w 500] [-d 60] [-r 10]
 *
 * Opens -n watches that read and -x that never do; of both, half over HTTP/1.1 with a connection
 * each and half over HTTP/2, 50 to a connection, as an aggregator has them. -w writes a second for
 * -d seconds carry their number; -r watches a second break off and resume from what
 * they saw last. One thread reads, so that the clients take little from the server's processors.
 *
 * Prints a line `# NAME: VALUE` for each figure (how late a delivery is counts from when the write
 * was sent, and from when it was answered), and one for each thing that is wrong. Exit code 0 = all
 * is well, 1 = something is wrong, 2 = usage. FOLDER has admin.crt and admin.key. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <nghttp2/nghttp2.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/clock.h"
#include "apiserver/base/fetch.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"

#define COLLECTION "/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes"
#define STREAMS_PER_CONNECTION 50
#define OBJECTS 100 /* that are written to */
#define WRITERS 8
#define RECORDS_AT_ONCE 16    /* of TLS, read from one connection */
#define LATENCY_BUCKETS 20000 /* of a millisecond */
#define LAST_WORDS_MS 60000   /* that the last event may take */
#define CUT_OFF_MS 40000      /* that a watch which never reads may stay after all was written */

static struct {
    int64_t port, readers, silent, writes, seconds, resumes;
    char *cert, *key;
} options = {.readers = 900, .silent = 100, .writes = 500, .seconds = 60, .resumes = 10};

static int n_wrong;

static void wrong(const char *what, int64_t got, int64_t want)
{
    if (n_wrong++ < 20)
        printf("%s: %" PRId64 ", expected %" PRId64 "\n", what, got, want);
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int64_t now_ms(void)
{
    return now_us() / 1000;
}

/* ---- watches and their connections ---- */

struct connection;
struct watch {
    struct connection *on;
    int32_t stream; /* HTTP/2 */
    bool is_silent, is_over;
    struct buf line; /* begun, not ended */
    int64_t rev, n_events, n_resumed;
    uint64_t digest; /* of all revisions, in order */
};

struct connection {
    int fd;
    SSL *ssl;
    bool is_connected, is_silent; /* silent: nothing at all is read from it */
    bool has_reader;
    nghttp2_session *session; /* HTTP/2 */
    struct watch *only;       /* HTTP/1.1 */
    struct buf out;
    struct buf in; /* HTTP/1.1: what was not understood yet */
    int64_t chunk_left;
    bool is_in_body;
};

static int epoll_fd;
static SSL_CTX *ctx[2]; /* HTTP/1.1, HTTP/2 */
static int64_t first_rev;
static struct latencies {
    int64_t n, buckets[LATENCY_BUCKETS + 1];
} deliveries[2];                          /* HTTP/1.1, HTTP/2: from when a write was begun */
static struct latencies after_answers[2]; /* deliveries, from when the writer had its answer */
static struct write {
    int64_t sent_us, answered_us; /* atomic; 0 = not yet */
} * writes;
static _Atomic int64_t n_acknowledged, n_refused;

static int64_t number_after(const char *p, size_t n, const char *mark)
{
    const char *at = memmem(p, n, mark, strlen(mark));
    return at ? strtoll(at + strlen(mark), NULL, 10) : 0;
}

static void note(struct latencies *l, int64_t us)
{
    int64_t ms = us / 1000;
    l->buckets[ms < 0 ? 0 : ms > LATENCY_BUCKETS ? LATENCY_BUCKETS : ms]++;
    l->n++;
}

static void note_delivery(bool is_http2, const struct write *w, int64_t at_us)
{
    int64_t answered_us = __atomic_load_n(&w->answered_us, __ATOMIC_RELAXED);
    note(&deliveries[is_http2], at_us - __atomic_load_n(&w->sent_us, __ATOMIC_RELAXED));
    note(&after_answers[is_http2], answered_us ? at_us - answered_us : 0);
}

static void take_event(struct watch *w, const char *p, size_t n, int64_t at_us)
{
    static const char error[] = "{\"type\":\"ERROR\"", write[] = "\"write\":\"";
    if (n > sizeof error && memcmp(p, error, sizeof error - 1) == 0) {
        printf("a watch that reads was told: %.*s\n", (int)(n < 300 ? n : 300), p);
        n_wrong++;
        return;
    }
    const char *at =
        memmem(p, n, write, sizeof write - 1); /* in front of it, as members are sorted */
    int64_t rev =
        number_after(at ? at : p, at ? n - (size_t)(at - p) : n, "\"resourceVersion\":\"");
    if (rev <= w->rev)
        wrong("revision after one that is not older", rev, w->rev + 1);
    w->rev = rev;
    w->n_events++;
    w->digest = (w->digest ^ (uint64_t)rev) * 1099511628211ULL; /* FNV-1a, by words */
    if (at)
        note_delivery(w->on->session, &writes[strtoll(at + sizeof write - 1, NULL, 10)], at_us);
}

static void take_data(struct watch *w, const char *p, size_t n)
{
    int64_t at_us = now_us();
    while (n > 0) {
        const char *end = memchr(p, '\n', n);
        size_t part = end ? (size_t)(end - p) + 1 : n;
        if (end && w->line.len == 0) {
            take_event(w, p, part, at_us);
        } else {
            buf_append(&w->line, p, part);
            if (end) {
                take_event(w, buf_cstr(&w->line), w->line.len, at_us);
                buf_clear(&w->line);
            }
        }
        p += part;
        n -= part;
    }
}

static char *watch_path(const struct watch *w)
{
    return xasprintf(COLLECTION
                     "?watch=true&timeoutSeconds=3000&resourceVersion=%" PRId64, /* no bookmarks */
                     w->rev);
}

/* ---- HTTP/1.1 ---- */

static void h1_request(struct connection *c)
{
    SCOPED_FREE char *path = watch_path(c->only);
    buf_clear(&c->out);
    buf_printf(&c->out, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    buf_clear(&c->in);
    buf_clear(&c->only->line);
    c->is_in_body = false;
    c->chunk_left = 0;
}

/* The head, or the size of a chunk with the line end before it; how many bytes that was, 0 = not
 * all there. */
static size_t h1_frame(struct connection *c, const char *p, size_t n)
{
    if (!c->is_in_body) {
        const char *end = memmem(p, n, "\r\n\r\n", 4);
        if (!end)
            return 0;
        if (n < 12 || memcmp(p, "HTTP/1.1 200", 12) != 0)
            wrong("status of a watch", n < 12 ? 0 : atoll(p + 9), 200);
        c->is_in_body = true;
        return (size_t)(end - p) + 2; /* the second line end is that before a chunk */
    }
    const char *end = n > 2 ? memmem(p + 2, n - 2, "\r\n", 2) : NULL;
    if (!end)
        return 0;
    c->chunk_left = strtoll(p + 2, NULL, 16);
    if (c->chunk_left == 0)
        c->only->is_over = true;
    return (size_t)(end - p) + 2;
}

static void h1_read(struct connection *c, const char *p, size_t n)
{
    if (c->in.len > 0) {
        buf_append(&c->in, p, n);
        p = buf_cstr(&c->in);
        n = c->in.len;
    }
    while (n > 0 && !c->only->is_over) {
        size_t part = 0;
        if (c->chunk_left > 0) {
            part = (int64_t)n < c->chunk_left ? n : (size_t)c->chunk_left;
            take_data(c->only, p, part);
            c->chunk_left -= (int64_t)part;
        } else if ((part = h1_frame(c, p, n)) == 0) {
            break;
        }
        p += part;
        n -= part;
    }
    struct buf rest = {0};
    if (n > 0)
        buf_append(&rest, p, n);
    buf_fini(&c->in);
    c->in = rest;
}

/* ---- HTTP/2 ---- */

static int h2_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
                   void *arg)
{
    (void)flags;
    (void)arg;
    struct watch *w = nghttp2_session_get_stream_user_data(session, id);
    if (!w || w->is_silent) { /* its window closes, the connection's does not */
        nghttp2_session_consume_connection(session, n);
        return 0;
    }
    if (w->stream == id)
        take_data(w, (const char *)p, n);
    nghttp2_session_consume(session, id, n);
    return 0;
}

static int h2_closed(nghttp2_session *session, int32_t id, uint32_t error, void *arg)
{
    (void)error;
    (void)arg;
    struct watch *w = nghttp2_session_get_stream_user_data(session, id);
    if (w && w->stream == id)
        w->is_over = true;
    return 0;
}

static void h2_request(struct watch *w)
{
    SCOPED_FREE char *path = watch_path(w);
    const char *const fields[][2] = {
        {":method", "GET"}, {":scheme", "https"}, {":authority", "localhost"}, {":path", path}};
    nghttp2_nv nv[ARRAY_LEN(fields)];
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        nv[i] = (nghttp2_nv){.name = (uint8_t *)(uintptr_t)fields[i][0],
                             .namelen = strlen(fields[i][0]),
                             .value = (uint8_t *)(uintptr_t)fields[i][1],
                             .valuelen = strlen(fields[i][1])};
    buf_clear(&w->line);
    w->stream = nghttp2_submit_request(w->on->session, NULL, nv, ARRAY_LEN(nv), NULL, w);
    if (w->stream < 0)
        wrong("nghttp2_submit_request", w->stream, 0);
}

static void h2_begin(struct connection *c)
{
    nghttp2_session_callbacks *calls = NULL;
    nghttp2_option *option = NULL;
    nghttp2_session_callbacks_new(&calls);
    nghttp2_option_new(&option);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, h2_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(calls, h2_closed);
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_session_client_new2(&c->session, calls, c, option);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(calls);
    nghttp2_settings_entry window = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 4 << 20}; /* as Go's */
    nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, &window, 1);
    nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, 0, 1 << 30);
}

/* ---- connections ---- */

static void connection_poll(struct connection *c, int how)
{
    struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = c};
    epoll_ctl(epoll_fd, how, c->fd, &e);
}

static void connection_open(struct connection *c, bool is_http2)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)options.port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (c->fd < 0 || (connect(c->fd, (struct sockaddr *)&a, sizeof a) < 0 && errno != EINPROGRESS))
        fail("connect");
    c->ssl = SSL_new(ctx[is_http2]);
    SSL_set_fd(c->ssl, c->fd);
    SSL_set_connect_state(c->ssl);
    c->is_connected = false;
    connection_poll(c, EPOLL_CTL_ADD);
}

static void connection_close(struct connection *c)
{
    SSL_free(c->ssl);
    close(c->fd);
    c->ssl = NULL;
}

static void connection_send(struct connection *c)
{
    const uint8_t *p;
    for (ssize_t n; c->session && (n = nghttp2_session_mem_send(c->session, &p)) > 0;)
        buf_append(&c->out, (const char *)p, (size_t)n);
    while (c->is_connected && c->out.len > 0) {
        int n = SSL_write(c->ssl, c->out.data, (int)c->out.len);
        if (n <= 0)
            return; /* the next event goes on */
        memmove(c->out.data, c->out.data + n, c->out.len -= (size_t)n);
    }
}

static void connection_ended(struct connection *c)
{
    if (c->only)
        c->only->is_over = true;
    else if (c->has_reader)
        wrong("a connection of many watches ended", 1, 0);
}

/* So much at once that others have their turn: what is left is told of again. */
static void connection_read(struct connection *c)
{
    static char bytes[1 << 18];
    int most = RECORDS_AT_ONCE * (c->session ? STREAMS_PER_CONNECTION : 1);
    for (int i = 0; i < most; i++) {
        int n = SSL_read(c->ssl, bytes, sizeof bytes);
        if (n <= 0) {
            int e = SSL_get_error(c->ssl, n);
            if (e != SSL_ERROR_WANT_READ && e != SSL_ERROR_WANT_WRITE)
                connection_ended(c);
            ERR_clear_error();
            return;
        }
        if (c->session)
            nghttp2_session_mem_recv(c->session, (const uint8_t *)bytes, (size_t)n);
        else
            h1_read(c, bytes, (size_t)n);
    }
    connection_poll(c, EPOLL_CTL_MOD);
}

static void connection_event(struct connection *c)
{
    if (!c->is_connected) {
        int r = SSL_do_handshake(c->ssl);
        if (r != 1) {
            int e = SSL_get_error(c->ssl, r);
            if (e != SSL_ERROR_WANT_READ && e != SSL_ERROR_WANT_WRITE)
                wrong("handshake", e, 0);
            ERR_clear_error();
            return;
        }
        c->is_connected = true;
    }
    connection_send(c);
    if (!c->is_silent)
        connection_read(c);
    connection_send(c);
}

static void run_for_ms(int64_t ms)
{
    struct epoll_event events[64];
    int64_t until = now_ms() + ms;
    for (int64_t left; (left = until - now_ms()) >= 0;) {
        int n = epoll_wait(epoll_fd, events, 64, (int)left);
        for (int i = 0; i < n; i++)
            connection_event(events[i].data.ptr);
        if (n == 0)
            return;
    }
}

/* ---- watches ---- */

static struct watch *watches;
static struct connection *connections;
static size_t n_watches, n_connections;

/* Of readers and silent ones, the first half is over HTTP/1.1. */
static bool is_http2(size_t i)
{
    size_t readers = (size_t)options.readers, silent = (size_t)options.silent;
    return i < readers ? i >= readers / 2 : i - readers >= silent / 2;
}

static void watch_open(struct watch *w, bool on_http2, struct connection **shared, size_t *used)
{
    if (on_http2 && *shared && *used < STREAMS_PER_CONNECTION) {
        w->on = *shared;
    } else {
        w->on = &connections[n_connections++];
        if (on_http2) {
            h2_begin(*shared = w->on);
            *used = 0;
        } else {
            w->on->only = w;
            w->on->is_silent = w->is_silent;
            h1_request(w->on);
        }
        connection_open(w->on, on_http2);
    }
    w->on->has_reader |= !w->is_silent;
    if (on_http2) {
        (*used)++;
        h2_request(w);
        connection_send(w->on);
    }
}

/* Silent ones share the last reader's connection as far as there is room. */
static void open_all(void)
{
    struct connection *shared = NULL;
    size_t used = 0;
    n_watches = (size_t)(options.readers + options.silent);
    watches = xcalloc(n_watches, sizeof *watches);
    connections = xcalloc(n_watches, sizeof *connections);
    for (size_t i = 0; i < n_watches; i++) {
        watches[i].rev = first_rev;
        watches[i].is_silent = i >= (size_t)options.readers;
        watch_open(&watches[i], is_http2(i), &shared, &used);
        run_for_ms(1);
    }
    run_for_ms(1000);
}

static void watch_resume(struct watch *w)
{
    w->n_resumed++;
    w->is_over = false;
    if (w->on->session) {
        nghttp2_submit_rst_stream(w->on->session, NGHTTP2_FLAG_NONE, w->stream, NGHTTP2_CANCEL);
        h2_request(w);
        connection_send(w->on);
    } else {
        connection_close(w->on);
        h1_request(w->on);
        connection_open(w->on, false);
    }
}

/* ---- writers ---- */

static struct fetch *fetch;
static _Atomic int64_t write_end_us, next_write, last_rev;
static _Atomic int n_writers = WRITERS;
static _Atomic bool is_written;

static int call(const char *method, const char *path, const char *type, const char *body,
                struct fetch_response *ret)
{
    SCOPED_FREE char *url = xasprintf("https://127.0.0.1:%" PRId64 "%s", options.port, path);
    SCOPED(pairs_fini) struct pairs headers = {0};
    if (type)
        pairs_add(&headers, "Content-Type", type);
    struct fetch_tls tls = {.cert_file = options.cert, .key_file = options.key, .insecure = true};
    struct fetch_request req = {.method = method,
                                .url = url,
                                .headers = &headers,
                                .body = body,
                                .body_len = body ? strlen(body) : 0,
                                .tls = &tls};
    SCOPED(err_fini) struct err err = {0};
    if (fetch_do(fetch, &req, ret, &err) == 0)
        return ret->status;
    fprintf(stderr, "%s %s: %s\n", method, path, err_text(&err));
    return -1;
}

static int64_t create(const char *name)
{
    SCOPED(fetch_response_fini) struct fetch_response res = {0};
    SCOPED_FREE char *body = xasprintf(
        "{\"apiVersion\":\"agents.x-k8s.io/v1beta1\",\"kind\":\"Sandbox\",\"metadata\":{\"name\":"
        "\"%s\"},\"spec\":{\"podTemplate\":{\"spec\":{\"containers\":[{\"name\":\"main\",\"image\":"
        "\"example.org/app:1\"}]}}}}",
        name);
    if (call("POST", COLLECTION, "application/json", body, &res) != 201)
        wrong("create", res.status, 201);
    return number_after(buf_cstr(&res.body), res.body.len, "\"resourceVersion\":\"");
}

/* One write at its time, as a merge patch of an annotation. */
static void write_one(int64_t i)
{
    SCOPED(fetch_response_fini) struct fetch_response res = {0};
    SCOPED_FREE char *path = xasprintf(COLLECTION "/o-%" PRId64, i % OBJECTS);
    SCOPED_FREE char *body =
        xasprintf("{\"metadata\":{\"annotations\":{\"write\":\"%" PRId64 "\"}}}", i);
    __atomic_store_n(&writes[i].sent_us, now_us(), __ATOMIC_RELAXED);
    bool is_done = call("PATCH", path, "application/merge-patch+json", body, &res) == 200;
    __atomic_store_n(&writes[i].answered_us, now_us(), __ATOMIC_RELAXED);
    atomic_fetch_add(is_done ? &n_acknowledged : &n_refused, 1);
}

static void *writer(void *arg)
{
    int64_t begin_us = *(int64_t *)arg, step_us = 1000000 / options.writes;
    for (;;) {
        int64_t i = atomic_fetch_add(&next_write, 1);
        int64_t due_us = begin_us + i * step_us;
        if (due_us >= write_end_us)
            break;
        int64_t wait_us = due_us - now_us();
        if (wait_us > 0)
            usleep((useconds_t)wait_us);
        write_one(i);
    }
    if (atomic_fetch_sub(&n_writers, 1) == 1) {
        last_rev = create("last");
        is_written = true;
    }
    return NULL;
}

/* ---- the run ---- */

static bool all_have_seen(int64_t rev)
{
    for (size_t i = 0; i < (size_t)options.readers; i++)
        if (watches[i].rev < rev)
            return false;
    return true;
}

static void watch_while_written(void)
{
    int64_t begin_us = now_us() + 100000;
    pthread_t threads[WRITERS];
    writes = xcalloc((size_t)(options.seconds * options.writes) + WRITERS, sizeof *writes);
    write_end_us = begin_us + options.seconds * 1000000;
    for (size_t i = 0; i < WRITERS; i++)
        if (pthread_create(&threads[i], NULL, writer, &begin_us) != 0)
            fail("pthread_create");
    size_t next = 0;
    while (now_us() < write_end_us) {
        if (options.resumes > 0) {
            watch_resume(&watches[next]);
            next = (next + 7) % (size_t)options.readers;
        }
        run_for_ms(options.resumes > 0 ? 1000 / options.resumes : 100);
        for (size_t i = 0; i < (size_t)options.readers; i++)
            if (watches[i].is_over) {
                wrong("watch that reads ended by itself", (int64_t)i, -1);
                watch_resume(&watches[i]);
            }
    }
    while (!is_written) /* they may be late */
        run_for_ms(20);
    for (size_t i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
}

static int64_t quantile_ms(const struct latencies *l, double q)
{
    int64_t rank = (int64_t)((double)(l->n - 1) * q), n = 0;
    for (int64_t i = 0; i <= LATENCY_BUCKETS; i++)
        if ((n += l->buckets[i]) > rank)
            return i;
    return LATENCY_BUCKETS;
}

static void print_latencies(const char *name, const struct latencies *l)
{
    printf("# %s_p50_ms: %" PRId64 "\n# %s_p99_ms: %" PRId64 "\n# %s_max_ms: %" PRId64 "\n", name,
           quantile_ms(l, 0.5), name, quantile_ms(l, 0.99), name, quantile_ms(l, 1));
}

static void check_readers(void)
{
    int64_t want = n_acknowledged + 1; /* and the last object */
    int64_t resumed = 0;
    for (size_t i = 0; i < (size_t)options.readers; i++) {
        if (watches[i].n_events != want)
            wrong("events that a watch saw", watches[i].n_events, want);
        else if (watches[i].digest != watches[0].digest)
            wrong("watch whose order differs from the first one's", (int64_t)i, 0);
        resumed += watches[i].n_resumed;
    }
    printf("# writes: %" PRId64 "\n# deliveries: %" PRId64 "\n# resumed: %" PRId64 "\n",
           (int64_t)n_acknowledged, deliveries[0].n + deliveries[1].n, resumed);
    print_latencies("http1", &deliveries[0]);
    print_latencies("http2", &deliveries[1]);
    print_latencies("http1_after_answer", &after_answers[0]);
    print_latencies("http2_after_answer", &after_answers[1]);
}

/* A client that does not read is not told that it was cut off: the server's count of its watches
 * knows. */
static int64_t watches_of_server(void)
{
    SCOPED(fetch_response_fini) struct fetch_response res = {0};
    if (call("GET", "/metrics", NULL, NULL, &res) != 200)
        fail("/metrics");
    const char *p = buf_cstr(&res.body);
    int64_t n = 0;
    while ((p = strstr(p, "\napiserver_longrunning_requests{")) && (p = strstr(p, "} ")))
        n += strtoll(p + 2, NULL, 10);
    return n;
}

static void wait_for_cut_off(void)
{
    fetch_free(fetch); /* its connections may have been idle for too long */
    fetch = fetch_new();
    int64_t until = now_ms() + CUT_OFF_MS, n;
    while ((n = watches_of_server()) > options.readers && now_ms() < until)
        run_for_ms(200);
    if (n != options.readers)
        wrong("watches that the server still has", n, options.readers);
    for (size_t i = (size_t)options.readers; i < n_watches; i++)
        if (is_http2(i) && !watches[i].is_over)
            wrong("silent watch that was not reset", (int64_t)i, -1);
}

static int64_t cpu_ms(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000 +
           (r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1000;
}

static void run(void)
{
    for (int i = 0; i < OBJECTS; i++) {
        SCOPED_FREE char *name = xasprintf("o-%d", i);
        first_rev = create(name);
    }
    open_all();
    puts("# open");
    int64_t before_ms = cpu_ms();
    watch_while_written();
    int64_t until = now_ms() + LAST_WORDS_MS;
    while (!all_have_seen(last_rev) && now_ms() < until)
        run_for_ms(20);
    check_readers();
    printf("# client_cpu_ms: %" PRId64 "\n", cpu_ms() - before_ms);
    int64_t since_ms = now_ms();
    wait_for_cut_off();
    printf("# cut_off_ms: %" PRId64 "\n", now_ms() - since_ms);
    if (n_refused > 0)
        wrong("writes that were refused", n_refused, 0);
}

/* ---- main ---- */

static SSL_CTX *client_ctx(const char *alpn)
{
    SSL_CTX *c = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    if (SSL_CTX_use_certificate_chain_file(c, options.cert) != 1 ||
        SSL_CTX_use_PrivateKey_file(c, options.key, SSL_FILETYPE_PEM) != 1)
        fail("certificate");
    SSL_CTX_set_alpn_protos(c, (const unsigned char *)alpn, (unsigned)strlen(alpn));
    return c;
}

static bool parse_options(int argc, char **argv)
{
    for (int o; (o = getopt(argc, argv, "U:c:n:x:w:d:r:")) != -1;) {
        int64_t *number = o == 'U'   ? &options.port
                          : o == 'n' ? &options.readers
                          : o == 'x' ? &options.silent
                          : o == 'w' ? &options.writes
                          : o == 'd' ? &options.seconds
                          : o == 'r' ? &options.resumes
                                     : NULL;
        if (number && str_to_i64(optarg, number) < 0)
            return false;
        if (o == 'c' && !options.cert) {
            options.cert = xasprintf("%s/admin.crt", optarg);
            options.key = xasprintf("%s/admin.key", optarg);
        }
        if (o == '?')
            return false;
    }
    return options.port > 0 && options.cert && options.readers > 0 && options.silent >= 0 &&
           options.writes > 0 && options.resumes >= 0 && options.resumes <= 1000;
}

int main(int argc, char **argv)
{
    if (!parse_options(argc, argv)) {
        fputs("usage: watchers -U PORT -c FOLDER [-n READERS] [-x SILENT] [-w WRITES-A-SECOND] "
              "[-d SECONDS] [-r RESUMES-A-SECOND]\n",
              stderr);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    ctx[0] = client_ctx("\x08http/1.1");
    ctx[1] = client_ctx("\x02h2");
    fetch = fetch_new();
    run();
    free(writes);
    fetch_free(fetch);
    return n_wrong ? 1 : 0;
}
