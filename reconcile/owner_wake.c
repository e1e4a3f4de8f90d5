#include "reconcile/owner_wake.h"

#include <stdlib.h>

#include "apiserver/base/json.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "reconcile/child.h"
#include "reconcile/pass.h"
#include "reconcile/peek.h"

struct owner {
    const struct kind *kind;
    char *key;
};

struct owner_wake {
    void (*wake)(void *ctx, const struct kind *kind, const char *key);
    void *ctx;
    struct map *owners; /* NAMESPACE/NAME of a Sandbox -> struct owner */
};

static void owner_free(struct owner *o)
{
    if (!o)
        return;
    free(o->key);
    free(o);
}

/* NULL when it is none of ours. ref may be NULL. */
static const struct kind *kind_of(const cJSON *ref)
{
    for (size_t i = 0; kinds_all[i]; i++) {
        if (owner_is_kind(ref, kinds_all[i]->group, kinds_all[i]->kind))
            return kinds_all[i];
    }
    return NULL;
}

/* NULL when nothing of ours controls it. */
static struct owner *owner_of(const struct object *sandbox)
{
    SCOPED(json_free_p) cJSON *refs = object_peek(sandbox, "metadata", "ownerReferences");
    const cJSON *ref = owner_reference_that_controls(refs);
    const struct kind *kind = kind_of(ref);
    if (!kind)
        return NULL;
    struct owner *o = xcalloc(1, sizeof *o);
    o->kind = kind;
    o->key = pass_key(sandbox->namespace_name, json_str_or(ref, "name", ""));
    return o;
}

static bool same_owner(const struct owner *a, const struct owner *b)
{
    return a && b && a->kind == b->kind && str_equal(a->key, b->key);
}

void owner_wake_note(struct owner_wake *w, const struct object *sandbox, bool is_delete)
{
    SCOPED_FREE char *key = pass_key(sandbox->namespace_name, sandbox->name);
    struct owner *now = owner_of(sandbox), *before;
    if (now)
        w->wake(w->ctx, now->kind, now->key);
    bool is_kept = now && !is_delete;
    before = is_kept ? map_put(w->owners, key, now) : map_del(w->owners, key);
    if (before && !same_owner(before, now))
        w->wake(w->ctx, before->kind, before->key);
    owner_free(before);
    if (!is_kept)
        owner_free(now);
}

static bool wake_each(void *ctx, const char *key, void *value)
{
    (void)key;
    const struct owner_wake *w = ctx;
    const struct owner *owner = value;
    w->wake(w->ctx, owner->kind, owner->key);
    return true;
}

static bool free_each(void *ctx, const char *key, void *value)
{
    (void)ctx;
    (void)key;
    owner_free(value);
    return true;
}

void owner_wake_reset(struct owner_wake *w)
{
    map_each(w->owners, wake_each, w);
    map_each(w->owners, free_each, NULL);
    map_free(w->owners);
    w->owners = map_new();
}

struct owner_wake *owner_wake_new(void (*wake)(void *ctx, const struct kind *kind, const char *key),
                                  void *ctx)
{
    struct owner_wake *w = xcalloc(1, sizeof *w);
    w->wake = wake;
    w->ctx = ctx;
    w->owners = map_new();
    return w;
}

void owner_wake_free(struct owner_wake *w)
{
    if (!w)
        return;
    map_each(w->owners, free_each, NULL);
    map_free(w->owners);
    free(w);
}
