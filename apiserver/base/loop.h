/* A keyed work queue and its workers: one key is on one worker at a time, a key added while it is
 * worked on is worked on again, failures come back with exponential delay, and a pass may ask for
 * its next time. Knows no kind. Source of the behaviour: client-go's rate-limited work queue.
 *
 * Keys that are alike up to their last hyphen are a family, as the members of a pool are, and
 * families take turns: who comes alone does not wait behind thousands of one family. Within a
 * family the first come is the first served. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "apiserver/base/clock.h"

struct loop;
/* What a pass wants next: 0 = nothing, > 0 = again after so many ms. */
struct loop_result {
    int64_t again_after_ms;
    /* The revision of what a pass that failed wrote to its own object. That change is no news, so
     * it does not bring the pass back before its delay is over; 0 = it wrote nothing. */
    int64_t own_rev;
};
/* 0 = done; negative = failed, the key comes back after its delay (a wish in ret is ignored then).
 * Runs on a worker thread. */
typedef int (*loop_work_fn)(void *ctx, const char *key, struct loop_result *ret);

struct loop_config {
    const char *name; /* for the log and metrics */
    int workers;
    const struct clock *clock;
    loop_work_fn work;
    void *ctx;
};
struct loop *loop_new(const struct loop_config *config);
void loop_start(struct loop *l);
/* Waits for passes under way, drops what is queued. May be started again. */
void loop_stop(struct loop *l);
void loop_free(struct loop *l);
void loop_add(struct loop *l, const char *key); /* now; any thread */
/* The same, because the key's object is new at that revision. */
void loop_add_change(struct loop *l, const char *key, int64_t rev);
/* the earlier of several times wins */
void loop_add_after(struct loop *l, const char *key, int64_t after_ms);
/* drops delay and failures of a key that is gone */
void loop_forget(struct loop *l, const char *key);
/* keys waiting now, delayed ones left out */
size_t loop_len(struct loop *l);
/* Delay before the n-th retry (n from 1), ms: 5 doubling to 1,000,000. Never fails.
 * Source: client-go workqueue, default item rate limiter. */
int64_t loop_backoff_ms(unsigned failures);
