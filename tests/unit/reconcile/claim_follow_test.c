/* What follows a claim: the metadata of its Pod, and its pool. Names like C-t021 are those of the
 * contract's checklist. */
#include "tests/unit/reconcile/claim_fixture.h"

#include "reconcile/warmpool_pass.h"

/* ---- metadata ---- */

/* C-t021, C-t022: bad metadata is not bound in the POST, says so, and is final; corrected it goes
 * on. */
START_TEST(test_invalid_metadata) /* IL-015 */
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", ",\"additionalPodMetadata\":{\"labels\":{\"a\":\"1\"}}");
    expect("c", "-", "-", "-");
    ck_assert_int_eq(pass("c"), 0);
    expect("c", "False", "InvalidMetadata", "-");
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "spec|additionalPodMetadata", "null");
    pass("c");
    expect("c", "True", "DependenciesReady", "p-1");
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "spec|additionalPodMetadata",
                    "{\"labels\":{\"a\":\"1\"}}");
    ck_assert_int_eq(pass("c"), 0);
    expect("c", "False", "InvalidMetadata", "p-1"); /* the binding stays */
}
END_TEST

/* a conflict is found before anything is assigned. */
START_TEST(test_conflicting_metadata)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    pool_world_edit(reg(), &kind_sandbox_template, "t", "spec|podTemplate|metadata|annotations|n",
                    "\"1\"");
    post("c", "", ",\"additionalPodMetadata\":{\"annotations\":{\"n\":\"2\"}}");
    ck_assert_int_lt(pass("c"), 0);
    expect("c", "False", "ReconcilerError", "-");
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    ck_assert_ptr_null(meta_annotation(claim, ANNOTATION_SANDBOX_NAME));
    post("d", "", "");
    expect("d", "True", "DependenciesReady", "p-1");
}
END_TEST

/* C23: the same found while a half adoption is finished; the assignment stays. */
START_TEST(test_conflict_of_an_assigned_member)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    pool_world_edit(reg(), &kind_sandbox_template, "t", "spec|podTemplate|metadata|annotations|n",
                    "\"1\"");
    post("c", ",\"annotations\":{\"agents.x-k8s.io/sandbox-name\":\"p-1\"}",
         ",\"additionalPodMetadata\":{\"annotations\":{\"n\":\"2\"}}");
    ck_assert_int_lt(pass("c"), 0);
    expect("c", "False", "ReconcilerError", "-");
    expect_message(
        "c", "Error seen: failed to complete adoption of \"p-1\": metadata override conflict: "
             "annotation \"n\" is defined in template with value \"1\", but claim requests "
             "\"2\"");
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    ck_assert_str_eq(meta_annotation(claim, ANNOTATION_SANDBOX_NAME), "p-1");
}
END_TEST

static void ask_for_metadata(const char *value)
{
    SCOPED_FREE char *json = xasprintf("{\"labels\":{\"sandbox.users.io/a\":\"%s\"}}", value);
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "spec|additionalPodMetadata", json);
}

/* C15: changed metadata reaches the bound Sandbox; without a template it cannot. R-05: what has
 * reached it already needs neither pool nor template. */
START_TEST(test_metadata_follows)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    ask_for_metadata("1");
    pass("c");
    SCOPED(json_free_p) cJSON *sandbox = pool_world_read(reg(), &kind_sandbox, "p-1");
    ck_assert_ptr_nonnull(
        json_get(json_at(sandbox, "spec.podTemplate.metadata.labels"), "sandbox.users.io/a"));
    delete_object(&kind_sandbox_template, "t");
    pass("c");
    expect("c", "True", "DependenciesReady", "p-1");
    ask_for_metadata("2");
    pass("c");
    expect("c", "False", "TemplateNotFound", "p-1");
    expect_message("c",
                   "failed to get template for metadata propagation: SandboxTemplate \"t\" not "
                   "found");
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "spec|additionalPodMetadata", "{}");
    pass("c"); /* C-t007 */
    expect("c", "True", "DependenciesReady", "p-1");
}
END_TEST

/* the pool is gone, the template that the Sandbox was made from is not. */
START_TEST(test_metadata_without_the_pool)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    delete_object(&kind_sandbox_warm_pool, "p");
    ask_for_metadata("1");
    pass("c");
    expect("c", "True", "DependenciesReady", "p-1");
    SCOPED(json_free_p) cJSON *sandbox = pool_world_read(reg(), &kind_sandbox, "p-1");
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    ck_assert(claim_metadata_is_applied(claim, sandbox));
}
END_TEST

static const char *template_hash_of(const char *sandbox_name, const char *template_name)
{
    char hash[NAME_HASH_SIZE];
    SCOPED(json_free_p) cJSON *sandbox = pool_world_read(reg(), &kind_sandbox, sandbox_name);
    template_ref_hash(template_name, hash);
    return str_equal(meta_label(sandbox, LABEL_TEMPLATE_REF_HASH), hash) ? template_name
                                                                         : "another";
}

/* the bound Sandbox stays under the policy of the template that it was made from, whatever
 * its pool names later, until that template is gone. */
START_TEST(test_stays_with_its_template)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    SCOPED(json_free_p) cJSON *template = pool_world_read(reg(), &kind_sandbox_template, "t");
    json_remove(template, "metadata");
    json_set_str(json_ensure_object(template, "metadata"), "name", "u");
    SCOPED_FREE char *text = json_to_str(template);
    object_unref(pool_world_put(reg(), &kind_sandbox_template, text));
    pool_world_edit(reg(), &kind_sandbox_warm_pool, "p", "spec|sandboxTemplateRef|name", "\"u\"");
    pass("c");
    ck_assert_str_eq(template_hash_of("p-1", "t"), "t");
    expect("c", "True", "DependenciesReady", "p-1");
    delete_object(&kind_sandbox_template, "t");
    pass("c");
    ck_assert_str_eq(template_hash_of("p-1", "u"), "u");
    expect("c", "True", "DependenciesReady", "p-1");
}
END_TEST

static void expect_idle_timeout(const char *sandbox_name, const char *timeout)
{
    SCOPED(json_free_p) cJSON *sandbox = pool_world_read(reg(), &kind_sandbox, sandbox_name);
    ck_assert_pstr_eq(meta_annotation(sandbox, ANNOTATION_IDLE_TIMEOUT), timeout);
}

/* A claim's idle timeout is its Sandbox's: bound in the POST, made cold, or wished for later. */
START_TEST(test_idle_timeout)
{
    static const char asks[] = ",\"annotations\":{\"" ANNOTATION_IDLE_TIMEOUT "\":\"15m\"}";
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    expect_idle_timeout("p-1", NULL);
    post("c", asks, "");
    expect_idle_timeout("p-1", "15m");
    post("d", asks, "");
    pass("d");
    expect_idle_timeout("d", "15m");
    pool_world_edit(reg(), &kind_sandbox_claim, "c",
                    "metadata|annotations|" ANNOTATION_IDLE_TIMEOUT, "\"1h\"");
    pass("c");
    expect_idle_timeout("p-1", "1h");
    int64_t settled = registry_revision(reg());
    pass("c");
    ck_assert_int_eq(registry_revision(reg()), settled);
}
END_TEST

/* ---- the pool behind them ---- */

static size_t count_sandboxes(void)
{
    SCOPED(list_result_fini) struct list_result list = {0};
    struct list_request req = {
        .kind = &kind_sandbox, .namespace_name = "ns", .version = {.match = READ_LATEST}};
    ck_assert_int_eq(registry_list(reg(), &req, &list, NULL), 0);
    return list.n;
}

static int64_t pass_pool(struct warmpool_reconciler *pools)
{
    struct loop_result r = {0};
    ck_assert_int_eq(warmpool_pass(pools, "ns/p", &r), 0);
    return r.again_after_ms;
}

/* The refill waits while claims come, a second at most, and not when few members are left. */
START_TEST(test_refill_gives_way)
{
    const struct pass_env e = env();
    struct warmpool_reconciler *pools =
        warmpool_reconciler_new(&e, &(struct warmpool_settings){.lull_ms = 60000});
    pool_world_edit(reg(), &kind_sandbox_warm_pool, "p", "spec|replicas", "3");
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    pool_world_member(reg(), "p-2", "n", MEMBER_READY);
    pass_pool(pools); /* the first fill waits for nothing */
    ck_assert_uint_eq(count_sandboxes(), 3);
    post("c", "", "");
    ck_assert_int_gt(pass_pool(pools), 0);
    ck_assert_uint_eq(count_sandboxes(), 3);
    clock_fake_advance(&pw.w.clock, 1000);
    pass_pool(pools);
    ck_assert_uint_eq(count_sandboxes(), 4);
    post("d", "", "");
    pass_pool(pools);
    ck_assert_uint_eq(count_sandboxes(), 5);
    warmpool_reconciler_free(pools);
}
END_TEST

SUITE(claim_follow)
{
    TCase *tc = tcase_create("claim_follow");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    const TTest *const tests[] = {test_invalid_metadata,
                                  test_conflicting_metadata,
                                  test_metadata_follows,
                                  test_conflict_of_an_assigned_member,
                                  test_metadata_without_the_pool,
                                  test_stays_with_its_template,
                                  test_idle_timeout,
                                  test_refill_gives_way};
    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        tcase_add_test(tc, tests[i]);
    suite_add_tcase(s, tc);
}
