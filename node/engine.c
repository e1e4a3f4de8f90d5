/* A thread starts the service and waits for its end, again and again. The kernel ends the service
 * when that thread ends, so that it does not outlive a node that was killed. */
#include "node/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/file.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/thread.h"
#include "node/disk.h"

#define START_MS 60000 /* until it must answer */
#define PING_MS 50
#define AGAIN_MS 1000
#define BOOT_ID_MAX ((size_t)100)
/* How long the engine keeps what is known of a command that ended, s, and two processes for it. */
#define KEEP_COMMAND "10"

struct engine {
    struct engine_config config; /* strings are borrowed until engine_start returns */
    char *socket, *log_path;
    char **argv, **env;
    struct podman *podman; /* to ask whether one answers */
    pthread_t thread;
    bool has_thread;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    pid_t pid; /* 0 = none runs */
    bool is_stopping;
};

/* ---- its settings ---- */

static int write_settings(const struct engine *e, struct err *err)
{
    const char *folder = e->config.folder;
    SCOPED_FREE char *containers = xasprintf("%s/containers.conf", folder);
    SCOPED_FREE char *storage = xasprintf("%s/storage.conf", folder);
    SCOPED(buf_fini) struct buf text = {0};
    /* cgroupfs: there may be no systemd. Events in a file: there may be no journal. */
    buf_puts(&text, "[containers]\nbase_hosts_file = \"none\"\n"
                    "[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n"
                    "exit_command_delay = " KEEP_COMMAND "\n");
    int rc = disk_write(AT_FDCWD, containers, text.data, text.len, 0644, err);
    buf_clear(&text);
    buf_printf(&text, "[storage]\ndriver = \"%s\"\ngraphroot = \"%s/storage\"\n", e->config.storage,
               folder);
    buf_printf(&text, "runroot = \"%s/run\"\n", folder);
    return rc < 0 ? rc : disk_write(AT_FDCWD, storage, text.data, text.len, 0644, err);
}

/* What the engine keeps of processes and mounts is of no use after a restart of the machine, but it
 * takes it for true unless its folders are gone. */
static int forget_last_boot(const struct engine *e, struct err *err)
{
    static const char *const folders[] = {"run", "tmp"};
    SCOPED(buf_fini) struct buf now = {0};
    SCOPED(buf_fini) struct buf before = {0};
    SCOPED_FREE char *path = xasprintf("%s/boot-id", e->config.folder);
    int rc = file_read("/proc/sys/kernel/random/boot_id", BOOT_ID_MAX, &now, err);
    if (rc < 0)
        return rc;
    file_read(path, BOOT_ID_MAX, &before, NULL);
    if (strcmp(buf_cstr(&now), buf_cstr(&before)) == 0)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(folders) && rc == 0; i++) {
        SCOPED_FREE char *folder = xasprintf("%s/%s", e->config.folder, folders[i]);
        rc = disk_remove_tree(folder, err);
    }
    return rc < 0 ? rc : disk_write(AT_FDCWD, path, now.data, now.len, 0644, err);
}

static char **arguments(const struct engine *e)
{
    const char *folder = e->config.folder;
    char **argv = NULL;
    strv_add(&argv, xstrdup(e->config.program));
    strv_add(&argv, xasprintf("--root=%s/storage", folder));
    strv_add(&argv, xasprintf("--runroot=%s/run", folder));
    strv_add(&argv, xasprintf("--tmpdir=%s/tmp", folder));
    strv_add(&argv, xasprintf("--network-config-dir=%s/networks", folder));
    strv_add(&argv, xstrdup("--cgroup-manager=cgroupfs"));
    strv_add(&argv, xasprintf("--storage-driver=%s", e->config.storage));
    strv_add(&argv, xasprintf("--runtime=%s", e->config.runtime));
    strv_add(&argv, xstrdup("system"));
    strv_add(&argv, xstrdup("service"));
    strv_add(&argv, xstrdup("--time=0"));
    strv_add(&argv, xasprintf("unix://%s", e->socket));
    return argv;
}

/* Nothing of the user's: neither settings nor places nor credentials. */
static char **environment(const struct engine *e)
{
    const char *path = getenv("PATH");
    char **env = NULL;
    strv_add(&env, xasprintf("PATH=%s", path ? path : "/usr/sbin:/usr/bin:/sbin:/bin"));
    strv_add(&env, xasprintf("HOME=%s", e->config.folder));
    strv_add(&env, xasprintf("CONTAINERS_CONF=%s/containers.conf", e->config.folder));
    strv_add(&env, xasprintf("CONTAINERS_STORAGE_CONF=%s/storage.conf", e->config.folder));
    return env;
}

/* ---- its process ---- */

/* In the child: calls that are safe after fork in a program with threads. */
static void become(const struct engine *e, int log_fd, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null_fd, STDIN_FILENO);
    dup2(log_fd, STDOUT_FILENO);
    dup2(log_fd, STDERR_FILENO);
    setsid();
    execvpe(e->argv[0], e->argv, e->env);
    _exit(127);
}

static void wait_ms(struct engine *e, int64_t ms)
{
    int64_t until_ms = clock_monotonic_ms(&clock_system) + ms;
    pthread_mutex_lock(&e->lock);
    while (!e->is_stopping && clock_monotonic_ms(&clock_system) < until_ms)
        thread_cond_wait_until(&e->wake, &e->lock, until_ms);
    pthread_mutex_unlock(&e->lock);
}

/* The pid, or 0 when it is to stop. */
static pid_t start_process(struct engine *e)
{
    int log_fd = open(e->log_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    unlink(e->socket); /* nobody listens there */
    pthread_mutex_lock(&e->lock);
    pid_t parent = getpid(), pid = e->is_stopping ? 0 : fork();
    if (pid == 0 && !e->is_stopping)
        become(e, log_fd, parent);
    e->pid = pid > 0 ? pid : 0;
    pthread_mutex_unlock(&e->lock);
    if (log_fd >= 0)
        close(log_fd);
    return pid;
}

static bool is_stopping(struct engine *e)
{
    pthread_mutex_lock(&e->lock);
    bool is = e->is_stopping;
    pthread_mutex_unlock(&e->lock);
    return is;
}

/* One from before may be on its way out, or another node's command uses the same folder. */
static void wait_while_another_answers(struct engine *e)
{
    while (!is_stopping(e) && podman_ping(e->podman, NULL) == 0)
        wait_ms(e, AGAIN_MS);
}

static void *run(void *ctx)
{
    struct engine *e = ctx;
    pid_t pid;
    wait_while_another_answers(e);
    while ((pid = start_process(e)) != 0) {
        int status = 0;
        siginfo_t info;
        /* Seen dead first and taken away later, so that its pid is not given to another before. */
        while (pid > 0 && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
            ;
        pthread_mutex_lock(&e->lock);
        e->pid = 0;
        pthread_mutex_unlock(&e->lock);
        if (pid > 0)
            waitpid(pid, &status, 0);
        if (is_stopping(e))
            break;
        log_warn("the engine ended status=%d, starting it again; its log is %s", status,
                 e->log_path);
        wait_ms(e, AGAIN_MS);
        wait_while_another_answers(e);
    }
    return NULL;
}

/* ---- life ---- */

static int wait_until_it_answers(struct engine *e, struct err *err)
{
    int64_t until_ms = clock_monotonic_ms(&clock_system) + START_MS;
    while (podman_ping(e->podman, err) < 0) {
        if (clock_monotonic_ms(&clock_system) > until_ms)
            return err_set(err, ERR_UNAVAILABLE, "%s does not answer; its log is %s",
                           e->config.program, e->log_path);
        wait_ms(e, PING_MS);
    }
    return 0;
}

int engine_start(const struct engine_config *config, struct fetch *fetch, struct engine **ret,
                 struct err *err)
{
    struct engine *e = xcalloc(1, sizeof *e);
    e->config = *config;
    e->socket = xasprintf("%s/podman.sock", config->folder);
    e->log_path = xasprintf("%s/podman.log", config->folder);
    pthread_mutex_init(&e->lock, NULL);
    thread_cond_init(&e->wake);
    int rc = disk_make_folder(config->folder, 0700, err);
    if (rc == 0)
        rc = write_settings(e, err);
    if (rc == 0)
        rc = forget_last_boot(e, err);
    e->podman = podman_new(fetch, e->socket);
    e->argv = arguments(e);
    e->env = environment(e);
    if (rc == 0) {
        e->has_thread = true;
        thread_start(&e->thread, "engine", run, e);
        rc = wait_until_it_answers(e, err);
    }
    if (rc < 0)
        engine_stop(steal(&e));
    else
        *ret = e;
    return rc;
}

void engine_stop(struct engine *e)
{
    if (!e)
        return;
    pthread_mutex_lock(&e->lock);
    e->is_stopping = true;
    if (e->pid > 0)
        kill(e->pid, SIGTERM);
    pthread_cond_signal(&e->wake);
    pthread_mutex_unlock(&e->lock);
    if (e->has_thread)
        pthread_join(e->thread, NULL);
    podman_free(e->podman);
    strv_free(e->argv);
    strv_free(e->env);
    pthread_cond_destroy(&e->wake);
    pthread_mutex_destroy(&e->lock);
    free(e->socket);
    free(e->log_path);
    free(e);
}

const char *engine_socket(const struct engine *e)
{
    return e->socket;
}
