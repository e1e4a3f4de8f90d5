#include "apiserver/base/thread.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "apiserver/base/log.h"

bool thread_try_start(pthread_t *ret, const char *name, size_t stack_bytes, void *(*run)(void *arg),
                      void *arg)
{
    sigset_t all, before;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    if (stack_bytes > 0)
        pthread_attr_setstacksize(&attr, stack_bytes);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the new thread inherits it */
    bool is_started = pthread_create(ret, &attr, run, arg) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (is_started)
        pthread_setname_np(*ret, name);
    return is_started;
}

void thread_start(pthread_t *ret, const char *name, void *(*run)(void *arg), void *arg)
{
    if (thread_try_start(ret, name, 0, run, arg))
        return;
    log_error("cannot start thread name=\"%s\", ending", name);
    abort();
}

void thread_cond_init(pthread_cond_t *c)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(c, &attr);
    pthread_condattr_destroy(&attr);
}

void thread_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *lock, int64_t until_ms)
{
    if (until_ms == INT64_MAX) {
        pthread_cond_wait(c, lock);
        return;
    }
    struct timespec until = {.tv_sec = until_ms / 1000, .tv_nsec = until_ms % 1000 * 1000000};
    pthread_cond_timedwait(c, lock, &until);
}
