/* What a Sandbox needs: pure decisions, one child at a time, and the status that follows from how
 * they went. Carrying out is sandbox_pass.c. Trees are borrowed unless said otherwise. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "apiserver/base/buf.h"
#include "reconcile/event.h"
#include "reconcile/step.h"

/* ---- expiry (S2, S3) ---- */

/* ms until shutdownTime: > 0 in the future, <= 0 expired; INT64_MAX when there is none. */
int64_t sandbox_time_left_ms(const cJSON *sandbox, int64_t now_unix_ms);
/* When to look again while it has not expired: the time left, but not sooner than 2 s; 0 =
 * never. */
int64_t sandbox_expiry_requeue_ms(int64_t time_left_ms);
bool sandbox_shows_expired(const cJSON *sandbox);
bool sandbox_deletes_itself(const cJSON *sandbox); /* shutdownPolicy: Delete */
bool sandbox_is_suspended(const cJSON *sandbox);
/* The Pod's name: the annotation if non-empty, else the Sandbox's. Borrowed from sandbox. */
const char *sandbox_pod_name(const cJSON *sandbox);
/* Delete an owned child; leave anything else alone. child may be NULL. */
void sandbox_plan_teardown(const cJSON *sandbox, const cJSON *child, const char *failure_prefix,
                           struct step *ret);

/* ---- children ---- */

/* existing may be NULL. */
void sandbox_plan_pvc(const cJSON *sandbox, const cJSON *template, const cJSON *existing,
                      struct step *ret);

enum pod_name_change { POD_NAME_KEEP, POD_NAME_CLEAR, POD_NAME_SET };
struct pod_view {
    const cJSON *labelled; /* array: Pods with the tracking label, owned or not */
    const cJSON *named;    /* the Pod called sandbox_pod_name, NULL = there is none */
    const cJSON *services; /* array like labelled, for when there is no Pod */
};
struct pod_plan { /* starts as {0}; pod_plan_fini */
    struct step step;
    enum pod_name_change name_change;
    char *name;   /* for SET; owned */
    int multiple; /* > 1: so many owned Pods; nothing is done then */
    /* a failed Pod is on its way out (podFailurePolicy Recreate): none is in hand */
    bool is_replacing;
    /* another Sandbox with the same name hash has a Pod or Service: this one gets neither */
    bool has_twin;
};
void sandbox_plan_pod(const cJSON *sandbox, const struct pod_view *view, struct pod_plan *ret);
void pod_plan_fini(struct pod_plan *p);

/* What the Service step leads to, if it succeeds. */
enum service_outcome { SERVICE_UNKNOWN, SERVICE_ABSENT, SERVICE_PRESENT };
void sandbox_plan_service(const cJSON *sandbox, const cJSON *existing, struct step *ret,
                          enum service_outcome *ret_outcome);

/* ---- status (S14-S19) ---- */

struct sandbox_outcome {
    const cJSON *pod; /* in hand, or NULL */
    bool pod_failed;  /* the Pod step failed */
    int multiple_pods;
    const char *errors; /* joined by newlines; NULL = none */
    /* all errors are children that the cluster refused as Invalid: InvalidConfiguration */
    bool is_invalid;
    enum service_outcome service;
    /* Ready's reason says what the trouble is, where the original's says only that there is one
     * (trouble.h) */
    bool detailed_reasons;
};
/* Pod failed: Evicted: ...; what ended it from outside, if it says so. */
void sandbox_put_pod_failure(const cJSON *pod, struct buf *out);
/* The new status; the caller's. */
cJSON *sandbox_status(const cJSON *sandbox, const struct sandbox_outcome *outcome,
                      const char *cluster_domain, int64_t now_unix_s);
/* first pass: nothing deleted yet */
cJSON *sandbox_status_expired(const cJSON *sandbox, int64_t now_unix_s);
cJSON *sandbox_status_torn_down(const cJSON *sandbox, int64_t now_unix_s); /* conditions only */
/* Worth a write: differs, and not in nodeName alone while not Ready. */
bool sandbox_status_differs(const cJSON *old_status, const cJSON *new_status);

/* ---- events ---- */

/* Notes are borrowed from new_status or static. */
#define SANDBOX_EVENTS_MAX 4
/* Events that the change from one status to the next calls for; their number. Expiry with policy
 * Delete is silent. */
int sandbox_events(const cJSON *sandbox, const cJSON *old_status, const cJSON *new_status,
                   struct event_text ret[SANDBOX_EVENTS_MAX]);
