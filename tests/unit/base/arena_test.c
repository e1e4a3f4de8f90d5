/* Unit tests of base/arena: alignment, zeroing, and that allocations do not overlap. */
#include "apiserver/base/arena.h"

#include <stdint.h>

#include "tests/lib/suite.h"

START_TEST(aligned_and_zeroed)
{
    SCOPED(arena_fini) struct arena a = {0};
    for (size_t n = 0; n < 3000; n += 7) {
        unsigned char *p = arena_alloc(&a, n);
        ck_assert_uint_eq((uintptr_t)p % _Alignof(max_align_t), 0);
        for (size_t i = 0; i < n; i++)
            ck_assert_uint_eq(p[i], 0);
        memset(p, 0xff, n);
    }
}
END_TEST

START_TEST(neighbours_keep_their_bytes)
{
    SCOPED(arena_fini) struct arena a = {0};
    char *parts[2000];
    for (int i = 0; i < 2000; i++)
        parts[i] = arena_printf(&a, "part %d %s", i, i % 100 == 0 ? "hundred" : "");
    for (int i = 0; i < 2000; i++) {
        SCOPED_FREE char *want = xasprintf("part %d %s", i, i % 100 == 0 ? "hundred" : "");
        ck_assert_str_eq(parts[i], want);
    }
}
END_TEST

/* Something large must not waste the chunk in use. */
START_TEST(large_ones_get_their_own_chunk)
{
    SCOPED(arena_fini) struct arena a = {0};
    char *large_first = arena_alloc(&a, 100000);
    large_first[99999] = 1;
    char *small = arena_strdup(&a, "small");
    size_t used = a.used;
    char *large = arena_alloc(&a, (size_t)1 << 20);
    large[((size_t)1 << 20) - 1] = 1;
    ck_assert_uint_eq(a.used, used);
    char *next = arena_strdup(&a, "next");
    ck_assert_ptr_eq(next, small + 16);
    ck_assert_str_eq(small, "small");
}
END_TEST

START_TEST(strings)
{
    SCOPED(arena_fini) struct arena a = {0};
    ck_assert_str_eq(arena_strdup(&a, ""), "");
    ck_assert_str_eq(arena_strndup(&a, "abcdef", 2), "ab");
    ck_assert_str_eq(arena_strndup(&a, NULL, 0), "");
    ck_assert_str_eq(arena_printf(&a, "%05d", 42), "00042");
}
END_TEST

START_TEST(fini_leaves_it_usable)
{
    struct arena a = {0};
    arena_alloc(&a, 10);
    arena_fini(&a);
    ck_assert_ptr_null(a.chunks);
    arena_alloc(&a, 10);
    arena_fini(&a);
    arena_fini(&a);
    arena_fini(NULL);
}
END_TEST

SUITE(arena)
{
    TESTS("arena", aligned_and_zeroed, neighbours_keep_their_bytes, large_ones_get_their_own_chunk,
          strings, fini_leaves_it_usable);
}
