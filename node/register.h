/* How a node makes itself known to the cluster, and that it is alive. Any thread. */
#pragma once

#include "apiserver/kube/kube.h"
#include "node/object.h"

/* The machine's own. name and address are borrowed. */
struct node_facts register_facts(const char *name, const char *address, int port, int pods);
/* Makes the Node unless it is there, and writes its status. */
int register_node(struct kube *kube, const struct node_facts *facts, int64_t now_unix_s,
                  struct err *err);
/* Renews the node's lease; makes it when it is not there. */
int register_renew(struct kube *kube, const char *name, int64_t renew_ms, int64_t now_unix_ms,
                   struct err *err);
