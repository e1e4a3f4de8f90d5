/* Whole passes over a warm pool whose members do not become ready: what keeps it from filling, and
 * which of them are replaced. Names carry the ids of the behaviour checklist. */
#include "tests/unit/reconcile/warmpool_fixture.h"

/* ---- what keeps a pool from filling (IL-047, IL-048) ---- */

/* The Pod of every Sandbox that has none waits for its image. */
static void pods_wait(void)
{
    SCOPED(list_result_fini) struct list_result list = sandboxes();
    for (size_t i = 0; i < list.n; i++) {
        SCOPED_FREE char *text = xasprintf(
            "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"u\"},\"status\":{"
            "\"phase\":"
            "\"Pending\",\"containerStatuses\":[{\"name\":\"c\",\"state\":{\"waiting\":{\"reason\":"
            "\"ImagePullBackOff\",\"message\":\"cannot pull "
            "https://joe:secret@registry.example/i\"}}}]}}",
            list.objects[i]->name);
        fake_cluster_put(&fx.cluster, CHILD_POD, "ns", world_tree(text));
    }
}

/* Passes as they are wished for until so much time has gone. Returns how many Sandboxes were
 * made. */
static size_t live(int64_t ms)
{
    size_t made = 0;
    for (int64_t left = ms; left > 0;) {
        struct loop_result r = {0};
        size_t before = count();
        int64_t rev = registry_revision(fx.world.registry);
        ck_assert_int_eq(warmpool_pass(fx.reconciler, "ns/p", &r), 0);
        size_t now = count();
        made += now > before ? now - before : 0;
        pods_wait();
        int64_t step = registry_revision(fx.world.registry) > rev || !r.again_after_ms
                           ? 1000
                           : r.again_after_ms;
        clock_fake_advance(&fx.world.clock, step);
        left -= step;
    }
    return made;
}

START_TEST(test_image_that_does_not_exist)
{
    create_template("t", "");
    create_pool(",\"replicas\":5");
    settle();
    expect_progress("absent", "", NULL);
    pods_wait();
    pass_ok();
    expect_progress("False", "ImagePullFailed",
                    "container \"c\" waits: ImagePullBackOff: cannot pull "
                    "https://registry.example/i");
    size_t first = live(3600000), later = live(24 * 3600000);
    ck_assert_uint_le(first, 5 + 6); /* once more all at once, then one by one */
    ck_assert_uint_ge(later, 24);    /* it goes on trying */
    ck_assert_uint_le(later, 2 * 24);
    expect_progress("False", "ImagePullFailed", "cannot pull");
    /* The template is mended: a new start, at once. */
    edit(&kind_sandbox_template, "t", "spec.podTemplate.spec", "{" CONTAINERS("better") "}");
    for (int i = 0; i < 4; i++)
        pass_ok();
    ck_assert_uint_eq(count(), 5);
    fake_cluster_fini(&fx.cluster);
    fake_cluster_init(&fx.cluster);
    all_ready();
    settle();
    expect_status(5, 5);
    expect_progress("True", "NothingInTheWay", NULL);
}
END_TEST

START_TEST(test_one_after_the_other_is_one_try) /* IL-047: those of one age, whenever they go */
{
    create_template("t", "");
    create_pool(",\"replicas\":3");
    settle();
    for (size_t i = 0; i < 3; i++) {
        SCOPED_FREE char *name = name_of(i);
        pod_condition(name, "False", "Unschedulable");
    }
    clock_fake_advance(&fx.world.clock, GRACE_MS + 1000);
    pass_ok();
    SCOPED(list_result_fini) struct list_result first = sandboxes();
    ck_assert_uint_eq(first.n, 3); /* held */
    for (size_t i = 0; i < 3; i++) {
        pod_condition(first.objects[i]->name, "True", ""); /* a node, long ago: too late */
        settle();
        ck_assert_uint_eq(count(), 3); /* its successor is there at once */
        clock_fake_advance(&fx.world.clock, 2000);
    }
}
END_TEST

START_TEST(test_one_that_works_is_proof) /* IL-047 */
{
    create_template("t", "");
    create_pool(",\"replicas\":2");
    for (int i = 0; i < 2; i++) {
        settle();
        clock_fake_advance(&fx.world.clock, GRACE_MS + 1000);
        pass_ok();
    }
    pass_ok();
    ck_assert_uint_eq(count(), 0); /* the second time was of no use: no more than one, later */
    expect_progress("False", "ReadinessTimeout", "was not ready within 5m0s");
    clock_fake_advance(&fx.world.clock, 61000);
    settle();
    ck_assert_uint_eq(count(), 1);
    all_ready();
    settle();
    ck_assert_uint_eq(count(), 2);
    all_ready();
    settle();
    expect_progress("True", "NothingInTheWay", NULL);
}
END_TEST

#define SINCE "'lastTransitionTime':'2026-01-02T03:04:05Z'"

/* IL-048: what a member's own conditions say; IL-036. */
static const struct {
    const char *conditions, *reason, *message;
} hindrances[] = {
    {"[{'type':'Ready','status':'False','reason':'InvalidConfiguration','message':'bad port'," SINCE
     "}]",
     "InvalidConfiguration", "bad port"},
    {"[{'type':'Ready','status':'False','reason':'QuotaExceeded','message':'exceeded quota: "
     "q'," SINCE "}]",
     "QuotaExceeded", "exceeded quota: q"},
    {"[{'type':'Ready','status':'False','reason':'DependenciesNotReady','message':''," SINCE "},"
     "{'type':'PodScheduled','status':'False','reason':'Unschedulable','message':'no node'," SINCE
     "}]",
     "Unschedulable", "no node"},
};

START_TEST(test_member_says_why)
{
    create_template("t", "");
    create_pool(",\"replicas\":1");
    settle();
    SCOPED_FREE char *name = name_of(0);
    SCOPED_FREE char *json = xstrdup(hindrances[_i].conditions);
    for (char *p = json; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    edit(&kind_sandbox, name, "status.conditions", json);
    pass_ok();
    expect_progress("False", hindrances[_i].reason, hindrances[_i].message);
    set_ready(name, true);
    settle();
    expect_progress("True", "NothingInTheWay", NULL);
}
END_TEST

#define DOTTED_POOL "p.q" /* no name of a Service begins like that */

START_TEST(test_refused_members) /* IL-048 */
{
    create_template("t", "");
    create_pool(",\"replicas\":1");
    fx.world.namespace_state = NAMESPACE_TERMINATING;
    struct loop_result r = {0};
    ck_assert_int_lt(warmpool_pass(fx.reconciler, "ns/p", &r), 0);
    expect_progress("False", "FailedCreate", "being terminated");
    int64_t told = registry_revision(fx.world.registry);
    ck_assert_int_lt(warmpool_pass(fx.reconciler, "ns/p", &r), 0);
    ck_assert_int_eq(registry_revision(fx.world.registry), told);
}
END_TEST

/* A refusal that names the member that was to be made is told once: another name each time is no
 * news, and a write of it would bring the next pass before its delay is over. */
START_TEST(test_refusals_differ_in_name)
{
    create_template("t", ",\"service\":true");
    create_pool_of(DOTTED_POOL, "t", ",\"replicas\":1");
    struct loop_result r = {0};
    ck_assert_int_lt(warmpool_pass(fx.reconciler, "ns/" DOTTED_POOL, &r), 0);
    SCOPED(json_free_p) cJSON *pool = get(&kind_sandbox_warm_pool, DOTTED_POOL);
    ck_assert_ptr_nonnull(strstr(json_str(json_at(pool, "status.conditions")->child, "message"),
                                 "\"" DOTTED_POOL "-...\" is invalid: metadata.name: "));
    int64_t told = registry_revision(fx.world.registry);
    for (int i = 0; i < 5; i++)
        ck_assert_int_lt(warmpool_pass(fx.reconciler, "ns/" DOTTED_POOL, &r), 0);
    ck_assert_int_eq(registry_revision(fx.world.registry), told);
}
END_TEST

/* ---- members that are not ready ---- */

START_TEST(test_stuck) /* W-t068, W-t072, W-t073, W-t127 */
{
    create_template("t", "");
    create_pool(",\"replicas\":2");
    settle();
    SCOPED_FREE char *scheduled = name_of(0), *without_pod = name_of(1);
    pod_condition(scheduled, "True", "");
    clock_fake_advance(&fx.world.clock, GRACE_MS - 2000);
    pass_ok();
    ck_assert_uint_eq(count(), 2); /* W-t069 */
    clock_fake_advance(&fx.world.clock, 3000);
    struct loop_result r = pass_ok();
    ck_assert_uint_eq(count(), 0);
    ck_assert_int_gt(r.again_after_ms, 0);
    ck_assert_int_le(r.again_after_ms, 30000);
    pass_ok();
    ck_assert_uint_eq(count(), 2);
}
END_TEST

/* W-t126, R-01: a member that changed since it was judged stays, and the pool looks again. */
START_TEST(test_changed_since_judged)
{
    create_template("t", "");
    create_pool(",\"replicas\":1");
    settle();
    SCOPED_FREE char *name = name_of(0);
    clock_fake_advance(&fx.world.clock, GRACE_MS + 1000);
    struct registry *mine = fx.world.registry, *other = registry_new(&fx.world.config);
    registry_start(other);
    for (int i = 0; i < 5000 && !(registry_is_synced(other) &&
                                  registry_revision(other) >= registry_revision(mine));
         i++)
        sleep_ms(1);
    memstore_set_watch_down(fx.world.store, true);
    fx.world.registry = other;
    set_ready(name, true);
    fx.world.registry = mine;
    struct loop_result r = {0};
    int rc = warmpool_pass(fx.reconciler, "ns/p", &r);
    memstore_set_watch_down(fx.world.store, false);
    ck_assert(rc < 0 || r.again_after_ms > 0);
    int64_t written; /* neither cache had it while the watch was down */
    ck_assert_int_eq(
        store_revision(fx.world.store, clock_monotonic_ms(&clock_system) + 10000, &written, NULL),
        0);
    world_wait_rev(&fx.world, written);
    settle();
    SCOPED(json_free_p) cJSON *member = get(&kind_sandbox, name);
    ck_assert_ptr_nonnull(member);
    expect_status(1, 1);
    registry_stop(other);
    registry_free(other);
}
END_TEST

START_TEST(test_readiness_flap) /* not by age alone */
{
    create_template("t", "");
    create_pool(",\"replicas\":1");
    settle();
    all_ready();
    clock_fake_advance(&fx.world.clock, 24 * 3600000);
    settle();
    SCOPED_FREE char *name = name_of(0);
    set_ready(name, false);
    pass_ok();
    SCOPED(json_free_p) cJSON *member = get(&kind_sandbox, name);
    ck_assert_ptr_nonnull(member);
    clock_fake_advance(&fx.world.clock, GRACE_MS + 1000);
    pass_ok();
    ck_assert_uint_eq(count(), 0);
}
END_TEST

static const char *const holding_reasons[] = {"Unschedulable", "SchedulingGated"};

START_TEST(test_held) /* W-t070, W-t071, W-t077 */
{
    create_template("t", "");
    create_pool(",\"replicas\":1");
    settle();
    SCOPED_FREE char *name = name_of(0);
    pod_condition(name, "False", holding_reasons[_i]);
    clock_fake_advance(&fx.world.clock, GRACE_MS + 1000);
    struct loop_result r = pass_ok();
    ck_assert_uint_eq(count(), 1);
    ck_assert_int_eq(r.again_after_ms, RECHECK_MS);
    ck_assert_str_eq(fx.cluster.last_event, "WarmPoolNotProgressing");
    pass_ok();
    ck_assert_int_eq(fx.cluster.events, 1);
    set_ready(name, true);
    r = pass_ok();
    ck_assert_str_eq(fx.cluster.last_event, "WarmPoolProgressing");
    ck_assert_int_eq(fx.cluster.events, 2);
    clock_fake_advance(&fx.world.clock, 1000);
    r = pass_ok();
    ck_assert_int_eq(r.again_after_ms, 0);
}
END_TEST

START_TEST(test_settings) /* W-t078 */
{
    restart(&(struct warmpool_settings){.readiness_grace_ms = 20000, .recheck_ms = 5000});
    create_template("t", "");
    create_pool(",\"replicas\":1");
    settle();
    SCOPED_FREE char *name = name_of(0);
    pod_condition(name, "False", "Unschedulable");
    clock_fake_advance(&fx.world.clock, 21000);
    struct loop_result r = pass_ok();
    ck_assert_int_eq(r.again_after_ms, 5000);
}
END_TEST

SUITE(warmpool_trouble)
{
    const TTest *const tests[] = {
        test_image_that_does_not_exist,
        test_one_after_the_other_is_one_try,
        test_one_that_works_is_proof,
        test_refused_members,
        test_refusals_differ_in_name,
        test_stuck,
        test_readiness_flap,
        test_changed_since_judged,
        test_settings,
    };
    TCase *tc = tcase_create("passes");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        tcase_add_test(tc, tests[i]);
    tcase_add_loop_test(tc, test_held, 0, ARRAY_LEN(holding_reasons));
    tcase_add_loop_test(tc, test_member_says_why, 0, ARRAY_LEN(hindrances));
    suite_add_tcase(s, tc);
}
