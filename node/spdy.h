/* Frames of SPDY/3.1: bytes in, frames out, and back, without I/O. What kubectl and client-go speak
 * for exec, attach and port-forward, directly or inside WebSocket messages. What frames mean
 * together (streams, windows) is spdy_session.h's.
 * Source: SPDY protocol draft 3.1; moby/spdystream for what the peers of today really send. One
 * thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/err.h"
#include "apiserver/base/str.h"

/* The numbers of the control frames are those of the wire. */
enum spdy_type {
    SPDY_NONE = 0, /* no frame yet */
    SPDY_SYN_STREAM = 1,
    SPDY_SYN_REPLY = 2,
    SPDY_RST_STREAM = 3,
    SPDY_SETTINGS = 4,
    SPDY_PING = 6,
    SPDY_GOAWAY = 7,
    SPDY_HEADERS = 8,
    SPDY_WINDOW_UPDATE = 9,
    SPDY_DATA = 10, /* no control frame; whatever else has this number on the wire is unknown */
    SPDY_TYPES
};

#define SPDY_FLAG_FIN 1
#define SPDY_FLAG_UNIDIRECTIONAL 2 /* of SYN_STREAM */

enum spdy_rst {
    SPDY_RST_PROTOCOL_ERROR = 1,
    SPDY_RST_INVALID_STREAM = 2,
    SPDY_RST_REFUSED_STREAM = 3,
    SPDY_RST_CANCEL = 5,
    SPDY_RST_INTERNAL_ERROR = 6,
    SPDY_RST_FLOW_CONTROL_ERROR = 7,
    SPDY_RST_STREAM_ALREADY_CLOSED = 9,
};
enum spdy_goaway { SPDY_GOAWAY_OK, SPDY_GOAWAY_PROTOCOL_ERROR, SPDY_GOAWAY_INTERNAL_ERROR };

#define SPDY_SETTING_MAX_STREAMS 4    /* streams the sender lets be open at once */
#define SPDY_SETTING_INITIAL_WINDOW 7 /* bytes that may be sent to it on a new stream */
#define SPDY_SETTING_LAST 8           /* the greatest id there is */

#define SPDY_ID_MAX 0x7fffffff
#define SPDY_DATA_MAX 0xffffff /* bytes of one DATA frame */
/* Bytes of a control frame that is read; the draft asks for 8192. */
#define SPDY_CONTROL_MAX 16384
#define SPDY_BLOCK_MAX 32768      /* bytes of a header block when it is unpacked */
#define SPDY_BLOCK_HEADERS_MAX 64 /* values in it */

struct spdy_frame {
    enum spdy_type type;
    uint8_t flags;
    uint32_t id; /* stream; number of a PING; last good stream of a GOAWAY */
    uint32_t
        value; /* RST_STREAM, GOAWAY: status; WINDOW_UPDATE: bytes; SYN_STREAM: associated stream */
    struct pairs headers; /* SYN_STREAM, SYN_REPLY, HEADERS; names in lower case */
    uint32_t settings[SPDY_SETTING_LAST + 1]; /* by id, where has_setting has bit 1 << id */
    unsigned has_setting;
    struct str data; /* DATA: borrowed from the bytes that were read */
    /* Not 0: the frame is not to be used, and its stream to be reset with this status. */
    enum spdy_rst fault;
};
void spdy_frame_fini(struct spdy_frame *f);

struct spdy; /* both directions of one connection; header blocks depend on all before them */

struct spdy *spdy_new(void);
void spdy_free(struct spdy *s);

/* Reads on: takes *ret_used of the n bytes, and sets *ret to a frame, or to none when all were
 * taken and more are needed. A DATA frame comes in as many pieces as its bytes do, FLAG_FIN only
 * with the last; unknown control frames are passed over. ret is {0} or finished before. Errors:
 * -ERR_BAD_REQUEST, -ERR_TOO_LARGE: the connection cannot go on (GOAWAY, then the end). */
int spdy_read(struct spdy *s, const char *p, size_t n, size_t *ret_used, struct spdy_frame *ret,
              struct err *err);

/* Appends the frame; fault is not looked at. */
void spdy_write(struct spdy *s, const struct spdy_frame *f, struct buf *out);
