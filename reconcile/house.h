/* What a cluster's controller manager and scheduler do for sandboxes, for a server without a
 * cluster: namespaces are emptied before they go, objects go with their owners, every namespace has
 * a default ServiceAccount and the authority that Pods trust the server by, Pods get a node, claims
 * a volume, Services their EndpointSlices, old Events go; and the Service of the server itself. One
 * feed over all kinds served, one queue. Runs while this process leads. */
#pragma once

#include "reconcile/pass.h"

/* Where the server is, for its own Service; address NULL = it has none. */
struct house_api {
    const char *address; /* numeric */
    int port;
};
struct house_config {
    struct registry *registry; /* borrowed, like all below */
    const struct clock *clock;
    bool (*fence)(void *ctx, struct store_compare *ret); /* see struct pass_env */
    void *ctx;
    char *authority;      /* PEM, which Pods trust this server by; NULL = they are not told */
    struct house_api api; /* borrowed */
    int workers;          /* 0 = 8 */
};
struct house;
struct house *house_new(const struct house_config *config);
/* Makes what every server has (the namespaces default, kube-system and kube-node-lease), then looks
 * at every object once. */
void house_start(struct house *h);
void house_stop(struct house *h); /* waits for passes under way; may be started again */
void house_free(struct house *h); /* NULL is fine */
