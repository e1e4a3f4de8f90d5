/* What the tests of passes of a server without a cluster share: a registry over the store in memory
 * that serves Kubernetes' kinds, and objects. Each program has its own. */
#pragma once

#include "openapi/kinds/builtin.h"
#include "reconcile/house_pass.h"
#include "tests/lib/world.h"

static struct world w;
static struct pass_env env;
static struct links *links; /* what the pass under test keeps of who refers to whom */

static inline void setup(void)
{
    kinds_served = kinds_standalone;
    world_start(&w, NULL);
    env = (struct pass_env){.registry = w.registry, .clock = &w.clock.clock};
    links = links_new();
}

static inline void teardown(void)
{
    links_free(links);
    world_stop(&w);
}

static inline struct object *make(const struct kind *kind, const char *namespace_name,
                                  const char *members)
{
    struct write_options opts = world_opts();
    opts.is_system = true; /* status in the same write */
    return world_make(&w, kind, namespace_name, members, &opts);
}

static inline void make_and_forget(const struct kind *kind, const char *namespace_name,
                                   const char *members)
{
    object_unref(make(kind, namespace_name, members));
}

/* NULL when it is not there. */
static inline cJSON *get(const struct kind *kind, const char *namespace_name, const char *name)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(pass_get(&env, kind, namespace_name, name, &o, &err), 0);
    return o ? object_tree(o) : NULL;
}

static inline bool is_there(const struct kind *kind, const char *namespace_name, const char *name)
{
    SCOPED(json_free_p) cJSON *tree = get(kind, namespace_name, name);
    return tree != NULL;
}

static inline void drop(const struct kind *kind, const char *namespace_name, const char *name,
                        const char *propagation)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    struct delete_options opts = {
        .propagation = propagation, .orphan_dependents = -1, .deadline_ms = world_deadline()};
    bool is_gone;
    ck_assert_int_eq(
        registry_delete(w.registry, kind, namespace_name, name, &opts, &o, &is_gone, &err), 0);
}

/* ---- nodes for Pods ---- */

#define CONTAINERS "\"containers\":[{\"name\":\"m\",\"image\":\"i\"}]"

static inline void look_at_pod(const char *name, const char *expected_node,
                               const char *expected_condition)
{
    struct loop_result result = {0};
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(house_bind_pass(&env, "x", name, &result, &err), 0);
    SCOPED(json_free_p) cJSON *pod = get(&kind_pod, "x", name);
    const cJSON *conditions = json_at(pod, "status.conditions");
    ck_assert_str_eq(json_str_or(pod, "spec.nodeName", ""), expected_node);
    ck_assert_uint_eq(json_len(conditions), *expected_condition ? 1 : 0);
    ck_assert_str_eq(json_str_or(conditions ? conditions->child : NULL, "status", ""),
                     expected_condition);
}

static inline void make_node(const char *name, const char *labels, const char *ready)
{
    SCOPED_FREE char *members =
        xasprintf("\"metadata\":{\"name\":\"%s\",\"labels\":{%s}},\"status\":{\"conditions\":[{"
                  "\"type\":\"Ready\",\"status\":\"%s\"}]}",
                  name, labels, ready);
    make_and_forget(&kind_node, "", members);
}
