/* Which events are sent, which are counted with an earlier one, and which are left out. IL-120 */
#include "reconcile/event_gate.h"

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "tests/lib/suite.h"

#define SECOND_MS 1000
#define MINUTE_MS (60 * SECOND_MS)
#define BURST 10

static struct event_gate *gate;
static int made; /* events so far, by which they are named */

static void setup(void)
{
    gate = event_gate_new();
    made = 0;
}

static void teardown(void)
{
    event_gate_free(gate);
}

/* The count that the cluster would be told: 1 = a new event, 0 = left out. */
static unsigned say(const char *uid, const char *note, int64_t now_ms)
{
    SCOPED(json_free_p) cJSON *event = json_object();
    SCOPED_FREE char *name = xasprintf("%s.%d", uid, made++);
    json_set_str(json_ensure_object(event, "metadata"), "name", name);
    json_set_str(json_ensure_object(event, "regarding"), "uid", uid);
    json_set_str(event, "reason", "R");
    json_set_str(event, "note", note);
    struct event_repeat repeat = {0};
    enum event_way way = event_gate_judge(gate, event, now_ms, &repeat);
    SCOPED_FREE char *before = repeat.name;
    ck_assert((way == EVENT_REPEAT) == (before != NULL));
    if (before)
        ck_assert_str_ne(before, name);
    return way == EVENT_NEW ? 1 : repeat.count;
}

START_TEST(test_series) /* IL-120 */
{
    ck_assert_uint_eq(say("a", "x", 0), 1);
    ck_assert_uint_eq(say("a", "y", 0), 1); /* other words */
    ck_assert_uint_eq(say("b", "x", 0), 1); /* of somebody else */
    ck_assert_uint_eq(say("a", "x", SECOND_MS), 2);
    ck_assert_uint_eq(say("a", "x", 6 * MINUTE_MS), 3);
    ck_assert_uint_eq(say("a", "y", 6 * MINUTE_MS), 2);
    ck_assert_uint_eq(say("a", "x", 13 * MINUTE_MS), 1); /* that was long ago */
    ck_assert_uint_eq(say("a", "x", 14 * MINUTE_MS), 2);
}
END_TEST

/* Something that flaps twenty times a second, with the same words and with ever new ones: one event
 * a second, and none of the repetitions is lost from the count. */
START_TEST(test_flood) /* IL-120 */
{
    const int seconds = 100, rate = 20;
    int told[2] = {0};
    unsigned count = 0;
    for (int i = 0; i < seconds * rate; i++) {
        SCOPED_FREE char *note = xasprintf("%d", i);
        int64_t now_ms = (int64_t)i * SECOND_MS / rate;
        told[1] += say("ever new", note, now_ms) > 0;
        unsigned n = say("the same", "x", now_ms);
        told[0] += n > 0;
        count = n > 0 ? n : count;
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_int_ge(told[i], seconds);
        ck_assert_int_le(told[i], seconds + BURST);
    }
    ck_assert_uint_gt(count, (unsigned)(seconds * rate - rate));
    ck_assert_uint_eq(say("another", "x", seconds * SECOND_MS), 1); /* whom that does not concern */
}
END_TEST

/* As many as a short life has come at once. */
START_TEST(test_burst)
{
    for (int i = 0; i < BURST; i++) {
        SCOPED_FREE char *note = xasprintf("%d", i);
        ck_assert_uint_eq(say("a", note, 0), 1);
    }
    ck_assert_uint_eq(say("a", "one more", 0), 0);
    ck_assert_uint_eq(say("a", "one more", SECOND_MS), 1);
    ck_assert_uint_eq(say("a", "and more", SECOND_MS), 0);
}
END_TEST

/* Many objects: the oldest are forgotten, so what is said of them again is new. */
START_TEST(test_ceiling)
{
    for (int i = 0; i < 5000; i++) {
        SCOPED_FREE char *uid = xasprintf("%d", i);
        ck_assert_uint_eq(say(uid, "x", i), 1);
    }
    ck_assert_uint_eq(say("4999", "x", 5000), 2);
    ck_assert_uint_eq(say("0", "x", 5000), 1);
}
END_TEST

SUITE(event_gate)
{
    TCase *tc = tcase_create("gate");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_series);
    tcase_add_test(tc, test_flood);
    tcase_add_test(tc, test_burst);
    tcase_add_test(tc, test_ceiling);
    suite_add_tcase(s, tc);
}
