#include "apiserver/base/websocket.h"

#include <stdio.h>
#include <string.h>

#include "apiserver/base/mem.h"
#include "apiserver/base/rand.h"

#define FIN 0x80
#define RESERVED 0x70
#define OPCODE 0x0f
#define MASKED 0x80
#define LENGTH 0x7f
#define LENGTH_16 126 /* two bytes of length follow */
#define LENGTH_64 127 /* eight bytes */
#define MASK_BYTES 4
#define PIECE ((size_t)4096)

static enum websocket_opcode opcode_of(const struct websocket_reader *r)
{
    return (enum websocket_opcode)(r->head[0] & OPCODE);
}

static bool is_control(const struct websocket_reader *r)
{
    return opcode_of(r) >= WEBSOCKET_CLOSE;
}

static bool is_last_frame(const struct websocket_reader *r)
{
    return r->head[0] & FIN;
}

static void end(struct websocket_reader *r, int code)
{
    r->is_over = true;
    r->ops->on_close(r->ctx, code);
}

/* ---- heads ---- */

/* How long the head is, as far as can be told. */
static size_t head_size(const struct websocket_reader *r)
{
    if (r->head_len < 2)
        return 2;
    int length = r->head[1] & LENGTH;
    return 2U + (length == LENGTH_16 ? 2 : length == LENGTH_64 ? 8 : 0) + MASK_BYTES;
}

/* Of the payload; UINT64_MAX when it is not in the shortest form or has the highest bit (5.2). */
static uint64_t payload_size(const struct websocket_reader *r)
{
    unsigned length = r->head[1] & LENGTH;
    size_t bytes = length == LENGTH_16 ? 2 : length == LENGTH_64 ? 8 : 0;
    uint64_t n = 0;
    for (size_t i = 0; i < bytes; i++)
        n = n << 8 | r->head[2 + i];
    if (bytes == 0)
        return length;
    bool is_short = n < (bytes == 2 ? LENGTH_16 : UINT64_C(0x10000));
    return is_short || n >> 63 ? UINT64_MAX : n;
}

static bool is_legal(const struct websocket_reader *r, uint64_t size)
{
    if ((r->head[0] & RESERVED) || !(r->head[1] & MASKED) || size == UINT64_MAX)
        return false;
    switch (opcode_of(r)) {
    case WEBSOCKET_CONTINUATION:
        return r->is_in_message;
    case WEBSOCKET_TEXT:
    case WEBSOCKET_BINARY:
        return !r->is_in_message;
    case WEBSOCKET_CLOSE:
    case WEBSOCKET_PING:
    case WEBSOCKET_PONG:
        return is_last_frame(r) && size <= WEBSOCKET_CONTROL_MAX;
    default:
        return false;
    }
}

/* How much of p belongs to the head. */
static size_t take_head(struct websocket_reader *r, const char *p, size_t n)
{
    size_t used = 0;
    while (used < n && r->head_len < head_size(r))
        r->head[r->head_len++] = (unsigned char)p[used++];
    if (r->head_len < head_size(r) || r->head_len < 2)
        return used;
    uint64_t size = payload_size(r);
    if (!is_legal(r, size)) {
        end(r, WEBSOCKET_BROKEN);
        return used;
    }
    r->is_in_frame = true;
    r->left = size;
    r->at = r->control_len = 0;
    if (!is_control(r)) {
        r->is_first_part = !r->is_in_message;
        r->is_in_message = true;
    }
    return used;
}

/* ---- payloads ---- */

static void end_control(struct websocket_reader *r)
{
    const unsigned char *c = (const unsigned char *)r->control;
    if (opcode_of(r) == WEBSOCKET_PING)
        r->ops->on_ping(r->ctx, r->control, r->control_len);
    else if (opcode_of(r) == WEBSOCKET_CLOSE)
        end(r, r->control_len == 0   ? WEBSOCKET_NO_CODE
               : r->control_len == 1 ? WEBSOCKET_BROKEN
                                     : c[0] << 8 | c[1]);
}

static void end_frame(struct websocket_reader *r)
{
    r->is_in_frame = false;
    r->head_len = 0;
    if (is_control(r))
        end_control(r);
    else if (is_last_frame(r))
        r->is_in_message = false;
}

/* n > 0, or the payload is empty. */
static size_t take_payload(struct websocket_reader *r, const char *p, size_t n)
{
    char piece[PIECE];
    const unsigned char *mask = r->head + head_size(r) - MASK_BYTES;
    if (n > PIECE)
        n = PIECE;
    if (n > r->left)
        n = (size_t)r->left;
    for (size_t i = 0; i < n; i++)
        piece[i] = (char)(p[i] ^ mask[(r->at + i) % MASK_BYTES]);
    r->at = (r->at + n) % MASK_BYTES;
    r->left -= n;
    if (is_control(r)) {
        memcpy(r->control + r->control_len, piece, n);
        r->control_len += n;
    } else {
        bool is_first = r->is_first_part;
        r->is_first_part = false;
        r->ops->on_part(r->ctx, piece, n, is_first, r->left == 0 && is_last_frame(r));
    }
    if (r->left == 0)
        end_frame(r);
    return n;
}

void websocket_read(struct websocket_reader *r, const char *p, size_t n)
{
    while (!r->is_over && (n > 0 || (r->is_in_frame && r->left == 0))) {
        size_t used = r->is_in_frame ? take_payload(r, p, n) : take_head(r, p, n);
        p += used;
        n -= used;
    }
}

/* ---- printing ---- */

void websocket_print_head(struct buf *out, enum websocket_opcode opcode, size_t n)
{
    unsigned char head[10] = {(unsigned char)(FIN | opcode)};
    size_t bytes = n < LENGTH_16 ? 0 : n < 0x10000 ? 2 : 8;
    head[1] = (unsigned char)(bytes == 0 ? n : bytes == 2 ? LENGTH_16 : LENGTH_64);
    for (size_t i = 0; i < bytes; i++)
        head[2 + i] = (unsigned char)((uint64_t)n >> (8 * (bytes - 1 - i)));
    buf_append(out, head, 2 + bytes);
}

void websocket_print(struct buf *out, enum websocket_opcode opcode, const void *p, size_t n)
{
    websocket_print_head(out, opcode, n);
    buf_append(out, p, n);
}

void websocket_print_close(struct buf *out, enum websocket_code code)
{
    const unsigned char bytes[] = {(unsigned char)(code >> 8), (unsigned char)code};
    websocket_print(out, WEBSOCKET_CLOSE, bytes, sizeof bytes);
}

void websocket_key(const char *client_key, char out[WEBSOCKET_KEY_SIZE])
{
    unsigned char digest[20];
    SCOPED(buf_fini) struct buf text = {0};
    SCOPED(buf_fini) struct buf key = {0};
    buf_puts(&text, client_key);
    buf_puts(&text, "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"); /* RFC 6455, 1.3 */
    digest_sha1(buf_cstr(&text), text.len, digest);
    buf_base64(&key, digest, sizeof digest);
    snprintf(out, WEBSOCKET_KEY_SIZE, "%s", buf_cstr(&key));
}
