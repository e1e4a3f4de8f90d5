#include "reconcile/pass.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apiserver/base/crash.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "reconcile/child.h"

/* ---- keys ---- */

char *pass_key(const char *namespace_name, const char *name)
{
    return xasprintf("%s/%s", namespace_name, name);
}

const char *pass_key_split(const char *key, char **ret_namespace)
{
    const char *slash = strchr(key, '/');
    *ret_namespace = xstrndup(key, (size_t)(slash - key));
    return slash + 1;
}

/* ---- objects ---- */

static int64_t deadline_of(const struct pass_env *env)
{
    return clock_monotonic_ms(env->clock) + PASS_TIMEOUT_MS;
}

/* *ret points to space or is NULL; -ERR_CANCELLED when this process does not lead. */
static int fence_of(const struct pass_env *env, struct store_compare *space,
                    const struct store_compare **ret, struct err *err)
{
    *ret = NULL;
    if (!env->fence)
        return 0;
    if (!env->fence(env->ctx, space))
        return err_set(err, ERR_CANCELLED, "this process does not lead");
    *ret = space;
    return 0;
}

bool pass_leads(const struct pass_env *env)
{
    struct store_compare space;
    return !env->fence || env->fence(env->ctx, &space);
}

int pass_get(const struct pass_env *env, const struct kind *kind, const char *namespace_name,
             const char *name, struct object **ret, struct err *err)
{
    struct err e = {0};
    *ret = NULL;
    int rc = registry_get(env->registry, kind, namespace_name, name,
                          (struct read_version){.match = READ_ANY}, deadline_of(env), ret, &e);
    if (rc == -ERR_NOT_FOUND) {
        err_fini(&e);
        *ret = NULL;
        return 0;
    }
    return rc < 0 ? err_move(err, &e) : 0;
}

/* What a write gave back, to a caller that may not want it. */
static void hand_on(struct object *written, struct object **ret)
{
    if (ret)
        *ret = written;
    else
        object_unref(written);
}

int pass_create(const struct pass_env *env, const struct kind *kind, const char *namespace_name,
                cJSON *take_object, const char *field_manager, struct object **ret, struct err *err)
{
    struct store_compare compare;
    const struct store_compare *fence;
    if (fence_of(env, &compare, &fence, err) < 0) {
        json_free(take_object);
        return -(int)ERR_CANCELLED;
    }
    struct object *written = NULL;
    int rc = registry_create(env->registry, kind, namespace_name, take_object,
                             &(struct write_options){.is_system = true,
                                                     .field_manager = field_manager,
                                                     .fence = fence,
                                                     .deadline_ms = deadline_of(env)},
                             &written, err);
    if (rc == 0)
        hand_on(written, ret);
    return rc;
}

int pass_ensure(const struct pass_env *env, const struct kind *kind, const char *namespace_name,
                cJSON *take_object, const char *field_manager, struct err *err)
{
    SCOPED(json_free_p) cJSON *object = take_object;
    SCOPED(object_unref_p) struct object *present = NULL;
    struct err e = {0};
    int rc = pass_get(env, kind, namespace_name, json_str_or(object, "metadata.name", ""), &present,
                      err);
    if (rc < 0 || present)
        return rc;
    rc = pass_create(env, kind, namespace_name, steal(&object), field_manager, NULL, &e);
    if (rc == -ERR_ALREADY_EXISTS) { /* the cache did not know it yet */
        err_fini(&e);
        return 0;
    }
    return rc < 0 ? err_move(err, &e) : 0;
}

static int apply(void *ctx, const cJSON *old, cJSON **ret, struct err *err)
{
    const struct pass_update *u = ctx;
    if (u->uid && !str_equal(meta_uid(old), u->uid))
        return err_set(err, ERR_NOT_FOUND, "the object was made anew meanwhile");
    if (u->resource_version &&
        !str_equal(json_str(old, "metadata.resourceVersion"), u->resource_version))
        return err_set(err, ERR_CONFLICT, "the object was changed meanwhile");
    SCOPED(json_free_p) cJSON *new = json_copy(old);
    *ret = u->change(u->ctx, new) ? steal(&new) : json_copy(old);
    return 0;
}

int pass_update(const struct pass_env *env, const struct pass_update *update, struct object **ret,
                struct err *err)
{
    struct store_compare compare;
    const struct store_compare *fence;
    if (fence_of(env, &compare, &fence, err) < 0)
        return -(int)ERR_CANCELLED;
    struct pass_update copy = *update;
    struct object *written = NULL;
    int rc = registry_update(env->registry,
                             &(struct update_request){.kind = update->kind,
                                                      .namespace_name = update->namespace_name,
                                                      .name = update->name,
                                                      .change = apply,
                                                      .ctx = &copy},
                             &(struct write_options){.is_system = true,
                                                     .field_manager = update->field_manager,
                                                     .fence = fence,
                                                     .deadline_ms = deadline_of(env)},
                             &written, err);
    if (rc == 0)
        hand_on(written, ret);
    return rc;
}

int pass_delete(const struct pass_env *env, const struct pass_delete *del, struct err *err)
{
    struct store_compare compare;
    const struct store_compare *fence;
    if (fence_of(env, &compare, &fence, err) < 0)
        return -(int)ERR_CANCELLED;
    SCOPED(object_unref_p) struct object *last = NULL;
    bool is_deleted;
    return registry_delete(env->registry, del->kind, del->namespace_name, del->name,
                           &(struct delete_options){.uid = del->uid,
                                                    .resource_version = del->resource_version,
                                                    .propagation = del->propagation,
                                                    .reason = del->reason,
                                                    .orphan_dependents = -1,
                                                    .fence = fence,
                                                    .deadline_ms = deadline_of(env)},
                           &last, &is_deleted, err);
}

/* ---- children ---- */

static int carry_out(const struct pass_env *env, enum child child, const char *namespace_name,
                     const struct step *s, cJSON **ret, struct err *err)
{
    struct cluster *c = env->cluster;
    *ret = NULL;
    switch (s->verb) {
    case STEP_CREATE:
        return c->v->create(c, child, namespace_name, s->body, ret, err);
    case STEP_PATCH:
        return c->v->patch(c, child, namespace_name, meta_name(s->on), s->body, ret, err);
    case STEP_UPDATE:
        return c->v->update(c, child, namespace_name, meta_name(s->on), s->body, ret, err);
    case STEP_DELETE:
        return c->v->del(c, child, namespace_name, meta_name(s->on), meta_uid(s->on), err);
    case STEP_REFUSE:
        return err_set(err, ERR_CONFLICT, "%s", s->error);
    case STEP_KEEP:
        *ret = json_copy(s->on);
        return 0;
    }
    return 0;
}

int pass_carry_out(const struct pass_env *env, enum child child, const char *namespace_name,
                   const struct step *s, cJSON **ret, struct err *err)
{
    bool is_removal = s->verb == STEP_DELETE;
    bool is_write = s->verb == STEP_CREATE || s->verb == STEP_PATCH || s->verb == STEP_UPDATE;
    if (is_removal)
        CRASH_POINT(CHILD_REMOVAL_DECIDED);
    if (is_write)
        CRASH_POINT(CHILD_DECIDED);
    int rc = carry_out(env, child, namespace_name, s, ret, err);
    if (is_removal)
        CRASH_POINT(CHILD_REMOVED);
    if (is_write)
        CRASH_POINT(CHILD_WRITTEN);
    return rc;
}

/* ---- events ---- */

static char instance[256]; /* host name: who reports */

static void find_instance(void)
{
    if (gethostname(instance, sizeof instance - 1) < 0 || !*instance)
        memcpy(instance, "unknown", sizeof "unknown");
}

/* Two events of one millisecond keep their order: readers sort by time. */
static int64_t event_time_us(const struct clock *clock)
{
    static _Atomic int64_t last;
    int64_t now = clock_unix_ms(clock) * 1000, before = atomic_load(&last), next;
    do
        next = now > before || before - now >= 1000 ? now : before + 1;
    while (!atomic_compare_exchange_weak(&last, &before, next));
    return next;
}

void pass_tell(const struct pass_env *env, const cJSON *regarding, const struct event_text *text,
               const char *controller)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_instance);
    cJSON *event = event_make(regarding, text, controller, instance, event_time_us(env->clock),
                              env->randomness);
    env->cluster->v->emit(env->cluster, meta_namespace(regarding), event);
}

/* ---- errors ---- */

void pass_errors_add(struct pass_errors *e, const char *prefix, const char *text)
{
    buf_printf(&e->text, "%s%s%s", e->n++ ? "\n" : "", prefix, text);
}

void pass_errors_fini(struct pass_errors *e)
{
    buf_fini(&e->text);
    e->n = 0;
}

bool pass_is_link_error(enum err_code code)
{
    return code == ERR_UNAVAILABLE || code == ERR_TIMEOUT || code == ERR_UNDETERMINED ||
           code == ERR_CANCELLED || code == ERR_SERVER_TIMEOUT || code == ERR_TOO_MANY;
}
