/* Unit tests of base/daemon: a program runs, is started again, hears signals, and ends with us. */
#include "apiserver/base/daemon.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "apiserver/base/file.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "tests/lib/suite.h"

#define PATIENCE_MS 20000

static char folder[] = "/tmp/daemon-test-XXXXXX"; /* of the test that runs */

static char *path_of(const char *name)
{
    return xasprintf("%s/%s", folder, name);
}

static void set_up(void)
{
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void tear_down(void)
{
    static const char *const names[] = {"log", "heard", "over", "starts"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        SCOPED_FREE char *path = path_of(names[i]);
        unlink(path);
    }
    rmdir(folder);
}

/* Waits until the file holds just that. */
static void await(const char *name, const char *want)
{
    SCOPED_FREE char *path = path_of(name);
    SCOPED(buf_fini) struct buf got = {0};
    for (int ms = 0; ms < PATIENCE_MS; ms += 10) {
        buf_clear(&got);
        file_read(path, 1000, &got, NULL);
        if (strcmp(buf_cstr(&got), want) == 0)
            return;
        usleep(10000);
    }
    ck_assert_str_eq(buf_cstr(&got), want);
}

/* n strings in argv. */
static struct daemon *start_program(const char *const *argv, size_t n, bool (*may_start)(void *),
                                    void *ctx)
{
    char **copy = NULL;
    SCOPED_FREE char *log_file = path_of("log");
    for (size_t i = 0; i < n; i++)
        strv_add(&copy, xstrdup(argv[i]));
    struct daemon *d = daemon_start(&(struct daemon_config){
        .name = "test", .argv = copy, .log_file = log_file, .may_start = may_start, .ctx = ctx});
    strv_free(copy);
    return d;
}

/* $1 is the folder. */
static struct daemon *start(const char *script, bool (*may_start)(void *), void *ctx)
{
    const char *const argv[] = {"sh", "-c", script, "sh", folder};
    return start_program(argv, ARRAY_LEN(argv), may_start, ctx);
}

START_TEST(prints_hears_and_ends)
{
    set_up();
    struct daemon *c =
        start("trap 'echo heard > $1/heard' HUP; trap 'echo over > $1/over; exit 0' TERM;"
              "echo ready; while :; do sleep 0.01; done",
              NULL, NULL);
    await("log", "ready\n");
    daemon_signal(c, SIGHUP);
    await("heard", "heard\n");
    daemon_stop(c);
    await("over", "over\n");
    tear_down();
}
END_TEST

START_TEST(is_started_again)
{
    set_up();
    struct daemon *c =
        start("echo x >> $1/starts; [ $(wc -l < $1/starts) = 2 ] && exec sleep 100", NULL, NULL);
    await("starts", "x\nx\n");
    daemon_stop(c);
    tear_down();
}
END_TEST

static bool count_and_refuse_once(void *ctx)
{
    return atomic_fetch_add((atomic_int *)ctx, 1) > 0;
}

START_TEST(starts_when_it_may)
{
    set_up();
    atomic_int asked = 0;
    struct daemon *c = start("echo ready; exec sleep 100", count_and_refuse_once, &asked);
    await("log", "ready\n");
    ck_assert_int_eq(atomic_load(&asked), 2);
    daemon_stop(c);
    tear_down();
}
END_TEST

static bool refuse(void *ctx)
{
    (void)ctx;
    return false;
}

START_TEST(stops_before_it_started)
{
    set_up();
    struct daemon *c = start("echo never > $1/never", refuse, NULL);
    SCOPED_FREE char *never = path_of("never");
    daemon_signal(c, SIGHUP);
    daemon_stop(c);
    ck_assert_int_ne(access(never, F_OK), 0);
    daemon_stop(NULL);
    tear_down();
}
END_TEST

START_TEST(a_program_that_is_not_there)
{
    set_up();
    const char *const argv[] = {"/nowhere/program"};
    struct daemon *c = start_program(argv, 1, NULL, NULL);
    usleep(10000);
    daemon_stop(c);
    tear_down();
}
END_TEST

START_TEST(finds_programs)
{
    SCOPED_FREE char *sh = daemon_find("sh"), *path = daemon_find("/bin/sh");
    ck_assert_ptr_nonnull(sh);
    ck_assert_int_eq(sh[0], '/');
    ck_assert_str_eq(path, "/bin/sh");
    ck_assert_ptr_null(daemon_find("no-such-program"));
    ck_assert_ptr_null(daemon_find("/nowhere/program"));
}
END_TEST

SUITE(daemon)
{
    TESTS("daemon", prints_hears_and_ends, is_started_again, starts_when_it_may,
          stops_before_it_started, a_program_that_is_not_there, finds_programs);
}
