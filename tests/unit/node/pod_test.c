#include "node/pod.h"

#include "apiserver/base/json.h"
#include "apiserver/base/str.h"
#include "tests/lib/suite.h"

/* A Pod lives by its plan and its patches alone: each step's patch is put into the Pod as an API
 * server would, and the Pod is read again. What it goes through is written down as text. */

static const struct pod_settings quick = {
    .start_ms = 100, .slow_ms = 5000, .run_ms = 1000, .restart_ms = 10000, .stop_ms = 700};

static cJSON *pod_tree(const char *extra)
{
    cJSON *tree = NULL, *more = NULL;
    ck_assert_int_eq(
        json_parse_str("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\","
                       "\"namespace\":\"x\",\"uid\":\"u1\",\"resourceVersion\":\"7\"},\"spec\":{"
                       "\"nodeName\":\"n\",\"initContainers\":[{\"name\":\"first\",\"image\":\"i\"}"
                       ",{\"name\":\"side\",\"image\":\"i\",\"restartPolicy\":\"Always\"}],"
                       "\"containers\":[{\"name\":\"main\",\"image\":\"i\"}]},\"status\":{"
                       "\"phase\":\"Pending\"}}",
                       &tree, NULL),
        0);
    ck_assert_int_eq(json_parse_str(extra, &more, NULL), 0);
    for (cJSON *m = more->child; m; m = m->next) /* paths */
        json_set_at(tree, m->string, json_copy(m));
    json_free(more);
    return tree;
}

static void annotate(cJSON *tree, const char *name, const char *value)
{
    cJSON *annotations = json_ensure_object(json_get(tree, "metadata"), "annotations");
    json_set_str(annotations, name, value);
}

/* Conditions by type, everything else replaced. */
static void put_condition(cJSON *list, const cJSON *c)
{
    cJSON *old;
    cJSON_ArrayForEach(old, list)
    {
        if (!str_equal(json_str(old, "type"), json_str(c, "type")))
            continue;
        for (const cJSON *m = c->child; m; m = m->next)
            json_set(old, m->string, json_copy(m));
        return;
    }
    json_push(list, json_copy(c));
}

static void put_patch(cJSON *tree, const cJSON *patch)
{
    cJSON *status = json_ensure_object(tree, "status");
    const cJSON *m, *c;
    cJSON_ArrayForEach(m, json_get(patch, "status"))
    {
        if (strcmp(m->string, "conditions") != 0) {
            json_set(status, m->string, json_copy(m));
            continue;
        }
        if (!json_get(status, "conditions"))
            json_set(status, "conditions", json_array());
        cJSON_ArrayForEach(c, m) put_condition(json_get(status, "conditions"), c);
    }
}

static const cJSON *condition(const cJSON *tree, const char *type)
{
    const cJSON *c;
    cJSON_ArrayForEach(c, json_at(tree, "status.conditions"))
    {
        if (str_equal(json_str(c, "type"), type))
            return c;
    }
    return NULL;
}

/* PHASE READY REASON-OF-MAIN RESTARTS */
static void say_state(const cJSON *tree, struct buf *out)
{
    const cJSON *list = json_at(tree, "status.containerStatuses"),
                *main = list ? list->child : NULL;
    const cJSON *state = json_get(main, "state");
    const char *kind = state && state->child ? state->child->string : "none";
    buf_printf(out, "%s/%s/%s%s%s/%d ", json_str_or(tree, "status.phase", "?"),
               json_str_or(condition(tree, "Ready"), "status", "-"), kind,
               state && json_str(state->child, "reason") ? ":" : "",
               state ? json_str_or(state->child, "reason", "") : "",
               (int)json_i64_or(main, "restartCount", 0));
}

/* steps acts, each as +MS STATE; ends with what it waits for. */
static char *live(cJSON *tree, const struct pod_settings *settings, int steps)
{
    struct buf out = {0};
    int64_t now = 1000000, began = now;
    for (int i = 0; i < steps; i++) {
        struct pod *p = pod_new(tree, settings);
        p->since_ms = began;
        struct pod_plan plan = pod_plan(p, settings, now);
        if (plan.act == POD_WAIT && plan.wait_ms > 0) {
            now += plan.wait_ms;
            plan = pod_plan(p, settings, now);
        }
        if (plan.act == POD_ENTER) {
            cJSON *patch = pod_stage_patch(p, plan.stage, "10.128.0.1", "198.18.0.1", now / 1000);
            put_patch(tree, patch);
            json_free(patch);
            buf_printf(&out, "+%d ", (int)(now - began));
            say_state(tree, &out);
        }
        began = now;
        pod_free(p);
        if (plan.act == POD_WAIT || plan.act == POD_END) {
            buf_puts(&out, plan.act == POD_END ? "end" : "rest");
            break;
        }
    }
    return buf_take(&out, NULL);
}

static const struct {
    const char *fault, *start, *restart;
    int steps;
    const char *life;
} lives[] = {
    {NULL, NULL, "Always", 9,
     "+0 Pending/False/waiting:ContainerCreating/0 +100 Running/True/running/0 rest"},
    {NULL, "0s", "Always", 9, "+0 Running/True/running/0 rest"},
    {"slow", NULL, "Always", 9,
     "+0 Pending/False/waiting:ContainerCreating/0 +5000 Running/True/running/0 rest"},
    {"never-ready", "0s", "Always", 9, "+0 Running/False/running/0 rest"},
    {"image-pull", NULL, "Always", 9, "+0 Pending/False/waiting:ImagePullBackOff/0 rest"},
    {"crash", "0s", "Never", 9,
     "+0 Running/True/running/0 +1000 Failed/False/terminated:Error/0 rest"},
    {"crash", "0s", "OnFailure", 5,
     "+0 Running/True/running/0 +1000 Running/False/waiting:CrashLoopBackOff/1 "
     "+10000 Running/True/running/1 +1000 Running/False/waiting:CrashLoopBackOff/2 "
     "+20000 Running/True/running/2 "},
    {"exit", "0s", "OnFailure", 9,
     "+0 Running/True/running/0 +1000 Succeeded/False/terminated:Completed/0 rest"},
    {"exit", "0s", "Always", 3,
     "+0 Running/True/running/0 +1000 Running/False/waiting:CrashLoopBackOff/1 "
     "+10000 Running/True/running/1 "},
    {"no such fault", "0s", "Always", 9, "+0 Running/True/running/0 rest"},
};

START_TEST(test_life)
{
    cJSON *tree = pod_tree("{}");
    json_set_at(tree, "spec.restartPolicy", json_string(lives[_i].restart));
    if (lives[_i].fault)
        annotate(tree, POD_ANNOTATION_FAULT, lives[_i].fault);
    if (lives[_i].start)
        annotate(tree, POD_ANNOTATION_START, lives[_i].start);
    char *life = live(tree, &quick, lives[_i].steps);
    ck_assert_msg(strcmp(life, lives[_i].life) == 0, "%s: %s", lives[_i].fault, life);
    free(life);
    json_free(tree);
}
END_TEST

START_TEST(test_status_of_running)
{
    cJSON *tree = pod_tree("{}");
    annotate(tree, POD_ANNOTATION_START, "0s");
    free(live(tree, &quick, 1));
    static const char *const types[] = {"PodReadyToStartContainers", "Initialized", "Ready",
                                        "ContainersReady"};
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        ck_assert_str_eq(json_str_or(condition(tree, types[i]), "status", "?"), "True");
    ck_assert_str_eq(json_str(tree, "status.podIP"), "10.128.0.1");
    ck_assert_str_eq(json_str(json_at(tree, "status.podIPs")->child, "ip"), "10.128.0.1");
    ck_assert_str_eq(json_str(tree, "status.hostIP"), "198.18.0.1");
    ck_assert_str_eq(json_str(tree, "status.startTime"), "1970-01-01T00:16:40Z");
    const cJSON *init = json_at(tree, "status.initContainerStatuses")->child;
    ck_assert_str_eq(json_str(init, "state.terminated.reason"), "Completed");
    ck_assert(json_bool_or(init, "ready", false));
    ck_assert_ptr_nonnull(json_at(init->next, "state.running")); /* the sidecar */
    json_free(tree);
}
END_TEST

/* A condition's time moves with its status only. */
START_TEST(test_transition_times)
{
    cJSON *tree = pod_tree("{}");
    annotate(tree, POD_ANNOTATION_FAULT, "crash");
    annotate(tree, POD_ANNOTATION_START, "0s");
    free(live(tree, &quick, 1));
    char *initialized = xstrdup(json_str(condition(tree, "Initialized"), "lastTransitionTime"));
    char *ready = xstrdup(json_str(condition(tree, "Ready"), "lastTransitionTime"));
    struct pod *p = pod_new(tree, &quick);
    cJSON *patch = pod_stage_patch(p, POD_CRASHED, "", "198.18.0.1", 5000);
    put_patch(tree, patch);
    ck_assert_str_eq(json_str(condition(tree, "Initialized"), "lastTransitionTime"), initialized);
    ck_assert_str_ne(json_str(condition(tree, "Ready"), "lastTransitionTime"), ready);
    ck_assert_str_eq(json_str(patch, "metadata.uid"), "u1");
    ck_assert_str_eq(json_str(tree, "status.podIP"), "10.128.0.1"); /* stays */
    free(initialized);
    free(ready);
    json_free(patch);
    json_free(tree);
    pod_free(p);
}
END_TEST

static const struct {
    const char *pod; /* paths and values */
    bool schedules;
    int64_t spent_ms;
    enum pod_act act;
    int64_t wait_ms;
} plans[] = {
    {"{\"spec.nodeName\":\"\"}", false, 0, POD_WAIT, 0},
    {"{\"spec.nodeName\":\"\"}", true, 0, POD_BIND, 0},
    {"{\"spec.nodeName\":\"\",\"spec.schedulingGates\":[{\"name\":\"g\"}]}", true, 0, POD_WAIT, 0},
    {"{\"spec.nodeName\":\"\",\"metadata.deletionTimestamp\":\"2026-01-01T00:00:00Z\"}", true, 0,
     POD_WAIT, 0},
    {"{\"metadata.deletionTimestamp\":\"2026-01-01T00:00:00Z\","
     "\"metadata.deletionGracePeriodSeconds\":30}",
     false, 200, POD_WAIT, 500},
    {"{\"metadata.deletionTimestamp\":\"2026-01-01T00:00:00Z\","
     "\"metadata.deletionGracePeriodSeconds\":30}",
     false, 700, POD_END, 0},
    {"{\"metadata.deletionTimestamp\":\"2026-01-01T00:00:00Z\","
     "\"metadata.deletionGracePeriodSeconds\":0}",
     false, 0, POD_END, 0},
    {"{\"status.phase\":\"Failed\"}", false, 0, POD_WAIT, 0},
    {"{\"status.startTime\":\"2026-01-01T00:00:00Z\"}", false, 40, POD_WAIT, 60},
};

START_TEST(test_plan)
{
    struct pod_settings settings = quick;
    settings.schedules = plans[_i].schedules;
    cJSON *tree = pod_tree(plans[_i].pod);
    struct pod *p = pod_new(tree, &settings);
    struct pod_plan plan = pod_plan(p, &settings, plans[_i].spent_ms);
    ck_assert_msg(plan.act == plans[_i].act, "%s: %d", plans[_i].pod, (int)plan.act);
    ck_assert_msg(plan.wait_ms == plans[_i].wait_ms, "%s: %d", plans[_i].pod, (int)plan.wait_ms);
    pod_free(p);
    json_free(tree);
}
END_TEST

START_TEST(test_unschedulable)
{
    struct pod_settings settings = quick;
    settings.schedules = true;
    cJSON *tree = pod_tree("{\"spec.nodeName\":\"\"}");
    annotate(tree, POD_ANNOTATION_FAULT, "unschedulable");
    struct pod *p = pod_new(tree, &settings);
    ck_assert_int_eq(pod_plan(p, &settings, 0).act, POD_CALL_UNSCHEDULABLE);
    cJSON *patch = pod_unschedulable_patch(p, "0/1 nodes are available", 5);
    put_patch(tree, patch);
    json_free(patch);
    pod_free(p);
    p = pod_new(tree, &settings);
    ck_assert_int_eq(pod_plan(p, &settings, 0).act, POD_WAIT); /* said once */
    ck_assert_str_eq(json_str(condition(tree, "PodScheduled"), "reason"), "Unschedulable");
    pod_free(p);
    json_free(tree);
}
END_TEST

/* Of many Pods about so many per cent have the fault, and each keeps it. */
START_TEST(test_chance)
{
    struct pod_settings settings = quick;
    settings.percent[POD_FAULT_CRASH] = 20;
    settings.percent[POD_FAULT_SLOW] = 10;
    int n[POD_FAULTS] = {0};
    for (int i = 0; i < 2000; i++) {
        cJSON *tree = pod_tree("{}");
        SCOPED_FREE char *uid = xasprintf("uid-%d", i);
        json_set_str(json_get(tree, "metadata"), "uid", uid);
        struct pod *a = pod_new(tree, &settings), *b = pod_new(tree, &settings);
        ck_assert_int_eq(a->fault, b->fault);
        n[a->fault]++;
        pod_free(a);
        pod_free(b);
        json_free(tree);
    }
    ck_assert_int_gt(n[POD_FAULT_CRASH], 300);
    ck_assert_int_lt(n[POD_FAULT_CRASH], 500);
    ck_assert_int_gt(n[POD_FAULT_SLOW], 120);
    ck_assert_int_lt(n[POD_FAULT_SLOW], 280);
    ck_assert_int_gt(n[POD_FAULT_NONE], 1200);
}
END_TEST

START_TEST(test_bodies)
{
    cJSON *tree = pod_tree("{}");
    struct pod *p = pod_new(tree, &quick);
    cJSON *binding = pod_binding(p, "n1"), *options = pod_end_options(p);
    ck_assert_str_eq(json_str(binding, "target.name"), "n1");
    ck_assert_str_eq(json_str(binding, "metadata.uid"), "u1");
    ck_assert_int_eq(json_i64_or(options, "gracePeriodSeconds", -1), 0);
    ck_assert_str_eq(json_str(options, "preconditions.uid"), "u1");
    cJSON *refused = pod_stage_patch(p, POD_REFUSED, "", "198.18.0.1", 5);
    ck_assert_str_eq(json_str(refused, "status.reason"), "OutOfpods");
    ck_assert_str_eq(json_str(refused, "status.phase"), "Failed");
    json_free(refused);
    json_free(binding);
    json_free(options);
    pod_free(p);
    json_free(tree);
    tree = pod_tree("{\"metadata.uid\":5}");
    ck_assert_ptr_null(pod_new(tree, &quick));
    json_free(tree);
}
END_TEST

SUITE(node_pod)
{
    LOOP("lives", test_life, 0, ARRAY_LEN(lives));
    LOOP("plans", test_plan, 0, ARRAY_LEN(plans));
    TESTS("status", test_status_of_running, test_transition_times, test_unschedulable, test_bodies);
    TESTS("chance", test_chance);
}
