/* What a work queue counts about itself, under the names and labels that Go's work queues and
 * controller-runtime use, so that their dashboards fit. Any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

void loop_metric_start(const char *name, int workers);
void loop_metric_add(const char *name);
void loop_metric_take(const char *name, int64_t waited_ms);
/* result: success, error (the key comes back), requeue_after */
void loop_metric_done(const char *name, const char *result, int64_t took_ms);
/* Set when the metrics are asked for: keys waiting, passes under way, and for how long they have
 * been, all together and the longest. */
void loop_metric_state(const char *name, size_t depth, size_t active, int64_t unfinished_ms,
                       int64_t longest_ms);
