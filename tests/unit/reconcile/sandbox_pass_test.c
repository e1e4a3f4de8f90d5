/* Whole passes: a registry over the store in memory, a cluster in memory that can refuse or fail on
 * demand. Counts writes, and lets every n-th call fail to see that passes converge all the same. */
#include <pthread.h>

#include "apiserver/base/json.h"
#include "apiserver/base/map.h"
#include "openapi/kinds.h"
#include "reconcile/child.h"
#include "reconcile/condition.h"
#include "reconcile/sandbox_pass.h"
#include "storage/memstore.h"
#include "tests/lib/fake_cluster.h"
#include "tests/lib/suite.h"

#define NOW_MS INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */
#define CALL_MS 10000

/* ---- fixture ---- */

static struct fixture {
    struct clock_fake clock;
    struct rand_fixed randomness;
    struct admit_env admit;
    struct store *store;
    struct registry *registry;
    struct fake_cluster cluster;
    struct sandbox_reconciler *reconciler;
    bool leads;
} fx;

static int64_t deadline(void)
{
    return clock_monotonic_ms(&clock_system) + CALL_MS;
}

static bool fence(void *ctx, struct store_compare *ret)
{
    (void)ctx;
    *ret = (struct store_compare){.key = "/lease", .target = STORE_CREATE, .rev = 0};
    return fx.leads;
}

static void setup(void)
{
    fx = (struct fixture){.leads = true};
    clock_fake_init(&fx.clock, NOW_MS);
    rand_fixed_init(&fx.randomness, 1);
    fx.admit = (struct admit_env){.clock = &fx.clock.clock, .randomness = &fx.randomness.r};
    fx.store = memstore_new();
    fx.registry = registry_new(
        &(struct registry_config){.store = fx.store, .kinds = kinds_all, .admit = &fx.admit});
    registry_start(fx.registry);
    while (!registry_is_synced(fx.registry))
        sched_yield();
    fake_cluster_init(&fx.cluster);
    /* Deadlines are of the real clock, as the registry's are; object times are of the fake one by
     * admission. */
    fx.reconciler = sandbox_reconciler_new(&(struct sandbox_reconciler_config){
        .env = {.registry = fx.registry,
                .cluster = &fx.cluster.base,
                .clock = &clock_system,
                .randomness = &fx.randomness.r,
                .fence = fence},
        .cluster_domain = "cluster.local",
    });
}

static void teardown(void)
{
    sandbox_reconciler_free(fx.reconciler);
    fake_cluster_fini(&fx.cluster);
    registry_stop(fx.registry);
    registry_free(fx.registry);
    store_free(fx.store);
}

static void create(const char *spec)
{
    SCOPED_FREE char *text =
        xasprintf("{\"apiVersion\":\"agents.x-k8s.io/"
                  "v1beta1\",\"kind\":\"Sandbox\",\"metadata\":{\"name\":\"a\"},"
                  "\"spec\":{\"podTemplate\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":"
                  "\"i\"}]}}%s}}",
                  spec);
    cJSON *object;
    ck_assert_int_eq(json_parse_str(text, &object, NULL), 0);
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    int rc = registry_create(fx.registry, &kind_sandbox, "ns", object,
                             &(struct write_options){.deadline_ms = deadline()}, &o, &err);
    ck_assert_msg(rc == 0, "%s", err_text(&err));
}

static int change_spec(void *ctx, const cJSON *old, cJSON **ret, struct err *err)
{
    (void)err;
    const char *const *kv = ctx;
    *ret = json_copy(old);
    cJSON *value = NULL;
    if (kv[1])
        json_parse_str(kv[1], &value, NULL);
    if (value)
        json_set(json_get(*ret, "spec"), kv[0], value);
    else
        json_remove(json_get(*ret, "spec"), kv[0]);
    return 0;
}

/* value is JSON; NULL removes the field. */
static void set_spec(const char *name, const char *value)
{
    const char *kv[] = {name, value};
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    int rc = registry_update(fx.registry,
                             &(struct update_request){.kind = &kind_sandbox,
                                                      .namespace_name = "ns",
                                                      .name = "a",
                                                      .is_patch = true,
                                                      .change = change_spec,
                                                      .ctx = kv},
                             &(struct write_options){.deadline_ms = deadline()}, &o, &err);
    ck_assert_msg(rc == 0, "%s", err_text(&err));
}

/* The stored Sandbox; NULL when it is gone. */
static cJSON *read_back(void)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    if (registry_get(fx.registry, &kind_sandbox, "ns", "a", (struct read_version){READ_LATEST},
                     deadline(), &o, &err) < 0)
        return NULL;
    return object_tree(o);
}

static void expect(const char *type, const char *status, const char *reason, const char *message)
{
    SCOPED(json_free_p) cJSON *sandbox = read_back();
    const cJSON *c = condition_find(json_at(sandbox, "status.conditions"), type);
    ck_assert_msg(c != NULL, "no condition %s", type);
    ck_assert_str_eq(json_str(c, "status"), status);
    ck_assert_str_eq(json_str(c, "reason"), reason);
    if (message)
        ck_assert_str_eq(json_str(c, "message"), message);
}

static int pass(struct loop_result *ret)
{
    *ret = (struct loop_result){0};
    return sandbox_pass(fx.reconciler, "ns/a", ret);
}

static void pass_ok(void)
{
    struct loop_result r;
    ck_assert_int_eq(pass(&r), 0);
}

static cJSON *pod(void)
{
    return omap_get(fx.cluster.objects, "pods/ns/a");
}

/* What a kubelet would report. */
static void make_ready(void)
{
    cJSON *status = NULL;
    json_parse_str("{\"phase\":\"Running\",\"podIPs\":[{\"ip\":\"10.0.0.1\"}],\"conditions\":[{"
                   "\"type\":\"PodScheduled\","
                   "\"status\":\"True\"},{\"type\":\"Ready\",\"status\":\"True\"}]}",
                   &status, NULL);
    json_set(pod(), "status", status);
    json_set_str(json_ensure_object(pod(), "spec"), "nodeName", "n");
}

#define VOLUME ",\"volumeClaimTemplates\":[{\"metadata\":{\"name\":\"w\"},\"spec\":{}}]"

/* ---- the normal life ---- */

START_TEST(test_cold_start) /* S-t027, S-t028, S-t029 */
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

START_TEST(test_suspend_and_resume) /* S-t039, S-t040, S-t139, S-t140 */
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

START_TEST(test_pod_deleted_comes_back) /* S-t141 */
{
    create("");
    pass_ok();
    json_free(omap_del(fx.cluster.objects, "pods/ns/a"));
    pass_ok();
    ck_assert_ptr_nonnull(pod());
    ck_assert_int_eq(fx.cluster.creates, 2);
}
END_TEST

START_TEST(test_existing_pod_is_judged_in_the_same_pass)
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

START_TEST(test_failed_pod_is_replaced)
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
        test_pod_deleted_comes_back,
        test_existing_pod_is_judged_in_the_same_pass,
        test_invalid_child_is_final,
        test_failed_pod_is_replaced,
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
