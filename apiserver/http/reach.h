/* What a request to reach into a Pod (its log, a command in it, its ports) asks of the Pod's node:
 * the options of the query, checked with kube-apiserver's texts, and the path by which a kubelet is
 * asked the same. Pure; any thread. Source: the Kubernetes API reference, PodLogOptions,
 * PodExecOptions, PodAttachOptions, PodPortForwardOptions; kube-apiserver v1.37's answers. */
#pragma once

#include <cjson/cJSON.h>

#include "apiserver/base/buf.h"
#include "apiserver/http/request.h"

/* Is the subresource one of these? */
bool reach_is_one(const struct request *req);
/* Those that take the raw connection: all but the log. */
bool reach_is_upgrade(const struct request *req);

/* The options by themselves. Errors: ERR_BAD_REQUEST (they do not convert), ERR_INVALID. */
int reach_check(const struct request *req, struct err *err);
/* The node that the Pod is on, borrowed from the Pod; "" = none. Errors: ERR_BAD_REQUEST when the
 * container is not one of the Pod's, or has to be said. */
int reach_container(const struct request *req, const cJSON *pod, const char **ret_container,
                    struct err *err);
/* Path and query for the node. container is what reach_container says. */
void reach_path(const struct request *req, const char *container, struct buf *ret);

/* Where the node serves. Errors: ERR_UNAVAILABLE when it does not say. address is borrowed. */
int reach_endpoint(const cJSON *node, const char **ret_address, int *ret_port, struct err *err);
