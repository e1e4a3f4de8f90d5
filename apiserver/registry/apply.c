/* Server-side apply: an update whose change is apply_run, and which makes the object when there is
 * none. Source: docs/kubernetes-api.md 22.2, 28. */
#include "admission/apply.h"

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/registry/cache.h"

struct application {
    struct registry *registry;
    const struct apply_request *req;
    const struct write_options *opts;
    bool was_warned; /* of repeated keys, whatever the number of tries */
};

static int refuse_repeated(const struct pairs *repeated, struct err *err)
{
    SCOPED(buf_fini) struct buf text = {0};
    for (size_t i = 0; i < repeated->n; i++)
        buf_printf(&text, "\n  %s", repeated->v[i].name);
    return err_set(err, ERR_BAD_REQUEST,
                   "error strict decoding patch: error converting YAML to JSON: yaml: unmarshal "
                   "errors:%s",
                   buf_cstr(&text));
}

/* Looked at behind apply: its own refusals come first. */
static int check_repeated(struct application *a, struct err *err)
{
    const struct pairs *repeated = a->req->repeated;
    if (!repeated || repeated->n == 0)
        return 0;
    if (a->opts->field_validation == FIELD_VALIDATION_STRICT)
        return refuse_repeated(repeated, err);
    bool is_told = a->was_warned || a->opts->field_validation == FIELD_VALIDATION_IGNORE;
    for (size_t i = 0; !is_told && a->opts->warnings && i < repeated->n; i++)
        pairs_add(a->opts->warnings, repeated->v[i].name, "");
    a->was_warned = true;
    return 0;
}

/* Who names a uid means an object that is there. */
static int check_uid(const struct application *a, const cJSON *object, struct err *err)
{
    const char *uid = json_str_or(object, "metadata.uid", "");
    if (!*uid)
        return 0;
    return refuse_conflict(a->req->kind, a->req->name, err,
                           "uid mismatch: the provided object specified uid %s, and no existing "
                           "object was found",
                           uid);
}

static int change(void *ctx, const cJSON *old, cJSON **ret, struct err *err)
{
    struct application *a = ctx;
    const struct apply_request *req = a->req;
    const struct apply apply = {
        .kind = req->kind,
        .subresource = req->subresource,
        .manager = a->opts->field_manager ? a->opts->field_manager : "unknown",
        .namespace_name = req->namespace_name ? req->namespace_name : "",
        .name = req->name,
        .force = req->force,
        .now_unix_s = clock_unix_s(a->registry->admit->clock),
    };
    int rc = apply_run(&apply, req->patch, old, ret, err);
    if (rc < 0 || (rc = check_repeated(a, err)) < 0)
        return rc;
    return old ? 0 : check_uid(a, *ret, err);
}

static int may_create(void *ctx, struct err *err)
{
    const struct application *a = ctx;
    return a->req->may_create ? a->req->may_create(a->req->ctx, err) : 0;
}

int registry_apply(struct registry *r, const struct apply_request *req,
                   const struct write_options *opts, struct object **ret, bool *ret_created,
                   struct err *err)
{
    struct application a = {.registry = r, .req = req, .opts = opts};
    struct write_options without_findings = *opts;
    const struct update_request update = {
        .kind = req->kind,
        .namespace_name = req->namespace_name,
        .name = req->name,
        .is_status = strcmp(req->subresource, "status") == 0,
        .is_scale = strcmp(req->subresource, "scale") == 0,
        .is_patch = true,
        .is_applied = true,
        .change = change,
        .may_create = *req->subresource ? NULL : may_create,
        .ctx = &a,
        .ret_created = ret_created,
    };
    without_findings.decode_findings = NULL;
    *ret_created = false;
    return registry_update(r, &update, &without_findings, ret, err);
}
