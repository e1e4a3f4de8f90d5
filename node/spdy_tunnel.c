/* Source: client-go's tools/portforward, which makes such a tunnel; RFC 6455. */
#include "node/spdy_tunnel.h"

#include <stdlib.h>

#include "apiserver/base/mem.h"
#include "apiserver/base/websocket.h"
#include "node/spdy_session.h"

struct spdy_tunnel {
    struct session session; /* first; what its user holds */
    struct session *inner;
    struct websocket_reader reader;
    bool is_feeding; /* what the inner one says is taken when it has heard all */
    bool is_closed;  /* the websocket: nothing may follow */
};

static struct spdy_tunnel *of(struct session *s)
{
    return (struct spdy_tunnel *)s;
}

/* What the inner session has said becomes a message; its end closes the websocket. */
static void carry(struct spdy_tunnel *t)
{
    if (t->is_feeding || t->is_closed)
        return;
    if (t->inner->out.len > 0)
        websocket_print(&t->session.out, WEBSOCKET_BINARY, t->inner->out.data, t->inner->out.len);
    buf_clear(&t->inner->out);
    if (t->inner->is_over) {
        websocket_print_close(&t->session.out, WEBSOCKET_NORMAL);
        t->is_closed = t->session.is_over = true;
    }
}

static void on_part(void *ctx, const char *p, size_t n, bool is_first, bool is_last)
{
    (void)is_first, (void)is_last;
    struct spdy_tunnel *t = ctx;
    session_feed(t->inner, p, n);
}

static void on_ping(void *ctx, const char *p, size_t n)
{
    struct spdy_tunnel *t = ctx;
    websocket_print(&t->session.out, WEBSOCKET_PONG, p, n);
}

static void on_close(void *ctx, int code)
{
    struct spdy_tunnel *t = ctx;
    websocket_print_close(&t->session.out,
                          code == WEBSOCKET_BROKEN ? WEBSOCKET_BROKEN : WEBSOCKET_NORMAL);
    t->is_closed = t->session.is_over = true;
}

static const struct websocket_reader_ops reader_ops = {on_part, on_ping, on_close};

static void start(struct session *s)
{
    session_start(of(s)->inner);
    carry(of(s));
}

static void feed(struct session *s, const char *p, size_t n)
{
    struct spdy_tunnel *t = of(s);
    t->is_feeding = true;
    websocket_read(&t->reader, p, n);
    t->is_feeding = false;
    if (s->out.len > SPDY_UNREAD_MAX)
        session_close(t->inner);
    carry(t);
}

static size_t room(struct session *s, const struct stream *stream)
{
    size_t inner = session_room(of(s)->inner, stream), outer = SESSION_OUT_MAX - s->out.len;
    return inner < outer ? inner : outer;
}

static void send_data(struct session *s, struct stream *stream, const char *p, size_t n)
{
    session_send(of(s)->inner, stream, p, n);
    carry(of(s));
}

static void end(struct session *s, struct stream *stream)
{
    session_end(of(s)->inner, stream);
    carry(of(s));
}

static void close_session(struct session *s)
{
    session_close(of(s)->inner);
    carry(of(s));
}

static void free_session(struct session *s)
{
    struct spdy_tunnel *t = of(s);
    s->is_over = true;
    session_free(t->inner);
    buf_fini(&s->out);
    free(t);
}

static const struct session_ops ops = {
    .start = start,
    .feed = feed,
    .room = room,
    .send = send_data,
    .end = end,
    .close = close_session,
    .free = free_session,
};

struct session *spdy_tunnel_new(const struct session_wish *wish, const struct session_user *user,
                                void *ctx)
{
    struct spdy_tunnel *t = xcalloc(1, sizeof *t);
    t->session = (struct session){.ops = &ops, .user = user, .ctx = ctx};
    t->inner = spdy_session_new(wish, user, ctx);
    t->reader.ops = &reader_ops;
    t->reader.ctx = t;
    return &t->session;
}
