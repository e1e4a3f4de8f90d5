/* Whole passes over a Sandbox: its normal life, what keeps it from starting, its end. Counts
 * writes, and lets every n-th call fail to see that passes converge all the same. */
#include "tests/unit/reconcile/sandbox_pass_fixture.h"

/* ---- the normal life ---- */

START_TEST(test_cold_start) /* S-t027, S-t028, S-t029, IL-113 */
{
    create(",\"service\":true" VOLUME);
    int64_t before = registry_revision(fx.registry);
    pass_ok();
    ck_assert_int_eq(registry_revision(fx.registry),
                     before + 1); /* status and pod-name annotation: one write */
    ck_assert_int_eq(fx.cluster.creates, 3);
    ck_assert_ptr_nonnull(pod());
    ck_assert_ptr_nonnull(omap_get(fx.cluster.objects, "services/ns/a"));
    ck_assert_ptr_nonnull(omap_get(fx.cluster.objects, "persistentvolumeclaims/ns/w-a"));
    expect("Ready", "False", "DependenciesNotReady",
           "Pod exists with phase: Pending; Service Exists");
    SCOPED(json_free_p) cJSON *sandbox = read_back();
    ck_assert_str_eq(meta_annotation(sandbox, "agents.x-k8s.io/pod-name"), "a");
    ck_assert_int_eq(json_i64_or(sandbox, "metadata.generation", 0), 1);
    ck_assert_str_eq(json_str(sandbox, "status.serviceFQDN"), "a.ns.svc.cluster.local");
    ck_assert_str_eq(fx.cluster.last_event, "SandboxPodCreated");
    make_ready();
    pass_ok();
    expect("Ready", "True", "DependenciesReady", "Pod is Ready; Service Exists");
    ck_assert_str_eq(fx.cluster.last_event, "SandboxReady");
    /* Nothing changed: nothing is written, neither here nor in the cluster. */
    int64_t settled = registry_revision(fx.registry);
    pass_ok();
    ck_assert_int_eq(registry_revision(fx.registry), settled);
    ck_assert_int_eq(fx.cluster.creates, 3);
    ck_assert_int_eq(fx.cluster.patches + fx.cluster.updates + fx.cluster.deletes, 0);
}
END_TEST

START_TEST(test_suspend_and_resume) /* S-t039, S-t040, S-t139, S-t140, IL-069, IL-070 */
{
    create(VOLUME);
    pass_ok();
    make_ready();
    pass_ok();
    set_spec("operatingMode", "\"Suspended\"");
    fx.cluster.hold_deleted = true;
    pass_ok();
    expect("Suspended", "False", "PodTerminating", NULL);
    ck_assert_int_eq(fx.cluster.deletes, 1);
    pass_ok(); /* waits, does not delete again */
    ck_assert_int_eq(fx.cluster.deletes, 1);
    json_free(omap_del(fx.cluster.objects, "pods/ns/a"));
    pass_ok();
    expect("Suspended", "True", "PodTerminated", NULL);
    expect("Ready", "False", "SandboxSuspended", "Sandbox is suspended");
    ck_assert_ptr_nonnull(omap_get(fx.cluster.objects, "persistentvolumeclaims/ns/w-a"));
    SCOPED(json_free_p) cJSON *sandbox = read_back();
    ck_assert_ptr_null(meta_annotation(sandbox, "agents.x-k8s.io/pod-name"));
    ck_assert_ptr_null(json_at(sandbox, "status.podIPs"));
    set_spec("operatingMode", "\"Running\"");
    pass_ok();
    ck_assert_ptr_nonnull(pod());
    expect("Suspended", "False", "NotSuspended", NULL);
}
END_TEST

/* IL-076: an edit of the Pod's spec costs nobody a running Pod; the next one has it. */
START_TEST(test_edited_spec_waits_for_the_next_pod)
{
    create("");
    pass_ok();
    make_ready();
    pass_ok();
    set_spec("podTemplate", "{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"new\"}]}}");
    pass_ok();
    expect("Ready", "True", "DependenciesReady", NULL);
    ck_assert_int_eq(fx.cluster.creates, 1);
    ck_assert_int_eq(fx.cluster.patches + fx.cluster.updates + fx.cluster.deletes, 0);
    set_spec("operatingMode", "\"Suspended\"");
    pass_ok();
    pass_ok();
    set_spec("operatingMode", "\"Running\"");
    pass_ok();
    ck_assert_int_eq(fx.cluster.creates, 2);
    ck_assert_str_eq(json_str(json_at(pod(), "spec.containers")->child, "image"), "new");
}
END_TEST

/* IL-066: a volume claim that outlives its Sandbox (--cascade=orphan: the garbage collector takes
 * the owner reference away) is the next one's of the name. */
START_TEST(test_orphaned_volume_claim_is_taken_up)
{
    create(VOLUME);
    pass_ok();
    cJSON *claim = fake_cluster_find(&fx.cluster, CHILD_PVC, "ns", "w-a");
    SCOPED_FREE char *uid = xstrdup(meta_uid(claim));
    json_remove(json_get(claim, "metadata"), "ownerReferences");
    fake_cluster_remove(&fx.cluster, CHILD_POD, "ns", "a");
    SCOPED(object_unref_p) struct object *o = NULL;
    bool gone;
    struct delete_options opts = {.orphan_dependents = -1, .deadline_ms = deadline()};
    ck_assert_int_eq(registry_delete(fx.registry, &kind_sandbox, "ns", "a", &opts, &o, &gone, NULL),
                     0);
    create(VOLUME);
    pass_ok();
    const cJSON *after = fake_cluster_find(&fx.cluster, CHILD_PVC, "ns", "w-a");
    SCOPED(json_free_p) cJSON *sandbox = read_back();
    ck_assert_str_eq(meta_uid(after), uid);
    ck_assert_str_eq(json_str(owner_controller(after), "uid"), meta_uid(sandbox));
}
END_TEST

START_TEST(test_pod_deleted_comes_back) /* S-t141, IL-031 */
{
    create("");
    pass_ok();
    json_free(omap_del(fx.cluster.objects, "pods/ns/a"));
    pass_ok();
    ck_assert_ptr_nonnull(pod());
    ck_assert_int_eq(fx.cluster.creates, 2);
}
END_TEST

START_TEST(test_existing_pod_is_judged_in_the_same_pass) /* IL-028 */
{
    cJSON *foreign = NULL;
    json_parse_str("{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\",\"uid\":\"x\"},\"status\":{"
                   "\"phase\":\"Running\"}}",
                   &foreign, NULL);
    fake_cluster_put(&fx.cluster, CHILD_POD, "ns", foreign);
    create("");
    struct loop_result r;
    ck_assert_int_lt(pass(&r), 0);
    expect("Ready", "False", "ReconcilerError",
           "Error seen: cannot adopt unowned pod \"a\": missing required pool authorization label "
           "(\"agents.x-k8s.io/adoptable\") or sandbox tracking label "
           "(\"agents.x-k8s.io/sandbox-name-hash\")");
    expect("PodScheduled", "Unknown", "PodSchedulingUnknown", NULL);
    ck_assert_int_eq(fx.cluster.patches + fx.cluster.deletes, 0);
}
END_TEST

START_TEST(test_invalid_child_is_final)
{
    create("");
    fx.cluster.refuse_pods = "Pod \"a\" is invalid: spec.x: Required value";
    pass_ok(); /* no repetition */
    expect("Ready", "False", "InvalidConfiguration", fx.cluster.refuse_pods);
    ck_assert_str_eq(fx.cluster.last_event, "SandboxPodCreateFailed");
    int events = fx.cluster.events;
    pass_ok();
    ck_assert_int_eq(fx.cluster.events, events);
    fx.cluster.refuse_pods = NULL;
    pass_ok();
    expect("Ready", "False", "DependenciesNotReady", NULL);
}
END_TEST

/* S6: an annotation that names no Pod goes, also when no Pod can be made. */
START_TEST(test_stale_pod_name_goes)
{
    create("");
    pool_world_edit(fx.registry, &kind_sandbox, "a", "metadata|annotations|" ANNOTATION_POD_NAME,
                    "\"ghost\"");
    fx.cluster.refuse_pods = "Pod \"a\" is invalid: spec.x: Required value";
    pass_ok();
    SCOPED(json_free_p) cJSON *sandbox = read_back();
    ck_assert_ptr_null(meta_annotation(sandbox, ANNOTATION_POD_NAME));
    fx.cluster.refuse_pods = NULL;
    pass_ok();
    SCOPED(json_free_p) cJSON *healed = read_back();
    ck_assert_str_eq(meta_annotation(healed, ANNOTATION_POD_NAME), "a");
}
END_TEST

START_TEST(test_failed_pod_is_replaced) /* IL-032 */
{
    create(",\"podFailurePolicy\":\"Recreate\"");
    pass_ok();
    json_set_str(json_get(pod(), "status"), "phase", "Failed");
    struct loop_result r;
    ck_assert_int_eq(pass(&r), 0);
    ck_assert_int_eq(fx.cluster.deletes, 1);
    expect("Ready", "False", "DependenciesNotReady", "Pod does not exist"); /* never PodFailed */
    ck_assert_int_eq(pass(&r), 0);
    ck_assert_ptr_null(pod()); /* the delay runs */
    ck_assert_int_gt(r.again_after_ms, 0);
    ck_assert_int_le(r.again_after_ms, 5000);
}
END_TEST

START_TEST(test_failed_pod_says_why) /* IL-032 */
{
    create(",\"podFailurePolicy\":\"Recreate\"" VOLUME);
    for (int i = 1; i <= 2; i++) {
        pass_ok();
        json_set(
            pod(), "status",
            json_of("{\"phase\":\"Failed\",\"reason\":\"Evicted\",\"message\":\"low on memory\"}"));
        int events = fx.cluster.events;
        pass_ok();
        ck_assert_int_eq(fx.cluster.events, events + 1);
        ck_assert_str_eq(fx.cluster.last_event, "PodFailed");
        ck_assert_str_eq(fx.cluster.last_note,
                         i == 1 ? "Pod failed: Evicted: low on memory, 1 in a row; the next one is "
                                  "made in 5s"
                                : "Pod failed: Evicted: low on memory, 2 in a row; the next one is "
                                  "made in 10s");
        ck_assert_ptr_nonnull(omap_get(fx.cluster.objects, "persistentvolumeclaims/ns/w-a"));
        fx.ahead_ms += 60000;
    }
}
END_TEST

/* One that is made anew under the same name is another: the tries of the one before it do not
 * count. */
START_TEST(test_namesake_does_not_wait)
{
    create(",\"podFailurePolicy\":\"Recreate\"");
    pass_ok();
    json_set_str(json_get(pod(), "status"), "phase", "Failed");
    pass_ok();
    SCOPED(object_unref_p) struct object *last = NULL;
    bool gone;
    ck_assert_int_eq(registry_delete(fx.registry, &kind_sandbox, "ns", "a",
                                     &(struct delete_options){.orphan_dependents = -1,
                                                              .deadline_ms = deadline()},
                                     &last, &gone, NULL),
                     0);
    create("");
    pass_ok();
    ck_assert_ptr_nonnull(pod());
}
END_TEST

START_TEST(test_evicted_pod_ends_it) /* IL-032, IL-075 */
{
    create("");
    pass_ok();
    json_set(
        pod(), "status",
        json_of("{\"phase\":\"Failed\",\"reason\":\"Evicted\",\"message\":\"low on memory\"}"));
    pass_ok();
    expect("Finished", "True", "PodFailed", "Pod failed: Evicted: low on memory");
    expect("Ready", "False", "PodFailed", "Pod failed: Evicted: low on memory");
    pass_ok();
    ck_assert_ptr_nonnull(pod());
    ck_assert_int_eq(fx.cluster.creates, 1);
}
END_TEST

/* ---- what keeps it from starting (IL-036) ---- */

START_TEST(test_quota)
{
    create("");
    fx.cluster.refuse_pods = "pods \"a\" is forbidden: exceeded quota: q, requested: pods=1";
    fx.cluster.refuse_code = ERR_FORBIDDEN;
    struct loop_result r;
    ck_assert_int_lt(pass(&r), 0); /* space may come: it is tried again */
    expect("Ready", "False", "ReconcilerError",
           "Error seen: pods \"a\" is forbidden: exceeded quota: q, requested: pods=1");
    ck_assert_str_eq(fx.cluster.last_event, "SandboxPodCreateFailed");
    ck_assert_int_lt(pass(&r), 0);
    ck_assert_int_eq(fx.cluster.events, 1); /* told once */
    fx.cluster.refuse_pods = NULL;
    pass_ok();
    expect("Ready", "False", "DependenciesNotReady", NULL);
}
END_TEST

/* Refusals can be longer than a condition's message may be, and others' reasons be no words. */
START_TEST(test_long_refusal)
{
    create("");
    SCOPED_FREE char *text = xasprintf("Pod \"a\" is invalid: %*s.", 40000, "x");
    fx.cluster.refuse_pods = text;
    pass_ok();
    expect("Ready", "False", "InvalidConfiguration", NULL);
    fx.cluster.refuse_code = ERR_FORBIDDEN;
    struct loop_result r;
    ck_assert_int_lt(pass(&r), 0);
    expect("Ready", "False", "ReconcilerError", NULL);
}
END_TEST

/* An API server names the mistakes of a map in any order: that is not worth a write, which would
 * bring the next pass, and the next refusal, at once. */
START_TEST(test_refusal_in_other_words)
{
    create("");
    fx.cluster.refuse_pods = "Pod \"a\" is invalid: [labels.x: bad, labels.y: bad]";
    pass_ok();
    int64_t told = registry_revision(fx.registry);
    fx.cluster.refuse_pods = "Pod \"a\" is invalid: [labels.y: bad, labels.x: bad]";
    pass_ok();
    ck_assert_int_eq(registry_revision(fx.registry), told);
    set_spec("service", "true"); /* another spec may be wrong in another way */
    pass_ok();
    expect("Ready", "False", "InvalidConfiguration", fx.cluster.refuse_pods);
}
END_TEST

/* What a failed pass wrote does not cut its delay short. */
START_TEST(test_failed_pass_names_its_write)
{
    create("");
    fx.cluster.refuse_code = ERR_FORBIDDEN;
    fx.cluster.refuse_pods = "connection from port 1 refused";
    struct loop_result r;
    ck_assert_int_lt(pass(&r), 0);
    ck_assert_int_eq(r.own_rev, registry_revision(fx.registry));
    ck_assert_int_lt(pass(&r), 0);
    ck_assert_int_eq(r.own_rev, 0);
    fx.cluster.refuse_pods = "connection from port 2 refused";
    ck_assert_int_lt(pass(&r), 0);
    ck_assert_int_eq(r.own_rev, registry_revision(fx.registry));
}
END_TEST

START_TEST(test_odd_words_of_a_scheduler)
{
    create("");
    pass_ok();
    SCOPED_FREE char *message = xasprintf("%*s", 40000, "x");
    json_set(json_get(pod(), "status"), "conditions",
             json_of("[{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":"
                     "\"no reason at all.\"}]"));
    json_set_str(json_get(json_get(pod(), "status"), "conditions")->child, "message", message);
    pass_ok();
    expect("PodScheduled", "False", "PodSchedulingUnknown", NULL);
}
END_TEST

START_TEST(test_no_node)
{
    create("");
    pass_ok();
    json_set(
        json_get(pod(), "status"), "conditions",
        json_of("[{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":\"Unschedulable\","
                "\"message\":\"0/1 nodes are available\"}]"));
    pass_ok();
    expect("PodScheduled", "False", "Unschedulable", "0/1 nodes are available");
}
END_TEST

START_TEST(test_container_that_cannot_start)
{
    create(",\"service\":true");
    pass_ok();
    json_set(json_get(pod(), "status"), "containerStatuses",
             json_of("[{\"name\":\"c\",\"state\":{\"waiting\":{\"reason\":\"ImagePullBackOff\","
                     "\"message\":\"no such image\"}}}]"));
    pass_ok();
    expect("Ready", "False", "DependenciesNotReady",
           "Pod exists with phase: Pending; Service Exists; container \"c\" waits: "
           "ImagePullBackOff: no such image");
}
END_TEST

/* IL-121: watchers of a hundred rounds see each transition once. */
START_TEST(test_ready_does_not_flip)
{
    create("");
    pass_ok();
    make_ready();
    pass_ok();
    for (int i = 0; i < 100; i++) {
        int64_t before = registry_revision(fx.registry);
        set_spec("operatingMode", "\"Suspended\"");
        pass_ok();
        expect("Ready", "False", "SandboxSuspended", NULL);
        pass_ok();
        set_spec("operatingMode", "\"Running\"");
        pass_ok();
        expect("Ready", "False", "DependenciesNotReady", NULL);
        make_ready();
        pass_ok();
        expect("Ready", "True", "DependenciesReady", NULL);
        /* two of the user; suspending, suspended, running, ready */
        ck_assert_int_le(registry_revision(fx.registry) - before, 6);
    }
}
END_TEST

/* ---- expiry ---- */

START_TEST(test_expired_retain) /* S-t033 */
{
    create(",\"service\":true");
    pass_ok();
    set_spec("shutdownTime", "\"2020-01-01T00:00:00Z\"");
    struct loop_result r;
    ck_assert_int_eq(pass(&r), 0);
    ck_assert_int_eq(r.again_after_ms, 1);
    ck_assert_ptr_nonnull(pod());
    expect("Ready", "False", "SandboxExpired", "Sandbox has expired");
    pass_ok();
    ck_assert_ptr_null(pod());
    ck_assert_ptr_null(omap_get(fx.cluster.objects, "services/ns/a"));
    SCOPED(json_free_p) cJSON *sandbox = read_back();
    ck_assert_uint_eq(json_len(json_get(sandbox, "status")), 1);
    expect("Suspended", "False", "NotSuspended", NULL); /* S-t143 */
    int64_t settled = registry_revision(fx.registry);
    pass_ok();
    ck_assert_int_eq(registry_revision(fx.registry), settled);
    set_spec("shutdownTime", NULL); /* S3e: not latched */
    pass_ok();
    ck_assert_ptr_nonnull(pod());
}
END_TEST

START_TEST(test_expired_delete) /* S-t035 */
{
    create(",\"shutdownTime\":\"2020-01-01T00:00:00Z\",\"shutdownPolicy\":\"Delete\"");
    pass_ok();
    pass_ok();
    ck_assert_ptr_null(read_back());
    ck_assert_int_eq(fx.cluster.creates, 0);
    pass_ok(); /* gone is fine */
}
END_TEST

/* ---- trouble ---- */

START_TEST(test_cluster_does_not_answer)
{
    create("");
    pass_ok();
    make_ready();
    pass_ok();
    fx.cluster.fail_code = ERR_UNAVAILABLE;
    for (int i = 1; i <= 2; i++) {
        int64_t before = registry_revision(fx.registry);
        fx.cluster.fail_at = fx.cluster.calls + i;
        struct loop_result r;
        ck_assert_int_lt(pass(&r), 0);
        ck_assert_int_eq(registry_revision(fx.registry), before); /* the last truth stays */
    }
    expect("Ready", "True", "DependenciesReady", NULL);
}
END_TEST

START_TEST(test_not_leading_writes_nothing)
{
    create("");
    fx.leads = false;
    struct loop_result r;
    ck_assert_int_lt(pass(&r), 0);
    SCOPED(json_free_p) cJSON *sandbox = read_back();
    ck_assert_ptr_null(json_get(sandbox, "status"));
}
END_TEST

/* Whatever call fails, in whatever way: repeated passes reach the same end. */
START_TEST(test_converges)
{
    static const enum err_code codes[] = {ERR_UNAVAILABLE, ERR_UNDETERMINED, ERR_FORBIDDEN,
                                          ERR_INTERNAL, ERR_CONFLICT};
    create(",\"service\":true" VOLUME);
    fx.cluster.fail_code = codes[_i % (int)ARRAY_LEN(codes)];
    fx.cluster.fail_at = 1 + _i / (int)ARRAY_LEN(codes);
    struct loop_result r;
    for (int i = 0; i < 4; i++)
        pass(&r);
    make_ready();
    pass_ok();
    expect("Ready", "True", "DependenciesReady", "Pod is Ready; Service Exists");
    ck_assert_uint_eq(omap_len(fx.cluster.objects), 3);
}
END_TEST

SUITE(sandbox_pass)
{
    const TTest *const tests[] = {
        test_cold_start,
        test_suspend_and_resume,
        test_edited_spec_waits_for_the_next_pod,
        test_orphaned_volume_claim_is_taken_up,
        test_pod_deleted_comes_back,
        test_existing_pod_is_judged_in_the_same_pass,
        test_invalid_child_is_final,
        test_stale_pod_name_goes,
        test_failed_pod_is_replaced,
        test_failed_pod_says_why,
        test_namesake_does_not_wait,
        test_evicted_pod_ends_it,
        test_quota,
        test_long_refusal,
        test_refusal_in_other_words,
        test_failed_pass_names_its_write,
        test_odd_words_of_a_scheduler,
        test_no_node,
        test_container_that_cannot_start,
        test_ready_does_not_flip,
        test_expired_retain,
        test_expired_delete,
        test_cluster_does_not_answer,
        test_not_leading_writes_nothing,
    };
    TCase *tc = tcase_create("passes");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        tcase_add_test(tc, tests[i]);
    tcase_add_loop_test(tc, test_converges, 0, 35);
    suite_add_tcase(s, tc);
}
