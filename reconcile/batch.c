#include "reconcile/batch.h"

#include <stdatomic.h>

#include "apiserver/base/thread.h"

#define THREADS_MAX 32

struct round {
    const struct batch *batch;
    size_t end;
    atomic_size_t next, done;
};

static void *help(void *arg)
{
    struct round *r = arg;
    for (size_t i; (i = atomic_fetch_add(&r->next, 1)) < r->end;) {
        if (r->batch->run(r->batch->ctx, i) == 0)
            atomic_fetch_add(&r->done, 1);
    }
    return NULL;
}

/* How many of from..end succeeded. The caller's thread works too. */
static size_t run_round(const struct batch *b, size_t from, size_t end)
{
    struct round r = {.batch = b, .end = end};
    atomic_init(&r.next, from);
    atomic_init(&r.done, 0);
    size_t wanted = end - from < b->parallel ? end - from : b->parallel;
    pthread_t threads[THREADS_MAX];
    size_t n = 0;
    while (n + 1 < wanted && n < THREADS_MAX && thread_try_start(&threads[n], "batch", 0, help, &r))
        n++;
    help(&r);
    for (size_t i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    return atomic_load(&r.done);
}

size_t batch_run(const struct batch *b, size_t *ret_tried)
{
    size_t at = 0, done = 0;
    for (size_t size = 1; at < b->count; size *= 2) {
        if (b->goes_on && !b->goes_on(b->ctx))
            break;
        size_t n = size < b->count - at ? size : b->count - at;
        size_t ok = run_round(b, at, at + n);
        at += n;
        done += ok;
        if (ok < n)
            break;
    }
    if (ret_tried)
        *ret_tried = at;
    return done;
}
