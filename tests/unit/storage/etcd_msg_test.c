/* The gateway's messages. Answers are as etcd 3.4.23 and 3.7.0 send them. */
#include "storage/etcd_msg.h"

#include <stdio.h>
#include <time.h>

#include "tests/lib/suite.h"

#define HEADER                                                                                     \
    "\"header\":{\"cluster_id\":\"10144879847569953045\",\"member_id\":\"12428976124636271536\","  \
    "\"revision\":\"9\",\"raft_term\":\"2\"}"

static void expect_text(struct buf *b, const char *text)
{
    ck_assert_str_eq(buf_cstr(b), text);
    buf_fini(b);
}

/* ---- requests ---- */

START_TEST(test_range_request)
{
    struct buf b = {0};
    etcd_msg_range(&b, &(struct etcd_range){.from = "a"});
    expect_text(&b, "{\"key\":\"YQ==\"}");
    etcd_msg_range(&b, &(struct etcd_range){.from = "", .end = ""});
    expect_text(&b, "{\"key\":\"AA==\",\"range_end\":\"AA==\"}");
    etcd_msg_range(&b,
                   &(struct etcd_range){
                       .from = "a", .end = "b", .limit = 500, .rev = INT64_MAX, .keys_only = true});
    expect_text(&b, "{\"key\":\"YQ==\",\"range_end\":\"Yg==\",\"limit\":\"500\","
                    "\"revision\":\"9223372036854775807\",\"keys_only\":true}");
}
END_TEST

START_TEST(test_txn_request)
{
    struct buf b = {0};
    struct store_compare compares[] = {{.key = "a", .rev = 0},
                                       {.key = "b", .target = STORE_CREATE, .rev = 7}};
    struct store_op ops[] = {{.key = "a", .value = "x\0y", .value_len = 3, .lease = 12},
                             {.key = "b"},
                             {.key = "c", .value = ""}};
    etcd_msg_txn(
        &b, &(struct store_txn){.compares = compares, .n_compares = 2, .ops = ops, .n_ops = 3});
    expect_text(
        &b,
        "{\"compare\":["
        "{\"key\":\"YQ==\",\"target\":\"MOD\",\"result\":\"EQUAL\",\"mod_revision\":\"0\"},"
        "{\"key\":\"Yg==\",\"target\":\"CREATE\",\"result\":\"EQUAL\",\"create_revision\":\"7\"}],"
        "\"success\":["
        "{\"request_put\":{\"key\":\"YQ==\",\"value\":\"eAB5\",\"lease\":\"12\"}},"
        "{\"request_delete_range\":{\"key\":\"Yg==\"}},"
        "{\"request_put\":{\"key\":\"Yw==\",\"value\":\"\"}}],"
        "\"failure\":[{\"request_range\":{\"key\":\"YQ==\"}},{\"request_range\":{\"key\":\"Yg==\"}}"
        "]}");
    etcd_msg_txn(&b, &(struct store_txn){0});
    expect_text(&b, "{\"compare\":[],\"success\":[],\"failure\":[]}");
}
END_TEST

START_TEST(test_small_requests)
{
    struct buf b = {0};
    etcd_msg_compact(&b, 5);
    expect_text(&b, "{\"revision\":\"5\"}");
    etcd_msg_lease_grant(&b, 15);
    expect_text(&b, "{\"TTL\":\"15\"}");
    etcd_msg_lease_id(&b, 1418812183942028041);
    expect_text(&b, "{\"ID\":\"1418812183942028041\"}");
    etcd_msg_watch(&b, 0);
    expect_text(&b, "{\"create_request\":{\"key\":\"AA==\",\"range_end\":\"AA==\",\"prev_kv\":true,"
                    "\"fragment\":true}}");
    etcd_msg_watch(&b, 8);
    expect_text(
        &b, "{\"create_request\":{\"key\":\"AA==\",\"range_end\":\"AA==\",\"start_revision\":\"8\","
            "\"prev_kv\":true,\"fragment\":true}}");
}
END_TEST

/* ---- answers ---- */

START_TEST(test_read_range)
{
    static const char text[] =
        "{" HEADER ",\"kvs\":[{\"key\":\"YQ==\",\"create_revision\":\"2\",\"mod_revision\":\"3\","
        "\"version\":\"2\",\"value\":\"eAB5\",\"lease\":\"1418812183942028041\"},{\"key\":\"Yg==\"}"
        "],"
        "\"more\":true,\"count\":\"12\"}";
    SCOPED(store_page_fini) struct store_page p = {0};
    ck_assert_int_eq(etcd_msg_read_range(text, sizeof text - 1, 0, &p, NULL), 0);
    ck_assert(p.n == 2 && p.more && p.count == 12 && p.rev == 9);
    ck_assert_str_eq(p.kvs[0].key, "a");
    ck_assert(p.kvs[0].value_len == 3 && memcmp(p.kvs[0].value, "x\0y", 4) == 0);
    ck_assert(p.kvs[0].create_rev == 2 && p.kvs[0].mod_rev == 3 &&
              p.kvs[0].lease == 1418812183942028041);
    ck_assert(p.kvs[1].value_len == 0 && p.kvs[1].value[0] == '\0' && p.kvs[1].lease == 0);
    SCOPED(store_page_fini) struct store_page empty = {0};
    ck_assert_int_eq(
        etcd_msg_read_range("{" HEADER "}", sizeof "{" HEADER "}" - 1, 4, &empty, NULL), 0);
    ck_assert(empty.n == 0 && !empty.more && empty.count == 0 && empty.rev == 4);
}
END_TEST

/* None of these may be taken for an empty store. */
static const char *const broken_ranges[] = {
    "",
    "{}",
    "[]",
    "null",
    "{\"header\":{}}",
    "{\"header\":{\"revision\":\"x\"}}",
    "{\"header\":{\"revision\":1.5}}",
    "{\"header\":7}",
    "{" HEADER,
    "{" HEADER "} {}",
    "{" HEADER ",\"kvs\":{}}",
    "{" HEADER ",\"kvs\":[{}]}",
    "{" HEADER ",\"kvs\":[{\"key\":\"a\"}]}",
    "{" HEADER ",\"kvs\":[{\"key\":7}]}",
    "{" HEADER ",\"kvs\":[{\"key\":\"AA==\"}]}",
    "{" HEADER ",\"kvs\":[{\"key\":\"YQ==\",\"value\":\"*\"}]}",
    "{" HEADER ",\"kvs\":[{\"key\":\"YQ==\"},{\"key\":\"YQ==\",\"mod_revision\":\"-\"}]}",
    "{" HEADER ",\"count\":\"99999999999999999999\"}",
    "{" HEADER ",\"kvs\":[7]}",
    "<html>"};

START_TEST(test_broken_range)
{
    SCOPED(store_page_fini) struct store_page p = {0};
    SCOPED(err_fini) struct err err = {0};
    const char *text = broken_ranges[_i];
    ck_assert_msg(etcd_msg_read_range(text, strlen(text), 0, &p, &err) == -ERR_INTERNAL, "%s",
                  text);
    ck_assert(p.kvs == NULL && err.message != NULL);
}
END_TEST

static int read_txn(const char *text, struct store_txn_result *ret)
{
    static const struct store_compare compares[] = {{.key = "a"}, {.key = "b"}};
    struct store_txn txn = {.compares = compares, .n_compares = 2};
    return etcd_msg_read_txn(text, strlen(text), &txn, ret, NULL);
}

START_TEST(test_read_txn)
{
    struct store_txn_result r = {0};
    ck_assert_int_eq(read_txn("{" HEADER
                              ",\"succeeded\":true,\"responses\":[{\"response_put\":{\"header\":{"
                              "\"revision\":\"9\"}}}]}",
                              &r),
                     0);
    ck_assert(r.succeeded && r.rev == 9 && r.n_current == 0);
    store_txn_result_fini(&r);
    ck_assert_int_eq(
        read_txn(
            "{" HEADER ",\"responses\":[{\"response_range\":{\"header\":{\"revision\":\"9\"}}},"
            "{\"response_range\":{\"kvs\":[{\"key\":\"Yg==\",\"value\":\"eA==\",\"mod_revision\":"
            "\"4\"}],\"count\":\"1\"}}]}",
            &r),
        0);
    ck_assert(!r.succeeded && r.n_current == 2 && r.current[0].key == NULL);
    ck_assert(strcmp(r.current[1].value, "x") == 0 && r.current[1].mod_rev == 4);
    store_txn_result_fini(&r);
    ck_assert_int_eq(read_txn("{" HEADER "}", &r), -ERR_INTERNAL);
    ck_assert_int_eq(read_txn("{" HEADER ",\"responses\":[{}]}", &r), -ERR_INTERNAL);
    ck_assert_int_eq(read_txn("{" HEADER ",\"responses\":[{},{},{}]}", &r), -ERR_INTERNAL);
    ck_assert_int_eq(read_txn("{\"succeeded\":true}", &r), -ERR_INTERNAL);
}
END_TEST

#define READ(fn, text, ...) fn((text), strlen(text), __VA_ARGS__)

START_TEST(test_read_leases_and_status)
{
    int64_t v = 0;
    ck_assert_int_eq(
        READ(etcd_msg_read_lease_grant, "{" HEADER ",\"ID\":\"77\",\"TTL\":\"5\"}", &v, NULL), 0);
    ck_assert_int_eq(v, 77);
    ck_assert_int_eq(READ(etcd_msg_read_lease_grant, "{}", &v, NULL), -ERR_INTERNAL);
    ck_assert_int_eq(READ(etcd_msg_read_keepalive,
                          "{\"result\":{" HEADER ",\"ID\":\"77\",\"TTL\":\"5\"}}\n", &v, NULL),
                     0);
    ck_assert_int_eq(v, 5);
    ck_assert_int_eq(
        READ(etcd_msg_read_keepalive, "{\"result\":{" HEADER ",\"ID\":\"5\"}}\n", &v, NULL),
        -ERR_NOT_FOUND);
    ck_assert_int_eq(READ(etcd_msg_read_keepalive,
                          "{\"error\":{\"grpc_code\":14,\"message\":\"etcdserver: no leader\"}}",
                          &v, NULL),
                     -ERR_UNAVAILABLE);
    ck_assert_int_eq(
        READ(etcd_msg_read_status, "{" HEADER ",\"dbSize\":\"32768\",\"leader\":\"12\"}", &v, NULL),
        0);
    ck_assert_int_eq(v, 32768);
    ck_assert_int_eq(READ(etcd_msg_read_status, "{" HEADER ",\"dbSize\":\"32768\"}", &v, NULL),
                     -ERR_UNAVAILABLE);
}
END_TEST

/* ---- errors ---- */

#define BOTH(text, code) "{\"error\":\"" text "\",\"message\":\"" text "\",\"code\":" code "}"
static const struct {
    int status;
    const char *body;
    enum err_code read, write;
} errors[] = {
    {400, BOTH("etcdserver: mvcc: required revision has been compacted", "11"), ERR_EXPIRED,
     ERR_EXPIRED},
    {400, "{\"code\":11,\"message\":\"etcdserver: mvcc: required revision is a future revision\"}",
     ERR_EXPIRED, ERR_EXPIRED},
    {400, BOTH("etcdserver: request is too large", "3"), ERR_TOO_LARGE, ERR_TOO_LARGE},
    {429, BOTH("grpc: received message larger than max (2796295 vs. 2097152)", "8"), ERR_TOO_LARGE,
     ERR_TOO_LARGE},
    {429, BOTH("etcdserver: mvcc: database space exceeded", "8"), ERR_TOO_MANY, ERR_TOO_MANY},
    {503, BOTH("etcdserver: mvcc: database space exceeded", "8"), ERR_TOO_MANY, ERR_TOO_MANY},
    {429, BOTH("etcdserver: too many requests", "8"), ERR_UNAVAILABLE, ERR_UNAVAILABLE},
    {404, BOTH("etcdserver: requested lease not found", "5"), ERR_NOT_FOUND, ERR_NOT_FOUND},
    {400, BOTH("etcdserver: duplicate key given in txn request", "3"), ERR_INTERNAL, ERR_INTERNAL},
    {503, BOTH("etcdserver: request timed out", "14"), ERR_UNAVAILABLE, ERR_UNDETERMINED},
    {503, BOTH("etcdserver: leader changed", "14"), ERR_UNAVAILABLE, ERR_UNDETERMINED},
    {503, BOTH("etcdserver: no leader", "14"), ERR_UNAVAILABLE, ERR_UNAVAILABLE},
    {504, BOTH("context deadline exceeded", "4"), ERR_SERVER_TIMEOUT, ERR_UNDETERMINED},
    {408, BOTH("context canceled", "1"), ERR_SERVER_TIMEOUT, ERR_UNDETERMINED},
    {500, BOTH("something else", "2"), ERR_INTERNAL, ERR_UNDETERMINED},
    {403, BOTH("etcdserver: permission denied", "7"), ERR_INTERNAL, ERR_INTERNAL},
    {401, BOTH("etcdserver: invalid auth token", "16"), ERR_INTERNAL, ERR_INTERNAL},
    {503, "upstream connect error", ERR_UNAVAILABLE, ERR_UNDETERMINED},
    {500, "", ERR_INTERNAL, ERR_UNDETERMINED},
    {404, "404 page not found\n", ERR_INTERNAL, ERR_INTERNAL},
    {500, "{\"code\":\"x\"}", ERR_INTERNAL, ERR_UNDETERMINED},
    {500, "{\"code\":[1]}", ERR_INTERNAL, ERR_UNDETERMINED},
};

START_TEST(test_errors)
{
    const char *body = errors[_i].body;
    SCOPED(err_fini) struct err err = {0};
    int r = etcd_msg_read_error(errors[_i].status, body, strlen(body), false, &err);
    ck_assert_msg(r == -(int)errors[_i].read, "read: %s: %s", body, err_name(err.code));
    r = etcd_msg_read_error(errors[_i].status, body, strlen(body), true, &err);
    ck_assert_msg(r == -(int)errors[_i].write, "write: %s: %s", body, err_name(err.code));
}
END_TEST

/* ---- the watch ---- */

static int read_watch(const char *text, struct etcd_watch_msg *ret)
{
    return etcd_msg_read_watch(text, strlen(text), "a", ret, NULL);
}

START_TEST(test_read_watch_events)
{
    struct etcd_watch_msg m = {0};
    ck_assert_int_eq(
        read_watch("{\"result\":{" HEADER ",\"events\":["
                   "{\"kv\":{\"key\":\"YQ==\",\"create_revision\":\"2\",\"mod_revision\":\"2\","
                   "\"value\":\"Yg==\"}},"
                   "{\"type\":\"DELETE\",\"kv\":{\"key\":\"YQ==\",\"mod_revision\":\"3\"},\"prev_"
                   "kv\":{\"key\":\"YQ==\","
                   "\"create_revision\":\"2\",\"mod_revision\":\"2\",\"value\":\"Yg==\"}},"
                   "{\"kv\":{\"key\":\"Yg==\",\"create_revision\":\"4\",\"mod_revision\":\"4\","
                   "\"value\":\"Yw==\"}},"
                   "{\"kv\":{\"key\":\"AA==\",\"create_revision\":\"4\",\"mod_revision\":\"5\","
                   "\"value\":\"Yw==\"}}]}}",
                   &m),
        0);
    ck_assert_uint_eq(m.n_events, 2); /* below the prefix a */
    ck_assert(!m.events[0].is_delete && strcmp(m.events[0].kv.value, "b") == 0 &&
              m.events[0].prev.key == NULL);
    ck_assert(m.events[1].is_delete && m.events[1].kv.mod_rev == 3 &&
              strcmp(m.events[1].prev.value, "b") == 0);
    ck_assert_int_eq(m.last_rev, 5); /* of all */
    ck_assert(!m.is_created && !m.is_canceled && !m.is_fragment && m.rev == 9);
    etcd_watch_msg_fini(&m);
}
END_TEST

START_TEST(test_read_watch_control)
{
    struct etcd_watch_msg m = {0};
    ck_assert_int_eq(read_watch("{\"result\":{" HEADER ",\"created\":true}}", &m), 0);
    ck_assert(m.is_created && m.rev == 9 && m.n_events == 0 && m.last_rev == 0);
    etcd_watch_msg_fini(&m);
    ck_assert_int_eq(
        read_watch("{\"result\":{" HEADER ",\"canceled\":true,\"compact_revision\":\"3\"}}", &m),
        0);
    ck_assert(m.is_canceled && m.compact_rev == 3 && m.cancel_reason == NULL);
    etcd_watch_msg_fini(&m);
    ck_assert_int_eq(read_watch("{\"result\":{" HEADER
                                ",\"canceled\":true,\"cancel_reason\":\"no\",\"fragment\":true}}",
                                &m),
                     0);
    ck_assert(m.is_canceled && m.is_fragment && strcmp(m.cancel_reason, "no") == 0);
    etcd_watch_msg_fini(&m);
    ck_assert_int_eq(
        read_watch(
            "{\"error\":{\"grpc_code\":14,\"http_code\":503,\"message\":\"etcdserver: no leader\","
            "\"http_status\":\"Service Unavailable\"}}",
            &m),
        -ERR_UNAVAILABLE);
    ck_assert_int_eq(read_watch("{\"error\":{\"code\":1,\"message\":\"context canceled\"}}", &m),
                     -ERR_SERVER_TIMEOUT);
    ck_assert_int_eq(read_watch("{\"result\":{" HEADER ",\"events\":[{}]}}", &m), -ERR_INTERNAL);
    ck_assert_int_eq(read_watch("{\"code\":5}", &m), -ERR_INTERNAL);
    etcd_watch_msg_fini(NULL);
}
END_TEST

/* However the bytes are cut, the same documents come out. */
START_TEST(test_split)
{
    static const char text[] = "{\"a\":\"}{\\\"\\\\\"}\n{\"b\":[{},[]]}{}\n\n {\"c\":1}";
    static const size_t ends[] = {14, 28, 30, 40};
    for (size_t piece = 1; piece < sizeof text; piece++) {
        struct etcd_split split = {0};
        size_t n_found = 0, at = 0;
        for (size_t from = 0; from < sizeof text - 1; from += piece) {
            size_t to = from + piece < sizeof text - 1 ? from + piece : sizeof text - 1;
            size_t n;
            for (at = from; (n = etcd_split_next(&split, text + at, to - at)) > 0;) {
                at += n;
                ck_assert_uint_eq(at, ends[n_found]);
                n_found++;
            }
        }
        ck_assert_uint_eq(n_found, ARRAY_LEN(ends));
    }
    struct etcd_split split = {0};
    ck_assert_uint_eq(etcd_split_next(&split, "]", 1),
                      1); /* nonsense ends at once and is refused when it is read */
}
END_TEST

/* ---- time ---- */

/* 10,000 values of 3 KB in pages of 500; a ceiling far above what it takes, and the time is
 * printed. */
START_TEST(test_speed)
{
    char value[3000];
    SCOPED(buf_fini) struct buf page = {0};
    memset(value, 'v', sizeof value);
    buf_puts(&page, "{" HEADER ",\"kvs\":[");
    for (int i = 0; i < 500; i++) {
        buf_printf(&page,
                   "%s{\"key\":\"L2FnZW50cy54LWs4cy5pby9zYW5kYm94ZXMvZGVmYXVsdC9h\",\"create_"
                   "revision\":\"%d\","
                   "\"mod_revision\":\"%d\",\"version\":\"1\",\"value\":\"",
                   i > 0 ? "," : "", i + 2, i + 2);
        buf_base64(&page, value, sizeof value);
        buf_puts(&page, "\"}");
    }
    buf_puts(&page, "],\"more\":true,\"count\":\"10000\"}");
    struct timespec from, to;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    for (int i = 0; i < 20; i++) {
        SCOPED(store_page_fini) struct store_page p = {0};
        ck_assert_int_eq(etcd_msg_read_range(page.data, page.len, 0, &p, NULL), 0);
        ck_assert_uint_eq(p.n, 500);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    double ms = (double)(to.tv_sec - from.tv_sec) * 1e3 + (double)(to.tv_nsec - from.tv_nsec) / 1e6;
    printf("# 10,000 values of 3 KB read in %.0f ms of CPU (%.1f MB of JSON)\n", ms,
           (double)page.len * 20 / 1e6);
    ck_assert(ms < 10000);
}
END_TEST

SUITE(etcd_msg)
{
    TESTS("requests", test_range_request, test_txn_request, test_small_requests);
    TESTS("answers", test_read_range, test_read_txn, test_read_leases_and_status);
    LOOP("broken ranges", test_broken_range, 0, ARRAY_LEN(broken_ranges));
    LOOP("errors", test_errors, 0, ARRAY_LEN(errors));
    TESTS("watch", test_read_watch_events, test_read_watch_control, test_split);
    TESTS("speed", test_speed);
}
