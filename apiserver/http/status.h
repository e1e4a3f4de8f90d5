/* Error values as Kubernetes Status objects and HTTP answers; warnings as headers. Source:
 * docs/kubernetes-api.md 13, 22.3, 11. Any thread. */
#pragma once

#include <cjson/cJSON.h>

#include "apiserver/base/err.h"
#include "apiserver/http/request.h"

/* The Status of a failure; owned by the caller. */
cJSON *status_tree(const struct err *err);
/* The Status of a success, such as that of a delete. */
cJSON *status_success(const char *group, const char *resource, const char *name, const char *uid);
/* Makes resp the answer to req that says err: status line, Retry-After, body in the form the client
 * takes. */
void status_respond(const struct request *req, const struct err *err, struct response *resp);
/* Adds the Warning headers, under their budget. */
void status_warn(const struct pairs *warnings, struct response *resp);
