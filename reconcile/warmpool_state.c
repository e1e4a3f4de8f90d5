#include "reconcile/warmpool_state.h"

#include <stdlib.h>
#include <string.h>

#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"

#define DEFAULT_BATCH 300
#define DEFAULT_GRACE_MS (5 * 60000)
#define DEFAULT_RECHECK_MS 60000

/* ---- life ---- */

static int64_t or_default(int64_t value, int64_t otherwise)
{
    return value > 0 ? value : otherwise;
}

struct warmpool_reconciler *warmpool_reconciler_new(const struct pass_env *env,
                                                    const struct warmpool_settings *settings)
{
    struct warmpool_reconciler *r = xcalloc(1, sizeof *r);
    r->env = *env;
    r->settings = *settings;
    r->settings.max_batch = or_default(settings->max_batch, DEFAULT_BATCH);
    r->settings.readiness_grace_ms = or_default(settings->readiness_grace_ms, DEFAULT_GRACE_MS);
    r->settings.recheck_ms = or_default(settings->recheck_ms, DEFAULT_RECHECK_MS);
    pthread_mutex_init(&r->lock, NULL);
    r->pools = map_new();
    return r;
}

static bool free_member(void *ctx, const char *key, void *value)
{
    (void)ctx;
    (void)key;
    member_free(value);
    return true;
}

void pool_members_free(struct map *members)
{
    if (!members)
        return;
    map_each(members, free_member, NULL);
    map_free(members);
}

static void memory_free(struct pool_memory *m)
{
    if (!m)
        return;
    pool_members_free(m->members);
    trouble_fini(&m->last_failure);
    free(m);
}

static bool free_memory(void *ctx, const char *key, void *value)
{
    (void)ctx;
    (void)key;
    memory_free(value);
    return true;
}

void warmpool_reconciler_free(struct warmpool_reconciler *r)
{
    if (!r)
        return;
    map_each(r->pools, free_memory, NULL);
    map_free(r->pools);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

static struct pool_memory *memory_new(const char *uid)
{
    struct pool_memory *m = xcalloc(1, sizeof *m);
    memcpy(m->uid, uid, strnlen(uid, sizeof m->uid - 1));
    m->members = map_new();
    return m;
}

struct pool_memory *pool_recall(struct warmpool_reconciler *r, const char *key, const char *uid)
{
    struct pool_memory *of_namesake = NULL;
    pthread_mutex_lock(&r->lock);
    struct pool_memory *m = map_get(r->pools, key);
    if (!m || !str_equal(m->uid, uid)) {
        m = memory_new(uid);
        of_namesake = map_put(r->pools, key, m);
    }
    pthread_mutex_unlock(&r->lock);
    memory_free(of_namesake);
    return m;
}

void pool_forget(struct warmpool_reconciler *r, const char *key)
{
    pthread_mutex_lock(&r->lock);
    struct pool_memory *m = map_del(r->pools, key);
    pthread_mutex_unlock(&r->lock);
    memory_free(m);
}

/* ---- for all steps ---- */

const struct pass_env *pool_env(const struct pool_pass *p)
{
    return &p->r->env;
}

int64_t pool_now_ms(const struct pool_pass *p)
{
    return clock_monotonic_ms(p->r->env.clock);
}

void pool_again(struct pool_pass *p, int64_t after_ms)
{
    if (after_ms > 0 && (!p->again_after_ms || after_ms < p->again_after_ms))
        p->again_after_ms = after_ms;
}

void pool_note(struct pool_pass *p, const char *prefix, const struct err *err)
{
    pthread_mutex_lock(&p->lock);
    pass_errors_add(&p->errors, prefix, err_text(err));
    if (pass_is_link_error(err->code))
        p->memory->has_counted = false; /* it may have been written all the same */
    pthread_mutex_unlock(&p->lock);
}

/* The text of a refusal without the name that was drawn for the member: it says nothing, and with
 * another one each time no two refusals would be the same. */
static char *refusal_text(const struct err *err)
{
    const char *text = err_text(err), *name = err->name ? err->name : "", *at;
    const char *hyphen = strrchr(name, '-');
    size_t n = strlen(name), kept = hyphen ? (size_t)(hyphen + 1 - name) : n;
    struct buf out = {0};
    for (; n > 0 && (at = strstr(text, name)) != NULL; text = at + n)
        buf_printf(&out, "%.*s%.*s...", (int)(at - text), text, (int)kept, name);
    buf_puts(&out, text);
    return buf_take(&out, NULL);
}

void pool_note_refusal(struct pool_pass *p, const struct err *err)
{
    SCOPED_FREE char *text = refusal_text(err);
    pthread_mutex_lock(&p->lock);
    trouble_set(&p->refusal, "FailedCreate", text);
    pthread_mutex_unlock(&p->lock);
}

void pool_tell(struct pool_pass *p, const char *type, const char *reason, const char *text)
{
    pass_tell(pool_env(p), p->pool, &(struct event_text){type, reason, "Reconciling", text},
              POOL_CONTROLLER);
}

bool pool_goes_on(void *pass)
{
    const struct pool_pass *p = pass;
    return pass_leads(pool_env(p));
}
