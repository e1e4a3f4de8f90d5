#include "node/logs.h"

#include "apiserver/base/json.h"
#include "apiserver/base/url.h"
#include "node/outcome.h"
#include "tests/lib/suite.h"

#define NOW_MS INT64_C(1767323045000) /* 2026-01-02T03:04:05Z */

/* ---- options ---- */

static int read_options(const char *query, struct log_options *ret)
{
    SCOPED(pairs_fini) struct pairs pairs = {0};
    url_parse_query(query, &pairs);
    return log_options_read(&pairs, NOW_MS, ret, NULL);
}

static const char file[] = "2026-01-02T03:04:01.000000001+00:00 stdout F one\n"
                           "2026-01-02T03:04:02.5+00:00 stderr F two\n"
                           "2026-01-02T03:04:03+00:00 stdout P th\n"
                           "2026-01-02T03:04:03.1+00:00 stdout F ree\n"
                           "not the engine's\n"
                           "2026-01-02T03:04:04+00:00 stdout F \n"
                           "2026-01-02T03:04:04+00:00 stdout P four";

static const struct {
    const char *query;
    int64_t skip;
    const char *want; /* NULL = refused */
} rows[] = {
    {"", 0, "one\ntwo\nthree\n\n"},
    {"stream=All", 0, "one\ntwo\nthree\n\n"},
    {"stream=Stderr", 0, "two\n"},
    {"stream=Stdout", 0, "one\nthree\n\n"},
    {"", 2, "three\n\n"},
    {"", 9, ""},
    {"limitBytes=5", 0, "one\nt"},
    {"limitBytes=1000", 0, "one\ntwo\nthree\n\n"},
    {"sinceSeconds=2", 0, "three\n\n"},
    {"sinceSeconds=99999999999", 0, "one\ntwo\nthree\n\n"},
    {"sinceTime=2026-01-02T03:04:02.6Z", 0, "three\n\n"},
    {"sinceTime=2026-01-02T04:04:02.5%2B01:00", 0, "two\nthree\n\n"},
    {"sinceTime=2026-01-02T03:04:01.000000002Z", 0, "two\nthree\n\n"},
    {"timestamps=true&stream=Stdout", 0,
     "2026-01-02T03:04:01.000000001+00:00 one\n2026-01-02T03:04:03+00:00 three\n"
     "2026-01-02T03:04:04+00:00 \n"},
    {"tailLines=-1", 0, NULL},
    {"tailLines=x", 0, NULL},
    {"limitBytes=0", 0, NULL},
    {"sinceSeconds=0", 0, NULL},
    {"sinceTime=yesterday", 0, NULL},
    {"stream=stdin", 0, NULL},
};

START_TEST(test_lines)
{
    struct log_options options = {0};
    int rc = read_options(rows[_i].query, &options);
    ck_assert_msg((rc == 0) == (rows[_i].want != NULL), "%s", rows[_i].query);
    for (size_t step = 1; rc == 0 && step <= sizeof file; step += 7) {
        SCOPED(buf_fini) struct buf out = {0};
        SCOPED(log_reader_fini)
        struct log_reader r = {.options = options, .skip = rows[_i].skip};
        for (size_t at = 0; at < sizeof file - 1; at += step) {
            size_t left = sizeof file - 1 - at;
            log_read(&r, file + at, left < step ? left : step, &out);
        }
        ck_assert_msg(strcmp(buf_cstr(&out), rows[_i].want) == 0, "%s by %zu: %s", rows[_i].query,
                      step, buf_cstr(&out));
        ck_assert_int_eq(r.is_full, rows[_i].query[0] == 'l' && options.limit < 10);
    }
}
END_TEST

START_TEST(test_options)
{
    struct log_options o = {0};
    ck_assert_int_eq(read_options("follow=true&previous=1&tailLines=3", &o), 0);
    ck_assert(o.follows && o.previous && !o.timestamps);
    ck_assert_int_eq(o.tail, 3);
    ck_assert_int_eq(read_options("follow=false&tailLines=0", &o), 0);
    ck_assert(!o.follows);
    ck_assert_int_eq(o.tail, 0);
}
END_TEST

START_TEST(test_long_line)
{
    static char text[2 * LOG_LINE_MAX];
    static const char next[] = "\n2026-01-02T03:04:01+00:00 stdout F one\n";
    SCOPED(buf_fini) struct buf out = {0};
    SCOPED(log_reader_fini) struct log_reader r = {0};
    ck_assert_int_eq(read_options("", &r.options), 0);
    memset(text, 'x', sizeof text);
    log_read(&r, text, sizeof text, &out);
    log_read(&r, next, sizeof next - 1, &out);
    ck_assert_str_eq(buf_cstr(&out), "one\n");
}
END_TEST

/* ---- whose ---- */

static const struct {
    const char *status; /* of container c in pod p */
    bool previous;
    const char *id, *error;
} choices[] = {
    {"{\"containerID\":\"podman://a\",\"state\":{\"running\":{}}}", false, "a", NULL},
    {"{\"containerID\":\"podman://a\",\"state\":{\"running\":{}},\"lastState\":{\"terminated\":{"
     "\"containerID\":\"podman://b\"}}}",
     true, "b", NULL},
    {"{\"state\":{\"terminated\":{\"containerID\":\"podman://a\"}}}", false, "a", NULL},
    {"{\"state\":{\"waiting\":{\"reason\":\"CrashLoopBackOff\"}},\"lastState\":{\"terminated\":{"
     "\"containerID\":\"podman://b\"}}}",
     false, "b", NULL},
    {"{\"state\":{\"running\":{}},\"containerID\":\"podman://a\"}", true, NULL,
     "previous terminated container \"c\" in pod \"p\" not found"},
    {"{\"state\":{\"terminated\":{}}}", false, NULL, "container \"c\" in pod \"p\" is terminated"},
    {"{\"state\":{\"waiting\":{\"reason\":\"ContainerCreating\"}}}", false, NULL,
     "container \"c\" in pod \"p\" is waiting to start: ContainerCreating"},
    {"{\"state\":{\"waiting\":{\"reason\":\"ErrImagePull\"}}}", false, NULL,
     "container \"c\" in pod \"p\" is waiting to start: image can't be pulled"},
    {"{\"state\":{\"waiting\":{\"reason\":\"ImagePullBackOff\"}}}", false, NULL,
     "container \"c\" in pod \"p\" is waiting to start: trying and failing to pull image"},
    {"{}", false, NULL, "container \"c\" in pod \"p\" is waiting to start - no logs yet"},
};

static cJSON *pod_of(const char *list, const char *status)
{
    cJSON *pod = NULL, *its = NULL, *statuses = json_array();
    SCOPED_FREE char *text = xasprintf(
        "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"%s\":[{\"name\":\"c\"}]},\"status\":{}}", list);
    ck_assert_int_eq(json_parse_str(text, &pod, NULL), 0);
    ck_assert_int_eq(json_parse_str(status, &its, NULL), 0);
    SCOPED_FREE char *where =
        xasprintf("status.%s", *list == 'i' ? "initContainerStatuses" : "containerStatuses");
    json_set_str(its, "name", "c");
    json_push(statuses, its);
    json_set_at(pod, where, statuses);
    return pod;
}

START_TEST(test_choice)
{
    static const char *const lists[] = {"containers", "initContainers"};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        SCOPED(json_free_p) cJSON *pod = pod_of(lists[i], choices[_i].status);
        SCOPED(err_fini) struct err err = {0};
        SCOPED_FREE char *id = NULL;
        int rc = log_choose(pod, "c", choices[_i].previous, &id, &err);
        ck_assert_int_eq(rc, choices[_i].error ? -ERR_BAD_REQUEST : 0);
        ck_assert_msg(str_equal(id, choices[_i].id), "%s", id);
        ck_assert(!choices[_i].error || strcmp(err_text(&err), choices[_i].error) == 0);
    }
}
END_TEST

START_TEST(test_no_container)
{
    SCOPED(json_free_p) cJSON *pod = pod_of("containers", "{}");
    SCOPED(err_fini) struct err err = {0};
    char *id = NULL;
    ck_assert_int_eq(log_choose(pod, "d", false, &id, &err), -ERR_NOT_FOUND);
    ck_assert_str_eq(err_text(&err), "container \"d\" not found in pod \"p\"");
}
END_TEST

/* ---- how a command ended ---- */

static const struct {
    int exit_code;
    const char *error; /* NULL = none */
    const char *status, *text;
} outcomes[] = {
    {0, NULL, "{\"metadata\":{},\"status\":\"Success\"}", ""},
    {3, NULL,
     "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"command terminated with non-zero exit "
     "code: exit status 3\",\"reason\":\"NonZeroExitCode\",\"details\":{\"causes\":[{\"reason\":"
     "\"ExitCode\",\"message\":\"3\"}]}}",
     "command terminated with non-zero exit code: exit status 3"},
    {0, "it broke",
     "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"Internal error occurred: error "
     "executing command in container: it broke\",\"reason\":\"InternalError\",\"details\":{"
     "\"causes\":[{\"message\":\"error executing command in container: it broke\"}]},\"code\":500}",
     "Internal error occurred: error executing command in container: it broke"},
};

START_TEST(test_outcome)
{
    SCOPED(err_fini) struct err err = {0};
    SCOPED(buf_fini) struct buf status = {0}, text = {0};
    if (outcomes[_i].error)
        err_set(&err, ERR_UNAVAILABLE, "%s", outcomes[_i].error);
    outcome_print(outcomes[_i].exit_code, &err, true, &status);
    outcome_print(outcomes[_i].exit_code, &err, false, &text);
    ck_assert_str_eq(buf_cstr(&status), outcomes[_i].status);
    ck_assert_str_eq(buf_cstr(&text), outcomes[_i].text);
}
END_TEST

SUITE(logs)
{
    LOOP("lines", test_lines, 0, ARRAY_LEN(rows));
    LOOP("choice", test_choice, 0, ARRAY_LEN(choices));
    LOOP("outcome", test_outcome, 0, ARRAY_LEN(outcomes));
    TESTS("other", test_options, test_long_line, test_no_container);
}
