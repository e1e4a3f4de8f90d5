/* GET of a collection. Source: docs/kubernetes-api.md 23. */
#include "apiserver/base/mem.h"
#include "apiserver/http/handler.h"
#include "apiserver/http/params.h"
#include "apiserver/http/respond.h"

int verb_list(struct pipeline *p, struct request *req, struct response *resp, struct err *err)
{
    const struct route *r = &req->route;
    struct negotiated form;
    struct list_options options;
    struct selector *selector = NULL;
    struct list_request list = {
        .kind = r->kind, .namespace_name = r->namespace_name, .deadline_ms = req->deadline_ms};
    SCOPED(list_result_fini) struct list_result found = {0};
    if (negotiate(&req->headers, &req->params, NEGOTIATE_RESOURCE, &form, err) < 0 ||
        params_list(&req->params, false, &options, err) < 0 ||
        params_list_version(&options, &list.version, err) < 0 ||
        params_selector(r->kind, &options, r->name, &selector, err) < 0)
        return -(int)err->code;
    list.selector = selector;
    list.limit = options.limit;
    list.continue_token = options.continue_token;
    if (list.continue_token && *list.continue_token && options.resource_version &&
        *options.resource_version)
        list.limit = 0; /* the rest at once: "0" is the only version that may come with a token */
    int result = registry_list(p->config.registry, &list, &found, err);
    selector_free(selector);
    if (result < 0)
        return result;
    const struct answer a = handler_answer(p, req, &form);
    return respond_list(&a, &found, resp, err);
}
