/* Threads that have nothing to do end, and come again as many as there are items. */
#include "apiserver/http/workers.h"

#include <dirent.h>
#include <pthread.h>
#include <unistd.h>

#include "tests/lib/suite.h"

#define ASKED_FOR 8
#define KEPT 2
#define WAIT_S 60
#define POLL_US 20000

static int count_threads(void)
{
    int n = 0;
    DIR *dir = opendir("/proc/self/task");
    ck_assert_ptr_nonnull(dir);
    for (const struct dirent *e; (e = readdir(dir)) != NULL;)
        n += e->d_name[0] != '.';
    closedir(dir);
    return n;
}

/* The kernel lists one a moment longer than it can be waited for. */
static void become(int n_threads)
{
    for (int left_us = WAIT_S * 1000000; count_threads() > n_threads && left_us > 0;
         left_us -= POLL_US)
        usleep(POLL_US);
    ck_assert_int_eq(count_threads(), n_threads);
}

struct visitor {
    struct work work; /* first */
    pthread_barrier_t *all;
};

/* Ends when all are at it at once. */
static void meet(struct work *work)
{
    pthread_barrier_wait(((struct visitor *)work)->all);
}

static void meet_with(struct workers *w, pthread_barrier_t *all, struct visitor *v, unsigned n)
{
    pthread_barrier_init(all, NULL, n + 1);
    for (unsigned i = 0; i < n; i++) {
        v[i] = (struct visitor){.work.run = meet, .all = all};
        ck_assert(workers_put(w, &v[i].work));
    }
    pthread_barrier_wait(all);
}

START_TEST(few_while_there_is_little_to_do)
{
    pthread_barrier_t first, second;
    struct visitor some[ASKED_FOR], many[3 * ASKED_FOR];
    struct workers *w = workers_new(ASKED_FOR, ARRAY_LEN(many));
    int others = count_threads() - ASKED_FOR;
    become(others + KEPT);
    meet_with(w, &first, some, ARRAY_LEN(some));
    meet_with(w, &second, many, ARRAY_LEN(many));
    workers_free(w);
    become(others);
    pthread_barrier_destroy(&first);
    pthread_barrier_destroy(&second);
}
END_TEST

SUITE(workers)
{
    TESTS("workers", few_while_there_is_little_to_do);
}
