/* What the files of a pool's pass share, and nobody else: what is remembered of a pool between
 * passes, the state of one pass, and the steps of a pass in the order in which warmpool_pass.c
 * takes them. A pool is on one worker at a time; what has a lock is touched by the threads of a
 * batch. */
#pragma once

#include <pthread.h>

#include "apiserver/base/map.h"
#include "reconcile/pace.h"
#include "reconcile/pass.h"
#include "reconcile/warmpool.h"
#include "reconcile/warmpool_pass.h"

#define POOL_CONTROLLER "sandboxwarmpool-controller" /* of events, and field manager */
#define POOL_PARALLEL 16                             /* creates and deletes at once */
#define POOL_PARALLEL_BUSY 2 /* creates while claims come: they use the same store */

/* What is remembered of a pool between passes, by the worker that has its key. Lost at restart,
 * which only means earlier next tries, and a warning told again. */
struct pool_memory {
    char uid[RAND_UUID_SIZE]; /* a namesake made later is remembered anew */
    struct map *members;      /* name -> struct member: parsed once a revision */
    int64_t rev;              /* of this process's last write to a member */
    bool has_counted; /* false: the store is asked for its newest revision before counting */
    struct hold hold;
    struct lull lull;
    struct bucket bucket;
    bool is_stalled;          /* WarmPoolNotProgressing was told */
    int64_t missing_since_ms; /* the template; monotonic, 0 = it is there */
    bool missing_told;
    int64_t status_at_ms; /* of the last status write; monotonic */
    struct retry retry;
    int64_t failed_ms;           /* when the last try was given up; unix */
    struct trouble last_failure; /* why */
    char tried[NAME_HASH_SIZE];  /* hash of the blueprint that retry is about */
};

struct warmpool_reconciler {
    struct pass_env env;
    struct warmpool_settings settings;
    pthread_mutex_t lock; /* guards the map, not what is in it */
    struct map *pools;    /* key -> struct pool_memory */
};

/* The state of one pass. */
struct pool_pass {
    struct warmpool_reconciler *r;
    struct pool_memory *memory;
    const char *key;
    cJSON *pool,
        *template; /* template NULL = there is none, or it cannot be read: template_failed */
    bool template_failed;
    struct blueprint blueprint;
    bool recreates;
    int64_t desired;
    struct member **active; /* borrowed from memory */
    size_t n_active;
    struct member **doomed; /* to be deleted as stale; then as stuck; then as too many */
    size_t n_doomed;
    int64_t going, held, ready;
    bool is_mended; /* the template changed after members of the old one did not become ready */
    struct trouble refusal; /* of members that could not be made */
    bool has_deleted;       /* counts are as before it: nothing more is made or deleted */
    struct pass_errors errors;
    pthread_mutex_t lock; /* guards errors and again_after_ms while a batch runs */
    int64_t again_after_ms;
    int64_t own_rev; /* see struct loop_result */
};

/* ---- warmpool_state.c ---- */

struct pool_memory *pool_recall(struct warmpool_reconciler *r, const char *key, const char *uid);
void pool_forget(struct warmpool_reconciler *r, const char *key);
void pool_members_free(struct map *members);
const struct pass_env *pool_env(const struct pool_pass *p);
int64_t pool_now_ms(const struct pool_pass *p); /* monotonic */
/* The earliest wish counts; <= 0 is none. */
void pool_again(struct pool_pass *p, int64_t after_ms);
/* An error of the pass, which then comes back. */
void pool_note(struct pool_pass *p, const char *prefix, const struct err *err);
void pool_note_refusal(struct pool_pass *p, const struct err *err);
void pool_tell(struct pool_pass *p, const char *type, const char *reason, const char *text);
bool pool_goes_on(void *pass); /* for batches: this process still leads */

/* ---- warmpool_members.c: who there is, and who may stay ---- */

void pool_read_template(struct pool_pass *p); /* W3 */
int pool_list_members(struct pool_pass *p, struct list_result *ret, struct err *err);
void pool_sort_out(struct pool_pass *p, const struct list_result *list); /* W4 */
void pool_weed_out(struct pool_pass *p);                                 /* W6 */
/* All in p->doomed; empties it. How many went. */
size_t pool_delete_doomed(struct pool_pass *p, const char *why);

/* ---- warmpool_size.c ---- */

int64_t pool_fill(struct pool_pass *p);   /* W9-W11; how many were made */
int64_t pool_shrink(struct pool_pass *p); /* W12; how many went */

/* ---- warmpool_trouble.c: what keeps a pool from filling ---- */

void pool_see_template(struct pool_pass *p); /* a changed one is a new start */
/* Those in p->doomed are given up, p->active stay. */
void pool_see_stuck(struct pool_pass *p);
/* The first thing that is in the way; false = nothing. */
bool pool_find_trouble(struct pool_pass *p, struct trouble *ret);

/* ---- warmpool_status.c: what users are told ---- */

void pool_tell_progress(struct pool_pass *p);
void pool_tell_missing(struct pool_pass *p);
int pool_write_status(struct pool_pass *p, const struct pool_counts *counts); /* W7 */
