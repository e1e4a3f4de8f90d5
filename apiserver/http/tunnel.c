/* Each tunnel has its node's end and, when it is raw, its client's; a log has a buffer that the
 * client's thread takes from instead. Readiness is known by flags that are set by epoll's edges and
 * cleared at EAGAIN, as in conn.c. A client that sends no more is carried over to the node, which
 * may still answer; a node that sends no more ends the tunnel once all has gone out.
 *
 * A raw tunnel belongs to the thread from the moment that it has its connection. A log is shared by
 * two: the thread, until it is ended, and the stream's reader, until it is closed. */
#include "apiserver/http/tunnel.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/metric.h"
#include "apiserver/base/thread.h"
#include "apiserver/http/conn.h"
#include "apiserver/http/mailbox.h"

#define TUNNELS_MAX 1000
/* Source: kubelet's streaming-connection-idle-timeout. */
#define IDLE_MS ((int64_t)4 * 3600 * 1000)
#define HALF_MS ((int64_t)30000) /* for a node that says nothing after its client has ended */
#define SCRATCH ((size_t)16 << 10)
#define LOG_BYTES ((size_t)64 << 10) /* that wait for a client */
#define TURNS 16                     /* before the others have theirs */
#define EVENTS 64

struct side {
    struct tunnel *tunnel;
    int fd;
    bool is_readable, is_writable;
    bool is_over;       /* it sends no more */
    struct backlog out; /* for it */
};

struct tunnel {
    struct mail mail; /* first: it is new, or its reader has room again, or is gone */
    struct tunnels *owner;
    struct tunnel *prev, *next, *next_again;
    bool is_listed, is_again, is_dead;
    struct line line;
    struct side node, client; /* client of a raw one */
    bool is_shut;             /* the node was told that the client sends no more */
    int64_t moved_ms;
    uint64_t n_in, n_out; /* bytes from the client, and to it */
    /* raw */
    struct upgrade upgrade;
    struct raw raw;
    /* log */
    struct stream stream;
    struct reply reply;
    atomic_int refs;
    pthread_mutex_t lock; /* guards what follows */
    struct buf ready;
    bool is_closed, is_ended, has_reader;
};

struct tunnels {
    struct tunnels_config config;
    pthread_t thread;
    int epoll_fd, wake_fd;
    struct mailbox box;
    atomic_size_t n;
    pthread_mutex_t lock; /* guards is_stopping against those who post */
    bool is_stopping, has_thread;
    /* the thread's own */
    struct tunnel *all, *again, *dead;
    int64_t look_ms; /* when to look for idle ones; INT64_MAX = never */
    char scratch[SCRATCH];
};

static struct metric open_tunnels = {
    .name = "agent_sandbox_pod_streams",
    .help = "What is open to Pods' nodes: raw connections (exec, attach, portforward) and logs.",
    .type = METRIC_GAUGE,
    .labels = {"type"},
};

static int64_t now_ms(void)
{
    return clock_monotonic_ms(&clock_system);
}

static bool is_log(const struct tunnel *t)
{
    return t->client.fd < 0 && !t->raw.done;
}

static void count_open(const struct tunnel *t, double by)
{
    metric_add(&open_tunnels, by, (const char *[]){is_log(t) ? "log" : "raw"});
}

/* ---- places ---- */

bool tunnels_take_place(struct tunnels *t)
{
    if (atomic_fetch_add(&t->n, 1) < t->config.max)
        return true;
    atomic_fetch_sub(&t->n, 1);
    return false;
}

void tunnels_give_place(struct tunnels *t)
{
    atomic_fetch_sub(&t->n, 1);
}

/* ---- life ---- */

static struct tunnel *tunnel_new(struct tunnels *owner, struct line *take_line)
{
    struct tunnel *t = xcalloc(1, sizeof *t);
    t->owner = owner;
    t->line = steal(take_line);
    t->node =
        (struct side){.tunnel = t, .fd = t->line.fd, .is_readable = true, .is_writable = true};
    t->client = (struct side){.tunnel = t, .fd = -1};
    t->moved_ms = now_ms();
    atomic_init(&t->refs, 1);
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

static void tunnel_unref(struct tunnel *t)
{
    if (atomic_fetch_sub(&t->refs, 1) != 1)
        return;
    line_fini(&t->line);
    conn_backlog_fini(&t->node.out);
    conn_backlog_fini(&t->client.out);
    reply_fini(&t->reply);
    buf_fini(&t->ready);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

/* False when the thread is about to end, or has. */
static bool post(struct tunnel *t)
{
    struct tunnels *owner = t->owner;
    pthread_mutex_lock(&owner->lock);
    bool is_taken = !owner->is_stopping;
    if (is_taken)
        mailbox_post(&owner->box, &t->mail);
    pthread_mutex_unlock(&owner->lock);
    return is_taken;
}

static void run_again(struct tunnel *t)
{
    if (t->is_again || t->is_dead)
        return;
    t->is_again = true;
    t->next_again = t->owner->again;
    t->owner->again = t;
}

static bool watch(struct tunnels *owner, struct side *s)
{
    struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = s};
    return epoll_ctl(owner->epoll_fd, EPOLL_CTL_ADD, s->fd, &e) == 0;
}

static void list(struct tunnel *t)
{
    struct tunnels *owner = t->owner;
    t->is_listed = true;
    t->next = owner->all;
    if (owner->all)
        owner->all->prev = t;
    owner->all = t;
    count_open(t, 1);
}

static void unlist(struct tunnel *t)
{
    if (!t->is_listed)
        return;
    if (t->prev)
        t->prev->next = t->next;
    else
        t->owner->all = t->next;
    if (t->next)
        t->next->prev = t->prev;
    count_open(t, -1);
}

/* The line goes at once, the memory when this turn is over: epoll may have told of it already. */
static void end(struct tunnel *t)
{
    struct tunnels *owner = t->owner;
    if (t->is_dead)
        return;
    t->is_dead = true;
    unlist(t);
    line_fini(&t->line);
    if (t->client.fd >= 0)
        epoll_ctl(owner->epoll_fd, EPOLL_CTL_DEL, t->client.fd, NULL);
    pthread_mutex_lock(&t->lock);
    t->is_ended = true;
    if (t->has_reader && !t->is_closed)
        t->stream.wake(t->stream.wake_ctx);
    pthread_mutex_unlock(&t->lock);
    mailbox_cancel(&owner->box, &t->mail);
    if (t->raw.done)
        t->raw.done(t->raw.ctx);
    tunnels_give_place(owner);
    log_debug("tunnel ended type=%s in=%llu out=%llu", is_log(t) ? "log" : "raw",
              (unsigned long long)t->n_in, (unsigned long long)t->n_out);
    t->next = owner->dead;
    owner->dead = t;
}

static void free_dead(struct tunnels *owner)
{
    struct tunnel *t = owner->dead, *next;
    owner->dead = NULL;
    for (; t; t = next) {
        next = t->next;
        if (t->is_again) { /* its turn is still to come */
            t->next = owner->dead;
            owner->dead = t;
        } else {
            tunnel_unref(t);
        }
    }
}

/* ---- bytes ---- */

enum move { MOVE_SOME, MOVE_WAIT, MOVE_END, MOVE_BROKEN };

static enum move judge_line(struct tunnel *t, enum line_io io)
{
    switch (io) {
    case LINE_SOME:
        return MOVE_SOME;
    case LINE_WAIT_IN:
        t->node.is_readable = false;
        return MOVE_WAIT;
    case LINE_WAIT_OUT:
        t->node.is_writable = false;
        return MOVE_WAIT;
    case LINE_END:
        return MOVE_END;
    case LINE_BROKEN:
    default:
        return MOVE_BROKEN;
    }
}

static enum move read_node(struct tunnel *t, char *into, size_t max, size_t *ret_n)
{
    return judge_line(t, line_read(&t->line, into, max, ret_n));
}

static enum move write_node(struct tunnel *t, const char *p, size_t n, size_t *ret_n)
{
    return judge_line(t, line_write(&t->line, p, n, ret_n));
}

static enum move read_client(struct tunnel *t, char *into, size_t max, size_t *ret_n)
{
    ssize_t n;
    do
        n = recv(t->client.fd, into, max, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        *ret_n = (size_t)n;
        return MOVE_SOME;
    }
    if (n == 0)
        return MOVE_END;
    t->client.is_readable = false;
    return errno == EAGAIN ? MOVE_WAIT : MOVE_BROKEN;
}

static enum move write_client(struct tunnel *t, const char *p, size_t n, size_t *ret_n)
{
    ssize_t sent;
    do
        sent = send(t->client.fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent > 0) {
        *ret_n = (size_t)sent;
        return MOVE_SOME;
    }
    t->client.is_writable = false;
    return errno == EAGAIN ? MOVE_WAIT : MOVE_BROKEN;
}

/* One direction of a raw tunnel. */
struct way {
    struct side *from, *to;
    enum move (*read)(struct tunnel *t, char *into, size_t max, size_t *ret_n);
    enum move (*write)(struct tunnel *t, const char *p, size_t n, size_t *ret_n);
    uint64_t *count;
};

/* What to does not take is kept. False when it is broken. */
static bool deliver(struct tunnel *t, const struct way *w, const char *p, size_t n)
{
    size_t done = 0;
    while (done < n && w->to->is_writable) {
        size_t sent = 0;
        enum move m = w->write(t, p + done, n - done, &sent);
        if (m == MOVE_BROKEN || m == MOVE_END)
            return false;
        if (m == MOVE_WAIT)
            break;
        done += sent;
    }
    if (done > 0)
        t->moved_ms = now_ms();
    *w->count += done;
    if (done < n)
        w->to->out = (struct backlog){.p = xmemdup(p + done, n - done), .n = n - done};
    return true;
}

/* *ret_moved when there may be more to do. False when the tunnel is broken. */
static bool move(struct tunnel *t, const struct way *w, bool *ret_moved)
{
    size_t n = 0;
    if (w->to->out.p) {
        if (!w->to->is_writable)
            return true;
        struct backlog b = steal(&w->to->out);
        bool is_good = deliver(t, w, b.p, b.n);
        *ret_moved |= is_good && w->to->out.n < b.n;
        free(b.p);
        return is_good;
    }
    if (w->from->is_over || !w->from->is_readable)
        return true;
    enum move m = w->read(t, t->owner->scratch, SCRATCH, &n);
    w->from->is_over = m == MOVE_END;
    *ret_moved |= m == MOVE_SOME || m == MOVE_END;
    return m != MOVE_BROKEN && (m != MOVE_SOME || deliver(t, w, t->owner->scratch, n));
}

/* ---- raw ---- */

static void look_at(struct tunnels *owner, int64_t at_ms)
{
    if (at_ms < owner->look_ms)
        owner->look_ms = at_ms;
}

static int64_t patience_ms(const struct tunnel *t)
{
    return t->is_shut ? HALF_MS : t->owner->config.idle_timeout_ms;
}

static void carry_end_over(struct tunnel *t)
{
    if (!t->client.is_over || t->node.out.p || t->is_shut)
        return;
    line_end(&t->line);
    t->is_shut = true;
    t->moved_ms = now_ms();
    look_at(t->owner, t->moved_ms + HALF_MS);
}

static void run_raw(struct tunnel *t)
{
    const struct way up = {&t->client, &t->node, read_client, write_node, &t->n_in},
                     down = {&t->node, &t->client, read_node, write_client, &t->n_out};
    bool is_moved = true;
    for (int i = 0; i < TURNS && is_moved; i++) {
        is_moved = false;
        if (!move(t, &down, &is_moved) || (!t->is_shut && !move(t, &up, &is_moved))) {
            end(t);
            return;
        }
    }
    carry_end_over(t);
    if (t->node.is_over && !t->client.out.p)
        end(t);
    else if (is_moved)
        run_again(t);
}

/* ---- logs ---- */

/* Whether the reader waits for more, and is still there. */
static bool has_room(struct tunnel *t)
{
    pthread_mutex_lock(&t->lock);
    bool has = !t->is_closed && t->ready.len < LOG_BYTES;
    pthread_mutex_unlock(&t->lock);
    return has;
}

static bool is_closed(struct tunnel *t)
{
    pthread_mutex_lock(&t->lock);
    bool is = t->is_closed;
    pthread_mutex_unlock(&t->lock);
    return is;
}

/* False when it is no HTTP. */
static bool put_ready(struct tunnel *t, const char *p, size_t n)
{
    size_t used = 0;
    pthread_mutex_lock(&t->lock);
    size_t before = t->ready.len;
    bool is_good = reply_feed(&t->reply, p, n, &used, &t->ready);
    t->n_out += t->ready.len - before;
    if (t->has_reader && !t->is_closed && t->ready.len > before)
        t->stream.wake(t->stream.wake_ctx);
    pthread_mutex_unlock(&t->lock);
    return is_good;
}

static void run_log(struct tunnel *t)
{
    for (int i = 0; i < TURNS && t->node.is_readable && has_room(t); i++) {
        size_t n = 0;
        enum move m = read_node(t, t->owner->scratch, SCRATCH, &n);
        bool goes_on = m == MOVE_WAIT || (m == MOVE_SOME && put_ready(t, t->owner->scratch, n) &&
                                          t->reply.state != REPLY_OVER);
        if (!goes_on) {
            end(t);
            return;
        }
    }
    if (is_closed(t))
        end(t);
    else if (t->node.is_readable && has_room(t))
        run_again(t);
}

static struct tunnel *of_stream(struct stream *s)
{
    return (struct tunnel *)(void *)((char *)s - offsetof(struct tunnel, stream));
}

static int pull(struct stream *s, struct buf *out)
{
    struct tunnel *t = of_stream(s);
    pthread_mutex_lock(&t->lock);
    t->has_reader = true;
    bool was_full = t->ready.len >= LOG_BYTES;
    int r = t->ready.len ? 1 : t->is_ended ? -1 : 0;
    buf_append(out, t->ready.data, t->ready.len);
    buf_fini(&t->ready);
    if (was_full && !t->is_ended)
        post(t);
    pthread_mutex_unlock(&t->lock);
    return r;
}

static void close_log(struct stream *s)
{
    struct tunnel *t = of_stream(s);
    pthread_mutex_lock(&t->lock);
    t->is_closed = true;
    if (!t->is_ended)
        post(t);
    pthread_mutex_unlock(&t->lock);
    tunnel_unref(t);
}

/* ---- the thread ---- */

static void run(struct tunnel *t)
{
    if (t->is_dead)
        return;
    if (is_log(t))
        run_log(t);
    else
        run_raw(t);
}

static void start(struct tunnel *t)
{
    struct tunnels *owner = t->owner;
    list(t);
    bool is_watched = watch(owner, &t->node) && (t->client.fd < 0 || watch(owner, &t->client));
    if (!is_watched) {
        log_warn("tunnel ended, no memory to watch it");
        end(t);
        return;
    }
    if (!is_log(t))
        look_at(owner, t->moved_ms + patience_ms(t));
}

static void open_mail(struct mail *m)
{
    struct tunnel *t = (struct tunnel *)m;
    if (!t->is_listed)
        start(t);
    run(t);
}

static void on_event(struct side *s, uint32_t events)
{
    struct tunnel *t = s->tunnel;
    bool is_broken = events & (EPOLLERR | EPOLLHUP);
    if (t->is_dead)
        return;
    s->is_readable |= is_broken || (events & (EPOLLIN | EPOLLRDHUP));
    s->is_writable |= is_broken || (events & EPOLLOUT);
    if (is_broken && s == &t->client) /* whatever is on its way, nobody is there to take it */
        end(t);
    else
        run(t);
}

static void look(struct tunnels *owner, int64_t at_ms)
{
    if (at_ms < owner->look_ms)
        return;
    owner->look_ms = INT64_MAX;
    for (struct tunnel *t = owner->all, *next; t; t = next) {
        next = t->next;
        if (is_log(t))
            continue;
        if (at_ms - t->moved_ms >= patience_ms(t)) {
            log_info("tunnel ended, nothing moved for too long");
            end(t);
        } else {
            look_at(owner, t->moved_ms + patience_ms(t));
        }
    }
}

static int sleep_ms(struct tunnels *owner)
{
    if (owner->again || !mailbox_is_empty(&owner->box))
        return 0;
    if (owner->look_ms == INT64_MAX)
        return -1;
    int64_t ms = owner->look_ms - now_ms();
    return ms < 0 ? 0 : ms > INT32_MAX ? INT32_MAX : (int)ms;
}

static bool is_stopping(struct tunnels *owner)
{
    pthread_mutex_lock(&owner->lock);
    bool is = owner->is_stopping;
    pthread_mutex_unlock(&owner->lock);
    return is;
}

static void run_those_again(struct tunnels *owner)
{
    struct tunnel *t = owner->again, *next;
    owner->again = NULL;
    for (; t; t = next) {
        next = t->next_again;
        t->is_again = false;
        run(t);
    }
}

static void *run_thread(void *arg)
{
    struct tunnels *owner = arg;
    struct epoll_event events[EVENTS];
    while (!is_stopping(owner)) {
        int n = epoll_wait(owner->epoll_fd, events, EVENTS, sleep_ms(owner));
        for (int i = 0; i < n; i++) {
            uint64_t any;
            if (events[i].data.ptr == owner)
                (void)!read(owner->wake_fd, &any, sizeof any);
            else
                on_event(events[i].data.ptr, events[i].events);
        }
        mailbox_open(&owner->box);
        run_those_again(owner);
        look(owner, now_ms());
        free_dead(owner);
    }
    mailbox_open(&owner->box); /* those that came last */
    while (owner->all)
        end(owner->all);
    run_those_again(owner);
    free_dead(owner);
    return NULL;
}

/* ---- new ones ---- */

static struct tunnel *of_upgrade(struct upgrade *u)
{
    return (struct tunnel *)(void *)((char *)u - offsetof(struct tunnel, upgrade));
}

static void drop_raw(struct upgrade *u)
{
    struct tunnel *t = of_upgrade(u);
    tunnels_give_place(t->owner);
    tunnel_unref(t);
}

static void add_backlog(struct side *s, const char *p, size_t n)
{
    if (n > 0)
        s->out = (struct backlog){.p = xmemdup(p, n), .n = n};
}

static void take_raw(struct upgrade *u, const struct raw *raw)
{
    struct tunnel *t = of_upgrade(u);
    t->raw = *raw;
    t->client.fd = raw->fd;
    t->client.is_readable = t->client.is_writable = true;
    add_backlog(&t->node, raw->ahead, raw->n_ahead);
    t->moved_ms = now_ms();
    if (post(t))
        return;
    raw->done(raw->ctx);
    drop_raw(u);
}

struct upgrade *tunnels_raw(struct tunnels *owner, struct line *take_line, struct buf *take_ahead)
{
    struct tunnel *t = tunnel_new(owner, take_line);
    t->upgrade = (struct upgrade){.take = take_raw, .close = drop_raw};
    t->mail.open = open_mail;
    add_backlog(&t->client, take_ahead->data, take_ahead->len);
    buf_fini(take_ahead);
    return &t->upgrade;
}

struct stream *tunnels_log(struct tunnels *owner, struct line *take_line, struct reply *take_reply,
                           struct buf *take_ahead)
{
    struct tunnel *t = tunnel_new(owner, take_line);
    t->stream = (struct stream){.pull = pull, .close = close_log};
    t->mail.open = open_mail;
    t->reply = steal(take_reply);
    t->ready = steal(take_ahead);
    atomic_store(&t->refs, 2);
    if (t->reply.state == REPLY_OVER || !post(t)) {
        t->is_ended = true;
        line_fini(&t->line);
        tunnels_give_place(owner);
        tunnel_unref(t);
    }
    return &t->stream;
}

/* ---- start and stop ---- */

static void wake(void *tunnels)
{
    struct tunnels *t = tunnels;
    uint64_t one = 1;
    (void)!write(t->wake_fd, &one, sizeof one); /* at the counter's top the thread wakes anyway */
}

int tunnels_new(const struct tunnels_config *config, struct tunnels **ret, struct err *err)
{
    struct tunnels *t = xcalloc(1, sizeof *t);
    t->config = *config;
    t->config.max = config->max ? config->max : TUNNELS_MAX;
    t->config.idle_timeout_ms = config->idle_timeout_ms ? config->idle_timeout_ms : IDLE_MS;
    t->look_ms = INT64_MAX;
    pthread_mutex_init(&t->lock, NULL);
    mailbox_init(&t->box, wake, t);
    t->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    t->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = t};
    t->has_thread = epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, t->wake_fd, &e) == 0 &&
                    thread_try_start(&t->thread, "tunnels", 0, run_thread, t);
    if (!t->has_thread) {
        tunnels_free(t);
        return err_set(err, ERR_INTERNAL, "thread for tunnels could not be started");
    }
    *ret = t;
    return 0;
}

void tunnels_stop(struct tunnels *t)
{
    pthread_mutex_lock(&t->lock);
    t->is_stopping = true;
    pthread_mutex_unlock(&t->lock);
    if (!t->has_thread)
        return;
    wake(t);
    pthread_join(t->thread, NULL);
    t->has_thread = false;
}

void tunnels_free(struct tunnels *t)
{
    if (!t)
        return;
    tunnels_stop(t);
    mailbox_fini(&t->box);
    if (t->epoll_fd >= 0)
        close(t->epoll_fd);
    if (t->wake_fd >= 0)
        close(t->wake_fd);
    pthread_mutex_destroy(&t->lock);
    free(t);
}
