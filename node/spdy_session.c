/* Source: SPDY protocol draft 3.1, sections 2.3 (streams), 2.4 (errors), 2.6.8 (flow control);
 * headers and versions: Kubernetes' remotecommand and portforward, as its kubelet answers them. */
#include "node/spdy_session.h"

#include <stdlib.h>
#include <string.h>

#include "apiserver/base/mem.h"
#include "node/head.h"
#include "node/spdy.h"

#define WINDOW 65536          /* bytes that may be sent before the first update; 3.1, 2.6.8 */
#define WINDOW_MAX 0x7fffffff /* bytes */
#define PIECE_MAX 32768       /* bytes of a DATA frame of ours, so that streams take turns */
#define REQUEST_MAX 256       /* bytes of a request's id */

struct spdy_stream {
    struct stream s;    /* first */
    int64_t window;     /* bytes the peer lets us send; below 0 when it said so late */
    uint32_t unheard;   /* bytes we have read and not yet said so */
    struct buf waiting; /* for the window; its end follows when has_ended */
};

struct spdy_session {
    struct session session; /* first */
    struct spdy *codec;
    struct session_wish wish;     /* its kinds */
    struct spdy_stream **streams; /* those that are open, by id */
    size_t n_streams;
    uint32_t last_id; /* greatest of the peer's */
    int64_t window;   /* as a stream's, for all together */
    int64_t initial_window;
    uint32_t unheard;
    bool keeps_windows; /* the peer has shown that it does */
};

static struct spdy_session *of(struct session *s)
{
    return (struct spdy_session *)s;
}

/* ---- sending --------------------------------------------------------------------------------- */

static void put(struct spdy_session *s, const struct spdy_frame *f)
{
    spdy_write(s->codec, f, &s->session.out);
}

static void put_pair(struct spdy_session *s, enum spdy_type type, uint32_t id, uint32_t value)
{
    put(s, &(struct spdy_frame){.type = type, .id = id, .value = value});
}

/* The end of the session: the peer may not know of streams after the last one. */
static void say_goodbye(struct spdy_session *s, enum spdy_goaway status)
{
    if (!s->session.is_over)
        put_pair(s, SPDY_GOAWAY, s->last_id, status);
    s->session.is_over = true;
}

static void put_data(struct spdy_session *s, struct spdy_stream *stream, struct str data)
{
    for (size_t n; data.n > 0; data = (struct str){data.p + n, data.n - n}) {
        n = data.n < PIECE_MAX ? data.n : PIECE_MAX;
        put(s, &(struct spdy_frame){.type = SPDY_DATA, .id = stream->s.id, .data = {data.p, n}});
        stream->window -= (int64_t)n;
        s->window -= (int64_t)n;
    }
}

static void put_end(struct spdy_session *s, const struct spdy_stream *stream)
{
    put(s, &(struct spdy_frame){.type = SPDY_DATA, .id = stream->s.id, .flags = SPDY_FLAG_FIN});
}

/* How many of n bytes the windows let through. */
static size_t allowed(const struct spdy_session *s, const struct spdy_stream *stream, size_t n)
{
    int64_t window = stream->window < s->window ? stream->window : s->window;
    if (!s->keeps_windows)
        return n;
    return window <= 0 ? 0 : (size_t)window < n ? (size_t)window : n;
}

/* ---- streams --------------------------------------------------------------------------------- */

/* Where the stream of that id is or would be. */
static size_t place(const struct spdy_session *s, uint32_t id)
{
    size_t from = 0, to = s->n_streams;
    while (from < to) {
        size_t middle = (from + to) / 2;
        if (s->streams[middle]->s.id < id)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static struct spdy_stream *find(const struct spdy_session *s, uint32_t id)
{
    size_t i = place(s, id);
    return i < s->n_streams && s->streams[i]->s.id == id ? s->streams[i] : NULL;
}

static void stream_free(struct spdy_stream *stream)
{
    if (stream == NULL)
        return;
    free(stream->s.request);
    buf_fini(&stream->waiting);
    free(stream);
}

static void unlist(struct spdy_session *s, const struct spdy_stream *stream)
{
    size_t i = place(s, stream->s.id);
    s->n_streams--;
    memmove(&s->streams[i], &s->streams[i + 1], (s->n_streams - i) * sizeof(struct spdy_stream *));
}

static void drop(struct spdy_session *s, struct spdy_stream *stream)
{
    unlist(s, stream);
    s->session.user->on_gone(s->session.ctx, &stream->s);
    stream_free(stream);
}

static void reset(struct spdy_session *s, uint32_t id, enum spdy_rst status)
{
    put_pair(s, SPDY_RST_STREAM, id, status);
    struct spdy_stream *stream = find(s, id);
    if (stream != NULL)
        drop(s, stream);
}

static bool is_done(const struct spdy_stream *stream)
{
    return stream->s.has_heard_end && stream->s.has_ended && stream->waiting.len == 0;
}

static void heard_end(struct spdy_session *s, uint32_t id)
{
    struct spdy_stream *stream = find(s, id);
    if (stream == NULL || stream->s.has_heard_end)
        return;
    stream->s.has_heard_end = true;
    s->session.user->on_end(s->session.ctx, &stream->s);
    if ((stream = find(s, id)) != NULL && is_done(stream))
        drop(s, stream);
}

/* Sends of what waits as much as the windows let through. */
static void flush(struct spdy_session *s, struct spdy_stream *stream)
{
    size_t n = allowed(s, stream, stream->waiting.len);
    if (n == 0)
        return;
    struct buf rest = {0};
    put_data(s, stream, (struct str){stream->waiting.data, n});
    buf_append(&rest, stream->waiting.data + n, stream->waiting.len - n);
    buf_fini(&stream->waiting);
    stream->waiting = rest;
    if (rest.len > 0 || !stream->s.has_ended)
        return;
    put_end(s, stream);
    if (is_done(stream))
        drop(s, stream);
}

/* Backwards, since streams that are done go. */
static void flush_all(struct spdy_session *s)
{
    for (size_t i = s->n_streams; i-- > 0;)
        if (i < s->n_streams)
            flush(s, s->streams[i]);
}

/* ---- a new stream ---------------------------------------------------------------------------- */

static bool read_kind(const char *text, enum stream_kind *ret)
{
    for (int kind = 0; kind < STREAM_KINDS; kind++)
        if (text != NULL && strcmp(text, stream_kind_names[kind]) == 0) {
            *ret = (enum stream_kind)kind;
            return true;
        }
    return false;
}

static bool read_port(const char *text, int *ret)
{
    int64_t port;
    if (text == NULL || str_to_i64(text, &port) < 0 || port < 1 || port > 65535)
        return false;
    *ret = (int)port;
    return true;
}

/* Old clients give no number to a request: the error stream comes first, the data stream is the
 * next. Source: kubelet's port-forward. */
static char *read_request(const struct pairs *headers, const struct stream *stream)
{
    const char *request = pairs_get(headers, "requestid");
    if (request != NULL && *request != '\0')
        return xstrdup(request);
    return xasprintf("stream %u", stream->kind == STREAM_DATA ? stream->id - 2 : stream->id);
}

static bool is_for_ports(const struct spdy_session *s)
{
    return s->wish.kinds[STREAM_DATA];
}

static bool has_kind(const struct spdy_session *s, enum stream_kind kind)
{
    for (size_t i = 0; i < s->n_streams; i++)
        if (s->streams[i]->s.kind == kind)
            return true;
    return false;
}

/* What the headers say; false when no such stream is expected. */
static bool read_stream(const struct spdy_session *s, const struct pairs *headers,
                        struct stream *ret)
{
    const char *request = pairs_get(headers, "requestid");
    if (!read_kind(pairs_get(headers, "streamtype"), &ret->kind) || !s->wish.kinds[ret->kind])
        return false;
    if (!is_for_ports(s))
        return !has_kind(s, ret->kind);
    if (!read_port(pairs_get(headers, "port"), &ret->port) ||
        (request != NULL && strlen(request) > REQUEST_MAX))
        return false;
    ret->request = read_request(headers, ret);
    return true;
}

/* Asks its user. What that sends at once comes after our answer, for peers drop what comes
 * before. */
static bool enter(struct spdy_session *s, struct spdy_stream *stream)
{
    struct buf before = steal(&s->session.out);
    s->streams = xreallocarray(s->streams, s->n_streams + 1, sizeof(struct spdy_stream *));
    s->streams[s->n_streams++] = stream;
    bool is_taken = s->session.user->on_open(s->session.ctx, &stream->s);
    SCOPED(buf_fini) struct buf said = steal(&s->session.out);
    s->session.out = before;
    if (is_taken)
        put_pair(s, SPDY_SYN_REPLY, stream->s.id, 0);
    else
        unlist(s, stream);
    buf_append(&s->session.out, said.data, said.len);
    return is_taken;
}

/* ---- what the peer sends --------------------------------------------------------------------- */

static bool is_new(const struct spdy_session *s, uint32_t id)
{
    return id % 2 == 1 && id > s->last_id;
}

static void hear_stream(struct spdy_session *s, const struct spdy_frame *f)
{
    struct spdy_stream *stream = xcalloc(1, sizeof *stream);
    stream->s.id = f->id;
    stream->window = s->initial_window;
    stream->s.has_ended = f->flags & SPDY_FLAG_UNIDIRECTIONAL;
    s->last_id = f->id;
    if (s->n_streams == SESSION_STREAMS_MAX || !read_stream(s, &f->headers, &stream->s) ||
        !enter(s, stream)) {
        stream_free(stream);
        put_pair(s, SPDY_RST_STREAM, f->id, SPDY_RST_REFUSED_STREAM);
    }
}

/* A number that cannot be a new stream's resets what has it, as spdystream does. */
static void hear_syn(struct spdy_session *s, const struct spdy_frame *f)
{
    if (!is_new(s, f->id))
        reset(s, f->id, SPDY_RST_PROTOCOL_ERROR);
    else
        hear_stream(s, f);
}

/* We open none, so there is nothing to answer. */
static void hear_reply(struct spdy_session *s, const struct spdy_frame *f)
{
    reset(s, f->id, SPDY_RST_INVALID_STREAM);
}

static void hear_reset(struct spdy_session *s, const struct spdy_frame *f)
{
    struct spdy_stream *stream = find(s, f->id);
    if (stream == NULL)
        return;
    stream->s.has_heard_end = stream->s.has_ended = true;
    drop(s, stream);
}

static void hear_ping(struct spdy_session *s, const struct spdy_frame *f)
{
    if (f->id % 2 == 1) /* the others would be answers, and we ask nothing */
        put_pair(s, SPDY_PING, f->id, 0);
}

static void hear_goaway(struct spdy_session *s, const struct spdy_frame *f)
{
    (void)f;
    s->session.is_over = true;
}

static void hear_settings(struct spdy_session *s, const struct spdy_frame *f)
{
    if (!(f->has_setting & 1u << SPDY_SETTING_INITIAL_WINDOW))
        return;
    int64_t window = f->settings[SPDY_SETTING_INITIAL_WINDOW];
    if (window > WINDOW_MAX) {
        say_goodbye(s, SPDY_GOAWAY_PROTOCOL_ERROR);
        return;
    }
    for (size_t i = 0; i < s->n_streams; i++)
        s->streams[i]->window += window - s->initial_window;
    s->initial_window = window;
    s->keeps_windows = true;
    flush_all(s);
}

static void hear_window(struct spdy_session *s, const struct spdy_frame *f)
{
    struct spdy_stream *stream = find(s, f->id);
    int64_t *window = f->id == 0 ? &s->window : stream != NULL ? &stream->window : NULL;
    s->keeps_windows = true;
    if (window == NULL)
        return;
    *window += f->value;
    if (*window <= WINDOW_MAX)
        flush_all(s);
    else if (f->id == 0)
        say_goodbye(s, SPDY_GOAWAY_PROTOCOL_ERROR);
    else
        reset(s, f->id, SPDY_RST_FLOW_CONTROL_ERROR);
}

/* Gives leave for as many bytes as were read, in steps of half a window. */
static void give_leave(struct spdy_session *s, uint32_t id, uint32_t *unheard, size_t n)
{
    *unheard += (uint32_t)n;
    if (*unheard < WINDOW / 2)
        return;
    put_pair(s, SPDY_WINDOW_UPDATE, id, *unheard);
    *unheard = 0;
}

/* Data for a stream that is gone is still under way when we reset it; for one that never was it is
 * a mistake. */
static void hear_data(struct spdy_session *s, const struct spdy_frame *f)
{
    struct spdy_stream *stream = find(s, f->id);
    give_leave(s, 0, &s->unheard, f->data.n);
    if (stream == NULL && (f->id > s->last_id || f->id % 2 == 0))
        reset(s, f->id, SPDY_RST_INVALID_STREAM);
    if (stream == NULL)
        return;
    if (stream->s.has_heard_end) {
        reset(s, f->id, SPDY_RST_STREAM_ALREADY_CLOSED);
        return;
    }
    if (!(f->flags & SPDY_FLAG_FIN))
        give_leave(s, f->id, &stream->unheard, f->data.n);
    if (f->data.n > 0)
        s->session.user->on_data(s->session.ctx, &stream->s, f->data.p, f->data.n);
}

/* Of HEADERS nothing matters but the end. */
static void (*const hear[SPDY_TYPES])(struct spdy_session *s, const struct spdy_frame *f) = {
    [SPDY_SYN_STREAM] = hear_syn,
    [SPDY_SYN_REPLY] = hear_reply,
    [SPDY_RST_STREAM] = hear_reset,
    [SPDY_SETTINGS] = hear_settings,
    [SPDY_PING] = hear_ping,
    [SPDY_GOAWAY] = hear_goaway,
    [SPDY_WINDOW_UPDATE] = hear_window,
    [SPDY_DATA] = hear_data,
};

static bool can_end(enum spdy_type type)
{
    return type == SPDY_SYN_STREAM || type == SPDY_HEADERS || type == SPDY_DATA;
}

static void hear_frame(struct spdy_session *s, const struct spdy_frame *f)
{
    if (f->fault != 0) {
        reset(s, f->id, f->fault);
        if (f->type == SPDY_SYN_STREAM && is_new(s, f->id))
            s->last_id = f->id;
        return;
    }
    if (hear[f->type] != NULL)
        hear[f->type](s, f);
    if (can_end(f->type) && f->flags & SPDY_FLAG_FIN && !s->session.is_over)
        heard_end(s, f->id);
}

static void feed(struct session *session, const char *p, size_t n)
{
    struct spdy_session *s = of(session);
    bool is_done = false;
    while (!session->is_over && !is_done) {
        SCOPED(spdy_frame_fini) struct spdy_frame f = {0};
        size_t used;
        if (spdy_read(s->codec, p, n, &used, &f, NULL) < 0) {
            say_goodbye(s, SPDY_GOAWAY_PROTOCOL_ERROR);
            return;
        }
        is_done = f.type == SPDY_NONE;
        if (!is_done)
            hear_frame(s, &f);
        if (session->out.len > SPDY_UNREAD_MAX)
            say_goodbye(s, SPDY_GOAWAY_INTERNAL_ERROR);
        p += used;
        n -= used;
    }
}

/* ---- what our side does ---------------------------------------------------------------------- */

static void start(struct session *session)
{
    put(of(session),
        &(struct spdy_frame){.type = SPDY_SETTINGS,
                             .has_setting = 1u << SPDY_SETTING_MAX_STREAMS,
                             .settings = {[SPDY_SETTING_MAX_STREAMS] = SESSION_STREAMS_MAX}});
}

static size_t room(struct session *session, const struct stream *stream)
{
    const struct spdy_stream *mine = (const struct spdy_stream *)stream;
    if (mine->waiting.len > 0)
        return 0;
    return allowed(of(session), mine, SESSION_OUT_MAX - session->out.len);
}

static void send_data(struct session *session, struct stream *stream, const char *p, size_t n)
{
    struct spdy_session *s = of(session);
    struct spdy_stream *mine = (struct spdy_stream *)stream;
    size_t now = mine->waiting.len > 0 ? 0 : allowed(s, mine, n);
    put_data(s, mine, (struct str){p, now});
    buf_append(&mine->waiting, p + now, n - now);
}

static void end(struct session *session, struct stream *stream)
{
    struct spdy_session *s = of(session);
    struct spdy_stream *mine = (struct spdy_stream *)stream;
    stream->has_ended = true;
    if (mine->waiting.len > 0)
        return;
    put_end(s, mine);
    if (is_done(mine))
        drop(s, mine);
}

static void close_session(struct session *session)
{
    say_goodbye(of(session), SPDY_GOAWAY_OK);
}

static void free_session(struct session *session)
{
    struct spdy_session *s = of(session);
    session->is_over = true;
    while (s->n_streams > 0)
        drop(s, s->streams[s->n_streams - 1]);
    free(s->streams);
    spdy_free(s->codec);
    buf_fini(&session->out);
    free(s);
}

static const struct session_ops ops = {
    .start = start,
    .feed = feed,
    .room = room,
    .send = send_data,
    .end = end,
    .close = close_session,
    .free = free_session,
};

struct session *spdy_session_new(const struct session_wish *wish, const struct session_user *user,
                                 void *ctx)
{
    struct spdy_session *s = xcalloc(1, sizeof *s);
    s->session = (struct session){.ops = &ops, .user = user, .ctx = ctx};
    s->codec = spdy_new();
    memcpy(s->wish.kinds, wish->kinds, sizeof wish->kinds);
    s->window = s->initial_window = WINDOW;
    return &s->session;
}

/* ---- the request ----------------------------------------------------------------------------- */

#define VERSION_HEADER "X-Stream-Protocol-Version"

/* What we speak beside SPDY, as kubelet does: version 5 of a command differs from 4 in WebSockets
 * alone, and is not answered here by anybody. */
static const struct version {
    const char *name;
    bool is_for_ports, has_status, has_resize;
} versions[] = {
    {"v4.channel.k8s.io", .has_status = true, .has_resize = true},
    {"v3.channel.k8s.io", .has_resize = true},
    {"v2.channel.k8s.io"},
    {"channel.k8s.io"},
    {"portforward.k8s.io", .is_for_ports = true},
};

/* The first of the client's that we know, and that is for what is asked. */
static const struct version *choose_version(const struct head *req, bool is_for_ports)
{
    struct head_tokens tokens = {.head = req, .name = VERSION_HEADER};
    for (struct str name; head_next_token(&tokens, &name);)
        for (size_t i = 0; i < ARRAY_LEN(versions); i++)
            if (str_eq(name, versions[i].name) && versions[i].is_for_ports == is_for_ports)
                return &versions[i];
    return NULL;
}

static int accept_spdy(const struct head *req, const struct session_wish *wish,
                       const struct session_user *user, void *ctx, struct session **ret,
                       struct err *err)
{
    const struct version *version = choose_version(req, wish->kinds[STREAM_DATA]);
    if (version == NULL && pairs_get_ci(&req->headers, VERSION_HEADER) == NULL)
        return err_set(err, ERR_BAD_REQUEST,
                       "unable to upgrade: " VERSION_HEADER " is not in the request");
    if (version == NULL)
        return err_set(err, ERR_FORBIDDEN,
                       "unable to upgrade: no version of " VERSION_HEADER " is known here");
    struct session *s = spdy_session_new(wish, user, ctx);
    s->has_status = version->has_status;
    s->lacks_resize = !version->has_resize;
    of(s)->wish.kinds[STREAM_RESIZE] &= version->has_resize;
    buf_printf(&s->out,
               "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "
               "SPDY/3.1\r\n" VERSION_HEADER ": %s\r\n\r\n",
               version->name);
    *ret = s;
    return 0;
}

const struct session_protocol session_spdy = {.upgrade = "SPDY/3.1", .accept = accept_spdy};
