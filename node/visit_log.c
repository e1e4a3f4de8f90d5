/* /containerLogs: the engine's file of a container's output, read as it grows. It grows up to its
 * limit and is then replaced by a new one, which is followed as well. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "node/logs.h"
#include "node/visit.h"

#define PIECE ((size_t)64 << 10) /* bytes read at once */
/* For a client to take what there is: it may be a pager that somebody reads. Source: the kubelet's
 * streamingConnectionIdleTimeout. */
#define SEND_MS ((int64_t)4 * 3600 * 1000)
#define GOODBYE_MS 5000 /* for it to go */
#define LOOK_MS 30000   /* at the latest it is looked again; news may be lost */

struct view {
    struct visit *visit;
    struct log_reader reader;
    char *path;
    int fd;       /* of the file, -1 = there is none yet */
    int news_fd;  /* inotify: its folder changed; -1 = not followed */
    int owner_fd; /* of the process that writes it; -1 = it has ended */
    bool is_gone; /* the client */
};

/* ---- to the client ---- */

static void send_bytes(struct view *v, const struct buf *bytes)
{
    int64_t until_ms = clock_monotonic_ms(&clock_system) + SEND_MS;
    if (!v->is_gone && tls_conn_send(v->visit->conn, buf_cstr(bytes), bytes->len, v->visit->stop_fd,
                                     until_ms, NULL) < 0)
        v->is_gone = true;
}

static void send_head(struct view *v)
{
    SCOPED(buf_fini) struct buf head = {0};
    buf_puts(&head, "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
                    "X-Content-Type-Options: nosniff\r\nConnection: close\r\n");
    buf_puts(&head, v->visit->head.is_old ? "\r\n" : "Transfer-Encoding: chunked\r\n\r\n");
    send_bytes(v, &head);
}

/* A chunk of RFC 9112, 7.1; HTTP/1.0 knows none. */
static void send_chunk(struct view *v, const struct buf *bytes)
{
    SCOPED(buf_fini) struct buf chunk = {0};
    if (v->visit->head.is_old) {
        send_bytes(v, bytes);
        return;
    }
    buf_printf(&chunk, "%zx\r\n", bytes->len);
    buf_append(&chunk, bytes->data, bytes->len);
    buf_puts(&chunk, "\r\n");
    send_bytes(v, &chunk);
}

/* ---- from the file ---- */

/* All that is there; nothing is sent when out is NULL. */
static void read_on(struct view *v, struct log_reader *reader, bool is_sending)
{
    char piece[PIECE];
    ssize_t n;
    while (!v->is_gone && !reader->is_full && v->fd >= 0 &&
           (n = read(v->fd, piece, sizeof piece)) != 0) {
        SCOPED(buf_fini) struct buf out = {0};
        if (n < 0 && errno != EINTR)
            return;
        if (n > 0)
            log_read(reader, piece, (size_t)n, &out);
        if (is_sending && out.len > 0)
            send_chunk(v, &out);
    }
}

/* How many lines are to be left out, so that the last ones are as many as was asked for. */
static void find_tail(struct view *v)
{
    SCOPED(log_reader_fini) struct log_reader all = {.options = v->reader.options};
    if (v->reader.options.tail < 0 || v->fd < 0)
        return;
    all.options.limit = 0;
    all.options.streams[0] = all.options.streams[1] = false; /* counted only */
    read_on(v, &all, false);
    int64_t lines = all.lines + all.is_inside, tail = v->reader.options.tail;
    v->reader.skip = lines > tail ? lines - tail : 0;
    lseek(v->fd, 0, SEEK_SET);
}

/* A new file in its place: the old one was read to its end. */
static void take_new_file(struct view *v)
{
    struct stat here, there;
    int fd = open(v->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool is_same = fd >= 0 && v->fd >= 0 && fstat(fd, &there) == 0 && fstat(v->fd, &here) == 0 &&
                   here.st_ino == there.st_ino && here.st_dev == there.st_dev;
    if (fd < 0 || is_same) {
        if (fd >= 0)
            close(fd);
        return;
    }
    read_on(v, &v->reader, true);
    if (v->fd >= 0)
        close(v->fd);
    v->fd = fd;
}

/* ---- following ---- */

static void listen_for_news(struct view *v, pid_t owner)
{
    SCOPED_FREE char *folder = xstrdup(v->path);
    char *slash = strrchr(folder, '/');
    if (slash)
        *slash = '\0';
    v->owner_fd = owner > 1 ? (int)syscall(SYS_pidfd_open, owner, 0) : -1;
    v->news_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    inotify_add_watch(v->news_fd, folder, IN_MODIFY | IN_CREATE | IN_MOVED_TO);
}

/* False when there is nothing more to come. */
static bool wait_for_news(struct view *v)
{
    char dropped[4096];
    if (v->owner_fd < 0)
        return false;
    struct pollfd fds[] = {
        {.fd = v->news_fd, .events = POLLIN},
        {.fd = v->owner_fd, .events = POLLIN},
        {.fd = v->visit->stop_fd, .events = POLLIN},
        {.fd = tls_conn_fd(v->visit->conn), .events = tls_conn_events(v->visit->conn, true, false)},
    };
    poll(fds, ARRAY_LEN(fds), LOOK_MS);
    while (read(v->news_fd, dropped, sizeof dropped) > 0)
        ;
    if (fds[1].revents) { /* what it wrote last is still to be read */
        close(v->owner_fd);
        v->owner_fd = -1;
    }
    if (fds[3].revents && tls_conn_read(v->visit->conn, dropped, sizeof dropped) < 0)
        v->is_gone = true;
    return !fds[2].revents;
}

static void follow(struct view *v)
{
    do {
        read_on(v, &v->reader, true);
        take_new_file(v);
        read_on(v, &v->reader, true);
    } while (!v->is_gone && !v->reader.is_full && wait_for_news(v));
    read_on(v, &v->reader, true);
}

/* ---- the request ---- */

/* The file, and who writes it. */
static int find_file(struct view *v, const char *id, pid_t *ret_owner, struct err *err)
{
    SCOPED(json_free_p) cJSON *inspection = NULL;
    int rc = podman_inspect(v->visit->config->podman, id, &inspection, err);
    if (rc < 0)
        return rc;
    bool is_running = json_bool_or(inspection, "State.Running", false);
    v->path = xstrdup(json_str_or(inspection, "HostConfig.LogConfig.Path", ""));
    *ret_owner = is_running ? (pid_t)json_i64_or(inspection, "State.ConmonPid", 0) : 0;
    return 0;
}

static int prepare(struct view *v, struct err *err)
{
    struct visit *visit = v->visit;
    SCOPED(json_free_p) cJSON *pod = NULL;
    SCOPED_FREE char *id = NULL;
    pid_t owner = 0;
    struct log_options *o = &v->reader.options;
    int rc = log_options_read(&visit->head.query, clock_unix_ms(&clock_system), o, err);
    if (rc == 0)
        rc = visit_find_pod(visit, &pod, err);
    if (rc == 0)
        rc = log_choose(pod, visit->parts[3], o->previous, &id, err);
    if (rc == 0)
        rc = find_file(v, id, &owner, err);
    if (rc < 0)
        return rc;
    if (o->follows)
        listen_for_news(v, owner);
    v->fd = open(v->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    find_tail(v);
    return 0;
}

static void close_if(int fd)
{
    if (fd >= 0)
        close(fd);
}

void visit_log(struct visit *visit)
{
    SCOPED(err_fini) struct err err = {0};
    static const struct buf nothing;
    struct view v = {.visit = visit, .fd = -1, .news_fd = -1, .owner_fd = -1};
    if (prepare(&v, &err) < 0) {
        visit_fail(visit, &err);
    } else {
        send_head(&v);
        follow(&v);
        if (!visit->head.is_old)
            send_chunk(&v, &nothing); /* the last one */
        if (!v.is_gone)
            tls_conn_end(visit->conn, visit->stop_fd,
                         clock_monotonic_ms(&clock_system) + GOODBYE_MS);
    }
    log_reader_fini(&v.reader);
    close_if(v.fd);
    close_if(v.news_fd);
    close_if(v.owner_fd);
    free(v.path);
}
