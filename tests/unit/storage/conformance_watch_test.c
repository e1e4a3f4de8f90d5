/* Watches as every store has them: history, what comes live, compaction; and leases, whose end is
 * told by watches. */
#include <pthread.h>
#include <time.h>

#include "tests/unit/storage/conformance_fixture.h"

/* ---- a watch that remembers ---- */

struct seen {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct store_event *events;
    size_t n;
    int64_t rev;      /* newest covered */
    int64_t call_rev; /* of the call before */
    unsigned n_calls;
    enum err_code lost;
    int64_t compact_rev;
    bool is_wrong; /* a rule of the contract was broken */
};

static void on_events(void *ctx, struct store_event *events, size_t n, int64_t rev)
{
    struct seen *s = ctx;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < n; i++) {
        s->is_wrong = s->is_wrong || events[i].kv.mod_rev <= s->rev || events[i].kv.mod_rev > rev;
        s->events = xreallocarray(s->events, s->n + 1, sizeof *s->events);
        s->events[s->n++] = steal(&events[i]);
    }
    s->is_wrong = s->is_wrong || rev < s->rev || s->lost != ERR_NONE;
    s->rev = rev;
    s->n_calls++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}
static void on_lost(void *ctx, const struct err *err, int64_t compact_rev)
{
    struct seen *s = ctx;
    pthread_mutex_lock(&s->lock);
    s->is_wrong = s->is_wrong || s->lost != ERR_NONE;
    s->lost = err->code;
    s->compact_rev = compact_rev;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}
static const struct store_watch_ops watch_ops = {.on_events = on_events, .on_lost = on_lost};

static void seen_init(struct seen *s)
{
    *s = (struct seen){0};
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
}
static void seen_fini(struct seen *s)
{
    ck_assert(!s->is_wrong);
    for (size_t i = 0; i < s->n; i++) {
        store_kv_fini(&s->events[i].kv);
        store_kv_fini(&s->events[i].prev);
    }
    free(s->events);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
}
/* Until the watch has covered rev, or is lost. */
static void wait_rev(struct seen *s, int64_t rev)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_MS / 1000;
    int code = 0;
    pthread_mutex_lock(&s->lock);
    while (s->rev < rev && s->lost == ERR_NONE && code == 0)
        code = pthread_cond_timedwait(&s->changed, &s->lock, &until);
    int64_t is = s->rev;
    pthread_mutex_unlock(&s->lock);
    ck_assert_msg(code == 0, "watch is at %" PRId64 ", not at %" PRId64, is, rev);
}

/* ---- watches ---- */

static void expect_event(const struct store_event *e, bool is_delete, const char *name,
                         const char *value, const char *prev, int64_t rev)
{
    ck_assert_int_eq(e->is_delete, is_delete);
    ck_assert_str_eq(e->kv.key, KEY(name));
    ck_assert_int_eq(e->kv.mod_rev, rev);
    if (!is_delete)
        ck_assert_str_eq(e->kv.value, value);
    if (prev == NULL)
        ck_assert_ptr_null(e->prev.key);
    else
        ck_assert_str_eq(e->prev.value, prev);
}

START_TEST(test_watch_history_then_live)
{
    struct seen s;
    seen_init(&s);
    int64_t rev1 = put("a", "one");
    int64_t rev2 = put("a", "two");
    struct store_watch *w = store_watch(store, root, rev1, &watch_ops, &s);
    wait_rev(&s, rev2);
    int64_t rev3 = del("a");
    int64_t rev4 = put("a", "three");
    wait_rev(&s, rev4);
    store_unwatch(store, w);
    ck_assert_uint_eq(s.n, 4);
    expect_event(&s.events[0], false, "a", "one", NULL, rev1);
    expect_event(&s.events[1], false, "a", "two", "one", rev2);
    expect_event(&s.events[2], true, "a", NULL, "two", rev3);
    expect_event(&s.events[3], false, "a", "three", NULL, rev4);
    ck_assert_int_eq(s.events[1].kv.create_rev, rev1);
    ck_assert_int_eq(s.events[2].prev.mod_rev, rev2);
    seen_fini(&s);
}
END_TEST

START_TEST(test_watch_from_now_and_prefix)
{
    struct seen s;
    seen_init(&s);
    put("in/a", "before");
    struct store_watch *w = store_watch(store, KEY("in/"), 0, &watch_ops, &s);
    wait_rev(&s, revision()); /* told where it starts */
    ck_assert_uint_eq(s.n, 0);
    int64_t rev1 = put("in/b", "b");
    put("in", "outside");
    put("in0", "outside");
    int64_t rev4 = put("out", "outside");
    wait_rev(&s, rev4); /* moves with other keys too */
    store_unwatch(store, w);
    ck_assert_uint_eq(s.n, 1);
    expect_event(&s.events[0], false, "in/b", "b", NULL, rev1);
    seen_fini(&s);
}
END_TEST

START_TEST(test_watch_of_everything)
{
    struct seen s;
    seen_init(&s);
    int64_t rev = revision();
    struct store_watch *w = store_watch(store, "", rev + 1, &watch_ops, &s);
    for (int i = 0; i < 50; i++)
        put("a", "x");
    wait_rev(&s, rev + 50);
    store_unwatch(store, w);
    ck_assert_uint_eq(s.n, 50);
    for (size_t i = 0; i < s.n; i++)
        ck_assert_int_eq(s.events[i].kv.mod_rev, rev + 1 + (int64_t)i);
    seen_fini(&s);
}
END_TEST

START_TEST(test_watch_transaction)
{
    struct seen s;
    seen_init(&s);
    put("gone", "x");
    int64_t rev = put("kept", "y");
    struct store_watch *w = store_watch(store, root, rev + 1, &watch_ops, &s);
    struct store_op ops[] = {{.key = KEY("gone")},
                             {.key = KEY("new"), .value = "n", .value_len = 1}};
    SCOPED(store_txn_result_fini)
    struct store_txn_result r = txn(&(struct store_txn){.ops = ops, .n_ops = 2});
    wait_rev(&s, r.rev);
    store_unwatch(store, w);
    ck_assert_uint_eq(s.n, 2); /* together, one revision, in the order of operations */
    expect_event(&s.events[0], true, "gone", NULL, "x", r.rev);
    expect_event(&s.events[1], false, "new", "n", NULL, r.rev);
    seen_fini(&s);
}
END_TEST

START_TEST(test_watch_catches_up_in_batches)
{
    struct seen s;
    seen_init(&s);
    SCOPED_FREE char *value = xmalloc(3000);
    memset(value, 'v', 3000);
    int64_t first = 0, last = 0;
    for (int i = 0; i < 1500;
         i++) { /* more than etcd's batch of 1000 revisions, more than one fragment */
        last = put_n(KEY("a"), value, 3000, 0);
        first = first == 0 ? last : first;
    }
    struct store_watch *w = store_watch(store, root, first, &watch_ops, &s);
    last = put("b", "live");
    wait_rev(&s, last);
    store_unwatch(store, w);
    ck_assert_uint_eq(s.n, 1501);
    for (size_t i = 0; i < s.n; i++)
        ck_assert_int_eq(s.events[i].kv.mod_rev, first + (int64_t)i);
    seen_fini(&s);
}
END_TEST

START_TEST(test_watch_compacted)
{
    struct seen s;
    seen_init(&s);
    int64_t rev1 = put("a", "one");
    put("a", "two");
    int64_t rev3 = put("a", "three");
    compact(rev3);
    struct store_watch *w = store_watch(store, root, rev1, &watch_ops, &s);
    wait_rev(&s, INT64_MAX);
    store_unwatch(store, w);
    ck_assert_int_eq(s.lost, ERR_EXPIRED);
    ck_assert_int_eq(s.compact_rev, rev3);
    ck_assert_uint_eq(s.n, 0);
    seen_fini(&s);
}
END_TEST

/* A watch either tells of the deletion in the compacted revision or is lost; etcd 3.4 by itself
 * does neither. */
START_TEST(test_watch_from_compacted_deletion)
{
    struct seen s;
    seen_init(&s);
    put("a", "one");
    int64_t rev = del("a");
    compact(rev);
    int64_t rev2 = put("b", "two");
    struct store_watch *w = store_watch(store, root, rev, &watch_ops, &s);
    wait_rev(&s, rev2);
    store_unwatch(store, w);
    if (s.lost == ERR_NONE)
        ck_assert(s.n == 2 && s.events[0].is_delete);
    else
        ck_assert(s.lost == ERR_EXPIRED && s.compact_rev == rev && s.n == 0);
    seen_fini(&s);
}
END_TEST

START_TEST(test_watch_after_compaction_goes_on)
{
    struct seen s;
    seen_init(&s);
    int64_t rev1 = put("a", "one");
    compact(rev1);
    struct store_watch *w = store_watch(store, root, rev1 + 1, &watch_ops, &s);
    int64_t rev2 = put("a", "two");
    wait_rev(&s, rev2);
    store_unwatch(store, w);
    ck_assert_uint_eq(s.n, 1);
    expect_event(&s.events[0], false, "a", "two", "one", rev2);
    seen_fini(&s);
}
END_TEST

START_TEST(test_watch_from_the_future)
{
    struct seen s;
    seen_init(&s);
    int64_t rev = revision();
    struct store_watch *w = store_watch(store, root, rev + 3, &watch_ops, &s);
    put("a", "1");
    put("a", "2");
    put("a", "3");
    wait_rev(&s, rev + 3);
    store_unwatch(store, w);
    ck_assert_uint_eq(s.n, 1);
    expect_event(&s.events[0], false, "a", "3", "2", rev + 3);
    seen_fini(&s);
}
END_TEST

START_TEST(test_many_watches_end_at_once)
{
    struct seen s[8];
    struct store_watch *w[8];
    int64_t rev = revision();
    for (size_t i = 0; i < 8; i++) {
        seen_init(&s[i]);
        w[i] = store_watch(store, root, rev + 1, &watch_ops, &s[i]);
    }
    rev = put("a", "one");
    for (size_t i = 0; i < 8; i++)
        wait_rev(&s[i], rev);
    int64_t before_ms = clock_monotonic_ms(&clock_system);
    for (size_t i = 0; i < 8; i++)
        store_unwatch(store, w[i]);
    ck_assert_int_lt(clock_monotonic_ms(&clock_system) - before_ms, 2000);
    for (size_t i = 0; i < 8; i++)
        seen_fini(&s[i]);
    /* and one that is ended before it has begun */
    seen_init(&s[0]);
    store_unwatch(store, store_watch(store, root, 0, &watch_ops, &s[0]));
    seen_fini(&s[0]);
}
END_TEST

/* ---- leases ---- */

static int64_t grant(int64_t ttl_s)
{
    int64_t id = 0;
    ck_assert_int_eq(store_lease_grant(store, ttl_s, deadline(), &id, NULL), 0);
    ck_assert_int_ne(id, 0);
    return id;
}

START_TEST(test_lease_revoke)
{
    struct seen s;
    seen_init(&s);
    int64_t id = grant(60), other = grant(60), ttl_s = 0;
    ck_assert_int_ne(id, other);
    put_n(KEY("a"), "x", 1, id);
    put_n(KEY("b"), "y", 1, id);
    int64_t rev = put_n(KEY("c"), "z", 1, other);
    struct store_kv kv = {0};
    ck_assert_int_eq(store_get(store, KEY("a"), deadline(), &kv, NULL, NULL), 0);
    ck_assert_int_eq(kv.lease, id);
    store_kv_fini(&kv);
    ck_assert_int_eq(store_lease_keepalive(store, id, deadline(), &ttl_s, NULL), 0);
    ck_assert_int_eq(ttl_s, 60);
    struct store_watch *w = store_watch(store, root, rev + 1, &watch_ops, &s);
    ck_assert_int_eq(store_lease_revoke(store, id, deadline(), NULL), 0);
    wait_rev(&s, rev + 1);
    store_unwatch(store, w);
    ck_assert_uint_eq(s.n, 2); /* both in one revision */
    ck_assert(s.events[0].is_delete && s.events[1].is_delete);
    expect("a", NULL);
    expect("b", NULL);
    expect("c", "z");
    ck_assert_int_eq(store_lease_revoke(store, id, deadline(), NULL), -ERR_NOT_FOUND);
    ck_assert_int_eq(store_lease_keepalive(store, id, deadline(), &ttl_s, NULL), -ERR_NOT_FOUND);
    store_lease_revoke(store, other, deadline(), NULL);
    seen_fini(&s);
}
END_TEST

START_TEST(test_lease_expiry)
{
    struct seen s;
    seen_init(&s);
    int64_t id = grant(1); /* etcd makes it a little longer */
    int64_t rev = put_n(KEY("a"), "x", 1, id);
    struct store_watch *w = store_watch(store, root, rev + 1, &watch_ops, &s);
    wait_rev(&s, rev + 1); /* the watch hears of it without any other call */
    store_unwatch(store, w);
    ck_assert(s.n == 1 && s.events[0].is_delete);
    expect("a", NULL);
    seen_fini(&s);
}
END_TEST

START_TEST(test_lease_of_a_put)
{
    int64_t id = grant(60);
    put_n(KEY("a"), "x", 1, id);
    put("a", "no lease any more");
    ck_assert_int_eq(store_lease_revoke(store, id, deadline(), NULL), 0);
    expect("a", "no lease any more");
    struct store_op op = {.key = KEY("b"), .value = "x", .value_len = 1, .lease = id};
    struct store_txn_result r = {0};
    struct store_txn t = {.ops = &op, .n_ops = 1};
    ck_assert_int_eq(store_txn(store, &t, deadline(), &r, NULL), -ERR_NOT_FOUND);
    expect("b", NULL);
}
END_TEST

SUITE(conformance_watch)
{
    const TTest *const tests[] = {
        test_watch_history_then_live,
        test_watch_from_now_and_prefix,
        test_watch_of_everything,
        test_watch_transaction,
        test_watch_catches_up_in_batches,
        test_watch_compacted,
        test_watch_from_compacted_deletion,
        test_watch_after_compaction_goes_on,
        test_watch_from_the_future,
        test_many_watches_end_at_once,
        test_lease_revoke,
        test_lease_expiry,
        test_lease_of_a_put,
    };
    store_fixture_add(s, tests, ARRAY_LEN(tests));
}
