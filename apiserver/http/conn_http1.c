/* HTTP/1.1: bytes go between the client and libmicrohttpd through a socket pair, whose far end is
 * libmicrohttpd's own connection; a side that does not read stops the other. What libmicrohttpd is
 * at, for deadlines and for a client that half-closes, is known by the peer's phase.
 *
 * An answer that is a stream is handed over once its head is in the pair, while libmicrohttpd's
 * connection sleeps: what the stream says is put into chunks and encrypted here. At its end
 * libmicrohttpd goes on: it sends the last chunk through the pair, and takes the next request.
 *
 * So it is with a stream that has the connection for itself, a watch over a websocket: it is no
 * chunks then, and hears what the client sends, which is found at the far end of the pair.
 *
 * A connection that was upgraded otherwise has somebody else at the far end of the pair, who may
 * send nothing and take nothing for hours. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/http/conn.h"
#include "apiserver/http/pump.h"

#define BODY_TIMEOUT_MS 60000  /* from the end of a request's headers to the end of its body */
#define FLUSH_TIMEOUT_MS 30000 /* for a client to take the last answer */
/* For bytes sent ahead of an answer; longer than a handler may take. */
#define STUCK_TIMEOUT_MS 90000
#define UNSENT_BYTES (512 << 10)
#define PAIR_BUFFER_BYTES (64 << 10) /* in the kernel, each way */
#define CHUNK_HEAD_MAX 10            /* bytes: eight digits and the line's end */

static void open_handover(struct mail *m);

static bool start(struct conn *c)
{
    int fds[2];
    int bytes = PAIR_BUFFER_BYTES;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0)
        return false;
    for (int i = 0; i < 2; i++)
        setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    c->pair.fd = fds[0];
    c->pair.is_writable = true;
    c->handed.open = open_handover;
    c->peer->box = &c->pump->box;
    c->peer->mail = &c->handed;
    if (!pump_watch(c->pump, &c->pair)) {
        close(fds[1]);
        return false;
    }
    return mhd_add(c->pump->shared->mhd, fds[1], c->peer);
}

/* ---- streams ---- */

static void on_wake(struct mail *m)
{
    struct conn *c = (struct conn *)(void *)((char *)m - offsetof(struct conn, flow));
    c->is_flow_ready = true;
    pump_run_again(c);
}

static void take_over(struct conn *c)
{
    struct handover h;
    if (!peer_take_over(c->peer, &h))
        return;
    c->handover = h;
    flow_start(&c->flow, c->handover.stream, &c->pump->box, on_wake);
    c->is_flow_ready = true;
}

/* The head may be in the pair unread, and epoll may not have told of it yet. */
static void open_handover(struct mail *m)
{
    struct conn *c = (struct conn *)(void *)((char *)m - offsetof(struct conn, handed));
    take_over(c);
    c->pair.is_readable = true;
    pump_run_again(c);
}

static void end_stream(struct conn *c)
{
    if (!c->flow.stream)
        return;
    flow_fini(&c->flow);
    c->handover.resume(c->handover.sleeper);
}

/* A raw connection whose client went while bytes of it still wait to be taken: only the end of the
 * pair tells who does not take them. */
static void end_lost(struct conn *c)
{
    char any;
    if (c->is_raw && c->tcp.fd >= 0 && recv(c->tcp.fd, &any, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
        errno != EAGAIN && errno != EINTR)
        conn_kill(c);
}

/* A stream that is on its way to us is ended, too; what the HTTP side sends behind it would tell a
 * client that still reads that it was whole. */
static void hang_up(struct conn *c)
{
    end_lost(c);
    peer_hang_up(c->peer);
    mailbox_cancel(&c->pump->box, &c->handed);
    take_over(c);
    c->is_out_over |= c->flow.stream != NULL;
    end_stream(c);
}

/* b holds room for the head of a chunk, and its data. */
static bool send_chunk(struct conn *c, struct buf *b)
{
    char head[CHUNK_HEAD_MAX + 1];
    int n = snprintf(head, sizeof head, "%zx\r\n", b->len - CHUNK_HEAD_MAX);
    memcpy(b->data + CHUNK_HEAD_MAX - n, head, (size_t)n);
    buf_puts(b, "\r\n");
    return conn_send(c, b->data + CHUNK_HEAD_MAX - n, b->len - CHUNK_HEAD_MAX + (size_t)n);
}

/* What the stream has to say now. False when that is nothing. */
static bool send_some(struct conn *c, struct buf *b)
{
    static const char room[CHUNK_HEAD_MAX];
    buf_append(b, room, sizeof room);
    c->is_flow_ready = flow_pull(&c->flow, b);
    if (buf_failed(b)) {
        log_warn("connection ended, too much to send at once peer=%s", c->addr);
        conn_kill(c);
    } else if (b->len > sizeof room) {
        return c->handover.is_chunked ? send_chunk(c, b)
                                      : conn_send(c, b->data + sizeof room, b->len - sizeof room);
    }
    return false;
}

/* After the head, which is out once the pair is empty; nothing else comes from there now. */
static bool write_stream(struct conn *c)
{
    bool is_moved = false;
    while (c->flow.stream && c->is_flow_ready && !c->pair.is_readable && conn_has_room(c)) {
        struct buf chunk;
        buf_borrow(&chunk, &c->pump->plain);
        is_moved |= send_some(c, &chunk);
        buf_give_back(&chunk, &c->pump->plain, FLOW_SPARE);
        if (c->flow.is_over)
            end_stream(c);
    }
    return is_moved;
}

/* What the client says to its stream. */
static bool hear(struct conn *c)
{
    struct stream *s = c->flow.stream;
    if (!s || !s->take)
        return false;
    ssize_t n = recv(c->handover.fd, c->pump->scratch, sizeof c->pump->scratch, MSG_DONTWAIT);
    if (n <= 0)
        return false;
    s->take(s, c->pump->scratch, (size_t)n);
    c->is_flow_ready = true;
    return true;
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
    conn_backlog_fini(&c->in);
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
    hang_up(c);
    pump_need_ticks(c);
}

static bool read_in(struct conn *c)
{
    size_t n = 0;
    if (c->in.p || c->is_in_over || c->is_pair_shut || !c->tcp.is_readable)
        return false;
    switch (conn_receive(c, &n)) {
    case IO_DONE:
        if (!feed(c, c->pump->scratch, n))
            stop_feeding(c);
        return true;
    case IO_END:
        end_input(c);
        return true;
    case IO_BROKEN:
        conn_kill(c);
        return false;
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
    enum peer_phase phase = peer_phase_of(progress);
    bool may_be_unseen = phase != PEER_RAW && c->fed_progress == progress && !is_tick;
    if (phase == PEER_BUSY || may_be_unseen)
        return;
    shutdown(c->pair.fd, SHUT_WR);
    c->is_pair_shut = true;
}

/* ---- from the HTTP side to the client ---- */

static bool read_out(struct conn *c)
{
    struct pump *p = c->pump;
    if (!conn_has_room(c) || c->is_out_over || !c->pair.is_readable)
        return false;
    ssize_t n = recv(c->pair.fd, p->scratch, sizeof p->scratch, 0);
    if (n > 0)
        return conn_send(c, p->scratch, (size_t)n);
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

/* The kernel, too, cuts off who leaves its window closed. */
static void notice_raw(struct conn *c)
{
    int never = 0;
    if (c->is_raw || peer_phase_of(peer_progress(c->peer)) != PEER_RAW)
        return;
    c->is_raw = true;
    setsockopt(c->tcp.fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &never, sizeof never);
}

static void run(struct conn *c)
{
    bool is_moved = true;
    notice_raw(c);
    for (int i = 0; i < CONN_TURNS && is_moved && c->state == CONN_OPEN; i++) {
        is_moved = flush_in(c);
        is_moved |= read_in(c);
        is_moved = c->state == CONN_OPEN && (hear(c) | is_moved);
        while (c->state == CONN_OPEN && read_out(c))
            is_moved = true;
        is_moved = c->state == CONN_OPEN && (write_stream(c) | is_moved);
        is_moved = c->state == CONN_OPEN && (conn_flush(c) | is_moved);
    }
    if (c->state != CONN_OPEN)
        return;
    shut_pair(c, false);
    if (c->is_out_over && c->out.len == 0)
        conn_linger(c);
    else if (c->is_out_over && !c->deadline_ms)
        conn_set_deadline(c, FLUSH_TIMEOUT_MS);
    else if (is_moved)
        pump_run_again(c);
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
    case PEER_RAW:
        return false;
    case PEER_BUSY:
    default:
        /* Handlers have their own deadlines, and so has writing. But behind bytes that nobody reads
         * we do not see a client go. */
        return c->in.p && age > STUCK_TIMEOUT_MS;
    }
}

static bool tick(struct conn *c, int64_t now_ms)
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
    return is_waiting || (c->in.p && !c->is_raw) || c->deadline_ms ||
           (c->is_in_over && !c->is_pair_shut);
}

static bool is_idle(struct conn *c)
{
    unsigned progress = peer_progress(c->peer);
    return peer_phase_of(progress) == PEER_IDLE && c->fed_progress != progress && !c->in.p &&
           c->out.len == 0;
}

/* The HTTP side closes the connection after its next answer. */
static void send_away(struct conn *c)
{
    if (!c->flow.stream)
        return;
    c->flow.is_over = c->is_flow_ready = true;
    run(c);
}

/* The end of an answer is in the pair by the time the HTTP side calls itself idle, but epoll may
 * not have told of it yet: it is looked for, or a stream would lose its last chunk. */
static void end_if_idle(struct conn *c)
{
    send_away(c);
    if (!is_idle(c))
        return;
    c->pair.is_readable = true;
    run(c);
    if (c->state == CONN_OPEN && !c->pair.is_readable && is_idle(c))
        conn_linger(c);
}

const struct conn_protocol conn_http1 = {.name = "http/1.1",
                                         .unsent_bytes = UNSENT_BYTES,
                                         .start = start,
                                         .run = run,
                                         .tick = tick,
                                         .end_if_idle = end_if_idle,
                                         .send_away = send_away,
                                         .hang_up = hang_up};
