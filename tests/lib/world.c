#include "tests/lib/world.h"

#include <pthread.h>
#include <time.h>

#include "apiserver/base/log.h"

static pthread_mutex_t random_lock = PTHREAD_MUTEX_INITIALIZER;

static void locked_fill(const struct randomness *r, void *p, size_t n)
{
    struct rand_fixed *fixed = r->ctx;
    pthread_mutex_lock(&random_lock);
    fixed->r.fill(&fixed->r, p, n);
    pthread_mutex_unlock(&random_lock);
}

static int state_of(void *ctx, const char *name, enum namespace_state *ret, struct err *err)
{
    const struct world *w = ctx;
    (void)name, (void)err;
    *ret = w->namespace_state;
    return 0;
}

int64_t world_deadline(void)
{
    return clock_monotonic_ms(&clock_system) + 10000;
}

void sleep_ms(int64_t ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

void world_start_registry(struct world *w)
{
    w->registry = registry_new(&w->config);
    registry_start(w->registry);
    for (int i = 0; i < 5000 && !registry_is_synced(w->registry); i++)
        sleep_ms(1);
    ck_assert(registry_is_synced(w->registry));
}

void world_start(struct world *w, const struct registry_config *config)
{
    *w = (struct world){0};
    log_set_level(LOG_ERROR); /* warnings are part of what is tested */
    clock_fake_init(&w->clock, WORLD_NOW_MS);
    rand_fixed_init(&w->fixed, 1);
    w->randomness = (struct randomness){.fill = locked_fill, .ctx = &w->fixed};
    w->env = (struct admit_env){.clock = &w->clock.clock,
                                .randomness = &w->randomness,
                                .namespace_state = state_of,
                                .ctx = w};
    w->store = memstore_new();
    w->config = config ? *config : (struct registry_config){0};
    w->config.store = w->store;
    w->config.kinds = kinds_served;
    w->config.admit = &w->env;
    world_start_registry(w);
}

void world_stop_registry(struct world *w)
{
    registry_stop(w->registry);
    registry_free(w->registry);
    w->registry = NULL;
}

void world_stop(struct world *w)
{
    if (w->registry)
        world_stop_registry(w);
    store_free(w->store);
}

struct write_options world_opts(void)
{
    return (struct write_options){.field_validation = FIELD_VALIDATION_WARN,
                                  .deadline_ms = world_deadline()};
}

cJSON *world_tree(const char *json)
{
    cJSON *tree = NULL;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_msg(json_parse_str(json, &tree, &err) == 0, "%s: %s", err_text(&err), json);
    return tree;
}

cJSON *world_sandbox(const char *name, const char *metadata)
{
    SCOPED_FREE char *json =
        xasprintf("{\"apiVersion\":\"agents.x-k8s.io/"
                  "v1beta1\",\"kind\":\"Sandbox\",\"metadata\":{\"name\":\"%s\"%s%s},"
                  "\"spec\":{\"podTemplate\":{\"spec\":{\"containers\":[{\"name\":\"main\","
                  "\"image\":\"x\"}]}}}}",
                  name, *metadata ? "," : "", metadata);
    return world_tree(json);
}

struct object *world_make(struct world *w, const struct kind *kind, const char *namespace_name,
                          const char *members, const struct write_options *opts)
{
    SCOPED_FREE char *text =
        xasprintf("{\"apiVersion\":\"%s%s%s\",\"kind\":\"%s\",%s}", kind->group,
                  *kind->group ? "/" : "", kind->version, kind->kind, members);
    SCOPED(err_fini) struct err err = {0};
    struct write_options usual = world_opts();
    struct object *o = NULL;
    int rc = registry_create(w->registry, kind, namespace_name, world_tree(text),
                             opts ? opts : &usual, &o, &err);
    ck_assert_msg(rc == 0, "%s: %s", text, err_text(&err));
    return o;
}

struct object *world_create(struct world *w, const char *namespace_name, const char *name,
                            const char *metadata)
{
    SCOPED(err_fini) struct err err = {0};
    struct write_options opts = world_opts();
    struct object *o = NULL;
    int rc = registry_create(w->registry, &kind_sandbox, namespace_name,
                             world_sandbox(name, metadata), &opts, &o, &err);
    ck_assert_msg(rc == 0, "create %s: %s", name, err_text(&err));
    return o;
}

struct object *world_get(struct world *w, const char *namespace_name, const char *name)
{
    SCOPED(err_fini) struct err err = {0};
    struct object *o = NULL;
    int rc = registry_get(w->registry, &kind_sandbox, namespace_name, name,
                          (struct read_version){READ_LATEST, 0}, world_deadline(), &o, &err);
    ck_assert_msg(rc == 0 || rc == -ERR_NOT_FOUND, "get %s: %s", name, err_text(&err));
    return o;
}

void world_delete(struct world *w, const char *namespace_name, const char *name)
{
    SCOPED(err_fini) struct err err = {0};
    struct delete_options opts = {.orphan_dependents = -1, .deadline_ms = world_deadline()};
    struct object *o = NULL;
    bool is_gone = false;
    int rc = registry_delete(w->registry, &kind_sandbox, namespace_name, name, &opts, &o, &is_gone,
                             &err);
    ck_assert_msg(rc == 0, "delete %s: %s", name, err_text(&err));
    object_unref(o);
}

struct setting {
    const char *path, *json;
};

static int set_member(void *ctx, const cJSON *old, cJSON **ret, struct err *err)
{
    const struct setting *s = ctx;
    (void)err;
    cJSON *tree = json_copy(old), *at = tree;
    SCOPED_FREE char *path = xstrdup(s->path);
    char *name = path;
    for (char *dot; (dot = strchr(name, '.')); name = dot + 1) {
        *dot = '\0';
        at = json_ensure_object(at, name);
    }
    if (strcmp(s->json, "null") == 0)
        json_remove(at, name);
    else
        json_set(at, name, world_tree(s->json));
    *ret = tree;
    return 0;
}

int world_try_set(struct world *w, const char *namespace_name, const char *name, const char *path,
                  const char *json, const struct write_options *opts, bool is_status,
                  struct object **ret, struct err *err)
{
    struct setting s = {path, json};
    struct update_request req = {.kind = &kind_sandbox,
                                 .namespace_name = namespace_name,
                                 .name = name,
                                 .is_status = is_status,
                                 .change = set_member,
                                 .ctx = &s};
    return registry_update(w->registry, &req, opts, ret, err);
}

struct object *world_set(struct world *w, const char *namespace_name, const char *name,
                         const char *path, const char *json)
{
    SCOPED(err_fini) struct err err = {0};
    struct write_options opts = world_opts();
    struct object *o = NULL;
    int rc = world_try_set(w, namespace_name, name, path, json, &opts, false, &o, &err);
    ck_assert_msg(rc == 0, "set %s of %s: %s", path, name, err_text(&err));
    return o;
}

void world_wait_rev(struct world *w, int64_t rev)
{
    for (int i = 0; i < 5000 && registry_revision(w->registry) < rev; i++)
        sleep_ms(1);
    ck_assert(registry_revision(w->registry) >= rev);
}
