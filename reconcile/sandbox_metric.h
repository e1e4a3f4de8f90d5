/* What is counted of the lives of Sandboxes: their ends, suspensions and resumptions. Names and
 * labels are those of the original's later releases. Any thread. */
#pragma once

#include <cjson/cJSON.h>
#include <stdint.h>

struct sandbox_metric;
struct sandbox_metric *sandbox_metric_new(void);
void sandbox_metric_free(struct sandbox_metric *m);
/* A pass is about to work on what it read: notes since when a suspension or a resumption is under
 * way, so that its duration is known. */
void sandbox_metric_seen(struct sandbox_metric *m, const char *key, const cJSON *sandbox,
                         int64_t now_ms);
/* A pass has written a status in place of sandbox's own. */
void sandbox_metric_written(struct sandbox_metric *m, const char *key, const cJSON *sandbox,
                            const cJSON *new_status, int64_t now_ms);
void sandbox_metric_idle(const cJSON *sandbox); /* suspended for being idle */
void sandbox_metric_forget(struct sandbox_metric *m, const char *key); /* it is gone */
