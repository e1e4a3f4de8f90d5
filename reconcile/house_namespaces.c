/* Namespaces: a default ServiceAccount and the server's authority as long as they are there; on
 * their way out they are emptied, and say what is left. Source: the Kubernetes API reference,
 * NamespaceCondition. */
#include <inttypes.h>
#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "openapi/kinds/builtin.h"
#include "reconcile/condition.h"
#include "reconcile/house_pass.h"
#include "reconcile/peek.h"

#define EMPTYING_MS 500 /* between looks at one that is not empty yet */

int house_forgive_ending(int rc, struct err *e, struct err *err)
{
    bool is_fine = rc == -ERR_NOT_FOUND || rc == -ERR_FORBIDDEN;
    if (is_fine)
        err_fini(e);
    return rc < 0 && !is_fine ? err_move(err, e) : 0;
}

static int ensure_account(const struct pass_env *env, const char *namespace_name, struct err *err)
{
    struct err e = {0};
    int rc = pass_ensure(env, &kind_service_account, namespace_name,
                         house_named("v1", "ServiceAccount", "default"), HOUSE_MANAGER, &e);
    return house_forgive_ending(rc, &e, err);
}

static bool set_authority(void *authority, cJSON *map)
{
    SCOPED(json_free_p) cJSON *data = json_object();
    json_set_str(data, "ca.crt", authority);
    if (json_equal(json_get(map, "data"), data))
        return false;
    json_set(map, "data", steal(&data));
    return true;
}

/* What Pods trust the server by; nobody else may say what is in it. */
static int ensure_authority(const struct pass_env *env, const char *namespace_name, char *authority,
                            struct err *err)
{
    SCOPED(object_unref_p) struct object *present = NULL;
    struct err e = {0};
    int rc = pass_get(env, &kind_config_map, namespace_name, KUBE_ROOT_CA, &present, err);
    if (rc < 0)
        return rc;
    if (present)
        return house_forgive(house_change(env, present, set_authority, authority, err), err);
    cJSON *map = house_named("v1", "ConfigMap", KUBE_ROOT_CA);
    set_authority(authority, map);
    rc = pass_ensure(env, &kind_config_map, namespace_name, map, HOUSE_MANAGER, &e);
    return house_forgive_ending(rc, &e, err);
}

/* ---- what is left ---- */

struct remains { /* remains_fini */
    size_t n;
    struct buf kinds;        /* pods. has 2 resource instances, ... */
    struct omap *finalizers; /* name -> how many objects have it */
};

static void remains_fini(struct remains *r)
{
    buf_fini(&r->kinds);
    omap_free(r->finalizers);
}

static void note_finalizers(struct remains *r, const struct object *o)
{
    SCOPED(json_free_p) cJSON *finalizers = object_peek(o, "metadata", "finalizers");
    const cJSON *f;
    cJSON_ArrayForEach(f, finalizers)
    {
        uintptr_t n = (uintptr_t)omap_get(r->finalizers, f->valuestring);
        omap_put(r->finalizers, f->valuestring, (void *)(n + 1));
    }
}

/* Deletes what is left of one kind. */
static int empty_kind(const struct pass_env *env, const struct kind *kind,
                      const char *namespace_name, struct remains *r, struct err *err)
{
    SCOPED(list_result_fini) struct list_result found = {0};
    const struct list_request list = {.kind = kind,
                                      .namespace_name = namespace_name,
                                      .version = {READ_LATEST, 0},
                                      .deadline_ms = house_deadline(env)};
    int rc = registry_list(env->registry, &list, &found, err);
    if (rc == 0 && found.n > 0)
        buf_printf(&r->kinds, "%s%s.%s has %zu resource instances", r->n > 0 ? ", " : "",
                   kind->plural, kind->group, found.n);
    for (size_t i = 0; rc == 0 && i < found.n; i++) {
        const struct object *o = found.objects[i];
        struct pass_delete del = {.kind = kind,
                                  .namespace_name = namespace_name,
                                  .name = o->name,
                                  .uid = o->uid,
                                  .propagation = "Background"};
        r->n++;
        note_finalizers(r, o);
        if (o->is_terminating)
            continue;
        rc = house_forgive(pass_delete(env, &del, err), err);
    }
    return rc;
}

static bool print_finalizer(void *ctx, const char *name, void *n)
{
    struct buf *out = ctx;
    buf_printf(out, "%s%s in %" PRIuPTR " resource instances", out->len > 0 ? ", " : "", name,
               (uintptr_t)n);
    return true;
}

struct told {
    const struct clock *clock;
    const char *content, *finalizers; /* messages; "" = there is none */
};

static void tell_one(const struct told *t, cJSON *conditions, const char *type, const char *reason,
                     const char *before, const char *message)
{
    SCOPED_FREE char *text = xasprintf("%s%s", before, message);
    condition_set(
        conditions,
        &(struct condition){.type = type, .status = "True", .reason = reason, .message = text},
        clock_unix_s(t->clock));
}

static bool tell(void *ctx, cJSON *namespace)
{
    const struct told *t = ctx;
    cJSON *status = condition_status_copy(namespace), *conditions = json_get(status, "conditions");
    tell_one(t, conditions, "NamespaceContentRemaining", "SomeResourcesRemain",
             "Some resources are remaining: ", t->content);
    if (*t->finalizers)
        tell_one(t, conditions, "NamespaceFinalizersRemaining", "SomeFinalizersRemain",
                 "Some content in the namespace has finalizers remaining: ", t->finalizers);
    bool is_new = !json_equal(status, json_get(namespace, "status"));
    json_set(namespace, "status", status);
    return is_new;
}

static int tell_remains(const struct pass_env *env, const struct object *o, const struct remains *r,
                        struct err *err)
{
    SCOPED(buf_fini) struct buf finalizers = {0};
    omap_each(r->finalizers, NULL, print_finalizer, &finalizers);
    struct told told = {env->clock, buf_cstr(&r->kinds), buf_cstr(&finalizers)};
    return house_change(env, o, tell, &told, err);
}

/* ---- the pass ---- */

static bool release(void *ctx, cJSON *namespace)
{
    (void)ctx;
    return json_remove_str(json_at(namespace, "spec.finalizers"), "kubernetes");
}

static int empty(const struct pass_env *env, const struct object *o, struct loop_result *ret,
                 struct err *err)
{
    SCOPED(remains_fini) struct remains r = {.finalizers = omap_new()};
    int rc = 0;
    for (const struct kind *const *k = kinds_served; *k && rc == 0; k++)
        if (!(*k)->is_cluster_scoped && !(*k)->is_review && !(*k)->stored_as)
            rc = empty_kind(env, *k, o->name, &r, err);
    if (rc < 0)
        return rc;
    if (r.n > 0) {
        ret->again_after_ms = EMPTYING_MS;
        return tell_remains(env, o, &r, err);
    }
    rc = house_change(env, o, release, NULL, err);
    if (rc == 0)
        log_info("namespace emptied namespace=%s", o->name);
    return rc;
}

int house_namespace_pass(const struct pass_env *env, char *authority, const char *name,
                         struct loop_result *ret, struct err *err)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    int rc = pass_get(env, &kind_namespace, "", name, &o, err);
    if (rc < 0 || !o)
        return rc;
    if (o->is_terminating)
        return empty(env, o, ret, err);
    rc = ensure_account(env, name, err);
    return rc == 0 && authority ? ensure_authority(env, name, authority, err) : rc;
}
