#include "apiserver/auth/jwt.h"

#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/rand.h"

#define DIGEST_SIZE 32
#define TOKEN_MAX ((size_t)16 << 10) /* bytes */

/* The one header there is, so that a token cannot choose how it is checked. */
static const char header[] = "{\"alg\":\"HS256\",\"typ\":\"JWT\"}";

static void put_signature(const unsigned char *key, const char *text, size_t n, struct buf *out)
{
    unsigned char digest[DIGEST_SIZE];
    digest_hmac_sha256(key, JWT_KEY_SIZE, text, n, digest);
    buf_base64url(out, digest, sizeof digest);
}

char *jwt_sign(const unsigned char key[JWT_KEY_SIZE], const cJSON *claims)
{
    SCOPED(buf_fini) struct buf body = {0};
    struct buf token = {0};
    json_print(claims, &body);
    buf_base64url(&token, header, sizeof header - 1);
    buf_putc(&token, '.');
    buf_base64url(&token, buf_cstr(&body), body.len);
    size_t n = token.len;
    SCOPED(buf_fini) struct buf signature = {0};
    put_signature(key, token.data, n, &signature);
    buf_printf(&token, ".%s", buf_cstr(&signature));
    return buf_take(&token, NULL);
}

static int refuse(const char *why, struct err *err)
{
    return err_set(err, ERR_UNAUTHORIZED, "token: %s", why);
}

static int read_claims(const char *p, size_t n, cJSON **ret, struct err *err)
{
    SCOPED(buf_fini) struct buf body = {0};
    size_t good;
    if (!buf_unbase64url(&body, p, n, &good) ||
        json_parse(buf_cstr(&body), body.len, NULL, ret, NULL) < 0)
        return refuse("its claims are no JSON", err);
    return 0;
}

int jwt_check(const unsigned char key[JWT_KEY_SIZE], const char *token, int64_t now_unix_s,
              cJSON **ret, struct err *err)
{
    SCOPED(buf_fini) struct buf head = {0}, signature = {0};
    SCOPED(json_free_p) cJSON *claims = NULL;
    const char *body, *end = strrchr(token, '.');
    buf_base64url(&head, header, sizeof header - 1);
    buf_putc(&head, '.');
    if (strlen(token) > TOKEN_MAX || !str_has_prefix(token, buf_cstr(&head)) || !end ||
        end < token + head.len)
        return refuse("not one of ours", err);
    body = token + head.len;
    put_signature(key, token, (size_t)(end - token), &signature);
    if (strlen(end + 1) != signature.len || !digest_equal(end + 1, signature.data, signature.len))
        return refuse("not signed by this server", err);
    int rc = read_claims(body, (size_t)(end - body), &claims, err);
    if (rc < 0)
        return rc;
    if (now_unix_s < json_i64_or(claims, "nbf", INT64_MAX))
        return refuse("not valid yet", err);
    if (now_unix_s >= json_i64_or(claims, "exp", 0))
        return refuse("expired", err);
    *ret = steal(&claims);
    return 0;
}
