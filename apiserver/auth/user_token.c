/* Nobody but this server chooses what is signed, so the issuer alone tells the two kinds of token
 * apart. */
#include "apiserver/auth/user_token.h"

#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"

#define ISSUER "agent-sandbox"

static cJSON *one(const char *text)
{
    cJSON *list = json_array();
    json_push(list, json_string(text));
    return list;
}

char *user_token_sign(const unsigned char key[JWT_KEY_SIZE], const char *name, const char *group,
                      int64_t now_unix_s, int64_t life_s)
{
    SCOPED(json_free_p) cJSON *claims = json_object();
    json_set(claims, "aud", one(ISSUER));
    json_set_int(claims, "exp", now_unix_s + life_s);
    json_set(claims, "groups", one(group));
    json_set_int(claims, "iat", now_unix_s);
    json_set_str(claims, "iss", ISSUER);
    json_set_int(claims, "nbf", now_unix_s);
    json_set_str(claims, "sub", name);
    return jwt_sign(key, claims);
}

cJSON *user_token_user(const cJSON *claims)
{
    const cJSON *groups = json_get(claims, "groups");
    if (strcmp(json_str_or(claims, "iss", ""), ISSUER) != 0 || !cJSON_IsArray(groups))
        return NULL;
    cJSON *user = json_object();
    json_set(user, "groups", json_copy(groups));
    json_set_str(user, "username", json_str_or(claims, "sub", ""));
    return user;
}
