#include "reconcile/sandbox.h"

#include <string.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "reconcile/child.h"
#include "reconcile/condition.h"
#include "reconcile/keys.h"
#include "reconcile/trouble.h"

#define EXPIRY_REQUEUE_MIN_MS 2000

void pod_plan_fini(struct pod_plan *p)
{
    step_fini(&p->step);
    free(p->name);
    *p = (struct pod_plan){0};
}

/* ---- expiry ---- */

int64_t sandbox_time_left_ms(const cJSON *sandbox, int64_t now_unix_ms)
{
    const char *at = json_str(sandbox, "spec.shutdownTime");
    int64_t at_ms;
    if (!at || clock_parse_rfc3339(at, &at_ms) < 0)
        return INT64_MAX;
    return at_ms - now_unix_ms;
}

int64_t sandbox_expiry_requeue_ms(int64_t time_left_ms)
{
    if (time_left_ms == INT64_MAX)
        return 0;
    return time_left_ms > EXPIRY_REQUEUE_MIN_MS ? time_left_ms : EXPIRY_REQUEUE_MIN_MS;
}

bool sandbox_shows_expired(const cJSON *sandbox)
{
    return condition_has_reason(json_at(sandbox, "status.conditions"), "Ready", "SandboxExpired");
}

bool sandbox_deletes_itself(const cJSON *sandbox)
{
    return str_equal(json_str(sandbox, "spec.shutdownPolicy"), "Delete");
}

bool sandbox_is_suspended(const cJSON *sandbox)
{
    return str_equal(json_str(sandbox, "spec.operatingMode"), "Suspended");
}

const char *sandbox_pod_name(const cJSON *sandbox)
{
    const char *name = meta_annotation(sandbox, ANNOTATION_POD_NAME);
    return name && *name ? name : meta_name(sandbox);
}

void sandbox_plan_teardown(const cJSON *sandbox, const cJSON *child, const char *failure_prefix,
                           struct step *ret)
{
    if (child && owner_class(child, sandbox) == OWNED)
        *ret = (struct step){.verb = STEP_DELETE, .on = child, .failure_prefix = failure_prefix};
}

/* ---- PersistentVolumeClaims (S5) ---- */

void sandbox_plan_pvc(const cJSON *sandbox, const cJSON *template, const cJSON *existing,
                      struct step *ret)
{
    if (!existing) {
        *ret = (struct step){
            .verb = STEP_CREATE, .body = pvc_desired(sandbox, template), .failure_prefix = ""};
        return;
    }
    switch (owner_class(existing, sandbox)) {
    case OWNED:
        return;
    case FOREIGN:
        *ret = (struct step){.verb = STEP_REFUSE,
                             .on = existing,
                             .error = owner_foreign_text("PVC", existing, sandbox)};
        return;
    case UNOWNED:
        break;
    }
    if (owner_may_adopt(existing, sandbox))
        *ret = (struct step){.verb = STEP_PATCH,
                             .on = existing,
                             .body = pvc_adopt_patch(sandbox, existing),
                             .failure_prefix = "failed to patch PVC with owner reference: "};
    else
        *ret = (struct step){
            .verb = STEP_REFUSE, .on = existing, .error = owner_refusal_text("PVC", existing)};
}

/* ---- Pod (S6-S8) ---- */

/* The owned Pods among the labelled ones and the named one. Returns their number and the first of
 * them. */
static int owned_pods(const cJSON *sandbox, const struct pod_view *view, const cJSON **ret_one)
{
    int n = 0;
    bool has_named = false;
    const cJSON *pod;
    cJSON_ArrayForEach(pod, view->labelled)
    {
        if (owner_class(pod, sandbox) != OWNED)
            continue;
        if (view->named && str_equal(meta_uid(pod), meta_uid(view->named)))
            has_named = true;
        if (n++ == 0)
            *ret_one = pod;
    }
    if (view->named && !has_named && owner_class(view->named, sandbox) == OWNED) {
        if (n++ == 0)
            *ret_one = view->named;
    }
    return n;
}

static void clear_name(const cJSON *sandbox, struct pod_plan *ret)
{
    if (meta_annotation(sandbox, ANNOTATION_POD_NAME))
        ret->name_change = POD_NAME_CLEAR;
}

/* The annotation is filled in when it is empty, absent or just found stale; another value is never
 * overwritten. */
static void fill_name(const cJSON *sandbox, const char *pod_name, struct pod_plan *ret)
{
    const char *is = meta_annotation(sandbox, ANNOTATION_POD_NAME);
    if (ret->name_change != POD_NAME_CLEAR && is && *is)
        return;
    if (str_equal(is, pod_name)) {
        ret->name_change = POD_NAME_KEEP;
        return;
    }
    ret->name_change = POD_NAME_SET;
    ret->name = xstrdup(pod_name);
}

static void plan_suspended(const cJSON *sandbox, const cJSON *pod, struct pod_plan *ret)
{
    ret->step.on = pod;
    if (!pod || owner_class(pod, sandbox) != OWNED) {
        clear_name(sandbox, ret);
        return;
    }
    if (!meta_is_terminating(pod))
        ret->step = (struct step){
            .verb = STEP_DELETE, .on = pod, .failure_prefix = "failed to delete pod: "};
}

/* podFailurePolicy: Recreate. A failed Pod of ours goes away, and until it is gone none is in
 * hand. */
static bool plan_replacement(const cJSON *sandbox, const cJSON *pod, struct pod_plan *ret)
{
    if (!str_equal(json_str(sandbox, "spec.podFailurePolicy"), "Recreate") ||
        !str_equal(pod_phase(pod), "Failed"))
        return false;
    ret->is_replacing = true;
    ret->step.on = pod;
    clear_name(sandbox, ret);
    if (!meta_is_terminating(pod))
        ret->step = (struct step){
            .verb = STEP_DELETE, .on = pod, .failure_prefix = "failed to delete pod: "};
    return true;
}

static void plan_existing(const cJSON *sandbox, const cJSON *pod, struct pod_plan *ret)
{
    enum ownership class = owner_class(pod, sandbox);
    ret->step.on = pod;
    if (class == FOREIGN || (class == UNOWNED && !owner_may_adopt(pod, sandbox))) {
        if (class == FOREIGN)
            clear_name(sandbox, ret);
        ret->step.verb = STEP_REFUSE;
        ret->step.error = class == FOREIGN ? owner_foreign_text("pod", pod, sandbox)
                                           : owner_refusal_text("pod", pod);
        return;
    }
    if (class == OWNED && plan_replacement(sandbox, pod, ret))
        return;
    cJSON *patch = pod_patch(sandbox, pod, class == UNOWNED);
    if (patch)
        ret->step = (struct step){.verb = STEP_PATCH,
                                  .on = pod,
                                  .body = patch,
                                  .failure_prefix = "failed to patch pod: "};
    fill_name(sandbox, meta_name(pod), ret);
}

/* The name of another Sandbox that has one of these children and whose name hashes like this one's;
 * NULL = none. What selects by the hash, Services above all, would take one Pod for the other
 * (R-04). */
static const char *twin_among(const cJSON *sandbox, const cJSON *children)
{
    char hash[NAME_HASH_SIZE], of_owner[NAME_HASH_SIZE];
    tracking_hash(sandbox, hash);
    const cJSON *child;
    cJSON_ArrayForEach(child, children)
    {
        const cJSON *owner = owner_controller(child);
        const char *name = json_str_or(owner, "name", "");
        digest_name_hash(name, of_owner);
        if (owner_is_kind(owner, GROUP_AGENTS, KIND_SANDBOX) && str_equal(of_owner, hash) &&
            !str_equal(name, meta_name(sandbox)))
            return name;
    }
    return NULL;
}

static void plan_new(const cJSON *sandbox, const char *twin, struct pod_plan *ret)
{
    if (twin) {
        char hash[NAME_HASH_SIZE];
        tracking_hash(sandbox, hash);
        ret->step = (struct step){
            .verb = STEP_REFUSE,
            .error = xasprintf("the names of sandboxes \"%s\" and \"%s\" have the same hash (%s), "
                               "by which their pods are told apart; use another name",
                               meta_name(sandbox), twin, hash)};
        return;
    }
    ret->step =
        (struct step){.verb = STEP_CREATE, .body = pod_desired(sandbox), .failure_prefix = ""};
    fill_name(sandbox, meta_name(sandbox), ret);
}

void sandbox_plan_pod(const cJSON *sandbox, const struct pod_view *view, struct pod_plan *ret)
{
    const cJSON *pod = view->named, *one = NULL;
    int n = owned_pods(sandbox, view, &one);
    if (n > 1) {
        ret->multiple = n;
        return;
    }
    if (!pod)
        clear_name(sandbox, ret);
    if (n == 1 && (!pod || !str_equal(meta_name(one), meta_name(pod)))) {
        clear_name(sandbox, ret); /* ownership beats the annotation */
        pod = one;
    }
    const char *twin = pod ? NULL : twin_among(sandbox, view->labelled);
    if (!pod && !twin)
        twin = twin_among(sandbox, view->services);
    ret->has_twin = twin;
    if (sandbox_is_suspended(sandbox))
        plan_suspended(sandbox, pod, ret);
    else if (pod)
        plan_existing(sandbox, pod, ret);
    else
        plan_new(sandbox, twin, ret);
}

/* ---- Service (S13) ---- */

enum wish { WISH_UNSET, WISH_TRUE, WISH_FALSE };

static enum wish service_wish(const cJSON *sandbox)
{
    const cJSON *wish = json_at(sandbox, "spec.service");
    if (!cJSON_IsBool(wish))
        return WISH_UNSET;
    return cJSON_IsTrue(wish) ? WISH_TRUE : WISH_FALSE;
}

static void plan_adoption(const cJSON *sandbox, const cJSON *service, struct step *ret)
{
    const char *cluster_ip = json_str_or(service, "spec.clusterIP", "");
    ret->on = service;
    if (!owner_may_adopt(service, sandbox)) {
        ret->verb = STEP_REFUSE;
        ret->error = owner_refusal_text("service", service);
    } else if (*cluster_ip && !str_equal(cluster_ip, "None")) {
        ret->verb = STEP_REFUSE;
        ret->error = xasprintf("cannot adopt service \"%s\": ClusterIP is \"%s\" (expected "
                               "\"None\", field is immutable)",
                               meta_name(service), cluster_ip);
    } else {
        ret->verb = STEP_UPDATE;
        ret->body = service_adopted(sandbox, service);
        ret->failure_prefix = "failed to update service with owner reference: ";
    }
}

static void plan_owned_service(const cJSON *sandbox, const cJSON *service, enum wish wish,
                               struct step *ret)
{
    if (wish == WISH_FALSE) {
        *ret = (struct step){
            .verb = STEP_DELETE, .on = service, .failure_prefix = "failed to delete service: "};
        return;
    }
    cJSON *patch = service_patch(sandbox, service, wish == WISH_TRUE);
    if (patch)
        *ret = (struct step){.verb = STEP_PATCH,
                             .on = service,
                             .body = patch,
                             .failure_prefix = "failed to patch owned service: "};
}

void sandbox_plan_service(const cJSON *sandbox, const cJSON *existing, struct step *ret,
                          enum service_outcome *ret_outcome)
{
    enum wish wish = service_wish(sandbox);
    *ret_outcome = SERVICE_ABSENT;
    if (!existing) {
        if (wish != WISH_TRUE)
            return;
        *ret_outcome = SERVICE_PRESENT;
        *ret = (struct step){
            .verb = STEP_CREATE, .body = service_desired(sandbox), .failure_prefix = ""};
        return;
    }
    switch (owner_class(existing, sandbox)) {
    case OWNED:
        if (wish != WISH_FALSE)
            *ret_outcome = SERVICE_PRESENT;
        plan_owned_service(sandbox, existing, wish, ret);
        return;
    case UNOWNED:
        if (wish != WISH_TRUE)
            return;
        *ret_outcome = SERVICE_PRESENT;
        plan_adoption(sandbox, existing, ret);
        return;
    case FOREIGN:
        if (wish != WISH_TRUE) /* in the way only of one that asked for a Service */
            return;
        *ret = (struct step){.verb = STEP_REFUSE,
                             .on = existing,
                             .error = owner_foreign_text("service", existing, sandbox)};
        return;
    }
}

/* ---- status ---- */

/* What the conditions of one pass are made from. */
struct status_work {
    const cJSON *sandbox;
    const struct sandbox_outcome *outcome;
    cJSON *conditions;
    int64_t generation, now_s;
    bool is_owned; /* the Pod in hand is ours */
};

static void set(const struct status_work *w, const char *type, const char *status,
                const char *reason, const char *message)
{
    condition_set(w->conditions,
                  &(struct condition){.type = type,
                                      .status = status,
                                      .reason = reason,
                                      .message = message,
                                      .observed_generation = w->generation},
                  w->now_s);
}

static void set_suspended(const struct status_work *w)
{
    const struct sandbox_outcome *o = w->outcome;
    if (!sandbox_is_suspended(w->sandbox))
        set(w, "Suspended", "False", "NotSuspended", "Sandbox is not suspended");
    else if (!o->pod && (o->pod_failed || o->multiple_pods))
        set(w, "Suspended", "Unknown", "PodStateUnknown",
            "Pod state is unknown. Sandbox suspension cannot be confirmed");
    else if (!o->pod)
        set(w, "Suspended", "True", "PodTerminated",
            "Pod has been terminated. Sandbox is suspended");
    else if (!w->is_owned)
        set(w, "Suspended", "False", "PodNotOwned",
            "Refused to delete pod because it is not owned by this sandbox");
    else
        set(w, "Suspended", "False", "PodTerminating", "Pod is terminating. Sandbox is suspending");
}

/* PodSucceeded or PodFailed for an owned Pod in a final phase, else NULL. */
static const char *final_reason(const struct status_work *w)
{
    if (!w->is_owned)
        return NULL;
    const char *phase = pod_phase(w->outcome->pod);
    return str_equal(phase, "Succeeded") ? "PodSucceeded"
           : str_equal(phase, "Failed")  ? "PodFailed"
                                         : NULL;
}

void sandbox_put_pod_failure(const cJSON *pod, struct buf *out)
{
    const char *reason = json_str_or(pod, "status.reason", "");
    buf_puts(out, "Pod failed");
    if (!*reason)
        return;
    buf_printf(out, ": %s: ", reason);
    trouble_put_text(out, json_str_or(pod, "status.message", ""));
}

static char *final_message(const struct status_work *w, const char *reason)
{
    struct buf text = {0};
    if (str_equal(reason, "PodSucceeded"))
        buf_puts(&text, "Pod completed successfully");
    else
        sandbox_put_pod_failure(w->outcome->pod, &text);
    return buf_take(&text, NULL);
}

static void set_finished(const struct status_work *w)
{
    const char *reason = final_reason(w);
    if (!reason) {
        condition_remove(w->conditions, "Finished");
        return;
    }
    SCOPED_FREE char *message = final_message(w, reason);
    set(w, "Finished", "True", reason, message);
}

static void set_scheduled(const struct status_work *w)
{
    const struct sandbox_outcome *o = w->outcome;
    if (!o->pod && (o->pod_failed || o->multiple_pods)) {
        set(w, "PodScheduled", "Unknown", "PodSchedulingUnknown",
            "Pod state is unknown. Pod scheduling cannot be determined");
        return;
    }
    if (!w->is_owned) {
        condition_remove(w->conditions, "PodScheduled");
        return;
    }
    const cJSON *c = condition_find(json_at(o->pod, "status.conditions"), "PodScheduled");
    if (!c) {
        set(w, "PodScheduled", "Unknown", "PodSchedulingUnknown",
            "Pod has not reported a PodScheduled condition yet");
        return;
    }
    const char *status = json_str_or(c, "status", ""), *reason = json_str_or(c, "reason", "");
    if (!str_equal(status, "True") && !str_equal(status, "False"))
        status = "Unknown"; /* a Pod's may be any word, a Sandbox's not */
    if (!condition_reason_fits(reason))
        reason = str_equal(status, "True") ? "PodScheduled" : "PodSchedulingUnknown";
    set(w, "PodScheduled", status, reason, json_str_or(c, "message", ""));
}

/* The text about the Pod; true when it is ready and has an address. */
static bool pod_readiness(const cJSON *pod, struct buf *text)
{
    if (!pod) {
        buf_puts(text, "Pod does not exist");
        return false;
    }
    const char *phase = pod_phase(pod);
    if (!str_equal(phase, "Running")) {
        buf_printf(text, "Pod exists with phase: %s", phase);
        return false;
    }
    const cJSON *ready = condition_find(json_at(pod, "status.conditions"), "Ready");
    if (!str_equal(json_str(ready, "status"), "True")) {
        buf_puts(text, "Pod is Running but not Ready");
        return false;
    }
    if (json_len(json_at(pod, "status.podIPs")) == 0) {
        buf_puts(text, "Pod is Ready but has no podIPs yet");
        return false;
    }
    buf_puts(text, "Pod is Ready");
    return true;
}

static void set_ready_by_children(const struct status_work *w, bool has_service)
{
    enum wish wish = service_wish(w->sandbox);
    bool needs_service = wish == WISH_UNSET ? has_service : wish == WISH_TRUE;
    SCOPED(buf_fini) struct buf text = {0};
    bool is_ready = pod_readiness(w->outcome->pod, &text);
    if (needs_service)
        buf_puts(&text, has_service ? "; Service Exists" : "; Service does not exist");
    is_ready = is_ready && (!needs_service || has_service);
    if (is_ready) {
        set(w, "Ready", "True", "DependenciesReady", buf_cstr(&text));
        return;
    }
    SCOPED(trouble_fini) struct trouble trouble = {0};
    if (w->outcome->detailed_reasons) /* else only PodScheduled says it, as the original's does */
        trouble_of_scheduling(w->outcome->pod, &trouble);
    trouble_of_containers(w->outcome->pod, &trouble);
    if (trouble.text)
        buf_printf(&text, "; %s", trouble.text);
    set(w, "Ready", "False",
        w->outcome->detailed_reasons && trouble.reason ? trouble.reason : "DependenciesNotReady",
        buf_cstr(&text));
}

static const char *error_reason(const struct sandbox_outcome *o)
{
    const char *refused = o->detailed_reasons ? trouble_of_refusal(o->errors) : NULL;
    return o->is_invalid ? "InvalidConfiguration" : refused ? refused : "ReconcilerError";
}

/* The children of this very spec were found invalid before. API servers name several mistakes in
 * any order, so other words are no other verdict. */
static bool is_judged_invalid(const struct status_work *w)
{
    const cJSON *ready = condition_find(w->conditions, "Ready");
    return w->outcome->is_invalid && str_equal(json_str(ready, "reason"), "InvalidConfiguration") &&
           json_i64_or(ready, "observedGeneration", 0) == w->generation;
}

static void set_ready(const struct status_work *w, bool has_service)
{
    const struct sandbox_outcome *o = w->outcome;
    const char *final = final_reason(w);
    if (!o->multiple_pods && is_judged_invalid(w))
        return;
    if (o->multiple_pods) {
        SCOPED_FREE char *text = xasprintf("multiple Pods (%d) are controlled by this Sandbox; "
                                           "refusing to choose or create a Pod",
                                           o->multiple_pods);
        set(w, "Ready", "False", "MultiplePods", text);
    } else if (o->errors) {
        SCOPED_FREE char *text = xasprintf("Error seen: %s", o->errors);
        set(w, "Ready", "False", error_reason(o), o->is_invalid ? o->errors : text);
    } else if (sandbox_is_suspended(w->sandbox)) {
        set(w, "Ready", "False", "SandboxSuspended",
            o->pod ? "Sandbox is suspending" : "Sandbox is suspended");
    } else if (final) {
        SCOPED_FREE char *message = final_message(w, final);
        set(w, "Ready", "False", final, message);
    } else {
        set_ready_by_children(w, has_service);
    }
}

static void set_or_remove(cJSON *object, const char *name, const cJSON *value)
{
    if (value)
        json_set(object, name, json_copy(value));
    else
        json_remove(object, name);
}

/* podIPs as the status has them: a list of strings. NULL when there are none. */
static cJSON *pod_ips(const cJSON *pod)
{
    const cJSON *ips = json_at(pod, "status.podIPs"), *ip;
    if (json_len(ips) == 0)
        return NULL;
    cJSON *out = json_array();
    cJSON_ArrayForEach(ip, ips)
    {
        json_push(out, json_string(json_str_or(ip, "ip", "")));
    }
    return out;
}

static void set_service_fields(cJSON *status, const cJSON *sandbox, enum service_outcome service,
                               const char *cluster_domain)
{
    if (service == SERVICE_UNKNOWN)
        return;
    if (service == SERVICE_ABSENT) {
        json_remove(status, "service");
        json_remove(status, "serviceFQDN");
        return;
    }
    SCOPED_FREE char *fqdn =
        xasprintf("%s.%s.svc.%s", meta_name(sandbox), meta_namespace(sandbox), cluster_domain);
    json_set_str(status, "service", meta_name(sandbox));
    json_set_str(status, "serviceFQDN", fqdn);
}

static void set_pod_fields(cJSON *status, const cJSON *sandbox, const cJSON *pod, bool is_owned)
{
    SCOPED(json_free_p) cJSON *ips = is_owned ? pod_ips(pod) : NULL;
    set_or_remove(status, "podIPs", ips);
    set_or_remove(status, "nodeName", is_owned ? json_at(pod, "spec.nodeName") : NULL);
    if (pod) {
        SCOPED(buf_fini) struct buf selector = {0};
        tracking_selector(sandbox, &selector);
        json_set_str(status, "selector", buf_cstr(&selector));
    }
}

static struct status_work status_begin(const cJSON *sandbox, cJSON *status, int64_t now_unix_s)
{
    return (struct status_work){
        .sandbox = sandbox,
        .conditions = json_get(status, "conditions"),
        .generation = json_i64_or(sandbox, "metadata.generation", 0),
        .now_s = now_unix_s,
    };
}

cJSON *sandbox_status(const cJSON *sandbox, const struct sandbox_outcome *outcome,
                      const char *cluster_domain, int64_t now_unix_s)
{
    cJSON *status = condition_status_copy(sandbox);
    struct status_work w = status_begin(sandbox, status, now_unix_s);
    w.outcome = outcome;
    w.is_owned = outcome->pod && owner_class(outcome->pod, sandbox) == OWNED;
    set_service_fields(status, sandbox, outcome->service, cluster_domain);
    set_pod_fields(status, sandbox, outcome->pod, w.is_owned);
    set_suspended(&w);
    set_finished(&w);
    set_scheduled(&w);
    set_ready(&w, json_get(status, "service") != NULL);
    return status;
}

cJSON *sandbox_status_expired(const cJSON *sandbox, int64_t now_unix_s)
{
    cJSON *status = condition_status_copy(sandbox);
    struct status_work w = status_begin(sandbox, status, now_unix_s);
    set(&w, "Ready", "False", "SandboxExpired", "Sandbox has expired");
    condition_remove(w.conditions, "PodScheduled");
    return status;
}

cJSON *sandbox_status_torn_down(const cJSON *sandbox, int64_t now_unix_s)
{
    SCOPED(json_free_p) cJSON *expired = sandbox_status_expired(sandbox, now_unix_s);
    cJSON *status = json_object();
    json_set(status, "conditions", json_detach(expired, "conditions"));
    return status;
}

bool sandbox_status_differs(const cJSON *old_status, const cJSON *new_status)
{
    if (json_equal(old_status, new_status))
        return false;
    const cJSON *ready = condition_find(json_get(new_status, "conditions"), "Ready");
    if (str_equal(json_str(ready, "status"), "True"))
        return true;
    SCOPED(json_free_p) cJSON *old_copy = json_copy(old_status);
    SCOPED(json_free_p) cJSON *new_copy = json_copy(new_status);
    json_remove(old_copy, "nodeName");
    json_remove(new_copy, "nodeName");
    return !json_equal(old_copy, new_copy);
}

/* ---- events ---- */

/* Reasons of Ready that are worth an event when Ready comes to have them. */
static const struct {
    const char *ready_reason;
    struct event_text event; /* note NULL = the condition's message */
} ready_events[] = {
    {"DependenciesReady", {"Normal", "SandboxReady", "Readiness", "Sandbox is ready"}},
    {"PodSucceeded", {"Normal", "PodSucceeded", "PodCompletion", NULL}},
    {"PodFailed", {"Warning", "PodFailed", "PodCompletion", NULL}},
    {"SandboxExpired", {"Normal", "SandboxExpired", "Expiry", NULL}},
    {"MultiplePods", {"Warning", "MultiplePods", "Reconciling", NULL}},
};

int sandbox_events(const cJSON *sandbox, const cJSON *old_status, const cJSON *new_status,
                   struct event_text ret[SANDBOX_EVENTS_MAX])
{
    const cJSON *before = json_get(old_status, "conditions");
    const cJSON *after = json_get(new_status, "conditions");
    const char *reason = json_str(condition_find(after, "Ready"), "reason");
    int n = 0;
    for (size_t i = 0; i < ARRAY_LEN(ready_events); i++) {
        if (!str_equal(reason, ready_events[i].ready_reason) ||
            condition_has_reason(before, "Ready", reason))
            continue;
        if (str_equal(reason, "SandboxExpired") && sandbox_deletes_itself(sandbox))
            continue;
        ret[n] = ready_events[i].event;
        if (!ret[n].note)
            ret[n].note = json_str_or(condition_find(after, "Ready"), "message", "");
        n++;
    }
    if (condition_has_reason(after, "Suspended", "PodTerminated") &&
        !condition_has_reason(before, "Suspended", "PodTerminated"))
        ret[n++] =
            (struct event_text){"Normal", "SandboxSuspended", "Suspension", "Sandbox is suspended"};
    return n;
}
