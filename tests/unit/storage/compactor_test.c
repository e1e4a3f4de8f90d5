/* History goes after a period, and what is newer stays. */
#include "storage/compactor.h"

#include <sched.h>
#include <stdatomic.h>

#include "apiserver/base/clock.h"
#include "storage/memstore.h"
#include "tests/lib/store_fixture.h"
#include "tests/lib/suite.h"

#define WAIT_MS 120000
#define PERIOD_MS 100

static int64_t in(int64_t ms)
{
    return clock_monotonic_ms(&clock_system) + ms;
}

static int64_t put(const char *name)
{
    SCOPED_FREE char *key = xasprintf("%s%s", root, name);
    struct store_op op = {.key = key, .value = "x", .value_len = 1};
    SCOPED(store_txn_result_fini) struct store_txn_result r = {0};
    ck_assert_int_eq(
        store_txn(store, &(struct store_txn){.ops = &op, .n_ops = 1}, in(WAIT_MS), &r, NULL), 0);
    return r.rev;
}

static int read_at(int64_t rev)
{
    SCOPED(store_page_fini) struct store_page page = {0};
    SCOPED_FREE char *end = store_prefix_end(root);
    return store_range(store, root, end, 0, rev, false, in(WAIT_MS), &page, NULL);
}

START_TEST(test_old_history_goes) /* IL-150 */
{
    int64_t old = put("a");
    put("a");
    struct store_compactor *c = store_compactor_start(store, PERIOD_MS);
    int64_t until = in(WAIT_MS);
    while (read_at(old) != -ERR_EXPIRED && clock_monotonic_ms(&clock_system) < until)
        sched_yield();
    ck_assert_int_eq(read_at(old), -ERR_EXPIRED);
    int64_t now = put("a");
    ck_assert_int_eq(read_at(now), 0);
    store_compactor_stop(c);
    ck_assert_int_eq(read_at(0), 0);
}
END_TEST

static atomic_int refused; /* calls of an outage */

static enum memstore_fault no_answer(void *ctx, const char *call, uint64_t n)
{
    (void)ctx, (void)call, (void)n;
    atomic_fetch_add(&refused, 1);
    return MEMSTORE_UNAVAILABLE;
}

/* IL-150: the store does not answer for some periods, whatever it is asked; then history goes as
 * before, up to what was new in the outage. */
START_TEST(test_goes_on_after_an_outage)
{
    struct store *real = store;
    store = memstore_new();
    int64_t old = put("a");
    put("a");
    memstore_set_fault(store, no_answer, NULL);
    struct store_compactor *c = store_compactor_start(store, PERIOD_MS);
    int64_t until = in(WAIT_MS);
    while (atomic_load(&refused) < 3 && clock_monotonic_ms(&clock_system) < until)
        sched_yield();
    memstore_set_fault(store, NULL, NULL);
    ck_assert_int_ge(atomic_load(&refused), 3);
    while (read_at(old) != -ERR_EXPIRED && clock_monotonic_ms(&clock_system) < until)
        sched_yield();
    ck_assert_int_eq(read_at(old), -ERR_EXPIRED);
    ck_assert_int_eq(read_at(0), 0);
    store_compactor_stop(c);
    store_free(store);
    store = real;
}
END_TEST

START_TEST(test_stops_at_once)
{
    int64_t began = in(0);
    store_compactor_stop(store_compactor_start(store, 3600 * 1000));
    store_compactor_stop(NULL);
    ck_assert_int_lt(in(0) - began, WAIT_MS);
}
END_TEST

SUITE(compactor)
{
    const TTest *const tests[] = {test_old_history_goes, test_goes_on_after_an_outage,
                                  test_stops_at_once};
    store_fixture_add(s, tests, ARRAY_LEN(tests));
}
