/* The pure decisions about a Sandbox: conditions and other status, whose a child is, expiry,
 * events. Names carry the ids of the behaviour checklist (S-t...). */
#include <inttypes.h>

#include "apiserver/base/clock.h"
#include "reconcile/child.h"
#include "reconcile/condition.h"
#include "reconcile/sandbox.h"
#include "tests/unit/reconcile/sandbox_fixture.h"

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

/* What a condition becomes from an earlier one: status of the type before and after, "" =
 * absent. */
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
    LOOP("expiry", test_expiry, 0, ARRAY_LEN(expiry_rows));
}
