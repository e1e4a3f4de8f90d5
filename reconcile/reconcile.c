/* One row a controller says what it is: its kind, how many work, how its state is made and its
 * pass. Who else has to look when an object changes is a second table. The rest of this file knows
 * neither. */
#include "reconcile/reconcile.h"

#include <stddef.h>
#include <stdlib.h>

#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "reconcile/claim_wake.h"
#include "reconcile/cluster_kube.h"
#include "reconcile/feed.h"
#include "reconcile/owner_wake.h"
#include "reconcile/template_pass.h"
#include "reconcile/warmpool_wake.h"

/* ---- the controllers ---- */

struct controller {
    const char *name; /* of its queue, for the log and metrics */
    const struct kind *kind;
    size_t workers_at; /* int in struct reconcile_config */
    int workers;       /* when that is 0 */
    void *(*new)(const struct reconcile_config *config, const struct pass_env *env);
    loop_work_fn pass; /* its ctx is what new returned */
    void (*free)(void *state);
};

static void *new_sandbox(const struct reconcile_config *config, const struct pass_env *env)
{
    return sandbox_reconciler_new(&(struct sandbox_reconciler_config){
        .env = *env,
        .cluster_domain = config->cluster_domain,
        .no_events = config->no_sandbox_events,
        .detailed_reasons = config->detailed_reasons,
    });
}

static void free_sandbox(void *state)
{
    sandbox_reconciler_free(state);
}

static void *new_claim(const struct reconcile_config *config, const struct pass_env *env)
{
    return claim_reconciler_new(&(struct claim_reconciler_config){
        .env = *env,
        .settings = config->claim,
        .no_events = config->no_claim_events,
    });
}

static void free_claim(void *state)
{
    claim_reconciler_free(state);
}

static void *new_template(const struct reconcile_config *config, const struct pass_env *env)
{
    struct template_reconciler r = {.env = *env, .settings = config->template};
    return xmemdup(&r, sizeof r);
}

static void *new_warm_pool(const struct reconcile_config *config, const struct pass_env *env)
{
    return warmpool_reconciler_new(env, &config->warm_pool);
}

static void free_warm_pool(void *state)
{
    warmpool_reconciler_free(state);
}

static const struct controller controllers[] = {
    {"sandbox", &kind_sandbox, offsetof(struct reconcile_config, sandbox_workers), 20, new_sandbox,
     sandbox_pass, free_sandbox},
    {"sandboxclaim", &kind_sandbox_claim, offsetof(struct reconcile_config, claim_workers), 50,
     new_claim, claim_pass, free_claim},
    {"sandboxtemplate", &kind_sandbox_template, offsetof(struct reconcile_config, template_workers),
     1, new_template, template_pass, free},
    {"sandboxwarmpool", &kind_sandbox_warm_pool,
     offsetof(struct reconcile_config, warm_pool_workers), 1, new_warm_pool, warmpool_pass,
     free_warm_pool},
};
static const struct kind *const watched[] = {&kind_sandbox, &kind_sandbox_claim,
                                             &kind_sandbox_template, &kind_sandbox_warm_pool, NULL};

/* ---- state ---- */

struct running {
    const struct controller *row;
    void *state;
    struct loop *loop;
};

struct reconcile {
    struct reconcile_config config;
    struct cluster *cluster;
    struct running running[ARRAY_LEN(controllers)];
    struct owner_wake *owner_wake; /* both of the feed's thread */
    struct claim_wake *claim_wake;
    struct feed *feed;
    bool is_running; /* of whoever starts and stops */
};

struct reconcile *reconcile_new(const struct reconcile_config *config)
{
    struct reconcile *r = xcalloc(1, sizeof *r);
    r->config = *config;
    return r;
}

void reconcile_free(struct reconcile *r)
{
    if (!r)
        return;
    reconcile_stop(r);
    free(r);
}

/* ---- who has to look when an object of ours changes ---- */

static void enqueue(struct reconcile *r, size_t controller, const char *key)
{
    loop_add(r->running[controller].loop, key);
}

static size_t controller_of_kind(const struct kind *kind) /* has one */
{
    size_t i = 0;
    while (controllers[i].kind != kind)
        i++;
    return i;
}

static void wake_owner(void *ctx, const struct kind *kind, const char *key)
{
    enqueue(ctx, controller_of_kind(kind), key);
}

static void tell_owners(struct reconcile *r, const struct object *sandbox, bool is_delete)
{
    owner_wake_note(r->owner_wake, sandbox, is_delete);
}

static void wake_pool(void *ctx, const char *key)
{
    enqueue(ctx, controller_of_kind(&kind_sandbox_warm_pool), key);
}

static void tell_pools(struct reconcile *r, const struct object *template, bool is_delete)
{
    (void)is_delete;
    warmpool_wake_note(r->config.registry, template, wake_pool, r);
}

static void tell_claims(struct reconcile *r, const struct object *o, bool is_delete)
{
    claim_wake_note(r->claim_wake, o, is_delete);
}

static void wake_claim(void *ctx, const char *key)
{
    enqueue(ctx, controller_of_kind(&kind_sandbox_claim), key);
}

static const struct link {
    const struct kind *kind;
    void (*tell)(struct reconcile *r, const struct object *o, bool is_delete);
} links[] = {
    {&kind_sandbox, tell_owners},           {&kind_sandbox_template, tell_pools},
    {&kind_sandbox_claim, tell_claims},     {&kind_sandbox_template, tell_claims},
    {&kind_sandbox_warm_pool, tell_claims},
};

static void on_object(void *ctx, const struct object *o, bool is_delete)
{
    struct reconcile *r = ctx;
    SCOPED_FREE char *key = pass_key(o->namespace_name, o->name);
    for (size_t i = 0; i < ARRAY_LEN(controllers); i++) {
        if (controllers[i].kind == o->kind)
            loop_add_change(r->running[i].loop, key, o->rev);
    }
    for (size_t i = 0; i < ARRAY_LEN(links); i++) {
        if (links[i].kind == o->kind)
            links[i].tell(r, o, is_delete);
    }
}

static void on_gap(void *ctx, const struct kind *kind)
{
    struct reconcile *r = ctx;
    claim_wake_reset(r->claim_wake, kind);
    if (kind == &kind_sandbox)
        owner_wake_reset(r->owner_wake);
}

/* ---- children in the cluster ---- */

static void on_child(void *ctx, const char *owner_kind, const char *namespace_name,
                     const char *owner_name)
{
    struct reconcile *r = ctx;
    SCOPED_FREE char *key = pass_key(namespace_name, owner_name);
    for (size_t i = 0; i < ARRAY_LEN(controllers); i++) {
        if (str_equal(controllers[i].kind->kind, owner_kind))
            enqueue(r, i, key);
    }
}

/* ---- life ---- */

static bool is_ready(void *ctx)
{
    const struct reconcile *r = ctx;
    return cluster_kube_is_synced(r->cluster);
}

/* Passes begin only when the cluster's caches are there: an empty cache would look like a cluster
 * without Pods. */
static void on_begin(void *ctx)
{
    struct reconcile *r = ctx;
    for (size_t i = 0; i < ARRAY_LEN(controllers); i++)
        loop_start(r->running[i].loop);
}

static int work(void *ctx, const char *key, struct loop_result *ret)
{
    const struct running *x = ctx;
    return x->row->pass(x->state, key, ret);
}

static int workers_of(const struct reconcile_config *config, const struct controller *row)
{
    int n;
    memcpy(&n, (const char *)config + row->workers_at, sizeof n);
    return n > 0 ? n : row->workers;
}

/* The cluster feeds the queues from its first moment; workers begin later, in on_begin. */
static void make_loops(struct reconcile *r)
{
    for (size_t i = 0; i < ARRAY_LEN(controllers); i++) {
        struct running *x = &r->running[i];
        x->row = &controllers[i];
        x->loop = loop_new(&(struct loop_config){
            .name = x->row->name,
            .workers = workers_of(&r->config, x->row),
            .clock = r->config.clock,
            .work = work,
            .ctx = x,
        });
    }
}

void reconcile_start(struct reconcile *r)
{
    const struct reconcile_config *c = &r->config;
    if (r->is_running)
        return;
    r->is_running = true;
    make_loops(r);
    r->owner_wake = owner_wake_new(wake_owner, r);
    r->claim_wake = claim_wake_new(wake_claim, r);
    r->cluster = cluster_kube_new(
        &(struct cluster_kube_config){.kube = c->kube, .on_child = on_child, .ctx = r});
    struct pass_env env = {.registry = c->registry,
                           .cluster = r->cluster,
                           .clock = c->clock,
                           .randomness = c->randomness,
                           .fence = c->fence,
                           .ctx = c->ctx};
    for (size_t i = 0; i < ARRAY_LEN(controllers); i++)
        r->running[i].state = controllers[i].new(c, &env);
    r->feed = feed_start(&(struct feed_config){.registry = c->registry,
                                               .clock = c->clock,
                                               .kinds = watched,
                                               .is_ready = is_ready,
                                               .on_begin = on_begin,
                                               .on_object = on_object,
                                               .on_gap = on_gap,
                                               .ctx = r});
    log_info("reconciler started");
}

void reconcile_stop(struct reconcile *r)
{
    if (!r->is_running)
        return;
    feed_stop(r->feed);
    for (size_t i = 0; i < ARRAY_LEN(controllers); i++)
        loop_stop(r->running[i].loop);
    r->cluster->v->free(r->cluster);
    for (size_t i = 0; i < ARRAY_LEN(controllers); i++) {
        controllers[i].free(r->running[i].state);
        loop_free(r->running[i].loop);
    }
    owner_wake_free(r->owner_wake);
    claim_wake_free(r->claim_wake);
    r->is_running = false;
    log_info("reconciler stopped");
}
