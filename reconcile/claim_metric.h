/* What is counted about claims: how they got their Sandbox, and how long until they were ready (O1
 * to O7 of docs/reconcile.md). Names, labels and buckets are those that dashboards of the original
 * expect. Any thread. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* A claim got a Sandbox: made for it (is_warm false), or from its pool. */
void claim_metric_created(const cJSON *claim, const cJSON *sandbox, bool is_warm);
/* It became ready for the first time. observed_unix_ms: when it was first seen, used when the claim
 * does not say; 0 = unknown. sandbox may be NULL. */
void claim_metric_ready(const cJSON *claim, const cJSON *sandbox, int64_t observed_unix_ms,
                        int64_t now_unix_ms);
