/* What a claim says of its Sandbox (C20), and the time stamps that are written together with it
 * (C2, O3). */
#include <string.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "reconcile/child.h"
#include "reconcile/claim.h"
#include "reconcile/condition.h"
#include "reconcile/keys.h"

static const char *reason_of(enum claim_failure failure)
{
    static const char *const reasons[] = {
        [CLAIM_NO_TEMPLATE] = "TemplateNotFound", [CLAIM_NO_POOL] = "WarmPoolNotFound",
        [CLAIM_BAD_METADATA] = "InvalidMetadata", [CLAIM_ENV_REFUSED] = "EnvVarsInjectionRejected",
        [CLAIM_NOT_OWNED] = "ClaimExpired",       [CLAIM_BAD_VOLUMES] = "VolumeClaimTemplatesError",
        [CLAIM_OTHER] = "ReconcilerError",
    };
    return reasons[failure];
}

static char *message_of(const struct claim_error *e)
{
    switch (e->failure) {
    case CLAIM_NOT_OWNED:
        return xasprintf("Claim expired. sandbox not owned by this claim: %s; deletion skipped.",
                         e->text);
    case CLAIM_OTHER:
        return xasprintf("Error seen: %s", e->text);
    default:
        return xstrdup(e->text);
    }
}

struct status_work {
    const cJSON *claim;
    cJSON *conditions;
    int64_t now_s;
};

static void set_ready(const struct status_work *w, const char *status, const char *reason,
                      const char *message)
{
    condition_set(
        w->conditions,
        &(struct condition){.type = "Ready",
                            .status = status,
                            .reason = reason,
                            .message = message,
                            .observed_generation = json_i64_or(w->claim, "metadata.generation", 0)},
        w->now_s);
}

/* The Sandbox's own Ready, its time included when it is news here. */
static void copy_ready(const struct status_work *w, const cJSON *ready)
{
    const cJSON *before = condition_find(w->conditions, "Ready");
    const char *status = json_str_or(ready, "status", "Unknown");
    const char *at = json_str(ready, "lastTransitionTime");
    bool is_news = !before || !str_equal(json_str(before, "status"), status);
    set_ready(w, status, json_str_or(ready, "reason", ""), json_str_or(ready, "message", ""));
    if (is_news && at)
        json_set_str(condition_find(w->conditions, "Ready"), "lastTransitionTime", at);
}

static void mirror_ready(const struct status_work *w, const struct claim_outcome *o)
{
    const cJSON *ready = condition_find(json_at(o->sandbox, "status.conditions"), "Ready");
    if (o->error && o->error->failure != CLAIM_FINE) {
        SCOPED_FREE char *message = message_of(o->error);
        set_ready(w, "False", reason_of(o->error->failure), message);
    } else if (o->is_expired) {
        set_ready(w, "False", "ClaimExpired", "Claim expired. Sandbox cleanup initiated.");
    } else if (!o->sandbox) {
        set_ready(w, "False", "SandboxMissing", "Sandbox does not exist");
    } else if (!ready) {
        set_ready(w, "False", "SandboxNotReady", "Sandbox is not ready");
    } else if (str_equal(json_str(ready, "reason"), "SandboxExpired")) {
        set_ready(w, "False", "SandboxExpired",
                  "Underlying Sandbox resource has expired independently of the Claim.");
    } else {
        copy_ready(w, ready);
    }
}

static bool has_error(const struct claim_outcome *o)
{
    return o->error && o->error->failure != CLAIM_FINE;
}

/* Without a Sandbox in hand its end is forgotten only when it is certain that there is none: a
 * claim whose pass fails keeps its time to live. */
static void mirror_finished(const struct status_work *w, const struct claim_outcome *o)
{
    const cJSON *finished = condition_find(json_at(o->sandbox, "status.conditions"), "Finished");
    cJSON *is = condition_find(w->conditions, "Finished");
    if (!o->sandbox && (o->is_expired || has_error(o)))
        return;
    if (!finished) {
        condition_remove(w->conditions, "Finished");
        return;
    }
    cJSON *copy = json_copy(finished);
    const char *since = json_str(is, "lastTransitionTime");
    if (is && since && str_equal(json_str(is, "status"), json_str(finished, "status")))
        json_set_str(copy, "lastTransitionTime", since);
    if (is)
        json_replace_item(w->conditions, is, copy);
    else
        json_push(w->conditions, copy);
}

static void mirror_sandbox(cJSON *status, const struct claim_outcome *o)
{
    if (!o->sandbox) {
        if (!has_error(o) || o->error->failure == CLAIM_NOT_OWNED)
            json_remove(status, "sandbox");
        return;
    }
    cJSON *sandbox = json_object();
    const cJSON *ips = json_at(o->sandbox, "status.podIPs");
    json_set_str(sandbox, "name", meta_name(o->sandbox));
    if (ips && ips->child)
        json_set(sandbox, "podIPs", json_copy(ips));
    json_set(status, "sandbox", sandbox);
}

/* There are few conditions, and nearly always in order. */
static void sort_conditions(cJSON *conditions)
{
    for (cJSON *c = conditions->child ? conditions->child->next : NULL, *next; c; c = next) {
        next = c->next;
        size_t at = 0;
        const cJSON *before = conditions->child;
        for (; before != c &&
               strcmp(json_str_or(before, "type", ""), json_str_or(c, "type", "")) <= 0;
             before = before->next)
            at++;
        if (before != c)
            json_insert(conditions, at, json_detach_item(conditions, c));
    }
}

cJSON *claim_status(const cJSON *claim, const struct claim_outcome *outcome, int64_t now_unix_s)
{
    cJSON *status = condition_status_copy(claim);
    struct status_work w = {
        .claim = claim, .conditions = json_get(status, "conditions"), .now_s = now_unix_s};
    mirror_ready(&w, outcome);
    mirror_finished(&w, outcome);
    sort_conditions(w.conditions);
    mirror_sandbox(status, outcome);
    return status;
}

static void annotate(cJSON *claim, const char *key, const char *value)
{
    cJSON *metadata = json_ensure_object(claim, "metadata");
    json_set_str(json_ensure_object(metadata, "annotations"), key, value);
}

static void stamp(cJSON *claim, const char *key, int64_t unix_ms)
{
    char text[CLOCK_TEXT_SIZE];
    clock_print_rfc3339_micro(unix_ms * 1000, text);
    annotate(claim, key, text);
}

bool claim_set_status(cJSON *claim, cJSON *take_status, const struct claim_settings *settings,
                      int64_t observed_unix_ms, int64_t now_unix_ms)
{
    bool was_ready = claim_is_ready(json_get(claim, "status"));
    bool is_ready = claim_is_ready(take_status);
    bool was_stamped = meta_annotation(claim, ANNOTATION_FIRST_READY_AT) != NULL;
    json_set(claim, "status", take_status);
    if (!settings->no_observed_stamp && !meta_annotation(claim, ANNOTATION_FIRST_OBSERVED_AT))
        stamp(claim, ANNOTATION_FIRST_OBSERVED_AT, observed_unix_ms);
    if (was_stamped || (!is_ready && !was_ready))
        return false;
    if (was_ready) {
        /* Made ready by somebody who did not say when. */
        annotate(claim, ANNOTATION_FIRST_READY_AT, "unknown");
        return false;
    }
    stamp(claim, ANNOTATION_FIRST_READY_AT, now_unix_ms);
    return true;
}

cJSON *claim_bound(const cJSON *claim, const cJSON *adopted, const struct claim_settings *settings,
                   int64_t now_unix_ms)
{
    cJSON *bound = json_copy(claim);
    struct claim_outcome outcome = {.sandbox = adopted};
    claim_set_assignment(bound, meta_name(adopted));
    claim_set_status(bound, claim_status(claim, &outcome, now_unix_ms / 1000), settings,
                     now_unix_ms, now_unix_ms);
    return bound;
}
