/* The transport put together: one listening socket, two pumps, one HTTP side, and a thread that
 * looks for a renewed certificate. */
#include "apiserver/http/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "apiserver/base/file.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/thread.h"
#include "apiserver/http/mhd.h"
#include "apiserver/http/pump.h"
#include "apiserver/http/tls.h"

#define PUMPS 2
#define BACKLOG 512
#define WATCH_INTERVAL_MS 5000 /* between looks at the certificate's files */
#define STOP_POLL_MS 10
#define FDS_PER_CONNECTION ((size_t)3) /* TCP and the pair */
#define FDS_OTHER ((size_t)256)
#define QUEUE_PER_WORKER 32 /* requests that wait for a worker */
/* Bytes of all requests that are under way; beyond it 429. */
#define BODIES_MAX ((size_t)512 << 20)

struct server {
    struct server_config config; /* with defaults filled in */
    char *cert_file, *key_file;
    int listen_fd, port;
    struct tls *tls;
    struct workers *workers;
    struct budget bodies;
    struct h2_config h2;
    struct mhd *mhd;
    struct pump_shared shared;
    struct pump *pumps[PUMPS];
    pthread_t watcher;
    bool has_watcher;
    pthread_mutex_t lock; /* guards is_stopping */
    pthread_cond_t wake;
    bool is_stopping;
};

/* ---- the certificate's files ---- */

int server_reload(struct server *s, struct err *err)
{
    return tls_reload(s->tls, err);
}

static void reload_changed(struct server *s)
{
    struct err err = {0};
    if (server_reload(s, &err) < 0)
        log_warn("certificate changed and is not usable, the old one stays reason=\"%s\"",
                 err_text(&err));
    else
        log_info("certificate reloaded file=%s", s->cert_file);
    err_fini(&err);
}

/* Sleeps until the next look; false when the server stops. */
static bool wait_interval(struct server *s)
{
    int64_t until_ms = pump_now_ms() + WATCH_INTERVAL_MS;
    pthread_mutex_lock(&s->lock);
    while (!s->is_stopping && pump_now_ms() < until_ms)
        thread_cond_wait_until(&s->wake, &s->lock, until_ms);
    bool goes_on = !s->is_stopping;
    pthread_mutex_unlock(&s->lock);
    return goes_on;
}

static void *watch_files(void *arg)
{
    struct server *s = arg;
    struct file_stamp cert = file_stamp(s->cert_file), key = file_stamp(s->key_file);
    while (wait_interval(s)) {
        struct file_stamp cert_now = file_stamp(s->cert_file), key_now = file_stamp(s->key_file);
        if (file_stamp_equal(&cert, &cert_now) && file_stamp_equal(&key, &key_now))
            continue;
        cert = cert_now;
        key = key_now;
        reload_changed(
            s); /* a pair that is half written changes once more and is looked at again */
    }
    return NULL;
}

/* ---- the socket ---- */

static bool parse_address(const char *text, int port, struct sockaddr_storage *ret,
                          socklen_t *ret_n)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET, text, &in.sin_addr) == 1) {
        memcpy(ret, &in, sizeof in);
        *ret_n = sizeof in;
        return true;
    }
    if (inet_pton(AF_INET6, text, &in6.sin6_addr) == 1) {
        memcpy(ret, &in6, sizeof in6);
        *ret_n = sizeof in6;
        return true;
    }
    return false;
}

static int read_port(int fd)
{
    struct sockaddr_storage a = {0};
    socklen_t n = sizeof a;
    struct sockaddr_in in;
    if (getsockname(fd, (struct sockaddr *)&a, &n) < 0)
        return 0;
    memcpy(&in, &a, sizeof in); /* sin_port and sin6_port lie at the same place */
    return ntohs(in.sin_port);
}

static int listen_on(struct server *s, struct err *err)
{
    struct sockaddr_storage a = {0};
    socklen_t n = 0;
    const char *address = s->config.bind_address;
    if (!parse_address(address, s->config.port, &a, &n))
        return err_set(err, ERR_INVALID, "%s is no IP address", address);
    int on = 1, off = 0;
    int fd = socket(a.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (a.ss_family == AF_INET6) /* :: takes IPv4 too */
            setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    }
    if (fd < 0 || bind(fd, (struct sockaddr *)&a, n) < 0 || listen(fd, BACKLOG) < 0) {
        err_set(err, ERR_UNAVAILABLE, "listening on %s port %d: %s", address, s->config.port,
                strerror(errno));
        if (fd >= 0)
            close(fd);
        return -ERR_UNAVAILABLE;
    }
    s->listen_fd = fd;
    s->port = read_port(fd);
    return 0;
}

/* As many descriptors as the connections need, or as many connections as the descriptors allow. */
static void fit_descriptors(struct server_config *c)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    size_t other = FDS_OTHER + c->other_fds, need = c->max_connections * FDS_PER_CONNECTION + other;
    if (limit.rlim_cur < need) {
        limit.rlim_cur = limit.rlim_max < need ? limit.rlim_max : need;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (limit.rlim_cur >= need)
        return;
    size_t fit = limit.rlim_cur > other + FDS_OTHER ? (limit.rlim_cur - other) / FDS_PER_CONNECTION
                                                    : FDS_OTHER / 4;
    log_warn("too few descriptors, fewer connections limit=%zu connections=%zu",
             (size_t)limit.rlim_cur, fit);
    c->max_connections = fit;
}

/* ---- start and stop ---- */

static void fill_defaults(struct server_config *c)
{
    c->workers = c->workers > 0 ? c->workers : 32;
    c->max_body = c->max_body ? c->max_body : 3145728;
    c->max_connections = c->max_connections ? c->max_connections : 4096;
    c->handshake_timeout_ms = c->handshake_timeout_ms ? c->handshake_timeout_ms : 10000;
    c->header_timeout_ms = c->header_timeout_ms ? c->header_timeout_ms : 30000;
    c->idle_timeout_ms = c->idle_timeout_ms ? c->idle_timeout_ms : 120000;
    fit_descriptors(c);
}

static int start_http(struct server *s, struct err *err)
{
    size_t n = (size_t)s->config.workers;
    s->bodies.max = BODIES_MAX;
    s->workers = workers_new((int)n, n * QUEUE_PER_WORKER);
    if (!s->workers)
        return err_set(err, ERR_INTERNAL, "HTTP threads could not be started");
    struct mhd_config config = {
        .handler = s->config.handler,
        .ctx = s->config.ctx,
        .workers = s->workers,
        .bodies = &s->bodies,
        .max_body = s->config.max_body,
        .max_connections = s->config.max_connections,
        .idle_timeout_ms = s->config.idle_timeout_ms,
    };
    s->h2 = (struct h2_config){
        .handler = config.handler,
        .ctx = config.ctx,
        .workers = config.workers,
        .bodies = config.bodies,
        .max_body = config.max_body,
        .header_timeout_ms = s->config.header_timeout_ms,
        .idle_timeout_ms = s->config.idle_timeout_ms,
    };
    return mhd_new(&config, &s->mhd, err);
}

static int start_pumps(struct server *s, struct err *err)
{
    s->shared.tls = s->tls;
    s->shared.mhd = s->mhd;
    s->shared.h2 = &s->h2;
    s->shared.listen_fd = s->listen_fd;
    s->shared.max_connections = s->config.max_connections;
    s->shared.handshake_timeout_ms = s->config.handshake_timeout_ms;
    s->shared.header_timeout_ms = s->config.header_timeout_ms;
    s->shared.idle_timeout_ms = s->config.idle_timeout_ms;
    int r = 0;
    for (int i = 0; i < PUMPS && r == 0; i++)
        r = pump_start(&s->shared, &s->pumps[i], err);
    return r;
}

static int start_watcher(struct server *s, struct err *err)
{
    s->has_watcher = thread_try_start(&s->watcher, "cert-files", 0, watch_files, s);
    return s->has_watcher ? 0 : err_set(err, ERR_INTERNAL, "thread could not be started");
}

static struct server *server_make(const struct server_config *config)
{
    struct server *s = xcalloc(1, sizeof *s);
    s->config = *config;
    s->cert_file = xstrdup(config->cert_file);
    s->key_file = xstrdup(config->key_file);
    s->listen_fd = -1;
    pthread_mutex_init(&s->lock, NULL);
    thread_cond_init(&s->wake);
    fill_defaults(&s->config);
    return s;
}

int server_start(const struct server_config *config, struct server **ret, struct err *err)
{
    struct server *s = server_make(config);
    const char *const *protocols = conn_protocol_names + (config->disable_http2 ? 1 : 0);
    int r = tls_new(s->cert_file, s->key_file, protocols, &s->tls, err);
    if (r == 0)
        r = listen_on(s, err);
    if (r == 0)
        r = start_http(s, err);
    if (r == 0)
        r = start_pumps(s, err);
    if (r == 0)
        r = start_watcher(s, err);
    if (r < 0) {
        server_free(s);
        return r;
    }
    *ret = s;
    return 0;
}

int server_port(const struct server *s)
{
    return s->port;
}

static void stop_watcher(struct server *s)
{
    pthread_mutex_lock(&s->lock);
    s->is_stopping = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->lock);
    if (s->has_watcher)
        pthread_join(s->watcher, NULL);
    s->has_watcher = false;
}

static void wait_for_connections(struct server *s, int64_t grace_ms)
{
    int64_t until = pump_now_ms() + grace_ms;
    struct timespec pause = {.tv_nsec = STOP_POLL_MS * 1000000L};
    while (atomic_load(&s->shared.n_connections) > 0 && pump_now_ms() < until)
        nanosleep(&pause, NULL);
}

void server_send_away(struct server *s)
{
    mhd_drain(s->mhd);
    for (int i = 0; i < PUMPS; i++)
        pump_send_away(s->pumps[i]);
}

void server_stop(struct server *s, int64_t grace_ms)
{
    stop_watcher(s);
    if (s->mhd)
        mhd_drain(s->mhd);
    for (int i = 0; i < PUMPS; i++)
        if (s->pumps[i])
            pump_drain(s->pumps[i]);
    wait_for_connections(s, grace_ms);
    for (int i = 0; i < PUMPS; i++)
        if (s->pumps[i])
            pump_cut(s->pumps[i]);
    if (s->listen_fd >= 0)
        close(s->listen_fd);
    s->listen_fd = -1;
}

void server_free(struct server *s)
{
    if (!s)
        return;
    server_stop(s, 0);
    if (s->workers)
        workers_stop(s->workers);
    mhd_free(s->mhd);
    for (int i = 0; i < PUMPS; i++)
        pump_free(s->pumps[i]);
    workers_free(s->workers);
    tls_free(s->tls);
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    free(s->cert_file);
    free(s->key_file);
    free(s);
}
