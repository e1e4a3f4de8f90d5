#include "apiserver/base/queue.h"

#include <pthread.h>
#include <unistd.h>

#include "apiserver/base/clock.h"
#include "tests/lib/suite.h"

static int items[10000];

START_TEST(test_order_and_bound)
{
    struct queue *q = queue_new(100);
    for (int round = 0; round < 5; round++) { /* the ring wraps */
        for (int i = 0; i < 100; i++)
            ck_assert(queue_put(q, &items[i]));
        ck_assert(!queue_put(q, &items[100]));
        ck_assert_uint_eq(queue_len(q), 100);
        for (int i = 0; i < 63; i++)
            ck_assert_ptr_eq(queue_get(q, 0), &items[i]);
        for (int i = 63; i < 100; i++)
            ck_assert_ptr_eq(queue_get(q, -1), &items[i]);
    }
    queue_free(q);
    queue_free(NULL);
}
END_TEST

/* Growing while the oldest item is not in the first slot. */
START_TEST(test_grows_when_wrapped)
{
    struct queue *q = queue_new(1000);
    int put = 0, got = 0;
    for (; put < 16; put++)
        queue_put(q, &items[put]);
    for (; got < 10; got++)
        ck_assert_ptr_eq(queue_get(q, 0), &items[got]);
    for (; put < 500; put++)
        ck_assert(queue_put(q, &items[put]));
    for (; got < 500; got++)
        ck_assert_ptr_eq(queue_get(q, 0), &items[got]);
    queue_free(q);
}
END_TEST

START_TEST(test_timeout)
{
    struct queue *q = queue_new(1);
    int64_t before = clock_monotonic_ms(&clock_system);
    ck_assert_ptr_null(queue_get(q, 0));
    ck_assert_ptr_null(queue_get(q, 30));
    ck_assert_int_ge(clock_monotonic_ms(&clock_system) - before, 29);
    queue_free(q);
}
END_TEST

START_TEST(test_close_drains)
{
    struct queue *q = queue_new(2);
    queue_put(q, &items[0]);
    queue_close(q);
    ck_assert(!queue_put(q, &items[1]));
    ck_assert_ptr_eq(queue_get(q, -1), &items[0]);
    ck_assert_ptr_null(queue_get(q, -1));
    queue_free(q);
}
END_TEST

struct shared {
    struct queue *q;
    int n_got; /* atomic */
};

static void *take_all(void *ctx)
{
    struct shared *s = ctx;
    int *item;
    while ((item = queue_get(s->q, -1)) != NULL) {
        __atomic_fetch_add(item, 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&s->n_got, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void *put_all(void *ctx)
{
    struct shared *s = ctx;
    for (size_t i = 0; i < ARRAY_LEN(items); i++)
        while (!queue_put(s->q, &items[i]))
            sched_yield();
    return NULL;
}

START_TEST(test_threads)
{
    struct shared s = {.q = queue_new(64)};
    pthread_t takers[3], putters[2];
    for (size_t i = 0; i < ARRAY_LEN(takers); i++)
        pthread_create(&takers[i], NULL, take_all, &s);
    for (size_t i = 0; i < ARRAY_LEN(putters); i++)
        pthread_create(&putters[i], NULL, put_all, &s);
    for (size_t i = 0; i < ARRAY_LEN(putters); i++)
        pthread_join(putters[i], NULL);
    queue_close(s.q);
    for (size_t i = 0; i < ARRAY_LEN(takers); i++)
        pthread_join(takers[i], NULL);
    ck_assert_int_eq(s.n_got, 2 * (int)ARRAY_LEN(items));
    for (size_t i = 0; i < ARRAY_LEN(items); i++)
        ck_assert_int_eq(items[i], 2);
    queue_free(s.q);
}
END_TEST

struct taker {
    pthread_t thread;
    struct shared *shared;
    int n_got;
};

static void *take_and_count(void *ctx)
{
    struct taker *t = ctx;
    while (queue_get(t->shared->q, -1) != NULL) {
        t->n_got++;
        __atomic_fetch_add(&t->shared->n_got, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* Items that come one at a time go to few of the threads that wait: taken in turns, each of the
 * eight would get 25. */
START_TEST(test_last_one_to_wait_comes_first)
{
    struct shared s = {.q = queue_new(1)};
    struct taker takers[8] = {0};
    int most = 0;
    for (size_t i = 0; i < ARRAY_LEN(takers); i++) {
        takers[i].shared = &s;
        pthread_create(&takers[i].thread, NULL, take_and_count, &takers[i]);
    }
    for (int i = 0; i < 200; i++) {
        ck_assert(queue_put(s.q, &items[i]));
        while (__atomic_load_n(&s.n_got, __ATOMIC_RELAXED) <= i)
            usleep(100);
        usleep(1000); /* the taker waits again, as a rule */
    }
    queue_close(s.q);
    for (size_t i = 0; i < ARRAY_LEN(takers); i++) {
        pthread_join(takers[i].thread, NULL);
        most = takers[i].n_got > most ? takers[i].n_got : most;
    }
    ck_assert_int_gt(most, 50);
    queue_free(s.q);
}
END_TEST

SUITE(queue)
{
    TESTS("queue", test_order_and_bound, test_grows_when_wrapped, test_timeout, test_close_drains,
          test_threads, test_last_one_to_wait_comes_first);
}
