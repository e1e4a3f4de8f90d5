/* The size of a pool: members that are missing are made, those that are too many go. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "apiserver/base/crash.h"
#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/registry/bind.h"
#include "openapi/kinds.h"
#include "reconcile/batch.h"
#include "reconcile/child.h"
#include "reconcile/warmpool_state.h"

struct creation {
    struct pool_pass *pass;
    const cJSON *prototype;
    _Atomic int64_t rev; /* the highest written */
};

static int create_one(void *ctx, size_t i)
{
    (void)i;
    struct creation *c = ctx;
    SCOPED(object_unref_p) struct object *made = NULL;
    SCOPED(err_fini) struct err err = {0};
    CRASH_POINT(MEMBER_DECIDED);
    int rc = pass_create(pool_env(c->pass), &kind_sandbox, meta_namespace(c->pass->pool),
                         json_copy(c->prototype), POOL_CONTROLLER, &made, &err);
    CRASH_POINT(MEMBER_MADE);
    if (rc < 0) {
        pool_note(c->pass, "failed to create sandbox: ", &err);
        if (!pass_is_link_error(err.code))
            pool_note_refusal(c->pass, &err);
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
    return pool_goes_on(c->pass);
}

static bool claims_come(const struct pool_pass *p)
{
    return registry_bound_ago_ms(p->r->env.registry) < p->r->settings.lull_ms;
}

static int64_t create_members(struct pool_pass *p, int64_t n)
{
    SCOPED(json_free_p)
    cJSON *prototype = pool_prototype(p->pool, &p->blueprint, !p->r->settings.no_eviction);
    struct creation creation = {.pass = p, .prototype = prototype};
    size_t done =
        batch_run(&(struct batch){.count = (size_t)n,
                                  .parallel = claims_come(p) ? POOL_PARALLEL_BUSY : POOL_PARALLEL,
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
int64_t pool_fill(struct pool_pass *p)
{
    const struct warmpool_settings *s = &p->r->settings;
    int64_t current = (int64_t)p->n_active, wait_ms;
    int64_t hold_ms =
        hold_see(&p->memory->hold, current, p->desired, s->replenish_delay_ms, pool_now_ms(p));
    if (!p->template || p->has_deleted || p->errors.n || current >= p->desired)
        return 0;
    if (hold_ms) {
        pool_again(p, hold_ms);
        return 0;
    }
    int64_t deficit = pool_deficit(p->desired, current + p->going, s->max_batch);
    if (deficit == 0)
        return 0;
    wait_ms = lull_wait(&p->memory->lull, registry_bound_ago_ms(p->r->env.registry),
                        4 * p->ready < p->desired, s->lull_ms, pool_now_ms(p));
    if (wait_ms) {
        pool_again(p, wait_ms);
        return 0;
    }
    int64_t room =
        retry_room(&p->memory->retry, deficit, current - p->ready, pool_now_ms(p), &wait_ms);
    if (room == 0) {
        pool_again(p, wait_ms);
        return 0;
    }
    int64_t grant =
        bucket_take(&p->memory->bucket, room, s->max_refill_rate, pool_now_ms(p), &wait_ms);
    if (grant == 0) {
        pool_again(p, wait_ms);
        return 0;
    }
    int64_t made = create_members(p, grant);
    hold_created(&p->memory->hold, made);
    return made;
}

/* W12. How many went. */
int64_t pool_shrink(struct pool_pass *p)
{
    int64_t n = pool_excess(p->desired, (int64_t)p->n_active, p->r->settings.max_batch);
    if (n == 0 || p->has_deleted)
        return 0;
    qsort(p->active, p->n_active, sizeof(struct member *), member_compare_excess);
    p->n_doomed = (size_t)n;
    memcpy(p->doomed, p->active, p->n_doomed * sizeof(struct member *));
    for (size_t i = 0; i < p->n_doomed; i++)
        p->ready -= p->doomed[i]->is_ready;
    return (int64_t)pool_delete_doomed(p, "excess");
}
