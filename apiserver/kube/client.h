/* What the parts of the client share with each other, and nobody else uses. Any thread. */
#pragma once

#include "apiserver/kube/kube.h"

/* A GET that streams its answer; as fetch_open, never NULL. path as in struct kube_call. */
struct fetch_stream *kube_open(struct kube *k, const char *path, int64_t timeout_ms,
                               int64_t idle_timeout_ms);
/* The error for an answer that is no success, from its Status if the body holds one. path goes into
 * the message otherwise, without its query. Never ERR_NONE. Returns -code. */
int kube_answer_err(int http_status, const char *path, const char *body, size_t n, struct err *err);
/* The same for a Status that came as an event of a watch. */
int kube_status_err(int http_status, const cJSON *status, struct err *err);
/* The server did not like the token: its file may hold a better one, whatever its time says. */
void kube_distrust_token(struct kube *k);
