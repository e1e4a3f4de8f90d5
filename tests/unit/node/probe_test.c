#include "node/probe.h"

#include "apiserver/base/json.h"
#include "tests/lib/suite.h"

/* Results as letters (p passes, f fails), and the verdict after each. */
static const struct {
    enum probe_kind kind;
    int successes, failures;
    const char *results, *verdicts; /* + passes, - fails; before any result first */
} rows[] = {
    {PROBE_READINESS, 1, 3, "pffpfff", "-++++++-"},
    {PROBE_READINESS, 2, 1, "ppfpp", "--+--+"},
    {PROBE_LIVENESS, 1, 2, "fpff", "++++-"},
    {PROBE_STARTUP, 1, 3, "ffp", "---+"},
    {PROBE_STARTUP, 1, 2, "ff", "---"},
};

START_TEST(test_row)
{
    struct probe probe = {.spec = (const cJSON *)&rows[_i], /* that there is one */
                          .successes = rows[_i].successes,
                          .failures = rows[_i].failures};
    struct probe_state state = {0};
    for (size_t i = 0; rows[_i].verdicts[i]; i++) {
        if (i > 0)
            probe_take(&probe, &state, rows[_i].results[i - 1] == 'p');
        ck_assert_msg(probe_passes(&probe, &state, rows[_i].kind) == (rows[_i].verdicts[i] == '+'),
                      "after %zu results", i);
    }
}
END_TEST

START_TEST(test_a_change_is_told_once)
{
    struct probe probe = {.successes = 1, .failures = 2};
    struct probe_state state = {0};
    ck_assert(probe_take(&probe, &state, true));
    ck_assert(!probe_take(&probe, &state, true));
    ck_assert(!probe_take(&probe, &state, false));
    ck_assert(probe_take(&probe, &state, false));
    ck_assert_int_eq(state.verdict, PROBE_FAILS);
    ck_assert(!probe_take(&probe, &state, false));
}
END_TEST

START_TEST(test_spec_is_read_with_its_defaults)
{
    SCOPED(json_free_p) cJSON *c = NULL;
    ck_assert_int_eq(json_parse_str("{\"livenessProbe\":{\"periodSeconds\":2,\"timeoutSeconds\":-1,"
                                    "\"terminationGracePeriodSeconds\":0}}",
                                    &c, NULL),
                     0);
    struct probe probe = probe_read(c, PROBE_LIVENESS);
    ck_assert(probe.spec != NULL);
    ck_assert_int_eq(probe.period_ms, 2000);
    ck_assert_int_eq(probe.timeout_ms, 1000);
    ck_assert_int_eq(probe.delay_ms, 0);
    ck_assert_int_eq(probe.failures, 3);
    ck_assert_int_eq(probe.grace_ms, 0);
    struct probe none = probe_read(c, PROBE_READINESS);
    struct probe_state state = {0};
    ck_assert(none.spec == NULL);
    ck_assert_int_eq(none.grace_ms, -1);
    ck_assert(probe_passes(&none, &state, PROBE_READINESS));
}
END_TEST

SUITE(probe)
{
    LOOP("verdicts", test_row, 0, ARRAY_LEN(rows));
    TESTS("probe", test_a_change_is_told_once, test_spec_is_read_with_its_defaults);
}
