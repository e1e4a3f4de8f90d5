/* What keeps a Sandbox from being ready, as far as the cluster says: why a child was refused, why
 * its Pod finds no node, why a container does not run. Pure. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "apiserver/base/buf.h"

struct trouble {  /* starts as {0}; trouble_fini */
    char *reason; /* QuotaExceeded, AdmissionRefused, Unschedulable, SchedulingGated,
                     ImagePullFailed, CrashLoop, ContainerFailed, or one of a Sandbox's Ready;
                     NULL = none known */
    char *text;   /* the cluster's words, fit for a status */
};
void trouble_fini(struct trouble *t);
/* Both anew; text is made fit. */
void trouble_set(struct trouble *t, const char *reason, const char *text);
/* Appends the words of others for a status that many may read: logins and queries of URLs left out,
 * no control characters, not longer than a line or two. */
void trouble_put_text(struct buf *out, const char *text);

/* Why a child was refused, by the cluster's message; NULL when it is no refusal with a name. */
const char *trouble_of_refusal(const char *message);
/* The first container that waits for something that will not come by itself, or that failed. Leaves
 * *ret alone when there is none. */
void trouble_of_containers(const cJSON *pod, struct trouble *ret);
/* A Pod without a node. Likewise. */
void trouble_of_scheduling(const cJSON *pod, struct trouble *ret);
/* The part of a Pod's status that trouble_of_containers looks at: a list of the same form, or NULL
 * when it has nothing to say. list: containerStatuses or initContainerStatuses. */
cJSON *trouble_keep(const cJSON *pod, const char *list);
/* What a Sandbox's own conditions tell: children that the cluster refuses, a Pod that ended or
 * finds no node. Leaves *ret alone when there is nothing, or it is ready or suspended. */
void trouble_of_sandbox(const cJSON *sandbox, struct trouble *ret);
