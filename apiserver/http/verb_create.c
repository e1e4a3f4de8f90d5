/* POST. The name in the URL, if there is one, is not looked at. Source: docs/kubernetes-api.md
 * 15. */
#include "apiserver/base/mem.h"
#include "apiserver/http/body.h"
#include "apiserver/http/handler.h"
#include "apiserver/http/params.h"
#include "apiserver/http/respond.h"

int verb_create(struct pipeline *p, struct request *req, struct response *resp, struct err *err)
{
    const struct route *r = &req->route;
    struct negotiated form;
    struct write_options options;
    SCOPED(pairs_fini) struct pairs findings = {0};
    cJSON *tree = NULL;
    SCOPED(object_unref_p) struct object *o = NULL;
    if (negotiate(&req->headers, &req->params, NEGOTIATE_RESOURCE, &form, err) < 0 ||
        handler_check_body(req, err) < 0 || params_write(req, "CreateOptions", &options, err) < 0 ||
        body_decode_object(req, r->kind, options.field_validation, &findings, &tree, err) < 0)
        return -(int)err->code;
    options.decode_findings = &findings;
    int result =
        registry_create(p->config.registry, r->kind, r->namespace_name, tree, &options, &o, err);
    if (result < 0)
        return result;
    const struct answer a = handler_answer(p, req, &form);
    return respond_object(&a, 201, o, resp, err);
}
