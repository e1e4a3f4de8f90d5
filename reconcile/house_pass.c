/* Nodes for Pods, old Events. */
#include "reconcile/house_pass.h"

#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/rand.h"
#include "apiserver/registry/scheduled.h"
#include "openapi/kinds.h"
#include "openapi/kinds/builtin.h"

#define EVENT_TTL_MS (3600 * 1000) /* Source: kube-apiserver's --event-ttl */
#define EVENTS_EVERY_MS (60 * 1000)
#define NO_NODE "no node is ready and has the labels that the Pod asks for"

int64_t house_deadline(const struct pass_env *env)
{
    return clock_monotonic_ms(env->clock) + PASS_TIMEOUT_MS;
}

cJSON *house_named(const char *api_version, const char *kind, const char *name)
{
    cJSON *o = json_object();
    json_set_str(o, "apiVersion", api_version);
    json_set_str(o, "kind", kind);
    json_set_str(json_ensure_object(o, "metadata"), "name", name);
    return o;
}

int house_change(const struct pass_env *env, const struct object *o,
                 bool (*how)(void *ctx, cJSON *object), void *ctx, struct err *err)
{
    struct pass_update update = {.kind = o->kind,
                                 .namespace_name = o->namespace_name,
                                 .name = o->name,
                                 .uid = o->uid,
                                 .change = how,
                                 .ctx = ctx,
                                 .field_manager = HOUSE_MANAGER};
    return pass_update(env, &update, NULL, err);
}

int house_forgive(int rc, struct err *err)
{
    if (rc != -ERR_NOT_FOUND && rc != -ERR_CONFLICT)
        return rc;
    err_fini(err);
    return 0;
}

/* ---- nodes for Pods ---- */

static bool has_labels(const struct object *node, const cJSON *wanted)
{
    const cJSON *l;
    cJSON_ArrayForEach(l, wanted)
    {
        if (!cJSON_IsString(l) || !str_equal(pairs_get(&node->labels, l->string), l->valuestring))
            return false;
    }
    return true;
}

static bool is_ready(const cJSON *node)
{
    const cJSON *c;
    if (json_bool_or(node, "spec.unschedulable", false))
        return false;
    cJSON_ArrayForEach(c, json_at(node, "status.conditions"))
    {
        if (str_equal(json_str(c, "type"), "Ready"))
            return str_equal(json_str(c, "status"), "True");
    }
    return false;
}

/* One of the nodes that will do, by the Pod's uid, so that Pods spread; NULL when there is none. */
static char *choose_node(const struct pass_env *env, const struct object *pod, const cJSON *tree,
                         struct err *err)
{
    SCOPED(list_result_fini) struct list_result nodes = {0};
    const struct list_request list = {.kind = &kind_node, .deadline_ms = house_deadline(env)};
    char **fit = NULL, *chosen = NULL;
    size_t n = 0;
    unsigned char digest[32];
    if (registry_list(env->registry, &list, &nodes, err) < 0)
        return NULL;
    for (size_t i = 0; i < nodes.n; i++) {
        SCOPED(json_free_p) cJSON *node = object_tree(nodes.objects[i]);
        if (!is_ready(node) || !has_labels(nodes.objects[i], json_at(tree, "spec.nodeSelector")))
            continue;
        strv_add(&fit, xstrdup(nodes.objects[i]->name));
        n++;
    }
    if (n > 0) {
        digest_sha256(pod->uid, strlen(pod->uid), digest);
        chosen = xstrdup(fit[digest[0] % n]);
    }
    strv_free(fit);
    return chosen;
}

struct placement {
    const char *node, *why; /* one of them */
    const struct clock *clock;
};

static bool place(void *ctx, cJSON *pod)
{
    const struct placement *p = ctx;
    return pod_set_scheduled(pod, p->node, p->why, clock_unix_s(p->clock));
}

int house_bind_pass(const struct pass_env *env, const char *namespace_name, const char *name,
                    struct loop_result *ret, struct err *err)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    (void)ret;
    int rc = pass_get(env, &kind_pod, namespace_name, name, &o, err);
    if (rc < 0 || !o || o->is_terminating)
        return rc;
    SCOPED(json_free_p) cJSON *tree = object_tree(o);
    SCOPED(err_fini) struct err e = {0};
    if (json_str_or(tree, "spec.nodeName", "")[0] ||
        json_len(json_at(tree, "spec.schedulingGates")) > 0 ||
        !str_equal(json_str_or(tree, "spec.schedulerName", "default-scheduler"),
                   "default-scheduler"))
        return 0;
    SCOPED_FREE char *waits_for = NULL, *node = NULL;
    rc = house_missing_claim(env, o, &waits_for, err);
    if (rc < 0)
        return rc;
    if (!waits_for)
        node = choose_node(env, o, tree, &e);
    if (e.code)
        return err_move(err, &e);
    struct placement placement = {
        .node = node, .why = waits_for ? waits_for : NO_NODE, .clock = env->clock};
    return house_change(env, o, place, &placement, err);
}

/* ---- old Events ---- */

static bool is_old(const struct object *o, int64_t now_ms)
{
    static const char *const times[] = {"series.lastObservedTime", "lastTimestamp", "eventTime",
                                        "metadata.creationTimestamp"};
    SCOPED(json_free_p) cJSON *tree = object_tree(o);
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        const char *at = json_str(tree, times[i]);
        int64_t at_ms;
        if (at && clock_parse_rfc3339(at, &at_ms) == 0)
            return now_ms - at_ms > EVENT_TTL_MS;
    }
    return false;
}

int house_events_pass(const struct pass_env *env, struct loop_result *ret, struct err *err)
{
    SCOPED(list_result_fini) struct list_result found = {0};
    const struct list_request list = {
        .kind = &kind_core_event, .version = {READ_ANY, 0}, .deadline_ms = house_deadline(env)};
    int rc = registry_list(env->registry, &list, &found, err);
    int64_t now_ms = clock_unix_ms(env->clock);
    for (size_t i = 0; rc == 0 && i < found.n; i++) {
        const struct object *o = found.objects[i];
        struct pass_delete del = {.kind = &kind_core_event,
                                  .namespace_name = o->namespace_name,
                                  .name = o->name,
                                  .uid = o->uid};
        if (!is_old(o, now_ms))
            continue;
        rc = house_forgive(pass_delete(env, &del, err), err);
    }
    ret->again_after_ms = EVENTS_EVERY_MS;
    return rc;
}
