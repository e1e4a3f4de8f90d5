/* What a server without a cluster does itself, pass by pass over a registry in memory: old Events,
 * Namespaces, nodes for Pods, its own Service, roles. */
#include "tests/unit/reconcile/house_fixture.h"

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

static int64_t look_at_namespace_of(char *authority, const char *name)
{
    struct loop_result result = {0};
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(house_namespace_pass(&env, authority, name, &result, &err), 0);
    return result.again_after_ms;
}

static int64_t look_at_namespace(const char *name)
{
    return look_at_namespace_of(NULL, name);
}

static void check_authority(const char *expected)
{
    SCOPED(json_free_p) cJSON *map = get(&kind_config_map, "x", "kube-root-ca.crt");
    SCOPED_FREE char *data = json_to_str(json_get(map, "data"));
    ck_assert_str_eq(data, expected);
}

static bool spoil(void *unused, cJSON *map)
{
    (void)unused;
    json_set_at(map, "data.more", json_string("x"));
    return true;
}

/* Whatever becomes of it, every namespace has the server's own. */
START_TEST(test_authority)
{
    char one[] = "one", two[] = "two";
    make_and_forget(&kind_namespace, "", "\"metadata\":{\"name\":\"x\"}");
    look_at_namespace("x");
    ck_assert(!is_there(&kind_config_map, "x", "kube-root-ca.crt"));
    look_at_namespace_of(one, "x");
    check_authority("{\"ca.crt\":\"one\"}");
    SCOPED(object_unref_p) struct object *map = NULL;
    ck_assert_int_eq(pass_get(&env, &kind_config_map, "x", "kube-root-ca.crt", &map, NULL), 0);
    ck_assert_int_eq(house_change(&env, map, spoil, NULL, NULL), 0);
    look_at_namespace_of(one, "x");
    check_authority("{\"ca.crt\":\"one\"}");
    look_at_namespace_of(two, "x");
    check_authority("{\"ca.crt\":\"two\"}");
    drop(&kind_config_map, "x", "kube-root-ca.crt", NULL);
    look_at_namespace_of(two, "x");
    check_authority("{\"ca.crt\":\"two\"}");
    drop(&kind_namespace, "", "x", NULL);
    look_at_namespace_of(two, "x");
    ck_assert(!is_there(&kind_config_map, "x", "kube-root-ca.crt"));
}
END_TEST

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
    SCOPED(json_free_p) cJSON *namespace = get(&kind_namespace, "", "x");
    SCOPED_FREE char *told = json_to_str(json_at(namespace, "status.conditions"));
    ck_assert_ptr_nonnull(strstr(told, "finalizers remaining: x.org/f in 1 resource instances"));
    ck_assert_ptr_nonnull(strstr(told, "configmaps. has 2 resource instances"));
    look_at_namespace("x");
    SCOPED(json_free_p) cJSON *later = get(&kind_namespace, "", "x");
    SCOPED_FREE char *then = json_to_str(json_at(later, "status.conditions"));
    ck_assert_ptr_nonnull(strstr(then, "configmaps. has 1 resource instances"));
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

/* ---- the server's own Service ---- */

static void look_at_api(const char *address, int port)
{
    const struct house_api api = {address, port};
    SCOPED(err_fini) struct err err = {0};
    ck_assert_msg(house_api_pass(&env, &api, &err) == 0, "%s", err_text(&err));
}

static void check_api(const char *type, const char *address, int port)
{
    SCOPED(json_free_p)
    cJSON *service = get(&kind_service, "default", "kubernetes"),
          *slice = get(&kind_endpoint_slice, "default", "kubernetes");
    SCOPED_FREE char *labels = json_to_str(json_at(service, "metadata.labels")),
                     *ports = json_to_str(json_at(service, "spec.ports")),
                     *slice_labels = json_to_str(json_at(slice, "metadata.labels")),
                     *slice_ports = json_to_str(json_get(slice, "ports")),
                     *endpoints = json_to_str(json_get(slice, "endpoints"));
    SCOPED_FREE char *want_ports = xasprintf("[{\"name\":\"https\",\"port\":443,\"protocol\":"
                                             "\"TCP\",\"targetPort\":%d}]",
                                             port);
    SCOPED_FREE char *want_slice_ports =
        xasprintf("[{\"name\":\"https\",\"port\":%d,\"protocol\":\"TCP\"}]", port);
    SCOPED_FREE char *want_endpoints =
        xasprintf("[{\"addresses\":[\"%s\"],\"conditions\":{\"ready\":true}}]", address);
    ck_assert_str_eq(labels, "{\"component\":\"apiserver\",\"provider\":\"kubernetes\"}");
    ck_assert_str_eq(ports, want_ports);
    ck_assert_str_eq(json_str_or(service, "spec.clusterIP", ""), "None");
    ck_assert_str_eq(json_str_or(service, "spec.type", ""), "ClusterIP");
    ck_assert_ptr_null(json_at(service, "spec.selector"));
    ck_assert_str_eq(slice_labels, "{\"kubernetes.io/service-name\":\"kubernetes\"}");
    ck_assert_str_eq(slice_ports, want_slice_ports);
    ck_assert_str_eq(endpoints, want_endpoints);
    ck_assert_str_eq(json_str_or(slice, "addressType", ""), type);
}

static bool spoil_service(void *unused, cJSON *service)
{
    (void)unused;
    json_set_at(service, "spec.selector.app", json_string("mine"));
    json_set_at(service, "metadata.labels.provider", json_string("me"));
    json_set(json_get(json_get(service, "spec"), "ports")->child, "port", json_int(80));
    return true;
}

static bool spoil_slice(void *unused, cJSON *slice)
{
    (void)unused;
    json_set(slice, "endpoints", json_array());
    json_remove(json_get(slice, "metadata"), "labels");
    return true;
}

static void spoil_api(const struct kind *kind, bool (*how)(void *ctx, cJSON *object))
{
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(pass_get(&env, kind, "default", "kubernetes", &o, NULL), 0);
    ck_assert(house_is_api(o));
    ck_assert_msg(house_change(&env, o, how, NULL, &err) == 0, "%s", err_text(&err));
}

/* The server's Service says where the server is, whatever becomes of it. */
START_TEST(test_api)
{
    look_at_api(NULL, 0);
    ck_assert(!is_there(&kind_service, "default", "kubernetes"));
    look_at_api("127.0.0.1", 6443);
    check_api("IPv4", "127.0.0.1", 6443);
    SCOPED(json_free_p) cJSON *before = get(&kind_service, "default", "kubernetes");
    look_at_api("127.0.0.1", 6443);
    SCOPED(json_free_p) cJSON *after = get(&kind_service, "default", "kubernetes");
    ck_assert(json_equal(before, after)); /* nothing was written */
    spoil_api(&kind_service, spoil_service);
    spoil_api(&kind_endpoint_slice, spoil_slice);
    look_at_api("127.0.0.1", 6443);
    check_api("IPv4", "127.0.0.1", 6443);
    drop(&kind_service, "default", "kubernetes", NULL);
    drop(&kind_endpoint_slice, "default", "kubernetes", NULL);
    look_at_api("10.0.0.7", 8443);
    check_api("IPv4", "10.0.0.7", 8443);
    look_at_api("::1", 8443);
    check_api("IPv6", "::1", 8443);
}
END_TEST

/* ---- roles ---- */

static bool put_rules(void *rules, cJSON *role)
{
    json_set(role, "rules", json_copy(rules));
    return true;
}

static void change_rules(const char *role, cJSON *rules)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    ck_assert_int_eq(pass_get(&env, &kind_cluster_role, "", role, &o, NULL), 0);
    ck_assert_int_eq(house_change(&env, o, put_rules, rules, NULL), 0);
}

static char *rules_of(const char *role)
{
    SCOPED(json_free_p) cJSON *tree = get(&kind_cluster_role, "", role);
    return json_to_str(json_get(tree, "rules"));
}

/* What a role was changed to stays, but for the one of nodes, which once had more. */
START_TEST(test_roles)
{
    SCOPED(err_fini) struct err err = {0};
    SCOPED(json_free_p)
    cJSON *all = world_tree("[{\"apiGroups\":[\"*\"],\"resources\":[\"*\"],\"verbs\":[\"*\"]}]");
    SCOPED_FREE char *printed = json_to_str(all);
    ck_assert_int_eq(house_roles_pass(&env, &err), 0);
    SCOPED_FREE char *first = rules_of("system:node");
    ck_assert_ptr_null(strstr(first, "secrets"));
    ck_assert_ptr_null(strstr(first, "serviceaccounts"));
    change_rules("system:node", all);
    change_rules("view", all);
    ck_assert_int_eq(house_roles_pass(&env, &err), 0);
    SCOPED_FREE char *node = rules_of("system:node"), *view = rules_of("view");
    ck_assert_str_eq(node, first);
    ck_assert_str_eq(view, printed);
}
END_TEST

SUITE(house)
{
    TCase *tc = tcase_create("passes");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_old_events);
    tcase_add_test(tc, test_authority);
    tcase_add_test(tc, test_roles);
    tcase_add_test(tc, test_api);
    tcase_add_test(tc, test_namespace);
    tcase_add_test(tc, test_empty_namespace_goes);
    tcase_add_test(tc, test_bind);
    suite_add_tcase(s, tc);
}
