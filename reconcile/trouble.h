/* What keeps a Sandbox from being ready, as far as the cluster says: why a child was refused, why
 * its Pod finds no node, why a container does not run. Pure. */
#pragma once

#include <cjson/cJSON.h>

struct trouble {
    const char *reason; /* static: QuotaExceeded, AdmissionRefused, Unschedulable, SchedulingGated,
                           ImagePullFailed, CrashLoop, ContainerFailed; NULL = none known */
    char *text;         /* the cluster's words; NULL = they stand elsewhere already */
};
void trouble_fini(struct trouble *t);

/* Why a child was refused, by the cluster's message; NULL when it is no refusal with a name. */
const char *trouble_of_refusal(const char *message);
/* The first container that waits for something that will not come by itself. Leaves *ret alone when
 * there is none. */
void trouble_of_containers(const cJSON *pod, struct trouble *ret);
/* A Pod without a node. Likewise. */
void trouble_of_scheduling(const cJSON *pod, struct trouble *ret);
/* The part of a Pod's status that trouble_of_containers looks at: a list of the same form, or NULL
 * when it has nothing to say. list: containerStatuses or initContainerStatuses. */
cJSON *trouble_keep(const cJSON *pod, const char *list);
