#include "tests/lib/etcd_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"

#define PORT_MIN 20000
#define PORT_MAX 32000
#define HEALTHY_WITHIN_MS 20000

char *etcd_server_debian(void)
{
    if (access("/usr/bin/etcd", X_OK) == 0)
        return xstrdup("/usr/bin/etcd");
    printf("# skip: no /usr/bin/etcd (package etcd-server)\n");
    return NULL;
}

char *etcd_server_newest(void)
{
    const char *named = getenv("AGENT_SANDBOX_ETCD");
    if (named != NULL && access(named, X_OK) == 0)
        return xstrdup(named);
    glob_t found;
    char *program = NULL;
    if (glob("/var/cache/agent-sandbox/kube-v*/etcd", 0, NULL, &found) == 0) {
        program = xstrdup(found.gl_pathv[found.gl_pathc - 1]); /* sorted by name */
        globfree(&found);
    }
    if (program == NULL)
        printf("# skip: no etcd newer than Debian's (hack/cluster builds one, or set "
               "AGENT_SANDBOX_ETCD)\n");
    return program;
}

static struct sockaddr_in address(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static bool is_free(int port)
{
    struct sockaddr_in a = address(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is = bind(fd, (const struct sockaddr *)&a, sizeof a) == 0;
    close(fd);
    return is;
}

static int free_port(void)
{
    int port;
    do {
        unsigned r = 0;
        if (getrandom(&r, sizeof r, 0) != sizeof r)
            abort();
        port = PORT_MIN + (int)(r % (PORT_MAX - PORT_MIN));
    } while (!is_free(port));
    return port;
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int port_of(const char *url)
{
    int64_t port = 0;
    str_to_i64(strrchr(url, ':') + 1, &port);
    return (int)port;
}

static bool is_healthy(const struct etcd_server *s)
{
    static const char ask[] = "GET /health HTTP/1.0\r\n\r\n";
    char answer[1024];
    size_t len = 0;
    struct sockaddr_in a = address(port_of(s->health_url));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval limit = {.tv_sec = 2};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ssize_t n = -1;
    if (connect(fd, (const struct sockaddr *)&a, sizeof a) == 0)
        n = write(fd, ask, sizeof ask - 1);
    while (n > 0 && len < sizeof answer - 1) {
        n = read(fd, answer + len, sizeof answer - 1 - len);
        len += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    answer[len] = '\0';
    return strstr(answer, "\"health\":\"true\"") != NULL;
}

/* In the child, which may only exec: never returns. */
static void become_etcd(pid_t parent, const char *log, const char *const *args)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    execv(args[0], (char *const *)(uintptr_t)args);
    _exit(127);
}

static pid_t spawn(const struct etcd_server *s)
{
    SCOPED_FREE char *data = xasprintf("%s/data", s->dir);
    SCOPED_FREE char *log = xasprintf("%s/log", s->dir);
    SCOPED_FREE char *cluster = xasprintf("default=%s", s->peer_url);
    const char *args[40] = {
        s->program,     "--data-dir",
        data,           "--listen-client-urls",
        s->endpoint,    "--advertise-client-urls",
        s->endpoint,    "--listen-peer-urls",
        s->peer_url,    "--initial-advertise-peer-urls",
        s->peer_url,    "--initial-cluster",
        cluster,        "--listen-metrics-urls", /* has /health too, without TLS */
        s->health_url,  "--unsafe-no-fsync",
        "--logger=zap", "--log-level=error"};
    size_t n = 0;
    while (args[n] != NULL)
        n++;
    for (size_t i = 0; i < ARRAY_LEN(s->args) && s->args[i] != NULL; i++)
        args[n++] = s->args[i];
    pid_t parent = getpid();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        become_etcd(parent, log, args);
    return pid;
}

bool etcd_server_restart(struct etcd_server *s)
{
    s->pid = spawn(s);
    int64_t until_ms = now_ms() + HEALTHY_WITHIN_MS;
    struct timespec pause = {.tv_nsec = 20 * 1000000};
    while (!is_healthy(s)) {
        if (waitpid(s->pid, NULL, WNOHANG) != 0) {
            s->pid = 0;
            return false;
        }
        if (now_ms() > until_ms)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

/* What an attempt left: its address stands in there, and an etcd of another one would wait for
 * it. */
static void remove_data(const struct etcd_server *s)
{
    SCOPED_FREE char *data = xasprintf("%s/data", s->dir);
    nftw(data, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

bool etcd_server_start(struct etcd_server *s, const char *program)
{
    const char *tmp = getenv("TMPDIR");
    s->program = xstrdup(program);
    s->dir = xasprintf("%s/etcd-test-XXXXXX", tmp == NULL ? "/tmp" : tmp);
    if (mkdtemp(s->dir) == NULL)
        return false;
    /* Another process may take a port in between; then etcd ends and other ports are tried. */
    for (int i = 0; i < 5; i++) {
        free(s->endpoint);
        free(s->peer_url);
        free(s->health_url);
        s->endpoint =
            xasprintf("%s://127.0.0.1:%d", s->scheme == NULL ? "http" : s->scheme, free_port());
        s->health_url = xasprintf("http://127.0.0.1:%d", free_port());
        s->peer_url = xasprintf("http://127.0.0.1:%d", free_port());
        if (etcd_server_restart(s))
            return true;
        etcd_server_kill(s);
        remove_data(s);
    }
    return false;
}

void etcd_server_kill(struct etcd_server *s)
{
    if (s->pid == 0)
        return;
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
    s->pid = 0;
}

void etcd_server_pause(struct etcd_server *s, bool is_paused)
{
    kill(s->pid, is_paused ? SIGSTOP : SIGCONT);
    if (is_paused)
        waitpid(s->pid, NULL, WUNTRACED); /* a signal sent is not yet a process stopped */
}

void etcd_server_stop(struct etcd_server *s)
{
    etcd_server_kill(s);
    if (s->dir != NULL)
        nftw(s->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(s->program);
    free(s->dir);
    free(s->endpoint);
    free(s->peer_url);
    free(s->health_url);
    *s = (struct etcd_server){0};
}
