/* Threads and waiting with a deadline. Threads get no signals: those are for main, and SIGPIPE is
 * an error code here. Any thread. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* name: at most 15 bytes. A thread that cannot be started ends the process, as exhausted memory
 * does. */
void thread_start(pthread_t *ret, const char *name, void *(*run)(void *arg), void *arg);
/* The same with so many bytes of stack (0 = the usual), false instead of the end. */
bool thread_try_start(pthread_t *ret, const char *name, size_t stack_bytes, void *(*run)(void *arg),
                      void *arg);

void thread_cond_init(pthread_cond_t *c); /* waits by the clock of clock_monotonic_ms */
/* Waits until woken or until that time in ms; INT64_MAX = until woken. As always with conditions it
 * may wake early. */
void thread_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *lock, int64_t until_ms);
