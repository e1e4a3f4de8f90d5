/* A node that is there: registers itself, watches the Pods bound to it, and runs their containers
 * through the engine, reporting as a kubelet does. What runs stays when the node ends; started
 * again it goes on with the same containers, and removes those whose Pods are gone. Bounded: by
 * Pods of the node, calls by the workers. */
#pragma once

#include "apiserver/base/clock.h"
#include "apiserver/kube/kube.h"
#include "node/env.h"
#include "node/podman.h"
#include "node/refuse.h"
#include "node/relay.h"

struct runner_config {
    struct kube *kube; /* borrowed, as all below */
    struct podman *podman;
    const struct clock *clock;
    const char *name, *address;               /* of the node */
    int port;                                 /* of its server; 0 = it has none */
    const char *folder;                       /* of Pods and claims, absolute */
    const char *network, *interface, *subnet; /* where Pods get their addresses */
    const char *pause_program;
    char *const *dns;    /* name servers of ClusterFirst; empty = the machine's */
    const char *domain;  /* cluster.local */
    struct relay *relay; /* to the API server, NULL = none; started and stopped by the runner */
    struct env_api api;  /* where it is, for Pods with a token */
    struct refuse_policy policy;
    bool enforces_policies; /* of networks; otherwise it says of whom it does not */
    int workers;
    int pods; /* room; more are refused */
    int64_t lease_ms;
    int64_t follow_ms; /* between looks at what volumes are filled from */
};
struct runner;
/* Errors: the engine cannot do what is needed. */
int runner_start(const struct runner_config *config, struct runner **ret, struct err *err);
void runner_stop(struct runner *r); /* waits for calls under way; frees; containers stay */
/* The Pod of that name as the cluster has it, a copy; false when there is none here. Any thread. */
bool runner_find_pod(struct runner *r, const char *namespace_name, const char *name, cJSON **ret);
