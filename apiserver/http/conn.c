/* The state machine of one connection. Everything is driven by two readiness flags a socket; bytes
 * are read into the pump's scratch buffer and kept only when the far side does not take them, so a
 * quiet connection owns no buffer, and a side that does not read stops the other. */
#include "apiserver/http/conn.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/http/pump.h"

#define TURNS 16               /* buffers moved before others have their turn */
#define BODY_TIMEOUT_MS 60000  /* from the end of a request's headers to the end of its body */
#define FLUSH_TIMEOUT_MS 30000 /* for a client to take the last answer */
#define STUCK_TIMEOUT_MS                                                                           \
    90000              /* for bytes sent ahead of an answer; longer than a handler may take */
#define LINGER_MS 1000 /* for a client to notice the end */
#define PAIR_BUFFER_BYTES (64 << 10) /* in the kernel, each way */

/* ---- closing ---- */

static void end_close(struct end *end)
{
    if (end->fd >= 0)
        close(end->fd); /* leaves the epoll set by itself */
    end->fd = -1;
    end->is_readable = end->is_writable = false;
}

static void backlog_fini(struct backlog *b)
{
    free(b->p);
    *b = (struct backlog){0};
}

void conn_kill(struct conn *c)
{
    if (c->state == CONN_DEAD)
        return;
    c->state = CONN_DEAD;
    end_close(&c->pair);
    end_close(&c->tcp);
    if (c->peer)
        peer_hang_up(c->peer);
    pump_need_ticks(c); /* the pump collects the dead at its next turn */
}

void conn_free(struct conn *c)
{
    SSL_free(c->ssl);
    peer_unref(c->peer);
    backlog_fini(&c->in);
    backlog_fini(&c->out);
    free(c);
}

static void set_deadline(struct conn *c, int64_t in_ms)
{
    c->deadline_ms = pump_now_ms() + in_ms;
    pump_need_ticks(c);
}

/* Everything was sent: says so, and waits for the client to have noticed. */
static void start_linger(struct conn *c)
{
    ERR_clear_error();
    SSL_shutdown(c->ssl);
    shutdown(c->tcp.fd, SHUT_WR);
    end_close(&c->pair);
    if (c->peer)
        peer_hang_up(c->peer);
    if (c->is_in_over) {
        conn_kill(c);
        return;
    }
    c->state = CONN_LINGER;
    set_deadline(c, LINGER_MS);
}

static void run_linger(struct conn *c)
{
    struct pump *p = c->pump;
    for (int i = 0; i < TURNS && c->tcp.is_readable; i++) {
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

enum io { IO_DONE, IO_WAIT, IO_END, IO_BROKEN };

/* What an SSL call's result means; clears the flag that has to come again. */
static enum io judge_ssl(struct conn *c, int r)
{
    switch (SSL_get_error(c->ssl, r)) {
    case SSL_ERROR_NONE:
        return IO_DONE;
    case SSL_ERROR_WANT_READ:
        c->tcp.is_readable = false;
        return IO_WAIT;
    case SSL_ERROR_WANT_WRITE:
        c->tcp.is_writable = false;
        return IO_WAIT;
    case SSL_ERROR_ZERO_RETURN:
        return IO_END;
    default:
        return IO_BROKEN;
    }
}

static bool start_http1(struct conn *c)
{
    int fds[2];
    int bytes = PAIR_BUFFER_BYTES;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0)
        return false;
    for (int i = 0; i < 2; i++)
        setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    c->pair.fd = fds[0];
    c->pair.is_writable = true;
    if (!pump_watch(c->pump, &c->pair)) {
        close(fds[1]);
        return false;
    }
    return mhd_add(c->pump->shared->mhd, fds[1], c->peer);
}

static const struct conn_protocol protocols[] = {
    {.name = "http/1.1", .start = start_http1},
};
const char *const conn_protocol_names[] = {"http/1.1", NULL};

static bool start_protocol(struct conn *c)
{
    const char *name = tls_protocol(c->pump->shared->tls, c->ssl);
    for (size_t i = 0; i < ARRAY_LEN(protocols); i++)
        if (strcmp(protocols[i].name, name) == 0)
            return protocols[i].start(c);
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
    if (r == 1) {
        open_conn(c);
    } else if (judge_ssl(c, r) != IO_WAIT) {
        const char *why = ERR_reason_error_string(ERR_peek_last_error());
        log_debug("handshake failed peer=%s reason=\"%s\"", c->addr, why ? why : "connection lost");
        conn_kill(c);
    }
}

/* ---- from the client to the HTTP side ---- */

/* Sends what it can; the rest becomes the backlog. False when nobody listens any more. */
static bool feed(struct conn *c, const char *p, size_t n)
{
    unsigned progress = peer_progress(c->peer);
    if (c->fed_progress != progress) {
        c->fed_progress = c->watched_progress = progress;
        c->watched_ms = pump_now_ms();
    }
    pump_need_ticks(c);
    size_t done = 0;
    while (done < n) {
        ssize_t r = send(c->pair.fd, p + done, n - done, MSG_NOSIGNAL);
        if (r > 0) {
            done += (size_t)r;
        } else if (errno == EAGAIN) {
            c->pair.is_writable = false;
            c->in = (struct backlog){.p = xmemdup(p + done, n - done), .n = n - done};
            return true;
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

/* The HTTP side closed: what the client still sends is of no interest. */
static void stop_feeding(struct conn *c)
{
    c->is_pair_shut = true;
    backlog_fini(&c->in);
}

static bool flush_in(struct conn *c)
{
    if (!c->in.p || !c->pair.is_writable)
        return false;
    struct backlog b = steal(&c->in);
    if (!feed(c, b.p + b.off, b.n - b.off))
        stop_feeding(c);
    bool is_moved = c->in.n < b.n - b.off;
    free(b.p);
    return is_moved;
}

/* For a stream the client's end of sending is its going: nobody half-closes a watch. A request
 * under way is still answered. */
static void end_input(struct conn *c)
{
    c->is_in_over = true;
    peer_hang_up(c->peer);
    pump_need_ticks(c);
}

static bool read_in(struct conn *c)
{
    struct pump *p = c->pump;
    if (c->in.p || c->is_in_over || c->is_pair_shut || !c->tcp.is_readable)
        return false;
    ERR_clear_error();
    int r = SSL_read(c->ssl, p->scratch, (int)sizeof p->scratch);
    if (r > 0) {
        if (!feed(c, p->scratch, (size_t)r))
            stop_feeding(c);
        return true;
    }
    switch (judge_ssl(c, r)) {
    case IO_END:
        end_input(c);
        return true;
    case IO_BROKEN:
        conn_kill(c);
        return false;
    case IO_DONE:
    case IO_WAIT:
    default:
        return false;
    }
}

/* Tells the HTTP side that no more comes, which makes it close. While it is busy it must not hear
 * of it, or it would close without an answer; and just after bytes were passed in, it may not have
 * looked at them yet (is_tick: it had time). */
static void shut_pair(struct conn *c, bool is_tick)
{
    if (!c->is_in_over || c->is_pair_shut || c->in.p)
        return;
    unsigned progress = peer_progress(c->peer);
    if (peer_phase_of(progress) == PEER_BUSY || (c->fed_progress == progress && !is_tick))
        return;
    shutdown(c->pair.fd, SHUT_WR);
    c->is_pair_shut = true;
}

/* ---- from the HTTP side to the client ---- */

/* As feed. False when the connection is broken (and dead). */
static bool push(struct conn *c, const char *p, size_t n)
{
    size_t done = 0;
    while (done < n) {
        ERR_clear_error();
        int r = SSL_write(c->ssl, p + done, (int)(n - done));
        if (r > 0) {
            done += (size_t)r;
            continue;
        }
        if (judge_ssl(c, r) != IO_WAIT) {
            conn_kill(c);
            return false;
        }
        c->out = (struct backlog){.p = xmemdup(p + done, n - done), .n = n - done};
        return true;
    }
    return true;
}

/* WANT_READ while writing (a key update) clears the readable flag; both flags are then tried at the
 * next event. */
static bool flush_out(struct conn *c)
{
    if (!c->out.p || !c->tcp.is_writable)
        return false;
    struct backlog b = steal(&c->out);
    bool is_moved = push(c, b.p + b.off, b.n - b.off) && c->out.n < b.n - b.off;
    free(b.p);
    return is_moved;
}

static bool read_out(struct conn *c)
{
    struct pump *p = c->pump;
    if (c->out.p || c->is_out_over || !c->pair.is_readable)
        return false;
    ssize_t n = recv(c->pair.fd, p->scratch, sizeof p->scratch, 0);
    if (n > 0)
        return push(c, p->scratch, (size_t)n);
    if (n < 0 && errno == EINTR)
        return true;
    if (n < 0 && errno == EAGAIN) {
        c->pair.is_readable = false;
        return false;
    }
    c->is_out_over = true; /* 0, or a reset because it left something unread */
    return false;
}

/* ---- all of it ---- */

static void run_open(struct conn *c)
{
    bool is_moved = true;
    for (int i = 0; i < TURNS && is_moved && c->state == CONN_OPEN; i++) {
        is_moved = flush_in(c);
        is_moved |= read_in(c);
        is_moved = c->state == CONN_OPEN && (flush_out(c) | is_moved);
        is_moved = c->state == CONN_OPEN && (read_out(c) | is_moved);
    }
    if (c->state != CONN_OPEN)
        return;
    shut_pair(c, false);
    if (c->is_out_over && !c->out.p)
        start_linger(c);
    else if (c->is_out_over && !c->deadline_ms)
        set_deadline(c, FLUSH_TIMEOUT_MS);
    else if (is_moved)
        pump_run_again(c);
}

void conn_run(struct conn *c)
{
    if (c->state == CONN_HANDSHAKE)
        run_handshake(c);
    if (c->state == CONN_OPEN)
        run_open(c);
    else if (c->state == CONN_LINGER)
        run_linger(c);
}

void conn_on_event(struct end *end, uint32_t events)
{
    struct conn *c = end->conn;
    if (c->state == CONN_DEAD)
        return;
    bool is_broken = events & (EPOLLERR | EPOLLHUP);
    end->is_readable |= is_broken || (events & (EPOLLIN | EPOLLRDHUP));
    end->is_writable |= is_broken || (events & EPOLLOUT);
    /* Known even while bytes before it wait because the HTTP side does not read. */
    if (end == &c->tcp && c->peer && (is_broken || (events & EPOLLRDHUP)))
        peer_hang_up(c->peer);
    conn_run(c);
}

/* Whether a phase lasts too long. */
static bool is_overdue(struct conn *c, unsigned progress, int64_t now_ms)
{
    int64_t age = now_ms - c->watched_ms;
    switch (peer_phase_of(progress)) {
    case PEER_IDLE:
        return c->fed_progress == progress && age > c->pump->shared->header_timeout_ms;
    case PEER_BODY:
        return age > BODY_TIMEOUT_MS;
    case PEER_BUSY:
    default:
        /* Handlers have their own deadlines, and so has writing. But behind bytes that nobody reads
         * we do not see a client go. */
        return c->in.p && age > STUCK_TIMEOUT_MS;
    }
}

static bool tick_open(struct conn *c, int64_t now_ms)
{
    unsigned progress = peer_progress(c->peer);
    if (progress != c->watched_progress) {
        c->watched_progress = progress;
        c->watched_ms = now_ms;
    }
    if (is_overdue(c, progress, now_ms)) {
        log_info("connection ended, request too slow peer=%s", c->addr);
        conn_kill(c);
        return true;
    }
    shut_pair(c, true);
    bool is_waiting = peer_phase_of(progress) == PEER_IDLE ? c->fed_progress == progress
                                                           : peer_phase_of(progress) == PEER_BODY;
    return is_waiting || c->in.p || c->deadline_ms || (c->is_in_over && !c->is_pair_shut);
}

bool conn_tick(struct conn *c, int64_t now_ms)
{
    if (c->state == CONN_DEAD)
        return true;
    if (c->deadline_ms && now_ms >= c->deadline_ms) {
        conn_kill(c);
        return true;
    }
    return c->state == CONN_OPEN ? tick_open(c, now_ms) : true;
}

void conn_end_if_idle(struct conn *c)
{
    if (c->state == CONN_HANDSHAKE) {
        conn_kill(c);
        return;
    }
    if (c->state != CONN_OPEN || c->in.p || c->out.p)
        return;
    unsigned progress = peer_progress(c->peer);
    if (peer_phase_of(progress) == PEER_IDLE && c->fed_progress != progress && !c->pair.is_readable)
        start_linger(c);
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
    c->ssl = tls_accept(pump->shared->tls, fd);
    if (!c->ssl || !pump_watch(pump, &c->tcp)) {
        end_close(&c->tcp);
        conn_free(c);
        return NULL;
    }
    set_deadline(c, pump->shared->handshake_timeout_ms);
    return c;
}
