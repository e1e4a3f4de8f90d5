/* Suspension for being idle and the return from it: decisions as tables, then whole lives over a
 * registry and a cluster in memory, where only the test moves the time. */
#include "reconcile/idle.h"

#include <pthread.h>

#include "apiserver/base/metric.h"
#include "openapi/kinds.h"
#include "reconcile/child.h"
#include "reconcile/condition.h"
#include "reconcile/keys.h"
#include "reconcile/sandbox_pass.h"
#include "tests/lib/fake_cluster.h"
#include "tests/lib/world.h"

#define MINUTE_MS 60000

/* ---- decisions ---- */

#define TIMEOUT "\"sandbox-apiserver/idle-timeout\":\"10m\""
#define UNTIL(t) ",\"sandbox-apiserver/active-until\":\"2026-01-02T" t "Z\""
#define SINCE ",\"sandbox-apiserver/idle-since\":\"2026-01-02T02:00:00Z\""
#define READY(status) "{\"type\":\"Ready\",\"status\":\"" status "\"}"
#define SUSPENDED "\"operatingMode\":\"Suspended\""
#define OWNED_BY(kind)                                                                             \
    ",\"ownerReferences\":[{\"apiVersion\":\"extensions.agents.x-k8s.io/"                          \
    "v1beta1\",\"kind\":\"" kind "\",\"name\":\"o\",\"controller\":true}]"

/* It is 03:04:05. */
static const struct {
    const char *id, *annotations, *meta, *spec, *conditions;
    enum idle_step step;
    int64_t left_ms;
} plans[] = {
    {"not asked for", "", "", "", READY("True"), IDLE_KEEP, 0},
    {"never ready", TIMEOUT, "", "", READY("False"), IDLE_KEEP, 0},
    {"ready at last", TIMEOUT, "", "", READY("True"), IDLE_BEGIN, 10 * MINUTE_MS},
    {"in use", TIMEOUT UNTIL("03:00:00"), "", "", READY("True"), IDLE_KEEP, 355000},
    {"in use, failing", TIMEOUT UNTIL("03:00:00"), "", "", READY("False"), IDLE_KEEP, 355000},
    {"just in time", TIMEOUT UNTIL("02:54:06"), "", "", READY("True"), IDLE_KEEP, 1000},
    {"over", TIMEOUT UNTIL("02:54:05"), "", "", READY("True"), IDLE_SUSPEND, 0},
    {"over, of a claim", TIMEOUT UNTIL("02:54:05"), OWNED_BY("SandboxClaim"), "", READY("True"),
     IDLE_SUSPEND, 0},
    {"IL-046 of a pool: nobody has it yet", TIMEOUT UNTIL("02:54:05"), OWNED_BY("SandboxWarmPool"),
     "", READY("True"), IDLE_KEEP, 0},
    {"its pod has ended", TIMEOUT UNTIL("02:54:05"), "", "",
     READY("False") ",{\"type\":\"Finished\",\"status\":\"True\"}", IDLE_KEEP, 0},
    {"unreadable time counts as none", TIMEOUT ",\"sandbox-apiserver/active-until\":\"soon\"", "",
     "", READY("True"), IDLE_BEGIN, 10 * MINUTE_MS},
    {"suspended", TIMEOUT SINCE, "", SUSPENDED, READY("False"), IDLE_KEEP, 0},
    {"suspended by its user", TIMEOUT UNTIL("03:00:00"), "", SUSPENDED, READY("False"), IDLE_FORGET,
     0},
    {"resumed by its user", TIMEOUT SINCE, "", "", READY("False"), IDLE_FORGET, 0},
};

static cJSON *tree_of(const char *annotations, const char *meta, const char *spec)
{
    SCOPED_FREE char *text =
        xasprintf("{\"metadata\":{\"name\":\"s\",\"annotations\":{%s}%s},\"spec\":{%s}}",
                  annotations, meta, spec);
    return world_tree(text);
}

START_TEST(test_plan)
{
    SCOPED(json_free_p)
    cJSON *sandbox = tree_of(plans[_i].annotations, plans[_i].meta, plans[_i].spec);
    SCOPED_FREE char *text = xasprintf("[%s]", plans[_i].conditions);
    SCOPED(json_free_p) cJSON *conditions = world_tree(text);
    int64_t left_ms;
    enum idle_step step = idle_plan(sandbox, conditions, WORLD_NOW_MS, &left_ms);
    ck_assert_msg(step == plans[_i].step, "%s: step %d", plans[_i].id, step);
    ck_assert_msg(left_ms == plans[_i].left_ms, "%s: left %lld", plans[_i].id, (long long)left_ms);
}
END_TEST

static const struct {
    const char *id, *annotations, *spec;
    enum activity outcome;
    bool is_refused;
    const char *mode, *until; /* afterwards; NULL = absent */
} notes[] = {
    {"not asked for", "", "", ACTIVITY_NONE, false, NULL, NULL},
    {"its time does not run yet", TIMEOUT, "", ACTIVITY_NONE, false, NULL, NULL},
    {"noted for a twentieth of the timeout", TIMEOUT UNTIL("03:00:00"), "", ACTIVITY_NOTED, false,
     NULL, "2026-01-02T03:04:35Z"},
    {"within what was noted", TIMEOUT UNTIL("03:04:06"), "", ACTIVITY_NONE, false, NULL,
     "2026-01-02T03:04:06Z"},
    {"short timeout: a second", "\"sandbox-apiserver/idle-timeout\":\"2s\"" UNTIL("03:04:05"), "",
     ACTIVITY_NOTED, false, NULL, "2026-01-02T03:04:06Z"},
    {"wakes", TIMEOUT SINCE, SUSPENDED, ACTIVITY_WOKEN, false, "Running", NULL},
    {"wakes though the wish is gone", SINCE + 1, SUSPENDED, ACTIVITY_WOKEN, false, "Running", NULL},
    {"suspended by its user", TIMEOUT, SUSPENDED, ACTIVITY_NONE, true, "Suspended", NULL},
};

START_TEST(test_note)
{
    SCOPED(json_free_p) cJSON *sandbox = tree_of(notes[_i].annotations, "", notes[_i].spec);
    SCOPED(err_fini) struct err err = {0};
    enum activity outcome;
    int rc = idle_note_activity(sandbox, WORLD_NOW_MS, &outcome, &err);
    ck_assert_msg(rc == (notes[_i].is_refused ? -(int)ERR_CONFLICT : 0), "%s: %d", notes[_i].id,
                  rc);
    ck_assert_msg(outcome == notes[_i].outcome, "%s: outcome %d", notes[_i].id, outcome);
    ck_assert_pstr_eq(json_str(sandbox, "spec.operatingMode"), notes[_i].mode);
    ck_assert_pstr_eq(meta_annotation(sandbox, ANNOTATION_ACTIVE_UNTIL), notes[_i].until);
    if (outcome == ACTIVITY_WOKEN)
        ck_assert_ptr_null(meta_annotation(sandbox, ANNOTATION_IDLE_SINCE));
}
END_TEST

/* ---- lives ---- */

static struct world w;
static struct fake_cluster cluster;
static struct sandbox_reconciler *reconciler;
static struct idle_activity activity;

static void start_reconciler(void)
{
    reconciler = sandbox_reconciler_new(
        &(struct sandbox_reconciler_config){.env = {.registry = w.registry,
                                                    .cluster = &cluster.base,
                                                    .clock = &w.clock.clock,
                                                    .randomness = &w.randomness},
                                            .cluster_domain = "cluster.local"});
}

static void setup(void)
{
    world_start(&w, NULL);
    fake_cluster_init(&cluster);
    idle_activity_init(&activity, &w.clock.clock);
    start_reconciler();
}

static void teardown(void)
{
    sandbox_reconciler_free(reconciler);
    fake_cluster_fini(&cluster);
    world_stop(&w);
}

/* ms until the next look, 0 = none; negative = failed. */
static int64_t pass(void)
{
    struct loop_result r = {0};
    int rc = sandbox_pass(reconciler, "ns/s", &r);
    return rc < 0 ? rc : r.again_after_ms;
}

static struct activity_request request(void)
{
    return (struct activity_request){.kind = &kind_sandbox,
                                     .namespace_name = "ns",
                                     .name = "s",
                                     .ops = &activity.ops,
                                     .deadline_ms = world_deadline()};
}

static enum activity report(void)
{
    struct activity_request req = request();
    SCOPED(err_fini) struct err err = {0};
    enum activity outcome;
    int rc = registry_activity(w.registry, &req, &outcome, &err);
    ck_assert_msg(rc == 0, "%s", err_text(&err));
    return outcome;
}

static cJSON *read_back(void)
{
    SCOPED(object_unref_p) struct object *o = world_get(&w, "ns", "s");
    return object_tree(o);
}

static void expect_mode(const char *mode)
{
    SCOPED(json_free_p) cJSON *sandbox = read_back();
    ck_assert_str_eq(json_str(sandbox, "spec.operatingMode"), mode);
}

static bool has_pod(void)
{
    return fake_cluster_find(&cluster, CHILD_POD, "ns", "s") != NULL;
}

/* What a kubelet would report. */
static void make_ready(void)
{
    json_set(fake_cluster_find(&cluster, CHILD_POD, "ns", "s"), "status",
             world_tree("{\"phase\":\"Running\",\"podIPs\":[{\"ip\":\"10.0.0.1\"}],\"conditions\":"
                        "[{\"type\":\"Ready\",\"status\":\"True\"}]}"));
}

static void begin(void)
{
    object_unref(world_create(&w, "ns", "s", "\"annotations\":{" TIMEOUT "}"));
    ck_assert_int_eq(pass(), 0);
    make_ready();
}

/* IL-071, IL-072: exact to the second, woken once, a slow start is not idleness. */
START_TEST(test_life)
{
    begin();
    int64_t settled = registry_revision(w.registry);
    ck_assert_int_eq(pass(), 10 * MINUTE_MS); /* from its readiness on, to the second */
    ck_assert_int_eq(registry_revision(w.registry), settled + 1); /* in the write that says ready */
    ck_assert_int_eq(pass(), 10 * MINUTE_MS);
    ck_assert_int_eq(registry_revision(w.registry), settled + 1);
    clock_fake_advance(&w.clock, 10 * MINUTE_MS - 1000);
    ck_assert_int_eq(pass(), 1000);
    expect_mode("Running");
    clock_fake_advance(&w.clock, 1000);
    ck_assert_int_eq(pass(), 0);
    expect_mode("Suspended");
    ck_assert_str_eq(cluster.last_event, "SandboxIdle");
    ck_assert(has_pod());
    pass();
    ck_assert(!has_pod());
    pass();
    SCOPED(json_free_p) cJSON *sandbox = read_back();
    ck_assert(
        condition_has_reason(json_at(sandbox, "status.conditions"), "Suspended", "PodTerminated"));
    ck_assert_str_eq(meta_annotation(sandbox, ANNOTATION_IDLE_SINCE), "2026-01-02T03:04:05Z");
    settled = registry_revision(w.registry);
    clock_fake_advance(&w.clock, 100 * MINUTE_MS);
    ck_assert_int_eq(pass(), 0); /* sleeps without writes */
    ck_assert_int_eq(registry_revision(w.registry), settled);
    ck_assert_int_eq(report(), ACTIVITY_WOKEN);
    ck_assert_int_eq(registry_revision(w.registry), settled + 1);
    ck_assert_int_eq(report(), ACTIVITY_NONE); /* a hundred requests wake once */
    ck_assert_int_eq(registry_revision(w.registry), settled + 1);
    pass();
    ck_assert(has_pod());
    clock_fake_advance(&w.clock, 20 * MINUTE_MS); /* a slow start is not idleness */
    ck_assert_int_eq(pass(), 0);
    make_ready();
    ck_assert_int_eq(pass(), 10 * MINUTE_MS);
}
END_TEST

/* One write for each twentieth of the timeout, however often it is reported; and each report
 * counts.
 */
START_TEST(test_writes_of_activity)
{
    begin();
    pass();
    int64_t settled = registry_revision(w.registry);
    for (int i = 0; i < 20 * 60; i++) { /* each second for twenty minutes */
        clock_fake_advance(&w.clock, 1000);
        report();
        if (i % 60 == 0)
            ck_assert_int_gt(pass(), 9 * MINUTE_MS);
    }
    ck_assert_int_le(registry_revision(w.registry) - settled, 20 * 60 / 30);
    expect_mode("Running");
    SCOPED(json_free_p) cJSON *sandbox = read_back();
    ck_assert_int_eq(json_i64_or(sandbox, "metadata.generation", 0), 1);
    int64_t left = pass(); /* never early, at most a slice late */
    ck_assert_int_ge(left, 10 * MINUTE_MS);
    ck_assert_int_le(left, 10 * MINUTE_MS + 30000);
}
END_TEST

/* Its user suspends and resumes: the time begins anew, and activity does not undo a suspension that
 * was wished for. */
START_TEST(test_user_decides)
{
    begin();
    pass();
    object_unref(world_set(&w, "ns", "s", "spec.operatingMode", "\"Suspended\""));
    for (int i = 0; i < 3; i++)
        pass();
    ck_assert(!has_pod());
    struct activity_request req = request();
    SCOPED(err_fini) struct err err = {0};
    enum activity outcome;
    ck_assert_int_eq(registry_activity(w.registry, &req, &outcome, &err), -ERR_CONFLICT);
    clock_fake_advance(&w.clock, 60 * MINUTE_MS);
    object_unref(world_set(&w, "ns", "s", "spec.operatingMode", "\"Running\""));
    ck_assert_int_eq(pass(), 0);
    expect_mode("Running");
    make_ready();
    ck_assert_int_eq(pass(), 10 * MINUTE_MS);
}
END_TEST

/* An idle one that its user resumes by the field alone. */
START_TEST(test_resumed_by_user)
{
    begin();
    pass();
    clock_fake_advance(&w.clock, 10 * MINUTE_MS);
    for (int i = 0; i < 3; i++)
        pass();
    expect_mode("Suspended");
    object_unref(world_set(&w, "ns", "s", "spec.operatingMode", "\"Running\""));
    ck_assert_int_eq(pass(), 0);
    SCOPED(json_free_p) cJSON *sandbox = read_back();
    ck_assert_ptr_null(meta_annotation(sandbox, ANNOTATION_IDLE_SINCE));
    make_ready();
    ck_assert_int_eq(pass(), 10 * MINUTE_MS);
    expect_mode("Running");
}
END_TEST

/* A new leader, or a restart, goes by what is stored: the time does not begin anew. */
START_TEST(test_restart)
{
    begin();
    pass();
    clock_fake_advance(&w.clock, 4 * MINUTE_MS);
    sandbox_reconciler_free(reconciler);
    world_stop_registry(&w);
    world_start_registry(&w);
    start_reconciler();
    ck_assert_int_eq(pass(), 6 * MINUTE_MS);
}
END_TEST

static void *suspend(void *arg)
{
    (void)arg;
    pass();
    return NULL;
}

static void *use(void *arg)
{
    (void)arg;
    report();
    return NULL;
}

/* The time runs out and somebody comes, both at once: whoever is first, it runs in the end. */
START_TEST(test_no_lost_wake)
{
    begin();
    pass();
    for (int i = 0; i < 50; i++) {
        pthread_t a, b;
        clock_fake_advance(&w.clock, 30 * MINUTE_MS);
        pthread_create(&a, NULL, i % 2 ? suspend : use, NULL);
        pthread_create(&b, NULL, i % 2 ? use : suspend, NULL);
        pthread_join(a, NULL);
        pthread_join(b, NULL);
        expect_mode("Running");
        pass();
        make_ready();
        pass();
    }
}
END_TEST

static void *become_ready(void *arg)
{
    (void)arg;
    pass();
    make_ready();
    pass();
    return NULL;
}

START_TEST(test_wait)
{
    begin();
    pass();
    clock_fake_advance(&w.clock, 10 * MINUTE_MS);
    for (int i = 0; i < 3; i++)
        pass();
    struct activity_request req = request();
    SCOPED(err_fini) struct err err = {0}, late = {0};
    req.deadline_ms = clock_monotonic_ms(&clock_system) + 50;
    ck_assert_int_eq(registry_await_ready(w.registry, &req, &late), -ERR_TIMEOUT);
    ck_assert_int_eq(report(), ACTIVITY_WOKEN);
    pthread_t thread;
    pthread_create(&thread, NULL, become_ready, NULL);
    req.deadline_ms = world_deadline();
    int rc = registry_await_ready(w.registry, &req, &err);
    pthread_join(thread, NULL);
    ck_assert_msg(rc == 0, "%s", err_text(&err));
}
END_TEST

#define CROWD 5000 /* watches; they are told at most every 100 ms */
#define CROWD_MS 100
#define ROUNDS 8

static void nobody_reads(void *ctx)
{
    (void)ctx;
}

static bool is_waiting; /* the wait has seen that it is not ready yet */

static bool spy_is_ready(void *ctx, const cJSON *object)
{
    bool is_ready = activity.ops.is_ready(ctx, object);
    __atomic_store_n(&is_waiting, !is_ready, __ATOMIC_RELEASE);
    return is_ready;
}

static void *await_ready(void *arg)
{
    struct activity_ops ops = activity.ops;
    ops.is_ready = spy_is_ready;
    struct activity_request req = request();
    SCOPED(err_fini) struct err err = {0};
    req.ops = &ops;
    int rc = registry_await_ready(w.registry, &req, &err);
    ck_assert_msg(rc == 0, "%s", err_text(&err));
    *(int64_t *)arg = clock_monotonic_ms(&clock_system);
    return NULL;
}

/* How long after it is ready a wait for that ends, ms. All have just been told something. */
static int64_t waited_ms(void)
{
    pthread_t thread;
    int64_t end_ms;
    clock_fake_advance(&w.clock, 30 * MINUTE_MS);
    for (int i = 0; i < 3; i++)
        pass();
    ck_assert_int_eq(report(), ACTIVITY_WOKEN);
    pthread_create(&thread, NULL, await_ready, &end_ms);
    while (!__atomic_load_n(&is_waiting, __ATOMIC_ACQUIRE))
        sleep_ms(1);
    pass();
    make_ready();
    pass();
    int64_t begin_ms = clock_monotonic_ms(&clock_system);
    pthread_join(thread, NULL);
    is_waiting = false;
    return end_ms - begin_ms;
}

/* However many watch Sandboxes: who waits to use one is told before them. */
START_TEST(test_wait_in_a_crowd)
{
    static struct watch *crowd[CROWD];
    int soon = 0;
    SCOPED(err_fini) struct err err = {0};
    begin();
    pass();
    for (size_t i = 0; i < CROWD; i++)
        ck_assert(registry_watch(w.registry, &(struct watch_request){.kind = &kind_sandbox},
                                 nobody_reads, NULL, &crowd[i], &err) == 0);
    for (int i = 0; i < ROUNDS; i++)
        soon += waited_ms() < CROWD_MS / 2;
    ck_assert_int_ge(soon, ROUNDS / 2);
    for (size_t i = 0; i < CROWD; i++)
        watch_close(crowd[i]);
}
END_TEST

SUITE(idle)
{
    LOOP("plan", test_plan, 0, ARRAY_LEN(plans));
    LOOP("note", test_note, 0, ARRAY_LEN(notes));
    TCase *tc = tcase_create("lives");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    const TTest *const tests[] = {test_life,    test_writes_of_activity, test_user_decides,
                                  test_restart, test_resumed_by_user,    test_no_lost_wake,
                                  test_wait,    test_wait_in_a_crowd};
    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        tcase_add_test(tc, tests[i]);
    suite_add_tcase(s, tc);
}
