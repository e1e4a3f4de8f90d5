/* What is counted of the lives of Sandboxes, by the statuses that passes write. */
#include "reconcile/sandbox_metric.h"

#include "apiserver/base/json.h"
#include "apiserver/base/metric.h"
#include "tests/lib/suite.h"

static struct sandbox_metric *m;

static void setup(void)
{
    m = sandbox_metric_new();
}

static void teardown(void)
{
    sandbox_metric_free(m);
}

static cJSON *parse(const char *text)
{
    cJSON *tree = NULL;
    ck_assert_msg(json_parse_str(text, &tree, NULL) == 0, "%s", text);
    return tree;
}

#define CONDITION(type, status, reason)                                                            \
    "{\"type\":\"" type "\",\"status\":\"" status "\",\"reason\":\"" reason "\"}"
#define RUNNING CONDITION("Suspended", "False", "NotSuspended")
#define SUSPENDED CONDITION("Suspended", "True", "PodTerminated")
#define READY CONDITION("Ready", "True", "DependenciesReady")
#define FAILED CONDITION("Ready", "False", "ReconcilerError")

/* A pass at that time: over a Sandbox with that spec and those conditions, which it changes. */
static void pass(int64_t at_ms, const char *spec, const char *before, const char *after)
{
    SCOPED_FREE char *text = xasprintf(
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\",\"annotations\":{\"agents.x-k8s.io/"
        "sandbox-template-ref\":\"t\"},\"ownerReferences\":[{\"apiVersion\":\"extensions.agents.x-"
        "k8s.io/v1beta1\",\"kind\":\"SandboxClaim\",\"controller\":true}]},\"spec\":{%s},"
        "\"status\":{\"conditions\":[%s]}}",
        spec, before);
    SCOPED_FREE char *status_text = xasprintf("{\"conditions\":[%s]}", after);
    SCOPED(json_free_p) cJSON *sandbox = parse(text);
    SCOPED(json_free_p) cJSON *status = parse(status_text);
    sandbox_metric_seen(m, "ns/a", sandbox, at_ms);
    sandbox_metric_written(m, "ns/a", sandbox, status, at_ms);
}

#define LABELS "namespace=\"ns\",sandbox_template=\"t\",owned_by=\"SandboxClaim\""

static void expect(const char *line, bool is_there)
{
    SCOPED(buf_fini) struct buf text = {0};
    metric_print_all(&text);
    ck_assert_msg((strstr(buf_cstr(&text), line) != NULL) == is_there, "%s: %s", line,
                  buf_cstr(&text));
}

#define SUSPEND "\"operatingMode\":\"Suspended\""

START_TEST(test_suspend_and_resume)
{
    pass(1000, SUSPEND, RUNNING "," READY, RUNNING);
    expect("agent_sandbox_suspend_total", false);
    pass(1250, SUSPEND, RUNNING, SUSPENDED);
    expect("agent_sandbox_suspend_total{" LABELS ",result=\"success\"} 1\n", true);
    expect("agent_sandbox_suspend_latency_ms_sum{" LABELS "} 250\n", true);
    pass(5000, SUSPEND, SUSPENDED, SUSPENDED);
    pass(6000, "", SUSPENDED, RUNNING);
    pass(6400, "", RUNNING, RUNNING "," READY);
    expect("agent_sandbox_resume_total{" LABELS ",result=\"success\"} 1\n", true);
    expect("agent_sandbox_resume_latency_ms_sum{" LABELS "} 400\n", true);
    pass(9000, "", RUNNING "," READY, RUNNING);
    pass(9500, "", RUNNING, RUNNING "," READY); /* a failure in between is none of both */
    expect("agent_sandbox_resume_total{" LABELS ",result=\"success\"} 1\n", true);
    expect("agent_sandbox_suspend_total{" LABELS ",result=\"success\"} 1\n", true);
}
END_TEST

START_TEST(test_failed_suspension)
{
    pass(1000, SUSPEND, RUNNING "," READY, RUNNING "," FAILED);
    pass(1100, SUSPEND, RUNNING "," FAILED, RUNNING "," FAILED);
    expect("agent_sandbox_suspend_total{" LABELS ",result=\"error\"} 1\n", true);
    pass(2000, SUSPEND, RUNNING "," FAILED, SUSPENDED);
    expect("agent_sandbox_suspend_total{" LABELS ",result=\"success\"} 1\n", true);
}
END_TEST

START_TEST(test_ends)
{
    pass(1, "\"shutdownPolicy\":\"Delete\"", READY, CONDITION("Ready", "False", "SandboxExpired"));
    expect("agent_sandbox_expired_total{" LABELS ",shutdown_policy=\"Delete\"} 1\n", true);
    pass(2, "", CONDITION("Ready", "False", "SandboxExpired"),
         CONDITION("Ready", "False", "SandboxExpired"));
    expect("agent_sandbox_expired_total{" LABELS ",shutdown_policy=\"Retain\"}", false);
    pass(3, "", READY, READY "," CONDITION("Finished", "True", "PodFailed"));
    expect("agent_sandbox_finished_total{" LABELS ",reason=\"PodFailed\"} 1\n", true);
}
END_TEST

SUITE(sandbox_metric)
{
    TCase *tc = tcase_create("lives");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_suspend_and_resume);
    tcase_add_test(tc, test_failed_suspension);
    tcase_add_test(tc, test_ends);
    suite_add_tcase(s, tc);
}
