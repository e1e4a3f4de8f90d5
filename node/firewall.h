/* NetworkPolicies of the cluster as rules of this machine. Watches policies, Namespaces and all
 * Pods, and knows the sandboxes of the node's own; a thread puts both together (policy.h) and gives
 * the kernel the whole at once, at most so often. What the kernel has stays when the node ends, and
 * is replaced only when everything is known again. A sandbox that is not attached reaches nobody
 * and is reached by nobody but the machine. Any thread. */
#pragma once

#include "apiserver/base/clock.h"
#include "apiserver/kube/kube.h"

struct firewall_config { /* borrowed */
    struct kube *kube;
    const struct clock *clock;
    const char *node, *bridge;
    /* False: nothing is filtered; who is selected by a policy is found out and told, as a uid. */
    bool is_enforced;
    void (*on_selected)(void *ctx, const char *uid);
    void *ctx;
};
struct firewall;
/* Errors: rules are to be enforced and this machine or our rights do not allow it. */
int firewall_start(const struct firewall_config *config, struct firewall **ret, struct err *err);
/* No call back any more; who waits gives up. Rules stay. */
void firewall_stop(struct firewall *f);
void firewall_free(struct firewall *f); /* after firewall_stop, if watched; NULL is fine */

struct firewall_sandbox { /* borrowed */
    const char *netns;    /* file of its network namespace */
    const char *ip;
};
/* One that runs already when the node starts: to be said before firewall_watch. */
int firewall_adopt(struct firewall *f, const char *uid, const struct firewall_sandbox *s,
                   struct err *err);
/* From now on the cluster is watched. */
void firewall_watch(struct firewall *f);
/* Waits until the kernel has the rules of that sandbox, before anything runs in it. Nothing when it
 * has them. Errors: it has not. */
int firewall_attach(struct firewall *f, const cJSON *pod, const struct firewall_sandbox *s,
                    struct err *err);
void firewall_detach(struct firewall *f, const char *uid); /* its sandbox ends */
/* Whether a policy selects that Pod and is not enforced. */
bool firewall_is_open(struct firewall *f, const char *uid);
