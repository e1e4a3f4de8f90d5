/* The threads of the stores: they get no signals (those are for main), and one that cannot be
 * started ends the process, as exhausted memory does. */
#pragma once

#include <pthread.h>
#include <stdint.h>

void thread_start(pthread_t *ret, const char *name, void *(*run)(void *arg),
                  void *arg);             /* name: at most 15 bytes */
void thread_cond_init(pthread_cond_t *c); /* waits by the clock of clock_monotonic_ms */
/* Waits until woken or until that time in ms; INT64_MAX = until woken. As always with conditions it
 * may wake early. */
void thread_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *lock, int64_t until_ms);
