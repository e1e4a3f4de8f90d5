/* The status of a Pod as a kubelet reports it, from the Pod, its plan and what is known of the
 * machine. Pure; trees are the caller's. Source of reasons and texts: what kubelets write. */
#pragma once

#include "node/plan.h"

/* Of a container that neither runs nor has ended, why; in the order of the plan's members. */
struct waiting {
    const char *reason, *message; /* NULL = as the plan says, or none */
};
struct status_input {
    const cJSON *pod; /* as the cluster has it */
    const struct plan *plan;
    const struct waiting *waiting; /* plan->n of them */
    const char *const *images;     /* plan->n digests of images, "" = unknown */
    const char *pod_ip, *host_ip;  /* "" = none yet */
    const char *reason, *message;  /* of the Pod, NULL = none */
    bool is_open;                  /* policies select it and are not enforced */
    int64_t now_ms;                /* unix */
};
cJSON *status_make(const struct status_input *in);
/* Of a Pod that is not taken: Failed, with a reason and a condition that say why. */
cJSON *status_refused(const cJSON *pod, const char *reason, const char *message,
                      const char *host_ip, int64_t now_ms);
/* A condition of policies that are not enforced. True as soon as there is nothing to enforce. */
#define STATUS_POLICY "node.agent-sandbox.dev/NetworkPolicyEnforced"
bool status_says_open(const cJSON *pod);
/* A strategic merge patch that makes the Pod's status that one; NULL when it is already. */
cJSON *status_patch(const cJSON *pod, const cJSON *status);
