/* Keeps the Sandbox of a claim in line with template and claim (C15). */
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "reconcile/child.h"
#include "reconcile/claim_run.h"
#include "reconcile/keys.h"

struct maintenance {
    const struct claim_run *p;
    bool changes;
};

static bool apply_maintenance(void *ctx, cJSON *sandbox)
{
    struct maintenance *m = ctx;
    SCOPED(claim_error_fini) struct claim_error wrong = {0};
    return claim_maintain(m->p->claim, m->p->template, m->p->launch_type, sandbox, &m->changes,
                          &wrong) == 0 &&
           m->changes;
}

static enum next write_sandbox(struct claim_run *p)
{
    struct maintenance m = {.p = p};
    SCOPED(object_unref_p) struct object *written = NULL;
    SCOPED(err_fini) struct err err = {0};
    int rc = pass_update(run_env(p),
                         &(struct pass_update){
                             .kind = &kind_sandbox,
                             .namespace_name = meta_namespace(p->sandbox),
                             .name = meta_name(p->sandbox),
                             .uid = meta_uid(p->sandbox),
                             .change = apply_maintenance,
                             .ctx = &m,
                             .field_manager = CLAIM_CONTROLLER,
                         },
                         &written, &err);
    if (rc == 0) {
        json_free(p->sandbox);
        p->sandbox = object_tree(written);
        return NEXT_CONCLUDE;
    }
    if (rc == -ERR_NOT_FOUND || rc == -ERR_CONFLICT || pass_is_link_error(err.code))
        return run_cut_off(p, "sandbox write", &err);
    claim_fail(&p->error, CLAIM_OTHER, "failed to patch sandbox metadata for claim \"%s\": %s",
               meta_name(p->claim), err_text(&err));
    return NEXT_CONCLUDE;
}

/* The template that the Sandbox in hand was made from, so that naming another pool does not move a
 * running Sandbox under the network policy of a template that it was not made from. When
 * that is gone, and its policy with it, the pool's present one. */
static int read_own_template(struct claim_run *p)
{
    const char *name = meta_annotation(p->sandbox, ANNOTATION_TEMPLATE_REF);
    json_free(steal(&p->template));
    if (name && *name && run_read(p, &kind_sandbox_template, name, &p->template) < 0)
        return -1;
    return p->template ? 0 : run_read_pool(p);
}

enum next run_maintain(struct claim_run *p)
{
    static const char propagation[] = "failed to get template for metadata propagation: ";
    bool changes;
    if (read_own_template(p) < 0)
        return NEXT_STOP;
    if (!p->template && !claim_metadata_is_applied(p->claim, p->sandbox)) {
        if (p->pool)
            run_no_template(p, propagation);
        else
            run_no_pool(p);
        return NEXT_CONCLUDE;
    }
    SCOPED(json_free_p) cJSON *copy = json_copy(p->sandbox);
    if (claim_maintain(p->claim, p->template, p->launch_type, copy, &changes, &p->error) < 0 ||
        !changes)
        return NEXT_CONCLUDE;
    return write_sandbox(p);
}
