/* What the files of the runner share, and nobody else uses: what a node remembers of one Pod beyond
 * what the cluster and the engine say. A run belongs to the worker that has its key; what is marked
 * so is guarded by the runner's lock, for probes and hooks have threads of their own. */
#pragma once

#include <pthread.h>

#include "apiserver/base/loop.h"
#include "apiserver/base/map.h"
#include "apiserver/base/rand.h"
#include "node/create.h"
#include "node/firewall.h"
#include "node/plan.h"
#include "node/probe.h"
#include "node/runner.h"
#include "node/tokens.h"
#include "node/volume.h"

/* What may take as long as others like, containers or registries, is done by so many workers each.
 */
enum handler_queue { HANDLER_PROBES, HANDLER_HOOKS, HANDLER_PULLS, HANDLER_QUEUES };
#define HANDLER_WORKERS 32
#define HANDLER_WAIT_MS 100 /* for one that may not have a worker yet */

enum pull_state { PULL_NONE, PULL_RUNS, PULL_DONE, PULL_FAILED };
enum hook_state { HOOK_NONE, HOOK_RUNS, HOOK_DONE, HOOK_FAILED };

struct note { /* of one container of the spec, in the order of plan_members */
    char *name;

    /* of one run of it; lock */
    char *instance_id; /* NULL = none runs */
    struct probe_state probes[PROBE_KINDS];
    enum hook_state post_start, pre_stop;
    char *trouble; /* what a probe or hook said that may end it, NULL = nothing */
    bool is_stopping;
    int64_t deadline_ms; /* unix; of a stop */

    bool is_signalled; /* for a stop */
    bool has_begun;    /* started by us, and its postStart hook is still to be begun */

    /* of its image; lock */
    enum pull_state pull;
    char *pull_auth; /* while it runs, NULL = nothing is known of the registry */
    char *pull_why;  /* it failed */

    /* of its start */
    char *reason, *message; /* why it waits, NULL = no trouble */
    unsigned failures;      /* in a row */
    int64_t not_before_ms;  /* unix */
    char *broken_id;        /* an instance that the engine could not start, and when */
    char *broken_why;
    int64_t broken_ms;
    char *image; /* digest or id, for the status; NULL = unknown */
};

struct run {
    char *uid;
    cJSON *newest;            /* as the cluster has it; lock */
    bool is_gone;             /* there; lock */
    int busy[HANDLER_QUEUES]; /* workers; lock */
    bool is_moved;            /* the engine told of a container since the last pass began; lock */
    char *ip;                 /* of the sandbox; lock; "" = none */
    /* What it has was looked at, and commands from before are ended; so new ones may come. Written
     * by its worker with the lock held. */
    bool is_settled;

    cJSON *pod; /* the newest, when the pass began */
    bool is_accepted, has_volumes;
    char **constants; /* RESOURCE/NAME of immutable objects that volumes were filled from */
    struct tokens tokens;
    int64_t follow_ms;    /* unix; when its volumes are looked after again */
    char *follow_trouble; /* why one of them keeps what it has */
    bool is_cleared;      /* nothing is left of it on the machine */
    struct instances instances;
    bool is_listed; /* they are all there are, with those made since */
    char **made;    /* ids; since the last look */
    /* All of it runs and nothing is to be done: until then only the engine's news bring a look at
     * its containers, monotonic. 0 = each pass looks. */
    int64_t rests_until_ms;
    struct note *notes;
    size_t n_notes;
    unsigned sandbox_failures; /* in a row */
    int64_t sandbox_not_before_ms;
    char *sandbox_trouble;
    char *network_trouble; /* why its rules are not in force, NULL = they are */
};

struct runner {
    struct runner_config config; /* strings are copies in the caller's hands until runner_stop */
    struct podman_limits limits;
    char *pause_image;         /* id */
    char salt[RAND_UUID_SIZE]; /* of states of volumes */
    struct map *found;         /* uids of Pods that had containers when the node began; constant */
    struct loop *pods, *probes, *hooks, *pulls, *node;
    /* For what others may draw out, which is given up when the node ends. */
    struct fetch *far_fetch;
    struct podman *far_podman;
    struct reflector *reflector;
    struct podman_watch *watch;
    struct firewall *firewall;
    bool is_registered; /* of the node's loop */

    pthread_mutex_t lock;
    struct map *runs; /* uid to struct run */
    int accepted;     /* of them */
    int busy[HANDLER_QUEUES];
    bool is_listed; /* the cluster's Pods are known */
};

int64_t run_now_ms(const struct runner *r); /* unix */
struct run *run_new(const char *uid, cJSON *take_pod);
/* Takes in a state of the Pod, unless a newer one is known. Lock held. */
void run_take(struct run *run, cJSON *take_pod);
void run_set_ip(struct runner *r, struct run *run, const char *ip);
struct note *run_note(struct run *run, const char *container);
void run_free(struct run *run);
/* The sources of environment and volumes of a Pod; ctx of them is *ret_ctx. */
struct run_sources {
    struct runner *r;
    struct run *run;
};
struct sources run_sources(struct run_sources *ctx);
struct volume_place run_place(const struct runner *r, const char *uid, char **ret_folder,
                              char **ret_claims);
/* Trouble with a start: what it is, and a time to try again that grows. */
void run_set_trouble(struct runner *r, const struct run *run, struct note *note, const char *reason,
                     const char *message);
int64_t run_retry_ms(unsigned failures); /* before the next try */
void run_clear_trouble(struct note *note);

/* observe.c: the engine's view of the Pod into run->instances. Who makes a container adds its id to
 * run->made; who removes one, or does not know what was done, takes is_listed back. */
int observe(struct runner *r, struct run *run, struct err *err);
/* Fills r->found, and the firewall with the sandboxes that run. */
int observe_found(struct runner *r, struct err *err);

/* start.c. Trouble is noted in the run, with a time to try again. */
void start_sandbox(struct runner *r, struct run *run, const struct instance *old);
/* False when there is nothing new to look at: its image is still on the way. */
bool start_member(struct runner *r, struct run *run, const struct plan *plan, size_t at);

/* follow.c: brings volumes up to date when it is time. Returns ms until the next time, 0 = none. */
int64_t follow_volumes(struct runner *r, struct run *run);
/* The Pod is another one: what its volumes say of it may be, too. */
void follow_change(struct run *run, const cJSON *old, const cJSON *pod);

/* network.c: whether the Pod of that address may connect to the API server. */
bool network_lets_in(void *runner, const char *ip);
/* A container of the engine's list; of a sandbox that runs the firewall knows before it
 * has rules. */
void network_adopt(struct runner *r, const cJSON *item);
/* True when the Pod's sandbox has its rules, so that containers may start in it. */
bool network_attach(struct runner *r, struct run *run, const struct plan *plan);

/* stop.c: carries a stop one step further; *wait_ms becomes less when it wants to go on earlier. */
void stop_member(struct runner *r, struct run *run, const struct member *m, int64_t *wait_ms);
/* Everything of a Pod that is gone, at once; all: its containers, NULL = the engine is asked. */
int stop_all(struct runner *r, const char *uid, const struct instances *all, struct err *err);

/* prober.c */
void prober_adopt(struct runner *r, struct run *run, const struct member *m);
int prober_work(void *ctx, const char *key, struct loop_result *ret);
/* hook.c */
void hook_begin(struct runner *r, const struct run *run, const char *container, bool is_post_start);
int hook_work(void *ctx, const char *key, struct loop_result *ret);

/* pull.c: images that come from registries. */
/* False while one is on the way; else *ret_rc is how it went. */
bool pull_image(struct runner *r, struct run *run, struct note *note, int *ret_rc, struct err *err);
int pull_work(void *ctx, const char *key, struct loop_result *ret);

/* handler.c: carries out what a probe or hook says, in a container that runs. */
struct handler_target {
    char *id, *ip;    /* of the container, and of its Pod */
    cJSON *container; /* its spec */
};
void handler_target_fini(struct handler_target *t);
/* Errors: it failed, with what it said. */
int handler_run(struct runner *r, const struct handler_target *t, const cJSON *action,
                int64_t timeout_ms, struct err *err);
/* Keys of the queues: what is to be done with one run of a container. */
struct handler_key { /* handler_key_fini */
    char *uid, *container;
    char *id;   /* of the run, the engine's: nothing of it is left when another has begun */
    char *what; /* the probe or hook */
};
char *handler_key_print(const char *uid, const char *container, const char *id, const char *what);
struct handler_key handler_key_read(const char *key);
void handler_key_fini(struct handler_key *k);
/* Before and after a call that may take long: a Pod has a worker whatever others do, and more than
 * one as long as half of them are free, so that one Pod's commands that hang hold up no other's.
 * False = not yet. */
bool handler_enter(struct runner *r, const char *uid, enum handler_queue queue);
void handler_leave(struct runner *r, const char *uid, enum handler_queue queue);
/* False when that run is over. Takes the lock. */
bool handler_find(struct runner *r, const struct handler_key *k, struct handler_target *ret);

/* report.c */
int report_status(struct runner *r, struct run *run, const struct plan *plan, const char *reason,
                  const char *message, struct err *err);
int report_refused(struct runner *r, struct run *run, const char *reason, const char *message,
                   struct err *err);
int report_end(struct runner *r, const struct run *run, struct err *err);
void report_event(struct runner *r, const cJSON *pod, const char *type, const char *reason,
                  const char *message);
