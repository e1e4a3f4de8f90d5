/* How many Sandboxes there are, by what they are (O6), and how large each pool is: counted from the
 * cache whenever metrics are asked for, on every server, whether it leads or not. */
#pragma once

#include "apiserver/registry/registry.h"

struct gauges;
struct gauges *gauges_start(struct registry *registry); /* borrowed */
void gauges_stop(struct gauges *g);                     /* frees; NULL is fine */
