/* What the files of the node's server share, and nobody else uses: one request on its
 * connection. */
#pragma once

#include "node/head.h"
#include "node/serve.h"
#include "node/session.h"
#include "node/tls_conn.h"

struct visit {
    const struct serve_config *config;
    int stop_fd;
    struct tls_conn *conn;
    struct head head;
    char **parts; /* of the path: exec, NAMESPACE, POD, ... */
    size_t n_parts;
    struct buf rest; /* what came behind the head */
};

void visit_fail(struct visit *v, const struct err *err); /* its status and text */
/* The Pod of parts 1 and 2. Errors: ERR_NOT_FOUND. */
int visit_find_pod(struct visit *v, cJSON **ret, struct err *err);
/* The protocol of the request's upgrade. Errors: ERR_BAD_REQUEST there is none. */
int visit_protocol(struct visit *v, const struct session_protocol **ret, struct err *err);
/* Whether the query has NAME=1 or NAME=true. */
bool visit_flag(const struct visit *v, const char *name);

/* Each answers its request, whatever happens. */
void visit_log(struct visit *v);
void visit_command(struct visit *v); /* exec and attach */
void visit_ports(struct visit *v);
