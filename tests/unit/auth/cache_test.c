/* The cache of reviews: age, size, one question at a time for one key. */
#include "apiserver/auth/cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "apiserver/base/json.h"
#include "tests/lib/suite.h"

#define TTL_MS 10000

static struct clock_fake now;
static atomic_int asked;
static bool fails;

static int ask(void *ctx, cJSON **ret, struct err *err)
{
    int n = atomic_fetch_add(&asked, 1) + 1;
    if (ctx)
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    if (fails)
        return err_set(err, ERR_TIMEOUT, "too late %d", n);
    *ret = json_object();
    json_set_int(*ret, "n", n);
    return 0;
}

static void key_of(int i, char key[CACHE_KEY_SIZE])
{
    snprintf(key, CACHE_KEY_SIZE, "%064d", i);
}

/* The n of the answer, or the negative code. */
static int get(struct cache *c, int i, void *slow)
{
    char key[CACHE_KEY_SIZE];
    SCOPED(json_free_p) cJSON *tree = NULL;
    key_of(i, key);
    int r = cache_get(c, key, ask, slow, &tree, NULL);
    return r < 0 ? r : (int)json_i64_or(tree, "n", 0);
}

static struct cache *start(size_t max)
{
    clock_fake_init(&now, 1000);
    atomic_store(&asked, 0);
    fails = false;
    return cache_new(max, TTL_MS, &now.clock);
}

START_TEST(test_age)
{
    struct cache *c = start(10);
    ck_assert_int_eq(get(c, 1, NULL), 1);
    clock_fake_advance(&now, TTL_MS - 1);
    ck_assert_int_eq(get(c, 1, NULL), 1);
    clock_fake_advance(&now, 1);
    ck_assert_int_eq(get(c, 1, NULL), 2);
    ck_assert_uint_eq(cache_len(c), 1);
    cache_free(c);
}
END_TEST

START_TEST(test_size)
{
    struct cache *c = start(3);
    for (int i = 1; i <= 3; i++)
        ck_assert_int_eq(get(c, i, NULL), i);
    ck_assert_int_eq(get(c, 1, NULL), 1); /* now 2 is the one not used for longest */
    ck_assert_int_eq(get(c, 4, NULL), 4);
    ck_assert_uint_eq(cache_len(c), 3);
    ck_assert_int_eq(get(c, 1, NULL), 1);
    ck_assert_int_eq(get(c, 3, NULL), 3);
    ck_assert_int_eq(get(c, 2, NULL), 5);
    cache_free(c);
}
END_TEST

START_TEST(test_failures_are_not_kept)
{
    struct cache *c = start(3);
    struct err err = {0};
    char key[CACHE_KEY_SIZE];
    cJSON *tree = NULL;
    fails = true;
    key_of(1, key);
    ck_assert_int_eq(cache_get(c, key, ask, NULL, &tree, &err), -ERR_TIMEOUT);
    ck_assert_str_eq(err_text(&err), "too late 1");
    ck_assert_uint_eq(cache_len(c), 0);
    fails = false;
    ck_assert_int_eq(get(c, 1, NULL), 2);
    err_fini(&err);
    cache_free(c);
}
END_TEST

static void *get_slowly(void *arg)
{
    return (void *)(intptr_t)get(arg, 7, arg);
}

static void get_at_once(struct cache *c, int want)
{
    pthread_t t[8];
    void *r;
    for (size_t i = 0; i < ARRAY_LEN(t); i++)
        pthread_create(&t[i], NULL, get_slowly, c);
    for (size_t i = 0; i < ARRAY_LEN(t); i++) {
        pthread_join(t[i], &r);
        ck_assert_int_eq((int)(intptr_t)r, want);
    }
}

START_TEST(test_one_question_at_a_time) /* IL-137 */
{
    struct cache *c = start(3);
    get_at_once(c, 1);
    ck_assert_int_eq(atomic_load(&asked), 1);
    clock_fake_advance(&now, TTL_MS);
    fails = true;
    get_at_once(c, -ERR_TIMEOUT);
    ck_assert_int_le(atomic_load(&asked), 9); /* a thread that came late asks for itself */
    cache_free(c);
}
END_TEST

static void *get_many(void *arg)
{
    for (int i = 0; i < 2000; i++)
        get(arg, i * 7 % 13, NULL);
    return NULL;
}

START_TEST(test_many_threads)
{
    struct cache *c = start(5);
    pthread_t t[6];
    for (size_t i = 0; i < ARRAY_LEN(t); i++)
        pthread_create(&t[i], NULL, get_many, c);
    for (size_t i = 0; i < ARRAY_LEN(t); i++)
        pthread_join(t[i], NULL);
    ck_assert_uint_eq(cache_len(c), 5);
    cache_free(c);
}
END_TEST

SUITE(cache)
{
    TESTS("cache", test_age, test_size, test_failures_are_not_kept, test_one_question_at_a_time,
          test_many_threads);
}
