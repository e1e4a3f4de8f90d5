/* Sessions over websockets: the first byte of each message is the number of a channel, and each
 * channel is a stream. Source of numbers and subprotocols: Kubernetes' remotecommand and
 * portforward packages. */
#include <strings.h>

#include "apiserver/base/mem.h"
#include "apiserver/base/websocket.h"
#include "node/head.h"
#include "node/session.h"
#include "node/spdy_tunnel.h"

#define PORTS_MAX 100 /* each takes two channels of 255 */
#define CHANNELS_MAX (2 * PORTS_MAX)
#define CHANNEL_CLOSE 255              /* v5: the byte behind it is the channel that ends */
#define CHANNEL_UNKNOWN (-1)           /* the message's first byte did not come yet */
#define CHANNEL_NOBODY (-2)            /* what is left of the message is not for anybody */
#define FRAME_MAX ((size_t)32 << 10)   /* bytes in a frame that we send */
#define BUSY_MAX (2 * SESSION_OUT_MAX) /* from there on pings are not answered */

/* What a client may ask for, the first of its own list that is here. Without a list: the oldest for
 * commands, the newest for ports. */
static const struct subprotocol {
    const char *name;
    bool is_for_ports, has_status, has_close;
    bool is_tunnel; /* no channels: SPDY inside */
} subprotocols[] = {
    {"v5.channel.k8s.io", false, true, true},
    {"v4.channel.k8s.io", false, true, false},
    {"channel.k8s.io", false, false, false},
    {SPDY_TUNNEL_SUBPROTOCOL, true, false, false, .is_tunnel = true},
    {"v4.channel.k8s.io", true, true, false},
};

/* Numbers of the channels of commands. */
static const enum stream_kind command_channels[] = {STREAM_STDIN, STREAM_STDOUT, STREAM_STDERR,
                                                    STREAM_ERROR, STREAM_RESIZE};

struct channels {
    struct session session; /* first */
    struct websocket_reader reader;
    bool has_close, is_for_ports;
    struct stream streams[CHANNELS_MAX];
    bool is_there[CHANNELS_MAX];
    size_t n;
    int channel; /* of the message that is being read */
};

static struct channels *of(struct session *s)
{
    return (struct channels *)s;
}

/* ---- streams ---- */

static void drop(struct channels *c, struct stream *s)
{
    c->is_there[s->id] = false;
    c->session.user->on_gone(c->session.ctx, s);
    free(steal(&s->request));
}

static void drop_if_over(struct channels *c, struct stream *s)
{
    if (s->has_heard_end && s->has_ended)
        drop(c, s);
}

/* By its number; NULL = nobody listens there. */
static struct stream *stream_of(struct channels *c, int channel)
{
    bool is_known = channel >= 0 && (size_t)channel < c->n && c->is_there[channel];
    return is_known && !c->streams[channel].has_heard_end ? &c->streams[channel] : NULL;
}

static void hear_end(struct channels *c, int channel)
{
    struct stream *s = stream_of(c, channel);
    if (!s)
        return;
    s->has_heard_end = true;
    c->session.user->on_end(c->session.ctx, s);
    if (c->is_there[channel])
        drop_if_over(c, s);
}

static void send_message(struct channels *c, const struct stream *s, const char *p, size_t n)
{
    const char channel = (char)s->id;
    websocket_print_head(&c->session.out, WEBSOCKET_BINARY, n + 1);
    buf_append(&c->session.out, &channel, 1);
    buf_append(&c->session.out, p, n);
}

/* Both channels of a port begin with its number. */
static void send_port(struct channels *c, const struct stream *s)
{
    const char bytes[] = {(char)(s->port & 0xff), (char)(s->port >> 8)};
    send_message(c, s, bytes, sizeof bytes);
}

static void start(struct session *session)
{
    struct channels *c = of(session);
    for (size_t i = 0; i < c->n; i++) {
        struct stream *s = &c->streams[i];
        if (!c->is_there[i])
            continue;
        if (c->is_for_ports)
            send_port(c, s);
        c->is_there[i] = session->user->on_open(session->ctx, s);
        if (!c->is_there[i])
            free(steal(&s->request));
    }
}

/* ---- what the client sends ---- */

static void on_part(void *ctx, const char *p, size_t n, bool is_first, bool is_last)
{
    struct channels *c = ctx;
    (void)is_last;
    if (is_first)
        c->channel = CHANNEL_UNKNOWN;
    if (c->channel == CHANNEL_UNKNOWN && n > 0) {
        c->channel = (unsigned char)*p++;
        n--;
    }
    if (n == 0)
        return;
    if (c->has_close && c->channel == CHANNEL_CLOSE) {
        c->channel = CHANNEL_NOBODY;
        hear_end(c, (unsigned char)*p);
        return;
    }
    struct stream *s = stream_of(c, c->channel);
    if (s)
        c->session.user->on_data(c->session.ctx, s, p, n);
}

static void on_ping(void *ctx, const char *p, size_t n)
{
    struct channels *c = ctx;
    if (!c->session.is_over && c->session.out.len < BUSY_MAX)
        websocket_print(&c->session.out, WEBSOCKET_PONG, p, n);
}

static void on_close(void *ctx, int code)
{
    struct channels *c = ctx;
    if (!c->session.is_over)
        websocket_print_close(&c->session.out,
                              code == WEBSOCKET_BROKEN ? WEBSOCKET_BROKEN : WEBSOCKET_NORMAL);
    c->session.is_over = true;
}

static const struct websocket_reader_ops reader_ops = {
    .on_part = on_part, .on_ping = on_ping, .on_close = on_close};

static void feed(struct session *session, const char *p, size_t n)
{
    websocket_read(&of(session)->reader, p, n);
}

/* ---- what we send ---- */

static size_t room(struct session *session, const struct stream *stream)
{
    (void)stream;
    return SESSION_OUT_MAX - session->out.len;
}

static void send_data(struct session *session, struct stream *stream, const char *p, size_t n)
{
    while (n > 0) {
        size_t part = n < FRAME_MAX ? n : FRAME_MAX;
        send_message(of(session), stream, p, part);
        p += part;
        n -= part;
    }
}

/* No subprotocol has a message for it. */
static void end_stream(struct session *session, struct stream *stream)
{
    stream->has_ended = true;
    drop_if_over(of(session), stream);
}

static void close_session(struct session *session)
{
    websocket_print_close(&session->out, WEBSOCKET_NORMAL);
    of(session)->reader.is_over = true;
}

static void free_session(struct session *session)
{
    struct channels *c = of(session);
    for (size_t i = 0; i < c->n; i++) {
        if (c->is_there[i])
            drop(c, &c->streams[i]);
    }
    buf_fini(&session->out);
    free(c);
}

static const struct session_ops ops = {
    .start = start,
    .feed = feed,
    .room = room,
    .send = send_data,
    .end = end_stream,
    .close = close_session,
    .free = free_session,
};

/* ---- the handshake ---- */

static const struct subprotocol *choose(const struct head *head, bool is_for_ports)
{
    struct head_tokens tokens = {.head = head, .name = "Sec-WebSocket-Protocol"};
    const struct subprotocol *last = NULL;
    struct str wish = {0};
    while (head_next_token(&tokens, &wish)) {
        for (size_t i = 0; i < ARRAY_LEN(subprotocols); i++) {
            const struct subprotocol *p = &subprotocols[i];
            if (p->is_for_ports == is_for_ports && str_eq(wish, p->name))
                return p;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(subprotocols) && !wish.p; i++) {
        if (subprotocols[i].is_for_ports == is_for_ports)
            last = &subprotocols[i];
    }
    return last;
}

static void print_answer(struct buf *out, const char *key, const char *subprotocol)
{
    char answer[WEBSOCKET_KEY_SIZE];
    websocket_key(key, answer);
    buf_printf(out,
               "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
               "Sec-WebSocket-Accept: %s\r\n",
               answer);
    if (subprotocol)
        buf_printf(out, "Sec-WebSocket-Protocol: %s\r\n", subprotocol);
    buf_puts(out, "\r\n");
}

static void add_ports(struct channels *c, const struct session_wish *wish)
{
    for (size_t i = 0; i < wish->n_ports; i++) {
        for (int k = 0; k < 2; k++) {
            c->streams[c->n] = (struct stream){
                .kind = k == 0 ? STREAM_DATA : STREAM_ERROR,
                .port = wish->ports[i],
                .request = xasprintf("%zu", i),
                .id = (uint32_t)c->n,
            };
            c->is_there[c->n++] = true;
        }
    }
}

static void add_channels(struct channels *c, const struct session_wish *wish)
{
    c->n = ARRAY_LEN(command_channels);
    for (size_t i = 0; i < c->n; i++) {
        c->streams[i] = (struct stream){.kind = command_channels[i], .id = (uint32_t)i};
        c->is_there[i] = wish->kinds[command_channels[i]];
    }
}

static struct session *channels_new(const struct subprotocol *subprotocol,
                                    const struct session_wish *wish,
                                    const struct session_user *user, void *ctx)
{
    struct channels *c = xcalloc(1, sizeof *c);
    c->session = (struct session){
        .ops = &ops, .user = user, .ctx = ctx, .has_status = subprotocol->has_status};
    c->reader = (struct websocket_reader){.ops = &reader_ops, .ctx = c};
    c->has_close = subprotocol->has_close;
    c->is_for_ports = subprotocol->is_for_ports;
    c->channel = CHANNEL_UNKNOWN;
    (c->is_for_ports ? add_ports : add_channels)(c, wish);
    return &c->session;
}

/* Channels of ports are there from the beginning; in a tunnel streams name theirs. */
static bool ports_are_good(const struct subprotocol *subprotocol, const struct session_wish *wish)
{
    bool is_needed = subprotocol->is_for_ports && !subprotocol->is_tunnel;
    return !is_needed || (wish->n_ports > 0 && wish->n_ports <= PORTS_MAX);
}

static int accept_websocket(const struct head *head, const struct session_wish *wish,
                            const struct session_user *user, void *ctx, struct session **ret,
                            struct err *err)
{
    const char *key = pairs_get_ci(&head->headers, "Sec-WebSocket-Key");
    const char *version = pairs_get_ci(&head->headers, "Sec-WebSocket-Version");
    if (!key || !version || strcmp(version, "13") != 0 || strcmp(head->method, "GET") != 0)
        return err_set(err, ERR_BAD_REQUEST, "this is no request for a websocket of version 13");
    const struct subprotocol *subprotocol = choose(head, wish->kinds[STREAM_DATA]);
    if (!subprotocol)
        return err_set(err, ERR_FORBIDDEN, "none of the requested subprotocols is known");
    if (!ports_are_good(subprotocol, wish))
        return err_set(err, ERR_BAD_REQUEST, "query parameter \"port\" is required, %d at most",
                       PORTS_MAX);
    struct session *s = subprotocol->is_tunnel ? spdy_tunnel_new(wish, user, ctx)
                                               : channels_new(subprotocol, wish, user, ctx);
    bool is_named = pairs_get_ci(&head->headers, "Sec-WebSocket-Protocol") != NULL;
    print_answer(&s->out, key, is_named ? subprotocol->name : NULL);
    *ret = s;
    return 0;
}

const struct session_protocol session_websocket = {.upgrade = "websocket",
                                                   .accept = accept_websocket};
