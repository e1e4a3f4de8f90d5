/* Durations as Go writes them (1h30m, 5m0s, 20s, 1.5s, 100ms), for flags and texts. Pure; any
 * thread. */
#pragma once

#include <stdint.h>

#include "apiserver/base/buf.h"

/* Whole text, not negative, units h m s ms us µs ns, parts of a millisecond rounded down; "0" needs
 * no unit. 0 or -1; *ret_ms untouched on failure. Source: Go time.ParseDuration. */
int duration_parse_ms(const char *text, int64_t *ret_ms);
/* Source: Go time.Duration.String. */
void duration_print_ms(int64_t ms, struct buf *out);
