/* The connection: settings, what libnghttp2 calls back, deadlines, and ceilings for clients who
 * make us work for nothing. Two meters watch for those: frames that bring nothing (pings, settings,
 * continuations, empty data, window updates beyond what we send, resets), and streams that end
 * before they were answered. Who goes over either is sent away; so is who lets our answers to such
 * frames pile up. Requests still cost a worker: those that were taken back count beside the open
 * ones as long as a worker has them. */
#include <string.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/http/h2_exchange.h"

#define STREAM_WINDOW (256 << 10)      /* bytes of a body that a client may send ahead */
#define CONNECTION_WINDOW (1024 << 10) /* of all bodies together */
/* Read from a head that is too large, for the 431. */
#define HEADERS_DROPPED_MAX (4 * H2_HEADERS_MAX)
#define CONTINUATIONS_MAX 64 /* frames of a header block; 64 KiB in frames of a kilobyte */
#define ACKS_MAX 1000        /* answers to pings and settings that wait to be sent */
#define QUEUE_MAX (4 * (size_t)H2_STREAMS_MAX) /* frames that wait to be sent, without DATA */
#define ANSWER_HEADERS_MAX ((size_t)256 << 10)
/* Frames that bring nothing: so many at once, and so many a second. */
#define FRAMES_BURST 4000
#define FRAMES_PER_S 500
/* A client may acknowledge a frame of data in pieces: Go's transport each 4 KiB, for the stream and
 * for the connection. */
#define FRAMES_PER_DATA_SENT 8
/* Streams that end unanswered: a client that gives up may give up all it has at once. */
#define RESETS_BURST H2_STREAMS_MAX
#define RESETS_PER_S 100
#define NOTICE_MAX_MS 5000 /* for a client to say that it knows of the end */
#define UNIT 1000          /* of a meter's level */

static int64_t now_ms(void)
{
    return clock_monotonic_ms(&clock_system);
}

/* ---- the end ---- */

/* Says why, sends what is queued, and takes no more. */
static void end(struct h2 *h, uint32_t code, const char *why)
{
    if (h->is_ended)
        return;
    h->is_ended = true;
    if (code != NGHTTP2_NO_ERROR)
        log_info("connection ended, %s peer=%s", why, h->peer->addr);
    if (nghttp2_session_terminate_session(h->session, code) != 0)
        h->is_broken = true;
}

/* Which of its requests is the last one that is taken. */
static void say_last(struct h2 *h)
{
    if (h->is_ended || h->is_goaway_sent)
        return;
    h->is_goaway_sent = true;
    nghttp2_submit_goaway(h->session, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(h->session), NGHTTP2_NO_ERROR,
                          NULL, 0);
}

static void calm(struct h2 *h, const char *why)
{
    end(h, NGHTTP2_ENHANCE_YOUR_CALM, why);
}

/* ---- meters ---- */

static bool meter_hit(struct h2_meter *m, int64_t burst, int64_t per_s)
{
    int64_t now = now_ms(), fallen = (now - m->at_ms) * per_s * UNIT / 1000;
    m->level = m->level > fallen ? m->level - fallen : 0;
    m->at_ms = now;
    m->level += UNIT;
    return m->level > burst * UNIT;
}

static void count_frame(struct h2 *h)
{
    if (meter_hit(&h->frames, FRAMES_BURST, FRAMES_PER_S))
        calm(h, "too many frames that bring nothing");
}

static void count_reset(struct h2 *h)
{
    if (meter_hit(&h->resets, RESETS_BURST, RESETS_PER_S))
        calm(h, "too many requests taken back");
}

/* ---- what libnghttp2 calls ---- */

static struct h2_exchange *exchange_of(struct h2 *h, int32_t id)
{
    return nghttp2_session_get_stream_user_data(h->session, id);
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *ctx)
{
    (void)session;
    if (hd->type != NGHTTP2_DATA && hd->type != NGHTTP2_HEADERS)
        count_frame(ctx);
    if (hd->type == NGHTTP2_PRIORITY && hd->stream_id == 0) /* RFC 9113, 6.3 */
        end(ctx, NGHTTP2_PROTOCOL_ERROR, "priority of no stream");
    return 0;
}

/* All streams take turns, whatever priority a client would like. */
static void set_priority(struct h2 *h, int32_t id)
{
    nghttp2_extpri even = {.urgency = NGHTTP2_EXTPRI_DEFAULT_URGENCY, .inc = 1};
    nghttp2_session_change_extpri_stream_priority(h->session, id, &even, 1);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct h2 *h = ctx;
    int32_t id = frame->hd.stream_id;
    h->block_bytes = 0;
    h->head_since_ms = now_ms();
    h->head_id = id;
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0; /* trailers */
    if (h->is_ended || h->n_exchanges + h->n_orphans >= H2_STREAMS_MAX) {
        count_reset(h);
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, id, NGHTTP2_REFUSED_STREAM);
        return 0;
    }
    nghttp2_session_set_stream_user_data(session, id, h2_exchange_new(h, id));
    set_priority(h, id);
    return 0;
}

/* Trailers are read and left. */
static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *ctx)
{
    (void)session;
    (void)flags;
    struct h2 *h = ctx;
    struct h2_exchange *x = exchange_of(h, frame->hd.stream_id);
    h->block_bytes += name_n + value_n;
    if (h->block_bytes > HEADERS_DROPPED_MAX) {
        calm(h, "a head is far too large");
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    if (x && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        h2_exchange_put_header(x, (struct str){(const char *)name, name_n},
                               (struct str){(const char *)value, value_n});
    return 0;
}

/* libnghttp2 would leave the field out and go on; RFC 9113, 8.2.1: the request is malformed. */
static int on_invalid_header(nghttp2_session *session, const nghttp2_frame *frame,
                             const uint8_t *name, size_t name_n, const uint8_t *value,
                             size_t value_n, uint8_t flags, void *ctx)
{
    (void)session;
    (void)frame;
    (void)name;
    (void)name_n;
    (void)value;
    (void)value_n;
    (void)flags;
    (void)ctx;
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static void on_headers(struct h2 *h, const nghttp2_frame *frame, struct h2_exchange *x)
{
    h->head_since_ms = 0;
    if (x && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        h2_exchange_head_done(x);
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    (void)session;
    struct h2 *h = ctx;
    bool has_body = frame->hd.type == NGHTTP2_DATA, has_head = frame->hd.type == NGHTTP2_HEADERS;
    bool is_last = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    struct h2_exchange *x = frame->hd.stream_id ? exchange_of(h, frame->hd.stream_id) : NULL;
    if (frame->hd.type == NGHTTP2_SETTINGS && !h->has_settings) {
        h->has_settings = true;
        h->head_since_ms = 0;
    }
    if (frame->hd.type == NGHTTP2_PING && (frame->hd.flags & NGHTTP2_FLAG_ACK) && h->notice_at_ms)
        say_last(h);
    if (has_head)
        on_headers(h, frame, x);
    if (has_body && !is_last && frame->hd.length == frame->data.padlen)
        count_frame(h);
    if (x && is_last && (has_head || has_body))
        h2_exchange_body_done(x);
    return 0;
}

/* The body is in the budget now, or thrown away, so the client may send as much again; not of a
 * body that was not wanted for too long. */
static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
                   void *ctx)
{
    (void)flags;
    struct h2_exchange *x = exchange_of(ctx, id);
    if (x && h2_exchange_put_body(x, p, n))
        nghttp2_session_consume(session, id, n);
    else
        nghttp2_session_consume_connection(session, n);
    return 0;
}

static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    (void)session;
    struct h2 *h = ctx;
    if (frame->hd.type == NGHTTP2_DATA) {
        int64_t paid = FRAMES_PER_DATA_SENT * UNIT;
        h->frames.level = h->frames.level > paid ? h->frames.level - paid : 0;
    } else if (frame->hd.type != NGHTTP2_HEADERS) {
        return 0;
    }
    struct h2_exchange *x = exchange_of(h, frame->hd.stream_id);
    if (x)
        x->is_head_sent = !x->call; /* else it is 100 Continue */
    if (x && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
        x->is_answer_sent = true;
        h2_exchange_stop_body(x);
    }
    return 0;
}

/* A head that libnghttp2 will not send, for its size. */
static int on_frame_not_send(nghttp2_session *session, const nghttp2_frame *frame, int error,
                             void *ctx)
{
    (void)session;
    struct h2_exchange *x = exchange_of(ctx, frame->hd.stream_id);
    if (!x || frame->hd.type != NGHTTP2_HEADERS)
        return 0;
    log_warn("answer not sent peer=%s reason=\"%s\"", x->h->peer->addr, nghttp2_strerror(error));
    h2_exchange_reset(x, NGHTTP2_INTERNAL_ERROR);
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *ctx)
{
    (void)session;
    (void)code;
    struct h2 *h = ctx;
    struct h2_exchange *x = exchange_of(h, id);
    if (id == h->head_id)
        h->head_since_ms = 0; /* what follows of the block is thrown away */
    if (!x)
        return 0;
    if (!x->is_head_sent)
        count_reset(h);
    h2_exchange_free(x);
    return 0;
}

static nghttp2_session_callbacks *make_callbacks(void)
{
    nghttp2_session_callbacks *c = NULL;
    if (nghttp2_session_callbacks_new(&c) != 0)
        return NULL;
    nghttp2_session_callbacks_set_on_begin_frame_callback(c, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(c, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(c, on_header);
    nghttp2_session_callbacks_set_on_invalid_header_callback(c, on_invalid_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame_recv);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data);
    nghttp2_session_callbacks_set_on_frame_send_callback(c, on_frame_send);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(c, on_frame_not_send);
    nghttp2_session_callbacks_set_on_stream_close_callback(c, on_stream_close);
    return c;
}

/* ---- start and end ---- */

/* libnghttp2's own limit of resets counts those of watches that were answered long ago, too, and
 * who ends 2,000 watches at once does no wrong: the meter counts in its stead. */
static nghttp2_option *make_options(void)
{
    nghttp2_option *o = NULL;
    if (nghttp2_option_new(&o) != 0)
        return NULL;
    nghttp2_option_set_no_auto_window_update(o, 1);
    nghttp2_option_set_no_closed_streams(o, 1); /* 1000 of them would be kept, a quarter of a MiB */
    nghttp2_option_set_max_outbound_ack(o, ACKS_MAX);
    nghttp2_option_set_max_continuations(o, CONTINUATIONS_MAX);
    nghttp2_option_set_max_send_header_block_length(o, ANSWER_HEADERS_MAX);
    nghttp2_option_set_stream_reset_rate_limit(o, UINT32_MAX, UINT32_MAX);
    return o;
}

static bool make_session(struct h2 *h)
{
    nghttp2_session_callbacks *callbacks = make_callbacks();
    nghttp2_option *options = make_options();
    int r = -1;
    if (callbacks && options)
        r = nghttp2_session_server_new2(&h->session, callbacks, h, options);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(options);
    return r == 0;
}

static bool submit_settings(struct h2 *h)
{
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, H2_STREAMS_MAX},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)H2_HEADERS_MAX},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
    };
    return nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, settings, ARRAY_LEN(settings)) ==
               0 &&
           nghttp2_session_set_local_window_size(h->session, NGHTTP2_FLAG_NONE, 0,
                                                 CONNECTION_WINDOW) == 0;
}

struct h2 *h2_new(const struct h2_config *config, struct peer *peer, struct mailbox *box,
                  struct buf *spare, void (*notify)(void *ctx), void *ctx)
{
    struct h2 *h = xcalloc(1, sizeof *h);
    h->config = config;
    h->peer = peer_ref(peer);
    h->box = box;
    h->spare = spare;
    h->notify = notify;
    h->ctx = ctx;
    h->head_since_ms = h->idle_since_ms = now_ms();
    if (!make_session(h) || !submit_settings(h)) {
        h2_free(h);
        return NULL;
    }
    return h;
}

void h2_free(struct h2 *h)
{
    if (!h)
        return;
    while (h->exchanges)
        h2_exchange_free(h->exchanges);
    h2_call_forget(h->orphans);
    nghttp2_session_del(h->session);
    peer_unref(h->peer);
    free(h);
}

/* ---- bytes ---- */

bool h2_feed(struct h2 *h, const char *p, size_t n)
{
    if (h->is_ended)
        return false;
    ssize_t r = nghttp2_session_mem_recv(h->session, (const uint8_t *)p, n);
    if (r == NGHTTP2_ERR_FLOODED)
        calm(h, "answers pile up");
    else if (r < 0)
        end(h, NGHTTP2_PROTOCOL_ERROR, nghttp2_strerror((int)r));
    if (nghttp2_session_get_outbound_queue_size(h->session) > QUEUE_MAX) {
        log_info("connection ended, answers pile up peer=%s", h->peer->addr);
        h->is_ended = h->is_broken = true;
    }
    return !h->is_ended;
}

size_t h2_read(struct h2 *h, char *out, size_t max)
{
    size_t n = 0;
    while (n < max && !h->is_broken) {
        if (h->piece_n == 0) {
            ssize_t r = nghttp2_session_mem_send(h->session, &h->piece);
            h->is_broken = r < 0;
            if (r <= 0)
                break;
            h->piece_n = (size_t)r;
        }
        size_t part = h->piece_n < max - n ? h->piece_n : max - n;
        memcpy(out + n, h->piece, part);
        n += part;
        h->piece += part;
        h->piece_n -= part;
    }
    return n;
}

bool h2_is_over(struct h2 *h)
{
    if (h->is_broken)
        return true;
    if (h->piece_n > 0 || nghttp2_session_want_write(h->session))
        return false;
    bool is_last_gone = h->n_exchanges == 0 && (h->is_input_over || h->is_goaway_sent);
    return h->is_ended || is_last_gone || !nghttp2_session_want_read(h->session);
}

/* Requests that are complete are still answered, as far as the windows go; watchers are away. */
void h2_end_input(struct h2 *h)
{
    struct h2_exchange *next;
    h->is_input_over = true;
    for (struct h2_exchange *x = h->exchanges; x; x = next) {
        next = x->next;
        if (x->flow.stream || !x->is_body_over)
            h2_exchange_reset(x, NGHTTP2_CANCEL);
    }
}

/* ---- time ---- */

bool h2_tick(struct h2 *h, int64_t now)
{
    bool is_quiet = h->n_exchanges > 0 && h->head_since_ms == 0;
    for (struct h2_exchange *x = h->exchanges; x; x = x->next)
        is_quiet &= h2_exchange_tick(x, now);
    if (h->head_since_ms && now - h->head_since_ms > h->config->header_timeout_ms)
        calm(h, "request too slow");
    else if (h->n_exchanges == 0 && now - h->idle_since_ms > h->config->idle_timeout_ms)
        end(h, NGHTTP2_NO_ERROR, "idle");
    return !is_quiet;
}

bool h2_is_used(struct h2 *h)
{
    return nghttp2_session_get_last_proc_stream_id(h->session) > 0;
}

/* First a notice, and a question: with its answer comes all that the client has sent
 * before it knew. */
void h2_drain(struct h2 *h)
{
    if (h->is_ended || h->is_goaway_sent)
        return;
    if (h->notice_at_ms) {
        if (now_ms() - h->notice_at_ms > NOTICE_MAX_MS)
            say_last(h);
        return;
    }
    h->notice_at_ms = now_ms();
    nghttp2_submit_shutdown_notice(h->session);
    nghttp2_submit_ping(h->session, NGHTTP2_FLAG_NONE, NULL);
    for (struct h2_exchange *x = h->exchanges; x; x = x->next)
        h2_exchange_end(x);
}
