/* One session of an exec, attach or port-forward: named streams, multiplexed on one connection.
 * What a stream carries is none of a session's business, nor is the connection: bytes of the peer
 * are fed to it, and what it has to say is collected in out. So it never waits, needs no socket to
 * be tested, and may stand inside another protocol. Websockets and SPDY/3.1 implement it (struct
 * session_protocol); exec, attach and port-forward use it (struct session_user) and do not know
 * which it is. Nothing here locks: all of it runs on the thread of its connection, which moves
 * bytes between that, the session and its user, and feeds no more while the user has more than
 * enough. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/err.h"

struct head; /* node/head.h */

enum stream_kind {
    STREAM_ERROR, /* how it ended: of a command, or of one connection to a port */
    STREAM_STDIN,
    STREAM_STDOUT,
    STREAM_STDERR,
    STREAM_RESIZE, /* {"Width": 80, "Height": 24} from the peer, one after the other */
    STREAM_DATA,   /* of one connection to a port, both ways */
    STREAM_KINDS
};
extern const char *const stream_kind_names[STREAM_KINDS]; /* error, ..., as SPDY's streamtype */

struct stream { /* owned by the session, until on_gone has returned */
    enum stream_kind kind;
    /* Of a port-forward; a data and an error stream with both the same belong together. */
    int port;           /* else 0 */
    char *request;      /* any text; NULL = none. Freed with the stream */
    uint32_t id;        /* the session's own */
    bool has_heard_end; /* the peer sends no more on it */
    bool has_ended;     /* we send no more on it */
    void *user;         /* the user's own, NULL before on_open */
};

/* ---- who uses a session ---- */

/* What the peer does. Each may call session_send, session_end and session_close; none may free the
 * session. */
struct session_user {
    /* A new stream; false refuses it (no other call follows). */
    bool (*on_open)(void *ctx, struct stream *s);
    /* Bytes as they come in, in any pieces; all are taken. n > 0. */
    void (*on_data)(void *ctx, struct stream *s, const char *p, size_t n);
    /* The peer sends no more on it. At most once. */
    void (*on_end)(void *ctx, struct stream *s);
    /* The last call for this stream, however it ended: both sides did, the peer reset it, or the
     * session is freed. Called from any function that takes the session, but session_send. */
    void (*on_gone)(void *ctx, struct stream *s);
};

struct session { /* the first member of what implements one */
    const struct session_ops *ops;
    const struct session_user *user;
    void *ctx;      /* the user's */
    struct buf out; /* for the peer, in order; the connection takes it */
    /* Error streams carry a Status as JSON, of success as well (v4.channel.k8s.io and later); else
     * the text of a failure, and nothing of success. */
    bool has_status;
    bool lacks_resize; /* the version agreed on is older than streams of that kind: none comes */
    /* The peer said good-bye, it broke the protocol, or we closed: nothing is fed or sent any more,
     * and the connection ends once out is sent. */
    bool is_over;
};

#define SESSION_OUT_MAX ((size_t)256 << 10) /* bytes in out from which on there is no room */
#define SESSION_STREAMS_MAX 1024            /* at once; the peer's further ones are refused */

/* Announces the streams that are there from the beginning. Once, before all else. */
void session_start(struct session *s);
/* Bytes from the peer; all are taken. A frame's payload is handed on as it comes, only heads of
 * frames are kept until they are whole. Nothing happens once it is over. */
void session_feed(struct session *s, const char *p, size_t n);
/* How many bytes of that stream may be sent now: 0 = none before out was sent or the peer gave
 * leave, so nothing should be read that is meant for it. */
size_t session_room(struct session *s, const struct stream *stream);
/* Any number of bytes, also more than there is room for, in frames as they are needed. Dropped
 * after session_end. */
void session_send(struct session *s, struct stream *stream, const char *p, size_t n);
/* We send no more on it. The stream may be gone when this returns. Once more: nothing happens. */
void session_end(struct session *s, struct stream *stream);
/* Says good-bye: as when all went well. Streams stay until session_free. */
void session_close(struct session *s);
void session_free(struct session *s); /* NULL is fine */

/* ---- who implements it ---- */

struct session_ops { /* as above; feed, send and end are not called when it is over */
    void (*start)(struct session *s);
    void (*feed)(struct session *s, const char *p, size_t n);
    size_t (*room)(struct session *s, const struct stream *stream);
    void (*send)(struct session *s, struct stream *stream, const char *p, size_t n);
    void (*end)(struct session *s, struct stream *stream);
    void (*close)(struct session *s);
    void (*free)(struct session *s); /* on_gone for each stream, then all of it, out as well */
};

/* What a session is to be for. */
struct session_wish {
    bool kinds[STREAM_KINDS]; /* streams that are expected */
    const int *ports;         /* of the query; a session may name others. Borrowed, for accept */
    size_t n_ports;
};

struct session_protocol {
    const char *upgrade; /* what the request's Upgrade header must name, without case */
    /* Agrees with the client on a version; the answer's head (101 Switching Protocols) is put into
     * out. Calls nobody yet: session_start does. Errors: ERR_BAD_REQUEST, ERR_FORBIDDEN for no
     * version in common. */
    int (*accept)(const struct head *req, const struct session_wish *wish,
                  const struct session_user *user, void *ctx, struct session **ret,
                  struct err *err);
};
extern const struct session_protocol session_websocket, session_spdy;
