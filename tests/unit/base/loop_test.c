/* The keyed queue: one key on one worker, delays, failures, stop and start. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/clock.h"
#include "apiserver/base/loop.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/metric.h"
#include "apiserver/base/str.h"
#include "tests/lib/suite.h"

#define KEYS 50
#define WAIT_MS 20000 /* more than any pass here takes on a busy machine */

/* What the passes saw; guarded by lock. */
static struct seen {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int passes, running[KEYS], total[KEYS], fail_first;
    bool overlapped;
    int64_t again_ms;
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static int work(void *ctx, const char *key, struct loop_result *ret)
{
    (void)ctx;
    int k = (key[0] - 'a') * 10 + (key[1] - '0');
    pthread_mutex_lock(&seen.lock);
    if (seen.running[k]++)
        seen.overlapped = true;
    pthread_mutex_unlock(&seen.lock);
    sched_yield();
    pthread_mutex_lock(&seen.lock);
    seen.running[k]--;
    seen.total[k]++;
    seen.passes++;
    int rc = 0;
    if (seen.fail_first > 0) {
        seen.fail_first--;
        rc = -1;
    }
    ret->again_after_ms = seen.again_ms;
    seen.again_ms = 0;
    pthread_cond_broadcast(&seen.changed);
    pthread_mutex_unlock(&seen.lock);
    return rc;
}

static struct loop *make(int workers)
{
    return loop_new(&(struct loop_config){
        .name = "test", .workers = workers, .clock = &clock_system, .work = work});
}

static void wait_passes(int n)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_MS / 1000;
    pthread_mutex_lock(&seen.lock);
    while (seen.passes < n) {
        if (pthread_cond_timedwait(&seen.changed, &seen.lock, &until) != 0) {
            pthread_mutex_unlock(&seen.lock);
            ck_abort_msg("only %d of %d passes came", seen.passes, n);
        }
    }
    pthread_mutex_unlock(&seen.lock);
}

START_TEST(test_every_key_once)
{
    struct loop *l = make(4);
    for (int i = 0; i < KEYS; i++) {
        char key[3] = {(char)('a' + i / 10), (char)('0' + i % 10), 0};
        loop_add(l, key);
        loop_add(l, key); /* queued already: still one pass */
    }
    ck_assert_uint_eq(loop_len(l), KEYS);
    loop_start(l);
    wait_passes(KEYS);
    loop_stop(l);
    for (int i = 0; i < KEYS; i++)
        ck_assert_int_eq(seen.total[i], 1);
    loop_free(l);
}
END_TEST

START_TEST(test_never_two_at_once)
{
    struct loop *l = make(8);
    loop_start(l);
    for (int i = 0; i < 2000; i++)
        loop_add(l, "a0");
    wait_passes(1);
    loop_stop(l);
    ck_assert(!seen.overlapped);
    ck_assert_int_ge(seen.total[0], 1);
    loop_free(l);
}
END_TEST

START_TEST(test_failure_comes_back)
{
    struct loop *l = make(1);
    seen.fail_first = 3;
    loop_start(l);
    loop_add(l, "a0");
    wait_passes(4);
    loop_stop(l);
    ck_assert_int_eq(seen.total[0], 4);
    loop_free(l);
}
END_TEST

START_TEST(test_wish_is_granted)
{
    struct loop *l = make(1);
    seen.again_ms = 30;
    loop_start(l);
    int64_t before = clock_monotonic_ms(&clock_system);
    loop_add(l, "a0");
    wait_passes(2);
    ck_assert_int_ge(clock_monotonic_ms(&clock_system) - before, 30);
    loop_stop(l);
    loop_free(l);
}
END_TEST

START_TEST(test_earlier_time_wins)
{
    struct loop *l = make(1);
    loop_start(l);
    loop_add_after(l, "a0", 3600 * 1000);
    loop_add_after(l, "a1", 3600 * 1000);
    loop_add_after(l, "a0", 10);
    wait_passes(1);
    loop_forget(l, "a1");
    loop_stop(l);
    ck_assert_int_eq(seen.total[0], 1);
    ck_assert_int_eq(seen.total[1], 0);
    loop_free(l);
}
END_TEST

START_TEST(test_restart)
{
    struct loop *l = make(2);
    loop_add(l, "a0");
    loop_start(l);
    wait_passes(1);
    loop_stop(l);
    loop_add(l, "a1"); /* stopped: dropped */
    ck_assert_uint_eq(loop_len(l), 0);
    loop_start(l);
    loop_add(l, "a2");
    wait_passes(2);
    loop_stop(l);
    ck_assert_int_eq(seen.total[1], 0);
    ck_assert_int_eq(seen.total[2], 1);
    loop_free(l);
}
END_TEST

static void expect_line(const char *line)
{
    SCOPED(buf_fini) struct buf text = {0};
    metric_print_all(&text);
    ck_assert_msg(strstr(buf_cstr(&text), line), "%s missing in\n%s", line, buf_cstr(&text));
}

#define QUEUE "{name=\"test\",controller=\"test\"} "
#define CONTROLLER "{controller=\"test\"} "

/* Names and labels are those that dashboards of Go's controllers know. */
START_TEST(test_counted)
{
    struct loop *l = make(3);
    loop_add(l, "a0");
    loop_add(l, "a1");
    loop_add(l, "a1"); /* waits already: no second one */
    expect_line("workqueue_depth" QUEUE "2\n");
    seen.fail_first = 1;
    loop_start(l);
    wait_passes(3);
    loop_stop(l);
    expect_line("workqueue_depth" QUEUE "0\n");
    expect_line("workqueue_adds_total" QUEUE "3\n");
    expect_line("workqueue_retries_total" QUEUE "1\n");
    expect_line("workqueue_queue_duration_seconds_count" QUEUE "3\n");
    expect_line("workqueue_work_duration_seconds_count" QUEUE "3\n");
    expect_line("workqueue_unfinished_work_seconds" QUEUE "0\n");
    expect_line("workqueue_longest_running_processor_seconds" QUEUE "0\n");
    expect_line("controller_runtime_reconcile_total{controller=\"test\",result=\"success\"} 2\n");
    expect_line("controller_runtime_reconcile_total{controller=\"test\",result=\"error\"} 1\n");
    expect_line("controller_runtime_reconcile_errors_total" CONTROLLER "1\n");
    expect_line("controller_runtime_reconcile_time_seconds_count" CONTROLLER "3\n");
    expect_line("controller_runtime_max_concurrent_reconciles" CONTROLLER "3\n");
    expect_line("controller_runtime_active_workers" CONTROLLER "0\n");
    loop_free(l);
}
END_TEST

#define CROWD 1000 /* members of one pool */

static struct buf order; /* of the passes, one worker's */

static int note_key(void *ctx, const char *key, struct loop_result *ret)
{
    (void)ctx, (void)ret;
    buf_printf(&order, "%s ", key);
    pthread_mutex_lock(&seen.lock);
    seen.passes++;
    pthread_cond_broadcast(&seen.changed);
    pthread_mutex_unlock(&seen.lock);
    return 0;
}

/* Who is few does not wait behind those who are many, whose order stays. */
START_TEST(test_families_take_turns)
{
    static const char *const late[] = {"ns/b-1",   "ns/b-2",  "ns/b-3",
                                       "ns/alone", "my-ns/x", "my-ns/y"};
    struct loop *l = loop_new(&(struct loop_config){
        .name = "test", .workers = 1, .clock = &clock_system, .work = note_key});
    for (int i = 0; i < CROWD; i++) {
        SCOPED_FREE char *key = xasprintf("ns/a-%d", i);
        loop_add(l, key);
    }
    for (size_t i = 0; i < ARRAY_LEN(late); i++)
        loop_add(l, late[i]);
    ck_assert_uint_eq(loop_len(l), CROWD + ARRAY_LEN(late));
    loop_start(l);
    wait_passes(CROWD + (int)ARRAY_LEN(late));
    loop_stop(l);
    loop_free(l);
    ck_assert_msg(str_has_prefix(buf_cstr(&order),
                                 "ns/a-0 ns/b-1 ns/alone my-ns/x my-ns/y ns/a-1 ns/b-2 ns/a-2 "
                                 "ns/b-3 ns/a-3 ns/a-4 ns/a-5 "),
                  "%.200s", buf_cstr(&order));
    buf_fini(&order);
}
END_TEST

/* Nothing is left of those who wait when it stops. */
START_TEST(test_stop_with_a_crowd)
{
    struct loop *l = loop_new(&(struct loop_config){
        .name = "test", .workers = 1, .clock = &clock_system, .work = note_key});
    for (int round = 0; round < 2; round++) {
        loop_start(l);
        for (int i = 0; i < CROWD; i++) {
            SCOPED_FREE char *key = xasprintf("ns/%c-%d", 'a' + i % 7, i);
            loop_add(l, key);
        }
        loop_stop(l);
        ck_assert_uint_eq(loop_len(l), 0);
    }
    loop_free(l);
    buf_fini(&order);
}
END_TEST

/* ---- who sleeps ---- */

enum { SLEEPERS = 8, IN_A_ROW = 40 };

static atomic_bool was_late_run;
static pthread_t ran_on[IN_A_ROW];
static atomic_int n_ran;

/* "wait" ends when "late" ran; of others it is noted where they ran. */
static int sleepers_work(void *ctx, const char *key, struct loop_result *ret)
{
    (void)ctx;
    (void)ret;
    if (strcmp(key, "late") == 0) {
        atomic_store(&was_late_run, true);
    } else if (strcmp(key, "wait") == 0) {
        for (int i = 0; i < WAIT_MS && !atomic_load(&was_late_run); i++)
            usleep(1000);
    } else {
        ran_on[atomic_load(&n_ran)] = pthread_self();
        atomic_fetch_add(&n_ran, 1);
    }
    return 0;
}

static struct loop *start_sleepers(int workers)
{
    struct loop *l = loop_new(&(struct loop_config){
        .name = "test", .workers = workers, .clock = &clock_system, .work = sleepers_work});
    atomic_store(&was_late_run, false);
    atomic_store(&n_ran, 0);
    loop_start(l);
    usleep(200 * 1000); /* until all wait */
    return l;
}

/* The worker that knew when the next key is due has something else to do by then. */
START_TEST(test_somebody_keeps_the_time)
{
    struct loop *l = start_sleepers(2);
    loop_add_after(l, "late", 100);
    loop_add(l, "wait");
    for (int i = 0; i < WAIT_MS && !atomic_load(&was_late_run); i++)
        usleep(1 * 1000);
    ck_assert(atomic_load(&was_late_run));
    loop_stop(l);
    loop_free(l);
}
END_TEST

static int threads_used(void)
{
    int n = 0;
    for (int i = 0; i < IN_A_ROW; i++) {
        int k = 0;
        while (!pthread_equal(ran_on[k], ran_on[i]))
            k++;
        n += k == i;
    }
    return n;
}

/* One key after the other needs one worker, and few have to do with it. */
START_TEST(test_few_work_when_few_are_needed)
{
    struct loop *l = start_sleepers(SLEEPERS);
    for (int i = 0; i < IN_A_ROW; i++) {
        SCOPED_FREE char *key = xasprintf("n%d", i);
        loop_add(l, key);
        for (int k = 0; k < WAIT_MS && atomic_load(&n_ran) <= i; k++)
            usleep(1000);
        usleep(5000); /* until it waits again */
    }
    loop_stop(l);
    loop_free(l);
    ck_assert_int_eq(atomic_load(&n_ran), IN_A_ROW);
    ck_assert_int_le(threads_used(), SLEEPERS / 2);
}
END_TEST

/* ---- the wall clock ---- */

static int64_t set_by_ms; /* the wall clock, of what it was */

static int64_t wall_unix_ms(const struct clock *c)
{
    (void)c;
    return 1000000 + __atomic_load_n(&set_by_ms, __ATOMIC_RELAXED);
}

static int64_t wall_monotonic_ms(const struct clock *c)
{
    (void)c;
    return 1000;
}

/* A time of day that was an hour away may be over: who waits for one looks again. Going back, too.
 */
START_TEST(test_wall_clock_is_set)
{
    static const struct clock clock = {.unix_ms = wall_unix_ms, .monotonic_ms = wall_monotonic_ms};
    struct loop *l = loop_new(
        &(struct loop_config){.name = "test", .workers = 1, .clock = &clock, .work = work});
    seen.again_ms = 3600000;
    loop_add(l, "a0");
    loop_start(l);
    wait_passes(1);
    loop_add(l, "a9"); /* the wish of the first is noted by then */
    wait_passes(2);
    __atomic_store_n(&set_by_ms, 1000, __ATOMIC_RELAXED); /* a correction */
    loop_add(l, "a9");
    wait_passes(3);
    ck_assert_int_eq(seen.total[0], 1);
    __atomic_store_n(&set_by_ms, 7200000, __ATOMIC_RELAXED);
    loop_add(l, "a9");
    wait_passes(5);
    ck_assert_int_eq(seen.total[0], 2);
    loop_free(l);
}
END_TEST

/* ---- what a pass wrote itself ---- */

static struct loop *writers; /* of the test below */
static int64_t written;      /* of the same */

/* Writes its object, hears of it at once, and fails; but for the last key, which does nothing. */
static int write_and_fail(void *ctx, const char *key, struct loop_result *ret)
{
    (void)ctx;
    bool is_last = strcmp(key, "a9") == 0;
    ret->own_rev = is_last ? 0 : ++written;
    if (!is_last)
        loop_add_change(writers, key, written);
    pthread_mutex_lock(&seen.lock);
    seen.passes++;
    seen.total[key[1] - '0']++;
    pthread_cond_broadcast(&seen.changed);
    pthread_mutex_unlock(&seen.lock);
    return is_last ? 0 : -1;
}

START_TEST(test_own_writes_are_no_news)
{
    struct clock_fake clock;
    clock_fake_init(&clock, 1000);
    writers = loop_new(&(struct loop_config){
        .name = "test", .workers = 1, .clock = &clock.clock, .work = write_and_fail});
    loop_add_change(writers, "a0", 1);
    written = 1;
    loop_start(writers);
    wait_passes(1);
    loop_add(writers, "a9"); /* who is behind whatever is ready */
    wait_passes(2);
    loop_add_change(writers, "a0", 2); /* the same, told late */
    loop_add(writers, "a9");
    wait_passes(3);
    ck_assert_int_eq(seen.total[0], 1);
    loop_add_change(writers, "a0", 3); /* somebody else's */
    wait_passes(4);
    ck_assert_int_eq(seen.total[0], 2);
    loop_add(writers, "a0"); /* something else happened */
    wait_passes(5);
    loop_add(writers, "a9"); /* when it is worked on, the delay of the other has begun */
    wait_passes(6);
    ck_assert_int_eq(seen.total[0], 3);
    clock_fake_advance(&clock, 1000); /* and is over */
    loop_add(writers, "a9");          /* a look at the clock */
    wait_passes(8);
    ck_assert_int_eq(seen.total[0], 4);
    loop_free(writers);
}
END_TEST

START_TEST(test_backoff)
{
    ck_assert_int_eq(loop_backoff_ms(1), 5);
    ck_assert_int_eq(loop_backoff_ms(2), 10);
    ck_assert_int_eq(loop_backoff_ms(11), 5120);
    ck_assert_int_eq(loop_backoff_ms(19), 1000000);
    ck_assert_int_eq(loop_backoff_ms(4000000000u), 1000000);
}
END_TEST

SUITE(loop)
{
    TESTS("queue", test_every_key_once, test_never_two_at_once, test_failure_comes_back,
          test_wish_is_granted, test_earlier_time_wins, test_restart, test_counted, test_backoff,
          test_own_writes_are_no_news, test_wall_clock_is_set, test_families_take_turns,
          test_stop_with_a_crowd, test_somebody_keeps_the_time, test_few_work_when_few_are_needed);
}
