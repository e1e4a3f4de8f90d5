#include "reconcile/claim_pass.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "apiserver/registry/bind.h"
#include "openapi/kinds.h"
#include "reconcile/blueprint.h"
#include "reconcile/child.h"
#include "reconcile/claim_bind.h"
#include "reconcile/claim_metric.h"
#include "reconcile/keys.h"

#define MISSING_AGAIN_MS 60000 /* pool or template missing; their coming wakes the claim anyway */
#define ADDRESS_GRACE_MS                                                                           \
    2000 /* from the claim's creation: so long it waits for a member's address */
#define ADDRESS_AGAIN_MS 100                   /* and looks so often */
#define EXPIRED_AGAIN_MS 1                     /* the second pass of an expiry follows at once */
#define LEGACY_POLICY_SUFFIX "-network-policy" /* of policies that old versions made per claim */

/* A claim that this process has seen while it leads. */
struct seen {
    char uid[RAND_UUID_SIZE];
    int64_t first_ms; /* unix */
};

struct claim_reconciler {
    struct claim_reconciler_config config;
    int64_t started_s; /* unix */
    pthread_mutex_t lock;
    struct map *seen; /* key → struct seen */
};

/* What a step leads to. */
enum next {
    NEXT_SEARCH,   /* no Sandbox yet */
    NEXT_MAINTAIN, /* there is one in hand */
    NEXT_CONCLUDE, /* what is known becomes the status */
    NEXT_STOP,     /* this pass is over: all is written, or rc says to come back */
};

struct pass {
    struct claim_reconciler *r;
    const char *key;
    struct object *object;
    cJSON *claim; /* as read */
    cJSON *next;  /* as it is to be written, status apart */
    cJSON *sandbox, *pool, *template;
    const char *launch_type; /* of the Sandbox in hand, should it not say */
    struct claim_error error;
    bool is_first_sight;
    int64_t observed_ms; /* unix */
    int64_t again_after_ms;
    int rc;
};

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

static const struct pass_env *env_of(const struct pass *p)
{
    return &p->r->config.env;
}

static int64_t now_ms(const struct pass *p)
{
    return clock_unix_ms(env_of(p)->clock);
}

static void wish_again(struct pass *p, int64_t after_ms)
{
    if (after_ms > 0 && after_ms < INT64_MAX &&
        (!p->again_after_ms || after_ms < p->again_after_ms))
        p->again_after_ms = after_ms;
}

static enum next stop(struct pass *p, int rc)
{
    p->rc = rc;
    return NEXT_STOP;
}

/* The store or the leadership is away: nothing may be concluded, the pass comes back. */
static enum next cut_off(struct pass *p, const char *what, const struct err *err)
{
    log_warn("%s failed claim=%s, trying again: %s", what, p->key, err_text(err));
    return stop(p, -1);
}

static void tell(struct pass *p, const struct event_text *text)
{
    if (!p->r->config.no_events)
        pass_tell(env_of(p), p->claim, text, CLAIM_CONTROLLER);
}

static void tell_adopted(struct pass *p, const char *name)
{
    SCOPED_FREE char *note = xasprintf("Adopted warm pool Sandbox \"%s\"", name);
    tell(p, &(struct event_text){"Normal", "SandboxAdopted", "Adoption", note});
}

static void tell_expired(struct pass *p)
{
    tell(p, &(struct event_text){"Normal", "ClaimExpired", "Claim Expired", "Claim expired"});
}

/* 0 with *ret NULL when there is none; a failure has ended the pass. */
static int read_tree(struct pass *p, const struct kind *kind, const char *name, cJSON **ret)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    *ret = NULL;
    if (pass_get(env_of(p), kind, meta_namespace(p->claim), name, &o, &err) < 0) {
        cut_off(p, "read", &err);
        return -1;
    }
    if (o)
        *ret = object_tree(o);
    return 0;
}

/* ---- who was seen ---- */

static void forget(struct claim_reconciler *r, const char *key)
{
    pthread_mutex_lock(&r->lock);
    free(map_del(r->seen, key));
    pthread_mutex_unlock(&r->lock);
}

static void look_at(struct pass *p)
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
        seen->first_ms = now_ms(p);
        map_put(r->seen, p->key, seen);
    }
    p->observed_ms = seen->first_ms;
    pthread_mutex_unlock(&r->lock);
}

static int64_t created_ms(const cJSON *object)
{
    int64_t ms;
    const char *at = json_str_or(object, "metadata.creationTimestamp", "");
    return clock_parse_rfc3339(at, &ms) == 0 ? ms : 0;
}

/* A claim that came bound from its POST, while this process leads, is told about here: whichever
 * server bound it, its event and its numbers come once, from the leader. */
static void announce_bound(struct pass *p)
{
    bool from_label;
    SCOPED(json_free_p) cJSON *sandbox = NULL;
    const char *name = json_str(p->claim, "status.sandbox.name");
    if (!p->is_first_sight || !name || created_ms(p->claim) / 1000 < p->r->started_s ||
        !str_equal(name, claim_assignment(p->claim, &from_label)) ||
        read_tree(p, &kind_sandbox, name, &sandbox) < 0)
        return;
    tell_adopted(p, name);
    claim_metric_created(p->claim, sandbox, true);
    if (claim_is_ready(json_get(p->claim, "status")))
        claim_metric_ready(p->claim, sandbox, p->observed_ms, now_ms(p));
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

/* All of a pass in one write, if anything differs. 0 = the claim is as wished; 1 = it changed or
 * went meanwhile, which brings the next pass; negative = failed. */
static int write_claim(struct pass *p, cJSON *take_status)
{
    struct change change = {.as = p->next};
    SCOPED(err_fini) struct err err = {0};
    bool became_ready =
        claim_set_status(p->next, take_status, &p->r->config.settings, p->observed_ms, now_ms(p));
    if (json_equal(p->next, p->claim))
        return 0;
    int rc = pass_update(env_of(p),
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
                         NULL, &err);
    if (rc == -ERR_CONFLICT || rc == -ERR_NOT_FOUND)
        return 1;
    if (rc < 0) {
        cut_off(p, "status write", &err);
        return rc;
    }
    if (became_ready)
        claim_metric_ready(p->next, p->sandbox, p->observed_ms, now_ms(p));
    return 0;
}

/* ---- finding the Sandbox (C6) ---- */

static enum next use(struct pass *p, cJSON **sandbox, const char *launch_type)
{
    p->sandbox = steal(sandbox);
    p->launch_type = launch_type;
    return NEXT_MAINTAIN;
}

static enum next by_status(struct pass *p)
{
    bool from_label;
    SCOPED(json_free_p) cJSON *sandbox = NULL;
    const char *name = json_str_or(p->claim, "status.sandbox.name", "");
    if (!*name)
        return NEXT_SEARCH;
    if (read_tree(p, &kind_sandbox, name, &sandbox) < 0)
        return NEXT_STOP;
    if (!sandbox || !claim_controls(p->claim, sandbox))
        return NEXT_SEARCH;
    bool is_warm = str_equal(claim_assignment(p->claim, &from_label), name) ||
                   !str_equal(name, meta_name(p->claim));
    return use(p, &sandbox, is_warm ? LAUNCH_WARM : LAUNCH_COLD);
}

/* Pool and template of the claim, as far as they exist. */
static int read_pool(struct pass *p)
{
    if (!p->pool && read_tree(p, &kind_sandbox_warm_pool, claim_pool_name(p->claim), &p->pool) < 0)
        return -1;
    const char *template = json_str(p->pool, "spec.sandboxTemplateRef.name");
    if (!p->template && template)
        return read_tree(p, &kind_sandbox_template, template, &p->template);
    return 0;
}

static int no_pool(struct pass *p)
{
    return claim_fail(&p->error, CLAIM_NO_POOL, "SandboxWarmPool \"%s\" not found",
                      claim_pool_name(p->claim));
}

static int no_template(struct pass *p, const char *prefix)
{
    return claim_fail(&p->error, CLAIM_NO_TEMPLATE, "%sSandboxTemplate \"%s\" not found", prefix,
                      json_str_or(p->pool, "spec.sandboxTemplateRef.name", ""));
}

/* What the registry wrote in one transaction. */
static void take_bound(struct pass *p, const struct object *claim, const struct object *member)
{
    json_free(p->sandbox);
    p->sandbox = object_tree(member);
    json_free(p->next);
    p->next = object_tree(claim);
    wish_again(p, claim_time_left_ms(p->next, now_ms(p)));
}

/* Member NULL = the best one. Negative: the pass is over. */
static int bind(struct pass *p, const char *member, enum bind_outcome *ret)
{
    const struct pass_env *env = env_of(p);
    struct store_compare fence;
    struct write_options opts = {.is_system = true,
                                 .deadline_ms = clock_monotonic_ms(env->clock) + PASS_TIMEOUT_MS};
    SCOPED(object_unref_p) struct object *claim = NULL, *sandbox = NULL;
    SCOPED(err_fini) struct err err = {0};
    if (env->fence) {
        if (!env->fence(env->ctx, &fence))
            return stop(p, -1), -1;
        opts.fence = &fence;
    }
    int rc = registry_bind(env->registry, &(struct bind_request){p->object, member}, &opts, ret,
                           &claim, &sandbox, &err);
    if (rc == -ERR_CONFLICT || rc == -ERR_NOT_FOUND)
        return stop(p, 0), -1; /* the claim changed: its event brings the next pass */
    if (rc < 0)
        return cut_off(p, "binding", &err), -1;
    if (*ret != BIND_DONE)
        return 0;
    take_bound(p, claim, sandbox);
    if (claim_is_ready(json_get(p->next, "status")) &&
        !meta_annotation(p->claim, ANNOTATION_FIRST_READY_AT))
        claim_metric_ready(p->next, p->sandbox, p->observed_ms, now_ms(p));
    return 0;
}

/* The claim names a member that its pool still owns: half of an adoption, by hand or of a
 * controller that writes in two steps. Neither event nor counter (C6.2). */
static enum next finish_adoption(struct pass *p, const cJSON *member)
{
    enum bind_outcome outcome;
    SCOPED(json_free_p) cJSON *adopted = NULL;
    SCOPED_FREE char *no_candidate = claim_candidate_error(p->claim, member);
    if (read_pool(p) < 0)
        return NEXT_STOP;
    if (no_candidate || !p->pool || claim_staleness(p->pool, p->template, member)) {
        claim_clear_assignment(p->next);
        return NEXT_SEARCH;
    }
    if (claim_adopt(p->claim, p->template, member, &adopted, &p->error) < 0)
        return NEXT_CONCLUDE;
    if (bind(p, meta_name(member), &outcome) < 0)
        return NEXT_STOP;
    return stop(p, outcome == BIND_DONE ? 0 : -1); /* lost to somebody: look again */
}

static enum next by_assignment(struct pass *p)
{
    bool from_label;
    SCOPED(json_free_p) cJSON *sandbox = NULL;
    const char *name = claim_assignment(p->next, &from_label);
    if (!name)
        return NEXT_SEARCH;
    if (read_tree(p, &kind_sandbox, name, &sandbox) < 0)
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

static enum next by_name(struct pass *p)
{
    SCOPED(json_free_p) cJSON *sandbox = NULL;
    const char *name = meta_name(p->claim);
    if (read_tree(p, &kind_sandbox, name, &sandbox) < 0)
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
static enum next adopt(struct pass *p)
{
    enum bind_outcome outcome;
    if (claim_is_cold_only(p->claim))
        return NEXT_SEARCH;
    if (bind(p, NULL, &outcome) < 0)
        return NEXT_STOP;
    if (outcome == BIND_DONE) {
        tell_adopted(p, meta_name(p->sandbox));
        claim_metric_created(p->claim, p->sandbox, true);
        return stop(p, 0);
    }
    int64_t left = created_ms(p->claim) + ADDRESS_GRACE_MS - now_ms(p);
    if (outcome != BIND_WAITING || left <= 0)
        return NEXT_SEARCH;
    wish_again(p, left < ADDRESS_AGAIN_MS ? left : ADDRESS_AGAIN_MS);
    return stop(p, 0);
}

static enum next created(struct pass *p, const struct object *object)
{
    SCOPED_FREE char *note = xasprintf("Created Sandbox \"%s\"", object->name);
    p->sandbox = object_tree(object);
    tell(p, &(struct event_text){"Normal", "SandboxProvisioned", "Provisioning", note});
    claim_metric_created(p->claim, p->sandbox, false);
    return NEXT_CONCLUDE;
}

/* The Sandbox of the claim's name that was not there a moment ago. */
static enum next create_lost(struct pass *p)
{
    enum next next = by_name(p);
    return next == NEXT_SEARCH ? stop(p, -1) : next;
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
static enum next make(struct pass *p)
{
    cJSON *sandbox = NULL;
    SCOPED(object_unref_p) struct object *object = NULL;
    SCOPED(err_fini) struct err err = {0};
    if (read_pool(p) < 0)
        return NEXT_STOP;
    if ((!p->pool && no_pool(p) < 0) || (!p->template && no_template(p, "") < 0) ||
        claim_sandbox(p->claim, p->template, &sandbox, &p->error) < 0)
        return NEXT_CONCLUDE;
    int rc = pass_create(env_of(p), &kind_sandbox, meta_namespace(p->claim), sandbox,
                         CLAIM_CONTROLLER, &object, &err);
    if (rc == 0)
        return created(p, object);
    if (rc == -ERR_ALREADY_EXISTS)
        return create_lost(p);
    if (pass_is_link_error(err.code) || rc == -ERR_CONFLICT)
        return cut_off(p, "creating the sandbox", &err);
    if (is_namespace_ending(&err)) {
        wish_again(p, MISSING_AGAIN_MS);
        return stop(p, 0);
    }
    claim_fail(&p->error, CLAIM_OTHER, "sandbox create error: %s", err_text(&err));
    return NEXT_CONCLUDE;
}

/* ---- keeping it in line (C15) ---- */

struct maintenance {
    const struct pass *p;
    bool changes;
};

static bool apply_maintenance(void *ctx, cJSON *sandbox)
{
    struct maintenance *m = ctx;
    SCOPED(claim_error_fini) struct claim_error wrong = {0};
    return claim_maintain(m->p->claim, m->p->template, m->p->launch_type, sandbox, &m->changes,
                          &wrong) == 0 &&
           m->changes;
}

static enum next write_sandbox(struct pass *p)
{
    struct maintenance m = {.p = p};
    SCOPED(object_unref_p) struct object *written = NULL;
    SCOPED(err_fini) struct err err = {0};
    int rc = pass_update(env_of(p),
                         &(struct pass_update){
                             .kind = &kind_sandbox,
                             .namespace_name = meta_namespace(p->sandbox),
                             .name = meta_name(p->sandbox),
                             .uid = meta_uid(p->sandbox),
                             .change = apply_maintenance,
                             .ctx = &m,
                             .field_manager = CLAIM_CONTROLLER,
                         },
                         &written, &err);
    if (rc == 0) {
        json_free(p->sandbox);
        p->sandbox = object_tree(written);
        return NEXT_CONCLUDE;
    }
    if (rc == -ERR_NOT_FOUND || rc == -ERR_CONFLICT || pass_is_link_error(err.code))
        return cut_off(p, "sandbox write", &err);
    claim_fail(&p->error, CLAIM_OTHER, "failed to patch sandbox metadata for claim \"%s\": %s",
               meta_name(p->claim), err_text(&err));
    return NEXT_CONCLUDE;
}

static enum next maintain(struct pass *p)
{
    static const char propagation[] = "failed to get template for metadata propagation: ";
    bool changes;
    if (read_pool(p) < 0)
        return NEXT_STOP;
    if (!p->template && claim_has_metadata(p->claim)) {
        if (p->pool)
            no_template(p, propagation);
        else
            no_pool(p);
        return NEXT_CONCLUDE;
    }
    SCOPED(json_free_p) cJSON *copy = json_copy(p->sandbox);
    if (claim_maintain(p->claim, p->template, p->launch_type, copy, &changes, &p->error) < 0 ||
        !changes)
        return NEXT_CONCLUDE;
    return write_sandbox(p);
}

/* ---- what comes of it (C20, C21) ---- */

static int result_of(struct pass *p)
{
    enum claim_failure failure = p->error.failure;
    wish_again(p, claim_time_left_ms(p->next, now_ms(p)));
    if (failure == CLAIM_NO_POOL || failure == CLAIM_NO_TEMPLATE) {
        wish_again(p, MISSING_AGAIN_MS);
        return 0;
    }
    if (failure == CLAIM_FINE || claim_error_is_final(&p->error))
        return 0;
    log_warn("pass failed claim=%s, trying again: %s", p->key, p->error.text);
    return -1;
}

/* The status may itself bring the end: a pod that finished, and no time to live after it. */
static int conclude(struct pass *p)
{
    const struct claim_outcome outcome = {.sandbox = p->sandbox, .error = &p->error};
    int64_t now_s = clock_unix_s(env_of(p)->clock);
    cJSON *status = claim_status(p->next, &outcome, now_s);
    SCOPED(json_free_p) cJSON *after = json_copy(p->next);
    json_set(after, "status", json_copy(status));
    if (claim_time_left_ms(after, now_ms(p)) > 0) {
        int rc = write_claim(p, status);
        return rc < 0 ? rc : rc > 0 ? 0 : result_of(p);
    }
    json_free(status);
    status = claim_status(after, &(struct claim_outcome){.sandbox = p->sandbox, .is_expired = true},
                          now_s);
    int rc = write_claim(p, status);
    if (rc == 0) {
        tell_expired(p);
        wish_again(p, EXPIRED_AGAIN_MS);
    }
    return rc < 0 ? rc : 0;
}

static enum next find(struct pass *p)
{
    static enum next (*const ways[])(struct pass *) = {by_status, by_assignment, by_name, adopt,
                                                       make};
    enum next next = NEXT_SEARCH;
    for (size_t i = 0; i < ARRAY_LEN(ways) && next == NEXT_SEARCH; i++)
        next = ways[i](p);
    return next;
}

static int active_pass(struct pass *p)
{
    enum next next = NEXT_CONCLUDE;
    if (claim_check_metadata(p->claim, &p->r->config.settings, &p->error) == 0)
        next = find(p);
    if (next == NEXT_MAINTAIN)
        next = maintain(p);
    return next == NEXT_STOP ? p->rc : conclude(p);
}

/* ---- the end (C4) ---- */

static int delete_claim(struct pass *p, const char *policy)
{
    bool in_foreground = str_equal(policy, "DeleteForeground");
    SCOPED_FREE char *note = xasprintf("Deleting Claim (ShutdownPolicy=%s)", policy);
    SCOPED(err_fini) struct err err = {0};
    tell(p, &(struct event_text){"Normal", "ClaimExpired", "Deleting", note});
    int rc = pass_delete(env_of(p),
                         &(struct pass_delete){
                             .kind = &kind_sandbox_claim,
                             .namespace_name = meta_namespace(p->claim),
                             .name = meta_name(p->claim),
                             .uid = meta_uid(p->claim),
                             .propagation = in_foreground ? "Foreground" : NULL,
                         },
                         &err);
    if (rc == 0 || rc == -ERR_NOT_FOUND)
        return 0;
    cut_off(p, "deleting the expired claim", &err);
    return -1;
}

/* The Sandbox of an expired claim that stays. Negative: the pass is over. */
static int delete_sandbox(struct pass *p)
{
    const char *name = json_str_or(p->claim, "status.sandbox.name", "");
    SCOPED(err_fini) struct err err = {0};
    if (!*name)
        name = meta_name(p->claim);
    if (read_tree(p, &kind_sandbox, name, &p->sandbox) < 0)
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
    int rc = pass_delete(env_of(p),
                         &(struct pass_delete){
                             .kind = &kind_sandbox,
                             .namespace_name = meta_namespace(p->claim),
                             .name = name,
                             .uid = meta_uid(p->sandbox),
                         },
                         &err);
    if (rc < 0 && rc != -ERR_NOT_FOUND) {
        cut_off(p, "deleting the sandbox of an expired claim", &err);
        return -1;
    }
    json_free(p->sandbox);
    p->sandbox = NULL;
    return read_tree(p, &kind_sandbox, name, &p->sandbox); /* with finalizers it is still there */
}

static int expired_pass(struct pass *p)
{
    const char *policy = json_str_or(p->claim, "spec.lifecycle.shutdownPolicy", "");
    struct claim_outcome outcome = {.is_expired = true, .error = &p->error};
    int64_t now_s = clock_unix_s(env_of(p)->clock);
    bool is_marked = claim_shows_expired(p->claim);
    if (!is_marked) {
        /* Nothing is deleted before everybody can see why. */
        const char *name = json_str_or(p->claim, "status.sandbox.name", "");
        if (*name && read_tree(p, &kind_sandbox, name, &p->sandbox) < 0)
            return p->rc;
    } else if (str_equal(policy, "Delete") || str_equal(policy, "DeleteForeground")) {
        return delete_claim(p, policy);
    } else if (delete_sandbox(p) < 0) {
        return p->rc;
    }
    outcome.sandbox = p->sandbox;
    int rc = write_claim(p, claim_status(p->next, &outcome, now_s));
    if (rc == 0 && !is_marked) {
        tell_expired(p);
        wish_again(p, EXPIRED_AGAIN_MS);
    }
    return rc < 0 ? rc : 0;
}

/* ---- the whole ---- */

/* Old versions made a NetworkPolicy per claim; a user's own of that name stays. */
static void drop_legacy_policy(struct pass *p)
{
    struct cluster *c = env_of(p)->cluster;
    const char *ns = meta_namespace(p->claim);
    SCOPED_FREE char *name = xasprintf("%s" LEGACY_POLICY_SUFFIX, meta_name(p->claim));
    SCOPED(json_free_p) cJSON *policy = NULL;
    SCOPED(err_fini) struct err err = {0};
    if (c->v->get(c, CHILD_NETPOL, ns, name, false, &policy, &err) < 0 || !policy ||
        !owner_is_kind(owner_controller(policy), GROUP_EXTENSIONS, KIND_CLAIM) ||
        !claim_controls(p->claim, policy) || !pass_leads(env_of(p)))
        return;
    int rc = c->v->del(c, CHILD_NETPOL, ns, name, meta_uid(policy), &err);
    if (rc < 0 && rc != -ERR_NOT_FOUND)
        log_warn("old network policy not deleted claim=%s: %s", p->key, err_text(&err));
}

static void pass_fini(struct pass *p)
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
    SCOPED(pass_fini) struct pass p = {.r = ctx, .key = key};
    SCOPED_FREE char *namespace_name = NULL;
    const char *name = pass_key_split(key, &namespace_name);
    SCOPED(err_fini) struct err err = {0};
    int rc = pass_get(env_of(&p), &kind_sandbox_claim, namespace_name, name, &p.object, &err);
    if (rc < 0)
        return rc;
    if (!p.object) {
        forget(p.r, key);
        return 0;
    }
    p.claim = object_tree(p.object);
    drop_legacy_policy(&p);
    if (p.object->is_terminating)
        return 0;
    p.next = json_copy(p.claim);
    look_at(&p);
    announce_bound(&p);
    if (p.rc == 0)
        p.rc = claim_time_left_ms(p.claim, now_ms(&p)) <= 0 ? expired_pass(&p) : active_pass(&p);
    ret->again_after_ms = p.again_after_ms;
    return p.rc;
}
