/* The Sandbox that a claim gets when it takes none from the pool: the template's blueprint with the
 * claim's volume claims (C17), pod metadata (C16.4) and environment (C18), under the policies that
 * the template sets. */
#include <stdlib.h>
#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "openapi/kinds.h"
#include "reconcile/blueprint.h"
#include "reconcile/child.h"
#include "reconcile/claim.h"
#include "reconcile/keys.h"

/* ---- volume claim templates (C17) ---- */

static const char *volume_name(const cJSON *volume)
{
    return json_str_or(volume, "metadata.name", "");
}

static cJSON *volume_find(const cJSON *volumes, const char *name)
{
    cJSON *v;
    cJSON_ArrayForEach(v, volumes)
    {
        if (str_equal(volume_name(v), name))
            return v;
    }
    return NULL;
}

static int check_volume_names(const cJSON *volumes, const char *prefix, struct claim_error *e)
{
    unsigned i = 0;
    const cJSON *v;
    cJSON_ArrayForEach(v, volumes)
    {
        const char *name = volume_name(v);
        if (!*name)
            return claim_fail(e, CLAIM_BAD_VOLUMES,
                              "%sinvalid volume claim templates: name at index %u is empty", prefix,
                              i);
        if (volume_find(volumes, name) != v)
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
    const cJSON *v;
    cJSON_ArrayForEach(v, wanted)
    {
        cJSON *namesake = volume_find(volumes, volume_name(v));
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

static bool has_container(const cJSON *containers, const char *name)
{
    const cJSON *c;
    cJSON_ArrayForEach(c, containers)
    {
        if (str_equal(json_str(c, "name"), name))
            return true;
    }
    return false;
}

static int check_targets(const cJSON *env, const cJSON *pod_spec, struct claim_error *e)
{
    const cJSON *entry;
    cJSON_ArrayForEach(entry, env)
    {
        const char *target = target_of(entry);
        if (*target && !has_container(json_get(pod_spec, "initContainers"), target) &&
            !has_container(json_get(pod_spec, "containers"), target))
            return claim_fail(e, CLAIM_OTHER,
                              "target container \"%s\" not found in template for environment "
                              "variable \"%s\"",
                              target, json_str_or(entry, "name", ""));
    }
    return 0;
}

static cJSON *env_find(const cJSON *env, const char *name)
{
    cJSON *entry;
    cJSON_ArrayForEach(entry, env)
    {
        if (str_equal(json_str(entry, "name"), name))
            return entry;
    }
    return NULL;
}

static int put_env(const cJSON *entry, bool may_replace, cJSON *container, struct claim_error *e)
{
    const char *name = json_str_or(entry, "name", ""), *value = json_str_or(entry, "value", "");
    cJSON *env = json_get(container, "env");
    if (!cJSON_IsArray(env)) {
        env = json_array();
        json_set(container, "env", env);
    }
    cJSON *is = env_find(env, name), *new = NULL;
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
        json_replace_item(env, is, new);
    else
        json_push(env, new);
    return 0;
}

/* Entries for that container: those that name it, then, for the first one, those that name none. */
static int inject_container(const cJSON *env, bool is_first, bool may_replace, cJSON *container,
                            struct claim_error *e)
{
    const char *targets[] = {json_str_or(container, "name", ""), is_first ? "" : NULL};
    bool is_checked = may_replace;
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        const cJSON *entry;
        cJSON_ArrayForEach(entry, env)
        {
            if (!targets[i] || !str_equal(target_of(entry), targets[i]))
                continue;
            if (!is_checked && json_len(json_get(container, "envFrom")) > 0)
                return claim_fail(e, CLAIM_ENV_REFUSED,
                                  ENV_REFUSED
                                  "container \"%s\" uses EnvFrom sources; Allowed policy cannot "
                                  "safely prevent overriding EnvFrom-provided variables",
                                  targets[0]);
            is_checked = true;
            if (put_env(entry, may_replace, container, e) < 0)
                return -1;
        }
    }
    return 0;
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
    cJSON *c;
    cJSON_ArrayForEach(c, json_get(pod_spec, "initContainers"))
    {
        if (inject_container(env, false, may_replace, c, e) < 0)
            return -1;
    }
    const cJSON *containers = json_get(pod_spec, "containers");
    cJSON_ArrayForEach(c, containers)
    {
        if (inject_container(env, c == containers->child, may_replace, c, e) < 0)
            return -1;
    }
    return 0;
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
