#include "reconcile/warmpool_pass.h"

#include <stdlib.h>

#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "reconcile/child.h"
#include "reconcile/warmpool_state.h"

static int run(struct pool_pass *p)
{
    SCOPED(list_result_fini) struct list_result list = {0};
    SCOPED(err_fini) struct err err = {0};
    pool_read_template(p);
    pool_see_template(p);
    int rc = pool_list_members(p, &list, &err);
    if (rc < 0) {
        log_debug("members of a pool cannot be listed pool=%s: %s", p->key, err_text(&err));
        return rc;
    }
    pool_sort_out(p, &list);
    pool_weed_out(p);
    bool is_counted = p->errors.n == 0; /* else some member is of unknown kind */
    int64_t current = (int64_t)p->n_active;
    int64_t made = pool_fill(p);
    int64_t gone = pool_shrink(p);
    pool_tell_progress(p);
    pool_tell_missing(p);
    if (p->errors.n)
        log_warn("pass failed pool=%s, trying again: %s", p->key, buf_cstr(&p->errors.text));
    if (is_counted)
        rc = pool_write_status(
            p, &(struct pool_counts){.replicas = current + made - gone, .ready = p->ready});
    return p->errors.n ? -1 : rc;
}

static void pass_fini(struct pool_pass *p)
{
    json_free(p->pool);
    json_free(p->template);
    free(p->active);
    free(p->doomed);
    trouble_fini(&p->refusal);
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
        pool_forget(r, key);
        return 0;
    }
    SCOPED(pass_fini)
    struct pool_pass p = {.r = r,
                          .memory = pool_recall(r, key, object->uid),
                          .key = key,
                          .pool = object_tree(object)};
    pthread_mutex_init(&p.lock, NULL);
    p.desired = pool_desired(p.pool);
    p.recreates = pool_recreates(p.pool);
    rc = run(&p);
    ret->again_after_ms = p.again_after_ms;
    ret->own_rev = p.own_rev;
    return rc;
}
