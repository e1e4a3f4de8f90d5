#include "node/tokens.h"

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "tests/lib/suite.h"

#define HOUR INT64_C(3600000)

static const struct {
    const char *name;
    int64_t life_ms, age_ms;
    bool is_due;
} ages[] = {
    {"new", HOUR, 0, false},
    {"before 80 %", HOUR, HOUR * 8 / 10 - 1, false},
    {"80 %", HOUR, HOUR * 8 / 10, true},
    {"past its end", HOUR, 2 * HOUR, true},
    {"the shortest there is", 600000, 480000, true},
    {"a week's, before a day", 7 * 24 * HOUR, 24 * HOUR - 1, false},
    {"a week's, after a day", 7 * 24 * HOUR, 24 * HOUR, true},
    {"a day's, at 80 %", 24 * HOUR, 24 * HOUR / 10 * 8, true},
};

START_TEST(test_due)
{
    struct token t = {.issued_ms = 5000, .expires_ms = 5000 + ages[_i].life_ms};
    ck_assert_msg(token_is_due(&t, 5000 + ages[_i].age_ms) == ages[_i].is_due, "%s", ages[_i].name);
}
END_TEST

struct issuer {
    int64_t now_ms;
    int asked;
    bool is_down;
};

static int ask(void *ctx, const cJSON *projection, struct token *ret, struct err *err)
{
    struct issuer *i = ctx;
    if (i->is_down)
        return err_set(err, ERR_UNAVAILABLE, "down");
    *ret = (struct token){
        .text = xasprintf("%s-%d", json_str_or(projection, "audience", "own"), ++i->asked),
        .issued_ms = i->now_ms,
        .expires_ms = i->now_ms + HOUR};
    return 0;
}

static void gives(struct tokens *t, struct issuer *i, const char *projection, const char *want)
{
    SCOPED(json_free_p) cJSON *p = NULL;
    SCOPED_FREE char *text = NULL;
    ck_assert_int_eq(json_parse(projection, strlen(projection), NULL, &p, NULL), 0);
    int rc = tokens_get(t, p, i->now_ms, ask, i, &text, NULL);
    if (want)
        ck_assert_str_eq(text, want);
    else
        ck_assert_int_eq(rc, -ERR_UNAVAILABLE);
}

START_TEST(test_kept)
{
    SCOPED(tokens_fini) struct tokens t = {0};
    struct issuer i = {.now_ms = HOUR};
    gives(&t, &i, "{}", "own-1");
    gives(&t, &i, "{\"audience\": \"a\"}", "a-2");
    gives(&t, &i, "{\"expirationSeconds\": 3600}", "own-1");
    gives(&t, &i, "{\"expirationSeconds\": 600}", "own-3");
    i.now_ms += HOUR * 8 / 10 - 1;
    gives(&t, &i, "{}", "own-1");
    i.now_ms++;
    gives(&t, &i, "{}", "own-4");
    gives(&t, &i, "{}", "own-4");
    gives(&t, &i, "{\"audience\": \"a\"}", "a-5");
}
END_TEST

START_TEST(test_until_its_end)
{
    SCOPED(tokens_fini) struct tokens t = {0};
    struct issuer i = {.now_ms = HOUR, .is_down = true};
    gives(&t, &i, "{}", NULL);
    i.is_down = false;
    gives(&t, &i, "{}", "own-1");
    i.is_down = true;
    i.now_ms += HOUR - 1;
    gives(&t, &i, "{}", "own-1");
    i.now_ms++;
    gives(&t, &i, "{}", NULL);
    i.is_down = false;
    gives(&t, &i, "{}", "own-2");
}
END_TEST

SUITE(tokens)
{
    LOOP("due", test_due, 0, ARRAY_LEN(ages));
    TESTS("kept", test_kept, test_until_its_end);
}
