#include "node/instance.h"

#include <signal.h>
#include <string.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"

static const char *label(const cJSON *inspection, const char *name)
{
    const cJSON *value = json_get(json_at(inspection, "Config.Labels"), name);
    return cJSON_IsString(value) ? value->valuestring : "";
}

static unsigned number_of(const cJSON *inspection, const char *name)
{
    int64_t n;
    return str_to_i64(label(inspection, name), &n) == 0 && n >= 0 && n < INT32_MAX ? (unsigned)n
                                                                                   : 0;
}

static int64_t time_of(const cJSON *inspection, const char *path)
{
    int64_t ms;
    return clock_parse_rfc3339(json_str_or(inspection, path, ""), &ms) == 0 && ms > 0 ? ms : 0;
}

static const struct {
    const char *name;
    enum instance_state state;
} states[] = {
    {"running", INSTANCE_RUNNING}, {"paused", INSTANCE_RUNNING}, {"stopping", INSTANCE_RUNNING},
    {"stopped", INSTANCE_EXITED},  {"exited", INSTANCE_EXITED},  {"removing", INSTANCE_EXITED},
};

/* After a restart of the machine the engine says of what was running that it is to be begun. Source
 * of number and reason: the kubelet. */
static void mark_lost(struct instance *i)
{
    i->state = INSTANCE_EXITED;
    i->exit_code = 128 + SIGKILL;
    i->finished_ms = i->started_ms;
    i->reason = xstrdup("ContainerStatusUnknown");
    i->message = xstrdup("The container was running when the machine went down");
}

void instance_read(const cJSON *inspection, const char *network, struct instance *ret)
{
    const char *state = json_str_or(inspection, "State.Status", "");
    const cJSON *networks = json_at(inspection, "NetworkSettings.Networks");
    struct instance i = {
        .id = xstrdup(json_str_or(inspection, "Id", "")),
        .name = xstrdup(label(inspection, LABEL_CONTAINER)),
        .image_id = xstrdup(json_str_or(inspection, "Image", "")),
        .ip = xstrdup(json_str_or(json_get(networks, network), "IPAddress", "")),
        .netns = xstrdup(json_str_or(inspection, "NetworkSettings.SandboxKey", "")),
        .attempt = number_of(inspection, LABEL_ATTEMPT),
        .step = number_of(inspection, LABEL_STEP),
        .state = INSTANCE_CREATED,
        .exit_code = (int)json_i64_or(inspection, "State.ExitCode", 0),
        .stop_signal = (int)json_i64_or(inspection, "Config.StopSignal", SIGTERM),
        .is_oom_killed = json_bool_or(inspection, "State.OOMKilled", false),
        .created_ms = time_of(inspection, "Created"),
        .started_ms = time_of(inspection, "State.StartedAt"),
        .finished_ms = time_of(inspection, "State.FinishedAt"),
    };
    for (size_t s = 0; s < ARRAY_LEN(states); s++) {
        if (strcmp(state, states[s].name) == 0)
            i.state = states[s].state;
    }
    if (strcmp(state, "created") == 0 && i.started_ms > 0)
        mark_lost(&i);
    *ret = i;
}

void instance_fini(struct instance *i)
{
    free(i->id);
    free(i->name);
    free(i->image_id);
    free(i->ip);
    free(i->netns);
    free(i->reason);
    free(i->message);
    *i = (struct instance){0};
}

void instances_fini(struct instances *list)
{
    for (size_t i = 0; i < list->n; i++)
        instance_fini(&list->v[i]);
    free(list->v);
    *list = (struct instances){0};
}

static bool is_newer(const struct instance *a, const struct instance *b)
{
    return a->attempt > b->attempt;
}

const struct instance *instances_find(const struct instances *list, const char *name, unsigned back)
{
    const struct instance *newest = NULL, *before = NULL;
    for (size_t i = 0; i < list->n; i++) {
        const struct instance *it = &list->v[i];
        if (strcmp(it->name, name) != 0)
            continue;
        if (!newest || is_newer(it, newest)) {
            before = newest;
            newest = it;
        } else if (!before || is_newer(it, before)) {
            before = it;
        }
    }
    return back == 0 ? newest : before;
}
