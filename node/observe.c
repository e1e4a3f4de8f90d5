/* The engine goes through all its containers to list those of one Pod, so the more there are the
 * longer it takes: that is done once, for a Pod of before the node began. Later only what the Pod
 * is known to have is inspected, one by one, and not even that while it rests (runner.c). */
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "node/lookup.h"
#include "node/run.h"

#define LOG_TAIL_MAX ((size_t)2048)

/* The last words: from its file, else from its output when the spec says so and it failed. */
static void read_message(struct runner *r, const struct run *run, struct instance *i)
{
    SCOPED_FREE char *folder = NULL, *claims = NULL;
    SCOPED(buf_fini) struct buf text = {0};
    struct volume_place place = run_place(r, run->uid, &folder, &claims);
    volume_read_message(&place, i->name, i->attempt, &text);
    const char *policy =
        json_str_or(lookup_spec(run->pod, i->name), "terminationMessagePolicy", "File");
    if (text.len == 0 && i->exit_code != 0 && strcmp(policy, "FallbackToLogsOnError") == 0)
        podman_log_tail(r->config.podman, i->id, LOG_TAIL_MAX, &text, NULL);
    /* JSON takes no broken text; the container's may be anything */
    SCOPED(buf_fini) struct buf clean = {0};
    for (size_t at = 0; at < text.len;) {
        uint32_t rune;
        size_t n = str_utf8_decode(text.data + at, text.len - at, &rune);
        if (n == 0 || rune == 0)
            buf_putc(&clean, '?');
        else
            buf_append(&clean, text.data + at, n);
        at += n ? n : 1;
    }
    if (clean.len)
        i->message = buf_take(&clean, NULL);
}

/* One that the engine could not start counts as ended with 128, as container engines have it. */
static void mark_broken(const struct run *run, struct instance *i)
{
    for (size_t n = 0; n < run->n_notes; n++) {
        const struct note *note = &run->notes[n];
        if (!note->broken_id || strcmp(note->broken_id, i->id) != 0)
            continue;
        free(i->reason);
        free(i->message);
        i->state = INSTANCE_EXITED;
        i->exit_code = 128;
        i->reason = xstrdup("StartError");
        i->message = xstrdup(note->broken_why);
        i->finished_ms = note->broken_ms;
    }
}

/* Of a node before this one, which was killed: nobody waits for them any more. */
static void end_commands(struct runner *r, const cJSON *inspection)
{
    const cJSON *id;
    cJSON_ArrayForEach(id, json_get(inspection, "ExecIDs"))
    {
        if (cJSON_IsString(id))
            podman_exec_kill(r->config.podman, id->valuestring, NULL);
    }
}

static int look_at(struct runner *r, struct run *run, const char *id, struct instance *ret,
                   struct err *err)
{
    SCOPED(json_free_p) cJSON *inspection = NULL;
    int rc = podman_inspect(r->config.podman, id, &inspection, err);
    if (rc < 0)
        return rc;
    if (!run->is_settled)
        end_commands(r, inspection);
    instance_read(inspection, r->config.network, ret);
    if (ret->state == INSTANCE_EXITED && *ret->name)
        read_message(r, run, ret);
    return 0;
}

static void add(struct instances *list, struct instance *take)
{
    list->v = xreallocarray(list->v, list->n + 1, sizeof *list->v);
    list->v[list->n++] = steal(take);
}

/* Looks at the one of that id and adds it, unless it is gone. */
static int add_seen(struct runner *r, struct run *run, const char *id, struct instances *fresh,
                    struct err *err)
{
    SCOPED(instance_fini) struct instance it = {0};
    int rc = look_at(r, run, id, &it, err);
    if (rc < 0)
        return rc == -ERR_NOT_FOUND ? 0 : rc;
    mark_broken(run, &it);
    add(fresh, &it);
    return 0;
}

static int add_listed(struct runner *r, struct run *run, struct instances *fresh, struct err *err)
{
    SCOPED(json_free_p) cJSON *list = NULL;
    SCOPED_FREE char *label = xasprintf(LABEL_UID "=%s", run->uid);
    int rc = podman_list(r->config.podman, label, &list, err);
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        if (rc == 0)
            rc = add_seen(r, run, json_str_or(item, "Id", ""), fresh, err);
    }
    return rc;
}

/* One that has ended stays as it is. */
static int add_known(struct runner *r, struct run *run, struct instances *fresh, struct err *err)
{
    int rc = 0;
    for (size_t i = 0; i < run->instances.n && rc == 0; i++) {
        struct instance *known = &run->instances.v[i];
        if (known->state == INSTANCE_EXITED)
            add(fresh, known);
        else
            rc = add_seen(r, run, known->id, fresh, err);
    }
    for (char **id = run->made; id && *id && rc == 0; id++)
        rc = add_seen(r, run, *id, fresh, err);
    return rc;
}

int observe(struct runner *r, struct run *run, struct err *err)
{
    SCOPED(instances_fini) struct instances fresh = {0};
    int rc = run->is_listed ? add_known(r, run, &fresh, err) : add_listed(r, run, &fresh, err);
    run->is_listed = rc == 0;
    instances_fini(&run->instances);
    run->instances = steal(&fresh);
    if (rc < 0)
        return rc;
    strv_free(steal(&run->made));
    pthread_mutex_lock(&r->lock);
    run->is_settled = true;
    pthread_mutex_unlock(&r->lock);
    return 0;
}

int observe_found(struct runner *r, struct err *err)
{
    SCOPED(json_free_p) cJSON *list = NULL;
    SCOPED_FREE char *label = xasprintf(LABEL_NODE "=%s", r->config.name);
    int rc = podman_list(r->config.podman, label, &list, err);
    r->found = map_new();
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        const cJSON *uid = json_get(json_get(item, "Labels"), LABEL_UID);
        if (cJSON_IsString(uid))
            map_put(r->found, uid->valuestring, r);
        network_adopt(r, item);
    }
    return rc;
}
