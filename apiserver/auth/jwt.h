/* Tokens that this server signs itself, as JSON Web Tokens with HMAC-SHA-256: who signs them is who
 * reads them, so there is no public key to give away. Pure; any thread. Source: RFC 7515, 7519. */
#pragma once

#include <cjson/cJSON.h>
#include <stdint.h>

#include "apiserver/base/err.h"

#define JWT_KEY_SIZE 32

/* The token of these claims; owned by the caller. */
char *jwt_sign(const unsigned char key[JWT_KEY_SIZE], const cJSON *claims);
/* ret is the claims' tree of a token that this key signed and whose time (nbf, exp) it is. Errors:
 * ERR_UNAUTHORIZED, whatever is wrong with it. */
int jwt_check(const unsigned char key[JWT_KEY_SIZE], const char *token, int64_t now_unix_s,
              cJSON **ret, struct err *err);
