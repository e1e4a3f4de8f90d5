#include "node/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apiserver/base/mem.h"

#define CHUNK ((size_t)64 << 10)

char *program_find(const char *name)
{
    const char *folders = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
    while (*folders) {
        size_t n = strcspn(folders, ":");
        char *path = xasprintf("%.*s/%s", (int)n, folders, name);
        if (access(path, X_OK) == 0)
            return path;
        free(path);
        folders += n + (folders[n] == ':');
    }
    return NULL;
}

/* To its end, even when there is no room any more: who writes must not wait. */
static bool read_all(int fd, struct buf *out)
{
    SCOPED_FREE char *bytes = xmalloc(CHUNK);
    ssize_t n;
    while ((n = read(fd, bytes, CHUNK)) > 0)
        buf_append(out, bytes, (size_t)n);
    return n == 0 && !buf_failed(out);
}

int program_output(const char *path, char *const *argv, char *const *env, struct buf *ret,
                   struct err *err)
{
    int pipes[2], status = 0;
    pid_t pid = 0;
    bool is_good = pipe2(pipes, O_CLOEXEC) == 0;
    if (is_good) {
        posix_spawn_file_actions_t actions;
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
        posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
        is_good = posix_spawn(&pid, path, &actions, NULL, argv, env) == 0;
        posix_spawn_file_actions_destroy(&actions);
        close(pipes[1]);
        is_good = read_all(pipes[0], ret) && is_good;
        close(pipes[0]);
    }
    if (pid > 0)
        is_good = waitpid(pid, &status, 0) == pid && status == 0 && is_good;
    return is_good ? 0 : err_set(err, ERR_INVALID, "%s failed", path);
}
