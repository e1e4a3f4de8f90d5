/* EndpointSlices of a server without a cluster: which Pods of a Service are in them, and as what.
 */
#include "tests/unit/reconcile/house_fixture.h"

/* The only slice there is; NULL = there is none. */
static cJSON *look_at_service(const char *name)
{
    SCOPED(err_fini) struct err err = {0};
    SCOPED_FREE char *key = pass_key("x", name);
    SCOPED(list_result_fini) struct list_result found = {0};
    int rc = house_slices_pass(&env, links, key, &err);
    ck_assert_msg(rc == 0, "%s: %s", name, err_text(&err));
    ck_assert_int_eq(registry_list(w.registry,
                                   &(struct list_request){.kind = &kind_endpoint_slice,
                                                          .namespace_name = "x",
                                                          .version = {READ_ANY, 0}},
                                   &found, &err),
                     0);
    ck_assert_uint_le(found.n, 1);
    return found.n ? object_tree(found.objects[0]) : NULL;
}

static void expect_endpoints(const char *name, const char *expected)
{
    SCOPED(json_free_p) cJSON *slice = look_at_service(name);
    SCOPED(buf_fini) struct buf text = {0};
    const cJSON *e, *p;
    cJSON_ArrayForEach(e, json_get(slice, "endpoints"))
    {
        const cJSON *c = json_get(e, "conditions");
        buf_printf(&text, "%s%s=%s%s%s%s", text.len ? " " : "",
                   json_str_or(e, "targetRef.name", ""),
                   json_get(e, "addresses")->child->valuestring,
                   json_bool_or(c, "ready", false) ? " ready" : "",
                   json_bool_or(c, "serving", false) ? " serving" : "",
                   json_bool_or(c, "terminating", false) ? " terminating" : "");
    }
    cJSON_ArrayForEach(p, json_get(slice, "ports"))
    {
        buf_printf(&text, " :%lld", (long long)json_i64_or(p, "port", 0));
    }
    ck_assert_str_eq(buf_cstr(&text), expected);
}

static void make_pod(const char *name, const char *app, const char *ip, const char *phase,
                     const char *ready)
{
    SCOPED_FREE char *members = xasprintf(
        "\"metadata\":{\"name\":\"%s\",\"labels\":{\"app\":\"%s\",\"tier\":\"a\"}},\"spec\":{"
        "\"nodeName\":\"n\",\"containers\":[{\"name\":\"m\",\"image\":\"i\",\"ports\":[{\"name\":"
        "\"web\",\"containerPort\":8080}]}]},\"status\":{\"phase\":\"%s\",\"podIP\":\"%s\","
        "\"conditions\":[{\"type\":\"Ready\",\"status\":\"%s\"}]}",
        name, app, phase, ip, ready);
    make_and_forget(&kind_pod, "x", members);
}

START_TEST(test_slices)
{
    make_and_forget(
        &kind_service, "x",
        "\"metadata\":{\"name\":\"s\",\"labels\":{\"own\":\"label\"}},\"spec\":{"
        "\"clusterIP\":\"None\",\"selector\":{\"app\":\"web\",\"tier\":\"a\"},"
        "\"ports\":[{\"name\":\"http\",\"port\":80,\"targetPort\":\"web\"},{\"name\":\"plain\","
        "\"port\":81}]}");
    expect_endpoints("s", " :81"); /* the other's number is known with a Pod */
    SCOPED(json_free_p) cJSON *slice = look_at_service("s");
    SCOPED_FREE char *labels = json_to_str(json_at(slice, "metadata.labels"));
    ck_assert_str_eq(labels, "{\"endpointslice.kubernetes.io/managed-by\":"
                             "\"endpointslice-controller.k8s.io\","
                             "\"kubernetes.io/service-name\":\"s\",\"own\":\"label\","
                             "\"service.kubernetes.io/headless\":\"\"}");
    ck_assert_str_eq(json_str_or(slice, "addressType", ""), "IPv4");
    const cJSON *owner = json_at(slice, "metadata.ownerReferences");
    ck_assert_str_eq(json_str_or(owner ? owner->child : NULL, "kind", ""), "Service");
    make_pod("a", "web", "10.0.0.1", "Running", "True");
    make_pod("b", "web", "10.0.0.2", "Running", "False");
    make_pod("done", "web", "10.0.0.3", "Succeeded", "False");
    make_pod("starting", "web", "", "Pending", "False");
    make_pod("other", "db", "10.0.0.4", "Running", "True");
    expect_endpoints("s", "a=10.0.0.1 ready serving b=10.0.0.2 :8080 :81");
    SCOPED(json_free_p) cJSON *before = look_at_service("s");
    SCOPED(json_free_p) cJSON *after = look_at_service("s");
    ck_assert(json_equal(before, after)); /* nothing is written twice */
    char **of_a = links_to(links, "x/a"), **of_other = links_to(links, "x/other");
    ck_assert(of_a && strv_has(of_a, "x/s"));
    ck_assert_ptr_null(of_other);
    strv_free(of_a);
    drop(&kind_pod, "x", "a", NULL);
    expect_endpoints("s", "a=10.0.0.1 serving terminating b=10.0.0.2 :8080 :81");
}
END_TEST

START_TEST(test_services_without_slices)
{
    make_and_forget(&kind_service, "x",
                    "\"metadata\":{\"name\":\"bare\"},\"spec\":{\"clusterIP\":\"None\"}");
    make_and_forget(&kind_service, "x",
                    "\"metadata\":{\"name\":\"alias\"},\"spec\":{\"type\":\"ExternalName\","
                    "\"externalName\":\"example.org\",\"selector\":{\"app\":\"web\"}}");
    ck_assert_ptr_null(look_at_service("bare"));
    ck_assert_ptr_null(look_at_service("alias"));
    ck_assert_ptr_null(look_at_service("gone"));
}
END_TEST

SUITE(house_slices)
{
    TCase *tc = tcase_create("slices");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_slices);
    tcase_add_test(tc, test_services_without_slices);
    suite_add_tcase(s, tc);
}
