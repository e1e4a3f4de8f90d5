/* When memory is given back, and that waiting for a signal ends with it. */
#include "apiserver/base/spare.h"

#include <unistd.h>

#include "tests/lib/suite.h"

#define MB ((size_t)1 << 20)

static bool is_due(struct spare *s, size_t resident_bytes, size_t used_bytes, int64_t cpu_ms)
{
    return spare_is_due(s, &(struct spare_state){resident_bytes, used_bytes, cpu_ms}, 1000);
}

START_TEST(given_back_once_until_more_is_free)
{
    struct spare s = {0};
    ck_assert(is_due(&s, 50 * MB, 8 * MB, 0));
    spare_given_back(&s, &(struct spare_state){24 * MB, 8 * MB, 0});
    ck_assert(!is_due(&s, 24 * MB, 8 * MB, 0));
    ck_assert(!is_due(&s, 32 * MB, 16 * MB, 0)); /* what came is in use */
    ck_assert(!is_due(&s, 33 * MB - 1, 16 * MB, 0));
    ck_assert(is_due(&s, 33 * MB, 16 * MB, 0));
    ck_assert(is_due(&s, 24 * MB, 7 * MB, 0)); /* nothing came, but something was freed */
}
END_TEST

START_TEST(the_more_is_in_use_the_more_must_be_free)
{
    struct spare s = {0};
    spare_given_back(&s, &(struct spare_state){816 * MB, 800 * MB, 0});
    ck_assert(!is_due(&s, 865 * MB, 800 * MB, 0));
    ck_assert(is_due(&s, 866 * MB, 800 * MB, 0));
    spare_given_back(&s, &(struct spare_state){700 * MB, 800 * MB, 0}); /* some of it elsewhere */
    ck_assert(!is_due(&s, 849 * MB, 800 * MB, 0));
    ck_assert(is_due(&s, 850 * MB, 800 * MB, 0));
}
END_TEST

START_TEST(not_while_there_is_work)
{
    struct spare s = {0};
    ck_assert(!is_due(&s, 50 * MB, 8 * MB, 250));
    ck_assert(!is_due(&s, 50 * MB, 8 * MB, 2250));
    ck_assert(is_due(&s, 50 * MB, 8 * MB, 2499));
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
    TESTS("spare", given_back_once_until_more_is_free, the_more_is_in_use_the_more_must_be_free,
          not_while_there_is_work, the_signal_that_came);
}
