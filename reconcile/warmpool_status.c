/* What users are told of a pool: events, and the status in one write a pass. */
#include <inttypes.h>

#include "apiserver/base/duration.h"
#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "reconcile/child.h"
#include "reconcile/warmpool_state.h"

#define STATUS_PERIOD_MS 100  /* between writes that only count members anew */
#define MISSING_TELL_MS 10000 /* a template may come a moment after its pool */

/* ---- what users are told ---- */

void pool_tell_progress(struct pool_pass *p)
{
    if (p->held > 0)
        pool_again(p, p->r->settings.recheck_ms);
    if ((p->held > 0) == p->memory->is_stalled)
        return;
    p->memory->is_stalled = p->held > 0;
    if (!p->held) {
        pool_tell(p, "Normal", "WarmPoolProgressing", "Warm pool is progressing again");
        return;
    }
    SCOPED(buf_fini) struct buf text = {0};
    buf_printf(&text, "%" PRId64 "/%" PRId64 " sandboxes are unschedulable past the ", p->held,
               p->desired);
    duration_print_ms(p->r->settings.readiness_grace_ms, &text);
    buf_puts(&text, " readiness grace period; holding them instead of replacing (replacements "
                    "would be equally unschedulable)");
    pool_tell(p, "Warning", "WarmPoolNotProgressing", buf_cstr(&text));
}

void pool_tell_missing(struct pool_pass *p)
{
    struct pool_memory *m = p->memory;
    if (p->template) {
        m->missing_since_ms = 0;
        m->missing_told = false;
        return;
    }
    if (m->missing_told || p->template_failed)
        return;
    if (!m->missing_since_ms)
        m->missing_since_ms = pool_now_ms(p);
    int64_t left = m->missing_since_ms + MISSING_TELL_MS - pool_now_ms(p);
    if (left > 0) {
        pool_again(p, left);
        return;
    }
    m->missing_told = true;
    SCOPED_FREE char *text =
        xasprintf("SandboxTemplate \"%s\" does not exist; no sandboxes are created until it does",
                  pool_template_name(p->pool));
    pool_tell(p, "Warning", "TemplateNotFound", text);
}

/* ---- status ---- */

static bool apply_status(void *ctx, cJSON *pool)
{
    const cJSON *status = ctx;
    json_set(pool, "status", json_copy(status));
    return true;
}

/* A new generation, selector or condition is told at once. */
static bool only_counts_differ(const cJSON *a, const cJSON *b)
{
    return str_equal(json_str(a, "selector"), json_str(b, "selector")) &&
           json_equal(json_get(a, "conditions"), json_get(b, "conditions")) &&
           json_i64_or(a, "observedGeneration", 0) == json_i64_or(b, "observedGeneration", 0);
}

/* Counts change with every claim and every Pod: they are gathered for a moment. */
static bool is_too_soon(struct pool_pass *p, const cJSON *before, const cJSON *status)
{
    int64_t left = p->memory->status_at_ms + STATUS_PERIOD_MS - pool_now_ms(p);
    if (!p->memory->status_at_ms || left <= 0 || !only_counts_differ(before, status))
        return false;
    pool_again(p, left);
    return true;
}

int pool_write_status(struct pool_pass *p, const struct pool_counts *counts)
{
    const cJSON *before = json_get(p->pool, "status");
    SCOPED(trouble_fini) struct trouble trouble = {0};
    bool is_troubled = pool_find_trouble(p, &trouble);
    SCOPED(json_free_p)
    cJSON *status = pool_status(p->pool, counts, is_troubled ? &trouble : NULL,
                                clock_unix_s(pool_env(p)->clock));
    if (json_equal(before, status) || is_too_soon(p, before, status))
        return 0;
    SCOPED(object_unref_p) struct object *written = NULL;
    SCOPED(err_fini) struct err err = {0};
    int rc = pass_update(pool_env(p),
                         &(struct pass_update){.kind = &kind_sandbox_warm_pool,
                                               .namespace_name = meta_namespace(p->pool),
                                               .name = meta_name(p->pool),
                                               .uid = meta_uid(p->pool),
                                               .change = apply_status,
                                               .ctx = status,
                                               .field_manager = POOL_CONTROLLER},
                         &written, &err);
    if (rc == 0) {
        p->memory->status_at_ms = pool_now_ms(p);
        p->own_rev = written->rev;
    }
    if (rc == 0 || rc == -ERR_NOT_FOUND)
        return 0;
    log_warn("status write failed pool=%s, trying again: %s", p->key, err_text(&err));
    return -1;
}
