#include "reconcile/claim_wake.h"

#include "apiserver/base/json.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "reconcile/peek.h"

struct claim { /* its key in by_pool is NAMESPACE/POOL/NAME */
    char *pool_key, *key;
    bool is_bound, is_terminating;
};
struct pool {
    int64_t generation;
    char *template;
};
struct claim_wake {
    void (*wake)(void *ctx, const char *key);
    void *ctx;
    struct map *claims;    /* by NAMESPACE/NAME */
    struct omap *by_pool;  /* the same */
    struct omap *pools;    /* by NAMESPACE/NAME */
    struct map *templates; /* by NAMESPACE/NAME, those that exist; values mean nothing */
};

struct claim_wake *claim_wake_new(void (*wake)(void *ctx, const char *key), void *ctx)
{
    struct claim_wake *w = xcalloc(1, sizeof *w);
    *w = (struct claim_wake){wake, ctx, map_new(), omap_new(), omap_new(), map_new()};
    return w;
}

static char *key_of(const struct object *o)
{
    return xasprintf("%s/%s", o->namespace_name, o->name);
}

/* ---- claims ---- */

static void claim_free(struct claim *c)
{
    if (!c)
        return;
    free(c->pool_key);
    free(c->key);
    free(c);
}

static struct claim *claim_of(const struct object *o)
{
    SCOPED(json_free_p) cJSON *pool = object_peek(o, "spec", "warmPoolRef");
    SCOPED(json_free_p) cJSON *sandbox = object_peek(o, "status", "sandbox");
    struct claim *c = xcalloc(1, sizeof *c);
    c->key = key_of(o);
    c->pool_key = xasprintf("%s/%s/%s", o->namespace_name, json_str_or(pool, "name", ""), o->name);
    c->is_bound = *json_str_or(sandbox, "name", "") != '\0';
    c->is_terminating = o->is_terminating;
    return c;
}

static void note_claim(struct claim_wake *w, const struct object *o, bool is_delete)
{
    SCOPED_FREE char *key = key_of(o);
    struct claim *old = map_del(w->claims, key);
    if (old)
        omap_del(w->by_pool, old->pool_key);
    claim_free(old);
    if (is_delete)
        return;
    struct claim *c = claim_of(o);
    map_put(w->claims, c->key, c);
    omap_put(w->by_pool, c->pool_key, c);
}

enum which { UNBOUND, BOUND, ALL };
struct walk {
    struct claim_wake *w;
    const char *prefix;
    enum which which;
    const char *template; /* walk over pools: those that name it, or */
    bool names_another;   /* those that do not */
};

static bool wake_each(void *ctx, const char *key, void *value)
{
    const struct walk *walk = ctx;
    const struct claim *c = value;
    if (!str_has_prefix(key, walk->prefix))
        return false;
    if (!c->is_terminating && (walk->which == ALL || c->is_bound == (walk->which == BOUND)))
        walk->w->wake(walk->w->ctx, c->key);
    return true;
}

static void wake_claims_of(struct claim_wake *w, const char *pool_key, enum which which)
{
    SCOPED_FREE char *prefix = xasprintf("%s/", pool_key);
    struct walk walk = {.w = w, .prefix = prefix, .which = which};
    omap_each(w->by_pool, prefix, wake_each, &walk);
}

/* ---- pools ---- */

static void pool_free(struct pool *p)
{
    if (!p)
        return;
    free(p->template);
    free(p);
}

static struct pool *pool_of(const struct object *o)
{
    SCOPED(json_free_p) cJSON *generation = object_peek(o, "metadata", "generation");
    SCOPED(json_free_p) cJSON *template = object_peek(o, "spec", "sandboxTemplateRef");
    struct pool *p = xcalloc(1, sizeof *p);
    if (json_node_i64(generation, &p->generation) < 0)
        p->generation = 0;
    p->template = xstrdup(json_str_or(template, "name", ""));
    return p;
}

/* The pool's own status writes are no news for claims. */
static void note_pool(struct claim_wake *w, const struct object *o, bool is_delete)
{
    SCOPED_FREE char *key = key_of(o);
    struct pool *now = is_delete ? NULL : pool_of(o);
    struct pool *old = now ? omap_put(w->pools, key, now) : omap_del(w->pools, key);
    if (!old || !now || old->generation != now->generation)
        wake_claims_of(w, key, UNBOUND);
    pool_free(old);
}

/* ---- templates ---- */

static bool wake_pool(void *ctx, const char *key, void *value)
{
    const struct walk *walk = ctx;
    const struct pool *pool = value;
    if (!str_has_prefix(key, walk->prefix))
        return false;
    if (str_equal(pool->template, walk->template) != walk->names_another)
        wake_claims_of(walk->w, key, walk->which);
    return true;
}

/* Its coming, for the claims of the pools that name it; its going, for bound ones of other pools,
 * whose Sandbox may be made from it. Edits reach bound claims with their own next pass. */
static void note_template(struct claim_wake *w, const struct object *o, bool is_delete)
{
    static char present[] = "";
    SCOPED_FREE char *key = key_of(o);
    if (is_delete)
        map_del(w->templates, key);
    else if (map_put(w->templates, key, present))
        return;
    SCOPED_FREE char *prefix = xasprintf("%s/", o->namespace_name);
    struct walk walk = {.w = w,
                        .prefix = prefix,
                        .which = is_delete ? BOUND : ALL,
                        .template = o->name,
                        .names_another = is_delete};
    omap_each(w->pools, prefix, wake_pool, &walk);
}

void claim_wake_note(struct claim_wake *w, const struct object *o, bool is_delete)
{
    if (o->kind == &kind_sandbox_claim)
        note_claim(w, o, is_delete);
    else if (o->kind == &kind_sandbox_warm_pool)
        note_pool(w, o, is_delete);
    else if (o->kind == &kind_sandbox_template)
        note_template(w, o, is_delete);
}

/* ---- forgetting ---- */

static bool drop_claim(void *ctx, const char *key, void *value)
{
    (void)ctx, (void)key;
    claim_free(value);
    return true;
}

static bool drop_pool(void *ctx, const char *key, void *value)
{
    (void)ctx, (void)key;
    pool_free(value);
    return true;
}

static void drop_claims(struct claim_wake *w)
{
    map_each(w->claims, drop_claim, NULL);
    map_free(w->claims);
    omap_free(w->by_pool);
}

static void drop_pools(struct claim_wake *w)
{
    omap_each(w->pools, NULL, drop_pool, NULL);
    omap_free(w->pools);
}

void claim_wake_reset(struct claim_wake *w, const struct kind *kind)
{
    if (kind == &kind_sandbox_claim) {
        drop_claims(w);
        w->claims = map_new();
        w->by_pool = omap_new();
    } else if (kind == &kind_sandbox_warm_pool) {
        drop_pools(w);
        w->pools = omap_new();
    } else if (kind == &kind_sandbox_template) {
        map_free(w->templates);
        w->templates = map_new();
    }
}

void claim_wake_free(struct claim_wake *w)
{
    if (!w)
        return;
    drop_claims(w);
    drop_pools(w);
    map_free(w->templates);
    free(w);
}
