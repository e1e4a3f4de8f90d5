/* When memory is given back, and that waiting for a signal ends with it. */
#include "apiserver/base/spare.h"

#include <unistd.h>

#include "tests/lib/suite.h"

#define MB ((size_t)1 << 20)

START_TEST(given_back_once_until_more_comes)
{
    struct spare s = {0};
    ck_assert(spare_is_due(&s, 50 * MB, 0, 1000));
    s.floor_bytes = 24 * MB; /* what was left */
    ck_assert(!spare_is_due(&s, 24 * MB, 0, 1000));
    ck_assert(!spare_is_due(&s, 27 * MB, 0, 1000));
    ck_assert(spare_is_due(&s, 28 * MB, 0, 1000));
    s.floor_bytes = 800 * MB; /* a part of much */
    ck_assert(!spare_is_due(&s, 899 * MB, 0, 1000));
    ck_assert(spare_is_due(&s, 900 * MB, 0, 1000));
    s.floor_bytes = 30 * MB;
    ck_assert(!spare_is_due(&s, 20 * MB, 0, 1000)); /* it shrank */
}
END_TEST

START_TEST(not_while_there_is_work)
{
    struct spare s = {0};
    ck_assert(!spare_is_due(&s, 50 * MB, 250, 1000));
    ck_assert(!spare_is_due(&s, 50 * MB, 2250, 1000));
    ck_assert(spare_is_due(&s, 50 * MB, 2499, 1000));
}
END_TEST

START_TEST(the_signal_that_came)
{
    struct spare s = {0};
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    kill(getpid(), SIGUSR1);
    ck_assert_int_eq(spare_wait_signal(&s, &signals), SIGUSR1);
}
END_TEST

SUITE(spare)
{
    TESTS("spare", given_back_once_until_more_comes, not_while_there_is_work, the_signal_that_came);
}
