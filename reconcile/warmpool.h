/* What a SandboxWarmPool needs: pure decisions about its members, from what is known of each.
 * Carrying out is warmpool_pass.c. Rules W1 ... are those of docs/reconcile.md. Trees are borrowed;
 * trees and texts that come back are the caller's. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "apiserver/base/buf.h"
#include "reconcile/blueprint.h"
#include "reconcile/trouble.h"

/* ---- the pool ---- */

int64_t pool_desired(const cJSON *pool);
bool pool_recreates(const cJSON *pool); /* updateStrategy Recreate */
const char *pool_template_name(const cJSON *pool);
void pool_selector(const cJSON *pool, struct buf *out); /* of its members; also status.selector */

/* The Sandbox to create, without a name of its own (W9). eviction: mark pods as safe to evict where
 * the template does not say. */
cJSON *pool_prototype(const cJSON *pool, const struct blueprint *b, bool eviction);

/* ---- members ---- */

enum member_owner { MEMBER_OURS, MEMBER_ORPHAN, MEMBER_FOREIGN };
/* beside the template's blueprint */
enum member_content { CONTENT_UNKNOWN, CONTENT_EQUAL, CONTENT_DIFFERENT };
/* Of a Sandbox with the pool's label, at one revision. */
struct member {
    char *name, *uid, *pod_name;     /* owned */
    char *ref_hash, *blueprint_hash; /* its labels; owned, may be NULL */
    int64_t rev;
    enum member_owner owner;
    bool is_terminating, is_ready, has_launch_type;
    int64_t created_ms;
    int64_t since_ms;       /* since when it is Ready or not; of one that never was: its creation */
    struct trouble trouble; /* what its conditions tell; reason NULL = nothing */
    /* Filled in by who compares: content beside the blueprint of that hash. */
    enum member_content content;
    char compared_with[NAME_HASH_SIZE];
};
struct member *member_new(const cJSON *sandbox, const char *pool_uid, int64_t rev);
void member_free(struct member *m);
/* Its labels do not settle whether it is what the template says: contents have to be compared. b
 * NULL = no template. */
bool member_needs_comparison(const struct member *m, const struct blueprint *b);

enum member_verdict {
    MEMBER_IGNORE, /* somebody else's */
    MEMBER_GOING,  /* counts against the target, not in the status */
    MEMBER_DELETE_STALE,
    MEMBER_ADOPT, /* make it ours */
    MEMBER_LABEL, /* set its launch type */
    MEMBER_KEEP
};
/* W4. */
enum member_verdict member_judge(const struct member *m, const struct blueprint *b, bool recreates);
/* In place: owner reference and launch type. */
void member_adopt(cJSON *sandbox, const cJSON *pool);

/* ---- members that are not ready (W6) ---- */

/* ms that it may still stay not Ready; <= 0 over, INT64_MAX ready or of unknown age. */
int64_t member_grace_left_ms(const struct member *m, int64_t now_unix_ms, int64_t grace_ms);
/* The same by its Pod, for one whose own grace is over (pod NULL = there is none): INT64_MAX = it
 * waits for a node and is held;
 * <= 0 stuck. One that was held and found a node at last has a quarter of the grace period from
 * then on. */
int64_t member_pod_grace_left_ms(const cJSON *pod, int64_t now_unix_ms, int64_t grace_ms);

/* ---- size ---- */

/* For qsort over struct member *: who is deleted first (W12). Not ready before ready, newest
 * first. */
int member_compare_excess(const void *a, const void *b);
/* How many to make: up to desired, never when total >= desired (W9). */
int64_t pool_deficit(int64_t desired, int64_t total, int64_t max_batch);
int64_t pool_excess(int64_t desired, int64_t current, int64_t max_batch);
/* When to look at members that are not ready again: the earliest grace, 2 s more, and up to half of
 * both at random (fraction in [0, 1)). W13. */
int64_t pool_grace_requeue_ms(int64_t left_ms, double fraction);

/* ---- status ---- */

struct pool_counts {
    int64_t replicas, ready;
};
/* W7; zero values are left out. trouble: why the pool cannot fill, NULL = it can; told by condition
 * Progressing, which a pool without trouble never has. */
cJSON *pool_status(const cJSON *pool, const struct pool_counts *counts,
                   const struct trouble *trouble, int64_t now_unix_s);
