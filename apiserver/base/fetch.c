/* Callers build a call with its own copy of the request and put it into the inbox; from then on the
 * easy handle belongs to the fetch thread, which adds it to the multi handle, gathers the answer
 * and marks the call done. What the two sides share of a call is guarded by the call's lock; fetch,
 * its inbox and a call live as long as somebody refers to them. */
#include "apiserver/base/fetch.h"

#include <assert.h>
#include <curl/curl.h>
#include <stdio.h>
#include <strings.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/thread.h"

#define TIMEOUT_DEFAULT_MS 30000
#define CONNECT_TIMEOUT_MS 10000
#define MARGIN_MS 15000 /* libcurl may miss a deadline by it before the caller waits no more */
#define BODY_DEFAULT_MAX ((size_t)64 << 20)
#define HEADERS_MAX 200
#define HEADERS_MAX_BYTES ((size_t)64 << 10)
#define CONNECTIONS_MAX 256L /* kept open when idle */
/* Then a new one is made: with new certificates, to another server maybe. */
#define CONNECTION_LIFETIME_S 600L
#define POLL_MAX_MS 60000

struct fetch {
    CURLM *multi; /* of the thread, but for curl_multi_wakeup under lock */
    pthread_t thread;
    /* guards inbox, is_stopping, has_ended, and queued and is_closing of each call */
    pthread_mutex_t lock;
    struct call *inbox;     /* newest first */
    bool is_stopping;       /* fetch_free was called */
    bool has_ended;         /* the thread takes nothing from the inbox any more */
    unsigned refs;          /* atomic */
    struct call *active;    /* of the thread */
    int64_t next_expiry_ms; /* of the thread: no stream expires before */
};

enum call_state { CALL_NEW, CALL_ACTIVE, CALL_ENDED };

/* What a stream's handle is: the caller's view of the same object. */
struct call {
    struct fetch *f; /* a reference */
    unsigned refs;   /* atomic: the caller's and the thread's */

    /* set by the caller before it is handed over, constant then */
    char *method, *shown_url; /* shown_url: without user and query */
    void *body;
    struct curl_slist *request_headers;
    struct fetch_stream_ops ops; /* on_end == NULL: no stream */
    void *ops_ctx;
    int64_t timeout_ms, idle_timeout_ms;
    size_t max_body;
    bool is_read_only; /* GET and HEAD */
    struct err setup_err;

    struct call *inbox_next; /* under f->lock */
    bool queued, is_closing; /* under f->lock */

    /* of the fetch thread until is_done */
    CURL *easy;
    char trouble[CURL_ERROR_SIZE];
    struct call *prev, *next;
    enum call_state state;
    int64_t expires_ms; /* streams; 0 = never */
    struct fetch_response res;
    size_t header_bytes, body_bytes;
    bool has_headers, is_open; /* all headers came; on_open was called */
    bool was_started;          /* libcurl began to send it once */
    enum err_code stop_code;   /* why a callback of ours stopped it, ERR_NONE = none did */
    struct err result;

    pthread_mutex_t lock; /* guards is_done */
    pthread_cond_t done;
    bool is_done;
};

/* fetch_open gives the call out under this name. */
struct fetch_stream {
    struct call call;
};

static int64_t now_ms(void)
{
    return clock_monotonic_ms(&clock_system);
}

/* ---- life of fetch and of a call ---- */

static void unref_fetch(struct fetch *f)
{
    if (__atomic_sub_fetch(&f->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    pthread_mutex_destroy(&f->lock);
    free_counted(f);
}

static struct call *new_call(struct fetch *f)
{
    struct fetch_stream *s = xcalloc(1, sizeof *s);
    struct call *c = &s->call;
    __atomic_add_fetch(&f->refs, 1, __ATOMIC_RELAXED);
    c->f = f;
    c->refs = 1;
    pthread_mutex_init(&c->lock, NULL);
    thread_cond_init(&c->done);
    return c;
}

static void unref_call(struct call *c)
{
    if (__atomic_sub_fetch(&c->refs, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    assert(c->easy == NULL);
    free(c->method);
    free(c->shown_url);
    free(c->body);
    curl_slist_free_all(c->request_headers);
    fetch_response_fini(&c->res);
    err_fini(&c->setup_err);
    err_fini(&c->result);
    pthread_cond_destroy(&c->done);
    pthread_mutex_destroy(&c->lock);
    unref_fetch(c->f);
    free_counted(c);
}

/* ---- setting up a call, on the caller's thread ---- */

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

static void add_header_line(struct call *c, const char *line)
{
    struct curl_slist *list = curl_slist_append(c->request_headers, line);
    if (list != NULL)
        c->request_headers = list;
    else
        err_set(&c->setup_err, ERR_INTERNAL, "libcurl refused a header");
}

static void add_headers(struct call *c, const struct pairs *headers)
{
    for (size_t i = 0; headers != NULL && i < headers->n; i++) {
        const struct pair *h = &headers->v[i];
        if (!is_header_safe(h)) {
            err_set(&c->setup_err, ERR_BAD_REQUEST, "bad header of an outgoing request");
            return;
        }
        /* to libcurl "name:" alone means to leave the header out */
        SCOPED_FREE char *line = h->value[0] != '\0' ? xasprintf("%s: %s", h->name, h->value)
                                                     : xasprintf("%s;", h->name);
        add_header_line(c, line);
    }
    add_header_line(c, "Expect:");
    if (headers == NULL || pairs_get_ci(headers, "Content-Type") == NULL)
        add_header_line(c, "Content-Type:");
}

#define SET(c, option, value)                                                                      \
    do {                                                                                           \
        CURLcode code_ = curl_easy_setopt((c)->easy, (option), (value));                           \
        if (code_ != CURLE_OK)                                                                     \
            err_set(&(c)->setup_err, ERR_INTERNAL, "libcurl: " #option ": %s",                     \
                    curl_easy_strerror(code_));                                                    \
    } while (0)

static size_t on_header(char *p, size_t size, size_t n, void *ctx);
static size_t on_body(char *p, size_t size, size_t n, void *ctx);
static int on_send(void *ctx, char *remote, char *local, int remote_port, int local_port);

static void set_transport(struct call *c, const struct fetch_request *req)
{
    SET(c, CURLOPT_NOSIGNAL, 1L);
    SET(c, CURLOPT_QUICK_EXIT, 1L); /* else ending a call would wait for its name look-up */
    SET(c, CURLOPT_PROTOCOLS_STR, "http,https");
    SET(c, CURLOPT_FOLLOWLOCATION, 0L);
    SET(c, CURLOPT_PROXY, "");
    SET(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1); /* not 2: see fetch.h */
    SET(c, CURLOPT_TCP_NODELAY, 1L);
    SET(c, CURLOPT_TCP_KEEPALIVE, 1L);
    SET(c, CURLOPT_TCP_KEEPIDLE, 20L);
    SET(c, CURLOPT_TCP_KEEPINTVL, 10L);
    SET(c, CURLOPT_MAXLIFETIME_CONN, CONNECTION_LIFETIME_S);
    SET(c, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    if (c->ops.on_end == NULL)
        SET(c, CURLOPT_TIMEOUT_MS, (long)c->timeout_ms);
    if (req->unix_socket != NULL)
        SET(c, CURLOPT_UNIX_SOCKET_PATH, req->unix_socket);
}

static void set_tls(struct call *c, const struct fetch_tls *tls)
{
    SET(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(c, CURLOPT_CA_CACHE_TIMEOUT, 0L); /* a changed CA file counts at once */
    if (tls == NULL)
        return;
    if (tls->ca_file != NULL) {
        SET(c, CURLOPT_CAINFO, tls->ca_file);
        SET(c, CURLOPT_CAPATH, NULL);
    }
    if (tls->cert_file != NULL)
        SET(c, CURLOPT_SSLCERT, tls->cert_file);
    if (tls->key_file != NULL)
        SET(c, CURLOPT_SSLKEY, tls->key_file);
    SET(c, CURLOPT_SSL_VERIFYPEER, tls->insecure ? 0L : 1L);
    SET(c, CURLOPT_SSL_VERIFYHOST, tls->insecure ? 0L : 2L);
}

static void set_request(struct call *c, const struct fetch_request *req)
{
    bool wants_body = strcmp(c->method, "POST") == 0 || strcmp(c->method, "PUT") == 0 ||
                      strcmp(c->method, "PATCH") == 0;
    SET(c, CURLOPT_URL, req->url);
    if (strcmp(c->method, "HEAD") == 0) {
        SET(c, CURLOPT_NOBODY, 1L);
    } else if (req->body_len > 0 || wants_body) {
        c->body = xmemdup(req->body != NULL ? req->body : "", req->body_len);
        SET(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)req->body_len);
        SET(c, CURLOPT_POSTFIELDS, (char *)c->body);
        SET(c, CURLOPT_CUSTOMREQUEST, c->method);
    } else if (strcmp(c->method, "GET") != 0) {
        SET(c, CURLOPT_CUSTOMREQUEST, c->method);
    }
    SET(c, CURLOPT_HTTPHEADER, c->request_headers);
}

static void set_callbacks(struct call *c)
{
    SET(c, CURLOPT_PRIVATE, (char *)c);
    SET(c, CURLOPT_ERRORBUFFER, c->trouble);
    SET(c, CURLOPT_HEADERFUNCTION, on_header);
    SET(c, CURLOPT_HEADERDATA, c);
    SET(c, CURLOPT_WRITEFUNCTION, on_body);
    SET(c, CURLOPT_WRITEDATA, c);
    SET(c, CURLOPT_PREREQFUNCTION, on_send);
    SET(c, CURLOPT_PREREQDATA, c);
}

/* Trouble is left in setup_err; the fetch thread reports it like any other. */
static struct call *make_call(struct fetch *f, const struct fetch_request *req,
                              const struct fetch_stream_ops *ops, void *ctx)
{
    struct call *c = new_call(f);
    if (ops != NULL)
        c->ops = *ops;
    c->ops_ctx = ctx;
    c->method = xstrdup(req->method != NULL ? req->method : "GET");
    c->shown_url = show_url(req->url);
    c->is_read_only = strcmp(c->method, "GET") == 0 || strcmp(c->method, "HEAD") == 0;
    c->timeout_ms = req->timeout_ms > 0 ? req->timeout_ms : TIMEOUT_DEFAULT_MS;
    c->idle_timeout_ms = req->idle_timeout_ms;
    c->max_body = req->max_body > 0 ? req->max_body : BODY_DEFAULT_MAX;
    c->res.body.max = c->max_body;
    c->easy = curl_easy_init();
    if (c->easy == NULL || !is_method(c->method)) {
        err_set(&c->setup_err, ERR_INTERNAL, "cannot make a request of that method");
        return c;
    }
    add_headers(c, req->headers);
    set_transport(c, req);
    set_tls(c, req->tls);
    set_request(c, req);
    set_callbacks(c);
    return c;
}

/* ---- libcurl's callbacks, on the fetch thread ---- */

/* libcurl is about to send the request over a connection it has. If it already sent some of it over
 * one that then died, it would now simply send it again; for a request that changes something this
 * is the caller's decision. */
static int on_send(void *ctx, char *remote, char *local, int remote_port, int local_port)
{
    (void)remote, (void)local, (void)remote_port, (void)local_port;
    struct call *c = ctx;
    long sent = 0;
    if (c->was_started && !c->is_read_only &&
        curl_easy_getinfo(c->easy, CURLINFO_REQUEST_SIZE, &sent) == CURLE_OK && sent > 0) {
        c->stop_code = ERR_UNDETERMINED;
        return CURL_PREREQFUNC_ABORT;
    }
    c->was_started = true;
    return CURL_PREREQFUNC_OK;
}

static void set_expiry(struct call *c, int64_t in_ms)
{
    c->expires_ms = in_ms > 0 ? now_ms() + in_ms : 0;
    if (in_ms > 0 && c->expires_ms < c->f->next_expiry_ms)
        c->f->next_expiry_ms = c->expires_ms;
}

/* The blank line came. Answers below 200 are followed by the real one. */
static void end_headers(struct call *c)
{
    long status = 0;
    curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200)
        return;
    c->has_headers = true;
    c->res.status = (int)status;
    if (c->ops.on_end == NULL)
        return;
    set_expiry(c, c->idle_timeout_ms);
    c->is_open = true;
    if (c->ops.on_open != NULL)
        c->ops.on_open(c->ops_ctx, c->res.status);
}

static void add_header(struct call *c, const char *p, size_t n)
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
    pairs_add(&c->res.headers, name, value);
}

/* One header line with its line end, also of interim answers, and trailers, which we leave out. */
static size_t on_header(char *p, size_t size, size_t n, void *ctx)
{
    struct call *c = ctx;
    n *= size;
    if (c->has_headers)
        return n;
    c->header_bytes += n;
    if (c->header_bytes > HEADERS_MAX_BYTES || c->res.headers.n >= HEADERS_MAX) {
        c->stop_code = ERR_TOO_LARGE;
        snprintf(c->trouble, sizeof c->trouble, "the answer has too many headers");
        return 0;
    }
    if (n >= 5 && memcmp(p, "HTTP/", 5) == 0)
        pairs_fini(&c->res.headers);
    else if (n == 0 || *p == '\r' || *p == '\n')
        end_headers(c);
    else
        add_header(c, p, n);
    return n;
}

static size_t stream_body(struct call *c, const char *p, size_t n)
{
    set_expiry(c, c->idle_timeout_ms);
    if (n == 0 || c->ops.on_data(c->ops_ctx, p, n))
        return n;
    c->stop_code = ERR_CANCELLED;
    return CURL_WRITEFUNC_ERROR;
}

static size_t on_body(char *p, size_t size, size_t n, void *ctx)
{
    struct call *c = ctx;
    n *= size;
    if (c->ops.on_end != NULL)
        return stream_body(c, p, n);
    if (n > c->max_body - c->body_bytes) {
        c->stop_code = ERR_TOO_LARGE;
        return CURL_WRITEFUNC_ERROR;
    }
    c->body_bytes += n;
    buf_append(&c->res.body, p, n);
    return n;
}

/* ---- from libcurl's result to our error ---- */

/* The code for a transfer that failed, see fetch.h. A stream that was open has been answered: its
 * end is no secret. */
static enum err_code code_of(const struct call *c, CURLcode code)
{
    long sent = 0;
    if (c->stop_code != ERR_NONE)
        return c->stop_code;
    if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL)
        return ERR_INTERNAL;
    curl_easy_getinfo(c->easy, CURLINFO_REQUEST_SIZE, &sent);
    if (sent == 0 || c->is_open)
        return ERR_UNAVAILABLE;
    if (!c->is_read_only)
        return ERR_UNDETERMINED;
    return code == CURLE_OPERATION_TIMEDOUT ? ERR_TIMEOUT : ERR_UNAVAILABLE;
}

static const char *reason_text(const struct call *c, enum err_code code, CURLcode curl_code)
{
    if (code == ERR_CANCELLED)
        return "ended by us";
    if (code == ERR_UNDETERMINED && c->stop_code == code)
        return "the connection broke after the request was sent";
    if (c->trouble[0] != '\0' && curl_code != CURLE_WRITE_ERROR)
        return c->trouble;
    if (code == ERR_TOO_LARGE)
        return c->has_headers ? "the answer is too large" : "the answer has too many headers";
    return curl_easy_strerror(curl_code);
}

static int set_result(struct call *c, enum err_code code, const char *reason)
{
    return err_set(&c->result, code, "%s %s: %s", c->method, c->shown_url, reason);
}

/* ---- the fetch thread ---- */

static void unlink_active(struct call *c)
{
    if (c->prev != NULL)
        c->prev->next = c->next;
    else
        c->f->active = c->next;
    if (c->next != NULL)
        c->next->prev = c->prev;
    c->prev = c->next = NULL;
    curl_multi_remove_handle(c->f->multi, c->easy);
}

/* The last the thread does with a call; result is set. */
static void end_call(struct call *c)
{
    if (c->state == CALL_ACTIVE)
        unlink_active(c);
    c->state = CALL_ENDED;
    if (c->easy != NULL)
        curl_easy_cleanup(c->easy);
    c->easy = NULL;
    if (c->ops.on_end != NULL)
        c->ops.on_end(c->ops_ctx, &c->result);
    pthread_mutex_lock(&c->lock);
    c->is_done = true;
    pthread_cond_broadcast(&c->done);
    pthread_mutex_unlock(&c->lock);
    unref_call(c);
}

static void cancel_call(struct call *c)
{
    set_result(c, ERR_CANCELLED, "ended by us");
    end_call(c);
}

static void start_call(struct call *c)
{
    struct fetch *f = c->f;
    if (c->setup_err.code == ERR_NONE) {
        CURLMcode code = curl_multi_add_handle(f->multi, c->easy);
        if (code != CURLM_OK)
            err_set(&c->setup_err, ERR_INTERNAL, "libcurl: %s", curl_multi_strerror(code));
    }
    if (c->setup_err.code != ERR_NONE) {
        err_move(&c->result, &c->setup_err);
        err_wrap(&c->result, "%s %s", c->method, c->shown_url);
        end_call(c);
        return;
    }
    c->state = CALL_ACTIVE;
    c->next = f->active;
    if (f->active != NULL)
        f->active->prev = c;
    f->active = c;
    if (c->ops.on_end != NULL)
        set_expiry(c, c->timeout_ms);
}

static struct call *reverse(struct call *list)
{
    struct call *out = NULL;
    while (list != NULL) {
        struct call *next = list->inbox_next;
        list->inbox_next = out;
        out = list;
        list = next;
    }
    return out;
}

/* One call from the inbox: it is new, or its stream is to be closed, or both. */
static void take_call(struct call *c, bool is_closing)
{
    if (c->state == CALL_NEW && !is_closing)
        start_call(c);
    else if (c->state != CALL_ENDED && is_closing)
        cancel_call(c);
    unref_call(c); /* the inbox's */
}

/* True when the thread shall end. */
static bool take_inbox(struct fetch *f)
{
    pthread_mutex_lock(&f->lock);
    struct call *list = reverse(f->inbox);
    f->inbox = NULL;
    bool is_stopping = f->is_stopping;
    pthread_mutex_unlock(&f->lock);
    while (list != NULL) {
        struct call *c = list;
        pthread_mutex_lock(&f->lock);
        list = c->inbox_next;
        c->queued = false;
        bool is_closing = c->is_closing || is_stopping;
        pthread_mutex_unlock(&f->lock);
        take_call(c, is_closing);
    }
    return is_stopping;
}

static void take_results(struct fetch *f)
{
    int left;
    CURLMsg *msg;
    while ((msg = curl_multi_info_read(f->multi, &left)) != NULL) {
        if (msg->msg != CURLMSG_DONE)
            continue;
        CURLcode code = msg->data.result;
        char *private = NULL;
        curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &private);
        struct call *c = (struct call *)(void *)private;
        if (code != CURLE_OK) {
            enum err_code ours = code_of(c, code);
            set_result(c, ours, reason_text(c, ours, code));
        }
        end_call(c);
    }
}

static void expire(struct call *c)
{
    long sent = 0;
    curl_easy_getinfo(c->easy, CURLINFO_REQUEST_SIZE, &sent);
    if (c->is_open)
        set_result(c, ERR_TIMEOUT, "nothing came for too long");
    else if (sent == 0)
        set_result(c, ERR_UNAVAILABLE, "no connection in time");
    else
        set_result(c, c->is_read_only ? ERR_TIMEOUT : ERR_UNDETERMINED, "no answer in time");
    end_call(c);
}

/* Ends the streams whose time is over, and finds out when to look again. Times that were put off
 * since then only make the next look too early. */
static void expire_streams(struct fetch *f)
{
    int64_t now = now_ms();
    if (now < f->next_expiry_ms)
        return;
    f->next_expiry_ms = INT64_MAX;
    struct call *next;
    for (struct call *c = f->active; c != NULL; c = next) {
        next = c->next;
        if (c->expires_ms != 0 && c->expires_ms <= now)
            expire(c);
        else if (c->expires_ms != 0 && c->expires_ms < f->next_expiry_ms)
            f->next_expiry_ms = c->expires_ms;
    }
}

static int poll_ms(const struct fetch *f)
{
    if (f->next_expiry_ms == INT64_MAX)
        return POLL_MAX_MS;
    int64_t left = f->next_expiry_ms - now_ms();
    return left < 0 ? 0 : left > POLL_MAX_MS ? POLL_MAX_MS : (int)left;
}

/* Everything that is open or still comes in ends as cancelled. */
static void end_all(struct fetch *f)
{
    bool has_more;
    do {
        while (f->active != NULL)
            cancel_call(f->active);
        take_inbox(f);
        pthread_mutex_lock(&f->lock);
        has_more = f->inbox != NULL;
        f->has_ended = !has_more;
        pthread_mutex_unlock(&f->lock);
    } while (has_more);
}

static void *run(void *ctx)
{
    struct fetch *f = ctx;
    int running;
    while (!take_inbox(f)) {
        CURLMcode code = curl_multi_perform(f->multi, &running);
        if (code != CURLM_OK)
            log_error("outgoing requests stall, libcurl says \"%s\"", curl_multi_strerror(code));
        take_results(f);
        expire_streams(f);
        curl_multi_poll(f->multi, NULL, 0, poll_ms(f), NULL);
    }
    end_all(f);
    curl_multi_cleanup(f->multi);
    return NULL;
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
    f->next_expiry_ms = INT64_MAX;
    pthread_mutex_init(&f->lock, NULL);
    f->multi = curl_multi_init();
    if (f->multi == NULL) {
        fprintf(stderr, "fatal: libcurl gives no multi handle\n");
        abort();
    }
    curl_multi_setopt(f->multi, CURLMOPT_MAXCONNECTS, CONNECTIONS_MAX);
    thread_start(&f->thread, "fetch", run, f);
    return f;
}

void fetch_free(struct fetch *f)
{
    if (f == NULL)
        return;
    pthread_mutex_lock(&f->lock);
    f->is_stopping = true;
    curl_multi_wakeup(f->multi);
    pthread_mutex_unlock(&f->lock);
    pthread_join(f->thread, NULL);
    unref_fetch(f);
}

/* Puts a call into the inbox, with a reference of its own; false when the thread has ended. */
static bool post(struct call *c, bool is_closing)
{
    struct fetch *f = c->f;
    pthread_mutex_lock(&f->lock);
    bool is_posted = !f->has_ended;
    if (is_posted) {
        c->is_closing = is_closing;
        if (!c->queued) {
            __atomic_add_fetch(&c->refs, 1, __ATOMIC_RELAXED);
            c->queued = true;
            c->inbox_next = f->inbox;
            f->inbox = c;
        }
        curl_multi_wakeup(f->multi);
    }
    pthread_mutex_unlock(&f->lock);
    return is_posted;
}

/* Hands a new call over. When the thread has ended the call ends here. */
static void submit(struct call *c)
{
    __atomic_add_fetch(&c->refs, 1, __ATOMIC_RELAXED); /* the thread's, until end_call */
    if (!post(c, false))
        cancel_call(c);
}

/* False when the thread missed that deadline; INT64_MAX = none. */
static bool wait_done(struct call *c, int64_t until_ms)
{
    pthread_mutex_lock(&c->lock);
    while (!c->is_done && now_ms() < until_ms)
        thread_cond_wait_until(&c->done, &c->lock, until_ms);
    bool is_done = c->is_done;
    pthread_mutex_unlock(&c->lock);
    return is_done;
}

int fetch_do(struct fetch *f, const struct fetch_request *req, struct fetch_response *ret,
             struct err *err)
{
    assert(!pthread_equal(pthread_self(), f->thread));
    struct call *c = make_call(f, req, NULL, NULL);
    submit(c);
    int result;
    if (!wait_done(c, now_ms() + c->timeout_ms + MARGIN_MS)) {
        post(c, true);
        result = err_set(err, c->is_read_only ? ERR_TIMEOUT : ERR_UNDETERMINED,
                         "%s %s: the deadline passed", c->method, c->shown_url);
    } else if (c->result.code != ERR_NONE) {
        result = err_move(err, &c->result);
    } else {
        *ret = steal(&c->res);
        result = 0;
    }
    unref_call(c);
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

struct fetch_stream *fetch_open(struct fetch *f, const struct fetch_request *req,
                                const struct fetch_stream_ops *ops, void *ctx)
{
    assert(ops->on_data != NULL && ops->on_end != NULL);
    struct call *c = make_call(f, req, ops, ctx);
    submit(c);
    return (struct fetch_stream *)c;
}

void fetch_close(struct fetch_stream *s)
{
    if (s == NULL)
        return;
    struct call *c = &s->call;
    assert(!pthread_equal(pthread_self(), c->f->thread));
    post(c, true);
    wait_done(c, INT64_MAX);
    unref_call(c);
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
