#include "node/carry.h"

#include "apiserver/base/clock.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"

#define PIECE ((size_t)32 << 10) /* bytes read at once */
#define PIECES 8                 /* of one turn */
/* Source: the kubelet's streamingConnectionIdleTimeout. */
#define IDLE_MS ((int64_t)4 * 3600 * 1000)
#define GOODBYE_MS 5000 /* for a client to take the last bytes, and to go */

size_t waits_add(struct waits *w, int fd, short events)
{
    if (w->n == w->cap) {
        w->cap = w->cap ? 2 * w->cap : 16;
        w->v = xreallocarray(w->v, w->cap, sizeof *w->v);
    }
    w->v[w->n] = (struct pollfd){.fd = fd, .events = events};
    return w->n++;
}

short waits_result(const struct waits *w, size_t at)
{
    return at < w->n ? w->v[at].revents : 0;
}

void waits_until(struct waits *w, int64_t at_ms)
{
    if (at_ms < w->until_ms)
        w->until_ms = at_ms;
}

/* ---- one turn ---- */

struct turn {
    struct carry *c;
    struct waits waits;
    size_t sent; /* of out */
    int64_t moved_ms;
    bool is_gone;
};

static int64_t now_ms(void)
{
    return clock_monotonic_ms(&clock_system);
}

/* False once the client is gone. */
static void send_out(struct turn *t)
{
    struct buf *out = &t->c->session->out;
    while (!t->is_gone && t->sent < out->len) {
        ssize_t n = tls_conn_write(t->c->conn, out->data + t->sent, out->len - t->sent);
        t->is_gone = n < 0;
        if (n <= 0)
            break;
        t->sent += (size_t)n;
        t->moved_ms = now_ms();
    }
    /* Moved together when half of it is sent, so that no byte is moved often. */
    if (t->sent * 2 >= out->len && t->sent > 0) {
        out->len -= t->sent;
        memmove(out->data, out->data + t->sent, out->len);
        t->sent = 0;
    }
    t->is_gone = t->is_gone || buf_failed(out);
}

static bool is_reading(const struct turn *t)
{
    const struct session *s = t->c->session;
    return !s->is_over && s->out.len < 2 * SESSION_OUT_MAX && !t->c->user->is_full(t->c->ctx);
}

static void read_in(struct turn *t)
{
    char piece[PIECE];
    for (int i = 0; i < PIECES && !t->is_gone && is_reading(t); i++) {
        ssize_t n = tls_conn_read(t->c->conn, piece, sizeof piece);
        t->is_gone = n < 0;
        if (n <= 0)
            break;
        session_feed(t->c->session, piece, (size_t)n);
        t->moved_ms = now_ms();
    }
}

static int timeout_of(const struct turn *t, bool has_more)
{
    int64_t left_ms = t->waits.until_ms - now_ms();
    if (has_more || left_ms <= 0)
        return 0;
    return left_ms > INT32_MAX ? INT32_MAX : (int)left_ms;
}

/* False when the node ends. */
static bool wait_for_news(struct turn *t)
{
    struct waits *w = &t->waits;
    bool reads = is_reading(t);
    w->n = 0;
    w->until_ms = t->moved_ms + IDLE_MS;
    waits_add(w, t->c->stop_fd, POLLIN);
    waits_add(w, tls_conn_fd(t->c->conn),
              tls_conn_events(t->c->conn, reads, t->c->session->out.len > 0));
    t->c->user->wait(t->c->ctx, w);
    poll(w->v, w->n, timeout_of(t, reads && tls_conn_has_more(t->c->conn)));
    /* A connection that broke is heard of though nothing is asked of it. */
    t->is_gone = t->is_gone || (!reads && (waits_result(w, 1) & (POLLERR | POLLHUP)));
    return waits_result(w, 0) == 0;
}

/* The client has the last word: bytes of its that nobody has read would take with them what it has
 * not read yet. */
static void say_goodbye(struct turn *t)
{
    int64_t until_ms = now_ms() + GOODBYE_MS;
    struct session *s = t->c->session;
    session_close(s);
    if (!t->is_gone && tls_conn_send(t->c->conn, buf_cstr(&s->out) + t->sent, s->out.len - t->sent,
                                     t->c->stop_fd, until_ms, NULL) == 0)
        tls_conn_end(t->c->conn, t->c->stop_fd, until_ms);
}

void carry(struct carry *c, const char *first, size_t n)
{
    struct turn t = {.c = c, .moved_ms = now_ms()};
    session_start(c->session);
    session_feed(c->session, first, n);
    do { /* what is waited for is what is left to do after all three */
        read_in(&t);
        c->user->act(c->ctx, &t.waits);
        send_out(&t);
    } while (!t.is_gone && !c->session->is_over && now_ms() < t.moved_ms + IDLE_MS &&
             wait_for_news(&t));
    say_goodbye(&t);
    free(t.waits.v);
}
