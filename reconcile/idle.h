/* Suspension of Sandboxes that nobody uses, and their return: pure decisions over a Sandbox's tree,
 * ours and opt-in (docs/design.md 6). A Sandbox asks for it by ANNOTATION_IDLE_TIMEOUT; since when
 * it is idle stands in ANNOTATION_ACTIVE_UNTIL; one that was suspended for it carries
 * ANNOTATION_IDLE_SINCE, by which it is told from one that its user suspended. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/err.h"
#include "apiserver/registry/activity.h"

/* ms; 0 = it does not ask for it (or a pool owns it: its time begins when it is claimed). */
int64_t idle_timeout_ms(const cJSON *sandbox);

enum idle_step {
    IDLE_KEEP,
    IDLE_BEGIN,   /* ready for the first time since its start: the time runs from now on */
    IDLE_FORGET,  /* its user has suspended or resumed it: what we noted goes */
    IDLE_SUSPEND, /* the time is over */
};
/* What its annotations need, with the conditions that its status has, or is about to have.
 * *ret_left_ms: the next look, 0 = none. */
enum idle_step idle_plan(const cJSON *sandbox, const cJSON *conditions, int64_t now_unix_ms,
                         int64_t *ret_left_ms);
/* Carries a step out on the tree. */
void idle_apply(enum idle_step step, cJSON *sandbox, int64_t now_unix_ms);

/* Somebody uses the Sandbox. Notes it, or wakes it; ACTIVITY_NONE when its annotations say enough
 * already. sandbox is changed in place. Errors: ERR_CONFLICT, its user has suspended it. */
int idle_note_activity(cJSON *sandbox, int64_t now_unix_ms, enum activity *ret, struct err *err);

/* The two as the registry asks for them. */
struct idle_activity {
    struct activity_ops ops;
    const struct clock *clock; /* borrowed */
};
void idle_activity_init(struct idle_activity *a, const struct clock *clock);
