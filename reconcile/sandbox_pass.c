#include "reconcile/sandbox_pass.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "apiserver/base/crash.h"
#include "apiserver/base/duration.h"
#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "reconcile/child.h"
#include "reconcile/idle.h"
#include "reconcile/keys.h"
#include "reconcile/sandbox.h"
#include "reconcile/sandbox_metric.h"
#include "reconcile/twins.h"

#define EXPIRED_AGAIN_MS 1    /* the second pass of an expiry follows at once */
#define TWIN_AGAIN_MS 50      /* another Sandbox of the same hash is being worked on */
#define REPLACE_FIRST_MS 5000 /* podFailurePolicy Recreate: delay before the next Pod, doubling */
#define REPLACE_MAX_MS (5 * 60000) /* to at most this */

/* How often a Sandbox's Pod failed lately; lost at restart, which only means an earlier next
 * try. */
struct replacement {
    char uid[RAND_UUID_SIZE]; /* a namesake made later has its own tries */
    unsigned failures;
    int64_t not_before_ms; /* monotonic */
};

struct sandbox_reconciler {
    struct sandbox_reconciler_config config;
    pthread_mutex_t lock;
    struct map *replacements; /* key -> struct replacement */
    struct twins *twins;
    struct sandbox_metric *metric;
};

/* The state of one pass. */
struct pass {
    struct sandbox_reconciler *r;
    const char *key;
    cJSON *sandbox; /* as read; edited where a later step must see an earlier one's decision */
    char *pod_name; /* the annotation as it will be; NULL = absent */
    struct pass_errors errors;
    bool has_other_than_invalid;
    bool is_cut_off; /* the cluster did not answer: nothing may be concluded */
    bool is_alone;   /* no twin is at work, see twins.h */
    bool has_twin;   /* struct pod_plan */
    cJSON *pod;      /* in hand */
    struct sandbox_outcome outcome;
    enum idle_step idle; /* what goes with the status */
    int64_t again_after_ms;
    int64_t own_rev; /* see struct loop_result */
};

struct sandbox_reconciler *sandbox_reconciler_new(const struct sandbox_reconciler_config *config)
{
    struct sandbox_reconciler *r = xcalloc(1, sizeof *r);
    r->config = *config;
    pthread_mutex_init(&r->lock, NULL);
    r->replacements = map_new();
    r->twins = twins_new();
    r->metric = sandbox_metric_new();
    return r;
}

static bool free_replacement(void *ctx, const char *key, void *value)
{
    (void)ctx;
    (void)key;
    free(value);
    return true;
}

void sandbox_reconciler_free(struct sandbox_reconciler *r)
{
    if (!r)
        return;
    map_each(r->replacements, free_replacement, NULL);
    map_free(r->replacements);
    twins_free(r->twins);
    sandbox_metric_free(r->metric);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

static void wish_again(struct pass *p, int64_t after_ms)
{
    if (after_ms > 0 && (!p->again_after_ms || after_ms < p->again_after_ms))
        p->again_after_ms = after_ms;
}

/* ---- errors ---- */

static void note_error(struct pass *p, const char *prefix, const char *text, bool is_invalid)
{
    pass_errors_add(&p->errors, prefix, text);
    if (!is_invalid)
        p->has_other_than_invalid = true;
}

static void note_failure(struct pass *p, const char *prefix, bool is_create, struct err *err)
{
    if (pass_is_link_error(err->code)) {
        log_warn("cluster call failed sandbox=%s, trying again later: %s", p->key, err_text(err));
        p->is_cut_off = true;
    }
    note_error(p, prefix, err_text(err), is_create && err->code == ERR_INVALID);
}

/* ---- events ---- */

static void tell(struct pass *p, const struct event_text *text)
{
    if (!p->r->config.no_events)
        pass_tell(&p->r->config.env, p->sandbox, text, FIELD_MANAGER);
}

static void tell_created(struct pass *p)
{
    SCOPED_FREE char *note = xasprintf("Created Pod \"%s\"", meta_name(p->sandbox));
    tell(p, &(struct event_text){"Normal", "SandboxPodCreated", "PodCreation", note});
}

/* Once per cause: not when Ready says so already. */
static void tell_create_failed(struct pass *p, const char *text)
{
    const cJSON *c;
    cJSON_ArrayForEach(c, json_at(p->sandbox, "status.conditions"))
    {
        if (str_equal(json_str(c, "type"), "Ready") && strstr(json_str_or(c, "message", ""), text))
            return;
    }
    tell(p, &(struct event_text){"Warning", "SandboxPodCreateFailed", "PodCreation", text});
}

/* ---- carrying out ---- */

static int read_child(struct pass *p, enum child child, const char *name, bool live,
                      const char *failure_prefix, cJSON **ret)
{
    struct cluster *c = p->r->config.env.cluster;
    SCOPED(err_fini) struct err err = {0};
    int rc = c->v->get(c, child, meta_namespace(p->sandbox), name, live, ret, &err);
    if (rc < 0)
        note_failure(p, failure_prefix, false, &err);
    return rc;
}

/* ---- PersistentVolumeClaims ---- */

/* A claim that the cache lacks is simply created; if that finds one there, it is read and judged in
 * this same pass. */
static int pvc_step(struct pass *p, const cJSON *template)
{
    SCOPED_FREE char *name = pvc_name(p->sandbox, template);
    for (int live = 0;; live++) {
        SCOPED(json_free_p) cJSON *existing = NULL, *after = NULL;
        SCOPED(step_fini) struct step step = {0};
        SCOPED(err_fini) struct err err = {0};
        if (read_child(p, CHILD_PVC, name, live > 0, "failed to get PVC: ", &existing) < 0)
            return -1;
        sandbox_plan_pvc(p->sandbox, template, existing, &step);
        int rc = pass_carry_out(&p->r->config.env, CHILD_PVC, meta_namespace(p->sandbox), &step,
                                &after, &err);
        if (rc == 0)
            return 0;
        if (rc == -ERR_ALREADY_EXISTS && !live)
            continue;
        note_failure(p, step.failure_prefix ? step.failure_prefix : "", step.verb == STEP_CREATE,
                     &err);
        return -1;
    }
}

static void pvc_steps(struct pass *p)
{
    const cJSON *template;
    cJSON_ArrayForEach(template, json_at(p->sandbox, "spec.volumeClaimTemplates"))
    {
        if (pvc_step(p, template) < 0)
            return;
    }
}

/* ---- Pod ---- */

static void set_pod_name(struct pass *p, const char *name)
{
    free(p->pod_name);
    p->pod_name = name ? xstrdup(name) : NULL;
    cJSON *annotations = json_at(p->sandbox, "metadata.annotations");
    if (name)
        json_set_str(json_ensure_object(json_ensure_object(p->sandbox, "metadata"), "annotations"),
                     ANNOTATION_POD_NAME, name);
    else
        json_remove(annotations, ANNOTATION_POD_NAME);
}

/* Lock held. NULL when no Pod of this very Sandbox failed. */
static struct replacement *replacement_find(struct pass *p)
{
    struct replacement *x = map_get(p->r->replacements, p->key);
    return x && str_equal(x->uid, meta_uid(p->sandbox)) ? x : NULL;
}

/* Lock held. In the place of what a namesake left. */
static struct replacement *replacement_begin(struct pass *p)
{
    const char *uid = meta_uid(p->sandbox);
    struct replacement *x = xcalloc(1, sizeof *x);
    memcpy(x->uid, uid, strnlen(uid, sizeof x->uid - 1));
    free(map_put(p->r->replacements, p->key, x));
    return x;
}

/* ms to wait before a Pod may be created; 0 = now. */
static int64_t create_wait_ms(struct pass *p)
{
    if (!p->is_alone)
        return TWIN_AGAIN_MS;
    pthread_mutex_lock(&p->r->lock);
    const struct replacement *x = replacement_find(p);
    int64_t wait = x ? x->not_before_ms - clock_monotonic_ms(p->r->config.env.clock) : 0;
    pthread_mutex_unlock(&p->r->lock);
    return wait > 0 ? wait : 0;
}

/* How often the Pod failed in a row, and how long until the next one is made. */
static unsigned replacement_count(struct pass *p, int64_t *ret_wait_ms)
{
    pthread_mutex_lock(&p->r->lock);
    struct replacement *x = replacement_find(p);
    if (!x)
        x = replacement_begin(p);
    int64_t delay = REPLACE_FIRST_MS;
    for (unsigned i = 0; i < x->failures && delay < REPLACE_MAX_MS; i++)
        delay *= 2;
    unsigned failures = ++x->failures;
    *ret_wait_ms = delay < REPLACE_MAX_MS ? delay : REPLACE_MAX_MS;
    x->not_before_ms = clock_monotonic_ms(p->r->config.env.clock) + *ret_wait_ms;
    pthread_mutex_unlock(&p->r->lock);
    return failures;
}

/* Ready does not tell of Pods that are replaced, so an event does. */
static void tell_replaced(struct pass *p, const cJSON *pod)
{
    int64_t wait_ms;
    unsigned failures = replacement_count(p, &wait_ms);
    SCOPED(buf_fini) struct buf note = {0};
    sandbox_put_pod_failure(pod, &note);
    buf_printf(&note, ", %u in a row; the next one is made in ", failures);
    duration_print_ms(wait_ms, &note);
    tell(p, &(struct event_text){"Warning", "PodFailed", "PodReplacement", buf_cstr(&note)});
}

static void replacement_forget(struct sandbox_reconciler *r, const char *key)
{
    pthread_mutex_lock(&r->lock);
    free(map_del(r->replacements, key));
    pthread_mutex_unlock(&r->lock);
}

/* What a plan for the Pod is made from; starts as {0}. */
struct seen {
    cJSON *labelled, *named, *services;
};

static void seen_fini(struct seen *s)
{
    json_free(s->labelled);
    json_free(s->named);
    json_free(s->services);
}

static int plan_pod(struct pass *p, bool live, struct seen *seen, struct pod_plan *ret)
{
    struct cluster *c = p->r->config.env.cluster;
    char hash[NAME_HASH_SIZE];
    tracking_hash(p->sandbox, hash);
    seen->labelled = c->v->list(c, CHILD_POD, meta_namespace(p->sandbox), hash);
    /* A missing Pod of the Sandbox's own name needs no question: creating it will tell. */
    const char *name = sandbox_pod_name(p->sandbox);
    live = live || sandbox_is_suspended(p->sandbox) || !str_equal(name, meta_name(p->sandbox));
    if (read_child(p, CHILD_POD, name, live, "pod get failed: ", &seen->named) < 0)
        return -1;
    if (!seen->named)
        seen->services = c->v->list(c, CHILD_SERVICE, meta_namespace(p->sandbox), hash);
    sandbox_plan_pod(p->sandbox,
                     &(struct pod_view){.labelled = seen->labelled,
                                        .named = seen->named,
                                        .services = seen->services},
                     ret);
    return 0;
}

/* What the outcome of the Pod step is when its call failed. */
static void pod_step_failed(struct pass *p, const struct pod_plan *plan, struct err *err)
{
    bool is_create = plan->step.verb == STEP_CREATE;
    note_failure(p, plan->step.failure_prefix ? plan->step.failure_prefix : "", is_create, err);
    if (is_create)
        tell_create_failed(p, err_text(err));
    if (plan->name_change == POD_NAME_SET)
        set_pod_name(p, NULL); /* what was to be replaced is stale all the same */
    /* Only a failed delete leaves the Pod in hand. */
    if (plan->step.verb == STEP_DELETE && !plan->is_replacing)
        p->pod = json_copy(plan->step.on);
    else
        p->outcome.pod_failed = true;
}

static void pod_step_done(struct pass *p, const struct pod_plan *plan, cJSON **after)
{
    if (plan->name_change == POD_NAME_SET)
        set_pod_name(p, plan->name);
    if (plan->step.verb == STEP_CREATE)
        tell_created(p);
    if (plan->is_replacing) {
        if (plan->step.verb == STEP_DELETE)
            tell_replaced(p, plan->step.on);
        return;
    }
    p->pod = plan->step.verb == STEP_DELETE ? json_copy(plan->step.on) : steal(after);
    if (p->pod && str_equal(pod_phase(p->pod), "Running"))
        replacement_forget(p->r, p->key);
}

static void pod_step(struct pass *p)
{
    for (int live = 0;; live++) {
        SCOPED(json_free_p) cJSON *after = NULL;
        SCOPED(seen_fini) struct seen seen = {0};
        SCOPED(pod_plan_fini) struct pod_plan plan = {0};
        SCOPED(err_fini) struct err err = {0};
        if (plan_pod(p, live > 0, &seen, &plan) < 0) {
            p->outcome.pod_failed = true;
            return;
        }
        if (plan.multiple) {
            p->outcome.multiple_pods = plan.multiple;
            return;
        }
        p->has_twin = plan.has_twin;
        if (plan.name_change == POD_NAME_CLEAR)
            set_pod_name(p, NULL);
        int64_t wait_ms = plan.step.verb == STEP_CREATE ? create_wait_ms(p) : 0;
        if (wait_ms) {
            wish_again(p, wait_ms);
            return;
        }
        int rc = pass_carry_out(&p->r->config.env, CHILD_POD, meta_namespace(p->sandbox),
                                &plan.step, &after, &err);
        if (rc == -ERR_ALREADY_EXISTS && plan.step.verb == STEP_CREATE && !live) {
            set_pod_name(p, NULL); /* judge the one that has the Sandbox's own name */
            continue;
        }
        if (rc < 0)
            pod_step_failed(p, &plan, &err);
        else
            pod_step_done(p, &plan, &after);
        return;
    }
}

/* ---- Service ---- */

/* A Service that a Sandbox gets while a twin has a Pod would select that one. */
static bool may_add_service(struct pass *p, const struct step *step)
{
    if ((step->verb != STEP_CREATE && step->verb != STEP_UPDATE) || (p->is_alone && !p->has_twin))
        return true;
    wish_again(p, p->is_alone ? 0 : TWIN_AGAIN_MS);
    return false;
}

static void service_step(struct pass *p)
{
    for (int live = 0;; live++) {
        SCOPED(json_free_p) cJSON *existing = NULL, *after = NULL;
        SCOPED(step_fini) struct step step = {0};
        SCOPED(err_fini) struct err err = {0};
        enum service_outcome outcome;
        if (read_child(p, CHILD_SERVICE, meta_name(p->sandbox), live > 0,
                       "service get failed: ", &existing) < 0)
            return;
        sandbox_plan_service(p->sandbox, existing, &step, &outcome);
        if (!may_add_service(p, &step))
            return;
        int rc = pass_carry_out(&p->r->config.env, CHILD_SERVICE, meta_namespace(p->sandbox), &step,
                                &after, &err);
        if (rc == -ERR_ALREADY_EXISTS && step.verb == STEP_CREATE && !live)
            continue;
        if (rc == -ERR_NOT_FOUND && step.verb == STEP_DELETE)
            rc = 0;
        if (rc < 0)
            note_failure(p, step.failure_prefix ? step.failure_prefix : "",
                         step.verb == STEP_CREATE, &err);
        else
            p->outcome.service = outcome;
        return;
    }
}

/* ---- writing ---- */

struct change {
    const cJSON *status;
    const char *pod_name; /* NULL = absent */
    enum idle_step idle;
    int64_t now_ms;
};

static bool apply_change(void *ctx, cJSON *sandbox)
{
    const struct change *change = ctx;
    json_set(sandbox, "status", json_copy(change->status));
    idle_apply(change->idle, sandbox, change->now_ms);
    cJSON *meta = json_ensure_object(sandbox, "metadata");
    if (change->pod_name) {
        json_set_str(json_ensure_object(meta, "annotations"), ANNOTATION_POD_NAME,
                     change->pod_name);
        return true;
    }
    cJSON *annotations = json_get(meta, "annotations");
    json_remove(annotations, ANNOTATION_POD_NAME);
    if (annotations && !annotations->child)
        json_remove(meta, "annotations");
    return true;
}

/* Status and annotation in one write; nothing when neither changes. Gone is success. */
static int write_back(struct pass *p, const cJSON *status, const char *pod_name_before)
{
    const cJSON *before = json_get(p->sandbox, "status");
    if (!sandbox_status_differs(before, status) && str_equal(pod_name_before, p->pod_name) &&
        p->idle == IDLE_KEEP)
        return 0;
    struct change change = {.status = status,
                            .pod_name = p->pod_name,
                            .idle = p->idle,
                            .now_ms = clock_unix_ms(p->r->config.env.clock)};
    SCOPED(object_unref_p) struct object *written = NULL;
    SCOPED(err_fini) struct err err = {0};
    CRASH_POINT(SANDBOX_STATUS_DECIDED);
    int rc = pass_update(&p->r->config.env,
                         &(struct pass_update){.kind = &kind_sandbox,
                                               .namespace_name = meta_namespace(p->sandbox),
                                               .name = meta_name(p->sandbox),
                                               .uid = meta_uid(p->sandbox),
                                               .change = apply_change,
                                               .ctx = &change,
                                               .field_manager = FIELD_MANAGER},
                         &written, &err);
    CRASH_POINT(SANDBOX_STATUS_WRITTEN);
    if (rc == -ERR_NOT_FOUND)
        return 0;
    if (rc == -ERR_INVALID) {
        /* Not by a rule that is younger than the object, which would let this through: the object
         * itself is broken, so there is nothing to gain by trying again. */
        log_warn("status refused sandbox=%s: %s", p->key, err_text(&err));
        return 0;
    }
    if (rc < 0) {
        log_warn("status write failed sandbox=%s, trying again: %s", p->key, err_text(&err));
        return -1;
    }
    p->own_rev = written->rev;
    sandbox_metric_written(p->r->metric, p->key, p->sandbox, status,
                           clock_unix_ms(p->r->config.env.clock));
    struct event_text events[SANDBOX_EVENTS_MAX];
    int n = sandbox_events(p->sandbox, before, status, events);
    for (int i = 0; i < n; i++)
        tell(p, &events[i]);
    return 0;
}

/* ---- the two ways of a pass ---- */

static int delete_itself(struct pass *p)
{
    SCOPED(err_fini) struct err err = {0};
    CRASH_POINT(SANDBOX_END_DECIDED);
    int rc = pass_delete(
        &p->r->config.env,
        &(struct pass_delete){.kind = &kind_sandbox,
                              .namespace_name = meta_namespace(p->sandbox),
                              .name = meta_name(p->sandbox),
                              .uid = meta_uid(p->sandbox),
                              .resource_version = json_str(p->sandbox, "metadata.resourceVersion")},
        &err);
    CRASH_POINT(SANDBOX_ENDED);
    if (rc == 0 || rc == -ERR_NOT_FOUND || rc == -ERR_CONFLICT)
        return 0; /* a change, say of its time, brings the next pass */
    log_warn("deleting an expired sandbox failed sandbox=%s: %s", p->key, err_text(&err));
    return -1;
}

static void tear_down(struct pass *p, enum child child, const char *name, const char *get_prefix,
                      const char *delete_prefix)
{
    SCOPED(json_free_p) cJSON *existing = NULL, *after = NULL;
    SCOPED(step_fini) struct step step = {0};
    SCOPED(err_fini) struct err err = {0};
    if (read_child(p, child, name, true, get_prefix, &existing) < 0)
        return;
    sandbox_plan_teardown(p->sandbox, existing, delete_prefix, &step);
    int rc =
        pass_carry_out(&p->r->config.env, child, meta_namespace(p->sandbox), &step, &after, &err);
    if (rc < 0 && rc != -ERR_NOT_FOUND)
        note_failure(p, delete_prefix, false, &err);
}

static int expired_pass(struct pass *p)
{
    const struct clock *clock = p->r->config.env.clock;
    SCOPED(json_free_p) cJSON *status = NULL;
    if (!sandbox_shows_expired(p->sandbox)) {
        status = sandbox_status_expired(p->sandbox, clock_unix_s(clock));
        wish_again(p, EXPIRED_AGAIN_MS);
        return write_back(p, status, p->pod_name);
    }
    tear_down(p, CHILD_POD, sandbox_pod_name(p->sandbox),
              "failed to get pod: ", "failed to delete pod: ");
    tear_down(p, CHILD_SERVICE, meta_name(p->sandbox),
              "failed to get service: ", "failed to delete service: ");
    if (sandbox_deletes_itself(p->sandbox))
        return delete_itself(p);
    if (p->errors.n) {
        log_warn("expiry not complete sandbox=%s, trying again: %s", p->key,
                 buf_cstr(&p->errors.text));
        return -1;
    }
    status = sandbox_status_torn_down(p->sandbox, clock_unix_s(clock));
    return write_back(p, status, p->pod_name);
}

static cJSON *conclude(struct pass *p)
{
    const struct sandbox_reconciler_config *c = &p->r->config;
    p->outcome.pod = p->pod;
    p->outcome.errors = p->errors.n ? buf_cstr(&p->errors.text) : NULL;
    p->outcome.is_invalid = p->errors.n && !p->has_other_than_invalid;
    p->outcome.detailed_reasons = c->detailed_reasons;
    return sandbox_status(p->sandbox, &p->outcome, c->cluster_domain, clock_unix_s(c->env.clock));
}

/* ---- idleness ---- */

/* What goes with the status, and the next look. A time that ran out during this pass is for the
 * next one. */
static void plan_idle(struct pass *p, const cJSON *status)
{
    int64_t left_ms;
    p->idle = idle_plan(p->sandbox, json_get(status, "conditions"),
                        clock_unix_ms(p->r->config.env.clock), &left_ms);
    if (p->idle == IDLE_SUSPEND) {
        p->idle = IDLE_KEEP;
        left_ms = 1;
    }
    wish_again(p, left_ms);
}

struct suspension {
    int64_t now_ms;
    bool is_done;
};

/* Decided anew on what is stored: activity that was noted meanwhile wins. */
static bool apply_suspension(void *ctx, cJSON *sandbox)
{
    struct suspension *s = ctx;
    int64_t left_ms;
    s->is_done = idle_plan(sandbox, json_at(sandbox, "status.conditions"), s->now_ms, &left_ms) ==
                 IDLE_SUSPEND;
    if (s->is_done)
        idle_apply(IDLE_SUSPEND, sandbox, s->now_ms);
    return s->is_done;
}

static void tell_idle(struct pass *p)
{
    SCOPED_FREE char *note = xasprintf("Suspended after %s without activity",
                                       meta_annotation(p->sandbox, ANNOTATION_IDLE_TIMEOUT));
    tell(p, &(struct event_text){"Normal", "SandboxIdle", "Suspension", note});
    sandbox_metric_idle(p->sandbox);
}

/* Sets it suspended as its user would; the pass that this write brings does the rest. */
static int suspend_idle(struct pass *p)
{
    struct suspension s = {.now_ms = clock_unix_ms(p->r->config.env.clock)};
    SCOPED(err_fini) struct err err = {0};
    int rc = pass_update(&p->r->config.env,
                         &(struct pass_update){.kind = &kind_sandbox,
                                               .namespace_name = meta_namespace(p->sandbox),
                                               .name = meta_name(p->sandbox),
                                               .uid = meta_uid(p->sandbox),
                                               .change = apply_suspension,
                                               .ctx = &s,
                                               .field_manager = IDLE_MANAGER},
                         NULL, &err);
    if (rc == -ERR_NOT_FOUND)
        return 0;
    if (rc < 0) {
        log_warn("suspending an idle sandbox failed sandbox=%s, trying again: %s", p->key,
                 err_text(&err));
        return -1;
    }
    if (s.is_done)
        tell_idle(p);
    return 0;
}

static bool is_idle_too_long(const struct pass *p)
{
    int64_t left_ms;
    return idle_plan(p->sandbox, json_at(p->sandbox, "status.conditions"),
                     clock_unix_ms(p->r->config.env.clock), &left_ms) == IDLE_SUSPEND;
}

static int normal_pass(struct pass *p)
{
    const struct clock *clock = p->r->config.env.clock;
    SCOPED_FREE char *pod_name_before = p->pod_name ? xstrdup(p->pod_name) : NULL;
    pvc_steps(p);
    p->is_alone = twins_enter(p->r->twins, p->sandbox);
    pod_step(p);
    if (!p->outcome.multiple_pods)
        service_step(p);
    if (p->is_alone)
        twins_leave(p->r->twins, p->sandbox);
    if (p->is_cut_off)
        return -1;
    SCOPED(json_free_p) cJSON *status = conclude(p);
    int64_t left = sandbox_time_left_ms(p->sandbox, clock_unix_ms(clock));
    if (left > 0) {
        wish_again(p, sandbox_expiry_requeue_ms(left));
    } else {
        json_set(p->sandbox, "status", steal(&status));
        status = sandbox_status_expired(p->sandbox, clock_unix_s(clock));
        wish_again(p, EXPIRED_AGAIN_MS);
    }
    plan_idle(p, status);
    if (write_back(p, status, pod_name_before) < 0)
        return -1;
    return p->has_other_than_invalid ? -1 : 0;
}

static void pass_fini(struct pass *p)
{
    json_free(p->sandbox);
    json_free(p->pod);
    free(p->pod_name);
    pass_errors_fini(&p->errors);
}

int sandbox_pass(void *ctx, const char *key, struct loop_result *ret)
{
    struct sandbox_reconciler *r = ctx;
    SCOPED_FREE char *namespace_name = NULL;
    const char *name = pass_key_split(key, &namespace_name);
    SCOPED(object_unref_p) struct object *object = NULL;
    SCOPED(err_fini) struct err err = {0};
    int rc = pass_get(&r->config.env, &kind_sandbox, namespace_name, name, &object, &err);
    if (rc < 0)
        return rc;
    if (!object) {
        replacement_forget(r, key);
        sandbox_metric_forget(r->metric, key);
        return 0;
    }
    if (object->is_terminating)
        return 0;
    SCOPED(pass_fini) struct pass p = {.r = r, .key = key, .sandbox = object_tree(object)};
    const char *pod_name = meta_annotation(p.sandbox, ANNOTATION_POD_NAME);
    p.pod_name = pod_name ? xstrdup(pod_name) : NULL;
    sandbox_metric_seen(r->metric, key, p.sandbox, clock_unix_ms(r->config.env.clock));
    bool is_expired = sandbox_time_left_ms(p.sandbox, clock_unix_ms(r->config.env.clock)) <= 0;
    rc = is_expired ? expired_pass(&p) : is_idle_too_long(&p) ? suspend_idle(&p) : normal_pass(&p);
    ret->again_after_ms = p.again_after_ms;
    ret->own_rev = p.own_rev;
    return rc;
}
