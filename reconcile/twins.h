/* Sandboxes of one namespace whose names have the same hash: what selects by it, Services above
 * all, cannot tell their Pods apart. So the first that gets a Pod or Service keeps the
 * others from it, and here is seen to it that two workers do not find the place empty at once: one
 * leader makes Pods, so its memory is enough. Any thread. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>

struct twins;
struct twins *twins_new(void);
void twins_free(struct twins *t);
/* True: Pod and Service of this Sandbox may be judged and made, until twins_leave. False while
 * somebody else of that hash is at it. */
bool twins_enter(struct twins *t, const cJSON *sandbox);
void twins_leave(struct twins *t, const cJSON *sandbox);
