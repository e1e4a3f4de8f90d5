/* Who may ask the node: what the cluster is asked, how long its answer counts, and that nothing but
 * a yes is one. */
#include "node/callers.h"

#include "apiserver/base/json.h"
#include "tests/lib/fake_kube.h"
#include "tests/lib/suite.h"

static struct fake_kube *kube;
static struct clock_fake fake_clock;
static struct callers *callers;

static void setup(void)
{
    kube = fake_kube_new();
    clock_fake_init(&fake_clock, 1000000);
    callers = callers_new(fake_kube_client(kube), "n1", &fake_clock.clock);
}

static void teardown(void)
{
    callers_free(callers);
    fake_kube_free(kube);
}

static int check(const char *name, const char *verb, struct err *err)
{
    char *groups[] = {xstrdup("g1"), xstrdup("g2"), NULL};
    SCOPED_FREE char *common_name = xstrdup(name), *uid = xstrdup("u-7");
    const struct subject who = {.common_name = common_name, .organizations = groups, .uid = uid};
    int rc = callers_check(callers, &who, verb, err);
    free(groups[0]);
    free(groups[1]);
    return rc;
}

START_TEST(test_what_is_asked)
{
    ck_assert_int_eq(check("allowed", "create", NULL), 0);
    SCOPED_FREE char *body = fake_kube_last_review(kube);
    SCOPED(json_free_p) cJSON *review = NULL, *want = NULL;
    ck_assert_int_eq(json_parse_str(body, &review, NULL), 0);
    ck_assert_int_eq(
        json_parse_str("{\"user\":\"allowed\",\"uid\":\"u-7\",\"groups\":[\"g1\",\"g2\","
                       "\"system:authenticated\"],\"resourceAttributes\":{\"verb\":\"create\","
                       "\"version\":\"v1\",\"resource\":\"nodes\",\"subresource\":\"proxy\","
                       "\"name\":\"n1\"}}",
                       &want, NULL),
        0);
    ck_assert_msg(cJSON_Compare(json_get(review, "spec"), want, true), "%s", body);
    ck_assert_str_eq(json_str(review, "kind"), "SubjectAccessReview");
}
END_TEST

static const struct {
    const char *user;
    int code;
    int64_t counts_ms; /* 0 = it is asked again at once */
} answers[] = {
    {"allowed", 0, 300000},           {"somebody", ERR_FORBIDDEN, 30000},
    {"denied", ERR_FORBIDDEN, 30000}, {"both", ERR_FORBIDDEN, 30000}, /* a denial wins */
    {"odd", ERR_FORBIDDEN, 30000},                                    /* no status */
    {"broken", ERR_INTERNAL, 0},
};

START_TEST(test_answers)
{
    SCOPED(err_fini) struct err err = {0}, again = {0};
    int rc = check(answers[_i].user, "get", &err);
    ck_assert_msg(rc == -answers[_i].code, "%s: %d %s", answers[_i].user, rc, err_text(&err));
    int asked = fake_kube_reviews(kube);
    if (answers[_i].counts_ms > 0) {
        clock_fake_advance(&fake_clock, answers[_i].counts_ms - 1);
        ck_assert_int_eq(check(answers[_i].user, "get", NULL), rc);
        ck_assert_int_eq(fake_kube_reviews(kube), asked);
        clock_fake_advance(&fake_clock, 1);
    }
    ck_assert_int_eq(check(answers[_i].user, "get", &again), rc);
    ck_assert_int_gt(fake_kube_reviews(kube), asked);
}
END_TEST

START_TEST(test_each_verb_and_user)
{
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(check("allowed", "get", NULL), 0);
    ck_assert_int_eq(check("allowed", "create", NULL), 0);
    ck_assert_int_eq(check("somebody", "get", &err), -ERR_FORBIDDEN);
    ck_assert_str_eq(err_text(&err),
                     "Forbidden (user=somebody, verb=get, resource=nodes, subresource=proxy)");
    ck_assert_int_eq(fake_kube_reviews(kube), 3);
}
END_TEST

START_TEST(test_cluster_is_gone)
{
    ck_assert_int_eq(check("allowed", "get", NULL), 0);
    fake_kube_break(kube);
    ck_assert_int_eq(check("allowed", "get", NULL), 0); /* it still counts */
    clock_fake_advance(&fake_clock, 300000);
    ck_assert_int_lt(check("allowed", "get", NULL), 0);
}
END_TEST

#define MANY 1000 /* answers that are kept */

START_TEST(test_answers_have_a_ceiling)
{
    for (int i = 0; i < MANY; i++) {
        SCOPED_FREE char *name = xasprintf("somebody-%d", i);
        ck_assert_int_eq(check(name, "get", NULL), -ERR_FORBIDDEN);
    }
    ck_assert_int_eq(check("somebody-0", "get", NULL), -ERR_FORBIDDEN);
    ck_assert_int_eq(fake_kube_reviews(kube), MANY);
    ck_assert_int_eq(check("one more", "get", NULL), -ERR_FORBIDDEN);
    ck_assert_int_eq(check("somebody-0", "get", NULL), -ERR_FORBIDDEN);
    ck_assert_int_eq(fake_kube_reviews(kube), MANY + 2);
}
END_TEST

SUITE(callers)
{
    const TTest *const tests[] = {test_what_is_asked, test_each_verb_and_user, test_cluster_is_gone,
                                  test_answers_have_a_ceiling};
    TCase *tc = tcase_create("callers");
    tcase_set_timeout(tc, 300); /* a thousand reviews */
    tcase_add_checked_fixture(tc, setup, teardown);
    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        tcase_add_test(tc, tests[i]);
    tcase_add_loop_test(tc, test_answers, 0, ARRAY_LEN(answers));
    suite_add_tcase(s, tc);
}
