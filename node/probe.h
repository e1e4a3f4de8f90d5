/* Probes: what a container's spec says of one, and what its results mean. Pure; carrying one out is
 * prober.h's part. Any thread. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

enum probe_kind { PROBE_STARTUP, PROBE_READINESS, PROBE_LIVENESS, PROBE_KINDS };
extern const char *const probe_fields[PROBE_KINDS]; /* startupProbe, ... */

struct probe {
    const cJSON *spec; /* borrowed; NULL = the container has none of that kind */
    int64_t delay_ms, period_ms, timeout_ms;
    int successes, failures; /* in a row, before a result counts */
    int64_t grace_ms;        /* of a container that is killed for it; -1 = the Pod's */
};
struct probe probe_read(const cJSON *container, enum probe_kind kind);

enum probe_verdict { PROBE_UNKNOWN, PROBE_PASSES, PROBE_FAILS };
struct probe_state { /* of one run of a container; starts as {0} */
    enum probe_verdict verdict;
    enum probe_verdict last; /* result, of which there were so many in a row */
    int in_a_row;
};
/* Takes in one result; true when the verdict changes. */
bool probe_take(const struct probe *probe, struct probe_state *state, bool passes);
/* What counts before there is a verdict: readiness and startup fail, liveness passes; a probe that
 * is not there passes. */
bool probe_passes(const struct probe *probe, const struct probe_state *state, enum probe_kind kind);
