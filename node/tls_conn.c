/* OpenSSL on a socket that does not block. */
#include "node/tls_conn.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/file.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/secure.h"

/* A client that vanished is noticed after so long, s. */
#define SILENT_S 30
#define AGAIN_S 10
#define TRIES 3

enum { FILE_CERT, FILE_KEY, FILE_CA, FILES };

struct tls_server {
    char *files[FILES];
    pthread_mutex_t lock; /* guards what follows; a file is read with it held */
    struct file_stamp stamps[FILES];
    SSL_CTX *ctx;
};

struct tls_conn {
    SSL *ssl;
    int fd;
    short read_wants, write_wants; /* POLLIN or POLLOUT, before it is tried again */
};

/* ---- what all connections share ---- */

/* Who comes without a good certificate is told so by HTTP. */
static int accept_any(int is_good, X509_STORE_CTX *store)
{
    (void)is_good;
    (void)store;
    return 1;
}

static int make_context(const struct tls_server *s, SSL_CTX **ret, struct err *err)
{
    static const unsigned char id[] = "sandbox-node";
    SSL_CTX *ctx = NULL;
    const char *ca_file = s->files[FILE_CA];
    int rc =
        secure_context(TLS_server_method(), s->files[FILE_CERT], s->files[FILE_KEY], &ctx, err);
    if (rc == 0 && SSL_CTX_load_verify_locations(ctx, ca_file, NULL) != 1)
        rc = secure_failed(err, "authorities", ca_file);
    if (rc < 0) {
        SSL_CTX_free(ctx);
        return rc;
    }
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, accept_any);
    /* Each time the certificate is looked at anew: there are few connections, and long ones. */
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_session_id_context(ctx, id, sizeof id - 1);
    SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(ctx, 0);
    *ret = ctx;
    return 0;
}

/* True when one of the files is another than at the last look. */
static bool look_at_files(struct tls_server *s)
{
    bool is_other = false;
    for (int i = 0; i < FILES; i++) {
        struct file_stamp now = file_stamp(s->files[i]);
        is_other = is_other || !file_stamp_equal(&now, &s->stamps[i]);
        s->stamps[i] = now;
    }
    return is_other;
}

/* Files that do not go together, because not all are written yet, change once more. Lock held. */
static void reload_changed(struct tls_server *s)
{
    SCOPED(err_fini) struct err err = {0};
    SSL_CTX *fresh = NULL;
    if (!look_at_files(s))
        return;
    if (make_context(s, &fresh, &err) < 0) {
        log_warn("certificate or authorities changed and are not usable, the old ones stay: %s",
                 err_text(&err));
        return;
    }
    SSL_CTX_free(s->ctx); /* its connections keep it */
    s->ctx = fresh;
    log_info("certificate and authorities reloaded file=%s", s->files[FILE_CERT]);
}

static SSL *begin(struct tls_server *s)
{
    pthread_mutex_lock(&s->lock);
    reload_changed(s);
    SSL *ssl = SSL_new(s->ctx);
    pthread_mutex_unlock(&s->lock);
    return ssl;
}

int tls_server_new(const char *cert_file, const char *key_file, const char *ca_file,
                   struct tls_server **ret, struct err *err)
{
    struct tls_server *s = xcalloc(1, sizeof *s);
    s->files[FILE_CERT] = xstrdup(cert_file);
    s->files[FILE_KEY] = xstrdup(key_file);
    s->files[FILE_CA] = xstrdup(ca_file);
    pthread_mutex_init(&s->lock, NULL);
    look_at_files(s);
    int rc = make_context(s, &s->ctx, err);
    if (rc < 0)
        tls_server_free(s);
    else
        *ret = s;
    return rc;
}

void tls_server_free(struct tls_server *s)
{
    if (!s)
        return;
    SSL_CTX_free(s->ctx);
    for (int i = 0; i < FILES; i++)
        free(s->files[i]);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* ---- waiting ---- */

/* What a call of OpenSSL came to: as tls_conn_read and tls_conn_write. */
static ssize_t outcome(struct tls_conn *c, int r, size_t n, short *wants)
{
    int error = r == 1 ? SSL_ERROR_NONE : SSL_get_error(c->ssl, r);
    ERR_clear_error();
    if (error == SSL_ERROR_NONE)
        return (ssize_t)n;
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
        return -1;
    *wants = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    return 0;
}

static int wait_for(const struct tls_conn *c, short events, int stop_fd, int64_t deadline_ms,
                    struct err *err)
{
    struct pollfd fds[] = {{.fd = c->fd, .events = events}, {.fd = stop_fd, .events = POLLIN}};
    int64_t left_ms = deadline_ms - clock_monotonic_ms(&clock_system);
    if (left_ms <= 0 ||
        poll(fds, ARRAY_LEN(fds), left_ms > INT32_MAX ? INT32_MAX : (int)left_ms) == 0)
        return err_set(err, ERR_UNAVAILABLE, "the client took too long");
    if (fds[1].revents)
        return err_set(err, ERR_UNAVAILABLE, "the node ends");
    return 0;
}

/* ---- start and end ---- */

static void set_up(int fd)
{
    const int yes = 1, silent = SILENT_S, again = AGAIN_S, tries = TRIES;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &silent, sizeof silent);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &again, sizeof again);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof tries);
}

static int shake_hands(struct tls_conn *c, int stop_fd, int64_t deadline_ms, struct err *err)
{
    for (;;) {
        short wants = 0;
        ssize_t r = outcome(c, SSL_accept(c->ssl), 1, &wants);
        if (r > 0)
            return 0;
        if (r < 0)
            return err_set(err, ERR_UNAVAILABLE, "no handshake");
        int rc = wait_for(c, wants, stop_fd, deadline_ms, err);
        if (rc < 0)
            return rc;
    }
}

int tls_conn_accept(struct tls_server *s, int fd, int stop_fd, int64_t deadline_ms,
                    struct tls_conn **ret, struct err *err)
{
    struct tls_conn *c = xcalloc(1, sizeof *c);
    *c = (struct tls_conn){.ssl = begin(s), .fd = fd, .read_wants = POLLIN, .write_wants = POLLOUT};
    set_up(fd);
    int rc = c->ssl && SSL_set_fd(c->ssl, fd) == 1
                 ? shake_hands(c, stop_fd, deadline_ms, err)
                 : err_set(err, ERR_UNAVAILABLE, "OpenSSL gives no connection");
    if (rc < 0)
        tls_conn_free(c);
    else
        *ret = c;
    return rc;
}

void tls_conn_free(struct tls_conn *c)
{
    if (!c)
        return;
    SSL_free(c->ssl);
    close(c->fd);
    free(c);
}

int tls_conn_client(const struct tls_conn *c, struct subject *ret, struct err *err)
{
    X509 *certificate = SSL_get0_peer_certificate(c->ssl);
    long result = SSL_get_verify_result(c->ssl);
    if (!certificate)
        return err_set(err, ERR_UNAUTHORIZED, "no certificate");
    if (result != X509_V_OK)
        return err_set(err, ERR_UNAUTHORIZED, "certificate: %s",
                       X509_verify_cert_error_string(result));
    return subject_read(certificate, ret, err);
}

/* ---- bytes ---- */

ssize_t tls_conn_read(struct tls_conn *c, void *p, size_t n)
{
    size_t done = 0;
    c->read_wants = POLLIN;
    int r = SSL_read_ex(c->ssl, p, n, &done);
    return outcome(c, r, done, &c->read_wants);
}

ssize_t tls_conn_write(struct tls_conn *c, const void *p, size_t n)
{
    size_t done = 0;
    c->write_wants = POLLOUT;
    int r = SSL_write_ex(c->ssl, p, n, &done);
    return outcome(c, r, done, &c->write_wants);
}

int tls_conn_fd(const struct tls_conn *c)
{
    return c->fd;
}

short tls_conn_events(const struct tls_conn *c, bool is_reading, bool is_writing)
{
    return (short)((is_reading ? c->read_wants : 0) | (is_writing ? c->write_wants : 0));
}

bool tls_conn_has_more(const struct tls_conn *c)
{
    return SSL_pending(c->ssl) > 0;
}

ssize_t tls_conn_receive(struct tls_conn *c, void *p, size_t n, int stop_fd, int64_t deadline_ms,
                         struct err *err)
{
    ssize_t done;
    while ((done = tls_conn_read(c, p, n)) == 0) {
        int rc = wait_for(c, c->read_wants, stop_fd, deadline_ms, err);
        if (rc < 0)
            return rc;
    }
    return done > 0 ? done : 0;
}

int tls_conn_send(struct tls_conn *c, const void *p, size_t n, int stop_fd, int64_t deadline_ms,
                  struct err *err)
{
    const char *at = p;
    while (n > 0) {
        ssize_t done = tls_conn_write(c, at, n);
        if (done < 0)
            return err_set(err, ERR_UNAVAILABLE, "the client is gone");
        at += done;
        n -= (size_t)done;
        int rc = done == 0 ? wait_for(c, c->write_wants, stop_fd, deadline_ms, err) : 0;
        if (rc < 0)
            return rc;
    }
    return 0;
}

void tls_conn_end(struct tls_conn *c, int stop_fd, int64_t deadline_ms)
{
    char dropped[4096];
    ssize_t n;
    SSL_shutdown(c->ssl);
    ERR_clear_error();
    shutdown(c->fd, SHUT_WR);
    while ((n = recv(c->fd, dropped, sizeof dropped, 0)) != 0) {
        if (n < 0 && errno != EINTR &&
            (errno != EAGAIN || wait_for(c, POLLIN, stop_fd, deadline_ms, NULL) < 0))
            break;
    }
}
