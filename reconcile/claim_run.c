#include "reconcile/claim_run.h"

#include <stdlib.h>
#include <string.h>

#include "apiserver/base/crash.h"
#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "reconcile/child.h"
#include "reconcile/claim_metric.h"
#include "reconcile/keys.h"

struct claim_reconciler *claim_reconciler_new(const struct claim_reconciler_config *config)
{
    struct claim_reconciler *r = xcalloc(1, sizeof *r);
    r->config = *config;
    r->started_s = clock_unix_s(config->env.clock);
    pthread_mutex_init(&r->lock, NULL);
    r->seen = map_new();
    return r;
}

static bool free_seen(void *ctx, const char *key, void *value)
{
    (void)ctx, (void)key;
    free(value);
    return true;
}

void claim_reconciler_free(struct claim_reconciler *r)
{
    if (!r)
        return;
    map_each(r->seen, free_seen, NULL);
    map_free(r->seen);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

/* ---- small things ---- */

const struct pass_env *run_env(const struct claim_run *p)
{
    return &p->r->config.env;
}

int64_t run_now_ms(const struct claim_run *p)
{
    return clock_unix_ms(run_env(p)->clock);
}

void run_again(struct claim_run *p, int64_t after_ms)
{
    if (after_ms > 0 && after_ms < INT64_MAX &&
        (!p->again_after_ms || after_ms < p->again_after_ms))
        p->again_after_ms = after_ms;
}

/* An end that came during this pass, a moment after it was looked at, is for the next one: what is
 * left must not be taken for "no time at all". */
void run_again_at_end(struct claim_run *p)
{
    int64_t left_ms = claim_time_left_ms(p->next, run_now_ms(p));
    run_again(p, left_ms > 0 ? left_ms : 1);
}

enum next run_stop(struct claim_run *p, int rc)
{
    p->rc = rc;
    return NEXT_STOP;
}

enum next run_cut_off(struct claim_run *p, const char *what, const struct err *err)
{
    log_warn("%s failed claim=%s, trying again: %s", what, p->key, err_text(err));
    return run_stop(p, -1);
}

void run_tell(struct claim_run *p, const struct event_text *text)
{
    if (!p->r->config.no_events)
        pass_tell(run_env(p), p->claim, text, CLAIM_CONTROLLER);
}

void run_tell_adopted(struct claim_run *p, const char *name)
{
    SCOPED_FREE char *note = xasprintf("Adopted warm pool Sandbox \"%s\"", name);
    run_tell(p, &(struct event_text){"Normal", "SandboxAdopted", "Adoption", note});
}

void run_tell_endless(struct claim_run *p, const cJSON *sandbox)
{
    const char *policy = json_str_or(sandbox, "spec.podTemplate.spec.restartPolicy", "Always");
    if (json_at(p->claim, "spec.lifecycle.ttlSecondsAfterFinished") && str_equal(policy, "Always"))
        run_tell(p,
                 &(struct event_text){"Warning", "TTLNeverBegins", "Lifecycle",
                                      "ttlSecondsAfterFinished begins when the Pod has finished, "
                                      "which one with restartPolicy Always never does"});
}

void run_tell_expired(struct claim_run *p)
{
    run_tell(p, &(struct event_text){"Normal", "ClaimExpired", "Claim Expired", "Claim expired"});
}

int run_read(struct claim_run *p, const struct kind *kind, const char *name, cJSON **ret)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    *ret = NULL;
    if (pass_get(run_env(p), kind, meta_namespace(p->claim), name, &o, &err) < 0) {
        run_cut_off(p, "read", &err);
        return -1;
    }
    if (o)
        *ret = object_tree(o);
    return 0;
}

/* ---- who was seen ---- */

void run_forget(struct claim_reconciler *r, const char *key)
{
    pthread_mutex_lock(&r->lock);
    free(map_del(r->seen, key));
    pthread_mutex_unlock(&r->lock);
}

size_t claim_reconciler_seen(struct claim_reconciler *r)
{
    pthread_mutex_lock(&r->lock);
    size_t n = map_len(r->seen);
    pthread_mutex_unlock(&r->lock);
    return n;
}

void run_look_at(struct claim_run *p)
{
    struct claim_reconciler *r = p->r;
    const char *uid = meta_uid(p->claim);
    pthread_mutex_lock(&r->lock);
    struct seen *seen = map_get(r->seen, p->key);
    p->is_first_sight = !seen || !str_equal(seen->uid, uid);
    if (p->is_first_sight) {
        free(seen);
        seen = xcalloc(1, sizeof *seen);
        memcpy(seen->uid, uid, strnlen(uid, sizeof seen->uid - 1));
        seen->first_ms = run_now_ms(p);
        map_put(r->seen, p->key, seen);
    }
    p->observed_ms = seen->first_ms;
    pthread_mutex_unlock(&r->lock);
}

int64_t run_claim_created_ms(const cJSON *object)
{
    int64_t ms;
    const char *at = json_str_or(object, "metadata.creationTimestamp", "");
    return clock_parse_rfc3339(at, &ms) == 0 ? ms : 0;
}

void run_announce(struct claim_run *p)
{
    bool from_label;
    SCOPED(json_free_p) cJSON *sandbox = NULL;
    const char *name = json_str(p->claim, "status.sandbox.name");
    if (!p->is_first_sight || !name || run_claim_created_ms(p->claim) / 1000 < p->r->started_s ||
        !str_equal(name, claim_assignment(p->claim, &from_label)) ||
        run_read(p, &kind_sandbox, name, &sandbox) < 0)
        return;
    run_tell_adopted(p, name);
    run_tell_endless(p, sandbox);
    claim_metric_created(p->claim, sandbox, true);
    if (claim_is_ready(json_get(p->claim, "status")))
        claim_metric_ready(p->claim, sandbox, p->observed_ms, run_now_ms(p));
}

/* ---- writing the claim ---- */

struct change {
    const cJSON *as;
};

/* Metadata and status as they are in change->as; the rest of the object is never touched. */
static bool apply_change(void *ctx, cJSON *object)
{
    static const char *const maps[] = {"labels", "annotations"};
    const struct change *change = ctx;
    cJSON *metadata = json_ensure_object(object, "metadata");
    for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
        const cJSON *map = json_get(json_get(change->as, "metadata"), maps[i]);
        if (map)
            json_set(metadata, maps[i], json_copy(map));
        else
            json_remove(metadata, maps[i]);
    }
    json_set(object, "status", json_copy(json_get(change->as, "status")));
    return true;
}

int run_write(struct claim_run *p, cJSON *take_status)
{
    struct change change = {.as = p->next};
    SCOPED(object_unref_p) struct object *written = NULL;
    SCOPED(err_fini) struct err err = {0};
    bool became_ready = claim_set_status(p->next, take_status, &p->r->config.settings,
                                         p->observed_ms, run_now_ms(p));
    if (json_equal(p->next, p->claim))
        return 0;
    CRASH_POINT(CLAIM_STATUS_DECIDED);
    int rc = pass_update(run_env(p),
                         &(struct pass_update){
                             .kind = &kind_sandbox_claim,
                             .namespace_name = meta_namespace(p->claim),
                             .name = meta_name(p->claim),
                             .uid = meta_uid(p->claim),
                             .resource_version = json_str(p->claim, "metadata.resourceVersion"),
                             .change = apply_change,
                             .ctx = &change,
                             .field_manager = CLAIM_CONTROLLER,
                         },
                         &written, &err);
    CRASH_POINT(CLAIM_STATUS_WRITTEN);
    if (rc == -ERR_CONFLICT || rc == -ERR_NOT_FOUND)
        return 1;
    if (rc < 0) {
        run_cut_off(p, "status write", &err);
        return rc;
    }
    p->own_rev = written->rev;
    if (became_ready)
        claim_metric_ready(p->next, p->sandbox, p->observed_ms, run_now_ms(p));
    return 0;
}
