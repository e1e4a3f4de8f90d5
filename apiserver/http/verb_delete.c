/* DELETE of one object and of a collection. Source: docs/kubernetes-api.md 18. */
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/http/handler.h"
#include "apiserver/http/params.h"
#include "apiserver/http/respond.h"
#include "apiserver/http/status.h"

/* Gone: a Status. Waiting for its finalizers: the object; 202 if it was said that dependents shall
 * not be orphaned. */
static int respond_deleted(const struct answer *a, const struct delete_options *options,
                           const struct object *o, bool is_gone, struct response *resp,
                           struct err *err)
{
    const struct kind *k = a->kind;
    if (!is_gone)
        return respond_object(a, options->orphan_dependents == 0 ? 202 : 200, o, resp, err);
    respond_tree(resp, 200, a->form, status_success(k->group, k->plural, o->name, o->uid));
    return 0;
}

int verb_delete(struct pipeline *p, struct request *req, struct response *resp, struct err *err)
{
    const struct route *r = &req->route;
    struct negotiated form;
    struct delete_options options;
    SCOPED(json_free_p) cJSON *tree = NULL;
    SCOPED(object_unref_p) struct object *o = NULL;
    bool is_gone = false;
    if (handler_check_name(req, err) < 0 ||
        negotiate(&req->headers, &req->params, NEGOTIATE_RESOURCE, &form, err) < 0 ||
        params_delete(req, &options, &tree, err) < 0)
        return -(int)err->code;
    int result = registry_delete(p->config.registry, r->kind, r->namespace_name, r->name, &options,
                                 &o, &is_gone, err);
    if (result < 0)
        return result;
    const struct answer a = handler_answer(p, req, &form);
    return respond_deleted(&a, &options, o, is_gone, resp, err);
}

int verb_deletecollection(struct pipeline *p, struct request *req, struct response *resp,
                          struct err *err)
{
    const struct route *r = &req->route;
    struct negotiated form;
    SCOPED(list_options_fini) struct list_options options = {0};
    struct delete_options delete_options;
    struct list_request list = {
        .kind = r->kind, .namespace_name = r->namespace_name, .deadline_ms = req->deadline_ms};
    SCOPED(json_free_p) cJSON *tree = NULL;
    SCOPED(list_result_fini) struct list_result found = {0};
    if (negotiate(&req->headers, &req->params, NEGOTIATE_RESOURCE, &form, err) < 0 ||
        params_list(req, false, &options, err) < 0 ||
        params_delete(req, &delete_options, &tree, err) < 0 ||
        params_list_version(&options, true, &list.version, err) < 0)
        return -(int)err->code;
    list.selector = options.selector;
    list.limit = options.limit;
    list.continue_token = options.continue_token;
    int result =
        registry_delete_collection(p->config.registry, &list, &delete_options, &found, err);
    if (result < 0)
        return result;
    const struct answer a = handler_answer(p, req, &form);
    return respond_list(&a, &found, resp, err);
}
