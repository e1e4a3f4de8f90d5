/* The way of a request above the transport: the ordered filters, then the verb. pipeline_handle is
 * the server's handler, and what tests call without a socket. */
#pragma once

#include "apiserver/auth/auth.h"
#include "apiserver/base/clock.h"
#include "apiserver/base/rand.h"
#include "apiserver/http/request.h"
#include "apiserver/registry/activity.h"
#include "apiserver/registry/registry.h"

/* One line of /livez, /readyz, /healthz. ok returns true when fine; it must not block. */
struct health_check {
    const char *name;
    bool is_ready_only; /* in /readyz alone */
    bool (*ok)(void *ctx);
    void *ctx;
};

struct dialer;
struct tunnels;
struct pipeline_config {
    struct registry *registry;
    struct auth *auth;
    const struct clock *clock;
    const struct randomness *randomness;
    const struct health_check *checks;   /* ended by a row without name; ping is added */
    int max_reads, max_writes;           /* in flight; 0 = 400 and 200 */
    int64_t request_timeout_ms;          /* 0 = 60,000 */
    size_t max_body;                     /* for the text of 413; 0 = 3 MiB */
    const struct activity_ops *activity; /* borrowed */
    const struct judge *judge; /* borrowed; where reviews and tokens are kinds of this server */
    struct dialer *dialer;     /* borrowed, and */
    struct tunnels *tunnels; /* where Pods are kinds of this server; NULL = nodes are not reached */
    int max_waits;           /* requests that may hold a worker until an object is ready; 0 = 8 */
};
struct pipeline;
struct pipeline *pipeline_new(const struct pipeline_config *config); /* prints the documents once */
void pipeline_free(struct pipeline *p);
void pipeline_drain(struct pipeline *p);                /* readyz fails from now on */
unsigned long pipeline_asked(const struct pipeline *p); /* requests so far, but for health's */
void pipeline_handle(void *pipeline, struct request *req, struct response *resp);
