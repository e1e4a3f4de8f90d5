#include "node/refuse.h"

#include "apiserver/base/json.h"
#include "node/env.h"
#include "tests/lib/suite.h"

static char path_1[] = "/srv/shared", path_2[] = "/data/", capability[] = "NET_BIND_SERVICE";
static char runtime[] = "gvisor=runsc";
static char *paths[] = {path_1, path_2, NULL}, *capabilities[] = {capability, NULL};
static char *runtimes[] = {runtime, NULL};
static const struct refuse_policy policy = {
    .host_paths = paths, .capabilities = capabilities, .runtimes = runtimes};

/* A member of the spec, or of its container, and what is said of it: NULL = nothing. */
static const struct row {
    bool of_container;
    const char *member, *reason, *says;
} rows[] = {
    {false, "\"hostname\":\"a\"", NULL, NULL},
    {false, "\"hostNetwork\":false", NULL, NULL},
    {false, "\"hostNetwork\":true", "ForbiddenPod", "spec.hostNetwork: is not allowed"},
    {false, "\"hostPID\":true", "ForbiddenPod", "spec.hostPID"},
    {false, "\"hostIPC\":true", "ForbiddenPod", "spec.hostIPC"},
    {false, "\"hostUsers\":false", "UnsupportedPod", "spec.hostUsers"},
    {false, "\"hostUsers\":true", NULL, NULL},
    {false, "\"ephemeralContainers\":[]", NULL, NULL},
    {false, "\"ephemeralContainers\":[{}]", "UnsupportedPod", "spec.ephemeralContainers"},
    {false, "\"nextYearsField\":1", "UnsupportedPod", "spec.nextYearsField: is not supported"},
    {false, "\"runtimeClassName\":\"gvisor\"", NULL, NULL},
    {false, "\"runtimeClassName\":\"gviso\"", "UnsupportedPod", "spec.runtimeClassName"},
    {false, "\"securityContext\":{\"fsGroup\":1}", NULL, NULL},
    {false, "\"securityContext\":{\"sysctls\":[{}]}", "UnsupportedPod", "sysctls"},
    {false, "\"volumes\":[{\"name\":\"a\",\"emptyDir\":{}}]", NULL, NULL},
    {false, "\"volumes\":[{\"name\":\"../a\",\"emptyDir\":{}}]", "ForbiddenPod", "volumes[0].name"},
    {false, "\"volumes\":[{\"name\":\"a\",\"nfs\":{\"server\":\"x\"}}]", "UnsupportedPod",
     "spec.volumes[0].nfs"},
    {false, "\"volumes\":[{\"name\":\"a\",\"hostPath\":{\"path\":\"/srv/shared\"}}]", NULL, NULL},
    {false, "\"volumes\":[{\"name\":\"a\",\"hostPath\":{\"path\":\"/data/x\"}}]", NULL, NULL},
    {false, "\"volumes\":[{\"name\":\"a\",\"hostPath\":{\"path\":\"/srv/shared2\"}}]",
     "ForbiddenPod", "spec.volumes[0].hostPath: this folder of the machine is not allowed"},
    {false, "\"volumes\":[{\"name\":\"a\",\"hostPath\":{\"path\":\"/srv/shared/../x\"}}]",
     "ForbiddenPod", "hostPath"},
    {false, "\"volumes\":[{\"name\":\"a\",\"hostPath\":{\"path\":\"/\"}}]", "ForbiddenPod",
     "hostPath"},
    {false, "\"volumes\":[{\"name\":\"a\",\"hostPath\":{\"path\":\"/data\",\"type\":\"Socket\"}}]",
     "UnsupportedPod", "hostPath"},
    {false,
     "\"volumes\":[{\"name\":\"a\",\"projected\":{\"sources\":[{\"clusterTrustBundle\":{"
     "\"path\":\"x\"}}]}}]",
     "UnsupportedPod", "projected.sources[0].clusterTrustBundle"},
    {true, "\"securityContext\":{\"privileged\":true}", "ForbiddenPod",
     "spec.containers[0].securityContext.privileged"},
    {true, "\"securityContext\":{\"privileged\":false}", NULL, NULL},
    {true,
     "\"securityContext\":{\"capabilities\":{\"add\":[\"NET_BIND_SERVICE\"],\"drop\":["
     "\"ALL\"]}}",
     NULL, NULL},
    {true, "\"securityContext\":{\"capabilities\":{\"add\":[\"CAP_NET_BIND_SERVICE\"]}}", NULL,
     NULL},
    {true, "\"securityContext\":{\"capabilities\":{\"add\":[\"SYS_ADMIN\"]}}", "ForbiddenPod",
     "capability \"SYS_ADMIN\" is not allowed"},
    {true, "\"securityContext\":{\"seccompProfile\":{\"type\":\"RuntimeDefault\"}}", NULL, NULL},
    {true, "\"securityContext\":{\"seccompProfile\":{\"type\":\"Unconfined\"}}", "ForbiddenPod",
     "seccompProfile"},
    {true, "\"securityContext\":{\"procMount\":\"Unmasked\"}", "ForbiddenPod", "procMount"},
    {false, "\"securityContext\":{\"supplementalGroupsPolicy\":\"Merge\"}", NULL, NULL},
    {false, "\"securityContext\":{\"supplementalGroupsPolicy\":\"Strict\"}", "UnsupportedPod",
     "supplementalGroupsPolicy"},
    {true, "\"securityContext\":{\"seLinuxOptions\":{\"level\":\"x\"}}", "UnsupportedPod",
     "seLinuxOptions"},
    {true, "\"volumeDevices\":[{\"name\":\"a\"}]", "UnsupportedPod", "volumeDevices"},
    {true, "\"ports\":[{\"containerPort\":80,\"name\":\"http\"}]", NULL, NULL},
    {true, "\"ports\":[{\"containerPort\":80,\"hostPort\":80}]", "UnsupportedPod",
     "ports[0].hostPort"},
    {true, "\"volumeMounts\":[{\"name\":\"a\",\"mountPath\":\"/a\",\"subPath\":\"b/c..d\"}]", NULL,
     NULL},
    {true, "\"volumeMounts\":[{\"name\":\"a\",\"mountPath\":\"/a\",\"subPath\":\"b/../../c\"}]",
     "ForbiddenPod", "volumeMounts[0].subPath: leads out of the volume"},
    {true, "\"volumeMounts\":[{\"name\":\"a\",\"mountPath\":\"/a\",\"subPath\":\"/etc\"}]",
     "ForbiddenPod", "subPath"},
    {true, "\"volumeMounts\":[{\"name\":\"a\",\"mountPath\":\"a\"}]", "ForbiddenPod", "mountPath"},
    {true,
     "\"volumeMounts\":[{\"name\":\"a\",\"mountPath\":\"/a\",\"mountPropagation\":"
     "\"Bidirectional\"}]",
     "ForbiddenPod", "mountPropagation"},
    {true, "\"volumeMounts\":[{\"name\":\"a\",\"mountPath\":\"/a\",\"subPathExpr\":\"$(A)\"}]",
     "UnsupportedPod", "subPathExpr"},
    {true, "\"livenessProbe\":{\"grpc\":{\"port\":1}}", "UnsupportedPod", "livenessProbe.grpc"},
    {true, "\"livenessProbe\":{\"httpGet\":{\"host\":\"10.0.0.1\",\"port\":1}}", "ForbiddenPod",
     "livenessProbe.httpGet.host"},
    {true, "\"lifecycle\":{\"stopSignal\":\"SIGHUP\"}", "UnsupportedPod", "lifecycle.stopSignal"},
    {true, "\"resources\":{\"limits\":{\"cpu\":\"1\",\"memory\":\"1Gi\"}}", NULL, NULL},
    {true, "\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"1\"}}", "UnsupportedPod",
     "this machine has none of it"},
    {true, "\"terminationMessagePath\":\"/dev/../etc/x\"", "ForbiddenPod",
     "terminationMessagePath"},
};

static const char *refused(const char *text, struct buf *why)
{
    SCOPED(json_free_p) cJSON *pod = NULL;
    ck_assert_msg(json_parse_str(text, &pod, NULL) == 0, "%s", text);
    return refuse_pod(pod, &policy, why);
}

START_TEST(test_row)
{
    const struct row *row = &rows[_i];
    SCOPED(buf_fini) struct buf why = {0};
    SCOPED_FREE char *text = xasprintf(
        "{\"metadata\":{\"uid\":\"1-a\"},\"spec\":{\"containers\":[{\"name\":\"m\",\"image\":\"i\""
        "%s%s}]%s%s}}",
        row->of_container ? "," : "", row->of_container ? row->member : "",
        row->of_container ? "" : ",", row->of_container ? "" : row->member);
    const char *reason = refused(text, &why);
    if (!row->reason) {
        ck_assert_msg(reason == NULL, "%s: %s", row->member, buf_cstr(&why));
        return;
    }
    ck_assert_msg(reason && strcmp(reason, row->reason) == 0, "%s: %s", row->member,
                  reason ? reason : "taken");
    ck_assert_msg(strstr(buf_cstr(&why), row->says) != NULL, "%s", buf_cstr(&why));
}
END_TEST

START_TEST(test_uid_and_names_become_paths)
{
    SCOPED(buf_fini) struct buf why = {0};
    ck_assert_str_eq(refused("{\"metadata\":{\"uid\":\"../x\"},\"spec\":{}}", &why),
                     "ForbiddenPod");
    ck_assert_ptr_nonnull(strstr(buf_cstr(&why), "metadata.uid"));
    buf_clear(&why);
    ck_assert_str_eq(refused("{\"metadata\":{\"uid\":\"a\"},\"spec\":{\"containers\":[{\"name\":"
                             "\"a/b\"}]}}",
                             &why),
                     "ForbiddenPod");
}
END_TEST

START_TEST(test_what_is_said_is_bounded)
{
    SCOPED(buf_fini) struct buf why = {0};
    SCOPED(buf_fini) struct buf text = {0};
    buf_puts(&text, "{\"metadata\":{\"uid\":\"a\"},\"spec\":{\"a\":1");
    for (int i = 0; i < 10000; i++)
        buf_printf(&text, ",\"field%d\":1", i);
    buf_puts(&text, "}}");
    ck_assert_str_eq(refused(buf_cstr(&text), &why), "UnsupportedPod");
    ck_assert_uint_lt(why.len, 1300);
}
END_TEST

START_TEST(test_many_variables)
{
    SCOPED(buf_fini) struct buf why = {0};
    SCOPED(buf_fini) struct buf text = {0};
    buf_puts(&text, "{\"metadata\":{\"uid\":\"a\"},\"spec\":{\"containers\":[{\"name\":\"m\","
                    "\"env\":[{\"name\":\"a\"}");
    for (int i = 0; i < ENV_MAX; i++)
        buf_printf(&text, ",{\"name\":\"a%d\"}", i);
    buf_puts(&text, "]}]}}");
    ck_assert_str_eq(refused(buf_cstr(&text), &why), "ForbiddenPod");
    ck_assert_ptr_nonnull(strstr(buf_cstr(&why), "too many variables"));
}
END_TEST

SUITE(refuse)
{
    LOOP("fields", test_row, 0, ARRAY_LEN(rows));
    TESTS("refuse", test_uid_and_names_become_paths, test_what_is_said_is_bounded,
          test_many_variables);
}
