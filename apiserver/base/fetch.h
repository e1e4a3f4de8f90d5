/* The door to libcurl: every outgoing request. Calls block with a deadline (fetch_do); streamed
 * answers are read piece by piece (fetch_open, fetch_read). The thread that asks does the work; any
 * may. Redirects are never followed, proxies from the environment never used. HTTP/1.1 only: what
 * libcurl 7.88 (Debian 12) has read for one stream of an HTTP/2 connection while it looked after
 * another, it may keep until more comes, and of a quiet watch nothing more comes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/err.h"
#include "apiserver/base/str.h"

struct fetch;
struct fetch *fetch_new(void);
/* Fails what is open with ERR_CANCELLED and waits until no call runs. Streams are closed before or
 * afterwards. */
void fetch_free(struct fetch *f);
/* From that time on, in ms of the monotonic clock, what is open and what is still to come fails
 * with ERR_CANCELLED. Any thread. */
void fetch_end_at(struct fetch *f, int64_t at_ms);

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
    size_t max_body;             /* bytes of a call's answer; 0 = 64 MiB; more is ERR_TOO_LARGE */
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

/* A streamed answer, of one thread, but for fetch_wake. Sent when it is first read. */
struct fetch_stream;
struct fetch_stream *fetch_open(struct fetch *f, const struct fetch_request *req); /* never NULL */
enum fetch_news {
    FETCH_NOTHING, /* the time came, or fetch_wake */
    FETCH_SOME,    /* the headers are there now, or bytes were appended to out */
    FETCH_ENDED    /* and how is in err: ERR_NONE at a clean end, ERR_TIMEOUT when idle for too
                      long, ERR_TOO_LARGE when out took no more; else as fetch_do */
};
/* Waits for news until then, in ms of the monotonic clock. */
enum fetch_news fetch_read(struct fetch_stream *s, int64_t until_ms, struct buf *out,
                           struct err *err);
int fetch_status(const struct fetch_stream *s); /* 0 = no headers yet */
/* Ends the wait of a read, or of the next one; any thread, while the stream is open. */
void fetch_wake(struct fetch_stream *s);
void fetch_close(struct fetch_stream *s); /* NULL is fine */
/* Percent-encodes for one path segment or query value, into out. */
void fetch_escape(const char *s, struct buf *out);
