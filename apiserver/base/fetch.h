/* The door to libcurl: one thread drives one multi handle and every outgoing socket. Calls block
 * with a deadline (fetch_do) or stream (fetch_open). Any thread but fetch's own may call; stream
 * callbacks run on the fetch thread and must not block nor call fetch_do. Redirects are never
 * followed, proxies from the environment never used. HTTP/1.1 only: what libcurl 7.88 (Debian 12)
 * has read for one stream of an HTTP/2 connection while it looked after another, it may keep until
 * more comes, and of a quiet watch nothing more comes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/err.h"
#include "apiserver/base/str.h"

struct fetch;
struct fetch *fetch_new(void);    /* starts the thread */
void fetch_free(struct fetch *f); /* fails what is open with ERR_CANCELLED, ends the thread */

/* Files are read anew for new connections, so rotated certificates are picked up. All borrowed for
 * the call. */
struct fetch_tls {
    const char *ca_file;              /* NULL = the system's */
    const char *cert_file, *key_file; /* client certificate, or NULL */
    bool insecure;                    /* tests only */
};

struct fetch_request {
    const char *method; /* "GET" when NULL */
    const char *url;
    const struct pairs *headers; /* may be NULL */
    const void *body;            /* may be NULL */
    size_t body_len;
    const struct fetch_tls *tls; /* may be NULL */
    const char *unix_socket;     /* path instead of the URL's host, or NULL */
    int64_t timeout_ms;          /* whole call; 0 = 30,000. Streams: until the headers */
    int64_t idle_timeout_ms;     /* streams: end when nothing came for so long; 0 = never */
    size_t max_body;             /* bytes of an answer; 0 = 64 MiB; more is ERR_TOO_LARGE */
};
struct fetch_response {
    int status;
    struct pairs headers;
    struct buf body;
};
/* 0 whatever the HTTP status is. Errors: ERR_UNAVAILABLE nothing was sent (no connection);
 * ERR_UNDETERMINED the connection broke after the request may have been sent; ERR_TIMEOUT the
 * deadline passed (for a method other than GET and HEAD: ERR_UNDETERMINED); ERR_CANCELLED. ret is
 * filled on success only; fetch_response_fini. */
int fetch_do(struct fetch *f, const struct fetch_request *req, struct fetch_response *ret,
             struct err *err);
void fetch_response_fini(struct fetch_response *r);

/* A streamed answer. Callbacks in order: on_open once with the status, on_data any number of times,
 * on_end exactly once, last (err->code ERR_NONE at a clean end, ERR_CANCELLED when we ended it,
 * ERR_TIMEOUT when idle for too long). After on_end nothing is called. Returning false from on_data
 * ends the stream. */
struct fetch_stream_ops {
    void (*on_open)(void *ctx, int status);
    bool (*on_data)(void *ctx, const char *p, size_t n);
    void (*on_end)(void *ctx, const struct err *err);
};
struct fetch_stream;
struct fetch_stream *fetch_open(struct fetch *f, const struct fetch_request *req,
                                const struct fetch_stream_ops *ops,
                                void *ctx); /* never NULL; trouble arrives by on_end */
/* Ends the stream and waits until no callback runs or will run; then frees it. Not on the fetch
 * thread. NULL is fine. */
void fetch_close(struct fetch_stream *s);
/* Percent-encodes for one path segment or query value, into out. */
void fetch_escape(const char *s, struct buf *out);
