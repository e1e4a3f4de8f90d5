/* A series is found by its label values joined with SEPARATOR. Values are made printable first: one
 * broken byte would make a scraper refuse the whole page. */
#include "apiserver/base/metric.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"

#define SEPARATOR '\x01'
#define VALUE_MAX_BYTES ((size_t)128) /* of a label's value; the rest is cut */
#define KEY_SIZE (METRIC_LABELS_MAX * (VALUE_MAX_BYTES + 1) + 1)

struct series {
    char *key;
    double value;     /* counter, gauge; histogram: sum */
    uint64_t count;   /* histogram */
    uint64_t *bucket; /* histogram: observations up to each bound, not cumulated */
};

struct metric_state {
    pthread_mutex_t lock; /* guards all below */
    const struct metric *metric;
    size_t n_labels, n_buckets; /* constant */
    struct map *by_key;
    struct series **series; /* in order of appearance */
    size_t n_series, cap;
};

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct metric_state **registry; /* under registry_lock */
static size_t n_registered;            /* under registry_lock */

/* ---- registering ---- */

static size_t count_buckets(const struct metric *m)
{
    size_t n = 0;
    while (m->type == METRIC_HISTOGRAM && m->buckets[n] != 0)
        n++;
    return n;
}

static struct metric_state *new_state(const struct metric *m)
{
    struct metric_state *s = xcalloc(1, sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    s->metric = m;
    while (m->labels[s->n_labels] != NULL)
        s->n_labels++;
    s->n_buckets = count_buckets(m);
    s->by_key = map_new();
    return s;
}

static struct metric_state *register_metric(struct metric *m)
{
    pthread_mutex_lock(&registry_lock);
    struct metric_state *s = m->state;
    if (s == NULL) {
        s = new_state(m);
        registry = xreallocarray(registry, n_registered + 1, sizeof(struct metric_state *));
        registry[n_registered++] = s;
        __atomic_store_n(&m->state, s, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&registry_lock);
    return s;
}

static struct metric_state *state_of(struct metric *m)
{
    struct metric_state *s = __atomic_load_n(&m->state, __ATOMIC_ACQUIRE);
    return s != NULL ? s : register_metric(m);
}

/* ---- series ---- */

static char *append_value(char *at, const char *value)
{
    size_t used = 0;
    uint32_t rune;
    while (*value != '\0') {
        size_t n = str_utf8_decode(value, strnlen(value, 4), &rune);
        bool is_printable = n > 0 && ((unsigned char)*value >= 0x20 || *value == '\n');
        if (n == 0)
            n = 1;
        if (used + n > VALUE_MAX_BYTES)
            break;
        if (is_printable)
            memcpy(at + used, value, n);
        else
            at[used] = '?';
        used += n;
        value += n;
    }
    return at + used;
}

/* Each value is followed by SEPARATOR. values == NULL: every label is "other". */
static void make_key(const struct metric_state *s, const char *const *values, char key[KEY_SIZE])
{
    char *at = key;
    for (size_t i = 0; i < s->n_labels; i++) {
        at = append_value(at, values != NULL ? values[i] : "other");
        *at++ = SEPARATOR;
    }
    *at = '\0';
}

static struct series *add_series(struct metric_state *s, const char *key)
{
    struct series *one = xcalloc(1, sizeof *one);
    one->key = xstrdup(key);
    if (s->n_buckets > 0)
        one->bucket = xcalloc(s->n_buckets, sizeof one->bucket[0]);
    if (s->n_series == s->cap) {
        s->cap = s->cap == 0 ? 4 : 2 * s->cap;
        s->series = xreallocarray(s->series, s->cap, sizeof(struct series *));
    }
    s->series[s->n_series++] = one;
    map_put(s->by_key, key, one);
    return one;
}

/* Lock held. The last series a metric may have is the one that takes all further labels. */
static struct series *get_series(struct metric_state *s, const char *const *values)
{
    char key[KEY_SIZE];
    assert(values != NULL || s->n_labels == 0);
    make_key(s, values, key);
    struct series *one = map_get(s->by_key, key);
    if (one != NULL)
        return one;
    if (s->n_series >= METRIC_SERIES_MAX - 1) {
        make_key(s, NULL, key);
        one = map_get(s->by_key, key);
    }
    return one != NULL ? one : add_series(s, key);
}

void metric_add(struct metric *m, double by, const char *const *values)
{
    assert(m->type != METRIC_HISTOGRAM);
    struct metric_state *s = state_of(m);
    pthread_mutex_lock(&s->lock);
    get_series(s, values)->value += by;
    pthread_mutex_unlock(&s->lock);
}

void metric_set(struct metric *m, double to, const char *const *values)
{
    assert(m->type == METRIC_GAUGE);
    struct metric_state *s = state_of(m);
    pthread_mutex_lock(&s->lock);
    get_series(s, values)->value = to;
    pthread_mutex_unlock(&s->lock);
}

void metric_observe(struct metric *m, double v, const char *const *values)
{
    assert(m->type == METRIC_HISTOGRAM);
    struct metric_state *s = state_of(m);
    pthread_mutex_lock(&s->lock);
    struct series *one = get_series(s, values);
    one->value += v;
    one->count++;
    size_t i = 0;
    while (i < s->n_buckets && !(v <= m->buckets[i]))
        i++;
    if (i < s->n_buckets)
        one->bucket[i]++;
    pthread_mutex_unlock(&s->lock);
}

double metric_value(struct metric *m, const char *const *values)
{
    struct metric_state *s = state_of(m);
    char key[KEY_SIZE];
    pthread_mutex_lock(&s->lock);
    make_key(s, values, key);
    const struct series *one = map_get(s->by_key, key);
    double v = one == NULL ? 0 : m->type == METRIC_HISTOGRAM ? (double)one->count : one->value;
    pthread_mutex_unlock(&s->lock);
    return v;
}

static void free_series(struct series *one)
{
    free(one->key);
    free(one->bucket);
    free(one);
}

void metric_clear(struct metric *m)
{
    struct metric_state *s = state_of(m);
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->n_series; i++)
        free_series(s->series[i]);
    s->n_series = 0;
    map_free(s->by_key);
    s->by_key = map_new();
    pthread_mutex_unlock(&s->lock);
}

/* ---- values computed when asked for ---- */

struct collector {
    void (*fn)(void *ctx); /* NULL = a free place */
    void *ctx;
};
static pthread_mutex_t collect_lock = PTHREAD_MUTEX_INITIALIZER; /* held while one prints */
static struct collector collectors[METRIC_COLLECTORS_MAX];       /* under collect_lock */

static struct collector *find_collector(void (*fn)(void *ctx), void *ctx)
{
    for (size_t i = 0; i < METRIC_COLLECTORS_MAX; i++) {
        if (collectors[i].fn == fn && (!fn || collectors[i].ctx == ctx))
            return &collectors[i];
    }
    return NULL;
}

void metric_collect_on(void (*fn)(void *ctx), void *ctx)
{
    pthread_mutex_lock(&collect_lock);
    struct collector *place = find_collector(NULL, NULL);
    assert(place != NULL);
    *place = (struct collector){fn, ctx};
    pthread_mutex_unlock(&collect_lock);
}

void metric_collect_off(void (*fn)(void *ctx), void *ctx)
{
    pthread_mutex_lock(&collect_lock);
    struct collector *place = find_collector(fn, ctx);
    if (place != NULL)
        *place = (struct collector){0};
    pthread_mutex_unlock(&collect_lock);
}

/* ---- printing: the text format, version 0.0.4 ---- */

/* The shortest text that reads back as v. */
static void print_number(struct buf *out, double v)
{
    if (isnan(v) || isinf(v)) {
        buf_puts(out, isnan(v) ? "NaN" : v > 0 ? "+Inf" : "-Inf");
        return;
    }
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    buf_puts(out, text);
}

static void print_escaped(struct buf *out, const char *s, size_t n, bool is_quoted)
{
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\\')
            buf_puts(out, "\\\\");
        else if (s[i] == '\n')
            buf_puts(out, "\\n");
        else if (s[i] == '"' && is_quoted)
            buf_puts(out, "\\\"");
        else
            buf_putc(out, s[i]);
    }
}

/* {a="1",b="2"}; le, if not NULL, is one more label. Nothing when there is none at all. */
static void print_labels(struct buf *out, const struct metric *m, const char *key, const char *le)
{
    const char *before = "{";
    for (size_t i = 0; m->labels[i] != NULL; i++) {
        const char *end = strchr(key, SEPARATOR);
        buf_printf(out, "%s%s=\"", before, m->labels[i]);
        print_escaped(out, key, (size_t)(end - key), true);
        buf_putc(out, '"');
        key = end + 1;
        before = ",";
    }
    if (le != NULL)
        buf_printf(out, "%sle=\"%s\"", before, le);
    if (le != NULL || m->labels[0] != NULL)
        buf_putc(out, '}');
}

static void print_line(struct buf *out, const struct metric *m, const char *suffix,
                       const struct series *one, const char *le, double v)
{
    buf_printf(out, "%s%s", m->name, suffix);
    print_labels(out, m, one->key, le);
    buf_putc(out, ' ');
    print_number(out, v);
    buf_putc(out, '\n');
}

static void print_histogram(struct buf *out, const struct metric_state *s, const struct series *one)
{
    uint64_t up_to = 0;
    for (size_t i = 0; i < s->n_buckets; i++) {
        SCOPED(buf_fini) struct buf le = {0};
        print_number(&le, s->metric->buckets[i]);
        up_to += one->bucket[i];
        print_line(out, s->metric, "_bucket", one, buf_cstr(&le), (double)up_to);
    }
    print_line(out, s->metric, "_bucket", one, "+Inf", (double)one->count);
    print_line(out, s->metric, "_sum", one, NULL, one->value);
    print_line(out, s->metric, "_count", one, NULL, (double)one->count);
}

static int compare_series(const void *a, const void *b)
{
    const struct series *const *x = a, *const *y = b;
    return strcmp((*x)->key, (*y)->key);
}

static void print_metric(struct buf *out, struct metric_state *s)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    const struct metric *m = s->metric;
    buf_printf(out, "# HELP %s ", m->name);
    print_escaped(out, m->help, strlen(m->help), false);
    buf_printf(out, "\n# TYPE %s %s\n", m->name, types[m->type]);
    pthread_mutex_lock(&s->lock);
    if (s->n_series > 0)
        qsort(s->series, s->n_series, sizeof(struct series *), compare_series);
    for (size_t i = 0; i < s->n_series; i++) {
        if (m->type == METRIC_HISTOGRAM)
            print_histogram(out, s, s->series[i]);
        else
            print_line(out, m, "", s->series[i], NULL, s->series[i]->value);
    }
    pthread_mutex_unlock(&s->lock);
}

static int compare_metrics(const void *a, const void *b)
{
    const struct metric_state *const *x = a, *const *y = b;
    return strcmp((*x)->metric->name, (*y)->metric->name);
}

void metric_print_all(struct buf *out)
{
    pthread_mutex_lock(&collect_lock);
    for (size_t i = 0; i < METRIC_COLLECTORS_MAX; i++) {
        if (collectors[i].fn != NULL)
            collectors[i].fn(collectors[i].ctx);
    }
    pthread_mutex_lock(&registry_lock);
    if (n_registered > 0)
        qsort(registry, n_registered, sizeof(struct metric_state *), compare_metrics);
    for (size_t i = 0; i < n_registered; i++)
        print_metric(out, registry[i]);
    pthread_mutex_unlock(&registry_lock);
    pthread_mutex_unlock(&collect_lock);
}
