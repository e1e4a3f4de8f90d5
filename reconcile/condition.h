/* metav1.Condition lists: find, upsert, remove (G6). Pure. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

struct condition {
    const char *type, *status, *reason, *message;
    int64_t observed_generation;
};
cJSON *condition_find(const cJSON *conditions, const char *type); /* NULL when absent */
bool condition_has_reason(const cJSON *conditions, const char *type, const char *reason);
/* A Sandbox's condition may have it. */
bool condition_reason_fits(const char *reason);
/* New type: appended with lastTransitionTime now. Existing: the time moves only when the status
 * changes. A message that is longer than any may be is cut. */
void condition_set(cJSON *conditions, const struct condition *c, int64_t now_unix_s);
void condition_remove(cJSON *conditions, const char *type); /* keeps the order of the others */
/* An object's status to be changed, with its conditions as a list, be it empty. The caller's. */
cJSON *condition_status_copy(const cJSON *object);
