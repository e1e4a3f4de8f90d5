/* What the tests of sessions over SPDY share: a peer made of the codec, and a user that writes down
 * what it is told. */
#pragma once

#include "node/head.h"
#include "node/session.h"
#include "node/spdy.h"
#include "tests/lib/suite.h"

struct table {
    struct session *s;
    struct spdy *peer;             /* writes */
    struct spdy *ear;              /* reads */
    struct buf in, told, said;     /* of the peer; of the user; of the session, as lines */
    struct stream *streams[16];    /* by id */
    bool refuses, greets, closes;  /* the user's manners, when a stream is opened */
    bool answers_end, ends_others; /* ... when the peer ends one; when one is gone */
};

/* ---- the user ---- */

static inline bool user_open(void *ctx, struct stream *s)
{
    struct table *t = ctx;
    buf_printf(&t->told, "open %u %s", s->id, stream_kind_names[s->kind]);
    if (s->port != 0)
        buf_printf(&t->told, " %d %s", s->port, s->request);
    buf_putc(&t->told, '\n');
    if (t->greets)
        session_send(t->s, s, "hello", 5);
    if (t->closes)
        session_close(t->s);
    if (s->id < ARRAY_LEN(t->streams))
        t->streams[s->id] = s;
    return !t->refuses;
}

static inline void user_data(void *ctx, struct stream *s, const char *p, size_t n)
{
    struct table *t = ctx;
    for (size_t i = 0; i < n; i++)
        buf_printf(&t->told, "data %u %c\n", s->id, p[i]);
}

static inline void user_end(void *ctx, struct stream *s)
{
    struct table *t = ctx;
    ck_assert(s->has_heard_end);
    buf_printf(&t->told, "end %u\n", s->id);
    if (t->answers_end)
        session_end(t->s, s);
}

static inline void user_gone(void *ctx, struct stream *s)
{
    struct table *t = ctx;
    buf_printf(&t->told, "gone %u\n", s->id);
    if (s->id < ARRAY_LEN(t->streams))
        t->streams[s->id] = NULL;
    for (size_t i = 0; t->ends_others && i < ARRAY_LEN(t->streams); i++)
        if (t->streams[i] != NULL)
            session_end(t->s, t->streams[i]);
}

static const struct session_user user = {user_open, user_data, user_end, user_gone};

/* ---- the peer ---- */

typedef struct session *session_new_fn(const struct session_wish *wish,
                                       const struct session_user *user, void *ctx);
static inline void table_init(struct table *t, session_new_fn *session_new, bool is_for_ports)
{
    struct session_wish wish = {0};
    wish.kinds[STREAM_ERROR] = true;
    wish.kinds[STREAM_DATA] = is_for_ports;
    wish.kinds[STREAM_STDIN] = wish.kinds[STREAM_STDOUT] = !is_for_ports;
    *t = (struct table){.s = session_new(&wish, &user, t)};
    t->peer = spdy_new();
    t->ear = spdy_new();
}

static inline void table_fini(struct table *t)
{
    session_free(t->s);
    spdy_free(t->peer);
    spdy_free(t->ear);
    buf_fini(&t->in);
    buf_fini(&t->told);
    buf_fini(&t->said);
}

static inline void peer_put(struct table *t, enum spdy_type type, uint32_t id, uint32_t value)
{
    spdy_write(t->peer, &(struct spdy_frame){.type = type, .id = id, .value = value}, &t->in);
}

/* port, request: NULL = not said */
static inline void peer_open(struct table *t, uint32_t id, uint8_t flags, const char *kind,
                             const char *port, const char *request)
{
    SCOPED(pairs_fini) struct pairs headers = {0};
    if (kind != NULL)
        pairs_add(&headers, "streamtype", kind);
    if (port != NULL)
        pairs_add(&headers, "port", port);
    if (request != NULL)
        pairs_add(&headers, "requestid", request);
    spdy_write(
        t->peer,
        &(struct spdy_frame){.type = SPDY_SYN_STREAM, .id = id, .flags = flags, .headers = headers},
        &t->in);
}

static inline void peer_data(struct table *t, uint32_t id, uint8_t flags, const char *data)
{
    spdy_write(t->peer,
               &(struct spdy_frame){.type = SPDY_DATA, .id = id, .flags = flags, .data = STR(data)},
               &t->in);
}

static inline void peer_setting(struct table *t, int id, uint32_t value)
{
    struct spdy_frame f = {.type = SPDY_SETTINGS, .has_setting = 1u << id};
    f.settings[id] = value;
    spdy_write(t->peer, &f, &t->in);
}

static inline void hear_frame(struct table *t, const struct spdy_frame *f)
{
    static const char *const names[SPDY_TYPES] = {
        [SPDY_SYN_REPLY] = "reply", [SPDY_RST_STREAM] = "reset",    [SPDY_SETTINGS] = "settings",
        [SPDY_PING] = "ping",       [SPDY_GOAWAY] = "goaway",       [SPDY_DATA] = "data",
        [SPDY_HEADERS] = "headers", [SPDY_WINDOW_UPDATE] = "window"};
    buf_printf(&t->said, "%s %u", names[f->type], f->id);
    if (f->value != 0)
        buf_printf(&t->said, " %u", f->value);
    if (f->data.n > 20)
        buf_printf(&t->said, " %zu", f->data.n);
    else if (f->data.n > 0)
        buf_printf(&t->said, " %.*s", (int)f->data.n, f->data.p);
    buf_puts(&t->said, f->flags & SPDY_FLAG_FIN ? " fin\n" : "\n");
}

/* Whole frames of SPDY, a line each. */
static inline void hear_frames(struct table *t, struct str left)
{
    for (bool is_done = false; !is_done;) {
        SCOPED(spdy_frame_fini) struct spdy_frame f = {0};
        size_t used;
        ck_assert_int_eq(spdy_read(t->ear, left.p, left.n, &used, &f, NULL), 0);
        ck_assert_int_eq(f.fault, 0);
        left = (struct str){left.p + used, left.n - used};
        is_done = f.type == SPDY_NONE;
        if (!is_done)
            hear_frame(t, &f);
    }
}

static inline void expect_lines(struct buf *lines, const char *want)
{
    ck_assert_str_eq(buf_cstr(lines), want);
    buf_clear(lines);
}
