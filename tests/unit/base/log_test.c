#include "apiserver/base/log.h"

#include <pthread.h>
#include <regex.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/lib/suite.h"

struct lines {
    int n;
    char last[10000];
};

static void keep(void *ctx, const char *line)
{
    struct lines *l = ctx;
    l->n++;
    snprintf(l->last, sizeof l->last, "%s", line);
}

static void check_matches(const char *text, const char *pattern)
{
    regex_t re;
    ck_assert_int_eq(regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB), 0);
    ck_assert_msg(regexec(&re, text, 0, NULL, 0) == 0, "%s", text);
    regfree(&re);
}

START_TEST(test_format)
{
    struct lines l = {0};
    log_set_sink(keep, &l);
    log_warn("watch lost prefix=%s rev=%d", "/a", 7);
    check_matches(
        l.last, "^ts=[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z level=warn "
                "src=tests/unit/base/log_test\\.c:[0-9]+ watch lost prefix=/a rev=7$");
    log_set_id("abc\n");
    log_error("x");
    check_matches(l.last, "level=error src=[^ ]+ id=abc\\\\x0a x$");
    log_set_id(NULL);
    log_info("x");
    check_matches(l.last, "level=info src=[^ ]+ x$");
    log_set_sink(NULL, NULL);
}
END_TEST

START_TEST(test_level)
{
    struct lines l = {0};
    enum log_level level = LOG_ERROR;
    log_set_sink(keep, &l);
    log_debug("no");
    ck_assert_int_eq(l.n, 0);
    ck_assert_int_eq(log_parse_level("debug", &level), 0);
    log_set_level(level);
    log_debug("yes");
    ck_assert_int_eq(l.n, 1);
    ck_assert_int_eq(log_parse_level("warn", &level), 0);
    log_set_level(level);
    log_info("no");
    ck_assert_int_eq(l.n, 1);
    ck_assert_int_eq(log_parse_level("Warn", &level), -1);
    ck_assert_int_eq(level, LOG_WARN);
    log_set_sink(NULL, NULL);
}
END_TEST

START_TEST(test_escapes)
{
    struct lines l = {0};
    log_set_sink(keep, &l);
    log_info("a\nts=forged \x1b[31m \x7f \xc3\xa4");
    ck_assert_ptr_nonnull(strstr(l.last, "a\\x0ats=forged \\x1b[31m \\x7f \xc3\xa4"));
    log_set_sink(NULL, NULL);
}
END_TEST

START_TEST(test_long_line_is_cut)
{
    struct lines l = {0};
    static char text[20000];
    log_set_sink(keep, &l);
    memset(text, 'x', sizeof text - 1);
    log_info("%s", text);
    ck_assert_uint_le(strlen(l.last), 8191);
    ck_assert_uint_ge(strlen(l.last), 8180);
    ck_assert_str_eq(l.last + strlen(l.last) - 4, "x...");
    memset(text, '\x01', sizeof text - 1);
    log_info("%s", text);
    ck_assert_uint_le(strlen(l.last), 8191);
    log_set_sink(NULL, NULL);
}
END_TEST

START_TEST(test_long_id_is_cut)
{
    struct lines l = {0};
    char id[100], expect[80];
    memset(id, 'i', sizeof id - 1);
    id[sizeof id - 1] = '\0';
    log_set_sink(keep, &l);
    log_set_id(id);
    log_info("x");
    snprintf(expect, sizeof expect, " id=%.63s x", id);
    ck_assert_ptr_nonnull(strstr(l.last, expect));
    log_set_sink(NULL, NULL);
}
END_TEST

static void *log_some(void *ctx)
{
    log_set_id(ctx);
    for (int i = 0; i < 50; i++)
        log_info("n=%d", i);
    return NULL;
}

/* What reaches file descriptor 2: whole lines, each with the id of its own thread. */
START_TEST(test_stderr)
{
    int fds[2], saved = dup(STDERR_FILENO);
    ck_assert_int_eq(pipe(fds), 0);
    dup2(fds[1], STDERR_FILENO);
    pthread_t a, b;
    char id_a[] = "aa", id_b[] = "bb";
    pthread_create(&a, NULL, log_some, id_a);
    pthread_create(&b, NULL, log_some, id_b);
    pthread_join(a, NULL);
    pthread_join(b, NULL);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(fds[1]);
    FILE *in = fdopen(fds[0], "r");
    char line[200];
    int n = 0;
    for (; fgets(line, sizeof line, in) != NULL; n++)
        check_matches(line, "^ts=[^ ]+ level=info src=[^ ]+ id=(aa|bb) n=[0-9]+\n$");
    fclose(in);
    ck_assert_int_eq(n, 100);
}
END_TEST

SUITE(log)
{
    TESTS("log", test_format, test_level, test_escapes, test_long_line_is_cut, test_long_id_is_cut,
          test_stderr);
}
