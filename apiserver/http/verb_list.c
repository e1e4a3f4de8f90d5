/* GET of a collection. Source: docs/kubernetes-api.md 23. */
#include "apiserver/base/mem.h"
#include "apiserver/http/handler.h"
#include "apiserver/http/params.h"
#include "apiserver/http/respond.h"

int verb_list(struct pipeline *p, struct request *req, struct response *resp, struct err *err)
{
    const struct route *r = &req->route;
    struct negotiated form;
    SCOPED(list_options_fini) struct list_options options = {0};
    SCOPED(list_result_fini) struct list_result found = {0};
    struct list_request list = {
        .kind = r->kind, .namespace_name = r->namespace_name, .deadline_ms = req->deadline_ms};
    if (negotiate(&req->headers, &req->params, NEGOTIATE_RESOURCE, &form, err) < 0 ||
        params_list(req, false, &options, err) < 0 ||
        params_list_version(&options, options.limit > 0, &list.version, err) < 0)
        return -(int)err->code;
    list.selector = options.selector;
    list.limit = options.limit;
    list.continue_token = options.continue_token;
    int result = registry_list(p->config.registry, &list, &found, err);
    if (result < 0)
        return result;
    const struct answer a = handler_answer(p, req, &form);
    return respond_list(&a, &found, resp, err);
}
