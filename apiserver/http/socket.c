/* The frames are made on the way out, of whatever lines the stream inside has, so that the
 * transport carries both kinds of watches alike. The handshake is kube-apiserver's, whose server
 * takes the one subprotocol it is offered; unlike that one we do not insist on an Origin, which
 * only browsers have. Source: RFC 6455, 4.2; golang.org/x/net/websocket. */
#include "apiserver/http/socket.h"

#include <string.h>
#include <strings.h>

#include "apiserver/auth/auth.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/websocket.h"
#include "apiserver/http/respond.h"

#define KEY_LEN 24                 /* 16 bytes in base64 */
#define REPLIES_MAX ((size_t)4096) /* bytes of pongs for a client that reads none of them */

struct socket_stream {
    struct stream stream; /* first */
    struct stream *inside;
    struct websocket_reader reader;
    struct buf replies; /* to what the client sent */
};

bool socket_is_wanted(const struct request *req)
{
    return req->can_upgrade && strcmp(req->method, "GET") == 0 && req->route.verb &&
           strcmp(req->route.verb, "watch") == 0 && auth_is_socket_request(&req->headers);
}

/* ---- what the client says ---- */

static void ignore_part(void *ctx, const char *p, size_t n, bool is_first, bool is_last)
{
    (void)ctx, (void)p, (void)n, (void)is_first, (void)is_last;
}

static void answer_ping(void *ctx, const char *p, size_t n)
{
    struct socket_stream *s = ctx;
    if (s->replies.len < REPLIES_MAX)
        websocket_print(&s->replies, WEBSOCKET_PONG, p, n);
}

static void answer_close(void *ctx, int code)
{
    struct socket_stream *s = ctx;
    websocket_print_close(&s->replies,
                          code == WEBSOCKET_BROKEN ? WEBSOCKET_BROKEN : WEBSOCKET_NORMAL);
}

static const struct websocket_reader_ops reader_ops = {ignore_part, answer_ping, answer_close};

static void take(struct stream *stream, const char *p, size_t n)
{
    struct socket_stream *s = (struct socket_stream *)stream;
    websocket_read(&s->reader, p, n);
}

/* ---- what it is sent ---- */

/* Each line is a message, with its end, as kube-apiserver's are. */
static void frame_lines(const struct buf *lines, struct buf *out)
{
    const char *p = lines->data, *end = p + lines->len;
    while (p < end) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        const char *next = eol ? eol + 1 : end;
        websocket_print(out, WEBSOCKET_TEXT, p, (size_t)(next - p));
        p = next;
    }
}

static int pull(struct stream *stream, struct buf *out)
{
    struct socket_stream *s = (struct socket_stream *)stream;
    SCOPED(buf_fini) struct buf lines = {.max = out->max};
    buf_append(out, s->replies.data, s->replies.len);
    buf_clear(&s->replies);
    if (s->reader.is_over)
        return -1;
    s->inside->wake = stream->wake;
    s->inside->wake_ctx = stream->wake_ctx;
    int r = s->inside->pull(s->inside, &lines);
    if (buf_failed(&lines)) /* larger than anything should be; the client may resume */
        r = -1;
    else
        frame_lines(&lines, out);
    if (r < 0)
        websocket_print_close(out, WEBSOCKET_NORMAL);
    return r;
}

static void close_stream(struct stream *stream)
{
    struct socket_stream *s = (struct socket_stream *)stream;
    s->inside->close(s->inside);
    buf_fini(&s->replies);
    free(s);
}

static struct stream *socket_new(struct stream *take_inside)
{
    struct socket_stream *s = xcalloc(1, sizeof *s);
    s->stream = (struct stream){.pull = pull, .close = close_stream, .take = take};
    s->inside = take_inside;
    s->reader = (struct websocket_reader){.ops = &reader_ops, .ctx = s};
    return &s->stream;
}

/* ---- handshake ---- */

#define PROTOCOL "Sec-WebSocket-Protocol"

int socket_check(const struct request *req, struct err *err)
{
    const char *key = pairs_get_ci(&req->headers, "Sec-WebSocket-Key"),
               *version = pairs_get_ci(&req->headers, "Sec-WebSocket-Version"),
               *protocol = pairs_get_ci(&req->headers, PROTOCOL);
    if (!key || strlen(key) != KEY_LEN || !str_equal(version, "13"))
        return err_set(err, ERR_BAD_REQUEST, "this is no request for a websocket of version 13");
    if (protocol && strpbrk(protocol, ", \t"))
        return err_set(err, ERR_BAD_REQUEST, "a watch has no choice of websocket protocols");
    return 0;
}

void socket_upgrade(const struct request *req, struct response *resp)
{
    const char *protocol = pairs_get_ci(&req->headers, PROTOCOL);
    char answer[WEBSOCKET_KEY_SIZE];
    websocket_key(pairs_get_ci(&req->headers, "Sec-WebSocket-Key"), answer);
    resp->status = 101;
    respond_header(resp, "Upgrade", "websocket");
    respond_header(resp, "Sec-WebSocket-Accept", answer);
    if (protocol)
        respond_header(resp, PROTOCOL, protocol);
    resp->stream = socket_new(resp->stream);
}
