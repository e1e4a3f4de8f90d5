/* Sessions of processes that are killed, and nothing but them. */
#include "node/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/suite.h"

static void sleep_for_ever(void)
{
    for (;;)
        pause();
}

/* The leader of a session with a child of it and, if so wished, one in a session of its own; the
 * pids come through the pipe. */
static void lead(int out, bool with_own_session)
{
    prctl(PR_SET_NAME, "a) R 1 1 1"); /* what stands in /proc/PID/stat is to be read with care */
    pid_t pids[2] = {0};
    setsid();
    if ((pids[0] = fork()) == 0)
        sleep_for_ever();
    if (with_own_session && (pids[1] = fork()) == 0) {
        setsid();
        (void)!write(out, "", 1);
        sleep_for_ever();
    }
    (void)!write(out, pids, sizeof pids);
    sleep_for_ever();
}

static void read_all(int fd, void *into, size_t n)
{
    ck_assert_int_eq(read(fd, into, n), (ssize_t)n);
}

/* Its parent is this process, since it takes in orphans. */
static void expect_killed(pid_t pid)
{
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

START_TEST(test_kill_session)
{
    bool with_own = _i == 1;
    int fds[2];
    pid_t pids[2];
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    ck_assert_int_eq(pipe2(fds, O_DIRECT), 0);
    pid_t leader = fork();
    if (leader == 0)
        lead(fds[1], with_own);
    if (with_own) { /* two packets, in any order */
        char packet[sizeof pids];
        for (int i = 0; i < 2; i++)
            if (read(fds[0], packet, sizeof packet) == sizeof pids)
                memcpy(pids, packet, sizeof pids);
    } else {
        read_all(fds[0], pids, sizeof pids);
    }
    process_kill_session(leader);
    expect_killed(leader);
    expect_killed(pids[0]);
    if (with_own) {
        ck_assert_int_eq(waitpid(pids[1], NULL, WNOHANG), 0); /* it began one of its own */
        process_kill_session(pids[1]);
        expect_killed(pids[1]);
    }
    close(fds[0]);
    close(fds[1]);
}
END_TEST

START_TEST(test_nobody_to_kill)
{
    pid_t gone = fork();
    if (gone == 0)
        _exit(0);
    ck_assert_int_eq(waitpid(gone, NULL, 0), gone);
    process_kill_session(gone); /* no such session */
    process_kill_session(0);    /* not ours, nor that of the kernel's threads */
    process_kill_session(1);
    process_kill_session(-1);
}
END_TEST

SUITE(process)
{
    LOOP("session", test_kill_session, 0, 2);
    TESTS("nobody", test_nobody_to_kill);
}
