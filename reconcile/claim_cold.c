/* The Sandbox that a claim gets when it takes none from the pool: the template's blueprint with the
 * claim's volume claims (C17), pod metadata (C16.4) and environment (C18), under the policies that
 * the template sets. */
#include <stdlib.h>
#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "openapi/kinds.h"
#include "reconcile/blueprint.h"
#include "reconcile/child.h"
#include "reconcile/claim.h"
#include "reconcile/keys.h"

/* ---- volume claim templates (C17) ---- */

/* Claims and templates may name tens of thousands of volumes, variables and containers: who looks
 * for one of a name asks a map. */
static void names_free(struct map **names)
{
    map_free(*names);
}

static const char *volume_name(const cJSON *volume)
{
    return json_str_or(volume, "metadata.name", "");
}

static int check_volume_names(const cJSON *volumes, const char *prefix, struct claim_error *e)
{
    SCOPED(names_free) struct map *seen = map_new();
    unsigned i = 0;
    const cJSON *v;
    cJSON_ArrayForEach(v, volumes)
    {
        const char *name = volume_name(v);
        if (!*name)
            return claim_fail(e, CLAIM_BAD_VOLUMES,
                              "%sinvalid volume claim templates: name at index %u is empty", prefix,
                              i);
        if (map_put(seen, name, seen))
            return claim_fail(e, CLAIM_BAD_VOLUMES,
                              "%sinvalid volume claim templates: duplicate name \"%s\"", prefix,
                              name);
        i++;
    }
    return 0;
}

#define VOLUMES_FAILED "failed to merge volume claim templates: "

/* Puts the claim's volumes in, in its order: over a namesake, or at the end. */
static int put_volumes(const cJSON *wanted, bool may_replace, cJSON *volumes, struct claim_error *e)
{
    SCOPED(names_free) struct map *given = map_new();
    const cJSON *v;
    for (cJSON *g = volumes->child; g; g = g->next)
        map_put(given, volume_name(g), g);
    cJSON_ArrayForEach(v, wanted)
    {
        cJSON *namesake = map_get(given, volume_name(v));
        if (namesake && !may_replace)
            return claim_fail(e, CLAIM_BAD_VOLUMES,
                              VOLUMES_FAILED "overriding volume claim templates is forbidden by "
                                             "the template: cannot override template volume \"%s\"",
                              volume_name(v));
        if (namesake)
            json_replace_item(volumes, namesake, json_copy(v));
        else
            json_push(volumes, json_copy(v));
    }
    return 0;
}

static int merge_volumes(const cJSON *claim, const cJSON *template, cJSON *spec,
                         struct claim_error *e)
{
    const cJSON *wanted = json_at(claim, "spec.volumeClaimTemplates");
    const cJSON *given = json_at(template, "spec.volumeClaimTemplates");
    const char *policy = json_str_or(template, "spec.volumeClaimTemplatesPolicy", "");
    if (json_len(wanted) == 0)
        return check_volume_names(given, "invalid volume claim templates in template: ", e);
    if (check_volume_names(given, VOLUMES_FAILED "template: ", e) < 0 ||
        check_volume_names(wanted, VOLUMES_FAILED "claim: ", e) < 0)
        return -1;
    if (!*policy || str_equal(policy, "Disallowed"))
        return claim_fail(e, CLAIM_BAD_VOLUMES,
                          VOLUMES_FAILED "volume claim templates are disallowed by the template");
    if (!str_equal(policy, "Allowed") && !str_equal(policy, "Overrides"))
        return claim_fail(e, CLAIM_OTHER,
                          VOLUMES_FAILED "unknown volume claim templates policy \"%s\"", policy);
    if (!cJSON_IsArray(json_get(spec, "volumeClaimTemplates")))
        json_set(spec, "volumeClaimTemplates", json_array());
    return put_volumes(wanted, str_equal(policy, "Overrides"),
                       json_get(spec, "volumeClaimTemplates"), e);
}

/* ---- environment (C18) ---- */

#define ENV_REFUSED "environment variable injection rejected: "

static const char *target_of(const cJSON *env)
{
    return json_str_or(env, "containerName", "");
}

static void note_containers(struct map *names, const cJSON *containers)
{
    const cJSON *c;
    cJSON_ArrayForEach(c, containers)
    {
        map_put(names, json_str_or(c, "name", ""), names);
    }
}

static int check_targets(const cJSON *env, const cJSON *pod_spec, struct claim_error *e)
{
    SCOPED(names_free) struct map *containers = map_new();
    const cJSON *entry;
    note_containers(containers, json_get(pod_spec, "initContainers"));
    note_containers(containers, json_get(pod_spec, "containers"));
    cJSON_ArrayForEach(entry, env)
    {
        const char *target = target_of(entry);
        if (*target && !map_get(containers, target))
            return claim_fail(e, CLAIM_OTHER,
                              "target container \"%s\" not found in template for environment "
                              "variable \"%s\"",
                              target, json_str_or(entry, "name", ""));
    }
    return 0;
}

/* The variables of a container, by name: of several the first. */
struct variables {
    cJSON *list;
    struct map *by_name;
};

static struct variables variables_of(cJSON *container)
{
    struct variables vars = {json_get(container, "env"), map_new()};
    if (!cJSON_IsArray(vars.list)) {
        vars.list = json_array();
        json_set(container, "env", vars.list);
    }
    for (cJSON *v = vars.list->child; v; v = v->next) {
        const char *name = json_str_or(v, "name", "");
        if (!map_get(vars.by_name, name))
            map_put(vars.by_name, name, v);
    }
    return vars;
}

static void variables_fini(struct variables *vars)
{
    map_free(vars->by_name);
}

static int put_env(const cJSON *entry, bool may_replace, struct variables *vars,
                   struct claim_error *e)
{
    const char *name = json_str_or(entry, "name", ""), *value = json_str_or(entry, "value", "");
    cJSON *is = map_get(vars->by_name, name), *new = NULL;
    if (is && !may_replace)
        return claim_fail(e, CLAIM_OTHER,
                          "environment variable override is not allowed by the template policy for "
                          "variable \"%s\"",
                          name);
    new = json_object();
    json_set_str(new, "name", name);
    if (*value)
        json_set_str(new, "value", value);
    if (is)
        json_replace_item(vars->list, is, new);
    else
        json_push(vars->list, new);
    map_put(vars->by_name, name, new);
    return 0;
}

/* What is to go into one container: what names it, then, for the first one, what names none. */
static int inject_container(struct map *by_target, bool is_first, bool may_replace,
                            cJSON *container, struct claim_error *e)
{
    const char *name = json_str_or(container, "name", "");
    const cJSON *groups[] = {map_get(by_target, name), is_first ? map_get(by_target, "") : NULL};
    if (!groups[0] && !groups[1])
        return 0;
    if (!may_replace && json_len(json_get(container, "envFrom")) > 0)
        return claim_fail(e, CLAIM_ENV_REFUSED,
                          ENV_REFUSED
                          "container \"%s\" uses EnvFrom sources; Allowed policy cannot "
                          "safely prevent overriding EnvFrom-provided variables",
                          name);
    SCOPED(variables_fini) struct variables vars = variables_of(container);
    for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
        const cJSON *entry;
        cJSON_ArrayForEach(entry, groups[i])
        {
            if (put_env(entry, may_replace, &vars, e) < 0)
                return -1;
        }
    }
    return 0;
}

/* Containers of one list, in their order. */
static int inject_list(struct map *by_target, bool has_first, bool may_replace, cJSON *containers,
                       struct claim_error *e)
{
    cJSON *c;
    cJSON_ArrayForEach(c, containers)
    {
        if (inject_container(by_target, has_first && c == containers->child, may_replace, c, e) < 0)
            return -1;
    }
    return 0;
}

/* Target -> array of what names it, in its order. */
static struct map *group_by_target(const cJSON *env)
{
    struct map *groups = map_new();
    const cJSON *entry;
    cJSON_ArrayForEach(entry, env)
    {
        cJSON *group = map_get(groups, target_of(entry));
        if (!group) {
            group = json_array();
            map_put(groups, target_of(entry), group);
        }
        json_push(group, json_copy(entry));
    }
    return groups;
}

static bool free_group(void *ctx, const char *target, void *group)
{
    (void)ctx, (void)target;
    json_free(group);
    return true;
}

static void groups_free(struct map **groups)
{
    map_each(*groups, free_group, NULL);
    map_free(*groups);
}

static int inject_env(const cJSON *claim, const cJSON *template, cJSON *pod_spec,
                      struct claim_error *e)
{
    const cJSON *env = json_at(claim, "spec.env");
    const char *policy = json_str_or(template, "spec.envVarsInjectionPolicy", "");
    bool may_replace = str_equal(policy, "Overrides");
    if (json_len(env) == 0)
        return 0;
    if (!may_replace && !str_equal(policy, "Allowed"))
        return claim_fail(e, CLAIM_ENV_REFUSED,
                          ENV_REFUSED
                          "environment variable injection is not allowed by the template policy");
    if (check_targets(env, pod_spec, e) < 0)
        return -1;
    SCOPED(groups_free) struct map *by_target = group_by_target(env);
    if (inject_list(by_target, false, may_replace, json_get(pod_spec, "initContainers"), e) < 0)
        return -1;
    return inject_list(by_target, true, may_replace, json_get(pod_spec, "containers"), e);
}

/* ---- the whole ---- */

static cJSON *new_sandbox(const cJSON *claim, const cJSON *template, const char *hash)
{
    cJSON *sandbox = json_object(), *metadata = json_object();
    const char *trace = meta_annotation(claim, ANNOTATION_TRACE_CONTEXT);
    const char *idle = meta_annotation(claim, ANNOTATION_IDLE_TIMEOUT);
    const char *by = meta_label(claim, LABEL_CREATED_BY);
    json_set_str(sandbox, "apiVersion", GROUP_AGENTS "/v1beta1");
    json_set_str(sandbox, "kind", KIND_SANDBOX);
    json_set(sandbox, "metadata", metadata);
    json_set_str(metadata, "name", meta_name(claim));
    json_set_str(metadata, "namespace", meta_namespace(claim));
    cJSON *labels = json_ensure_object(metadata, "labels");
    cJSON *annotations = json_ensure_object(metadata, "annotations");
    json_set_str(labels, LABEL_CLAIM_UID, meta_uid(claim));
    if (by && *by)
        json_set_str(labels, LABEL_CREATED_BY, by);
    json_set_str(labels, LABEL_LAUNCH_TYPE, LAUNCH_COLD);
    json_set_str(labels, LABEL_TEMPLATE_REF_HASH, hash);
    if (trace)
        json_set_str(annotations, ANNOTATION_TRACE_CONTEXT, trace);
    if (idle)
        json_set_str(annotations, ANNOTATION_IDLE_TIMEOUT, idle);
    json_set_str(annotations, ANNOTATION_TEMPLATE_REF, meta_name(template));
    claim_own(claim, sandbox);
    return sandbox;
}

int claim_sandbox(const cJSON *claim, const cJSON *template, cJSON **ret, struct claim_error *e)
{
    char hash[NAME_HASH_SIZE];
    cJSON *metadata = NULL;
    template_ref_hash(meta_name(template), hash);
    SCOPED(json_free_p) cJSON *sandbox = new_sandbox(claim, template, hash);
    cJSON *spec = blueprint_spec(template);
    json_set(sandbox, "spec", spec);
    cJSON *pod_template = json_ensure_object(spec, "podTemplate");
    if (merge_volumes(claim, template, spec, e) < 0 ||
        claim_pod_metadata(claim, template, hash, &metadata, e) < 0)
        return -1;
    json_set(pod_template, "metadata", metadata);
    if (inject_env(claim, template, json_ensure_object(pod_template, "spec"), e) < 0)
        return -1;
    *ret = steal(&sandbox);
    return 0;
}
