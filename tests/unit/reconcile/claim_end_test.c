/* How claims end: by their time, by their Pod, by their policy. Names like C-t063 are those of the
 * contract's checklist. */
#include "tests/unit/reconcile/claim_fixture.h"

/* ---- expiry ---- */

/* C-t063, C-t064, C-t073: seen first, then cleaned up; extended it lives again. */
START_TEST(test_retain)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    pass("c");
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "spec|lifecycle",
                    "{" PAST ",\"shutdownPolicy\":\"Retain\"}");
    ck_assert_int_eq(pass("c"), 1);
    expect("c", "False", "ClaimExpired", "p-1");
    ck_assert(exists(&kind_sandbox, "p-1"));
    ck_assert_str_eq(cluster.last_event, "ClaimExpired");
    ck_assert_int_eq(pass("c"), 0);
    expect("c", "False", "ClaimExpired", "-");
    ck_assert(!exists(&kind_sandbox, "p-1"));
    int64_t settled = registry_revision(reg());
    pass("c");
    ck_assert_int_eq(registry_revision(reg()), settled);
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "spec|lifecycle|shutdownTime",
                    "\"2099-01-01T00:00:00Z\"");
    ck_assert_int_gt(pass("c"), 0);
    expect("c", "False", "SandboxNotReady", "c");
}
END_TEST

/* IL-074: a Pod that restarts for ever never begins the time that is to follow its end. */
static const struct {
    const char *policy, *lifecycle;
    bool is_warm, is_told;
} endless[] = {
    {"null", ",\"lifecycle\":{\"ttlSecondsAfterFinished\":5}", false, true},
    {"\"Always\"", ",\"lifecycle\":{\"ttlSecondsAfterFinished\":5}", false, true},
    {"\"Always\"", ",\"lifecycle\":{\"ttlSecondsAfterFinished\":5}", true, true},
    {"\"Never\"", ",\"lifecycle\":{\"ttlSecondsAfterFinished\":5}", true, false},
    {"\"OnFailure\"", ",\"lifecycle\":{\"ttlSecondsAfterFinished\":5}", false, false},
    {"null", "", false, false},
};

START_TEST(test_time_that_never_begins)
{
    pool_world_edit(reg(), &kind_sandbox_template, "t", "spec|podTemplate|spec|restartPolicy",
                    endless[_i].policy);
    if (endless[_i].is_warm)
        pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", endless[_i].lifecycle);
    pass("c");
    const char *got = endless[_i].is_warm ? "SandboxAdopted" : "SandboxProvisioned";
    ck_assert_str_eq(cluster.last_event, endless[_i].is_told ? "TTLNeverBegins" : got);
    int events = cluster.events;
    pass("c");
    ck_assert_int_eq(cluster.events, events);
}
END_TEST

static const char *const ends[] = {"Retain", "Delete", "DeleteForeground"};

/* IL-079: the time was extended while the pass judged by the version before: nothing is deleted.
 * The server that extends is another one, whose write this one's cache does not have yet. */
START_TEST(test_extended_while_it_ends)
{
    SCOPED_FREE char *lifecycle = xasprintf("{" PAST ",\"shutdownPolicy\":\"%s\"}", ends[_i]);
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    pass("c");
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "spec|lifecycle", lifecycle);
    ck_assert_int_eq(pass("c"), 1);
    struct registry *other = start_deaf();
    pool_world_edit(other, &kind_sandbox_claim, "c", "spec|lifecycle|shutdownTime",
                    "\"2099-01-01T00:00:00Z\"");
    pass("c");
    hear_again(other);
    ck_assert_int_gt(pass("c"), 0);
    expect("c", "True", "DependenciesReady", "p-1");
}
END_TEST

/* IL-034: the time runs for a claim that nobody can serve as well. */
START_TEST(test_unserved_claim_ends)
{
    bool stays = str_equal(ends[_i], "Retain");
    SCOPED_FREE char *lifecycle = xasprintf(
        ",\"lifecycle\":{\"shutdownTime\":\"2026-01-02T03:04:15Z\",\"shutdownPolicy\":\"%s\"}",
        ends[_i]);
    pool_world_edit(reg(), &kind_sandbox_warm_pool, "p", "spec|sandboxTemplateRef|name",
                    "\"none\"");
    post("c", "", lifecycle);
    int64_t again = pass("c");
    expect("c", "False", "TemplateNotFound", "-");
    ck_assert_int_gt(again, 9000);
    ck_assert_int_le(again, 10000);
    clock_fake_advance(&pw.w.clock, again);
    ck_assert_int_eq(pass("c"), 1);
    expect("c", "False", "ClaimExpired", "-");
    pass("c");
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    ck_assert((claim && !meta_is_terminating(claim)) == stays);
    ck_assert_uint_eq(pool_world_owned(reg(), NULL), 0);
}
END_TEST

/* a clean-up that fails comes back by back-off (a pass that fails), not at once, and the
 * claim goes on saying that it has expired. */
START_TEST(test_failed_clean_up)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    pass("c");
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "spec|lifecycle",
                    "{" PAST ",\"shutdownPolicy\":\"Retain\"}");
    ck_assert_int_eq(pass("c"), 1);
    int64_t settled = registry_revision(reg());
    memstore_set_fault(pw.w.store, no_writes, NULL);
    for (int i = 0; i < 3; i++)
        ck_assert_int_lt(pass("c"), 0);
    memstore_set_fault(pw.w.store, NULL, NULL);
    ck_assert_int_eq(registry_revision(reg()), settled);
    expect("c", "False", "ClaimExpired", "p-1");
    ck_assert_int_eq(pass("c"), 0);
    expect("c", "False", "ClaimExpired", "-");
    ck_assert(!exists(&kind_sandbox, "p-1"));
}
END_TEST

/* C-t065: somebody else's Sandbox is left alone. */
START_TEST(test_retain_foreign)
{
    object_unref(world_create(&pw.w, "ns", "s", ""));
    post("c", "", ",\"lifecycle\":{" PAST "}");
    expect("c", "-", "-", "-"); /* born expired: not bound */
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "status", "{\"sandbox\":{\"name\":\"s\"}}");
    ck_assert_int_eq(pass("c"), 1);
    ck_assert_int_eq(pass("c"), 0);
    expect("c", "False", "ClaimExpired", "-");
    expect_message("c",
                   "Claim expired. sandbox not owned by this claim: sandbox \"s\" is not owned "
                   "by claim \"c\"; deletion skipped.");
    ck_assert(exists(&kind_sandbox, "s"));
}
END_TEST

/* C-t066, C-t067, C-t068, C-t072, C-t187 */
static const char *const policies[] = {"Delete", "DeleteForeground"};
START_TEST(test_delete)
{
    SCOPED_FREE char *lifecycle = xasprintf("{" PAST ",\"shutdownPolicy\":\"%s\"}", policies[_i]);
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    pass("c");
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "spec|lifecycle", lifecycle);
    ck_assert_int_eq(pass("c"), 1);
    ck_assert(exists(&kind_sandbox_claim, "c"));
    ck_assert_int_eq(pass("c"), 0);
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    if (_i == 0) {
        ck_assert_ptr_null(claim);
    } else {
        ck_assert(meta_is_terminating(claim));
        ck_assert_str_eq(json_at(claim, "metadata.finalizers")->child->valuestring,
                         "foregroundDeletion");
    }
    ck_assert(exists(&kind_sandbox, "p-1")); /* goes by its owner reference */
    ck_assert_int_eq(pass("c"), 0);
    ck_assert_int_eq(cluster.events, 3); /* adopted, expired, deleting */
}
END_TEST

/* C-t070, C-t071: the pod ends, the time to live runs, and with 0 it is over at once. */
START_TEST(test_ttl)
{
    post("c", "", ",\"lifecycle\":{\"ttlSecondsAfterFinished\":60}");
    pass("c");
    make_finished("c", "2026-01-02T03:04:00Z"); /* 5 s ago */
    ck_assert_int_eq(pass("c"), 55000);
    expect("c", "False", "PodSucceeded", "c");
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "spec|lifecycle|ttlSecondsAfterFinished",
                    "null");
    ck_assert_int_eq(pass("c"), 0);
    post("d", "", ",\"lifecycle\":{\"ttlSecondsAfterFinished\":0}");
    pass("d");
    make_finished("d", "2026-01-02T03:04:05Z");
    ck_assert_int_eq(pass("d"), 1); /* mirrored and expired in one write */
    expect("d", "False", "ClaimExpired", "d");
    ck_assert_int_eq(pass("d"), 0);
    ck_assert(!exists(&kind_sandbox, "d"));
    SCOPED(json_free_p) cJSON *claim = read_claim("d");
    ck_assert_ptr_nonnull(condition_find(json_at(claim, "status.conditions"), "Finished"));
}
END_TEST

/* ---- the end, in other ways ---- */

/* C-t066, C-t069: the Sandbox has expired before its claim. */
START_TEST(test_delete_with_expired_sandbox)
{
    SCOPED_FREE char *lifecycle = xasprintf("{" PAST ",\"shutdownPolicy\":\"%s\"}", policies[_i]);
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    pool_world_edit(reg(), &kind_sandbox, "p-1", "status",
                    "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\",\"reason\":"
                    "\"SandboxExpired\",\"message\":\"Sandbox has expired\",\"lastTransitionTime\":"
                    "\"2026-01-02T03:04:06Z\"}]}");
    pass("c");
    expect("c", "False", "SandboxExpired", "p-1");
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "spec|lifecycle", lifecycle);
    ck_assert_int_eq(pass("c"), 1);
    ck_assert_int_eq(pass("c"), 0);
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    ck_assert(_i == 0 ? !claim : meta_is_terminating(claim));
}
END_TEST

static int64_t tick(const struct clock *c)
{
    struct clock_fake *f = c->ctx;
    clock_fake_advance(f, 1);
    return clock_unix_ms(&f->clock);
}

/* A millisecond goes by with each look at the clock: wherever in a pass the time runs out, there is
 * another pass. */
START_TEST(test_end_comes_during_a_pass)
{
    const struct clock ticking = {.unix_ms = tick, .monotonic_ms = tick, .ctx = &pw.w.clock};
    struct pass_env with_ticks = env();
    with_ticks.clock = &ticking;
    post("c", "", ",\"lifecycle\":{\"shutdownTime\":\"2026-01-02T03:04:25Z\"}"); /* 20 s from now */
    ck_assert_int_eq(pass("c"), 20000);
    pass_sandbox("c");
    ck_assert_int_eq(pass("c"), 20000);
    claim_reconciler_free(claims);
    claims = claim_reconciler_new(&(struct claim_reconciler_config){
        .env = with_ticks, .settings = {.label_domains = pool_world_domains}});
    clock_fake_advance(&pw.w.clock, 20000 - _i);
    ck_assert_int_gt(pass("c"), 0);
}
END_TEST

START_TEST(test_earlier_of_two) /* C-t082 */
{
    post("c", "",
         ",\"lifecycle\":{\"ttlSecondsAfterFinished\":60,\"shutdownTime\":"
         "\"2026-01-02T03:04:25Z\"}"); /* 20 s from now */
    pass("c");
    make_finished("c", "2026-01-02T03:04:00Z");
    ck_assert_int_eq(pass("c"), 20000);
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "spec|lifecycle|ttlSecondsAfterFinished",
                    "15");
    ck_assert_int_eq(pass("c"), 10000);
    clock_fake_advance(&pw.w.clock, 10000);
    ck_assert_int_eq(pass("c"), 1);
    expect("c", "False", "ClaimExpired", "c");
}
END_TEST

START_TEST(test_finished_stays) /* C-t083 */
{
    post("c", "", ",\"lifecycle\":{\"shutdownPolicy\":\"Delete\"}");
    pass("c");
    make_finished("c", "2026-01-02T03:04:00Z");
    clock_fake_advance(&pw.w.clock, 24 * 3600000);
    ck_assert_int_eq(pass("c"), 0);
    expect("c", "False", "PodSucceeded", "c");
    ck_assert(exists(&kind_sandbox, "c"));
}
END_TEST

START_TEST(test_held_while_retained) /* C-t084 */
{
    post("c", "", ",\"lifecycle\":{\"ttlSecondsAfterFinished\":0}");
    pass("c");
    pool_world_edit(reg(), &kind_sandbox, "c", "metadata|finalizers", "[\"a/b\"]");
    make_finished("c", "2026-01-02T03:04:05Z");
    ck_assert_int_eq(pass("c"), 1);
    pass("c");
    expect("c", "False", "ClaimExpired", "c");
    SCOPED(json_free_p) cJSON *held = read_claim("c");
    ck_assert_ptr_nonnull(condition_find(json_at(held, "status.conditions"), "Finished"));
    pool_world_edit(reg(), &kind_sandbox, "c", "metadata|finalizers", "null");
    pass("c");
    expect("c", "False", "ClaimExpired", "-");
    SCOPED(json_free_p) cJSON *after = read_claim("c");
    ck_assert_ptr_nonnull(condition_find(json_at(after, "status.conditions"), "Finished"));
}
END_TEST

SUITE(claim_end)
{
    TCase *tc = tcase_create("claim_end");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    const TTest *const tests[] = {test_retain,
                                  test_retain_foreign,
                                  test_ttl,
                                  test_failed_clean_up,
                                  test_earlier_of_two,
                                  test_finished_stays,
                                  test_held_while_retained};
    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        tcase_add_test(tc, tests[i]);
    tcase_add_loop_test(tc, test_delete_with_expired_sandbox, 0, (int)ARRAY_LEN(policies));
    tcase_add_loop_test(tc, test_delete, 0, (int)ARRAY_LEN(policies));
    tcase_add_loop_test(tc, test_end_comes_during_a_pass, 1, 25);
    tcase_add_loop_test(tc, test_extended_while_it_ends, 0, (int)ARRAY_LEN(ends));
    tcase_add_loop_test(tc, test_time_that_never_begins, 0, (int)ARRAY_LEN(endless));
    tcase_add_loop_test(tc, test_unserved_claim_ends, 0, (int)ARRAY_LEN(ends));
    suite_add_tcase(s, tc);
}
