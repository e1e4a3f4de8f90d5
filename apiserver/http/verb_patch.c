/* PATCH by JSON patch, merge patch and strategic merge patch, of an object or of its status; apply
 * is verb_apply.c's. Source: docs/kubernetes-api.md 27. */
#include "apiserver/http/verb_patch.h"

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/http/body.h"
#include "apiserver/http/handler.h"
#include "apiserver/http/params.h"
#include "apiserver/http/respond.h"
#include "apiserver/registry/patch.h"
#include "apiserver/registry/patch_strategic.h"

void patch_call_fini(struct patch_call *c)
{
    json_free(c->patch);
    pairs_fini(&c->findings);
    *c = (struct patch_call){0};
}

int patch_call_start(struct patch_call *c, const struct request *req, struct err *err)
{
    c->req = req;
    return negotiate_patch(&req->headers, req->route.kind->is_builtin, &c->type, err);
}

int patch_call_read(struct patch_call *c, struct err *err)
{
    return body_decode_patch(c->req, c->type, &c->findings, &c->patch, err);
}

int patch_call_invalid(const cJSON *patched, const char *why, struct err *err)
{
    SCOPED(buf_fini) struct buf text = {0}, quoted = {0};
    SCOPED(err_fini) struct err causes = {0};
    json_print(patched, &text);
    buf_go_quote(&quoted, buf_cstr(&text), text.len);
    err_cause(&causes, "FieldValueInvalid", "patch", "Invalid value: %s: %s", buf_cstr(&quoted),
              why);
    return err_invalid(&causes, "", "", "", err);
}

/* A result that could not be decoded as an object is the patch's fault. What is patched as it is
 * stored is a map to kube-apiserver, which prints its members sorted. */
static int check_result(const struct patch_call *c, const cJSON *patched, struct err *err)
{
    SCOPED(err_fini) struct err why = {0};
    int rc = body_check_head(patched, &why);
    if (rc == 0 && (c->may_lack_type || *json_str_or(patched, "kind", "")))
        return 0;
    SCOPED(json_free_p) cJSON *printed = json_copy(patched);
    SCOPED(buf_fini) struct buf text = {0};
    if (!c->may_lack_type)
        json_sort(printed);
    if (rc == 0) {
        json_print(printed, &text);
        body_check_type_meta(patched, buf_str(&text), &why);
    }
    return patch_call_invalid(printed, err_text(&why), err);
}

static int apply_patch(const struct patch_call *c, const cJSON *old, cJSON **ret, struct err *err)
{
    if (c->type == BODY_JSON_PATCH)
        return patch_json(old, c->patch, ret, err);
    if (c->type == BODY_STRATEGIC_PATCH)
        return patch_strategic(old, c->patch, c->req->route.kind->shape, ret, err);
    patch_merge(old, c->patch, ret);
    return 0;
}

int patch_call_apply(struct patch_call *c, const cJSON *old, cJSON **ret, struct err *err)
{
    SCOPED(json_free_p) cJSON *patched = NULL, *space = NULL;
    if (body_check_patch(c->patch, c->type, err) < 0)
        return -(int)err->code;
    old = patch_expand(old, c->patch, &space);
    if (apply_patch(c, old, &patched, err) < 0)
        return -(int)err->code;
    if (check_result(c, patched, err) < 0)
        return -(int)err->code;
    *ret = steal(&patched);
    return 0;
}

static int change(void *ctx, const cJSON *old, cJSON **ret, struct err *err)
{
    return patch_call_apply(ctx, old, ret, err);
}

int verb_patch(struct pipeline *p, struct request *req, struct response *resp, struct err *err)
{
    const struct route *r = &req->route;
    struct negotiated form;
    struct write_options options;
    SCOPED(patch_call_fini) struct patch_call call = {0};
    SCOPED(object_unref_p) struct object *o = NULL;
    if (patch_call_start(&call, req, err) < 0 || handler_check_name(req, err) < 0 ||
        negotiate(&req->headers, &req->params, NEGOTIATE_RESOURCE, &form, err) < 0 ||
        body_check_size(req, err) < 0)
        return -(int)err->code;
    if (call.type == BODY_APPLY)
        return verb_apply(p, req, resp, err);
    if (params_write(req, "PatchOptions", &options, err) < 0 || patch_call_read(&call, err) < 0)
        return -(int)err->code;
    options.decode_findings = &call.findings;
    struct update_request update = {.kind = r->kind,
                                    .namespace_name = r->namespace_name,
                                    .name = r->name,
                                    .is_status = strcmp(r->subresource, "status") == 0,
                                    .is_patch = true,
                                    .change = change,
                                    .ctx = &call};
    int result = registry_update(p->config.registry, &update, &options, &o, err);
    if (result < 0)
        return result;
    const struct answer a = handler_answer(p, req, &form);
    return respond_object(&a, 200, o, resp, err);
}
