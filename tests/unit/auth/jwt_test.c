/* Tokens of our own: what was signed is read back, anything else is nobody's. */
#include "apiserver/auth/jwt.h"

#include "apiserver/base/json.h"
#include "tests/lib/suite.h"

#define NOW INT64_C(1000000)
static const unsigned char key[JWT_KEY_SIZE] = "0123456789abcdef0123456789abcde";
static const unsigned char other_key[JWT_KEY_SIZE] = "0123456789abcdef0123456789abcdX";

static char *make_token(int64_t from_s, int64_t until_s)
{
    SCOPED(json_free_p) cJSON *claims = json_object();
    json_set_int(claims, "nbf", from_s);
    json_set_int(claims, "exp", until_s);
    json_set_str(claims, "sub", "somebody");
    return jwt_sign(key, claims);
}

static int check(const unsigned char *with, const char *token)
{
    SCOPED(json_free_p) cJSON *claims = NULL;
    int rc = jwt_check(with, token, NOW, &claims, NULL);
    ck_assert_int_eq(rc == 0, claims != NULL);
    if (claims)
        ck_assert_str_eq(json_str(claims, "sub"), "somebody");
    return rc;
}

START_TEST(test_what_was_signed_is_read_back)
{
    SCOPED_FREE char *token = make_token(NOW, NOW + 1);
    ck_assert_int_eq(check(key, token), 0);
    ck_assert_int_eq(check(other_key, token), -ERR_UNAUTHORIZED);
}
END_TEST

START_TEST(test_only_in_its_time)
{
    SCOPED_FREE char *over = make_token(NOW - 10, NOW);
    SCOPED_FREE char *early = make_token(NOW + 1, NOW + 10);
    ck_assert_int_eq(check(key, over), -ERR_UNAUTHORIZED);
    ck_assert_int_eq(check(key, early), -ERR_UNAUTHORIZED);
}
END_TEST

/* Every character counts, and so does what is missing or comes behind. */
START_TEST(test_changed_tokens)
{
    SCOPED_FREE char *token = make_token(NOW, NOW + 1);
    SCOPED_FREE char *longer = xasprintf("%sA", token);
    size_t n = strlen(token);
    ck_assert_int_eq(check(key, longer), -ERR_UNAUTHORIZED);
    for (size_t i = 0; i < n; i++) {
        SCOPED_FREE char *changed = xstrdup(token);
        SCOPED_FREE char *cut = xstrndup(token, i);
        changed[i] = changed[i] == 'A' ? 'B' : 'A';
        ck_assert_int_eq(check(key, changed), -ERR_UNAUTHORIZED);
        ck_assert_int_eq(check(key, cut), -ERR_UNAUTHORIZED);
    }
}
END_TEST

/* {"alg":"none"}, with and without a signature. */
START_TEST(test_a_token_does_not_choose_how_it_is_checked)
{
    SCOPED_FREE char *token = make_token(NOW, NOW + 1);
    SCOPED_FREE char *other = xasprintf("eyJhbGciOiJub25lIn0%s", strchr(token, '.'));
    SCOPED_FREE char *unsigned_one =
        xasprintf("%.*s", (int)(strrchr(other, '.') + 1 - other), other);
    ck_assert_int_eq(check(key, other), -ERR_UNAUTHORIZED);
    ck_assert_int_eq(check(key, unsigned_one), -ERR_UNAUTHORIZED);
    ck_assert_int_eq(check(key, ""), -ERR_UNAUTHORIZED);
    ck_assert_int_eq(check(key, "a.b.c"), -ERR_UNAUTHORIZED);
}
END_TEST

SUITE(jwt)
{
    TESTS("jwt", test_what_was_signed_is_read_back, test_only_in_its_time, test_changed_tokens,
          test_a_token_does_not_choose_how_it_is_checked);
}
