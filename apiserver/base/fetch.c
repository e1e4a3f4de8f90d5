/* A transfer is one libcurl easy handle with what came of it; setting it up and judging how it
 * ended is the same for calls and streams. It runs on a line: a multi handle of its own with the
 * connections that were left open on it. Lines that nobody uses wait in a stack, the last one used
 * on top, so that few callers keep few connections, and those at the bottom, whose connections
 * nobody needs, end. The thread that asks drives the transfer itself: handing it to another one
 * would cost two switches of threads each way. */
#include "apiserver/base/fetch.h"

#include <assert.h>
#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <strings.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/mem.h"

#define TIMEOUT_DEFAULT_MS 30000
#define CONNECT_TIMEOUT_MS 10000
#define BODY_DEFAULT_MAX ((size_t)64 << 20)
#define HEADERS_MAX 200
#define HEADERS_MAX_BYTES ((size_t)64 << 10)
/* Lines kept when idle, for how long, and connections kept open on each: to the few servers that
 * there are. */
#define LINES_IDLE_MAX 128
#define LINE_IDLE_MS 10000
#define LINE_CONNECTIONS_MAX 8L
/* Then a new one is made: with new certificates, to another server maybe. */
#define CONNECTION_LIFETIME_S 600L
#define POLL_MAX_MS 60000

struct line {
    CURLM *multi; /* of the thread that uses it, but for curl_multi_wakeup under fetch's lock */
    struct line *prev, *next; /* among the busy ones */
    int64_t idle_since_ms;
};

struct fetch {
    pthread_mutex_t lock;   /* guards all below */
    pthread_cond_t settled; /* n_running became 0 */
    int64_t end_ms;         /* of all transfers; INT64_MAX = none; atomic, written under the lock */
    unsigned n_running;     /* threads inside fetch_do and fetch_read */
    unsigned refs;          /* fetch_free's and one of each stream */
    struct line *busy;
    struct line *idle[LINES_IDLE_MAX]; /* the one used last at the end */
    size_t n_idle;
};

struct transfer {
    char *shown_url; /* without user and query */
    char *method;
    struct curl_slist *request_headers;
    bool is_stream, is_read_only; /* read-only: GET and HEAD */
    int64_t timeout_ms, idle_timeout_ms;
    CURL *easy;
    char trouble[CURL_ERROR_SIZE];

    int64_t expires_ms; /* of a stream; INT64_MAX = never */
    struct fetch_response res;
    struct buf *out; /* where the body goes; its ceiling is the body's */
    size_t header_bytes;
    bool has_headers;        /* all came */
    bool was_started;        /* libcurl began to send it once */
    bool has_news;           /* of a stream: headers or bytes came */
    bool is_over;            /* result is set */
    enum err_code stop_code; /* why a callback of ours stopped it, ERR_NONE = none did */
    struct err result;
};

struct fetch_stream {
    struct fetch *f; /* a reference */
    struct line *line;
    struct transfer transfer;
    bool is_woken; /* atomic */
};

static int64_t now_ms(void)
{
    return clock_monotonic_ms(&clock_system);
}

/* ---- lines ---- */

static struct line *new_line(void)
{
    struct line *l = xcalloc(1, sizeof *l);
    l->multi = curl_multi_init();
    if (l->multi == NULL) {
        fprintf(stderr, "fatal: libcurl gives no multi handle\n");
        abort();
    }
    curl_multi_setopt(l->multi, CURLMOPT_MAXCONNECTS, LINE_CONNECTIONS_MAX);
    return l;
}

static void free_line(struct line *l)
{
    if (l == NULL)
        return;
    curl_multi_cleanup(l->multi);
    free(l);
}

static void link_busy(struct fetch *f, struct line *l)
{
    l->next = f->busy;
    if (f->busy != NULL)
        f->busy->prev = l;
    f->busy = l;
}

static void unlink_busy(struct fetch *f, struct line *l)
{
    if (l->prev != NULL)
        l->prev->next = l->next;
    else
        f->busy = l->next;
    if (l->next != NULL)
        l->next->prev = l->prev;
    l->prev = l->next = NULL;
}

static struct line *take_line(struct fetch *f)
{
    pthread_mutex_lock(&f->lock);
    struct line *l = f->n_idle > 0 ? f->idle[--f->n_idle] : NULL;
    if (l != NULL)
        link_busy(f, l);
    pthread_mutex_unlock(&f->lock);
    if (l != NULL)
        return l;
    l = new_line();
    pthread_mutex_lock(&f->lock);
    link_busy(f, l);
    pthread_mutex_unlock(&f->lock);
    return l;
}

/* The lock is held. The line at the bottom, when it is too old or its place is needed. */
static struct line *drop_oldest(struct fetch *f, int64_t now)
{
    if (f->n_idle == 0 ||
        (f->n_idle < LINES_IDLE_MAX && f->idle[0]->idle_since_ms > now - LINE_IDLE_MS))
        return NULL;
    struct line *oldest = f->idle[0];
    memmove(f->idle, f->idle + 1, --f->n_idle * sizeof *f->idle);
    return oldest;
}

static void put_line(struct fetch *f, struct line *l)
{
    l->idle_since_ms = now_ms();
    pthread_mutex_lock(&f->lock);
    unlink_busy(f, l);
    struct line *oldest = drop_oldest(f, l->idle_since_ms);
    f->idle[f->n_idle++] = l;
    pthread_mutex_unlock(&f->lock);
    free_line(oldest);
}

/* ---- life of fetch ---- */

/* The lock is held, and let go. */
static void unref_fetch(struct fetch *f)
{
    bool is_last = --f->refs == 0;
    pthread_mutex_unlock(&f->lock);
    if (!is_last)
        return;
    while (f->n_idle > 0)
        free_line(f->idle[--f->n_idle]);
    pthread_cond_destroy(&f->settled);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

static int64_t end_of(struct fetch *f)
{
    return __atomic_load_n(&f->end_ms, __ATOMIC_ACQUIRE);
}

static bool is_ending(struct fetch *f)
{
    return now_ms() >= end_of(f);
}

/* The lock is held. Whoever waits looks at it again. */
static void set_end(struct fetch *f, int64_t at_ms)
{
    __atomic_store_n(&f->end_ms, at_ms, __ATOMIC_RELEASE);
    for (struct line *l = f->busy; l != NULL; l = l->next)
        curl_multi_wakeup(l->multi);
}

/* Between the two fetch_free waits for this thread, if it began before. */
static void enter(struct fetch *f)
{
    pthread_mutex_lock(&f->lock);
    f->n_running++;
    pthread_mutex_unlock(&f->lock);
}

static void leave(struct fetch *f)
{
    pthread_mutex_lock(&f->lock);
    if (--f->n_running == 0)
        pthread_cond_broadcast(&f->settled);
    pthread_mutex_unlock(&f->lock);
}

/* ---- setting up a transfer ---- */

/* The URL for messages: a query may hold what no log should, and so may the user part. */
static char *show_url(const char *url)
{
    size_t n = strcspn(url, "?#");
    const char *host = strstr(url, "://");
    host = host != NULL ? host + 3 : url;
    const char *path = host + strcspn(host, "/?#");
    const char *at = memrchr(host, '@', (size_t)(path - host));
    if (at == NULL || host > url + n)
        return xstrndup(url, n);
    return xasprintf("%.*s%.*s", (int)(host - url), url, (int)(url + n - at - 1), at + 1);
}

static bool is_method(const char *s)
{
    for (size_t i = 0; s[i] != '\0'; i++)
        if (s[i] < 'A' || s[i] > 'Z' || i >= 16)
            return false;
    return s[0] != '\0';
}

static bool is_header_safe(const struct pair *h)
{
    return h->name[0] != '\0' && strpbrk(h->name, ":\r\n \t") == NULL &&
           strpbrk(h->value, "\r\n") == NULL;
}

static void add_header_line(struct transfer *t, const char *line)
{
    struct curl_slist *list = curl_slist_append(t->request_headers, line);
    if (list != NULL)
        t->request_headers = list;
    else
        err_set(&t->result, ERR_INTERNAL, "libcurl refused a header");
}

static void add_headers(struct transfer *t, const struct pairs *headers)
{
    for (size_t i = 0; headers != NULL && i < headers->n; i++) {
        const struct pair *h = &headers->v[i];
        if (!is_header_safe(h)) {
            err_set(&t->result, ERR_BAD_REQUEST, "bad header of an outgoing request");
            return;
        }
        /* to libcurl "name:" alone means to leave the header out */
        SCOPED_FREE char *line = h->value[0] != '\0' ? xasprintf("%s: %s", h->name, h->value)
                                                     : xasprintf("%s;", h->name);
        add_header_line(t, line);
    }
    add_header_line(t, "Expect:");
    if (headers == NULL || pairs_get_ci(headers, "Content-Type") == NULL)
        add_header_line(t, "Content-Type:");
}

#define SET(t, option, value)                                                                      \
    do {                                                                                           \
        CURLcode code_ = curl_easy_setopt((t)->easy, (option), (value));                           \
        if (code_ != CURLE_OK)                                                                     \
            err_set(&(t)->result, ERR_INTERNAL, "libcurl: " #option ": %s",                        \
                    curl_easy_strerror(code_));                                                    \
    } while (0)

static size_t on_header(char *p, size_t size, size_t n, void *ctx);
static size_t on_body(char *p, size_t size, size_t n, void *ctx);
static int on_send(void *ctx, char *remote, char *local, int remote_port, int local_port);

static void set_transport(struct transfer *t, const struct fetch_request *req)
{
    SET(t, CURLOPT_NOSIGNAL, 1L);
    SET(t, CURLOPT_QUICK_EXIT, 1L); /* else ending a call would wait for its name look-up */
    SET(t, CURLOPT_PROTOCOLS_STR, "http,https");
    SET(t, CURLOPT_FOLLOWLOCATION, 0L);
    SET(t, CURLOPT_PROXY, "");
    SET(t, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1); /* not 2: see fetch.h */
    SET(t, CURLOPT_TCP_NODELAY, 1L);
    SET(t, CURLOPT_TCP_KEEPALIVE, 1L);
    SET(t, CURLOPT_TCP_KEEPIDLE, 20L);
    SET(t, CURLOPT_TCP_KEEPINTVL, 10L);
    SET(t, CURLOPT_MAXLIFETIME_CONN, CONNECTION_LIFETIME_S);
    SET(t, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    if (!t->is_stream)
        SET(t, CURLOPT_TIMEOUT_MS, (long)t->timeout_ms);
    if (req->unix_socket != NULL)
        SET(t, CURLOPT_UNIX_SOCKET_PATH, req->unix_socket);
}

static void set_tls(struct transfer *t, const struct fetch_tls *tls)
{
    SET(t, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(t, CURLOPT_CA_CACHE_TIMEOUT, 0L); /* a changed CA file counts at once */
    if (tls == NULL)
        return;
    if (tls->ca_file != NULL) {
        SET(t, CURLOPT_CAINFO, tls->ca_file);
        SET(t, CURLOPT_CAPATH, NULL);
    }
    if (tls->cert_file != NULL)
        SET(t, CURLOPT_SSLCERT, tls->cert_file);
    if (tls->key_file != NULL)
        SET(t, CURLOPT_SSLKEY, tls->key_file);
    SET(t, CURLOPT_SSL_VERIFYPEER, tls->insecure ? 0L : 1L);
    SET(t, CURLOPT_SSL_VERIFYHOST, tls->insecure ? 0L : 2L);
}

static void set_request(struct transfer *t, const struct fetch_request *req)
{
    bool wants_body = strcmp(t->method, "POST") == 0 || strcmp(t->method, "PUT") == 0 ||
                      strcmp(t->method, "PATCH") == 0;
    SET(t, CURLOPT_URL, req->url);
    if (strcmp(t->method, "HEAD") == 0) {
        SET(t, CURLOPT_NOBODY, 1L);
    } else if (req->body_len > 0 || wants_body) {
        SET(t, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)req->body_len);
        SET(t, CURLOPT_COPYPOSTFIELDS, (const char *)(req->body != NULL ? req->body : ""));
        SET(t, CURLOPT_CUSTOMREQUEST, t->method);
    } else if (strcmp(t->method, "GET") != 0) {
        SET(t, CURLOPT_CUSTOMREQUEST, t->method);
    }
    SET(t, CURLOPT_HTTPHEADER, t->request_headers);
}

static void set_callbacks(struct transfer *t)
{
    SET(t, CURLOPT_ERRORBUFFER, t->trouble);
    SET(t, CURLOPT_HEADERFUNCTION, on_header);
    SET(t, CURLOPT_HEADERDATA, t);
    SET(t, CURLOPT_WRITEFUNCTION, on_body);
    SET(t, CURLOPT_WRITEDATA, t);
    SET(t, CURLOPT_PREREQFUNCTION, on_send);
    SET(t, CURLOPT_PREREQDATA, t);
}

/* Trouble is left in result; begin reports it like any other. */
static void set_up(struct transfer *t, const struct fetch_request *req, bool is_stream)
{
    t->is_stream = is_stream;
    t->method = xstrdup(req->method != NULL ? req->method : "GET");
    t->shown_url = show_url(req->url);
    t->is_read_only = strcmp(t->method, "GET") == 0 || strcmp(t->method, "HEAD") == 0;
    t->timeout_ms = req->timeout_ms > 0 ? req->timeout_ms : TIMEOUT_DEFAULT_MS;
    t->idle_timeout_ms = req->idle_timeout_ms;
    t->res.body.max = req->max_body > 0 ? req->max_body : BODY_DEFAULT_MAX;
    t->out = &t->res.body;
    t->easy = curl_easy_init();
    if (t->easy == NULL || !is_method(t->method)) {
        err_set(&t->result, ERR_INTERNAL, "cannot make a request of that method");
        return;
    }
    add_headers(t, req->headers);
    set_transport(t, req);
    set_tls(t, req->tls);
    set_request(t, req);
    set_callbacks(t);
}

static void transfer_fini(struct transfer *t)
{
    curl_easy_cleanup(t->easy);
    curl_slist_free_all(t->request_headers);
    free(t->method);
    free(t->shown_url);
    fetch_response_fini(&t->res);
    err_fini(&t->result);
}

/* ---- libcurl's callbacks ---- */

/* libcurl is about to send the request over a connection it has. If it already sent some of it over
 * one that then died, it would now simply send it again; for a request that changes something this
 * is the caller's decision. */
static int on_send(void *ctx, char *remote, char *local, int remote_port, int local_port)
{
    (void)remote, (void)local, (void)remote_port, (void)local_port;
    struct transfer *t = ctx;
    long sent = 0;
    if (t->was_started && !t->is_read_only &&
        curl_easy_getinfo(t->easy, CURLINFO_REQUEST_SIZE, &sent) == CURLE_OK && sent > 0) {
        t->stop_code = ERR_UNDETERMINED;
        return CURL_PREREQFUNC_ABORT;
    }
    t->was_started = true;
    return CURL_PREREQFUNC_OK;
}

static void set_expiry(struct transfer *t, int64_t in_ms)
{
    t->expires_ms = in_ms > 0 ? now_ms() + in_ms : INT64_MAX;
}

/* The blank line came. Answers below 200 are followed by the real one. */
static void end_headers(struct transfer *t)
{
    long status = 0;
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200)
        return;
    t->has_headers = t->has_news = true;
    t->res.status = (int)status;
    set_expiry(t, t->idle_timeout_ms);
}

static void add_header(struct transfer *t, const char *p, size_t n)
{
    const char *colon = memchr(p, ':', n);
    if (colon == NULL)
        return;
    const char *end = p + n;
    SCOPED_FREE char *name = xstrndup(p, (size_t)(colon - p));
    for (p = colon + 1; p < end && (*p == ' ' || *p == '\t'); p++)
        continue;
    while (end > p && strchr(" \t\r\n", end[-1]) != NULL)
        end--;
    SCOPED_FREE char *value = xstrndup(p, (size_t)(end - p));
    pairs_add(&t->res.headers, name, value);
}

/* One header line with its line end, also of interim answers, and trailers, which we leave out. */
static size_t on_header(char *p, size_t size, size_t n, void *ctx)
{
    struct transfer *t = ctx;
    n *= size;
    if (t->has_headers)
        return n;
    t->header_bytes += n;
    if (t->header_bytes > HEADERS_MAX_BYTES || t->res.headers.n >= HEADERS_MAX) {
        t->stop_code = ERR_TOO_LARGE;
        snprintf(t->trouble, sizeof t->trouble, "the answer has too many headers");
        return 0;
    }
    if (n >= 5 && memcmp(p, "HTTP/", 5) == 0)
        pairs_fini(&t->res.headers);
    else if (n == 0 || *p == '\r' || *p == '\n')
        end_headers(t);
    else
        add_header(t, p, n);
    return n;
}

static size_t on_body(char *p, size_t size, size_t n, void *ctx)
{
    struct transfer *t = ctx;
    n *= size;
    set_expiry(t, t->idle_timeout_ms);
    t->has_news = true;
    buf_append(t->out, p, n);
    if (!buf_failed(t->out))
        return n;
    t->stop_code = ERR_TOO_LARGE;
    return CURL_WRITEFUNC_ERROR;
}

/* ---- from libcurl's result to our error ---- */

/* The code for a transfer that failed, see fetch.h. A stream that was open has been answered: its
 * end is no secret. */
static enum err_code code_of(const struct transfer *t, CURLcode code)
{
    long sent = 0;
    if (t->stop_code != ERR_NONE)
        return t->stop_code;
    if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL)
        return ERR_INTERNAL;
    curl_easy_getinfo(t->easy, CURLINFO_REQUEST_SIZE, &sent);
    if (sent == 0 || (t->is_stream && t->has_headers))
        return ERR_UNAVAILABLE;
    if (!t->is_read_only)
        return ERR_UNDETERMINED;
    return code == CURLE_OPERATION_TIMEDOUT ? ERR_TIMEOUT : ERR_UNAVAILABLE;
}

static const char *reason_text(const struct transfer *t, enum err_code code, CURLcode curl_code)
{
    if (code == ERR_UNDETERMINED && t->stop_code == code)
        return "the connection broke after the request was sent";
    if (t->trouble[0] != '\0' && curl_code != CURLE_WRITE_ERROR)
        return t->trouble;
    if (code == ERR_TOO_LARGE)
        return t->has_headers ? "the answer is too large" : "the answer has too many headers";
    return curl_easy_strerror(curl_code);
}

static void conclude(struct transfer *t, enum err_code code, const char *reason)
{
    t->is_over = true;
    if (code != ERR_NONE)
        err_set(&t->result, code, "%s %s: %s", t->method, t->shown_url, reason);
}

static void conclude_as_told(struct transfer *t, CURLcode code)
{
    enum err_code ours = code == CURLE_OK ? ERR_NONE : code_of(t, code);
    conclude(t, ours, reason_text(t, ours, code));
}

static void cancel(struct transfer *t)
{
    conclude(t, ERR_CANCELLED, "ended by us");
}

static void conclude_expired(struct transfer *t)
{
    long sent = 0;
    curl_easy_getinfo(t->easy, CURLINFO_REQUEST_SIZE, &sent);
    if (t->has_headers)
        conclude(t, ERR_TIMEOUT, "nothing came for too long");
    else if (sent == 0)
        conclude(t, ERR_UNAVAILABLE, "no connection in time");
    else
        conclude(t, t->is_read_only ? ERR_TIMEOUT : ERR_UNDETERMINED, "no answer in time");
}

/* ---- a transfer on its line ---- */

static void begin(struct line *l, struct transfer *t)
{
    if (t->result.code == ERR_NONE) {
        CURLMcode code = curl_multi_add_handle(l->multi, t->easy);
        if (code != CURLM_OK)
            err_set(&t->result, ERR_INTERNAL, "libcurl: %s", curl_multi_strerror(code));
    }
    if (t->result.code != ERR_NONE) {
        err_wrap(&t->result, "%s %s", t->method, t->shown_url);
        t->is_over = true;
    }
    if (t->is_stream)
        set_expiry(t, t->timeout_ms);
}

static void end(struct line *l, struct transfer *t)
{
    if (t->easy != NULL)
        curl_multi_remove_handle(l->multi, t->easy); /* no harm when it was never added */
}

/* What can be done without waiting. */
static void perform(struct line *l, struct transfer *t)
{
    int n;
    CURLMcode code = curl_multi_perform(l->multi, &n);
    if (code != CURLM_OK) {
        snprintf(t->trouble, sizeof t->trouble, "libcurl: %s", curl_multi_strerror(code));
        conclude_as_told(t, CURLE_FAILED_INIT);
        return;
    }
    for (CURLMsg *msg; (msg = curl_multi_info_read(l->multi, &n)) != NULL;)
        if (msg->msg == CURLMSG_DONE)
            conclude_as_told(t, msg->data.result);
}

/* Waits until there is something to do, the line is woken, or that time comes. libcurl minds its
 * own deadlines. */
static void wait_on(struct line *l, int64_t until_ms)
{
    int64_t left_ms = until_ms - now_ms();
    left_ms = left_ms < 0 ? 0 : left_ms > POLL_MAX_MS ? POLL_MAX_MS : left_ms;
    curl_multi_poll(l->multi, NULL, 0, (int)left_ms, NULL);
}

/* ---- callers ---- */

static void init_curl(void)
{
    if (curl_global_init(CURL_GLOBAL_ALL) == CURLE_OK)
        return;
    fprintf(stderr, "fatal: libcurl cannot be initialised\n");
    abort();
}

struct fetch *fetch_new(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init_curl);
    struct fetch *f = xcalloc(1, sizeof *f);
    f->refs = 1;
    f->end_ms = INT64_MAX;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->settled, NULL);
    return f;
}

void fetch_free(struct fetch *f)
{
    if (f == NULL)
        return;
    pthread_mutex_lock(&f->lock);
    set_end(f, 0);
    while (f->n_running > 0)
        pthread_cond_wait(&f->settled, &f->lock);
    unref_fetch(f);
}

void fetch_end_at(struct fetch *f, int64_t at_ms)
{
    pthread_mutex_lock(&f->lock);
    set_end(f, at_ms);
    pthread_mutex_unlock(&f->lock);
}

int fetch_do(struct fetch *f, const struct fetch_request *req, struct fetch_response *ret,
             struct err *err)
{
    struct transfer t = {0};
    set_up(&t, req, false);
    enter(f);
    struct line *l = take_line(f);
    begin(l, &t);
    while (!t.is_over) {
        if (is_ending(f))
            cancel(&t);
        else
            perform(l, &t);
        if (!t.is_over)
            wait_on(l, end_of(f));
    }
    end(l, &t);
    put_line(f, l);
    leave(f);
    int result = 0;
    if (t.result.code != ERR_NONE)
        result = err_move(err, &t.result);
    else
        *ret = steal(&t.res);
    transfer_fini(&t);
    return result;
}

void fetch_response_fini(struct fetch_response *r)
{
    if (r == NULL)
        return;
    pairs_fini(&r->headers);
    buf_fini(&r->body);
    r->status = 0;
}

struct fetch_stream *fetch_open(struct fetch *f, const struct fetch_request *req)
{
    struct fetch_stream *s = xcalloc(1, sizeof *s);
    pthread_mutex_lock(&f->lock);
    f->refs++;
    pthread_mutex_unlock(&f->lock);
    s->f = f;
    set_up(&s->transfer, req, true);
    s->line = take_line(f);
    begin(s->line, &s->transfer);
    return s;
}

static int64_t earliest(int64_t a, int64_t b, int64_t c)
{
    int64_t first = a < b ? a : b;
    return first < c ? first : c;
}

enum fetch_news fetch_read(struct fetch_stream *s, int64_t until_ms, struct buf *out,
                           struct err *err)
{
    struct transfer *t = &s->transfer;
    enter(s->f);
    t->out = out;
    t->has_news = false;
    bool is_quiet = false;
    while (!t->has_news && !t->is_over && !is_quiet) {
        wait_on(s->line, earliest(until_ms, t->expires_ms, end_of(s->f)));
        if (is_ending(s->f))
            cancel(t);
        else
            perform(s->line, t);
        is_quiet =
            __atomic_exchange_n(&s->is_woken, false, __ATOMIC_ACQ_REL) || now_ms() >= until_ms;
        if (!t->has_news && !t->is_over && now_ms() >= t->expires_ms)
            conclude_expired(t);
    }
    leave(s->f);
    if (t->has_news)
        return FETCH_SOME;
    if (!t->is_over)
        return FETCH_NOTHING;
    err_move(err, &t->result);
    return FETCH_ENDED;
}

int fetch_status(const struct fetch_stream *s)
{
    return s->transfer.res.status;
}

void fetch_wake(struct fetch_stream *s)
{
    __atomic_store_n(&s->is_woken, true, __ATOMIC_RELEASE);
    curl_multi_wakeup(s->line->multi);
}

void fetch_close(struct fetch_stream *s)
{
    if (s == NULL)
        return;
    end(s->line, &s->transfer);
    put_line(s->f, s->line);
    transfer_fini(&s->transfer);
    pthread_mutex_lock(&s->f->lock);
    unref_fetch(s->f);
    free(s);
}

void fetch_escape(const char *s, struct buf *out)
{
    for (; *s != '\0'; s++) {
        unsigned char c = (unsigned char)*s;
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || strchr("-._~", c) != NULL;
        if (is_plain)
            buf_putc(out, *s);
        else
            buf_printf(out, "%%%02X", c);
    }
}
