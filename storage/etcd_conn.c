#include "storage/etcd_conn.h"

#include <assert.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/metric.h"
#include "storage/etcd_msg.h"

#define CALL_TIMEOUT_MS 10000
#define OPEN_TIMEOUT_MS 10000

/* Name and buckets as kube-apiserver's, so that its dashboards fit. operation is the call's: range,
 * txn, ... */
static const double seconds[] = {0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25,
                                 1.5,   2,     3,    4,   5,   6,   8,   10,  0};
static struct metric duration = {.name = "etcd_request_duration_seconds",
                                 .help = "Time of a call of etcd, all tries together.",
                                 .type = METRIC_HISTOGRAM,
                                 .labels = {"operation"},
                                 .buckets = seconds};
static struct metric failures = {.name = "etcd_request_errors_total",
                                 .help = "Calls of etcd that failed, by what the caller was told.",
                                 .type = METRIC_COUNTER,
                                 .labels = {"operation", "error"}};

struct etcd_conn {
    struct fetch *fetch; /* borrowed */
    char **endpoints;
    size_t n_endpoints;
    size_t working; /* atomic: index of the endpoint to use */
    struct fetch_tls tls;
    char *ca_file, *cert_file, *key_file;
    int64_t call_timeout_ms;
};

static char *copy(const char *s)
{
    return s == NULL ? NULL : xstrdup(s);
}

/* Without the slash that may end it: paths begin with one. */
static char *copy_endpoint(const char *url)
{
    size_t n = strlen(url);
    while (n > 0 && url[n - 1] == '/')
        n--;
    return xstrndup(url, n);
}

struct etcd_conn *etcd_conn_new(struct fetch *fetch, const struct etcd_config *config)
{
    struct etcd_conn *c = xcalloc(1, sizeof *c);
    c->fetch = fetch;
    while (config->endpoints[c->n_endpoints] != NULL)
        c->n_endpoints++;
    assert(c->n_endpoints > 0);
    c->endpoints = xcalloc(c->n_endpoints, sizeof(char *));
    for (size_t i = 0; i < c->n_endpoints; i++)
        c->endpoints[i] = copy_endpoint(config->endpoints[i]);
    c->ca_file = copy(config->ca_file);
    c->cert_file = copy(config->cert_file);
    c->key_file = copy(config->key_file);
    c->tls = (struct fetch_tls){
        .ca_file = c->ca_file, .cert_file = c->cert_file, .key_file = c->key_file};
    c->call_timeout_ms = config->call_timeout_ms > 0 ? config->call_timeout_ms : CALL_TIMEOUT_MS;
    return c;
}

void etcd_conn_free(struct etcd_conn *c)
{
    if (c == NULL)
        return;
    for (size_t i = 0; i < c->n_endpoints; i++)
        free(c->endpoints[i]);
    free(c->endpoints);
    free(c->ca_file);
    free(c->cert_file);
    free(c->key_file);
    free(c);
}

static size_t working(const struct etcd_conn *c)
{
    return __atomic_load_n(&c->working, __ATOMIC_RELAXED);
}

void etcd_conn_failed(struct etcd_conn *c, size_t endpoint)
{
    /* Of several calls that failed at one endpoint only the first moves on. */
    size_t next = (endpoint + 1) % c->n_endpoints;
    __atomic_compare_exchange_n(&c->working, &endpoint, next, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
}

static int64_t now_ms(void)
{
    return clock_monotonic_ms(&clock_system);
}

static struct fetch_request post_to(const struct etcd_conn *c, const char *url,
                                    const struct buf *body, int64_t timeout_ms)
{
    return (struct fetch_request){.method = "POST",
                                  .url = url,
                                  .body = buf_cstr(body),
                                  .body_len = body->len,
                                  .tls = &c->tls,
                                  .timeout_ms = timeout_ms};
}

/* One request to one endpoint; what fetch says about a POST, seen by kind. */
static int try_endpoint(struct etcd_conn *c, size_t endpoint, enum etcd_call kind, const char *path,
                        const struct buf *body, int64_t timeout_ms, struct fetch_response *ret,
                        struct err *err)
{
    SCOPED_FREE char *url = xasprintf("%s%s", c->endpoints[endpoint], path);
    struct fetch_request req = post_to(c, url, body, timeout_ms);
    SCOPED(fetch_response_fini) struct fetch_response res = {0};
    int r = fetch_do(c->fetch, &req, &res, err);
    if (r < 0)
        return r;
    if (res.status != 200)
        return etcd_msg_read_error(res.status, buf_cstr(&res.body), res.body.len,
                                   kind == ETCD_WRITE, err);
    *ret = steal(&res);
    return 0;
}

/* May another endpoint, or for a read another try, do better? */
static bool is_worth_retry(enum err_code code, enum etcd_call kind)
{
    if (code == ERR_UNAVAILABLE)
        return true;
    return kind == ETCD_READ &&
           (code == ERR_UNDETERMINED || code == ERR_TIMEOUT || code == ERR_SERVER_TIMEOUT);
}

/* The last word on a call: for fetch every POST may have changed something, of a read we know
 * better. */
static int settle(enum etcd_call kind, int64_t until_ms, struct err *err)
{
    bool is_unknown = err->code == ERR_UNDETERMINED || err->code == ERR_TIMEOUT;
    if (kind == ETCD_READ && is_unknown)
        err->code = now_ms() >= until_ms ? ERR_SERVER_TIMEOUT : ERR_UNAVAILABLE;
    return -(int)err->code;
}

static int call(struct etcd_conn *c, enum etcd_call kind, const char *path, const struct buf *body,
                int64_t until_ms, struct fetch_response *ret, struct err *why)
{
    size_t tries = kind == ETCD_READ && c->n_endpoints == 1 ? 2 : c->n_endpoints;
    err_set(why, kind == ETCD_READ ? ERR_SERVER_TIMEOUT : ERR_UNAVAILABLE,
            "no time left to ask the store");
    for (size_t i = 0; i < tries; i++) {
        int64_t left_ms = until_ms - now_ms();
        if (left_ms <= 0)
            break;
        size_t endpoint = working(c);
        if (try_endpoint(c, endpoint, kind, path, body, left_ms, ret, why) == 0)
            return 0;
        if (is_worth_retry(why->code, ETCD_READ)) /* its fault, whether or not this call goes on */
            etcd_conn_failed(c, endpoint);
        if (!is_worth_retry(why->code, kind))
            break;
    }
    return settle(kind, until_ms, why);
}

int etcd_conn_call(struct etcd_conn *c, enum etcd_call kind, const char *path,
                   const struct buf *body, int64_t deadline_ms, struct fetch_response *ret,
                   struct err *err)
{
    int64_t from_ms = now_ms();
    int64_t until_ms = from_ms + c->call_timeout_ms;
    if (until_ms > deadline_ms)
        until_ms = deadline_ms;
    SCOPED(err_fini) struct err why = {0};
    int r = call(c, kind, path, body, until_ms, ret, &why);
    const char *labels[] = {strrchr(path, '/') + 1, err_name(why.code)};
    metric_observe(&duration, (double)(now_ms() - from_ms) / 1000, labels);
    if (r == 0)
        return 0;
    metric_add(&failures, 1, labels);
    return err_move(err, &why);
}

struct fetch_stream *etcd_conn_open(struct etcd_conn *c, const char *path, const struct buf *body,
                                    size_t *ret_endpoint)
{
    size_t endpoint = working(c);
    SCOPED_FREE char *url = xasprintf("%s%s", c->endpoints[endpoint], path);
    struct fetch_request req = post_to(c, url, body, OPEN_TIMEOUT_MS);
    *ret_endpoint = endpoint;
    return fetch_open(c->fetch, &req);
}
