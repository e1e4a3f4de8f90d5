#include "node/create.h"

#include "apiserver/base/json.h"
#include "node/instance.h"
#include "tests/lib/suite.h"

static const char pod_text[] =
    "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":\"u\"},\"spec\":{\"hostname\":\"h\","
    "\"securityContext\":{\"runAsUser\":1000,\"fsGroup\":7,\"supplementalGroups\":[8]}}}";

static cJSON *tree_of(const char *text)
{
    cJSON *tree = NULL;
    ck_assert_msg(json_parse_str(text, &tree, NULL) == 0, "%s", text);
    return tree;
}

static struct create_common common_of(const cJSON *pod)
{
    return (struct create_common){
        .pod = pod, .node = "node", .network = "net", .limits = {.nofile = 10, .nproc = 20}};
}

/* What a container's member becomes in the call, at a path. */
static const struct {
    const char *member, *path, *value; /* value: as JSON, NULL = absent */
} rows[] = {
    {"\"command\":[\"$(A)\",\"$$(A)\"]", "entrypoint", "[\"1\",\"$(A)\"]"},
    {"\"args\":[\"x\"]", "command", "[\"x\"]"},
    {"\"args\":[\"x\"]", "entrypoint", NULL},
    {"\"command\":[\"x\"]", "command", NULL},
    {"\"workingDir\":\"/w\"", "work_dir", "\"/w\""},
    {"\"tty\":true", "terminal", "true"},
    {"\"stdin\":true", "stdin", "true"},
    {"\"x\":1", "env", "{\"A\":\"1\"}"},
    {"\"x\":1", "user", "\"1000\""},
    {"\"x\":1", "groups", "[\"8\",\"7\"]"},
    {"\"securityContext\":{\"runAsUser\":5,\"runAsGroup\":6}", "user", "\"5:6\""},
    {"\"securityContext\":{\"readOnlyRootFilesystem\":true}", "read_only_filesystem", "true"},
    {"\"x\":1", "read_only_filesystem", "false"},
    {"\"x\":1", "no_new_privileges", "false"},
    {"\"securityContext\":{\"allowPrivilegeEscalation\":false}", "no_new_privileges", "true"},
    {"\"securityContext\":{\"capabilities\":{\"add\":[\"A\"],\"drop\":[\"ALL\"]}}", "cap_add",
     "[\"A\"]"},
    {"\"securityContext\":{\"capabilities\":{\"add\":[\"A\"],\"drop\":[\"ALL\"]}}", "cap_drop",
     "[\"ALL\"]"},
    {"\"resources\":{\"limits\":{\"memory\":\"1Ki\"}}", "resource_limits.memory.limit", "1024"},
    {"\"x\":1", "resource_limits", NULL},
    {"\"x\":1", "netns", "{\"nsmode\":\"container\",\"value\":\"pause\"}"},
    {"\"x\":1", "pidns", "{\"nsmode\":\"private\"}"},
    {"\"x\":1", "name", "\"u.m.3\""},
    {"\"stdin\":true", "name", "\"u.m.3.keeps-stdin\""},
    {"\"stdin\":true,\"stdinOnce\":true", "name", "\"u.m.3\""},
    {"\"x\":1", "r_limits",
     "[{\"type\":\"nofile\",\"soft\":10,\"hard\":10},{\"type\":\"nproc\",\"soft\":20,\"hard\":20}"
     "]"},
    {"\"x\":1", "privileged", NULL},
    {"\"x\":1", "healthconfig", "{\"Test\":[\"NONE\"]}"}, /* else the image's is run */
};

START_TEST(test_row)
{
    SCOPED_FREE char *text = xasprintf("{\"name\":\"m\",%s}", rows[_i].member);
    SCOPED(json_free_p) cJSON *pod = tree_of(pod_text), *spec = tree_of(text), *call = NULL;
    SCOPED(json_free_p) cJSON *env = tree_of("{\"A\":\"1\"}"), *mounts = json_array();
    struct create_common common = common_of(pod);
    ck_assert_int_eq(create_container(&common,
                                      &(struct create_container){.spec = spec,
                                                                 .image = "i",
                                                                 .pause_id = "pause",
                                                                 .env = env,
                                                                 .mounts = mounts,
                                                                 .attempt = 3},
                                      &call, NULL),
                     0);
    const cJSON *value = json_at(call, rows[_i].path);
    if (!rows[_i].value) {
        ck_assert_ptr_null(value);
        return;
    }
    ck_assert_msg(value != NULL, "%s", rows[_i].path);
    SCOPED_FREE char *got = json_to_str(value);
    ck_assert_str_eq(got, rows[_i].value);
}
END_TEST

START_TEST(test_labels_say_whose_it_is)
{
    SCOPED(json_free_p) cJSON *pod = tree_of(pod_text), *call = NULL;
    struct create_common common = common_of(pod);
    call = create_pause(&common, "image", 2);
    const cJSON *labels = json_get(call, "labels");
    ck_assert_str_eq(json_get(labels, LABEL_UID)->valuestring, "u");
    ck_assert_str_eq(json_get(labels, LABEL_POD)->valuestring, "n/p");
    ck_assert_str_eq(json_get(labels, LABEL_NODE)->valuestring, "node");
    ck_assert_str_eq(json_get(labels, LABEL_CONTAINER)->valuestring, INSTANCE_PAUSE);
    ck_assert_str_eq(json_get(labels, LABEL_ATTEMPT)->valuestring, "2");
    ck_assert_str_eq(json_str(call, "hostname"), "h");
    ck_assert_str_eq(json_str(call, "netns.nsmode"), "bridge");
    ck_assert(json_has_str(json_get(call, "cap_drop"), "ALL"));
}
END_TEST

START_TEST(test_who_must_not_be_root_is_not)
{
    static const struct {
        const char *security, *image_user;
        const char *user; /* that it runs as; "" = the image's, NULL = refused */
    } cases[] = {
        {"{\"runAsNonRoot\":true}", "", NULL},
        {"{\"runAsNonRoot\":true}", "0:5", NULL},
        {"{\"runAsNonRoot\":true}", "app", NULL},
        {"{\"runAsNonRoot\":true}", "7:8", ""},
        {"{\"runAsNonRoot\":true,\"runAsUser\":0}", "7", NULL},
        {"{\"runAsNonRoot\":true,\"runAsUser\":1}", "", "1"},
        {"{\"runAsNonRoot\":true,\"runAsGroup\":6}", "7:8", "7:6"},
        {"{\"runAsNonRoot\":true,\"runAsGroup\":6}", "", NULL},
        {"{\"runAsGroup\":6}", "app:8", "app:6"},
        {"{\"runAsGroup\":6}", "", "0:6"},
        {"{}", "", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        SCOPED(json_free_p) cJSON *pod = json_object(), *call = NULL;
        SCOPED(json_free_p) cJSON *spec = tree_of("{\"name\":\"m\"}"), *empty = json_object();
        SCOPED(err_fini) struct err err = {0};
        json_set_at(pod, "spec.securityContext", tree_of(cases[i].security));
        struct create_common common = common_of(pod);
        int rc = create_container(&common,
                                  &(struct create_container){.spec = spec,
                                                             .image = "i",
                                                             .pause_id = "p",
                                                             .env = empty,
                                                             .mounts = empty,
                                                             .image_user = cases[i].image_user},
                                  &call, &err);
        ck_assert_msg(rc == (cases[i].user ? 0 : -ERR_FORBIDDEN), "%s", cases[i].security);
        if (cases[i].user)
            ck_assert_str_eq(json_str_or(call, "user", ""), cases[i].user);
    }
}
END_TEST

START_TEST(test_an_image_sets_nothing_of_the_runtime)
{
    static const struct {
        const char *annotations;
        int rc;
    } cases[] = {
        {"{\"org.opencontainers.image.title\":\"x\",\"dev.example.run.oci\":\"x\"}", 0},
        {"{\"run.oci.seccomp_bpf_data\":\"x\"}", -ERR_FORBIDDEN},
        {"{\"a\":\"x\",\"org.systemd.property.SuccessAction\":\"'reboot'\"}", -ERR_FORBIDDEN},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        SCOPED(json_free_p) cJSON *pod = json_object(), *call = NULL, *empty = json_object();
        SCOPED(json_free_p) cJSON *spec = tree_of("{\"name\":\"m\"}");
        SCOPED(json_free_p) cJSON *annotations = tree_of(cases[i].annotations);
        struct create_common common = common_of(pod);
        struct create_container c = {.spec = spec,
                                     .image = "i",
                                     .pause_id = "p",
                                     .env = empty,
                                     .mounts = empty,
                                     .image_annotations = annotations};
        ck_assert_msg(create_container(&common, &c, &call, NULL) == cases[i].rc, "%s",
                      cases[i].annotations);
    }
}
END_TEST

SUITE(create)
{
    LOOP("fields", test_row, 0, ARRAY_LEN(rows));
    TESTS("create", test_labels_say_whose_it_is, test_who_must_not_be_root_is_not,
          test_an_image_sets_nothing_of_the_runtime);
}
