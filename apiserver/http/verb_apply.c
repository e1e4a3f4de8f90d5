/* PATCH by server-side apply. What is not there is made, if the user may create it: that is asked
 * once it is known to be needed. Source: docs/kubernetes-api.md 6.3, 28. */
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/http/body.h"
#include "apiserver/http/handler.h"
#include "apiserver/http/params.h"
#include "apiserver/http/verb_patch.h"

struct caller {
    struct pipeline *p;
    const struct request *req;
};

static int may_create(void *ctx, struct err *err)
{
    const struct caller *c = ctx;
    struct access access = handler_access(c->req);
    access.verb = "create";
    return auth_authorize(c->p->config.auth, &c->req->user, &access, err);
}

int verb_apply(struct pipeline *p, struct request *req, struct response *resp, struct err *err)
{
    const struct route *r = &req->route;
    struct negotiated form;
    struct write_options options;
    struct caller caller = {.p = p, .req = req};
    SCOPED(pairs_fini) struct pairs repeated = {0};
    SCOPED(json_free_p) cJSON *patch = NULL;
    SCOPED(object_unref_p) struct object *o = NULL;
    bool is_forced, is_created;
    if (negotiate(&req->headers, &req->params, NEGOTIATE_RESOURCE, &form, err) < 0 ||
        params_apply(req, &options, &is_forced, err) < 0 ||
        body_decode_apply(req, &repeated, &patch, err) < 0)
        return -(int)err->code;
    const struct apply_request apply = {.kind = r->kind,
                                        .namespace_name = r->namespace_name,
                                        .name = r->name,
                                        .subresource = r->subresource,
                                        .patch = patch,
                                        .repeated = &repeated,
                                        .force = is_forced,
                                        .may_create = may_create,
                                        .ctx = &caller};
    int result = registry_apply(p->config.registry, &apply, &options, &o, &is_created, err);
    if (result < 0)
        return result;
    const struct answer a = handler_answer(p, req, &form);
    bool is_scale = strcmp(r->subresource, "scale") == 0;
    return is_scale ? respond_scale(&a, o, resp, err)
                    : respond_object(&a, is_created ? 201 : 200, o, resp, err);
}
