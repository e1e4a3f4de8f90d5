/* The pure decisions about a Sandbox's Service and volume claims. Names carry the ids of the
 * behaviour checklist (S-t...). */
#include <inttypes.h>

#include "apiserver/base/json.h"
#include "reconcile/child.h"
#include "reconcile/sandbox.h"
#include "tests/unit/reconcile/sandbox_fixture.h"

/* ---- Service ---- */

static const struct ports_row {
    const char *id, *spec, *expected; /* expected: name/protocol/port, ... */
} ports_rows[] = {
    {"S-t081 none", "{\"containers\":[{\"name\":\"c\"}]}", ""},
    {"S-t083 generated names",
     "{\"containers\":[{\"ports\":[{\"containerPort\":80},{\"containerPort\":53,\"protocol\":"
     "\"UDP\"}]}]}",
     "p-53-udp/UDP/53,p-80-tcp/TCP/80,"},
    {"S-t084 sidecars count, plain init containers do not",
     "{\"containers\":[{\"ports\":[{\"containerPort\":80}]}],\"initContainers\":[{\"ports\":[{"
     "\"containerPort\":81}]},"
     "{\"restartPolicy\":\"Always\",\"ports\":[{\"containerPort\":82}]}]}",
     "p-80-tcp/TCP/80,p-82-tcp/TCP/82,"},
    {"S-t085 once each, sorted, 0 skipped, a later explicit name used",
     "{\"containers\":[{\"ports\":[{\"containerPort\":90},{\"containerPort\":0},{\"containerPort\":"
     "80}]},"
     "{\"ports\":[{\"containerPort\":90,\"name\":\"x\"}]}]}",
     "p-80-tcp/TCP/80,x/TCP/90,"},
    {"S-t086 a name taken by the first port",
     "{\"containers\":[{\"ports\":[{\"containerPort\":80,\"name\":\"x\"},{\"containerPort\":81,"
     "\"name\":\"x\"}]}]}",
     "x/TCP/80,p-81-tcp/TCP/81,"},
    {"S-t087 a generated name that is taken",
     "{\"containers\":[{\"ports\":[{\"containerPort\":80},{\"containerPort\":81,\"name\":\"p-80-"
     "tcp\"}]}]}",
     "p-80-tcp-2/TCP/80,p-80-tcp/TCP/81,"},
};

START_TEST(test_many_ports)
{
    SCOPED(buf_fini) struct buf text = {0};
    buf_puts(&text, "{\"containers\":[{\"ports\":[");
    for (int i = 0; i < 100000; i++)
        buf_printf(&text, "%s{\"containerPort\":%d,\"name\":\"n%d\",\"protocol\":\"%s\"}",
                   i ? "," : "", i % 65535 + 1, i, i < 65535 ? "TCP" : "UDP");
    buf_puts(&text, "]}]}");
    SCOPED(json_free_p) cJSON *spec = parse(buf_cstr(&text));
    SCOPED(json_free_p) cJSON *ports = service_ports(spec);
    ck_assert_uint_eq(json_len(ports), 100000);
}
END_TEST

START_TEST(test_ports)
{
    const struct ports_row *row = &ports_rows[_i];
    SCOPED(json_free_p) cJSON *spec = parse(row->spec);
    SCOPED(json_free_p) cJSON *ports = service_ports(spec);
    SCOPED(buf_fini) struct buf text = {0};
    const cJSON *p;
    cJSON_ArrayForEach(p, ports)
    {
        buf_printf(&text, "%s/%s/%" PRId64 ",", json_str(p, "name"), json_str(p, "protocol"),
                   json_i64_or(p, "port", 0));
        ck_assert_int_eq(json_i64_or(p, "targetPort", 0), json_i64_or(p, "port", 0));
    }
    ck_assert_msg(strcmp(buf_cstr(&text), row->expected) == 0, "%s: %s", row->id, buf_cstr(&text));
}
END_TEST

#define SVC(meta, spec)                                                                            \
    "{" META(",\"labels\":{\"agents.x-k8s.io/sandbox-name-hash\":\"" HASH                          \
             "\"}" meta) ",\"spec\":{\"clusterIP\":\"None\",\"selector\":{\"agents.x-k8s.io/"      \
                         "sandbox-name-hash\":\"" HASH "\"}" spec "}}"
static const struct service_row {
    const char *id, *spec, *existing;
    enum step_verb verb;
    enum service_outcome outcome;
    const char *error;
} service_rows[] = {
    {"S-t082 wanted, absent", ",\"service\":true", NULL, STEP_CREATE, SERVICE_PRESENT},
    {"S-t098 unset, absent", "", NULL, STEP_KEEP, SERVICE_ABSENT},
    {"S-t088 wanted, owned", ",\"service\":true", SVC("," OURS, ""), STEP_KEEP, SERVICE_PRESENT},
    {"S-t090 wanted, owned, ports drifted", ",\"service\":true",
     SVC("," OURS, ",\"ports\":[{\"port\":1}]"), STEP_PATCH, SERVICE_PRESENT},
    {"S-t099 unset, owned: ports left alone", "", SVC("," OURS, ",\"ports\":[{\"port\":1}]"),
     STEP_KEEP, SERVICE_PRESENT},
    {"S-t089 owned, selector drifted", "",
     "{" META("," OURS) ",\"spec\":{\"selector\":{\"x\":\"y\"}}}", STEP_PATCH, SERVICE_PRESENT},
    {"S-t101 false, owned", ",\"service\":false", SVC("," OURS, ""), STEP_DELETE, SERVICE_ABSENT},
    {"S-t102 false, unowned", ",\"service\":false", SVC("", ""), STEP_KEEP, SERVICE_ABSENT},
    {"S-t100 unset, unowned", "", SVC("", ""), STEP_KEEP, SERVICE_ABSENT},
    {"S-t092 foreign", ",\"service\":true", SVC("," OWNER("u-0"), ""), STEP_REFUSE, SERVICE_ABSENT,
     "service \"my-sandbox\" is owned by"},
    {"R-08 foreign, unset: no Service asked for, so none in the way", "", SVC("," OWNER("u-0"), ""),
     STEP_KEEP, SERVICE_ABSENT},
    {"foreign, false", ",\"service\":false", SVC("," OWNER("u-0"), ""), STEP_KEEP, SERVICE_ABSENT},
    {"S-t097 unowned with the tracking label", ",\"service\":true", SVC("", ""), STEP_UPDATE,
     SERVICE_PRESENT},
    {"S-t103 unowned, not authorised", ",\"service\":true",
     "{" META("") ",\"spec\":{\"clusterIP\":\"None\"}}", STEP_REFUSE, SERVICE_PRESENT,
     "cannot adopt unowned service"},
    {"S-t095 unowned with an address", ",\"service\":true",
     "{" META(",\"labels\":{\"agents.x-k8s.io/adoptable\":\"true\"}") ",\"spec\":{\"clusterIP\":"
                                                                      "\"10.96.0.7\"}}",
     STEP_REFUSE, SERVICE_PRESENT,
     "cannot adopt service \"my-sandbox\": ClusterIP is \"10.96.0.7\" (expected \"None\", field is "
     "immutable)"},
};

START_TEST(test_service_step) /* IL-077 */
{
    const struct service_row *row = &service_rows[_i];
    SCOPED(json_free_p) cJSON *sandbox = sandbox_with("", row->spec, "{}");
    SCOPED(json_free_p) cJSON *existing = row->existing ? parse(row->existing) : NULL;
    SCOPED(step_fini) struct step step = {0};
    enum service_outcome outcome;
    sandbox_plan_service(sandbox, existing, &step, &outcome);
    ck_assert_msg(step.verb == row->verb, "%s: verb %d", row->id, step.verb);
    ck_assert_msg(outcome == row->outcome, "%s: outcome %d", row->id, outcome);
    if (row->error)
        ck_assert_msg(step.error && strstr(step.error, row->error), "%s: %s", row->id, step.error);
}
END_TEST

START_TEST(test_adopted_service) /* S-t093, S-t094, S-t096 */
{
    SCOPED(json_free_p) cJSON *sandbox = sandbox_with("", ",\"service\":true", "{}");
    SCOPED(json_free_p)
    cJSON *service =
        parse("{" META(",\"labels\":{\"agents.x-k8s.io/"
                       "adoptable\":\"true\",\"x\":\"y\"}") ",\"spec\":{\"selector\":{"
                                                            "\"wrong\":\"1\"},\"ports\":"
                                                            "[{\"port\":1}]}}");
    SCOPED(json_free_p) cJSON *adopted = service_adopted(sandbox, service);
    SCOPED_FREE char *spec = json_to_str(json_get(adopted, "spec"));
    ck_assert_str_eq(spec, "{\"selector\":{\"agents.x-k8s.io/sandbox-name-hash\":\"" HASH "\"}}");
    ck_assert_str_eq(meta_label(adopted, "x"), "y");
    ck_assert(owner_class(adopted, sandbox) == OWNED);
}
END_TEST

/* S-t091: what we do not set in a port is nobody's business. */
START_TEST(test_ports_of_others)
{
    SCOPED(json_free_p) cJSON *sandbox = sandbox_with("", ",\"service\":true", "{}");
    json_set(json_at(sandbox, "spec.podTemplate.spec"), "containers",
             parse("[{\"name\":\"c\",\"ports\":[{\"containerPort\":80}]}]"));
    SCOPED(json_free_p)
    cJSON *service =
        parse(SVC("," OURS, ",\"ports\":[{\"name\":\"p-80-tcp\",\"protocol\":\"TCP\","
                            "\"port\":80,\"targetPort\":80,\"appProtocol\":\"h2c\"}]"));
    SCOPED(json_free_p) cJSON *patch = service_patch(sandbox, service, true);
    ck_assert_ptr_null(patch);
    json_set(json_at(service, "spec.ports")->child, "targetPort", parse("81"));
    SCOPED(json_free_p) cJSON *repair = service_patch(sandbox, service, true);
    ck_assert_ptr_nonnull(json_at(repair, "spec.ports"));
}
END_TEST

/* ---- claims ---- */

static const struct pvc_row {
    const char *id, *existing;
    enum step_verb verb;
    const char *error;
} pvc_rows[] = {
    {"S-t107 missing", NULL, STEP_CREATE, NULL},
    {"S-t108 owned", "{" META("," OURS) "}", STEP_KEEP, NULL},
    {"S-t109 foreign", "{" META("," OWNER("u-0")) "}", STEP_REFUSE,
     "PVC \"my-sandbox\" is owned by Sandbox/my-sandbox (UID: u-0)"},
    {"S-t110 adoptable", "{" META(",\"labels\":{\"agents.x-k8s.io/adoptable\":\"true\"}") "}",
     STEP_PATCH, NULL},
    {"S-t111 tracking label",
     "{" META(",\"labels\":{\"agents.x-k8s.io/sandbox-name-hash\":\"" HASH "\"}") "}", STEP_PATCH,
     NULL},
    {"S-t112 unauthorised", "{" META("") "}", STEP_REFUSE, "cannot adopt unowned PVC"},
    {"S-t156 a terminating one counts as present",
     "{" META(",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"," OURS) "}", STEP_KEEP, NULL},
};

START_TEST(test_pvc_step)
{
    const struct pvc_row *row = &pvc_rows[_i];
    SCOPED(json_free_p) cJSON *sandbox = sandbox_with("", "", "{}");
    SCOPED(json_free_p)
    cJSON *template =
        parse("{\"metadata\":{\"name\":\"w\",\"labels\":{\"t\":\"1\"}},\"spec\":{\"a\":1}}");
    SCOPED(json_free_p) cJSON *existing = row->existing ? parse(row->existing) : NULL;
    SCOPED(step_fini) struct step step = {0};
    sandbox_plan_pvc(sandbox, template, existing, &step);
    ck_assert_msg(step.verb == row->verb, "%s: verb %d", row->id, step.verb);
    if (row->error)
        ck_assert_msg(step.error && strstr(step.error, row->error), "%s: %s", row->id, step.error);
    if (step.verb == STEP_CREATE) {
        ck_assert_str_eq(meta_name(step.body), "w-my-sandbox");
        ck_assert_str_eq(meta_label(step.body, "agents.x-k8s.io/sandbox-name-hash"), HASH);
        ck_assert_str_eq(meta_label(step.body, "t"), "1");
    }
    if (step.verb == STEP_PATCH) /* adopted ones are watched too */
        ck_assert_str_eq(meta_label(step.body, "agents.x-k8s.io/sandbox-name-hash"), HASH);
}
END_TEST

SUITE(child_service)
{
    LOOP("ports", test_ports, 0, ARRAY_LEN(ports_rows));
    LOOP("service step", test_service_step, 0, ARRAY_LEN(service_rows));
    TESTS("service", test_adopted_service, test_ports_of_others, test_many_ports);
    LOOP("pvc step", test_pvc_step, 0, ARRAY_LEN(pvc_rows));
}
