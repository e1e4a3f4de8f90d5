/* An events.k8s.io/v1 Event about an object of ours. Pure. */
#pragma once

#include <cjson/cJSON.h>
#include <stdint.h>

#include "apiserver/base/rand.h"

struct event_text {
    const char *type, *reason, *action, *note; /* borrowed */
};
/* regarding: the object's tree. instance: who reports (host name). The caller's. */
cJSON *event_make(const cJSON *regarding, const struct event_text *text, const char *controller,
                  const char *instance, int64_t now_unix_us, const struct randomness *randomness);
