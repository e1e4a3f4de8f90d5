#include "reconcile/template_pass.h"

#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "reconcile/child.h"
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
    SCOPED(err_fini) struct err err = {0};
    int rc = pass_get(&r->env, &kind_sandbox_template, namespace_name, name, &object, &err);
    if (rc < 0)
        return rc;
    if (!object || object->is_terminating)
        return 0;
    SCOPED(json_free_p) cJSON *template = object_tree(object);
    SCOPED(pass_errors_fini) struct pass_errors errors = {0};
    label_step(&r->env, template, &errors);
    policy_step(r, template, &errors);
    if (!errors.n)
        return 0;
    log_warn("pass failed template=%s, trying again: %s", key, buf_cstr(&errors.text));
    return -1;
}
