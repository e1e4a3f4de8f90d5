/* Checks that several verbs begin with. */
#include "apiserver/base/mem.h"
#include "apiserver/http/body.h"
#include "apiserver/http/handler.h"

static const char *name_problem(const char *name)
{
    if (strcmp(name, ".") == 0)
        return "may not be '.'";
    if (strcmp(name, "..") == 0)
        return "may not be '..'";
    return strchr(name, '%') ? "may not contain '%'" : NULL;
}

int handler_check_name(const struct request *req, struct err *err)
{
    const char *name = req->route.name, *problem = name_problem(name);
    if (!*name)
        return err_set(err, ERR_BAD_REQUEST, "name must be provided");
    if (!problem)
        return 0;
    SCOPED(buf_fini) struct buf quoted = {0};
    buf_go_quote(&quoted, name, strlen(name));
    return err_set(err, ERR_BAD_REQUEST, "Name parameter invalid: %s: %s", buf_cstr(&quoted),
                   problem);
}

int handler_check_body(const struct request *req, struct err *err)
{
    enum body_type type;
    int r = negotiate_body(&req->headers, body_may_be_protobuf(req), &type, err);
    return r < 0 ? r : body_check_size(req, err);
}

struct answer handler_answer(const struct pipeline *p, const struct request *req,
                             const struct negotiated *form)
{
    return (struct answer){
        .req = req, .form = form, .kind = req->route.kind, .clock = p->config.clock};
}

struct access handler_access(const struct request *req)
{
    const struct route *r = &req->route;
    return (struct access){.verb = r->verb,
                           .is_resource = r->is_resource,
                           .path = r->path,
                           .namespace_name = r->namespace_name,
                           .group = r->group,
                           .version = r->version,
                           .resource = r->resource,
                           .subresource = r->subresource,
                           .name = r->name};
}
