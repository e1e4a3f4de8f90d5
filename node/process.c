#include "node/process.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/file.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"

#define STAT_MAX ((size_t)4096)
#define ROUNDS 3 /* while it is looked through, a process may start another */

/* The fourth word behind the name, which stands in brackets and may have any characters
 * (proc(5)). */
static pid_t session_of(const char *pid)
{
    SCOPED(buf_fini) struct buf text = {0};
    SCOPED_FREE char *path = xasprintf("/proc/%s/stat", pid);
    int session = 0;
    if (file_read(path, STAT_MAX, &text, NULL) < 0)
        return 0;
    const char *after = strrchr(buf_cstr(&text), ')');
    if (!after || sscanf(after + 1, " %*c %*d %*d %d", &session) != 1)
        return 0;
    return session;
}

/* How many there were. */
static int kill_once(pid_t leader)
{
    int n = 0;
    DIR *all = opendir("/proc");
    const struct dirent *entry;
    while (all && (entry = readdir(all)) != NULL) {
        int64_t pid = 0;
        if (str_to_i64(entry->d_name, &pid) == 0 && session_of(entry->d_name) == leader)
            n += kill((pid_t)pid, SIGKILL) == 0;
    }
    if (all)
        closedir(all);
    return n;
}

void process_kill_session(pid_t leader)
{
    for (int i = 0; leader > 1 && i < ROUNDS && kill_once(leader) > 0; i++)
        ;
}
