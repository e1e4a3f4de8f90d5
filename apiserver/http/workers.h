/* A pool of threads that run what may block. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct workers;
/* n threads, and up to 20 times as many while there is so much to do; at most max_queue items wait.
 * run gets each item on one of the threads. NULL when the n threads cannot be had. */
struct workers *workers_new(int n, size_t max_queue, void (*run)(void *item));
bool workers_put(struct workers *w,
                 void *item); /* false when the queue is full or closed; the caller keeps item */
/* Takes no more, runs what waits, joins the threads. workers_put answers false from then on. */
void workers_stop(struct workers *w);
void workers_free(struct workers *w); /* stops first; NULL is fine */
