#include "node/plan.h"

#include "apiserver/base/buf.h"
#include "apiserver/base/json.h"
#include "tests/lib/suite.h"

/* One row is a moment of a Pod: its containers, one letter each for kind (i s m) and for state
 * (- none, c created, r running, R running and started, u unhealthy, 0 ended well, 1 failed), and
 * what the plan makes of it: an act for each (. leave, + start, x stop, w back-off) and the
 * rest. */
#define NOW 10000000

enum { PAUSE = 1, TERMINATING = 2, LATE = 4 };
static const struct row {
    const char *what, *containers;
    enum restart_policy restart;
    unsigned flags;
    enum phase known;
    const char *acts, *rest; /* rest: phase, then: pause made, dropped, initialized, over */
} rows[] = {
    {"new", "m-", RESTART_ALWAYS, 0, PHASE_PENDING, ".", "Pending made initialized"},
    {"sandbox is there", "m-m-", RESTART_ALWAYS, PAUSE, PHASE_PENDING, "++", "Pending initialized"},
    {"runs", "mRmR", RESTART_ALWAYS, PAUSE, PHASE_PENDING, "..", "Running initialized"},
    {"half", "mRmc", RESTART_ALWAYS, PAUSE, PHASE_PENDING, ".+", "Pending initialized"},
    {"half again", "mRmc", RESTART_ALWAYS, PAUSE, PHASE_RUNNING, ".+", "Running initialized"},
    {"unhealthy", "mu", RESTART_ALWAYS, PAUSE, PHASE_RUNNING, "x", "Running initialized"},
    {"ended, always", "m0", RESTART_ALWAYS, PAUSE, PHASE_RUNNING, "+", "Running initialized"},
    {"failed, on failure", "m1", RESTART_ON_FAILURE, PAUSE, PHASE_RUNNING, "+",
     "Running initialized"},
    {"ended, on failure", "m0", RESTART_ON_FAILURE, PAUSE, PHASE_RUNNING, ".",
     "Succeeded dropped initialized over"},
    {"failed, never", "m1", RESTART_NEVER, PAUSE, PHASE_RUNNING, ".",
     "Failed dropped initialized over"},
    {"one of two ended", "m0mR", RESTART_NEVER, PAUSE, PHASE_RUNNING, "..", "Running initialized"},
    {"both ended", "m0m1", RESTART_NEVER, 0, PHASE_RUNNING, "..", "Failed initialized over"},
    {"final stays", "m-", RESTART_ALWAYS, 0, PHASE_SUCCEEDED, ".", "Succeeded initialized over"},
    {"first init", "i-i-m-", RESTART_ALWAYS, PAUSE, PHASE_PENDING, "+..", "Pending"},
    {"init runs", "irm-", RESTART_ALWAYS, PAUSE, PHASE_PENDING, "..", "Pending"},
    {"init ended", "i0i-m-", RESTART_ALWAYS, PAUSE, PHASE_PENDING, ".+.", "Pending"},
    {"inits ended", "i0i0m-", RESTART_ALWAYS, PAUSE, PHASE_PENDING, "..+", "Pending initialized"},
    {"init failed", "i1m-", RESTART_ALWAYS, PAUSE, PHASE_PENDING, "+.", "Pending"},
    {"init failed, never", "i1m-", RESTART_NEVER, PAUSE, PHASE_PENDING, "..",
     "Failed dropped over"},
    {"sidecar starts", "srm-", RESTART_ALWAYS, PAUSE, PHASE_PENDING, "..", "Pending"},
    {"sidecar started", "sRi-m-", RESTART_ALWAYS, PAUSE, PHASE_PENDING, ".+.", "Pending"},
    {"sidecar ended", "s0m-", RESTART_NEVER, PAUSE, PHASE_PENDING, "+.", "Pending"},
    {"sidecar fails later", "s1mR", RESTART_NEVER, PAUSE, PHASE_RUNNING, "+.",
     "Running initialized"},
    {"work done, sidecars", "sRsRm0", RESTART_NEVER, PAUSE, PHASE_RUNNING, ".x.",
     "Succeeded initialized"},
    {"last sidecar", "sRs0m0", RESTART_NEVER, PAUSE, PHASE_SUCCEEDED, "x..",
     "Succeeded initialized"},
    {"deleted", "sRmRmR", RESTART_ALWAYS, PAUSE | TERMINATING, PHASE_RUNNING, ".xx",
     "Running initialized"},
    {"deleted, mains ended", "sRm1", RESTART_ALWAYS, PAUSE | TERMINATING, PHASE_RUNNING, "x.",
     "Running initialized"},
    {"deleted, all ended", "s0m0", RESTART_ALWAYS, PAUSE | TERMINATING, PHASE_RUNNING, "..",
     "Succeeded dropped initialized over"},
    {"deleted before it began", "m-", RESTART_ALWAYS, TERMINATING, PHASE_PENDING, ".",
     "Failed initialized over"},
    {"deadline", "mR", RESTART_ALWAYS, PAUSE | LATE, PHASE_RUNNING, "x", "Failed initialized"},
    {"sandbox broke", "mR", RESTART_ALWAYS, 0, PHASE_RUNNING, "x", "Running initialized"},
    {"sandbox broke, nothing runs", "m1", RESTART_ALWAYS, 0, PHASE_RUNNING, ".",
     "Running made initialized"},
};

static struct instance instance_of(char state)
{
    return (struct instance){
        .state = state == 'c'                   ? INSTANCE_CREATED
                 : state == '0' || state == '1' ? INSTANCE_EXITED
                                                : INSTANCE_RUNNING,
        .exit_code = state == '1',
        .created_ms = NOW - 500000,
        .started_ms = NOW - 400000,
        .finished_ms = NOW - 300000,
    };
}

static void print_rest(const struct plan *p, struct buf *out)
{
    buf_puts(out, phase_names[p->phase]);
    buf_puts(out, p->makes_pause ? " made" : "");
    buf_puts(out, p->drops_pause ? " dropped" : "");
    buf_puts(out, p->is_initialized ? " initialized" : "");
    buf_puts(out, p->is_over ? " over" : "");
}

START_TEST(test_row)
{
    const struct row *row = &rows[_i];
    struct instance pause = {.state = INSTANCE_RUNNING, .created_ms = NOW - 600000};
    struct instance instances[8];
    struct member members[8] = {0};
    size_t n = strlen(row->containers) / 2;
    for (size_t i = 0; i < n; i++) {
        char kind = row->containers[2 * i], state = row->containers[2 * i + 1];
        instances[i] = instance_of(state);
        members[i] = (struct member){
            .name = "a",
            .kind = kind == 'i'   ? MEMBER_INIT
                    : kind == 's' ? MEMBER_SIDECAR
                                  : MEMBER_MAIN,
            .now = state == '-' ? NULL : &instances[i],
            .has_started = state == 'R' || state == 'u',
            .is_unhealthy = state == 'u',
        };
    }
    struct plan p = {
        .members = members,
        .n = n,
        .pause = row->flags & PAUSE ? &pause : NULL,
        .restart = row->restart,
        .known_phase = row->known,
        .is_terminating = row->flags & TERMINATING,
        .is_past_deadline = row->flags & LATE,
        .now_ms = NOW,
    };
    plan_make(&p);
    SCOPED(buf_fini) struct buf acts = {0};
    SCOPED(buf_fini) struct buf rest = {0};
    for (size_t i = 0; i < n; i++)
        buf_putc(&acts, members[i].is_waiting            ? 'w'
                        : members[i].act == MEMBER_START ? '+'
                        : members[i].act == MEMBER_STOP  ? 'x'
                                                         : '.');
    print_rest(&p, &rest);
    ck_assert_msg(strcmp(buf_cstr(&acts), row->acts) == 0, "%s: acts are %s", row->what,
                  buf_cstr(&acts));
    ck_assert_msg(strcmp(buf_cstr(&rest), row->rest) == 0, "%s: it is %s", row->what,
                  buf_cstr(&rest));
}
END_TEST

START_TEST(test_backoff_doubles_and_starts_over)
{
    ck_assert_int_eq(plan_backoff_ms(0), 0);
    ck_assert_int_eq(plan_backoff_ms(1), 0);
    ck_assert_int_eq(plan_backoff_ms(2), 10000);
    ck_assert_int_eq(plan_backoff_ms(3), 20000);
    ck_assert_int_eq(plan_backoff_ms(6), 160000);
    ck_assert_int_eq(plan_backoff_ms(7), 300000);
    ck_assert_int_eq(plan_backoff_ms(4000000000U), 300000);

    struct instance pause = {.state = INSTANCE_RUNNING};
    struct instance last = {.state = INSTANCE_EXITED,
                            .exit_code = 1,
                            .step = 2,
                            .created_ms = 1,
                            .started_ms = NOW - 5000,
                            .finished_ms = NOW - 4000};
    struct member m = {.name = "a", .kind = MEMBER_MAIN, .now = &last};
    struct plan p = {.members = &m, .n = 1, .pause = &pause, .now_ms = NOW};
    plan_make(&p);
    ck_assert_int_eq(m.act, MEMBER_LEAVE);
    ck_assert(m.is_waiting);
    ck_assert_int_eq(m.step, 3);
    ck_assert_int_eq(p.wait_ms, 16000);

    last.started_ms = NOW - 4000 - PLAN_BACKOFF_RESET_MS;
    m = (struct member){.name = "a", .kind = MEMBER_MAIN, .now = &last};
    plan_make(&p);
    ck_assert_int_eq(m.act, MEMBER_START);
    ck_assert_int_eq(m.step, 1);
}
END_TEST

START_TEST(test_trouble_delays_a_start)
{
    struct instance pause = {.state = INSTANCE_RUNNING};
    struct member m = {.name = "a", .kind = MEMBER_MAIN, .not_before_ms = NOW + 7};
    struct plan p = {.members = &m, .n = 1, .pause = &pause, .now_ms = NOW};
    plan_make(&p);
    ck_assert_int_eq(m.act, MEMBER_LEAVE);
    ck_assert_int_eq(p.wait_ms, 7);
}
END_TEST

START_TEST(test_a_new_sandbox_needs_its_init_containers_again)
{
    struct instance pause = {.state = INSTANCE_RUNNING, .created_ms = NOW};
    struct instance old[2] = {instance_of('0'), instance_of('1')};
    struct member members[2] = {{.name = "i", .kind = MEMBER_INIT, .now = &old[0]},
                                {.name = "m", .kind = MEMBER_MAIN, .now = &old[1]}};
    struct plan p = {.members = members, .n = 2, .pause = &pause, .now_ms = NOW};
    plan_make(&p);
    ck_assert_int_eq(members[0].act, MEMBER_START);
    ck_assert_int_eq(members[1].act, MEMBER_LEAVE);
}
END_TEST

START_TEST(test_members_are_read_in_order)
{
    SCOPED(json_free_p) cJSON *pod = NULL;
    ck_assert_int_eq(json_parse_str("{\"spec\":{\"restartPolicy\":\"OnFailure\",\"containers\":[{"
                                    "\"name\":\"m\"}],\"initContainers\":[{\"name\":\"i\"},{"
                                    "\"name\":\"s\",\"restartPolicy\":\"Always\"}]}}",
                                    &pod, NULL),
                     0);
    size_t n;
    SCOPED_FREE struct member *members = plan_members(pod, &n);
    ck_assert_uint_eq(n, 3);
    ck_assert_str_eq(members[0].name, "i");
    ck_assert_int_eq(members[1].kind, MEMBER_SIDECAR);
    ck_assert_int_eq(members[2].kind, MEMBER_MAIN);
    ck_assert_int_eq(plan_restart_policy(pod), RESTART_ON_FAILURE);
}
END_TEST

SUITE(plan)
{
    LOOP("moments", test_row, 0, ARRAY_LEN(rows));
    TESTS("starts", test_backoff_doubles_and_starts_over, test_trouble_delays_a_start,
          test_a_new_sandbox_needs_its_init_containers_again);
    TESTS("spec", test_members_are_read_in_order);
}
