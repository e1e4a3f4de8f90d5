/* The token of a local user: who the user's certificate says, for those who can only send a bearer
 * token, as a page in a browser. Signed by the folder's key like tokens of ServiceAccounts, told
 * from them by its issuer. Pure; any thread. */
#pragma once

#include "apiserver/auth/jwt.h"

/* Owned by the caller. */
char *user_token_sign(const unsigned char key[JWT_KEY_SIZE], const char *name, const char *group,
                      int64_t now_unix_s, int64_t life_s);
/* The user, as the status of a TokenReview names it, of claims that a check found good; NULL when
 * they are no user's. Owned by the caller. */
cJSON *user_token_user(const cJSON *claims);
