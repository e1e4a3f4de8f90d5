#include "reconcile/gauges.h"

#include <stdlib.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/metric.h"
#include "openapi/kinds.h"
#include "reconcile/child.h"
#include "reconcile/condition.h"
#include "reconcile/keys.h"
#include "reconcile/peek.h"

#define LIST_TIMEOUT_MS 5000

static struct metric sandboxes_metric = {
    .name = "agent_sandboxes",
    .help = "Sandboxes that exist.",
    .type = METRIC_GAUGE,
    .labels = {"namespace", "ready_condition", "expired", "launch_type", "sandbox_template",
               "owned_by", "created_by"},
};
static struct metric pool_metric = {
    .name = "agent_sandbox_warmpool_size",
    .help = "Members of warm pools.",
    .type = METRIC_GAUGE,
    .labels = {"namespace", "warmpool_name", "sandbox_template", "sandbox_status"},
};

/* The labels are those that dashboards of the original know. */
static struct metric build_metric = {
    .name = "agent_sandbox_build_info",
    .help = "What this server was built from; always 1.",
    .type = METRIC_GAUGE,
    .labels = {"git_version", "git_commit", "build_date", "go_version", "compiler", "platform"},
};
#ifdef __aarch64__
#define PLATFORM "linux/arm64"
#else
#define PLATFORM "linux/amd64"
#endif

struct gauges {
    struct registry *registry;
};

static const char *boolean(bool b)
{
    return b ? "true" : "false";
}

static const char *or_unknown(const char *s)
{
    return s ? s : "unknown";
}

static void count_sandbox(const struct object *o)
{
    SCOPED(json_free_p) cJSON *conditions = object_peek(o, "status", "conditions");
    SCOPED(json_free_p) cJSON *annotations = object_peek(o, "metadata", "annotations");
    SCOPED(json_free_p) cJSON *owners = object_peek(o, "metadata", "ownerReferences");
    const cJSON *ready = condition_find(conditions, "Ready");
    const cJSON *owner = owner_reference_that_controls(owners);
    const cJSON *ref = json_get(annotations, ANNOTATION_TEMPLATE_REF);
    const char *template = or_unknown(cJSON_IsString(ref) ? ref->valuestring : NULL);
    const char *launch_type = pairs_get(&o->labels, LABEL_LAUNCH_TYPE);
    bool is_ready = str_equal(json_str(ready, "status"), "True");
    bool is_expired = str_equal(json_str(ready, "reason"), "SandboxExpired");
    metric_add(&sandboxes_metric, 1,
               (const char *[]){o->namespace_name, boolean(is_ready), boolean(is_expired),
                                str_equal(launch_type, LAUNCH_WARM) ? LAUNCH_WARM : LAUNCH_COLD,
                                template, owner_label(owner),
                                created_by_known(pairs_get(&o->labels, LABEL_CREATED_BY))});
    if (owner_is_kind(owner, GROUP_EXTENSIONS, KIND_POOL))
        metric_add(&pool_metric, 1,
                   (const char *[]){o->namespace_name, json_str_or(owner, "name", ""), template,
                                    is_ready ? "ready" : "not_ready"});
}

/* An empty pool is a value too: that of nought. */
static void count_pool(const struct object *o)
{
    static const char *const states[] = {"ready", "not_ready"};
    SCOPED(json_free_p) cJSON *ref = object_peek(o, "spec", "sandboxTemplateRef");
    for (size_t i = 0; i < ARRAY_LEN(states); i++)
        metric_add(
            &pool_metric, 0,
            (const char *[]){o->namespace_name, o->name, json_str_or(ref, "name", ""), states[i]});
}

static void count_kind(struct gauges *g, const struct kind *kind,
                       void (*count)(const struct object *o))
{
    SCOPED(list_result_fini) struct list_result list = {0};
    SCOPED(err_fini) struct err err = {0};
    struct list_request request = {.kind = kind,
                                   .version = {.match = READ_ANY},
                                   .deadline_ms =
                                       clock_monotonic_ms(&clock_system) + LIST_TIMEOUT_MS};
    if (registry_list(g->registry, &request, &list, &err) < 0) {
        log_debug("not counted for metrics resource=%s: %s", kind->plural, err_text(&err));
        return;
    }
    for (size_t i = 0; i < list.n; i++)
        count(list.objects[i]);
}

static void collect(void *ctx)
{
    metric_clear(&sandboxes_metric);
    metric_clear(&pool_metric);
    count_kind(ctx, &kind_sandbox_warm_pool, count_pool);
    count_kind(ctx, &kind_sandbox, count_sandbox);
}

struct gauges *gauges_start(struct registry *registry)
{
    struct gauges *g = xcalloc(1, sizeof *g);
    g->registry = registry;
    metric_set(
        &build_metric, 1,
        (const char *const[]){VERSION, "unknown", "unknown", "none", "cc " __VERSION__, PLATFORM});
    metric_collect_on(collect, g);
    return g;
}

void gauges_stop(struct gauges *g)
{
    if (!g)
        return;
    metric_collect_off(collect, g);
    free(g);
}
