#include "apiserver/base/loop_metric.h"

#include "apiserver/base/metric.h"
#include "apiserver/base/str.h"

/* Both sets of bounds, seconds, are those of the originals. */
static const double queue_s[] = {1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01,
                                 0.1,  1,    10,   100,  1000, 0};
static const double pass_s[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4,
                                0.45,  0.5,  0.6,   0.7,  0.8, 0.9,  1,   1.25, 1.5, 1.75, 2,
                                2.5,   3,    3.5,   4,    4.5, 5,    6,   7,    8,   9,    10,
                                15,    20,   25,    30,   40,  50,   60,  0};

#define QUEUE_LABELS                                                                               \
    {                                                                                              \
        "name", "controller"                                                                       \
    }
static struct metric depth = {
    .name = "workqueue_depth",
    .help = "Keys waiting in a work queue.",
    .type = METRIC_GAUGE,
    .labels = QUEUE_LABELS,
};
static struct metric adds = {
    .name = "workqueue_adds_total",
    .help = "Keys added to a work queue, those left out that were waiting already.",
    .type = METRIC_COUNTER,
    .labels = QUEUE_LABELS,
};
static struct metric retries = {
    .name = "workqueue_retries_total",
    .help = "Passes that failed and will be repeated.",
    .type = METRIC_COUNTER,
    .labels = QUEUE_LABELS,
};
static struct metric waited = {
    .name = "workqueue_queue_duration_seconds",
    .help = "How long keys waited until a worker took them.",
    .type = METRIC_HISTOGRAM,
    .labels = QUEUE_LABELS,
    .buckets = queue_s,
};
static struct metric worked = {
    .name = "workqueue_work_duration_seconds",
    .help = "How long workers had a key.",
    .type = METRIC_HISTOGRAM,
    .labels = QUEUE_LABELS,
    .buckets = queue_s,
};
static struct metric unfinished = {
    .name = "workqueue_unfinished_work_seconds",
    .help = "Time spent so far on the keys that workers have, all together.",
    .type = METRIC_GAUGE,
    .labels = QUEUE_LABELS,
};
static struct metric longest = {
    .name = "workqueue_longest_running_processor_seconds",
    .help = "Time spent so far on the key that a worker has had longest.",
    .type = METRIC_GAUGE,
    .labels = QUEUE_LABELS,
};
static struct metric passes = {
    .name = "controller_runtime_reconcile_total",
    .help = "Passes of a controller, by what came of them.",
    .type = METRIC_COUNTER,
    .labels = {"controller", "result"},
};
static struct metric errors = {
    .name = "controller_runtime_reconcile_errors_total",
    .help = "Passes of a controller that failed.",
    .type = METRIC_COUNTER,
    .labels = {"controller"},
};
static struct metric pass_time = {
    .name = "controller_runtime_reconcile_time_seconds",
    .help = "How long a pass took.",
    .type = METRIC_HISTOGRAM,
    .labels = {"controller"},
    .buckets = pass_s,
};
static struct metric workers_max = {
    .name = "controller_runtime_max_concurrent_reconciles",
    .help = "Workers of a controller.",
    .type = METRIC_GAUGE,
    .labels = {"controller"},
};
static struct metric workers_active = {
    .name = "controller_runtime_active_workers",
    .help = "Workers of a controller that have a key now.",
    .type = METRIC_GAUGE,
    .labels = {"controller"},
};

static double seconds(int64_t ms)
{
    return (double)ms / 1000;
}

void loop_metric_start(const char *name, int workers)
{
    const char *const labels[] = {name, name};
    metric_set(&workers_max, workers, labels);
    metric_add(&errors, 0, labels);
    metric_add(&retries, 0, labels);
    metric_add(&adds, 0, labels);
}

void loop_metric_add(const char *name)
{
    metric_add(&adds, 1, (const char *const[]){name, name});
}

void loop_metric_take(const char *name, int64_t waited_ms)
{
    metric_observe(&waited, seconds(waited_ms), (const char *const[]){name, name});
}

void loop_metric_done(const char *name, const char *result, int64_t took_ms)
{
    const char *const labels[] = {name, name};
    metric_observe(&worked, seconds(took_ms), labels);
    metric_observe(&pass_time, seconds(took_ms), labels);
    metric_add(&passes, 1, (const char *const[]){name, result});
    if (!str_equal(result, "error"))
        return;
    metric_add(&errors, 1, labels);
    metric_add(&retries, 1, labels);
}

void loop_metric_state(const char *name, size_t n_waiting, size_t n_active, int64_t unfinished_ms,
                       int64_t longest_ms)
{
    const char *const labels[] = {name, name};
    metric_set(&depth, (double)n_waiting, labels);
    metric_set(&workers_active, (double)n_active, labels);
    metric_set(&unfinished, seconds(unfinished_ms), labels);
    metric_set(&longest, seconds(longest_ms), labels);
}
