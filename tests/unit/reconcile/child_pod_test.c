/* The pure decisions about a Sandbox's Pod: which step it needs, how a new one looks, and metadata
 * that follows the Sandbox's. Names carry the ids of the behaviour checklist (S-t...). */
#include "apiserver/base/json.h"
#include "reconcile/child.h"
#include "reconcile/sandbox.h"
#include "tests/unit/reconcile/sandbox_fixture.h"

/* ---- Pod step ---- */

static const struct pod_row {
    const char *id, *annotations, *spec; /* annotations: JSON members */
    const char *labelled, *named;        /* array; object or NULL */
    enum step_verb verb;
    enum pod_name_change name_change;
    const char *name; /* of SET */
    int multiple;
    const char *error; /* part of it */
} pod_rows[] = {
    {"S-t027 none: created", "", "", "[]", NULL, STEP_CREATE, POD_NAME_SET, "my-sandbox"},
    {"S-t025 empty annotation counts as absent", "\"agents.x-k8s.io/pod-name\":\"\"", "", "[]",
     NULL, STEP_CREATE, POD_NAME_SET, "my-sandbox"},
    {"S-t031 unowned with the tracking label: adopted", "", "", "[]",
     "{" META(",\"labels\":{\"agents.x-k8s.io/sandbox-name-hash\":\"" HASH "\"}") "}", STEP_PATCH,
     POD_NAME_SET, "my-sandbox"},
    {"S-t030 unowned and adoptable: adopted", "", "", "[]",
     "{" META(",\"labels\":{\"agents.x-k8s.io/adoptable\":\"true\"}") "}", STEP_PATCH, POD_NAME_SET,
     "my-sandbox"},
    {"S-t070 unowned, not authorised: refused", "", "", "[]", "{" META("") "}", STEP_REFUSE,
     POD_NAME_KEEP,
     .error = "cannot adopt unowned pod \"my-sandbox\": missing required pool authorization label "
              "(\"agents.x-k8s.io/adoptable\") or sandbox tracking label "
              "(\"agents.x-k8s.io/sandbox-name-hash\")"},
    {"S-t063 foreign: refused", "", "", "[]", "{" META("," OWNER("u-0")) "}", STEP_REFUSE,
     POD_NAME_KEEP,
     .error = "pod \"my-sandbox\" is owned by Sandbox/my-sandbox (UID: u-0), not by sandbox "
              "\"my-sandbox\""},
    {"S-t067 annotated foreign: refused, annotation removed", "\"agents.x-k8s.io/pod-name\":\"x\"",
     "", "[]", "{\"metadata\":{\"name\":\"x\",\"uid\":\"p-9\"," OWNER("u-0") "}}", STEP_REFUSE,
     POD_NAME_CLEAR, .error = "pod \"x\" is owned by"},
    {"S-t060 suspended: owned deleted", "\"agents.x-k8s.io/pod-name\":\"my-sandbox\"",
     ",\"operatingMode\":\"Suspended\"", "[]", "{" META("," OURS) "}", STEP_DELETE, POD_NAME_KEEP},
    {"S-t061 suspended: none", "\"agents.x-k8s.io/pod-name\":\"my-sandbox\"",
     ",\"operatingMode\":\"Suspended\"", "[]", NULL, STEP_KEEP, POD_NAME_CLEAR},
    {"S-t080 suspended: terminating waited for", "", ",\"operatingMode\":\"Suspended\"", "[]",
     "{" META(",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"," OURS) "}", STEP_KEEP,
     POD_NAME_KEEP},
    {"S-t064 suspended: foreign kept, annotation removed",
     "\"agents.x-k8s.io/pod-name\":\"my-sandbox\"", ",\"operatingMode\":\"Suspended\"", "[]",
     "{" META("," OWNER("u-0")) "}", STEP_KEEP, POD_NAME_CLEAR},
    {"S-t075 annotated one missing, survivor used", "\"agents.x-k8s.io/pod-name\":\"gone\"", "",
     "[{" META(",\"labels\":{\"agents.x-k8s.io/sandbox-name-hash\":\"" HASH "\"}," OURS) "}]", NULL,
     STEP_KEEP, POD_NAME_SET, "my-sandbox"},
    {"S-t076 survivor beats an adoptable stale target", "\"agents.x-k8s.io/pod-name\":\"x\"", "",
     "[{" META(",\"labels\":{\"agents.x-k8s.io/sandbox-name-hash\":\"" HASH "\"}," OURS) "}]",
     "{\"metadata\":{\"name\":\"x\",\"uid\":\"p-9\",\"labels\":{\"agents.x-k8s.io/"
     "adoptable\":\"true\"}}}",
     STEP_KEEP, POD_NAME_SET, "my-sandbox"},
    {"S-t077 two owned: nothing", "", "",
     "[{" META("," OURS) "},{\"metadata\":{\"name\":\"b\",\"uid\":\"p-2\"," OURS "}}]", NULL,
     STEP_KEEP, POD_NAME_KEEP, .multiple = 2},
    {"S-t079 an old incarnation's Pod does not count", "", "", "[{" META("," OWNER("u-0")) "}]",
     NULL, STEP_CREATE, POD_NAME_SET, "my-sandbox"},
    {"S-t062 annotated and adoptable: adopted", "\"agents.x-k8s.io/pod-name\":\"x\"", "", "[]",
     "{\"metadata\":{\"name\":\"x\",\"uid\":\"p-9\",\"labels\":{\"agents.x-k8s.io/"
     "adoptable\":\"true\"}}}",
     STEP_PATCH, POD_NAME_KEEP},
    {"S-t065 suspended: unowned kept, annotation removed", "\"agents.x-k8s.io/pod-name\":\"x\"",
     ",\"operatingMode\":\"Suspended\"", "[]", "{\"metadata\":{\"name\":\"x\",\"uid\":\"p-9\"}}",
     STEP_KEEP, POD_NAME_CLEAR},
    {"S-t066 suspended: annotated owned deleted", "\"agents.x-k8s.io/pod-name\":\"x\"",
     ",\"operatingMode\":\"Suspended\"", "[]",
     "{\"metadata\":{\"name\":\"x\",\"uid\":\"p-9\"," OURS "}}", STEP_DELETE, POD_NAME_KEEP},
    {"S-t080 running: terminating waited for", "\"agents.x-k8s.io/pod-name\":\"my-sandbox\"", "",
     "[{" META(",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\",\"labels\":{\"agents.x-k8s.io/"
               "sandbox-name-hash\":\"" HASH "\"}," OURS) "}]",
     NULL, STEP_KEEP, POD_NAME_KEEP},
    {"owned and in line", "\"agents.x-k8s.io/pod-name\":\"my-sandbox\"", "", "[]",
     "{" META(",\"labels\":{\"agents.x-k8s.io/sandbox-name-hash\":\"" HASH "\"}," OURS) "}",
     STEP_KEEP, POD_NAME_KEEP},
    {"owned without the tracking label: patched", "\"agents.x-k8s.io/pod-name\":\"my-sandbox\"", "",
     "[]", "{" META("," OURS) "}", STEP_PATCH, POD_NAME_KEEP},
    {"failed, policy Ignore: kept", "", "", "[]",
     "{" META(",\"labels\":{\"agents.x-k8s.io/sandbox-name-hash\":\"" HASH
              "\"}," OURS) ",\"status\":{\"phase\":\"Failed\"}}",
     STEP_KEEP, POD_NAME_SET, "my-sandbox"},
    {"failed, policy Recreate: deleted", "\"agents.x-k8s.io/pod-name\":\"my-sandbox\"",
     ",\"podFailurePolicy\":\"Recreate\"", "[]",
     "{" META("," OURS) ",\"status\":{\"phase\":\"Failed\"}}", STEP_DELETE, POD_NAME_CLEAR},
};

/* Two names of one hash, f4670002. R-04 */
#define SUSPENDED "\"operatingMode\":\"Suspended\""
#define TWINS_CHILD(name)                                                                          \
    "[{\"metadata\":{\"name\":\"x\",\"uid\":\"p-9\",\"ownerReferences\":[{\"apiVersion\":"         \
    "\"agents."                                                                                    \
    "x-k8s.io/v1beta1\",\"kind\":\"Sandbox\",\"name\":\"" name                                     \
    "\",\"uid\":\"u-9\",\"controller\":true}]}}]"
static const struct {
    const char *id, *spec, *labelled, *services;
    enum step_verb verb;
    bool has_twin;
} twins[] = {
    {"R-04 the other one has a Pod", "", TWINS_CHILD("a1222382"), "[]", STEP_REFUSE, true},
    {"R-04 the other one sleeps, its Service does not", "", "[]", TWINS_CHILD("a1222382"),
     STEP_REFUSE, true},
    {"R-04 suspended: no Service beside the other one's Pod", SUSPENDED, TWINS_CHILD("a1222382"),
     "[]", STEP_KEEP, true},
    {"R-04 an earlier Sandbox of the name", "", TWINS_CHILD("a1039599"), "[]", STEP_CREATE, false},
    {"R-04 its own Service", "", "[]", TWINS_CHILD("a1039599"), STEP_CREATE, false},
    {"R-04 a Pod that only has the label", "", TWINS_CHILD("other"), "[]", STEP_CREATE, false},
    {"R-04 nobody", "", "[]", "[]", STEP_CREATE, false},
};

START_TEST(test_twin)
{
    SCOPED_FREE char *text = xasprintf(
        "{\"metadata\":{\"name\":\"a1039599\",\"uid\":\"u-1\"},\"spec\":{%s}}", twins[_i].spec);
    SCOPED(json_free_p) cJSON *sandbox = parse(text);
    SCOPED(json_free_p) cJSON *labelled = parse(twins[_i].labelled);
    SCOPED(json_free_p) cJSON *services = parse(twins[_i].services);
    SCOPED(pod_plan_fini) struct pod_plan plan = {0};
    sandbox_plan_pod(sandbox, &(struct pod_view){.labelled = labelled, .services = services},
                     &plan);
    ck_assert_msg(plan.step.verb == twins[_i].verb, "%s: verb %d", twins[_i].id, plan.step.verb);
    ck_assert_msg(plan.has_twin == twins[_i].has_twin, "%s", twins[_i].id);
    if (plan.step.verb == STEP_REFUSE)
        ck_assert_str_eq(plan.step.error,
                         "the names of sandboxes \"a1039599\" and \"a1222382\" have the same hash "
                         "(f4670002), by which their pods are told apart; use another name");
}
END_TEST

START_TEST(test_pod_step)
{
    const struct pod_row *row = &pod_rows[_i];
    SCOPED_FREE char *meta = xasprintf(",\"annotations\":{%s}", row->annotations);
    SCOPED(json_free_p)
    cJSON *sandbox = sandbox_with(*row->annotations ? meta : "", row->spec, "{}");
    SCOPED(json_free_p) cJSON *labelled = parse(row->labelled);
    SCOPED(json_free_p) cJSON *named = row->named ? parse(row->named) : NULL;
    SCOPED(pod_plan_fini) struct pod_plan plan = {0};
    sandbox_plan_pod(sandbox, &(struct pod_view){.labelled = labelled, .named = named}, &plan);
    ck_assert_msg(plan.step.verb == row->verb, "%s: verb %d", row->id, plan.step.verb);
    ck_assert_msg(plan.name_change == row->name_change, "%s: annotation %d", row->id,
                  plan.name_change);
    ck_assert_msg(plan.multiple == row->multiple, "%s: multiple %d", row->id, plan.multiple);
    if (row->name)
        ck_assert_str_eq(plan.name, row->name);
    if (row->error)
        ck_assert_msg(plan.step.error && strstr(plan.step.error, row->error), "%s: %s", row->id,
                      plan.step.error);
}
END_TEST

/* ---- new Pod and metadata in line ---- */

START_TEST(test_pod_desired) /* S-t046, S-t047, S-t113 */
{
    SCOPED(json_free_p)
    cJSON *sandbox = parse(
        "{\"metadata\":{\"name\":\"my-sandbox\",\"namespace\":\"ns\",\"uid\":\"u-1\",\"labels\":{"
        "\"agents.x-k8s.io/created-by\":\"somebody\",\"agents.x-k8s.io/warm-pool-sandbox\":\"x\"}},"
        "\"spec\":{\"podTemplate\":{\"metadata\":{\"labels\":{\"b\":\"2\",\"a\":\"1\","
        "\"agents.x-k8s.io/sandbox-name-hash\":\"spoof\"},\"annotations\":{\"n\":\"v\","
        "\"opentelemetry.io/trace-context\":\"no\"}},\"spec\":{\"containers\":[{\"name\":\"c\"}],"
        "\"volumes\":[{\"name\":\"work\",\"emptyDir\":{}},{\"name\":\"other\",\"emptyDir\":{}}]}},"
        "\"volumeClaimTemplates\":[{\"metadata\":{\"name\":\"work\"},\"spec\":{}}]}}");
    SCOPED(json_free_p) cJSON *pod = pod_desired(sandbox);
    SCOPED_FREE char *labels = json_to_str(json_at(pod, "metadata.labels"));
    SCOPED_FREE char *annotations = json_to_str(json_at(pod, "metadata.annotations"));
    SCOPED_FREE char *volumes = json_to_str(json_at(pod, "spec.volumes"));
    ck_assert_str_eq(labels,
                     "{\"b\":\"2\",\"a\":\"1\",\"agents.x-k8s.io/sandbox-name-hash\":\"" HASH
                     "\",\"agents.x-k8s.io/created-by\":\"unknown\"}");
    ck_assert_str_eq(annotations, "{\"n\":\"v\",\"agents.x-k8s.io/propagated-labels\":\"a,b\","
                                  "\"agents.x-k8s.io/propagated-annotations\":\"n\"}");
    ck_assert_str_eq(volumes, "[{\"name\":\"other\",\"emptyDir\":{}},{\"name\":\"work\","
                              "\"persistentVolumeClaim\":{\"claimName\":\"work-my-sandbox\"}}]");
    ck_assert(owner_class(pod, sandbox) == OWNED);
}
END_TEST

static const struct desired_row {
    const char *id, *owner, *labels, *template, *expected; /* labels of Sandbox, podTemplate, Pod */
} desired_rows[] = {
    /* */
    {"S-t049 system labels of the Sandbox stay behind", "",
     "{\"agents.x-k8s.io/claim-uid\":\"u\",\"agents.x-k8s.io/launch-type\":\"warm\",\"x\":\"y\"}",
     "{}", "{\"agents.x-k8s.io/sandbox-name-hash\":\"" HASH "\"}"},
    {"S-t050 system labels of the podTemplate stay behind", "", "{}",
     "{\"agents.x-k8s.io/claim-uid\":\"u\",\"agents.x-k8s.io/"
     "warm-pool-sandbox\":\"p\",\"a\":\"b\"}",
     "{\"a\":\"b\",\"agents.x-k8s.io/sandbox-name-hash\":\"" HASH "\"}"},
    {"S-t051 template hash without an owner stays behind", "",
     "{\"agents.x-k8s.io/sandbox-template-ref-hash\":\"t\"}", "{}",
     "{\"agents.x-k8s.io/sandbox-name-hash\":\"" HASH "\"}"},
    {"S-t055 template hash of a claim's", "SandboxClaim",
     "{\"agents.x-k8s.io/sandbox-template-ref-hash\":\"t\",\"agents.x-k8s.io/"
     "warm-pool-sandbox\":\"p\"}",
     "{}",
     "{\"agents.x-k8s.io/sandbox-name-hash\":\"" HASH
     "\",\"agents.x-k8s.io/sandbox-template-ref-hash\":\"t\"}"},
    {"S-t052 S-t057 both labels of a pool's", "SandboxWarmPool",
     "{\"agents.x-k8s.io/sandbox-template-ref-hash\":\"t\",\"agents.x-k8s.io/"
     "warm-pool-sandbox\":\"p\"}",
     "{}",
     "{\"agents.x-k8s.io/sandbox-name-hash\":\"" HASH
     "\",\"agents.x-k8s.io/sandbox-template-ref-hash\":\"t\",\"agents.x-k8s.io/"
     "warm-pool-sandbox\":\"p\"}"},
    {"S-t071 known maker", "", "{\"agents.x-k8s.io/created-by\":\"go-client\"}", "{}",
     "{\"agents.x-k8s.io/sandbox-name-hash\":\"" HASH
     "\",\"agents.x-k8s.io/created-by\":\"go-client\"}"},
    {"S-t072 other maker", "", "{\"agents.x-k8s.io/created-by\":\"mallory\"}", "{}",
     "{\"agents.x-k8s.io/sandbox-name-hash\":\"" HASH
     "\",\"agents.x-k8s.io/created-by\":\"unknown\"}"},
};

static cJSON *sandbox_of(const char *owner, const char *labels, const char *template)
{
    SCOPED_FREE char *reference =
        xasprintf(",\"ownerReferences\":[{\"apiVersion\":\"extensions.agents.x-k8s.io/v1beta1\","
                  "\"kind\":\"%s\",\"name\":\"o\",\"uid\":\"o\",\"controller\":true}]",
                  owner);
    SCOPED_FREE char *text = xasprintf("{\"metadata\":{\"name\":\"my-sandbox\",\"uid\":\"u-1\","
                                       "\"labels\":%s%s},\"spec\":{\"podTemplate\":{"
                                       "\"metadata\":%s,\"spec\":{}}}}",
                                       labels, *owner ? reference : "", template);
    return parse(text);
}

START_TEST(test_desired_labels)
{
    const struct desired_row *row = &desired_rows[_i];
    SCOPED_FREE char *template = xasprintf("{\"labels\":%s}", row->template);
    SCOPED(json_free_p) cJSON *sandbox = sandbox_of(row->owner, row->labels, template);
    SCOPED(json_free_p) cJSON *pod = pod_desired(sandbox);
    SCOPED_FREE char *is = json_to_str(json_at(pod, "metadata.labels"));
    SCOPED(json_free_p) cJSON *want = parse(row->expected);
    ck_assert_msg(cJSON_Compare(json_at(pod, "metadata.labels"), want, true), "%s: %s", row->id,
                  is);
}
END_TEST

static const struct {
    const char *id, *volumes, *claims, *expected;
} volume_rows[] = {
    {"S-t113 the claim's takes the place of a namesake, at the end",
     "[{\"name\":\"w\",\"emptyDir\":{}},{\"name\":\"o\"}]", "[{\"metadata\":{\"name\":\"w\"}}]",
     "[{\"name\":\"o\"},{\"name\":\"w\",\"persistentVolumeClaim\":{\"claimName\":"
     "\"w-my-sandbox\"}}]"},
    {"S-t114 appended", "[{\"name\":\"o\"}]", "[{\"metadata\":{\"name\":\"w\"}}]",
     "[{\"name\":\"o\"},{\"name\":\"w\",\"persistentVolumeClaim\":{\"claimName\":"
     "\"w-my-sandbox\"}}]"},
    {"S-t115 no claims", "[{\"name\":\"o\",\"emptyDir\":{}}]", "[]",
     "[{\"name\":\"o\",\"emptyDir\":{}}]"},
};

START_TEST(test_volumes) /* IL-067 */
{
    SCOPED(json_free_p) cJSON *sandbox = sandbox_with("", "", "{}");
    json_set(json_at(sandbox, "spec.podTemplate.spec"), "volumes", parse(volume_rows[_i].volumes));
    json_set(json_get(sandbox, "spec"), "volumeClaimTemplates", parse(volume_rows[_i].claims));
    SCOPED(json_free_p) cJSON *pod = pod_desired(sandbox);
    SCOPED_FREE char *is = json_to_str(json_at(pod, "spec.volumes"));
    ck_assert_msg(strcmp(is, volume_rows[_i].expected) == 0, "%s: %s", volume_rows[_i].id, is);
}
END_TEST

/* S-t043, S-t044, S-t045: adopting sets label, metadata and owner; the owner also when all else is
 * right. */
START_TEST(test_adoption_patch)
{
    SCOPED(json_free_p) cJSON *sandbox = sandbox_of("", "{}", "{\"labels\":{\"a\":\"b\"}}");
    SCOPED(json_free_p) cJSON *bare = parse("{" META("") "}");
    SCOPED(json_free_p) cJSON *patch = pod_patch(sandbox, bare, true);
    ck_assert_str_eq(meta_label(patch, "agents.x-k8s.io/sandbox-name-hash"), HASH);
    ck_assert_str_eq(meta_label(patch, "a"), "b");
    ck_assert(owner_class(patch, sandbox) == OWNED);
    SCOPED(json_free_p)
    cJSON *right = parse("{" META(",\"labels\":{\"a\":\"b\",\"agents.x-k8s.io/sandbox-name-hash\":"
                                  "\"" HASH "\"},\"annotations\":{\"agents.x-k8s.io/"
                                  "propagated-labels\":\"a\"}") "}");
    SCOPED(json_free_p) cJSON *owner_only = pod_patch(sandbox, right, true);
    ck_assert(owner_class(owner_only, sandbox) == OWNED);
    ck_assert_ptr_null(json_at(owner_only, "metadata.labels"));
    SCOPED(json_free_p) cJSON *none = pod_patch(sandbox, right, false);
    ck_assert_ptr_null(none);
}
END_TEST

/* A reference that names the owner already, even an old incarnation of it, gives way in its
 * place. */
START_TEST(test_owner_reference_is_replaced)
{
    SCOPED(json_free_p) cJSON *sandbox = sandbox_of("", "{}", "{}");
    json_set_str(sandbox, "apiVersion", "agents.x-k8s.io/v1beta1");
    json_set_str(sandbox, "kind", "Sandbox");
    SCOPED(json_free_p)
    cJSON *child = parse("{\"metadata\":{\"ownerReferences\":[{\"apiVersion\":\"agents.x-k8s.io/"
                         "v1alpha1\",\"kind\":\"Sandbox\",\"name\":\"my-sandbox\",\"uid\":\"old\"},"
                         "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"my-sandbox\","
                         "\"uid\":\"m\"}]}}");
    SCOPED(json_free_p) cJSON *refs = owner_references_with(child, sandbox);
    ck_assert_int_eq((int)json_len(refs), 2);
    ck_assert_str_eq(json_str(refs->child, "uid"), meta_uid(sandbox));
    ck_assert(json_bool_or(refs->child, "controller", false));
    ck_assert_str_eq(json_str(refs->child->next, "uid"), "m");
}
END_TEST

static const struct sync_row {
    const char *id, *owner, *labels, *template, *pod,
        *expected; /* expected: metadata of the patch less uid, "" = none */
} sync_rows[] = {
    {"S-t069 dropped keys go, foreign ones stay", "", "{}", "{\"labels\":{\"a\":\"2\"}}",
     "{\"labels\":{\"agents.x-k8s.io/sandbox-name-hash\":\"" HASH
     "\",\"a\":\"1\",\"old\":\"x\",\"foreign\":\"y\"},"
     "\"annotations\":{\"agents.x-k8s.io/propagated-labels\":\"a,old\",\"agents.x-k8s.io/"
     "propagated-annotations\":\"n\","
     "\"n\":\"1\",\"m\":\"2\"}}",
     "{\"labels\":{\"old\":null,\"a\":\"2\"},\"annotations\":{\"n\":null,"
     "\"agents.x-k8s.io/propagated-labels\":\"a\",\"agents.x-k8s.io/"
     "propagated-annotations\":\"\"}}"},
    {"S-t048 reserved keys of an older version are scrubbed", "", "{}", "{}",
     "{\"labels\":{\"agents.x-k8s.io/sandbox-name-hash\":\"" HASH
     "\",\"agents.x-k8s.io/claim-uid\":\"u\"},"
     "\"annotations\":{\"agents.x-k8s.io/propagated-labels\":\"agents.x-k8s.io/claim-uid,"
     "agents.x-k8s.io/sandbox-name-hash\"}}",
     "{\"labels\":{\"agents.x-k8s.io/claim-uid\":null},\"annotations\":{\"agents.x-k8s.io/"
     "propagated-labels\":\"\"}}"},
    {"S-t053 pool label goes when no pool owns", "",
     "{\"agents.x-k8s.io/warm-pool-sandbox\":\"p\"}", "{}",
     "{\"labels\":{\"agents.x-k8s.io/sandbox-name-hash\":\"" HASH
     "\",\"agents.x-k8s.io/warm-pool-sandbox\":\"p\"}}",
     "{\"labels\":{\"agents.x-k8s.io/warm-pool-sandbox\":null}}"},
    {"S-t054 S-t056 pool's labels come", "SandboxWarmPool",
     "{\"agents.x-k8s.io/warm-pool-sandbox\":\"p\",\"agents.x-k8s.io/"
     "sandbox-template-ref-hash\":\"t\"}",
     "{}", "{\"labels\":{\"agents.x-k8s.io/sandbox-name-hash\":\"" HASH "\"}}",
     "{\"labels\":{\"agents.x-k8s.io/sandbox-template-ref-hash\":\"t\",\"agents.x-k8s.io/"
     "warm-pool-sandbox\":\"p\"}}"},
    {"S-t073 created-by follows", "", "{\"agents.x-k8s.io/created-by\":\"go-client\"}", "{}",
     "{\"labels\":{\"agents.x-k8s.io/sandbox-name-hash\":\"" HASH
     "\",\"agents.x-k8s.io/created-by\":\"unknown\"}}",
     "{\"labels\":{\"agents.x-k8s.io/created-by\":\"go-client\"}}"},
    {"G-t010 an empty value is set, not removed", "", "{}", "{\"labels\":{\"x\":\"\"}}",
     "{\"labels\":{\"agents.x-k8s.io/sandbox-name-hash\":\"" HASH
     "\",\"x\":\"1\"},\"annotations\":{\"agents.x-k8s.io/propagated-labels\":\"x\"}}",
     "{\"labels\":{\"x\":\"\"}}"},
    {"G-t007 one key, and nothing else", "", "{}", "{\"labels\":{\"x\":\"2\",\"z\":\"1\"}}",
     "{\"labels\":{\"agents.x-k8s.io/sandbox-name-hash\":\"" HASH
     "\",\"x\":\"1\",\"z\":\"1\"},\"annotations\":{\"agents.x-k8s.io/propagated-labels\":\"x,z\","
     "\"of-others\":\"1\"}}",
     "{\"labels\":{\"x\":\"2\"}}"},
    {"G-t009 characters that some encoders escape", "", "{}",
     "{\"annotations\":{\"n\":\"<a href='x'>&\u2028\\\"</a>\"}}",
     "{\"labels\":{\"agents.x-k8s.io/sandbox-name-hash\":\"" HASH
     "\"},\"annotations\":{\"agents.x-k8s.io/propagated-annotations\":\"n\",\"n\":\"1\"}}",
     "{\"annotations\":{\"n\":\"<a href='x'>&\\u2028\\\"</a>\"}}"},
    {"G-t011 nothing to change: no patch", "", "{}", "{\"labels\":{\"x\":\"1\"}}",
     "{\"labels\":{\"agents.x-k8s.io/sandbox-name-hash\":\"" HASH
     "\",\"x\":\"1\"},\"annotations\":{\"agents.x-k8s.io/propagated-labels\":\"x\"}}",
     ""},
    {"S-t058 template hash goes when no pool or claim owns", "",
     "{\"agents.x-k8s.io/sandbox-template-ref-hash\":\"t\"}", "{}",
     "{\"labels\":{\"agents.x-k8s.io/sandbox-name-hash\":\"" HASH
     "\",\"agents.x-k8s.io/sandbox-template-ref-hash\":\"t\"}}",
     "{\"labels\":{\"agents.x-k8s.io/sandbox-template-ref-hash\":null}}"},
    {"S-t059 template hash goes with the Sandbox's", "SandboxClaim", "{}", "{}",
     "{\"labels\":{\"agents.x-k8s.io/sandbox-name-hash\":\"" HASH
     "\",\"agents.x-k8s.io/sandbox-template-ref-hash\":\"t\"}}",
     "{\"labels\":{\"agents.x-k8s.io/sandbox-template-ref-hash\":null}}"},
    {"S-t074 created-by goes with the Sandbox's", "", "{}", "{}",
     "{\"labels\":{\"agents.x-k8s.io/sandbox-name-hash\":\"" HASH
     "\",\"agents.x-k8s.io/created-by\":\"go-client\"}}",
     "{\"labels\":{\"agents.x-k8s.io/created-by\":null}}"},
    {"S-t153 empty created-by counts as none", "", "{\"agents.x-k8s.io/created-by\":\"\"}", "{}",
     "{\"labels\":{\"agents.x-k8s.io/sandbox-name-hash\":\"" HASH "\"}}", ""},
};

START_TEST(test_metadata_in_line)
{
    const struct sync_row *row = &sync_rows[_i];
    SCOPED_FREE char *pod_text = xasprintf("{\"metadata\":%s}", row->pod);
    SCOPED(json_free_p) cJSON *sandbox = sandbox_of(row->owner, row->labels, row->template);
    SCOPED(json_free_p) cJSON *pod = parse(pod_text);
    SCOPED(json_free_p) cJSON *patch = pod_patch(sandbox, pod, false);
    json_remove(json_get(patch, "metadata"), "uid");
    SCOPED_FREE char *is = patch ? json_to_str(json_get(patch, "metadata")) : xstrdup("");
    ck_assert_msg(strcmp(is, row->expected) == 0, "%s\nis:        %s\nshould be: %s", row->id, is,
                  row->expected);
}
END_TEST

SUITE(child_pod)
{
    LOOP("pod step", test_pod_step, 0, ARRAY_LEN(pod_rows));
    LOOP("twin", test_twin, 0, ARRAY_LEN(twins));
    TESTS("pod", test_pod_desired, test_adoption_patch, test_owner_reference_is_replaced);
    LOOP("pod labels", test_desired_labels, 0, ARRAY_LEN(desired_rows));
    LOOP("volumes", test_volumes, 0, ARRAY_LEN(volume_rows));
    LOOP("metadata", test_metadata_in_line, 0, ARRAY_LEN(sync_rows));
}
