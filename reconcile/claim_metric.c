#include "reconcile/claim_metric.h"

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/metric.h"
#include "apiserver/base/str.h"
#include "reconcile/child.h"
#include "reconcile/claim.h"
#include "reconcile/condition.h"
#include "reconcile/keys.h"

static const double startup_ms[] = {100,  250,  500,   750,   1000,  1250,   1500,   2000,
                                    2500, 5000, 10000, 30000, 60000, 120000, 240000, 0};
static const double creation_ms[] = {50,    100,   250,    500,    1000,   2500,   5000, 10000,
                                     30000, 60000, 120000, 240000, 300000, 600000, 0};

#define STARTUP_LABELS                                                                             \
    {                                                                                              \
        "launch_type", "sandbox_template"                                                          \
    }

static struct metric claim_startup = {
    .name = "agent_sandbox_claim_startup_latency_ms",
    .help = "From the time that a webhook saw a claim first until it was ready.",
    .type = METRIC_HISTOGRAM,
    .labels = STARTUP_LABELS,
    .buckets = startup_ms,
};
static struct metric controller_startup = {
    .name = "agent_sandbox_claim_controller_startup_latency_ms",
    .help = "From the time that the controller saw a claim first until it was ready.",
    .type = METRIC_HISTOGRAM,
    .labels = STARTUP_LABELS,
    .buckets = startup_ms,
};
static struct metric client_startup = {
    .name = "agent_sandbox_client_claim_startup_latency_ms",
    .help = "From the time that a client says it asked for a claim until it was ready.",
    .type = METRIC_HISTOGRAM,
    .labels = STARTUP_LABELS,
    .buckets = startup_ms,
};
static struct metric creation = {
    .name = "agent_sandbox_creation_latency_ms",
    .help = "From the creation of a Sandbox until it was ready, of claims that became ready.",
    .type = METRIC_HISTOGRAM,
    .labels = {"namespace", "launch_type", "sandbox_template"},
    .buckets = creation_ms,
};
static struct metric created_total = {
    .name = "agent_sandbox_claim_creation_total",
    .help = "Claims that got a Sandbox, made for them or from a pool.",
    .type = METRIC_COUNTER,
    .labels = {"namespace", "sandbox_template", "launch_type", "warmpool_name", "pod_condition",
               "created_by"},
};

static const char *template_of(const cJSON *sandbox)
{
    const char *name = meta_annotation(sandbox, ANNOTATION_TEMPLATE_REF);
    return name && *name ? name : "__unknown__";
}

static const char *launch_type_of(const cJSON *sandbox)
{
    if (!sandbox)
        return "unknown";
    return str_equal(meta_label(sandbox, LABEL_LAUNCH_TYPE), LAUNCH_WARM) ? LAUNCH_WARM
                                                                          : LAUNCH_COLD;
}

void claim_metric_created(const cJSON *claim, const cJSON *sandbox, bool is_warm)
{
    bool is_ready = is_warm && claim_is_ready(json_get(sandbox, "status"));
    const char *pool = claim_pool_name(claim);
    metric_add(&created_total, 1,
               (const char *const[]){meta_namespace(claim), template_of(sandbox),
                                     is_warm ? LAUNCH_WARM : LAUNCH_COLD, *pool ? pool : "none",
                                     is_ready ? "ready" : "not_ready",
                                     created_by_known(meta_label(claim, LABEL_CREATED_BY))});
}

/* ms from the time in an annotation until now; false when it is missing, no time, or (unless
 * may_be_ahead) in the future. */
static bool since_annotation(const cJSON *claim, const char *key, int64_t now_ms, bool may_be_ahead,
                             int64_t *ret)
{
    int64_t at_ms;
    const char *at = meta_annotation(claim, key);
    if (!at || clock_parse_rfc3339(at, &at_ms) < 0 || (at_ms > now_ms && !may_be_ahead))
        return false;
    *ret = now_ms - at_ms;
    return true;
}

/* From the Sandbox's creation to its readiness; false when one is unknown or they are in
 * disorder. */
static bool creation_time(const cJSON *sandbox, int64_t *ret)
{
    int64_t created_ms, ready_ms;
    const cJSON *ready = condition_find(json_at(sandbox, "status.conditions"), "Ready");
    const char *created = json_str(sandbox, "metadata.creationTimestamp");
    const char *at = json_str(ready, "lastTransitionTime");
    if (!created || !at || clock_parse_rfc3339(created, &created_ms) < 0 ||
        clock_parse_rfc3339(at, &ready_ms) < 0 || ready_ms < created_ms)
        return false;
    *ret = ready_ms - created_ms;
    return true;
}

void claim_metric_ready(const cJSON *claim, const cJSON *sandbox, int64_t observed_unix_ms,
                        int64_t now_unix_ms)
{
    const char *launch_type = launch_type_of(sandbox);
    const char *template = template_of(sandbox);
    const char *const startup[] = {launch_type, template};
    int64_t ms;
    if (since_annotation(claim, ANNOTATION_WEBHOOK_OBSERVED_AT, now_unix_ms, false, &ms))
        metric_observe(&claim_startup, (double)ms, startup);
    if (since_annotation(claim, ANNOTATION_CLIENT_REQUESTED_AT, now_unix_ms, false, &ms))
        metric_observe(&client_startup, (double)ms, startup);
    if (since_annotation(claim, ANNOTATION_FIRST_OBSERVED_AT, now_unix_ms, true, &ms))
        metric_observe(&controller_startup, (double)ms, startup);
    else if (observed_unix_ms && !meta_annotation(claim, ANNOTATION_FIRST_OBSERVED_AT))
        metric_observe(&controller_startup, (double)(now_unix_ms - observed_unix_ms), startup);
    if (creation_time(sandbox, &ms))
        metric_observe(&creation, (double)ms,
                       (const char *const[]){meta_namespace(claim), launch_type, template});
}
