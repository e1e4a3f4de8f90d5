#include "reconcile/idle.h"

#include "apiserver/base/clock.h"
#include "apiserver/base/duration.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "openapi/kinds.h"
#include "reconcile/child.h"
#include "reconcile/condition.h"
#include "reconcile/keys.h"
#include "reconcile/sandbox.h"

/* A write that notes activity covers a slice of the timeout to come, so that what is reported
 * within it needs no other: suspension comes up to a slice late, and never early. */
#define SLICES 20
#define SLICE_MIN_MS 1000

int64_t idle_timeout_ms(const cJSON *sandbox)
{
    const char *text = meta_annotation(sandbox, ANNOTATION_IDLE_TIMEOUT);
    int64_t ms;
    if (!text || duration_parse_ms(text, &ms) < 0 ||
        owner_is_kind(owner_controller(sandbox), GROUP_EXTENSIONS, KIND_POOL))
        return 0;
    return ms;
}

/* unix ms; 0 = it does not say */
static int64_t active_until_ms(const cJSON *sandbox)
{
    const char *text = meta_annotation(sandbox, ANNOTATION_ACTIVE_UNTIL);
    int64_t ms;
    return text && clock_parse_rfc3339(text, &ms) == 0 ? ms : 0;
}

static void drop_annotation(cJSON *sandbox, const char *key)
{
    cJSON *metadata = json_get(sandbox, "metadata");
    cJSON *annotations = json_get(metadata, "annotations");
    json_remove(annotations, key);
    if (annotations && !annotations->child)
        json_remove(metadata, "annotations");
}

/* Whole seconds, rounded up: never earlier than meant. */
static void set_time(cJSON *sandbox, const char *key, int64_t unix_ms)
{
    char text[CLOCK_TEXT_SIZE];
    clock_print_rfc3339((unix_ms + 999) / 1000, text);
    cJSON *metadata = json_ensure_object(sandbox, "metadata");
    json_set_str(json_ensure_object(metadata, "annotations"), key, text);
}

static bool is_ready(const cJSON *conditions)
{
    return str_equal(json_str(condition_find(conditions, "Ready"), "status"), "True");
}

enum idle_step idle_plan(const cJSON *sandbox, const cJSON *conditions, int64_t now_unix_ms,
                         int64_t *ret_left_ms)
{
    int64_t timeout_ms = idle_timeout_ms(sandbox), until_ms = active_until_ms(sandbox);
    *ret_left_ms = 0;
    if (sandbox_is_suspended(sandbox))
        return until_ms ? IDLE_FORGET : IDLE_KEEP;
    if (meta_annotation(sandbox, ANNOTATION_IDLE_SINCE))
        return IDLE_FORGET;
    if (timeout_ms == 0 ||
        condition_find(conditions, "Finished")) /* nothing runs that would idle */
        return IDLE_KEEP;
    if (until_ms == 0) {
        *ret_left_ms = is_ready(conditions) ? timeout_ms : 0;
        return is_ready(conditions) ? IDLE_BEGIN : IDLE_KEEP;
    }
    int64_t left_ms = until_ms + timeout_ms - now_unix_ms;
    if (left_ms <= 0)
        return IDLE_SUSPEND;
    *ret_left_ms = left_ms;
    return IDLE_KEEP;
}

static void set_mode(cJSON *sandbox, const char *mode)
{
    json_set_str(json_ensure_object(sandbox, "spec"), "operatingMode", mode);
}

void idle_apply(enum idle_step step, cJSON *sandbox, int64_t now_unix_ms)
{
    switch (step) {
    case IDLE_KEEP:
        return;
    case IDLE_BEGIN:
        set_time(sandbox, ANNOTATION_ACTIVE_UNTIL, now_unix_ms);
        return;
    case IDLE_FORGET:
        drop_annotation(sandbox, ANNOTATION_ACTIVE_UNTIL);
        if (!sandbox_is_suspended(sandbox))
            drop_annotation(sandbox, ANNOTATION_IDLE_SINCE);
        return;
    case IDLE_SUSPEND:
        set_mode(sandbox, "Suspended");
        set_time(sandbox, ANNOTATION_IDLE_SINCE, active_until_ms(sandbox));
        drop_annotation(sandbox, ANNOTATION_ACTIVE_UNTIL);
        return;
    }
}

static int64_t slice_ms(int64_t timeout_ms)
{
    int64_t ms = timeout_ms / SLICES;
    return ms > SLICE_MIN_MS ? ms : SLICE_MIN_MS;
}

int idle_note_activity(cJSON *sandbox, int64_t now_unix_ms, enum activity *ret, struct err *err)
{
    int64_t timeout_ms = idle_timeout_ms(sandbox), until_ms = active_until_ms(sandbox);
    bool is_idle = meta_annotation(sandbox, ANNOTATION_IDLE_SINCE) != NULL;
    *ret = ACTIVITY_NONE;
    if (sandbox_is_suspended(sandbox)) {
        if (!is_idle)
            return err_set(err, ERR_CONFLICT,
                           "sandbox \"%s\" was suspended by its user, not for being idle: set "
                           "spec.operatingMode to Running",
                           meta_name(sandbox));
        set_mode(sandbox, "Running");
        drop_annotation(sandbox, ANNOTATION_IDLE_SINCE);
        *ret = ACTIVITY_WOKEN;
    } else if (timeout_ms > 0 && until_ms > 0 && until_ms <= now_unix_ms && !is_idle) {
        set_time(sandbox, ANNOTATION_ACTIVE_UNTIL, now_unix_ms + slice_ms(timeout_ms));
        *ret = ACTIVITY_NOTED;
    }
    return 0;
}

/* ---- for the registry ---- */

static int note(void *ctx, cJSON *object, enum activity *ret, struct err *err)
{
    const struct idle_activity *a = ctx;
    return idle_note_activity(object, clock_unix_ms(a->clock), ret, err);
}

/* Awake and ready; a status from before the suspension does not count. */
static bool object_is_ready(void *ctx, const cJSON *object)
{
    (void)ctx;
    const cJSON *conditions = json_at(object, "status.conditions");
    const cJSON *ready = condition_find(conditions, "Ready");
    return is_ready(conditions) && json_i64_or(ready, "observedGeneration", 0) >=
                                       json_i64_or(object, "metadata.generation", 0);
}

void idle_activity_init(struct idle_activity *a, const struct clock *clock)
{
    *a = (struct idle_activity){
        .ops = {.note = note, .is_ready = object_is_ready, .manager = IDLE_MANAGER, .ctx = a},
        .clock = clock,
    };
}
