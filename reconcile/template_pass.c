#include "reconcile/template_pass.h"

#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "reconcile/blueprint.h"
#include "reconcile/child.h"
#include "reconcile/peek.h"
#include "reconcile/template.h"

static bool add_label(void *ctx, cJSON *template)
{
    (void)ctx;
    template_put_label(template);
    return true;
}

static void label_step(const struct pass_env *env, const cJSON *template,
                       struct pass_errors *errors)
{
    SCOPED(err_fini) struct err err = {0};
    if (!template_lacks_label(template))
        return;
    int rc = pass_update(env,
                         &(struct pass_update){.kind = &kind_sandbox_template,
                                               .namespace_name = meta_namespace(template),
                                               .name = meta_name(template),
                                               .uid = meta_uid(template),
                                               .change = add_label,
                                               .field_manager = TEMPLATE_CONTROLLER},
                         NULL, &err);
    if (rc < 0 && rc != -ERR_NOT_FOUND)
        pass_errors_add(errors, "failed to label the template: ", err_text(&err));
}

/* ---- templates whose names hash alike ---- */

/* By creation, and of one second by uid. */
static bool is_older(const struct object *a, const struct object *b)
{
    SCOPED(json_free_p)
    cJSON *of_a = object_peek(a, "metadata", "creationTimestamp"),
          *of_b = object_peek(b, "metadata", "creationTimestamp");
    int order = strcmp(cJSON_IsString(of_a) ? of_a->valuestring : "",
                       cJSON_IsString(of_b) ? of_b->valuestring : "");
    return order != 0 ? order < 0 : strcmp(a->uid, b->uid) < 0;
}

static bool is_managed(const struct object *o)
{
    SCOPED(json_free_p) cJSON *mode = object_peek(o, "spec", "networkPolicyManagement");
    return !cJSON_IsString(mode) || strcmp(mode->valuestring, "Unmanaged") != 0;
}

/* *ret: an older one with a policy that selects this one's pods too; NULL = there is none. */
static int find_twin(const struct pass_env *env, const struct object *template, char **ret,
                     struct err *err)
{
    char hash[NAME_HASH_SIZE], of_other[NAME_HASH_SIZE];
    SCOPED(list_result_fini) struct list_result all = {0};
    const struct list_request list = {.kind = &kind_sandbox_template,
                                      .namespace_name = template->namespace_name,
                                      .version = {.match = READ_ANY}};
    int rc = registry_list(env->registry, &list, &all, err);
    template_ref_hash(template->name, hash);
    for (size_t i = 0; rc == 0 && i < all.n && !*ret; i++) {
        const struct object *other = all.objects[i];
        template_ref_hash(other->name, of_other);
        if (strcmp(of_other, hash) == 0 && strcmp(other->name, template->name) != 0 &&
            is_managed(other) && is_older(other, template))
            *ret = xstrdup(other->name);
    }
    return rc;
}

/* Policies add up, so one of the younger template's own would open for the pods of the older one
 * what that one's keeps closed. It gets none as long as the older one is there: its pods have that
 * one's. */
static void give_way(const struct template_reconciler *r, const cJSON *template, const char *twin,
                     struct pass_errors *errors)
{
    const struct pass_env *env = &r->env;
    SCOPED_FREE char *name = template_policy_name(template);
    SCOPED_FREE char *text =
        xasprintf("the names of templates \"%s\" and \"%s\" have the same hash, by which their "
                  "pods are told apart; use another name",
                  meta_name(template), twin);
    SCOPED(json_free_p) cJSON *existing = NULL, *after = NULL;
    SCOPED(err_fini) struct err err = {0};
    struct step step = {.verb = STEP_DELETE};
    pass_errors_add(errors, "", text);
    if (env->cluster->v->get(env->cluster, CHILD_NETPOL, meta_namespace(template), name, false,
                             &existing, &err) < 0 ||
        !existing || owner_class(existing, template) != OWNED || !pass_leads(env))
        return;
    step.on = existing;
    if (pass_carry_out(env, CHILD_NETPOL, meta_namespace(template), &step, &after, &err) < 0)
        pass_errors_add(errors, "failed to delete NetworkPolicy: ", err_text(&err));
}

/* ---- the policy ---- */

/* A policy that the cache lacks is simply created; if that finds one there, it is read and judged
 * in the same pass. */
static void policy_step(const struct template_reconciler *r, const cJSON *template,
                        struct pass_errors *errors)
{
    const struct pass_env *env = &r->env;
    struct cluster *c = env->cluster;
    SCOPED_FREE char *name = template_policy_name(template);
    for (int live = 0;; live++) {
        SCOPED(json_free_p) cJSON *existing = NULL, *after = NULL;
        SCOPED(step_fini) struct step step = {0};
        SCOPED(err_fini) struct err err = {0};
        if (c->v->get(c, CHILD_NETPOL, meta_namespace(template), name, live > 0, &existing, &err) <
            0) {
            pass_errors_add(errors, "failed to get NetworkPolicy: ", err_text(&err));
            return;
        }
        template_plan_policy(template, &r->settings, existing, &step);
        if (step.verb != STEP_KEEP && !pass_leads(env)) {
            pass_errors_add(errors, "", "this process does not lead");
            return;
        }
        int rc = pass_carry_out(env, CHILD_NETPOL, meta_namespace(template), &step, &after, &err);
        if (rc == -ERR_ALREADY_EXISTS && !live)
            continue;
        if (rc < 0 && !(rc == -ERR_NOT_FOUND && step.verb == STEP_DELETE))
            pass_errors_add(errors, step.failure_prefix, err_text(&err));
        return;
    }
}

int template_pass(void *ctx, const char *key, struct loop_result *ret)
{
    (void)ret;
    const struct template_reconciler *r = ctx;
    SCOPED_FREE char *namespace_name = NULL;
    const char *name = pass_key_split(key, &namespace_name);
    SCOPED(object_unref_p) struct object *object = NULL;
    SCOPED_FREE char *twin = NULL;
    SCOPED(err_fini) struct err err = {0};
    int rc = pass_get(&r->env, &kind_sandbox_template, namespace_name, name, &object, &err);
    if (rc < 0)
        return rc;
    if (!object || object->is_terminating)
        return 0;
    SCOPED(json_free_p) cJSON *template = object_tree(object);
    SCOPED(pass_errors_fini) struct pass_errors errors = {0};
    label_step(&r->env, template, &errors);
    if (is_managed(object) && (rc = find_twin(&r->env, object, &twin, &err)) < 0)
        return rc;
    if (twin)
        give_way(r, template, twin, &errors);
    else
        policy_step(r, template, &errors);
    if (!errors.n)
        return 0;
    log_warn("pass failed template=%s, trying again: %s", key, buf_cstr(&errors.text));
    return -1;
}
