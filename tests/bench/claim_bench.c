/* How long a claim takes from its POST to the answer that says which Sandbox it has:
 *
 *   claim_bench -u URL [-c CA -e CERT -k KEY] [-N NAMESPACE] [-p POOL] [-n CLAIMS] [-t THREADS]
 *
 * The pool must have that many members that are ready. Prints how many claims came bound and ready,
 * and percentiles of the time of a POST. Exit code 1 when a POST failed. */
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "apiserver/base/fetch.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"

static struct {
    const char *url, *namespace_name, *pool;
    int64_t claims, threads;
} options = {.namespace_name = "default", .pool = "p", .claims = 500, .threads = 16};
static struct fetch_tls tls;
static struct fetch *fetch;
static double *times_ms;
static _Atomic int64_t next, bound, ready, failed;

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static bool is_ready(const cJSON *claim)
{
    const cJSON *c;
    cJSON_ArrayForEach(c, json_at(claim, "status.conditions"))
    {
        if (str_equal(json_str(c, "type"), "Ready"))
            return str_equal(json_str(c, "status"), "True");
    }
    return false;
}

static void note(int rc, const struct fetch_response *res)
{
    SCOPED(json_free_p) cJSON *claim = NULL;
    if (rc < 0 || res->status != 201) {
        if (atomic_fetch_add(&failed, 1) == 0)
            fprintf(stderr, "POST failed: %d %.300s\n", rc < 0 ? rc : res->status,
                    buf_cstr(&res->body));
        return;
    }
    json_parse(buf_cstr(&res->body), res->body.len, NULL, &claim, NULL);
    if (json_str(claim, "status.sandbox.name"))
        atomic_fetch_add(&bound, 1);
    if (is_ready(claim))
        atomic_fetch_add(&ready, 1);
}

static void *post_some(void *arg)
{
    const struct fetch_tls *with = arg;
    SCOPED_FREE char *url =
        xasprintf("%s/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/%s/sandboxclaims",
                  options.url, options.namespace_name);
    SCOPED(pairs_fini) struct pairs headers = {0};
    pairs_add(&headers, "Content-Type", "application/json");
    for (int64_t i; (i = atomic_fetch_add(&next, 1)) < options.claims;) {
        SCOPED_FREE char *body =
            xasprintf("{\"apiVersion\":\"extensions.agents.x-k8s.io/v1beta1\",\"kind\":"
                      "\"SandboxClaim\",\"metadata\":{\"generateName\":\"bench-\"},\"spec\":{"
                      "\"warmPoolRef\":{\"name\":\"%s\"}}}",
                      options.pool);
        SCOPED(fetch_response_fini) struct fetch_response res = {0};
        struct fetch_request req = {.method = "POST",
                                    .url = url,
                                    .headers = &headers,
                                    .body = body,
                                    .body_len = strlen(body),
                                    .tls = with};
        double start = now_ms();
        int rc = fetch_do(fetch, &req, &res, NULL);
        times_ms[i] = now_ms() - start;
        note(rc, &res);
    }
    return NULL;
}

static int by_size(const void *a, const void *b)
{
    double x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static double percentile(int64_t percent)
{
    return times_ms[(options.claims - 1) * percent / 100];
}

static bool parse(int argc, char **argv)
{
    for (int c; (c = getopt(argc, argv, "u:c:e:k:N:p:n:t:")) != -1;) {
        switch (c) {
        case 'u':
            options.url = optarg;
            break;
        case 'c':
            tls.ca_file = optarg;
            break;
        case 'e':
            tls.cert_file = optarg;
            break;
        case 'k':
            tls.key_file = optarg;
            break;
        case 'N':
            options.namespace_name = optarg;
            break;
        case 'p':
            options.pool = optarg;
            break;
        case 'n':
            if (str_to_i64(optarg, &options.claims) < 0)
                return false;
            break;
        case 't':
            if (str_to_i64(optarg, &options.threads) < 0)
                return false;
            break;
        default:
            return false;
        }
    }
    return options.url && options.claims > 0 && options.threads > 0;
}

int main(int argc, char **argv)
{
    if (!parse(argc, argv)) {
        fprintf(stderr, "usage: claim_bench -u URL [-c CA -e CERT -k KEY] [-N NAMESPACE] [-p POOL] "
                        "[-n CLAIMS] [-t THREADS]\n");
        return 2;
    }
    fetch = fetch_new();
    times_ms = xcalloc((size_t)options.claims, sizeof *times_ms);
    pthread_t *threads = xcalloc((size_t)options.threads, sizeof *threads);
    double start = now_ms();
    for (int64_t i = 0; i < options.threads; i++)
        pthread_create(&threads[i], NULL, post_some, &tls);
    for (int64_t i = 0; i < options.threads; i++)
        pthread_join(threads[i], NULL);
    double all_ms = now_ms() - start;
    qsort(times_ms, (size_t)options.claims, sizeof *times_ms, by_size);
    printf("claims=%lld bound=%lld ready=%lld failed=%lld p50_ms=%.2f p90_ms=%.2f p99_ms=%.2f "
           "max_ms=%.2f per_s=%.0f\n",
           (long long)options.claims, (long long)bound, (long long)ready, (long long)failed,
           percentile(50), percentile(90), percentile(99), percentile(100),
           (double)options.claims / all_ms * 1e3);
    free(threads);
    free(times_ms);
    fetch_free(fetch);
    return failed > 0;
}
