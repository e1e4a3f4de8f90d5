/* Tokens of local users: whose they are is read back, and no other token is taken for one. */
#include "apiserver/auth/user_token.h"

#include "apiserver/base/json.h"
#include "tests/lib/suite.h"

#define NOW INT64_C(1000000)
static const unsigned char key[JWT_KEY_SIZE] = "0123456789abcdef0123456789abcde";

static cJSON *claims_of(const char *token, int64_t at_s)
{
    cJSON *claims = NULL;
    jwt_check(key, token, at_s, &claims, NULL);
    return claims;
}

START_TEST(test_whose_it_is)
{
    SCOPED_FREE char *token = user_token_sign(key, "admin", "system:masters", NOW, 10);
    SCOPED(json_free_p) cJSON *claims = claims_of(token, NOW + 9);
    SCOPED(json_free_p) cJSON *user = user_token_user(claims);
    SCOPED(buf_fini) struct buf text = {0};
    json_print(user, &text);
    ck_assert_str_eq(buf_cstr(&text), "{\"groups\":[\"system:masters\"],\"username\":\"admin\"}");
}
END_TEST

START_TEST(test_it_ends)
{
    SCOPED_FREE char *token = user_token_sign(key, "admin", "system:masters", NOW, 10);
    ck_assert_ptr_null(claims_of(token, NOW + 10));
    ck_assert_ptr_null(claims_of(token, NOW - 1));
}
END_TEST

/* Whatever groups they speak of. */
START_TEST(test_claims_of_others)
{
    static const char *const rows[] = {
        "{}",
        "{\"iss\":\"https://kubernetes.default.svc\",\"sub\":\"a\",\"groups\":[\"g\"]}",
        "{\"iss\":\"agent-sandbox\",\"sub\":\"a\"}",
        "{\"iss\":\"agent-sandbox\",\"sub\":\"a\",\"groups\":\"g\"}",
        "{\"sub\":\"a\",\"groups\":[\"g\"]}",
    };
    SCOPED(json_free_p) cJSON *claims = NULL;
    ck_assert_int_eq(json_parse(rows[_i], strlen(rows[_i]), NULL, &claims, NULL), 0);
    ck_assert_msg(user_token_user(claims) == NULL, "%s", rows[_i]);
}
END_TEST

SUITE(user_token)
{
    TESTS("user_token", test_whose_it_is, test_it_ends);
    LOOP("others", test_claims_of_others, 0, 5);
}
