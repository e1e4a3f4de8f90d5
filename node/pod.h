/* What a simulated kubelet knows of one Pod, what it does next with it, and how the Pod's status
 * looks then. Pure: Pod and time in, one act out; nothing is sent from here. A Pod's faults are
 * chosen by its annotations or by chance, so that a controller can be shown what real nodes do.
 * Any thread. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "node/plan.h"

#define POD_ANNOTATION_FAULT "node.agent-sandbox.dev/fault"       /* a name of pod_fault_names */
#define POD_ANNOTATION_START "node.agent-sandbox.dev/start-delay" /* a duration like 20s */
#define POD_LABEL_SIMULATED "node.agent-sandbox.dev/simulated"    /* of nodes: "true" */

enum pod_fault {
    POD_FAULT_NONE,
    POD_FAULT_SLOW,          /* starts after slow_ms */
    POD_FAULT_NEVER_READY,   /* runs, and its readiness probe fails */
    POD_FAULT_CRASH,         /* ends with code 1 after run_ms, again and again */
    POD_FAULT_EXIT,          /* ends with code 0 after run_ms */
    POD_FAULT_IMAGE_PULL,    /* its image cannot be had */
    POD_FAULT_UNSCHEDULABLE, /* no node suits it; only where the simulation schedules */
    POD_FAULTS
};
extern const char *const pod_fault_names[POD_FAULTS]; /* "none", "slow", "never-ready", ... */

struct pod_settings {
    int64_t start_ms, slow_ms;    /* from the binding to Ready */
    int64_t run_ms;               /* from Ready to a crash or exit */
    int64_t restart_ms;           /* before the first restart, doubling to 5 min */
    int64_t stop_ms;              /* from a deletion to its end, at most the Pod's grace period */
    bool schedules;               /* binds Pods to nodes as well */
    unsigned percent[POD_FAULTS]; /* of Pods without annotation that get the fault */
};

/* Read from the Pod's status, so a simulation that is started again goes on where it was. */
enum pod_stage {
    POD_NEW,
    POD_STARTING,
    POD_READY,
    POD_NOT_READY,
    POD_NO_IMAGE,
    POD_CRASHED, /* waits for its restart */
    POD_FAILED,
    POD_DONE,
    POD_REFUSED, /* the node is full */
    POD_STAGES
};

struct pod_container {
    char *name, *image;
    bool is_init, is_sidecar; /* a sidecar is an init container that goes on running */
};
struct pod {                                  /* pod_free */
    char *namespace_name, *name, *uid, *node; /* node "" = not bound */
    uint64_t rev;                             /* resourceVersion */
    char *ip;                                 /* NULL = none yet */
    char *started_at;                         /* status.startTime, NULL = none yet */
    struct pod_container *containers;
    unsigned n_containers;
    enum restart_policy restart;
    enum pod_fault fault;
    int64_t start_ms; /* this Pod's own */
    enum pod_stage stage;
    unsigned restarts;
    bool is_gated, is_called_unschedulable;
    bool is_terminating;
    int64_t grace_ms; /* of a terminating one */
    int64_t since_ms; /* monotonic, when it was first seen in this stage or terminating; set by the
                         owner */
};
/* NULL for what is no Pod. */
struct pod *pod_new(const cJSON *tree, const struct pod_settings *settings);
void pod_free(struct pod *p);

enum pod_act {
    POD_WAIT,               /* for wait_ms; 0 = until it changes */
    POD_BIND,               /* to a node with room */
    POD_CALL_UNSCHEDULABLE, /* in its status */
    POD_ENTER,              /* stage */
    POD_END                 /* delete it for good */
};
struct pod_plan {
    enum pod_act act;
    enum pod_stage stage;
    int64_t wait_ms;
};
struct pod_plan pod_plan(const struct pod *p, const struct pod_settings *settings, int64_t now_ms);

/* Bodies; the caller's. */
cJSON *pod_binding(const struct pod *p, const char *node);
/* A strategic merge patch of the status for entering a stage. ip counts when p has none. */
cJSON *pod_stage_patch(const struct pod *p, enum pod_stage stage, const char *ip,
                       const char *host_ip, int64_t now_unix_s);
cJSON *pod_unschedulable_patch(const struct pod *p, const char *why, int64_t now_unix_s);
cJSON *pod_end_options(const struct pod *p); /* DeleteOptions */
