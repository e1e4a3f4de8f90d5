/* exec and attach: a stream of the engine's at one side, the client's session at the other. What
 * the client began ends with it; a container that it attached to goes on. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "node/carry.h"
#include "node/lookup.h"
#include "node/outcome.h"
#include "node/visit.h"

#define WORDS_MAX 4096
#define STDIN_MAX ((size_t)256 << 10) /* bytes from the client that wait for the command */
#define PIECE ((size_t)32 << 10)      /* bytes read at once */
#define PIECES 8                      /* of one turn */
#define RESIZE_MAX ((size_t)1024)     /* bytes of a wish */
/* At first there may be nothing yet that has a size, and the engine may give a command the size
 * that it was begun with after it took another one: so a size is told again, each time after twice
 * as long, until the command is older than that. One that it has already is no news for it. */
#define RESIZE_AGAIN_MS 200
#define RESIZE_SURE_MS 10000
#define RESIZE_AGAIN_MAX_MS 6400
/* For a client to open its streams; source: the kubelet's streamCreationTimeout. */
#define OPEN_MS 30000
#define LOOK_TRIES 10 /* seconds, while the engine is started again */

struct command {
    struct visit *visit;
    struct session *session;
    const char *container_id;
    char *exec_id; /* NULL = attached */
    bool has_tty, has_stdin, keeps_stdin, has_ended;

    struct session_wish streams_wish;
    struct stream *streams[STREAM_KINDS];
    size_t missing; /* streams that are not open yet */
    int64_t opened_by_ms;

    int fd;       /* the engine's stream, -1 = not yet */
    size_t fd_at; /* in the waits */
    struct buf in;
    size_t in_sent;
    bool stdin_is_over, stdin_is_shut;
    unsigned char head[PODMAN_FRAME_HEAD];
    size_t head_len, left; /* of a frame */
    enum podman_stream to;

    struct buf wish; /* a resize that is not whole */
    int width, height;
    int64_t resize_at_ms; /* 0 = nothing to do */
    int64_t resize_pause_ms;
    int64_t begun_ms;
};

static int64_t now_ms(void)
{
    return clock_monotonic_ms(&clock_system);
}

/* ---- the client's streams ---- */

static bool on_open(void *ctx, struct stream *s)
{
    struct command *c = ctx;
    if (!c->streams_wish.kinds[s->kind] || c->streams[s->kind] || c->missing == 0)
        return false;
    c->streams[s->kind] = s;
    c->missing--;
    return true;
}

/* {"Width":80,"Height":24}, one after the other; the newest counts. */
static void take_wish(struct command *c, const char *p, size_t n)
{
    c->wish.max = RESIZE_MAX;
    buf_append(&c->wish, p, n);
    const char *end;
    while ((end = memchr(buf_cstr(&c->wish), '}', c->wish.len)) != NULL) {
        size_t len = (size_t)(end - c->wish.data) + 1;
        SCOPED(json_free_p) cJSON *size = NULL;
        if (json_parse(c->wish.data, len, NULL, &size, NULL) < 0)
            size = NULL;
        int64_t width = json_i64_or(size, "Width", 0), height = json_i64_or(size, "Height", 0);
        if (width > 0 && height > 0 && width <= UINT16_MAX && height <= UINT16_MAX) {
            c->width = (int)width;
            c->height = (int)height;
            c->resize_at_ms = now_ms();
            c->resize_pause_ms = RESIZE_AGAIN_MS;
        }
        c->wish.len -= len;
        memmove(c->wish.data, c->wish.data + len, c->wish.len);
    }
    if (buf_failed(&c->wish))
        buf_fini(&c->wish);
}

static void on_data(void *ctx, struct stream *s, const char *p, size_t n)
{
    struct command *c = ctx;
    if (s->kind == STREAM_STDIN && c->has_stdin)
        buf_append(&c->in, p, n);
    else if (s->kind == STREAM_RESIZE)
        take_wish(c, p, n);
}

static void on_end(void *ctx, struct stream *s)
{
    struct command *c = ctx;
    c->stdin_is_over |= s->kind == STREAM_STDIN;
}

static void on_gone(void *ctx, struct stream *s)
{
    struct command *c = ctx;
    c->stdin_is_over |= s->kind == STREAM_STDIN;
    c->streams[s->kind] = NULL;
}

static const struct session_user session_user = {on_open, on_data, on_end, on_gone};

/* ---- the end ---- */

static void send_and_end(struct command *c, enum stream_kind kind, const struct buf *bytes)
{
    struct stream *s = c->streams[kind];
    if (s && bytes)
        session_send(c->session, s, bytes->data, bytes->len);
    if (s)
        session_end(c->session, s);
}

static void finish(struct command *c, int exit_code, const struct err *err)
{
    SCOPED(buf_fini) struct buf text = {0};
    outcome_print(exit_code, err, c->session->has_status, &text);
    send_and_end(c, STREAM_STDOUT, NULL);
    send_and_end(c, STREAM_STDERR, NULL);
    send_and_end(c, STREAM_ERROR, &text);
    session_close(c->session);
}

static void finish_ended(struct command *c)
{
    SCOPED(err_fini) struct err err = {0};
    struct podman_exec_state state = {0};
    if (c->exec_id && podman_exec_look(c->visit->config->podman, c->exec_id, &state, &err) == 0 &&
        state.is_running)
        err_set(&err, ERR_UNAVAILABLE, "the engine ended the connection");
    c->has_ended = err.code == ERR_NONE;
    finish(c, state.exit_code, &err);
}

/* A command that is not over is not wanted any more. The engine may be away just now. */
static void kill_command(struct command *c)
{
    SCOPED(err_fini) struct err err = {0};
    struct pollfd stop = {.fd = c->visit->stop_fd, .events = POLLIN};
    int rc = -ERR_UNAVAILABLE;
    for (int i = 0; i < LOOK_TRIES && rc < 0; i++) {
        rc = podman_exec_kill(c->visit->config->podman, c->exec_id, &err);
        if (rc < 0 && poll(&stop, 1, 1000) > 0)
            break;
    }
    if (rc < 0)
        log_warn("a command may still run exec=%s: %s", c->exec_id, err_text(&err));
}

/* ---- the engine's stream ---- */

static void begin(struct command *c)
{
    SCOPED(err_fini) struct err err = {0};
    struct podman *podman = c->visit->config->podman;
    int rc = c->exec_id ? podman_exec_open(podman, c->exec_id, c->has_tty, c->width, c->height,
                                           &c->fd, &err)
                        : podman_attach(podman, c->container_id, c->has_stdin, &c->fd, &err);
    if (rc < 0) {
        finish(c, 0, &err);
        return;
    }
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    c->begun_ms = now_ms();
    if (c->exec_id)
        c->resize_at_ms = 0; /* it begins with that size */
}

static bool has_stdin_left(const struct command *c)
{
    return c->in_sent < c->in.len;
}

static void send_stdin(struct command *c)
{
    while (has_stdin_left(c)) {
        ssize_t n = send(c->fd, c->in.data + c->in_sent, c->in.len - c->in_sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        c->in_sent = n < 0 ? c->in.len : c->in_sent + (size_t)n; /* it reads no more */
    }
    buf_clear(&c->in);
    c->in_sent = 0;
    if (c->stdin_is_over && !c->stdin_is_shut && !c->keeps_stdin) {
        shutdown(c->fd, SHUT_WR);
        c->stdin_is_shut = true;
    }
}

static struct stream *stream_to(const struct command *c)
{
    return c->streams[!c->has_tty && c->to == PODMAN_STDERR ? STREAM_STDERR : STREAM_STDOUT];
}

/* How much may be read now, whatever stream it is for. */
static size_t room_of(struct command *c)
{
    size_t room = PIECE;
    for (int kind = STREAM_STDOUT; kind <= STREAM_STDERR; kind++) {
        size_t one = c->streams[kind] ? session_room(c->session, c->streams[kind]) : PIECE;
        room = one < room ? one : room;
    }
    return room;
}

static void send_on(struct command *c, const char *p, size_t n)
{
    struct stream *s = stream_to(c);
    if (s)
        session_send(c->session, s, p, n);
}

static void take_frames(struct command *c, const char *p, size_t n)
{
    while (n > 0) {
        if (c->left == 0) {
            c->head[c->head_len++] = (unsigned char)*p++;
            n--;
            if (c->head_len == sizeof c->head) {
                c->to = podman_frame(c->head, &c->left);
                c->head_len = 0;
            }
            continue;
        }
        size_t part = n < c->left ? n : c->left;
        send_on(c, p, part);
        c->left -= part;
        p += part;
        n -= part;
    }
}

/* False at its end. */
static bool read_output(struct command *c)
{
    char piece[PIECE];
    for (int i = 0; i < PIECES; i++) {
        size_t room = room_of(c);
        ssize_t n = room ? recv(c->fd, piece, room, 0) : 0;
        if (room == 0 || (n < 0 && errno == EAGAIN))
            return true;
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        if (c->has_tty)
            send_on(c, piece, (size_t)n);
        else
            take_frames(c, piece, (size_t)n);
    }
    return true;
}

static void resize(struct command *c)
{
    const char *what = c->exec_id ? "exec" : "containers";
    const char *id = c->exec_id ? c->exec_id : c->container_id;
    int rc = podman_resize(c->visit->config->podman, what, id, c->width, c->height, NULL);
    bool is_sure = rc == 0 && now_ms() - c->begun_ms >= RESIZE_SURE_MS;
    bool is_last = c->resize_pause_ms > RESIZE_AGAIN_MAX_MS;
    c->resize_at_ms = is_sure || is_last ? 0 : now_ms() + c->resize_pause_ms;
    c->resize_pause_ms *= 2;
}

/* ---- both ---- */

static void wait(void *ctx, struct waits *w)
{
    struct command *c = ctx;
    if (c->missing)
        waits_until(w, c->opened_by_ms);
    if (c->fd < 0)
        return;
    int events = (room_of(c) ? POLLIN : 0) | (has_stdin_left(c) ? POLLOUT : 0);
    c->fd_at = waits_add(w, c->fd, (short)events);
    if (c->resize_at_ms)
        waits_until(w, c->resize_at_ms);
}

static void act(void *ctx, const struct waits *w)
{
    struct command *c = ctx;
    (void)w;
    if (c->missing) {
        if (now_ms() >= c->opened_by_ms)
            session_close(c->session);
        return;
    }
    if (c->fd < 0)
        begin(c);
    if (c->fd < 0)
        return;
    if (c->resize_at_ms && c->has_tty && now_ms() >= c->resize_at_ms)
        resize(c);
    send_stdin(c);
    if (!read_output(c))
        finish_ended(c);
}

static bool is_full(void *ctx)
{
    const struct command *c = ctx;
    return c->in.len - c->in_sent >= STDIN_MAX;
}

static const struct carry_user carry_user = {wait, act, is_full};

/* ---- the request ---- */

/* What of input, output, error and tty is asked for. */
static int read_wish(const struct visit *v, struct session_wish *ret, bool *ret_tty,
                     struct err *err)
{
    bool tty = visit_flag(v, "tty");
    struct session_wish w = {0};
    w.kinds[STREAM_STDIN] = visit_flag(v, "input");
    w.kinds[STREAM_STDOUT] = visit_flag(v, "output");
    w.kinds[STREAM_STDERR] = visit_flag(v, "error") && !tty; /* a terminal has one output */
    if (!w.kinds[STREAM_STDIN] && !w.kinds[STREAM_STDOUT] && !w.kinds[STREAM_STDERR])
        return err_set(err, ERR_BAD_REQUEST,
                       "you must specify at least 1 of stdin, stdout, stderr");
    w.kinds[STREAM_ERROR] = true;
    w.kinds[STREAM_RESIZE] = tty;
    *ret = w;
    *ret_tty = tty;
    return 0;
}

static cJSON *read_words(const struct visit *v)
{
    cJSON *words = json_array();
    for (size_t i = 0; i < v->head.query.n && i < WORDS_MAX; i++) {
        if (strcmp(v->head.query.v[i].name, "command") == 0)
            json_push(words, json_string(v->head.query.v[i].value));
    }
    return words;
}

/* The engine's id of a container that runs, by the Pod's status. */
static int find_container(const cJSON *pod, const char *name, char **ret, struct err *err)
{
    const cJSON *status = lookup_status(pod, name);
    const char *id = lookup_engine_id(json_str_or(status, "containerID", ""));
    if (!json_at(status, "state.running") || !*id)
        return err_set(err, ERR_INTERNAL, "container not found (\"%s\")", name);
    *ret = xstrdup(id);
    return 0;
}

/* How the container that is attached to was made. */
static int look_at_container(struct command *c, const struct session_wish *wish, struct err *err)
{
    SCOPED(json_free_p) cJSON *inspection = NULL;
    int rc = podman_inspect(c->visit->config->podman, c->container_id, &inspection, err);
    if (rc < 0)
        return rc;
    c->has_tty = json_bool_or(inspection, "Config.Tty", false);
    c->has_stdin = wish->kinds[STREAM_STDIN] && json_bool_or(inspection, "Config.OpenStdin", false);
    return 0;
}

/* Makes the command, or looks at what there is. */
static int prepare(struct command *c, const cJSON *pod, const struct session_wish *wish,
                   struct err *err)
{
    struct visit *v = c->visit;
    const char *name = v->parts[v->n_parts - 1];
    if (strcmp(v->parts[0], "attach") == 0) {
        c->keeps_stdin = !json_bool_or(lookup_spec(pod, name), "stdinOnce", false);
        return look_at_container(c, wish, err);
    }
    SCOPED(json_free_p) cJSON *words = read_words(v);
    c->has_stdin = wish->kinds[STREAM_STDIN];
    if (json_len(words) == 0)
        return err_set(err, ERR_BAD_REQUEST, "you must specify a command");
    return podman_exec_create(v->config->podman, c->container_id,
                              &(struct podman_command){.words = words,
                                                       .has_stdin = c->has_stdin,
                                                       .has_stdout = wish->kinds[STREAM_STDOUT],
                                                       .has_stderr = wish->kinds[STREAM_STDERR],
                                                       .has_tty = c->has_tty},
                              &c->exec_id, err);
}

static int open_session(struct command *c, const struct session_wish *wish, struct err *err)
{
    const struct session_protocol *protocol = NULL;
    int rc = visit_protocol(c->visit, &protocol, err);
    if (rc == 0)
        rc = protocol->accept(&c->visit->head, wish, &session_user, c, &c->session, err);
    for (int kind = 0; kind < STREAM_KINDS; kind++)
        c->missing += wish->kinds[kind];
    if (rc == 0 && c->session->lacks_resize)
        c->missing -= wish->kinds[STREAM_RESIZE];
    return rc;
}

static void run(struct command *c)
{
    struct visit *v = c->visit;
    c->opened_by_ms = now_ms() + OPEN_MS;
    carry(&(struct carry){.conn = v->conn,
                          .session = c->session,
                          .stop_fd = v->stop_fd,
                          .user = &carry_user,
                          .ctx = c},
          buf_cstr(&v->rest), v->rest.len);
    if (c->fd >= 0)
        close(c->fd);
    if (c->exec_id && !c->has_ended)
        kill_command(c);
}

void visit_command(struct visit *v)
{
    SCOPED(err_fini) struct err err = {0};
    SCOPED(json_free_p) cJSON *pod = NULL;
    SCOPED_FREE char *id = NULL;
    struct command c = {.visit = v, .fd = -1};
    int rc = read_wish(v, &c.streams_wish, &c.has_tty, &err);
    if (rc == 0)
        rc = visit_find_pod(v, &pod, &err);
    if (rc == 0)
        rc = find_container(pod, v->parts[v->n_parts - 1], &id, &err);
    c.container_id = id;
    if (rc == 0)
        rc = prepare(&c, pod, &c.streams_wish, &err);
    if (rc == 0)
        rc = open_session(&c, &c.streams_wish, &err);
    if (rc == 0)
        run(&c);
    else
        visit_fail(v, &err);
    session_free(c.session);
    buf_fini(&c.in);
    buf_fini(&c.wish);
    free(c.exec_id);
}
