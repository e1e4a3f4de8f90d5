/* Fuzz target for SPDY: the first byte says in which pieces the rest comes and what a session is
 * for and does, the rest is what a peer sends. The same frames must come out however it is cut, and
 * what is written of them must be read as the same again. A session must tell of each stream once
 * that it is gone, and say whole frames only. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "apiserver/base/mem.h"
#include "node/spdy.h"
#include "node/spdy_session.h"
#include "tests/fuzz/player.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- frames ---- */

/* What was read: each frame as it is written, but the pieces of one DATA frame, whose end alone is
 * said. */
struct reading {
    struct spdy *codec, *writer;
    struct buf written, data;
    bool is_readable; /* written */
};

static void check_frame(const struct spdy_frame *f)
{
    require(f->type < SPDY_TYPES);
    require(f->type == SPDY_PING || f->id <= SPDY_ID_MAX);
    require(f->headers.n <= SPDY_BLOCK_HEADERS_MAX);
    require(f->fault == 0 || f->headers.n == 0);
    for (size_t i = 0; i < f->headers.n; i++)
        require(*f->headers.v[i].name != '\0');
}

static void take_frame(struct reading *r, const struct spdy_frame *f)
{
    check_frame(f);
    if (f->type == SPDY_DATA) {
        buf_append(&r->data, f->data.p, f->data.n);
        buf_append(&r->data, &f->id, sizeof f->id * (f->flags & SPDY_FLAG_FIN));
    } else if (f->fault == 0) {
        size_t before = r->written.len;
        spdy_write(r->writer, f, &r->written);
        if (r->written.len - before > SPDY_CONTROL_MAX) /* packed worse than by the peer */
            r->is_readable = false;
    }
}

/* Reads a piece; false when the peer broke the protocol. */
static bool read_piece(struct reading *r, const char *p, size_t n)
{
    for (;;) {
        SCOPED(spdy_frame_fini) struct spdy_frame f = {0};
        SCOPED(err_fini) struct err err = {0};
        size_t used = 0;
        int code = spdy_read(r->codec, p, n, &used, &f, &err);
        require(used <= n && code == -(int)err.code);
        if (code < 0 || f.type == SPDY_NONE)
            return code == 0;
        take_frame(r, &f);
        p += used;
        n -= used;
    }
}

static bool read_all(struct reading *r, const char *p, size_t n, size_t piece)
{
    r->codec = spdy_new();
    r->writer = spdy_new();
    r->is_readable = true;
    for (size_t i = 0; i < n; i += piece)
        if (!read_piece(r, p + i, n - i < piece ? n - i : piece))
            return false;
    return true;
}

static void reading_fini(struct reading *r)
{
    spdy_free(r->codec);
    spdy_free(r->writer);
    buf_fini(&r->written);
    buf_fini(&r->data);
}

static bool buf_same(const struct buf *a, const struct buf *b)
{
    return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

static void check_frames(const char *p, size_t n, size_t piece)
{
    SCOPED(reading_fini) struct reading whole = {0}, pieces = {0}, again = {0};
    bool is_good = read_all(&whole, p, n, n + 1);
    require(read_all(&pieces, p, n, piece) == is_good);
    require(buf_same(&whole.written, &pieces.written) && buf_same(&whole.data, &pieces.data));
    if (!whole.is_readable)
        return;
    require(read_all(&again, whole.written.data, whole.written.len, piece));
    require(buf_same(&whole.written, &again.written));
}

/* ---- a session ---- */

#define PIECE_BITS 0x07 /* of the first byte: pieces of so many powers of four */

/* Whole frames. */
static void check_said(void *ctx, struct buf *out)
{
    struct reading *ear = ctx;
    require(!buf_failed(out) && read_piece(ear, out->data, out->len));
    buf_clear(out);
    buf_clear(&ear->written);
    buf_clear(&ear->data);
}

static void check_session(uint8_t manners, const char *p, size_t n, size_t piece)
{
    const struct session_wish wish = player_wish(manners);
    struct player player = {.manners = manners};
    SCOPED(reading_fini) struct reading ear = {.codec = spdy_new(), .writer = spdy_new()};
    player.s = spdy_session_new(&wish, &player_user, &player);
    play(&player, p, n, piece, check_said, &ear);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    const char *p = (const char *)data + 1;
    size_t piece = (size_t)1 << (2 * (data[0] & PIECE_BITS));
    check_frames(p, size - 1, piece);
    check_session(data[0], p, size - 1, piece);
    return 0;
}
