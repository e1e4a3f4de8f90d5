#include "reconcile/warmpool_pass.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "apiserver/base/duration.h"
#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "reconcile/batch.h"
#include "reconcile/child.h"
#include "reconcile/pace.h"
#include "reconcile/warmpool.h"

#define POOL_CONTROLLER "sandboxwarmpool-controller" /* of events, and field manager */
#define DEFAULT_BATCH 300
#define DEFAULT_GRACE_MS (5 * 60000)
#define DEFAULT_RECHECK_MS 60000
#define PARALLEL 16           /* creates and deletes at once */
#define DELETED_AGAIN_MS 1    /* the pass after one that deleted follows at once */
#define REFUSED_AGAIN_MS 100  /* a member changed while it was to be deleted: judge it again */
#define STATUS_PERIOD_MS 100  /* between writes that only count members anew */
#define MISSING_TELL_MS 10000 /* a template may come a moment after its pool */

/* What is remembered of a pool between passes, by the worker that has its key. Lost at restart,
 * which only means earlier next tries, and a warning told again. */
struct memory {
    struct map *members; /* name -> struct member: parsed once a revision */
    int64_t rev;         /* of this process's last write to a member */
    bool has_counted;    /* false: the store is asked for its newest revision before counting */
    struct hold hold;
    struct bucket bucket;
    bool is_stalled;          /* WarmPoolNotProgressing was told */
    int64_t missing_since_ms; /* the template; monotonic, 0 = it is there */
    bool missing_told;
    int64_t status_at_ms; /* of the last status write; monotonic */
};

struct warmpool_reconciler {
    struct pass_env env;
    struct warmpool_settings settings;
    pthread_mutex_t lock; /* guards the map, not what is in it */
    struct map *pools;    /* key -> struct memory */
};

/* The state of one pass. */
struct pass {
    struct warmpool_reconciler *r;
    struct memory *memory;
    const char *key;
    cJSON *pool,
        *template; /* template NULL = there is none, or it cannot be read: template_failed */
    bool template_failed;
    struct blueprint blueprint;
    bool recreates;
    int64_t desired;
    struct member **active; /* borrowed from memory */
    size_t n_active;
    struct member **doomed; /* to be deleted as stale; then as stuck; then as too many */
    size_t n_doomed;
    int64_t going, held, ready;
    bool has_deleted; /* counts are as before it: nothing more is made or deleted */
    struct pass_errors errors;
    pthread_mutex_t lock; /* guards errors and again_after_ms while a batch runs */
    int64_t again_after_ms;
};

/* ---- life ---- */

static int64_t or_default(int64_t value, int64_t otherwise)
{
    return value > 0 ? value : otherwise;
}

struct warmpool_reconciler *warmpool_reconciler_new(const struct pass_env *env,
                                                    const struct warmpool_settings *settings)
{
    struct warmpool_reconciler *r = xcalloc(1, sizeof *r);
    r->env = *env;
    r->settings = *settings;
    r->settings.max_batch = or_default(settings->max_batch, DEFAULT_BATCH);
    r->settings.readiness_grace_ms = or_default(settings->readiness_grace_ms, DEFAULT_GRACE_MS);
    r->settings.recheck_ms = or_default(settings->recheck_ms, DEFAULT_RECHECK_MS);
    pthread_mutex_init(&r->lock, NULL);
    r->pools = map_new();
    return r;
}

static bool free_member(void *ctx, const char *key, void *value)
{
    (void)ctx;
    (void)key;
    member_free(value);
    return true;
}

static void members_free(struct map *members)
{
    if (!members)
        return;
    map_each(members, free_member, NULL);
    map_free(members);
}

static void memory_free(struct memory *m)
{
    if (!m)
        return;
    members_free(m->members);
    free(m);
}

static bool free_memory(void *ctx, const char *key, void *value)
{
    (void)ctx;
    (void)key;
    memory_free(value);
    return true;
}

void warmpool_reconciler_free(struct warmpool_reconciler *r)
{
    if (!r)
        return;
    map_each(r->pools, free_memory, NULL);
    map_free(r->pools);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

static struct memory *recall(struct warmpool_reconciler *r, const char *key)
{
    pthread_mutex_lock(&r->lock);
    struct memory *m = map_get(r->pools, key);
    if (!m) {
        m = xcalloc(1, sizeof *m);
        m->members = map_new();
        map_put(r->pools, key, m);
    }
    pthread_mutex_unlock(&r->lock);
    return m;
}

static void forget(struct warmpool_reconciler *r, const char *key)
{
    pthread_mutex_lock(&r->lock);
    struct memory *m = map_del(r->pools, key);
    pthread_mutex_unlock(&r->lock);
    memory_free(m);
}

/* ---- helpers ---- */

static const struct pass_env *env_of(const struct pass *p)
{
    return &p->r->env;
}

static int64_t now_ms(const struct pass *p)
{
    return clock_monotonic_ms(p->r->env.clock);
}

static void wish_again(struct pass *p, int64_t after_ms)
{
    if (after_ms > 0 && (!p->again_after_ms || after_ms < p->again_after_ms))
        p->again_after_ms = after_ms;
}

static void note(struct pass *p, const char *prefix, const struct err *err)
{
    pthread_mutex_lock(&p->lock);
    pass_errors_add(&p->errors, prefix, err_text(err));
    if (pass_is_link_error(err->code))
        p->memory->has_counted = false; /* it may have been written all the same */
    pthread_mutex_unlock(&p->lock);
}

static void tell(struct pass *p, const char *type, const char *reason, const char *text)
{
    pass_tell(env_of(p), p->pool, &(struct event_text){type, reason, "Reconciling", text},
              POOL_CONTROLLER);
}

/* ---- looking ---- */

/* W3. */
static void read_template(struct pass *p)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    const char *name = pool_template_name(p->pool);
    if (pass_get(env_of(p), &kind_sandbox_template, meta_namespace(p->pool), name, &o, &err) < 0) {
        SCOPED_FREE char *prefix = xasprintf("failed to get sandbox template \"%s\": ", name);
        note(p, prefix, &err);
        p->template_failed = true;
        return;
    }
    if (!o)
        return;
    p->template = object_tree(o);
    blueprint_init(&p->blueprint, p->template);
}

static const struct blueprint *blueprint_of(const struct pass *p)
{
    return p->template ? &p->blueprint : NULL;
}

/* The version of the list that surely shows every write of this process to the pool's members. */
static struct read_version list_version(const struct memory *m)
{
    if (!m->has_counted)
        return (struct read_version){.match = READ_LATEST};
    if (m->rev)
        return (struct read_version){.match = READ_AT_LEAST, .rev = m->rev};
    return (struct read_version){.match = READ_ANY};
}

static int list_members(struct pass *p, struct list_result *ret, struct err *err)
{
    SCOPED(buf_fini) struct buf text = {0};
    pool_selector(p->pool, &text);
    struct selector *selector = NULL;
    int rc = selector_parse(buf_cstr(&text), NULL, &selector, err);
    if (rc == 0)
        rc = registry_list(env_of(p)->registry,
                           &(struct list_request){.kind = &kind_sandbox,
                                                  .namespace_name = meta_namespace(p->pool),
                                                  .selector = selector,
                                                  .version = list_version(p->memory),
                                                  .deadline_ms = now_ms(p) + PASS_TIMEOUT_MS},
                           ret, err);
    selector_free(selector);
    if (rc == 0)
        p->memory->has_counted = true;
    return rc;
}

static void compare(const struct pass *p, const struct object *o, struct member *m)
{
    SCOPED(json_free_p) cJSON *sandbox = object_tree(o);
    bool equal = blueprint_equals(p->template, json_get(sandbox, "spec"));
    m->content = equal ? CONTENT_EQUAL : CONTENT_DIFFERENT;
    memcpy(m->compared_with, p->blueprint.hash, sizeof m->compared_with);
}

/* From memory when the object is still at that revision. Taken out of old. */
static struct member *member_of(const struct pass *p, struct map *old, const struct object *o)
{
    struct member *m = map_del(old, o->name);
    if (!m || m->rev != o->rev) {
        member_free(m);
        SCOPED(json_free_p) cJSON *sandbox = object_tree(o);
        m = member_new(sandbox, meta_uid(p->pool), o->rev);
    }
    if (member_needs_comparison(m, blueprint_of(p)))
        compare(p, o, m);
    return m;
}

/* ---- deleting ---- */

/* Only if the member is still what was judged: a claim that took it meanwhile keeps it (R1). Gone
 * is success. */
static int delete_one(void *ctx, size_t i)
{
    struct pass *p = ctx;
    const struct member *m = p->doomed[i];
    char rev[24];
    snprintf(rev, sizeof rev, "%" PRId64, m->rev);
    SCOPED(err_fini) struct err err = {0};
    int rc = pass_delete(env_of(p),
                         &(struct pass_delete){.kind = &kind_sandbox,
                                               .namespace_name = meta_namespace(p->pool),
                                               .name = m->name,
                                               .uid = m->uid,
                                               .resource_version = rev},
                         &err);
    if (rc == 0 || rc == -ERR_NOT_FOUND)
        return 0;
    if (rc == -ERR_CONFLICT) {
        pthread_mutex_lock(&p->lock);
        wish_again(p, REFUSED_AGAIN_MS);
        pthread_mutex_unlock(&p->lock);
        return rc;
    }
    SCOPED_FREE char *prefix = xasprintf("failed to delete sandbox \"%s\": ", m->name);
    note(p, prefix, &err);
    return rc;
}

static bool goes_on(void *ctx)
{
    const struct pass *p = ctx;
    return pass_leads(env_of(p));
}

/* All in p->doomed; empties it. How many went. */
static size_t delete_doomed(struct pass *p, const char *why)
{
    size_t n = p->n_doomed;
    if (n == 0)
        return 0;
    size_t done = batch_run(
        &(struct batch){
            .count = n, .parallel = PARALLEL, .run = delete_one, .goes_on = goes_on, .ctx = p},
        NULL);
    log_info("pool members deleted pool=%s why=%s members=%zu of=%zu", p->key, why, done, n);
    p->has_deleted = true;
    p->n_doomed = 0;
    if (done > 0)
        wish_again(p, DELETED_AGAIN_MS);
    return done;
}

/* ---- sorting out ---- */

struct adoption {
    const cJSON *pool; /* NULL = only the launch type */
};

static bool apply_adoption(void *ctx, cJSON *sandbox)
{
    const struct adoption *a = ctx;
    member_adopt(sandbox, a->pool);
    return true;
}

static bool make_ours(struct pass *p, const struct member *m, bool adopt)
{
    char rev[24];
    snprintf(rev, sizeof rev, "%" PRId64, m->rev);
    struct adoption adoption = {.pool = adopt ? p->pool : NULL};
    SCOPED(object_unref_p) struct object *written = NULL;
    SCOPED(err_fini) struct err err = {0};
    int rc = pass_update(env_of(p),
                         &(struct pass_update){.kind = &kind_sandbox,
                                               .namespace_name = meta_namespace(p->pool),
                                               .name = m->name,
                                               .uid = m->uid,
                                               .resource_version = rev,
                                               .change = apply_adoption,
                                               .ctx = &adoption,
                                               .field_manager = POOL_CONTROLLER},
                         &written, &err);
    if (rc == 0) {
        p->memory->rev = written->rev > p->memory->rev ? written->rev : p->memory->rev;
        return true;
    }
    SCOPED_FREE char *prefix =
        xasprintf("failed to %s sandbox \"%s\": ", adopt ? "adopt" : "label", m->name);
    note(p, prefix, &err);
    return false;
}

static void place(struct pass *p, struct member *m)
{
    switch (member_judge(m, blueprint_of(p), p->recreates)) {
    case MEMBER_IGNORE:
        return;
    case MEMBER_GOING:
        p->going++;
        return;
    case MEMBER_DELETE_STALE:
        p->doomed[p->n_doomed++] = m;
        p->going += m->owner == MEMBER_OURS;
        return;
    case MEMBER_ADOPT:
        if (make_ours(p, m, true))
            p->active[p->n_active++] = m;
        return;
    case MEMBER_LABEL:
        if (make_ours(p, m, false))
            p->active[p->n_active++] = m;
        return;
    case MEMBER_KEEP:
        p->active[p->n_active++] = m;
        return;
    }
}

/* W4. */
static void sort_out(struct pass *p, const struct list_result *list)
{
    struct map *old = p->memory->members;
    p->memory->members = map_new();
    p->active = xreallocarray(NULL, list->n + 1, sizeof(struct member *));
    p->doomed = xreallocarray(NULL, list->n + 1, sizeof(struct member *));
    for (size_t i = 0; i < list->n; i++) {
        struct member *m = member_of(p, old, list->objects[i]);
        map_put(p->memory->members, m->name, m);
        place(p, m);
    }
    members_free(old);
    delete_doomed(p, "stale");
}

/* ---- members that are not ready ---- */

/* What is left of its time by its Pod; while that cannot be read the member stays. */
static int64_t pod_grace_left(struct pass *p, const struct member *m, int64_t now_unix_ms)
{
    struct cluster *c = env_of(p)->cluster;
    SCOPED(json_free_p) cJSON *pod = NULL;
    SCOPED(err_fini) struct err err = {0};
    if (c->v->get(c, CHILD_POD, meta_namespace(p->pool), m->pod_name, false, &pod, &err) < 0) {
        note(p, "failed to get pod: ", &err);
        return 1;
    }
    return member_pod_grace_left_ms(pod, now_unix_ms, p->r->settings.readiness_grace_ms);
}

/* W6: members that are not ready for too long go, but for those that wait for a node. */
static void weed_out(struct pass *p)
{
    const struct pass_env *env = env_of(p);
    int64_t now = clock_unix_ms(env->clock), earliest = INT64_MAX;
    size_t kept = 0;
    for (size_t i = 0; i < p->n_active; i++) {
        struct member *m = p->active[i];
        int64_t left = member_grace_left_ms(m, now, p->r->settings.readiness_grace_ms);
        if (left <= 0) {
            left = pod_grace_left(p, m, now);
            p->held += left == INT64_MAX;
        }
        if (left <= 0) {
            p->doomed[p->n_doomed++] = m;
            continue;
        }
        if (left < earliest)
            earliest = left;
        p->ready += m->is_ready;
        p->active[kept++] = m;
    }
    size_t stuck = p->n_active - kept;
    p->n_active = kept;
    p->going += (int64_t)stuck;
    delete_doomed(p, "not-ready");
    if (earliest != INT64_MAX)
        wish_again(p, pool_grace_requeue_ms(earliest, (double)rand_below(env->randomness, 1000000) /
                                                          1000000));
}

/* ---- size ---- */

struct creation {
    struct pass *pass;
    const cJSON *prototype;
    _Atomic int64_t rev; /* the highest written */
};

static int create_one(void *ctx, size_t i)
{
    (void)i;
    struct creation *c = ctx;
    SCOPED(object_unref_p) struct object *made = NULL;
    SCOPED(err_fini) struct err err = {0};
    int rc = pass_create(env_of(c->pass), &kind_sandbox, meta_namespace(c->pass->pool),
                         json_copy(c->prototype), POOL_CONTROLLER, &made, &err);
    if (rc < 0) {
        note(c->pass, "failed to create sandbox: ", &err);
        return rc;
    }
    int64_t before = atomic_load(&c->rev);
    while (before < made->rev && !atomic_compare_exchange_weak(&c->rev, &before, made->rev))
        ;
    return 0;
}

static bool creation_goes_on(void *ctx)
{
    const struct creation *c = ctx;
    return pass_leads(env_of(c->pass));
}

static int64_t create_members(struct pass *p, int64_t n)
{
    SCOPED(json_free_p)
    cJSON *prototype = pool_prototype(p->pool, &p->blueprint, !p->r->settings.no_eviction);
    struct creation creation = {.pass = p, .prototype = prototype};
    size_t done = batch_run(&(struct batch){.count = (size_t)n,
                                            .parallel = PARALLEL,
                                            .run = create_one,
                                            .goes_on = creation_goes_on,
                                            .ctx = &creation},
                            NULL);
    int64_t rev = atomic_load(&creation.rev);
    if (rev > p->memory->rev)
        p->memory->rev = rev;
    log_info("pool members created pool=%s members=%zu of=%" PRId64, p->key, done, n);
    return (int64_t)done;
}

/* W9-W11. How many were made. */
static int64_t fill(struct pass *p)
{
    const struct warmpool_settings *s = &p->r->settings;
    int64_t current = (int64_t)p->n_active, wait_ms;
    int64_t hold_ms =
        hold_see(&p->memory->hold, current, p->desired, s->replenish_delay_ms, now_ms(p));
    if (!p->template || p->has_deleted || p->errors.n || current >= p->desired)
        return 0;
    if (hold_ms) {
        wish_again(p, hold_ms);
        return 0;
    }
    int64_t deficit = pool_deficit(p->desired, current + p->going, s->max_batch);
    if (deficit == 0)
        return 0;
    int64_t grant =
        bucket_take(&p->memory->bucket, deficit, s->max_refill_rate, now_ms(p), &wait_ms);
    if (grant == 0) {
        wish_again(p, wait_ms);
        return 0;
    }
    int64_t made = create_members(p, grant);
    hold_created(&p->memory->hold, made);
    return made;
}

/* W12. How many went. */
static int64_t shrink(struct pass *p)
{
    int64_t n = pool_excess(p->desired, (int64_t)p->n_active, p->r->settings.max_batch);
    if (n == 0 || p->has_deleted)
        return 0;
    qsort(p->active, p->n_active, sizeof(struct member *), member_compare_excess);
    p->n_doomed = (size_t)n;
    memcpy(p->doomed, p->active, p->n_doomed * sizeof(struct member *));
    for (size_t i = 0; i < p->n_doomed; i++)
        p->ready -= p->doomed[i]->is_ready;
    return (int64_t)delete_doomed(p, "excess");
}

/* ---- what users are told ---- */

static void tell_progress(struct pass *p)
{
    if (p->held > 0)
        wish_again(p, p->r->settings.recheck_ms);
    if ((p->held > 0) == p->memory->is_stalled)
        return;
    p->memory->is_stalled = p->held > 0;
    if (!p->held) {
        tell(p, "Normal", "WarmPoolProgressing", "Warm pool is progressing again");
        return;
    }
    SCOPED(buf_fini) struct buf text = {0};
    buf_printf(&text, "%" PRId64 "/%" PRId64 " sandboxes are unschedulable past the ", p->held,
               p->desired);
    duration_print_ms(p->r->settings.readiness_grace_ms, &text);
    buf_puts(&text, " readiness grace period; holding them instead of replacing (replacements "
                    "would be equally unschedulable)");
    tell(p, "Warning", "WarmPoolNotProgressing", buf_cstr(&text));
}

static void tell_missing(struct pass *p)
{
    struct memory *m = p->memory;
    if (p->template) {
        m->missing_since_ms = 0;
        m->missing_told = false;
        return;
    }
    if (m->missing_told || p->template_failed)
        return;
    if (!m->missing_since_ms)
        m->missing_since_ms = now_ms(p);
    int64_t left = m->missing_since_ms + MISSING_TELL_MS - now_ms(p);
    if (left > 0) {
        wish_again(p, left);
        return;
    }
    m->missing_told = true;
    SCOPED_FREE char *text =
        xasprintf("SandboxTemplate \"%s\" does not exist; no sandboxes are created until it does",
                  pool_template_name(p->pool));
    tell(p, "Warning", "TemplateNotFound", text);
}

/* ---- status ---- */

static bool apply_status(void *ctx, cJSON *pool)
{
    const cJSON *status = ctx;
    json_set(pool, "status", json_copy(status));
    return true;
}

/* A new generation or selector is told at once. */
static bool only_counts_differ(const cJSON *a, const cJSON *b)
{
    return str_equal(json_str(a, "selector"), json_str(b, "selector")) &&
           json_i64_or(a, "observedGeneration", 0) == json_i64_or(b, "observedGeneration", 0);
}

/* Counts change with every claim and every Pod: they are gathered for a moment. */
static bool is_too_soon(struct pass *p, const cJSON *before, const cJSON *status)
{
    int64_t left = p->memory->status_at_ms + STATUS_PERIOD_MS - now_ms(p);
    if (!p->memory->status_at_ms || left <= 0 || !only_counts_differ(before, status))
        return false;
    wish_again(p, left);
    return true;
}

static int write_status(struct pass *p, const struct pool_counts *counts)
{
    const cJSON *before = json_get(p->pool, "status");
    SCOPED(json_free_p) cJSON *status = pool_status(p->pool, counts);
    if (json_equal(before, status) || is_too_soon(p, before, status))
        return 0;
    SCOPED(err_fini) struct err err = {0};
    int rc = pass_update(env_of(p),
                         &(struct pass_update){.kind = &kind_sandbox_warm_pool,
                                               .namespace_name = meta_namespace(p->pool),
                                               .name = meta_name(p->pool),
                                               .uid = meta_uid(p->pool),
                                               .change = apply_status,
                                               .ctx = status,
                                               .field_manager = POOL_CONTROLLER},
                         NULL, &err);
    if (rc == 0)
        p->memory->status_at_ms = now_ms(p);
    if (rc == 0 || rc == -ERR_NOT_FOUND)
        return 0;
    log_warn("status write failed pool=%s, trying again: %s", p->key, err_text(&err));
    return -1;
}

/* ---- the pass ---- */

static int run(struct pass *p)
{
    SCOPED(list_result_fini) struct list_result list = {0};
    SCOPED(err_fini) struct err err = {0};
    read_template(p);
    int rc = list_members(p, &list, &err);
    if (rc < 0) {
        log_debug("members of a pool cannot be listed pool=%s: %s", p->key, err_text(&err));
        return rc;
    }
    sort_out(p, &list);
    weed_out(p);
    bool is_counted = p->errors.n == 0; /* else some member is of unknown kind */
    int64_t current = (int64_t)p->n_active;
    int64_t made = fill(p);
    int64_t gone = shrink(p);
    tell_progress(p);
    tell_missing(p);
    if (p->errors.n)
        log_warn("pass failed pool=%s, trying again: %s", p->key, buf_cstr(&p->errors.text));
    if (is_counted)
        rc = write_status(
            p, &(struct pool_counts){.replicas = current + made - gone, .ready = p->ready});
    return p->errors.n ? -1 : rc;
}

static void pass_fini(struct pass *p)
{
    json_free(p->pool);
    json_free(p->template);
    free(p->active);
    free(p->doomed);
    pass_errors_fini(&p->errors);
    pthread_mutex_destroy(&p->lock);
}

int warmpool_pass(void *ctx, const char *key, struct loop_result *ret)
{
    struct warmpool_reconciler *r = ctx;
    SCOPED_FREE char *namespace_name = NULL;
    const char *name = pass_key_split(key, &namespace_name);
    SCOPED(object_unref_p) struct object *object = NULL;
    SCOPED(err_fini) struct err err = {0};
    int rc = pass_get(&r->env, &kind_sandbox_warm_pool, namespace_name, name, &object, &err);
    if (rc < 0)
        return rc;
    if (!object || object->is_terminating) {
        forget(r, key);
        return 0;
    }
    SCOPED(pass_fini)
    struct pass p = {.r = r, .memory = recall(r, key), .key = key, .pool = object_tree(object)};
    pthread_mutex_init(&p.lock, NULL);
    p.desired = pool_desired(p.pool);
    p.recreates = pool_recreates(p.pool);
    rc = run(&p);
    ret->again_after_ms = p.again_after_ms;
    return rc;
}
