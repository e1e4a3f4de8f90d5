/* Carries out postStart and preStop hooks, each once. One that sleeps takes no worker: the queue's
 * clock does it. */
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
        key = handler_key_print(run->uid, container, note->instance_id, field);
        after_ms = sleep_ms(json_get(lifecycle, field), time_of(r, note, is_post_start));
    }
    pthread_mutex_unlock(&r->lock);
    if (key)
        loop_add_after(r->hooks, key, after_ms);
}

static bool is_post_start(const struct handler_key *k)
{
    return strcmp(k->what, "postStart") == 0;
}

/* Lock held; NULL when another run has taken its place. */
static struct note *note_of(struct runner *r, const struct handler_key *k)
{
    struct run *run = map_get(r->runs, k->uid);
    struct note *note = run ? run_note(run, k->container) : NULL;
    return note && note->instance_id && strcmp(note->instance_id, k->id) == 0 ? note : NULL;
}

static void conclude(struct runner *r, const struct handler_key *k, const struct err *err)
{
    if (err->code != ERR_NONE)
        log_info("hook failed pod=%s container=%s hook=%s: %s", k->uid, k->container, k->what,
                 err_text(err));
    pthread_mutex_lock(&r->lock);
    struct note *note = note_of(r, k);
    if (note)
        *state_of(note, is_post_start(k)) = err->code == ERR_NONE ? HOOK_DONE : HOOK_FAILED;
    if (note && err->code != ERR_NONE) {
        free(note->trouble);
        note->trouble = xasprintf("%s hook: %s", k->what, err_text(err));
    }
    pthread_mutex_unlock(&r->lock);
    loop_add(r->pods, k->uid);
}

/* False when it is over, or its run is. */
static bool find(struct runner *r, const struct handler_key *k, struct handler_target *ret,
                 int64_t *ret_time_ms)
{
    pthread_mutex_lock(&r->lock);
    const struct note *note = note_of(r, k);
    if (note)
        *ret_time_ms = time_of(r, note, is_post_start(k));
    pthread_mutex_unlock(&r->lock);
    return note && handler_find(r, k, ret);
}

int hook_work(void *ctx, const char *key, struct loop_result *ret)
{
    struct runner *r = ctx;
    int64_t time_ms = 0;
    SCOPED(handler_key_fini) struct handler_key k = handler_key_read(key);
    SCOPED(handler_target_fini) struct handler_target t = {0};
    SCOPED(err_fini) struct err err = {0};
    if (!find(r, &k, &t, &time_ms))
        return 0;
    const cJSON *hook = json_get(json_get(t.container, "lifecycle"), k.what);
    if (!json_get(hook, "sleep")) {
        if (!handler_enter(r, k.uid, HANDLER_HOOKS)) {
            ret->again_after_ms = HANDLER_WAIT_MS;
            return 0;
        }
        handler_run(r, &t, hook, time_ms, &err);
        handler_leave(r, k.uid, HANDLER_HOOKS);
    }
    conclude(r, &k, &err);
    return 0;
}
