/* The test's end of HTTP/2. */
#include "tests/lib/h2_client.h"

#include <stdlib.h>
#include <string.h>

#include "apiserver/base/mem.h"

#define WINDOW_LARGE (1 << 24)

/* ---- the one that behaves ---- */

static struct h2_reply *reply_of(nghttp2_session *session, int32_t id)
{
    return nghttp2_session_get_stream_user_data(session, id);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_n, const uint8_t *value, size_t value_n, uint8_t flags, void *ctx)
{
    (void)flags;
    (void)ctx;
    struct h2_reply *r = reply_of(session, frame->hd.stream_id);
    SCOPED_FREE char *n = xstrndup((const char *)name, name_n);
    SCOPED_FREE char *v = xstrndup((const char *)value, value_n);
    if (!r)
        return 0;
    if (strcmp(n, ":status") != 0) {
        pairs_add(&r->headers, n, v);
        return 0;
    }
    r->n_interim += r->status != 0;
    r->status = (int)strtol(v, NULL, 10);
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n,
                   void *ctx)
{
    (void)flags;
    (void)ctx;
    struct h2_reply *r = reply_of(session, id);
    if (r)
        buf_append(&r->body, p, n);
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    (void)session;
    struct h2_client *c = ctx;
    if (frame->hd.type != NGHTTP2_GOAWAY)
        return 0;
    c->has_goaway = true;
    c->goaway_code = frame->goaway.error_code;
    c->goaway_last_id = frame->goaway.last_stream_id;
    return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t error, void *ctx)
{
    (void)ctx;
    struct h2_reply *r = reply_of(session, id);
    if (!r)
        return 0;
    r->is_closed = true;
    r->error = error;
    return 0;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *out, size_t max,
                         uint32_t *flags, nghttp2_data_source *source, void *ctx)
{
    (void)session;
    (void)id;
    (void)ctx;
    struct h2_reply *r = source->ptr;
    if (r->is_body_held)
        return NGHTTP2_ERR_DEFERRED;
    size_t n = r->sending_n < max ? r->sending_n : max;
    if (n > 0)
        memcpy(out, r->sending, n);
    r->sending += n;
    r->sending_n -= n;
    if (r->sending_n == 0)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static void make_session(struct h2_client *c, const struct h2_client_opts *opts)
{
    nghttp2_session_callbacks *calls = NULL;
    nghttp2_option *o = NULL;
    nghttp2_session_callbacks_new(&calls);
    nghttp2_option_new(&o);
    nghttp2_session_callbacks_set_on_header_callback(calls, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(calls, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(calls, on_close);
    nghttp2_option_set_no_auto_window_update(o, opts->is_lazy);
    nghttp2_option_set_max_send_header_block_length(o, (size_t)1 << 20);
    nghttp2_session_client_new2(&c->session, calls, c, o);
    nghttp2_option_del(o);
    nghttp2_session_callbacks_del(calls);
    nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, opts->window ? opts->window : WINDOW_LARGE},
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
    };
    nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings, ARRAY_LEN(settings));
    nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, 0, WINDOW_LARGE);
}

bool h2_client_open(struct h2_client *c, int port, const struct h2_client_opts *opts)
{
    static const struct h2_client_opts none;
    struct tls_client_opts tls = opts ? opts->tls : none.tls;
    tls.alpn = "\x02h2";
    *c = (struct h2_client){0};
    if (!tls_client_open(&c->tls, port, &tls))
        return false;
    make_session(c, opts ? opts : &none);
    return true;
}

static nghttp2_nv field(const char *name, const char *value)
{
    nghttp2_nv nv = {.namelen = strlen(name), .valuelen = strlen(value)};
    memcpy(&nv.name, &name, sizeof name); /* libnghttp2 copies; its struct is not const */
    memcpy(&nv.value, &value, sizeof value);
    return nv;
}

struct h2_reply *h2_client_send(struct h2_client *c, const char *method, const char *path,
                                const struct pairs *headers, const char *body, size_t n)
{
    size_t n_headers = headers ? headers->n : 0, n_nv = 0;
    nghttp2_nv *nv = xcalloc(n_headers + 4, sizeof *nv);
    struct h2_reply *r = xcalloc(1, sizeof *r);
    nghttp2_data_provider data = {.source.ptr = r, .read_callback = read_body};
    nv[n_nv++] = field(":method", method);
    nv[n_nv++] = field(":scheme", "https");
    nv[n_nv++] = field(":authority", "test.example");
    nv[n_nv++] = field(":path", path);
    for (size_t i = 0; i < n_headers; i++)
        nv[n_nv++] = field(headers->v[i].name, headers->v[i].value);
    *r = (struct h2_reply){.sending = body, .sending_n = n, .is_body_held = n > 0 && !body};
    r->body.max = (size_t)1 << 30;
    r->id = nghttp2_submit_request(c->session, NULL, nv, n_nv, n > 0 ? &data : NULL, r);
    free(nv);
    r->next = c->replies;
    c->replies = r;
    return r;
}

void h2_client_flush(struct h2_client *c)
{
    SCOPED(buf_fini) struct buf out = {0};
    const uint8_t *p = NULL;
    ssize_t n;
    while ((n = nghttp2_session_mem_send(c->session, &p)) > 0)
        buf_append(&out, p, (size_t)n);
    if (out.len > 0 && !tls_client_send_bytes(&c->tls, out.data, out.len))
        c->is_over = true;
}

bool h2_client_step(struct h2_client *c)
{
    uint8_t bytes[16384];
    h2_client_flush(c);
    int n = SSL_read(c->tls.ssl, bytes, sizeof bytes);
    if (n <= 0 || nghttp2_session_mem_recv(c->session, bytes, (size_t)n) < 0) {
        c->is_over = true;
        return false;
    }
    return true;
}

void h2_client_cancel(struct h2_client *c, struct h2_reply *r)
{
    nghttp2_submit_rst_stream(c->session, NGHTTP2_FLAG_NONE, r->id, NGHTTP2_CANCEL);
    h2_client_flush(c);
}

void h2_client_consume(struct h2_client *c, struct h2_reply *r, size_t n)
{
    nghttp2_session_consume(c->session, r->id, n);
    h2_client_flush(c);
}

void h2_client_close(struct h2_client *c)
{
    nghttp2_session_del(c->session);
    while (c->replies) {
        struct h2_reply *r = c->replies;
        c->replies = r->next;
        pairs_fini(&r->headers);
        buf_fini(&r->body);
        free(r);
    }
    tls_client_close(&c->tls);
    c->session = NULL;
}

/* ---- by hand ---- */

void h2_put_frame(struct buf *out, uint8_t type, uint8_t flags, int32_t id, const void *payload,
                  size_t n)
{
    uint32_t stream = (uint32_t)id;
    uint8_t head[9] = {(uint8_t)(n >> 16),
                       (uint8_t)(n >> 8),
                       (uint8_t)n,
                       type,
                       flags,
                       (uint8_t)(stream >> 24),
                       (uint8_t)(stream >> 16),
                       (uint8_t)(stream >> 8),
                       (uint8_t)stream};
    buf_append(out, head, sizeof head);
    buf_append(out, payload, n);
}

/* RFC 7541, 6.2.2 */
void h2_put_field(struct buf *out, const char *name, const char *value)
{
    buf_putc(out, '\0');
    buf_putc(out, (char)strlen(name));
    buf_puts(out, name);
    buf_putc(out, (char)strlen(value));
    buf_puts(out, value);
}

void h2_put_get(struct buf *out, int32_t id, const char *path)
{
    SCOPED(buf_fini) struct buf block = {0};
    h2_put_field(&block, ":method", "GET");
    h2_put_field(&block, ":scheme", "https");
    h2_put_field(&block, ":authority", "x");
    h2_put_field(&block, ":path", path);
    h2_put_frame(out, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, id,
                 block.data, block.len);
}

void h2_put_preface(struct buf *out)
{
    buf_append(out, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN);
    h2_put_frame(out, NGHTTP2_SETTINGS, 0, 0, "", 0);
}

bool h2_raw_open(struct tls_client *c, int port)
{
    SCOPED(buf_fini) struct buf preface = {0};
    h2_put_preface(&preface);
    return tls_client_open(c, port, &(struct tls_client_opts){.alpn = "\x02h2"}) &&
           tls_client_send_bytes(c, preface.data, preface.len);
}

static bool read_exactly(struct tls_client *c, uint8_t *p, size_t n)
{
    while (n > 0) {
        int r = SSL_read(c->ssl, p, (int)n);
        if (r <= 0)
            return false;
        p += r;
        n -= (size_t)r;
    }
    return true;
}

bool h2_raw_next(struct tls_client *c, struct h2_frame *ret)
{
    static uint8_t payload[1 << 16];
    uint8_t h[9];
    if (!read_exactly(c, h, sizeof h))
        return false;
    *ret = (struct h2_frame){
        .type = h[3],
        .flags = h[4],
        .id = (int32_t)((uint32_t)h[5] << 24 | (uint32_t)h[6] << 16 | (uint32_t)h[7] << 8 | h[8]),
        .payload = payload,
        .n = (size_t)h[0] << 16 | (size_t)h[1] << 8 | h[2]};
    return ret->n <= sizeof payload && read_exactly(c, payload, ret->n);
}

bool h2_raw_until(struct tls_client *c, uint8_t type, int32_t id, struct h2_frame *ret)
{
    while (h2_raw_next(c, ret))
        if (ret->type == type && (id < 0 || ret->id == id))
            return true;
    return false;
}

static uint32_t code_at(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

uint32_t h2_raw_goaway(struct tls_client *c)
{
    struct h2_frame f;
    return h2_raw_until(c, NGHTTP2_GOAWAY, -1, &f) && f.n >= 8 ? code_at(f.payload + 4)
                                                               : H2_NO_CODE;
}

uint32_t h2_raw_reset(struct tls_client *c, int32_t id)
{
    struct h2_frame f;
    return h2_raw_until(c, NGHTTP2_RST_STREAM, id, &f) && f.n >= 4 ? code_at(f.payload)
                                                                   : H2_NO_CODE;
}
