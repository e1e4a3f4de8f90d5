/* PUT of an object, its status, or the finalizers of a Namespace. Source: docs/kubernetes-api.md
 * 17, 19; for the last the Kubernetes API reference. */
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/http/body.h"
#include "apiserver/http/handler.h"
#include "apiserver/http/params.h"
#include "apiserver/http/respond.h"

/* ctx is the client's tree; it is wanted once more when somebody else wrote in between. */
static int give_copy(void *ctx, const cJSON *old, cJSON **ret, struct err *err)
{
    (void)old, (void)err;
    *ret = json_copy(ctx);
    return 0;
}

/* ctx is the client's tree: of it the list counts. */
static int set_finalizers(void *ctx, const cJSON *old, cJSON **ret, struct err *err)
{
    const cJSON *list = json_at(ctx, "spec.finalizers");
    (void)err;
    *ret = json_copy(old);
    json_set_at(*ret, "spec.finalizers", cJSON_IsArray(list) ? json_copy(list) : json_array());
    return 0;
}

int verb_update(struct pipeline *p, struct request *req, struct response *resp, struct err *err)
{
    const struct route *r = &req->route;
    struct negotiated form;
    struct write_options options;
    SCOPED(pairs_fini) struct pairs findings = {0};
    SCOPED(json_free_p) cJSON *tree = NULL;
    SCOPED(object_unref_p) struct object *o = NULL;
    if (handler_check_name(req, err) < 0 ||
        negotiate(&req->headers, &req->params, NEGOTIATE_RESOURCE, &form, err) < 0 ||
        body_check_size(req, err) < 0 || params_write(req, "UpdateOptions", &options, err) < 0 ||
        body_decode_object(req, r->kind, options.field_validation, &findings, &tree, err) < 0)
        return -(int)err->code;
    options.decode_findings = &findings;
    bool is_finalize = strcmp(r->subresource, "finalize") == 0;
    struct update_request update = {.kind = r->kind,
                                    .namespace_name = r->namespace_name,
                                    .name = r->name,
                                    .is_status = strcmp(r->subresource, "status") == 0,
                                    .sent = tree,
                                    .change = is_finalize ? set_finalizers : give_copy,
                                    .ctx = tree};
    int result = registry_update(p->config.registry, &update, &options, &o, err);
    if (result < 0)
        return result;
    const struct answer a = handler_answer(p, req, &form);
    return respond_object(&a, 200, o, resp, err);
}
