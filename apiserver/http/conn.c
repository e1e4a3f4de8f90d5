/* What the protocols have in common: the handshake, sending and receiving, the end. Everything is
 * driven by two readiness flags a socket; bytes are read into the pump's scratch buffer and kept
 * only when the far side does not take them, so a quiet connection owns no buffer. */
#include "apiserver/http/conn.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/metric.h"
#include "apiserver/http/h2.h"
#include "apiserver/http/pump.h"

#define LINGER_MS 1000 /* for a client to notice the end */
/* Sent at once, about: what the kernel makes one packet of. */
#define OUT_BYTES ((size_t)64 << 10)

static struct metric open_connections = {
    .name = "agent_sandbox_http_connections",
    .help = "Connections that are open, by protocol.",
    .type = METRIC_GAUGE,
    .labels = {"protocol"},
};

static void count_open(const struct conn *c, double by)
{
    if (c->protocol)
        metric_add(&open_connections, by, (const char *[]){c->protocol->name});
}

/* ---- closing ---- */

static void hang_up(struct conn *c)
{
    if (c->protocol && c->protocol->hang_up)
        c->protocol->hang_up(c);
}

static void end_close(struct end *end)
{
    if (end->fd >= 0)
        close(end->fd); /* leaves the epoll set by itself */
    end->fd = -1;
    end->is_readable = end->is_writable = false;
}

void conn_kill(struct conn *c)
{
    if (c->state == CONN_DEAD)
        return;
    c->state = CONN_DEAD;
    end_close(&c->pair);
    end_close(&c->tcp);
    hang_up(c);
    pump_need_ticks(c); /* the pump collects the dead at its next turn */
}

void conn_free(struct conn *c)
{
    count_open(c, -1);
    SSL_free(c->ssl);
    h2_free(c->h2);
    peer_unref(c->peer);
    conn_backlog_fini(&c->in);
    buf_fini(&c->out);
    free(c);
}

void conn_set_deadline(struct conn *c, int64_t in_ms)
{
    c->deadline_ms = pump_now_ms() + in_ms;
    pump_need_ticks(c);
}

void conn_linger(struct conn *c)
{
    ERR_clear_error();
    SSL_shutdown(c->ssl);
    conn_flush(c);
    shutdown(c->tcp.fd, SHUT_WR);
    end_close(&c->pair);
    hang_up(c);
    if (c->is_in_over) {
        conn_kill(c);
        return;
    }
    c->state = CONN_LINGER;
    conn_set_deadline(c, LINGER_MS);
}

static void run_linger(struct conn *c)
{
    struct pump *p = c->pump;
    for (int i = 0; i < CONN_TURNS && c->tcp.is_readable; i++) {
        ssize_t n = recv(c->tcp.fd, p->scratch, sizeof p->scratch, 0);
        if (n > 0 || (n < 0 && errno == EINTR))
            continue;
        if (n < 0 && errno == EAGAIN)
            c->tcp.is_readable = false;
        else
            conn_kill(c);
    }
    if (c->tcp.is_readable)
        pump_run_again(c);
}

/* ---- TLS ---- */

/* What an SSL call's result means. Sending is no concern of it, but for alerts that are to go
 * out. */
static enum conn_io judge_ssl(struct conn *c, int r)
{
    switch (SSL_get_error(c->ssl, r)) {
    case SSL_ERROR_NONE:
        return IO_DONE;
    case SSL_ERROR_WANT_READ:
        c->tcp.is_readable = false;
        return IO_WAIT;
    case SSL_ERROR_ZERO_RETURN:
        return IO_END;
    default:
        conn_flush(c);
        return IO_BROKEN;
    }
}

enum conn_io conn_receive(struct conn *c, size_t *ret_n)
{
    struct pump *p = c->pump;
    ERR_clear_error();
    int r = SSL_read(c->ssl, p->scratch, (int)sizeof p->scratch);
    if (r <= 0)
        return judge_ssl(c, r);
    *ret_n = (size_t)r;
    return IO_DONE;
}

bool conn_send(struct conn *c, const char *p, size_t n)
{
    if (!c->out.data)
        buf_borrow(&c->out, &c->pump->sealed);
    while (n > 0) {
        ERR_clear_error();
        int r = SSL_write(c->ssl, p, (int)(n < INT_MAX ? n : INT_MAX));
        if (r <= 0) {
            conn_kill(c);
            return false;
        }
        p += r;
        n -= (size_t)r;
    }
    return true;
}

bool conn_has_room(const struct conn *c)
{
    return c->tcp.is_writable && c->out.len < OUT_BYTES;
}

/* A quiet connection holds no memory. */
bool conn_flush(struct conn *c)
{
    size_t before = c->out_off;
    while (c->out_off < c->out.len && c->tcp.is_writable) {
        ssize_t n =
            send(c->tcp.fd, c->out.data + c->out_off, c->out.len - c->out_off, MSG_NOSIGNAL);
        if (n > 0) {
            c->out_off += (size_t)n;
        } else if (errno == EAGAIN) {
            c->tcp.is_writable = false;
        } else if (errno != EINTR) {
            conn_kill(c);
            return false;
        }
    }
    bool is_moved = c->out_off > before;
    if (c->out_off == c->out.len) {
        buf_give_back(&c->out, &c->pump->sealed, FLOW_SPARE);
        c->out_off = 0;
        c->out_since_ms = 0;
    } else if (is_moved || !c->out_since_ms) {
        c->out_since_ms = pump_now_ms();
        pump_need_ticks(c);
    }
    return is_moved;
}

static const struct conn_protocol *const protocols[] = {&conn_http2, &conn_http1};
const char *const conn_protocol_names[] = {"h2", "http/1.1", NULL};

/* What waits in the kernel is bounded by what was not sent yet, not by SO_SNDBUF, which counts what
 * is on its way as well and so would limit what a client far away can get; on its way is never more
 * than the client's side has room for. Not too little: what waits is all that goes out until this
 * thread has its turn again. */
static void bound_unsent(const struct conn *c)
{
    int n = c->protocol->unsent_bytes;
    setsockopt(c->tcp.fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &n, sizeof n);
}

static bool start_protocol(struct conn *c)
{
    const char *name = tls_protocol(c->pump->shared->tls, c->ssl);
    for (size_t i = 0; i < ARRAY_LEN(protocols); i++) {
        if (strcmp(protocols[i]->name, name) != 0)
            continue;
        c->protocol = protocols[i];
        count_open(c, 1);
        bound_unsent(c);
        return c->protocol->start(c);
    }
    return false;
}

static void open_conn(struct conn *c)
{
    size_t n = 0;
    struct cert_der *chain = tls_chain(c->ssl, &n);
    c->peer = peer_new(chain, n, c->addr);
    c->state = CONN_OPEN;
    c->deadline_ms = 0;
    if (!start_protocol(c)) {
        log_warn("connection ended, no descriptors for it peer=%s", c->addr);
        conn_kill(c);
    }
}

static void run_handshake(struct conn *c)
{
    ERR_clear_error();
    int r = SSL_do_handshake(c->ssl);
    conn_flush(c);
    if (c->state == CONN_DEAD)
        return;
    if (r == 1) {
        open_conn(c);
    } else if (judge_ssl(c, r) != IO_WAIT) {
        const char *why = ERR_reason_error_string(ERR_peek_last_error());
        log_debug("handshake failed peer=%s reason=\"%s\"", c->addr, why ? why : "connection lost");
        conn_kill(c);
    }
}

/* ---- all of it ---- */

void conn_run(struct conn *c)
{
    if (c->state == CONN_HANDSHAKE)
        run_handshake(c);
    if (c->state == CONN_OPEN)
        c->protocol->run(c);
    else if (c->state == CONN_LINGER)
        run_linger(c);
}

/* By the kernel: what was sent was not acknowledged, or could not be sent, for too long. */
static bool is_timed_out(const struct conn *c)
{
    int error = 0;
    socklen_t n = sizeof error;
    return getsockopt(c->tcp.fd, SOL_SOCKET, SO_ERROR, &error, &n) == 0 && error == ETIMEDOUT;
}

static void cut(struct conn *c)
{
    log_info("connection ended, client takes nothing peer=%s", c->addr);
    conn_kill(c);
}

void conn_on_event(struct end *end, uint32_t events)
{
    struct conn *c = end->conn;
    if (c->state == CONN_DEAD)
        return;
    bool is_broken = events & (EPOLLERR | EPOLLHUP);
    end->is_readable |= is_broken || (events & (EPOLLIN | EPOLLRDHUP));
    end->is_writable |= is_broken || (events & EPOLLOUT);
    if (end == &c->tcp && (events & EPOLLERR) && is_timed_out(c)) {
        cut(c);
        return;
    }
    /* Known even while bytes before it wait because the HTTP side does not read. */
    if (end == &c->tcp && (is_broken || (events & EPOLLRDHUP)))
        hang_up(c);
    conn_run(c);
}

bool conn_tick(struct conn *c, int64_t now_ms)
{
    if (c->state == CONN_DEAD)
        return true;
    if (c->deadline_ms && now_ms >= c->deadline_ms) {
        conn_kill(c);
        return true;
    }
    if (c->state != CONN_OPEN)
        return true;
    if (c->out_since_ms && !c->is_raw &&
        now_ms - c->out_since_ms > c->pump->shared->idle_timeout_ms) {
        cut(c);
        return true;
    }
    bool needs_more = c->protocol->tick(c, now_ms);
    return needs_more || c->out_since_ms || c->state != CONN_OPEN;
}

void conn_send_away(struct conn *c)
{
    if (c->state == CONN_OPEN)
        c->protocol->send_away(c);
}

void conn_end_if_idle(struct conn *c)
{
    if (c->state == CONN_HANDSHAKE)
        conn_kill(c);
    else if (c->state == CONN_OPEN)
        c->protocol->end_if_idle(c);
}

static void init_end(struct conn *c, struct end *end, int fd)
{
    *end = (struct end){.conn = c, .fd = fd};
}

struct conn *conn_new(struct pump *pump, int fd, const char *addr)
{
    struct conn *c = xcalloc(1, sizeof *c);
    c->pump = pump;
    init_end(c, &c->tcp, fd);
    init_end(c, &c->pair, -1);
    snprintf(c->addr, sizeof c->addr, "%s", addr);
    c->ssl = tls_accept(pump->shared->tls, fd, &c->out);
    if (!c->ssl || !pump_watch(pump, &c->tcp)) {
        end_close(&c->tcp);
        conn_free(c);
        return NULL;
    }
    conn_set_deadline(c, pump->shared->handshake_timeout_ms);
    return c;
}
