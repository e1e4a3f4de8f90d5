/* GET of one object, by itself or by its status endpoint, which answers with the whole object.
 * Source: docs/kubernetes-api.md 16. */
#include "apiserver/base/mem.h"
#include "apiserver/http/handler.h"
#include "apiserver/http/params.h"
#include "apiserver/http/respond.h"
#include "apiserver/http/route.h"

int verb_get(struct pipeline *p, struct request *req, struct response *resp, struct err *err)
{
    const struct route *r = &req->route;
    struct negotiated form;
    struct read_version version;
    SCOPED(object_unref_p) struct object *o = NULL;
    if (handler_check_name(req, err) < 0 ||
        negotiate(&req->headers, &req->params, NEGOTIATE_RESOURCE, &form, err) < 0)
        return -(int)err->code;
    if (route_flag(&req->params, "export"))
        return err_set(err, ERR_BAD_REQUEST,
                       "the export parameter, deprecated since v1.14, is no longer supported");
    if (params_version(pairs_get(&req->params, "resourceVersion"), &version, err) < 0)
        return -(int)err->code;
    int result = registry_get(p->config.registry, r->kind, r->namespace_name, r->name, version,
                              req->deadline_ms, &o, err);
    if (result < 0)
        return result;
    const struct answer a = handler_answer(p, req, &form);
    return respond_object(&a, 200, o, resp, err);
}
