/* Fuzz target for websockets of exec and port-forward: the first byte says which of the two and in
 * which pieces the rest comes, which is what a client sends after the handshake. Checks that
 * streams open, end and go in order, that reading in pieces and at once says the same, and that
 * what is sent stays bounded. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "apiserver/base/mem.h"
#include "node/head.h"
#include "node/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PIECE_BITS 0x0f /* of the first byte: pieces of so many powers of two */
#define FOR_PORTS 0x10
#define WITH_ECHO 0x20 /* what comes is sent back */
#define OUT_MAX (4 * SESSION_OUT_MAX)

struct state {
    struct session *session;
    struct buf notes;
    int open;
    bool echoes;
};

static void require(bool holds)
{
    if (!holds)
        abort();
}

static bool on_open(void *ctx, struct stream *s)
{
    struct state *state = ctx;
    s->user = state;
    state->open++;
    return true;
}

static void on_data(void *ctx, struct stream *s, const char *p, size_t n)
{
    struct state *state = ctx;
    require(s->user == state && n > 0 && !s->has_heard_end);
    for (size_t i = 0; i < n; i++) {
        buf_putc(&state->notes, (char)s->id);
        buf_putc(&state->notes, p[i]);
    }
    if (state->echoes && session_room(state->session, s) >= n)
        session_send(state->session, s, p, n);
}

static void on_end(void *ctx, struct stream *s)
{
    require(s->user == ctx && s->has_heard_end);
    struct state *state = ctx;
    if (state->echoes)
        session_end(state->session, s);
}

static void on_gone(void *ctx, struct stream *s)
{
    require(s->user == ctx);
    struct state *state = ctx;
    state->open--;
}

static const struct session_user user = {on_open, on_data, on_end, on_gone};
static const char request[] =
    "GET / HTTP/1.1\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAA\r\n"
    "Sec-WebSocket-Protocol: v5.channel.k8s.io, v4.channel.k8s.io\r\n\r\n";
static const int ports[] = {80, 443};

static void run(const char *p, size_t n, size_t piece, bool is_for_ports, struct state *state)
{
    SCOPED(head_fini) struct head head = {0};
    struct session_wish wish = {.ports = ports, .n_ports = 2};
    for (int k = 0; k < STREAM_KINDS; k++)
        wish.kinds[k] = (k == STREAM_DATA) <= is_for_ports;
    require(head_parse(request, sizeof request - 1, &head, NULL) == 0);
    require(session_websocket.accept(&head, &wish, &user, state, &state->session, NULL) == 0);
    session_start(state->session);
    require(state->open == (is_for_ports ? 4 : 5));
    for (size_t at = 0; at < n; at += piece)
        session_feed(state->session, p + at, n - at < piece ? n - at : piece);
    require(state->session->out.len < OUT_MAX);
    session_free(state->session);
    require(state->open == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    SCOPED_FREE char *bytes = xmemdup(data + 1, size - 1);
    struct state whole = {.echoes = data[0] & WITH_ECHO}, cut = whole;
    run(bytes, size - 1, size, data[0] & FOR_PORTS, &whole);
    run(bytes, size - 1, (size_t)1 << (data[0] & PIECE_BITS), data[0] & FOR_PORTS, &cut);
    require(whole.notes.len == cut.notes.len &&
            memcmp(buf_cstr(&whole.notes), buf_cstr(&cut.notes), cut.notes.len) == 0);
    buf_fini(&whole.notes);
    buf_fini(&cut.notes);
    return 0;
}
