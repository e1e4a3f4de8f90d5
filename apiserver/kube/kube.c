/* One request to the cluster's API server at a time and thread: who we are, the URL, and the way
 * from its answer to our error. Tokens in files, and what the kubeconfig holds inline, change while
 * we run; they are looked at before every request. */
#include "apiserver/kube/kube.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/file.h"
#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/metric.h"
#include "apiserver/kube/client.h"
#include "apiserver/kube/config.h"

#define TIMEOUT_DEFAULT_MS 10000
#define TOKEN_MAX_BYTES ((size_t)64 << 10)
#define TOKEN_MAX_AGE_MS 60000 /* then the file is read again even if it looks the same */
#define RETRY_AFTER_MAX_S 3600 /* a longer wish is a mistake and not followed */
#define USER_AGENT "sandbox-apiserver"

struct kube {
    struct fetch *fetch;       /* borrowed */
    struct kube_config config; /* constant but for token and stamp, which lock guards */
    pthread_mutex_t lock;      /* guards what follows */
    char *token;               /* from the file; NULL = never read */
    struct timespec token_mtime;
    int64_t token_read_ms; /* monotonic */
    char *host;            /* of the server, for metrics; constant */
};

/* Names and buckets as client-go's, so that its dashboards fit. */
static const double call_s[] = {0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 0};
static struct metric calls_metric = {
    .name = "rest_client_requests_total",
    .help = "Calls of the cluster's API server, by HTTP status; <error> when none came.",
    .type = METRIC_COUNTER,
    .labels = {"code", "host", "method"},
};
static struct metric call_time = {
    .name = "rest_client_request_duration_seconds",
    .help = "Time of a call of the cluster's API server.",
    .type = METRIC_HISTOGRAM,
    .labels = {"host", "verb"},
    .buckets = call_s,
};

/* HOST:PORT of an URL; the caller's. */
static char *host_of(const char *url)
{
    const char *scheme = strstr(url, "://");
    const char *host = scheme ? scheme + 3 : url;
    return xstrndup(host, strcspn(host, "/"));
}

int kube_new(const char *kubeconfig_path, struct fetch *fetch, struct kube **ret, struct err *err)
{
    SCOPED(kube_config_fini) struct kube_config config = {0};
    int code = kube_config_load(kubeconfig_path, &config, err);
    if (code < 0)
        return code;
    struct kube *k = xcalloc(1, sizeof *k);
    k->fetch = fetch;
    k->config = steal(&config);
    k->host = host_of(k->config.server);
    pthread_mutex_init(&k->lock, NULL);
    *ret = k;
    return 0;
}

const struct kube_config *kube_get_config(const struct kube *k)
{
    return &k->config;
}

void kube_free(struct kube *k)
{
    if (k == NULL)
        return;
    kube_config_fini(&k->config);
    free(k->host);
    free(k->token);
    pthread_mutex_destroy(&k->lock);
    free(k);
}

/* ---- the token ---- */

static bool is_same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* Lock held. A file that cannot be read now, or is empty while it is replaced, leaves the token as
 * it was. */
static void read_token(struct kube *k)
{
    SCOPED(buf_fini) struct buf text = {0};
    SCOPED(err_fini) struct err err = {0};
    if (file_read(k->config.token_file, TOKEN_MAX_BYTES, &text, &err) < 0) {
        log_warn("token not read error=\"%s\", keeping the one before", err_text(&err));
        return;
    }
    const char *s = buf_cstr(&text);
    s += strspn(s, " \t\r\n");
    size_t n = strcspn(s, " \t\r\n");
    if (n == 0)
        return;
    free(k->token);
    k->token = xstrndup(s, n);
}

/* Lock held. */
static void refresh_token(struct kube *k)
{
    int64_t now_ms = clock_monotonic_ms(&clock_system);
    struct stat st = {0};
    bool exists = stat(k->config.token_file, &st) == 0;
    bool is_fresh = k->token_read_ms != 0 && now_ms - k->token_read_ms < TOKEN_MAX_AGE_MS;
    if (is_fresh && (!exists || is_same_time(st.st_mtim, k->token_mtime)))
        return;
    k->token_read_ms = now_ms;
    k->token_mtime = st.st_mtim;
    read_token(k);
}

/* Lock held. */
static void follow_config(struct kube *k)
{
    SCOPED(err_fini) struct err err = {0};
    int rc = kube_config_follow(&k->config, &err);
    if (rc < 0)
        log_warn("kubeconfig changed and is not followed: %s", err_text(&err));
    else if (rc > 0)
        log_info("kubeconfig read again file=%s", k->config.path);
}

static void add_token(struct kube *k, struct pairs *headers)
{
    pthread_mutex_lock(&k->lock);
    follow_config(k);
    if (k->config.token_file != NULL)
        refresh_token(k);
    const char *token = k->token != NULL ? k->token : k->config.token;
    if (token != NULL) {
        SCOPED_FREE char *value = xasprintf("Bearer %s", token);
        pairs_add(headers, "Authorization", value);
    }
    pthread_mutex_unlock(&k->lock);
}

void kube_distrust_token(struct kube *k)
{
    pthread_mutex_lock(&k->lock);
    k->token_read_ms = 0;
    pthread_mutex_unlock(&k->lock);
}

/* ---- answers ---- */

static void take_causes(const cJSON *details, struct err *err)
{
    const cJSON *cause;
    cJSON_ArrayForEach(cause, json_get(details, "causes"))
    {
        err_cause(err, json_str_or(cause, "reason", ""), json_str(cause, "field"), "%s",
                  json_str_or(cause, "message", ""));
    }
}

static void take_details(const cJSON *details, struct err *err)
{
    if (details == NULL)
        return;
    take_causes(details, err);
    err_details(err, json_str(details, "group"), json_str(details, "kind"),
                json_str(details, "name"), json_str(details, "uid"));
    int64_t retry_after_s = json_i64_or(details, "retryAfterSeconds", 0);
    if (retry_after_s > 0 && retry_after_s <= RETRY_AFTER_MAX_S)
        err->retry_after_s = (int)retry_after_s;
}

int kube_status_err(int http_status, const cJSON *status, struct err *err)
{
    int64_t code = json_i64_or(status, "code", 0);
    if (code < 400 || code > 599)
        code = http_status;
    enum err_code ours = err_from_status((int)code, json_str_or(status, "reason", ""));
    const char *message = json_str_or(status, "message", "");
    err_set(err, ours, "%s", message[0] != '\0' ? message : "the cluster gave no message");
    if (err == NULL)
        return -(int)ours;
    const char *token = json_str(status, "metadata.continue");
    if (token != NULL && token[0] != '\0')
        err->continue_token = xstrdup(token);
    take_details(json_get(status, "details"), err);
    return -(int)ours;
}

int kube_answer_err(int http_status, const char *path, const char *body, size_t n, struct err *err)
{
    static const struct json_opts lenient = {.flags =
                                                 JSON_REPLACE_BAD_UTF8 | JSON_KEEP_LAST_DUPLICATE};
    SCOPED(json_free_p) cJSON *tree = NULL;
    if (json_parse(body, n, &lenient, &tree, NULL) == 0 &&
        str_equal(json_str(tree, "kind"), "Status"))
        return kube_status_err(http_status, tree, err);
    return err_set(err, err_from_status(http_status, ""), "%.*s: the cluster answered %d",
                   (int)strcspn(path, "?"), path, http_status);
}

/* Seconds from the header, for answers whose Status has none. */
static void take_retry_after(const struct pairs *headers, struct err *err)
{
    const char *text = pairs_get_ci(headers, "Retry-After");
    int64_t s;
    if (err != NULL && err->retry_after_s == 0 && text != NULL && str_to_i64(text, &s) == 0 &&
        s > 0 && s <= RETRY_AFTER_MAX_S)
        err->retry_after_s = (int)s;
}

static int take_answer(const char *path, const struct fetch_response *res, cJSON **ret,
                       struct err *err)
{
    if (res->status < 200 || res->status > 299) {
        int code = kube_answer_err(res->status, path, buf_cstr(&res->body), res->body.len, err);
        take_retry_after(&res->headers, err);
        return code;
    }
    cJSON *tree = NULL;
    if (ret == NULL)
        return 0;
    if (json_parse(buf_cstr(&res->body), res->body.len, NULL, &tree, err) < 0)
        return err_set(err, ERR_UNKNOWN, "%.*s: the cluster's answer is no JSON",
                       (int)strcspn(path, "?"), path);
    *ret = tree;
    return 0;
}

/* ---- requests ---- */

static struct fetch_tls tls_of(const struct kube *k)
{
    return (struct fetch_tls){.ca_file = k->config.ca_file,
                              .cert_file = k->config.cert_file,
                              .key_file = k->config.key_file,
                              .insecure = k->config.insecure};
}

static void add_common_headers(struct kube *k, struct pairs *headers)
{
    pairs_add(headers, "Accept", "application/json");
    pairs_add(headers, "User-Agent", USER_AGENT);
    add_token(k, headers);
}

/* status 0 = no answer */
static void count_call(const struct kube *k, const char *method, int status, int64_t took_ms)
{
    char code[16] = "<error>";
    if (status > 0)
        snprintf(code, sizeof code, "%d", status);
    metric_add(&calls_metric, 1, (const char *const[]){code, k->host, method});
    metric_observe(&call_time, (double)took_ms / 1000, (const char *const[]){k->host, method});
}

char *kube_path(const struct kube_place *place)
{
    struct buf path = {0};
    buf_puts(&path, place->api);
    if (place->namespace_name) {
        buf_puts(&path, "/namespaces/");
        fetch_escape(place->namespace_name, &path);
    }
    buf_printf(&path, "/%s", place->resource);
    if (place->name) {
        buf_putc(&path, '/');
        fetch_escape(place->name, &path);
    }
    if (place->subresource)
        buf_printf(&path, "/%s", place->subresource);
    return buf_take(&path, NULL);
}

int kube_do(struct kube *k, const struct kube_call *call, cJSON **ret, struct err *err)
{
    assert(call->path[0] == '/');
    SCOPED(pairs_fini) struct pairs headers = {0};
    SCOPED(buf_fini) struct buf body = {0};
    SCOPED(fetch_response_fini) struct fetch_response res = {0};
    SCOPED_FREE char *url = xasprintf("%s%s", k->config.server, call->path);
    struct fetch_tls tls = tls_of(k);
    add_common_headers(k, &headers);
    if (call->body != NULL) {
        json_print(call->body, &body);
        pairs_add(&headers, "Content-Type",
                  call->content_type != NULL ? call->content_type : "application/json");
    }
    if (buf_failed(&body))
        return err_set(err, ERR_TOO_LARGE, "%s: the request is too large", call->path);
    struct fetch_request req = {.method = call->method,
                                .url = url,
                                .headers = &headers,
                                .body = body.data,
                                .body_len = body.len,
                                .tls = &tls,
                                .timeout_ms =
                                    call->timeout_ms > 0 ? call->timeout_ms : TIMEOUT_DEFAULT_MS};
    int64_t from_ms = clock_monotonic_ms(&clock_system);
    int code = fetch_do(k->fetch, &req, &res, err);
    count_call(k, call->method, code < 0 ? 0 : res.status,
               clock_monotonic_ms(&clock_system) - from_ms);
    if (code < 0)
        return code;
    if (res.status == 401)
        kube_distrust_token(k);
    return take_answer(call->path, &res, ret, err);
}

struct fetch_stream *kube_open(struct kube *k, const char *path, int64_t timeout_ms,
                               int64_t idle_timeout_ms)
{
    SCOPED(pairs_fini) struct pairs headers = {0};
    SCOPED_FREE char *url = xasprintf("%s%s", k->config.server, path);
    struct fetch_tls tls = tls_of(k);
    add_common_headers(k, &headers);
    struct fetch_request req = {.url = url,
                                .headers = &headers,
                                .tls = &tls,
                                .timeout_ms = timeout_ms,
                                .idle_timeout_ms = idle_timeout_ms};
    return fetch_open(k->fetch, &req);
}
