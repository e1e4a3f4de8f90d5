/* What the files of a claim's pass share, and nobody else: the state of one pass and its steps.
 * claim_pass.c takes them in order; claim.c decides. A claim is on one worker at a time. */
#pragma once

#include <pthread.h>

#include "apiserver/base/map.h"
#include "reconcile/claim.h"
#include "reconcile/claim_pass.h"
#include "reconcile/pass.h"

/* Pool or template missing; their coming wakes the claim anyway. */
#define CLAIM_MISSING_AGAIN_MS 60000
#define CLAIM_EXPIRED_AGAIN_MS 1 /* the second pass of an expiry follows at once */

/* A claim that this process has seen while it leads. */
struct seen {
    char uid[RAND_UUID_SIZE];
    int64_t first_ms; /* unix */
};

struct claim_reconciler {
    struct claim_reconciler_config config;
    int64_t started_s; /* unix */
    pthread_mutex_t lock;
    struct map *seen; /* key → struct seen */
};

/* What a step leads to. */
enum next {
    NEXT_SEARCH,   /* no Sandbox yet */
    NEXT_MAINTAIN, /* there is one in hand */
    NEXT_CONCLUDE, /* what is known becomes the status */
    NEXT_STOP,     /* this pass is over: all is written, or rc says to come back */
};

struct claim_run {
    struct claim_reconciler *r;
    const char *key;
    struct object *object;
    cJSON *claim; /* as read */
    cJSON *next;  /* as it is to be written, status apart */
    cJSON *sandbox, *pool, *template;
    const char *launch_type; /* of the Sandbox in hand, should it not say */
    struct claim_error error;
    bool is_first_sight;
    int64_t observed_ms; /* unix */
    int64_t again_after_ms;
    int64_t own_rev; /* see struct loop_result */
    int rc;
};

/* ---- claim_run.c ---- */

const struct pass_env *run_env(const struct claim_run *p);
int64_t run_now_ms(const struct claim_run *p);         /* unix */
int64_t run_claim_created_ms(const cJSON *object);     /* unix; 0 = it does not say */
void run_again(struct claim_run *p, int64_t after_ms); /* the earliest wish counts; <= 0 is none */
void run_again_at_end(struct claim_run *p);            /* of its time */
enum next run_stop(struct claim_run *p, int rc);
/* The store or the leadership is away: nothing may be concluded, the pass comes back. */
enum next run_cut_off(struct claim_run *p, const char *what, const struct err *err);
void run_tell(struct claim_run *p, const struct event_text *text);
void run_tell_adopted(struct claim_run *p, const char *name);
/* Warns of a time to live that will never begin; sandbox: the one just got. */
void run_tell_endless(struct claim_run *p, const cJSON *sandbox);
void run_tell_expired(struct claim_run *p);
/* 0 with *ret NULL when there is none; a failure has ended the pass. */
int run_read(struct claim_run *p, const struct kind *kind, const char *name, cJSON **ret);
void run_forget(struct claim_reconciler *r, const char *key);
void run_look_at(struct claim_run *p); /* who was seen, and when first */
/* A claim that came bound from its POST, while this process leads, is told about here: whichever
 * server bound it, its event and its numbers come once, from the leader. */
void run_announce(struct claim_run *p);
/* All of a pass in one write, if anything differs. 0 = the claim is as wished; 1 = it changed or
 * went meanwhile, which brings the next pass; negative = failed. */
int run_write(struct claim_run *p, cJSON *take_status);

/* ---- claim_find.c: the Sandbox of a claim (C6), or a new one (C8-C16) ---- */

enum next run_find(struct claim_run *p);
int run_read_pool(struct claim_run *p); /* pool and template of the claim, as far as they exist */
int run_no_pool(struct claim_run *p);   /* these set the error; -1 */
int run_no_template(struct claim_run *p, const char *prefix);

/* ---- claim_keep.c: keeping it in line (C15) ---- */

enum next run_maintain(struct claim_run *p);

/* ---- claim_end.c: the end (C4) ---- */

int run_end(struct claim_run *p); /* a whole pass over an expired claim */
