/* Carries out postStart and preStop hooks, each once. A key is UID/CONTAINER/ID/postStart, with the
 * engine's id of the run that the hook is of. One that sleeps takes no worker: the queue's clock
 * does it. */
#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "node/lookup.h"
#include "node/run.h"

#define POST_START_MS (10 * 60000)

static enum hook_state *state_of(struct note *note, bool is_post_start)
{
    return is_post_start ? &note->post_start : &note->pre_stop;
}

/* A preStop hook has the time until the container is killed. Lock held. */
static int64_t time_of(const struct runner *r, const struct note *note, bool is_post_start)
{
    int64_t ms = is_post_start ? POST_START_MS : note->deadline_ms - run_now_ms(r);
    return ms > 0 ? ms : 1;
}

/* Of the time that it has; 0 = it does something else. */
static int64_t sleep_ms(const cJSON *hook, int64_t time_ms)
{
    int64_t seconds = json_i64_or(hook, "sleep.seconds", 0);
    return seconds <= 0 ? 0 : seconds < time_ms / 1000 ? seconds * 1000 : time_ms;
}

void hook_begin(struct runner *r, const struct run *run, const char *container, bool is_post_start)
{
    const char *field = is_post_start ? "postStart" : "preStop";
    const cJSON *lifecycle = json_get(lookup_spec(run->pod, container), "lifecycle");
    SCOPED_FREE char *key = NULL;
    int64_t after_ms = 0;
    pthread_mutex_lock(&r->lock);
    struct run *same = map_get(r->runs, run->uid);
    struct note *note = same ? run_note(same, container) : NULL;
    if (note && note->instance_id) {
        *state_of(note, is_post_start) = HOOK_RUNS;
        key = xasprintf("%s/%s/%s/%s", run->uid, container, note->instance_id, field);
        after_ms = sleep_ms(json_get(lifecycle, field), time_of(r, note, is_post_start));
    }
    pthread_mutex_unlock(&r->lock);
    if (key)
        loop_add_after(r->hooks, key, after_ms);
}

struct hook { /* a key in parts */
    char *uid, *container, *id, *field;
    bool is_post_start;
};

static void hook_fini(struct hook *h)
{
    free(h->uid);
    free(h->container);
    free(h->id);
    free(h->field);
}

static char *next_part(const char **at)
{
    char *part = xstrndup(*at, strcspn(*at, "/"));
    *at += strlen(part);
    *at += **at == '/';
    return part;
}

static struct hook read_key(const char *key)
{
    struct hook h = {.uid = next_part(&key)};
    h.container = next_part(&key);
    h.id = next_part(&key);
    h.field = next_part(&key);
    h.is_post_start = strcmp(h.field, "postStart") == 0;
    return h;
}

/* Lock held; NULL when another run has taken its place. */
static struct note *note_of(struct runner *r, const struct hook *h)
{
    struct run *run = map_get(r->runs, h->uid);
    struct note *note = run ? run_note(run, h->container) : NULL;
    return note && note->instance_id && strcmp(note->instance_id, h->id) == 0 ? note : NULL;
}

static void conclude(struct runner *r, const struct hook *h, const struct err *err)
{
    if (err->code != ERR_NONE)
        log_info("hook failed pod=%s container=%s hook=%s: %s", h->uid, h->container, h->field,
                 err_text(err));
    pthread_mutex_lock(&r->lock);
    struct note *note = note_of(r, h);
    if (note)
        *state_of(note, h->is_post_start) = err->code == ERR_NONE ? HOOK_DONE : HOOK_FAILED;
    if (note && err->code != ERR_NONE) {
        free(note->trouble);
        note->trouble = xasprintf("%s hook: %s", h->field, err_text(err));
    }
    pthread_mutex_unlock(&r->lock);
    loop_add(r->pods, h->uid);
}

/* False when it is over, or its run is. */
static bool find(struct runner *r, const struct hook *h, struct handler_target *ret,
                 int64_t *ret_time_ms)
{
    pthread_mutex_lock(&r->lock);
    const struct note *note = note_of(r, h);
    if (note)
        *ret_time_ms = time_of(r, note, h->is_post_start);
    pthread_mutex_unlock(&r->lock);
    return note && handler_find(r, h->uid, h->container, ret);
}

int hook_work(void *ctx, const char *key, struct loop_result *ret)
{
    struct runner *r = ctx;
    int64_t time_ms = 0;
    SCOPED(hook_fini) struct hook h = read_key(key);
    SCOPED(handler_target_fini) struct handler_target t = {0};
    SCOPED(err_fini) struct err err = {0};
    if (!find(r, &h, &t, &time_ms))
        return 0;
    const cJSON *hook = json_get(json_get(t.container, "lifecycle"), h.field);
    if (!json_get(hook, "sleep")) {
        if (!handler_enter(r, h.uid, HANDLER_HOOKS)) {
            ret->again_after_ms = HANDLER_WAIT_MS;
            return 0;
        }
        handler_run(r, &t, hook, time_ms, &err);
        handler_leave(r, h.uid, HANDLER_HOOKS);
    }
    conclude(r, &h, &err);
    return 0;
}
