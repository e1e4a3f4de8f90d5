#include "reconcile/claim_pass.h"

#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "reconcile/child.h"
#include "reconcile/claim_run.h"
#include "reconcile/keys.h"

#define LEGACY_POLICY_SUFFIX "-network-policy" /* of policies that old versions made per claim */

/* ---- what comes of it (C20, C21) ---- */

static int result_of(struct claim_run *p)
{
    enum claim_failure failure = p->error.failure;
    run_again_at_end(p);
    if (failure == CLAIM_NO_POOL || failure == CLAIM_NO_TEMPLATE) {
        run_again(p, CLAIM_MISSING_AGAIN_MS);
        return 0;
    }
    if (failure == CLAIM_FINE || claim_error_is_final(&p->error))
        return 0;
    log_warn("pass failed claim=%s, trying again: %s", p->key, p->error.text);
    return -1;
}

/* The status may itself bring the end: a pod that finished, and no time to live after it. */
static int conclude(struct claim_run *p)
{
    const struct claim_outcome outcome = {.sandbox = p->sandbox, .error = &p->error};
    int64_t now_s = clock_unix_s(run_env(p)->clock);
    cJSON *status = claim_status(p->next, &outcome, now_s);
    SCOPED(json_free_p) cJSON *after = json_copy(p->next);
    json_set(after, "status", json_copy(status));
    if (claim_time_left_ms(after, run_now_ms(p)) > 0) {
        int rc = run_write(p, status);
        return rc < 0 ? rc : rc > 0 ? 0 : result_of(p);
    }
    json_free(status);
    status = claim_status(after, &(struct claim_outcome){.sandbox = p->sandbox, .is_expired = true},
                          now_s);
    int rc = run_write(p, status);
    if (rc == 0) {
        run_tell_expired(p);
        run_again(p, CLAIM_EXPIRED_AGAIN_MS);
    }
    return rc < 0 ? rc : 0;
}

static int active_pass(struct claim_run *p)
{
    enum next next = NEXT_CONCLUDE;
    if (claim_check_metadata(p->claim, &p->r->config.settings, &p->error) == 0)
        next = run_find(p);
    if (next == NEXT_MAINTAIN)
        next = run_maintain(p);
    return next == NEXT_STOP ? p->rc : conclude(p);
}

/* ---- the whole ---- */

/* Old versions made a NetworkPolicy per claim; a user's own of that name stays. */
static void drop_legacy_policy(struct claim_run *p)
{
    struct cluster *c = run_env(p)->cluster;
    const char *ns = meta_namespace(p->claim);
    SCOPED_FREE char *name = xasprintf("%s" LEGACY_POLICY_SUFFIX, meta_name(p->claim));
    SCOPED(json_free_p) cJSON *policy = NULL;
    SCOPED(err_fini) struct err err = {0};
    if (c->v->get(c, CHILD_NETPOL, ns, name, false, &policy, &err) < 0 || !policy ||
        !owner_is_kind(owner_controller(policy), GROUP_EXTENSIONS, KIND_CLAIM) ||
        !claim_controls(p->claim, policy) || !pass_leads(run_env(p)))
        return;
    int rc = c->v->del(c, CHILD_NETPOL, ns, name, meta_uid(policy), &err);
    if (rc < 0 && rc != -ERR_NOT_FOUND)
        log_warn("old network policy not deleted claim=%s: %s", p->key, err_text(&err));
}

static void pass_fini(struct claim_run *p)
{
    object_unref(p->object);
    json_free(p->claim);
    json_free(p->next);
    json_free(p->sandbox);
    json_free(p->pool);
    json_free(p->template);
    claim_error_fini(&p->error);
}

int claim_pass(void *ctx, const char *key, struct loop_result *ret)
{
    SCOPED(pass_fini) struct claim_run p = {.r = ctx, .key = key};
    SCOPED_FREE char *namespace_name = NULL;
    const char *name = pass_key_split(key, &namespace_name);
    SCOPED(err_fini) struct err err = {0};
    int rc = pass_get(run_env(&p), &kind_sandbox_claim, namespace_name, name, &p.object, &err);
    if (rc < 0)
        return rc;
    if (!p.object) {
        run_forget(p.r, key);
        return 0;
    }
    p.claim = object_tree(p.object);
    drop_legacy_policy(&p);
    if (p.object->is_terminating)
        return 0;
    p.next = json_copy(p.claim);
    run_look_at(&p);
    run_announce(&p);
    if (p.rc == 0)
        p.rc = claim_time_left_ms(p.claim, run_now_ms(&p)) <= 0 ? run_end(&p) : active_pass(&p);
    ret->again_after_ms = p.again_after_ms;
    ret->own_rev = p.own_rev;
    return p.rc;
}
