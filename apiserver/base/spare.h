/* Memory that was freed and that the C library keeps for the next burst: once a burst is over it
 * goes back to the system. One thread, the one that waits for the end of the program. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is known from the last look; starts as {0}. */
struct spare {
    int64_t cpu_ms;     /* of the process until then, all threads */
    size_t floor_bytes; /* resident after memory was given back last; 0 = never was */
};
/* Whether memory is to be given back now, every_ms after the last look: enough has come since the
 * last time, and the process has little to do, which would want it back at once. */
bool spare_is_due(struct spare *s, size_t resident_bytes, int64_t cpu_ms, int64_t every_ms);

/* Waits for one of the signals, which must be blocked, and returns it; meanwhile looks after memory
 * every two seconds. */
int spare_wait_signal(struct spare *s, const sigset_t *signals);
