#include "apiserver/base/map.h"

#include <stdio.h>

#include "apiserver/base/rand.h"
#include "apiserver/base/str.h"
#include "tests/lib/suite.h"

#define N 2000
static char keys[N][32]; /* in byte order */
static int values[N];

static void make_keys(void)
{
    for (int i = 0; i < N; i++)
        snprintf(keys[i], sizeof keys[i], "/registry/ns/%06d", i);
}

struct seen {
    int n, stop_after;
    const char *last;
    bool is_sorted;
};

static bool see(void *ctx, const char *key, void *value)
{
    struct seen *s = ctx;
    ck_assert_ptr_nonnull(value);
    s->is_sorted = s->is_sorted && (s->last == NULL || strcmp(s->last, key) < 0);
    s->last = key;
    return ++s->n != s->stop_after;
}

START_TEST(test_map)
{
    struct map *m = map_new();
    ck_assert_ptr_null(map_get(m, "a"));
    ck_assert_ptr_null(map_del(m, "a"));
    ck_assert_ptr_null(map_put(m, "a", &values[0]));
    ck_assert_ptr_eq(map_put(m, "a", &values[1]), &values[0]);
    ck_assert_ptr_null(map_put(m, "", &values[2]));
    ck_assert_uint_eq(map_len(m), 2);
    ck_assert_ptr_eq(map_get(m, "a"), &values[1]);
    ck_assert_ptr_eq(map_get(m, ""), &values[2]);
    ck_assert_ptr_eq(map_del(m, "a"), &values[1]);
    ck_assert_ptr_null(map_get(m, "a"));
    ck_assert_uint_eq(map_len(m), 1);
    map_free(m);
    map_free(NULL);
}
END_TEST

START_TEST(test_omap)
{
    struct omap *m = omap_new();
    ck_assert_ptr_null(omap_get(m, "a"));
    ck_assert_ptr_null(omap_del(m, "a"));
    ck_assert_ptr_null(omap_put(m, "b", &values[0]));
    ck_assert_ptr_eq(omap_put(m, "b", &values[1]), &values[0]);
    omap_put(m, "", &values[2]);
    omap_put(m, "\xff", &values[3]);
    omap_put(m, "a", &values[4]);
    struct seen s = {.is_sorted = true};
    omap_each(m, NULL, see, &s);
    ck_assert_int_eq(s.n, 4);
    ck_assert(s.is_sorted);
    s = (struct seen){0};
    omap_each(m, "aa", see, &s);
    ck_assert_int_eq(s.n, 2);
    s = (struct seen){.stop_after = 1};
    omap_each(m, "a", see, &s);
    ck_assert_str_eq(s.last, "a");
    ck_assert_ptr_eq(omap_del(m, "b"), &values[1]);
    ck_assert_uint_eq(omap_len(m), 3);
    omap_free(m);
    omap_free(NULL);
}
END_TEST

/* Both maps against a plain array, through growing, shrinking and growing again. */
START_TEST(test_random_against_model)
{
    struct map *m = map_new();
    struct omap *o = omap_new();
    int *model[N] = {0};
    size_t len = 0;
    struct rand_fixed r;
    rand_fixed_init(&r, 11);
    make_keys();
    for (int step = 0; step < 60000; step++) {
        int i = (int)rand_below(&r.r, N);
        bool is_filling = (step / 15000) % 2 == 0;
        int *value = rand_below(&r.r, 10) < (is_filling ? 8 : 2) ? &values[step % N] : NULL;
        void *old = value != NULL ? map_put(m, keys[i], value) : map_del(m, keys[i]);
        void *old_o = value != NULL ? omap_put(o, keys[i], value) : omap_del(o, keys[i]);
        ck_assert_ptr_eq(old, model[i]);
        ck_assert_ptr_eq(old_o, model[i]);
        len = len + (value != NULL) - (model[i] != NULL);
        model[i] = value;
        ck_assert_uint_eq(map_len(m), len);
        ck_assert_uint_eq(omap_len(o), len);
    }
    for (int i = 0; i < N; i++) {
        ck_assert_ptr_eq(map_get(m, keys[i]), model[i]);
        ck_assert_ptr_eq(omap_get(o, keys[i]), model[i]);
    }
    struct seen s = {.is_sorted = true}, unsorted = {0};
    omap_each(o, NULL, see, &s);
    map_each(m, see, &unsorted);
    ck_assert_uint_eq((size_t)s.n, len);
    ck_assert_uint_eq((size_t)unsorted.n, len);
    ck_assert(s.is_sorted);
    map_free(m);
    omap_free(o);
}
END_TEST

START_TEST(test_many)
{
    struct map *m = map_new();
    struct omap *o = omap_new();
    char key[32];
    for (int i = 0; i < 100000; i++) {
        snprintf(key, sizeof key, "/k/%05d", i * 7919 % 100000);
        ck_assert_ptr_null(map_put(m, key, &values[0]));
        ck_assert_ptr_null(omap_put(o, key, &values[0]));
    }
    struct seen s = {.is_sorted = true};
    omap_each(o, "/k/40000", see, &s);
    ck_assert(s.is_sorted);
    ck_assert_int_eq(s.n, 60000);
    for (int i = 0; i < 100000; i++) {
        snprintf(key, sizeof key, "/k/%05d", i);
        ck_assert_ptr_eq(map_del(m, key), &values[0]);
        ck_assert_ptr_eq(omap_del(o, key), &values[0]);
    }
    ck_assert_uint_eq(map_len(m) + omap_len(o), 0);
    map_free(m);
    omap_free(o);
}
END_TEST

SUITE(map)
{
    TESTS("map", test_map, test_omap, test_random_against_model, test_many);
}
