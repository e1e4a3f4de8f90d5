/* The members of a pool in one pass: those there are, those that may stay, those that go. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apiserver/base/crash.h"
#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "reconcile/batch.h"
#include "reconcile/child.h"
#include "reconcile/warmpool_state.h"

#define DELETED_AGAIN_MS 1   /* the pass after one that deleted follows at once */
#define REFUSED_AGAIN_MS 100 /* a member changed while it was to be deleted: judge it again */

/* ---- looking ---- */

/* W3. */
void pool_read_template(struct pool_pass *p)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    const char *name = pool_template_name(p->pool);
    if (pass_get(pool_env(p), &kind_sandbox_template, meta_namespace(p->pool), name, &o, &err) <
        0) {
        SCOPED_FREE char *prefix = xasprintf("failed to get sandbox template \"%s\": ", name);
        pool_note(p, prefix, &err);
        p->template_failed = true;
        return;
    }
    if (!o)
        return;
    p->template = object_tree(o);
    blueprint_init(&p->blueprint, p->template);
}

static const struct blueprint *blueprint_of(const struct pool_pass *p)
{
    return p->template ? &p->blueprint : NULL;
}

/* The version of the list that surely shows every write of this process to the pool's members. */
static struct read_version list_version(const struct pool_memory *m)
{
    if (!m->has_counted)
        return (struct read_version){.match = READ_LATEST};
    if (m->rev)
        return (struct read_version){.match = READ_AT_LEAST, .rev = m->rev};
    return (struct read_version){.match = READ_ANY};
}

int pool_list_members(struct pool_pass *p, struct list_result *ret, struct err *err)
{
    SCOPED(buf_fini) struct buf text = {0};
    pool_selector(p->pool, &text);
    struct selector *selector = NULL;
    int rc = selector_parse(buf_cstr(&text), NULL, &selector, err);
    if (rc == 0)
        rc = registry_list(pool_env(p)->registry,
                           &(struct list_request){.kind = &kind_sandbox,
                                                  .namespace_name = meta_namespace(p->pool),
                                                  .selector = selector,
                                                  .version = list_version(p->memory),
                                                  .deadline_ms = pool_now_ms(p) + PASS_TIMEOUT_MS},
                           ret, err);
    selector_free(selector);
    if (rc == 0)
        p->memory->has_counted = true;
    return rc;
}

static void compare(const struct pool_pass *p, const struct object *o, struct member *m)
{
    SCOPED(json_free_p) cJSON *sandbox = object_tree(o);
    bool equal = blueprint_equals(p->template, json_get(sandbox, "spec"));
    m->content = equal ? CONTENT_EQUAL : CONTENT_DIFFERENT;
    memcpy(m->compared_with, p->blueprint.hash, sizeof m->compared_with);
}

/* From memory when the object is still at that revision. Taken out of old. */
static struct member *member_of(const struct pool_pass *p, struct map *old, const struct object *o)
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

/* Only if the member is still what was judged: a claim that took it meanwhile keeps it. Gone
 * is success. */
static int delete_one(void *ctx, size_t i)
{
    struct pool_pass *p = ctx;
    const struct member *m = p->doomed[i];
    char rev[24];
    snprintf(rev, sizeof rev, "%" PRId64, m->rev);
    SCOPED(err_fini) struct err err = {0};
    int rc = pass_delete(pool_env(p),
                         &(struct pass_delete){.kind = &kind_sandbox,
                                               .namespace_name = meta_namespace(p->pool),
                                               .name = m->name,
                                               .uid = m->uid,
                                               .resource_version = rev},
                         &err);
    CRASH_POINT(MEMBER_DELETED);
    if (rc == 0 || rc == -ERR_NOT_FOUND)
        return 0;
    if (rc == -ERR_CONFLICT) {
        pthread_mutex_lock(&p->lock);
        pool_again(p, REFUSED_AGAIN_MS);
        pthread_mutex_unlock(&p->lock);
        return rc;
    }
    SCOPED_FREE char *prefix = xasprintf("failed to delete sandbox \"%s\": ", m->name);
    pool_note(p, prefix, &err);
    return rc;
}

/* All in p->doomed; empties it. How many went. */
size_t pool_delete_doomed(struct pool_pass *p, const char *why)
{
    size_t n = p->n_doomed;
    if (n == 0)
        return 0;
    size_t done = batch_run(&(struct batch){.count = n,
                                            .parallel = POOL_PARALLEL,
                                            .run = delete_one,
                                            .goes_on = pool_goes_on,
                                            .ctx = p},
                            NULL);
    log_info("pool members deleted pool=%s why=%s members=%zu of=%zu", p->key, why, done, n);
    p->has_deleted = true;
    p->n_doomed = 0;
    if (done > 0)
        pool_again(p, DELETED_AGAIN_MS);
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

static bool make_ours(struct pool_pass *p, const struct member *m, bool adopt)
{
    char rev[24];
    snprintf(rev, sizeof rev, "%" PRId64, m->rev);
    struct adoption adoption = {.pool = adopt ? p->pool : NULL};
    SCOPED(object_unref_p) struct object *written = NULL;
    SCOPED(err_fini) struct err err = {0};
    int rc = pass_update(pool_env(p),
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
    pool_note(p, prefix, &err);
    return false;
}

static void place(struct pool_pass *p, struct member *m)
{
    /* Nobody waits for what has failed already under the old template. */
    bool replaces = p->recreates || (p->is_mended && !m->is_ready);
    switch (member_judge(m, blueprint_of(p), replaces)) {
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
void pool_sort_out(struct pool_pass *p, const struct list_result *list)
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
    pool_members_free(old);
    pool_delete_doomed(p, "stale");
}

/* ---- members that are not ready ---- */

/* What is left of its time by its Pod; while that cannot be read the member stays. */
static int64_t pod_grace_left(struct pool_pass *p, const struct member *m, int64_t now_unix_ms)
{
    struct cluster *c = pool_env(p)->cluster;
    SCOPED(json_free_p) cJSON *pod = NULL;
    SCOPED(err_fini) struct err err = {0};
    if (c->v->get(c, CHILD_POD, meta_namespace(p->pool), m->pod_name, false, &pod, &err) < 0) {
        pool_note(p, "failed to get pod: ", &err);
        return 1;
    }
    return member_pod_grace_left_ms(pod, now_unix_ms, p->r->settings.readiness_grace_ms);
}

/* W6: members that are not ready for too long go, but for those that wait for a node. */
void pool_weed_out(struct pool_pass *p)
{
    const struct pass_env *env = pool_env(p);
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
    pool_see_stuck(p);
    p->going += (int64_t)stuck;
    pool_delete_doomed(p, "not-ready");
    if (earliest != INT64_MAX)
        pool_again(p, pool_grace_requeue_ms(earliest, (double)rand_below(env->randomness, 1000000) /
                                                          1000000));
}
