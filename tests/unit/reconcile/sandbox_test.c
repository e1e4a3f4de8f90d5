/* The pure decisions about a Sandbox: conditions, Pod, Service and claim steps, expiry arithmetic.
 * Names carry the ids of the behaviour checklist (S-t...). */
#include <inttypes.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "reconcile/child.h"
#include "reconcile/condition.h"
#include "reconcile/sandbox.h"
#include "tests/lib/suite.h"

#define NOW_S 1767225600 /* 2026-01-01T00:00:00Z */
#define HASH "374de8f5"  /* of my-sandbox */
#define OWNER(uid)                                                                                 \
    "\"ownerReferences\":[{\"apiVersion\":\"agents.x-k8s.io/v1beta1\",\"kind\":\"Sandbox\","       \
    "\"name\":\"my-sandbox\",\"uid\":\"" uid                                                       \
    "\",\"controller\":true,\"blockOwnerDeletion\":true}]"
#define OURS OWNER("u-1")
#define META(more)                                                                                 \
    "\"metadata\":{\"name\":\"my-sandbox\",\"namespace\":\"ns\",\"uid\":\"p-1\"" more "}"

static cJSON *parse(const char *text)
{
    cJSON *tree;
    struct err err = {0};
    if (json_parse_str(text, &tree, &err) < 0)
        ck_abort_msg("%s: %s", err_text(&err), text);
    return tree;
}

static cJSON *sandbox_with(const char *meta, const char *spec, const char *status)
{
    SCOPED_FREE char *text = xasprintf(
        "{\"apiVersion\":\"agents.x-k8s.io/v1beta1\",\"kind\":\"Sandbox\",\"metadata\":{\"name\":"
        "\"my-sandbox\",\"namespace\":\"ns\",\"uid\":\"u-1\",\"generation\":3%s},\"spec\":{"
        "\"podTemplate\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}%s},"
        "\"status\":%s}",
        meta, spec, status);
    return parse(text);
}

/* ---- conditions ---- */

static const struct condition_row {
    const char *id, *spec, *pod; /* pod NULL = none in hand */
    bool pod_failed;
    int multiple;
    const char *errors;
    bool is_invalid;
    enum service_outcome service;
    const char
        *expected; /* type=status/reason/message lines, in order; a type left out must be absent */
} condition_rows[] = {
    {"S-t001 no Pod, Service wanted but absent", ",\"service\":true", NULL,
     .service = SERVICE_ABSENT,
     .expected = "Suspended=False/NotSuspended/Sandbox is not suspended\n"
                 "Ready=False/DependenciesNotReady/Pod does not exist; Service does not exist\n"},
    {"S-t002 no Pod, Service there", ",\"service\":true", NULL, .service = SERVICE_PRESENT,
     .expected = "Suspended=False/NotSuspended/Sandbox is not suspended\n"
                 "Ready=False/DependenciesNotReady/Pod does not exist; Service Exists\n"},
    {"S-t003 Pending without a scheduling report", ",\"service\":true",
     "{" META("," OURS) ",\"status\":{\"phase\":\"Pending\"}}", .service = SERVICE_PRESENT,
     .expected =
         "Suspended=False/NotSuspended/Sandbox is not suspended\n"
         "PodScheduled=Unknown/PodSchedulingUnknown/Pod has not reported a PodScheduled condition "
         "yet\n"
         "Ready=False/DependenciesNotReady/Pod exists with phase: Pending; Service Exists\n"},
    {"S-t004 Running, not ready, scheduled without reason", ",\"service\":true",
     "{" META(
         "," OURS) ",\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"PodScheduled\","
                   "\"status\":\"True\"},{\"type\":\"Ready\",\"status\":\"False\"}]}}",
     .service = SERVICE_PRESENT,
     .expected =
         "Suspended=False/NotSuspended/Sandbox is not suspended\nPodScheduled=True/PodScheduled/\n"
         "Ready=False/DependenciesNotReady/Pod is Running but not Ready; Service Exists\n"},
    {"S-t005 ready but without addresses", ",\"service\":true",
     "{" META(
         "," OURS) ",\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"PodScheduled\","
                   "\"status\":\"True\"},{\"type\":\"Ready\",\"status\":\"True\"}]}}",
     .service = SERVICE_PRESENT,
     .expected =
         "Suspended=False/NotSuspended/Sandbox is not suspended\nPodScheduled=True/PodScheduled/\n"
         "Ready=False/DependenciesNotReady/Pod is Ready but has no podIPs yet; Service Exists\n"},
    {"S-t006 suspended, own Pod still there", ",\"operatingMode\":\"Suspended\"",
     "{" META(
         "," OURS) ",\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"PodScheduled\","
                   "\"status\":\"True\"}]}}",
     .expected =
         "Suspended=False/PodTerminating/Pod is terminating. Sandbox is suspending\n"
         "PodScheduled=True/PodScheduled/\nReady=False/SandboxSuspended/Sandbox is suspending\n"},
    {"S-t007 suspended, unowned Pod of the name", ",\"operatingMode\":\"Suspended\"",
     "{" META("") ",\"status\":{\"phase\":\"Running\"}}",
     .expected = "Suspended=False/PodNotOwned/Refused to delete pod because it is not owned by "
                 "this sandbox\n"
                 "Ready=False/SandboxSuspended/Sandbox is suspending\n"},
    {"S-t008 suspended, delete failed", ",\"operatingMode\":\"Suspended\"",
     "{" META(
         "," OURS) ",\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"PodScheduled\","
                   "\"status\":\"True\"}]}}",
     .errors = "failed to delete pod: no",
     .expected = "Suspended=False/PodTerminating/Pod is terminating. Sandbox is suspending\n"
                 "PodScheduled=True/PodScheduled/\nReady=False/ReconcilerError/Error seen: failed "
                 "to delete pod: no\n"},
    {"S-t009 suspended, no Pod", ",\"operatingMode\":\"Suspended\"", NULL,
     .expected = "Suspended=True/PodTerminated/Pod has been terminated. Sandbox is suspended\n"
                 "Ready=False/SandboxSuspended/Sandbox is suspended\n"},
    {"S-t010 suspended, lookup failed", ",\"operatingMode\":\"Suspended\"", NULL,
     .pod_failed = true, .errors = "pod get failed: no",
     .expected = "Suspended=Unknown/PodStateUnknown/Pod state is unknown. Sandbox suspension "
                 "cannot be confirmed\n"
                 "PodScheduled=Unknown/PodSchedulingUnknown/Pod state is unknown. Pod scheduling "
                 "cannot be determined\n"
                 "Ready=False/ReconcilerError/Error seen: pod get failed: no\n"},
    {"S-t013 phase Unknown", ",\"service\":true",
     "{" META(
         "," OURS) ",\"status\":{\"phase\":\"Unknown\",\"conditions\":[{\"type\":\"PodScheduled\","
                   "\"status\":\"True\"}]}}",
     .service = SERVICE_PRESENT,
     .expected =
         "Suspended=False/NotSuspended/Sandbox is not suspended\nPodScheduled=True/PodScheduled/\n"
         "Ready=False/DependenciesNotReady/Pod exists with phase: Unknown; Service Exists\n"},
    {"S-t014 IL-075 failed Pod", "",
     "{" META(
         "," OURS) ",\"status\":{\"phase\":\"Failed\",\"conditions\":[{\"type\":\"PodScheduled\","
                   "\"status\":\"True\"}]}}",
     .service = SERVICE_ABSENT,
     .expected = "Suspended=False/NotSuspended/Sandbox is not "
                 "suspended\nFinished=True/PodFailed/Pod failed\n"
                 "PodScheduled=True/PodScheduled/\nReady=False/PodFailed/Pod failed\n"},
    {"S-t015 IL-075 succeeded Pod", "",
     "{" META("," OURS) ",\"status\":{\"phase\":\"Succeeded\",\"conditions\":[{\"type\":"
                        "\"PodScheduled\","
                        "\"status\":\"True\"}]}}",
     .service = SERVICE_ABSENT,
     .expected =
         "Suspended=False/NotSuspended/Sandbox is not suspended\n"
         "Finished=True/PodSucceeded/Pod completed successfully\nPodScheduled=True/PodScheduled/\n"
         "Ready=False/PodSucceeded/Pod completed successfully\n"},
    {"S-t011 running, lookup failed", "", NULL, .pod_failed = true, .errors = "pod get failed: no",
     .expected = "Suspended=False/NotSuspended/Sandbox is not suspended\n"
                 "PodScheduled=Unknown/PodSchedulingUnknown/Pod state is unknown. Pod scheduling "
                 "cannot be determined\n"
                 "Ready=False/ReconcilerError/Error seen: pod get failed: no\n"},
    {"S-t016 suspended, foreign Pod that ended", ",\"operatingMode\":\"Suspended\"",
     "{" META("," OWNER("u-0")) ",\"status\":{\"phase\":\"Succeeded\"}}",
     .expected = "Suspended=False/PodNotOwned/Refused to delete pod because it is not owned by "
                 "this sandbox\n"
                 "Ready=False/SandboxSuspended/Sandbox is suspending\n"},
    {"S-t017 an error outranks a failed Pod", "",
     "{" META("," OURS) ",\"status\":{\"phase\":\"Failed\",\"conditions\":[{\"type\":"
                        "\"PodScheduled\",\"status\":\"True\"}]}}",
     .errors = "service get failed: no",
     .expected = "Suspended=False/NotSuspended/Sandbox is not suspended\n"
                 "Finished=True/PodFailed/Pod failed\nPodScheduled=True/PodScheduled/\n"
                 "Ready=False/ReconcilerError/Error seen: service get failed: no\n"},
    {"S-t017 an error outranks suspension", ",\"operatingMode\":\"Suspended\"", NULL,
     .errors = "service get failed: no",
     .expected = "Suspended=True/PodTerminated/Pod has been terminated. Sandbox is suspended\n"
                 "Ready=False/ReconcilerError/Error seen: service get failed: no\n"},
    {"S-t019 a scheduling gate is mirrored", "",
     "{" META("," OURS) ",\"status\":{\"phase\":\"Pending\",\"conditions\":[{\"type\":"
                        "\"PodScheduled\",\"status\":\"False\",\"reason\":\"SchedulingGated\","
                        "\"message\":\"gated\"}]}}",
     .service = SERVICE_ABSENT,
     .expected = "Suspended=False/NotSuspended/Sandbox is not suspended\n"
                 "PodScheduled=False/SchedulingGated/gated\n"
                 "Ready=False/DependenciesNotReady/Pod exists with phase: Pending\n"},
    {"S-t018 unschedulable is mirrored", "",
     "{" META(
         "," OURS) ",\"status\":{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\","
                   "\"status\":\"False\",\"reason\":\"Unschedulable\",\"message\":\"0/1 "
                   "nodes\"}]}}",
     .service = SERVICE_ABSENT,
     .expected = "Suspended=False/NotSuspended/Sandbox is not suspended\n"
                 "PodScheduled=False/Unschedulable/0/1 nodes\n"
                 "Ready=False/DependenciesNotReady/Pod exists with phase: Pending\n"},
    {"S-t020 False without a reason", "",
     "{" META(
         "," OURS) ",\"status\":{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\","
                   "\"status\":\"False\"}]}}",
     .service = SERVICE_ABSENT,
     .expected = "Suspended=False/NotSuspended/Sandbox is not suspended\n"
                 "PodScheduled=False/PodSchedulingUnknown/\n"
                 "Ready=False/DependenciesNotReady/Pod exists with phase: Pending\n"},
    {"S-t021 several Pods outrank other errors", "", NULL, .multiple = 2, .errors = "other",
     .expected = "Suspended=False/NotSuspended/Sandbox is not suspended\n"
                 "PodScheduled=Unknown/PodSchedulingUnknown/Pod state is unknown. Pod scheduling "
                 "cannot be determined\n"
                 "Ready=False/MultiplePods/multiple Pods (2) are controlled by this Sandbox; "
                 "refusing to choose or create a Pod\n"},
    {"children refused as invalid", "", NULL, .pod_failed = true,
     .errors = "Pod \"x\" is invalid: y", .is_invalid = true,
     .expected = "Suspended=False/NotSuspended/Sandbox is not suspended\n"
                 "PodScheduled=Unknown/PodSchedulingUnknown/Pod state is unknown. Pod scheduling "
                 "cannot be determined\n"
                 "Ready=False/InvalidConfiguration/Pod \"x\" is invalid: y\n"},
    {"S-t032 ready without a Service", "",
     "{" META("," OURS) ",\"spec\":{\"nodeName\":\"n\"},\"status\":{\"phase\":\"Running\","
                        "\"podIPs\":[{\"ip\":\"10.0.0.1\"}],"
                        "\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"True\"},{"
                        "\"type\":\"Ready\",\"status\":\"True\"}]}}",
     .service = SERVICE_ABSENT,
     .expected =
         "Suspended=False/NotSuspended/Sandbox is not suspended\nPodScheduled=True/PodScheduled/\n"
         "Ready=True/DependenciesReady/Pod is Ready\n"},
};

static char *conditions_text(const cJSON *status)
{
    struct buf out = {0};
    const cJSON *c;
    cJSON_ArrayForEach(c, json_get(status, "conditions"))
    {
        buf_printf(&out, "%s=%s/%s/%s\n", json_str(c, "type"), json_str(c, "status"),
                   json_str(c, "reason"), json_str(c, "message"));
        ck_assert_int_eq(json_i64_or(c, "observedGeneration", 0), 3);
    }
    return buf_take(&out, NULL);
}

START_TEST(test_conditions)
{
    const struct condition_row *row = &condition_rows[_i];
    SCOPED(json_free_p) cJSON *sandbox = sandbox_with("", row->spec, "{}");
    SCOPED(json_free_p) cJSON *pod = row->pod ? parse(row->pod) : NULL;
    struct sandbox_outcome outcome = {.pod = pod,
                                      .pod_failed = row->pod_failed,
                                      .multiple_pods = row->multiple,
                                      .errors = row->errors,
                                      .is_invalid = row->is_invalid,
                                      .service = row->service};
    SCOPED(json_free_p) cJSON *status = sandbox_status(sandbox, &outcome, "cluster.local", NOW_S);
    SCOPED_FREE char *text = conditions_text(status);
    ck_assert_msg(strcmp(text, row->expected) == 0, "%s\nis:\n%sshould be:\n%s", row->id, text,
                  row->expected);
    /* S-t022: another pass with the same outcome changes nothing. */
    json_set(sandbox, "status", json_copy(status));
    SCOPED(json_free_p)
    cJSON *again = sandbox_status(sandbox, &outcome, "cluster.local", NOW_S + 60);
    ck_assert_msg(!sandbox_status_differs(status, again), "%s: not stable", row->id);
}
END_TEST

START_TEST(test_status_fields)
{
    SCOPED(json_free_p) cJSON *sandbox = sandbox_with("", ",\"service\":true", "{}");
    SCOPED(json_free_p)
    cJSON *pod =
        parse("{" META("," OURS) ",\"spec\":{\"nodeName\":\"n\"},\"status\":{\"phase\":\"Running\","
                                 "\"podIPs\":[{\"ip\":\"10.0.0.1\"},{\"ip\":\"fd00::1\"}]}}");
    struct sandbox_outcome outcome = {.pod = pod, .service = SERVICE_PRESENT};
    SCOPED(json_free_p) cJSON *status = sandbox_status(sandbox, &outcome, "example.org", NOW_S);
    ck_assert_str_eq(json_str(status, "serviceFQDN"), "my-sandbox.ns.svc.example.org"); /* S-t104 */
    ck_assert_str_eq(json_str(status, "service"), "my-sandbox");
    ck_assert_str_eq(json_str(status, "selector"), "agents.x-k8s.io/sandbox-name-hash=" HASH);
    ck_assert_str_eq(json_str(status, "nodeName"), "n");
    SCOPED_FREE char *ips = json_to_str(json_get(status, "podIPs"));
    ck_assert_str_eq(ips, "[\"10.0.0.1\",\"fd00::1\"]");
    /* The Pod gone: addresses and node too, the selector stays. */
    json_set(sandbox, "status", json_copy(status));
    outcome = (struct sandbox_outcome){.service = SERVICE_UNKNOWN};
    SCOPED(json_free_p) cJSON *gone = sandbox_status(sandbox, &outcome, "example.org", NOW_S);
    ck_assert_ptr_null(json_get(gone, "podIPs"));
    ck_assert_ptr_null(json_get(gone, "nodeName"));
    ck_assert_ptr_nonnull(json_get(gone, "selector"));
    ck_assert_ptr_nonnull(json_get(gone, "serviceFQDN"));
}
END_TEST

START_TEST(test_node_name_alone_waits) /* S-t041 */
{
    SCOPED(json_free_p)
    cJSON *a = parse("{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"}]}");
    SCOPED(json_free_p)
    cJSON *b =
        parse("{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"}],\"nodeName\":\"n\"}");
    SCOPED(json_free_p)
    cJSON *c =
        parse("{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],\"nodeName\":\"n\"}");
    SCOPED(json_free_p)
    cJSON *d = parse("{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}");
    ck_assert(!sandbox_status_differs(a, b));
    ck_assert(sandbox_status_differs(b, c));
    ck_assert(sandbox_status_differs(d, c));
}
END_TEST

START_TEST(test_transition_time)
{
    SCOPED(json_free_p) cJSON *list = json_array();
    condition_set(list, &(struct condition){"Ready", "False", "A", "", 1}, NOW_S);
    condition_set(list, &(struct condition){"Ready", "False", "B", "", 2}, NOW_S + 10);
    ck_assert_str_eq(json_str(list->child, "lastTransitionTime"), "2026-01-01T00:00:00Z");
    ck_assert_str_eq(json_str(list->child, "reason"), "B");
    condition_set(list, &(struct condition){"Ready", "True", "C", "", 3}, NOW_S + 10);
    ck_assert_str_eq(json_str(list->child, "lastTransitionTime"), "2026-01-01T00:00:10Z");
    condition_remove(list, "Ready");
    condition_remove(list, "Ready");
    ck_assert_uint_eq(json_len(list), 0);
}
END_TEST

/* What a condition becomes from an earlier one: status of the type before and after, "" = absent.
 */
static const struct follow_row {
    const char *id, *spec, *type, *before, *after;
    bool pod_failed, moves;
} follow_rows[] = {
    {"S-t012 resuming without a Pod", "", "Suspended", "True", "False", false, true},
    {"S-t125 the Pod is gone", "", "PodScheduled", "True", "", false, false},
    {"S-t126 the Pod cannot be looked up", "", "PodScheduled", "True", "Unknown", true, true},
    {"S-t127 suspended, the Pod cannot be looked up", ",\"operatingMode\":\"Suspended\"",
     "Suspended", "True", "Unknown", true, true},
    {"still suspended", ",\"operatingMode\":\"Suspended\"", "Suspended", "True", "True", false,
     false},
};

START_TEST(test_follow)
{
    const struct follow_row *row = &follow_rows[_i];
    SCOPED_FREE char *before =
        xasprintf("{\"conditions\":[{\"type\":\"%s\",\"status\":\"%s\",\"lastTransitionTime\":"
                  "\"2025-01-01T00:00:00Z\"}]}",
                  row->type, row->before);
    SCOPED(json_free_p) cJSON *sandbox = sandbox_with("", row->spec, before);
    struct sandbox_outcome outcome = {.pod_failed = row->pod_failed,
                                      .errors = row->pod_failed ? "pod get failed: no" : NULL,
                                      .service = SERVICE_ABSENT};
    SCOPED(json_free_p) cJSON *status = sandbox_status(sandbox, &outcome, "cluster.local", NOW_S);
    const cJSON *c = condition_find(json_get(status, "conditions"), row->type);
    ck_assert_msg(str_equal(json_str_or(c, "status", ""), row->after), "%s: %s", row->id,
                  json_str_or(c, "status", ""));
    if (c)
        ck_assert_msg(str_equal(json_str(c, "lastTransitionTime"),
                                row->moves ? "2026-01-01T00:00:00Z" : "2025-01-01T00:00:00Z"),
                      "%s: time", row->id);
}
END_TEST

START_TEST(test_suspended_with_foreign_pod) /* S-t124 */
{
    SCOPED(json_free_p)
    cJSON *sandbox = sandbox_with("", ",\"operatingMode\":\"Suspended\"",
                                  "{\"podIPs\":[\"10.0.0.9\"],\"nodeName\":\"old\"}");
    SCOPED(json_free_p)
    cJSON *pod = parse("{" META("," OWNER("u-0")) ",\"spec\":{\"nodeName\":\"n\"},\"status\":{"
                                                  "\"podIPs\":[{\"ip\":\"10.0.0.1\"}]}}");
    SCOPED(json_free_p)
    cJSON *status = sandbox_status(sandbox, &(struct sandbox_outcome){.pod = pod}, "x", NOW_S);
    ck_assert_ptr_null(json_get(status, "podIPs"));
    ck_assert_ptr_null(json_get(status, "nodeName"));
    ck_assert_str_eq(json_str(status, "selector"), "agents.x-k8s.io/sandbox-name-hash=" HASH);
    ck_assert(condition_has_reason(json_get(status, "conditions"), "Suspended", "PodNotOwned"));
}
END_TEST

/* ---- whose and called what ---- */

static const struct {
    const char *id, *annotations, *name;
} name_rows[] = {
    {"S-t023 no annotations", "", "my-sandbox"},
    {"S-t024 others only", ",\"annotations\":{\"a\":\"b\"}", "my-sandbox"},
    {"S-t025 empty", ",\"annotations\":{\"agents.x-k8s.io/pod-name\":\"\"}", "my-sandbox"},
    {"S-t026 of a pool's Pod", ",\"annotations\":{\"agents.x-k8s.io/pod-name\":\"p-7\"}", "p-7"},
};

START_TEST(test_pod_name)
{
    SCOPED(json_free_p) cJSON *sandbox = sandbox_with(name_rows[_i].annotations, "", "{}");
    ck_assert_msg(str_equal(sandbox_pod_name(sandbox), name_rows[_i].name), "%s: %s",
                  name_rows[_i].id, sandbox_pod_name(sandbox));
}
END_TEST

/* S-t105, S-t106: by the controller's uid alone, whatever kind of child it is. */
START_TEST(test_ownership)
{
    static const struct {
        const char *child;
        enum ownership is;
    } rows[] = {
        {"{\"kind\":\"Pod\"," META("," OURS) "}", OWNED},
        {"{\"kind\":\"Pod\"," META("") "}", UNOWNED},
        {"{\"kind\":\"Pod\"," META("," OWNER("u-0")) "}", FOREIGN},
        {"{\"kind\":\"Service\"," META("," OURS) "}", OWNED},
        {"{\"kind\":\"Service\"," META("") "}", UNOWNED},
        {"{\"kind\":\"Service\"," META("," OWNER("u-0")) "}", FOREIGN},
        /* A plain owner reference is no controller. */
        {"{" META(",\"ownerReferences\":[{\"kind\":\"Sandbox\",\"name\":\"my-sandbox\",\"uid\":"
                  "\"u-1\"}]") "}",
         UNOWNED},
    };
    SCOPED(json_free_p) cJSON *sandbox = sandbox_with("", "", "{}");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        SCOPED(json_free_p) cJSON *child = parse(rows[i].child);
        ck_assert_msg(owner_class(child, sandbox) == rows[i].is, "%s", rows[i].child);
    }
}
END_TEST

/* S-t137: eight lower-case digits of FNV-1a, worked out here a second time. */
START_TEST(test_tracking_hash)
{
    for (uint32_t i = 0; i < 200; i++) {
        SCOPED_FREE char *name = xasprintf("n-%x", i * 2654435761u);
        SCOPED(json_free_p) cJSON *sandbox = sandbox_with("", "", "{}");
        json_set_str(json_get(sandbox, "metadata"), "name", name);
        uint32_t fnv = 2166136261u;
        for (const char *c = name; *c; c++)
            fnv = (fnv ^ (unsigned char)*c) * 16777619u;
        SCOPED_FREE char *want = xasprintf("%08" PRIx32, fnv);
        char hash[NAME_HASH_SIZE];
        tracking_hash(sandbox, hash);
        ck_assert_str_eq(hash, want);
    }
}
END_TEST

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

/* A reference that names the owner already, even an old incarnation of it, gives way in its place.
 */
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

/* What keeps a Sandbox from being ready: always in the message when the original's conditions do
 * not have it, in the reason when that is asked for. */
static const struct trouble_row {
    const char *id, *status /* of the Pod, NULL = none */, *errors;
    const char *message, *reason; /* reason: when asked for */
} trouble_rows[] = {
    {"image",
     "\"phase\":\"Pending\",\"containerStatuses\":[{\"name\":\"a\",\"state\":{\"running\":"
     "{}}},{\"name\":\"c\",\"state\":{\"waiting\":{\"reason\":\"ErrImagePull\",\"message\":"
     "\"no such image\"}}}]",
     NULL, "Pod exists with phase: Pending; container \"c\" waits: ErrImagePull: no such image",
     "ImagePullFailed"},
    {"crash loop of an init container, without words",
     "\"phase\":\"Pending\",\"initContainerStatuses\":[{\"name\":\"i\",\"state\":{\"waiting\":{"
     "\"reason\":\"CrashLoopBackOff\"}}}],\"containerStatuses\":[{\"name\":\"c\",\"state\":{"
     "\"waiting\":{\"reason\":\"PodInitializing\"}}}]",
     NULL, "Pod exists with phase: Pending; container \"i\" waits: CrashLoopBackOff", "CrashLoop"},
    {"crash loop, between two tries",
     "\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"c\",\"restartCount\":1,\"state\":{"
     "\"terminated\":{\"reason\":\"Error\",\"exitCode\":3}}}]",
     NULL, "Pod is Running but not Ready; container \"c\" ended: Error, exit code 3", "CrashLoop"},
    {"one that failed, another that has done its work",
     "\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"a\",\"state\":{\"terminated\":{"
     "\"reason\":\"Completed\",\"exitCode\":0}}},{\"name\":\"c\",\"state\":{\"terminated\":{"
     "\"reason\":\"OOMKilled\",\"exitCode\":137}}}]",
     NULL, "Pod is Running but not Ready; container \"c\" ended: OOMKilled, exit code 137",
     "ContainerFailed"},
    {"a container on its way",
     "\"phase\":\"Pending\",\"containerStatuses\":[{\"name\":\"c\",\"state\":{\"waiting\":{"
     "\"reason\":"
     "\"ContainerCreating\"}}}]",
     NULL, "Pod exists with phase: Pending", "DependenciesNotReady"},
    {"no node",
     "\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\","
     "\"reason\":\"Unschedulable\",\"message\":\"0/1 nodes\"}]",
     NULL, "Pod exists with phase: Pending", "Unschedulable"},
    {"quota", NULL, "pods \"x\" is forbidden: exceeded quota: q, requested: pods=1",
     "Error seen: pods \"x\" is forbidden: exceeded quota: q, requested: pods=1", "QuotaExceeded"},
    {"Pod Security", NULL,
     "pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\": no",
     "Error seen: pods \"x\" is forbidden: violates PodSecurity \"restricted:latest\": no",
     "AdmissionRefused"},
    {"another error", NULL, "pod get failed: no", "Error seen: pod get failed: no",
     "ReconcilerError"},
};

static void expect_trouble(const struct trouble_row *row, bool detailed)
{
    SCOPED(json_free_p) cJSON *sandbox = sandbox_with("", "", "{}");
    SCOPED_FREE char *text =
        xasprintf("{" META("," OURS) ",\"status\":{%s}}", row->status ? row->status : "");
    SCOPED(json_free_p) cJSON *pod = parse(text);
    struct sandbox_outcome outcome = {.pod = row->status ? pod : NULL,
                                      .errors = row->errors,
                                      .pod_failed = row->errors != NULL,
                                      .service = SERVICE_ABSENT,
                                      .detailed_reasons = detailed};
    SCOPED(json_free_p) cJSON *status = sandbox_status(sandbox, &outcome, "x", NOW_S);
    const cJSON *ready = condition_find(json_get(status, "conditions"), "Ready");
    const char *plain = row->errors ? "ReconcilerError" : "DependenciesNotReady";
    const char *message = json_str(ready, "message");
    ck_assert_msg(str_equal(json_str(ready, "reason"), detailed ? row->reason : plain), "%s: %s",
                  row->id, json_str(ready, "reason"));
    ck_assert_msg(detailed ? str_has_prefix(message, row->message)
                           : str_equal(message, row->message),
                  "%s: %s", row->id, message);
    ck_assert_str_eq(json_str(ready, "status"), "False");
}

START_TEST(test_troubles)
{
    expect_trouble(&trouble_rows[_i], false);
    expect_trouble(&trouble_rows[_i], true);
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

/* ---- expiry ---- */

static const struct expiry_row {
    const char *id, *time;
    int64_t left_ms, requeue_ms; /* INT64_MAX = none; requeue -1 = expired */
} expiry_rows[] = {
    {"S-t116 none", NULL, INT64_MAX, 0},
    {"S-t117 future", "2026-01-01T00:00:30Z", 30000, 30000},
    {"S-t118 exactly now", "2026-01-01T00:00:00Z", 0, -1},
    {"S-t119 half a second ahead", "2026-01-01T00:00:00.5Z", 500, 2000},
    {"S-t120 past", "2025-12-31T23:59:59Z", -1000, -1},
    {"with an offset", "2026-01-01T01:00:10+01:00", 10000, 10000},
};

START_TEST(test_expiry)
{
    const struct expiry_row *row = &expiry_rows[_i];
    SCOPED_FREE char *spec =
        row->time ? xasprintf(",\"shutdownTime\":\"%s\"", row->time) : xstrdup("");
    SCOPED(json_free_p) cJSON *sandbox = sandbox_with("", spec, "{}");
    int64_t left = sandbox_time_left_ms(sandbox, NOW_S * INT64_C(1000));
    ck_assert_msg(left == row->left_ms, "%s: %" PRId64, row->id, left);
    if (row->requeue_ms >= 0)
        ck_assert_int_eq(sandbox_expiry_requeue_ms(left), row->requeue_ms);
}
END_TEST

/* S-t120, S-t121: the policy decides what goes, not when. */
START_TEST(test_expiry_policy)
{
    static const struct {
        const char *policy;
        bool deletes;
    } rows[] = {{"Retain", false}, {"Delete", true}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        SCOPED_FREE char *spec = xasprintf(
            ",\"shutdownTime\":\"2025-12-31T00:00:00Z\",\"shutdownPolicy\":\"%s\"", rows[i].policy);
        SCOPED(json_free_p) cJSON *sandbox = sandbox_with("", spec, "{}");
        ck_assert_int_le(sandbox_time_left_ms(sandbox, NOW_S * INT64_C(1000)), 0);
        ck_assert(sandbox_deletes_itself(sandbox) == rows[i].deletes);
    }
}
END_TEST

START_TEST(test_expired_status) /* S-t122, S-t144 */
{
    SCOPED(json_free_p)
    cJSON *sandbox = sandbox_with("", "",
                                  "{\"service\":\"s\",\"podIPs\":[\"1\"],\"conditions\":[{\"type\":"
                                  "\"Suspended\",\"status\":\"False\"},"
                                  "{\"type\":\"PodScheduled\",\"status\":\"True\"},{\"type\":"
                                  "\"Finished\",\"status\":\"True\"}]}");
    SCOPED(json_free_p) cJSON *first = sandbox_status_expired(sandbox, NOW_S);
    ck_assert_ptr_nonnull(json_get(first, "podIPs"));
    ck_assert_ptr_null(condition_find(json_get(first, "conditions"), "PodScheduled"));
    ck_assert(condition_has_reason(json_get(first, "conditions"), "Ready", "SandboxExpired"));
    SCOPED(json_free_p) cJSON *second = sandbox_status_torn_down(sandbox, NOW_S);
    ck_assert_uint_eq(json_len(second), 1);
    ck_assert_ptr_nonnull(condition_find(json_get(second, "conditions"), "Finished"));
    ck_assert_ptr_nonnull(condition_find(json_get(second, "conditions"), "Suspended"));
}
END_TEST

START_TEST(test_events)
{
    SCOPED(json_free_p) cJSON *sandbox = sandbox_with("", "", "{}");
    SCOPED(json_free_p)
    cJSON *before =
        parse("{\"conditions\":[{\"type\":\"Ready\",\"reason\":\"DependenciesNotReady\"}]}");
    SCOPED(json_free_p)
    cJSON *ready =
        parse("{\"conditions\":[{\"type\":\"Ready\",\"reason\":\"DependenciesReady\"}]}");
    SCOPED(json_free_p)
    cJSON *many = parse(
        "{\"conditions\":[{\"type\":\"Ready\",\"reason\":\"MultiplePods\",\"message\":\"m\"}]}");
    struct event_text events[SANDBOX_EVENTS_MAX];
    ck_assert_int_eq(sandbox_events(sandbox, before, ready, events), 1);
    ck_assert_str_eq(events[0].reason, "SandboxReady");
    ck_assert_int_eq(sandbox_events(sandbox, ready, ready, events), 0);
    ck_assert_int_eq(sandbox_events(sandbox, ready, many, events), 1); /* S21 */
    ck_assert_str_eq(events[0].note, "m");
    ck_assert_str_eq(events[0].type, "Warning");
    ck_assert_int_eq(sandbox_events(sandbox, many, many, events), 0);
}
END_TEST

SUITE(sandbox)
{
    LOOP("conditions", test_conditions, 0, ARRAY_LEN(condition_rows));
    TESTS("status", test_status_fields, test_node_name_alone_waits, test_transition_time,
          test_expired_status, test_events, test_suspended_with_foreign_pod, test_ownership,
          test_tracking_hash, test_expiry_policy);
    LOOP("troubles", test_troubles, 0, ARRAY_LEN(trouble_rows));
    LOOP("follow", test_follow, 0, ARRAY_LEN(follow_rows));
    LOOP("pod name", test_pod_name, 0, ARRAY_LEN(name_rows));
    LOOP("pod step", test_pod_step, 0, ARRAY_LEN(pod_rows));
    LOOP("twin", test_twin, 0, ARRAY_LEN(twins));
    TESTS("pod", test_pod_desired, test_adoption_patch, test_owner_reference_is_replaced);
    LOOP("pod labels", test_desired_labels, 0, ARRAY_LEN(desired_rows));
    LOOP("volumes", test_volumes, 0, ARRAY_LEN(volume_rows));
    LOOP("metadata", test_metadata_in_line, 0, ARRAY_LEN(sync_rows));
    LOOP("ports", test_ports, 0, ARRAY_LEN(ports_rows));
    LOOP("service step", test_service_step, 0, ARRAY_LEN(service_rows));
    TESTS("service", test_adopted_service, test_ports_of_others);
    LOOP("pvc step", test_pvc_step, 0, ARRAY_LEN(pvc_rows));
    LOOP("expiry", test_expiry, 0, ARRAY_LEN(expiry_rows));
}
