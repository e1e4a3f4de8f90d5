/* Whole passes over claims: writes are counted, every call of the store fails once, and a claim is
 * followed from its POST on. Names like C-t001 are those of the contract's checklist. */
#include "tests/unit/reconcile/claim_fixture.h"

/* ---- warm: bound in the POST ---- */

/* From POST to the pod with its claim's labels: two writes of ours, one of the cluster. C-t178,
 * C-t179, C-t185, G-t015, O-t002, O-t005, O-t032. */
START_TEST(test_writes_of_a_warm_claim) /* IL-113 */
{
    pool_world_member(reg(), "p-1", "n", MEMBER_PENDING);
    pass_sandbox("p-1"); /* makes the Pod */
    cJSON *pod = fake_cluster_find(&cluster, CHILD_POD, "ns", "p-1");
    json_set(json_get(pod, "status"), "phase", json_string("Running"));
    json_set(json_get(pod, "status"), "podIPs", world_tree("[{\"ip\":\"10.0.0.9\"}]"));
    json_set(json_get(pod, "status"), "conditions",
             world_tree("[{\"type\":\"Ready\",\"status\":\"True\"}]"));
    pass_sandbox("p-1");
    int64_t before = registry_revision(reg());
    int cluster_writes = cluster.creates + cluster.patches + cluster.updates + cluster.deletes;
    post("c", "", "");
    pass("c");
    pass_sandbox("p-1");
    pass("c");
    ck_assert_int_le(registry_revision(reg()) - before, 2);
    ck_assert_int_le(
        cluster.creates + cluster.patches + cluster.updates + cluster.deletes - cluster_writes, 1);
    ck_assert_ptr_null(
        meta_label(fake_cluster_find(&cluster, CHILD_POD, "ns", "p-1"), LABEL_WARM_POOL));
    expect("c", "True", "DependenciesReady", "p-1");
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    ck_assert_int_eq(json_i64_or(claim, "metadata.generation", 0), 1); /* */
    ck_assert_ptr_nonnull(meta_annotation(claim, ANNOTATION_FIRST_READY_AT));
    ck_assert_ptr_nonnull(meta_annotation(claim, ANNOTATION_FIRST_OBSERVED_AT));
    ck_assert_double_eq(counted("warm", "ready"), 1);
    int64_t settled = registry_revision(reg());
    pass("c"); /* C-t128: nothing more to do, ever */
    ck_assert_int_eq(registry_revision(reg()), settled);
    ck_assert_double_eq(counted("warm", "ready"), 1);
}
END_TEST

/* Once, by the leader that was there; not by one that comes later. */
START_TEST(test_bound_claim_is_told_about_once)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    pass("c");
    ck_assert_str_eq(cluster.last_event, "SandboxAdopted");
    ck_assert_int_eq(cluster.events, 1);
    pass("c");
    ck_assert_int_eq(cluster.events, 1);
    clock_fake_advance(&pw.w.clock, 5000);
    stop_reconcilers();
    start_reconcilers();
    pass("c");
    ck_assert_int_eq(cluster.events, 1);
}
END_TEST

/* C-t091, C-t182: a member that is not ready; later it is. */
START_TEST(test_unready_member) /* IL-029 */
{
    pool_world_member(reg(), "p-1", "n", MEMBER_ADDRESS);
    post("c", "", "");
    expect("c", "False", "DependenciesNotReady", "p-1");
    pass("c");
    SCOPED(json_free_p) cJSON *before = read_claim("c");
    ck_assert_ptr_null(meta_annotation(before, ANNOTATION_FIRST_READY_AT));
    make_ready("p-1");
    pass("c");
    expect("c", "True", "DependenciesReady", "p-1");
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    ck_assert_ptr_nonnull(meta_annotation(claim, ANNOTATION_FIRST_READY_AT));
}
END_TEST

/* ---- warm: bound by the reconciler ---- */

START_TEST(test_reconciler_adopts)
{
    post("c", "", "");
    expect("c", "-", "-", "-");
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    pass("c");
    expect("c", "True", "DependenciesReady", "p-1");
    ck_assert_str_eq(cluster.last_event, "SandboxAdopted");
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    ck_assert_str_eq(pool_world_bound(reg(), claim), "p-1");
    pass("c");
    ck_assert_int_eq(cluster.events, 1);
}
END_TEST

/* C-t092, C-t110, C-t112, C-t113 */
START_TEST(test_grace) /* IL-023 */
{
    pool_world_member(reg(), "p-1", "", MEMBER_PENDING);
    post("c", "", "");
    int64_t again = pass("c");
    ck_assert(again > 0 && again <= 500);
    expect("c", "-", "-", "-");
    pool_world_edit(reg(), &kind_sandbox, "p-1", "status|podIPs", "[\"10.0.0.1\"]");
    pass("c");
    expect("c", "False", "DependenciesNotReady", "p-1");
    pool_world_member(reg(), "p-2", "", MEMBER_PENDING);
    post("d", "", "");
    clock_fake_advance(&pw.w.clock, 2000);
    pass("d");
    expect("d", "False", "SandboxNotReady", "d");
}
END_TEST

/* C-t118, C-t126, C-t181: an assignment by hand is finished, without event and counter; IL-037. */
START_TEST(test_finish_adoption)
{
    pool_world_member(reg(), "p-1", "", MEMBER_PENDING);
    pool_world_member(reg(), "p-2", "n", MEMBER_READY);
    post("c", ",\"annotations\":{\"agents.x-k8s.io/sandbox-name\":\"p-1\"}", "");
    expect("c", "-", "-", "-"); /* not bound over its assignment */
    pass("c");
    expect("c", "False", "DependenciesNotReady", "p-1");
    ck_assert_int_eq(cluster.events, 0);
    post("l", ",\"labels\":{\"agents.x-k8s.io/sandbox-name\":\"p-2\"}", ""); /* C-t135 */
    pass("l");
    expect("l", "True", "DependenciesReady", "p-2");
    SCOPED(json_free_p) cJSON *claim = read_claim("l");
    ck_assert_ptr_null(meta_label(claim, ANNOTATION_SANDBOX_NAME));
    ck_assert_str_eq(meta_annotation(claim, ANNOTATION_SANDBOX_NAME), "p-2");
    ck_assert_uint_eq(pool_world_owned(reg(), NULL), 2);
}
END_TEST

/* C-t132, C-t133, C-t139, C-t140: an assignment that leads nowhere is dropped and the claim goes
 * on. */
START_TEST(test_stale_assignment)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("a", "", "");
    post("b", ",\"annotations\":{\"agents.x-k8s.io/sandbox-name\":\"p-1\"}", "");
    post("c", ",\"labels\":{\"agents.x-k8s.io/sandbox-name\":\"nowhere\"}", "");
    post("d", ",\"annotations\":{\"agents.x-k8s.io/sandbox-name\":\"nowhere\"}", "");
    pass("b");
    pass("c");
    pass("d");
    expect("d", "False", "SandboxNotReady", "d");
    expect("b", "False", "SandboxNotReady", "b");
    expect("c", "False", "SandboxNotReady", "c");
    SCOPED(json_free_p) cJSON *b = read_claim("b"), *c = read_claim("c");
    ck_assert_ptr_null(meta_annotation(b, ANNOTATION_SANDBOX_NAME));
    ck_assert_ptr_null(meta_label(c, ANNOTATION_SANDBOX_NAME));
}
END_TEST

/* A bound Sandbox that somebody deletes is replaced, from the pool or by a new one. */
START_TEST(test_sandbox_lost)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    world_delete(&pw.w, "ns", "p-1");
    pool_world_member(reg(), "p-2", "n", MEMBER_READY);
    pass("c");
    expect("c", "True", "DependenciesReady", "p-2");
    world_delete(&pw.w, "ns", "p-2");
    pass("c");
    expect("c", "False", "SandboxNotReady", "c");
}
END_TEST

/* ---- cold ---- */

/* C-t001, C-t015, C-t086, C-t111, O-t020 */
START_TEST(test_cold)
{
    post("c", ",\"labels\":{\"agents.x-k8s.io/created-by\":\"x\"}", "");
    pass("c");
    expect("c", "False", "SandboxNotReady", "c");
    ck_assert_str_eq(cluster.last_event, "SandboxProvisioned");
    ck_assert_double_eq(counted("cold", "not_ready"), 1);
    make_ready("c");
    pass("c");
    expect("c", "True", "DependenciesReady", "c");
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    SCOPED(json_free_p) cJSON *sandbox = pool_world_read(reg(), &kind_sandbox, "c");
    ck_assert_ptr_null(meta_annotation(claim, ANNOTATION_SANDBOX_NAME));
    ck_assert_str_eq(meta_label(sandbox, LABEL_LAUNCH_TYPE), "cold");
    ck_assert_int_eq(cluster.events, 1);
}
END_TEST

/* IL-028: this process does not hear of its own writes for a while: it makes nothing twice, and no
 * word of it comes to status. */
START_TEST(test_cold_without_hearing)
{
    post("c", "", "");
    int64_t before = registry_revision(reg());
    struct registry *other = start_deaf();
    for (int i = 0; i < 3; i++)
        pass("c"); /* may fail, and comes back then */
    hear_again(other);
    ck_assert_int_ge(pass("c"), 0);
    expect("c", "False", "SandboxNotReady", "c");
    ck_assert_int_eq(registry_revision(reg()), before + 2); /* the Sandbox, the claim's status */
    ck_assert_int_eq(cluster.events, 1);
    ck_assert_double_eq(counted("cold", "not_ready"), 1);
}
END_TEST

/* C-t032: claims of their own are never bound, not in the POST and not later. */
START_TEST(test_cold_only)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    pool_world_edit(reg(), &kind_sandbox_template, "t", "spec|envVarsInjectionPolicy",
                    "\"Allowed\"");
    post("c", "", ",\"env\":[{\"name\":\"N\",\"value\":\"1\"}]");
    pass("c");
    expect("c", "False", "SandboxNotReady", "c");
    ck_assert_uint_eq(pool_world_owned(reg(), NULL), 1);
}
END_TEST

/* C-t003, C-t004, C-t017, C-t018: the pool is missing, then the template, then neither. */
START_TEST(test_missing) /* IL-033 */
{
    SCOPED(object_unref_p) struct object *o = NULL;
    bool gone;
    struct delete_options opts = {.orphan_dependents = -1, .deadline_ms = world_deadline()};
    ck_assert_int_eq(
        registry_delete(reg(), &kind_sandbox_template, "ns", "t", &opts, &o, &gone, NULL), 0);
    SCOPED(err_fini) struct err err = {0};
    SCOPED(json_free_p) cJSON *claim = NULL;
    cJSON *other = pool_world_claim("o", "", "");
    json_set_str(json_at(other, "spec.warmPoolRef"), "name", "q");
    ck_assert_int_eq(pool_world_post(reg(), other, false, &claim, &err), 0);
    ck_assert_int_eq(pass("o"), 60000);
    expect("o", "False", "WarmPoolNotFound", "-");
    expect_message("o", "SandboxWarmPool \"q\" not found");
    post("c", "", "");
    ck_assert_int_eq(pass("c"), 60000);
    expect("c", "False", "TemplateNotFound", "-");
    expect_message("c", "SandboxTemplate \"t\" not found");
    int64_t settled = registry_revision(reg());
    pass("c");
    ck_assert_int_eq(registry_revision(reg()), settled); /* IL-015: no hot loop of writes */
}
END_TEST

/* A claim on its way out with its namespace makes no noise and no new Sandbox. */
START_TEST(test_namespace_ends)
{
    post("c", "", "");
    pw.w.namespace_state = NAMESPACE_TERMINATING;
    int64_t before = registry_revision(reg());
    ck_assert_int_eq(pass("c"), 60000);
    ck_assert_int_eq(registry_revision(reg()), before);
    pw.w.namespace_state = NAMESPACE_ACTIVE;
    pass("c");
    expect("c", "False", "SandboxNotReady", "c");
}
END_TEST

/* C-t005: the name belongs to somebody else; not bound over it either. */
START_TEST(test_name_taken)
{
    object_unref(world_create(&pw.w, "ns", "c", ""));
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    expect("c", "-", "-", "-");
    ck_assert_int_lt(pass("c"), 0);
    expect("c", "False", "ReconcilerError", "-");
    expect_message("c", "Error seen: sandbox \"c\" is not controlled by claim \"c\". Please use a "
                        "different claim name or delete the sandbox manually");
    world_delete(&pw.w, "ns", "c");
    pass("c");
    expect("c", "True", "DependenciesReady", "p-1");
}
END_TEST

/* ---- who is taken ---- */

/* C-t114, C-t115, C-t172: a younger one that is ready goes first; who is passed by keeps its
 * place. */
START_TEST(test_order_of_members) /* IL-050 */
{
    pool_world_member(reg(), "p-1", "", MEMBER_ADDRESS);
    pool_world_member(reg(), "p-2", "", MEMBER_READY);
    pool_world_member(reg(), "p-3", "", MEMBER_READY);
    pool_world_member(reg(), "p-4", "", MEMBER_ADDRESS);
    static const char *const want[][2] = {{"a", "p-2"}, {"b", "p-3"}, {"c", "p-1"}, {"d", "p-4"}};
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        post(want[i][0], "", "");
        SCOPED(json_free_p) cJSON *claim = read_claim(want[i][0]);
        ck_assert_str_eq(pool_world_bound(reg(), claim), want[i][1]);
    }
}
END_TEST

START_TEST(test_only_unfit_members) /* C-t089 */
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    pool_world_member(reg(), "p-2", "n", MEMBER_READY);
    pool_world_edit(reg(), &kind_sandbox, "p-1", "metadata|ownerReferences", "null");
    pool_world_edit(reg(), &kind_sandbox, "p-2", "metadata|finalizers", "[\"a/b\"]");
    world_delete(&pw.w, "ns", "p-2");
    post("c", "", "");
    expect("c", "-", "-", "-");
    pass("c");
    expect("c", "False", "SandboxNotReady", "c");
}
END_TEST

START_TEST(test_pool_gone) /* C-t164 */
{
    SCOPED(object_unref_p) struct object *o = NULL;
    bool gone;
    struct delete_options opts = {.orphan_dependents = -1, .deadline_ms = world_deadline()};
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    ck_assert_int_eq(
        registry_delete(reg(), &kind_sandbox_warm_pool, "ns", "p", &opts, &o, &gone, NULL), 0);
    post("c", "", "");
    expect("c", "-", "-", "-");
    pass("c");
    expect("c", "False", "WarmPoolNotFound", "-");
    ck_assert_uint_eq(pool_world_owned(reg(), NULL), 0);
}
END_TEST

/* C-t125, C-t177: a bound claim takes no second member; a lost launch type is filled in, once. */
START_TEST(test_launch_type_is_filled_in)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    pool_world_member(reg(), "p-2", "n", MEMBER_READY);
    pass("c");
    int64_t settled = registry_revision(reg());
    pool_world_edit(reg(), &kind_sandbox, "p-1", "metadata|labels|" LABEL_LAUNCH_TYPE, "null");
    pass("c");
    SCOPED(json_free_p) cJSON *sandbox = pool_world_read(reg(), &kind_sandbox, "p-1");
    ck_assert_str_eq(meta_label(sandbox, LABEL_LAUNCH_TYPE), "warm");
    ck_assert_int_eq(registry_revision(reg()), settled + 2); /* the edit, the repair */
    pass("c");
    ck_assert_int_eq(registry_revision(reg()), settled + 2);
    expect("c", "True", "DependenciesReady", "p-1");
    ck_assert_uint_eq(pool_world_owned(reg(), NULL), 1);
}
END_TEST

/* C-t123, O-t021: with the binding come pod-name and the claim's maker, in the same write. */
START_TEST(test_what_comes_with_the_binding)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    SCOPED(json_free_p) cJSON *sandbox = pool_world_read(reg(), &kind_sandbox, "p-1");
    ck_assert_str_eq(meta_annotation(sandbox, ANNOTATION_POD_NAME), "p-1");
    ck_assert_ptr_null(meta_label(sandbox, LABEL_CREATED_BY));
    pass("c");
    ck_assert_double_eq(counted("warm", "ready"), 1);
}
END_TEST

START_TEST(test_pod_of_a_bound_claim) /* C-t124 */
{
    pool_world_member(reg(), "p-1", "n", MEMBER_PENDING);
    pass_sandbox("p-1");
    cJSON *pod = fake_cluster_find(&cluster, CHILD_POD, "ns", "p-1");
    json_set(json_get(pod, "status"), "phase", json_string("Running"));
    json_set(json_get(pod, "status"), "podIPs", world_tree("[{\"ip\":\"10.0.0.9\"}]"));
    json_set(json_get(pod, "status"), "conditions",
             world_tree("[{\"type\":\"Ready\",\"status\":\"True\"}]"));
    pass_sandbox("p-1");
    post("c", "", "");
    pass_sandbox("p-1");
    pass("c");
    expect("c", "True", "DependenciesReady", "p-1");
    fake_cluster_remove(&cluster, CHILD_POD, "ns", "p-1");
    pass_sandbox("p-1");
    pass("c");
    expect("c", "False", "DependenciesNotReady", "p-1");
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    SCOPED(json_free_p) cJSON *sandbox = pool_world_read(reg(), &kind_sandbox, "p-1");
    ck_assert(claim_controls(claim, sandbox));
}
END_TEST

START_TEST(test_assigned_to_an_old_claim) /* C-t134 */
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("a", "", "");
    SCOPED(json_free_p) cJSON *a = read_claim("a");
    SCOPED_FREE char *owner =
        xasprintf("[{\"apiVersion\":\"extensions.agents.x-k8s.io/v1alpha1\",\"kind\":"
                  "\"SandboxClaim\",\"name\":\"a\",\"uid\":\"%s\",\"controller\":true}]",
                  meta_uid(a));
    pool_world_edit(reg(), &kind_sandbox, "p-1", "metadata|ownerReferences", owner);
    post("b", ",\"annotations\":{\"agents.x-k8s.io/sandbox-name\":\"p-1\"}", "");
    pass("b");
    expect("b", "False", "SandboxNotReady", "b");
    SCOPED(json_free_p) cJSON *b = read_claim("b");
    ck_assert_ptr_null(meta_annotation(b, ANNOTATION_SANDBOX_NAME));
}
END_TEST

/* The number of creation latencies of warm claims. */
static double measured(void)
{
    SCOPED(buf_fini) struct buf text = {0};
    metric_print_all(&text);
    static const char line[] = "agent_sandbox_creation_latency_ms_count{namespace=\"ns\","
                               "launch_type=\"warm\",sandbox_template=\"t\"} ";
    const char *at = strstr(buf_cstr(&text), line);
    return at ? strtod(at + sizeof line - 1, NULL) : 0;
}

/* O-t012, O-t015: who was ready once is not measured again. */
START_TEST(test_measured_once)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_ADDRESS);
    post("c", "", "");
    pass("c");
    ck_assert_double_eq(measured(), 0);
    make_ready("p-1");
    pass("c");
    ck_assert_double_eq(measured(), 1);
    make_finished("p-1", "2026-01-02T03:04:05Z");
    pass("c");
    expect("c", "False", "PodSucceeded", "p-1");
    make_ready("p-1");
    pass("c");
    expect("c", "True", "DependenciesReady", "p-1");
    ck_assert_double_eq(measured(), 1);
}
END_TEST

/* O-t023, O-t024, O-t026: the first sight is kept until the first write; a namesake has its own. */
START_TEST(test_first_sight)
{
    pool_world_member(reg(), "p-1", "", MEMBER_PENDING);
    post("c", "", "");
    pass("c");
    expect("c", "-", "-", "-");
    clock_fake_advance(&pw.w.clock, 2500);
    pass("c"); /* cold: nobody got an address in time */
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    ck_assert_str_eq(meta_annotation(claim, ANNOTATION_FIRST_OBSERVED_AT),
                     "2026-01-02T03:04:05.000000Z");
    remove_claim("c");
    world_delete(&pw.w, "ns", "p-1");
    world_delete(&pw.w, "ns", "c");
    post("c", "", "");
    pass("c");
    SCOPED(json_free_p) cJSON *again = read_claim("c");
    ck_assert_str_eq(meta_annotation(again, ANNOTATION_FIRST_OBSERVED_AT),
                     "2026-01-02T03:04:07.500000Z");
}
END_TEST

/* O-t025, O-t027: a claim is remembered until a pass finds it gone; one made anew meanwhile takes
 * its place, and one that this process never saw leaves nothing behind. */
START_TEST(test_who_was_seen)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    pass("c");
    expect("c", "True", "DependenciesReady",
           "p-1"); /* ready: still remembered, for its next pass */
    ck_assert_uint_eq(claim_reconciler_seen(claims), 1);
    remove_claim("c");
    post("c", "", "");
    pass("c");
    pass("c");
    ck_assert_uint_eq(claim_reconciler_seen(claims), 1);
    remove_claim("c");
    pass("c");
    pass("never-there");
    ck_assert_uint_eq(claim_reconciler_seen(claims), 0);
    stop_reconcilers();
    post("d", "", "");
    start_reconcilers();
    remove_claim("d");
    pass("d");
    ck_assert_uint_eq(claim_reconciler_seen(claims), 0);
}
END_TEST

/* C-t130, C-t131, C-t136: another server has bound the claim meanwhile: a pass that does not know
 * it yet writes nothing, takes nobody else, and takes nothing back. */
START_TEST(test_bound_elsewhere)
{
    post("c", "", "");
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    pool_world_member(reg(), "p-2", "n", MEMBER_READY);
    struct registry *mine = reg(), *other = start_deaf();
    pw.w.registry = other;
    stop_reconcilers();
    start_reconcilers();
    pass("c");
    pw.w.registry = mine;
    stop_reconcilers();
    start_reconcilers();
    int64_t written = stored_revision();
    pass("c");
    ck_assert_int_eq(stored_revision(), written);
    hear_again(other);
    expect("c", "True", "DependenciesReady", "p-1");
    pass("c");
    ck_assert_int_eq(stored_revision(), written);
    ck_assert_uint_eq(pool_world_owned(reg(), NULL), 1);
}
END_TEST

/* C-t137: the member that was chosen has changed meanwhile: the claim gets the next one, and the
 * first stays a candidate. */
START_TEST(test_member_changed_meanwhile)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    pool_world_member(reg(), "p-2", "n", MEMBER_READY);
    struct registry *other = start_deaf();
    pool_world_edit(other, &kind_sandbox, "p-1", "metadata|labels|x", "\"y\"");
    post("c", "", "");
    hear_again(other);
    expect("c", "True", "DependenciesReady", "p-2");
    post("d", "", "");
    expect("d", "True", "DependenciesReady", "p-1");
}
END_TEST

/* C-t129: a new process, whose caches are those of a new process, keeps what was said. */
START_TEST(test_restart_keeps_status)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", ",\"lifecycle\":{\"ttlSecondsAfterFinished\":60}");
    pass("c");
    make_finished("p-1", "2026-01-02T03:04:05Z");
    pass("c");
    SCOPED(json_free_p) cJSON *before = read_claim("c");
    int64_t written = stored_revision();
    stop_reconcilers();
    world_stop_registry(&pw.w);
    world_start_registry(&pw.w);
    start_reconcilers();
    ck_assert_int_eq(pass("c"), 60000);
    SCOPED(json_free_p) cJSON *after = read_claim("c");
    ck_assert(json_equal(before, after));
    ck_assert_int_eq(stored_revision(), written);
}
END_TEST

static void set_conditions(const char *scheduled_reason)
{
    SCOPED_FREE char *json = xasprintf(
        "[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"DependenciesReady\","
        "\"message\":\"Pod is Ready\",\"lastTransitionTime\":\"2026-01-02T03:04:05Z\"},"
        "{\"type\":\"PodScheduled\",\"status\":\"True\",\"reason\":\"%s\",\"message\":\"\","
        "\"lastTransitionTime\":\"2026-01-02T03:04:05Z\"}]",
        scheduled_reason);
    pool_world_edit(reg(), &kind_sandbox, "p-1", "status|conditions", json);
}

/* C-t162: what a claim does not mirror makes no write. C-t156: what is not changed wakes nobody,
 * for nothing is stored. */
START_TEST(test_other_conditions_are_not_mirrored)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    set_conditions("x");
    pass("c");
    int64_t settled = registry_revision(reg());
    set_conditions("x");
    ck_assert_int_eq(registry_revision(reg()), settled);
    set_conditions("y");
    ck_assert_int_eq(registry_revision(reg()), settled + 1);
    pass("c");
    ck_assert_int_eq(registry_revision(reg()), settled + 1);
}
END_TEST

/* C-t148, C-t149, O-t028: a status made from an old claim is not written nor measured, and that is
 * no error. */
START_TEST(test_old_claim_is_not_written)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_ADDRESS);
    post("c", "", "");
    make_ready("p-1");
    struct registry *other = start_deaf();
    pool_world_edit(other, &kind_sandbox_claim, "c", "metadata|labels|x", "\"y\"");
    ck_assert_int_ge(pass("c"), 0);
    hear_again(other);
    expect("c", "False", "DependenciesNotReady", "p-1");
    ck_assert_double_eq(measured(), 0);
    pass("c");
    expect("c", "True", "DependenciesReady", "p-1");
    ck_assert_double_eq(measured(), 1);
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    ck_assert_str_eq(meta_label(claim, "x"), "y");
}
END_TEST

/* ---- cold, made again ---- */

START_TEST(test_own_sandbox_found) /* C-t006 */
{
    post("c", "", "");
    pass("c");
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "status", "{}");
    pool_world_edit(reg(), &kind_sandbox, "c", "metadata|labels|" LABEL_TEMPLATE_REF_HASH, "null");
    pass("c");
    expect("c", "False", "SandboxNotReady", "c");
    char hash[NAME_HASH_SIZE];
    digest_name_hash("t", hash);
    SCOPED(json_free_p) cJSON *sandbox = pool_world_read(reg(), &kind_sandbox, "c");
    ck_assert_str_eq(meta_label(sandbox, LABEL_TEMPLATE_REF_HASH), hash);
    ck_assert_uint_eq(pool_world_owned(reg(), NULL), 1);
}
END_TEST

/* C-t009, C-t010: own rules leave DNS alone, without them resolvers outside are given. */
START_TEST(test_dns) /* IL-056 */
{
    post("a", "", "");
    pass("a");
    SCOPED(json_free_p) cJSON *a = pool_world_read(reg(), &kind_sandbox, "a");
    ck_assert_str_eq(json_str(a, "spec.podTemplate.spec.dnsPolicy"), "None");
    ck_assert_str_eq(json_at(a, "spec.podTemplate.spec.dnsConfig.nameservers")->child->valuestring,
                     "8.8.8.8");
    pool_world_edit(reg(), &kind_sandbox_template, "t", "spec|networkPolicy", "{\"egress\":[{}]}");
    post("b", "", "");
    pass("b");
    SCOPED(json_free_p) cJSON *b = pool_world_read(reg(), &kind_sandbox, "b");
    ck_assert_ptr_null(json_at(b, "spec.podTemplate.spec.dnsPolicy"));
    ck_assert_ptr_null(json_at(b, "spec.podTemplate.spec.dnsConfig"));
}
END_TEST

#define VOLUMES(name, spec) "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{" spec "}}"
#define CLASS(x) "\"storageClassName\":\"" x "\""
static const struct {
    const char *id, *policy; /* NULL = unset */
    const char *claim;       /* its list's items; NULL = none */
    const char *reason, *sandbox;
    const char *names; /* of the Sandbox's list, with the storage class */
} volumes[] = {
    {"C-t054 refused", "\"Disallowed\"", VOLUMES("e", ""), "VolumeClaimTemplatesError", "-", ""},
    {"C-t055 none asked for: warm", "\"Disallowed\"", NULL, "DependenciesReady", "p-1", "d/old "},
    {"C-t056 added", "\"Allowed\"", VOLUMES("e", CLASS("new")), "SandboxNotReady", "c",
     "d/old e/new "},
    {"C-t057 not overridden", "\"Allowed\"", VOLUMES("d", CLASS("new")),
     "VolumeClaimTemplatesError", "-", ""},
    {"C-t058 added", "\"Overrides\"", VOLUMES("e", CLASS("new")), "SandboxNotReady", "c",
     "d/old e/new "},
    {"C-t059 replaced", "\"Overrides\"", VOLUMES("d", CLASS("new")), "SandboxNotReady", "c",
     "d/new "},
    {"C-t060 no policy", NULL, VOLUMES("e", ""), "VolumeClaimTemplatesError", "-", ""},
    {"C-t061 no name", "\"Overrides\"", VOLUMES("", ""), "VolumeClaimTemplatesError", "-", ""},
    {"C-t062 one name twice", "\"Overrides\"", VOLUMES("e", "") "," VOLUMES("e", ""),
     "VolumeClaimTemplatesError", "-", ""},
};

START_TEST(test_volumes)
{
    if (volumes[_i].policy)
        pool_world_edit(reg(), &kind_sandbox_template, "t", "spec|volumeClaimTemplatesPolicy",
                        volumes[_i].policy);
    pool_world_edit(reg(), &kind_sandbox_template, "t", "spec|volumeClaimTemplates",
                    "[" VOLUMES("d", CLASS("old")) "]");
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    SCOPED_FREE char *spec =
        xasprintf(",\"volumeClaimTemplates\":[%s]", volumes[_i].claim ? volumes[_i].claim : "");
    post("c", "", volumes[_i].claim ? spec : "");
    pass("c");
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    const cJSON *ready = condition_find(json_at(claim, "status.conditions"), "Ready");
    ck_assert_msg(str_equal(json_str(ready, "reason"), volumes[_i].reason), "%s: %s",
                  volumes[_i].id, json_str_or(ready, "reason", "-"));
    const char *name = json_str_or(claim, "status.sandbox.name", "-");
    ck_assert_msg(str_equal(name, volumes[_i].sandbox), "%s: %s", volumes[_i].id, name);
    SCOPED(json_free_p) cJSON *sandbox = pool_world_read(reg(), &kind_sandbox, name);
    SCOPED(buf_fini) struct buf names = {0};
    const cJSON *v;
    cJSON_ArrayForEach(v, json_at(sandbox, "spec.volumeClaimTemplates"))
    {
        buf_printf(&names, "%s/%s ", meta_name(v), json_str_or(v, "spec.storageClassName", "-"));
    }
    ck_assert_msg(str_equal(buf_cstr(&names), volumes[_i].names), "%s: %s", volumes[_i].id,
                  buf_cstr(&names));
}
END_TEST

/* ---- old policies: C-t011 to C-t013 ---- */

static void put_policy(const char *name, const char *uid)
{
    SCOPED_FREE char *json = xasprintf(
        "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"u\",\"ownerReferences\":[{"
        "\"apiVersion\":\"extensions.agents.x-k8s.io/v1beta1\",\"kind\":\"SandboxClaim\",\"name\":"
        "\"c\",\"uid\":\"%s\",\"controller\":true}]}}",
        name, uid);
    fake_cluster_put(&cluster, CHILD_NETPOL, "ns", world_tree(json));
}

START_TEST(test_legacy_policy)
{
    post("c", "", "");
    post("d", "", "");
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    put_policy("c-network-policy", meta_uid(claim));
    put_policy("d-network-policy", meta_uid(claim));
    pass("c");
    pass("d");
    ck_assert_ptr_null(fake_cluster_find(&cluster, CHILD_NETPOL, "ns", "c-network-policy"));
    ck_assert_ptr_nonnull(fake_cluster_find(&cluster, CHILD_NETPOL, "ns", "d-network-policy"));
}
END_TEST

/* ---- leadership and faults ---- */

START_TEST(test_follower_writes_nothing)
{
    post("c", "", "");
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    int64_t before = registry_revision(reg());
    leads = false;
    ck_assert_int_lt(pass("c"), 0);
    ck_assert_int_eq(registry_revision(reg()), before);
    leads = true;
    pass("c");
    expect("c", "True", "DependenciesReady", "p-1");
}
END_TEST

static enum memstore_fault fail_all(void *ctx, const char *call, uint64_t n)
{
    (void)ctx;
    (void)call;
    (void)n;
    return MEMSTORE_UNAVAILABLE;
}

START_TEST(test_store_down_keeps_the_binding) /* C-t147, IL-020 */
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    pass("c");
    make_finished("p-1", "2026-01-02T03:04:05Z");
    memstore_set_fault(pw.w.store, fail_all, NULL);
    ck_assert_int_lt(pass("c"), 0);
    memstore_set_fault(pw.w.store, NULL, NULL);
    expect("c", "True", "DependenciesReady", "p-1");
    pass("c");
    expect("c", "False", "PodSucceeded", "p-1");
}
END_TEST

/* O-t016, O-t018: Ready and its stamp are one write: if it fails, so does the pass, nothing is
 * measured, and the next pass makes up for both, once. */
START_TEST(test_failed_stamp)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_ADDRESS);
    post("c", "", "");
    pass("c");
    make_ready("p-1");
    memstore_set_fault(pw.w.store, no_writes, NULL);
    ck_assert_int_lt(pass("c"), 0);
    memstore_set_fault(pw.w.store, NULL, NULL);
    ck_assert_double_eq(measured(), 0);
    SCOPED(json_free_p) cJSON *before = read_claim("c");
    ck_assert_ptr_null(meta_annotation(before, ANNOTATION_FIRST_READY_AT));
    pass("c");
    pass("c");
    ck_assert_double_eq(measured(), 1);
    SCOPED(json_free_p) cJSON *after = read_claim("c");
    ck_assert_ptr_nonnull(meta_annotation(after, ANNOTATION_FIRST_READY_AT));
}
END_TEST

/* What is to be written about an assignment fails, or this process has just lost the lead: an
 * error, without a word in status, and the next pass does it. */
static const struct {
    const char *id, *assigned, *sandbox; /* what becomes of it */
    bool is_cancelled;
} unsettled[] = {
    {"C-t142 clean-up fails", "nowhere", "c", false},
    {"C-t143 cancelled in the clean-up", "nowhere", "c", true},
    {"C-t144 cancelled in the adoption", "p-1", "p-1", true},
    {"C-t146 the adoption fails", "p-1", "p-1", false},
};

START_TEST(test_unsettled_assignment)
{
    SCOPED_FREE char *metadata = xasprintf(
        ",\"annotations\":{\"agents.x-k8s.io/sandbox-name\":\"%s\"}", unsettled[_i].assigned);
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", metadata, "");
    SCOPED(json_free_p) cJSON *before = read_claim("c");
    leads = !unsettled[_i].is_cancelled;
    memstore_set_fault(pw.w.store, unsettled[_i].is_cancelled ? NULL : no_writes, NULL);
    ck_assert_msg(pass("c") < 0, "%s", unsettled[_i].id);
    memstore_set_fault(pw.w.store, NULL, NULL);
    leads = true;
    SCOPED(json_free_p) cJSON *between = read_claim("c");
    ck_assert_msg(json_equal(before, between), "%s", unsettled[_i].id);
    if (str_equal(unsettled[_i].assigned, "nowhere"))
        world_delete(&pw.w, "ns", "p-1");
    pass("c");
    SCOPED(json_free_p) cJSON *after = read_claim("c");
    ck_assert_msg(str_equal(json_str(after, "status.sandbox.name"), unsettled[_i].sandbox), "%s",
                  unsettled[_i].id);
}
END_TEST

struct fault {
    uint64_t at;
    enum memstore_fault what;
};

static enum memstore_fault fail_nth(void *ctx, const char *call, uint64_t n)
{
    const struct fault *f = ctx;
    (void)call;
    return n == f->at ? f->what : MEMSTORE_OK;
}

static const enum memstore_fault faults[] = {MEMSTORE_UNAVAILABLE, MEMSTORE_UNDETERMINED_DONE,
                                             MEMSTORE_UNDETERMINED_LOST};
#define FAULT_CALLS 8

/* Passes until they have nothing to do, the n-th call of the store failing: the end is the same. */
static void run_with_fault(int i)
{
    struct fault f = {(uint64_t)i % FAULT_CALLS + 1, faults[i / FAULT_CALLS]};
    memstore_set_fault(pw.w.store, fail_nth, &f);
    for (int k = 0; k < 4; k++)
        pass("c");
    memstore_set_fault(pw.w.store, NULL, NULL);
    pass("c");
}

START_TEST(test_fault_cold)
{
    post("c", "", "");
    run_with_fault(_i);
    expect("c", "False", "SandboxNotReady", "c");
    ck_assert_uint_eq(pool_world_owned(reg(), NULL), 1);
}
END_TEST

START_TEST(test_fault_adoption)
{
    post("c", "", "");
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    pool_world_member(reg(), "p-2", "n", MEMBER_READY);
    run_with_fault(_i);
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    ck_assert_str_ne(pool_world_bound(reg(), claim), "");
    ck_assert_uint_eq(pool_world_owned(reg(), NULL), 1);
}
END_TEST

START_TEST(test_fault_retain)
{
    post("c", "", "");
    pass("c");
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "spec|lifecycle", "{" PAST "}");
    run_with_fault(_i);
    expect("c", "False", "ClaimExpired", "-");
    ck_assert(!exists(&kind_sandbox, "c"));
}
END_TEST

SUITE(claim_pass)
{
    TCase *tc = tcase_create("claim_pass");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    const TTest *const tests[] = {test_writes_of_a_warm_claim,
                                  test_bound_claim_is_told_about_once,
                                  test_unready_member,
                                  test_reconciler_adopts,
                                  test_grace,
                                  test_finish_adoption,
                                  test_stale_assignment,
                                  test_sandbox_lost,
                                  test_cold,
                                  test_cold_only,
                                  test_missing,
                                  test_namespace_ends,
                                  test_name_taken,
                                  test_legacy_policy,
                                  test_follower_writes_nothing,
                                  test_order_of_members,
                                  test_measured_once,
                                  test_first_sight,
                                  test_who_was_seen,
                                  test_old_claim_is_not_written,
                                  test_only_unfit_members,
                                  test_pool_gone,
                                  test_launch_type_is_filled_in,
                                  test_what_comes_with_the_binding,
                                  test_pod_of_a_bound_claim,
                                  test_assigned_to_an_old_claim,
                                  test_own_sandbox_found,
                                  test_dns,
                                  test_store_down_keeps_the_binding,
                                  test_bound_elsewhere,
                                  test_cold_without_hearing,
                                  test_member_changed_meanwhile,
                                  test_restart_keeps_status,
                                  test_other_conditions_are_not_mirrored,
                                  test_failed_stamp};
    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        tcase_add_test(tc, tests[i]);
    int n = (int)(FAULT_CALLS * ARRAY_LEN(faults));
    tcase_add_loop_test(tc, test_volumes, 0, (int)ARRAY_LEN(volumes));
    tcase_add_loop_test(tc, test_unsettled_assignment, 0, (int)ARRAY_LEN(unsettled));
    tcase_add_loop_test(tc, test_fault_cold, 0, n);
    tcase_add_loop_test(tc, test_fault_adoption, 0, n);
    tcase_add_loop_test(tc, test_fault_retain, 0, n);
    suite_add_tcase(s, tc);
}
