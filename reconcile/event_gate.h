/* Keeps events from flooding the cluster: what is said of an object again with the same words
 * within some minutes becomes a series of the event that is there already (events.k8s.io/v1), and
 * nobody has more than one event a second said of it, but for a few at once. Knows no cluster; the
 * time is given. Any thread.
 *
 * The newest objects are remembered, so memory is bounded however many there are; what is said of a
 * forgotten one is new. */
#pragma once

#include <cjson/cJSON.h>
#include <stdint.h>

enum event_way {
    EVENT_NEW,    /* to be made */
    EVENT_REPEAT, /* to be counted with an event that was made */
    EVENT_LIMITED /* to be left out; a later repetition counts it */
};
struct event_repeat {
    char *name;     /* of the event that was made; the caller's */
    unsigned count; /* so often it was said by now */
};
struct event_gate;
struct event_gate *event_gate_new(void);
void event_gate_free(struct event_gate *g); /* NULL is fine */
/* ret is set for EVENT_REPEAT only. now_ms: monotonic. */
enum event_way event_gate_judge(struct event_gate *g, const cJSON *event, int64_t now_ms,
                                struct event_repeat *ret);
