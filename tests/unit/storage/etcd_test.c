/* The store over a real etcd that is killed, stopped, full, or asks for certificates: what callers
 * are told, and how watches come back. Each test starts an etcd of its own; the newest one at hand,
 * else Debian's. */
#include "storage/etcd.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "apiserver/base/clock.h"
#include "tests/lib/etcd_server.h"
#include "tests/lib/suite.h"

#define WAIT_MS 120000

static char *program; /* NULL = there is no etcd */
static struct etcd_server server;
static struct fetch *fetch;
static struct store *store;

static int64_t now_ms(void)
{
    return clock_monotonic_ms(&clock_system);
}
static int64_t in(int64_t ms)
{
    return now_ms() + ms;
}
static void open_store(const struct etcd_config *config)
{
    const char *endpoints[] = {server.endpoint, NULL};
    struct etcd_config c = {0};
    if (config != NULL)
        c = *config;
    if (c.endpoints == NULL)
        c.endpoints = endpoints;
    fetch = fetch_new();
    store = etcd_new(fetch, &c);
}
static void start_with(const struct etcd_config *config)
{
    ck_assert(etcd_server_start(&server, program));
    open_store(config);
}
static void start(void)
{
    start_with(NULL);
}
static void finish(void)
{
    store_free(store);
    fetch_free(fetch);
    etcd_server_stop(&server);
}

static int put_n(const char *key, const char *value, size_t n, int64_t deadline_ms,
                 int64_t *ret_rev)
{
    struct store_op op = {.key = key, .value = value, .value_len = n};
    struct store_txn txn = {.ops = &op, .n_ops = 1};
    SCOPED(store_txn_result_fini) struct store_txn_result result = {0};
    int r = store_txn(store, &txn, deadline_ms, &result, NULL);
    if (r == 0 && ret_rev != NULL)
        *ret_rev = result.rev;
    return r;
}
static int put(const char *key, int64_t deadline_ms, int64_t *ret_rev)
{
    return put_n(key, "x", 1, deadline_ms, ret_rev);
}
static int read_key(const char *key, int64_t deadline_ms)
{
    SCOPED(store_kv_fini) struct store_kv kv = {0};
    return store_get(store, key, deadline_ms, &kv, NULL, NULL);
}

/* ---- outcomes ---- */

START_TEST(test_nobody_there)
{
    int64_t bytes, id;
    start();
    ck_assert_int_eq(put("/a", in(WAIT_MS), NULL), 0);
    etcd_server_kill(&server);
    /* the first call may find the old connection, on which something may have been sent */
    int r = put("/b", in(WAIT_MS), NULL);
    ck_assert(r == -ERR_UNAVAILABLE || r == -ERR_UNDETERMINED);
    ck_assert_int_eq(put("/b", in(WAIT_MS), NULL), -ERR_UNAVAILABLE);
    ck_assert_int_eq(read_key("/a", in(WAIT_MS)), -ERR_UNAVAILABLE); /* never "not found" */
    ck_assert_int_eq(store_status(store, in(WAIT_MS), &bytes, NULL), -ERR_UNAVAILABLE);
    ck_assert_int_eq(store_lease_grant(store, 60, in(WAIT_MS), &id, NULL), -ERR_UNAVAILABLE);
    ck_assert_int_eq(store_compact(store, 2, in(WAIT_MS), NULL), -ERR_UNAVAILABLE);
    ck_assert(etcd_server_restart(&server));
    ck_assert_int_eq(read_key("/a", in(WAIT_MS)), 0);
    ck_assert_int_eq(put("/b", in(WAIT_MS), NULL), 0);
    finish();
}
END_TEST

START_TEST(test_read_after_restart_on_old_connection)
{
    start();
    ck_assert_int_eq(put("/a", in(WAIT_MS), NULL), 0);
    etcd_server_kill(&server);
    ck_assert(etcd_server_restart(&server));
    ck_assert_int_eq(read_key("/a", in(WAIT_MS)),
                     0); /* read again by itself when the connection is dead */
    finish();
}
END_TEST

START_TEST(test_no_answer_in_time)
{
    start();
    ck_assert_int_eq(put("/a", in(WAIT_MS), NULL), 0);
    etcd_server_pause(&server, true);
    int64_t before_ms = now_ms();
    ck_assert_int_eq(read_key("/a", in(300)), -ERR_SERVER_TIMEOUT);
    ck_assert_int_lt(now_ms() - before_ms, 2000);
    ck_assert_int_eq(put("/b", in(300), NULL), -ERR_UNDETERMINED);
    ck_assert_int_eq(read_key("/a", now_ms() - 1), -ERR_SERVER_TIMEOUT);
    ck_assert_int_eq(put("/c", now_ms() - 1, NULL), -ERR_UNAVAILABLE); /* not sent at all */
    etcd_server_pause(&server, false);
    int r = read_key("/b", in(WAIT_MS)); /* it was done or not, which is why nobody may guess */
    ck_assert(r == 0 || r == -ERR_NOT_FOUND);
    ck_assert_int_eq(read_key("/c", in(WAIT_MS)), -ERR_NOT_FOUND);
    finish();
}
END_TEST

START_TEST(test_second_endpoint)
{
    ck_assert(etcd_server_start(&server, program));
    const char *endpoints[] = {"http://127.0.0.1:9", "http://127.0.0.1:13", server.endpoint, NULL};
    open_store(&(struct etcd_config){.endpoints = endpoints});
    ck_assert_int_eq(put("/a", in(WAIT_MS), NULL),
                     0); /* nothing was sent to the others: no doubt about the write */
    ck_assert_int_eq(read_key("/a", in(WAIT_MS)), 0);
    finish();
}
END_TEST

START_TEST(test_out_of_space) /* IL-117, IL-149 */
{
    SCOPED_FREE char *value = xcalloc(1, 1 << 20);
    int64_t bytes = 0;
    server.args[0] = "--quota-backend-bytes=8000000";
    start();
    int r = 0;
    for (int i = 0; i < 30 && r == 0; i++)
        r = put_n("/a", value, 1 << 20, in(WAIT_MS), NULL);
    ck_assert_int_eq(r, -ERR_TOO_MANY);
    ck_assert_int_eq(put("/b", in(WAIT_MS), NULL), -ERR_TOO_MANY);
    ck_assert_int_eq(read_key("/a", in(WAIT_MS)), 0); /* reads go on */
    ck_assert_int_eq(read_key("/b", in(WAIT_MS)), -ERR_NOT_FOUND);
    ck_assert_int_eq(store_status(store, in(WAIT_MS), &bytes, NULL), 0);
    ck_assert_int_gt(bytes, 4000000);
    finish();
}
END_TEST

/* ---- watches ---- */

struct seen {
    pthread_mutex_t lock;
    int64_t rev;
    unsigned n_events, n_down, n_up, n_lost;
};
static void on_events(void *ctx, struct store_event *events, size_t n, int64_t rev)
{
    struct seen *s = ctx;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < n; i++)
        ck_assert_int_gt(events[i].kv.mod_rev, s->rev);
    s->n_events += (unsigned)n;
    s->rev = rev;
    pthread_mutex_unlock(&s->lock);
}
static void on_lost(void *ctx, const struct err *err, int64_t compact_rev)
{
    struct seen *s = ctx;
    (void)err, (void)compact_rev;
    pthread_mutex_lock(&s->lock);
    s->n_lost++;
    pthread_mutex_unlock(&s->lock);
}
static void on_link(void *ctx, bool is_up)
{
    struct seen *s = ctx;
    pthread_mutex_lock(&s->lock);
    s->n_up += is_up;
    s->n_down += !is_up;
    pthread_mutex_unlock(&s->lock);
}
static const struct store_watch_ops ops = {
    .on_events = on_events, .on_lost = on_lost, .on_link = on_link};

static void wait_seen(struct seen *s, int64_t rev, unsigned n_down)
{
    struct timespec pause = {.tv_nsec = 5 * 1000000};
    for (int64_t until_ms = in(WAIT_MS);; nanosleep(&pause, NULL)) {
        pthread_mutex_lock(&s->lock);
        bool is_done = s->rev >= rev && s->n_down >= n_down;
        pthread_mutex_unlock(&s->lock);
        if (is_done)
            return;
        ck_assert_msg(now_ms() < until_ms, "watch at %" PRId64 " of %" PRId64, s->rev, rev);
    }
}

START_TEST(test_watch_survives_restarts)
{
    struct seen s = {.lock = PTHREAD_MUTEX_INITIALIZER};
    int64_t rev = 0;
    start();
    struct store_watch *w = store_watch(store, "/", 2, &ops, &s);
    for (unsigned i = 1; i <= 3; i++) {
        ck_assert_int_eq(put("/a", in(WAIT_MS), &rev), 0);
        wait_seen(&s, rev, i - 1);
        etcd_server_kill(&server);
        wait_seen(&s, rev, i);
        ck_assert(etcd_server_restart(&server));
        int r = put("/b", in(WAIT_MS), &rev);
        if (r == -ERR_UNDETERMINED || r == -ERR_UNAVAILABLE) /* on the old connection */
            ck_assert_int_eq(put("/b", in(WAIT_MS), &rev), 0);
        wait_seen(&s, rev, i);
    }
    store_unwatch(store, w);
    ck_assert_int_eq(s.n_events, rev - 1); /* each revision once */
    ck_assert(s.n_down == 3 && s.n_up == 3 && s.n_lost == 0);
    finish();
}
END_TEST

START_TEST(test_watch_without_etcd_at_first)
{
    struct seen s = {.lock = PTHREAD_MUTEX_INITIALIZER};
    int64_t rev = 0;
    start();
    etcd_server_kill(&server);
    struct store_watch *w = store_watch(store, "/", 2, &ops, &s);
    wait_seen(&s, 0, 1);
    ck_assert(etcd_server_restart(&server));
    ck_assert_int_eq(put("/a", in(WAIT_MS), &rev), 0);
    wait_seen(&s, rev, 1);
    int64_t before_ms = now_ms();
    store_unwatch(store, w);
    ck_assert_int_lt(now_ms() - before_ms, 1000);
    finish();
}
END_TEST

/* ---- amounts ---- */

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

START_TEST(test_ten_thousand_values)
{
    enum { N = 10000 };
    char value[3000], keys[10][32];
    int64_t rev = 0;
    start();
    memset(value, 'v', sizeof value);
    for (int i = 0; i < N; i += 10) {
        struct store_op put10[10];
        for (int j = 0; j < 10; j++) {
            snprintf(keys[j], sizeof keys[j], "/objects/%06d", i + j);
            put10[j] = (struct store_op){.key = keys[j], .value = value, .value_len = sizeof value};
        }
        struct store_txn txn = {.ops = put10, .n_ops = 10};
        SCOPED(store_txn_result_fini) struct store_txn_result result = {0};
        ck_assert_int_eq(store_txn(store, &txn, in(WAIT_MS), &result, NULL), 0);
        rev = result.rev;
    }
    double from_cpu_ms = cpu_ms();
    int64_t from_ms = now_ms();
    SCOPED_FREE char *next = xstrdup("/objects/");
    size_t n = 0;
    bool more = true;
    while (more) {
        SCOPED(store_page_fini) struct store_page p = {0};
        ck_assert_int_eq(
            store_range(store, next, "/objects0", 500, rev, false, in(WAIT_MS), &p, NULL), 0);
        n += p.n;
        more = p.more;
        free(next);
        next = xasprintf("%s\001", p.kvs[p.n - 1].key);
    }
    ck_assert_uint_eq(n, N);
    printf("# 10,000 values of 3 KB from etcd in pages of 500: %" PRId64
           " ms, %.0f ms of our CPU\n",
           now_ms() - from_ms, cpu_ms() - from_cpu_ms);
    from_cpu_ms = cpu_ms();
    from_ms = now_ms();
    struct seen s = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct store_watch *w = store_watch(store, "/", 2, &ops, &s);
    wait_seen(&s, rev, 0);
    store_unwatch(store, w);
    ck_assert_uint_eq(s.n_events, N);
    printf("# the same as events of a watch: %" PRId64 " ms, %.0f ms of our CPU\n",
           now_ms() - from_ms, cpu_ms() - from_cpu_ms);
    finish();
}
END_TEST

/* A page that is more than an answer may be comes in smaller ones. */
START_TEST(test_page_of_large_values)
{
    enum { N = 60, SIZE = 1 << 20 };
    SCOPED_FREE char *value = xcalloc(1, SIZE);
    /* Such answers may take a loaded machine longer than a call usually may. */
    start_with(&(struct etcd_config){.call_timeout_ms = WAIT_MS});
    for (int i = 0; i < N; i++) {
        char key[32];
        snprintf(key, sizeof key, "/large/%03d", i);
        ck_assert_int_eq(put_n(key, value, SIZE, in(WAIT_MS), NULL), 0);
    }
    SCOPED(store_page_fini) struct store_page part = {0};
    ck_assert_int_eq(
        store_range(store, "/large/", "/large0", 500, 0, false, in(WAIT_MS), &part, NULL), 0);
    ck_assert(part.n > 0 && part.n < N && part.more && part.count == N);
    SCOPED(store_page_fini) struct store_page all = {0};
    ck_assert_int_eq(store_range(store, "/large/", "/large0", 0, 0, false, in(WAIT_MS), &all, NULL),
                     0);
    ck_assert(all.n == N && !all.more);
    finish();
}
END_TEST

/* ---- TLS ---- */

static bool make_certificates(const char *dir)
{
    static const char script[] =
        "cd '%s' && exec >/dev/null 2>&1 && key='-newkey ec -pkeyopt ec_paramgen_curve:P-256 "
        "-nodes' && "
        "openssl req -x509 $key -keyout ca.key -out ca.crt -days 2 -subj /CN=test-ca && "
        "for n in server client; do openssl req $key -keyout $n.key -out $n.csr -subj /CN=$n && "
        "printf 'subjectAltName=IP:127.0.0.1\\nextendedKeyUsage=serverAuth,clientAuth\\n' >$n.ext "
        "&& "
        "openssl x509 -req -in $n.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile "
        "$n.ext -out $n.crt || "
        "exit 1; done";
    SCOPED_FREE char *command = xasprintf(script, dir);
    return system(command) == 0;
}

START_TEST(test_tls)
{
    char dir[] = "/tmp/etcd-tls-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    if (!make_certificates(dir)) {
        printf("# skip: no openssl program\n");
        return;
    }
    SCOPED_FREE char *ca = xasprintf("%s/ca.crt", dir);
    SCOPED_FREE char *cert = xasprintf("%s/client.crt", dir);
    SCOPED_FREE char *key = xasprintf("%s/client.key", dir);
    SCOPED_FREE char *arg_cert = xasprintf("--cert-file=%s/server.crt", dir);
    SCOPED_FREE char *arg_key = xasprintf("--key-file=%s/server.key", dir);
    SCOPED_FREE char *arg_ca = xasprintf("--trusted-ca-file=%s", ca);
    server.scheme = "https";
    server.args[0] = arg_cert;
    server.args[1] = arg_key;
    server.args[2] = arg_ca;
    server.args[3] = "--client-cert-auth";
    ck_assert(etcd_server_start(&server, program));
    open_store(&(struct etcd_config){.ca_file = ca}); /* no certificate: refused */
    ck_assert_int_lt(put("/a", in(5000), NULL), 0);
    store_free(store);
    fetch_free(fetch);
    open_store(&(struct etcd_config){.ca_file = ca, .cert_file = cert, .key_file = key});
    struct seen s = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct store_watch *w = store_watch(store, "/", 2, &ops, &s);
    int64_t rev = 0;
    for (int i = 0; i < 20; i++)
        ck_assert_int_eq(put("/a", in(WAIT_MS), &rev), 0);
    ck_assert_int_eq(read_key("/a", in(WAIT_MS)), 0);
    wait_seen(&s, rev, 0);
    store_unwatch(store, w);
    ck_assert_uint_eq(s.n_events, 20);
    finish();
    SCOPED_FREE char *remove_dir = xasprintf("rm -r '%s'", dir);
    ck_assert_int_eq(system(remove_dir), 0);
}
END_TEST

SUITE(etcd)
{
    program = etcd_server_newest();
    if (program == NULL)
        program = etcd_server_debian();
    if (program == NULL)
        return;
    TESTS("outcomes", test_nobody_there, test_read_after_restart_on_old_connection,
          test_no_answer_in_time, test_second_endpoint, test_out_of_space);
    TESTS("watches", test_watch_survives_restarts, test_watch_without_etcd_at_first);
    TESTS("amounts", test_ten_thousand_values, test_page_of_large_values);
    TESTS("tls", test_tls);
}
