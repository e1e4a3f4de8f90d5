/* What the contract test cannot ask of every store: the wrappers' own work, and what only the store
 * in memory has: faults on demand, a bounded history, links that break when told. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "apiserver/base/clock.h"
#include "storage/memstore.h"
#include "tests/lib/suite.h"

#define DEADLINE INT64_MAX

static struct store *store;

static void open_store(void)
{
    store = memstore_new();
}
static void close_store(void)
{
    store_free(store);
}

static int put(const char *key, const char *value, int64_t *ret_rev)
{
    struct store_op op = {.key = key, .value = value, .value_len = strlen(value)};
    struct store_txn txn = {.ops = &op, .n_ops = 1};
    SCOPED(store_txn_result_fini) struct store_txn_result result = {0};
    int r = store_txn(store, &txn, DEADLINE, &result, NULL);
    if (r == 0 && ret_rev != NULL)
        *ret_rev = result.rev;
    return r;
}
static int read_at(const char *key, int64_t rev)
{
    SCOPED(store_page_fini) struct store_page p = {0};
    return store_range(store, key, NULL, 0, rev, false, DEADLINE, &p, NULL);
}
static bool is_there(const char *key)
{
    struct store_kv kv = {0};
    bool is = store_get(store, key, DEADLINE, &kv, NULL, NULL) == 0;
    store_kv_fini(&kv);
    return is;
}

/* ---- wrappers ---- */

static const struct {
    const char *prefix, *end;
} ends[] = {{"", ""},     {"a", "b"},         {"/x/", "/x0"},  {"a\xff", "b"},
            {"\xff", ""}, {"a\x7f", "a\x80"}, {"\xff\xff", ""}};

START_TEST(test_prefix_end)
{
    SCOPED_FREE char *end = store_prefix_end(ends[_i].prefix);
    ck_assert_msg(strcmp(end, ends[_i].end) == 0, "row %d", _i);
}
END_TEST

START_TEST(test_fini_takes_nothing)
{
    store_kv_fini(NULL);
    store_page_fini(NULL);
    store_txn_result_fini(NULL);
    struct store_page p = {0};
    store_page_fini(&p);
    store_unwatch(NULL, NULL);
    store_free(NULL);
}
END_TEST

START_TEST(test_get_leaves_output_alone)
{
    struct store_kv kv = {.mod_rev = 7};
    int64_t rev = 0;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(store_get(store, "/a", DEADLINE, &kv, &rev, &err), -ERR_NOT_FOUND);
    ck_assert_str_eq(err_text(&err), "key \"/a\" not found");
    ck_assert_int_eq(kv.mod_rev, 7);
    ck_assert_int_eq(rev, 1); /* an empty store is at revision 1, as etcd's */
}
END_TEST

/* ---- faults ---- */

struct plan {
    const char *call;
    uint64_t n; /* 0 = each */
    enum memstore_fault fault;
    uint64_t n_seen;
};
static enum memstore_fault planned(void *ctx, const char *call, uint64_t n)
{
    struct plan *p = ctx;
    p->n_seen = n;
    return strcmp(call, p->call) == 0 && (p->n == 0 || p->n == n) ? p->fault : MEMSTORE_OK;
}

START_TEST(test_write_faults)
{
    const struct {
        enum memstore_fault fault;
        int result;
        bool is_done;
    } rows[] = {{MEMSTORE_OK, 0, true},
                {MEMSTORE_UNAVAILABLE, -ERR_UNAVAILABLE, false},
                {MEMSTORE_UNDETERMINED_DONE, -ERR_UNDETERMINED, true},
                {MEMSTORE_UNDETERMINED_LOST, -ERR_UNDETERMINED, false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char key[8];
        snprintf(key, sizeof key, "/%zu", i);
        struct plan plan = {.call = "txn", .fault = rows[i].fault};
        memstore_set_fault(store, planned, &plan);
        ck_assert_int_eq(put(key, "x", NULL), rows[i].result);
        memstore_set_fault(store, NULL, NULL);
        ck_assert_int_eq(is_there(key), rows[i].is_done);
    }
}
END_TEST

START_TEST(test_read_and_status_faults)
{
    struct plan plan = {.call = "range", .fault = MEMSTORE_UNAVAILABLE};
    int64_t bytes, rev;
    memstore_set_fault(store, planned, &plan);
    ck_assert_int_eq(store_revision(store, DEADLINE, &rev, NULL), -ERR_UNAVAILABLE);
    plan.fault = MEMSTORE_UNDETERMINED_LOST;
    ck_assert_int_eq(store_revision(store, DEADLINE, &rev, NULL), -ERR_SERVER_TIMEOUT);
    ck_assert_int_eq(store_status(store, DEADLINE, &bytes, NULL), 0);
    plan.call = "status";
    ck_assert_int_eq(store_status(store, DEADLINE, &bytes, NULL), -ERR_SERVER_TIMEOUT);
}
END_TEST

START_TEST(test_lease_faults)
{
    int64_t id = 0, ttl_s;
    struct plan plan = {.call = "lease", .fault = MEMSTORE_UNDETERMINED_LOST};
    memstore_set_fault(store, planned, &plan);
    ck_assert_int_eq(store_lease_grant(store, 60, DEADLINE, &id, NULL), -ERR_UNDETERMINED);
    memstore_set_fault(store, NULL, NULL);
    ck_assert_int_eq(store_lease_grant(store, 60, DEADLINE, &id, NULL), 0);
    memstore_set_fault(store, planned, &plan);
    ck_assert_int_eq(store_lease_keepalive(store, id, DEADLINE, &ttl_s, NULL), -ERR_SERVER_TIMEOUT);
    ck_assert_int_eq(store_lease_revoke(store, id, DEADLINE, NULL), -ERR_UNDETERMINED);
    plan.fault = MEMSTORE_UNDETERMINED_DONE;
    ck_assert_int_eq(store_lease_revoke(store, id, DEADLINE, NULL), -ERR_UNDETERMINED);
    ck_assert_int_eq(store_lease_revoke(store, id, DEADLINE, NULL), -ERR_NOT_FOUND);
}
END_TEST

START_TEST(test_faults_are_counted)
{
    struct plan plan = {.call = "txn", .n = 3, .fault = MEMSTORE_UNAVAILABLE};
    memstore_set_fault(store, planned, &plan);
    ck_assert_int_eq(put("/a", "x", NULL), 0);
    ck_assert(is_there("/a"));
    ck_assert_int_eq(put("/a", "x", NULL), -ERR_UNAVAILABLE);
    ck_assert_int_eq(put("/a", "x", NULL), 0);
    ck_assert_uint_eq(plan.n_seen, 4);
}
END_TEST

/* ---- history ---- */

START_TEST(test_history_is_bounded)
{
    int64_t first = 0, last = 0;
    memstore_set_history(store, 10);
    ck_assert_int_eq(put("/kept", "x", &first), 0);
    for (int i = 0; i < 500; i++)
        ck_assert_int_eq(put("/a", "y", &last), 0);
    ck_assert_int_eq(read_at("/a", last), 0);
    ck_assert_int_eq(read_at("/a", last - 10), 0);
    ck_assert_int_eq(read_at("/a", last - 11), -ERR_EXPIRED);
    ck_assert_int_eq(read_at("/a", first), -ERR_EXPIRED);
    ck_assert(is_there("/kept") && is_there("/a"));
    int64_t bytes = 0;
    ck_assert_int_eq(store_status(store, DEADLINE, &bytes, NULL), 0);
    ck_assert_int_le(bytes, 11);
}
END_TEST

static void ignore_events(void *ctx, struct store_event *events, size_t n, int64_t rev)
{
    (void)ctx, (void)events, (void)n, (void)rev;
}

struct links {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int n_up, n_down, n_lost;
    int64_t rev;
};
static void on_events(void *ctx, struct store_event *events, size_t n, int64_t rev)
{
    struct links *l = ctx;
    (void)events, (void)n;
    pthread_mutex_lock(&l->lock);
    l->rev = rev;
    pthread_cond_signal(&l->changed);
    pthread_mutex_unlock(&l->lock);
}
static void on_link(void *ctx, bool is_up)
{
    struct links *l = ctx;
    pthread_mutex_lock(&l->lock);
    l->n_up += is_up;
    l->n_down += !is_up;
    pthread_cond_signal(&l->changed);
    pthread_mutex_unlock(&l->lock);
}
static void on_lost(void *ctx, const struct err *err, int64_t compact_rev)
{
    struct links *l = ctx;
    (void)compact_rev;
    pthread_mutex_lock(&l->lock);
    l->n_lost += err->code == ERR_EXPIRED;
    pthread_cond_signal(&l->changed);
    pthread_mutex_unlock(&l->lock);
}
static const struct store_watch_ops link_ops = {
    .on_events = on_events, .on_link = on_link, .on_lost = on_lost};

/* Waits until *what is n; both guarded by the lock. */
#define WAIT_FOR(l, condition)                                                                     \
    do {                                                                                           \
        pthread_mutex_lock(&(l)->lock);                                                            \
        while (!(condition))                                                                       \
            pthread_cond_wait(&(l)->changed, &(l)->lock);                                          \
        pthread_mutex_unlock(&(l)->lock);                                                          \
    } while (0)

START_TEST(test_watch_down)
{
    struct links l = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    int64_t rev = 0;
    struct store_watch *w = store_watch(store, "", 0, &link_ops, &l);
    WAIT_FOR(&l, l.rev == 1);
    memstore_set_watch_down(store, true);
    WAIT_FOR(&l, l.n_down == 1);
    ck_assert_int_eq(put("/a", "x", &rev), 0);
    ck_assert_int_eq(l.rev, 1);
    memstore_set_watch_down(store, false);
    WAIT_FOR(&l, l.rev == rev && l.n_up == 1);
    /* what is compacted while the link is down is lost */
    memstore_set_watch_down(store, true);
    WAIT_FOR(&l, l.n_down == 2);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(put("/a", "x", &rev), 0);
    ck_assert_int_eq(store_compact(store, rev, DEADLINE, NULL), 0);
    memstore_set_watch_down(store, false);
    WAIT_FOR(&l, l.n_lost == 1);
    store_unwatch(store, w);
}
END_TEST

START_TEST(test_watch_without_link_callback)
{
    static const struct store_watch_ops ops = {.on_events = ignore_events};
    struct store_watch *w = store_watch(store, "", 0, &ops, NULL);
    memstore_set_watch_down(store, true);
    memstore_set_watch_down(store, false);
    store_unwatch(store, w);
}
END_TEST

/* Random writes and compactions against a list of what was written. */
START_TEST(test_history_against_a_model)
{
    enum { N = 400, KEYS = 5 };
    static char model[N + 2][KEYS]; /* value at each revision, 0 = absent */
    int64_t compacted = 0, rev = 1;
    unsigned seed = 1;
    while (rev < N) {
        int k = rand_r(&seed) % KEYS;
        char key[] = "/0", value[] = "a";
        key[1] = (char)('0' + k);
        value[0] = (char)('a' + rand_r(&seed) % 26);
        bool is_delete = rand_r(&seed) % 3 == 0 && model[rev][k] != 0;
        struct store_op op = {.key = key, .value = is_delete ? NULL : value, .value_len = 1};
        struct store_txn txn = {.ops = &op, .n_ops = 1};
        SCOPED(store_txn_result_fini) struct store_txn_result result = {0};
        ck_assert_int_eq(store_txn(store, &txn, DEADLINE, &result, NULL), 0);
        memcpy(model[rev + 1], model[rev], KEYS);
        model[++rev][k] = is_delete ? '\0' : value[0];
        ck_assert_int_eq(result.rev, rev);
        if (rand_r(&seed) % 20 == 0 && compacted < rev) {
            compacted += 1 + rand_r(&seed) % (rev - compacted);
            ck_assert_int_eq(store_compact(store, compacted, DEADLINE, NULL), 0);
        }
        int64_t at = compacted + rand_r(&seed) % (rev - compacted + 1);
        if (at == 0)
            continue;
        SCOPED(store_page_fini) struct store_page p = {0};
        ck_assert_int_eq(store_range(store, "", "", 0, at, false, DEADLINE, &p, NULL), 0);
        size_t n = 0;
        for (int i = 0; i < KEYS; i++)
            if (model[at][i] != 0)
                ck_assert_int_eq(p.kvs[n++].value[0], model[at][i]);
        ck_assert_uint_eq(p.n, n);
    }
}
END_TEST

SUITE(store)
{
    LOOP("prefix end", test_prefix_end, 0, ARRAY_LEN(ends));
    const TTest *const tests[] = {test_fini_takes_nothing,
                                  test_get_leaves_output_alone,
                                  test_write_faults,
                                  test_read_and_status_faults,
                                  test_lease_faults,
                                  test_faults_are_counted,
                                  test_history_is_bounded,
                                  test_watch_down,
                                  test_watch_without_link_callback,
                                  test_history_against_a_model};
    TCase *tc = tcase_create("memory");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, open_store, close_store);
    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        tcase_add_test(tc, tests[i]);
    suite_add_tcase(s, tc);
}
