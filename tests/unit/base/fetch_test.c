#include "apiserver/base/fetch.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apiserver/base/clock.h"
#include "tests/lib/peer.h"
#include "tests/lib/suite.h"

/* ---- the other side ---- */

static int n_requests; /* atomic, of this test's process */

static int requests_seen(void)
{
    return __atomic_load_n(&n_requests, __ATOMIC_SEQ_CST);
}

static void answer_echo(struct peer_conn *c, const struct peer_request *req)
{
    SCOPED(buf_fini) struct buf text = {0};
    buf_printf(&text, "%s %s\n", req->method, req->target);
    for (size_t i = 0; i < req->headers.n; i++)
        buf_printf(&text, "%s=%s\n", req->headers.v[i].name, req->headers.v[i].value);
    buf_printf(&text, "\n%s", buf_cstr(&req->body));
    peer_answer(c, 200, "text/plain", buf_cstr(&text));
}

static void answer_big(struct peer_conn *c, size_t n)
{
    char *text = xmalloc(n + 1);
    memset(text, 'x', n);
    text[n] = '\0';
    peer_answer(c, 200, NULL, text);
    free(text);
}

static void answer_many_headers(struct peer_conn *c, int n)
{
    peer_printf(c, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < n; i++)
        peer_printf(c, "H%d: v\r\n", i);
    peer_printf(c, "Content-Length: 0\r\n\r\n");
}

static bool answer_stream(struct peer_conn *c, const char *how)
{
    peer_begin_chunks(c, 200);
    peer_chunk(c, "one ");
    peer_chunk(c, "two ");
    if (strcmp(how, "ends") == 0)
        peer_chunk(c, "");
    else if (strcmp(how, "stays") == 0)
        peer_wait_hangup(c, 20000);
    return strcmp(how, "ends") == 0; /* "breaks": closed in the middle */
}

/* Answers once on each connection, then takes a request and hangs up. */
static bool answer_once(struct peer_conn *c, int n)
{
    if (n == 2)
        return false;
    peer_answer(c, 200, NULL, "{}");
    return true;
}

static bool serve(void *ctx, struct peer_conn *c, const struct peer_request *req)
{
    (void)ctx;
    int n = __atomic_add_fetch(&n_requests, 1, __ATOMIC_SEQ_CST);
    const char *t = req->target;
    if (str_has_prefix(t, "/echo"))
        answer_echo(c, req);
    else if (strcmp(t, "/status") == 0)
        peer_answer(c, 409, NULL, "{\"kind\":\"Status\"}");
    else if (strcmp(t, "/redirect") == 0)
        peer_printf(c, "HTTP/1.1 302 F\r\nLocation: /echo\r\nContent-Length: 0\r\n\r\n");
    else if (strcmp(t, "/interim") == 0)
        peer_printf(c, "HTTP/1.1 103 E\r\nA: 1\r\n\r\nHTTP/1.1 204 N\r\nB:  2 \r\n\r\n");
    else if (strcmp(t, "/big") == 0)
        answer_big(c, 100000);
    else if (strcmp(t, "/headers") == 0)
        answer_many_headers(c, 300);
    else if (str_has_prefix(t, "/stream/"))
        return answer_stream(c, t + strlen("/stream/"));
    else if (strcmp(t, "/once") == 0)
        return answer_once(c, n);
    else if (strcmp(t, "/short") == 0)
        peer_printf(c, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort");
    else if (strcmp(t, "/hang") == 0)
        peer_wait_hangup(c, 20000);
    if (strcmp(t, "/hang") == 0 || strcmp(t, "/short") == 0 || strcmp(t, "/close") == 0)
        return false;
    return true;
}

struct fixture {
    struct peer *peer;
    struct fetch *fetch;
    char url[128];
};
static struct fixture fx;

static void set_up(void)
{
    n_requests = 0;
    fx.peer = peer_start(NULL, serve, NULL);
    fx.fetch = fetch_new();
}

static void tear_down(void)
{
    fetch_free(fx.fetch);
    peer_stop(fx.peer);
}

static const char *url(const char *path)
{
    snprintf(fx.url, sizeof fx.url, "http://127.0.0.1:%d%s", peer_port(fx.peer), path);
    return fx.url;
}

/* ---- blocking calls ---- */

START_TEST(test_get)
{
    set_up();
    struct pairs headers = {0};
    pairs_add(&headers, "X-Empty", "");
    pairs_add(&headers, "Authorization", "Bearer abc");
    struct fetch_request req = {.url = url("/echo?a=b%20c"), .headers = &headers};
    struct fetch_response res = {0};
    ck_assert_int_eq(fetch_do(fx.fetch, &req, &res, NULL), 0);
    ck_assert_int_eq(res.status, 200);
    ck_assert_str_eq(pairs_get_ci(&res.headers, "content-type"), "text/plain");
    const char *text = buf_cstr(&res.body);
    ck_assert_msg(str_has_prefix(text, "GET /echo?a=b%20c\n"), "%s", text);
    ck_assert_ptr_nonnull(strstr(text, "\nX-Empty=\n"));
    ck_assert_ptr_nonnull(strstr(text, "\nAuthorization=Bearer abc\n"));
    fetch_response_fini(&res);
    pairs_fini(&headers);
    tear_down();
}
END_TEST

static const struct {
    const char *method, *body, *content_type, *expect, *absent;
} sent[] = {
    {"POST", "{\"a\":1}", "application/json", "\nContent-Type=application/json\n", "Expect"},
    {"POST", "x", NULL, "\nContent-Length=1\n", "Content-Type"},
    {"POST", NULL, NULL, "\nContent-Length=0\n", "Content-Type"},
    {"PUT", "{}", "application/json", "\n\n{}", "Expect"},
    {"PATCH", "[]", "application/json-patch+json", "PATCH /echo\n", "Expect"},
    {"DELETE", NULL, NULL, "DELETE /echo\n", "Content-Length"},
    {"DELETE", "{}", "application/json", "\n\n{}", "Expect"},
};

START_TEST(test_methods)
{
    set_up();
    struct pairs headers = {0};
    if (sent[_i].content_type != NULL)
        pairs_add(&headers, "content-type", sent[_i].content_type);
    struct fetch_request req = {
        .method = sent[_i].method,
        .url = url("/echo"),
        .headers = &headers,
        .body = sent[_i].body,
        .body_len = sent[_i].body != NULL ? strlen(sent[_i].body) : 0,
    };
    struct fetch_response res = {0};
    ck_assert_int_eq(fetch_do(fx.fetch, &req, &res, NULL), 0);
    ck_assert_msg(strcasestr(buf_cstr(&res.body), sent[_i].expect) != NULL, "%s",
                  buf_cstr(&res.body));
    ck_assert_msg(strcasestr(buf_cstr(&res.body), sent[_i].absent) == NULL, "%s",
                  buf_cstr(&res.body));
    fetch_response_fini(&res);
    pairs_fini(&headers);
    tear_down();
}
END_TEST

START_TEST(test_big_body_both_ways)
{
    set_up();
    size_t n = 3 << 20;
    char *body = xmalloc(n);
    memset(body, 'b', n);
    struct fetch_request req = {.method = "POST", .url = url("/echo"), .body = body, .body_len = n};
    struct fetch_response res = {0};
    ck_assert_int_eq(fetch_do(fx.fetch, &req, &res, NULL), 0);
    ck_assert_uint_gt(res.body.len, n);
    fetch_response_fini(&res);
    free(body);
    tear_down();
}
END_TEST

START_TEST(test_statuses_are_no_errors)
{
    set_up();
    struct fetch_response res = {0};
    struct fetch_request req = {.url = url("/status")};
    ck_assert_int_eq(fetch_do(fx.fetch, &req, &res, NULL), 0);
    ck_assert_int_eq(res.status, 409);
    ck_assert_str_eq(buf_cstr(&res.body), "{\"kind\":\"Status\"}");
    fetch_response_fini(&res);
    req.url = url("/redirect");
    ck_assert_int_eq(fetch_do(fx.fetch, &req, &res, NULL), 0);
    ck_assert_int_eq(res.status, 302);
    ck_assert_int_eq(requests_seen(), 2);
    fetch_response_fini(&res);
    req.url = url("/interim");
    ck_assert_int_eq(fetch_do(fx.fetch, &req, &res, NULL), 0);
    ck_assert_int_eq(res.status, 204);
    ck_assert_uint_eq(res.headers.n, 1);
    ck_assert_str_eq(pairs_get_ci(&res.headers, "b"), "2");
    fetch_response_fini(&res);
    tear_down();
}
END_TEST

START_TEST(test_head_and_connection_reuse)
{
    set_up();
    for (int i = 0; i < 5; i++) {
        struct fetch_response res = {0};
        struct fetch_request req = {.url = url("/echo")};
        ck_assert_int_eq(fetch_do(fx.fetch, &req, &res, NULL), 0);
        fetch_response_fini(&res);
    }
    ck_assert_int_eq(peer_connections(fx.peer), 1);
    struct fetch_response res = {0};
    struct fetch_request req = {.method = "HEAD", .url = url("/echo")};
    ck_assert_int_eq(fetch_do(fx.fetch, &req, &res, NULL), 0);
    ck_assert_uint_eq(res.body.len, 0);
    fetch_response_fini(&res);
    tear_down();
}
END_TEST

START_TEST(test_unix_socket)
{
    char dir[] = "/tmp/fetch-test-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    SCOPED_FREE char *path = xasprintf("%s/s", dir);
    struct peer *p = peer_start(path, serve, NULL);
    struct fetch *f = fetch_new();
    struct fetch_request req = {.url = "http://d/echo", .unix_socket = path};
    struct fetch_response res = {0};
    ck_assert_int_eq(fetch_do(f, &req, &res, NULL), 0);
    ck_assert(str_has_prefix(buf_cstr(&res.body), "GET /echo\n"));
    fetch_response_fini(&res);
    fetch_free(f);
    peer_stop(p);
    unlink(path);
    rmdir(dir);
}
END_TEST

/* ---- errors ---- */

static const struct {
    const char *method, *path;
    enum err_code code;
    const char *text;
} failures[] = {
    {"GET", "/close", ERR_UNAVAILABLE, "/close: "},
    {"POST", "/close?token=secret", ERR_UNDETERMINED, "/close: "},
    {"DELETE", "/close", ERR_UNDETERMINED, "/close: "},
    {"GET", "/short", ERR_UNAVAILABLE, "/short: "},
    {"PUT", "/short", ERR_UNDETERMINED, "/short: "},
    {"GET", "/hang", ERR_TIMEOUT, "/hang: "},
    {"HEAD", "/hang", ERR_TIMEOUT, "/hang: "},
    {"PATCH", "/hang", ERR_UNDETERMINED, "/hang: "},
    {"GET", "/big", ERR_TOO_LARGE, "the answer is too large"},
    {"POST", "/big", ERR_TOO_LARGE, "the answer is too large"},
    {"GET", "/headers", ERR_TOO_LARGE, "too many headers"},
};

START_TEST(test_failures)
{
    set_up();
    struct fetch_request req = {.method = failures[_i].method,
                                .url = url(failures[_i].path),
                                .timeout_ms = 300,
                                .max_body = 99999};
    struct fetch_response res = {0};
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(fetch_do(fx.fetch, &req, &res, &err), -(int)failures[_i].code);
    ck_assert_msg(strstr(err_text(&err), failures[_i].text) != NULL, "%s", err_text(&err));
    ck_assert_msg(str_has_prefix(err_text(&err), failures[_i].method), "%s", err_text(&err));
    ck_assert_ptr_null(strstr(err_text(&err), "secret"));
    ck_assert_ptr_null(res.body.data);
    tear_down();
}
END_TEST

START_TEST(test_largest_body_passes)
{
    set_up();
    struct fetch_request req = {.url = url("/big"), .max_body = 100000};
    struct fetch_response res = {0};
    ck_assert_int_eq(fetch_do(fx.fetch, &req, &res, NULL), 0);
    ck_assert_uint_eq(res.body.len, 100000);
    fetch_response_fini(&res);
    tear_down();
}
END_TEST

START_TEST(test_refused_connection)
{
    set_up();
    url("/echo");
    peer_stop(fx.peer);
    struct fetch_request req = {.method = "POST", .url = fx.url};
    struct fetch_response res = {0};
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(fetch_do(fx.fetch, &req, &res, &err), -(int)ERR_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(err_text(&err), "connect"));
    fetch_free(fx.fetch);
}
END_TEST

static const struct {
    const char *method, *url, *header, *value;
    enum err_code code;
} mistakes[] = {
    {"GET", "ftp://127.0.0.1/", "A", "b", ERR_INTERNAL},
    {"GET", "file:///etc/passwd", "A", "b", ERR_INTERNAL},
    {"GET", "http://[/", "A", "b", ERR_INTERNAL},
    {"G T", "http://127.0.0.1/", "A", "b", ERR_INTERNAL},
    {"GET", "http://127.0.0.1/", "A", "b\r\nC: d", ERR_BAD_REQUEST},
    {"GET", "http://127.0.0.1/", "A: x\r\nB", "b", ERR_BAD_REQUEST},
    {"GET", "http://no-such-host.invalid/", "A", "b", ERR_UNAVAILABLE},
};

START_TEST(test_mistakes)
{
    struct fetch *f = fetch_new();
    struct pairs headers = {0};
    pairs_add(&headers, mistakes[_i].header, mistakes[_i].value);
    struct fetch_request req = {
        .method = mistakes[_i].method, .url = mistakes[_i].url, .headers = &headers};
    struct fetch_response res = {0};
    ck_assert_int_eq(fetch_do(f, &req, &res, NULL), -(int)mistakes[_i].code);
    pairs_fini(&headers);
    fetch_free(f);
}
END_TEST

START_TEST(test_text_hides_user_and_query)
{
    struct fetch *f = fetch_new();
    struct fetch_request req = {.url = "http://me:pass@127.0.0.1:1/p?q=1#f"};
    struct fetch_response res = {0};
    SCOPED(err_fini) struct err err = {0};
    fetch_do(f, &req, &res, &err);
    ck_assert_msg(str_has_prefix(err_text(&err), "GET http://127.0.0.1:1/p: "), "%s",
                  err_text(&err));
    fetch_free(f);
}
END_TEST

/* A kept connection that dies under the next request: GET goes out again, POST must not. */
START_TEST(test_dead_kept_connection)
{
    const char *method = _i == 0 ? "GET" : "POST";
    set_up();
    struct fetch_request req = {.method = method, .url = url("/once")};
    struct fetch_response res = {0};
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(fetch_do(fx.fetch, &req, &res, &err), 0);
    fetch_response_fini(&res);
    int result = fetch_do(fx.fetch, &req, &res, &err);
    ck_assert_int_eq(result, _i == 0 ? 0 : -(int)ERR_UNDETERMINED);
    ck_assert_int_eq(requests_seen(), _i == 0 ? 3 : 2);
    fetch_response_fini(&res);
    tear_down();
}
END_TEST

/* ---- many at once ---- */

static void *fetch_four(void *ctx)
{
    (void)ctx;
    char at[128];
    snprintf(at, sizeof at, "http://127.0.0.1:%d/echo", peer_port(fx.peer));
    for (int i = 0; i < 4; i++) {
        struct fetch_request req = {.method = "POST", .url = at, .body = "hello", .body_len = 5};
        struct fetch_response res = {0};
        ck_assert_int_eq(fetch_do(fx.fetch, &req, &res, NULL), 0);
        ck_assert(str_has_suffix(buf_cstr(&res.body), "\n\nhello"));
        fetch_response_fini(&res);
    }
    return NULL;
}

START_TEST(test_concurrent)
{
    set_up();
    pthread_t threads[8];
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_create(&threads[i], NULL, fetch_four, NULL);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(requests_seen(), 32);
    tear_down();
}
END_TEST

static void *fetch_cancelled(void *ctx)
{
    struct fetch_request req = {.method = "POST", .url = ctx};
    struct fetch_response res = {0};
    ck_assert_int_eq(fetch_do(fx.fetch, &req, &res, NULL), -(int)ERR_CANCELLED);
    return NULL;
}

static void wait_for_requests(int n)
{
    while (requests_seen() < n)
        usleep(1000);
}

/* A line that was used is used again, with its connections: as many as there are calls at once. */
START_TEST(test_connections_stay_few)
{
    set_up();
    pthread_t threads[8];
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < ARRAY_LEN(threads); i++)
            pthread_create(&threads[i], NULL, fetch_four, NULL);
        for (size_t i = 0; i < ARRAY_LEN(threads); i++)
            pthread_join(threads[i], NULL);
    }
    ck_assert_int_le(peer_connections(fx.peer), ARRAY_LEN(threads));
    tear_down();
}
END_TEST

START_TEST(test_free_cancels)
{
    set_up();
    char at[128];
    snprintf(at, sizeof at, "%s", url("/hang"));
    pthread_t threads[4];
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_create(&threads[i], NULL, fetch_cancelled, at);
    wait_for_requests(4);
    fetch_free(fx.fetch);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    peer_stop(fx.peer);
}
END_TEST

/* Those that wait when the time comes, and those that come later. */
START_TEST(test_end_cancels)
{
    set_up();
    char at[128];
    snprintf(at, sizeof at, "%s", url("/hang"));
    pthread_t thread;
    SCOPED(buf_fini) struct buf data = {0};
    SCOPED(err_fini) struct err err = {0};
    struct fetch_stream *stream = fetch_open(fx.fetch, &(struct fetch_request){.url = at});
    fetch_end_at(fx.fetch, INT64_MAX - 1);
    pthread_create(&thread, NULL, fetch_cancelled, at);
    wait_for_requests(1);
    fetch_end_at(fx.fetch, clock_monotonic_ms(&clock_system) + 50);
    ck_assert_int_eq(fetch_read(stream, INT64_MAX, &data, &err), FETCH_ENDED);
    ck_assert_int_eq(err.code, ERR_CANCELLED);
    pthread_join(thread, NULL);
    fetch_cancelled(at);
    ck_assert_int_le(requests_seen(), 2);
    fetch_close(stream);
    tear_down();
}
END_TEST

/* ---- streams ---- */

/* A stream that one thread reads until its end. */
struct reader {
    struct fetch_stream *stream;
    pthread_t thread;
    struct buf data;
    size_t seen; /* atomic: bytes of data */
    struct err end;
};

static void *read_all(void *ctx)
{
    struct reader *r = ctx;
    while (fetch_read(r->stream, INT64_MAX, &r->data, &r->end) != FETCH_ENDED)
        __atomic_store_n(&r->seen, r->data.len, __ATOMIC_RELEASE);
    return NULL;
}

static void reader_fini(struct reader *r)
{
    fetch_close(r->stream);
    buf_fini(&r->data);
    err_fini(&r->end);
}

static const struct {
    const char *method, *path;
    int status;
    enum err_code code;
    const char *data;
} ends[] = {
    {"GET", "/stream/ends", 200, ERR_NONE, "one two "},
    {"GET", "/stream/breaks", 200, ERR_UNAVAILABLE, "one two "},
    {"POST", "/stream/breaks", 200, ERR_UNAVAILABLE, "one two "},
    {"GET", "/stream/stays", 200, ERR_TIMEOUT, "one two "}, /* idle */
    {"GET", "/status", 409, ERR_NONE, "{\"kind\":\"Status\"}"},
    {"GET", "/hang", 0, ERR_TIMEOUT, ""}, /* no headers */
    {"POST", "/hang", 0, ERR_UNDETERMINED, ""},
    {"GET", "/close", 0, ERR_UNAVAILABLE, ""},
};

START_TEST(test_stream_ends)
{
    set_up();
    struct fetch_request req = {.method = ends[_i].method,
                                .url = url(ends[_i].path),
                                .timeout_ms = 200,
                                .idle_timeout_ms = 150};
    struct reader r = {.stream = fetch_open(fx.fetch, &req)};
    read_all(&r);
    ck_assert_int_eq(fetch_status(r.stream), ends[_i].status);
    ck_assert_int_eq(r.end.code, ends[_i].code);
    ck_assert_str_eq(buf_cstr(&r.data), ends[_i].data);
    reader_fini(&r);
    tear_down();
}
END_TEST

START_TEST(test_stream_closed_by_us)
{
    set_up();
    struct fetch_request req = {.url = url("/stream/stays")};
    struct reader r = {.stream = fetch_open(fx.fetch, &req)};
    while (r.data.len < 8)
        ck_assert_int_eq(fetch_read(r.stream, INT64_MAX, &r.data, &r.end), FETCH_SOME);
    reader_fini(&r);
    fetch_close(fetch_open(fx.fetch, &req)); /* before it was read */
    fetch_close(NULL);
    tear_down();
}
END_TEST

static void *wake(void *ctx)
{
    fetch_wake(ctx);
    return NULL;
}

START_TEST(test_read_ends_in_time_or_woken)
{
    set_up();
    struct fetch_request req = {.url = url("/stream/stays")};
    struct reader r = {.stream = fetch_open(fx.fetch, &req)};
    while (r.data.len < 8)
        ck_assert_int_eq(fetch_read(r.stream, INT64_MAX, &r.data, &r.end), FETCH_SOME);
    int64_t soon = clock_monotonic_ms(&clock_system) + 20;
    ck_assert_int_eq(fetch_read(r.stream, soon, &r.data, &r.end), FETCH_NOTHING);
    ck_assert_int_ge(clock_monotonic_ms(&clock_system), soon);
    fetch_wake(r.stream); /* before the read */
    ck_assert_int_eq(fetch_read(r.stream, INT64_MAX, &r.data, &r.end), FETCH_NOTHING);
    pthread_create(&r.thread, NULL, wake, r.stream);
    ck_assert_int_eq(fetch_read(r.stream, INT64_MAX, &r.data, &r.end), FETCH_NOTHING);
    pthread_join(r.thread, NULL);
    ck_assert_str_eq(buf_cstr(&r.data), "one two ");
    reader_fini(&r);
    tear_down();
}
END_TEST

START_TEST(test_stream_ends_when_out_is_full)
{
    set_up();
    struct fetch_request req = {.url = url("/big")};
    struct reader r = {.stream = fetch_open(fx.fetch, &req), .data.max = 50000};
    read_all(&r);
    ck_assert_int_eq(r.end.code, ERR_TOO_LARGE);
    ck_assert(buf_failed(&r.data));
    reader_fini(&r);
    tear_down();
}
END_TEST

/* Streams outlive fetch_free; closing them then only frees. */
START_TEST(test_free_cancels_streams)
{
    set_up();
    struct fetch_request req = {.url = url("/stream/stays")};
    struct reader r = {.stream = fetch_open(fx.fetch, &req)};
    pthread_create(&r.thread, NULL, read_all, &r);
    while (__atomic_load_n(&r.seen, __ATOMIC_ACQUIRE) < 8)
        usleep(1000);
    fetch_free(fx.fetch);
    pthread_join(r.thread, NULL);
    ck_assert_int_eq(r.end.code, ERR_CANCELLED);
    reader_fini(&r);
    peer_stop(fx.peer);
}
END_TEST

/* ---- TLS ---- */

/* args: the program and its arguments, ended by NULL, fewer than 32 */
static pid_t spawn(const char *const args[])
{
    char *argv[32] = {NULL};
    for (size_t i = 0; args[i] != NULL; i++)
        memcpy(&argv[i], &args[i], sizeof argv[i]);
    pid_t pid = fork();
    if (pid == 0) {
        if (freopen("/dev/null", "w", stdout) != NULL &&
            freopen("/dev/null", "w", stderr) != NULL && freopen("/dev/null", "r", stdin) != NULL)
            execvp(argv[0], argv);
        _exit(127);
    }
    return pid;
}

static void run(const char *const argv[])
{
    int status = -1;
    waitpid(spawn(argv), &status, 0);
    ck_assert_int_eq(status, 0);
}

#define ARGV(...) ((const char *const[]){__VA_ARGS__, NULL})

/* A self-signed certificate for 127.0.0.1 only: name.crt and name.key in dir. */
static void make_certificate(const char *dir, const char *name)
{
    SCOPED_FREE char *crt = xasprintf("%s/%s.crt", dir, name);
    SCOPED_FREE char *key = xasprintf("%s/%s.key", dir, name);
    SCOPED_FREE char *subject = xasprintf("/CN=%s", name);
    run(ARGV("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-nodes", "-days", "1", "-subj", subject, "-addext", "subjectAltName=IP:127.0.0.1",
             "-keyout", key, "-out", crt));
}

static int get_tls(struct fetch *f, const char *at, const struct fetch_tls *tls, struct buf *page)
{
    struct fetch_request req = {.url = at, .tls = tls, .timeout_ms = 5000};
    struct fetch_response res = {0};
    int result = fetch_do(f, &req, &res, NULL);
    if (result == 0)
        *page = steal(&res.body);
    fetch_response_fini(&res);
    return result;
}

struct tls_server {
    char dir[32];
    int port;
    pid_t pid;
    char *at, *ca, *other_ca, *cert, *key;
};

/* openssl's own server; it asks for a client certificate, and shows in its page what it got. */
static void start_tls(struct tls_server *s)
{
    snprintf(s->dir, sizeof s->dir, "/tmp/fetch-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(s->dir));
    make_certificate(s->dir, "server");
    make_certificate(s->dir, "client");
    s->ca = xasprintf("%s/server.crt", s->dir);
    s->other_ca = xasprintf("%s/client.crt", s->dir);
    s->cert = xasprintf("%s/client.crt", s->dir);
    s->key = xasprintf("%s/client.key", s->dir);
    s->port = 20000 + (int)(getpid() % 11000);
    s->at = xasprintf("https://127.0.0.1:%d/", s->port);
    SCOPED_FREE char *accept = xasprintf("127.0.0.1:%d", s->port);
    SCOPED_FREE char *key = xasprintf("%s/server.key", s->dir);
    s->pid = spawn(ARGV("openssl", "s_server", "-accept", accept, "-cert", s->ca, "-key", key,
                        "-CAfile", s->cert, "-verify", "1", "-www", "-quiet"));
}

static void stop_tls(struct tls_server *s)
{
    kill(s->pid, SIGTERM);
    waitpid(s->pid, NULL, 0);
    static const char *const names[] = {"server.crt", "server.key", "client.crt", "client.key"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        SCOPED_FREE char *path = xasprintf("%s/%s", s->dir, names[i]);
        unlink(path);
    }
    rmdir(s->dir);
    free(s->at);
    free(s->ca);
    free(s->other_ca);
    free(s->cert);
    free(s->key);
}

START_TEST(test_tls)
{
    struct tls_server s = {0};
    start_tls(&s);
    struct fetch *f = fetch_new();
    SCOPED(buf_fini) struct buf page = {0};
    struct fetch_tls tls = {.ca_file = s.ca};
    int64_t until = clock_monotonic_ms(&clock_system) + 20000;
    while (get_tls(f, s.at, &tls, &page) < 0 && clock_monotonic_ms(&clock_system) < until)
        usleep(20000); /* until it listens */
    ck_assert_ptr_nonnull(strstr(buf_cstr(&page), "no client certificate available"));
    buf_fini(&page);

    struct fetch_tls with_client = {.ca_file = s.ca, .cert_file = s.cert, .key_file = s.key};
    ck_assert_int_eq(get_tls(f, s.at, &with_client, &page), 0);
    ck_assert_ptr_nonnull(strstr(buf_cstr(&page), "CN=client"));
    buf_fini(&page);

    ck_assert_int_eq(get_tls(f, s.at, NULL, &page), -(int)ERR_UNAVAILABLE);
    struct fetch_tls other = {.ca_file = s.other_ca};
    ck_assert_int_eq(get_tls(f, s.at, &other, &page), -(int)ERR_UNAVAILABLE);
    struct fetch_tls insecure = {.insecure = true};
    ck_assert_int_eq(get_tls(f, s.at, &insecure, &page), 0);
    buf_fini(&page);

    SCOPED_FREE char *by_name = xasprintf("https://localhost:%d/", s.port);
    ck_assert_int_eq(get_tls(f, by_name, &tls, &page), -(int)ERR_UNAVAILABLE);

    ck_assert_int_eq(rename(s.other_ca, s.ca), 0); /* the CA file is replaced */
    ck_assert_int_eq(get_tls(f, s.at, &tls, &page), -(int)ERR_UNAVAILABLE);
    fetch_free(f);
    stop_tls(&s);
}
END_TEST

START_TEST(test_escape)
{
    SCOPED(buf_fini) struct buf out = {0};
    fetch_escape("a/b c&=+%~._-\xc3\xa4Z9", &out);
    ck_assert_str_eq(buf_cstr(&out), "a%2Fb%20c%26%3D%2B%25~._-%C3%A4Z9");
}
END_TEST

SUITE(fetch)
{
    TESTS("do", test_get, test_big_body_both_ways, test_statuses_are_no_errors,
          test_head_and_connection_reuse, test_unix_socket, test_escape);
    LOOP("methods", test_methods, 0, ARRAY_LEN(sent));
    LOOP("failures", test_failures, 0, ARRAY_LEN(failures));
    TESTS("errors", test_largest_body_passes, test_refused_connection,
          test_text_hides_user_and_query);
    LOOP("mistakes", test_mistakes, 0, ARRAY_LEN(mistakes));
    LOOP("dead_kept_connection", test_dead_kept_connection, 0, 2);
    TESTS("many", test_concurrent, test_connections_stay_few, test_free_cancels, test_end_cancels);
    LOOP("stream_ends", test_stream_ends, 0, ARRAY_LEN(ends));
    TESTS("stream", test_stream_closed_by_us, test_read_ends_in_time_or_woken,
          test_stream_ends_when_out_is_full, test_free_cancels_streams);
    TESTS("tls", test_tls);
}
