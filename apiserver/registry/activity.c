#include "apiserver/registry/activity.h"

#include <pthread.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/thread.h"
#include "apiserver/registry/select.h"

/* ---- noting ---- */

struct noting {
    const struct activity_request *req;
    enum activity outcome;
};

static int change(void *ctx, const cJSON *old, cJSON **ret, struct err *err)
{
    struct noting *n = ctx;
    SCOPED(json_free_p) cJSON *object = json_copy(old);
    int rc = n->req->ops->note(n->req->ops->ctx, object, &n->outcome, err);
    if (rc < 0)
        return rc;
    *ret = steal(&object);
    return 0;
}

/* Most reports end here: the cached object says that there is nothing to write. A cache that is
 * behind cannot mislead to silence, only to a write that finds out. */
static int judge_cached(struct registry *r, const struct activity_request *req, enum activity *ret,
                        struct err *err)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    int rc = registry_get(r, req->kind, req->namespace_name, req->name,
                          (struct read_version){.match = READ_ANY}, req->deadline_ms, &o, err);
    if (rc < 0)
        return rc;
    SCOPED(json_free_p) cJSON *object = object_tree(o);
    struct err refused = {0};
    rc = req->ops->note(req->ops->ctx, object, ret, &refused);
    if (rc < 0) /* the store may know better */
        *ret = ACTIVITY_WOKEN;
    err_fini(&refused);
    return 0;
}

int registry_activity(struct registry *r, const struct activity_request *req, enum activity *ret,
                      struct err *err)
{
    struct noting noting = {.req = req};
    SCOPED(object_unref_p) struct object *o = NULL;
    int rc = judge_cached(r, req, &noting.outcome, err);
    if (rc == 0 && noting.outcome != ACTIVITY_NONE)
        rc = registry_update(r,
                             &(struct update_request){.kind = req->kind,
                                                      .namespace_name = req->namespace_name,
                                                      .name = req->name,
                                                      .change = change,
                                                      .ctx = &noting},
                             &(struct write_options){.is_system = true,
                                                     .dry_run = req->dry_run,
                                                     .field_manager = req->ops->manager,
                                                     .deadline_ms = req->deadline_ms},
                             &o, err);
    if (rc == 0)
        *ret = noting.outcome;
    return rc;
}

/* ---- waiting ---- */

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t woken;
    bool has_news;
};

static void wake(void *ctx)
{
    struct waiter *w = ctx;
    pthread_mutex_lock(&w->lock);
    w->has_news = true;
    pthread_cond_signal(&w->woken);
    pthread_mutex_unlock(&w->lock);
}

/* False when the time is over. */
static bool wait_news(struct waiter *w, int64_t deadline_ms)
{
    pthread_mutex_lock(&w->lock);
    while (!w->has_news && clock_monotonic_ms(&clock_system) < deadline_ms)
        thread_cond_wait_until(&w->woken, &w->lock, deadline_ms);
    bool has_news = w->has_news;
    w->has_news = false;
    pthread_mutex_unlock(&w->lock);
    return has_news;
}

/* 1 = ready, 0 = not yet. */
static int judge_event(const struct activity_request *req, struct watch_event *e, struct err *err)
{
    if (e->type == WATCH_ERROR)
        return err_move(err, &e->err);
    if (e->type == WATCH_DELETED)
        return err_set(err, ERR_NOT_FOUND, "%s \"%s\" was deleted", req->kind->plural, req->name);
    if (!e->object)
        return 0;
    SCOPED(json_free_p) cJSON *object = object_tree(e->object);
    return req->ops->is_ready(req->ops->ctx, object);
}

static int look(const struct activity_request *req, struct watch *watch, struct err *err)
{
    for (;;) {
        SCOPED(watch_event_fini) struct watch_event e = {0};
        int rc = watch_next(watch, &e);
        if (rc < 0)
            return err_set(err, ERR_UNAVAILABLE, "the wait was cut off; try again");
        if (rc == 0)
            return 0;
        rc = judge_event(req, &e, err);
        if (rc != 0)
            return rc;
    }
}

int registry_await_ready(struct registry *r, const struct activity_request *req, struct err *err)
{
    struct waiter w = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct selector *selector = NULL;
    struct watch *watch = NULL;
    SCOPED_FREE char *fields = xasprintf("metadata.name=%s", req->name);
    if (selector_parse(NULL, fields, &selector, err) < 0)
        return -(int)err->code;
    struct watch_request request = {.kind = req->kind,
                                    .namespace_name = req->namespace_name,
                                    .take_selector = selector,
                                    .send_initial = true,
                                    .is_prompt = true, /* somebody waits to begin */
                                    .version = {.match = READ_ANY},
                                    .deadline_ms = req->deadline_ms};
    thread_cond_init(&w.woken);
    int rc = registry_watch(r, &request, wake, &w, &watch, err);
    if (rc == 0) {
        while ((rc = look(req, watch, err)) == 0 && wait_news(&w, req->deadline_ms))
            ;
        watch_close(watch);
        if (rc == 0)
            rc = err_set(err, ERR_TIMEOUT, "%s \"%s\" is awake, but was not ready in time",
                         req->kind->plural, req->name);
    }
    pthread_cond_destroy(&w.woken);
    pthread_mutex_destroy(&w.lock);
    return rc > 0 ? 0 : rc;
}
