/* What the tests of passes over Sandboxes share: a registry over the store in memory, a cluster in
 * memory that can refuse or fail on demand, and the steps of a Sandbox's life. Each program has its
 * own. */
#pragma once

#include <pthread.h>

#include "apiserver/base/json.h"
#include "apiserver/base/map.h"
#include "openapi/kinds.h"
#include "reconcile/child.h"
#include "reconcile/condition.h"
#include "reconcile/keys.h"
#include "reconcile/sandbox_pass.h"
#include "storage/memstore.h"
#include "tests/lib/fake_cluster.h"
#include "tests/lib/pool_world.h"
#include "tests/lib/suite.h"

#define NOW_MS INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */
#define CALL_MS 10000

static struct fixture {
    struct clock_fake clock;
    struct rand_fixed randomness;
    struct admit_env admit;
    struct store *store;
    struct registry *registry;
    struct fake_cluster cluster;
    struct sandbox_reconciler *reconciler;
    bool leads;
    int64_t ahead_ms; /* the passes' clock, of the real one */
} fx;

static inline int64_t deadline(void)
{
    return clock_monotonic_ms(&clock_system) + CALL_MS;
}

/* Deadlines are of the real clock, as the registry's are; a test may set the passes' clock
 * ahead. */
static inline int64_t ahead_unix_ms(const struct clock *c)
{
    (void)c;
    return clock_unix_ms(&clock_system) + fx.ahead_ms;
}

static inline int64_t ahead_monotonic_ms(const struct clock *c)
{
    (void)c;
    return clock_monotonic_ms(&clock_system) + fx.ahead_ms;
}

static const struct clock clock_ahead = {.unix_ms = ahead_unix_ms,
                                         .monotonic_ms = ahead_monotonic_ms};

static inline bool fence(void *ctx, struct store_compare *ret)
{
    (void)ctx;
    *ret = (struct store_compare){.key = "/lease", .target = STORE_CREATE, .rev = 0};
    return fx.leads;
}

/* Object times are of the fake clock, by admission. */
static inline void start_reconciler(void)
{
    sandbox_reconciler_free(fx.reconciler);
    fx.reconciler = sandbox_reconciler_new(&(struct sandbox_reconciler_config){
        .env = {.registry = fx.registry,
                .cluster = &fx.cluster.base,
                .clock = &clock_ahead,
                .randomness = &fx.randomness.r,
                .fence = fence},
        .cluster_domain = "cluster.local",
    });
}

static inline void setup(void)
{
    fx = (struct fixture){.leads = true};
    clock_fake_init(&fx.clock, NOW_MS);
    rand_fixed_init(&fx.randomness, 1);
    fx.admit = (struct admit_env){.clock = &fx.clock.clock, .randomness = &fx.randomness.r};
    fx.store = memstore_new();
    fx.registry = registry_new(
        &(struct registry_config){.store = fx.store, .kinds = kinds_all, .admit = &fx.admit});
    registry_start(fx.registry);
    while (!registry_is_synced(fx.registry))
        sched_yield();
    fake_cluster_init(&fx.cluster);
    start_reconciler();
}

static inline void teardown(void)
{
    sandbox_reconciler_free(fx.reconciler);
    fake_cluster_fini(&fx.cluster);
    registry_stop(fx.registry);
    registry_free(fx.registry);
    store_free(fx.store);
}

static inline void create_named(const char *name, const char *spec)
{
    SCOPED_FREE char *text =
        xasprintf("{\"apiVersion\":\"agents.x-k8s.io/"
                  "v1beta1\",\"kind\":\"Sandbox\",\"metadata\":{\"name\":\"%s\","
                  "\"annotations\":{\"mine\":\"1\"}},"
                  "\"spec\":{\"podTemplate\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":"
                  "\"i\"}]}}%s}}",
                  name, spec);
    cJSON *object;
    ck_assert_int_eq(json_parse_str(text, &object, NULL), 0);
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    int rc = registry_create(fx.registry, &kind_sandbox, "ns", object,
                             &(struct write_options){.deadline_ms = deadline()}, &o, &err);
    ck_assert_msg(rc == 0, "%s", err_text(&err));
}

static inline void create(const char *spec)
{
    create_named("a", spec);
}

static inline int change_spec(void *ctx, const cJSON *old, cJSON **ret, struct err *err)
{
    (void)err;
    const char *const *kv = ctx;
    *ret = json_copy(old);
    cJSON *value = NULL;
    if (kv[1])
        json_parse_str(kv[1], &value, NULL);
    if (value)
        json_set(json_get(*ret, "spec"), kv[0], value);
    else
        json_remove(json_get(*ret, "spec"), kv[0]);
    return 0;
}

static inline int try_set_spec(const char *name, const char *value, struct err *err)
{
    const char *kv[] = {name, value};
    SCOPED(object_unref_p) struct object *o = NULL;
    return registry_update(fx.registry,
                           &(struct update_request){.kind = &kind_sandbox,
                                                    .namespace_name = "ns",
                                                    .name = "a",
                                                    .is_patch = true,
                                                    .change = change_spec,
                                                    .ctx = kv},
                           &(struct write_options){.deadline_ms = deadline()}, &o, err);
}

/* value is JSON; NULL removes the field. */
static inline void set_spec(const char *name, const char *value)
{
    SCOPED(err_fini) struct err err = {0};
    int rc = try_set_spec(name, value, &err);
    ck_assert_msg(rc == 0, "%s", err_text(&err));
}

/* The stored Sandbox; NULL when it is gone. */
static inline cJSON *read_back(void)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    if (registry_get(fx.registry, &kind_sandbox, "ns", "a", (struct read_version){READ_LATEST},
                     deadline(), &o, &err) < 0)
        return NULL;
    return object_tree(o);
}

static inline void expect(const char *type, const char *status, const char *reason,
                          const char *message)
{
    SCOPED(json_free_p) cJSON *sandbox = read_back();
    const cJSON *c = condition_find(json_at(sandbox, "status.conditions"), type);
    ck_assert_msg(c != NULL, "no condition %s", type);
    ck_assert_str_eq(json_str(c, "status"), status);
    ck_assert_str_eq(json_str(c, "reason"), reason);
    if (message)
        ck_assert_str_eq(json_str(c, "message"), message);
}

static inline int pass(struct loop_result *ret)
{
    *ret = (struct loop_result){0};
    return sandbox_pass(fx.reconciler, "ns/a", ret);
}

static inline void pass_ok(void)
{
    struct loop_result r;
    ck_assert_int_eq(pass(&r), 0);
}

static inline cJSON *json_of(const char *text)
{
    cJSON *tree = NULL;
    ck_assert_int_eq(json_parse_str(text, &tree, NULL), 0);
    return tree;
}

static inline cJSON *pod(void)
{
    return omap_get(fx.cluster.objects, "pods/ns/a");
}

/* What a kubelet would report. */
static inline void make_ready(void)
{
    cJSON *status = NULL;
    json_parse_str("{\"phase\":\"Running\",\"podIPs\":[{\"ip\":\"10.0.0.1\"}],\"conditions\":[{"
                   "\"type\":\"PodScheduled\","
                   "\"status\":\"True\"},{\"type\":\"Ready\",\"status\":\"True\"}]}",
                   &status, NULL);
    json_set(pod(), "status", status);
    json_set_str(json_ensure_object(pod(), "spec"), "nodeName", "n");
}

#define VOLUME ",\"volumeClaimTemplates\":[{\"metadata\":{\"name\":\"w\"},\"spec\":{}}]"

/* ---- Pods of others ---- */

#define TRACKED "\"labels\":{\"agents.x-k8s.io/sandbox-name-hash\":\"e40c292c\"}" /* of a */

/* A Pod that the Sandbox called owner_uid controls, with its tracking label; NULL = nobody's,
 * without. */
static inline void put_pod(const char *name, const char *owner_uid)
{
    SCOPED_FREE char *owner =
        owner_uid ? xasprintf("," TRACKED ",\"ownerReferences\":[{\"apiVersion\":\"agents.x-k8s.io/"
                              "v1beta1\",\"kind\":\"Sandbox\",\"name\":\"a\",\"uid\":\"%s\","
                              "\"controller\":true}]",
                              owner_uid)
                  : xstrdup("");
    SCOPED_FREE char *text =
        xasprintf("{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"pod-%s\"%s},"
                  "\"status\":{\"phase\":\"Running\"}}",
                  name, name, owner);
    cJSON *object = NULL;
    ck_assert_int_eq(json_parse_str(text, &object, NULL), 0);
    fake_cluster_put(&fx.cluster, CHILD_POD, "ns", object);
}

static inline char *own_uid(void)
{
    SCOPED(json_free_p) cJSON *sandbox = read_back();
    return xstrdup(meta_uid(sandbox));
}

static inline bool has_child(const char *key)
{
    return omap_get(fx.cluster.objects, key) != NULL;
}
