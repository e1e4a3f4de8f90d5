/* Answers are kept by a digest of the chain and the bundle's number, which is never used twice, so
 * exchanged authorities are never asked for an old answer. */
#include "apiserver/auth/verify.h"

#include "apiserver/auth/cache.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/rand.h"

#define TTL_MS 10000 /* as for reviews: so long may an expired certificate go on */
#define ENTRIES_MAX 4096

struct verifier {
    const struct clock *clock;
    struct cache *cache;
};

struct verifier *verifier_new(const struct clock *clock)
{
    struct verifier *v = xcalloc(1, sizeof *v);
    v->clock = clock;
    v->cache = cache_new(ENTRIES_MAX, TTL_MS, clock);
    return v;
}

void verifier_free(struct verifier *v)
{
    if (!v)
        return;
    cache_free(v->cache);
    free(v);
}

struct ask {
    const struct clock *clock;
    const struct bundle *bundle;
    const struct cert_der *chain;
    size_t n;
};

/* A refusal is an answer too, and kept: so it is no error here. */
static int ask_openssl(void *ctx, cJSON **ret, struct err *err)
{
    (void)err;
    struct ask *a = ctx;
    SCOPED(subject_fini) struct subject s = {0};
    SCOPED(err_fini) struct err refusal = {0};
    *ret = json_object();
    if (cert_verify(a->bundle, a->chain, a->n, clock_unix_s(a->clock), &s, &refusal) < 0) {
        json_set_str(*ret, "refusal", err_text(&refusal));
        return 0;
    }
    json_set_str(*ret, "commonName", s.common_name);
    json_set_str(*ret, "uid", s.uid);
    cJSON *organizations = json_array();
    for (char **o = s.organizations; *o; o++)
        json_push(organizations, json_string(*o));
    json_set(*ret, "organizations", organizations);
    return 0;
}

/* Lengths are part of it, so that no two chains print the same. */
static void print_key(const struct ask *a, char key[CACHE_KEY_SIZE])
{
    SCOPED(buf_fini) struct buf b = {0};
    unsigned char digest[32];
    buf_printf(&b, "%llu\n", (unsigned long long)bundle_number(a->bundle));
    for (size_t i = 0; i < a->n; i++) {
        buf_printf(&b, "%zu\n", a->chain[i].n);
        buf_append(&b, a->chain[i].p, a->chain[i].n);
    }
    digest_sha256(buf_cstr(&b), b.len, digest);
    digest_print_hex(digest, sizeof digest, key);
}

static void take_subject(const cJSON *answer, struct subject *ret)
{
    const cJSON *list = json_get(answer, "organizations"), *item;
    ret->common_name = xstrdup(json_str_or(answer, "commonName", ""));
    ret->uid = xstrdup(json_str_or(answer, "uid", ""));
    cJSON_ArrayForEach(item, list)
    {
        strv_add(&ret->organizations, xstrdup(item->valuestring));
    }
}

int verifier_check(struct verifier *v, const struct bundle *b, const struct cert_der *chain,
                   size_t n, struct subject *ret, struct err *err)
{
    char key[CACHE_KEY_SIZE];
    struct ask ask = {.clock = v->clock, .bundle = b, .chain = chain, .n = n};
    SCOPED(json_free_p) cJSON *answer = NULL;
    print_key(&ask, key);
    int r = cache_get(v->cache, key, ask_openssl, &ask, &answer, err);
    if (r < 0)
        return r;
    const char *refusal = json_str(answer, "refusal");
    if (refusal)
        return err_set(err, ERR_UNAUTHORIZED, "%s", refusal);
    take_subject(answer, ret);
    return 0;
}
