/* What a server without a cluster does itself, pass by pass over a registry in memory: old Events,
 * Namespaces, nodes for Pods, and objects whose owners go. */
#include "reconcile/house_pass.h"

#include "openapi/kinds/builtin.h"
#include "tests/lib/world.h"

static struct world w;
static struct pass_env env;
static struct owners *owners;

static void setup(void)
{
    kinds_served = kinds_standalone;
    world_start(&w, NULL);
    env = (struct pass_env){.registry = w.registry, .clock = &w.clock.clock};
    owners = owners_new();
}

static void teardown(void)
{
    owners_free(owners);
    world_stop(&w);
}

/* members: JSON text of what stands beside apiVersion and kind. */
static struct object *make(const struct kind *kind, const char *namespace_name, const char *members)
{
    SCOPED_FREE char *text =
        xasprintf("{\"apiVersion\":\"%s%s%s\",\"kind\":\"%s\",%s}", kind->group,
                  *kind->group ? "/" : "", kind->version, kind->kind, members);
    SCOPED(err_fini) struct err err = {0};
    struct write_options opts = world_opts();
    struct object *o = NULL;
    opts.is_system = true; /* status in the same write */
    int rc = registry_create(w.registry, kind, namespace_name, world_tree(text), &opts, &o, &err);
    ck_assert_msg(rc == 0, "%s: %s", text, err_text(&err));
    return o;
}

static void make_and_forget(const struct kind *kind, const char *namespace_name,
                            const char *members)
{
    object_unref(make(kind, namespace_name, members));
}

/* NULL when it is not there. */
static cJSON *get(const struct kind *kind, const char *namespace_name, const char *name)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(pass_get(&env, kind, namespace_name, name, &o, &err), 0);
    return o ? object_tree(o) : NULL;
}

static bool is_there(const struct kind *kind, const char *namespace_name, const char *name)
{
    SCOPED(json_free_p) cJSON *tree = get(kind, namespace_name, name);
    return tree != NULL;
}

static void drop(const struct kind *kind, const char *namespace_name, const char *name,
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

/* ---- old Events ---- */

START_TEST(test_old_events)
{
    struct loop_result result = {0};
    SCOPED(err_fini) struct err err = {0};
    const char *const about = "\"involvedObject\":{\"kind\":\"Pod\",\"name\":\"p\","
                              "\"namespace\":\"x\"},\"lastTimestamp\":\"2026-01-02T0";
    SCOPED_FREE char *old =
        xasprintf("\"metadata\":{\"name\":\"old\"},%s2:04:04Z\"", about); /* an hour and a second */
    SCOPED_FREE char *young = xasprintf("\"metadata\":{\"name\":\"young\"},%s2:04:06Z\"", about);
    make_and_forget(&kind_core_event, "x", old);
    make_and_forget(&kind_core_event, "x", young);
    ck_assert_int_eq(house_events_pass(&env, &result, &err), 0);
    ck_assert(!is_there(&kind_core_event, "x", "old"));
    ck_assert(is_there(&kind_core_event, "x", "young"));
    ck_assert_int_eq(result.again_after_ms, 60000);
    clock_fake_advance(&w.clock, 2000);
    ck_assert_int_eq(house_events_pass(&env, &result, &err), 0);
    ck_assert(!is_there(&kind_core_event, "x", "young"));
}
END_TEST

/* ---- Namespaces ---- */

static int64_t look_at_namespace(const char *name)
{
    struct loop_result result = {0};
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(house_namespace_pass(&env, name, &result, &err), 0);
    return result.again_after_ms;
}

START_TEST(test_namespace)
{
    make_and_forget(&kind_namespace, "", "\"metadata\":{\"name\":\"x\"}");
    look_at_namespace("x");
    ck_assert(is_there(&kind_service_account, "x", "default"));
    look_at_namespace("x"); /* nothing is made twice */
    make_and_forget(&kind_config_map, "x", "\"metadata\":{\"name\":\"c\"}");
    make_and_forget(&kind_config_map, "x",
                    "\"metadata\":{\"name\":\"held\",\"finalizers\":[\"x.org/f\"]}");
    make_and_forget(&kind_config_map, "y", "\"metadata\":{\"name\":\"c\"}");
    drop(&kind_namespace, "", "x", NULL);
    ck_assert(is_there(&kind_namespace, "", "x"));
    ck_assert_int_gt(look_at_namespace("x"), 0); /* one is held, so it looks again */
    ck_assert(!is_there(&kind_config_map, "x", "c"));
    ck_assert(is_there(&kind_config_map, "x", "held"));
    ck_assert(is_there(&kind_namespace, "", "x"));
    ck_assert(is_there(&kind_config_map, "y", "c"));
}
END_TEST

START_TEST(test_empty_namespace_goes)
{
    make_and_forget(&kind_namespace, "", "\"metadata\":{\"name\":\"x\"}");
    drop(&kind_namespace, "", "x", NULL);
    ck_assert_int_eq(look_at_namespace("x"), 0);
    ck_assert(!is_there(&kind_namespace, "", "x"));
}
END_TEST

/* ---- nodes for Pods ---- */

#define CONTAINERS "\"containers\":[{\"name\":\"m\",\"image\":\"i\"}]"

static void look_at_pod(const char *name, const char *expected_node, const char *expected_condition)
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

static void make_node(const char *name, const char *labels, const char *ready)
{
    SCOPED_FREE char *members =
        xasprintf("\"metadata\":{\"name\":\"%s\",\"labels\":{%s}},\"status\":{\"conditions\":[{"
                  "\"type\":\"Ready\",\"status\":\"%s\"}]}",
                  name, labels, ready);
    make_and_forget(&kind_node, "", members);
}

START_TEST(test_bind)
{
    make_and_forget(&kind_pod, "x", "\"metadata\":{\"name\":\"p\"},\"spec\":{" CONTAINERS "}");
    make_and_forget(
        &kind_pod, "x",
        "\"metadata\":{\"name\":\"choosy\"},\"spec\":{\"nodeSelector\":{\"a\":\"b\"}," CONTAINERS
        "}");
    make_and_forget(&kind_pod, "x",
                    "\"metadata\":{\"name\":\"gated\"},\"spec\":{\"schedulingGates\":[{\"name\":"
                    "\"x.org/g\"}]," CONTAINERS "}");
    make_node("down", "\"a\":\"b\"", "False");
    look_at_pod("p", "", "False");
    look_at_pod("p", "", "False"); /* said once */
    make_node("plain", "", "True");
    look_at_pod("p", "plain", "True");
    look_at_pod("choosy", "", "False");
    look_at_pod("gated", "", "");
    make_node("labelled", "\"a\":\"b\"", "True");
    look_at_pod("choosy", "labelled", "True");
    look_at_pod("p", "plain", "True"); /* stays where it is */
}
END_TEST

/* ---- owners ---- */

static void ignore(void *ctx, const char *key)
{
    (void)ctx, (void)key;
}

/* One that names these owners; references is JSON text. */
static void make_owned(const char *name, const char *references)
{
    SCOPED_FREE char *members =
        xasprintf("\"metadata\":{\"name\":\"%s\",\"ownerReferences\":[%s]}", name, references);
    SCOPED(object_unref_p) struct object *o = make(&kind_config_map, "x", members);
    owners_note(owners, o, false, ignore, NULL);
}

static char *reference(const struct object *owner, bool blocks)
{
    return xasprintf("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"%s\",\"uid\":\"%s\","
                     "\"blockOwnerDeletion\":%s}",
                     owner->name, owner->uid, blocks ? "true" : "false");
}

static struct object *make_owner(const char *name)
{
    SCOPED_FREE char *members = xasprintf("\"metadata\":{\"name\":\"%s\"}", name);
    return make(&kind_config_map, "x", members);
}

static int64_t look_at(const char *name)
{
    struct loop_result result = {0};
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(pass_get(&env, &kind_config_map, "x", name, &o, &err), 0);
    ck_assert_ptr_nonnull(o);
    SCOPED_FREE char *key = owners_key(o);
    ck_assert_int_eq(house_owners_pass(&env, owners, key, &result, &err), 0);
    return result.again_after_ms;
}

static size_t count_owners(const char *name)
{
    SCOPED(json_free_p) cJSON *tree = get(&kind_config_map, "x", name);
    return json_len(json_at(tree, "metadata.ownerReferences"));
}

START_TEST(test_goes_with_its_owners)
{
    SCOPED(object_unref_p) struct object *a = make_owner("a"), *b = make_owner("b");
    SCOPED_FREE char *of_a = reference(a, false), *of_b = reference(b, false);
    SCOPED_FREE char *of_both = xasprintf("%s,%s", of_a, of_b);
    make_owned("one", of_a);
    make_owned("two", of_both);
    look_at("one");
    ck_assert_uint_eq(count_owners("one"), 1); /* its owner is there */
    drop(&kind_config_map, "x", "a", NULL);
    look_at("one");
    ck_assert(!is_there(&kind_config_map, "x", "one"));
    look_at("two");
    ck_assert_uint_eq(count_owners("two"), 1); /* b is left */
    drop(&kind_config_map, "x", "b", NULL);
    look_at("two");
    ck_assert(!is_there(&kind_config_map, "x", "two"));
}
END_TEST

/* An owner made anew under its name is another; one of a kind that is not served counts as there.
 */
START_TEST(test_who_an_owner_is)
{
    SCOPED(object_unref_p) struct object *before = make_owner("a");
    SCOPED_FREE char *of_before = reference(before, false);
    make_owned("dependent", of_before);
    make_owned("foreign", "{\"apiVersion\":\"example.org/v1\",\"kind\":\"Thing\",\"name\":\"t\","
                          "\"uid\":\"u\"}");
    drop(&kind_config_map, "x", "a", NULL);
    object_unref(make_owner("a"));
    look_at("dependent");
    look_at("foreign");
    ck_assert(!is_there(&kind_config_map, "x", "dependent"));
    ck_assert(is_there(&kind_config_map, "x", "foreign"));
}
END_TEST

START_TEST(test_foreground)
{
    SCOPED(object_unref_p) struct object *a = make_owner("a");
    SCOPED_FREE char *of_a = reference(a, true);
    make_owned("dependent", of_a);
    drop(&kind_config_map, "x", "a", "Foreground");
    ck_assert_int_gt(look_at("a"), 0); /* waits for the one that it has deleted */
    ck_assert(!is_there(&kind_config_map, "x", "dependent"));
    ck_assert(is_there(&kind_config_map, "x", "a"));
    look_at("a");
    ck_assert(!is_there(&kind_config_map, "x", "a"));
}
END_TEST

/* What owns something in turn waits for it as well; what has another owner stays. */
START_TEST(test_foreground_goes_down)
{
    SCOPED(object_unref_p) struct object *a = make_owner("a"), *other = make_owner("other");
    SCOPED_FREE char *of_a = reference(a, true), *of_other = reference(other, true);
    SCOPED_FREE char *of_both = xasprintf("%s,%s", of_a, of_other);
    make_owned("middle", of_a);
    make_owned("shared", of_both);
    SCOPED(object_unref_p) struct object *middle = NULL;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(pass_get(&env, &kind_config_map, "x", "middle", &middle, &err), 0);
    SCOPED_FREE char *of_middle = reference(middle, true);
    make_owned("leaf", of_middle);
    drop(&kind_config_map, "x", "a", "Foreground");
    ck_assert_int_gt(look_at("a"), 0);
    ck_assert_uint_eq(count_owners("shared"), 1);
    ck_assert(is_there(&kind_config_map, "x", "middle")); /* waits for the leaf */
    ck_assert(is_there(&kind_config_map, "x", "leaf"));
    ck_assert_int_gt(look_at("middle"), 0);
    ck_assert(!is_there(&kind_config_map, "x", "leaf"));
    look_at("middle");
    ck_assert(!is_there(&kind_config_map, "x", "middle"));
    look_at("a");
    ck_assert(!is_there(&kind_config_map, "x", "a"));
    ck_assert(is_there(&kind_config_map, "x", "shared"));
}
END_TEST

START_TEST(test_orphan)
{
    SCOPED(object_unref_p) struct object *a = make_owner("a");
    SCOPED_FREE char *of_a = reference(a, true);
    make_owned("dependent", of_a);
    drop(&kind_config_map, "x", "a", "Orphan");
    look_at("a");
    ck_assert(!is_there(&kind_config_map, "x", "a"));
    ck_assert(is_there(&kind_config_map, "x", "dependent"));
    ck_assert_uint_eq(count_owners("dependent"), 0);
}
END_TEST

SUITE(house)
{
    TCase *tc = tcase_create("passes");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_old_events);
    tcase_add_test(tc, test_namespace);
    tcase_add_test(tc, test_empty_namespace_goes);
    tcase_add_test(tc, test_bind);
    tcase_add_test(tc, test_goes_with_its_owners);
    tcase_add_test(tc, test_who_an_owner_is);
    tcase_add_test(tc, test_foreground);
    tcase_add_test(tc, test_foreground_goes_down);
    tcase_add_test(tc, test_orphan);
    suite_add_tcase(s, tc);
}
