/* The end of a claim's time (C4): first everybody can see it, then it happens. What is deleted is
 * deleted on account of the version that had expired: a claim whose time was extended meanwhile
 * keeps its Sandbox, and whoever extended it later than that sees it gone. */
#include "apiserver/base/crash.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "reconcile/child.h"
#include "reconcile/claim_run.h"

static int delete_claim(struct claim_run *p, const char *policy)
{
    bool in_foreground = str_equal(policy, "DeleteForeground");
    SCOPED_FREE char *note = xasprintf("Deleting Claim (ShutdownPolicy=%s)", policy);
    SCOPED(err_fini) struct err err = {0};
    CRASH_POINT(CLAIM_END_DECIDED);
    int rc = pass_delete(run_env(p),
                         &(struct pass_delete){
                             .kind = &kind_sandbox_claim,
                             .namespace_name = meta_namespace(p->claim),
                             .name = meta_name(p->claim),
                             .uid = meta_uid(p->claim),
                             .resource_version = json_str(p->claim, "metadata.resourceVersion"),
                             .propagation = in_foreground ? "Foreground" : NULL,
                         },
                         &err);
    CRASH_POINT(CLAIM_ENDED);
    if (rc == 0)
        run_tell(p, &(struct event_text){"Normal", "ClaimExpired", "Deleting", note});
    if (rc == 0 || rc == -ERR_NOT_FOUND || rc == -ERR_CONFLICT)
        return 0; /* its change brings the next pass */
    run_cut_off(p, "deleting the expired claim", &err);
    return -1;
}

/* The Sandbox of an expired claim that stays. Negative: the pass is over. */
static int delete_sandbox(struct claim_run *p)
{
    const char *name = json_str_or(p->claim, "status.sandbox.name", "");
    SCOPED(err_fini) struct err err = {0};
    if (!*name)
        name = meta_name(p->claim);
    if (run_read(p, &kind_sandbox, name, &p->sandbox) < 0)
        return -1;
    if (!p->sandbox)
        return 0;
    if (!claim_controls(p->claim, p->sandbox)) {
        claim_fail(&p->error, CLAIM_NOT_OWNED, "sandbox \"%s\" is not owned by claim \"%s\"", name,
                   meta_name(p->claim));
        json_free(p->sandbox);
        p->sandbox = NULL;
        return 0;
    }
    if (meta_is_terminating(p->sandbox))
        return 0;
    struct delete_reason expired = {.kind = &kind_sandbox_claim,
                                    .namespace_name = meta_namespace(p->claim),
                                    .name = meta_name(p->claim),
                                    .rev = p->object->rev};
    CRASH_POINT(SANDBOX_END_DECIDED);
    int rc = pass_delete(run_env(p),
                         &(struct pass_delete){
                             .kind = &kind_sandbox,
                             .namespace_name = meta_namespace(p->claim),
                             .name = name,
                             .uid = meta_uid(p->sandbox),
                             .reason = &expired,
                         },
                         &err);
    CRASH_POINT(SANDBOX_ENDED);
    if (rc < 0 && rc != -ERR_NOT_FOUND) {
        run_cut_off(p, "deleting the sandbox of an expired claim", &err);
        return -1;
    }
    json_free(p->sandbox);
    p->sandbox = NULL;
    return run_read(p, &kind_sandbox, name, &p->sandbox); /* with finalizers it is still there */
}

int run_end(struct claim_run *p)
{
    const char *policy = json_str_or(p->claim, "spec.lifecycle.shutdownPolicy", "");
    struct claim_outcome outcome = {.is_expired = true, .error = &p->error};
    int64_t now_s = clock_unix_s(run_env(p)->clock);
    bool is_marked = claim_shows_expired(p->claim);
    if (!is_marked) {
        /* Nothing is deleted before everybody can see why. */
        const char *name = json_str_or(p->claim, "status.sandbox.name", "");
        if (*name && run_read(p, &kind_sandbox, name, &p->sandbox) < 0)
            return p->rc;
    } else if (str_equal(policy, "Delete") || str_equal(policy, "DeleteForeground")) {
        return delete_claim(p, policy);
    } else if (delete_sandbox(p) < 0) {
        return p->rc;
    }
    outcome.sandbox = p->sandbox;
    int rc = run_write(p, claim_status(p->next, &outcome, now_s));
    if (rc == 0 && !is_marked) {
        run_tell_expired(p);
        run_again(p, CLAIM_EXPIRED_AGAIN_MS);
    }
    return rc < 0 ? rc : 0;
}
