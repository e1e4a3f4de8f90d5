#include "reconcile/warmpool.h"

#include <stdlib.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "reconcile/child.h"
#include "reconcile/condition.h"
#include "reconcile/keys.h"

#define GRACE_SLACK_MS 2000 /* W13 */
#define LATE_NODE_PART 4    /* of the grace period, for who found a node late */

/* ---- the pool ---- */

int64_t pool_desired(const cJSON *pool)
{
    return json_i64_or(pool, "spec.replicas", 1);
}

bool pool_recreates(const cJSON *pool)
{
    return str_equal(json_str(pool, "spec.updateStrategy.type"), "Recreate");
}

const char *pool_template_name(const cJSON *pool)
{
    return json_str_or(pool, "spec.sandboxTemplateRef.name", "");
}

void pool_selector(const cJSON *pool, struct buf *out)
{
    char hash[NAME_HASH_SIZE];
    digest_name_hash(meta_name(pool), hash);
    buf_printf(out, "%s=%s", LABEL_WARM_POOL, hash);
}

static cJSON *prototype_metadata(const cJSON *pool, const struct blueprint *b,
                                 const char *pool_hash)
{
    cJSON *meta = json_object(), *labels = json_object(), *owners = json_array();
    SCOPED_FREE char *prefix = xasprintf("%s-", meta_name(pool));
    json_set_str(meta, "generateName", prefix);
    json_set_str(meta, "namespace", meta_namespace(pool));
    json_set_str(labels, LABEL_WARM_POOL, pool_hash);
    json_set_str(labels, LABEL_TEMPLATE_REF_HASH, b->ref_hash);
    json_set_str(labels, LABEL_LAUNCH_TYPE, LAUNCH_WARM);
    json_set_str(labels, LABEL_POD_TEMPLATE_HASH, b->pod_template_hash);
    json_set_str(labels, LABEL_BLUEPRINT_HASH, b->hash);
    json_set_str(labels, LABEL_CREATED_BY, "controller");
    json_set(meta, "labels", labels);
    json_set_str(json_ensure_object(meta, "annotations"), ANNOTATION_TEMPLATE_REF,
                 meta_name(b->template));
    json_push(owners, owner_reference(pool));
    json_set(meta, "ownerReferences", owners);
    return meta;
}

static void label_pod(cJSON *pod_metadata, const struct blueprint *b, const char *pool_hash)
{
    cJSON *labels = json_ensure_object(pod_metadata, "labels");
    json_set_str(labels, LABEL_WARM_POOL, pool_hash);
    json_set_str(labels, LABEL_TEMPLATE_REF_HASH, b->ref_hash);
    json_set_str(labels, LABEL_POD_TEMPLATE_HASH, b->pod_template_hash);
    json_set_str(labels, LABEL_BLUEPRINT_HASH, b->hash);
}

cJSON *pool_prototype(const cJSON *pool, const struct blueprint *b, bool eviction)
{
    char pool_hash[NAME_HASH_SIZE];
    digest_name_hash(meta_name(pool), pool_hash);
    cJSON *sandbox = json_object(), *spec = blueprint_spec(b->template);
    cJSON *pod_metadata = json_ensure_object(json_get(spec, "podTemplate"), "metadata");
    label_pod(pod_metadata, b, pool_hash);
    if (eviction && !json_get(json_get(pod_metadata, "annotations"), ANNOTATION_SAFE_TO_EVICT))
        json_set_str(json_ensure_object(pod_metadata, "annotations"), ANNOTATION_SAFE_TO_EVICT,
                     "true");
    json_set_str(sandbox, "apiVersion", GROUP_AGENTS "/v1beta1");
    json_set_str(sandbox, "kind", KIND_SANDBOX);
    json_set(sandbox, "metadata", prototype_metadata(pool, b, pool_hash));
    json_set(sandbox, "spec", spec);
    return sandbox;
}

/* ---- members ---- */

static char *copy_or_null(const char *s)
{
    return s ? xstrdup(s) : NULL;
}

/* 0 when it is no time. */
static int64_t time_of(const char *text)
{
    int64_t ms;
    return text && clock_parse_rfc3339(text, &ms) == 0 ? ms : 0;
}

static enum member_owner owner_kind_of(const cJSON *sandbox, const char *pool_uid)
{
    const cJSON *ref = owner_controller(sandbox);
    if (!ref)
        return MEMBER_ORPHAN;
    return str_equal(json_str(ref, "uid"), pool_uid) ? MEMBER_OURS : MEMBER_FOREIGN;
}

struct member *member_new(const cJSON *sandbox, const char *pool_uid, int64_t rev)
{
    struct member *m = xcalloc(1, sizeof *m);
    const char *pod_name = meta_annotation(sandbox, ANNOTATION_POD_NAME);
    m->name = xstrdup(meta_name(sandbox));
    m->uid = xstrdup(meta_uid(sandbox));
    m->pod_name = xstrdup(pod_name && *pod_name ? pod_name : m->name);
    m->ref_hash = copy_or_null(meta_label(sandbox, LABEL_TEMPLATE_REF_HASH));
    m->blueprint_hash = copy_or_null(meta_label(sandbox, LABEL_BLUEPRINT_HASH));
    m->rev = rev;
    m->owner = owner_kind_of(sandbox, pool_uid);
    m->is_terminating = meta_is_terminating(sandbox);
    m->has_launch_type = str_equal(meta_label(sandbox, LABEL_LAUNCH_TYPE), LAUNCH_WARM);
    m->created_ms = time_of(json_str(sandbox, "metadata.creationTimestamp"));
    const cJSON *ready = condition_find(json_at(sandbox, "status.conditions"), "Ready");
    m->is_ready = str_equal(json_str(ready, "status"), "True");
    int64_t changed_ms = time_of(json_str(ready, "lastTransitionTime"));
    m->since_ms = changed_ms > m->created_ms ? changed_ms : m->created_ms;
    trouble_of_sandbox(sandbox, &m->trouble);
    return m;
}

void member_free(struct member *m)
{
    if (!m)
        return;
    free(m->name);
    free(m->uid);
    free(m->pod_name);
    free(m->ref_hash);
    free(m->blueprint_hash);
    trouble_fini(&m->trouble);
    free(m);
}

static bool is_judged(const struct member *m)
{
    return m->owner != MEMBER_FOREIGN && !m->is_terminating;
}

bool member_needs_comparison(const struct member *m, const struct blueprint *b)
{
    if (!b || !is_judged(m) || !str_equal(m->ref_hash, b->ref_hash))
        return false;
    bool is_settled = m->owner == MEMBER_OURS && str_equal(m->blueprint_hash, b->hash);
    return !is_settled && !str_equal(m->compared_with, b->hash);
}

/* W5. An orphan's labels are anybody's, so they do not make it fresh. */
static bool is_stale(const struct member *m, const struct blueprint *b)
{
    if (!str_equal(m->ref_hash, b->ref_hash))
        return true;
    if (m->owner == MEMBER_OURS && str_equal(m->blueprint_hash, b->hash))
        return false;
    return m->content == CONTENT_DIFFERENT;
}

enum member_verdict member_judge(const struct member *m, const struct blueprint *b, bool recreates)
{
    if (m->is_terminating)
        return m->owner == MEMBER_OURS ? MEMBER_GOING : MEMBER_IGNORE;
    if (m->owner == MEMBER_FOREIGN)
        return MEMBER_IGNORE;
    if (b && (recreates || m->owner == MEMBER_ORPHAN) && is_stale(m, b))
        return MEMBER_DELETE_STALE;
    if (m->owner == MEMBER_ORPHAN)
        return MEMBER_ADOPT;
    return m->has_launch_type ? MEMBER_KEEP : MEMBER_LABEL;
}

void member_adopt(cJSON *sandbox, const cJSON *pool)
{
    cJSON *meta = json_ensure_object(sandbox, "metadata");
    if (pool)
        json_set(meta, "ownerReferences", owner_references_with(sandbox, pool));
    json_set_str(json_ensure_object(meta, "labels"), LABEL_LAUNCH_TYPE, LAUNCH_WARM);
}

/* ---- members that are not ready ---- */

int64_t member_grace_left_ms(const struct member *m, int64_t now_unix_ms, int64_t grace_ms)
{
    if (m->is_ready || !m->created_ms)
        return INT64_MAX;
    return m->since_ms + grace_ms - now_unix_ms;
}

int64_t member_pod_grace_left_ms(const cJSON *pod, int64_t now_unix_ms, int64_t grace_ms)
{
    if (!pod || meta_is_terminating(pod))
        return 0;
    const cJSON *scheduled = condition_find(json_at(pod, "status.conditions"), "PodScheduled");
    if (str_equal(json_str(scheduled, "status"), "True")) {
        int64_t since_ms = time_of(json_str(scheduled, "lastTransitionTime"));
        return since_ms ? since_ms + grace_ms / LATE_NODE_PART - now_unix_ms : 0;
    }
    const char *reason = json_str(scheduled, "reason");
    bool waits = str_equal(json_str(scheduled, "status"), "False") &&
                 (str_equal(reason, "Unschedulable") || str_equal(reason, "SchedulingGated"));
    return waits ? INT64_MAX : 0;
}

/* ---- size ---- */

int member_compare_excess(const void *a, const void *b)
{
    const struct member *const *x = a, *const *y = b;
    if ((*x)->is_ready != (*y)->is_ready)
        return (*x)->is_ready ? 1 : -1;
    if ((*x)->created_ms != (*y)->created_ms)
        return (*x)->created_ms > (*y)->created_ms ? -1 : 1;
    return -str_cmp_ptr(&(*x)->name, &(*y)->name);
}

static int64_t at_most(int64_t n, int64_t max)
{
    return n < 0 ? 0 : n < max ? n : max;
}

int64_t pool_deficit(int64_t desired, int64_t total, int64_t max_batch)
{
    return at_most(desired - total, max_batch);
}

int64_t pool_excess(int64_t desired, int64_t current, int64_t max_batch)
{
    return at_most(current - desired, max_batch);
}

int64_t pool_grace_requeue_ms(int64_t left_ms, double fraction)
{
    int64_t base = left_ms + GRACE_SLACK_MS;
    return base + (int64_t)((double)base * 0.5 * fraction);
}

/* ---- status ---- */

static void set_unless_zero(cJSON *status, const char *name, int64_t value)
{
    if (value)
        json_set_int(status, name, value);
}

/* The conditions there are, with Progressing as it is now. NULL = there are none. */
static cJSON *pool_conditions(const cJSON *pool, const struct trouble *trouble, int64_t now_unix_s)
{
    cJSON *conditions = json_copy(json_at(pool, "status.conditions"));
    if (!trouble && !condition_find(conditions, "Progressing"))
        return conditions;
    struct condition c = {.type = "Progressing",
                          .status = trouble ? "False" : "True",
                          .reason = trouble ? trouble->reason : "NothingInTheWay",
                          .message = trouble ? trouble->text : "nothing is in the way any more",
                          .observed_generation = json_i64_or(pool, "metadata.generation", 0)};
    if (!conditions)
        conditions = json_array();
    condition_set(conditions, &c, now_unix_s);
    return conditions;
}

cJSON *pool_status(const cJSON *pool, const struct pool_counts *counts,
                   const struct trouble *trouble, int64_t now_unix_s)
{
    SCOPED(buf_fini) struct buf selector = {0};
    pool_selector(pool, &selector);
    cJSON *status = json_object(), *conditions = pool_conditions(pool, trouble, now_unix_s);
    if (conditions)
        json_set(status, "conditions", conditions);
    set_unless_zero(status, "observedGeneration", json_i64_or(pool, "metadata.generation", 0));
    set_unless_zero(status, "readyReplicas", counts->ready);
    set_unless_zero(status, "replicas", counts->replicas);
    json_set_str(status, "selector", buf_cstr(&selector));
    return status;
}
