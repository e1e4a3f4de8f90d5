/* POST .../pods/NAME/binding: gives a Pod its node, by an update through the same door as every
 * other. Source: the Kubernetes API reference, v1.37. */
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/http/body.h"
#include "apiserver/http/handler.h"
#include "apiserver/http/params.h"
#include "apiserver/http/respond.h"
#include "apiserver/http/status.h"
#include "apiserver/registry/scheduled.h"

struct binding {
    const struct request *req;
    const char *node;
    const struct clock *clock;
};

static int refuse_binding(const struct binding *b, struct err *err, const char *why)
{
    const struct route *r = &b->req->route;
    err_set(err, ERR_CONFLICT, "Operation cannot be fulfilled on pods/binding \"%s\": %s", r->name,
            why);
    return err_details(err, "", "pods/binding", r->name, NULL);
}

static int bind(void *ctx, const cJSON *old, cJSON **ret, struct err *err)
{
    const struct binding *b = ctx;
    const char *present = json_str_or(old, "spec.nodeName", "");
    if (json_str(old, "metadata.deletionTimestamp"))
        return refuse_binding(b, err, "the pod is being deleted");
    if (*present) {
        SCOPED_FREE char *why = xasprintf("the pod is already assigned to node \"%s\"", present);
        return refuse_binding(b, err, why);
    }
    if (json_len(json_at(old, "spec.schedulingGates")) > 0)
        return refuse_binding(b, err, "the pod has non-empty .spec.schedulingGates");
    *ret = json_copy(old);
    (void)pod_set_scheduled(*ret, b->node, NULL, clock_unix_s(b->clock));
    return 0;
}

static int read_binding(const struct request *req, cJSON **ret, struct err *err)
{
    const char *kind;
    if (body_decode_options(req, "v1", "Binding", NULL, ret, err) < 0)
        return -(int)err->code;
    kind = json_str_or(*ret, "target.kind", "");
    if (json_str_or(*ret, "target.name", "")[0] && (!*kind || strcmp(kind, "Node") == 0))
        return 0;
    return err_set(err, ERR_BAD_REQUEST, "target of a binding is a Node with its name");
}

int verb_binding(struct pipeline *p, struct request *req, struct response *resp, struct err *err)
{
    const struct route *r = &req->route;
    struct negotiated form;
    struct write_options options;
    SCOPED(json_free_p) cJSON *tree = NULL;
    SCOPED(object_unref_p) struct object *o = NULL;
    if (handler_check_name(req, err) < 0 ||
        negotiate(&req->headers, &req->params, NEGOTIATE_RESOURCE, &form, err) < 0 ||
        params_write(req, "CreateOptions", &options, err) < 0 || read_binding(req, &tree, err) < 0)
        return -(int)err->code;
    struct binding binding = {
        .req = req, .node = json_str(tree, "target.name"), .clock = p->config.clock};
    options.is_system = true; /* spec and status in one write */
    struct update_request update = {.kind = r->kind,
                                    .namespace_name = r->namespace_name,
                                    .name = r->name,
                                    .change = bind,
                                    .ctx = &binding};
    int rc = registry_update(p->config.registry, &update, &options, &o, err);
    if (rc < 0)
        return rc;
    respond_tree(resp, 201, &form, status_success("", "", NULL, NULL));
    return 0;
}
