/* The server's side of websockets, RFC 6455: reads what a client sends in any pieces and prints
 * what it is sent. Messages are handed on as they come and never kept whole, so they may have any
 * size. Knows neither subprotocols nor connections. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apiserver/base/buf.h"

enum websocket_opcode { /* RFC 6455, 11.8 */
                        WEBSOCKET_CONTINUATION = 0x0,
                        WEBSOCKET_TEXT = 0x1,
                        WEBSOCKET_BINARY = 0x2,
                        WEBSOCKET_CLOSE = 0x8,
                        WEBSOCKET_PING = 0x9,
                        WEBSOCKET_PONG = 0xa,
};
enum websocket_code { /* of a close; RFC 6455, 7.4.1 */
                      WEBSOCKET_NORMAL = 1000,
                      WEBSOCKET_BROKEN = 1002,  /* against the protocol */
                      WEBSOCKET_NO_CODE = 1005, /* the peer gave none; never sent */
};

#define WEBSOCKET_CONTROL_MAX 125 /* bytes in a control frame */
#define WEBSOCKET_KEY_SIZE 29     /* of the answer's key, with its NUL */

struct websocket_reader_ops {
    /* A part of a message, text and binary alike; n may be 0. Its first part has is_first, its last
     * one is_last. */
    void (*on_part)(void *ctx, const char *p, size_t n, bool is_first, bool is_last);
    void (*on_ping)(void *ctx, const char *p, size_t n);
    /* The last call. code as the peer gave it, else why we close. */
    void (*on_close)(void *ctx, int code);
};
struct websocket_reader { /* starts as {0} with ops and ctx */
    const struct websocket_reader_ops *ops;
    void *ctx;
    unsigned char head[14];
    size_t head_len;
    uint64_t left; /* of the frame's payload */
    size_t at;     /* in its payload, for the mask */
    char control[WEBSOCKET_CONTROL_MAX];
    size_t control_len;
    bool is_in_frame, is_in_message, is_first_part;
    bool is_over; /* closed by either side: nothing is read any more */
};
void websocket_read(struct websocket_reader *r, const char *p, size_t n);

/* One whole frame, which is a whole message. */
void websocket_print(struct buf *out, enum websocket_opcode opcode, const void *p, size_t n);
/* Its head only; n bytes are to follow. */
void websocket_print_head(struct buf *out, enum websocket_opcode opcode, size_t n);
void websocket_print_close(struct buf *out, enum websocket_code code);

/* Sec-WebSocket-Accept for the client's Sec-WebSocket-Key. */
void websocket_key(const char *client_key, char out[WEBSOCKET_KEY_SIZE]);
