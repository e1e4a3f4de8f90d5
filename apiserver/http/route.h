/* Path and query to request attributes: what is asked for, of what, in which namespace. The same
 * attributes go to authorization, to metrics and to the choice of the verb. Source:
 * docs/kubernetes-api.md 4. Pure; any thread. */
#pragma once

#include "apiserver/base/err.h"
#include "apiserver/http/request.h"

/* Fills req->params and req->route. -ERR_BAD_REQUEST when the path has a broken escape (the answer
 * is plain text then). */
int route_parse(struct request *req, struct err *err);
/* Go's conversion of a query value to a boolean: present and neither "false" nor "0". */
bool route_flag(const struct pairs *params, const char *name);
/* GR of error texts: sandboxes.agents.x-k8s.io, in the arena. */
const char *route_group_resource(struct request *req);
