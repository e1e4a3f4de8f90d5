/* OpenSSL on a socket that does not block. */
#include "node/link.h"

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
#define UNSENT_MS 60000 /* the same, while something is on its way to it */

struct link_gate {
    SSL_CTX *ctx;
};

struct link {
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

int link_gate_new(const char *cert_file, const char *key_file, const char *ca_file,
                  struct link_gate **ret, struct err *err)
{
    static const unsigned char id[] = "sandbox-node";
    struct link_gate *g = xcalloc(1, sizeof *g);
    int rc = secure_context(TLS_server_method(), cert_file, key_file, &g->ctx, err);
    if (rc == 0 && SSL_CTX_load_verify_locations(g->ctx, ca_file, NULL) != 1)
        rc = secure_failed(err, "authorities", ca_file);
    if (rc < 0) {
        link_gate_free(g);
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

void link_gate_free(struct link_gate *g)
{
    if (!g)
        return;
    SSL_CTX_free(g->ctx);
    free(g);
}

/* ---- waiting ---- */

/* What a call of OpenSSL came to: as link_read and link_write. */
static ssize_t outcome(struct link *l, int r, size_t n, short *wants)
{
    int error = r == 1 ? SSL_ERROR_NONE : SSL_get_error(l->ssl, r);
    ERR_clear_error();
    if (error == SSL_ERROR_NONE)
        return (ssize_t)n;
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE)
        return -1;
    *wants = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    return 0;
}

static int wait_for(const struct link *l, short events, int stop_fd, int64_t deadline_ms,
                    struct err *err)
{
    struct pollfd fds[] = {{.fd = l->fd, .events = events}, {.fd = stop_fd, .events = POLLIN}};
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
    const int yes = 1, silent = SILENT_S, again = AGAIN_S, tries = TRIES, unsent = UNSENT_MS;
    fcntl(fd, F_SETFL, O_NONBLOCK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &silent, sizeof silent);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &again, sizeof again);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof tries);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unsent, sizeof unsent);
}

static int shake_hands(struct link *l, int stop_fd, int64_t deadline_ms, struct err *err)
{
    for (;;) {
        short wants = 0;
        ssize_t r = outcome(l, SSL_accept(l->ssl), 1, &wants);
        if (r > 0)
            return 0;
        if (r < 0)
            return err_set(err, ERR_UNAVAILABLE, "no handshake");
        int rc = wait_for(l, wants, stop_fd, deadline_ms, err);
        if (rc < 0)
            return rc;
    }
}

int link_accept(struct link_gate *g, int fd, int stop_fd, int64_t deadline_ms, struct link **ret,
                struct err *err)
{
    struct link *l = xcalloc(1, sizeof *l);
    *l = (struct link){
        .ssl = SSL_new(g->ctx), .fd = fd, .read_wants = POLLIN, .write_wants = POLLOUT};
    set_up(fd);
    int rc = l->ssl && SSL_set_fd(l->ssl, fd) == 1
                 ? shake_hands(l, stop_fd, deadline_ms, err)
                 : err_set(err, ERR_UNAVAILABLE, "OpenSSL gives no connection");
    if (rc < 0)
        link_free(l);
    else
        *ret = l;
    return rc;
}

void link_free(struct link *l)
{
    if (!l)
        return;
    if (l->ssl && SSL_is_init_finished(l->ssl))
        SSL_shutdown(l->ssl); /* a word of good-bye, if there is room for it */
    ERR_clear_error();
    SSL_free(l->ssl);
    close(l->fd);
    free(l);
}

int link_client(const struct link *l, struct subject *ret, struct err *err)
{
    X509 *certificate = SSL_get0_peer_certificate(l->ssl);
    long result = SSL_get_verify_result(l->ssl);
    if (!certificate)
        return err_set(err, ERR_UNAUTHORIZED, "no certificate");
    if (result != X509_V_OK)
        return err_set(err, ERR_UNAUTHORIZED, "certificate: %s",
                       X509_verify_cert_error_string(result));
    return subject_read(certificate, ret, err);
}

/* ---- bytes ---- */

ssize_t link_read(struct link *l, void *p, size_t n)
{
    size_t done = 0;
    l->read_wants = POLLIN;
    return outcome(l, SSL_read_ex(l->ssl, p, n, &done), done, &l->read_wants);
}

ssize_t link_write(struct link *l, const void *p, size_t n)
{
    size_t done = 0;
    l->write_wants = POLLOUT;
    return outcome(l, SSL_write_ex(l->ssl, p, n, &done), done, &l->write_wants);
}

int link_fd(const struct link *l)
{
    return l->fd;
}

short link_events(const struct link *l, bool is_reading, bool is_writing)
{
    return (short)((is_reading ? l->read_wants : 0) | (is_writing ? l->write_wants : 0));
}

bool link_has_more(const struct link *l)
{
    return SSL_pending(l->ssl) > 0;
}

int link_send(struct link *l, const void *p, size_t n, int stop_fd, int64_t deadline_ms,
              struct err *err)
{
    const char *at = p;
    while (n > 0) {
        ssize_t done = link_write(l, at, n);
        if (done < 0)
            return err_set(err, ERR_UNAVAILABLE, "the client is gone");
        at += done;
        n -= (size_t)done;
        int rc = done == 0 ? wait_for(l, l->write_wants, stop_fd, deadline_ms, err) : 0;
        if (rc < 0)
            return rc;
    }
    return 0;
}
