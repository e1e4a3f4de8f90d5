/* Unit tests of base/mem. */
#include "apiserver/base/mem.h"

#include <signal.h>
#include <stdint.h>

#include "tests/lib/suite.h"

START_TEST(nothing_is_something)
{
    free(xmalloc(0));
    free(xcalloc(0, 8));
    free(xrealloc(NULL, 0));
    free(xreallocarray(NULL, 0, 8));
    free(xmemdup("", 0));
}
END_TEST

START_TEST(strings)
{
    SCOPED_FREE char *whole = xstrdup("abc"), *part = xstrndup("abcdef", 3),
                     *all = xstrndup("ab", 9);
    SCOPED_FREE char *none = xstrndup("ab", 0), *made = xasprintf("%s-%d", "x", 7);
    const char open[] = {'a', 'b'};
    SCOPED_FREE char *bounded = xstrndup(open, 2);
    ck_assert_str_eq(whole, "abc");
    ck_assert_str_eq(part, "abc");
    ck_assert_str_eq(all, "ab");
    ck_assert_str_eq(none, "");
    ck_assert_str_eq(made, "x-7");
    ck_assert_str_eq(bounded, "ab");
}
END_TEST

START_TEST(memdup_and_growing)
{
    const int in[] = {1, 2, 3};
    int *out = xmemdup(in, sizeof in);
    out = xreallocarray(out, 1000, sizeof *out);
    out[999] = 4;
    ck_assert_mem_eq(out, in, sizeof in);
    free(out);
    int *zeroed = xcalloc(4, sizeof *zeroed);
    ck_assert_int_eq(zeroed[3], 0);
    free(zeroed);
}
END_TEST

START_TEST(steal_leaves_nothing)
{
    SCOPED_FREE char *a = xstrdup("x");
    SCOPED_FREE char *b = steal(&a);
    ck_assert_ptr_null(a);
    ck_assert_str_eq(b, "x");
}
END_TEST

START_TEST(overflow_ends_the_process)
{
    free(xreallocarray(NULL, SIZE_MAX / 2, 4));
}
END_TEST

SUITE(mem)
{
    TESTS("mem", nothing_is_something, strings, memdup_and_growing, steal_leaves_nothing);
    TCase *dying = tcase_create("exhaustion");
    tcase_add_test_raise_signal(dying, overflow_ends_the_process, SIGABRT);
    suite_add_tcase(s, dying);
}
