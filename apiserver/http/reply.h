/* The answer of another HTTP/1.1 server, read as it comes: its head, then the body without its
 * framing. Knows no socket. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/str.h"

enum reply_state {
    REPLY_HEAD,
    REPLY_LENGTH,  /* a body of so many bytes */
    REPLY_TO_END,  /* a body that ends with the connection */
    REPLY_SIZE,    /* the line before a chunk */
    REPLY_CHUNK,   /* of so many bytes, and the line's end behind them */
    REPLY_TRAILER, /* behind the last chunk */
    REPLY_OVER,
    REPLY_RAW, /* after 101: what follows is no HTTP */
};

struct reply { /* starts as {0}; reply_fini */
    enum reply_state state;
    int status;
    struct pairs headers;
    struct buf line; /* the head, or a line of the framing, as far as it came */
    uint64_t left;   /* bytes of the body or chunk */
};
void reply_fini(struct reply *r);
/* Takes from p[0..n); *ret_used says how much, which is all but for what follows the end, or a head
 * (then call it again). What is of the body is appended to body. False when it is no HTTP/1.1, or
 * the head has more than 32 KiB. */
bool reply_feed(struct reply *r, const char *p, size_t n, size_t *ret_used, struct buf *body);
