#include "reconcile/event_gate.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/hash.h"
#include "apiserver/base/json.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "reconcile/child.h"

#define OBJECTS_MAX 2048
#define SERIES_MAX 8            /* texts remembered of one object */
#define REMEMBER_MS (6 * 60000) /* since it was said last. Source: client-go's series of events */
#define BURST 10                /* events of one object at once */
#define INTERVAL_MS ((int64_t)1000) /* between them in the long run */

struct series {
    uint64_t text; /* hash of what is said */
    char *name;
    unsigned count;
    int64_t last_ms;
};
/* In a list, the one that was spoken of last first. */
struct spoken_of {
    struct spoken_of *newer, *older;
    char *uid;
    int64_t due_ms; /* when the bucket is full again; the generic cell rate algorithm */
    struct series series[SERIES_MAX];
    size_t n;
};
struct event_gate {
    pthread_mutex_t lock;
    struct map *by_uid;
    struct spoken_of *newest, *oldest;
};

/* ---- the objects that are remembered ---- */

static void unlink_object(struct event_gate *g, struct spoken_of *o)
{
    *(o->newer ? &o->newer->older : &g->newest) = o->older;
    *(o->older ? &o->older->newer : &g->oldest) = o->newer;
    o->newer = o->older = NULL;
}

static void link_newest(struct event_gate *g, struct spoken_of *o)
{
    o->older = g->newest;
    *(g->newest ? &g->newest->newer : &g->oldest) = o;
    g->newest = o;
}

static void forget(struct event_gate *g, struct spoken_of *o)
{
    unlink_object(g, o);
    map_del(g->by_uid, o->uid);
    for (size_t i = 0; i < o->n; i++)
        free(o->series[i].name);
    free(o->uid);
    free(o);
}

static struct spoken_of *remember(struct event_gate *g, const char *uid)
{
    struct spoken_of *o = map_get(g->by_uid, uid);
    if (o) {
        unlink_object(g, o);
    } else {
        if (map_len(g->by_uid) == OBJECTS_MAX)
            forget(g, g->oldest);
        o = xcalloc(1, sizeof *o);
        o->uid = xstrdup(uid);
        map_put(g->by_uid, uid, o);
    }
    link_newest(g, o);
    return o;
}

static int64_t last_said_ms(const struct spoken_of *o)
{
    int64_t last_ms = 0;
    for (size_t i = 0; i < o->n; i++)
        last_ms = o->series[i].last_ms > last_ms ? o->series[i].last_ms : last_ms;
    return last_ms;
}

static void forget_old(struct event_gate *g, int64_t now_ms)
{
    while (g->oldest && now_ms - last_said_ms(g->oldest) > REMEMBER_MS)
        forget(g, g->oldest);
}

/* ---- what is said of one ---- */

static uint64_t text_of(const cJSON *event)
{
    static const char *const members[] = {"type", "reason", "action", "note",
                                          "reportingController"};
    SCOPED(buf_fini) struct buf text = {0};
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        buf_printf(&text, "%s\n", json_str_or(event, members[i], ""));
    return hash_bytes(buf_cstr(&text), text.len);
}

/* NULL when it was not said lately. */
static struct series *series_find(struct spoken_of *o, uint64_t text, int64_t now_ms)
{
    for (size_t i = 0; i < o->n; i++) {
        if (o->series[i].text == text && now_ms - o->series[i].last_ms <= REMEMBER_MS)
            return &o->series[i];
    }
    return NULL;
}

/* In the place of the one that was said longest ago when there is none left. */
static void series_begin(struct spoken_of *o, uint64_t text, const char *name, int64_t now_ms)
{
    struct series *s = &o->series[0];
    if (o->n < SERIES_MAX) {
        s = &o->series[o->n++];
    } else {
        for (size_t i = 1; i < o->n; i++)
            s = o->series[i].last_ms < s->last_ms ? &o->series[i] : s;
    }
    free(s->name);
    *s = (struct series){.text = text, .name = xstrdup(name), .count = 1, .last_ms = now_ms};
}

static bool take_turn(struct spoken_of *o, int64_t now_ms)
{
    int64_t due_ms = o->due_ms > now_ms ? o->due_ms : now_ms;
    if (due_ms - now_ms > (BURST - 1) * INTERVAL_MS)
        return false;
    o->due_ms = due_ms + INTERVAL_MS;
    return true;
}

static enum event_way judge(struct spoken_of *o, const cJSON *event, int64_t now_ms,
                            struct event_repeat *ret)
{
    uint64_t text = text_of(event);
    struct series *s = series_find(o, text, now_ms);
    if (s) {
        s->count++;
        s->last_ms = now_ms;
    }
    if (!take_turn(o, now_ms))
        return EVENT_LIMITED;
    if (!s) {
        series_begin(o, text, meta_name(event), now_ms);
        return EVENT_NEW;
    }
    *ret = (struct event_repeat){.name = xstrdup(s->name), .count = s->count};
    return EVENT_REPEAT;
}

enum event_way event_gate_judge(struct event_gate *g, const cJSON *event, int64_t now_ms,
                                struct event_repeat *ret)
{
    pthread_mutex_lock(&g->lock);
    forget_old(g, now_ms);
    struct spoken_of *o = remember(g, json_str_or(event, "regarding.uid", ""));
    enum event_way way = judge(o, event, now_ms, ret);
    pthread_mutex_unlock(&g->lock);
    return way;
}

/* ---- life ---- */

struct event_gate *event_gate_new(void)
{
    struct event_gate *g = xcalloc(1, sizeof *g);
    pthread_mutex_init(&g->lock, NULL);
    g->by_uid = map_new();
    return g;
}

void event_gate_free(struct event_gate *g)
{
    if (!g)
        return;
    while (g->oldest)
        forget(g, g->oldest);
    map_free(g->by_uid);
    pthread_mutex_destroy(&g->lock);
    free(g);
}
