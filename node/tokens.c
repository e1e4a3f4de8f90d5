#include "node/tokens.h"

#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"

#define LIFE_PERCENT 80
#define LIFE_MAX_MS (INT64_C(24) * 3600 * 1000)

struct token_kept {
    char *audience; /* "" = the cluster's own */
    int64_t seconds;
    struct token token;
};

void tokens_fini(struct tokens *t)
{
    for (size_t i = 0; i < t->n; i++) {
        free(t->v[i].audience);
        free(t->v[i].token.text);
    }
    free(t->v);
    *t = (struct tokens){0};
}

bool token_is_due(const struct token *t, int64_t now_ms)
{
    int64_t life_ms = t->expires_ms - t->issued_ms;
    int64_t good_ms = life_ms / 100 * LIFE_PERCENT;
    return now_ms - t->issued_ms >= (good_ms < LIFE_MAX_MS ? good_ms : LIFE_MAX_MS);
}

static struct token_kept *find(struct tokens *t, const cJSON *projection)
{
    const char *audience = json_str_or(projection, "audience", "");
    int64_t seconds = json_i64_or(projection, "expirationSeconds", TOKEN_SECONDS_DEFAULT);
    for (size_t i = 0; i < t->n; i++) {
        if (t->v[i].seconds == seconds && strcmp(t->v[i].audience, audience) == 0)
            return &t->v[i];
    }
    t->v = xreallocarray(t->v, t->n + 1, sizeof *t->v);
    t->v[t->n] = (struct token_kept){.audience = xstrdup(audience), .seconds = seconds};
    return &t->v[t->n++];
}

int tokens_get(struct tokens *t, const cJSON *projection, int64_t now_ms, token_ask_fn ask,
               void *ctx, char **ret, struct err *err)
{
    struct token_kept *kept = find(t, projection);
    SCOPED(err_fini) struct err why = {0};
    struct token fresh = {0};
    if (!kept->token.text || token_is_due(&kept->token, now_ms)) {
        int rc = ask(ctx, projection, &fresh, &why);
        if (rc == 0) {
            free(kept->token.text);
            kept->token = fresh;
        } else if (!kept->token.text || kept->token.expires_ms <= now_ms) {
            return err_move(err, &why);
        } else {
            log_warn("token not renewed, the old one stays: %s", err_text(&why));
        }
    }
    *ret = xstrdup(kept->token.text);
    return 0;
}
