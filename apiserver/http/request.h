/* The one request and response that every transport feeds (HTTP/1.1 now, HTTP/2 beside it) and
 * every test makes by hand. A request is filled by a transport or a test, goes through the filters
 * on a worker thread and comes back as a response: bytes, or a stream that the transport pulls from
 * when it is woken. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apiserver/auth/auth.h"
#include "apiserver/base/arena.h"
#include "apiserver/base/buf.h"
#include "apiserver/base/str.h"
#include "openapi/shape.h"

/* What the path and the query say; filled by route.c. Strings live in the request's arena. */
struct route {
    bool is_resource; /* below /apis/<g>/<v>/ or /api/<v>/, with a known or unknown resource */
    /* get list watch create update patch delete deletecollection; else the lower-case method */
    const char *verb;
    const char *group, *version, *resource, *subresource, *namespace_name, *name; /* "" = absent */
    const struct kind *kind; /* NULL = no such resource */
    const char *path;        /* unescaped */
};

struct write_guard; /* registry.h */
struct request {
    /* from the transport */
    char *method;         /* as sent */
    char *path;           /* raw, still escaped, without the query */
    char *query;          /* raw, without '?'; "" when there is none */
    struct pairs headers; /* in the order of arrival, repeated names kept */
    struct buf body;
    bool body_too_large; /* more came than allowed; body is then empty */
    size_t max_body;     /* what is allowed, bytes; set by the pipeline, for the text of 413 */
    /* peer's certificates, owned by the connection, valid while the request lives */
    struct cert_der *chain;
    size_t n_chain;
    char *remote_addr; /* of the peer, for the log */
    bool can_upgrade;  /* its connection can be had raw: HTTP/1.1 */
    /* from the filters */
    struct arena arena;
    const char *id;                /* Audit-Id; the answer has it, unless a front proxy says it */
    const char *trace;             /* the caller's traceparent, among headers; or NULL */
    int64_t start_ms, deadline_ms; /* monotonic */
    struct pairs params;           /* query, unescaped, in order */
    struct route route;
    struct user user;
    const struct write_guard *guard; /* what this user may not write, in arena; NULL = no limits */
    struct pairs warnings;           /* names = texts */
};
void request_fini(struct request *r);

/* From so many bytes on a pull should append no more: with a frame around them and the rest of the
 * last event, they are one TLS record. */
#define STREAM_BYTES ((size_t)15 << 10)
/* A body that grows over time. All on the transport's I/O thread except wake, which may be called
 * on any thread. */
struct stream {
    /* Appends what is ready. 1 = there may be more (call again), 0 = nothing else now (wake will be
     * called), -1 = nothing else ever. Must not block. */
    int (*pull)(struct stream *s, struct buf *out);
    void (*close)(struct stream *s); /* peer gone or finished; called exactly once; frees */
    /* What the client sends meanwhile; a pull follows. Of a stream with status 101, else NULL. */
    void (*take)(struct stream *s, const char *p, size_t n);
    /* Set by the transport before the first pull. The stream's maker arranges that wake is called;
     * until set, wakes may be lost, so the transport pulls once after setting it. So read it on
     * other threads only once pull has run, and under a lock that pull and close take too: after
     * close has returned no wake may run or come. */
    void (*wake)(void *ctx);
    void *wake_ctx;
};

/* The raw connection of a request that was answered by 101: bytes to and from the client, without
 * TLS. */
struct raw {
    int fd; /* a stream socket that does not block; its owner closes it, once done was called */
    const char *ahead; /* what the client has sent already, for the call */
    size_t n_ahead;
    void (*done)(void *ctx); /* any thread, exactly once, nobody touches fd any more */
    void *ctx;
};
/* Who wants a raw connection. One of the two is called exactly once, and frees it. */
struct upgrade {
    void (*take)(struct upgrade *u, const struct raw *raw); /* transport's thread; must not block */
    void (*close)(struct upgrade *u);                       /* it could not be had */
};

struct response {
    int status;
    /* Content-Type and so on; the transport adds Date, Content-Length or Transfer-Encoding */
    struct pairs headers;
    struct buf body;
    struct stream *stream;   /* instead of body; with status 101 it has the connection for itself */
    struct upgrade *upgrade; /* the same, with status 101; of a request that can be upgraded only */
};
void response_fini(struct response *r); /* closes a stream or upgrade that nobody took */

/* Runs on a worker thread, may block up to the request's deadline; fills the response completely.
 */
typedef void (*request_handler_fn)(void *ctx, struct request *req, struct response *resp);
