/* What the cache costs: 10,000 objects of 3 KB over the store in memory. Prints the time to load
 * them, memory per byte of JSON, and how many reads, writes and watch events a second there are.
 * Usage: registry_bench [objects] [bytes]. */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <time.h>

#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/registry/registry.h"
#include "openapi/kinds.h"
#include "storage/memstore.h"

static const struct admit_env env = {.clock = &clock_system, .randomness = &rand_system};

static int64_t now_ms(void)
{
    return clock_monotonic_ms(&clock_system);
}

static int64_t deadline(void)
{
    return now_ms() + 60000;
}

static void fail(const char *what, const struct err *err)
{
    fprintf(stderr, "%s: %s\n", what, err_text(err));
    exit(1);
}

/* Bytes in use on the heap, large blocks included. */
static double heap_mb(void)
{
    struct mallinfo2 m = mallinfo2();
    return (double)(m.uordblks + m.hblkhd) / 1e6;
}

static cJSON *sandbox(int64_t i, size_t bytes)
{
    SCOPED_FREE char *padding = xmalloc(bytes + 1);
    memset(padding, 'x', bytes);
    padding[bytes] = '\0';
    SCOPED_FREE char *json =
        xasprintf("{\"apiVersion\":\"agents.x-k8s.io/"
                  "v1beta1\",\"kind\":\"Sandbox\",\"metadata\":{\"name\":\"sandbox-%06" PRId64 "\","
                  "\"labels\":{\"app\":\"bench\",\"shard\":\"%" PRId64
                  "\"},\"annotations\":{\"padding\":\"%s\"}},\"spec\":{"
                  "\"podTemplate\":{\"spec\":{\"containers\":[{\"name\":\"main\",\"image\":"
                  "\"example.org/app:1\",\"env\":[{\"name\":"
                  "\"A\",\"value\":\"1\"}],\"resources\":{\"requests\":{\"cpu\":\"100m\","
                  "\"memory\":\"128Mi\"}}}]}}}}",
                  i, i % 100, padding);
    cJSON *tree = NULL;
    if (json_parse_str(json, &tree, NULL) < 0)
        abort();
    return tree;
}

static struct registry *started(struct store *store)
{
    const struct registry_config config = {.store = store, .kinds = kinds_all, .admit = &env};
    struct registry *r = registry_new(&config);
    registry_start(r);
    while (!registry_is_synced(r)) {
        const struct timespec a_moment = {.tv_nsec = 200000};
        nanosleep(&a_moment, NULL);
    }
    return r;
}

static void rate(const char *what, int64_t n, int64_t from_ms)
{
    int64_t took_ms = now_ms() - from_ms;
    printf("%-22s %8" PRId64 " in %5" PRId64 " ms, %9.0f/s\n", what, n, took_ms,
           1000.0 * (double)n / (double)(took_ms + 1));
}

static void bench_creates(struct registry *r, int64_t n, size_t bytes)
{
    int64_t from_ms = now_ms();
    for (int64_t i = 0; i < n; i++) {
        struct write_options opts = {.deadline_ms = deadline()};
        struct object *o = NULL;
        SCOPED(err_fini) struct err err = {0};
        if (registry_create(r, &kind_sandbox, "bench", sandbox(i, bytes), &opts, &o, &err) < 0)
            fail("create", &err);
        object_unref(o);
    }
    rate("creates", n, from_ms);
}

static void bench_gets(struct registry *r, int64_t n, enum read_match match, const char *what)
{
    int64_t from_ms = now_ms();
    for (int64_t i = 0; i < 100000; i++) {
        SCOPED_FREE char *name = xasprintf("sandbox-%06" PRId64, i % n);
        SCOPED(err_fini) struct err err = {0};
        struct object *o = NULL;
        if (registry_get(r, &kind_sandbox, "bench", name, (struct read_version){match, 0},
                         deadline(), &o, &err) < 0)
            fail("get", &err);
        object_unref(o);
    }
    rate(what, 100000, from_ms);
}

static void bench_lists(struct registry *r, const char *selector_text, const char *what)
{
    struct selector *selector = NULL;
    selector_parse(selector_text, NULL, &selector, NULL);
    int64_t from_ms = now_ms(), n = 0;
    for (int i = 0; i < 50; i++) {
        struct list_request req = {
            .kind = &kind_sandbox, .selector = selector, .deadline_ms = deadline()};
        SCOPED(list_result_fini) struct list_result l = {0};
        SCOPED(err_fini) struct err err = {0};
        if (registry_list(r, &req, &l, &err) < 0)
            fail("list", &err);
        n += (int64_t)l.n;
    }
    rate(what, n, from_ms);
    selector_free(selector);
}

static void bench_watches(struct registry *r, int64_t n)
{
    enum { WATCHES = 1000 };
    static struct watch *watches[WATCHES];
    double before = heap_mb();
    for (int i = 0; i < WATCHES; i++) {
        const struct watch_request req = {.kind = &kind_sandbox,
                                          .version = {READ_AT_LEAST, registry_revision(r)},
                                          .deadline_ms = deadline()};
        registry_watch(r, &req, NULL, NULL, &watches[i], NULL);
    }
    printf("%-22s %8.2f KB each\n", "idle watches", 1000 * (heap_mb() - before) / WATCHES);
    bench_creates(r, n, 100);
    int64_t from_ms = now_ms(), events = 0;
    for (int i = 0; i < WATCHES; i++) {
        struct watch_event e;
        for (; watch_next(watches[i], &e) > 0; events++)
            watch_event_fini(&e);
    }
    rate("watch events", events, from_ms);
    for (int i = 0; i < WATCHES; i++)
        watch_close(watches[i]);
}

static int64_t stored_bytes(struct registry *r)
{
    struct list_request req = {.kind = &kind_sandbox, .deadline_ms = deadline()};
    SCOPED(list_result_fini) struct list_result l = {0};
    int64_t bytes = 0;
    registry_list(r, &req, &l, NULL);
    for (size_t i = 0; i < l.n; i++)
        bytes += (int64_t)l.objects[i]->json_len;
    return bytes;
}

int main(int argc, char **argv)
{
    int64_t n = 10000, bytes = 3000;
    if ((argc > 1 && str_to_i64(argv[1], &n) < 0) ||
        (argc > 2 && str_to_i64(argv[2], &bytes) < 0) || n < 1 || bytes < 600) {
        fprintf(stderr, "usage: registry_bench [objects >= 1] [bytes >= 600]\n");
        return 2;
    }
    log_set_level(LOG_WARN);
    struct store *store = memstore_new();
    struct registry *r = started(store);
    bench_creates(r, n, (size_t)bytes - 550);
    registry_stop(r);
    registry_free(r);
    malloc_trim(0);

    double before = heap_mb();
    int64_t from_ms = now_ms();
    r = started(store);
    rate("objects loaded", n, from_ms);
    double used = heap_mb() - before, json = (double)stored_bytes(r) / 1e6;
    printf("%-22s %8.1f MB for %.1f MB of JSON, %.2f times\n", "memory", used, json, used / json);
    bench_gets(r, n, READ_ANY, "gets, any version");
    bench_gets(r, n, READ_LATEST, "gets, latest");
    bench_lists(r, NULL, "listed objects");
    bench_lists(r, "shard=7", "listed of 1 in 100");
    registry_stop(r);
    registry_free(r);

    struct store *other = memstore_new();
    r = started(other);
    bench_watches(r, 1000);
    registry_stop(r);
    registry_free(r);
    store_free(other);
    store_free(store);
    return 0;
}
