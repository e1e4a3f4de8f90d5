/* The tokens of a Pod's service account that its volumes have, each renewed when it is due: after
 * 80 % of its life or after a day, whichever comes first. One that cannot be renewed is given until
 * its end. Source: kubelet's token manager. Not locked. */
#pragma once

#include <cjson/cJSON.h>
#include <stdint.h>

#include "apiserver/base/err.h"

struct token {
    char *text;
    int64_t issued_ms, expires_ms; /* unix */
};
struct tokens { /* tokens_fini; as many as the Pod's spec has projections that differ */
    struct token_kept *v;
    size_t n;
};
void tokens_fini(struct tokens *t);
bool token_is_due(const struct token *t, int64_t now_ms);
#define TOKEN_SECONDS_DEFAULT 3600

/* Asks for one; ret->text is the caller's. */
typedef int (*token_ask_fn)(void *ctx, const cJSON *projection, struct token *ret, struct err *err);
/* The text for a serviceAccountToken projection, a copy. Errors: of ask, and there is none. */
int tokens_get(struct tokens *t, const cJSON *projection, int64_t now_ms, token_ask_fn ask,
               void *ctx, char **ret, struct err *err);
