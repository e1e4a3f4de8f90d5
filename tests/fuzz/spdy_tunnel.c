/* Fuzz target for SPDY inside a websocket: the first byte says in which pieces the rest comes and
 * how the session's user behaves; the rest is what a client sends. What is said must be whole
 * frames of a websocket, with nothing behind a close, and inside of them whole frames of SPDY. */
#include <stdint.h>
#include <stdlib.h>

#include "apiserver/base/mem.h"
#include "apiserver/base/websocket.h"
#include "node/spdy.h"
#include "node/spdy_tunnel.h"
#include "tests/fuzz/player.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PIECE_BITS 0x07 /* of the first byte: pieces of so many powers of four */

struct ear {
    struct spdy *spdy;
    bool is_closed;
};

static void check_spdy(struct spdy *ear, const char *p, size_t n)
{
    for (bool is_done = false; !is_done;) {
        SCOPED(spdy_frame_fini) struct spdy_frame f = {0};
        size_t used;
        require(spdy_read(ear, p, n, &used, &f, NULL) == 0);
        is_done = f.type == SPDY_NONE;
        p += used;
        n -= used;
    }
}

/* One frame of ours, which is neither masked nor a fragment; its length. */
static size_t check_frame(struct ear *ear, const unsigned char *p, size_t n)
{
    require(!ear->is_closed && n >= 2 && (p[0] & 0xf0) == 0x80);
    size_t bytes = p[1] < 126 ? 0 : p[1] == 126 ? 2 : 8, payload = p[1];
    require(p[1] < 0x80 && n >= 2 + bytes);
    if (bytes > 0)
        payload = 0;
    for (size_t i = 0; i < bytes; i++)
        payload = payload << 8 | p[2 + i];
    require(payload <= n - 2 - bytes);
    if (p[0] == (0x80 | WEBSOCKET_BINARY))
        check_spdy(ear->spdy, (const char *)p + 2 + bytes, payload);
    ear->is_closed = p[0] == (0x80 | WEBSOCKET_CLOSE);
    return 2 + bytes + payload;
}

static void check_said(void *ctx, struct buf *out)
{
    struct ear *ear = ctx;
    require(!buf_failed(out));
    for (size_t i = 0; i < out->len;)
        i += check_frame(ear, (const unsigned char *)out->data + i, out->len - i);
    buf_clear(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    struct player player = {.manners = data[0] | PLAYER_FOR_PORTS};
    const struct session_wish wish = player_wish(player.manners);
    struct ear ear = {.spdy = spdy_new()};
    player.s = spdy_tunnel_new(&wish, &player_user, &player);
    play(&player, (const char *)data + 1, size - 1, (size_t)1 << (2 * (data[0] & PIECE_BITS)),
         check_said, &ear);
    spdy_free(ear.spdy);
    return 0;
}
