/* A socket stays in the namespace it was made in, so a thread goes there, makes one, and ends. */
#include "node/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apiserver/base/thread.h"

#define STACK_BYTES ((size_t)64 << 10)

struct errand {
    int namespace_fd, family;
    int fd, error; /* the socket, or -1 and why not */
};

static void *run(void *arg)
{
    struct errand *e = arg;
    e->fd = -1;
    if (setns(e->namespace_fd, CLONE_NEWNET) == 0)
        e->fd = socket(e->family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    e->error = errno;
    return NULL;
}

int netns_socket(const char *path, int family, int *ret_fd, struct err *err)
{
    pthread_t thread;
    struct errand e = {
        .namespace_fd = open(path, O_RDONLY | O_CLOEXEC), .family = family, .fd = -1};
    if (e.namespace_fd < 0)
        return err_set(err, ERR_UNAVAILABLE, "network namespace %s: %m", path);
    if (thread_try_start(&thread, "netns", STACK_BYTES, run, &e))
        pthread_join(thread, NULL);
    else
        e.error = EAGAIN;
    close(e.namespace_fd);
    errno = e.error;
    if (e.fd < 0)
        return err_set(err, ERR_UNAVAILABLE, "a socket in network namespace %s: %m", path);
    *ret_fd = e.fd;
    return 0;
}
