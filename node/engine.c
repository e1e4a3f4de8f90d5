#include "node/engine.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/daemon.h"
#include "apiserver/base/file.h"
#include "apiserver/base/mem.h"
#include "node/disk.h"

#define START_MS 60000 /* until it must answer */
#define PING_MS 50
#define BOOT_ID_MAX ((size_t)100)
/* How long the engine keeps what is known of a command that ended, s, and two processes for it. */
#define KEEP_COMMAND "10"

struct engine {
    struct engine_config config; /* strings are borrowed until engine_start returns */
    char *socket, *log_path;
    struct podman *podman; /* to ask whether one answers */
    struct daemon *daemon;
};

/* ---- its settings ---- */

/* Where a script is that becomes the monitor; NULL when there can be none, and the engine finds its
 * own. Commands in a container carry its name, too, but their input ends with their client. */
static char *write_monitor(const struct engine *e)
{
    SCOPED_FREE char *monitor = daemon_find("conmon");
    SCOPED_FREE char *path = xasprintf("%s/monitor", e->config.folder);
    SCOPED(buf_fini) struct buf text = {0};
    if (!monitor)
        return NULL;
    buf_puts(&text, "#!/bin/sh\ncase \" $* \" in\n*\" --exec-process-spec \"*) ;;\n"
                    "*\" -n \"*\"" ENGINE_KEEPS_STDIN " \"*) set -- \"$@\" --leave-stdin-open ;;\n"
                    "esac\n");
    buf_printf(&text, "exec '%s' \"$@\"\n", monitor);
    if (disk_write(AT_FDCWD, path, text.data, text.len, 0755, NULL) < 0 || access(path, X_OK) < 0)
        return NULL;
    return steal(&path);
}

static int write_settings(const struct engine *e, struct err *err)
{
    const char *folder = e->config.folder;
    SCOPED_FREE char *containers = xasprintf("%s/containers.conf", folder);
    SCOPED_FREE char *storage = xasprintf("%s/storage.conf", folder);
    SCOPED_FREE char *monitor = write_monitor(e);
    SCOPED(buf_fini) struct buf text = {0};
    /* cgroupfs: there may be no systemd. Events in a file: there may be no journal. */
    buf_puts(&text, "[containers]\nbase_hosts_file = \"none\"\n"
                    "[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n"
                    "exit_command_delay = " KEEP_COMMAND "\n");
    if (monitor)
        buf_printf(&text, "conmon_path = [\"%s\"]\n", monitor);
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

/* One from before may be on its way out, or another node's command uses the same folder. */
static bool may_start(void *ctx)
{
    struct engine *e = ctx;
    if (podman_ping(e->podman, NULL) == 0)
        return false;
    unlink(e->socket); /* nobody listens there */
    return true;
}

static void start_process(struct engine *e)
{
    char **argv = arguments(e), **env = environment(e);
    e->daemon = daemon_start(&(struct daemon_config){.name = "engine",
                                                     .argv = argv,
                                                     .env = env,
                                                     .log_file = e->log_path,
                                                     .may_start = may_start,
                                                     .ctx = e});
    strv_free(argv);
    strv_free(env);
}

/* ---- life ---- */

static int wait_until_it_answers(struct engine *e, struct err *err)
{
    int64_t until_ms = clock_monotonic_ms(&clock_system) + START_MS;
    while (podman_ping(e->podman, err) < 0) {
        if (clock_monotonic_ms(&clock_system) > until_ms)
            return err_set(err, ERR_UNAVAILABLE, "%s does not answer; its log is %s",
                           e->config.program, e->log_path);
        usleep(PING_MS * 1000);
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
    int rc = disk_make_folder(config->folder, 0700, err);
    if (rc == 0)
        rc = write_settings(e, err);
    if (rc == 0)
        rc = forget_last_boot(e, err);
    e->podman = podman_new(fetch, e->socket);
    if (rc == 0) {
        start_process(e);
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
    daemon_stop(e->daemon);
    podman_free(e->podman);
    free(e->socket);
    free(e->log_path);
    free(e);
}

const char *engine_socket(const struct engine *e)
{
    return e->socket;
}
