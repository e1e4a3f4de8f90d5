/* A Pod's sandbox and the rules of its network. */
#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "node/run.h"

static struct firewall_sandbox sandbox_of(const struct instance *pause)
{
    return (struct firewall_sandbox){.netns = pause->netns, .ip = pause->ip};
}

/* One whose rules cannot be found out is cut off until its pass tries again. */
static int adopt(struct runner *r, const char *uid, const char *id, struct err *err)
{
    SCOPED(json_free_p) cJSON *inspection = NULL;
    SCOPED(instance_fini) struct instance pause = {0};
    int rc = podman_inspect(r->config.podman, id, &inspection, err);
    if (rc < 0)
        return rc;
    instance_read(inspection, r->config.network, &pause);
    struct firewall_sandbox s = sandbox_of(&pause);
    return pause.state == INSTANCE_RUNNING ? firewall_adopt(r->firewall, uid, &s, err) : 0;
}

void network_adopt(struct runner *r, const cJSON *item)
{
    SCOPED(err_fini) struct err err = {0};
    const cJSON *labels = json_get(item, "Labels");
    const cJSON *uid = json_get(labels, LABEL_UID), *name = json_get(labels, LABEL_CONTAINER);
    bool is_pause =
        cJSON_IsString(uid) && cJSON_IsString(name) && str_equal(name->valuestring, INSTANCE_PAUSE);
    if (is_pause && adopt(r, uid->valuestring, json_str_or(item, "Id", ""), &err) < 0)
        log_warn("sandbox cut off until its rules are known pod=%s: %s", uid->valuestring,
                 err_text(&err));
}

static void note_trouble(struct runner *r, struct run *run, const char *text)
{
    if (!str_equal(run->network_trouble, text)) {
        report_event(r, run->pod, "Warning", "FailedCreatePodSandBox", text);
        log_warn("network has no rules, nothing starts in it pod=%s: %s", run->uid, text);
    }
    free(run->network_trouble);
    run->network_trouble = xstrdup(text);
}

bool network_attach(struct runner *r, struct run *run, const struct plan *plan)
{
    SCOPED(err_fini) struct err err = {0};
    if (!plan->pause || plan->pause->state != INSTANCE_RUNNING) {
        firewall_detach(r->firewall, run->uid);
        return true;
    }
    if (plan->is_terminating) /* nothing starts any more */
        return true;
    if (r->config.relay)
        relay_listen(r->config.relay);
    struct firewall_sandbox s = sandbox_of(plan->pause);
    if (firewall_attach(r->firewall, run->pod, &s, &err) < 0) {
        note_trouble(r, run, err_text(&err));
        return false;
    }
    free(steal(&run->network_trouble));
    return true;
}

/* ---- the API server ---- */

struct search {
    const char *ip;
    bool is_found;
};

static bool look_at(void *ctx, const char *uid, void *value)
{
    struct search *s = ctx;
    const struct run *run = value;
    (void)uid;
    s->is_found = !run->is_gone && str_equal(run->ip, s->ip) && relay_is_for(run->newest);
    return !s->is_found;
}

bool network_lets_in(void *runner, const char *ip)
{
    struct runner *r = runner;
    struct search s = {.ip = ip};
    pthread_mutex_lock(&r->lock);
    map_each(r->runs, look_at, &s);
    pthread_mutex_unlock(&r->lock);
    return s.is_found;
}
