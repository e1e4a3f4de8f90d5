/* Sockets made in another network namespace. */
#include "node/netns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/suite.h"

START_TEST(test_no_namespace)
{
    SCOPED(err_fini) struct err absent = {0}, other = {0};
    int fd = -1;
    ck_assert_int_eq(netns_socket("/absent/net", AF_INET, &fd, &absent), -ERR_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(err_text(&absent), "/absent/net: No such file"));
    ck_assert_int_eq(netns_socket("/dev/null", AF_INET, &fd, &other), -ERR_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(err_text(&other), "a socket in network namespace /dev/null: "));
    ck_assert_int_eq(fd, -1);
}
END_TEST

static int connect_to_loopback(int fd)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(9), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    return connect(fd, (const struct sockaddr *)&to, sizeof to) == 0 ? 0 : errno;
}

/* A new namespace has a loopback that is down, so its sockets are told from ours. */
START_TEST(test_another_namespace)
{
    int fds[2], there = -1;
    char is_there = 0;
    ck_assert_int_eq(pipe(fds), 0);
    pid_t child = fork();
    if (child == 0) {
        is_there = unshare(CLONE_NEWNET) == 0;
        (void)!write(fds[1], &is_there, 1);
        pause();
        _exit(0);
    }
    ck_assert_int_eq(read(fds[0], &is_there, 1), 1);
    if (is_there) { /* else this user may not */
        SCOPED(err_fini) struct err err = {0};
        SCOPED_FREE char *path = xasprintf("/proc/%d/ns/net", (int)child);
        ck_assert_msg(netns_socket(path, AF_INET, &there, &err) == 0, "%s", err_text(&err));
        ck_assert_int_ne(fcntl(there, F_GETFL) & O_NONBLOCK, 0);
        ck_assert_int_eq(connect_to_loopback(there), ENETUNREACH);
        int here = socket(AF_INET, SOCK_STREAM, 0);
        ck_assert_int_ne(connect_to_loopback(here), ENETUNREACH); /* we are where we were */
        close(here);
        close(there);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(fds[0]);
    close(fds[1]);
}
END_TEST

SUITE(netns)
{
    TESTS("sockets", test_no_namespace, test_another_namespace);
}
