/* How an answer is written: objects from their stored bytes, lists, trees, plain text, in the
 * negotiated form. Bytes are parsed only for a transformation, YAML or indentation. Any thread. */
#pragma once

#include "apiserver/base/clock.h"
#include "apiserver/http/negotiate.h"
#include "apiserver/http/request.h"
#include "apiserver/registry/registry.h"

#define RESPOND_BODY_MAX ((size_t)1 << 30) /* bytes; a list of everything may be long */

/* What a verb needs to answer with objects. Borrowed for the call. */
struct answer {
    const struct request *req;
    const struct negotiated *form;
    const struct kind *kind;
    const struct clock *clock;
};

/* Replaces a header of that name or adds it. */
void respond_header(struct response *resp, const char *name, const char *value);
/* resp->body holds compact JSON: turns it into the negotiated form and sets status and
 * Content-Type. */
void respond_json(struct response *resp, int status, const struct negotiated *form);
/* The same from a tree, which is freed. */
void respond_tree(struct response *resp, int status, const struct negotiated *form,
                  cJSON *take_tree);
void respond_text(struct response *resp, int status,
                  const char *text);           /* text/plain with nosniff */
void respond_not_found(struct response *resp); /* 404 page not found */
/* The answer's ETag, of a hash that has at most 128 digits. True when the client has it already:
 * then the answer is 304 without a body. */
bool respond_etag(const struct request *req, const char *hash, struct response *resp);
void respond_busy(struct response *resp); /* 429, to come again in a second */

/* One object, transformed as asked. Errors: a transform that does not fit. */
int respond_object(const struct answer *a, int status, const struct object *o,
                   struct response *resp, struct err *err);
/* A list: *List, Table or PartialObjectMetadataList. Errors: a transform that does not fit;
 * ERR_TOO_LARGE. */
int respond_list(const struct answer *a, const struct list_result *list, struct response *resp,
                 struct err *err);
