/* The node's own HTTPS server, with the paths that a kubelet has: /containerLogs, /exec, /attach,
 * /portForward, and /healthz. A thread for each connection, which carries one request; their number
 * has a ceiling. Clients come with a certificate of the cluster's authority, and the cluster says
 * who of them may (node/callers.h). Source of paths and parameters: the kubelet's server
 * package. */
#pragma once

#include "apiserver/kube/kube.h"
#include "node/podman.h"
#include "node/runner.h"

struct serve_config {
    struct kube *kube; /* borrowed, as all below */
    struct podman *podman;
    struct runner *runner;
    const char *name;    /* of the node */
    const char *address; /* to listen on: a number */
    int port;            /* 0 = any that is free */
    const char *cert_file, *key_file;
    const char *ca_file; /* authorities of clients */
};
struct serve;
/* Listens already; answers from serve_start on. So a node can say where it is before it knows its
 * Pods. Errors: ERR_INVALID files or address. */
int serve_new(const struct serve_config *config, struct serve **ret, struct err *err);
int serve_port(const struct serve *s);
void serve_start(struct serve *s, struct runner *runner);
/* Ends all sessions, and the commands in them; frees. NULL is fine. */
void serve_stop(struct serve *s);
