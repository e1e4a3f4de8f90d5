/* Threads around one bounded queue. There are always some, and as many more as there are items, up
 * to a ceiling: items that are held up, by a store or a webhook that does not answer, hold up no
 * others. The additional threads end when there is nothing to do, and what they held with them. */
#include "apiserver/http/workers.h"

#include <stdatomic.h>

#include "apiserver/base/mem.h"
#include "apiserver/base/queue.h"
#include "apiserver/base/thread.h"

/* Bytes of address space each, not of memory. Trees may be 10,000 deep, the visitors over them and
 * their tables recurse, and checkers' frames are large. */
#define STACK_BYTES ((size_t)16 << 20)
/* How many times as many threads there may be. 20 times the default of 32 is more than the requests
 * that the pipeline lets in at once, so that it still answers the ones it turns away. */
#define GROWTH_MAX 20
#define KEPT_PART 4             /* of those asked for, so many stay when there is nothing to do */
#define IDLE_MS ((int64_t)5000) /* an additional thread ends after so long without an item */

struct workers {
    struct queue *queue;
    _Atomic int n_free;   /* threads that wait for an item, less the items that wait for a thread */
    pthread_mutex_t lock; /* guards what follows */
    bool is_stopping;
    pthread_t *threads;
    int n, n_min, n_max;
    pthread_t ended; /* the additional one that ended last; joined by the next one, or at the end */
    bool has_ended;
};

static void forget_self(struct workers *w)
{
    for (int i = 0; i < w->n; i++)
        if (pthread_equal(w->threads[i], pthread_self()))
            w->threads[i] = w->threads[--w->n];
}

/* True when the calling thread, which counts as free and found nothing, has to end: at the stop,
 * where it is joined, or because it is additional and no item counts on it; then it leaves itself
 * to be joined by the next one that ends. */
static bool is_superfluous(struct workers *w)
{
    pthread_mutex_lock(&w->lock);
    bool is_stopping = w->is_stopping, is_leaving = !is_stopping && w->n > w->n_min;
    if (is_leaving && atomic_fetch_sub(&w->n_free, 1) <= 0) {
        atomic_fetch_add(&w->n_free, 1);
        is_leaving = false;
    }
    bool has_previous = is_leaving && w->has_ended;
    pthread_t previous = w->ended;
    if (is_leaving) {
        forget_self(w);
        w->ended = pthread_self();
        w->has_ended = true;
    }
    pthread_mutex_unlock(&w->lock);
    if (has_previous)
        pthread_join(previous, NULL);
    return is_stopping || is_leaving;
}

static void *run_thread(void *arg)
{
    struct workers *w = arg;
    atomic_fetch_add(&w->n_free, 1);
    for (;;) {
        struct work *item = queue_get(w->queue, IDLE_MS);
        if (item) {
            item->run(item);
            atomic_fetch_add(&w->n_free, 1);
        } else if (is_superfluous(w)) {
            return NULL;
        }
    }
}

/* The lock is held. As many as can be had, up to n. */
static void start_threads(struct workers *w, int n)
{
    while (w->n < n && thread_try_start(&w->threads[w->n], "worker", STACK_BYTES, run_thread, w))
        w->n++;
}

struct workers *workers_new(int n, size_t max_queue)
{
    struct workers *w = xcalloc(1, sizeof *w);
    w->queue = queue_new(max_queue);
    w->n_min = (n + KEPT_PART - 1) / KEPT_PART;
    w->n_max = n * GROWTH_MAX;
    w->threads = xcalloc((size_t)w->n_max, sizeof *w->threads);
    pthread_mutex_init(&w->lock, NULL);
    pthread_mutex_lock(&w->lock);
    start_threads(w, n);
    bool is_complete = w->n == n;
    pthread_mutex_unlock(&w->lock);
    if (is_complete)
        return w;
    workers_free(w);
    return NULL;
}

static void grow(struct workers *w)
{
    pthread_mutex_lock(&w->lock);
    if (!w->is_stopping && w->n < w->n_max)
        start_threads(w, w->n + 1);
    pthread_mutex_unlock(&w->lock);
}

bool workers_put(struct workers *w, struct work *work)
{
    if (!queue_put(w->queue, work))
        return false;
    if (atomic_fetch_sub(&w->n_free, 1) <= 0)
        grow(w);
    return true;
}

void workers_stop(struct workers *w)
{
    pthread_mutex_lock(&w->lock);
    w->is_stopping = true; /* from now on nobody joins or leaves */
    pthread_mutex_unlock(&w->lock);
    queue_close(w->queue);
    while (w->n > 0)
        pthread_join(w->threads[--w->n], NULL);
    if (w->has_ended)
        pthread_join(w->ended, NULL);
    w->has_ended = false;
}

void workers_free(struct workers *w)
{
    if (!w)
        return;
    workers_stop(w);
    queue_free(w->queue);
    pthread_mutex_destroy(&w->lock);
    free(w->threads);
    free(w);
}
