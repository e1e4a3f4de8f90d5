/* Counters, gauges and histograms, printed as Prometheus text. A metric is declared once as a
 * static struct and registers itself at first use; label values make a series on demand, at most
 * METRIC_SERIES_MAX a metric (further ones are counted into the series whose labels are all
 * "other"). Any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "apiserver/base/buf.h"

#define METRIC_SERIES_MAX 2000
#define METRIC_LABELS_MAX 10

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };
struct metric_state;
struct metric {
    const char *name, *help;
    enum metric_type type;
    const char *labels[METRIC_LABELS_MAX + 1]; /* names, ended by NULL */
    const double *buckets;                     /* histograms: upper bounds, ascending, ended by 0 */
    struct metric_state *state;                /* of metric.c */
};
/* Label values in the order of labels, as many as there are labels: metric_add(&m, 1, (const char
 * *[]){"GET", "200"}). values may be NULL when the metric has no labels. */
void metric_add(struct metric *m, double by, const char *const *values);
void metric_set(struct metric *m, double to, const char *const *values);    /* gauges */
void metric_observe(struct metric *m, double v, const char *const *values); /* histograms */
/* of that series (histograms: the count); 0 when none */
double metric_value(struct metric *m, const char *const *values);
void metric_clear(struct metric *m); /* drops every series */
/* Values that are computed when they are asked for: fn runs at the begin of each metric_print_all,
 * one at a time, and may block. off waits for one that runs. At most METRIC_COLLECTORS_MAX. */
#define METRIC_COLLECTORS_MAX 32
void metric_collect_on(void (*fn)(void *ctx), void *ctx);
void metric_collect_off(void (*fn)(void *ctx), void *ctx);
void metric_print_all(struct buf *out);
