/* Memory that was freed and that the C library keeps for the next burst: once a burst is over it
 * goes back to the system. One thread, the one that waits for the end of the program. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The process at one look. */
struct spare_state {
    size_t resident_bytes;
    size_t used_bytes; /* of the C library's memory, by this program */
    int64_t cpu_ms;    /* until now, all threads */
};
/* What is known from the last look; starts as {0}. */
struct spare {
    int64_t cpu_ms;
    size_t other_bytes; /* resident and not in use after memory was given back last: code, stacks,
                           what is too small to be given back; 0 = never was */
};
/* Whether memory is to be given back now, every_ms after the last look: enough is resident without
 * being in use, and the process has little to do, which would want it back at once. */
bool spare_is_due(struct spare *s, const struct spare_state *now, int64_t every_ms);
/* Memory was given back, and now is what stayed. */
void spare_given_back(struct spare *s, const struct spare_state *now);

/* Waits for one of the signals, which must be blocked, and returns it; meanwhile looks after memory
 * every two seconds. */
int spare_wait_signal(struct spare *s, const sigset_t *signals);
