/* Many clients that want a sandbox at the same moment: -n claims on the pool -P by -t threads, each
 * over connections of its own to any of the servers -U, while servers die. A claimer that does not
 * know what became of its request, or is told to come back, asks again with the same name, as a
 * careful client does; it gives up once nobody was answered for -d seconds. Exit code 0 = every
 * claim is stored and no answer was wrong. */
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/fetch.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/rand.h"
#include "apiserver/base/thread.h"

#define CLAIMS "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxclaims"
#define STACK_BYTES ((size_t)256 << 10)
#define REPORTS_MAX 20

static struct {
    char *urls[8];
    unsigned n_urls;
    const char *prefix, *pool;
    int64_t count, threads, seconds;
    bool is_dry;
} options = {.prefix = "claim", .pool = "pool", .count = 1, .threads = 1, .seconds = 60};

/* How it went; each answer is counted once. */
static struct {
    _Atomic int64_t next, bound, unbound, found, unknown, refused, conflicts, wrong;
} counts;
static struct fetch *fetch;
static struct fetch_tls tls;
static _Atomic int64_t until_ms; /* put off by each answer */

static char *claim_text(const char *name)
{
    return xasprintf("{\"apiVersion\":\"extensions.agents.x-k8s.io/v1beta1\",\"kind\":"
                     "\"SandboxClaim\",\"metadata\":{\"name\":\"%s\"},\"spec\":{\"warmPoolRef\":{"
                     "\"name\":\"%s\"}}}",
                     name, options.pool);
}

static int post(const char *text, struct fetch_response *ret)
{
    const char *url = options.urls[rand_below(&rand_system, options.n_urls)];
    SCOPED_FREE char *full = xasprintf("%s" CLAIMS "%s", url, options.is_dry ? "?dryRun=All" : "");
    SCOPED(pairs_fini) struct pairs headers = {0};
    pairs_add(&headers, "Content-Type", "application/json");
    int rc = fetch_do(fetch,
                      &(struct fetch_request){.method = "POST",
                                              .url = full,
                                              .headers = &headers,
                                              .body = text,
                                              .body_len = strlen(text),
                                              .tls = &tls,
                                              .timeout_ms = 30000},
                      ret, NULL);
    return rc < 0 ? rc : ret->status;
}

static void wrong(const char *name, int status, const struct fetch_response *res)
{
    if (atomic_fetch_add(&counts.wrong, 1) < REPORTS_MAX)
        printf("%s: %d %.300s\n", name, status, buf_cstr(&res->body));
}

static cJSON *parsed(const struct fetch_response *res)
{
    cJSON *tree = NULL;
    json_parse(buf_cstr(&res->body), res->body.len, NULL, &tree, NULL);
    return tree;
}

enum verdict { DONE, AGAIN, AGAIN_UNKNOWN };
static enum verdict judge(const char *name, int status, const struct fetch_response *res,
                          bool was_unknown)
{
    if (status == 429 || status == -ERR_UNAVAILABLE) {
        counts.refused++;
        return AGAIN;
    }
    if (status < 0 || status >= 500) {
        counts.unknown++;
        return AGAIN_UNKNOWN;
    }
    SCOPED(json_free_p) cJSON *tree = parsed(res);
    if (status == 201 && json_str(tree, "status.sandbox.name"))
        counts.bound++;
    else if (status == 201)
        counts.unbound++;
    else if (status == 409 && str_equal(json_str(tree, "reason"), "AlreadyExists") && was_unknown)
        counts.found++; /* the one before had arrived */
    else
        wrong(name, status, res);
    counts.conflicts += status == 409 && str_equal(json_str(tree, "reason"), "Conflict");
    return DONE;
}

static void put_off(void)
{
    until_ms = clock_monotonic_ms(&clock_system) + options.seconds * 1000;
}

static void *claimer(void *arg)
{
    (void)arg;
    for (int64_t i; (i = atomic_fetch_add(&counts.next, 1)) < options.count;) {
        SCOPED_FREE char *name = xasprintf("%s-%05lld", options.prefix, (long long)i);
        SCOPED_FREE char *text = claim_text(name);
        bool was_unknown = false;
        for (;;) {
            SCOPED(fetch_response_fini) struct fetch_response res = {0};
            int status = post(text, &res);
            enum verdict verdict = judge(name, status, &res, was_unknown);
            if (verdict == DONE) {
                put_off();
                break;
            }
            was_unknown = was_unknown || verdict == AGAIN_UNKNOWN;
            if (clock_monotonic_ms(&clock_system) > until_ms) {
                wrong(name, status, &res);
                break;
            }
            long ms = 20 + (long)rand_below(&rand_system, 200);
            nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
        }
    }
    return NULL;
}

static void run(void)
{
    pthread_t *threads = xcalloc((size_t)options.threads, sizeof *threads);
    int64_t began_ms = clock_monotonic_ms(&clock_system);
    put_off();
    for (int64_t i = 0; i < options.threads; i++) {
        if (!thread_try_start(&threads[i], "claimer", STACK_BYTES, claimer, NULL))
            exit(2);
    }
    for (int64_t i = 0; i < options.threads; i++)
        pthread_join(threads[i], NULL);
    free(threads);
    printf(
        "# %lld bound and %lld unbound in their POST, %lld found stored after an unknown outcome; "
        "%lld unknown, %lld told to come back, %lld conflicts, %lld wrong; %lld ms\n",
        (long long)counts.bound, (long long)counts.unbound, (long long)counts.found,
        (long long)counts.unknown, (long long)counts.refused, (long long)counts.conflicts,
        (long long)counts.wrong, (long long)(clock_monotonic_ms(&clock_system) - began_ms));
}

static void add_urls(char *list)
{
    for (char *url; (url = strsep(&list, ",")) && options.n_urls < ARRAY_LEN(options.urls);)
        options.urls[options.n_urls++] = url;
}

static void set_files(const char *folder)
{
    tls.ca_file = xasprintf("%s/serving-ca.crt", folder);
    tls.cert_file = xasprintf("%s/admin.crt", folder);
    tls.key_file = xasprintf("%s/admin.key", folder);
}

int main(int argc, char **argv)
{
    const char *files = NULL;
    bool is_fine = true;
    for (int c; (c = getopt(argc, argv, "U:c:n:t:p:P:d:D")) != -1;) {
        switch (c) {
        case 'U':
            add_urls(optarg);
            break;
        case 'c':
            files = optarg;
            break;
        case 'n':
            is_fine = is_fine && str_to_i64(optarg, &options.count) == 0;
            break;
        case 't':
            is_fine = is_fine && str_to_i64(optarg, &options.threads) == 0;
            break;
        case 'p':
            options.prefix = optarg;
            break;
        case 'P':
            options.pool = optarg;
            break;
        case 'd':
            is_fine = is_fine && str_to_i64(optarg, &options.seconds) == 0;
            break;
        case 'D':
            options.is_dry = true;
            break;
        default:
            is_fine = false;
        }
    }
    if (!is_fine || !options.n_urls || !files || options.threads < 1 || options.threads > 4000) {
        fprintf(stderr, "usage: claimers -U URL,... -c FOLDER -P POOL [-n COUNT] [-t THREADS] "
                        "[-p PREFIX] [-d SECONDS] [-D (dry run)]\n");
        return 2;
    }
    set_files(files);
    fetch = fetch_new();
    run();
    fetch_free(fetch);
    free((char *)(uintptr_t)tls.ca_file);
    free((char *)(uintptr_t)tls.cert_file);
    free((char *)(uintptr_t)tls.key_file);
    return counts.wrong ? 1 : 0;
}
