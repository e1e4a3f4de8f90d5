/* What keeps a pool from filling: kept in mind, so that tries which are of no use become rare, and
 * told as the pool's condition Progressing. */
#include <string.h>

#include "apiserver/base/duration.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "reconcile/child.h"
#include "reconcile/warmpool_state.h"

#define LOOKS_MAX 16 /* Pods that one pass reads to find what hinders a member */

static void start_anew(struct pool_memory *m)
{
    m->retry = (struct retry){0};
    trouble_fini(&m->last_failure);
}

void pool_see_template(struct pool_pass *p)
{
    struct pool_memory *m = p->memory;
    if (!p->template || str_equal(m->tried, p->blueprint.hash))
        return;
    p->is_mended = m->retry.failures > 0;
    start_anew(m);
    memcpy(m->tried, p->blueprint.hash, sizeof m->tried);
}

/* What hinders one member, by its own conditions or its Pod. */
static bool member_trouble(struct pool_pass *p, const struct member *m, struct trouble *ret)
{
    struct cluster *c = pool_env(p)->cluster;
    SCOPED(json_free_p) cJSON *pod = NULL;
    SCOPED(trouble_fini) struct trouble found = {0};
    SCOPED(err_fini) struct err err = {0};
    if (m->trouble.reason)
        trouble_set(&found, m->trouble.reason, m->trouble.text);
    else if (c->v->get(c, CHILD_POD, meta_namespace(p->pool), m->pod_name, false, &pod, &err) == 0)
        trouble_of_containers(pod, &found);
    if (!found.reason)
        return false;
    SCOPED_FREE char *text = xasprintf("sandbox %s: %s", m->name, found.text);
    trouble_set(ret, found.reason, text);
    return true;
}

static bool trouble_among(struct pool_pass *p, struct member *const *members, size_t n,
                          struct trouble *ret)
{
    for (size_t i = 0, looks = 0; i < n && looks < LOOKS_MAX; i++) {
        looks += !members[i]->is_ready;
        if (!members[i]->is_ready && member_trouble(p, members[i], ret))
            return true;
    }
    return false;
}

/* Members that became ready since show that a try is worth it. */
static bool has_proof(const struct pool_pass *p)
{
    for (size_t i = 0; i < p->n_active; i++) {
        if (p->active[i]->is_ready && p->active[i]->since_ms >= p->memory->failed_ms)
            return true;
    }
    return false;
}

/* Members as old as those given up before are no new try: they belong to the same one. */
static bool is_new_try(const struct pool_pass *p)
{
    bool is_new = p->memory->retry.failures == 0;
    for (size_t i = 0; i < p->n_doomed && !is_new; i++)
        is_new = p->doomed[i]->created_ms >= p->memory->failed_ms;
    return is_new;
}

void pool_see_stuck(struct pool_pass *p)
{
    struct pool_memory *m = p->memory;
    if (m->retry.failures && has_proof(p))
        start_anew(m);
    if (p->n_doomed == 0)
        return;
    if (is_new_try(p)) {
        retry_failed(&m->retry, pool_now_ms(p));
        m->failed_ms = clock_unix_s(pool_env(p)->clock) * 1000; /* as exact as creations are */
    }
    if (trouble_among(p, p->doomed, p->n_doomed, &m->last_failure))
        return;
    SCOPED(buf_fini) struct buf text = {0};
    buf_printf(&text, "sandbox %s was not ready within ", p->doomed[0]->name);
    duration_print_ms(p->r->settings.readiness_grace_ms, &text);
    trouble_set(&m->last_failure, "ReadinessTimeout", buf_cstr(&text));
}

bool pool_find_trouble(struct pool_pass *p, struct trouble *ret)
{
    const struct trouble *known = p->refusal.reason ? &p->refusal : &p->memory->last_failure;
    if (!p->template && !p->template_failed) {
        SCOPED_FREE char *text =
            xasprintf("SandboxTemplate \"%s\" not found", pool_template_name(p->pool));
        trouble_set(ret, "TemplateNotFound", text);
        return true;
    }
    if (!p->refusal.reason && trouble_among(p, p->active, p->n_active, ret))
        return true;
    if (!known->reason)
        return false;
    trouble_set(ret, known->reason, known->text);
    return true;
}
