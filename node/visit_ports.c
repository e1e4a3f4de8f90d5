/* port-forward: each pair of a data and an error stream is a connection to a port inside the
 * Pod. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "node/carry.h"
#include "node/instance.h"
#include "node/netns.h"
#include "node/visit.h"

#define PENDING_MAX ((size_t)128 << 10) /* bytes from the client that wait for the port */
#define PIECE ((size_t)32 << 10)        /* bytes read at once */
#define PIECES 4                        /* of one turn and connection */

enum relay_state { RELAY_OPENING, RELAY_CONNECTING, RELAY_OPEN, RELAY_OVER };

struct relay {
    struct relay *next;
    char *request;
    int port;
    struct stream *data, *error; /* NULL = not there yet, or gone */
    enum relay_state state;
    int family; /* which is being tried */
    int fd;
    size_t fd_at; /* in the waits */
    struct buf in;
    size_t in_sent;
    bool client_is_over, is_shut;
};

struct forward {
    struct visit *visit;
    struct session *session;
    char *namespace_file, *uid;
    struct relay *relays;
    size_t n_ports; /* of the query */
};

/* What is for the port has nowhere to go any more. */
static void close_relay(struct relay *p)
{
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
    p->state = RELAY_OVER;
    buf_fini(&p->in);
    p->in_sent = 0;
}

/* ---- the client's streams ---- */

static struct relay *find(struct forward *f, const struct stream *s)
{
    for (struct relay *p = f->relays; p; p = p->next) {
        if (p->port == s->port && str_equal(p->request, s->request))
            return p;
    }
    return NULL;
}

static bool on_open(void *ctx, struct stream *s)
{
    struct forward *f = ctx;
    if (s->kind != STREAM_DATA && s->kind != STREAM_ERROR)
        return false;
    struct relay *p = find(f, s);
    if (p && (s->kind == STREAM_DATA ? p->data : p->error))
        return false;
    if (!p) {
        p = xcalloc(1, sizeof *p);
        *p = (struct relay){.next = f->relays,
                            .request = s->request ? xstrdup(s->request) : NULL,
                            .port = s->port,
                            .fd = -1};
        f->relays = p;
    }
    *(s->kind == STREAM_DATA ? &p->data : &p->error) = s;
    s->user = p;
    return true;
}

static void on_data(void *ctx, struct stream *s, const char *bytes, size_t n)
{
    struct relay *p = s->user;
    (void)ctx;
    if (s->kind == STREAM_DATA && p->state != RELAY_OVER)
        buf_append(&p->in, bytes, n);
}

static void on_end(void *ctx, struct stream *s)
{
    struct relay *p = s->user;
    (void)ctx;
    p->client_is_over |= s->kind == STREAM_DATA;
}

/* A client that gave the data up waits for the end of what went wrong. */
static void on_gone(void *ctx, struct stream *s)
{
    struct forward *f = ctx;
    struct relay *p = s->user;
    *(s->kind == STREAM_DATA ? &p->data : &p->error) = NULL;
    if (s->kind != STREAM_DATA)
        return;
    close_relay(p);
    if (p->error)
        session_end(f->session, p->error);
}

static const struct session_user session_user = {on_open, on_data, on_end, on_gone};

/* ---- a connection ---- */

/* Ends both streams; what was said of it comes before. */
static void end_relay(struct forward *f, struct relay *p, const char *why)
{
    close_relay(p);
    if (why && p->error) {
        SCOPED_FREE char *text = xasprintf("error forwarding port %d to pod %s, uid %s: %s",
                                           p->port, f->visit->parts[2], f->uid, why);
        session_send(f->session, p->error, text, strlen(text));
    }
    if (p->error)
        session_end(f->session, p->error);
    if (p->data)
        session_end(f->session, p->data);
}

static int start_connect(const struct relay *p, int fd)
{
    const struct sockaddr_in v4 = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)p->port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
                                    .sin6_port = htons((uint16_t)p->port),
                                    .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    return p->family == AF_INET ? connect(fd, (const struct sockaddr *)&v4, sizeof v4)
                                : connect(fd, (const struct sockaddr *)&v6, sizeof v6);
}

/* Tries one family; then its result is waited for. */
static void try_family(struct forward *f, struct relay *p, int family)
{
    SCOPED(err_fini) struct err err = {0};
    if (p->fd >= 0)
        close(p->fd);
    p->fd = -1;
    p->family = family;
    if (netns_socket(f->namespace_file, family, &p->fd, &err) < 0) {
        end_relay(f, p, err_text(&err));
        return;
    }
    p->state = RELAY_CONNECTING;
    if (start_connect(p, p->fd) == 0 || errno == EINPROGRESS)
        return;
    SCOPED_FREE char *why = xasprintf("failed to connect to localhost:%d: %m", p->port);
    end_relay(f, p, why);
}

static void end_connect(struct forward *f, struct relay *p)
{
    int error = 0;
    socklen_t n = sizeof error;
    getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &error, &n);
    if (error == 0) {
        p->state = RELAY_OPEN;
    } else if (p->family == AF_INET) {
        try_family(f, p, AF_INET6);
    } else {
        errno = error;
        SCOPED_FREE char *why = xasprintf("failed to connect to localhost:%d: %m", p->port);
        end_relay(f, p, why);
    }
}

static void send_in(struct relay *p)
{
    while (p->in_sent < p->in.len) {
        ssize_t n = send(p->fd, p->in.data + p->in_sent, p->in.len - p->in_sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        p->in_sent = n < 0 ? p->in.len : p->in_sent + (size_t)n; /* it reads no more */
    }
    buf_clear(&p->in);
    p->in_sent = 0;
    if (p->client_is_over && !p->is_shut) {
        shutdown(p->fd, SHUT_WR);
        p->is_shut = true;
    }
}

static void read_out(struct forward *f, struct relay *p)
{
    char piece[PIECE];
    for (int i = 0; i < PIECES && p->state == RELAY_OPEN; i++) {
        size_t room = session_room(f->session, p->data);
        ssize_t n = room ? recv(p->fd, piece, room < PIECE ? room : PIECE, 0) : 0;
        if (room == 0 || (n < 0 && errno == EAGAIN))
            return;
        if (n > 0)
            session_send(f->session, p->data, piece, (size_t)n);
        else if (n == 0 || errno != EINTR) /* a reset, too: of an error clients give up all ports */
            end_relay(f, p, NULL);
    }
}

/* ---- all of them ---- */

static void wait(void *ctx, struct waits *w)
{
    struct forward *f = ctx;
    for (struct relay *p = f->relays; p; p = p->next) {
        if (p->fd < 0)
            continue;
        bool is_connecting = p->state == RELAY_CONNECTING;
        bool reads = !is_connecting && session_room(f->session, p->data) > 0;
        bool writes = is_connecting || p->in_sent < p->in.len;
        p->fd_at = waits_add(w, p->fd, (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0)));
    }
}

static void act_on(struct forward *f, struct relay *p, const struct waits *w)
{
    if (p->state == RELAY_OPENING && p->data && p->error)
        try_family(f, p, AF_INET);
    else if (p->state == RELAY_CONNECTING &&
             (waits_result(w, p->fd_at) & (POLLOUT | POLLERR | POLLHUP)))
        end_connect(f, p);
    if (p->state == RELAY_OPEN)
        send_in(p);
    if (p->state == RELAY_OPEN)
        read_out(f, p);
}

static void free_relay(struct relay *p)
{
    close_relay(p);
    buf_fini(&p->in);
    free(p->request);
    free(p);
}

/* Those that nobody can speak to any more. */
static void sweep(struct forward *f)
{
    for (struct relay **at = &f->relays; *at;) {
        struct relay *p = *at;
        bool is_left = !p->data && !p->error;
        if (p->state == RELAY_OVER && p->fd >= 0)
            close_relay(p);
        if (is_left) {
            *at = p->next;
            free_relay(p);
        } else {
            at = &p->next;
        }
    }
}

/* A session whose ports were named at the start ends with the last of their connections. */
static bool is_done(const struct forward *f)
{
    for (const struct relay *p = f->relays; p; p = p->next) {
        if (p->state != RELAY_OVER)
            return false;
    }
    return f->n_ports > 0;
}

static void act(void *ctx, const struct waits *w)
{
    struct forward *f = ctx;
    for (struct relay *p = f->relays; p; p = p->next)
        act_on(f, p, w);
    sweep(f);
    if (is_done(f))
        session_close(f->session);
}

static bool is_full(void *ctx)
{
    const struct forward *f = ctx;
    for (const struct relay *p = f->relays; p; p = p->next) {
        if (p->in.len - p->in_sent >= PENDING_MAX)
            return true;
    }
    return false;
}

static const struct carry_user carry_user = {wait, act, is_full};

/* ---- the request ---- */

/* port=80,443&port=8080; the caller's. Source: the kubelet's NewV4Options. */
static int read_ports(const struct visit *v, int **ret, size_t *ret_n, struct err *err)
{
    SCOPED_FREE int *ports = NULL;
    size_t n = 0;
    for (size_t i = 0; i < v->head.query.n; i++) {
        const char *at = v->head.query.v[i].value;
        if (strcmp(v->head.query.v[i].name, "port") != 0)
            continue;
        while (*at) {
            SCOPED_FREE char *one = xstrndup(at, strcspn(at, ","));
            int64_t port = 0;
            if (str_to_i64(one, &port) < 0 || port < 1 || port > UINT16_MAX)
                return err_set(err, ERR_BAD_REQUEST, "unable to parse \"%s\" as a port", one);
            ports = xreallocarray(ports, n + 1, sizeof *ports);
            ports[n++] = (int)port;
            at += strlen(one) + (at[strlen(one)] == ',');
        }
    }
    *ret = steal(&ports);
    *ret_n = n;
    return 0;
}

/* The file of the Pod's network namespace, as the engine names it. */
static int find_namespace(const struct visit *v, const char *uid, char **ret, struct err *err)
{
    SCOPED(json_free_p) cJSON *list = NULL;
    SCOPED_FREE char *label = xasprintf(LABEL_UID "=%s", uid);
    int rc = podman_list(v->config->podman, label, &list, err);
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        SCOPED(json_free_p) cJSON *inspection = NULL;
        const cJSON *its = json_get(json_get(item, "Labels"), LABEL_CONTAINER);
        if (!cJSON_IsString(its) || *its->valuestring ||
            strcmp(json_str_or(item, "State", ""), "running") != 0)
            continue;
        rc = podman_inspect(v->config->podman, json_str_or(item, "Id", ""), &inspection, err);
        const char *file = json_str_or(inspection, "NetworkSettings.SandboxKey", "");
        if (rc == 0 && *file) {
            *ret = xstrdup(file);
            return 0;
        }
    }
    return rc < 0 ? rc
                  : err_set(err, ERR_INTERNAL, "the sandbox of pod \"%s\" is not running",
                            v->parts[2]);
}

static int prepare(struct forward *f, struct err *err)
{
    SCOPED(json_free_p) cJSON *pod = NULL;
    int rc = visit_find_pod(f->visit, &pod, err);
    if (rc < 0)
        return rc;
    f->uid = xstrdup(json_str_or(pod, "metadata.uid", ""));
    return find_namespace(f->visit, f->uid, &f->namespace_file, err);
}

static int open_session(struct forward *f, struct err *err)
{
    SCOPED_FREE int *ports = NULL;
    const struct session_protocol *protocol = NULL;
    struct session_wish wish = {.kinds = {[STREAM_DATA] = true, [STREAM_ERROR] = true}};
    int rc = read_ports(f->visit, &ports, &wish.n_ports, err);
    wish.ports = ports;
    f->n_ports = wish.n_ports;
    if (rc == 0)
        rc = visit_protocol(f->visit, &protocol, err);
    return rc < 0 ? rc
                  : protocol->accept(&f->visit->head, &wish, &session_user, f, &f->session, err);
}

void visit_ports(struct visit *v)
{
    SCOPED(err_fini) struct err err = {0};
    struct forward f = {.visit = v};
    int rc = prepare(&f, &err);
    if (rc == 0)
        rc = open_session(&f, &err);
    if (rc == 0)
        carry(&(struct carry){.conn = v->conn,
                              .session = f.session,
                              .stop_fd = v->stop_fd,
                              .user = &carry_user,
                              .ctx = &f},
              buf_cstr(&v->rest), v->rest.len);
    else
        visit_fail(v, &err);
    session_free(f.session);
    sweep(&f);
    while (f.relays) {
        struct relay *p = f.relays;
        f.relays = p->next;
        free_relay(p);
    }
    free(f.namespace_file);
    free(f.uid);
}
