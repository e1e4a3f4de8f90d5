/* One thread forks it and waits for it: the kernel tells the child of the end of the very thread
 * that made it (PR_SET_PDEATHSIG), so that thread lives as long as the child may. */
#include "storage/etcd_child.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "apiserver/base/thread.h"

#define AGAIN_MS 1000 /* after it ended by itself */
#define PATIENCE_MS 10000

struct etcd_child {
    char *url, *log_file;
    char **argv;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the two below */
    pthread_cond_t changed;
    pid_t pid; /* 0 = none now */
    bool is_stopping;
};

/* ---- before it starts ---- */

static char *runnable(const char *dir, size_t n, const char *program)
{
    char *path = xasprintf("%.*s/%s", (int)n, dir, program);
    if (access(path, X_OK) == 0)
        return path;
    free(path);
    return NULL;
}

char *etcd_child_find(const char *program)
{
    const char *path = getenv("PATH");
    if (strchr(program, '/'))
        return access(program, X_OK) == 0 ? xstrdup(program) : NULL;
    for (const char *p = path ? path : ""; *p;) {
        size_t n = strcspn(p, ":");
        char *found = n > 0 ? runnable(p, n, program) : NULL;
        if (found)
            return found;
        p += n + (p[n] == ':');
    }
    return NULL;
}

/* A port that was free a moment ago; 0 = none. */
static int free_port(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof any;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port = 0;
    if (fd >= 0 && bind(fd, (struct sockaddr *)&any, sizeof any) == 0 &&
        getsockname(fd, (struct sockaddr *)&any, &len) == 0)
        port = ntohs(any.sin_port);
    if (fd >= 0)
        close(fd);
    return port;
}

static void add(char ***argv, const char *flag, const char *value)
{
    strv_add(argv, xasprintf("--%s=%s", flag, value));
}

static char **arguments(const struct etcd_child_config *c, const char *url, const char *peer_url)
{
    char **argv = NULL;
    SCOPED_FREE char *cluster = xasprintf("default=%s", peer_url);
    strv_add(&argv, xstrdup(c->program));
    add(&argv, "name", "default");
    add(&argv, "data-dir", c->data_dir);
    add(&argv, "listen-client-urls", url);
    add(&argv, "advertise-client-urls", url);
    add(&argv, "listen-peer-urls", peer_url);
    add(&argv, "initial-advertise-peer-urls", peer_url);
    add(&argv, "initial-cluster", cluster);
    add(&argv, "logger", "zap");
    add(&argv, "log-level", "error"); /* its gateway warns of our certificate at every request */
    add(&argv, "client-cert-auth", "true");
    add(&argv, "trusted-ca-file", c->ca_file);
    add(&argv, "cert-file", c->cert_file);
    add(&argv, "key-file", c->key_file);
    add(&argv, "peer-client-cert-auth", "true");
    add(&argv, "peer-trusted-ca-file", c->ca_file);
    add(&argv, "peer-cert-file", c->cert_file);
    add(&argv, "peer-key-file", c->key_file);
    return argv;
}

/* ---- the process ---- */

/* In the child, between fork and exec: nothing but system calls. A parent that ended meanwhile
 * would not be told of. It has a process group of its own, so that the terminal's Ctrl-C reaches
 * the server alone, which ends it in order. */
static void become(const struct etcd_child *c, pid_t parent, int log_fd)
{
    sigset_t none;
    sigemptyset(&none);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent)
        _exit(127);
    if (log_fd >= 0) {
        dup2(log_fd, STDOUT_FILENO);
        dup2(log_fd, STDERR_FILENO);
    }
    execv(c->argv[0], c->argv);
    _exit(127);
}

static pid_t launch(const struct etcd_child *c)
{
    int log_fd = open(c->log_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        become(c, parent, log_fd);
    if (log_fd >= 0)
        close(log_fd);
    return pid;
}

/* Sets what is known of it; false at the end. */
static bool note(struct etcd_child *c, pid_t pid)
{
    pthread_mutex_lock(&c->lock);
    c->pid = pid > 0 ? pid : 0;
    bool goes_on = !c->is_stopping;
    if (!goes_on && c->pid)
        kill(c->pid, SIGTERM);
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return goes_on;
}

static bool wait_again(struct etcd_child *c)
{
    int64_t until_ms = clock_monotonic_ms(&clock_system) + AGAIN_MS;
    pthread_mutex_lock(&c->lock);
    while (!c->is_stopping && clock_monotonic_ms(&clock_system) < until_ms)
        thread_cond_wait_until(&c->changed, &c->lock, until_ms);
    bool goes_on = !c->is_stopping;
    pthread_mutex_unlock(&c->lock);
    return goes_on;
}

static void *supervise(void *arg)
{
    struct etcd_child *c = arg;
    bool goes_on = true;
    while (goes_on) {
        int status = 0;
        pid_t pid = launch(c);
        goes_on = note(c, pid);
        while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        goes_on = note(c, 0) && goes_on;
        if (!goes_on)
            break;
        log_error("etcd ended by itself status=%d log=%s, it is started again", status,
                  c->log_file);
        goes_on = wait_again(c);
    }
    return NULL;
}

int etcd_child_start(const struct etcd_child_config *config, struct etcd_child **ret,
                     struct err *err)
{
    int port = free_port(), peer_port = free_port();
    if (port == 0 || peer_port == 0)
        return err_set(err, ERR_INTERNAL, "no free port for etcd: %m");
    struct etcd_child *c = xcalloc(1, sizeof *c);
    SCOPED_FREE char *peer_url = xasprintf("https://127.0.0.1:%d", peer_port);
    c->url = xasprintf("https://127.0.0.1:%d", port);
    c->log_file = xstrdup(config->log_file);
    c->argv = arguments(config, c->url, peer_url);
    pthread_mutex_init(&c->lock, NULL);
    thread_cond_init(&c->changed);
    (void)unlink(c->log_file); /* of the run before */
    thread_start(&c->thread, "etcd", supervise, c);
    log_info("etcd starting program=%s data=%s url=%s", config->program, config->data_dir, c->url);
    *ret = c;
    return 0;
}

const char *etcd_child_url(const struct etcd_child *c)
{
    return c->url;
}

/* Sends the signal and waits for the end; false when it does not come in time. */
static bool end_by(struct etcd_child *c, int signal_number)
{
    int64_t until_ms = clock_monotonic_ms(&clock_system) + PATIENCE_MS;
    pthread_mutex_lock(&c->lock);
    c->is_stopping = true;
    if (c->pid)
        kill(c->pid, signal_number);
    pthread_cond_broadcast(&c->changed);
    while (c->pid && clock_monotonic_ms(&clock_system) < until_ms)
        thread_cond_wait_until(&c->changed, &c->lock, until_ms);
    bool is_over = !c->pid;
    pthread_mutex_unlock(&c->lock);
    return is_over;
}

void etcd_child_stop(struct etcd_child *c)
{
    if (!c)
        return;
    if (!end_by(c, SIGTERM))
        (void)end_by(c, SIGKILL);
    pthread_join(c->thread, NULL);
    strv_free(c->argv);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c->url);
    free(c->log_file);
    free(c);
}
