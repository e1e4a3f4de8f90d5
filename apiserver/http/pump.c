/* One I/O thread: accepts, waits, hands events to the connections, runs deadlines. */
#include "apiserver/http/pump.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/thread.h"

#define EVENTS 64           /* taken at once */
#define ACCEPTS 32          /* taken at once, so that a flood does not starve who is in */
#define TICK_MS 250         /* how exactly deadlines are kept */
#define ACCEPT_PAUSE_MS 500 /* when descriptors ran out */
#define VANISHED_MS 90000

int64_t pump_now_ms(void)
{
    return clock_monotonic_ms(&clock_system);
}

bool pump_watch(struct pump *p, struct end *end)
{
    struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = end};
    return epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, end->fd, &e) == 0;
}

/* ---- lists ---- */

static void add_conn(struct pump *p, struct conn *c)
{
    c->next = p->conns;
    if (p->conns)
        p->conns->prev = c;
    p->conns = c;
}

static void remove_conn(struct pump *p, struct conn *c)
{
    if (c->prev)
        c->prev->next = c->next;
    else
        p->conns = c->next;
    if (c->next)
        c->next->prev = c->prev;
}

void pump_need_ticks(struct conn *c)
{
    struct pump *p = c->pump;
    if (c->is_timed)
        return;
    c->is_timed = true;
    c->timed_prev = NULL;
    c->timed_next = p->timed;
    if (p->timed)
        p->timed->timed_prev = c;
    p->timed = c;
}

static void remove_timed(struct pump *p, struct conn *c)
{
    if (!c->is_timed)
        return;
    if (c->timed_prev)
        c->timed_prev->timed_next = c->timed_next;
    else
        p->timed = c->timed_next;
    if (c->timed_next)
        c->timed_next->timed_prev = c->timed_prev;
    c->is_timed = false;
}

void pump_run_again(struct conn *c)
{
    if (c->is_again)
        return;
    c->is_again = true;
    c->next_again = c->pump->again;
    c->pump->again = c;
}

/* ---- accepting ---- */

static void print_addr(const struct sockaddr_storage *a, char *out, size_t n)
{
    char host[INET6_ADDRSTRLEN] = "?";
    if (a->ss_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, a, sizeof in6);
        inet_ntop(AF_INET6, &in6.sin6_addr, host, sizeof host);
        snprintf(out, n, "[%s]:%u", host, ntohs(in6.sin6_port));
    } else {
        struct sockaddr_in in;
        memcpy(&in, a, sizeof in);
        inet_ntop(AF_INET, &in.sin_addr, host, sizeof host);
        snprintf(out, n, "%s:%u", host, ntohs(in.sin_port));
    }
}

/* A peer that vanished without a word is noticed after about a minute and a half, idle or not; one
 * that leaves its window closed, after the idle timeout, however little waits for it. */
static void set_socket_options(int fd, int64_t idle_timeout_ms)
{
    int patience_ms = idle_timeout_ms < VANISHED_MS ? (int)idle_timeout_ms : VANISHED_MS;
    const struct {
        int level, name, value;
    } options[] = {
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, 30},
        {IPPROTO_TCP, TCP_KEEPINTVL, 15},
        {IPPROTO_TCP, TCP_KEEPCNT, 4},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, patience_ms},
        {IPPROTO_TCP, TCP_NODELAY, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                   sizeof options[i].value);
}

static void take_socket(struct pump *p, int fd, const struct sockaddr_storage *from)
{
    struct pump_shared *s = p->shared;
    char addr[64];
    print_addr(from, addr, sizeof addr);
    if (atomic_fetch_add(&s->n_connections, 1) >= s->max_connections) {
        atomic_fetch_sub(&s->n_connections, 1);
        close(fd);
        log_warn("connection refused, too many are open peer=%s max=%zu", addr, s->max_connections);
        return;
    }
    set_socket_options(fd, s->idle_timeout_ms);
    struct conn *c = conn_new(p, fd, addr);
    if (c)
        add_conn(p, c);
    else
        atomic_fetch_sub(&s->n_connections, 1);
}

static void stop_accepting(struct pump *p)
{
    if (p->is_accepting)
        epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, p->shared->listen_fd, NULL);
    p->is_accepting = false;
}

static void start_accepting(struct pump *p)
{
    /* Level-triggered; exclusive: of several pumps one wakes. */
    struct epoll_event e = {.events = EPOLLIN | EPOLLEXCLUSIVE, .data.ptr = p->shared};
    p->is_accepting = epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, p->shared->listen_fd, &e) == 0;
}

static bool is_out_of_descriptors(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

static void accept_some(struct pump *p)
{
    for (int i = 0; i < ACCEPTS && !atomic_load(&p->is_draining); i++) {
        struct sockaddr_storage from = {0};
        socklen_t n = sizeof from;
        int fd = accept4(p->shared->listen_fd, (struct sockaddr *)&from, &n,
                         SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            take_socket(p, fd, &from);
        } else if (is_out_of_descriptors(errno)) {
            log_warn("accepting pauses ms=%d, out of descriptors or memory", ACCEPT_PAUSE_MS);
            stop_accepting(p);
            p->accept_again_ms = pump_now_ms() + ACCEPT_PAUSE_MS;
            return;
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

/* ---- the loop ---- */

static void run_again(struct pump *p)
{
    struct conn *c = p->again, *next;
    p->again = NULL;
    for (; c; c = next) {
        next = c->next_again;
        c->is_again = false;
        conn_run(c);
    }
}

static void free_dead(struct pump *p)
{
    struct conn *c = p->timed, *next; /* the dead are among those with ticks */
    for (; c; c = next) {
        next = c->timed_next;
        if (c->state != CONN_DEAD || c->is_again)
            continue;
        remove_timed(p, c);
        remove_conn(p, c);
        conn_free(c);
        atomic_fetch_sub(&p->shared->n_connections, 1);
    }
}

static void tick(struct pump *p, int64_t now_ms)
{
    struct conn *c = p->timed, *next;
    for (; c; c = next) {
        next = c->timed_next;
        if (!conn_tick(c, now_ms))
            remove_timed(p, c);
    }
    if (atomic_load(&p->is_draining)) {
        stop_accepting(p);
        for (c = p->conns; c; c = c->next)
            conn_end_if_idle(c);
        return;
    }
    if (atomic_load(&p->is_leaving))
        for (c = p->conns; c; c = c->next)
            conn_send_away(c);
    if (p->accept_again_ms && now_ms >= p->accept_again_ms) {
        p->accept_again_ms = 0;
        start_accepting(p);
    }
}

static void handle_event(struct pump *p, const struct epoll_event *e)
{
    if (e->data.ptr == p->shared) {
        accept_some(p);
    } else if (e->data.ptr == p) {
        uint64_t n;
        if (read(p->wake_fd, &n, sizeof n) < 0)
            return;
    } else {
        conn_on_event(e->data.ptr, e->events);
    }
}

static bool needs_ticks(const struct pump *p)
{
    bool is_ending = atomic_load(&p->is_leaving) || atomic_load(&p->is_draining);
    return p->timed || p->accept_again_ms || (is_ending && p->conns);
}

/* ms to sleep; -1 = until something happens. */
static int sleep_ms(struct pump *p, int64_t next_tick_ms)
{
    if (p->again || !mailbox_is_empty(&p->box))
        return 0;
    if (!needs_ticks(p))
        return -1;
    int64_t ms = next_tick_ms - pump_now_ms();
    return ms < 0 ? 0 : (int)ms;
}

static void kill_all(struct pump *p)
{
    for (struct conn *c = p->conns; c; c = c->next)
        conn_kill(c);
    run_again(p);
    free_dead(p);
}

static void *run_pump(void *arg)
{
    struct pump *p = arg;
    struct epoll_event events[EVENTS];
    int64_t next_tick_ms = 0;
    while (!atomic_load(&p->is_cut)) {
        int n = epoll_wait(p->epoll_fd, events, EVENTS, sleep_ms(p, next_tick_ms));
        for (int i = 0; i < n; i++)
            handle_event(p, &events[i]);
        mailbox_open(&p->box);
        run_again(p);
        int64_t now = pump_now_ms();
        if (now >= next_tick_ms) {
            tick(p, now);
            next_tick_ms = now + TICK_MS;
        }
        free_dead(p);
    }
    stop_accepting(p);
    kill_all(p);
    return NULL;
}

/* ---- start and stop ---- */

/* Called by whoever posts, too. */
static void wake(void *pump)
{
    struct pump *p = pump;
    uint64_t one = 1;
    if (write(p->wake_fd, &one, sizeof one) < 0)
        return; /* the counter is at its top: the thread wakes anyway */
}

static void pump_destroy(struct pump *p)
{
    mailbox_fini(&p->box);
    buf_fini(&p->plain);
    buf_fini(&p->sealed);
    if (p->epoll_fd >= 0)
        close(p->epoll_fd);
    if (p->wake_fd >= 0)
        close(p->wake_fd);
    free(p);
}

int pump_start(struct pump_shared *shared, struct pump **ret, struct err *err)
{
    struct pump *p = xcalloc(1, sizeof *p);
    p->shared = shared;
    mailbox_init(&p->box, wake, p);
    p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    p->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = p};
    bool is_ready = epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, p->wake_fd, &e) == 0;
    if (is_ready)
        start_accepting(p);
    if (!is_ready || !p->is_accepting || !thread_try_start(&p->thread, "pump", 0, run_pump, p)) {
        pump_destroy(p);
        return err_set(err, ERR_INTERNAL, "I/O thread could not be started");
    }
    *ret = p;
    return 0;
}

void pump_send_away(struct pump *p)
{
    atomic_store(&p->is_leaving, true);
    wake(p);
}

void pump_drain(struct pump *p)
{
    atomic_store(&p->is_draining, true);
    wake(p);
}

void pump_cut(struct pump *p)
{
    if (atomic_exchange(&p->is_cut, true))
        return;
    wake(p);
    pthread_join(p->thread, NULL);
}

void pump_free(struct pump *p)
{
    if (!p)
        return;
    pump_cut(p);
    mailbox_open(&p->box); /* answers that came too late */
    pump_destroy(p);
}
