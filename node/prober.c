/* Carries probes out, each again and again for itself while its container runs. */
#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "node/run.h"

static char *key_of(const char *uid, const struct member *m, enum probe_kind kind)
{
    const char digit[] = {(char)('0' + kind), '\0'};
    return handler_key_print(uid, m->name, m->now->id, digit);
}

/* A run of a container that is new to us begins without results. */
void prober_adopt(struct runner *r, struct run *run, const struct member *m)
{
    struct note *note = run_note(run, m->name);
    const char *id = m->now && m->now->state == INSTANCE_RUNNING ? m->now->id : NULL;
    pthread_mutex_lock(&r->lock);
    bool is_same =
        id ? note->instance_id && strcmp(note->instance_id, id) == 0 : !note->instance_id;
    if (!is_same) {
        free(note->instance_id);
        free(steal(&note->trouble));
        note->instance_id = id ? xstrdup(id) : NULL;
        memset(note->probes, 0, sizeof note->probes);
        note->post_start = note->pre_stop = HOOK_NONE;
        note->is_stopping = note->is_signalled = false;
    }
    pthread_mutex_unlock(&r->lock);
    for (int k = 0; !is_same && id && k < PROBE_KINDS; k++) {
        struct probe probe = probe_read(m->spec, (enum probe_kind)k);
        SCOPED_FREE char *key = key_of(run->uid, m, (enum probe_kind)k);
        if (probe.spec)
            loop_add_after(r->probes, key, probe.delay_ms ? probe.delay_ms : 1);
    }
}

/* The other kinds wait until the startup probe has passed; that one ends then. */
static bool is_due(struct runner *r, const char *uid, const char *container,
                   const struct handler_target *t, enum probe_kind kind, bool *ret_is_over)
{
    struct probe startup = probe_read(t->container, PROBE_STARTUP);
    pthread_mutex_lock(&r->lock);
    struct run *run = map_get(r->runs, uid);
    const struct note *note = run ? run_note(run, container) : NULL;
    bool has_started = note && probe_passes(&startup, &note->probes[PROBE_STARTUP], PROBE_STARTUP);
    *ret_is_over = !note || note->is_stopping || (kind == PROBE_STARTUP && has_started);
    pthread_mutex_unlock(&r->lock);
    return !*ret_is_over && (kind == PROBE_STARTUP || has_started);
}

/* True when the verdict changes. */
static bool take_in(struct runner *r, const char *uid, const char *container,
                    const struct handler_target *t, enum probe_kind kind, const struct err *err)
{
    struct probe probe = probe_read(t->container, kind);
    bool passes = err->code == ERR_NONE, changes = false;
    pthread_mutex_lock(&r->lock);
    struct run *run = map_get(r->runs, uid);
    struct note *note = run ? run_note(run, container) : NULL;
    if (note && note->instance_id && strcmp(note->instance_id, t->id) == 0) {
        changes = probe_take(&probe, &note->probes[kind], passes);
        if (!passes && kind != PROBE_READINESS) { /* that one costs no container its life */
            free(note->trouble);
            note->trouble = xasprintf("%s: %s", probe_fields[kind], err_text(err));
        }
    }
    pthread_mutex_unlock(&r->lock);
    return changes;
}

int prober_work(void *ctx, const char *key, struct loop_result *ret)
{
    struct runner *r = ctx;
    SCOPED(handler_key_fini) struct handler_key k = handler_key_read(key);
    enum probe_kind kind = (enum probe_kind)(k.what[0] - '0');
    SCOPED(handler_target_fini) struct handler_target t = {0};
    SCOPED(err_fini) struct err err = {0};
    bool is_over = false;
    if (!handler_find(r, &k, &t))
        return 0;
    struct probe probe = probe_read(t.container, kind);
    bool is_due_now = is_due(r, k.uid, k.container, &t, kind, &is_over);
    if (is_over || !probe.spec)
        return 0;
    ret->again_after_ms = probe.period_ms;
    if (!is_due_now)
        return 0;
    if (!handler_enter(r, k.uid, HANDLER_PROBES)) {
        ret->again_after_ms = HANDLER_WAIT_MS;
        return 0;
    }
    handler_run(r, &t, probe.spec, probe.timeout_ms, &err);
    handler_leave(r, k.uid, HANDLER_PROBES);
    if (take_in(r, k.uid, k.container, &t, kind, &err)) {
        log_debug("probe changed pod=%s container=%s probe=%s passes=%d", k.uid, k.container,
                  probe_fields[kind], err.code == ERR_NONE);
        loop_add(r->pods, k.uid);
    }
    return 0;
}
