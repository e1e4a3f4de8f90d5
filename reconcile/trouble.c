#include "reconcile/trouble.h"

#include <stdlib.h>
#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "reconcile/condition.h"

#define MESSAGE_MAX 512 /* bytes of the kubelet's words */

void trouble_fini(struct trouble *t)
{
    free(t->text);
    *t = (struct trouble){0};
}

/* ---- refusals ---- */

/* Words of the API server's admission plugins. */
static const struct {
    const char *words, *reason;
} refusals[] = {
    {"exceeded quota: ", "QuotaExceeded"},
    {"failed quota: ", "QuotaExceeded"},
    {"violates PodSecurity ", "AdmissionRefused"},
    {"admission webhook \"", "AdmissionRefused"},
    {"ValidatingAdmissionPolicy '", "AdmissionRefused"},
};

const char *trouble_of_refusal(const char *message)
{
    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        if (strstr(message, refusals[i].words))
            return refusals[i].reason;
    }
    return NULL;
}

/* ---- containers ---- */

/* Reasons for which kubelets let a container wait, other than that it is on its way. */
static const struct {
    const char *waits_for, *reason;
} waits[] = {
    {"CrashLoopBackOff", "CrashLoop"},
    {"ErrImagePull", "ImagePullFailed"},
    {"ImagePullBackOff", "ImagePullFailed"},
    {"InvalidImageName", "ImagePullFailed"},
    {"ErrImageNeverPull", "ImagePullFailed"},
    {"ImageInspectError", "ImagePullFailed"},
    {"RegistryUnavailable", "ImagePullFailed"},
    {"SignatureValidationFailed", "ImagePullFailed"},
    {"CreateContainerConfigError", "ContainerFailed"},
    {"CreateContainerError", "ContainerFailed"},
    {"RunContainerError", "ContainerFailed"},
};

static const char *const status_lists[] = {"initContainerStatuses", "containerStatuses"};

static const char *reason_of_wait(const cJSON *status)
{
    const char *waits_for = json_str(status, "state.waiting.reason");
    for (size_t i = 0; i < ARRAY_LEN(waits); i++) {
        if (str_equal(waits_for, waits[i].waits_for))
            return waits[i].reason;
    }
    return NULL;
}

static char *text_of_wait(const cJSON *status)
{
    const char *message = json_str_or(status, "state.waiting.message", "");
    size_t n = str_utf8_cut(message, strlen(message), MESSAGE_MAX);
    return xasprintf("container \"%s\" waits: %s%s%.*s", json_str_or(status, "name", ""),
                     json_str_or(status, "state.waiting.reason", ""), n ? ": " : "", (int)n,
                     message);
}

void trouble_of_containers(const cJSON *pod, struct trouble *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(status_lists); i++) {
        const cJSON *status;
        cJSON_ArrayForEach(status, json_get(json_get(pod, "status"), status_lists[i]))
        {
            const char *reason = reason_of_wait(status);
            if (!reason)
                continue;
            trouble_fini(ret);
            *ret = (struct trouble){reason, text_of_wait(status)};
            return;
        }
    }
}

cJSON *trouble_keep(const cJSON *pod, const char *list)
{
    cJSON *out = NULL;
    const cJSON *status;
    cJSON_ArrayForEach(status, json_get(json_get(pod, "status"), list))
    {
        if (!reason_of_wait(status))
            continue;
        cJSON *kept = json_object();
        json_set_str(kept, "name", json_str_or(status, "name", ""));
        json_set(json_ensure_object(kept, "state"), "waiting",
                 json_copy(json_at(status, "state.waiting")));
        if (!out)
            out = json_array();
        json_push(out, kept);
    }
    return out;
}

/* ---- scheduling ---- */

void trouble_of_scheduling(const cJSON *pod, struct trouble *ret)
{
    static const char *const reasons[] = {"Unschedulable", "SchedulingGated"};
    const cJSON *c = condition_find(json_at(pod, "status.conditions"), "PodScheduled");
    if (!str_equal(json_str(c, "status"), "False"))
        return;
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
        if (!str_equal(json_str(c, "reason"), reasons[i]))
            continue;
        trouble_fini(ret);
        *ret = (struct trouble){reasons[i], xstrdup(json_str_or(c, "message", reasons[i]))};
    }
}
