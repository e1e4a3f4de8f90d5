/* Doing the same many times, side by side, but carefully: 1 first, then 2, 4, 8 ... as long as all
 * went well, so that what cannot work is not tried hundreds of times. Source of the behaviour: the
 * slow start of kube-controller-manager's controllers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct batch {
    size_t count;
    size_t parallel; /* threads at once, at least 1 */
    /* The i-th one, i < count; 0 or negative. Runs on any thread, several at once. */
    int (*run)(void *ctx, size_t i);
    /* Asked before each batch; false = no further one. NULL = go on. */
    bool (*goes_on)(void *ctx);
    void *ctx;
};
/* How many succeeded; *ret_tried (may be NULL) how many were run. After a failure its batch is
 * finished and no other begun. */
size_t batch_run(const struct batch *b, size_t *ret_tried);
