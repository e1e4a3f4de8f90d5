/* How fast a pool is refilled: a hold after members went (W10), a lull between claims, a bucket of
 * tokens (W11), and tries that become rarer while members do not become ready. Plain state that
 * starts as {0}, with the time given from outside, ms of the monotonic clock. One thread at a
 * time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* ---- replenish delay ---- */

struct hold {
    bool is_known;    /* a count was seen; before that nothing is held up */
    int64_t count;    /* the last one */
    int64_t until_ms; /* 0 = no hold */
};
/* The count of members now. delay_ms 0 keeps no state. Returns the ms that creating has to wait; 0
 * = not at all. */
int64_t hold_see(struct hold *h, int64_t count, int64_t desired, int64_t delay_ms, int64_t now_ms);
void hold_created(struct hold *h, int64_t n); /* so many were made since */

/* ---- giving way ---- */

/* While claims come one after the other the refill waits for a lull: who takes a member waits for
 * an answer, the refill is for those who come later. It waits a second at most, and not at all once
 * less than a quarter of the pool is ready. */
struct lull {
    int64_t since_ms; /* since when the refill waits; 0 = it does not */
};
/* bound_ago_ms: since a claim was bound; lull_ms: how long there must be none, 0 = nothing is
 * waited for. Returns the ms that creating has to wait; 0 = not at all. */
int64_t lull_wait(struct lull *l, int64_t bound_ago_ms, bool is_low, int64_t lull_ms,
                  int64_t now_ms);

/* ---- refill rate ---- */

struct bucket {
    bool is_known; /* starts full */
    double tokens;
    int64_t at_ms; /* of tokens */
};
/* How many of want may be made now, at rate per second; all when rate is 0. When none: *ret_wait_ms
 * until there is one. */
int64_t bucket_take(struct bucket *b, int64_t want, double rate, int64_t now_ms,
                    int64_t *ret_wait_ms);

/* ---- tries that fail ---- */

/* Members that did not become ready are made anew at once the first time. When that was of no use
 * either, one at a time is tried, after 1 min, doubling to 30 min. */
struct retry {
    unsigned failures;     /* in a row */
    int64_t not_before_ms; /* the next try */
};
void retry_failed(struct retry *r, int64_t now_ms);
/* How many of want may be made now, when so many are not ready yet. When none because of the time:
 * *ret_wait_ms until it has come, else 0. */
int64_t retry_room(const struct retry *r, int64_t want, int64_t unready, int64_t now_ms,
                   int64_t *ret_wait_ms);
