/* TokenReview and the cache before it. The cache knows tokens only by a digest under a key that
 * this process made up, so neither a memory dump of it nor its timing says anything about a
 * token. */
#include "apiserver/auth/token.h"

#include <string.h>

#include "apiserver/auth/cache.h"
#include "apiserver/auth/review.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/rand.h"

#define PATH "/apis/authentication.k8s.io/v1/tokenreviews"
#define TTL_MS 10000
#define ENTRIES_MAX 8192

struct tokens {
    struct kube *kube;
    const struct auth_judge *judge;
    struct cache *cache;
    unsigned char secret[32];
};

struct tokens *tokens_new(struct kube *kube, const struct auth_judge *judge,
                          const struct clock *clock)
{
    struct tokens *t = xcalloc(1, sizeof *t);
    t->kube = kube;
    t->judge = judge;
    t->cache = cache_new(ENTRIES_MAX, TTL_MS, clock);
    rand_system.fill(&rand_system, t->secret, sizeof t->secret);
    return t;
}

void tokens_free(struct tokens *t)
{
    if (!t)
        return;
    cache_free(t->cache);
    free(t);
}

struct ask {
    struct kube *kube;
    const char *token;
};

static int ask_cluster(void *ctx, cJSON **ret, struct err *err)
{
    struct ask *a = ctx;
    SCOPED(json_free_p) cJSON *review = json_object();
    json_set_str(review, "apiVersion", "authentication.k8s.io/v1");
    json_set_str(review, "kind", "TokenReview");
    cJSON *spec = json_ensure_object(review, "spec");
    json_set_str(spec, "token", a->token);
    return review_post(a->kube, PATH, review, ret, err);
}

static char **strings_of(const cJSON *list)
{
    char **all = NULL;
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        if (cJSON_IsString(item))
            strv_add(&all, xstrdup(item->valuestring));
    }
    return all;
}

static void take_extra(const cJSON *extra, struct pairs *ret)
{
    const cJSON *list, *item;
    cJSON_ArrayForEach(list, extra)
    {
        cJSON_ArrayForEach(item, list)
        {
            if (cJSON_IsString(item))
                pairs_add(ret, list->string, item->valuestring);
        }
    }
}

static int take_user(const cJSON *status, struct user *ret, struct err *err)
{
    const char *name = json_str_or(status, "user.username", "");
    if (!json_bool_or(status, "authenticated", false) || !*name)
        return err_set(err, ERR_UNAUTHORIZED, "invalid bearer token");
    ret->name = xstrdup(name);
    ret->uid = xstrdup(json_str_or(status, "user.uid", ""));
    ret->groups = strings_of(json_at(status, "user.groups"));
    take_extra(json_at(status, "user.extra"), &ret->extra);
    return 0;
}

int tokens_identify(struct tokens *t, const char *token, struct user *ret, struct err *err)
{
    unsigned char digest[32];
    char key[CACHE_KEY_SIZE];
    struct ask ask = {.kube = t->kube, .token = token};
    SCOPED(err_fini) struct err failure = {0};
    SCOPED(json_free_p) cJSON *status = NULL;
    if (t->judge) {
        int rc = t->judge->token(t->judge->ctx, token, &status, err);
        return rc < 0 ? rc : take_user(status, ret, err);
    }
    if (!t->kube)
        return err_set(err, ERR_UNAUTHORIZED, "nobody to judge bearer tokens");
    digest_hmac_sha256(t->secret, sizeof t->secret, token, strlen(token), digest);
    digest_print_hex(digest, sizeof digest, key);
    if (cache_get(t->cache, key, ask_cluster, &ask, &status, &failure) < 0)
        return err_set(err, ERR_UNAVAILABLE, "token review: %s", err_text(&failure));
    return take_user(status, ret, err);
}
