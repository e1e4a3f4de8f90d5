/* What a server without a cluster does itself, pass by pass over a registry in memory: old Events,
 * Namespaces, nodes for Pods, and objects whose owners go. */
#include "reconcile/house_pass.h"

#include "openapi/kinds/builtin.h"
#include "tests/lib/world.h"

static struct world w;
static struct pass_env env;
static struct links *owners;

static void setup(void)
{
    kinds_served = kinds_standalone;
    world_start(&w, NULL);
    env = (struct pass_env){.registry = w.registry, .clock = &w.clock.clock};
    owners = links_new();
}

static void teardown(void)
{
    links_free(owners);
    world_stop(&w);
}

static struct object *make(const struct kind *kind, const char *namespace_name, const char *members)
{
    struct write_options opts = world_opts();
    opts.is_system = true; /* status in the same write */
    return world_make(&w, kind, namespace_name, members, &opts);
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

/* ---- volumes ---- */

static struct links *users;

static bool without_finalizers(void *ctx, cJSON *object)
{
    (void)ctx;
    json_remove(json_get(object, "metadata"), "finalizers");
    return true;
}

static void look_at_claim(const char *name)
{
    SCOPED(err_fini) struct err err = {0};
    SCOPED_FREE char *key = pass_key("x", name);
    int rc = house_claim_pass(&env, users, key, &err);
    ck_assert_msg(rc == 0, "%s: %s", name, err_text(&err));
}

static void look_at_volume(const char *name)
{
    SCOPED(err_fini) struct err err = {0};
    int rc = house_volume_pass(&env, name, &err);
    ck_assert_msg(rc == 0, "%s: %s", name, err_text(&err));
}

/* spec: JSON text of further members. */
static struct object *make_claim(const char *name, const char *size, const char *spec)
{
    SCOPED_FREE char *members =
        xasprintf("\"metadata\":{\"name\":\"%s\"},\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],"
                  "\"resources\":{\"requests\":{\"storage\":\"%s\"}}%s}",
                  name, size, spec);
    return make(&kind_persistent_volume_claim, "x", members);
}

static void make_volume(const char *name, const char *size, const char *labels, const char *spec)
{
    SCOPED_FREE char *members = xasprintf(
        "\"metadata\":{\"name\":\"%s\",\"labels\":{%s}},\"spec\":{\"accessModes\":["
        "\"ReadWriteOnce\",\"ReadOnlyMany\"],\"capacity\":{\"storage\":\"%s\"},\"hostPath\":{"
        "\"path\":\"/srv/%s\"}%s}",
        name, labels, size, name, spec);
    make_and_forget(&kind_persistent_volume, "", members);
}

static void expect_text(const struct kind *kind, const char *namespace_name, const char *name,
                        const char *path, const char *expected)
{
    SCOPED(json_free_p) cJSON *tree = get(kind, namespace_name, name);
    ck_assert_msg(tree != NULL, "%s is not there", name);
    const char *text = json_str_or(tree, path, "");
    ck_assert_msg(strcmp(text, expected) == 0, "%s of %s: \"%s\"", path, name, text);
}
#define EXPECT_CLAIM(name, path, expected)                                                         \
    expect_text(&kind_persistent_volume_claim, "x", name, path, expected)
#define EXPECT_VOLUME(name, path, expected)                                                        \
    expect_text(&kind_persistent_volume, "", name, path, expected)

static void setup_volumes(void)
{
    setup();
    users = links_new();
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(house_class_pass(&env, &err), 0);
    ck_assert_int_eq(house_class_pass(&env, &err), 0); /* made once */
}

static void teardown_volumes(void)
{
    links_free(users);
    teardown();
}

START_TEST(test_claim_gets_a_volume_of_its_own)
{
    SCOPED(object_unref_p) struct object *claim = make_claim("c", "1Gi", "");
    SCOPED_FREE char *volume = xasprintf("pvc-%s", claim->uid);
    look_at_claim("c");
    EXPECT_CLAIM("c", "status.phase", "Bound");
    EXPECT_CLAIM("c", "status.capacity.storage", "1Gi");
    EXPECT_CLAIM("c", "spec.volumeName", volume);
    EXPECT_CLAIM("c", "spec.storageClassName", "standard");
    EXPECT_VOLUME(volume, "spec.csi.volumeHandle", claim->uid);
    EXPECT_VOLUME(volume, "spec.claimRef.name", "c");
    EXPECT_VOLUME(volume, "spec.persistentVolumeReclaimPolicy", "Delete");
    look_at_volume(volume);
    EXPECT_VOLUME(volume, "status.phase", "Bound");
    drop(&kind_persistent_volume, "", volume, NULL);
    look_at_volume(volume);
    ck_assert(is_there(&kind_persistent_volume, "", volume)); /* it is in use */
    drop(&kind_persistent_volume_claim, "x", "c", NULL);
    ck_assert(is_there(&kind_persistent_volume_claim, "x", "c")); /* held until it was looked at */
    look_at_claim("c");
    ck_assert(!is_there(&kind_persistent_volume_claim, "x", "c"));
    look_at_volume(volume);
    ck_assert(!is_there(&kind_persistent_volume, "", volume));
}
END_TEST

/* A crash between the two writes: the volume is there, and the claim does not know. */
START_TEST(test_claim_finds_the_volume_that_was_made_for_it)
{
    SCOPED(object_unref_p) struct object *claim = make_claim("c", "1Gi", "");
    SCOPED_FREE char *volume = xasprintf("pvc-%s", claim->uid);
    SCOPED_FREE char *ref =
        xasprintf(",\"storageClassName\":\"standard\",\"claimRef\":{\"namespace\":\"x\",\"name\":"
                  "\"c\",\"uid\":\"%s\"}",
                  claim->uid);
    make_volume(volume, "1Gi", "", ref);
    look_at_claim("c");
    EXPECT_CLAIM("c", "spec.volumeName", volume);
    EXPECT_CLAIM("c", "status.phase", "Bound");
}
END_TEST

static const struct {
    const char *claim;    /* of its spec */
    const char *expected; /* the volume it gets, or nothing */
} choices[] = {
    {",\"storageClassName\":\"\"", "middle"}, /* the smallest that is large enough */
    {",\"storageClassName\":\"\",\"selector\":{\"matchLabels\":{\"tier\":\"gold\"}}", "large"},
    {",\"storageClassName\":\"\",\"selector\":{\"matchExpressions\":[{\"key\":\"tier\","
     "\"operator\":\"In\",\"values\":[\"iron\",\"gold\"]}]}",
     "large"},
    {",\"storageClassName\":\"\",\"selector\":{\"matchExpressions\":[{\"key\":\"tier\","
     "\"operator\":\"DoesNotExist\"}]}",
     "middle"},
    {",\"storageClassName\":\"\",\"selector\":{\"matchLabels\":{\"tier\":\"tin\"}}", ""},
    {",\"storageClassName\":\"fast\"", "fast"},
    {",\"storageClassName\":\"slow\"", ""}, /* nobody makes volumes of that class */
    {",\"storageClassName\":\"\",\"volumeMode\":\"Block\"", "block"},
    {",\"storageClassName\":\"\",\"accessModes\":[\"ReadWriteMany\"]", ""},
    {",\"storageClassName\":\"\",\"volumeName\":\"large\"", "large"},
    {",\"storageClassName\":\"\",\"volumeName\":\"taken\"", NULL},
};

START_TEST(test_choice)
{
    make_volume("small", "10Mi", "", "");
    make_volume("large", "3Gi", "\"tier\":\"gold\"", "");
    make_volume("middle", "1Gi", "", "");
    make_volume("fast", "2Gi", "", ",\"storageClassName\":\"fast\"");
    make_volume("block", "2Gi", "", ",\"volumeMode\":\"Block\"");
    make_volume("taken", "1Gi", "",
                ",\"claimRef\":{\"namespace\":\"x\",\"name\":\"c\",\"uid\":\"another\"}");
    SCOPED_FREE char *spec = xasprintf(
        "\"metadata\":{\"name\":\"c\"},\"spec\":{\"resources\":{\"requests\":{\"storage\":"
        "\"0.5Gi\"}}%s%s}",
        strstr(choices[_i].claim, "accessModes") ? "" : ",\"accessModes\":[\"ReadWriteOnce\"]",
        choices[_i].claim);
    make_and_forget(&kind_persistent_volume_claim, "x", spec);
    SCOPED(err_fini) struct err err = {0};
    int rc = house_claim_pass(&env, users, "x/c", &err);
    ck_assert_int_eq(rc, choices[_i].expected ? 0 : -ERR_CONFLICT);
    const char *expected = choices[_i].expected ? choices[_i].expected : "taken";
    EXPECT_CLAIM("c", "spec.volumeName", expected);
    EXPECT_CLAIM("c", "status.phase", choices[_i].expected && *expected ? "Bound" : "Pending");
    if (!choices[_i].expected || !*expected)
        return;
    EXPECT_VOLUME(expected, "status.phase", "Bound");
    EXPECT_VOLUME(expected, "spec.claimRef.name", "c");
    drop(&kind_persistent_volume_claim, "x", "c", NULL);
    look_at_claim("c");
    look_at_volume(expected);
    EXPECT_VOLUME(expected, "status.phase", "Released"); /* such ones are kept */
    look_at_volume("small");
    EXPECT_VOLUME("small", "status.phase", "Available");
}
END_TEST

START_TEST(test_reserved_volume)
{
    make_volume("small", "1Gi", "", "");
    make_volume("mine", "5Gi", "", ",\"claimRef\":{\"namespace\":\"x\",\"name\":\"c\"}");
    look_at_volume("mine");
    EXPECT_VOLUME("mine", "status.phase", "Available");
    object_unref(make_claim("other", "2Gi", ",\"storageClassName\":\"\""));
    look_at_claim("other");
    EXPECT_CLAIM("other", "status.phase", "Pending"); /* the only one large enough is reserved */
    SCOPED(object_unref_p)
    struct object *claim = make_claim("c", "1Gi", ",\"storageClassName\":\"\"");
    look_at_claim("c");
    EXPECT_CLAIM("c", "spec.volumeName", "mine");
    EXPECT_VOLUME("mine", "spec.claimRef.uid", claim->uid);
    make_volume("alien", "1Gi", "",
                ",\"persistentVolumeReclaimPolicy\":\"Delete\",\"claimRef\":{\"namespace\":\"x\","
                "\"name\":\"gone\",\"uid\":\"u\"}");
    look_at_volume("alien"); /* nobody here deletes its data */
    EXPECT_VOLUME("alien", "status.phase", "Failed");
}
END_TEST

START_TEST(test_claim_in_use)
{
    SCOPED(object_unref_p) struct object *claim = make_claim("c", "1Gi", "");
    make_and_forget(&kind_pod, "x",
                    "\"metadata\":{\"name\":\"p\"},\"spec\":{\"volumes\":[{\"name\":\"v\","
                    "\"persistentVolumeClaim\":{\"claimName\":\"c\"}}]," CONTAINERS "}");
    SCOPED(object_unref_p) struct object *pod = NULL;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(pass_get(&env, &kind_pod, "x", "p", &pod, &err), 0);
    links_set(users, "x/p", house_claims_of(pod));
    make_node("plain", "", "True");
    look_at_pod("p", "", "False"); /* its claim has no volume yet */
    look_at_claim("c");
    look_at_pod("p", "plain", "True");
    drop(&kind_persistent_volume_claim, "x", "c", NULL);
    look_at_claim("c");
    ck_assert(is_there(&kind_persistent_volume_claim, "x", "c"));
    drop(&kind_pod, "x", "p", NULL); /* marked; its node has to end it */
    look_at_claim("c");
    ck_assert(is_there(&kind_persistent_volume_claim, "x", "c"));
    make_and_forget(&kind_pod, "x",
                    "\"metadata\":{\"name\":\"ended\"},\"spec\":{\"nodeName\":\"plain\","
                    "\"restartPolicy\":\"Never\"," CONTAINERS
                    "},\"status\":{\"phase\":\"Failed\"}");
    char **of_ended = NULL;
    strv_add(&of_ended, xstrdup("x/c"));
    links_set(users, "x/ended", of_ended); /* one that has ended holds nothing */
    links_set(users, "x/p", NULL);
    look_at_claim("c");
    ck_assert(!is_there(&kind_persistent_volume_claim, "x", "c"));
}
END_TEST

START_TEST(test_lost_volume)
{
    SCOPED(object_unref_p) struct object *claim = make_claim("c", "1Gi", "");
    SCOPED_FREE char *volume = xasprintf("pvc-%s", claim->uid);
    SCOPED(err_fini) struct err err = {0};
    look_at_claim("c");
    drop(&kind_persistent_volume, "", volume, NULL);
    struct pass_update update = {.kind = &kind_persistent_volume,
                                 .namespace_name = "",
                                 .name = volume,
                                 .change = without_finalizers};
    ck_assert_int_eq(pass_update(&env, &update, NULL, &err), 0);
    ck_assert(!is_there(&kind_persistent_volume, "", volume));
    look_at_claim("c");
    EXPECT_CLAIM("c", "status.phase", "Lost");
}
END_TEST

/* ---- EndpointSlices ---- */

static struct links *selected;

static void setup_slices(void)
{
    setup();
    selected = links_new();
}

static void teardown_slices(void)
{
    links_free(selected);
    teardown();
}

/* The only slice there is; NULL = there is none. */
static cJSON *look_at_service(const char *name)
{
    SCOPED(err_fini) struct err err = {0};
    SCOPED_FREE char *key = pass_key("x", name);
    SCOPED(list_result_fini) struct list_result found = {0};
    int rc = house_slices_pass(&env, selected, key, &err);
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
    char **of_a = links_to(selected, "x/a"), **of_other = links_to(selected, "x/other");
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

/* An owner made anew under its name is another; one of a kind that is not served counts as
 * there. */
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
    tcase_add_test(tc, test_goes_with_its_owners);
    tcase_add_test(tc, test_who_an_owner_is);
    tcase_add_test(tc, test_foreground);
    tcase_add_test(tc, test_foreground_goes_down);
    tcase_add_test(tc, test_orphan);
    suite_add_tcase(s, tc);
    tc = tcase_create("volumes");
    tcase_add_checked_fixture(tc, setup_volumes, teardown_volumes);
    tcase_add_test(tc, test_claim_gets_a_volume_of_its_own);
    tcase_add_test(tc, test_claim_finds_the_volume_that_was_made_for_it);
    tcase_add_loop_test(tc, test_choice, 0, ARRAY_LEN(choices));
    tcase_add_test(tc, test_reserved_volume);
    tcase_add_test(tc, test_claim_in_use);
    tcase_add_test(tc, test_lost_volume);
    suite_add_tcase(s, tc);
    tc = tcase_create("slices");
    tcase_add_checked_fixture(tc, setup_slices, teardown_slices);
    tcase_add_test(tc, test_slices);
    tcase_add_test(tc, test_services_without_slices);
    suite_add_tcase(s, tc);
}
