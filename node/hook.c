/* Carries out postStart and preStop hooks, each once. A key is UID/CONTAINER/postStart. */
#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "node/run.h"

#define POST_START_MS (10 * 60000)

static enum hook_state *state_of(struct note *note, bool is_post_start)
{
    return is_post_start ? &note->post_start : &note->pre_stop;
}

void hook_begin(struct runner *r, const struct run *run, const char *container, bool is_post_start)
{
    SCOPED_FREE char *key =
        xasprintf("%s/%s/%s", run->uid, container, is_post_start ? "postStart" : "preStop");
    pthread_mutex_lock(&r->lock);
    struct run *same = map_get(r->runs, run->uid);
    struct note *note = same ? run_note(same, container) : NULL;
    if (note)
        *state_of(note, is_post_start) = HOOK_RUNS;
    pthread_mutex_unlock(&r->lock);
    loop_add(r->hooks, key);
}

static void conclude(struct runner *r, const char *uid, const char *container, const char *id,
                     bool is_post_start, const struct err *err)
{
    pthread_mutex_lock(&r->lock);
    struct run *run = map_get(r->runs, uid);
    struct note *note = run ? run_note(run, container) : NULL;
    if (note && note->instance_id && strcmp(note->instance_id, id) == 0) {
        *state_of(note, is_post_start) = err->code == ERR_NONE ? HOOK_DONE : HOOK_FAILED;
        if (err->code != ERR_NONE) {
            free(note->trouble);
            note->trouble =
                xasprintf("%s hook: %s", is_post_start ? "postStart" : "preStop", err_text(err));
        }
    }
    pthread_mutex_unlock(&r->lock);
    loop_add(r->pods, uid);
}

/* A preStop hook has the time until the container is killed. */
static int64_t time_of(struct runner *r, const char *uid, const char *container, bool is_post_start)
{
    int64_t ms = POST_START_MS;
    pthread_mutex_lock(&r->lock);
    struct run *run = map_get(r->runs, uid);
    const struct note *note = run ? run_note(run, container) : NULL;
    if (note && !is_post_start)
        ms = note->deadline_ms - run_now_ms(r);
    pthread_mutex_unlock(&r->lock);
    return ms > 0 ? ms : 1;
}

int hook_work(void *ctx, const char *key, struct loop_result *ret)
{
    (void)ret;
    struct runner *r = ctx;
    const char *first = strchr(key, '/'), *last = strrchr(key, '/');
    SCOPED_FREE char *uid = xstrndup(key, (size_t)(first - key));
    SCOPED_FREE char *container = xstrndup(first + 1, (size_t)(last - first) - 1);
    bool is_post_start = strcmp(last + 1, "postStart") == 0;
    SCOPED(handler_target_fini) struct handler_target t = {0};
    SCOPED(err_fini) struct err err = {0};
    if (!handler_find(r, uid, container, &t))
        return 0;
    const cJSON *hook = json_get(json_get(t.container, "lifecycle"), last + 1);
    handler_run(r, &t, hook, time_of(r, uid, container, is_post_start), &err);
    if (err.code != ERR_NONE)
        log_info("hook failed pod=%s container=%s hook=%s: %s", uid, container, last + 1,
                 err_text(&err));
    conclude(r, uid, container, t.id, is_post_start, &err);
    return 0;
}
