#include "apiserver/kube/namespaces.h"

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/thread.h"

#define WAIT_MS 50
#define ASK_TIMEOUT_MS 5000

/* Values of the map; addresses are all that counts. */
static char active_mark, terminating_mark;

struct namespaces {
    struct kube *kube;
    pthread_mutex_t lock; /* guards states and is_known */
    pthread_cond_t changed;
    struct map *states; /* name -> &active_mark or &terminating_mark */
    bool is_known;
    struct reflector *reflector;
};

static const char *name_of(const cJSON *object)
{
    return json_str_or(object, "metadata.name", "");
}

static bool is_terminating(const cJSON *object)
{
    const char *phase = json_str_or(object, "status.phase", "");
    return str_equal(phase, "Terminating") || json_str(object, "metadata.deletionTimestamp");
}

static void *mark_of(const cJSON *object)
{
    return is_terminating(object) ? &terminating_mark : &active_mark;
}

static void on_replace(void *ctx, const cJSON *const *objects, size_t count,
                       const char *resource_version)
{
    (void)resource_version;
    struct namespaces *n = ctx;
    struct map *states = map_new();
    for (size_t i = 0; i < count; i++)
        map_put(states, name_of(objects[i]), mark_of(objects[i]));
    pthread_mutex_lock(&n->lock);
    map_free(n->states);
    n->states = states;
    n->is_known = true;
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
}

static void on_event(void *ctx, const cJSON *object, bool is_delete)
{
    struct namespaces *n = ctx;
    pthread_mutex_lock(&n->lock);
    if (is_delete)
        map_del(n->states, name_of(object));
    else
        map_put(n->states, name_of(object), mark_of(object));
    pthread_cond_broadcast(&n->changed);
    pthread_mutex_unlock(&n->lock);
}

static const struct reflector_ops ops = {.on_replace = on_replace, .on_event = on_event};

struct namespaces *namespaces_start(struct kube *kube)
{
    struct namespaces *n = xcalloc(1, sizeof *n);
    n->kube = kube;
    n->states = map_new();
    pthread_mutex_init(&n->lock, NULL);
    thread_cond_init(&n->changed);
    n->reflector = reflector_start(kube, "/api/v1/namespaces", NULL, NULL, &ops, n);
    return n;
}

void namespaces_stop(struct namespaces *n)
{
    if (!n)
        return;
    reflector_stop(n->reflector);
    map_free(n->states);
    pthread_cond_destroy(&n->changed);
    pthread_mutex_destroy(&n->lock);
    free(n);
}

bool namespaces_are_known(struct namespaces *n)
{
    pthread_mutex_lock(&n->lock);
    bool known = n->is_known;
    pthread_mutex_unlock(&n->lock);
    return known;
}

/* Our view may be a little behind a client that has just made the namespace. */
static const void *wait_for(struct namespaces *n, const char *name)
{
    int64_t until_ms = clock_monotonic_ms(&clock_system) + WAIT_MS;
    const void *mark;
    pthread_mutex_lock(&n->lock);
    while (!(mark = map_get(n->states, name)) && clock_monotonic_ms(&clock_system) < until_ms)
        thread_cond_wait_until(&n->changed, &n->lock, until_ms);
    pthread_mutex_unlock(&n->lock);
    return mark;
}

static int ask(struct namespaces *n, const char *name, const void **ret, struct err *err)
{
    SCOPED_FREE char *path =
        kube_path(&(struct kube_place){.api = "/api/v1", .resource = "namespaces", .name = name});
    SCOPED(json_free_p) cJSON *object = NULL;
    struct err e = {0};
    int rc = kube_do(
        n->kube, &(struct kube_call){.method = "GET", .path = path, .timeout_ms = ASK_TIMEOUT_MS},
        &object, &e);
    *ret = rc == 0 ? mark_of(object) : NULL;
    if (rc == -ERR_NOT_FOUND)
        err_fini(&e);
    return rc < 0 && rc != -ERR_NOT_FOUND ? err_move(err, &e) : 0;
}

int namespaces_find(struct namespaces *n, const char *name, bool *ret_exists,
                    bool *ret_is_terminating, struct err *err)
{
    const void *mark = wait_for(n, name);
    int rc = mark ? 0 : ask(n, name, &mark, err);
    if (rc < 0)
        return rc;
    *ret_exists = mark != NULL;
    *ret_is_terminating = mark == &terminating_mark;
    return 0;
}
