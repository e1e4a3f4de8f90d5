#include "apiserver/base/metric.h"

#include <pthread.h>
#include <stdio.h>

#include "tests/lib/suite.h"

#define V(...) ((const char *const[]){__VA_ARGS__})

static struct metric requests = {
    .name = "requests_total",
    .help = "Requests \\ by verb\nand code.",
    .type = METRIC_COUNTER,
    .labels = {"verb", "code"},
};
static struct metric in_flight = {.name = "in_flight", .help = "Now.", .type = METRIC_GAUGE};
static const double bounds[] = {0.005, 0.1, 1, 0};
static struct metric duration = {
    .name = "duration_seconds",
    .help = "Time.",
    .type = METRIC_HISTOGRAM,
    .labels = {"verb"},
    .buckets = bounds,
};

START_TEST(test_page)
{
    metric_add(&requests, 1, V("POST", "201"));
    metric_add(&requests, 2, V("GET", "200"));
    metric_add(&requests, 1, V("GET", "200"));
    metric_add(&requests, 1, V("a\"b\\c\nd", "\xff\x01\xc3\xa4"));
    metric_set(&in_flight, 7.25, NULL);
    metric_add(&in_flight, -1, NULL);
    metric_observe(&duration, 0.005, V("GET"));
    metric_observe(&duration, 0.5, V("GET"));
    metric_observe(&duration, 50, V("GET"));
    SCOPED(buf_fini) struct buf out = {0};
    metric_print_all(&out);
    ck_assert_str_eq(buf_cstr(&out),
                     "# HELP duration_seconds Time.\n"
                     "# TYPE duration_seconds histogram\n"
                     "duration_seconds_bucket{verb=\"GET\",le=\"0.005\"} 1\n"
                     "duration_seconds_bucket{verb=\"GET\",le=\"0.1\"} 1\n"
                     "duration_seconds_bucket{verb=\"GET\",le=\"1\"} 2\n"
                     "duration_seconds_bucket{verb=\"GET\",le=\"+Inf\"} 3\n"
                     "duration_seconds_sum{verb=\"GET\"} 50.505\n"
                     "duration_seconds_count{verb=\"GET\"} 3\n"
                     "# HELP in_flight Now.\n"
                     "# TYPE in_flight gauge\n"
                     "in_flight 6.25\n"
                     "# HELP requests_total Requests \\\\ by verb\\nand code.\n"
                     "# TYPE requests_total counter\n"
                     "requests_total{verb=\"GET\",code=\"200\"} 3\n"
                     "requests_total{verb=\"POST\",code=\"201\"} 1\n"
                     "requests_total{verb=\"a\\\"b\\\\c\\nd\",code=\"??\xc3\xa4\"} 1\n");
    ck_assert_double_eq(metric_value(&requests, V("GET", "200")), 3);
    ck_assert_double_eq(metric_value(&requests, V("GET", "404")), 0);
    ck_assert_double_eq(metric_value(&duration, V("GET")), 3);
}
END_TEST

START_TEST(test_numbers)
{
    static struct metric m = {.name = "m", .help = "", .type = METRIC_GAUGE};
    static const struct {
        double v;
        const char *text;
    } rows[] = {{0.1, "m 0.1\n"},
                {1e15, "m 1e+15\n"},
                {123456789, "m 123456789\n"},
                {1.0 / 3, "m 0.3333333333333333\n"},
                {1 / 0.0, "m +Inf\n"},
                {-1 / 0.0, "m -Inf\n"},
                {0, "m 0\n"}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        SCOPED(buf_fini) struct buf out = {0};
        metric_set(&m, rows[i].v, NULL);
        metric_print_all(&out);
        ck_assert_ptr_nonnull(strstr(buf_cstr(&out), rows[i].text));
    }
}
END_TEST

START_TEST(test_series_have_a_ceiling)
{
    char name[20];
    for (int i = 0; i < METRIC_SERIES_MAX + 500; i++) {
        snprintf(name, sizeof name, "v%d", i);
        metric_add(&requests, 1, V(name, "200"));
    }
    ck_assert_double_eq(metric_value(&requests, V("other", "other")), 501);
    ck_assert_double_eq(metric_value(&requests, V("v0", "200")), 1);
    SCOPED(buf_fini) struct buf out = {0};
    metric_print_all(&out);
    int n = 0;
    for (const char *p = buf_cstr(&out); (p = strchr(p, '\n')) != NULL; p++)
        n++;
    ck_assert_int_eq(n, METRIC_SERIES_MAX + 2);
}
END_TEST

START_TEST(test_long_value_is_cut)
{
    char value[1000];
    memset(value, 'x', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    metric_add(&requests, 1, V(value, "\xe2\x82\xac"));
    value[128] = '\0';
    ck_assert_double_eq(metric_value(&requests, V(value, "\xe2\x82\xac")), 1);
}
END_TEST

static void *count(void *ctx)
{
    (void)ctx;
    for (int i = 0; i < 2000; i++) {
        metric_add(&requests, 1, V(i % 2 ? "GET" : "PUT", "200"));
        metric_observe(&duration, i, V("GET"));
    }
    return NULL;
}

START_TEST(test_threads)
{
    pthread_t threads[4];
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_create(&threads[i], NULL, count, NULL);
    SCOPED(buf_fini) struct buf out = {0};
    metric_print_all(&out);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    ck_assert_double_eq(metric_value(&requests, V("PUT", "200")), 4000);
    ck_assert_double_eq(metric_value(&duration, V("GET")), 8000);
}
END_TEST

static struct metric collected = {
    .name = "collected", .help = "Set when asked for.", .type = METRIC_GAUGE, .labels = {"n"}};

static void collect(void *ctx)
{
    int *n = ctx;
    const char *const names[] = {"a", "b"};
    metric_clear(&collected);
    ++*n;
    metric_set(&collected, *n, (const char *[]){names[*n % 2]});
}

START_TEST(test_collectors)
{
    int n = 0;
    metric_collect_on(collect, &n);
    for (int i = 0; i < 2; i++) {
        SCOPED(buf_fini) struct buf out = {0};
        metric_print_all(&out);
        ck_assert_ptr_nonnull(
            strstr(buf_cstr(&out), i ? "collected{n=\"a\"} 2\n" : "collected{n=\"b\"} 1\n"));
        ck_assert_ptr_null(strstr(buf_cstr(&out), i ? "n=\"b\"" : "n=\"a\""));
    }
    metric_collect_off(collect, &n);
    SCOPED(buf_fini) struct buf out = {0};
    metric_print_all(&out);
    ck_assert_int_eq(n, 2);
}
END_TEST

SUITE(metric)
{
    TESTS("metric", test_page, test_numbers, test_series_have_a_ceiling, test_long_value_is_cut,
          test_threads, test_collectors);
}
