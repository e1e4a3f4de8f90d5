/* What the filters, the verbs and the other endpoints share: the pipeline itself, and the form of
 * their functions. Only files of this folder include it. A handler fills the response or returns an
 * error; the pipeline alone writes errors as Status. */
#pragma once

#include <stdatomic.h>

#include "apiserver/http/documents.h"
#include "apiserver/http/negotiate.h"
#include "apiserver/http/pipeline.h"
#include "apiserver/http/respond.h"

struct pipeline {
    struct pipeline_config config; /* defaults filled in */
    struct documents *documents;
    atomic_int reads, writes; /* in flight */
    atomic_int waits;         /* of those, requests that wait for an object to be ready */
    atomic_ulong asked;       /* requests so far, but for health's */
    atomic_bool is_draining;
};

/* Worker thread; may block up to req->deadline_ms. 0, or the negative of the code in err. */
typedef int handler_fn(struct pipeline *p, struct request *req, struct response *resp,
                       struct err *err);

handler_fn verb_get, verb_list, verb_watch, verb_create, verb_update, verb_patch, verb_delete,
    verb_deletecollection;
handler_fn verb_apply; /* a PATCH by apply, of an object, its status or its scale */
handler_fn verb_scale_get, verb_scale_update, verb_scale_patch;
handler_fn verb_activity;
handler_fn verb_review;  /* POST of a kind that is a question */
handler_fn verb_token;   /* of a ServiceAccount */
handler_fn verb_binding; /* of a Pod */
handler_fn verb_reach;   /* log, exec, attach, portforward of a Pod */
/* Paths that are no resource: discovery, OpenAPI, version, health, metrics, the page. */
handler_fn nonresource_serve;
handler_fn health_serve, metrics_serve, ui_serve;

/* -ERR_BAD_REQUEST when the path has no name, or one that could not be. */
int handler_check_name(const struct request *req, struct err *err);
/* What of a write's input is refused before its options are read: type and size of the body. */
int handler_check_body(const struct request *req, struct err *err);

/* To answer with the objects of req's kind. All is borrowed. */
struct answer handler_answer(const struct pipeline *p, const struct request *req,
                             const struct negotiated *form);
/* What req asks to do, as authorizers see it. Strings are req's. */
struct access handler_access(const struct request *req);

/* ---- metrics.c ---- */

/* A request was answered: count it and its duration. */
void metrics_request(const struct request *req, const struct response *resp, int64_t took_ms);
void metrics_in_flight(bool is_write, int by);
void metrics_watch(const struct kind *kind, const char *scope,
                   int by); /* scope: resource, namespace, cluster */
