#include "node/status.h"

#include "apiserver/base/json.h"
#include "apiserver/base/str.h"
#include "tests/lib/suite.h"

#define NOW 1700000000000

static cJSON *tree_of(const char *text)
{
    cJSON *tree = NULL;
    ck_assert_msg(json_parse_str(text, &tree, NULL) == 0, "%s", text);
    return tree;
}

/* A Pod of one container, whatever is known of it. */
struct scene {
    cJSON *pod;
    struct instance now, before, pause;
    struct member member;
    struct waiting waiting;
    struct plan plan;
};

static void scene_init(struct scene *s, const char *status)
{
    *s = (struct scene){0};
    s->pod = tree_of("{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":\"u\"},\"spec\":{"
                     "\"containers\":[{\"name\":\"m\",\"image\":\"i\"}]}}");
    json_set_at(s->pod, "status", tree_of(status));
    static char id[] = "c1", old_id[] = "c0";
    s->pause.state = INSTANCE_RUNNING;
    s->now = (struct instance){
        .id = id, .attempt = 1, .created_ms = NOW, .started_ms = NOW, .finished_ms = NOW};
    s->before = (struct instance){
        .id = old_id, .state = INSTANCE_EXITED, .exit_code = 9, .created_ms = NOW};
    s->member = (struct member){
        .spec = json_at(s->pod, "spec.containers")->child, .name = "m", .kind = MEMBER_MAIN};
    s->plan = (struct plan){
        .members = &s->member, .n = 1, .pause = &s->pause, .is_initialized = true, .now_ms = NOW};
}

static cJSON *scene_status(struct scene *s)
{
    const char *image = "digest";
    return status_make(&(struct status_input){.pod = s->pod,
                                              .plan = &s->plan,
                                              .waiting = &s->waiting,
                                              .images = &image,
                                              .pod_ip = "10.0.0.1",
                                              .host_ip = "10.0.0.2",
                                              .now_ms = NOW});
}

static const cJSON *condition(const cJSON *status, const char *type)
{
    const cJSON *c;
    cJSON_ArrayForEach(c, json_get(status, "conditions"))
    {
        if (str_equal(json_str(c, "type"), type))
            return c;
    }
    return NULL;
}

static void check_container(const cJSON *status, const char *member, const char *text)
{
    const cJSON *value = json_at(json_get(status, "containerStatuses")->child, member);
    ck_assert_msg(value != NULL, "no %s", member);
    SCOPED_FREE char *got = json_to_str(value);
    ck_assert_str_eq(got, text);
}

START_TEST(test_creating)
{
    struct scene s;
    scene_init(&s, "{}");
    SCOPED(json_free_p) cJSON *status = scene_status(&s);
    check_container(status, "state", "{\"waiting\":{\"reason\":\"ContainerCreating\"}}");
    check_container(status, "ready", "false");
    check_container(status, "restartCount", "0");
    ck_assert_str_eq(json_str(status, "startTime"), "2023-11-14T22:13:20Z");
    ck_assert_str_eq(json_str(condition(status, "Ready"), "message"),
                     "containers with unready status: [m]");
    json_free(s.pod);
}
END_TEST

START_TEST(test_running_and_ready)
{
    struct scene s;
    scene_init(&s, "{\"startTime\":\"2020-01-01T00:00:00Z\"}");
    s.now.state = INSTANCE_RUNNING;
    s.member.now = &s.now;
    s.member.before = &s.before;
    s.member.is_ready = s.member.has_started = true;
    s.plan.phase = PHASE_RUNNING;
    SCOPED(json_free_p) cJSON *status = scene_status(&s);
    check_container(status, "state", "{\"running\":{\"startedAt\":\"2023-11-14T22:13:20Z\"}}");
    check_container(status, "lastState.terminated.exitCode", "9");
    check_container(status, "ready", "true");
    check_container(status, "started", "true");
    check_container(status, "restartCount", "1");
    check_container(status, "containerID", "\"podman://c1\"");
    check_container(status, "imageID", "\"digest\"");
    ck_assert_str_eq(json_str(status, "phase"), "Running");
    ck_assert_str_eq(json_str(status, "startTime"), "2020-01-01T00:00:00Z");
    ck_assert_str_eq(json_str(condition(status, "Ready"), "status"), "True");
    ck_assert_str_eq(json_get(status, "podIPs")->child->child->valuestring, "10.0.0.1");
    json_free(s.pod);
}
END_TEST

START_TEST(test_crash_loop)
{
    struct scene s;
    scene_init(&s, "{}");
    s.now.state = INSTANCE_EXITED;
    s.now.exit_code = 1;
    s.now.is_oom_killed = true;
    s.member.now = &s.now;
    s.member.is_waiting = true;
    s.member.step = 3;
    SCOPED(json_free_p) cJSON *status = scene_status(&s);
    check_container(status, "state",
                    "{\"waiting\":{\"reason\":\"CrashLoopBackOff\",\"message\":\"back-off 20s "
                    "restarting failed container=m pod=p_n(u)\"}}");
    check_container(status, "lastState.terminated.reason", "\"OOMKilled\"");
    json_free(s.pod);
}
END_TEST

START_TEST(test_trouble_is_said)
{
    struct scene s;
    scene_init(&s, "{}");
    s.waiting = (struct waiting){"ErrImagePull", "no such image"};
    SCOPED(json_free_p) cJSON *status = scene_status(&s);
    check_container(status, "state",
                    "{\"waiting\":{\"reason\":\"ErrImagePull\",\"message\":\"no such image\"}}");
    json_free(s.pod);
}
END_TEST

START_TEST(test_ends)
{
    struct scene s;
    scene_init(&s, "{}");
    s.now.state = INSTANCE_EXITED;
    s.member.now = &s.now;
    s.member.is_over = true;
    s.plan.phase = PHASE_SUCCEEDED;
    SCOPED(json_free_p) cJSON *status = scene_status(&s);
    check_container(status, "state.terminated.reason", "\"Completed\"");
    ck_assert_str_eq(json_str(condition(status, "Ready"), "reason"), "PodCompleted");
    ck_assert_str_eq(json_str(condition(status, "Initialized"), "reason"), "PodCompleted");
    json_free(s.pod);
}
END_TEST

START_TEST(test_readiness_gate)
{
    struct scene s;
    scene_init(&s, "{\"conditions\":[{\"type\":\"x/y\",\"status\":\"False\"}]}");
    json_set_at(s.pod, "spec.readinessGates", tree_of("[{\"conditionType\":\"x/y\"}]"));
    s.now.state = INSTANCE_RUNNING;
    s.member.now = &s.now;
    s.member.is_ready = true;
    SCOPED(json_free_p) cJSON *status = scene_status(&s);
    ck_assert_str_eq(json_str(condition(status, "ContainersReady"), "status"), "True");
    ck_assert_str_eq(json_str(condition(status, "Ready"), "status"), "False");
    ck_assert_str_eq(json_str(condition(status, "Ready"), "reason"), "ReadinessGatesNotReady");
    json_free(s.pod);
}
END_TEST

START_TEST(test_time_of_a_condition_is_that_of_its_change)
{
    struct scene s;
    scene_init(&s, "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\",\"lastTransitionTime"
                   "\":\"2020-01-01T00:00:00Z\"},{\"type\":\"ContainersReady\",\"status\":\"True\","
                   "\"lastTransitionTime\":\"2020-01-01T00:00:00Z\"}]}");
    SCOPED(json_free_p) cJSON *status = scene_status(&s);
    ck_assert_str_eq(json_str(condition(status, "Ready"), "lastTransitionTime"),
                     "2020-01-01T00:00:00Z");
    ck_assert_str_eq(json_str(condition(status, "ContainersReady"), "lastTransitionTime"),
                     "2023-11-14T22:13:20Z");
    json_free(s.pod);
}
END_TEST

START_TEST(test_patch_only_when_something_changes)
{
    struct scene s;
    scene_init(&s, "{}");
    SCOPED(json_free_p) cJSON *status = scene_status(&s);
    SCOPED(json_free_p) cJSON *patch = status_patch(s.pod, status);
    ck_assert_ptr_nonnull(patch);
    ck_assert_str_eq(json_str(patch, "metadata.uid"), "u");
    /* the cluster keeps conditions of others and adds fields of its own */
    json_set_at(s.pod, "status", json_copy(status));
    json_set_at(s.pod, "status.qosClass", json_string("BestEffort"));
    json_push(json_at(s.pod, "status.conditions"), tree_of("{\"type\":\"x\",\"status\":\"True\"}"));
    ck_assert_ptr_null(status_patch(s.pod, status));
    /* another address takes the old one's place */
    json_set_at(s.pod, "status.podIPs", tree_of("[{\"ip\":\"10.9.9.9\"}]"));
    SCOPED(json_free_p) cJSON *moved = status_patch(s.pod, status);
    ck_assert_ptr_nonnull(moved);
    SCOPED_FREE char *list = json_to_str(json_at(moved, "status.podIPs"));
    ck_assert_str_eq(list, "[{\"$patch\":\"replace\"},{\"ip\":\"10.0.0.1\"}]");
    json_free(s.pod);
}
END_TEST

START_TEST(test_refused)
{
    struct scene s;
    scene_init(&s, "{}");
    SCOPED(json_free_p)
    cJSON *status = status_refused(s.pod, "UnsupportedPod", "spec.x: no", "", NOW);
    ck_assert_str_eq(json_str(status, "phase"), "Failed");
    ck_assert_str_eq(json_str(condition(status, "Ready"), "reason"), "UnsupportedPod");
    ck_assert_str_eq(json_str(condition(status, "Ready"), "message"), "spec.x: no");
    json_free(s.pod);
}
END_TEST

SUITE(status)
{
    TESTS("containers", test_creating, test_running_and_ready, test_crash_loop,
          test_trouble_is_said, test_ends);
    TESTS("conditions", test_readiness_gate, test_time_of_a_condition_is_that_of_its_change);
    TESTS("patches", test_patch_only_when_something_changes, test_refused);
}
