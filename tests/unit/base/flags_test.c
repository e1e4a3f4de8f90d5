#include "apiserver/base/flags.h"

#include <stdio.h>

#include "apiserver/base/str.h"
#include "tests/lib/suite.h"

struct options {
    const char *name;
    char **list;
    int64_t count, wait_ms;
    bool is_on, is_usual;
    int64_t spare;
    double rate, pace;
};
#define AT(member) offsetof(struct options, member)
static const struct flag rows[] = {
    {"name", FLAG_STRING, AT(name), "somebody", 0, 0, "a name"},
    {"list", FLAG_LIST, AT(list), "a,b", 0, 0, "a list"},
    {"count", FLAG_INT, AT(count), "3", 1, 10, "a number"},
    {"wait", FLAG_DURATION, AT(wait_ms), "2s", 1, 0, "a time"},
    {"on", FLAG_BOOL, AT(is_on), "false", 0, 0, "a switch"},
    {"rate", FLAG_NUMBER, AT(rate), "0", 0, 0, "a rate"},
    {"usual", FLAG_BOOL, AT(is_usual), "true", 0, 0, "a switch that is on"},
    {"spare", FLAG_INT, AT(spare), "3", 0, 10, "a number that may be 0"},
    {"pace", FLAG_NUMBER, AT(pace), "5", 0, 0, "a rate that may be 0"},
    {0},
};
static const struct flag_table table = {
    .program = "tried", .version = "9", .about = "For a test.\n", .flags = rows};

static int parse(const char *line, struct options *ret, int *ret_status)
{
    char *argv[12] = {xstrdup("tried")};
    int argc = 1;
    *ret = (struct options){0};
    for (size_t n; *line; line += n + (line[n] == ' ')) {
        n = strcspn(line, " ");
        argv[argc++] = xstrndup(line, n);
    }
    int rc = flags_parse(&table, argc, argv, ret, ret_status);
    ret->name = strcmp(ret->name, "me") == 0 ? "me" : "somebody"; /* argv goes */
    for (int i = 0; i < argc; i++)
        free(argv[i]);
    return rc;
}

START_TEST(test_defaults)
{
    struct options o;
    int status;
    ck_assert_int_eq(parse("", &o, &status), 0);
    ck_assert_str_eq(o.name, "somebody");
    ck_assert_str_eq(o.list[1], "b");
    ck_assert_ptr_null(o.list[2]);
    ck_assert_int_eq(o.count, 3);
    ck_assert_int_eq(o.wait_ms, 2000);
    ck_assert(!o.is_on);
    strv_free(o.list);
}
END_TEST

START_TEST(test_given)
{
    struct options o;
    int status;
    const char *line = "--name me --list=x,,y, --count=10 --wait 5ms --on --rate 0.5";
    ck_assert_int_eq(parse(line, &o, &status), 0);
    ck_assert_str_eq(o.name, "me");
    ck_assert_str_eq(o.list[1], "y");
    ck_assert_ptr_null(o.list[2]);
    ck_assert_int_eq(o.count, 10);
    ck_assert_int_eq(o.wait_ms, 5);
    ck_assert(o.is_on);
    ck_assert(o.rate > 0.49 && o.rate < 0.51);
    strv_free(o.list);
}
END_TEST

START_TEST(test_zero) /* IL-052: zero values count, where the default is another one */
{
    struct options o;
    int status;
    ck_assert_int_eq(parse("", &o, &status), 0);
    ck_assert(o.is_usual && o.spare == 3 && o.pace > 4);
    strv_free(o.list);
    ck_assert_int_eq(parse("--usual=false --spare=0 --pace 0", &o, &status), 0);
    ck_assert(!o.is_usual && o.spare == 0 && o.pace < 1);
    strv_free(o.list);
}
END_TEST

static const struct {
    const char *line;
    int status;
} ends[] = {
    {"--count 11", 2}, {"--count 0", 2}, {"--count x", 2},  {"--wait 0s", 2},  {"--wait 5", 2},
    {"--on=maybe", 2}, {"--rate -1", 2}, {"--rate inf", 2}, {"--nonsense", 2}, {"word", 2},
    {"--name", 2},     {"--help", 0},    {"--version", 0},  {"-h", 0},
};

START_TEST(test_end)
{
    struct options o;
    int status = -1;
    ck_assert_msg(freopen("/dev/null", "w", stderr) && freopen("/dev/null", "w", stdout), "muted");
    ck_assert_msg(parse(ends[_i].line, &o, &status) < 0, "%s", ends[_i].line);
    ck_assert_msg(status == ends[_i].status, "%s: %d", ends[_i].line, status);
    strv_free(o.list);
}
END_TEST

SUITE(flags)
{
    TESTS("values", test_defaults, test_given, test_zero);
    LOOP("ends", test_end, 0, ARRAY_LEN(ends));
}
