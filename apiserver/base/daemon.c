/* One thread forks it and waits for it: the kernel tells the child of the end of the very thread
 * that made it (PR_SET_PDEATHSIG), so that thread lives as long as the child may. */
#include "apiserver/base/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "apiserver/base/thread.h"

#define AGAIN_MS 1000 /* after it ended by itself, or may not start */
#define PATIENCE_MS 10000

struct daemon {
    struct daemon_config config; /* strings are the child's own */
    char *name, *log_file;
    char **argv, **env;
    pthread_t thread;

    pthread_mutex_t lock; /* guards the two below */
    pthread_cond_t changed;
    pid_t pid; /* 0 = none runs */
    bool is_stopping;
};

/* ---- the process ---- */

/* In the child, between fork and exec: nothing but system calls. A parent that ended meanwhile
 * would not be told of. It is in a session of its own, so that the terminal's Ctrl-C reaches us
 * alone, who end it in order. */
static void become(const struct daemon *c, pid_t parent, int log_fd)
{
    sigset_t none;
    sigemptyset(&none);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setsid();
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent)
        _exit(127);
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null_fd, STDIN_FILENO);
    dup2(log_fd < 0 ? null_fd : log_fd, STDOUT_FILENO);
    dup2(log_fd < 0 ? null_fd : log_fd, STDERR_FILENO);
    execvpe(c->argv[0], c->argv, c->env ? c->env : environ);
    _exit(127);
}

/* The pid, less than 0 when there is none; 0 = it is to stop. */
static pid_t launch(struct daemon *c)
{
    int log_fd = open(c->log_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    pthread_mutex_lock(&c->lock);
    pid_t parent = getpid(), pid = c->is_stopping ? 0 : fork();
    if (pid == 0 && !c->is_stopping)
        become(c, parent, log_fd);
    c->pid = pid > 0 ? pid : 0;
    pthread_mutex_unlock(&c->lock);
    if (log_fd >= 0)
        close(log_fd);
    return pid;
}

/* Seen dead first and taken away later, so that nobody signals a pid that is another's by then. */
static int wait_for_end(struct daemon *c, pid_t pid)
{
    siginfo_t info;
    int status = 0;
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
        ;
    pthread_mutex_lock(&c->lock);
    c->pid = 0;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* False when it is to stop. */
static bool pause_before(struct daemon *c)
{
    int64_t until_ms = clock_monotonic_ms(&clock_system) + AGAIN_MS;
    pthread_mutex_lock(&c->lock);
    while (!c->is_stopping && clock_monotonic_ms(&clock_system) < until_ms)
        thread_cond_wait_until(&c->changed, &c->lock, until_ms);
    bool goes_on = !c->is_stopping;
    pthread_mutex_unlock(&c->lock);
    return goes_on;
}

static bool wait_until_it_may(struct daemon *c)
{
    bool goes_on = true;
    while (goes_on && c->config.may_start && !c->config.may_start(c->config.ctx))
        goes_on = pause_before(c);
    return goes_on;
}

static void *supervise(void *arg)
{
    struct daemon *c = arg;
    pid_t pid;
    while (wait_until_it_may(c) && (pid = launch(c)) != 0) {
        int status = pid > 0 ? wait_for_end(c, pid) : 0;
        pthread_mutex_lock(&c->lock);
        bool is_stopping = c->is_stopping;
        pthread_mutex_unlock(&c->lock);
        if (is_stopping)
            break;
        log_warn("%s ended by itself status=%d log=%s, it is started again", c->name, status,
                 c->log_file);
        if (!pause_before(c))
            break;
    }
    return NULL;
}

/* ---- life ---- */

static char **copy(char *const *v)
{
    char **ret = NULL;
    for (; v && *v; v++)
        strv_add(&ret, xstrdup(*v));
    return ret;
}

struct daemon *daemon_start(const struct daemon_config *config)
{
    struct daemon *c = xcalloc(1, sizeof *c);
    c->config = *config;
    c->name = xstrdup(config->name);
    c->log_file = xstrdup(config->log_file);
    c->argv = copy(config->argv);
    c->env = copy(config->env);
    pthread_mutex_init(&c->lock, NULL);
    thread_cond_init(&c->changed);
    thread_start(&c->thread, c->name, supervise, c);
    return c;
}

void daemon_signal(struct daemon *c, int signal_number)
{
    pthread_mutex_lock(&c->lock);
    if (c->pid)
        kill(c->pid, signal_number);
    pthread_mutex_unlock(&c->lock);
}

/* Sends the signal and waits for the end; false when it does not come in time. */
static bool end_by(struct daemon *c, int signal_number)
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

void daemon_stop(struct daemon *c)
{
    if (!c)
        return;
    if (!end_by(c, SIGTERM))
        (void)end_by(c, SIGKILL);
    pthread_join(c->thread, NULL);
    strv_free(c->argv);
    strv_free(c->env);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c->name);
    free(c->log_file);
    free(c);
}

/* ---- PATH ---- */

static char *runnable(const char *dir, size_t n, const char *program)
{
    char *path = xasprintf("%.*s/%s", (int)n, dir, program);
    if (access(path, X_OK) == 0)
        return path;
    free(path);
    return NULL;
}

char *daemon_find(const char *program)
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
