/* The Sandbox of a claim: the one it has, a member of its pool, or one of its own. */
#include "apiserver/base/crash.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/registry/bind.h"
#include "openapi/kinds.h"
#include "reconcile/child.h"
#include "reconcile/claim_bind.h"
#include "reconcile/claim_metric.h"
#include "reconcile/claim_run.h"
#include "reconcile/keys.h"

/* From the claim's creation: so long it waits for a member's address, and looks so often. */
#define ADDRESS_GRACE_MS 2000
#define ADDRESS_AGAIN_MS 100

/* ---- finding the Sandbox (C6) ---- */

static enum next use(struct claim_run *p, cJSON **sandbox, const char *launch_type)
{
    p->sandbox = steal(sandbox);
    p->launch_type = launch_type;
    return NEXT_MAINTAIN;
}

static enum next by_status(struct claim_run *p)
{
    bool from_label;
    SCOPED(json_free_p) cJSON *sandbox = NULL;
    const char *name = json_str_or(p->claim, "status.sandbox.name", "");
    if (!*name)
        return NEXT_SEARCH;
    if (run_read(p, &kind_sandbox, name, &sandbox) < 0)
        return NEXT_STOP;
    if (!sandbox || !claim_controls(p->claim, sandbox))
        return NEXT_SEARCH;
    bool is_warm = str_equal(claim_assignment(p->claim, &from_label), name) ||
                   !str_equal(name, meta_name(p->claim));
    return use(p, &sandbox, is_warm ? LAUNCH_WARM : LAUNCH_COLD);
}

int run_read_pool(struct claim_run *p)
{
    if (!p->pool && run_read(p, &kind_sandbox_warm_pool, claim_pool_name(p->claim), &p->pool) < 0)
        return -1;
    const char *template = json_str(p->pool, "spec.sandboxTemplateRef.name");
    if (!p->template && template)
        return run_read(p, &kind_sandbox_template, template, &p->template);
    return 0;
}

int run_no_pool(struct claim_run *p)
{
    return claim_fail(&p->error, CLAIM_NO_POOL, "SandboxWarmPool \"%s\" not found",
                      claim_pool_name(p->claim));
}

int run_no_template(struct claim_run *p, const char *prefix)
{
    return claim_fail(&p->error, CLAIM_NO_TEMPLATE, "%sSandboxTemplate \"%s\" not found", prefix,
                      json_str_or(p->pool, "spec.sandboxTemplateRef.name", ""));
}

/* What the registry wrote in one transaction. */
static void take_bound(struct claim_run *p, const struct object *claim, const struct object *member)
{
    json_free(p->sandbox);
    p->sandbox = object_tree(member);
    json_free(p->next);
    p->next = object_tree(claim);
    run_again_at_end(p);
}

/* Member NULL = the best one. Negative: the pass is over. */
static int bind(struct claim_run *p, const char *member, enum bind_outcome *ret)
{
    const struct pass_env *env = run_env(p);
    struct store_compare fence;
    struct write_options opts = {.is_system = true,
                                 .deadline_ms = clock_monotonic_ms(env->clock) + PASS_TIMEOUT_MS};
    SCOPED(object_unref_p) struct object *claim = NULL, *sandbox = NULL;
    SCOPED(err_fini) struct err err = {0};
    if (env->fence) {
        if (!env->fence(env->ctx, &fence))
            return run_stop(p, -1), -1;
        opts.fence = &fence;
    }
    int rc = registry_bind(env->registry, &(struct bind_request){p->object, member}, &opts, ret,
                           &claim, &sandbox, &err);
    if (rc == -ERR_CONFLICT || rc == -ERR_NOT_FOUND)
        return run_stop(p, 0), -1; /* the claim changed: its event brings the next pass */
    if (rc < 0)
        return run_cut_off(p, "binding", &err), -1;
    if (*ret != BIND_DONE)
        return 0;
    take_bound(p, claim, sandbox);
    if (claim_is_ready(json_get(p->next, "status")) &&
        !meta_annotation(p->claim, ANNOTATION_FIRST_READY_AT))
        claim_metric_ready(p->next, p->sandbox, p->observed_ms, run_now_ms(p));
    return 0;
}

/* The claim names a member that its pool still owns: half of an adoption, by hand or of a
 * controller that writes in two steps. Neither event nor counter (C6.2). */
static enum next finish_adoption(struct claim_run *p, const cJSON *member)
{
    enum bind_outcome outcome;
    SCOPED(json_free_p) cJSON *adopted = NULL;
    SCOPED(claim_error_fini) struct claim_error wrong = {0};
    SCOPED_FREE char *no_candidate = claim_candidate_error(p->claim, member);
    if (run_read_pool(p) < 0)
        return NEXT_STOP;
    if (no_candidate || !p->pool || claim_staleness(p->pool, p->template, member)) {
        claim_clear_assignment(p->next);
        return NEXT_SEARCH;
    }
    if (claim_adopt(p->claim, p->template, member, &adopted, &wrong) < 0) {
        claim_fail(&p->error, wrong.failure, "failed to complete adoption of \"%s\": %s",
                   meta_name(member), wrong.text);
        return NEXT_CONCLUDE;
    }
    if (bind(p, meta_name(member), &outcome) < 0)
        return NEXT_STOP;
    return run_stop(p, outcome == BIND_DONE ? 0 : -1); /* lost to somebody: look again */
}

static enum next by_assignment(struct claim_run *p)
{
    bool from_label;
    SCOPED(json_free_p) cJSON *sandbox = NULL;
    const char *name = claim_assignment(p->next, &from_label);
    if (!name)
        return NEXT_SEARCH;
    if (run_read(p, &kind_sandbox, name, &sandbox) < 0)
        return NEXT_STOP;
    const cJSON *owner = owner_controller(sandbox);
    if (sandbox && claim_controls(p->claim, sandbox)) {
        if (from_label)
            claim_set_assignment(p->next, meta_name(sandbox));
        return use(p, &sandbox, LAUNCH_WARM);
    }
    if (owner_is_kind(owner, GROUP_EXTENSIONS, KIND_POOL))
        return finish_adoption(p, sandbox);
    if (!sandbox || owner_is_kind(owner, GROUP_EXTENSIONS, KIND_CLAIM))
        claim_clear_assignment(p->next);
    return NEXT_SEARCH;
}

static enum next by_name(struct claim_run *p)
{
    SCOPED(json_free_p) cJSON *sandbox = NULL;
    const char *name = meta_name(p->claim);
    if (run_read(p, &kind_sandbox, name, &sandbox) < 0)
        return NEXT_STOP;
    if (!sandbox)
        return NEXT_SEARCH;
    if (claim_controls(p->claim, sandbox))
        return use(p, &sandbox, LAUNCH_COLD);
    claim_fail(&p->error, CLAIM_OTHER,
               "sandbox \"%s\" is not controlled by claim \"%s\". Please use a different claim "
               "name or delete the sandbox manually",
               name, name);
    return NEXT_CONCLUDE;
}

/* ---- getting one ---- */

/* From the pool (C8-C13). */
static enum next adopt(struct claim_run *p)
{
    enum bind_outcome outcome;
    if (claim_is_cold_only(p->claim))
        return NEXT_SEARCH;
    if (bind(p, NULL, &outcome) < 0)
        return NEXT_STOP;
    if (outcome == BIND_DONE) {
        run_tell_adopted(p, meta_name(p->sandbox));
        run_tell_endless(p, p->sandbox);
        claim_metric_created(p->claim, p->sandbox, true);
        return run_stop(p, 0);
    }
    int64_t left = run_claim_created_ms(p->claim) + ADDRESS_GRACE_MS - run_now_ms(p);
    if (outcome != BIND_WAITING || left <= 0)
        return NEXT_SEARCH;
    run_again(p, left < ADDRESS_AGAIN_MS ? left : ADDRESS_AGAIN_MS);
    return run_stop(p, 0);
}

static enum next created(struct claim_run *p, const struct object *object)
{
    SCOPED_FREE char *note = xasprintf("Created Sandbox \"%s\"", object->name);
    p->sandbox = object_tree(object);
    run_tell(p, &(struct event_text){"Normal", "SandboxProvisioned", "Provisioning", note});
    run_tell_endless(p, p->sandbox);
    claim_metric_created(p->claim, p->sandbox, false);
    return NEXT_CONCLUDE;
}

/* The Sandbox of the claim's name that was not there a moment ago. */
static enum next create_lost(struct claim_run *p)
{
    enum next next = by_name(p);
    return next == NEXT_SEARCH ? run_stop(p, -1) : next;
}

/* Everything in the namespace is on its way out, the claim too. */
static bool is_namespace_ending(const struct err *err)
{
    for (size_t i = 0; i < err->n_causes; i++) {
        if (str_equal(err->causes[i].reason, "NamespaceTerminating"))
            return true;
    }
    return false;
}

/* A Sandbox of its own (C16). */
static enum next make(struct claim_run *p)
{
    cJSON *sandbox = NULL;
    SCOPED(object_unref_p) struct object *object = NULL;
    SCOPED(err_fini) struct err err = {0};
    if (run_read_pool(p) < 0)
        return NEXT_STOP;
    if ((!p->pool && run_no_pool(p) < 0) || (!p->template && run_no_template(p, "") < 0) ||
        claim_sandbox(p->claim, p->template, &sandbox, &p->error) < 0)
        return NEXT_CONCLUDE;
    CRASH_POINT(COLD_DECIDED);
    int rc = pass_create(run_env(p), &kind_sandbox, meta_namespace(p->claim), sandbox,
                         CLAIM_CONTROLLER, &object, &err);
    CRASH_POINT(COLD_MADE);
    if (rc == 0)
        return created(p, object);
    if (rc == -ERR_ALREADY_EXISTS)
        return create_lost(p);
    if (pass_is_link_error(err.code) || rc == -ERR_CONFLICT)
        return run_cut_off(p, "creating the sandbox", &err);
    if (is_namespace_ending(&err)) {
        run_again(p, CLAIM_MISSING_AGAIN_MS);
        return run_stop(p, 0);
    }
    claim_fail(&p->error, CLAIM_OTHER, "sandbox create error: %s", err_text(&err));
    return NEXT_CONCLUDE;
}

enum next run_find(struct claim_run *p)
{
    static enum next (*const ways[])(struct claim_run *) = {by_status, by_assignment, by_name,
                                                            adopt, make};
    enum next next = NEXT_SEARCH;
    for (size_t i = 0; i < ARRAY_LEN(ways) && next == NEXT_SEARCH; i++)
        next = ways[i](p);
    return next;
}
