/* What the tests of passes over warm pools share: a registry over the store in memory, Pods in a
 * cluster in memory, objects, and passes until nothing is left to do. Each program has its own. */
#pragma once

#include "apiserver/base/json.h"
#include "apiserver/base/str.h"
#include "reconcile/child.h"
#include "reconcile/condition.h"
#include "reconcile/keys.h"
#include "reconcile/warmpool_pass.h"
#include "tests/lib/fake_cluster.h"
#include "tests/lib/world.h"

/* What settings of 0 mean. */
#define GRACE_MS 300000
#define RECHECK_MS 60000

static struct fixture {
    struct world world;
    struct fake_cluster cluster;
    struct warmpool_reconciler *reconciler;
    bool follows;     /* does not lead */
    uint64_t fail_at; /* the call of the store of that number fails */
    enum memstore_fault fault;
} fx;

static inline bool fence(void *ctx, struct store_compare *ret)
{
    (void)ctx;
    *ret = (struct store_compare){.key = "/lease", .target = STORE_CREATE, .rev = 0};
    return !fx.follows;
}

static inline void restart(const struct warmpool_settings *settings)
{
    warmpool_reconciler_free(fx.reconciler);
    fx.reconciler = warmpool_reconciler_new(&(struct pass_env){.registry = fx.world.registry,
                                                               .cluster = &fx.cluster.base,
                                                               .clock = &fx.world.clock.clock,
                                                               .randomness = &fx.world.randomness,
                                                               .fence = fence},
                                            settings);
}

static inline void setup(void)
{
    fx = (struct fixture){0};
    world_start(&fx.world, NULL);
    fake_cluster_init(&fx.cluster);
    restart(&(struct warmpool_settings){0});
}

static inline void teardown(void)
{
    warmpool_reconciler_free(fx.reconciler);
    fake_cluster_fini(&fx.cluster);
    world_stop(&fx.world);
}

/* ---- objects ---- */

static inline void create(const struct kind *kind, const char *text)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    struct write_options opts = world_opts();
    opts.is_system = true;
    int rc = registry_create(fx.world.registry, kind, "ns", world_tree(text), &opts, &o, &err);
    ck_assert_msg(rc == 0, "%s", err_text(&err));
}

#define API "\"apiVersion\":\"extensions.agents.x-k8s.io/v1beta1\",\"kind\":"
#define CONTAINERS(image) "\"containers\":[{\"name\":\"c\",\"image\":\"" image "\"}]"

static inline void create_template(const char *name, const char *spec)
{
    SCOPED_FREE char *text =
        xasprintf("{" API "\"SandboxTemplate\",\"metadata\":{\"name\":\"%s\"},"
                  "\"spec\":{\"podTemplate\":{\"spec\":{" CONTAINERS("i") "}}%s}}",
                  name, spec);
    create(&kind_sandbox_template, text);
}

static inline void create_pool_of(const char *name, const char *template, const char *spec)
{
    SCOPED_FREE char *text =
        xasprintf("{" API "\"SandboxWarmPool\",\"metadata\":{\"name\":\"%s\"},\"spec\":{"
                  "\"sandboxTemplateRef\":{\"name\":\"%s\"}%s}}",
                  name, template, spec);
    create(&kind_sandbox_warm_pool, text);
}

static inline void create_pool(const char *spec)
{
    create_pool_of("p", "t", spec);
}

static inline cJSON *get(const struct kind *kind, const char *name)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    if (registry_get(fx.world.registry, kind, "ns", name, (struct read_version){READ_LATEST},
                     world_deadline(), &o, &err) < 0)
        return NULL;
    return object_tree(o);
}

struct edit {
    const char *path; /* of one member, below the object */
    const char *json; /* NULL = remove */
};

static inline int apply_edit(void *ctx, const cJSON *old, cJSON **ret, struct err *err)
{
    (void)err;
    const struct edit *e = ctx;
    *ret = json_copy(old);
    const char *part = e->path;
    cJSON *at = *ret;
    for (const char *dot; (dot = strchr(part, '.')) != NULL; part = dot + 1) {
        SCOPED_FREE char *name = xstrndup(part, (size_t)(dot - part));
        at = json_ensure_object(at, name);
    }
    if (e->json)
        json_set(at, part, world_tree(e->json));
    else
        json_remove(at, part);
    return 0;
}

static inline void edit(const struct kind *kind, const char *name, const char *path,
                        const char *json)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    struct write_options opts = world_opts();
    opts.is_system = true;
    struct edit e = {path, json};
    int rc = registry_update(
        fx.world.registry,
        &(struct update_request){
            .kind = kind, .namespace_name = "ns", .name = name, .change = apply_edit, .ctx = &e},
        &opts, &o, &err);
    ck_assert_msg(rc == 0, "%s", err_text(&err));
}

/* All Sandboxes; the caller's. */
static inline struct list_result sandboxes(void)
{
    struct list_result list = {0};
    SCOPED(err_fini) struct err err = {0};
    int rc = registry_list(fx.world.registry,
                           &(struct list_request){.kind = &kind_sandbox,
                                                  .namespace_name = "ns",
                                                  .version = {READ_LATEST},
                                                  .deadline_ms = world_deadline()},
                           &list, &err);
    ck_assert_msg(rc == 0, "%s", err_text(&err));
    return list;
}

static inline size_t count(void)
{
    SCOPED(list_result_fini) struct list_result list = sandboxes();
    return list.n;
}

static inline void set_ready(const char *name, bool is_ready)
{
    char now[CLOCK_TEXT_SIZE];
    clock_print_rfc3339(clock_unix_s(&fx.world.clock.clock), now);
    SCOPED_FREE char *json =
        xasprintf("[{\"type\":\"Ready\",\"status\":\"%s\",\"reason\":\"R\",\"message\":\"\","
                  "\"lastTransitionTime\":\"%s\"}]",
                  is_ready ? "True" : "False", now);
    edit(&kind_sandbox, name, "status.conditions", json);
}

static inline void all_ready(void)
{
    SCOPED(list_result_fini) struct list_result list = sandboxes();
    for (size_t i = 0; i < list.n; i++)
        set_ready(list.objects[i]->name, true);
}

static inline void delete_object(const struct kind *kind, const char *name)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    bool gone;
    int rc = registry_delete(
        fx.world.registry, kind, "ns", name,
        &(struct delete_options){.orphan_dependents = -1, .deadline_ms = world_deadline()}, &o,
        &gone, &err);
    ck_assert_msg(rc == 0, "%s", err_text(&err));
}

static inline void delete_named(const char *name)
{
    delete_object(&kind_sandbox, name);
}

/* Name of the i-th Sandbox; the caller's. */
static inline char *name_of(size_t i)
{
    SCOPED(list_result_fini) struct list_result list = sandboxes();
    ck_assert_uint_lt(i, list.n);
    return xstrdup(list.objects[i]->name);
}

/* ---- passes ---- */

static inline struct loop_result pass_of(const char *key)
{
    struct loop_result ret = {0};
    ck_assert_int_eq(warmpool_pass(fx.reconciler, key, &ret), 0);
    return ret;
}

static inline struct loop_result pass_ok(void)
{
    return pass_of("ns/p");
}

/* Until a pass changes nothing. */
static inline void settle(void)
{
    for (int i = 0; i < 20; i++) {
        int64_t before = registry_revision(fx.world.registry);
        pass_ok();
        clock_fake_advance(&fx.world.clock, 200); /* past the pause between status writes */
        pass_ok();
        if (registry_revision(fx.world.registry) == before)
            return;
    }
    ck_abort_msg("does not settle");
}

static inline void expect_status(int64_t replicas, int64_t ready)
{
    SCOPED(json_free_p) cJSON *pool = get(&kind_sandbox_warm_pool, "p");
    ck_assert_int_eq(json_i64_or(pool, "status.replicas", 0), replicas);
    ck_assert_int_eq(json_i64_or(pool, "status.readyReplicas", 0), ready);
    ck_assert_int_eq(json_i64_or(pool, "status.observedGeneration", 0),
                     json_i64_or(pool, "metadata.generation", -1));
    ck_assert(str_has_prefix(json_str_or(pool, "status.selector", ""), LABEL_WARM_POOL "="));
}

static inline void expect_progress(const char *status, const char *reason, const char *message)
{
    SCOPED(json_free_p) cJSON *pool = get(&kind_sandbox_warm_pool, "p");
    const cJSON *c = condition_find(json_at(pool, "status.conditions"), "Progressing");
    ck_assert_str_eq(json_str_or(c, "status", "absent"), status);
    ck_assert_str_eq(json_str_or(c, "reason", ""), reason);
    if (message)
        ck_assert_msg(strstr(json_str_or(c, "message", ""), message) != NULL, "%s",
                      json_str_or(c, "message", ""));
}

static inline void pod_condition(const char *name, const char *status, const char *reason)
{
    SCOPED_FREE char *text =
        xasprintf("{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"u\"},\"status\":{"
                  "\"conditions\":"
                  "[{\"type\":\"PodScheduled\",\"status\":\"%s\",\"reason\":\"%s\"}]}}",
                  name, status, reason);
    fake_cluster_put(&fx.cluster, CHILD_POD, "ns", world_tree(text));
}
