/* One stream of an HTTP/2 connection: a request collected, handed to a worker, answered. For h2.c
 * alone. Everything is on the connection's thread, but for a call that a worker has. */
#pragma once

#include <nghttp2/nghttp2.h>

#include "apiserver/http/flow.h"
#include "apiserver/http/h2.h"

struct h2_call;

/* How fast something comes: a level that each event raises and time lowers. */
struct h2_meter {
    int64_t level, at_ms; /* events x 1000 */
};

struct h2 {
    const struct h2_config *config;
    nghttp2_session *session;
    struct peer *peer;
    struct mailbox *box;
    struct buf *spare;
    void (*notify)(void *ctx);
    void *ctx;
    struct h2_exchange *exchanges;
    size_t n_exchanges;
    struct h2_call *orphans; /* with a worker, of streams that are gone */
    size_t n_orphans;
    const uint8_t *piece; /* of libnghttp2, to be sent; good until it is asked for the next */
    size_t piece_n;
    size_t block_bytes;    /* of the header list that comes in */
    int64_t head_since_ms; /* a header block has begun, or there is no preface yet; 0 = neither */
    int32_t head_id;       /* its stream */
    int64_t idle_since_ms; /* no stream since */
    int64_t notice_at_ms;  /* the client was told that the connection ends; 0 = it was not */
    struct h2_meter frames, resets;
    bool has_settings;
    bool is_ended; /* we want nothing more; what is queued is sent */
    bool is_broken;
    bool is_goaway_sent, is_input_over;
};

/* Small, for there may be many that only wait. */
struct h2_exchange {
    struct flow flow; /* first; what the answer's bytes come from, besides out */
    struct h2_exchange *prev, *next;
    struct h2 *h;
    struct h2_call *call; /* until it is answered */
    struct buf out;       /* to be sent */
    size_t out_off;
    int64_t since_ms; /* of the body's begin, later of the last byte sent */
    uint64_t to_read; /* bytes of the client's body, wanted or not, before it is told to stop */
    int32_t id;
    bool is_body_over; /* the client's */
    bool is_head_sent; /* the answer has begun */
    bool is_answer_sent;
    bool is_deferred; /* nothing to send: libnghttp2 waits to be told */
    bool is_reset;
};

struct h2_exchange *h2_exchange_new(struct h2 *h, int32_t id);
void h2_exchange_free(struct h2_exchange *x);
void h2_exchange_put_header(struct h2_exchange *x, struct str name, struct str value);
void h2_exchange_head_done(struct h2_exchange *x);
/* Whether the client may send more. */
bool h2_exchange_put_body(struct h2_exchange *x, const uint8_t *p, size_t n);
void h2_exchange_stop_body(struct h2_exchange *x); /* if it is not wanted and enough was read */
void h2_exchange_body_done(struct h2_exchange *x);
void h2_exchange_end(struct h2_exchange *x); /* its stream, after what was pulled already */
void h2_exchange_reset(struct h2_exchange *x, uint32_t code);
/* Whether it waits for nobody but a worker or its own stream; else it has a deadline, and is reset
 * once that is over. */
bool h2_exchange_tick(struct h2_exchange *x, int64_t now_ms);
void h2_call_forget(struct h2_call *orphans); /* their connection goes */
