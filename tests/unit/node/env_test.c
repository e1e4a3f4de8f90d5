#include "node/env.h"

#include "apiserver/base/json.h"
#include "tests/lib/suite.h"

static const char pod_text[] =
    "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"uid\":\"u\",\"labels\":{\"b\":\"2\","
    "\"a\":\"x \\\"y\\\"\"},\"annotations\":{\"k\":\"v\"}},\"spec\":{\"nodeName\":\"node\","
    "\"serviceAccountName\":\"sa\"}}";

static int get(void *ctx, const char *resource, const char *name, cJSON **ret, struct err *err)
{
    (void)ctx;
    if (strcmp(name, "there") != 0)
        return err_set(err, ERR_NOT_FOUND, "%s \"%s\" not found", resource, name);
    return json_parse_str(strcmp(resource, "secrets") == 0
                              ? "{\"data\":{\"key\":\"c2VjcmV0\",\"bad\":\"!\"}}"
                              : "{\"data\":{\"key\":\"plain\",\"other\":\"$(A)\"}}",
                          ret, err);
}

static int make(const char *container, cJSON **ret, struct err *err)
{
    SCOPED(json_free_p) cJSON *pod = NULL, *tree = NULL;
    ck_assert_int_eq(json_parse_str(pod_text, &pod, NULL), 0);
    ck_assert_msg(json_parse_str(container, &tree, NULL) == 0, "%s", container);
    struct sources s = {.pod = pod, .pod_ip = "10.0.0.1", .host_ip = "10.0.0.2", .get = get};
    return env_make(&s, tree, ret, err);
}

static const struct {
    const char *container, *env; /* env: as JSON, or the error's text after ! */
} rows[] = {
    {"{}", "{}"},
    {"{\"env\":[{\"name\":\"A\",\"value\":\"1\"},{\"name\":\"B\",\"value\":\"$(A)$(C)$$(A)$\"},{"
     "\"name\":\"A\",\"value\":\"2\"}]}",
     "{\"A\":\"2\",\"B\":\"1$(C)$(A)$\"}"},
    {"{\"env\":[{\"name\":\"A\",\"valueFrom\":{\"fieldRef\":{\"fieldPath\":\"metadata.name\"}}},{"
     "\"name\":\"B\",\"valueFrom\":{\"fieldRef\":{\"fieldPath\":\"metadata.labels['b']\"}}},{"
     "\"name\":\"C\",\"valueFrom\":{\"fieldRef\":{\"fieldPath\":\"status.podIP\"}}},{\"name\":\"D\""
     ",\"valueFrom\":{\"fieldRef\":{\"fieldPath\":\"status.hostIP\"}}},{\"name\":\"E\",\"valueFrom"
     "\":{\"fieldRef\":{\"fieldPath\":\"metadata.annotations['no']\"}}}]}",
     "{\"A\":\"p\",\"B\":\"2\",\"C\":\"10.0.0.1\",\"D\":\"10.0.0.2\",\"E\":\"\"}"},
    {"{\"env\":[{\"name\":\"A\",\"valueFrom\":{\"fieldRef\":{\"fieldPath\":\"spec.x\"}}}]}",
     "!fieldPath \"spec.x\" is not supported"},
    {"{\"resources\":{\"limits\":{\"cpu\":\"1500m\"},\"requests\":{\"memory\":\"3Ki\"}},\"env\":[{"
     "\"name\":\"A\",\"valueFrom\":{\"resourceFieldRef\":{\"resource\":\"limits.cpu\"}}},{\"name\":"
     "\"B\",\"valueFrom\":{\"resourceFieldRef\":{\"resource\":\"requests.memory\",\"divisor\":"
     "\"1Ki\"}}},{\"name\":\"C\",\"valueFrom\":{\"resourceFieldRef\":{\"resource\":"
     "\"requests.cpu\",\"divisor\":\"0\"}}}]}",
     "{\"A\":\"2\",\"B\":\"3\",\"C\":\"0\"}"},
    {"{\"env\":[{\"name\":\"A\",\"valueFrom\":{\"configMapKeyRef\":{\"name\":\"there\",\"key\":"
     "\"key\"}}},{\"name\":\"B\",\"valueFrom\":{\"secretKeyRef\":{\"name\":\"there\",\"key\":\"key"
     "\"}}}]}",
     "{\"A\":\"plain\",\"B\":\"secret\"}"},
    {"{\"env\":[{\"name\":\"A\",\"valueFrom\":{\"configMapKeyRef\":{\"name\":\"no\",\"key\":\"k\"}}"
     "}]}",
     "!configmaps \"no\" not found"},
    {"{\"env\":[{\"name\":\"A\",\"valueFrom\":{\"configMapKeyRef\":{\"name\":\"no\",\"key\":\"k\","
     "\"optional\":true}}},{\"name\":\"B\",\"valueFrom\":{\"configMapKeyRef\":{\"name\":\"there\","
     "\"key\":\"k\",\"optional\":true}}}]}",
     "{}"},
    {"{\"env\":[{\"name\":\"A\",\"valueFrom\":{\"secretKeyRef\":{\"name\":\"there\",\"key\":\"k\"}}"
     "}]}",
     "!couldn't find key k in Secret n/there"},
    {"{\"env\":[{\"name\":\"A\",\"valueFrom\":{\"secretKeyRef\":{\"name\":\"there\",\"key\":\"bad\""
     "}}}]}",
     "!a secret's value is no base64"},
    {"{\"envFrom\":[{\"prefix\":\"P_\",\"configMapRef\":{\"name\":\"there\"}},{\"secretRef\":{"
     "\"name\":\"no\",\"optional\":true}}],\"env\":[{\"name\":\"A\",\"value\":\"$(P_key)\"}]}",
     "{\"P_key\":\"plain\",\"P_other\":\"$(A)\",\"A\":\"plain\"}"},
    {"{\"envFrom\":[{\"secretRef\":{\"name\":\"no\"}}]}", "!secrets \"no\" not found"},
    {"{\"env\":[{\"name\":\"A\",\"valueFrom\":{\"fileKeyRef\":{}}}]}",
     "!a valueFrom of this kind is not supported"},
};

START_TEST(test_row)
{
    SCOPED(json_free_p) cJSON *env = NULL;
    SCOPED(err_fini) struct err err = {0};
    int rc = make(rows[_i].container, &env, &err);
    if (rows[_i].env[0] == '!') {
        ck_assert_int_lt(rc, 0);
        ck_assert_str_eq(err_text(&err), rows[_i].env + 1);
        return;
    }
    ck_assert_msg(rc == 0, "%s", err_text(&err));
    SCOPED_FREE char *text = json_to_str(env);
    ck_assert_str_eq(text, rows[_i].env);
}
END_TEST

START_TEST(test_map_of_labels)
{
    SCOPED(json_free_p) cJSON *pod = NULL;
    SCOPED(buf_fini) struct buf out = {0};
    ck_assert_int_eq(json_parse_str(pod_text, &pod, NULL), 0);
    struct sources s = {.pod = pod};
    ck_assert_int_eq(env_field(&s, "metadata.labels", &out, NULL), 0);
    ck_assert_str_eq(buf_cstr(&out), "a=\"x \\\"y\\\"\"\nb=\"2\"");
}
END_TEST

START_TEST(test_api)
{
    SCOPED(json_free_p) cJSON *container = NULL, *env = NULL;
    ck_assert_int_eq(json_parse_str("{\"env\":[{\"name\":\"KUBERNETES_SERVICE_PORT\",\"value\":"
                                    "\"1\"},{\"name\":\"A\",\"value\":"
                                    "\"$(KUBERNETES_SERVICE_HOST)\"}]}",
                                    &container, NULL),
                     0);
    struct sources s = {.api = {.address = "10.90.0.1", .port = 443}};
    ck_assert_int_eq(env_make(&s, container, &env, NULL), 0);
    SCOPED_FREE char *text = json_to_str(env);
    ck_assert_str_eq(text, "{\"KUBERNETES_SERVICE_HOST\":\"kubernetes.default.svc\","
                           "\"KUBERNETES_SERVICE_PORT\":\"1\",\"KUBERNETES_SERVICE_PORT_HTTPS\":"
                           "\"443\",\"A\":\"kubernetes.default.svc\"}");
}
END_TEST

START_TEST(test_size_is_bounded)
{
    SCOPED(buf_fini) struct buf text = {0};
    SCOPED(json_free_p) cJSON *env = NULL;
    SCOPED(err_fini) struct err err = {0};
    buf_puts(&text, "{\"env\":[{\"name\":\"A\",\"value\":\"0123456789\"}");
    for (int i = 0; i < 20; i++) /* each is twice the one before */
        buf_puts(&text, ",{\"name\":\"A\",\"value\":\"$(A)$(A)\"}");
    buf_puts(&text, "]}");
    ck_assert_int_eq(make(buf_cstr(&text), &env, &err), -ERR_INVALID);
}
END_TEST

SUITE(env)
{
    LOOP("variables", test_row, 0, ARRAY_LEN(rows));
    TESTS("env", test_map_of_labels, test_api, test_size_is_bounded);
}
