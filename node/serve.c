#include "node/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/thread.h"
#include "node/callers.h"
#include "node/visit.h"

#define CONNECTIONS_MAX 1024
#define STACK_BYTES ((size_t)512 << 10)
#define ARRIVE_MS 30000 /* from the connection to the whole of the request's head */
#define ANSWER_MS 30000 /* for a client to take a short answer */
#define PAUSE_MS 100    /* when there is no descriptor for a connection */
#define PARTS_MAX 8
#define BACKLOG 128

struct serve {
    struct serve_config config;
    struct tls_server *tls;
    struct callers *callers;
    int listen_fd, stop_fd, port;
    pthread_t thread;
    bool has_thread;

    pthread_mutex_t lock;
    pthread_cond_t wake; /* a connection ended */
    int connections;
};

struct arrival { /* for the thread of a connection */
    struct serve *serve;
    int fd;
};

/* ---- answers ---- */

static const char *phrase_of(int status)
{
    static const struct {
        int status;
        const char *phrase;
    } phrases[] = {{200, "OK"},        {400, "Bad Request"},        {401, "Unauthorized"},
                   {403, "Forbidden"}, {404, "Not Found"},          {405, "Method Not Allowed"},
                   {409, "Conflict"},  {503, "Service Unavailable"}};
    for (size_t i = 0; i < ARRAY_LEN(phrases); i++) {
        if (phrases[i].status == status)
            return phrases[i].phrase;
    }
    return "Internal Server Error";
}

/* text/plain unless type says otherwise. */
static void answer_in_full(struct visit *v, int status, const char *type, const char *body,
                           size_t n)
{
    int64_t until_ms = clock_monotonic_ms(&clock_system) + ANSWER_MS;
    SCOPED(buf_fini) struct buf answer = {0};
    buf_printf(&answer,
               "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
               "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
               status, phrase_of(status), type ? type : "text/plain; charset=utf-8", n);
    buf_append(&answer, body, n);
    if (tls_conn_send(v->conn, answer.data, answer.len, v->stop_fd, until_ms, NULL) == 0)
        tls_conn_end(v->conn, v->stop_fd, until_ms);
}

void visit_fail(struct visit *v, const struct err *err)
{
    const char *text = err->code == ERR_UNAUTHORIZED ? "Unauthorized" : err_text(err);
    answer_in_full(v, err_status(err->code), NULL, text, strlen(text));
}

/* ---- what requests have in common ---- */

int visit_find_pod(struct visit *v, cJSON **ret, struct err *err)
{
    if (!runner_find_pod(v->config->runner, v->parts[1], v->parts[2], ret))
        return err_set(err, ERR_NOT_FOUND, "pod \"%s\" does not exist", v->parts[2]);
    return 0;
}

int visit_protocol(struct visit *v, const struct session_protocol **ret, struct err *err)
{
    static const struct session_protocol *const protocols[] = {&session_websocket, &session_spdy};
    for (size_t i = 0; i < ARRAY_LEN(protocols); i++) {
        if (head_has_token(&v->head, "Connection", "Upgrade") &&
            head_has_token(&v->head, "Upgrade", protocols[i]->upgrade)) {
            *ret = protocols[i];
            return 0;
        }
    }
    return err_set(err, ERR_BAD_REQUEST, "Upgrade request required");
}

bool visit_flag(const struct visit *v, const char *name)
{
    const char *value = pairs_get(&v->head.query, name);
    return value && (strcmp(value, "1") == 0 || strcasecmp(value, "true") == 0);
}

static void visit_health(struct visit *v)
{
    answer_in_full(v, 200, NULL, "ok", 2);
}

/* Source: the kubelet's InstallDebuggingHandlers; a Pod's uid may stand before the container. */
static const struct {
    const char *first;
    bool takes_post;    /* besides GET */
    size_t least, most; /* parts */
    void (*run)(struct visit *v);
} routes[] = {
    {"containerLogs", false, 4, 4, visit_log}, {"exec", true, 4, 5, visit_command},
    {"attach", true, 4, 5, visit_command},     {"portForward", true, 3, 4, visit_ports},
    {"healthz", false, 1, 1, visit_health},
};

static void route(struct visit *v)
{
    struct err err = {0};
    err_set(&err, ERR_NOT_FOUND, "404 page not found");
    for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
        if (v->n_parts < routes[i].least || v->n_parts > routes[i].most ||
            strcmp(v->parts[0], routes[i].first) != 0)
            continue;
        bool is_post = strcmp(v->head.method, "POST") == 0;
        if (strcmp(v->head.method, "GET") == 0 || (is_post && routes[i].takes_post)) {
            err_fini(&err);
            routes[i].run(v);
            return;
        }
        err_set(&err, ERR_METHOD_NOT_ALLOWED, "405: Method Not Allowed");
    }
    visit_fail(v, &err);
    err_fini(&err);
}

/* ---- a connection ---- */

static int read_head(struct visit *v, int64_t until_ms, struct err *err)
{
    char piece[4096];
    size_t n;
    struct buf *in = &v->rest;
    while ((n = head_length(buf_cstr(in), in->len)) == 0) {
        if (in->len >= HEAD_MAX)
            return err_set(err, ERR_BAD_REQUEST, "the request's head is too large");
        ssize_t got = tls_conn_receive(v->conn, piece, sizeof piece, v->stop_fd, until_ms, err);
        if (got <= 0)
            return got == 0 ? err_set(err, ERR_UNAVAILABLE, "the client is gone") : (int)got;
        buf_append(in, piece, (size_t)got);
    }
    int rc = head_parse(in->data, n, &v->head, err);
    in->len -= n;
    memmove(in->data, in->data + n, in->len);
    return rc;
}

static void split(struct visit *v)
{
    const char *at = v->head.path;
    while (*at && v->n_parts < PARTS_MAX) {
        at += strspn(at, "/");
        size_t n = strcspn(at, "/");
        if (n > 0)
            strv_add(&v->parts, xstrndup(at, n));
        v->n_parts += n > 0;
        at += n;
    }
}

static int let_in(struct serve *s, struct visit *v, char **ret_name, struct err *err)
{
    SCOPED(subject_fini) struct subject who = {0};
    int rc = tls_conn_client(v->conn, &who, err);
    if (rc < 0)
        return rc;
    *ret_name = xstrdup(who.common_name);
    const char *verb = strcmp(v->head.method, "GET") == 0 ? "get" : "create";
    return callers_check(s->callers, &who, verb, err);
}

static void attend(struct serve *s, struct visit *v)
{
    SCOPED(err_fini) struct err err = {0};
    SCOPED_FREE char *who = NULL;
    int64_t until_ms = clock_monotonic_ms(&clock_system) + ARRIVE_MS;
    int rc = read_head(v, until_ms, &err);
    if (rc == -ERR_UNAVAILABLE)
        return;
    if (rc == 0)
        split(v);
    if (rc == 0)
        rc = let_in(s, v, &who, &err);
    if (rc < 0) {
        log_info("request refused path=%s: %s", v->head.path ? v->head.path : "-", err_text(&err));
        visit_fail(v, &err);
        return;
    }
    log_debug("request user=%s method=%s path=%s", who, v->head.method, v->head.path);
    route(v);
}

static void *run_connection(void *arg)
{
    struct arrival *a = arg;
    struct serve *s = a->serve;
    struct visit v = {.config = &s->config, .stop_fd = s->stop_fd};
    int64_t until_ms = clock_monotonic_ms(&clock_system) + ARRIVE_MS;
    if (tls_conn_accept(s->tls, a->fd, s->stop_fd, until_ms, &v.conn, NULL) == 0)
        attend(s, &v);
    tls_conn_free(v.conn);
    head_fini(&v.head);
    strv_free(v.parts);
    buf_fini(&v.rest);
    free(a);
    pthread_mutex_lock(&s->lock);
    s->connections--;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- the listener ---- */

static bool take_place(struct serve *s)
{
    pthread_mutex_lock(&s->lock);
    bool has_room = s->connections < CONNECTIONS_MAX;
    s->connections += has_room;
    pthread_mutex_unlock(&s->lock);
    return has_room;
}

static void begin_connection(struct serve *s, int fd)
{
    pthread_t thread;
    bool has_place = take_place(s);
    struct arrival *a = xcalloc(1, sizeof *a);
    *a = (struct arrival){.serve = s, .fd = fd};
    if (has_place && thread_try_start(&thread, "client", STACK_BYTES, run_connection, a)) {
        pthread_detach(thread);
        return;
    }
    log_warn("connection refused, there are too many");
    close(fd);
    free(a);
    pthread_mutex_lock(&s->lock);
    s->connections -= has_place;
    pthread_mutex_unlock(&s->lock);
}

static void *listen_for_ever(void *arg)
{
    struct serve *s = arg;
    struct pollfd fds[] = {{.fd = s->stop_fd, .events = POLLIN},
                           {.fd = s->listen_fd, .events = POLLIN}};
    for (;;) {
        poll(fds, ARRAY_LEN(fds), -1);
        if (fds[0].revents)
            return NULL;
        int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            begin_connection(s, fd);
        else if (errno == EMFILE || errno == ENFILE)
            poll(fds, 1, PAUSE_MS);
    }
}

static int bind_to(struct serve *s, struct err *err)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                                   .ai_socktype = SOCK_STREAM};
    struct addrinfo *place = NULL;
    SCOPED_FREE char *port = xasprintf("%d", s->config.port);
    const int yes = 1;
    if (getaddrinfo(s->config.address, port, &hints, &place) != 0)
        return err_set(err, ERR_INVALID, "%s is no address to listen on", s->config.address);
    s->listen_fd = socket(place->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    setsockopt(s->listen_fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    int rc = bind(s->listen_fd, place->ai_addr, place->ai_addrlen);
    if (rc == 0)
        rc = listen(s->listen_fd, BACKLOG);
    freeaddrinfo(place);
    return rc == 0 ? 0
                   : err_set(err, ERR_INVALID, "listening on %s port %s (--port): %m",
                             s->config.address, port);
}

static int port_of(int fd)
{
    struct sockaddr_storage a = {0};
    socklen_t n = sizeof a;
    getsockname(fd, (struct sockaddr *)&a, &n);
    return ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a)->sin6_port
                                         : ((struct sockaddr_in *)&a)->sin_port);
}

/* ---- life ---- */

int serve_new(const struct serve_config *config, struct serve **ret, struct err *err)
{
    struct serve *s = xcalloc(1, sizeof *s);
    *s = (struct serve){.config = *config, .listen_fd = -1};
    s->stop_fd = eventfd(0, EFD_CLOEXEC);
    s->callers = callers_new(config->kube, config->name, &clock_system);
    pthread_mutex_init(&s->lock, NULL);
    thread_cond_init(&s->wake);
    int rc = tls_server_new(config->cert_file, config->key_file, config->ca_file, &s->tls, err);
    if (rc == 0)
        rc = bind_to(s, err);
    if (rc < 0) {
        serve_stop(s);
        return rc;
    }
    s->port = port_of(s->listen_fd);
    *ret = s;
    return 0;
}

int serve_port(const struct serve *s)
{
    return s->port;
}

void serve_start(struct serve *s, struct runner *runner)
{
    s->config.runner = runner;
    s->has_thread = true;
    thread_start(&s->thread, "listen", listen_for_ever, s);
    log_info("listening address=%s port=%d", s->config.address, s->port);
}

void serve_stop(struct serve *s)
{
    if (!s)
        return;
    eventfd_write(s->stop_fd, 1);
    if (s->has_thread)
        pthread_join(s->thread, NULL);
    pthread_mutex_lock(&s->lock);
    while (s->connections > 0)
        pthread_cond_wait(&s->wake, &s->lock);
    pthread_mutex_unlock(&s->lock);
    if (s->listen_fd >= 0)
        close(s->listen_fd);
    close(s->stop_fd);
    callers_free(s->callers);
    tls_server_free(s->tls);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
