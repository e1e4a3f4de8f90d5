/* Bounded queue of pointers between threads. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct queue;
struct queue *queue_new(size_t max);
void queue_free(struct queue *q); /* must be empty or its items be owned elsewhere */
/* false when full or closed; the caller keeps item */
bool queue_put(struct queue *q, void *item);
/* NULL at time-out (-1 = none) or when closed and empty */
void *queue_get(struct queue *q, int64_t timeout_ms);
void queue_close(struct queue *q); /* no more puts; gets drain what is there */
size_t queue_len(struct queue *q);
