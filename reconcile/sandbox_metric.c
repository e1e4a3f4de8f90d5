#include "reconcile/sandbox_metric.h"

#include <pthread.h>
#include <stdlib.h>

#include "apiserver/base/json.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/metric.h"
#include "apiserver/base/str.h"
#include "reconcile/child.h"
#include "reconcile/condition.h"
#include "reconcile/keys.h"
#include "reconcile/sandbox.h"

static const double change_ms[] = {50,    100,   250,    500,    1000,   2500,   5000, 10000,
                                   30000, 60000, 120000, 240000, 300000, 600000, 0};

static struct metric expired_total = {
    .name = "agent_sandbox_expired_total",
    .help = "Sandboxes that came to the end of their time.",
    .type = METRIC_COUNTER,
    .labels = {"namespace", "sandbox_template", "owned_by", "shutdown_policy"},
};
static struct metric finished_total = {
    .name = "agent_sandbox_finished_total",
    .help = "Sandboxes whose Pod ended.",
    .type = METRIC_COUNTER,
    .labels = {"namespace", "sandbox_template", "owned_by", "reason"},
};

static struct metric idle_total = {
    .name = "agent_sandbox_idle_suspensions_total",
    .help = "Sandboxes suspended for being idle.",
    .type = METRIC_COUNTER,
    .labels = {"namespace", "sandbox_template", "owned_by"},
};

/* A change of mode, and how its coming true is seen. */
enum mode { SUSPEND, RESUME, MODES };
static struct metric total[MODES] = {
    {.name = "agent_sandbox_suspend_total",
     .help = "Suspensions: success when the Pod is gone, error when a pass failed on the way.",
     .type = METRIC_COUNTER,
     .labels = {"namespace", "sandbox_template", "owned_by", "result"}},
    {.name = "agent_sandbox_resume_total",
     .help = "Resumptions: success when it is ready again, error when a pass failed on the way.",
     .type = METRIC_COUNTER,
     .labels = {"namespace", "sandbox_template", "owned_by", "result"}},
};
static struct metric latency[MODES] = {
    {.name = "agent_sandbox_suspend_latency_ms",
     .help = "From the first pass over a Sandbox to be suspended until its Pod was gone.",
     .type = METRIC_HISTOGRAM,
     .labels = {"namespace", "sandbox_template", "owned_by"},
     .buckets = change_ms},
    {.name = "agent_sandbox_resume_latency_ms",
     .help = "From the first pass over a Sandbox to be resumed until it was ready.",
     .type = METRIC_HISTOGRAM,
     .labels = {"namespace", "sandbox_template", "owned_by"},
     .buckets = change_ms},
};

struct change { /* under way */
    enum mode mode;
    int64_t since_ms;
};
struct sandbox_metric {
    pthread_mutex_t lock;
    struct map *changes; /* key -> struct change */
};

struct sandbox_metric *sandbox_metric_new(void)
{
    struct sandbox_metric *m = xcalloc(1, sizeof *m);
    pthread_mutex_init(&m->lock, NULL);
    m->changes = map_new();
    return m;
}

static bool free_each(void *ctx, const char *key, void *value)
{
    (void)ctx, (void)key;
    free(value);
    return true;
}

void sandbox_metric_free(struct sandbox_metric *m)
{
    if (!m)
        return;
    map_each(m->changes, free_each, NULL);
    map_free(m->changes);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

void sandbox_metric_forget(struct sandbox_metric *m, const char *key)
{
    pthread_mutex_lock(&m->lock);
    free(map_del(m->changes, key));
    pthread_mutex_unlock(&m->lock);
}

static bool shows_suspended(const cJSON *conditions)
{
    return condition_has_reason(conditions, "Suspended", "PodTerminated");
}

static bool shows_ready(const cJSON *conditions)
{
    return str_equal(json_str(condition_find(conditions, "Ready"), "status"), "True");
}

/* To be suspended and not yet; not to be suspended and still shown so. */
void sandbox_metric_seen(struct sandbox_metric *m, const char *key, const cJSON *sandbox,
                         int64_t now_ms)
{
    const cJSON *conditions = json_at(sandbox, "status.conditions");
    bool is_wanted = sandbox_is_suspended(sandbox), is_shown = shows_suspended(conditions);
    if (is_wanted == is_shown)
        return;
    enum mode mode = is_wanted ? SUSPEND : RESUME;
    pthread_mutex_lock(&m->lock);
    struct change *c = map_get(m->changes, key);
    if (!c) {
        c = xcalloc(1, sizeof *c);
        map_put(m->changes, key, c);
        *c = (struct change){mode, now_ms};
    } else if (c->mode != mode) {
        *c = (struct change){mode, now_ms};
    }
    pthread_mutex_unlock(&m->lock);
}

struct labels {
    const char *v[4]; /* the fourth is the metric's own */
};

static struct labels labels_of(const cJSON *sandbox, const char *last)
{
    const char *template = meta_annotation(sandbox, ANNOTATION_TEMPLATE_REF);
    return (struct labels){{meta_namespace(sandbox), template && *template ? template : "unknown",
                            owner_label(owner_controller(sandbox)), last}};
}

/* The change under way, forgotten once it has come true; false when there is none. */
static bool take_change(struct sandbox_metric *m, const char *key, const cJSON *conditions,
                        struct change *ret, bool *ret_is_done)
{
    pthread_mutex_lock(&m->lock);
    struct change *c = map_get(m->changes, key);
    if (c) {
        *ret = *c;
        *ret_is_done = c->mode == SUSPEND ? shows_suspended(conditions) : shows_ready(conditions);
        if (*ret_is_done)
            free(map_del(m->changes, key));
    }
    pthread_mutex_unlock(&m->lock);
    return c != NULL;
}

static void count_change(struct sandbox_metric *m, const char *key, const cJSON *sandbox,
                         const cJSON *before, const cJSON *after, int64_t now_ms)
{
    struct change c;
    bool is_done;
    if (!take_change(m, key, after, &c, &is_done))
        return;
    if (is_done) {
        metric_add(&total[c.mode], 1, labels_of(sandbox, "success").v);
        metric_observe(&latency[c.mode], (double)(now_ms - c.since_ms), labels_of(sandbox, NULL).v);
    } else if (condition_has_reason(after, "Ready", "ReconcilerError") &&
               !condition_has_reason(before, "Ready", "ReconcilerError")) {
        metric_add(&total[c.mode], 1, labels_of(sandbox, "error").v);
    }
}

void sandbox_metric_written(struct sandbox_metric *m, const char *key, const cJSON *sandbox,
                            const cJSON *new_status, int64_t now_ms)
{
    const cJSON *before = json_at(sandbox, "status.conditions");
    const cJSON *after = json_get(new_status, "conditions");
    const cJSON *finished = condition_find(after, "Finished");
    if (condition_has_reason(after, "Ready", "SandboxExpired") &&
        !condition_has_reason(before, "Ready", "SandboxExpired"))
        metric_add(&expired_total, 1,
                   labels_of(sandbox, sandbox_deletes_itself(sandbox) ? "Delete" : "Retain").v);
    if (finished && !condition_find(before, "Finished"))
        metric_add(&finished_total, 1, labels_of(sandbox, json_str_or(finished, "reason", "")).v);
    count_change(m, key, sandbox, before, after, now_ms);
}

void sandbox_metric_idle(const cJSON *sandbox)
{
    metric_add(&idle_total, 1, labels_of(sandbox, NULL).v);
}
