/* What a kubelet would do next with the containers of one Pod, and which phase the Pod is in: init
 * containers in order, sidecars before and after the others, restarts with their back-off, the end.
 * Pure: spec, instances and time in, acts out. Any thread. */
#pragma once

#include "node/instance.h"

#define PLAN_CONTAINERS_MAX 200 /* of a Pod; more are refused */
#define PLAN_BACKOFF_MS 10000   /* before the second restart, doubling */
#define PLAN_BACKOFF_MAX_MS 300000
#define PLAN_BACKOFF_RESET_MS 600000 /* who ran so long starts over */

enum member_kind { MEMBER_INIT, MEMBER_SIDECAR, MEMBER_MAIN };
enum member_act { MEMBER_LEAVE, MEMBER_START, MEMBER_STOP };

struct member {        /* a container of the spec */
    const cJSON *spec; /* borrowed, as name */
    const char *name;
    enum member_kind kind;
    const struct instance *now, *before; /* newest and the one before; borrowed; NULL = none */

    /* known by the caller */
    bool has_started;      /* its startup probe has passed, its postStart hook is done */
    bool is_ready;         /* runs, and its readiness probe passes */
    bool is_unhealthy;     /* its liveness or startup probe has failed for good */
    int64_t not_before_ms; /* after trouble with image or creation; 0 = at once */

    /* the plan */
    enum member_act act;
    unsigned step;   /* of a start */
    bool is_waiting; /* backs off */
    bool is_over;    /* will not be started again */
};

enum restart_policy { RESTART_ALWAYS, RESTART_ON_FAILURE, RESTART_NEVER };
enum phase { PHASE_PENDING, PHASE_RUNNING, PHASE_SUCCEEDED, PHASE_FAILED };
extern const char *const phase_names[];

struct plan {
    /* in */
    struct member *members; /* init containers and sidecars in order, then the others */
    size_t n;
    const struct instance *pause; /* NULL = none */
    enum restart_policy restart;
    enum phase known_phase; /* as was reported; a final one stays */
    bool is_terminating, is_past_deadline;
    int64_t now_ms; /* unix */

    /* out */
    bool makes_pause; /* before anything else */
    bool drops_pause; /* ends it: nothing runs in it any more */
    bool is_initialized;
    bool is_over; /* nothing runs, nothing will be started */
    enum phase phase;
    int64_t wait_ms; /* look again then; 0 = when something changes */
};
void plan_make(struct plan *p);
/* It is from before the Pod's present sandbox, which it is of no use in. */
bool plan_is_stale(const struct plan *p, const struct instance *i);
/* Members of a Pod's spec; the caller's array. Instances are not looked at yet. */
struct member *plan_members(const cJSON *pod, size_t *ret_n);
enum restart_policy plan_restart_policy(const cJSON *pod);
/* Before the start that follows so many failures in a row. */
int64_t plan_backoff_ms(unsigned step);
