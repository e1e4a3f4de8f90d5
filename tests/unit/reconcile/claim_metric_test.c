/* What is counted about claims: which series get a measurement, and which one. Names carry the ids
 * of the behaviour checklist (O-t...). */
#include <inttypes.h>

#include "apiserver/base/json.h"
#include "apiserver/base/metric.h"
#include "apiserver/base/str.h"
#include "reconcile/claim_metric.h"
#include "tests/lib/suite.h"

#define NOW_MS INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */

static cJSON *parse(const char *text)
{
    cJSON *tree = NULL;
    ck_assert_msg(json_parse_str(text, &tree, NULL) == 0, "%s", text);
    return tree;
}

#define CLAIM(annotations)                                                                         \
    "{\"metadata\":{\"name\":\"c\",\"namespace\":\"ns\",\"annotations\":{" annotations             \
    "}},\"spec\":{\"warmPoolRef\":{\"name\":\"p\"}}}"
#define WEBHOOK(at) "\"agents.x-k8s.io/webhook-first-observed-at\":\"" at "\""
#define CONTROLLER(at) "\"agents.x-k8s.io/controller-first-observed-at\":\"" at "\""
#define CLIENT(at) "\"agents.x-k8s.io/client-first-requested-at\":\"" at "\""
#define SECOND_AGO "2025-12-31T23:59:59Z"
#define SANDBOX(meta)                                                                              \
    "{\"metadata\":{\"creationTimestamp\":\"2025-12-31T23:59:50Z\"" meta                           \
    "},\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\","                       \
    "\"lastTransitionTime\":"                                                                      \
    "\"2025-12-31T23:59:53Z\"}]}}"
#define WARM ",\"labels\":{\"agents.x-k8s.io/launch-type\":\"warm\"}"
#define COLD ",\"labels\":{\"agents.x-k8s.io/launch-type\":\"cold\"}"
#define ALL WEBHOOK(SECOND_AGO) "," CONTROLLER(SECOND_AGO) "," CLIENT(SECOND_AGO)
#define NONE (-1)

/* Sum of each series after one claim became ready, ms; NONE = not measured. */
static const struct {
    const char *id, *claim, *sandbox; /* sandbox NULL = none */
    int64_t seen_ms;                  /* before NOW_MS; 0 = not known */
    const char *launch_type;
    int64_t claim_ms, controller_ms, client_ms, creation_ms;
} rows[] = {
    {"O-t001 O-t005 warm", CLAIM(ALL), SANDBOX(WARM), 0, "warm", 1000, 1000, 1000, 3000},
    {"O-t001 cold", CLAIM(ALL), SANDBOX(COLD), 0, "cold", 1000, 1000, 1000, 3000},
    {"O-t001 O-t009 no Sandbox", CLAIM(ALL), NULL, 0, "unknown", 1000, 1000, 1000, NONE},
    {"O-t006 no webhook", CLAIM(CONTROLLER(SECOND_AGO)), SANDBOX(WARM), 0, "warm", NONE, 1000, NONE,
     3000},
    {"O-t010 seen by the controller, not annotated", CLAIM(""), SANDBOX(WARM), 250, "warm", NONE,
     250, NONE, 3000},
    {"O-t010 the annotation counts", CLAIM(CONTROLLER(SECOND_AGO)), SANDBOX(WARM), 250, "warm",
     NONE, 1000, NONE, 3000},
    {"O-t011 webhook's clock is ahead",
     CLAIM(WEBHOOK("2026-01-01T00:00:01Z") "," CONTROLLER(SECOND_AGO)), SANDBOX(WARM), 0, "warm",
     NONE, 1000, NONE, 3000},
    {"O-t019 client says", CLAIM(CLIENT(SECOND_AGO)), SANDBOX(WARM), 0, "warm", NONE, NONE, 1000,
     3000},
    {"O-t019 client says nothing", CLAIM(""), SANDBOX(WARM), 0, "warm", NONE, NONE, NONE, 3000},
    {"O-t019 client says no time", CLAIM(CLIENT("yesterday")), SANDBOX(WARM), 0, "warm", NONE, NONE,
     NONE, 3000},
    {"O-t019 client's clock is ahead", CLAIM(CLIENT("2026-01-01T00:00:01Z")), SANDBOX(WARM), 0,
     "warm", NONE, NONE, NONE, 3000},
    {"O-t022 cold in spite of a pod-name", CLAIM(""),
     SANDBOX(COLD ",\"annotations\":{\"agents.x-k8s.io/pod-name\":\"x\"}"), 0, "cold", NONE, NONE,
     NONE, 3000},
    {"O-t022 no label", CLAIM(""), SANDBOX(""), 0, "cold", NONE, NONE, NONE, 3000},
    {"O-t033 whole milliseconds", CLAIM(CONTROLLER("2025-12-31T23:59:59.7501234Z")), SANDBOX(WARM),
     0, "warm", NONE, 250, NONE, 3000},
    {"O-t034 no time where the first sight should be", CLAIM(CONTROLLER("x")), SANDBOX(WARM), 250,
     "warm", NONE, NONE, NONE, 3000},
};

/* The series' sum, NONE when it has no measurement; more than one fails the test. */
static int64_t sum_of(const char *text, const char *name, const char *labels, const char *id)
{
    SCOPED_FREE char *count = xasprintf("%s_count{%s} ", name, labels);
    SCOPED_FREE char *sum = xasprintf("%s_sum{%s} ", name, labels);
    const char *at = strstr(text, count);
    if (!at)
        return NONE;
    ck_assert_msg(strtol(at + strlen(count), NULL, 10) == 1, "%s: %s counted twice", id, name);
    at = strstr(text, sum);
    ck_assert_msg(at != NULL, "%s: %s without a sum", id, name);
    double value = strtod(at + strlen(sum), NULL);
    ck_assert_msg(value == (double)(int64_t)value, "%s: %s is %g", id, name, value);
    return (int64_t)value;
}

START_TEST(test_latencies)
{
    SCOPED(json_free_p) cJSON *claim = parse(rows[_i].claim);
    SCOPED(json_free_p) cJSON *sandbox = rows[_i].sandbox ? parse(rows[_i].sandbox) : NULL;
    claim_metric_ready(claim, sandbox, rows[_i].seen_ms ? NOW_MS - rows[_i].seen_ms : 0, NOW_MS);
    SCOPED(buf_fini) struct buf text = {0};
    metric_print_all(&text);
    SCOPED_FREE char *labels =
        xasprintf("launch_type=\"%s\",sandbox_template=\"__unknown__\"", rows[_i].launch_type);
    SCOPED_FREE char *with_namespace = xasprintf("namespace=\"ns\",%s", labels);
    const struct {
        const char *name, *labels;
        int64_t want;
    } series[] = {
        {"agent_sandbox_claim_startup_latency_ms", labels, rows[_i].claim_ms},
        {"agent_sandbox_claim_controller_startup_latency_ms", labels, rows[_i].controller_ms},
        {"agent_sandbox_client_claim_startup_latency_ms", labels, rows[_i].client_ms},
        {"agent_sandbox_creation_latency_ms", with_namespace, rows[_i].creation_ms},
    };
    for (size_t i = 0; i < ARRAY_LEN(series); i++) {
        int64_t is = sum_of(buf_cstr(&text), series[i].name, series[i].labels, rows[_i].id);
        ck_assert_msg(is == series[i].want, "%s: %s is %" PRId64, rows[_i].id, series[i].name, is);
    }
}
END_TEST

SUITE(claim_metric)
{
    LOOP("latencies", test_latencies, 0, ARRAY_LEN(rows));
}
