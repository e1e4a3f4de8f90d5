#include "tests/lib/suite.h"

int suite_run(const char *name, void (*fill)(Suite *s))
{
    Suite *s = suite_create(name);
    fill(s);
    SRunner *r = srunner_create(s);
    /* CK_TAP_LOG_FILE_NAME, CK_VERBOSITY, CK_RUN_CASE come from the environment */
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

void suite_add(Suite *s, const char *tcase, const TTest *const *tests, size_t n)
{
    TCase *tc = tcase_create(tcase);
    tcase_set_timeout(tc, 60); /* s; sanitizers and two busy cores are slow */
    for (size_t i = 0; i < n; i++)
        tcase_add_test(tc, tests[i]);
    suite_add_tcase(s, tc);
}
