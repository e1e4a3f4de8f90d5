/* What the tests of passes over claims share: a registry over the store in memory that binds in
 * POSTs, a cluster in memory, and the steps of a claim's life. Each program has its own. */
#pragma once

#include "reconcile/claim_pass.h"

#include "apiserver/base/metric.h"
#include "reconcile/blueprint.h"
#include "reconcile/child.h"
#include "reconcile/condition.h"
#include "reconcile/keys.h"
#include "reconcile/sandbox_pass.h"
#include "tests/lib/fake_cluster.h"
#include "tests/lib/pool_world.h"

static struct pool_world pw;
static struct fake_cluster cluster;
static struct claim_reconciler *claims;
static struct sandbox_reconciler *sandboxes;
static bool leads;

static inline struct registry *reg(void)
{
    return pw.w.registry;
}

static inline bool fence(void *ctx, struct store_compare *ret)
{
    (void)ctx;
    *ret = (struct store_compare){"/leader", STORE_CREATE, 0};
    return leads;
}

static inline struct pass_env env(void)
{
    return (struct pass_env){.registry = reg(),
                             .cluster = &cluster.base,
                             .clock = &pw.w.clock.clock,
                             .randomness = &pw.w.randomness,
                             .fence = fence};
}

static inline void start_reconcilers(void)
{
    claims = claim_reconciler_new(&(struct claim_reconciler_config){
        .env = env(), .settings = {.label_domains = pool_world_domains}});
    sandboxes = sandbox_reconciler_new(
        &(struct sandbox_reconciler_config){.env = env(), .cluster_domain = "cluster.local"});
}

static inline void stop_reconcilers(void)
{
    claim_reconciler_free(claims);
    sandbox_reconciler_free(sandboxes);
}

static inline void setup(void)
{
    leads = true;
    pool_world_start(&pw);
    fake_cluster_init(&cluster);
    start_reconcilers();
}

static inline void teardown(void)
{
    stop_reconcilers();
    fake_cluster_fini(&cluster);
    pool_world_stop(&pw);
}

/* ---- steps ---- */

static inline cJSON *read_claim(const char *name)
{
    return pool_world_read(reg(), &kind_sandbox_claim, name);
}

static inline void remove_claim(const char *name)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    bool gone;
    struct delete_options opts = {.orphan_dependents = -1, .deadline_ms = world_deadline()};
    ck_assert_int_eq(
        registry_delete(reg(), &kind_sandbox_claim, "ns", name, &opts, &o, &gone, NULL), 0);
}

static inline void post(const char *name, const char *metadata, const char *spec)
{
    SCOPED(err_fini) struct err err = {0};
    SCOPED(json_free_p) cJSON *claim = NULL;
    int rc = pool_world_post(reg(), pool_world_claim(name, metadata, spec), false, &claim, &err);
    ck_assert_msg(rc == 0, "%s", err_text(&err));
}

static inline int64_t pass(const char *name)
{
    SCOPED_FREE char *key = xasprintf("ns/%s", name);
    struct loop_result r = {0};
    int rc = claim_pass(claims, key, &r);
    return rc < 0 ? rc : r.again_after_ms;
}

static inline void pass_sandbox(const char *name)
{
    SCOPED_FREE char *key = xasprintf("ns/%s", name);
    struct loop_result r = {0};
    ck_assert_int_eq(sandbox_pass(sandboxes, key, &r), 0);
}

static inline void expect(const char *name, const char *status, const char *reason,
                          const char *sandbox)
{
    SCOPED(json_free_p) cJSON *claim = read_claim(name);
    const cJSON *ready = condition_find(json_at(claim, "status.conditions"), "Ready");
    ck_assert_str_eq(json_str_or(ready, "status", "-"), status);
    ck_assert_str_eq(json_str_or(ready, "reason", "-"), reason);
    ck_assert_str_eq(json_str_or(claim, "status.sandbox.name", "-"), sandbox);
    if (ready)
        ck_assert_int_eq(json_i64_or(ready, "observedGeneration", 0),
                         json_i64_or(claim, "metadata.generation", -1));
}

static inline void expect_message(const char *name, const char *message)
{
    SCOPED(json_free_p) cJSON *claim = read_claim(name);
    ck_assert_str_eq(
        json_str_or(condition_find(json_at(claim, "status.conditions"), "Ready"), "message", "-"),
        message);
}

static inline void make_ready(const char *sandbox)
{
    pool_world_edit(reg(), &kind_sandbox, sandbox, "status",
                    "{\"podIPs\":[\"10.0.0.9\"],\"conditions\":[{\"type\":\"Ready\",\"status\":"
                    "\"True\",\"reason\":\"DependenciesReady\",\"message\":\"Pod is Ready\","
                    "\"lastTransitionTime\":\"2026-01-02T03:04:06Z\"}]}");
}

static inline void make_finished(const char *sandbox, const char *at)
{
    SCOPED_FREE char *json = xasprintf(
        "[{\"type\":\"Finished\",\"status\":\"True\",\"reason\":\"PodSucceeded\",\"message\":\"m\","
        "\"lastTransitionTime\":\"%s\"},{\"type\":\"Ready\",\"status\":\"False\",\"reason\":"
        "\"PodSucceeded\",\"message\":\"m\",\"lastTransitionTime\":\"%s\"}]",
        at, at);
    pool_world_edit(reg(), &kind_sandbox, sandbox, "status|conditions", json);
}

static inline bool exists(const struct kind *kind, const char *name)
{
    SCOPED(json_free_p) cJSON *tree = pool_world_read(reg(), kind, name);
    return tree != NULL;
}

/* The series of the counter of claims that got a Sandbox. */
static inline double counted(const char *launch_type, const char *condition)
{
    SCOPED(buf_fini) struct buf text = {0}, line = {0};
    buf_printf(&line,
               "agent_sandbox_claim_creation_total{namespace=\"ns\",sandbox_template=\"t\","
               "launch_type=\"%s\",warmpool_name=\"p\",pod_condition=\"%s\",created_by="
               "\"unknown\"} ",
               launch_type, condition);
    metric_print_all(&text);
    const char *at = strstr(buf_cstr(&text), buf_cstr(&line));
    return at ? strtod(at + line.len, NULL) : 0;
}

/* Another server on the store, that knows what this one does; from then on neither hears of the
 * other's writes, until hear_again. */
static inline struct registry *start_deaf(void)
{
    struct registry *other = registry_new(&pw.w.config);
    registry_start(other);
    for (int i = 0; i < 5000 && !(registry_is_synced(other) &&
                                  registry_revision(other) >= registry_revision(reg()));
         i++)
        sleep_ms(1);
    memstore_set_watch_down(pw.w.store, true);
    return other;
}

static inline void hear_again(struct registry *other)
{
    int64_t written;
    memstore_set_watch_down(pw.w.store, false);
    ck_assert_int_eq(store_revision(pw.w.store, world_deadline(), &written, NULL), 0);
    world_wait_rev(&pw.w, written);
    registry_stop(other);
    registry_free(other);
}

static inline int64_t stored_revision(void)
{
    int64_t rev;
    ck_assert_int_eq(store_revision(pw.w.store, world_deadline(), &rev, NULL), 0);
    return rev;
}

#define PAST "\"shutdownTime\":\"2020-01-01T00:00:00Z\""

static inline enum memstore_fault no_writes(void *ctx, const char *call, uint64_t n)
{
    (void)ctx, (void)n;
    return str_equal(call, "txn") ? MEMSTORE_UNAVAILABLE : MEMSTORE_OK;
}

static inline void delete_object(const struct kind *kind, const char *name)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    bool gone;
    struct delete_options opts = {.orphan_dependents = -1, .deadline_ms = world_deadline()};
    ck_assert_int_eq(registry_delete(reg(), kind, "ns", name, &opts, &o, &gone, NULL), 0);
}
