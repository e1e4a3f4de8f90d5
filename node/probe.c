#include "node/probe.h"

#include "apiserver/base/json.h"

const char *const probe_fields[PROBE_KINDS] = {
    [PROBE_STARTUP] = "startupProbe",
    [PROBE_READINESS] = "readinessProbe",
    [PROBE_LIVENESS] = "livenessProbe",
};

/* Numbers that the cluster has not filled in, or that make no sense, are the usual ones. */
static int64_t number(const cJSON *spec, const char *name, int64_t otherwise)
{
    int64_t n = json_i64_or(spec, name, otherwise);
    return n > 0 && n <= INT32_MAX ? n : otherwise;
}

struct probe probe_read(const cJSON *container, enum probe_kind kind)
{
    const cJSON *spec = json_get(container, probe_fields[kind]);
    int64_t grace = json_i64_or(spec, "terminationGracePeriodSeconds", -1);
    return (struct probe){
        .spec = spec,
        .delay_ms = number(spec, "initialDelaySeconds", 0) * 1000,
        .period_ms = number(spec, "periodSeconds", 10) * 1000,
        .timeout_ms = number(spec, "timeoutSeconds", 1) * 1000,
        .successes = (int)number(spec, "successThreshold", 1),
        .failures = (int)number(spec, "failureThreshold", 3),
        .grace_ms = grace < 0 || grace > INT32_MAX ? -1 : grace * 1000,
    };
}

bool probe_take(const struct probe *probe, struct probe_state *state, bool passes)
{
    enum probe_verdict result = passes ? PROBE_PASSES : PROBE_FAILS;
    int needed = passes ? probe->successes : probe->failures;
    if (state->last != result)
        state->in_a_row = 0;
    state->last = result;
    if (state->in_a_row < needed)
        state->in_a_row++;
    if (state->in_a_row < needed || state->verdict == result)
        return false;
    state->verdict = result;
    return true;
}

bool probe_passes(const struct probe *probe, const struct probe_state *state, enum probe_kind kind)
{
    if (!probe->spec)
        return true;
    return state->verdict == PROBE_PASSES ||
           (state->verdict == PROBE_UNKNOWN && kind == PROBE_LIVENESS);
}
