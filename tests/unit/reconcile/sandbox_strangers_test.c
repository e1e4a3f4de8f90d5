/* Whole passes over a Sandbox whose Pod is not as one expects: another's, one of two, changed or
 * taken away meanwhile; in its life and at its end. */
#include "tests/unit/reconcile/sandbox_pass_fixture.h"

/* ---- Pods that are not as one expects ---- */

START_TEST(test_two_owned_pods) /* S-t077, S-t078 */
{
    create(",\"service\":true");
    SCOPED_FREE char *uid = own_uid();
    put_pod("a", uid);
    put_pod("b", uid);
    pass_ok(); /* no error that comes back: a Pod's event will */
    expect("Ready", "False", "MultiplePods", NULL);
    ck_assert_str_eq(fx.cluster.last_event, "MultiplePods");
    ck_assert(!has_child("services/ns/a"));
    ck_assert_int_eq(fx.cluster.creates + fx.cluster.deletes + fx.cluster.patches, 0);
    SCOPED(json_free_p) cJSON *sandbox = read_back();
    ck_assert_ptr_null(json_at(sandbox, "status.podIPs"));
    int events = fx.cluster.events;
    pass_ok();
    ck_assert_int_eq(fx.cluster.events, events);
}
END_TEST

/* of two names with one hash the second gets neither Pod nor Service, until the first is
 * gone.
 */
START_TEST(test_second_of_two_twins)
{
    struct loop_result r = {0};
    create_named("a1222382", "");
    create_named("a1039599", ",\"service\":true");
    ck_assert_int_eq(sandbox_pass(fx.reconciler, "ns/a1222382", &r), 0);
    ck_assert_int_lt(sandbox_pass(fx.reconciler, "ns/a1039599", &r), 0);
    ck_assert(!has_child("pods/ns/a1039599") && !has_child("services/ns/a1039599"));
    fake_cluster_remove(&fx.cluster, CHILD_POD, "ns", "a1222382");
    ck_assert_int_eq(sandbox_pass(fx.reconciler, "ns/a1039599", &r), 0);
    ck_assert(has_child("pods/ns/a1039599") && has_child("services/ns/a1039599"));
}
END_TEST

static void pass_of_the_twin(enum child child)
{
    struct loop_result r = {0};
    fx.cluster.before_create = NULL;
    ck_assert_int_eq(child, CHILD_POD);
    ck_assert_int_eq(sandbox_pass(fx.reconciler, "ns/a1039599", &r), 0);
    ck_assert_int_gt(r.again_after_ms, 0);
    ck_assert_int_lt(r.again_after_ms, 1000);
}

/* made in the same instant, so that neither sees the other's Pod yet. */
START_TEST(test_twins_at_once)
{
    struct loop_result r = {0};
    create_named("a1222382", ",\"service\":true");
    create_named("a1039599", ",\"service\":true");
    fx.cluster.before_create = pass_of_the_twin;
    ck_assert_int_eq(sandbox_pass(fx.reconciler, "ns/a1222382", &r), 0);
    ck_assert(has_child("pods/ns/a1222382") && has_child("services/ns/a1222382"));
    ck_assert_int_eq(fx.cluster.creates, 2);
    ck_assert_int_lt(sandbox_pass(fx.reconciler, "ns/a1039599", &r), 0);
    ck_assert_int_eq(fx.cluster.creates, 2);
    ck_assert(!has_child("pods/ns/a1039599") && !has_child("services/ns/a1039599"));
}
END_TEST

/* who sleeps has no Pod, but a Service that would lead to the twin's. */
START_TEST(test_twin_of_a_sleeper)
{
    struct loop_result r = {0};
    create_named("a1222382", ",\"operatingMode\":\"Suspended\",\"service\":true");
    create_named("a1039599", ",\"service\":true");
    ck_assert_int_eq(sandbox_pass(fx.reconciler, "ns/a1222382", &r), 0);
    ck_assert(has_child("services/ns/a1222382"));
    ck_assert_int_lt(sandbox_pass(fx.reconciler, "ns/a1039599", &r), 0);
    ck_assert_int_eq(fx.cluster.creates, 1);
    fake_cluster_remove(&fx.cluster, CHILD_SERVICE, "ns", "a1222382");
    ck_assert_int_eq(sandbox_pass(fx.reconciler, "ns/a1039599", &r), 0);
    ck_assert_int_eq(sandbox_pass(fx.reconciler, "ns/a1222382", &r), 0);
    ck_assert(has_child("pods/ns/a1039599") && !has_child("services/ns/a1222382"));
}
END_TEST

START_TEST(test_suspended_beside_a_stranger) /* S-t142 */
{
    put_pod("a", NULL);
    create(",\"operatingMode\":\"Suspended\"");
    pass_ok();
    expect("Suspended", "False", "PodNotOwned", NULL);
    ck_assert(has_child("pods/ns/a"));
    ck_assert_int_eq(fx.cluster.deletes + fx.cluster.patches, 0);
    fake_cluster_remove(&fx.cluster, CHILD_POD, "ns", "a");
    pass_ok();
    expect("Suspended", "True", "PodTerminated", NULL);
}
END_TEST

START_TEST(test_stranger_takes_the_annotation_away) /* S-t065, S-t068 */
{
    create("");
    pass_ok();
    put_pod("a", NULL);
    set_spec("operatingMode", "\"Suspended\"");
    pass_ok();
    SCOPED(json_free_p) cJSON *sandbox = read_back();
    ck_assert_ptr_null(meta_annotation(sandbox, "agents.x-k8s.io/pod-name"));
    ck_assert_str_eq(meta_annotation(sandbox, "mine"), "1");
    ck_assert(has_child("pods/ns/a"));
    ck_assert_int_eq(fx.cluster.deletes, 0);
}
END_TEST

START_TEST(test_foreign_pod) /* S-t063, S-t151 */
{
    put_pod("a", "somebody");
    create("");
    struct loop_result r;
    ck_assert_int_lt(pass(&r), 0);
    expect("PodScheduled", "Unknown", "PodSchedulingUnknown", NULL);
    expect("Ready", "False", "ReconcilerError",
           "Error seen: pod \"a\" is owned by Sandbox/a (UID: somebody), not by sandbox \"a\"");
    SCOPED(json_free_p) cJSON *sandbox = read_back();
    ck_assert_ptr_null(json_at(sandbox, "status.selector"));
    ck_assert_int_eq(fx.cluster.patches + fx.cluster.deletes, 0);
}
END_TEST

START_TEST(test_failed_patch) /* S-t150 */
{
    create("");
    pass_ok();
    make_ready();
    pass_ok();
    json_remove(json_get(pod(), "metadata"), "labels");
    json_set_str(json_get(pod(), "status"), "phase", "Failed");
    fx.cluster.fail_code = ERR_FORBIDDEN;
    fx.cluster.fail_at = fx.cluster.calls + 2; /* after the look-up */
    struct loop_result r;
    ck_assert_int_lt(pass(&r), 0);
    expect("Ready", "False", "ReconcilerError", "Error seen: failed to patch pod: made to fail");
    expect("PodScheduled", "Unknown", "PodSchedulingUnknown", NULL);
    SCOPED(json_free_p) cJSON *sandbox = read_back();
    ck_assert_ptr_null(json_at(sandbox, "status.podIPs"));
    ck_assert_ptr_null(json_at(sandbox, "status.nodeName"));
    ck_assert_ptr_nonnull(json_at(sandbox, "status.selector"));
    ck_assert_ptr_null(condition_find(json_at(sandbox, "status.conditions"), "Finished"));
}
END_TEST

START_TEST(test_delete_meets_nothing) /* S-t152 */
{
    create("");
    pass_ok();
    set_spec("operatingMode", "\"Suspended\"");
    fx.cluster.fail_code = ERR_NOT_FOUND;
    fx.cluster.fail_at = fx.cluster.calls + 2;
    struct loop_result r;
    ck_assert_int_lt(pass(&r), 0);
    expect("Ready", "False", "ReconcilerError", "Error seen: failed to delete pod: made to fail");
    expect("Suspended", "False", "PodTerminating", NULL);
    fake_cluster_remove(&fx.cluster, CHILD_POD, "ns", "a");
    pass_ok();
    expect("Suspended", "True", "PodTerminated", NULL);
}
END_TEST

/* S-t154; ours: the Service is judged in the same pass. */
START_TEST(test_service_was_there)
{
    create(",\"service\":true");
    pass_ok();
    fake_cluster_remove(&fx.cluster, CHILD_SERVICE, "ns", "a");
    fx.cluster.fail_code = ERR_ALREADY_EXISTS;
    fx.cluster.fail_at = fx.cluster.calls + 3; /* Pod, Service looked up, Service made */
    pass_ok();
    ck_assert(has_child("services/ns/a"));
    expect("Ready", "False", "DependenciesNotReady",
           "Pod exists with phase: Pending; Service Exists");
}
END_TEST

START_TEST(test_children) /* S-t138, S-t145 */
{
    create(",\"service\":true" VOLUME);
    pass_ok();
    SCOPED(json_free_p) cJSON *sandbox = read_back();
    static const char *const keys[] = {"pods/ns/a", "services/ns/a",
                                       "persistentvolumeclaims/ns/w-a"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        const cJSON *child = omap_get(fx.cluster.objects, keys[i]);
        ck_assert_msg(child && owner_class(child, sandbox) == OWNED, "%s", keys[i]);
        ck_assert_str_eq(meta_label(child, "agents.x-k8s.io/sandbox-name-hash"), "e40c292c");
    }
    const cJSON *volume = json_at(pod(), "spec.volumes")->child;
    ck_assert_str_eq(json_str(volume, "name"), "w");
    ck_assert_str_eq(json_str(volume, "persistentVolumeClaim.claimName"), "w-a");
    ck_assert_str_eq(json_str(omap_get(fx.cluster.objects, "services/ns/a"), "spec.clusterIP"),
                     "None");
}
END_TEST

START_TEST(test_volume_claim_metadata) /* IL-064 */
{
    create(",\"volumeClaimTemplates\":[{\"metadata\":{\"name\":\"w\",\"labels\":{\"backup\":"
           "\"daily\"},"
           "\"annotations\":{\"note\":\"x\"}},\"spec\":{}}]");
    pass_ok();
    const cJSON *claim = omap_get(fx.cluster.objects, "persistentvolumeclaims/ns/w-a");
    ck_assert_str_eq(meta_label(claim, "backup"), "daily");
    ck_assert_str_eq(meta_annotation(claim, "note"), "x");
}
END_TEST

START_TEST(test_metadata_at_once) /* S-t128, S-t069 */
{
    create("");
    pass_ok();
    make_ready();
    pass_ok();
    set_spec("podTemplate", "{\"metadata\":{\"labels\":{\"x\":\"y\"}},\"spec\":{\"containers\":[{"
                            "\"name\":\"c\",\"image\":\"i\"}]}}");
    pass_ok();
    ck_assert_int_eq(fx.cluster.patches, 1);
    ck_assert_str_eq(meta_label(pod(), "x"), "y");
    int64_t settled = registry_revision(fx.registry);
    pass_ok();
    ck_assert_int_eq(fx.cluster.patches, 1);
    ck_assert_int_eq(registry_revision(fx.registry), settled);
}
END_TEST

static void expect_same_members(const cJSON *is, const cJSON *should_be)
{
    const cJSON *member;
    SCOPED_FREE char *a = json_to_str(is), *b = json_to_str(should_be);
    ck_assert_msg(json_len(is) == json_len(should_be), "%s, not %s", a, b);
    cJSON_ArrayForEach(member, should_be)
    {
        ck_assert(json_equal(json_get(is, member->string), member));
    }
}

/* S-t131, S-t132: several keys are one patch, and readiness is what it is without them. G-t012: the
 * Pod is then what the whole podTemplate makes it. S-t133: a new process makes the same of a change
 * that came while none ran. */
START_TEST(test_metadata_after_a_restart)
{
    create("");
    pass_ok();
    make_ready();
    pass_ok();
    SCOPED(json_free_p) cJSON *before = read_back();
    set_spec("podTemplate",
             "{\"metadata\":{\"labels\":{\"x\":\"y\",\"z\":\"w\"},\"annotations\":{\"n\":\"1\"}},"
             "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}");
    start_reconciler();
    pass_ok();
    ck_assert_int_eq(fx.cluster.patches, 1);
    SCOPED(json_free_p) cJSON *after = read_back();
    SCOPED(json_free_p) cJSON *whole = pod_desired(after);
    expect_same_members(json_at(pod(), "metadata.labels"), json_at(whole, "metadata.labels"));
    expect_same_members(json_at(pod(), "metadata.annotations"),
                        json_at(whole, "metadata.annotations"));
    expect("Ready", "True", "DependenciesReady", NULL);
    const cJSON *was = condition_find(json_at(before, "status.conditions"), "Ready");
    const cJSON *is = condition_find(json_at(after, "status.conditions"), "Ready");
    ck_assert_str_eq(json_str(was, "lastTransitionTime"), json_str(is, "lastTransitionTime"));
}
END_TEST

/* S-t146, S-t147, S-t148 */
START_TEST(test_claim_templates_stay)
{
    static const struct {
        const char *id, *spec, *value;
    } rows[] = {
        {"S-t146", VOLUME, "[{\"metadata\":{\"name\":\"other\"},\"spec\":{}}]"},
        {"S-t147", "", "[{\"metadata\":{\"name\":\"w\"},\"spec\":{}}]"},
        {"S-t148", VOLUME, NULL},
    };
    create(rows[_i].spec);
    SCOPED(err_fini) struct err err = {0};
    int rc = try_set_spec("volumeClaimTemplates", rows[_i].value, &err);
    ck_assert_msg(rc == -ERR_INVALID, "%s: %d", rows[_i].id, rc);
    ck_assert_msg(strstr(err_text(&err), "volumeClaimTemplates is immutable") != NULL, "%s: %s",
                  rows[_i].id, err_text(&err));
}
END_TEST

/* ---- expiry of what is not ours, or is nothing ---- */

static void expire(void)
{
    set_spec("shutdownTime", "\"2020-01-01T00:00:00Z\"");
    pass_ok();
    pass_ok();
    expect("Ready", "False", "SandboxExpired", "Sandbox has expired");
    SCOPED(json_free_p) cJSON *sandbox = read_back();
    ck_assert_uint_eq(json_len(json_get(sandbox, "status")), 1);
}

/* S-t036, S-t037 */
START_TEST(test_expired_beside_a_stranger)
{
    static const struct {
        const char *id, *owner;
    } rows[] = {{"S-t036", "somebody"}, {"S-t037", NULL}};
    create(",\"service\":true");
    pass_ok();
    put_pod("a", rows[_i].owner);
    expire();
    ck_assert_msg(has_child("pods/ns/a"), "%s: Pod", rows[_i].id);
    ck_assert_msg(!has_child("services/ns/a"), "%s: Service", rows[_i].id);
}
END_TEST

START_TEST(test_expired_with_nothing) /* S-t038 */
{
    create("");
    expire();
    ck_assert_int_eq(fx.cluster.deletes + fx.cluster.creates, 0);
}
END_TEST

START_TEST(test_expired_other_name) /* S-t034 */
{
    create("");
    SCOPED_FREE char *uid = own_uid();
    put_pod("b", uid);
    pass_ok();
    ck_assert_int_eq(fx.cluster.creates, 0);
    expire();
    ck_assert(!has_child("pods/ns/b"));
}
END_TEST

START_TEST(test_expired_with_two) /* S-t155 */
{
    create("");
    SCOPED_FREE char *uid = own_uid();
    put_pod("a", uid);
    put_pod("b", uid);
    expire();
    ck_assert(!has_child("pods/ns/a"));
    ck_assert(has_child("pods/ns/b"));
}
END_TEST

/* S-t122, S-t123 */
START_TEST(test_expired_when_finished)
{
    static const struct {
        const char *id, *phase, *reason;
    } rows[] = {{"S-t122", "Succeeded", "PodSucceeded"}, {"S-t123", "Failed", "PodFailed"}};
    create("");
    pass_ok();
    json_set_str(json_get(pod(), "status"), "phase", rows[_i].phase);
    pass_ok();
    expect("Finished", "True", rows[_i].reason, NULL);
    expire();
    expect("Finished", "True", rows[_i].reason, NULL);
    SCOPED(json_free_p) cJSON *sandbox = read_back();
    ck_assert_msg(!condition_find(json_at(sandbox, "status.conditions"), "PodScheduled"), "%s",
                  rows[_i].id);
    ck_assert(!pod());
}
END_TEST

SUITE(sandbox_strangers)
{
    const TTest *const tests[] = {
        test_volume_claim_metadata,
        test_two_owned_pods,
        test_second_of_two_twins,
        test_twins_at_once,
        test_twin_of_a_sleeper,
        test_suspended_beside_a_stranger,
        test_stranger_takes_the_annotation_away,
        test_foreign_pod,
        test_failed_patch,
        test_delete_meets_nothing,
        test_service_was_there,
        test_children,
        test_metadata_at_once,
        test_metadata_after_a_restart,
        test_expired_with_nothing,
        test_expired_other_name,
        test_expired_with_two,
    };
    TCase *tc = tcase_create("passes");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        tcase_add_test(tc, tests[i]);
    tcase_add_loop_test(tc, test_claim_templates_stay, 0, 3);
    tcase_add_loop_test(tc, test_expired_beside_a_stranger, 0, 2);
    tcase_add_loop_test(tc, test_expired_when_finished, 0, 2);
    suite_add_tcase(s, tc);
}
