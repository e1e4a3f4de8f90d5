/* A request's way through libmicrohttpd (0.9.75): the target as sent (log callback), headers (first
 * call of the access handler), body (further calls), complete (last call): suspend, a worker runs
 * the handler and resumes, the handler is called once more and queues the response. Of an answer
 * that is a stream only the head and the end are libmicrohttpd's: in between its connection is
 * suspended, and the pump sends the stream by itself. */
#include "apiserver/http/mhd.h"

#include <limits.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/log.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "apiserver/http/respond.h"

/* Bytes a connection may use for one request's head and the answer's: 64 KiB of headers and what is
 * made of them. Pages that are not touched cost nothing. */
#define CONNECTION_MEMORY ((size_t)96 << 10)
/* This many times max_body is read from a body that is too large, for the 413 to arrive. */
#define DRAIN_FACTOR 8
#define STREAM_BLOCK 1024 /* bytes libmicrohttpd would read at once from a stream */

struct mhd {
    struct mhd_config config;
    struct MHD_Daemon *daemon;
    atomic_bool is_draining;
    pthread_mutex_t lock; /* guards what follows */
    struct peer **by_fd;  /* given to mhd_add, not yet started; index = descriptor */
    size_t n_by_fd;
};

enum step {
    STEP_HEAD,     /* no call of the access handler yet */
    STEP_BODY,     /* collecting */
    STEP_WORKING,  /* suspended, a worker has it */
    STEP_ANSWERED, /* resp is complete */
    STEP_SENT,     /* libmicrohttpd has the response */
};

/* One request and its answer. libmicrohttpd's thread, except while a worker has it. */
struct exchange {
    struct work work; /* first */
    struct mhd *mhd;
    struct MHD_Connection *connection;
    struct peer *peer;
    enum step step;
    bool is_refused; /* the body does not fit beside the others */
    bool is_chunked; /* what is of unknown length may be: the client is of HTTP/1.1 */
    uint64_t received;
    size_t counted; /* bytes of the body in the budget */
    struct request req;
    struct response resp;
};

/* ---- the target ---- */

/* Path and query of an absolute target too (RFC 9112, 3.2.2). */
static const char *origin_form(const char *target)
{
    const char *scheme_end = *target == '/' ? NULL : strstr(target, "://");
    if (!scheme_end)
        return target;
    const char *path = strchr(scheme_end + 3, '/');
    return path ? path : "/";
}

static struct peer *peer_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info->socket_context;
}

static void run_handler(struct work *work);

/* libmicrohttpd would make a record of each parameter, in the memory of the connection, and says
 * nothing at all when that is not enough. The target is its own buffer, that it reads them from
 * next; we have a copy. */
static void hide_params(const char *target)
{
    char *params = strchr((char *)(uintptr_t)target, '?');
    if (params && params[1])
        params[1] = '\0';
}

static void *on_target(void *ctx, const char *target, struct MHD_Connection *connection)
{
    struct exchange *x = xcalloc(1, sizeof *x);
    x->work.run = run_handler;
    x->mhd = ctx;
    x->connection = connection;
    x->peer = peer_of(connection);
    target = origin_form(target);
    size_t n = strcspn(target, "?");
    x->req.path = xstrndup(target, n);
    x->req.query = xstrdup(target[n] == '?' ? target + n + 1 : "");
    hide_params(target);
    return x;
}

/* libmicrohttpd decodes a copy that nobody looks at. */
static size_t leave_escaped(void *ctx, struct MHD_Connection *connection, char *s)
{
    (void)ctx;
    (void)connection;
    return strlen(s);
}

/* ---- head and body ---- */

static enum MHD_Result put_header(void *ctx, enum MHD_ValueKind kind, const char *name,
                                  const char *value)
{
    (void)kind;
    pairs_add(ctx, name, value ? value : "");
    return MHD_YES;
}

static void read_head(struct exchange *x, const char *method)
{
    x->req.method = xstrdup(method);
    x->req.remote_addr = xstrdup(x->peer->addr);
    x->req.chain = x->peer->chain;
    x->req.n_chain = x->peer->n_chain;
    x->req.can_upgrade = x->is_chunked; /* and not of HTTP/1.0 */
    x->req.body.max = x->mhd->config.max_body;
    MHD_get_connection_values(x->connection, MHD_HEADER_KIND, put_header, &x->req.headers);
    x->step = STEP_BODY;
    peer_set_phase(x->peer, PEER_BODY);
}

static bool has_control(const char *s)
{
    for (; *s; s++)
        if (((unsigned char)*s < 0x20 && *s != '\t') || *s == 0x7f)
            return true;
    return false;
}

/* Is there only one way to read the head? libmicrohttpd takes some that others read differently:
 * names with a blank at their end, control characters, several hosts, several lengths, a length
 * beside chunks, codings it does not know, chunks of a client of HTTP/1.0. Where such a request
 * ends is then a matter of opinion, and what follows it could be somebody else's; so it is refused
 * and its connection ends. Source: RFC 9112, 5.1, 6.1 and 6.3. */
static bool is_head_sound(const struct pairs *headers, bool may_be_chunked)
{
    static const char token[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    size_t n_framings = 0, n_hosts = 0;
    for (size_t i = 0; i < headers->n; i++) {
        const struct pair *h = &headers->v[i];
        if (h->name[0] == '\0' || h->name[strspn(h->name, token)] != '\0' || has_control(h->value))
            return false;
        bool is_coding = strcasecmp(h->name, "Transfer-Encoding") == 0;
        if (is_coding && (!may_be_chunked || strcasecmp(h->value, "chunked") != 0))
            return false;
        n_framings += is_coding || strcasecmp(h->name, "Content-Length") == 0;
        n_hosts += strcasecmp(h->name, "Host") == 0;
    }
    return n_framings <= 1 && n_hosts <= 1;
}

static void drop_body(struct exchange *x)
{
    budget_give(x->mhd->config.bodies, x->counted);
    x->counted = 0;
    buf_fini(&x->req.body);
}

static uint64_t drain_max(const struct exchange *x)
{
    return (uint64_t)x->mhd->config.max_body * DRAIN_FACTOR;
}

/* False when so much was thrown away that the connection has to end. */
static bool take_body(struct exchange *x, const char *p, size_t n)
{
    struct mhd *m = x->mhd;
    x->received += n;
    if (x->received > m->config.max_body && !x->req.body_too_large) {
        x->req.body_too_large = true;
        drop_body(x);
    }
    if (x->req.body_too_large || x->is_refused)
        return x->received <= drain_max(x);
    if (!budget_take(m->config.bodies, n)) {
        x->is_refused = true;
        drop_body(x);
        return true;
    }
    buf_append(&x->req.body, p, n);
    x->counted += n;
    return true;
}

/* A body announced as larger than what would be drained, or one that the client holds back until it
 * is asked for, is refused before it is sent. */
static bool is_announced_too_large(const struct exchange *x)
{
    const char *text = pairs_get_ci(&x->req.headers, "Content-Length");
    const char *expect = pairs_get_ci(&x->req.headers, "Expect");
    uint64_t n = 0;
    if (!text || pairs_get_ci(&x->req.headers, "Transfer-Encoding") || str_to_u64(text, &n) < 0)
        return false;
    return n > drain_max(x) || (expect && n > x->mhd->config.max_body);
}

/* ---- the answer ---- */

/* Gives the pages of a buffer back. */
static void trim(char *out, size_t max)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = ((uintptr_t)out + page - 1) & ~(page - 1),
              to = ((uintptr_t)out + max) & ~(page - 1);
    if (from < to)
        madvise(out + (from - (uintptr_t)out), to - from, MADV_DONTNEED);
}

static void suspend(void *connection)
{
    MHD_suspend_connection(connection);
}

static void resume(void *connection)
{
    MHD_resume_connection(connection);
}

/* Called for the first time when the head is sent, and then once more, when the stream is over and
 * the last chunk may follow; in between the connection sleeps, and the pump has the stream. What is
 * not needed until then goes: the request, and the buffer that would be written to, which is most
 * of the connection's memory and was touched for the head. The end is a proper one also when the
 * client is away: after an error libmicrohttpd would keep the connection until its timeout, while
 * a last chunk that cannot be sent ends it at once. */
static ssize_t hand_over(void *ctx, uint64_t pos, char *out, size_t max)
{
    (void)pos;
    struct exchange *x = ctx;
    struct stream *stream = steal(&x->resp.stream);
    if (!stream)
        return MHD_CONTENT_READER_END_OF_STREAM;
    struct handover h = {.stream = stream,
                         .is_chunked = x->is_chunked,
                         .suspend = suspend,
                         .resume = resume,
                         .sleeper = x->connection};
    trim(out, max);
    drop_body(x);
    request_fini(&x->req);
    if (peer_hand_over(x->peer, &h))
        return 0;
    stream->close(stream);
    return MHD_CONTENT_READER_END_OF_STREAM;
}

static struct MHD_Response *make_stream_response(struct exchange *x)
{
    struct MHD_Response *r =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, hand_over, x, NULL);
    /* After the head that answers HEAD libmicrohttpd would send the last chunk; not so to the
     * eldest of clients. */
    if (r && strcmp(x->req.method, "HEAD") == 0)
        MHD_set_response_options(r, MHD_RF_HTTP_1_0_COMPATIBLE_STRICT, MHD_RO_END);
    return r;
}

static struct MHD_Response *make_body_response(struct exchange *x)
{
    size_t n = 0;
    char *p = buf_take(&x->resp.body, &n);
    struct MHD_Response *r = MHD_create_response_from_buffer(n, p, MHD_RESPMEM_MUST_FREE);
    if (!r)
        free(p);
    return r;
}

/* ---- a raw connection ---- */

static void end_upgrade(void *upgraded)
{
    MHD_upgrade_action(upgraded, MHD_UPGRADE_ACTION_CLOSE);
}

/* The head is sent: from now on bytes are nobody's business but who asked for them. Until the end
 * libmicrohttpd's connection sleeps. */
static void on_upgrade(void *ctx, struct MHD_Connection *connection, void *exchange,
                       const char *ahead, size_t n_ahead, MHD_socket fd,
                       struct MHD_UpgradeResponseHandle *upgraded)
{
    (void)connection;
    (void)exchange;
    struct exchange *x = ctx;
    struct upgrade *u = steal(&x->resp.upgrade);
    drop_body(x);
    request_fini(&x->req);
    peer_set_phase(x->peer, PEER_RAW);
    u->take(
        u, &(struct raw){
               .fd = fd, .ahead = ahead, .n_ahead = n_ahead, .done = end_upgrade, .ctx = upgraded});
}

static void sleep_on(void *upgraded)
{
    (void)upgraded; /* it does */
}

/* The same for a stream that has the connection for itself: the pump writes it, and takes what the
 * client sends from the pair's far end, which is nobody else's any more. */
static void on_stream_upgrade(void *ctx, struct MHD_Connection *connection, void *exchange,
                              const char *ahead, size_t n_ahead, MHD_socket fd,
                              struct MHD_UpgradeResponseHandle *upgraded)
{
    (void)connection;
    (void)exchange;
    struct exchange *x = ctx;
    struct stream *stream = steal(&x->resp.stream);
    struct handover h = {.stream = stream,
                         .fd = fd,
                         .suspend = sleep_on,
                         .resume = end_upgrade,
                         .sleeper = upgraded};
    drop_body(x);
    request_fini(&x->req);
    if (n_ahead > 0)
        stream->take(stream, ahead, n_ahead);
    if (peer_hand_over(x->peer, &h))
        return;
    stream->close(stream);
    end_upgrade(upgraded);
}

static bool is_upgrade(const struct response *resp)
{
    return resp->status == 101;
}

static struct MHD_Response *make_response(struct exchange *x)
{
    if (is_upgrade(&x->resp))
        return MHD_create_response_for_upgrade(x->resp.stream ? on_stream_upgrade : on_upgrade, x);
    return x->resp.stream ? make_stream_response(x) : make_body_response(x);
}

/* ---- sending it ---- */

static void put_headers(struct exchange *x, struct MHD_Response *r)
{
    for (size_t i = 0; i < x->resp.headers.n; i++) {
        const struct pair *h = &x->resp.headers.v[i];
        if (MHD_add_response_header(r, h->name, h->value) != MHD_YES)
            log_debug("response header left out name=%s", h->name);
    }
    if (atomic_load(&x->mhd->is_draining) && !is_upgrade(&x->resp))
        MHD_add_response_header(r, "Connection", "close");
}

static enum MHD_Result send_response(struct exchange *x)
{
    struct MHD_Response *r = make_response(x);
    if (!r)
        return MHD_NO;
    put_headers(x, r);
    x->step = STEP_SENT;
    enum MHD_Result sent = MHD_queue_response(x->connection, (unsigned)x->resp.status, r);
    MHD_destroy_response(r); /* libmicrohttpd holds its own reference */
    return sent;
}

static void fill_bad_response(struct response *resp)
{
    resp->status = 400;
    pairs_add(&resp->headers, "Content-Type", "text/plain; charset=utf-8");
    pairs_add(&resp->headers, "Connection", "close");
    buf_puts(&resp->body, "400 Bad Request");
}

/* On a worker. The exchange cannot end while its connection is suspended. */
static void run_handler(struct work *work)
{
    struct exchange *x = (struct exchange *)work;
    struct MHD_Connection *connection = x->connection;
    x->mhd->config.handler(x->mhd->config.ctx, &x->req, &x->resp);
    x->step = STEP_ANSWERED;
    MHD_resume_connection(connection);
}

/* Suspends first: the worker may be done before workers_put returns. */
static enum MHD_Result start_work(struct exchange *x)
{
    peer_set_phase(x->peer, PEER_BUSY);
    x->req.start_ms = clock_monotonic_ms(&clock_system);
    if (x->is_refused) {
        respond_busy(&x->resp);
        return send_response(x);
    }
    x->step = STEP_WORKING;
    MHD_suspend_connection(x->connection);
    if (workers_put(x->mhd->config.workers, &x->work))
        return MHD_YES;
    respond_busy(&x->resp);
    x->step = STEP_ANSWERED;
    MHD_resume_connection(x->connection);
    return MHD_YES;
}

static enum MHD_Result on_access(void *ctx, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *body,
                                 size_t *body_len, void **exchange)
{
    (void)ctx;
    (void)connection;
    (void)url;
    struct exchange *x = *exchange;
    switch (x->step) {
    case STEP_HEAD:
        /* to CONNECT libmicrohttpd announces no chunks */
        x->is_chunked = strcmp(version, "HTTP/1.0") != 0 && strcmp(method, "CONNECT") != 0;
        read_head(x, method);
        if (!is_head_sound(&x->req.headers, x->is_chunked)) {
            fill_bad_response(&x->resp);
            return send_response(x);
        }
        if (!is_announced_too_large(x))
            return MHD_YES;
        x->req.body_too_large = true;
        return start_work(x);
    case STEP_BODY:
        if (*body_len == 0)
            return start_work(x);
        if (!take_body(x, body, *body_len))
            return MHD_NO;
        *body_len = 0;
        return MHD_YES;
    case STEP_ANSWERED:
        return send_response(x);
    case STEP_WORKING:
    case STEP_SENT:
    default:
        return MHD_YES;
    }
}

static void on_completed(void *ctx, struct MHD_Connection *connection, void **exchange,
                         enum MHD_RequestTerminationCode why)
{
    (void)ctx;
    (void)connection;
    (void)why;
    struct exchange *x = *exchange;
    if (!x)
        return;
    *exchange = NULL;
    drop_body(x);
    response_fini(&x->resp);
    request_fini(&x->req);
    peer_set_phase(x->peer, PEER_IDLE);
    free(x);
}

/* ---- connections ---- */

static struct peer *take_by_fd(struct mhd *m, int fd)
{
    size_t i = (size_t)fd;
    pthread_mutex_lock(&m->lock);
    struct peer *peer = i < m->n_by_fd ? steal(&m->by_fd[i]) : NULL;
    pthread_mutex_unlock(&m->lock);
    return peer;
}

static void on_connection(void *ctx, struct MHD_Connection *connection, void **peer,
                          enum MHD_ConnectionNotificationCode what)
{
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        *peer = take_by_fd(ctx, info->connect_fd);
    } else {
        peer_unref(*peer);
        *peer = NULL;
    }
}

/* The peer is found again by the descriptor, which is ours alone until libmicrohttpd closes it.
 * What was there before belonged to a connection that never started. */
static void remember(struct mhd *m, int fd, struct peer *peer)
{
    size_t i = (size_t)fd;
    pthread_mutex_lock(&m->lock);
    if (i >= m->n_by_fd) {
        size_t n = i * 2 + 64;
        m->by_fd = xreallocarray(m->by_fd, n, sizeof(struct peer *));
        memset(m->by_fd + m->n_by_fd, 0, (n - m->n_by_fd) * sizeof(struct peer *));
        m->n_by_fd = n;
    }
    struct peer *stale = m->by_fd[i];
    m->by_fd[i] = peer_ref(peer);
    pthread_mutex_unlock(&m->lock);
    peer_unref(stale);
}

bool mhd_add(struct mhd *m, int fd, struct peer *peer)
{
    /* Only its presence matters to libmicrohttpd. */
    struct sockaddr addr = {.sa_family = AF_UNIX};
    remember(m, fd, peer);
    return MHD_add_connection(m->daemon, fd, &addr, sizeof addr) == MHD_YES;
}

/* ---- start and stop ---- */

static void on_log(void *ctx, const char *fmt, va_list args) __attribute__((format(printf, 2, 0)));
static void on_log(void *ctx, const char *fmt, va_list args)
{
    (void)ctx;
    char text[256];
    vsnprintf(text, sizeof text, fmt, args);
    text[strcspn(text, "\n")] = '\0';
    log_debug("libmicrohttpd text=\"%s\"", text);
}

static struct MHD_Daemon *start_daemon(struct mhd *m)
{
    unsigned flags = MHD_USE_NO_LISTEN_SOCKET | MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC |
                     MHD_ALLOW_SUSPEND_RESUME | MHD_ALLOW_UPGRADE | MHD_USE_ERROR_LOG;
    unsigned timeout_s = (unsigned)((m->config.idle_timeout_ms + 999) / 1000);
    /* Half as many again: a connection that ended here may still wait to be cleaned up there. */
    unsigned limit = (unsigned)(m->config.max_connections + m->config.max_connections / 2 + 16);
    return MHD_start_daemon(
        flags, 0, NULL, NULL, on_access, m, MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,
        MHD_OPTION_URI_LOG_CALLBACK, on_target, m, MHD_OPTION_UNESCAPE_CALLBACK, leave_escaped,
        NULL, MHD_OPTION_NOTIFY_COMPLETED, on_completed, m, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, m, MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY,
        MHD_OPTION_CONNECTION_LIMIT, limit, MHD_OPTION_CONNECTION_TIMEOUT, timeout_s,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
}

int mhd_new(const struct mhd_config *config, struct mhd **ret, struct err *err)
{
    struct mhd *m = xcalloc(1, sizeof *m);
    m->config = *config;
    pthread_mutex_init(&m->lock, NULL);
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* inherited: signals go to the main thread */
    m->daemon = start_daemon(m);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!m->daemon) {
        mhd_free(m);
        return err_set(err, ERR_INTERNAL, "HTTP threads could not be started");
    }
    *ret = m;
    return 0;
}

void mhd_drain(struct mhd *m)
{
    atomic_store(&m->is_draining, true);
}

void mhd_free(struct mhd *m)
{
    if (!m)
        return;
    if (m->daemon)
        MHD_stop_daemon(m->daemon);
    for (size_t i = 0; i < m->n_by_fd; i++)
        peer_unref(m->by_fd[i]);
    free(m->by_fd);
    pthread_mutex_destroy(&m->lock);
    free(m);
}
