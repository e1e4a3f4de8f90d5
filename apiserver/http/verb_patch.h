/* What PATCH of objects and of their scale share: a patch being applied to what is stored, and the
 * answer of the scale endpoint. One request, one thread. */
#pragma once

#include "apiserver/http/negotiate.h"
#include "apiserver/http/request.h"
#include "apiserver/http/respond.h"

struct patch_call { /* patch_call_start, patch_call_read, patch_call_fini */
    const struct request *req;
    enum body_type type;
    cJSON *patch;
    struct pairs findings; /* of decoding */
    bool may_lack_type;    /* the result need not say its kind */
};
void patch_call_fini(struct patch_call *c);
/* Reads the body. What is no JSON is refused here, before the object is looked for; a patch of the
 * wrong shape when it is applied. Errors: ERR_BAD_REQUEST, ERR_TOO_LARGE. */
int patch_call_read(struct patch_call *c, struct err *err);
/* ret is the patched tree, with apiVersion and kind. Errors: ERR_BAD_REQUEST, ERR_INVALID,
 * ERR_TOO_LARGE. */
int patch_call_apply(struct patch_call *c, const cJSON *old, cJSON **ret, struct err *err);
/* What every patch begins with: the type of the body. */
int patch_call_start(struct patch_call *c, const struct request *req, struct err *err);
/* 422: patch: Invalid value: "<the patched JSON>": <why>. */
int patch_call_invalid(const cJSON *patched, const char *why, struct err *err);
/* 200 with the Scale of parent, transformed as asked (verb_scale.c). */
int respond_scale(const struct answer *a, const struct object *parent, struct response *resp,
                  struct err *err);
