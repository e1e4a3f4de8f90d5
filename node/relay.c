/* A passage has two ends. What one of them sent is held until the other has taken it, and nothing
 * more is read from it before; an end that sends no more is carried over to the other. Epoll knows
 * an end only while something is waited for. */
#include "node/relay.h"

#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "apiserver/base/thread.h"
#include "node/ranges.h"

#define HELD_BYTES ((size_t)8 << 10)
#define EVENTS 64
#define BACKLOG 64
#define PAUSE_MS 100 /* before new ones when descriptors are lacking */

struct end {
    struct passage *passage;
    int fd;
    uint32_t events; /* that epoll is to tell of, 0 = it does not know this end */
    bool is_over;    /* it sends no more */
    bool is_told;    /* that the other sends no more */
    size_t at, n;    /* of held: what the other has not taken yet */
    char held[HELD_BYTES];
};
struct passage {
    struct passage *prev, *next;
    bool is_dead;
    char ip[RANGES_ADDRESS_SIZE];
    struct end pod, server;
};

struct relay {
    struct relay_config config;
    struct sockaddr_storage server;
    socklen_t server_len;
    bool (*lets_in)(void *ctx, const char *ip);
    void *ctx;
    pthread_t thread;
    int epoll_fd, stop_fd;

    pthread_mutex_t lock; /* guards what follows */
    int listen_fd;
    unsigned bridge; /* its number, of the one that is listened on; 0 = none */
    char *trouble;   /* why it is not, NULL = nothing */

    /* the thread's own */
    struct passage *all, *dead;
    size_t n;
};

/* ---- Pods ---- */

static bool has_token(const cJSON *volume)
{
    const cJSON *source;
    cJSON_ArrayForEach(source, json_at(volume, "projected.sources"))
    {
        if (json_get(source, "serviceAccountToken"))
            return true;
    }
    return false;
}

bool relay_is_for(const cJSON *pod)
{
    const char *phase = json_str_or(pod, "status.phase", "");
    const cJSON *volume;
    bool has = false;
    cJSON_ArrayForEach(volume, json_at(pod, "spec.volumes")) has = has || has_token(volume);
    return has && strcmp(phase, "Succeeded") != 0 && strcmp(phase, "Failed") != 0;
}

/* ---- the server ---- */

static bool is_loopback(const struct addrinfo *a)
{
    if (a->ai_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)a->ai_addr)->sin_addr.s_addr) >>
                   24 ==
               127;
    return IN6_IS_ADDR_LOOPBACK(
        &((const struct sockaddr_in6 *)(const void *)a->ai_addr)->sin6_addr);
}

/* Host and port of https://HOST[:PORT][/...]; an address of IPv6 stands in brackets. */
static int find_server(struct relay *r, struct err *err)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                                   .ai_socktype = SOCK_STREAM};
    struct addrinfo *place = NULL;
    const char *at = strstr(r->config.server, "://");
    at = at ? at + 3 : r->config.server;
    bool is_v6 = *at == '[';
    at += is_v6;
    size_t n = strcspn(at, is_v6 ? "]" : ":/");
    SCOPED_FREE char *host = xstrndup(at, n);
    at += n + (is_v6 && at[n]);
    SCOPED_FREE char *port = *at == ':' ? xstrndup(at + 1, strcspn(at + 1, "/")) : xstrdup("443");
    const char *numeric = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    int rc = getaddrinfo(numeric, port, &hints, &place);
    bool is_ours = rc == 0 && is_loopback(place);
    if (is_ours) {
        memcpy(&r->server, place->ai_addr, place->ai_addrlen);
        r->server_len = place->ai_addrlen;
    }
    if (rc == 0)
        freeaddrinfo(place);
    return is_ours ? 0 : err_set(err, ERR_NOT_FOUND, "%s is not on this machine's loopback", host);
}

/* ---- bytes ---- */

static bool is_to_wait(void)
{
    return errno == EAGAIN || errno == EINTR;
}

/* False when the end is broken. */
static bool fill(struct end *from)
{
    if (from->n > 0 || from->is_over)
        return true;
    ssize_t n = recv(from->fd, from->held, sizeof from->held, MSG_DONTWAIT);
    from->at = 0;
    from->n = n > 0 ? (size_t)n : 0;
    from->is_over = n == 0;
    return n >= 0 || is_to_wait();
}

static bool drain(struct end *from, struct end *to)
{
    ssize_t n = 0;
    if (from->n > 0)
        n = send(to->fd, from->held + from->at, from->n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0)
        return is_to_wait();
    from->at += (size_t)n;
    from->n -= (size_t)n;
    if (from->is_over && from->n == 0 && !to->is_told) {
        shutdown(to->fd, SHUT_WR);
        to->is_told = true;
    }
    return true;
}

static bool watch(struct relay *r, struct end *e, const struct end *other)
{
    uint32_t wanted =
        (e->n == 0 && !e->is_over ? EPOLLIN : 0u) | (other->n > 0 ? (uint32_t)EPOLLOUT : 0u);
    struct epoll_event event = {.events = wanted, .data.ptr = e};
    int what = !wanted ? EPOLL_CTL_DEL : e->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    bool is_news = wanted != e->events;
    e->events = wanted;
    return !is_news || epoll_ctl(r->epoll_fd, what, e->fd, &event) == 0;
}

/* One piece each way; epoll tells when there is more. False when it is over. */
static bool carry(struct relay *r, struct passage *p)
{
    bool is_good = fill(&p->pod) && fill(&p->server) && drain(&p->pod, &p->server) &&
                   drain(&p->server, &p->pod);
    bool is_over = p->pod.is_told && p->server.is_told;
    return is_good && !is_over && watch(r, &p->pod, &p->server) && watch(r, &p->server, &p->pod);
}

/* ---- passages ---- */

/* The memory goes when this turn is over: epoll may have told of it already. */
static void end_passage(struct relay *r, struct passage *p)
{
    close(p->pod.fd);
    close(p->server.fd);
    if (p->prev)
        p->prev->next = p->next;
    else
        r->all = p->next;
    if (p->next)
        p->next->prev = p->prev;
    r->n--;
    p->is_dead = true;
    p->next = r->dead;
    r->dead = p;
}

static void free_dead(struct relay *r)
{
    while (r->dead) {
        struct passage *p = r->dead;
        r->dead = p->next;
        free(p);
    }
}

static size_t count_of(const struct relay *r, const char *ip)
{
    size_t n = 0;
    for (const struct passage *p = r->all; p; p = p->next)
        n += strcmp(p->ip, ip) == 0;
    return n;
}

/* Watches are quiet for long, so it is the kernel that asks whether the peer is still there. */
static void keep_alive(int fd)
{
    static const struct {
        int level, name, value;
    } rows[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},           {IPPROTO_TCP, TCP_KEEPIDLE, 60}, /* s */
        {IPPROTO_TCP, TCP_KEEPINTVL, 15},        {IPPROTO_TCP, TCP_KEEPCNT, 4},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, 120000}, /* ms that what was sent is not taken */
        {IPPROTO_TCP, TCP_NODELAY, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        setsockopt(fd, rows[i].level, rows[i].name, &rows[i].value, sizeof rows[i].value);
}

static int dial(const struct relay *r)
{
    int fd = socket(r->server.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, (const struct sockaddr *)&r->server, r->server_len) < 0 &&
        errno != EINPROGRESS) {
        close(fd);
        return -1;
    }
    keep_alive(fd);
    return fd;
}

static void begin_passage(struct relay *r, int pod_fd, int server_fd,
                          const char ip[RANGES_ADDRESS_SIZE])
{
    struct passage *p = xcalloc(1, sizeof *p);
    p->pod.passage = p->server.passage = p;
    p->pod.fd = pod_fd;
    p->server.fd = server_fd;
    memcpy(p->ip, ip, sizeof p->ip);
    p->next = r->all;
    if (r->all)
        r->all->prev = p;
    r->all = p;
    r->n++;
    keep_alive(pod_fd);
    if (!carry(r, p))
        end_passage(r, p);
}

static void admit(struct relay *r, int fd, const struct sockaddr_in *from)
{
    char ip[RANGES_ADDRESS_SIZE];
    ranges_print_address(ntohl(from->sin_addr.s_addr), ip);
    bool has_place = r->n < RELAY_MAX && count_of(r, ip) < RELAY_POD_MAX;
    bool may = has_place && r->lets_in(r->ctx, ip);
    int server_fd = may ? dial(r) : -1;
    if (server_fd >= 0) {
        begin_passage(r, fd, server_fd, ip);
        return;
    }
    log_debug("connection to the API server refused address=%s: %s", ip,
              !has_place ? "there are too many"
              : !may     ? "of no Pod with a token"
                         : "the server is not there");
    close(fd);
}

/* ---- the listener ---- */

static int accept_one(struct relay *r, struct sockaddr_in *ret_from)
{
    socklen_t n = sizeof *ret_from;
    pthread_mutex_lock(&r->lock);
    int fd = accept4(r->listen_fd, (struct sockaddr *)ret_from, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
    pthread_mutex_unlock(&r->lock);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE))
        poll(NULL, 0, PAUSE_MS);
    return fd;
}

static int open_listener(struct relay *r, struct err *err)
{
    const struct relay_config *c = &r->config;
    const int yes = 1;
    struct range address;
    if (!ranges_read_cidr(c->address, &address))
        return err_set(err, ERR_INVALID, "%s is no address", c->address);
    const struct sockaddr_in place = {.sin_family = AF_INET,
                                      .sin_port = htons((uint16_t)c->port),
                                      .sin_addr = {htonl(address.first)}};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &r->epoll_fd};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (fd >= 0 &&
        setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, c->interface,
                   (socklen_t)strlen(c->interface)) == 0 &&
        bind(fd, (const struct sockaddr *)&place, sizeof place) == 0 && listen(fd, BACKLOG) == 0 &&
        epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0)
        return fd;
    int rc = err_set(err, ERR_UNAVAILABLE, "listening on %s of %s, port %d: %m", c->address,
                     c->interface, c->port);
    if (fd >= 0)
        close(fd);
    return rc;
}

/* Lock held. */
static void listen_on(struct relay *r, unsigned bridge)
{
    SCOPED(err_fini) struct err err = {0};
    if (r->listen_fd >= 0)
        close(r->listen_fd);
    r->listen_fd = open_listener(r, &err);
    bool is_good = r->listen_fd >= 0;
    if (!is_good && !str_equal(r->trouble, err_text(&err)))
        log_error("Pods do not reach the API server, trying again: %s", err_text(&err));
    free(r->trouble);
    r->trouble = is_good ? NULL : xstrdup(err_text(&err));
    r->bridge = is_good ? bridge : 0;
}

void relay_listen(struct relay *r)
{
    unsigned bridge = if_nametoindex(r->config.interface);
    pthread_mutex_lock(&r->lock);
    if (bridge && bridge != r->bridge)
        listen_on(r, bridge);
    pthread_mutex_unlock(&r->lock);
}

/* ---- the thread ---- */

static void on_event(struct relay *r, void *what)
{
    struct sockaddr_in from;
    int fd;
    if (what == &r->epoll_fd) {
        fd = accept_one(r, &from);
        if (fd >= 0)
            admit(r, fd, &from);
        return;
    }
    struct passage *p = ((struct end *)what)->passage;
    if (!p->is_dead && !carry(r, p))
        end_passage(r, p);
}

static void *run(void *arg)
{
    struct relay *r = arg;
    struct epoll_event events[EVENTS];
    for (bool is_stopping = false; !is_stopping;) {
        int n = epoll_wait(r->epoll_fd, events, EVENTS, -1);
        for (int i = 0; i < n && !is_stopping; i++) {
            is_stopping = events[i].data.ptr == &r->stop_fd;
            if (!is_stopping)
                on_event(r, events[i].data.ptr);
        }
        free_dead(r);
    }
    while (r->all)
        end_passage(r, r->all);
    free_dead(r);
    return NULL;
}

/* ---- life ---- */

int relay_new(const struct relay_config *config, struct relay **ret, struct err *err)
{
    struct relay *r = xcalloc(1, sizeof *r);
    r->config = *config;
    r->listen_fd = -1;
    r->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    r->stop_fd = eventfd(0, EFD_CLOEXEC);
    pthread_mutex_init(&r->lock, NULL);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &r->stop_fd};
    int rc = find_server(r, err);
    if (rc == 0 && epoll_ctl(r->epoll_fd, EPOLL_CTL_ADD, r->stop_fd, &event) < 0)
        rc = err_set(err, ERR_INTERNAL, "descriptors of the relay: %m");
    if (rc < 0)
        relay_free(r);
    else
        *ret = r;
    return rc;
}

void relay_start(struct relay *r, bool (*lets_in)(void *ctx, const char *ip), void *ctx)
{
    r->lets_in = lets_in;
    r->ctx = ctx;
    thread_start(&r->thread, "relay", run, r);
}

void relay_stop(struct relay *r)
{
    eventfd_write(r->stop_fd, 1);
    pthread_join(r->thread, NULL);
}

void relay_free(struct relay *r)
{
    if (!r)
        return;
    const int fds[] = {r->listen_fd, r->epoll_fd, r->stop_fd};
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    pthread_mutex_destroy(&r->lock);
    free(r->trouble);
    free(r);
}
