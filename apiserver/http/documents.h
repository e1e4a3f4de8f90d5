/* The documents that never change while the server runs, printed once: discovery, OpenAPI, version;
 * and their serving with ETag and 304. Source: docs/kubernetes-api.md 8, 9, 10. Any thread. */
#pragma once

#include "apiserver/base/err.h"
#include "apiserver/http/request.h"

struct documents;
struct documents *documents_new(void);
void documents_free(struct documents *d);
/* *ret_found tells whether path (no slash at its end) is a document; if so resp is filled, or an
 * error returned. */
int documents_serve(const struct documents *d, const struct request *req, const char *path,
                    struct response *resp, bool *ret_found, struct err *err);
