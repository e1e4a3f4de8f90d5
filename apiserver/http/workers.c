/* Threads around one bounded queue. */
#include "apiserver/http/workers.h"

#include <pthread.h>
#include <signal.h>

#include "apiserver/base/mem.h"
#include "apiserver/base/queue.h"

/* Bytes of address space each, not of memory. Trees may be 10,000 deep and freeing one recurses;
 * checkers' frames are large. */
#define STACK_BYTES ((size_t)16 << 20)

struct workers {
    struct queue *queue;
    void (*run)(void *item);
    pthread_t *threads;
    int n;
};

static void *work(void *arg)
{
    struct workers *w = arg;
    void *item;
    while ((item = queue_get(w->queue, -1)) != NULL)
        w->run(item);
    return NULL;
}

/* As many of n as can be had. Signals go to the main thread. */
static void start_threads(struct workers *w, int n)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    while (w->n < n && pthread_create(&w->threads[w->n], &attr, work, w) == 0)
        w->n++;
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

struct workers *workers_new(int n, size_t max_queue, void (*run)(void *item))
{
    struct workers *w = xcalloc(1, sizeof *w);
    w->queue = queue_new(max_queue);
    w->run = run;
    w->threads = xcalloc((size_t)n, sizeof *w->threads);
    start_threads(w, n);
    if (w->n == n)
        return w;
    workers_free(w);
    return NULL;
}

bool workers_put(struct workers *w, void *item)
{
    return queue_put(w->queue, item);
}

void workers_stop(struct workers *w)
{
    queue_close(w->queue);
    while (w->n > 0)
        pthread_join(w->threads[--w->n], NULL);
}

void workers_free(struct workers *w)
{
    if (!w)
        return;
    workers_stop(w);
    queue_free(w->queue);
    free(w->threads);
    free(w);
}
