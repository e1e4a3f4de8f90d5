/* The scale endpoint: an autoscaling/v1 Scale made of the parent's paths; of what is written to it
 * only spec.replicas goes to the parent. Source: docs/kubernetes-api.md 20. */
#include <inttypes.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/http/body.h"
#include "apiserver/http/handler.h"
#include "apiserver/http/params.h"
#include "apiserver/http/respond.h"
#include "apiserver/http/table.h"
#include "apiserver/http/verb_patch.h"
#include "openapi/columns.h"
#include "openapi/gotype.h"
#include "openapi/kinds/apimachinery.h"
#include "openapi/prune.h"

#define SCALE_VERSION "autoscaling/v1"

/* ---- the Scale of a parent ---- */

static void copy_member(cJSON *to, const cJSON *from, const char *name)
{
    const cJSON *member = json_get(from, name);
    if (member)
        json_set(to, name, json_copy(member));
}

static cJSON *scale_metadata(const cJSON *parent)
{
    static const char *const names[] = {"name", "namespace", "uid", "resourceVersion",
                                        "creationTimestamp"};
    cJSON *metadata = json_object();
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        copy_member(metadata, json_get(parent, "metadata"), names[i]);
    return metadata;
}

/* Zero replicas are left out of spec, as Go's omitempty has it. */
static int scale_of(const struct kind *kind, const cJSON *parent, cJSON **ret, struct err *err)
{
    const struct scale_paths *paths = kind->scale;
    const cJSON *node = json_at(parent, paths->spec_replicas);
    const char *selector = paths->selector ? json_str(parent, paths->selector) : NULL;
    if (!node) {
        SCOPED_FREE char *text =
            xasprintf("the spec replicas field \".%s\" does not exist", paths->spec_replicas);
        err_set(err, ERR_INTERNAL, "Internal error occurred: %s", text);
        return err_cause(err, "", "", "%s", text);
    }
    cJSON *scale = json_object(), *spec = json_object(), *status = json_object();
    int64_t replicas = json_i64_or(parent, paths->spec_replicas, 0);
    json_set_str(scale, "kind", "Scale");
    json_set_str(scale, "apiVersion", SCALE_VERSION);
    json_set(scale, "metadata", scale_metadata(parent));
    if (replicas)
        json_set_int(spec, "replicas", replicas);
    json_set(scale, "spec", spec);
    json_set_int(status, "replicas", json_i64_or(parent, paths->status_replicas, 0));
    if (selector && *selector)
        json_set_str(status, "selector", selector);
    json_set(scale, "status", status);
    *ret = scale;
    return 0;
}

/* ---- the answer ---- */

static cJSON *column(const char *name, const char *text)
{
    cJSON *c = json_object();
    json_set_str(c, "name", name);
    json_set_str(c, "type", "integer");
    json_set_str(c, "format", "");
    json_set_str(c, "description", text);
    json_set_int(c, "priority", 0);
    return c;
}

/* Name and age are those of a kind without columns of its own; the two numbers stand between
 * them. */
static const struct kind *without_columns(const struct kind *kind, struct kind *space)
{
    *space = *kind;
    space->columns = NULL;
    return space;
}

static cJSON *between(cJSON *take_name_and_age, cJSON *take_first, cJSON *take_second)
{
    cJSON *list = json_array();
    json_push(list, json_detach_item(take_name_and_age, take_name_and_age->child));
    json_push(list, take_first);
    json_push(list, take_second);
    while (take_name_and_age->child)
        json_push(list, json_detach_item(take_name_and_age, take_name_and_age->child));
    json_free(take_name_and_age);
    return list;
}

static cJSON *scale_definitions(const struct kind *kind)
{
    struct kind plain;
    return between(columns_definitions(without_columns(kind, &plain)),
                   column("Desired", "Number of desired replicas"),
                   column("Available", "Number of actual replicas"));
}

static cJSON *scale_cells(const struct kind *kind, const cJSON *scale, int64_t now_unix_ms)
{
    struct kind plain;
    return between(columns_cells(without_columns(kind, &plain), scale, now_unix_ms),
                   json_int(json_i64_or(scale, "spec.replicas", 0)),
                   json_int(json_i64_or(scale, "status.replicas", 0)));
}

static int print_scale_table(const struct answer *a, const cJSON *scale, struct buf *out,
                             struct err *err)
{
    struct table_style style = {
        .view = {.kind = a->kind, .definitions = scale_definitions, .cells = scale_cells},
        .api_version = a->form->transform_version,
        .now_unix_ms = clock_unix_ms(a->clock),
    };
    SCOPED(buf_fini) struct buf metadata = {0};
    if (table_parse_include(pairs_get(&a->req->params, "includeObject"), &style.include, err) < 0)
        return -(int)err->code;
    buf_puts(&metadata, "{\"resourceVersion\":");
    const char *version = json_str_or(scale, "metadata.resourceVersion", "");
    buf_json_string(&metadata, version, strlen(version));
    buf_putc(&metadata, '}');
    table_print_head(&style, true, buf_cstr(&metadata), out);
    table_print_row(&style, scale, out);
    table_print_tail(out);
    return 0;
}

int respond_scale(const struct answer *a, const struct object *parent, struct response *resp,
                  struct err *err)
{
    SCOPED(json_free_p) cJSON *tree = object_tree(parent), *scale = NULL;
    int r = scale_of(a->kind, tree, &scale, err);
    if (r < 0)
        return r;
    if (a->form->transform == TRANSFORM_PARTIAL_LIST)
        return err_set(err, ERR_NOT_ACCEPTABLE,
                       "you requested PartialObjectMetadataList, but the requested object is not a "
                       "list (*v1.Scale)");
    if (a->form->transform == TRANSFORM_TABLE)
        r = print_scale_table(a, scale, &resp->body, err);
    else if (a->form->transform == TRANSFORM_PARTIAL)
        table_print_partial(a->form->transform_version, scale, &resp->body);
    else
        json_print(scale, &resp->body);
    if (r == 0)
        respond_json(resp, 200, a->form);
    return r;
}

int verb_scale_get(struct pipeline *p, struct request *req, struct response *resp, struct err *err)
{
    const struct route *r = &req->route;
    struct negotiated form;
    struct read_version version;
    SCOPED(object_unref_p) struct object *o = NULL;
    if (handler_check_name(req, err) < 0 ||
        negotiate(&req->headers, &req->params, NEGOTIATE_RESOURCE, &form, err) < 0 ||
        params_version(pairs_get(&req->params, "resourceVersion"), &version, err) < 0)
        return -(int)err->code;
    int result = registry_get(p->config.registry, r->kind, r->namespace_name, r->name, version,
                              req->deadline_ms, &o, err);
    if (result < 0)
        return result;
    const struct answer a = handler_answer(p, req, &form);
    return respond_scale(&a, o, resp, err);
}

/* ---- writing ---- */

struct scale_call {
    struct request *req;
    const struct write_options *options;
    struct patch_call *patch;     /* NULL = PUT */
    cJSON *scale;                 /* of PUT */
    const struct pairs *findings; /* of decoding PUT's body */
    bool was_warned;              /* whatever the number of tries */
};

/* Of a patch the result is shown. */
static int refuse_scale(const struct scale_call *c, const cJSON *scale, const char *why,
                        struct err *err)
{
    if (c->patch)
        return patch_call_invalid(scale, why, err);
    return err_set(err, ERR_BAD_REQUEST, "the Scale does not decode: %s", why);
}

static int check_kind(const struct scale_call *c, const cJSON *scale, struct err *err)
{
    const char *kind = json_str_or(scale, "kind", ""),
               *version = json_str_or(scale, "apiVersion", "");
    bool is_kind = !*kind || strcmp(kind, "Scale") == 0;
    bool is_version = !*version || strcmp(version, SCALE_VERSION) == 0;
    SCOPED(err_fini) struct err why = {0};
    if (is_kind && is_version)
        return 0;
    body_unregistered(*kind ? kind : "Scale", *version ? version : SCALE_VERSION, &why);
    return refuse_scale(c, scale, err_text(&why), err);
}

/* What a Scale has not, and what is repeated, as texts. */
static void find_unknown(const struct scale_call *c, const cJSON *scale, struct pairs *ret)
{
    SCOPED(pairs_fini) struct pairs unknown = {0};
    SCOPED(json_free_p) cJSON *known = json_copy(scale);
    for (size_t i = 0; c->findings && i < c->findings->n; i++)
        pairs_add(ret, c->findings->v[i].name, "");
    prune_unknown(known, &shape_scale, &unknown);
    for (size_t i = 0; i < unknown.n; i++) {
        SCOPED_FREE char *text = xasprintf("unknown field \"%s\"", unknown.v[i].name);
        pairs_add(ret, text, "");
    }
}

/* Warned of or, when strict, refused. */
static int check_unknown(struct scale_call *c, const cJSON *scale, struct err *err)
{
    SCOPED(pairs_fini) struct pairs found = {0};
    SCOPED(buf_fini) struct buf list = {0};
    bool is_told = c->was_warned || c->options->field_validation == FIELD_VALIDATION_IGNORE;
    find_unknown(c, scale, &found);
    if (c->options->field_validation == FIELD_VALIDATION_STRICT && found.n) {
        for (size_t i = 0; i < found.n; i++)
            buf_printf(&list, "%s%s", i ? ", " : "strict decoding error: ", found.v[i].name);
        return refuse_scale(c, scale, buf_cstr(&list), err);
    }
    for (size_t i = 0; !is_told && i < found.n; i++)
        pairs_add(c->options->warnings, found.v[i].name, "");
    c->was_warned = true;
    return 0;
}

/* A Scale of autoscaling/v1. */
static int check_scale(struct scale_call *c, const cJSON *scale, struct err *err)
{
    SCOPED_FREE char *why = NULL;
    if (check_kind(c, scale, err) < 0)
        return -(int)err->code;
    if ((why = gotype_check_scale(scale)))
        return refuse_scale(c, scale, why, err);
    return check_unknown(c, scale, err);
}

static int check_names(const struct route *r, const cJSON *scale, struct err *err)
{
    const char *name = json_str_or(scale, "metadata.name", ""),
               *namespace_name = json_str_or(scale, "metadata.namespace", "");
    if (!*name)
        return err_set(
            err, ERR_BAD_REQUEST,
            "the name of the object (%s based on URL) was undeterminable: name must be provided",
            r->name);
    if (strcmp(name, r->name) != 0)
        return err_set(err, ERR_BAD_REQUEST,
                       "the name of the object (%s) does not match the name on the URL (%s)", name,
                       r->name);
    if (*namespace_name && strcmp(namespace_name, r->namespace_name) != 0)
        return err_set(err, ERR_BAD_REQUEST,
                       "the namespace of the provided object does not match the namespace sent on "
                       "the request");
    return 0;
}

/* The parent with the Scale's replicas, and with the version and uid that the Scale insists on. */
static cJSON *parent_with(const struct scale_call *c, const cJSON *old, const cJSON *scale)
{
    static const char *const preconditions[] = {"resourceVersion", "uid"};
    const struct kind *kind = c->req->route.kind;
    size_t n = c->patch ? 1 : 2; /* a patch of the uid is not looked at */
    cJSON *parent = json_copy(old), *metadata = json_ensure_object(parent, "metadata");
    for (size_t i = 0; i < n; i++) {
        const char *value = json_str_or(json_get(scale, "metadata"), preconditions[i], "");
        if (*value)
            json_set_str(metadata, preconditions[i], value);
    }
    json_set_at(parent, kind->scale->spec_replicas,
                json_int(json_i64_or(scale, "spec.replicas", 0)));
    return parent;
}

/* The Scale that the client wants: its own, or the present one patched. */
static int wanted_scale(struct scale_call *c, const cJSON *old, cJSON **ret, struct err *err)
{
    SCOPED(json_free_p) cJSON *present = NULL;
    if (!c->patch) {
        *ret = json_copy(c->scale);
        return 0;
    }
    if (scale_of(c->req->route.kind, old, &present, err) < 0 ||
        patch_call_apply(c->patch, present, ret, err) < 0)
        return -(int)err->code;
    return 0;
}

static int change(void *ctx, const cJSON *old, cJSON **ret, struct err *err)
{
    struct scale_call *c = ctx;
    SCOPED(json_free_p) cJSON *scale = NULL;
    if (wanted_scale(c, old, &scale, err) < 0 || (c->patch && check_scale(c, scale, err) < 0) ||
        check_names(&c->req->route, scale, err) < 0)
        return -(int)err->code;
    *ret = parent_with(c, old, scale);
    return 0;
}

static int write_scale(struct pipeline *p, struct scale_call *c, const struct negotiated *form,
                       struct response *resp, struct err *err)
{
    const struct route *r = &c->req->route;
    SCOPED(object_unref_p) struct object *o = NULL;
    struct update_request update = {.kind = r->kind,
                                    .namespace_name = r->namespace_name,
                                    .name = r->name,
                                    .is_scale = true,
                                    .is_patch = c->patch != NULL,
                                    .change = change,
                                    .ctx = c};
    int result = registry_update(p->config.registry, &update, c->options, &o, err);
    if (result < 0)
        return result;
    const struct answer a = handler_answer(p, c->req, form);
    return respond_scale(&a, o, resp, err);
}

int verb_scale_update(struct pipeline *p, struct request *req, struct response *resp,
                      struct err *err)
{
    struct negotiated form;
    struct write_options options;
    SCOPED(pairs_fini) struct pairs findings = {0};
    SCOPED(json_free_p) cJSON *scale = NULL;
    struct scale_call call = {.req = req, .options = &options, .findings = &findings};
    if (handler_check_name(req, err) < 0 ||
        negotiate(&req->headers, &req->params, NEGOTIATE_RESOURCE, &form, err) < 0 ||
        body_check_size(req, err) < 0 || params_write(req, "UpdateOptions", &options, err) < 0 ||
        body_decode_options(req, SCALE_VERSION, "Scale", &findings, &scale, err) < 0 ||
        check_scale(&call, scale, err) < 0 || check_names(&req->route, scale, err) < 0)
        return -(int)err->code;
    call.scale = scale;
    return write_scale(p, &call, &form, resp, err);
}

int verb_scale_patch(struct pipeline *p, struct request *req, struct response *resp,
                     struct err *err)
{
    struct negotiated form;
    struct write_options options;
    SCOPED(patch_call_fini) struct patch_call patch = {.may_lack_type = true};
    if (patch_call_start(&patch, req, err) < 0 || handler_check_name(req, err) < 0 ||
        negotiate(&req->headers, &req->params, NEGOTIATE_RESOURCE, &form, err) < 0 ||
        body_check_size(req, err) < 0)
        return -(int)err->code;
    if (patch.type == BODY_APPLY)
        return verb_apply(p, req, resp, err);
    if (params_write(req, "PatchOptions", &options, err) < 0 || patch_call_read(&patch, err) < 0)
        return -(int)err->code;
    options.decode_findings = &patch.findings;
    struct scale_call call = {.req = req, .options = &options, .patch = &patch};
    return write_scale(p, &call, &form, resp, err);
}
