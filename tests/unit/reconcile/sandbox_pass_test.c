/* Whole passes: a registry over the store in memory, a cluster in memory that can refuse or fail on
 * demand. Counts writes, and lets every n-th call fail to see that passes converge all the same. */
#include <pthread.h>

#include "apiserver/base/json.h"
#include "apiserver/base/map.h"
#include "openapi/kinds.h"
#include "reconcile/child.h"
#include "reconcile/condition.h"
#include "reconcile/keys.h"
#include "reconcile/sandbox_pass.h"
#include "storage/memstore.h"
#include "tests/lib/fake_cluster.h"
#include "tests/lib/pool_world.h"
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
    int64_t ahead_ms; /* the passes' clock, of the real one */
} fx;

static int64_t deadline(void)
{
    return clock_monotonic_ms(&clock_system) + CALL_MS;
}

/* Deadlines are of the real clock, as the registry's are; a test may set the passes' clock ahead.
 */
static int64_t ahead_unix_ms(const struct clock *c)
{
    (void)c;
    return clock_unix_ms(&clock_system) + fx.ahead_ms;
}

static int64_t ahead_monotonic_ms(const struct clock *c)
{
    (void)c;
    return clock_monotonic_ms(&clock_system) + fx.ahead_ms;
}

static const struct clock clock_ahead = {.unix_ms = ahead_unix_ms,
                                         .monotonic_ms = ahead_monotonic_ms};

static bool fence(void *ctx, struct store_compare *ret)
{
    (void)ctx;
    *ret = (struct store_compare){.key = "/lease", .target = STORE_CREATE, .rev = 0};
    return fx.leads;
}

/* Object times are of the fake clock, by admission. */
static void start_reconciler(void)
{
    sandbox_reconciler_free(fx.reconciler);
    fx.reconciler = sandbox_reconciler_new(&(struct sandbox_reconciler_config){
        .env = {.registry = fx.registry,
                .cluster = &fx.cluster.base,
                .clock = &clock_ahead,
                .randomness = &fx.randomness.r,
                .fence = fence},
        .cluster_domain = "cluster.local",
    });
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
    start_reconciler();
}

static void teardown(void)
{
    sandbox_reconciler_free(fx.reconciler);
    fake_cluster_fini(&fx.cluster);
    registry_stop(fx.registry);
    registry_free(fx.registry);
    store_free(fx.store);
}

static void create_named(const char *name, const char *spec)
{
    SCOPED_FREE char *text =
        xasprintf("{\"apiVersion\":\"agents.x-k8s.io/"
                  "v1beta1\",\"kind\":\"Sandbox\",\"metadata\":{\"name\":\"%s\","
                  "\"annotations\":{\"mine\":\"1\"}},"
                  "\"spec\":{\"podTemplate\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":"
                  "\"i\"}]}}%s}}",
                  name, spec);
    cJSON *object;
    ck_assert_int_eq(json_parse_str(text, &object, NULL), 0);
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    int rc = registry_create(fx.registry, &kind_sandbox, "ns", object,
                             &(struct write_options){.deadline_ms = deadline()}, &o, &err);
    ck_assert_msg(rc == 0, "%s", err_text(&err));
}

static void create(const char *spec)
{
    create_named("a", spec);
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

static int try_set_spec(const char *name, const char *value, struct err *err)
{
    const char *kv[] = {name, value};
    SCOPED(object_unref_p) struct object *o = NULL;
    return registry_update(fx.registry,
                           &(struct update_request){.kind = &kind_sandbox,
                                                    .namespace_name = "ns",
                                                    .name = "a",
                                                    .is_patch = true,
                                                    .change = change_spec,
                                                    .ctx = kv},
                           &(struct write_options){.deadline_ms = deadline()}, &o, err);
}

/* value is JSON; NULL removes the field. */
static void set_spec(const char *name, const char *value)
{
    SCOPED(err_fini) struct err err = {0};
    int rc = try_set_spec(name, value, &err);
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

static cJSON *json_of(const char *text)
{
    cJSON *tree = NULL;
    ck_assert_int_eq(json_parse_str(text, &tree, NULL), 0);
    return tree;
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

/* ---- Pods that are not as one expects ---- */

#define TRACKED "\"labels\":{\"agents.x-k8s.io/sandbox-name-hash\":\"e40c292c\"}" /* of a */

/* A Pod that the Sandbox called owner_uid controls, with its tracking label; NULL = nobody's,
 * without. */
static void put_pod(const char *name, const char *owner_uid)
{
    SCOPED_FREE char *owner =
        owner_uid ? xasprintf("," TRACKED ",\"ownerReferences\":[{\"apiVersion\":\"agents.x-k8s.io/"
                              "v1beta1\",\"kind\":\"Sandbox\",\"name\":\"a\",\"uid\":\"%s\","
                              "\"controller\":true}]",
                              owner_uid)
                  : xstrdup("");
    SCOPED_FREE char *text =
        xasprintf("{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"pod-%s\"%s},"
                  "\"status\":{\"phase\":\"Running\"}}",
                  name, name, owner);
    cJSON *object = NULL;
    ck_assert_int_eq(json_parse_str(text, &object, NULL), 0);
    fake_cluster_put(&fx.cluster, CHILD_POD, "ns", object);
}

static char *own_uid(void)
{
    SCOPED(json_free_p) cJSON *sandbox = read_back();
    return xstrdup(meta_uid(sandbox));
}

static bool has_child(const char *key)
{
    return omap_get(fx.cluster.objects, key) != NULL;
}

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
        test_evicted_pod_ends_it,
        test_quota,
        test_no_node,
        test_container_that_cannot_start,
        test_ready_does_not_flip,
        test_volume_claim_metadata,
        test_expired_retain,
        test_expired_delete,
        test_cluster_does_not_answer,
        test_not_leading_writes_nothing,
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
    tcase_add_loop_test(tc, test_converges, 0, 35);
    tcase_add_loop_test(tc, test_claim_templates_stay, 0, 3);
    tcase_add_loop_test(tc, test_expired_beside_a_stranger, 0, 2);
    tcase_add_loop_test(tc, test_expired_when_finished, 0, 2);
    suite_add_tcase(s, tc);
}
