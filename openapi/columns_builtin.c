/* What kubectl shows of Pods, Nodes, Events and volumes, in the words that people know. Source: the
 * printers of kube-apiserver v1.37, as its answers show them. */
#include "openapi/columns_builtin.h"

#include <string.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/columns.h"

static cJSON *text_cell(char *take_text)
{
    SCOPED_FREE char *text = take_text;
    return json_string(text);
}

/* ---- Pods -------------------------------------------------------------------------------- */

static const cJSON *containers_of(const cJSON *pod)
{
    return json_at(pod, "status.containerStatuses");
}

static cJSON *pod_ready(const cJSON *pod)
{
    size_t ready = 0;
    const cJSON *c;
    cJSON_ArrayForEach(c, containers_of(pod))
    {
        ready += json_bool_or(c, "ready", false);
    }
    return text_cell(xasprintf("%zu/%zu", ready, json_len(json_at(pod, "spec.containers"))));
}

static int64_t restarts_of(const cJSON *statuses)
{
    int64_t n = 0;
    const cJSON *c;
    cJSON_ArrayForEach(c, statuses)
    {
        n += json_i64_or(c, "restartCount", 0);
    }
    return n;
}

static cJSON *pod_restarts(const cJSON *pod)
{
    return text_cell(xasprintf("%lld", (long long)restarts_of(containers_of(pod))));
}

/* Why the last of the containers that do not run does not; NULL when all do. */
static const char *waiting_reason(const cJSON *statuses)
{
    const char *reason = NULL;
    const cJSON *c;
    cJSON_ArrayForEach(c, statuses)
    {
        const char *waiting = json_str(c, "state.waiting.reason"),
                   *ended = json_str(c, "state.terminated.reason");
        reason = waiting ? waiting : ended ? ended : reason;
    }
    return reason;
}

/* Init:1/3 and the like; NULL when the init containers are done. */
static char *init_status(const cJSON *pod)
{
    size_t done = 0, all = json_len(json_at(pod, "spec.initContainers"));
    const cJSON *c;
    cJSON_ArrayForEach(c, json_at(pod, "status.initContainerStatuses"))
    {
        const cJSON *ended = json_at(c, "state.terminated");
        const char *waiting = json_str(c, "state.waiting.reason");
        bool runs_beside = json_bool_or(c, "started", false);
        if ((ended && json_i64_or(ended, "exitCode", 0) == 0) || runs_beside) {
            done++;
            continue;
        }
        if (ended)
            return xasprintf("Init:%s", json_str_or(ended, "reason", "Error"));
        if (waiting && strcmp(waiting, "PodInitializing") != 0)
            return xasprintf("Init:%s", waiting);
        return xasprintf("Init:%zu/%zu", done, all);
    }
    return NULL;
}

static bool is_gated(const cJSON *pod)
{
    return json_len(json_at(pod, "spec.schedulingGates")) > 0;
}

static cJSON *pod_status(const cJSON *pod)
{
    const char *phase = json_str_or(pod, "status.phase", "Unknown"),
               *reason = json_str(pod, "status.reason"), *waiting;
    if (json_str(pod, "metadata.deletionTimestamp") && strcmp(phase, "Succeeded") != 0 &&
        strcmp(phase, "Failed") != 0)
        return json_string("Terminating");
    char *init = init_status(pod);
    if (init)
        return text_cell(init);
    waiting = waiting_reason(containers_of(pod));
    if (waiting)
        return json_string(waiting);
    return json_string(reason ? reason : is_gated(pod) ? "SchedulingGated" : phase);
}

/* ---- Nodes ------------------------------------------------------------------------------- */

static cJSON *node_status(const struct column *c, const cJSON *node)
{
    const cJSON *ready = columns_path(node, c->path);
    const char *state = cJSON_IsString(ready) ? ready->valuestring : "Unknown";
    const char *text = strcmp(state, "True") == 0    ? "Ready"
                       : strcmp(state, "False") == 0 ? "NotReady"
                                                     : "Unknown";
    bool is_closed = json_bool_or(node, "spec.unschedulable", false);
    return text_cell(xasprintf("%s%s", text, is_closed ? ",SchedulingDisabled" : ""));
}

/* ---- Events ------------------------------------------------------------------------------ */

static cJSON *last_seen(const cJSON *event, int64_t now_unix_ms)
{
    static const char *const times[] = {"series.lastObservedTime", "lastTimestamp",
                                        "deprecatedLastTimestamp", "eventTime",
                                        "metadata.creationTimestamp"};
    char text[CLOCK_TEXT_SIZE];
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        const char *at = json_str(event, times[i]);
        int64_t at_ms;
        if (!at || clock_parse_rfc3339(at, &at_ms) < 0)
            continue;
        clock_print_age(now_unix_ms - at_ms, text);
        return json_string(text);
    }
    return json_string("<unknown>");
}

/* What the path's name stands in. */
static const cJSON *reference_at(const struct column *c, const cJSON *object)
{
    const char *dot = strrchr(c->path, '.');
    SCOPED_FREE char *parent = xstrndup(c->path, (size_t)(dot - c->path));
    return columns_path(object, parent);
}

/* sandbox/a */
static cJSON *reference(const struct column *c, const cJSON *object)
{
    const cJSON *ref = reference_at(c, object);
    SCOPED_FREE char *kind = xstrdup(json_str_or(ref, "kind", ""));
    str_lower(kind);
    return text_cell(xasprintf("%s/%s", kind, json_str_or(ref, "name", "")));
}

static cJSON *labels_cell(const cJSON *labels)
{
    SCOPED(buf_fini) struct buf text = {0};
    const cJSON *l;
    cJSON_ArrayForEach(l, labels)
    {
        if (cJSON_IsString(l))
            buf_printf(&text, "%s%s=%s", text.len ? "," : "", l->string, l->valuestring);
    }
    return json_string(text.len ? buf_cstr(&text) : "<none>");
}

/* ---- volumes ----------------------------------------------------------------------------- */

static cJSON *phase(const struct column *c, const cJSON *object)
{
    const cJSON *value = columns_path(object, c->path);
    if (json_str(object, "metadata.deletionTimestamp"))
        return json_string("Terminating");
    return cJSON_IsString(value) ? json_string(value->valuestring) : json_null();
}

static cJSON *access_modes(const cJSON *modes)
{
    static const char *const names[][2] = {{"ReadWriteOnce", "RWO"},
                                           {"ReadOnlyMany", "ROX"},
                                           {"ReadWriteMany", "RWX"},
                                           {"ReadWriteOncePod", "RWOP"}};
    SCOPED(buf_fini) struct buf text = {0};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (json_has_str(modes, names[i][0]))
            buf_printf(&text, "%s%s", text.len ? "," : "", names[i][1]);
    }
    return json_string(buf_cstr(&text));
}

static cJSON *claim(const struct column *c, const cJSON *object)
{
    const cJSON *ref = reference_at(c, object);
    if (!ref)
        return json_string("");
    return text_cell(
        xasprintf("%s/%s", json_str_or(ref, "namespace", ""), json_str_or(ref, "name", "")));
}

/* ---- all --------------------------------------------------------------------------------- */

cJSON *columns_builtin_cell(const struct column *c, const cJSON *object, int64_t now_unix_ms)
{
    switch (c->cell) {
    case CELL_COUNT:
        return json_int((int64_t)json_len(columns_path(object, c->path)));
    case CELL_LAST_SEEN:
        return last_seen(object, now_unix_ms);
    case CELL_REFERENCE:
        return reference(c, object);
    case CELL_LABELS:
        return labels_cell(columns_path(object, c->path));
    case CELL_NODE_STATUS:
        return node_status(c, object);
    case CELL_POD_READY:
        return pod_ready(object);
    case CELL_POD_STATUS:
        return pod_status(object);
    case CELL_POD_RESTARTS:
        return pod_restarts(object);
    case CELL_PHASE:
        return phase(c, object);
    case CELL_ACCESS_MODES:
        return access_modes(columns_path(object, c->path));
    case CELL_CLAIM:
        return claim(c, object);
    case CELL_VALUE:
        break;
    }
    return json_null();
}
