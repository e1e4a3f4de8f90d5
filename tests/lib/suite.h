/* What every unit test shares: a main that runs one Check suite and reports TAP to the runner.
 *
 *     SUITE(json) { TESTS("parse", test_a, test_b); LOOP("table", test_row, 0, ARRAY_LEN(rows)); }
 *
 * Check forks each test, so a leak or a crash is charged to the test that made it. */
#pragma once

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "apiserver/base/mem.h"

int suite_run(const char *name, void (*fill)(Suite *s));
void suite_add(Suite *s, const char *tcase, const TTest *const *tests, size_t n);

#define SUITE(name)                                                                                \
    static void suite_fill(Suite *s);                                                              \
    int main(void)                                                                                 \
    {                                                                                              \
        return suite_run(#name, suite_fill);                                                       \
    }                                                                                              \
    static void suite_fill(Suite *s)
#define TESTS(tcase, ...)                                                                          \
    do {                                                                                           \
        const TTest *const tests_[] = {__VA_ARGS__};                                               \
        suite_add(s, tcase, tests_, ARRAY_LEN(tests_));                                            \
    } while (0)
#define LOOP(tcase, test, from, to)                                                                \
    do {                                                                                           \
        TCase *tc_ = tcase_create(tcase);                                                          \
        tcase_set_timeout(tc_, 60);                                                                \
        tcase_add_loop_test(tc_, test, (int)(from), (int)(to));                                    \
        suite_add_tcase(s, tc_);                                                                   \
    } while (0)
