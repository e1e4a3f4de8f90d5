#include "node/program.h"

#include <fcntl.h>
#include <unistd.h>

#include "apiserver/base/mem.h"
#include "tests/lib/suite.h"

static int run(const char *script, size_t max, struct buf *out)
{
    SCOPED_FREE char *text = xstrdup(script);
    char name[] = "sh", option[] = "-c", setting[] = "GREETING=hello";
    char *argv[] = {name, option, text, NULL}, *env[] = {setting, NULL};
    out->max = max;
    return program_output("/bin/sh", argv, env, out, NULL);
}

START_TEST(test_output)
{
    SCOPED(buf_fini) struct buf out = {0};
    ck_assert_int_eq(run("echo $GREETING; exit 0", 100, &out), 0);
    ck_assert_str_eq(buf_cstr(&out), "hello\n");
}
END_TEST

START_TEST(test_failures)
{
    SCOPED(buf_fini) struct buf out = {0};
    SCOPED(buf_fini) struct buf small = {0};
    char name[] = "none", *argv[] = {name, NULL}, *env[] = {NULL};
    ck_assert_int_eq(run("echo x; exit 3", 100, &out), -ERR_INVALID);
    ck_assert_int_eq(run("echo 0123456789", 5, &small), -ERR_INVALID);
    ck_assert_int_eq(program_output("/no/such/program", argv, env, &out, NULL), -ERR_INVALID);
}
END_TEST

/* Scripts of others count on low numbers, and what is open here is ours. */
START_TEST(test_nothing_of_ours_is_open)
{
    SCOPED(buf_fini) struct buf out = {0};
    int fd = open("/dev/null", O_RDONLY); /* without O_CLOEXEC, as libraries may have it */
    ck_assert_int_ge(fd, 3);
    ck_assert_int_eq(run("cd /proc/self/fd && echo *", 100, &out), 0);
    close(fd);
    ck_assert_str_eq(buf_cstr(&out), "0 1 2 3\n"); /* 3 is the folder that is read */
}
END_TEST

START_TEST(test_find)
{
    SCOPED_FREE char *sh = program_find("sh");
    ck_assert_ptr_nonnull(sh);
    ck_assert_int_eq(access(sh, X_OK), 0);
    ck_assert_ptr_null(program_find("no-such-program"));
}
END_TEST

SUITE(program)
{
    TESTS("program", test_output, test_failures, test_nothing_of_ours_is_open, test_find);
}
