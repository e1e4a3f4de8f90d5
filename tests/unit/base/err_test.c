/* Unit tests of base/err: codes, texts, causes, and the ceilings on all of them. */
#include "apiserver/base/err.h"

#include "tests/lib/suite.h"

START_TEST(set_replaces_everything)
{
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(err_cause(&err, "FieldValueRequired", "spec.a", "Required value"),
                     -ERR_INVALID);
    err_details(&err, "agents.x-k8s.io", "Sandbox", "a", "u-1");
    err.retry_after_s = 3;
    ck_assert_int_eq(err_set(&err, ERR_CONFLICT, "revision %d is not current", 7), -ERR_CONFLICT);
    ck_assert_str_eq(err_text(&err), "revision 7 is not current");
    ck_assert_uint_eq(err.n_causes, 0);
    ck_assert_ptr_null(err.name);
    ck_assert_int_eq(err.retry_after_s, 0);
    ck_assert(!err.has_details);
}
END_TEST

START_TEST(set_may_quote_its_own_message)
{
    SCOPED(err_fini) struct err err = {0};
    err_set(&err, ERR_NOT_FOUND, "no such key");
    err_set(&err, ERR_INTERNAL, "gave up: %s", err_text(&err));
    ck_assert_str_eq(err_text(&err), "gave up: no such key");
}
END_TEST

START_TEST(wrap_keeps_code_and_details)
{
    SCOPED(err_fini) struct err err = {0};
    err_set(&err, ERR_TIMEOUT, "no answer");
    err_details(&err, NULL, "Sandbox", "a", NULL);
    err.retry_after_s = 2;
    ck_assert_int_eq(err_wrap(&err, "reading %s", "/a/b"), -ERR_TIMEOUT);
    ck_assert_str_eq(err_text(&err), "reading /a/b: no answer");
    ck_assert_str_eq(err.kind, "Sandbox");
    ck_assert_int_eq(err.retry_after_s, 2);
}
END_TEST

START_TEST(wrap_without_error)
{
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(err_wrap(&err, "reading"), -ERR_UNKNOWN);
    ck_assert_str_eq(err_text(&err), "reading");
}
END_TEST

START_TEST(null_gives_the_code)
{
    ck_assert_int_eq(err_set(NULL, ERR_FORBIDDEN, "no"), -ERR_FORBIDDEN);
    ck_assert_int_eq(err_wrap(NULL, "asking"), -ERR_FORBIDDEN);
    ck_assert_int_eq(err_details(NULL, NULL, NULL, NULL, NULL), -ERR_FORBIDDEN);
    ck_assert_int_eq(err_cause(NULL, "x", NULL, "y"), -ERR_INVALID);
    err_fini(NULL);
    ck_assert_str_eq(err_text(NULL), "");
}
END_TEST

START_TEST(causes_are_kept_in_order)
{
    SCOPED(err_fini) struct err err = {0};
    err_set(&err, ERR_BAD_REQUEST, "twice wrong");
    ck_assert_int_eq(err_cause(&err, "A", "spec.a", "bad %d", 1), -ERR_BAD_REQUEST);
    err_cause(&err, "B", NULL, "bad %d", 2);
    ck_assert_uint_eq(err.n_causes, 2);
    ck_assert_str_eq(err.causes[0].reason, "A");
    ck_assert_str_eq(err.causes[0].field, "spec.a");
    ck_assert_str_eq(err.causes[0].message, "bad 1");
    ck_assert_str_eq(err.causes[1].field, "");
    ck_assert_str_eq(err_text(&err), "twice wrong");
}
END_TEST

START_TEST(cause_alone_is_the_text)
{
    SCOPED(err_fini) struct err err = {0};
    err_cause(&err, "A", "spec.a", "Required value");
    ck_assert_str_eq(err_text(&err), "Required value");
}
END_TEST

START_TEST(causes_are_bounded_in_number)
{
    SCOPED(err_fini) struct err err = {0};
    for (int i = 0; i < ERR_CAUSES_MAX + 50; i++)
        err_cause(&err, "A", "spec.a", "bad %d", i);
    ck_assert_uint_eq(err.n_causes, ERR_CAUSES_MAX);
    ck_assert_str_eq(err.causes[ERR_CAUSES_MAX - 1].message, "bad 999");
}
END_TEST

START_TEST(causes_are_bounded_in_bytes)
{
    SCOPED(err_fini) struct err err = {0};
    SCOPED_FREE char *text = xmalloc(100001);
    memset(text, 'x', 100000);
    text[100000] = '\0';
    for (int i = 0; i < ERR_CAUSES_MAX; i++)
        err_cause(&err, "A", text, "%s", text);
    ck_assert_uint_gt(err.n_causes, 10);
    ck_assert_uint_lt(err.n_causes, 40);
    ck_assert_uint_eq(strlen(err.causes[0].message), 65536);
    ck_assert_uint_eq(strlen(err.causes[0].field), 65536);
}
END_TEST

/* A long message is cut between characters, also after wrapping. */
START_TEST(message_is_bounded)
{
    SCOPED(err_fini) struct err err = {0};
    SCOPED_FREE char *text = xmalloc(90001);
    for (size_t i = 0; i < 90000; i += 3)
        memcpy(text + i, "\xe2\x82\xac", 3);
    text[90000] = '\0';
    err_set(&err, ERR_BAD_REQUEST, "%s", text);
    ck_assert_uint_eq(strlen(err_text(&err)), 65535); /* 65536 is no multiple of three */
    err_wrap(&err, "ab");
    ck_assert_uint_eq(strlen(err_text(&err)), 65536 - 65532 % 3);
    ck_assert_mem_eq(err_text(&err), "ab: \xe2\x82\xac", 7);
    err_wrap(&err, "%s", text);
    ck_assert_uint_eq(strlen(err_text(&err)), 65536);
}
END_TEST

START_TEST(move_empties_the_source)
{
    SCOPED(err_fini) struct err to = {0};
    struct err from = {0};
    err_set(&to, ERR_INTERNAL, "old");
    err_set(&from, ERR_EXPIRED, "new");
    from.continue_token = xstrdup("t");
    ck_assert_int_eq(err_move(&to, &from), -ERR_EXPIRED);
    ck_assert_str_eq(err_text(&to), "new");
    ck_assert_str_eq(to.continue_token, "t");
    ck_assert_int_eq(from.code, ERR_NONE);
    ck_assert_ptr_null(from.message);
    ck_assert_int_eq(err_move(&to, &to), -ERR_EXPIRED);
    ck_assert_str_eq(err_text(&to), "new");
}
END_TEST

START_TEST(move_to_null_frees)
{
    struct err from = {0};
    err_set(&from, ERR_EXPIRED, "new");
    ck_assert_int_eq(err_move(NULL, &from), -ERR_EXPIRED);
    ck_assert_ptr_null(from.message);
}
END_TEST

START_TEST(every_code_has_a_row)
{
    for (int c = ERR_NONE + 1; c < ERR_CODES; c++) {
        ck_assert_int_ge(err_status((enum err_code)c), 400);
        ck_assert(strncmp(err_name((enum err_code)c), "ERR_", 4) == 0);
        ck_assert_ptr_nonnull(err_reason((enum err_code)c));
    }
    ck_assert_int_eq(err_status(ERR_NONE), 200);
    ck_assert_int_eq(err_status((enum err_code)12345), 500);
}
END_TEST

static const struct {
    int status;
    const char *reason;
    enum err_code code;
} statuses[] = {
    {404, "NotFound", ERR_NOT_FOUND},
    {409, "AlreadyExists", ERR_ALREADY_EXISTS},
    {409, "Conflict", ERR_CONFLICT},
    {409, "", ERR_CONFLICT},
    {410, "Gone", ERR_EXPIRED},
    {410, "Expired", ERR_EXPIRED},
    {500, "InternalError", ERR_INTERNAL},
    {500, "ServerTimeout", ERR_SERVER_TIMEOUT},
    {500, "", ERR_UNKNOWN},
    {500, NULL, ERR_UNKNOWN},
    {503, NULL, ERR_UNAVAILABLE},
    {503, "Strange", ERR_UNAVAILABLE},
    {504, "Timeout", ERR_TIMEOUT},
    {429, NULL, ERR_TOO_MANY},
    {418, NULL, ERR_UNKNOWN},
    {502, NULL, ERR_UNKNOWN},
};
START_TEST(from_status)
{
    ck_assert_msg(err_from_status(statuses[_i].status, statuses[_i].reason) == statuses[_i].code,
                  "%d %s", statuses[_i].status, statuses[_i].reason ? statuses[_i].reason : "-");
}
END_TEST

START_TEST(invalid)
{
    SCOPED(err_fini) struct err causes = {0}, err = {0};
    ck_assert_int_eq(err_invalid(&causes, "g", "Kind", "n", &err), 0);
    ck_assert_int_eq(err.code, ERR_NONE);
    err_cause(&causes, "FieldValueRequired", "spec.a", "Required value");
    ck_assert_int_eq(err_invalid(&causes, "", "Kind", "a\"b", &err), -ERR_INVALID);
    ck_assert_str_eq(err.message, "Kind \"a\\\"b\" is invalid: spec.a: Required value");
    ck_assert_str_eq(err.kind, "Kind");
    ck_assert_uint_eq(err.n_causes, 1);
    ck_assert_uint_eq(causes.n_causes, 0);
    for (int i = 0; i < 2; i++) { /* what is said twice is in the text once */
        err_cause(&causes, "FieldValueRequired", "spec.a", "Required value");
        err_cause(&causes, "FieldValueInvalid", "spec.b", "no");
    }
    err_invalid(&causes, "g", "Kind", "n", &err);
    ck_assert_str_eq(err.message, "Kind.g \"n\" is invalid: [spec.a: Required value, spec.b: no]");
    ck_assert_uint_eq(err.n_causes, 4);
}
END_TEST

SUITE(err)
{
    TESTS("message", set_replaces_everything, set_may_quote_its_own_message,
          wrap_keeps_code_and_details, wrap_without_error, null_gives_the_code, message_is_bounded);
    TESTS("causes", causes_are_kept_in_order, cause_alone_is_the_text, causes_are_bounded_in_number,
          causes_are_bounded_in_bytes, invalid);
    TESTS("move", move_empties_the_source, move_to_null_frees);
    TESTS("codes", every_code_has_a_row);
    LOOP("statuses", from_status, 0, ARRAY_LEN(statuses));
}
