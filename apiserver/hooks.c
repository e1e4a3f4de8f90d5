/* What layers below ask of the whole server, through tables of theirs. */
#include "apiserver/hooks.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/rand.h"
#include "apiserver/kube/namespaces.h"
#include "apiserver/registry/registry.h"
#include "openapi/kinds.h"
#include "openapi/kinds/builtin.h"
#include "storage/store.h"

/* ---- admission ---- */

static int cluster_namespace_state(void *ctx, const char *name, enum namespace_state *ret,
                                   struct err *err)
{
    struct app *a = ctx;
    bool exists, is_terminating;
    int rc = namespaces_find(a->namespaces, name, &exists, &is_terminating, err);
    if (rc == 0)
        *ret = !exists          ? NAMESPACE_ABSENT
               : is_terminating ? NAMESPACE_TERMINATING
                                : NAMESPACE_ACTIVE;
    return rc;
}

/* Where there is no cluster. The cache may be a little behind a client that has just made one. */
static int own_object(const struct app *a, const struct kind *kind, const char *namespace_name,
                      const char *name, struct object **ret, struct err *err)
{
    static const enum read_match ways[] = {READ_ANY, READ_LATEST};
    int rc = -ERR_NOT_FOUND;
    for (size_t i = 0; i < ARRAY_LEN(ways) && rc == -ERR_NOT_FOUND; i++) {
        err_fini(err);
        rc = registry_get(a->registry, kind, namespace_name, name,
                          (struct read_version){ways[i], 0}, 0, ret, err);
    }
    return rc;
}

static int own_namespace_state(void *ctx, const char *name, enum namespace_state *ret,
                               struct err *err)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err e = {0};
    int rc = own_object(ctx, &kind_namespace, "", name, &o, &e);
    if (rc < 0 && rc != -ERR_NOT_FOUND)
        return err_move(err, &e);
    *ret = !o ? NAMESPACE_ABSENT : o->is_terminating ? NAMESPACE_TERMINATING : NAMESPACE_ACTIVE;
    return 0;
}

static int own_service_account(void *ctx, const char *namespace_name, const char *name, cJSON **ret,
                               struct err *err)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    int rc = own_object(ctx, &kind_service_account, namespace_name, name, &o, err);
    if (rc == 0)
        *ret = object_tree(o);
    return rc;
}

static char *foresee(void *ctx, const struct kind *kind, const cJSON *object)
{
    return kind == &kind_sandbox_claim
               ? claim_foresee(object, &((struct app *)ctx)->binder.settings)
               : NULL;
}

struct admit_env hooks_admit_env(struct app *a)
{
    return (struct admit_env){
        .clock = &clock_system,
        .randomness = &rand_system,
        .namespace_state = a->namespaces                        ? cluster_namespace_state
                           : kind_find_by_kind("", "Namespace") ? own_namespace_state
                                                                : NULL,
        .service_account = kind_find_by_kind("", "Pod") ? own_service_account : NULL,
        .foresee = foresee,
        .ctx = a,
    };
}

/* ---- health ---- */

/* A store that hangs keeps its connections open, so it is asked; at most once a second, whoever
 * asks us, and in less time than the probe of manifests/server.yaml has. */
static bool check_store(void *ctx)
{
    enum { REMEMBERED_MS = 1000, ANSWER_MS = 1500 };
    struct app *a = ctx;
    SCOPED(err_fini) struct err err = {0};
    int64_t now_ms = clock_monotonic_ms(&clock_system), size_bytes;
    if (!registry_is_synced(a->registry))
        return false;
    if (now_ms - atomic_load(&a->store_answered_ms) < REMEMBERED_MS)
        return true;
    if (store_status(a->store, now_ms + ANSWER_MS, &size_bytes, &err) < 0)
        return false;
    atomic_store(&a->store_answered_ms, now_ms);
    return true;
}

static bool check_auth(void *ctx)
{
    return auth_is_ready(((struct app *)ctx)->auth);
}

static bool check_namespaces(void *ctx)
{
    const struct app *a = ctx;
    return !a->namespaces || namespaces_are_known(a->namespaces);
}

/* The listener is there before the files are that a server without a cluster writes. */
static bool check_startup(void *ctx)
{
    return atomic_load(&((struct app *)ctx)->is_started);
}

void hooks_checks(struct app *a)
{
    const struct health_check checks[] = {
        {.name = "etcd", .ok = check_store, .ctx = a, .is_ready_only = true},
        {.name = "informer-sync", .ok = check_namespaces, .ctx = a, .is_ready_only = true},
        {.name = "authentication", .ok = check_auth, .ctx = a, .is_ready_only = true},
        {.name = "startup", .ok = check_startup, .ctx = a, .is_ready_only = true},
        {0},
    };
    static_assert(sizeof checks == sizeof a->checks);
    memcpy(a->checks, checks, sizeof checks);
}
