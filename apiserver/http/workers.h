/* A pool of threads that run what may block. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct workers;
/* An item; a member of what its maker needs to do it. run is called once, on one of the threads,
 * and nothing looks at the item after it. */
struct work {
    void (*run)(struct work *work);
};
/* n threads, a quarter of them while there is little to do, and up to 20 times as many while there
 * is so much; at most max_queue items wait. NULL when the n threads cannot be had. */
struct workers *workers_new(int n, size_t max_queue);
/* False when the queue is full or closed; the caller keeps work then. */
bool workers_put(struct workers *w, struct work *work);
/* Takes no more, runs what waits, joins the threads. workers_put answers false from then on. */
void workers_stop(struct workers *w);
void workers_free(struct workers *w); /* stops first; NULL is fine */
