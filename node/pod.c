/* Two tables say nearly everything: which stage follows which, after what time, under which fault;
 * and what a Pod's status says in each stage. */
#include "node/pod.h"

#include <stdlib.h>
#include <string.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/duration.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/rand.h"
#include "apiserver/base/str.h"

#define CONTAINERS_MAX 200 /* per Pod; more are not simulated */
#define RESTART_MAX_MS (5 * 60000)

const char *const pod_fault_names[POD_FAULTS] = {
    [POD_FAULT_NONE] = "none",
    [POD_FAULT_SLOW] = "slow",
    [POD_FAULT_NEVER_READY] = "never-ready",
    [POD_FAULT_CRASH] = "crash",
    [POD_FAULT_EXIT] = "exit",
    [POD_FAULT_IMAGE_PULL] = "image-pull",
    [POD_FAULT_UNSCHEDULABLE] = "unschedulable",
};

/* ---- the stages ---- */

enum { STATE_WAITING, STATE_RUNNING, STATE_TERMINATED };
static const struct stage_row {
    const char *phase;
    bool is_initialized, is_ready;
    int state;           /* of its containers */
    const char *reason;  /* of their state */
    const char *message; /* of their state */
    int exit_code;
    const char *pod_reason, *not_ready_reason;
} stages[POD_STAGES] = {
    [POD_NEW] = {.phase = "Pending"},
    [POD_STARTING] = {.phase = "Pending",
                      .is_initialized = true,
                      .reason = "ContainerCreating",
                      .not_ready_reason = "ContainersNotReady"},
    [POD_READY] = {.phase = "Running",
                   .is_initialized = true,
                   .is_ready = true,
                   .state = STATE_RUNNING},
    [POD_NOT_READY] = {.phase = "Running",
                       .is_initialized = true,
                       .state = STATE_RUNNING,
                       .not_ready_reason = "ContainersNotReady"},
    [POD_NO_IMAGE] = {.phase = "Pending",
                      .is_initialized = true,
                      .reason = "ImagePullBackOff",
                      .message = "Back-off pulling the image (simulated)",
                      .not_ready_reason = "ContainersNotReady"},
    [POD_CRASHED] = {.phase = "Running",
                     .is_initialized = true,
                     .reason = "CrashLoopBackOff",
                     .message = "back-off restarting the container (simulated)",
                     .not_ready_reason = "ContainersNotReady"},
    [POD_FAILED] = {.phase = "Failed",
                    .is_initialized = true,
                    .state = STATE_TERMINATED,
                    .reason = "Error",
                    .exit_code = 1,
                    .not_ready_reason = "PodFailed"},
    [POD_DONE] = {.phase = "Succeeded",
                  .is_initialized = true,
                  .state = STATE_TERMINATED,
                  .reason = "Completed",
                  .not_ready_reason = "PodCompleted"},
    [POD_REFUSED] = {.phase = "Failed", .pod_reason = "OutOfpods"},
};

enum delay { AT_ONCE, AFTER_START, AFTER_RUN, AFTER_RESTART };
static const struct transition {
    enum pod_fault fault; /* POD_FAULTS = whatever it is */
    enum pod_stage from, to;
    enum delay delay;
} transitions[] = {
    {POD_FAULT_IMAGE_PULL, POD_NEW, POD_NO_IMAGE, AT_ONCE},
    {POD_FAULT_NEVER_READY, POD_STARTING, POD_NOT_READY, AFTER_START},
    {POD_FAULT_CRASH, POD_READY, POD_FAILED, AFTER_RUN},
    {POD_FAULT_EXIT, POD_READY, POD_DONE, AFTER_RUN},
    {POD_FAULTS, POD_CRASHED, POD_READY, AFTER_RESTART},
    {POD_FAULTS, POD_NEW, POD_STARTING, AT_ONCE},
    {POD_FAULTS, POD_STARTING, POD_READY, AFTER_START},
};

/* ---- reading ---- */

static void read_containers(struct pod *p, const cJSON *list, bool is_init)
{
    const cJSON *c;
    cJSON_ArrayForEach(c, list)
    {
        if (p->n_containers == CONTAINERS_MAX)
            return;
        p->containers =
            xreallocarray(p->containers, p->n_containers + 1, sizeof(struct pod_container));
        p->containers[p->n_containers++] = (struct pod_container){
            .name = xstrdup(json_str_or(c, "name", "")),
            .image = xstrdup(json_str_or(c, "image", "")),
            .is_init = is_init,
            .is_sidecar = is_init && str_equal(json_str(c, "restartPolicy"), "Always"),
        };
    }
}

static const char *annotation(const cJSON *tree, const char *name)
{
    const cJSON *value = json_get(json_at(tree, "metadata.annotations"), name);
    return cJSON_IsString(value) ? value->valuestring : NULL;
}

/* By chance, but the same Pod always gets the same: a number of its uid. */
static enum pod_fault fault_by_chance(const struct pod *p, const struct pod_settings *settings)
{
    char hash[NAME_HASH_SIZE];
    digest_name_hash(p->uid, hash);
    unsigned drawn = (unsigned)(strtoul(hash, NULL, 16) % 100), sum = 0;
    for (int f = POD_FAULT_NONE + 1; f < POD_FAULTS; f++) {
        sum += settings->percent[f];
        if (drawn < sum)
            return (enum pod_fault)f;
    }
    return POD_FAULT_NONE;
}

static void read_fault(struct pod *p, const cJSON *tree, const struct pod_settings *settings)
{
    const char *name = annotation(tree, POD_ANNOTATION_FAULT);
    const char *start = annotation(tree, POD_ANNOTATION_START);
    p->fault = name ? POD_FAULT_NONE : fault_by_chance(p, settings);
    for (int f = 0; name && f < POD_FAULTS; f++) {
        if (str_equal(name, pod_fault_names[f]))
            p->fault = (enum pod_fault)f;
    }
    p->start_ms = p->fault == POD_FAULT_SLOW ? settings->slow_ms : settings->start_ms;
    if (start)
        duration_parse_ms(start, &p->start_ms);
}

static enum pod_stage read_stage(const cJSON *status)
{
    const cJSON *first = json_get(status, "containerStatuses");
    first = first ? first->child : NULL;
    const char *phase = json_str_or(status, "phase", "Pending");
    const char *waiting = json_str_or(first, "state.waiting.reason", "");
    if (strcmp(phase, "Failed") == 0)
        return POD_FAILED;
    if (strcmp(phase, "Succeeded") == 0)
        return POD_DONE;
    if (!json_str(status, "startTime"))
        return POD_NEW;
    if (strcmp(phase, "Running") != 0)
        return strcmp(waiting, stages[POD_NO_IMAGE].reason) == 0 ? POD_NO_IMAGE : POD_STARTING;
    if (strcmp(waiting, stages[POD_CRASHED].reason) == 0)
        return POD_CRASHED;
    return json_bool_or(first, "ready", false) ? POD_READY : POD_NOT_READY;
}

static unsigned read_restarts(const cJSON *status)
{
    const cJSON *first = json_get(status, "containerStatuses");
    int64_t n = first ? json_i64_or(first->child, "restartCount", 0) : 0;
    return n > 0 && n < 1000000 ? (unsigned)n : 0;
}

static bool is_called_unschedulable(const cJSON *status)
{
    const cJSON *c;
    cJSON_ArrayForEach(c, json_get(status, "conditions"))
    {
        if (str_equal(json_str(c, "type"), "PodScheduled"))
            return str_equal(json_str(c, "status"), "False") &&
                   str_equal(json_str(c, "reason"), "Unschedulable");
    }
    return false;
}

static char *copy_or_null(const char *s)
{
    return s ? xstrdup(s) : NULL;
}

struct pod *pod_new(const cJSON *tree, const struct pod_settings *settings)
{
    const cJSON *spec = json_get(tree, "spec"), *status = json_get(tree, "status");
    const char *uid = json_str(tree, "metadata.uid");
    if (!uid || !json_str(tree, "metadata.name"))
        return NULL;
    struct pod *p = xcalloc(1, sizeof *p);
    p->namespace_name = xstrdup(json_str_or(tree, "metadata.namespace", ""));
    p->name = xstrdup(json_str_or(tree, "metadata.name", ""));
    p->uid = xstrdup(uid);
    p->node = xstrdup(json_str_or(spec, "nodeName", ""));
    p->ip = copy_or_null(json_str(status, "podIP"));
    p->started_at = copy_or_null(json_str(status, "startTime"));
    str_to_u64(json_str_or(tree, "metadata.resourceVersion", ""), &p->rev);
    read_containers(p, json_get(spec, "initContainers"), true);
    read_containers(p, json_get(spec, "containers"), false);
    p->restart = plan_restart_policy(tree);
    read_fault(p, tree, settings);
    p->stage = read_stage(status);
    p->restarts = read_restarts(status);
    p->is_gated = json_len(json_get(spec, "schedulingGates")) > 0;
    p->is_called_unschedulable = is_called_unschedulable(status);
    p->is_terminating = json_str(tree, "metadata.deletionTimestamp") != NULL;
    p->grace_ms = json_i64_or(tree, "metadata.deletionGracePeriodSeconds", 0) * 1000;
    return p;
}

void pod_free(struct pod *p)
{
    if (!p)
        return;
    for (unsigned i = 0; i < p->n_containers; i++) {
        free(p->containers[i].name);
        free(p->containers[i].image);
    }
    free(p->containers);
    free(p->namespace_name);
    free(p->name);
    free(p->uid);
    free(p->node);
    free(p->ip);
    free(p->started_at);
    free(p);
}

/* ---- deciding ---- */

static int64_t restart_ms(const struct pod *p, const struct pod_settings *settings)
{
    int64_t ms = settings->restart_ms;
    for (unsigned i = 1; i < p->restarts && ms < RESTART_MAX_MS; i++)
        ms *= 2;
    return ms < RESTART_MAX_MS ? ms : RESTART_MAX_MS;
}

static int64_t delay_ms(const struct pod *p, enum delay delay, const struct pod_settings *settings)
{
    switch (delay) {
    case AT_ONCE:
        return 0;
    case AFTER_START:
        return p->start_ms;
    case AFTER_RUN:
        return settings->run_ms;
    case AFTER_RESTART:
        return restart_ms(p, settings);
    }
    return 0;
}

static const struct transition *transition_from(const struct pod *p, enum pod_stage from)
{
    for (size_t i = 0; i < ARRAY_LEN(transitions); i++) {
        const struct transition *t = &transitions[i];
        if (t->from == from && (t->fault == POD_FAULTS || t->fault == p->fault))
            return t;
    }
    return NULL;
}

/* A container that ended is started again, if its Pod wants that. */
static enum pod_stage restarted(const struct pod *p, enum pod_stage to)
{
    bool again = (to == POD_FAILED && p->restart != RESTART_NEVER) ||
                 (to == POD_DONE && p->restart == RESTART_ALWAYS);
    return again ? POD_CRASHED : to;
}

static struct pod_plan wait_or(int64_t left_ms, struct pod_plan then)
{
    return left_ms > 0 ? (struct pod_plan){.act = POD_WAIT, .wait_ms = left_ms} : then;
}

static struct pod_plan plan_unbound(const struct pod *p, const struct pod_settings *settings)
{
    struct pod_plan plan = {.act = POD_WAIT};
    if (!settings->schedules || p->is_gated || p->is_terminating)
        return plan;
    if (p->fault != POD_FAULT_UNSCHEDULABLE)
        plan.act = POD_BIND;
    else if (!p->is_called_unschedulable)
        plan.act = POD_CALL_UNSCHEDULABLE;
    return plan;
}

struct pod_plan pod_plan(const struct pod *p, const struct pod_settings *settings, int64_t now_ms)
{
    if (!*p->node)
        return plan_unbound(p, settings);
    int64_t spent_ms = now_ms - p->since_ms;
    if (p->is_terminating) {
        int64_t stop_ms = settings->stop_ms < p->grace_ms ? settings->stop_ms : p->grace_ms;
        return wait_or(stop_ms - spent_ms, (struct pod_plan){.act = POD_END});
    }
    const struct transition *t = transition_from(p, p->stage);
    if (t && t->to == POD_STARTING && p->start_ms == 0)
        t = transition_from(p, POD_STARTING); /* nobody would see it */
    if (!t)
        return (struct pod_plan){.act = POD_WAIT};
    return wait_or(delay_ms(p, t->delay, settings) - spent_ms,
                   (struct pod_plan){.act = POD_ENTER, .stage = restarted(p, t->to)});
}

/* ---- bodies ---- */

static cJSON *body_of(const struct pod *p, const char *api_version, const char *kind)
{
    cJSON *body = json_object(), *metadata = json_object();
    json_add(body, "apiVersion", json_string(api_version));
    json_add(body, "kind", json_string(kind));
    json_add(metadata, "name", json_string(p->name));
    json_add(metadata, "uid", json_string(p->uid)); /* another Pod of the name is left alone */
    json_add(body, "metadata", metadata);
    return body;
}

cJSON *pod_binding(const struct pod *p, const char *node)
{
    cJSON *body = body_of(p, "v1", "Binding");
    json_set_at(body, "target.apiVersion", json_string("v1"));
    json_set_at(body, "target.kind", json_string("Node"));
    json_set_at(body, "target.name", json_string(node));
    return body;
}

cJSON *pod_end_options(const struct pod *p)
{
    cJSON *body = json_object();
    json_add(body, "apiVersion", json_string("v1"));
    json_add(body, "kind", json_string("DeleteOptions"));
    json_add(body, "gracePeriodSeconds", json_int(0));
    json_set_at(body, "preconditions.uid", json_string(p->uid));
    return body;
}

/* at NULL: its time stays as it is. */
static void add_condition(cJSON *conditions, const char *type, bool is_true, const char *reason,
                          const char *message, const char *at)
{
    cJSON *c = json_object();
    json_add(c, "type", json_string(type));
    json_add(c, "status", json_string(is_true ? "True" : "False"));
    json_add(c, "reason", reason ? json_string(reason) : json_null());
    json_add(c, "message", message ? json_string(message) : json_null());
    if (at)
        json_add(c, "lastTransitionTime", json_string(at));
    json_push(conditions, c);
}

cJSON *pod_unschedulable_patch(const struct pod *p, const char *why, int64_t now_unix_s)
{
    char at[CLOCK_TEXT_SIZE];
    clock_print_rfc3339(now_unix_s, at);
    cJSON *body = body_of(p, "v1", "Pod"), *conditions = json_array();
    add_condition(conditions, "PodScheduled", false, "Unschedulable", why, at);
    json_set_at(body, "status.conditions", conditions);
    return body;
}

static void add_conditions(cJSON *status, const struct stage_row *before,
                           const struct stage_row *row, const char *at)
{
    bool is_new = before == &stages[POD_NEW];
    bool is_running = row->state == STATE_RUNNING;
    const char *initialized_at =
        is_new || before->is_initialized != row->is_initialized ? at : NULL;
    const char *ready_at = is_new || before->is_ready != row->is_ready ? at : NULL;
    const char *running_at = is_new || (before->state == STATE_RUNNING) != is_running ? at : NULL;
    cJSON *list = json_array();
    add_condition(list, "PodReadyToStartContainers", is_running, NULL, NULL, running_at);
    add_condition(list, "Initialized", row->is_initialized, NULL, NULL, initialized_at);
    add_condition(list, "Ready", row->is_ready, row->not_ready_reason, NULL, ready_at);
    add_condition(list, "ContainersReady", row->is_ready, row->not_ready_reason, NULL, ready_at);
    json_add(status, "conditions", list);
}

static cJSON *terminated(const struct pod *p, const char *reason, int exit_code, const char *at)
{
    cJSON *t = json_object();
    json_add(t, "exitCode", json_int(exit_code));
    json_add(t, "reason", json_string(reason));
    json_add(t, "startedAt", json_string(p->started_at ? p->started_at : at));
    json_add(t, "finishedAt", json_string(at));
    return t;
}

static cJSON *state_of(const struct pod *p, const struct stage_row *row, const char *at)
{
    cJSON *state = json_object();
    switch (row->state) {
    case STATE_WAITING:
        json_set_at(state, "waiting.reason", json_string(row->reason));
        if (row->message)
            json_set_at(state, "waiting.message", json_string(row->message));
        break;
    case STATE_RUNNING:
        json_set_at(state, "running.startedAt", json_string(at));
        break;
    case STATE_TERMINATED:
        json_add(state, "terminated", terminated(p, row->reason, row->exit_code, at));
        break;
    }
    return state;
}

/* Init containers have done their work when the others start. */
static const struct stage_row *row_of_container(const struct pod_container *c,
                                                const struct stage_row *row)
{
    return c->is_init && !c->is_sidecar && row->state != STATE_WAITING ? &stages[POD_DONE] : row;
}

static unsigned restarts_in(const struct pod *p, enum pod_stage stage)
{
    return p->restarts + (stage == POD_CRASHED);
}

static cJSON *container_status(const struct pod *p, const struct pod_container *c,
                               enum pod_stage stage, const char *at)
{
    const struct stage_row *row = row_of_container(c, &stages[stage]);
    cJSON *s = json_object();
    bool has_run = row->state != STATE_WAITING;
    json_add(s, "name", json_string(c->name));
    json_add(s, "image", json_string(c->image));
    json_add(s, "imageID", json_string(has_run ? "simulated" : ""));
    json_add(s, "ready", json_boolean(row->is_ready || (c->is_init && row == &stages[POD_DONE])));
    json_add(s, "started", json_boolean(row->state == STATE_RUNNING));
    json_add(s, "restartCount", json_int(c->is_init ? 0 : restarts_in(p, stage)));
    json_add(s, "state", state_of(p, row, at));
    if (has_run) {
        SCOPED_FREE char *id = xasprintf("simulated://%s/%s", p->uid, c->name);
        json_add(s, "containerID", json_string(id));
    }
    if (stage == POD_CRASHED) {
        const struct stage_row *end = &stages[p->fault == POD_FAULT_EXIT ? POD_DONE : POD_FAILED];
        cJSON *last = json_object();
        json_add(last, "terminated", terminated(p, end->reason, end->exit_code, at));
        json_add(s, "lastState", last);
    }
    return s;
}

static void add_containers(cJSON *status, const struct pod *p, enum pod_stage stage, const char *at)
{
    cJSON *init = json_array(), *normal = json_array();
    for (unsigned i = 0; i < p->n_containers; i++) {
        const struct pod_container *c = &p->containers[i];
        json_push(c->is_init ? init : normal, container_status(p, c, stage, at));
    }
    json_add(status, "containerStatuses", normal);
    if (init->child)
        json_add(status, "initContainerStatuses", init);
    else
        json_free(init);
}

static void add_address(cJSON *status, const char *one, const char *many, const char *ip)
{
    cJSON *list = json_array(), *item = json_object();
    json_add(item, "ip", json_string(ip));
    json_push(list, item);
    json_add(status, one, json_string(ip));
    json_add(status, many, list);
}

cJSON *pod_stage_patch(const struct pod *p, enum pod_stage stage, const char *ip,
                       const char *host_ip, int64_t now_unix_s)
{
    const struct stage_row *row = &stages[stage];
    char at[CLOCK_TEXT_SIZE];
    clock_print_rfc3339(now_unix_s, at);
    cJSON *body = body_of(p, "v1", "Pod"), *status = json_object();
    json_add(body, "status", status);
    json_add(status, "phase", json_string(row->phase));
    json_add(status, "startTime", json_string(p->started_at ? p->started_at : at));
    if (row->pod_reason) {
        json_add(status, "reason", json_string(row->pod_reason));
        json_add(status, "message", json_string("the node has no room for more pods (simulated)"));
        return body;
    }
    add_address(status, "hostIP", "hostIPs", host_ip);
    if (p->ip || row->state == STATE_RUNNING)
        add_address(status, "podIP", "podIPs", p->ip ? p->ip : ip);
    add_conditions(status, &stages[p->stage], row, at);
    add_containers(status, p, stage, at);
    return body;
}
