/* Leadership on every store. Times of take-over are printed as `# ` lines. */
#include "storage/lease.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "apiserver/base/clock.h"
#include "storage/etcd.h"
#include "storage/memstore.h"
#include "tests/lib/store_fixture.h"
#include "tests/lib/suite.h"

#define WAIT_MS 120000
#define TTL_S 2 /* the least that etcd grants */

static int64_t now_ms(void)
{
    return clock_monotonic_ms(&clock_system);
}
static void nap(void)
{
    struct timespec t = {.tv_nsec = 5 * 1000000};
    nanosleep(&t, NULL);
}

/* ---- a store whose link can be cut, so that one replica loses it and another does not ---- */

struct gate {
    struct store store;
    struct store *inner;
    bool is_down; /* atomic */
};
static struct store *through(struct store *s, struct err *err)
{
    struct gate *g = (struct gate *)(void *)s;
    if (!__atomic_load_n(&g->is_down, __ATOMIC_RELAXED))
        return g->inner;
    err_set(err, ERR_UNAVAILABLE, "cut");
    return NULL;
}
static int gate_range(struct store *s, const char *from, const char *end, int64_t limit,
                      int64_t rev, bool keys_only, int64_t deadline_ms, struct store_page *ret,
                      struct err *err)
{
    s = through(s, err);
    return s == NULL ? -ERR_UNAVAILABLE
                     : store_range(s, from, end, limit, rev, keys_only, deadline_ms, ret, err);
}
static int gate_txn(struct store *s, const struct store_txn *txn, int64_t deadline_ms,
                    struct store_txn_result *ret, struct err *err)
{
    s = through(s, err);
    return s == NULL ? -ERR_UNAVAILABLE : store_txn(s, txn, deadline_ms, ret, err);
}
static int gate_grant(struct store *s, int64_t ttl_s, int64_t deadline_ms, int64_t *ret,
                      struct err *err)
{
    s = through(s, err);
    return s == NULL ? -ERR_UNAVAILABLE : store_lease_grant(s, ttl_s, deadline_ms, ret, err);
}
static int gate_keepalive(struct store *s, int64_t id, int64_t deadline_ms, int64_t *ret,
                          struct err *err)
{
    s = through(s, err);
    return s == NULL ? -ERR_UNAVAILABLE : store_lease_keepalive(s, id, deadline_ms, ret, err);
}
static int gate_revoke(struct store *s, int64_t id, int64_t deadline_ms, struct err *err)
{
    s = through(s, err);
    return s == NULL ? -ERR_UNAVAILABLE : store_lease_revoke(s, id, deadline_ms, err);
}
static const struct store_vtable gate_vtable = {.range = gate_range,
                                                .txn = gate_txn,
                                                .lease_grant = gate_grant,
                                                .lease_keepalive = gate_keepalive,
                                                .lease_revoke = gate_revoke};

/* ---- a replica ---- */

struct replica {
    struct gate gate;
    struct store_leader *leader;
    int64_t started_ms, stopped_ms; /* atomic; the last time, 0 = never */
    unsigned n_started, n_stopped;  /* atomic */
    int64_t block_ms;               /* in on_started */
};
static void on_started(void *ctx)
{
    struct replica *r = ctx;
    __atomic_store_n(&r->started_ms, now_ms(), __ATOMIC_RELAXED);
    __atomic_add_fetch(&r->n_started, 1, __ATOMIC_RELEASE);
    for (int64_t until_ms = now_ms() + r->block_ms; now_ms() < until_ms;)
        nap();
}
static void on_stopped(void *ctx, const char *why)
{
    struct replica *r = ctx;
    ck_assert_ptr_nonnull(why);
    ck_assert(!store_leader_is_leading(r->leader));
    __atomic_store_n(&r->stopped_ms, now_ms(), __ATOMIC_RELAXED);
    __atomic_add_fetch(&r->n_stopped, 1, __ATOMIC_RELEASE);
}
static const struct store_leader_ops ops = {.on_started = on_started, .on_stopped = on_stopped};

static char *leader_key(void)
{
    static char key[100];
    snprintf(key, sizeof key, "%sleader", root);
    return key;
}
static void join(struct replica *r, const char *holder)
{
    r->gate = (struct gate){.store = {.v = &gate_vtable}, .inner = store};
    struct store_leader_config config = {
        .holder = holder, .key = leader_key(), .ttl_s = TTL_S, .poll_ms = 50};
    r->leader = store_leader_start(&r->gate.store, &config, &ops, r);
}
static void wait_count(unsigned *count, unsigned n)
{
    int64_t until_ms = now_ms() + WAIT_MS;
    while (__atomic_load_n(count, __ATOMIC_ACQUIRE) < n) {
        ck_assert_int_lt(now_ms(), until_ms);
        nap();
    }
}
static bool write_fenced(struct replica *r)
{
    struct store_compare fence;
    if (!store_leader_fence(r->leader, &fence))
        return false;
    SCOPED_FREE char *key = xasprintf("%swritten", root);
    struct store_op op = {.key = key, .value = "x", .value_len = 1};
    struct store_txn txn = {.compares = &fence, .n_compares = 1, .ops = &op, .n_ops = 1};
    SCOPED(store_txn_result_fini) struct store_txn_result result = {0};
    ck_assert_int_eq(store_txn(store, &txn, now_ms() + WAIT_MS, &result, NULL), 0);
    return result.succeeded;
}
static void wait_holder(struct replica *r, const char *holder)
{
    for (int64_t until_ms = now_ms() + WAIT_MS;; nap()) {
        SCOPED_FREE char *is = store_leader_holder(r->leader);
        if (strcmp(is, holder) == 0)
            return;
        ck_assert_int_lt(now_ms(), until_ms);
    }
}

/* M-t003 */
START_TEST(test_stop_hands_over) /* IL-116 */
{
    struct replica a = {0}, b = {0};
    join(&a, "a");
    wait_count(&a.n_started, 1);
    join(&b, "b");
    wait_holder(&b, "a");
    ck_assert(store_leader_is_leading(a.leader) && !store_leader_is_leading(b.leader));
    ck_assert(write_fenced(&a) && !write_fenced(&b));
    store_leader_stop(a.leader);
    ck_assert_uint_eq(a.n_stopped, 1);
    wait_count(&b.n_started, 1);
    ck_assert_int_ge(b.started_ms, a.stopped_ms);
    ck_assert_int_lt(b.started_ms - a.stopped_ms, 1500);
    ck_assert(write_fenced(&b));
    wait_holder(&b, "b");
    printf("# take-over after a stop: %" PRId64 " ms (poll 50 ms)\n", b.started_ms - a.stopped_ms);
    store_leader_stop(b.leader);
}
END_TEST

/* One that died is followed at once by the process that is started in its place. The dead one is
 * played by one that lives and must not write any more. */
START_TEST(test_same_name_takes_over)
{
    struct replica a = {0}, b = {0}, again = {0};
    join(&a, "a");
    wait_count(&a.n_started, 1);
    join(&b, "b");
    wait_holder(&b, "a");
    int64_t began_ms = now_ms();
    join(&again, "a");
    while (!__atomic_load_n(&again.n_started, __ATOMIC_ACQUIRE) &&
           !__atomic_load_n(&b.n_started, __ATOMIC_ACQUIRE))
        nap();
    ck_assert_int_lt(now_ms() - began_ms, TTL_S * 1000);
    ck_assert(!write_fenced(&a));
    store_leader_suspect(a.leader);
    wait_count(&a.n_stopped, 1);
    store_leader_stop(a.leader);
    store_leader_stop(b.leader);
    store_leader_stop(again.leader);
}
END_TEST

START_TEST(test_lost_link_stops_first)
{
    struct replica a = {0}, b = {0};
    join(&a, "a");
    wait_count(&a.n_started, 1);
    join(&b, "b");
    int64_t cut_ms = now_ms();
    __atomic_store_n(&a.gate.is_down, true, __ATOMIC_RELAXED);
    wait_count(&a.n_stopped, 1);
    ck_assert_int_lt(a.stopped_ms - cut_ms, TTL_S * 1000);
    ck_assert(!write_fenced(&a));
    wait_count(&b.n_started, 1);
    ck_assert_int_ge(b.started_ms, a.stopped_ms);
    printf("# link cut: stopped after %" PRId64 " ms, take-over after %" PRId64 " ms (TTL %d s)\n",
           a.stopped_ms - cut_ms, b.started_ms - cut_ms, TTL_S);
    __atomic_store_n(&a.gate.is_down, false, __ATOMIC_RELAXED);
    store_leader_stop(b.leader);
    wait_count(&a.n_started, 2); /* and back again */
    store_leader_stop(a.leader);
}
END_TEST

START_TEST(test_leads_on_beyond_ttl)
{
    struct replica a = {0};
    join(&a, "a");
    wait_count(&a.n_started, 1);
    for (int64_t until_ms = now_ms() + TTL_S * 1500; now_ms() < until_ms; nap())
        ck_assert(store_leader_is_leading(a.leader));
    ck_assert(write_fenced(&a));
    ck_assert_uint_eq(a.n_stopped, 0);
    store_leader_stop(a.leader);
}
END_TEST

START_TEST(test_key_taken_away)
{
    struct replica a = {0};
    join(&a, "a");
    wait_count(&a.n_started, 1);
    struct store_compare old;
    ck_assert(store_leader_fence(a.leader, &old));
    struct store_op op = {.key = leader_key()};
    SCOPED(store_txn_result_fini) struct store_txn_result result = {0};
    struct store_txn txn = {.ops = &op, .n_ops = 1};
    ck_assert_int_eq(store_txn(store, &txn, now_ms() + WAIT_MS, &result, NULL), 0);
    ck_assert(!write_fenced(&a)); /* we think we lead; the store knows better */
    store_leader_suspect(a.leader);
    wait_count(&a.n_stopped, 1);
    wait_count(&a.n_started, 2);
    struct store_compare fresh;
    ck_assert(store_leader_fence(a.leader, &fresh));
    ck_assert_int_gt(fresh.rev, old.rev);
    ck_assert(write_fenced(&a));
    store_leader_stop(a.leader);
}
END_TEST

/* As after SIGSTOP and SIGCONT: the thread cannot act, but nothing may be written. */
START_TEST(test_paused_leader_has_no_fence)
{
    struct replica a = {.block_ms = 3 * TTL_S * 1000}, b = {0};
    join(&a, "a");
    wait_count(&a.n_started, 1);
    join(&b, "b");
    wait_count(&b.n_started, 1);
    struct store_compare fence;
    ck_assert(!store_leader_fence(a.leader, &fence));
    wait_count(&a.n_stopped, 1);
    ck_assert(write_fenced(&b));
    store_leader_stop(a.leader);
    store_leader_stop(b.leader);
}
END_TEST

static enum memstore_fault fault_txn(void *ctx, const char *call, uint64_t n)
{
    (void)n;
    enum memstore_fault *fault = ctx;
    return strcmp(call, "txn") == 0 ? steal(fault) : MEMSTORE_OK; /* once */
}

START_TEST(test_undetermined_campaign)
{
    if (server.pid != 0)
        return; /* faults on demand are the memory's */
    for (enum memstore_fault fault = MEMSTORE_UNAVAILABLE; fault <= MEMSTORE_UNDETERMINED_LOST;
         fault++) {
        struct replica a = {0};
        enum memstore_fault once = fault;
        memstore_set_fault(store, fault_txn, &once);
        join(&a, "a");
        wait_count(&a.n_started, 1);
        memstore_set_fault(store, NULL, NULL);
        ck_assert(write_fenced(&a));
        store_leader_stop(a.leader);
        ck_assert_uint_eq(a.n_started, 1);
    }
}
END_TEST

static void open_store(void)
{
    const char *endpoints[] = {server.endpoint, NULL};
    fetch = fetch_new();
    store = etcd_new(fetch, &(struct etcd_config){.endpoints = endpoints});
}
static void close_store(void)
{
    store_free(store);
    fetch_free(fetch);
}

/* In a process of its own, until killed. */
static void lead_until_killed(int fd)
{
    struct replica a = {0};
    open_store();
    join(&a, "killed");
    wait_count(&a.n_started, 1);
    ck_assert_int_eq(write(fd, "x", 1), 1);
    for (;;)
        pause();
}

START_TEST(test_killed_leader) /* IL-116 */
{
    if (server.pid == 0)
        return; /* memory is not shared between processes */
    int fds[2];
    char c;
    struct replica b = {0};
    ck_assert_int_eq(pipe(fds), 0);
    close_store(); /* a process with threads should not fork */
    pid_t pid = fork();
    if (pid == 0)
        lead_until_killed(fds[1]);
    open_store();
    ck_assert_int_eq(read(fds[0], &c, 1), 1);
    join(&b, "b");
    wait_holder(&b, "killed");
    int64_t killed_ms = now_ms();
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    wait_count(&b.n_started, 1);
    printf("# take-over after a kill: %" PRId64 " ms (TTL %d s)\n", b.started_ms - killed_ms,
           TTL_S);
    store_leader_stop(b.leader);
    close(fds[0]);
    close(fds[1]);
}
END_TEST

SUITE(lease)
{
    const TTest *const tests[] = {
        test_stop_hands_over,
        test_same_name_takes_over,
        test_lost_link_stops_first,
        test_leads_on_beyond_ttl,
        test_key_taken_away,
        test_killed_leader,
        test_paused_leader_has_no_fence,
        test_undetermined_campaign,
    };
    store_fixture_add(s, tests, ARRAY_LEN(tests));
}
