/* One line after the other: connect, handshake, look at the certificate, ask. The calls that would
 * block are repeated when poll says so. */
#include "apiserver/http/dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/secure.h"
#include "apiserver/base/subject.h"

/* Until the handshake is done. Source: client-go, net/http. */
#define PATIENCE_MS ((int64_t)10000)
#define DIALS_MAX 128 /* at once: each holds a worker */
#define READ_BYTES ((size_t)16 << 10)
#define USER_PREFIX "system:node:"
#define USER_GROUP "system:nodes"

struct dialer {
    SSL_CTX *ctx;
    const char *any_node;
    int end_fd;
    atomic_int n_dialing;
};

void line_fini(struct line *l)
{
    if (!l->ssl)
        return;
    SSL_free(l->ssl);
    close(l->fd);
    *l = (struct line){0};
}

/* ---- errors ---- */

static int fail(struct err *err, const char *why)
{
    return err_set(err, ERR_UNKNOWN, "error dialing backend: %s", why);
}

static int fail_errno(struct err *err, const char *what)
{
    return err_set(err, ERR_UNKNOWN, "error dialing backend: %s: %s", what, strerror(errno));
}

/* ---- waiting ---- */

/* False when the time is over, or the dialer has ended. */
static bool wait_for(int fd, short events, int end_fd, int64_t until_ms)
{
    struct pollfd p[] = {{.fd = fd, .events = events}, {.fd = end_fd, .events = POLLIN}};
    for (;;) {
        int64_t left_ms = until_ms - clock_monotonic_ms(&clock_system);
        int n = left_ms > 0 ? poll(p, ARRAY_LEN(p), (int)left_ms) : 0;
        if (n != -1 || errno != EINTR)
            return n > 0 && !p[1].revents;
    }
}

static enum line_io judge(struct line *l, int r)
{
    switch (SSL_get_error(l->ssl, r)) {
    case SSL_ERROR_NONE:
        return LINE_SOME;
    case SSL_ERROR_WANT_READ:
        return LINE_WAIT_IN;
    case SSL_ERROR_WANT_WRITE:
        return LINE_WAIT_OUT;
    case SSL_ERROR_ZERO_RETURN:
        return LINE_END;
    default:
        return LINE_BROKEN;
    }
}

/* After a call that has to wait: try again? */
static bool may_go_on(struct line *l, enum line_io io, int64_t until_ms)
{
    return (io == LINE_WAIT_IN && wait_for(l->fd, POLLIN, l->end_fd, until_ms)) ||
           (io == LINE_WAIT_OUT && wait_for(l->fd, POLLOUT, l->end_fd, until_ms));
}

enum line_io line_read(struct line *l, char *into, size_t max, size_t *ret_n)
{
    ERR_clear_error();
    return judge(l, SSL_read_ex(l->ssl, into, max, ret_n));
}

enum line_io line_write(struct line *l, const char *p, size_t n, size_t *ret_n)
{
    ERR_clear_error();
    return judge(l, SSL_write_ex(l->ssl, p, n, ret_n));
}

void line_end(struct line *l)
{
    ERR_clear_error();
    SSL_shutdown(l->ssl);
    shutdown(l->fd, SHUT_WR);
}

/* ---- connecting ---- */

static socklen_t parse_address(const char *text, int port, struct sockaddr_storage *ret)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, text, &in.sin_addr) == 1) {
        memcpy(ret, &in, sizeof in);
        return sizeof in;
    }
    if (inet_pton(AF_INET6, text, &in6.sin6_addr) == 1) {
        memcpy(ret, &in6, sizeof in6);
        return sizeof in6;
    }
    return 0;
}

/* A node that vanished is noticed after about a minute and a half, however quiet the line is. */
static void set_socket_options(int fd)
{
    static const struct {
        int level, name, value;
    } options[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},    {IPPROTO_TCP, TCP_KEEPIDLE, 30},
        {IPPROTO_TCP, TCP_KEEPINTVL, 15}, {IPPROTO_TCP, TCP_KEEPCNT, 4},
        {IPPROTO_TCP, TCP_NODELAY, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                   sizeof options[i].value);
}

static int connect_socket(const struct dialer *d, int fd, const struct sockaddr_storage *to,
                          socklen_t n, int64_t until_ms)
{
    int error = 0;
    socklen_t size = sizeof error;
    if (connect(fd, (const struct sockaddr *)to, n) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return -1;
    if (!wait_for(fd, POLLOUT, d->end_fd, until_ms)) {
        errno = ETIMEDOUT;
        return -1;
    }
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    errno = error;
    return error ? -1 : 0;
}

static int open_socket(const struct dialer *d, const char *address, int port, int64_t until_ms,
                       int *ret, struct err *err)
{
    struct sockaddr_storage to = {0};
    socklen_t n = parse_address(address, port, &to);
    SCOPED_FREE char *what = xasprintf("dial tcp %s:%d: connect", address, port);
    int fd = n ? socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0) : -1;
    if (!n)
        errno = EINVAL;
    if (fd < 0 || connect_socket(d, fd, &to, n, until_ms) < 0) {
        fail_errno(err, what);
        if (fd >= 0)
            close(fd);
        return -ERR_UNKNOWN;
    }
    set_socket_options(fd);
    *ret = fd;
    return 0;
}

/* ---- the handshake ---- */

static bool is_user_of(const struct dialer *d, const struct subject *s,
                       const struct dial_node *node)
{
    bool is_node = str_has_prefix(s->common_name, USER_PREFIX) &&
                   strcmp(s->common_name + strlen(USER_PREFIX), node->name) == 0;
    bool is_any = !node->is_alone && str_equal(s->common_name, d->any_node);
    return (is_node || is_any) && strv_has(s->organizations, USER_GROUP);
}

static int check_name(struct dialer *d, struct line *l, const struct dial_node *node,
                      struct err *err)
{
    SCOPED(subject_fini) struct subject subject = {0};
    X509 *certificate = SSL_get0_peer_certificate(l->ssl);
    bool is_node = certificate && subject_read(certificate, &subject, NULL) == 0 &&
                   is_user_of(d, &subject, node);
    if (is_node)
        return 0;
    SCOPED_FREE char *text = xasprintf(
        "tls: who answers does not hold the certificate of " USER_PREFIX "%s", node->name);
    return fail(err, text);
}

static int shake_hands(struct dialer *d, struct line *l, const struct dial_node *node,
                       int64_t until_ms, struct err *err)
{
    enum line_io io;
    do {
        ERR_clear_error();
        io = judge(l, SSL_connect(l->ssl));
    } while (may_go_on(l, io, until_ms));
    if (io == LINE_SOME)
        return check_name(d, l, node, err);
    long verdict = SSL_get_verify_result(l->ssl);
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    SCOPED_FREE char *text =
        xasprintf("tls: %s", verdict != X509_V_OK ? X509_verify_cert_error_string(verdict)
                             : reason             ? reason
                                                  : "no handshake");
    ERR_clear_error();
    return fail(err, text);
}

static int open_line(struct dialer *d, const struct dial_node *node, const char *address, int port,
                     int64_t until_ms, struct line *ret, struct err *err)
{
    SCOPED(line_fini) struct line l = {.end_fd = d->end_fd};
    int fd;
    if (open_socket(d, address, port, until_ms, &fd, err) < 0)
        return -(int)err->code;
    l.fd = fd;
    l.ssl = SSL_new(d->ctx);
    if (!l.ssl || SSL_set_fd(l.ssl, fd) != 1) {
        SSL_free(l.ssl);
        l.ssl = NULL;
        close(fd);
        return err_set(err, ERR_INTERNAL, "OpenSSL gives no connection");
    }
    if (shake_hands(d, &l, node, until_ms, err) < 0)
        return -(int)err->code;
    *ret = steal(&l);
    return 0;
}

int dial(struct dialer *d, const struct dial_node *node, const char *address, int port,
         int64_t until_ms, struct line *ret, struct err *err)
{
    int64_t latest_ms = clock_monotonic_ms(&clock_system) + PATIENCE_MS;
    int r = -ERR_TOO_MANY;
    if (atomic_fetch_add(&d->n_dialing, 1) < DIALS_MAX) {
        r = open_line(d, node, address, port, until_ms < latest_ms ? until_ms : latest_ms, ret,
                      err);
    } else {
        err_set(err, ERR_TOO_MANY, "too many connections to nodes are being made");
        err->retry_after_s = 1;
    }
    atomic_fetch_sub(&d->n_dialing, 1);
    return r;
}

/* ---- asking ---- */

static int send_all(struct line *l, const struct buf *b, int64_t until_ms, struct err *err)
{
    size_t done = 0;
    while (done < b->len) {
        size_t n = 0;
        enum line_io io = line_write(l, b->data + done, b->len - done, &n);
        if (io == LINE_SOME)
            done += n;
        else if (!may_go_on(l, io, until_ms))
            return fail(err, "the request could not be sent");
    }
    return 0;
}

/* LINE_SOME, LINE_END, or that it is broken or the time over. */
static enum line_io receive(struct line *l, char *into, size_t max, int64_t until_ms, size_t *ret_n)
{
    enum line_io io;
    do
        io = line_read(l, into, max, ret_n);
    while (may_go_on(l, io, until_ms));
    return io;
}

/* What is left of p[0..n): the body's beginning, or what is no HTTP any more. */
static bool take_rest(struct reply *r, const char *p, size_t n, struct buf *ahead)
{
    size_t used = 0;
    if (r->state == REPLY_RAW)
        buf_append(ahead, p, n);
    return r->state == REPLY_RAW || n == 0 || reply_feed(r, p, n, &used, ahead);
}

int line_ask(struct line *l, const struct buf *request, int64_t until_ms, struct reply *ret,
             struct buf *ahead, struct err *err)
{
    SCOPED(reply_fini) struct reply reply = {0};
    char bytes[READ_BYTES];
    if (send_all(l, request, until_ms, err) < 0)
        return -(int)err->code;
    while (reply.state == REPLY_HEAD) {
        size_t n = 0, at = 0, used = 0;
        if (receive(l, bytes, sizeof bytes, until_ms, &n) != LINE_SOME)
            return fail(err, "no answer");
        bool is_good = true;
        for (; is_good && at < n && reply.state == REPLY_HEAD; at += used)
            is_good = reply_feed(&reply, bytes + at, n - at, &used, ahead);
        if (!is_good || !take_rest(&reply, bytes + at, n - at, ahead))
            return fail(err, "the answer is no HTTP");
    }
    *ret = steal(&reply);
    return 0;
}

void line_read_body(struct line *l, struct reply *r, size_t max, int64_t until_ms, struct buf *body)
{
    char bytes[READ_BYTES];
    size_t n = 0, used;
    while (r->state != REPLY_OVER && r->state != REPLY_RAW && body->len < max &&
           receive(l, bytes, sizeof bytes, until_ms, &n) == LINE_SOME)
        if (!reply_feed(r, bytes, n, &used, body))
            return;
}

/* ---- start and stop ---- */

int dialer_new(const struct dialer_config *config, struct dialer **ret, struct err *err)
{
    static const unsigned char alpn[] = "\x08http/1.1";
    SSL_CTX *ctx;
    int r = secure_context(TLS_client_method(), config->cert_file, config->key_file, &ctx, err);
    if (r < 0)
        return r;
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_alpn_protos(ctx, alpn, sizeof alpn - 1);
    if (SSL_CTX_load_verify_file(ctx, config->ca_file) != 1) {
        SSL_CTX_free(ctx);
        return secure_failed(err, "authority of nodes", config->ca_file);
    }
    int end_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (end_fd < 0) {
        SSL_CTX_free(ctx);
        return err_set(err, ERR_INTERNAL, "no descriptor for connections to nodes");
    }
    *ret = xcalloc(1, sizeof **ret);
    **ret = (struct dialer){.ctx = ctx, .any_node = config->any_node, .end_fd = end_fd};
    return 0;
}

void dialer_end(struct dialer *d)
{
    uint64_t one = 1;
    (void)!write(d->end_fd, &one, sizeof one); /* nobody reads it: it stays as it is */
}

void dialer_free(struct dialer *d)
{
    if (!d)
        return;
    SSL_CTX_free(d->ctx);
    close(d->end_fd);
    free(d);
}
