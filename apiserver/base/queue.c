/* A bounded ring between threads, under one mutex. It starts small and doubles up to its bound. Of
 * the threads that wait, the one that came last gets the next item: what it works with is still in
 * the processor's cache, and those that are not needed stay asleep. */
#include "apiserver/base/queue.h"

#include "apiserver/base/clock.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/thread.h"

#define QUEUE_FIRST_SIZE ((size_t)16)

struct getter {          /* on the stack of a thread that waits */
    pthread_cond_t wake; /* something came or the queue was closed */
    bool is_listed;
    struct getter *next;
};

struct queue {
    pthread_mutex_t lock;   /* guards all below */
    struct getter *getters; /* the one that came last first */
    void **ring;            /* of size slots, grown up to max */
    size_t size, max;
    size_t head, len;
    bool is_closed;
};

struct queue *queue_new(size_t max)
{
    struct queue *q = xcalloc(1, sizeof *q);
    q->max = max;
    pthread_mutex_init(&q->lock, NULL);
    return q;
}

void queue_free(struct queue *q)
{
    if (q == NULL)
        return;
    pthread_mutex_destroy(&q->lock);
    free(q->ring);
    free(q);
}

/* Doubles the ring; the oldest item becomes slot 0. */
static void grow(struct queue *q)
{
    size_t size = q->size == 0 ? QUEUE_FIRST_SIZE : 2 * q->size;
    if (size > q->max)
        size = q->max;
    void **ring = xreallocarray(NULL, size, sizeof *ring);
    for (size_t i = 0; i < q->len; i++)
        ring[i] = q->ring[(q->head + i) % q->size];
    free(q->ring);
    q->ring = ring;
    q->size = size;
    q->head = 0;
}

/* Of one that waits, if any; lock held. */
static void wake_getter(struct queue *q)
{
    struct getter *g = q->getters;
    if (g == NULL)
        return;
    q->getters = g->next;
    g->is_listed = false;
    pthread_cond_signal(&g->wake);
}

bool queue_put(struct queue *q, void *item)
{
    pthread_mutex_lock(&q->lock);
    bool is_taken = !q->is_closed && q->len < q->max;
    if (is_taken) {
        if (q->len == q->size)
            grow(q);
        q->ring[(q->head + q->len) % q->size] = item;
        q->len++;
        wake_getter(q);
    }
    pthread_mutex_unlock(&q->lock);
    return is_taken;
}

static int64_t now_ms(void)
{
    return clock_monotonic_ms(&clock_system);
}

static void list(struct queue *q, struct getter *g)
{
    if (g->is_listed)
        return;
    g->is_listed = true;
    g->next = q->getters;
    q->getters = g;
}

static void unlist(struct queue *q, struct getter *g)
{
    if (!g->is_listed)
        return;
    struct getter **at = &q->getters;
    while (*at != g)
        at = &(*at)->next;
    *at = g->next;
}

/* Until there is an item, the queue is closed or the time is over; lock held. */
static void wait_for_item(struct queue *q, int64_t timeout_ms)
{
    int64_t until_ms = timeout_ms < 0 ? INT64_MAX : now_ms() + timeout_ms;
    struct getter self = {0};
    thread_cond_init(&self.wake);
    while (q->len == 0 && !q->is_closed && now_ms() < until_ms) {
        list(q, &self);
        thread_cond_wait_until(&self.wake, &q->lock, until_ms);
    }
    unlist(q, &self);
    pthread_cond_destroy(&self.wake);
}

void *queue_get(struct queue *q, int64_t timeout_ms)
{
    void *item = NULL;
    pthread_mutex_lock(&q->lock);
    if (q->len == 0)
        wait_for_item(q, timeout_ms);
    if (q->len > 0) {
        item = q->ring[q->head];
        q->head = (q->head + 1) % q->size;
        q->len--;
    }
    pthread_mutex_unlock(&q->lock);
    return item;
}

void queue_close(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->is_closed = true;
    while (q->getters != NULL)
        wake_getter(q);
    pthread_mutex_unlock(&q->lock);
}

size_t queue_len(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    size_t n = q->len;
    pthread_mutex_unlock(&q->lock);
    return n;
}
