/* OpenSSL on a socket that does not block. */
#include "node/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <unistd.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/secure.h"

/* A client that vanished is noticed after so long, s. */
#define SILENT_S 30
#define AGAIN_S 10
#define TRIES 3

struct wire_gate {
    SSL_CTX *ctx;
};

struct wire {
    SSL *ssl;
    int fd;
    short read_wants, write_wants; /* POLLIN or POLLOUT, before it is tried again */
};

/* ---- the gate ---- */

/* Who comes without a good certificate is told so by HTTP. */
static int accept_any(int is_good, X509_STORE_CTX *store)
{
    (void)is_good;
    (void)store;
    return 1;
}

int wire_gate_new(const char *cert_file, const char *key_file, const char *ca_file,
                  struct wire_gate **ret, struct err *err)
{
    static const unsigned char id[] = "sandbox-node";
    struct wire_gate *g = xcalloc(1, sizeof *g);
    int rc = secure_context(TLS_server_method(), cert_file, key_file, &g->ctx, err);
    if (rc == 0 && SSL_CTX_load_verify_locations(g->ctx, ca_file, NULL) != 1)
        rc = secure_failed(err, "authorities", ca_file);
    if (rc < 0) {
        wire_gate_free(g);
        return rc;
    }
    SSL_CTX_set_verify(g->ctx, SSL_VERIFY_PEER, accept_any);
    /* Each time the certificate is looked at anew: there are few connections, and long ones. */
    SSL_CTX_set_session_cache_mode(g->ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_session_id_context(g->ctx, id, sizeof id - 1);
    SSL_CTX_set_options(g->ctx, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(g->ctx, 0);
    *ret = g;
    return 0;
}

void wire_gate_free(struct wire_gate *g)
{
    if (!g)
        return;
    SSL_CTX_free(g->ctx);
    free(g);
}

/* ---- waiting ---- */

/* What a call of OpenSSL came to: as wire_read and wire_write. */
static ssize_t outcome(struct wire *w, int r, size_t n, short *wants)
{
    int error = r == 1 ? SSL_ERROR_NONE : SSL_get_error(w->ssl, r);
    ERR_clear_error();
    if (error == SSL_ERROR_NONE)
        return (ssize_t)n;
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
        return -1;
    *wants = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    return 0;
}

static int wait_for(const struct wire *w, short events, int stop_fd, int64_t deadline_ms,
                    struct err *err)
{
    struct pollfd fds[] = {{.fd = w->fd, .events = events}, {.fd = stop_fd, .events = POLLIN}};
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

static int shake_hands(struct wire *w, int stop_fd, int64_t deadline_ms, struct err *err)
{
    for (;;) {
        short wants = 0;
        ssize_t r = outcome(w, SSL_accept(w->ssl), 1, &wants);
        if (r > 0)
            return 0;
        if (r < 0)
            return err_set(err, ERR_UNAVAILABLE, "no handshake");
        int rc = wait_for(w, wants, stop_fd, deadline_ms, err);
        if (rc < 0)
            return rc;
    }
}

int wire_accept(struct wire_gate *g, int fd, int stop_fd, int64_t deadline_ms, struct wire **ret,
                struct err *err)
{
    struct wire *w = xcalloc(1, sizeof *w);
    *w = (struct wire){
        .ssl = SSL_new(g->ctx), .fd = fd, .read_wants = POLLIN, .write_wants = POLLOUT};
    set_up(fd);
    int rc = w->ssl && SSL_set_fd(w->ssl, fd) == 1
                 ? shake_hands(w, stop_fd, deadline_ms, err)
                 : err_set(err, ERR_UNAVAILABLE, "OpenSSL gives no connection");
    if (rc < 0)
        wire_free(w);
    else
        *ret = w;
    return rc;
}

void wire_free(struct wire *w)
{
    if (!w)
        return;
    SSL_free(w->ssl);
    close(w->fd);
    free(w);
}

int wire_client(const struct wire *w, struct subject *ret, struct err *err)
{
    X509 *certificate = SSL_get0_peer_certificate(w->ssl);
    long result = SSL_get_verify_result(w->ssl);
    if (!certificate)
        return err_set(err, ERR_UNAUTHORIZED, "no certificate");
    if (result != X509_V_OK)
        return err_set(err, ERR_UNAUTHORIZED, "certificate: %s",
                       X509_verify_cert_error_string(result));
    return subject_read(certificate, ret, err);
}

/* ---- bytes ---- */

ssize_t wire_read(struct wire *w, void *p, size_t n)
{
    size_t done = 0;
    w->read_wants = POLLIN;
    int r = SSL_read_ex(w->ssl, p, n, &done);
    return outcome(w, r, done, &w->read_wants);
}

ssize_t wire_write(struct wire *w, const void *p, size_t n)
{
    size_t done = 0;
    w->write_wants = POLLOUT;
    int r = SSL_write_ex(w->ssl, p, n, &done);
    return outcome(w, r, done, &w->write_wants);
}

int wire_fd(const struct wire *w)
{
    return w->fd;
}

short wire_events(const struct wire *w, bool is_reading, bool is_writing)
{
    return (short)((is_reading ? w->read_wants : 0) | (is_writing ? w->write_wants : 0));
}

bool wire_has_more(const struct wire *w)
{
    return SSL_pending(w->ssl) > 0;
}

ssize_t wire_receive(struct wire *w, void *p, size_t n, int stop_fd, int64_t deadline_ms,
                     struct err *err)
{
    ssize_t done;
    while ((done = wire_read(w, p, n)) == 0) {
        int rc = wait_for(w, w->read_wants, stop_fd, deadline_ms, err);
        if (rc < 0)
            return rc;
    }
    return done > 0 ? done : 0;
}

int wire_send(struct wire *w, const void *p, size_t n, int stop_fd, int64_t deadline_ms,
              struct err *err)
{
    const char *at = p;
    while (n > 0) {
        ssize_t done = wire_write(w, at, n);
        if (done < 0)
            return err_set(err, ERR_UNAVAILABLE, "the client is gone");
        at += done;
        n -= (size_t)done;
        int rc = done == 0 ? wait_for(w, w->write_wants, stop_fd, deadline_ms, err) : 0;
        if (rc < 0)
            return rc;
    }
    return 0;
}

void wire_end(struct wire *w, int stop_fd, int64_t deadline_ms)
{
    char dropped[4096];
    ssize_t n;
    SSL_shutdown(w->ssl);
    ERR_clear_error();
    shutdown(w->fd, SHUT_WR);
    while ((n = recv(w->fd, dropped, sizeof dropped, 0)) != 0) {
        if (n < 0 && errno != EINTR &&
            (errno != EAGAIN || wait_for(w, POLLIN, stop_fd, deadline_ms, NULL) < 0))
            break;
    }
}
