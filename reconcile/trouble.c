#include "reconcile/trouble.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "reconcile/condition.h"

#define TEXT_MAX 512 /* bytes; kubelets repeat whole answers of registries */

void trouble_fini(struct trouble *t)
{
    free(t->reason);
    free(t->text);
    *t = (struct trouble){0};
}

void trouble_set(struct trouble *t, const char *reason, const char *text)
{
    struct buf fit = {0};
    trouble_put_text(&fit, text);
    trouble_fini(t);
    t->reason = xstrdup(reason);
    t->text = buf_take(&fit, NULL);
}

/* ---- texts ---- */

#define URL_ENDS " \t\r\n\"'<>"

/* p stands after "://". Who logs in is left out; returns where the host begins. */
static const char *skip_login(const char *p)
{
    const char *at = memrchr(p, '@', strcspn(p, "/?#" URL_ENDS));
    return at ? at + 1 : p;
}

/* The rest of a URL, p stands after "://"; returns its end. */
static const char *put_url(struct buf *line, const char *p)
{
    const char *end = p + strcspn(p, URL_ENDS), *host = skip_login(p);
    size_t shown = strcspn(host, "?" URL_ENDS);
    buf_append(line, host, shown);
    if (host + shown < end)
        buf_puts(line, "?...");
    return end;
}

void trouble_put_text(struct buf *out, const char *text)
{
    SCOPED(buf_fini) struct buf line = {0};
    for (const char *p = text; *p;) {
        if (str_has_prefix(p, "://")) {
            buf_puts(&line, "://");
            p = put_url(&line, p + 3);
            continue;
        }
        buf_putc(&line, (unsigned char)*p < ' ' || *p == 0x7f ? ' ' : *p);
        p++;
    }
    size_t n = str_utf8_cut(buf_cstr(&line), line.len, TEXT_MAX);
    buf_append(out, buf_cstr(&line), n);
    if (n < line.len)
        buf_puts(out, "...");
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

/* Between two tries kubelets mostly show how the last one ended. */
static const char *reason_of_end(const cJSON *status)
{
    if (json_i64_or(status, "state.terminated.exitCode", 0) == 0)
        return NULL;
    return json_i64_or(status, "restartCount", 0) > 0 ? "CrashLoop" : "ContainerFailed";
}

static char *text_of_wait(const cJSON *status)
{
    const char *message = json_str_or(status, "state.waiting.message", "");
    return xasprintf("container \"%s\" waits: %s%s%s", json_str_or(status, "name", ""),
                     json_str_or(status, "state.waiting.reason", ""), *message ? ": " : "",
                     message);
}

static char *text_of_end(const cJSON *status)
{
    return xasprintf("container \"%s\" ended: %s, exit code %" PRId64,
                     json_str_or(status, "name", ""),
                     json_str_or(status, "state.terminated.reason", "Error"),
                     json_i64_or(status, "state.terminated.exitCode", 0));
}

void trouble_of_containers(const cJSON *pod, struct trouble *ret)
{
    for (size_t i = 0; i < ARRAY_LEN(status_lists); i++) {
        const cJSON *status;
        cJSON_ArrayForEach(status, json_get(json_get(pod, "status"), status_lists[i]))
        {
            const char *wait = reason_of_wait(status), *end = reason_of_end(status);
            if (!wait && !end)
                continue;
            SCOPED_FREE char *text = wait ? text_of_wait(status) : text_of_end(status);
            trouble_set(ret, wait ? wait : end, text);
            return;
        }
    }
}

/* What is said above, of a state's part. */
static void keep_part(cJSON *kept, const cJSON *status, const char *part)
{
    static const char *const members[] = {"reason", "message", "exitCode"};
    const cJSON *from = json_get(json_get(status, "state"), part);
    cJSON *to = from ? json_ensure_object(json_ensure_object(kept, "state"), part) : NULL;
    for (size_t i = 0; to && i < ARRAY_LEN(members); i++) {
        const cJSON *v = json_get(from, members[i]);
        if (v)
            json_set(to, members[i], json_copy(v));
    }
}

cJSON *trouble_keep(const cJSON *pod, const char *list)
{
    cJSON *out = NULL;
    const cJSON *status;
    cJSON_ArrayForEach(status, json_get(json_get(pod, "status"), list))
    {
        if (!reason_of_wait(status) && !reason_of_end(status))
            continue;
        cJSON *kept = json_object();
        json_set_str(kept, "name", json_str_or(status, "name", ""));
        json_set_int(kept, "restartCount", json_i64_or(status, "restartCount", 0));
        keep_part(kept, status, "waiting");
        keep_part(kept, status, "terminated");
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
        trouble_set(ret, reasons[i], json_str_or(c, "message", reasons[i]));
    }
}

/* ---- Sandboxes ---- */

void trouble_of_sandbox(const cJSON *sandbox, struct trouble *ret)
{
    const cJSON *ready = condition_find(json_at(sandbox, "status.conditions"), "Ready");
    const char *reason = json_str_or(ready, "reason", "");
    const char *message = json_str_or(ready, "message", "");
    if (!ready || str_equal(json_str(ready, "status"), "True") ||
        str_equal(reason, "SandboxSuspended"))
        return;
    if (str_equal(reason, "DependenciesNotReady")) {
        trouble_of_scheduling(sandbox, ret); /* the condition is a copy of the Pod's */
        return;
    }
    const char *refused = trouble_of_refusal(message);
    trouble_set(ret, refused ? refused : reason, message);
}
