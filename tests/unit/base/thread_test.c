#include "apiserver/base/thread.h"

#include <signal.h>

#include "apiserver/base/clock.h"
#include "tests/lib/suite.h"

struct shared {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_set, blocks_signals;
};

static void *set_it(void *ctx)
{
    struct shared *s = ctx;
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    pthread_mutex_lock(&s->lock);
    s->blocks_signals = sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGPIPE) == 1;
    s->is_set = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

static void *need_stack(void *ctx)
{
    volatile char big[1 << 20];
    for (size_t i = 0; i < sizeof big; i += 4096)
        big[i] = 1;
    *(bool *)ctx = true;
    return NULL;
}

START_TEST(wakes_and_blocks_signals)
{
    struct shared s = {.lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t t;
    thread_cond_init(&s.changed);
    thread_start(&t, "a thread's name", set_it, &s);
    pthread_mutex_lock(&s.lock);
    while (!s.is_set)
        thread_cond_wait_until(&s.changed, &s.lock, INT64_MAX);
    pthread_mutex_unlock(&s.lock);
    pthread_join(t, NULL);
    ck_assert(s.blocks_signals);
    pthread_cond_destroy(&s.changed);
}
END_TEST

START_TEST(wait_ends_at_its_time)
{
    struct shared s = {.lock = PTHREAD_MUTEX_INITIALIZER};
    int64_t until_ms = clock_monotonic_ms(&clock_system) + 30;
    thread_cond_init(&s.changed);
    pthread_mutex_lock(&s.lock);
    while (clock_monotonic_ms(&clock_system) < until_ms)
        thread_cond_wait_until(&s.changed, &s.lock, until_ms);
    pthread_mutex_unlock(&s.lock);
    pthread_cond_destroy(&s.changed);
}
END_TEST

START_TEST(stack_is_as_large_as_asked)
{
    bool is_done = false;
    pthread_t t;
    ck_assert(thread_try_start(&t, "deep", (size_t)4 << 20, need_stack, &is_done));
    pthread_join(t, NULL);
    ck_assert(is_done);
}
END_TEST

SUITE(thread)
{
    TESTS("thread", wakes_and_blocks_signals, wait_ends_at_its_time, stack_is_as_large_as_asked);
}
