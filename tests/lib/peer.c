#include "tests/lib/peer.h"

#include <arpa/inet.h>
#include <assert.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "apiserver/base/mem.h"

struct peer_conn {
    struct peer *peer;
    struct peer_conn *next;
    pthread_t thread;
    int fd;
    struct buf in; /* read, not yet consumed */
};

struct peer {
    peer_fn fn;
    void *ctx;
    int fd, port;
    pthread_t thread;
    pthread_mutex_t lock;    /* guards the rest */
    struct peer_conn *conns; /* all that ever were */
    int n_conns;
    bool is_stopping;
};

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    abort();
}

/* Below the range the kernel picks from, so that no client's own port is in the way. */
static int bind_loopback(int fd)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    unsigned seed = (unsigned)getpid() * 7919;
    for (int i = 0; i < 1000; i++) {
        int port = 20000 + (int)((seed + (unsigned)i * 131) % 12000);
        at.sin_port = htons((uint16_t)port);
        if (bind(fd, (struct sockaddr *)(void *)&at, sizeof at) == 0)
            return port;
    }
    must(false, "bind");
    return 0;
}

static void bind_unix(int fd, const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
    must(bind(fd, (struct sockaddr *)(void *)&at, sizeof at) == 0, "bind");
}

void peer_printf(struct peer_conn *c, const char *fmt, ...)
{
    char *text = NULL;
    va_list ap;
    va_start(ap, fmt);
    int n = vasprintf(&text, fmt, ap);
    va_end(ap);
    must(n >= 0, "vasprintf");
    for (int done = 0; done < n;) {
        ssize_t part = send(c->fd, text + done, (size_t)(n - done), MSG_NOSIGNAL);
        if (part <= 0)
            break;
        done += (int)part;
    }
    free(text);
}

void peer_answer(struct peer_conn *c, int status, const char *content_type, const char *body)
{
    peer_printf(c, "HTTP/1.1 %d X\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n%s", status,
                content_type != NULL ? content_type : "application/json", strlen(body), body);
}

void peer_begin_chunks(struct peer_conn *c, int status)
{
    peer_printf(c, "HTTP/1.1 %d X\r\nTransfer-Encoding: chunked\r\n\r\n", status);
}

void peer_chunk(struct peer_conn *c, const char *text)
{
    peer_printf(c, "%zx\r\n%s\r\n", strlen(text), text);
}

bool peer_wait_hangup(struct peer_conn *c, int timeout_ms)
{
    struct pollfd p = {.fd = c->fd, .events = POLLRDHUP};
    return poll(&p, 1, timeout_ms) > 0;
}

static bool read_more(struct peer_conn *c)
{
    char part[16384];
    ssize_t n = recv(c->fd, part, sizeof part, 0);
    if (n <= 0)
        return false;
    buf_append(&c->in, part, (size_t)n);
    return true;
}

static void parse_head(char *head, struct peer_request *req)
{
    char *rest = head;
    char *line = strsep(&rest, "\n");
    req->method = strsep(&line, " ");
    req->target = strsep(&line, " ");
    while ((line = strsep(&rest, "\n")) != NULL) {
        char *name = strsep(&line, ":");
        if (line == NULL)
            continue;
        line[strcspn(line, "\r")] = '\0';
        pairs_add(&req->headers, name, line + strspn(line, " "));
    }
}

static void consume(struct buf *b, size_t n)
{
    memmove(b->data, b->data + n, b->len - n + 1);
    b->len -= n;
}

/* One request; false at the end of the connection. head owns what method and target point to. */
static bool read_request(struct peer_conn *c, char **head, struct peer_request *req)
{
    const char *end;
    while ((end = strstr(buf_cstr(&c->in), "\r\n\r\n")) == NULL)
        if (!read_more(c))
            return false;
    size_t n = (size_t)(end - c->in.data) + 4;
    *head = xstrndup(c->in.data, n);
    consume(&c->in, n);
    parse_head(*head, req);
    const char *length = pairs_get_ci(&req->headers, "Content-Length");
    n = length != NULL ? strtoul(length, NULL, 10) : 0;
    while (c->in.len < n)
        if (!read_more(c))
            return false;
    buf_append(&req->body, c->in.data, n);
    if (n > 0)
        consume(&c->in, n);
    return true;
}

static void *run_conn(void *ctx)
{
    struct peer_conn *c = ctx;
    bool goes_on = true;
    while (goes_on) {
        struct peer_request req = {0};
        SCOPED_FREE char *head = NULL;
        goes_on = read_request(c, &head, &req) && c->peer->fn(c->peer->ctx, c, &req);
        pairs_fini(&req.headers);
        buf_fini(&req.body);
    }
    shutdown(c->fd, SHUT_RDWR);
    return NULL;
}

static void add_conn(struct peer *p, int fd)
{
    struct peer_conn *c = xcalloc(1, sizeof *c);
    c->peer = p;
    c->fd = fd;
    pthread_mutex_lock(&p->lock);
    c->next = p->conns;
    p->conns = c;
    p->n_conns++;
    if (p->is_stopping)
        shutdown(fd, SHUT_RDWR);
    must(pthread_create(&c->thread, NULL, run_conn, c) == 0, "thread");
    pthread_mutex_unlock(&p->lock);
}

static void *run_listener(void *ctx)
{
    struct peer *p = ctx;
    int fd;
    while ((fd = accept4(p->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
        add_conn(p, fd);
    return NULL;
}

struct peer *peer_start(const char *unix_path, peer_fn fn, void *ctx)
{
    struct peer *p = xcalloc(1, sizeof *p);
    p->fn = fn;
    p->ctx = ctx;
    pthread_mutex_init(&p->lock, NULL);
    p->fd = socket(unix_path != NULL ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(p->fd >= 0, "socket");
    if (unix_path != NULL)
        bind_unix(p->fd, unix_path);
    else
        p->port = bind_loopback(p->fd);
    must(listen(p->fd, 128) == 0, "listen");
    must(pthread_create(&p->thread, NULL, run_listener, p) == 0, "thread");
    return p;
}

void peer_stop(struct peer *p)
{
    shutdown(p->fd, SHUT_RDWR); /* accept returns */
    pthread_mutex_lock(&p->lock);
    p->is_stopping = true;
    for (struct peer_conn *c = p->conns; c != NULL; c = c->next)
        shutdown(c->fd, SHUT_RDWR);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    while (p->conns != NULL) {
        struct peer_conn *c = p->conns;
        p->conns = c->next;
        pthread_join(c->thread, NULL);
        close(c->fd);
        buf_fini(&c->in);
        free(c);
    }
    close(p->fd);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

int peer_port(const struct peer *p)
{
    return p->port;
}

int peer_connections(struct peer *p)
{
    pthread_mutex_lock(&p->lock);
    int n = p->n_conns;
    pthread_mutex_unlock(&p->lock);
    return n;
}
