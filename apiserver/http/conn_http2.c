/* HTTP/2: what was decrypted goes straight into the session, what the session has to say is
 * encrypted, all on the pump's thread. The client is always read, or two sides that both wait for
 * the other to read would do so for ever; what that could make us keep has ceilings in the
 * session. */
#include "apiserver/base/log.h"
#include "apiserver/http/conn.h"
#include "apiserver/http/h2.h"
#include "apiserver/http/pump.h"

#define UNSENT_BYTES (2 << 20) /* for many streams */

static void notify(void *conn)
{
    pump_run_again(conn);
}

static bool start(struct conn *c)
{
    struct pump *p = c->pump;
    c->h2 = h2_new(p->shared->h2, c->peer, &p->box, &p->plain, notify, c);
    return c->h2 != NULL;
}

static bool read_in(struct conn *c)
{
    size_t n = 0;
    if (c->is_in_over || !c->tcp.is_readable)
        return false;
    switch (conn_receive(c, &n)) {
    case IO_DONE:
        c->is_in_over = !h2_feed(c->h2, c->pump->scratch, n);
        return true;
    case IO_END:
        c->is_in_over = true;
        h2_end_input(c->h2);
        return true;
    case IO_BROKEN:
        conn_kill(c);
        return false;
    case IO_WAIT:
    default:
        return false;
    }
}

static bool write_out(struct conn *c)
{
    struct pump *p = c->pump;
    size_t n = 0;
    bool is_moved = false;
    while (conn_has_room(c) && (n = h2_read(c->h2, p->scratch, sizeof p->scratch)) > 0)
        is_moved = conn_send(c, p->scratch, n);
    return is_moved;
}

static void run(struct conn *c)
{
    bool is_moved = true;
    for (int i = 0; i < CONN_TURNS && is_moved && c->state == CONN_OPEN; i++) {
        is_moved = read_in(c);
        is_moved = c->state == CONN_OPEN && (write_out(c) | is_moved);
        is_moved = c->state == CONN_OPEN && (conn_flush(c) | is_moved);
    }
    if (c->state != CONN_OPEN)
        return;
    pump_need_ticks(c);
    if (c->out.len == 0 && h2_is_over(c->h2))
        conn_linger(c);
    else if (is_moved)
        pump_run_again(c);
}

/* Then at once what the tick made it say. */
static bool tick(struct conn *c, int64_t now_ms)
{
    bool needs_more = h2_tick(c->h2, now_ms);
    run(c);
    return needs_more;
}

static void end_if_idle(struct conn *c)
{
    h2_drain(c->h2);
    run(c);
}

/* Not who has just come and is about to ask: it would have come in vain. */
static void send_away(struct conn *c)
{
    if (h2_is_used(c->h2))
        end_if_idle(c);
}

const struct conn_protocol conn_http2 = {.name = "h2",
                                         .unsent_bytes = UNSENT_BYTES,
                                         .start = start,
                                         .run = run,
                                         .tick = tick,
                                         .end_if_idle = end_if_idle,
                                         .send_away = send_away};
