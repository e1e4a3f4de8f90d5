/* A blocking HTTP/2 client over TLS for tests, in two forms: one that behaves (libnghttp2's client
 * side), and frames written and read by hand for what that would not do. Verifies nothing. */
#pragma once

#include <nghttp2/nghttp2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/str.h"
#include "tests/lib/tls_client.h"

/* ---- the one that behaves ---- */

struct h2_reply {
    struct h2_reply *next;
    int32_t id;
    int status;    /* the final one */
    int n_interim; /* 1xx before it */
    struct pairs headers;
    struct buf body;
    bool is_closed;
    uint32_t error;      /* of a closed one */
    const char *sending; /* what is left of the request's body */
    size_t sending_n;
    bool is_body_held; /* no end of it yet */
};
struct h2_client {
    struct tls_client tls;
    nghttp2_session *session;
    struct h2_reply *replies; /* newest first */
    bool has_goaway, is_over;
    uint32_t goaway_code;
    int32_t goaway_last_id;
};
struct h2_client_opts {
    struct tls_client_opts tls; /* alpn is set by open */
    uint32_t window;            /* of each stream; 0 = a large one */
    bool is_lazy;               /* windows grow only by h2_client_consume */
};
/* opts may be NULL. */
bool h2_client_open(struct h2_client *c, int port, const struct h2_client_opts *opts);
/* Queues a request; the body is borrowed until the reply is closed. With body NULL and n > 0 the
 * request stays without its end. headers may be NULL. */
struct h2_reply *h2_client_send(struct h2_client *c, const char *method, const char *path,
                                const struct pairs *headers, const char *body, size_t n);
/* Sends what is queued, then reads once; false at the connection's end or after 10 s of silence. */
bool h2_client_step(struct h2_client *c);
void h2_client_flush(struct h2_client *c); /* sends what is queued, together */
void h2_client_cancel(struct h2_client *c, struct h2_reply *r);
void h2_client_consume(struct h2_client *c, struct h2_reply *r, size_t n);
void h2_client_close(struct h2_client *c); /* without a word */
/* Steps until the condition holds; whether it does. */
#define H2_UNTIL(c, condition)                                                                     \
    __extension__({                                                                                \
        while (!(condition) && h2_client_step(c))                                                  \
            ;                                                                                      \
        (condition);                                                                               \
    })

/* ---- by hand ---- */

struct h2_frame {
    uint8_t type, flags;
    int32_t id;
    const uint8_t *payload;
    size_t n;
};
void h2_put_frame(struct buf *out, uint8_t type, uint8_t flags, int32_t id, const void *payload,
                  size_t n);
/* A header field as a literal, not indexed, not compressed; both shorter than 127 bytes. */
void h2_put_field(struct buf *out, const char *name, const char *value);
/* HEADERS of a GET: END_HEADERS and END_STREAM. */
void h2_put_get(struct buf *out, int32_t id, const char *path);
void h2_put_preface(struct buf *out);             /* with empty SETTINGS */
bool h2_raw_open(struct tls_client *c, int port); /* connects and sends the preface */
/* The next frame, good until the next call; false at the end. */
bool h2_raw_next(struct tls_client *c, struct h2_frame *ret);
/* Reads until a frame of that type, on that stream (-1 = any); false at the end. */
bool h2_raw_until(struct tls_client *c, uint8_t type, int32_t id, struct h2_frame *ret);
#define H2_NO_CODE UINT32_MAX
/* Reads until then; the code, or H2_NO_CODE at the end of the connection. */
uint32_t h2_raw_goaway(struct tls_client *c);
uint32_t h2_raw_reset(struct tls_client *c, int32_t id);
