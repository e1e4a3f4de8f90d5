/* Errors as Status, warnings as headers, tables: rows of what goes in and what comes out. */
#include "apiserver/http/status.h"

#include "apiserver/base/json.h"
#include "apiserver/http/params.h"
#include "apiserver/http/table.h"
#include "openapi/kinds.h"
#include "tests/lib/suite.h"

static void check_json(const cJSON *tree, const char *expected)
{
    SCOPED(json_free_p) cJSON *want = NULL;
    SCOPED_FREE char *got = json_to_str(tree);
    ck_assert(json_parse_str(expected, &want, NULL) == 0);
    ck_assert_msg(json_equal(tree, want), "%s", got);
}

/* ---- Status ---- */

static void fill_not_found(struct err *err)
{
    err_set(err, ERR_NOT_FOUND, "x \"a\" not found");
    err_details(err, "g", "x", "a", NULL);
}
static void fill_invalid(struct err *err)
{
    err_set(err, ERR_INVALID, "bad");
    err_cause(err, "FieldValueRequired", "spec.a", "Required value");
    err_cause(err, "FieldValueInvalid", NULL, "Invalid value: 1");
}
static void fill_empty_details(struct err *err)
{
    err_set(err, ERR_INVALID, "the server rejected our request due to an error in our request");
    err_details(err, NULL, NULL, NULL, NULL);
}
static void fill_unknown(struct err *err)
{
    err_set(err, ERR_UNKNOWN, "content is not a list");
}
static void fill_expired(struct err *err)
{
    err_set(err, ERR_EXPIRED, "too old");
    err->continue_token = xstrdup("abc");
}
static void fill_busy(struct err *err)
{
    err_set(err, ERR_UNAVAILABLE, "wait");
    err->retry_after_s = 3;
}

static const struct {
    void (*fill)(struct err *err);
    const char *status, *retry_after;
} statuses[] = {
    {fill_not_found,
     "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
     "\"message\":\"x \\\"a\\\" not found\","
     "\"reason\":\"NotFound\",\"details\":{\"name\":\"a\",\"group\":\"g\",\"kind\":\"x\"},\"code\":"
     "404}",
     NULL},
    {fill_invalid,
     "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
     "\"message\":\"bad\",\"reason\":\"Invalid\","
     "\"details\":{\"causes\":[{\"reason\":\"FieldValueRequired\",\"message\":\"Required "
     "value\",\"field\":\"spec.a\"},"
     "{\"reason\":\"FieldValueInvalid\",\"message\":\"Invalid value: 1\"}]},\"code\":422}",
     NULL},
    {fill_empty_details,
     "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
     "\"message\":\"the server rejected our "
     "request due to an error in our request\",\"reason\":\"Invalid\",\"details\":{},\"code\":422}",
     NULL},
    {fill_unknown,
     "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
     "\"message\":\"content is not a list\","
     "\"code\":500}",
     NULL},
    {fill_expired,
     "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{\"continue\":\"abc\"},\"status\":"
     "\"Failure\",\"message\":\"too old\","
     "\"reason\":\"Expired\",\"code\":410}",
     NULL},
    {fill_busy,
     "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
     "\"message\":\"wait\","
     "\"reason\":\"ServiceUnavailable\",\"details\":{\"retryAfterSeconds\":3},\"code\":503}",
     "3"},
};

START_TEST(test_status)
{
    SCOPED(request_fini) struct request req = {.method = xstrdup("GET")};
    SCOPED(response_fini) struct response resp = {0};
    SCOPED(err_fini) struct err err = {0};
    SCOPED(json_free_p) cJSON *body = NULL;
    statuses[_i].fill(&err);
    status_respond(&req, &err, &resp);
    ck_assert_int_eq(resp.status, err_status(err.code));
    ck_assert_str_eq(pairs_get(&resp.headers, "Content-Type"), "application/json");
    ck_assert(str_equal(pairs_get(&resp.headers, "Retry-After"), statuses[_i].retry_after));
    ck_assert(json_parse(resp.body.data, resp.body.len - 1, NULL, &body, NULL) == 0);
    ck_assert(resp.body.data[resp.body.len - 1] == '\n');
    check_json(body, statuses[_i].status);
}
END_TEST

START_TEST(test_status_yaml)
{
    SCOPED(request_fini) struct request req = {.method = xstrdup("GET")};
    SCOPED(response_fini) struct response resp = {0};
    SCOPED(err_fini) struct err err = {0};
    fill_unknown(&err);
    pairs_add(&req.headers, "Accept", "application/yaml");
    status_respond(&req, &err, &resp);
    ck_assert_str_eq(pairs_get(&resp.headers, "Content-Type"), "application/yaml");
    ck_assert_str_eq(buf_cstr(&resp.body),
                     "apiVersion: v1\ncode: 500\nkind: Status\nmessage: content is not a "
                     "list\nmetadata: {}\nstatus: Failure\n");
}
END_TEST

START_TEST(test_success)
{
    SCOPED(json_free_p) cJSON *tree = status_success("g", "xs", "a", "u");
    check_json(tree, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":"
                     "\"Success\",\"details\":{\"name\":\"a\","
                     "\"group\":\"g\",\"kind\":\"xs\",\"uid\":\"u\"}}");
}
END_TEST

/* ---- warnings ---- */

START_TEST(test_warnings)
{
    SCOPED(response_fini) struct response resp = {0};
    SCOPED(pairs_fini) struct pairs warnings = {0};
    pairs_add(&warnings, "unknown field \"spec.a\"", "");
    pairs_add(&warnings, "back\\slash and line", "");
    pairs_add(&warnings, "two\nlines", "");
    pairs_add(&warnings, "a NUL " STR_NUL, "");
    pairs_add(&warnings, "unknown field \"spec.a\"", "");
    status_warn(&warnings, &resp);
    ck_assert_uint_eq(resp.headers.n, 2);
    ck_assert_str_eq(resp.headers.v[0].name, "Warning");
    ck_assert_str_eq(resp.headers.v[0].value, "299 - \"unknown field \\\"spec.a\\\"\"");
    ck_assert_str_eq(resp.headers.v[1].value, "299 - \"back\\\\slash and line\"");
}
END_TEST

/* 20 texts of 1,000 characters: each is cut at 256, and 16 fit the budget of 4,096. */
START_TEST(test_warning_budget)
{
    SCOPED(response_fini) struct response resp = {0};
    SCOPED(pairs_fini) struct pairs warnings = {0};
    for (int i = 0; i < 20; i++) {
        SCOPED_FREE char *text = xasprintf("%02d %0997d", i, 0);
        pairs_add(&warnings, text, "");
    }
    status_warn(&warnings, &resp);
    ck_assert_uint_eq(resp.headers.n, 16);
    ck_assert_uint_eq(strlen(resp.headers.v[0].value), strlen("299 - \"\"") + 256);
}
END_TEST

/* ---- tables ---- */

static const char sandbox[] =
    "{\"apiVersion\":\"agents.x-k8s.io/v1beta1\",\"kind\":\"Sandbox\",\"metadata\":{\"name\":\"a\","
    "\"creationTimestamp\":\"2026-01-02T03:04:05Z\"},\"status\":{\"conditions\":[{\"type\":"
    "\"Ready\","
    "\"status\":\"True\",\"reason\":\"Fine\"}]}}";
#define NOW_MS ((int64_t)1767323055 * 1000) /* ten seconds later */

static const struct {
    const char *include, *row; /* row NULL = refused */
} includes[] = {
    {NULL, "{\"cells\":[\"a\",\"True\",\"Fine\",\"10s\"],\"object\":{\"kind\":"
           "\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\","
           "\"metadata\":{\"name\":\"a\",\"creationTimestamp\":\"2026-01-02T03:04:05Z\"}}}"},
    {"None", "{\"cells\":[\"a\",\"True\",\"Fine\",\"10s\"],\"object\":null}"},
    {"X", NULL},
};

START_TEST(test_row)
{
    struct table_style style = {.view = table_view_of(&kind_sandbox),
                                .api_version = "meta.k8s.io/v1",
                                .now_unix_ms = NOW_MS};
    SCOPED(err_fini) struct err err = {0};
    SCOPED(json_free_p) cJSON *object = NULL, *row = NULL;
    SCOPED(buf_fini) struct buf out = {0};
    int r = table_parse_include(includes[_i].include, &style.include, &err);
    if (!includes[_i].row) {
        ck_assert_int_eq(r, -ERR_BAD_REQUEST);
        ck_assert_str_eq(
            err_text(&err),
            "Unable to convert to Table as requested: includeObject: Invalid value: \"X\": must be "
            "'Metadata', 'Object', 'None', or empty");
        return;
    }
    ck_assert(json_parse_str(sandbox, &object, NULL) == 0);
    table_print_row(&style, object, &out);
    ck_assert(json_parse_str(buf_cstr(&out), &row, NULL) == 0);
    check_json(row, includes[_i].row);
}
END_TEST

START_TEST(test_bookmark)
{
    struct table_style style = {.view = table_view_of(&kind_sandbox),
                                .api_version = "meta.k8s.io/v1beta1"};
    SCOPED(buf_fini) struct buf table = {0}, plain = {0};
    SCOPED(json_free_p) cJSON *t = NULL, *p = NULL;
    table_print_bookmark_table(&style, false, 7, true, &table);
    table_print_bookmark(&kind_sandbox, 7, false, &plain);
    ck_assert(json_parse_str(buf_cstr(&table), &t, NULL) == 0 &&
              json_parse_str(buf_cstr(&plain), &p, NULL) == 0);
    check_json(p, "{\"kind\":\"Sandbox\",\"apiVersion\":\"agents.x-k8s.io/"
                  "v1beta1\",\"metadata\":{\"resourceVersion\":\"7\"}}");
    check_json(t, "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/"
                  "v1beta1\",\"metadata\":{\"resourceVersion\":\"7\"},"
                  "\"columnDefinitions\":null,\"rows\":[{\"cells\":[\"\",null,null,null],"
                  "\"object\":{\"kind\":"
                  "\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/"
                  "v1beta1\",\"metadata\":{\"resourceVersion\":\"7\","
                  "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}]}");
}
END_TEST

/* ---- durations ---- */

static const struct {
    const char *text;
    int64_t ns; /* -1 = refused */
} durations[] = {
    {"10s", 10000000000},
    {"1m30s", 90000000000},
    {"1.5h", 5400000000000},
    {"300ms", 300000000},
    {"0", 0},
    {"100us", 100000},
    {"1ns", 1},
    {"+5s", 5000000000},
    {"x", -1},
    {"", -1},
    {"10", -1},
    {"s", -1},
    {"1d", -1},
    {"1..5s", -1},
    {"10s ", -1},
    {"2562047h", 9223369200000000000},
    {"2562048h", -1}, /* more than 64 bits hold */
    {"99999999999999999999h", -1},
};

START_TEST(test_duration)
{
    int64_t ns = -1;
    int r = params_duration(durations[_i].text, &ns, NULL);
    ck_assert_msg((r == 0) == (durations[_i].ns >= 0) && ns == durations[_i].ns, "%s",
                  durations[_i].text);
}
END_TEST

SUITE(status)
{
    LOOP("status", test_status, 0, ARRAY_LEN(statuses));
    TESTS("forms", test_status_yaml, test_success);
    TESTS("warnings", test_warnings, test_warning_budget);
    LOOP("row", test_row, 0, ARRAY_LEN(includes));
    TESTS("bookmark", test_bookmark);
    LOOP("duration", test_duration, 0, ARRAY_LEN(durations));
}
