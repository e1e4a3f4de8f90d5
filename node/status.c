#include "node/status.h"

#include <inttypes.h>
#include <string.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "node/lookup.h"

static void add_time(cJSON *o, const char *name, int64_t unix_ms)
{
    char text[CLOCK_TEXT_SIZE];
    clock_print_rfc3339(unix_ms / 1000, text);
    json_add(o, name, json_string(text));
}

/* ---- conditions ---- */

static const cJSON *condition_find(const cJSON *pod, const char *type)
{
    const cJSON *c;
    cJSON_ArrayForEach(c, json_at(pod, "status.conditions"))
    {
        if (str_equal(json_str(c, "type"), type))
            return c;
    }
    return NULL;
}

bool status_says_open(const cJSON *pod)
{
    return str_equal(json_str(condition_find(pod, STATUS_POLICY), "status"), "False");
}

/* Its time is that of the last change of its status. */
static void add_condition(const struct status_input *in, cJSON *list, const char *type,
                          bool is_true, const char *reason, const char *message)
{
    const cJSON *old = condition_find(in->pod, type);
    const char *status = is_true ? "True" : "False";
    cJSON *c = json_object();
    json_add(c, "type", json_string(type));
    json_add(c, "status", json_string(status));
    if (old && str_equal(json_str(old, "status"), status) && json_str(old, "lastTransitionTime"))
        json_add(c, "lastTransitionTime", json_string(json_str(old, "lastTransitionTime")));
    else
        add_time(c, "lastTransitionTime", in->now_ms);
    if (reason)
        json_add(c, "reason", json_string(reason));
    if (message && *message)
        json_add(c, "message", json_string(message));
    json_push(list, c);
}

/* Names of the members that lack something, as [a b]. */
static void list_members(const struct plan *p, bool is_init, bool (*lacks)(const struct member *m),
                         const char *text, struct buf *out)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        const struct member *m = &p->members[i];
        if (is_init == (m->kind != MEMBER_MAIN) && lacks(m)) {
            if (n++ == 0)
                buf_printf(out, "%s: [", text);
            buf_printf(out, "%s%s", n > 1 ? " " : "", m->name);
        }
    }
    if (n > 0)
        buf_putc(out, ']');
}

static bool is_done(const struct instance *i)
{
    return i && i->state == INSTANCE_EXITED && i->exit_code == 0;
}
static bool is_not_ready(const struct member *m)
{
    return !m->is_ready;
}
static bool is_not_initialized(const struct member *m)
{
    return m->kind == MEMBER_SIDECAR ? !m->has_started : !is_done(m->now);
}

/* Readiness gates are conditions that others set. */
static void check_gates(const struct status_input *in, struct buf *out)
{
    const cJSON *gate;
    cJSON_ArrayForEach(gate, json_at(in->pod, "spec.readinessGates"))
    {
        const char *type = json_str_or(gate, "conditionType", "");
        const cJSON *c = condition_find(in->pod, type);
        if (c && str_equal(json_str(c, "status"), "True"))
            continue;
        buf_printf(out, "%scorresponding condition of pod readiness gate \"%s\" ",
                   out->len ? ", " : "", type);
        buf_puts(out, c ? "does not have status \"True\"" : "does not exist.");
    }
}

static const char *final_reason(enum phase phase)
{
    return phase == PHASE_SUCCEEDED ? "PodCompleted" : phase == PHASE_FAILED ? "PodFailed" : NULL;
}

static void add_conditions(const struct status_input *in, cJSON *status)
{
    const struct plan *p = in->plan;
    const char *final = final_reason(p->phase);
    SCOPED(buf_fini) struct buf not_initialized = {0};
    SCOPED(buf_fini) struct buf not_ready = {0};
    SCOPED(buf_fini) struct buf gates = {0};
    bool has_sandbox = p->pause && p->pause->state == INSTANCE_RUNNING && !p->drops_pause;
    bool is_initialized = p->is_initialized || p->phase == PHASE_SUCCEEDED;
    list_members(p, false, is_not_ready, "containers with unready status", &not_ready);
    list_members(p, true, is_not_initialized, "containers with incomplete status",
                 &not_initialized);
    check_gates(in, &gates);
    bool are_ready = !final && not_ready.len == 0 && is_initialized;
    cJSON *list = json_array();
    add_condition(in, list, "PodReadyToStartContainers", has_sandbox, NULL, NULL);
    add_condition(in, list, "Initialized", is_initialized,
                  is_initialized ? p->phase == PHASE_SUCCEEDED ? final : NULL
                                 : "ContainersNotInitialized",
                  is_initialized ? NULL : buf_cstr(&not_initialized));
    const char *why = are_ready ? NULL : final ? final : "ContainersNotReady";
    const char *text = final ? NULL : buf_cstr(&not_ready);
    bool is_ready = are_ready && gates.len == 0;
    add_condition(in, list, "Ready", is_ready,
                  are_ready && !is_ready ? "ReadinessGatesNotReady" : why,
                  are_ready ? buf_cstr(&gates) : text);
    add_condition(in, list, "ContainersReady", are_ready, why, text);
    add_condition(in, list, "PodScheduled", true, NULL, NULL);
    if (in->is_open || condition_find(in->pod, STATUS_POLICY))
        add_condition(
            in, list, STATUS_POLICY, !in->is_open, in->is_open ? "NotEnforced" : "NothingToEnforce",
            in->is_open ? "this node does not enforce the network policies of the Pod" : NULL);
    json_add(status, "conditions", list);
}

/* ---- containers ---- */

static char *container_id(const struct instance *i)
{
    return xasprintf(LOOKUP_SCHEME "%s", i->id);
}

static cJSON *terminated(const struct instance *i)
{
    cJSON *t = json_object();
    SCOPED_FREE char *id = container_id(i);
    const char *reason = i->reason          ? i->reason
                         : i->is_oom_killed ? "OOMKilled"
                         : i->exit_code     ? "Error"
                                            : "Completed";
    json_add(t, "exitCode", json_int(i->exit_code));
    json_add(t, "reason", json_string(reason));
    if (i->message && *i->message)
        json_add(t, "message", json_string(i->message));
    add_time(t, "startedAt", i->started_ms ? i->started_ms : i->created_ms);
    add_time(t, "finishedAt", i->finished_ms);
    json_add(t, "containerID", json_string(id));
    return t;
}

static bool has_exited(const struct instance *i)
{
    return i && i->state == INSTANCE_EXITED;
}

static cJSON *waiting(const struct status_input *in, size_t at)
{
    const struct member *m = &in->plan->members[at];
    const struct waiting *known = &in->waiting[at];
    cJSON *w = json_object();
    if (known->reason) {
        json_add(w, "reason", json_string(known->reason));
        if (known->message)
            json_add(w, "message", json_string(known->message));
    } else if (m->is_waiting) {
        SCOPED_FREE char *text = xasprintf(
            "back-off %" PRId64 "s restarting failed container=%s pod=%s_%s(%s)",
            plan_backoff_ms(m->step) / 1000, m->name, json_str_or(in->pod, "metadata.name", ""),
            json_str_or(in->pod, "metadata.namespace", ""),
            json_str_or(in->pod, "metadata.uid", ""));
        json_add(w, "reason", json_string("CrashLoopBackOff"));
        json_add(w, "message", json_string(text));
    } else {
        bool is_early = m->kind == MEMBER_MAIN && !in->plan->is_initialized;
        json_add(w, "reason", json_string(is_early ? "PodInitializing" : "ContainerCreating"));
    }
    cJSON *state = json_object();
    json_add(state, "waiting", w);
    return state;
}

/* Whether what it was is shown as its last state, because it is to run again. */
static bool is_between(const struct member *m, const struct waiting *w)
{
    return has_exited(m->now) && (m->is_waiting || w->reason) && !m->is_over;
}

static cJSON *state_of(const struct status_input *in, size_t at)
{
    const struct member *m = &in->plan->members[at];
    if (!m->now || m->now->state == INSTANCE_CREATED || is_between(m, &in->waiting[at]))
        return waiting(in, at);
    cJSON *state = json_object();
    if (m->now->state == INSTANCE_EXITED) {
        json_add(state, "terminated", terminated(m->now));
        return state;
    }
    cJSON *running = json_object();
    add_time(running, "startedAt", m->now->started_ms);
    json_add(state, "running", running);
    return state;
}

static cJSON *container_status(const struct status_input *in, size_t at)
{
    const struct member *m = &in->plan->members[at];
    const struct instance *last = is_between(m, &in->waiting[at]) ? m->now : m->before;
    bool is_running = m->now && m->now->state == INSTANCE_RUNNING;
    bool is_ready = m->is_ready || (m->kind == MEMBER_INIT && is_done(m->now));
    cJSON *s = json_object(), *last_state = json_object();
    json_add(s, "name", json_string(m->name));
    json_add(s, "state", state_of(in, at));
    if (has_exited(last))
        json_add(last_state, "terminated", terminated(last));
    json_add(s, "lastState", last_state);
    json_add(s, "ready", json_boolean(is_ready));
    json_add(s, "restartCount", json_int(m->now ? m->now->attempt : 0));
    json_add(s, "image", json_string(json_str_or(m->spec, "image", "")));
    json_add(s, "imageID", json_string(in->images[at]));
    if (m->now) {
        SCOPED_FREE char *id = container_id(m->now);
        json_add(s, "containerID", json_string(id));
    }
    json_add(s, "started", json_boolean(is_running && m->has_started));
    return s;
}

static void add_containers(const struct status_input *in, cJSON *status)
{
    cJSON *init = json_array(), *mains = json_array();
    for (size_t i = 0; i < in->plan->n; i++)
        json_push(in->plan->members[i].kind == MEMBER_MAIN ? mains : init, container_status(in, i));
    json_add(status, "containerStatuses", mains);
    if (init->child)
        json_add(status, "initContainerStatuses", init);
    else
        json_free(init);
}

/* ---- the whole ---- */

static void add_address(cJSON *status, const char *one, const char *many, const char *ip)
{
    if (!*ip)
        return;
    cJSON *list = json_array(), *item = json_object();
    json_add(item, "ip", json_string(ip));
    json_push(list, item);
    json_add(status, one, json_string(ip));
    json_add(status, many, list);
}

static void add_start_time(cJSON *status, const cJSON *pod, int64_t now_ms)
{
    const char *known = json_str(pod, "status.startTime");
    if (known)
        json_add(status, "startTime", json_string(known));
    else
        add_time(status, "startTime", now_ms);
}

cJSON *status_make(const struct status_input *in)
{
    cJSON *status = json_object();
    json_add(status, "phase", json_string(phase_names[in->plan->phase]));
    const char *reason = in->reason ? in->reason : json_str(in->pod, "status.reason");
    const char *message = in->message ? in->message : json_str(in->pod, "status.message");
    if (reason)
        json_add(status, "reason", json_string(reason));
    if (message)
        json_add(status, "message", json_string(message));
    add_conditions(in, status);
    add_address(status, "hostIP", "hostIPs", in->host_ip);
    add_address(status, "podIP", "podIPs", in->pod_ip);
    add_start_time(status, in->pod, in->now_ms);
    add_containers(in, status);
    return status;
}

cJSON *status_refused(const cJSON *pod, const char *reason, const char *message,
                      const char *host_ip, int64_t now_ms)
{
    struct status_input in = {.pod = pod, .now_ms = now_ms};
    cJSON *status = json_object(), *conditions = json_array();
    json_add(status, "phase", json_string("Failed"));
    json_add(status, "reason", json_string(reason));
    json_add(status, "message", json_string(message));
    add_condition(&in, conditions, "Ready", false, reason, message);
    add_condition(&in, conditions, "ContainersReady", false, reason, message);
    json_add(status, "conditions", conditions);
    add_address(status, "hostIP", "hostIPs", host_ip);
    add_start_time(status, pod, now_ms);
    return status;
}

/* ---- the way to the cluster ---- */

/* Whether all of a is in b, members of objects in any order. Lists with keys: each item of a is in
 * b, for others may add items of their own. */
static bool is_within(const cJSON *a, const cJSON *b)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, a)
    {
        const cJSON *there = json_get(b, item->string);
        if (!there)
            return false;
        if (strcmp(item->string, "conditions") != 0) {
            if (!json_equal(item, there))
                return false;
            continue;
        }
        const cJSON *mine, *theirs;
        cJSON_ArrayForEach(mine, item)
        {
            bool is_there = false;
            cJSON_ArrayForEach(theirs, there) is_there = is_there || is_within(mine, theirs);
            if (!is_there)
                return false;
        }
    }
    return true;
}

/* Addresses merge by their text: without this a new one would stand beside the old one. */
static void replace_addresses(const cJSON *known, cJSON *fresh, const char *name)
{
    cJSON *list = json_get(fresh, name), *order = json_object();
    const cJSON *old = json_get(known, name);
    json_add(order, "$patch", json_string("replace"));
    if (list && old && !json_equal(old, list))
        json_insert(list, 0, steal(&order));
    json_free(order);
}

cJSON *status_patch(const cJSON *pod, const cJSON *status)
{
    const cJSON *known = json_get(pod, "status");
    if (is_within(status, known))
        return NULL;
    cJSON *body = json_object(), *metadata = json_object(), *fresh = json_copy(status);
    json_add(metadata, "uid", json_string(json_str_or(pod, "metadata.uid", "")));
    json_add(body, "metadata", metadata);
    /* A merge keeps what it does not name: what no condition says any more is taken away. */
    cJSON *c;
    cJSON_ArrayForEach(c, json_get(fresh, "conditions"))
    {
        if (!json_get(c, "reason"))
            json_add(c, "reason", json_null());
        if (!json_get(c, "message"))
            json_add(c, "message", json_null());
    }
    replace_addresses(known, fresh, "podIPs");
    replace_addresses(known, fresh, "hostIPs");
    json_add(body, "status", fresh);
    return body;
}
