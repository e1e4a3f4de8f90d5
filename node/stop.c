/* The end of a container: its preStop hook, its signal, and when its time is over, SIGKILL. */
#include <signal.h>

#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "node/disk.h"
#include "node/run.h"

#define KILL_AGAIN_MS 1000 /* for one that does not end at once */
#define GRACE_DEFAULT_S 30
#define GRACE_MAX_S INT32_MAX

static void wake_in(int64_t *wait_ms, int64_t ms)
{
    if (ms < 1)
        ms = 1;
    if (*wait_ms == 0 || ms < *wait_ms)
        *wait_ms = ms;
}

static int64_t seconds_ms(int64_t seconds)
{
    return (seconds < 0 ? 0 : seconds > GRACE_MAX_S ? GRACE_MAX_S : seconds) * 1000;
}

/* ms that are left to a Pod that is deleted. The cluster's time includes the grace period and is
 * cut to whole seconds, so up to one more is left, but never more than the whole period. */
static int64_t deletion_grace_ms(const struct runner *r, const struct run *run, int64_t until_ms)
{
    int64_t whole_ms = seconds_ms(json_i64_or(run->pod, "metadata.deletionGracePeriodSeconds", 0));
    int64_t left_ms = until_ms + 1000 - run_now_ms(r);
    int64_t least_ms = left_ms < whole_ms ? left_ms : whole_ms;
    return least_ms > 0 ? least_ms : 0;
}

/* The time that is left to a container, ms. */
static int64_t grace_ms(const struct runner *r, const struct run *run, const struct member *m)
{
    int64_t until_ms,
        grace_s = json_i64_or(run->pod, "spec.terminationGracePeriodSeconds", GRACE_DEFAULT_S);
    const char *deleted = json_str(run->pod, "metadata.deletionTimestamp");
    if (deleted && clock_parse_rfc3339(deleted, &until_ms) == 0)
        return deletion_grace_ms(r, run, until_ms);
    for (int k = 0; k < PROBE_KINDS; k++) {
        struct probe probe = probe_read(m->spec, (enum probe_kind)k);
        if (m->is_unhealthy && probe.spec && k != PROBE_READINESS && probe.grace_ms >= 0)
            return probe.grace_ms;
    }
    return seconds_ms(grace_s);
}

/* True when it has it, or is no more. */
static bool signal_it(struct runner *r, const struct run *run, const struct instance *i, int number)
{
    SCOPED(err_fini) struct err err = {0};
    SCOPED_FREE char *text = xasprintf("%d", number);
    int rc = podman_signal(r->config.podman, i->id, text, &err);
    bool is_good = rc == 0 || rc == -ERR_CONFLICT || rc == -ERR_NOT_FOUND;
    if (!is_good)
        log_warn("signal failed pod=%s container=%s, trying again: %s", run->uid, i->name,
                 err_text(&err));
    return is_good;
}

static enum hook_state pre_stop_state(struct runner *r, struct note *note)
{
    pthread_mutex_lock(&r->lock);
    enum hook_state state = note->pre_stop;
    pthread_mutex_unlock(&r->lock);
    return state;
}

static void begin(struct runner *r, struct run *run, const struct member *m, struct note *note)
{
    int64_t grace = grace_ms(r, run, m);
    pthread_mutex_lock(&r->lock);
    note->is_stopping = true;
    note->deadline_ms = run_now_ms(r) + grace;
    SCOPED_FREE char *why = xstrdup(note->trouble ? note->trouble : "probe");
    pthread_mutex_unlock(&r->lock);
    if (m->is_unhealthy) {
        SCOPED_FREE char *text =
            xasprintf("Container %s is killed and will be restarted: %s", m->name, why);
        report_event(r, run->pod, "Warning", "Unhealthy", text);
    }
    if (grace > 0 && json_at(m->spec, "lifecycle.preStop"))
        hook_begin(r, run, m->name, false);
}

void stop_member(struct runner *r, struct run *run, const struct member *m, int64_t *wait_ms)
{
    struct note *note = run_note(run, m->name);
    if (!note->is_stopping)
        begin(r, run, m, note);
    int64_t grace = grace_ms(r, run, m), left_ms = note->deadline_ms - run_now_ms(r);
    if (json_str(run->pod, "metadata.deletionTimestamp") && grace < left_ms)
        left_ms = grace; /* deleted once more, with less time */
    if (left_ms <= 0) {
        signal_it(r, run, m->now, SIGKILL);
        wake_in(wait_ms, KILL_AGAIN_MS);
        return;
    }
    if (!note->is_signalled && pre_stop_state(r, note) != HOOK_RUNS) {
        note->is_signalled = signal_it(r, run, m->now, m->now->stop_signal);
        if (!note->is_signalled)
            wake_in(wait_ms, KILL_AGAIN_MS);
    }
    wake_in(wait_ms, left_ms);
}

/* Ids and names of a Pod's containers, as the engine lists them. */
static int list_of(struct runner *r, const char *uid, struct instances *ret, struct err *err)
{
    SCOPED(json_free_p) cJSON *list = NULL;
    SCOPED_FREE char *label = xasprintf(LABEL_UID "=%s", uid);
    int rc = podman_list(r->config.podman, label, &list, err);
    ret->v = xcalloc(json_len(list) + 1, sizeof *ret->v);
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        const cJSON *name = json_get(json_get(item, "Labels"), LABEL_CONTAINER);
        ret->v[ret->n++] = (struct instance){
            .id = xstrdup(json_str_or(item, "Id", "")),
            .name = xstrdup(cJSON_IsString(name) ? name->valuestring : INSTANCE_PAUSE),
        };
    }
    return rc;
}

/* Those that join the sandbox's namespaces go before it. */
static int remove_all(struct runner *r, const struct instances *all, struct err *err)
{
    int rc = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < all->n && rc == 0; i++) {
            bool is_pause = strcmp(all->v[i].name, INSTANCE_PAUSE) == 0;
            if (is_pause == (pass == 1))
                rc = podman_remove(r->config.podman, all->v[i].id, err);
        }
    }
    return rc;
}

int stop_all(struct runner *r, const char *uid, const struct instances *all, struct err *err)
{
    SCOPED(instances_fini) struct instances listed = {0};
    int rc = all ? 0 : list_of(r, uid, &listed, err);
    if (rc == 0)
        rc = remove_all(r, all ? all : &listed, err);
    if (rc < 0)
        return rc;
    firewall_detach(r->firewall, uid);
    SCOPED_FREE char *folder = NULL, *claims = NULL;
    struct volume_place place = run_place(r, uid, &folder, &claims);
    return volume_remove_all(&place, err);
}
