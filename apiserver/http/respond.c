/* Objects are written from their stored bytes; the pieces of a list are joined in one buffer. */
#include "apiserver/http/respond.h"

#include <inttypes.h>
#include <stdio.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/yaml.h"
#include "apiserver/http/table.h"
#include "openapi/kinds.h"

#define ETAG_SIZE 131 /* bytes: a SHA-512 in hex, quoted */

void respond_header(struct response *resp, const char *name, const char *value)
{
    pairs_remove_ci(&resp->headers, name);
    pairs_add(&resp->headers, name, value);
}

/* YAML's keys are sorted, as kube-apiserver's are. */
static void print_formed(const struct negotiated *form, cJSON *tree, struct buf *out)
{
    if (form->media == MEDIA_YAML) {
        json_sort(tree);
        yaml_print(tree, out);
    } else if (form->is_pretty) {
        json_print_pretty(tree, out);
    } else {
        json_print(tree, out);
        buf_putc(out, '\n');
    }
}

static void set_type(struct response *resp, int status, const struct negotiated *form)
{
    resp->status = status;
    respond_header(resp, "Content-Type",
                   form->media == MEDIA_YAML ? "application/yaml" : "application/json");
}

void respond_json(struct response *resp, int status, const struct negotiated *form)
{
    set_type(resp, status, form);
    if (form->media == MEDIA_JSON && !form->is_pretty) {
        buf_putc(&resp->body, '\n');
        return;
    }
    SCOPED(json_free_p) cJSON *tree = NULL;
    if (json_parse(buf_cstr(&resp->body), resp->body.len, NULL, &tree, NULL) < 0)
        return; /* our own text always parses */
    SCOPED(buf_fini) struct buf formed = {.max = RESPOND_BODY_MAX};
    print_formed(form, tree, &formed);
    buf_fini(&resp->body);
    resp->body = steal(&formed);
}

void respond_tree(struct response *resp, int status, const struct negotiated *form,
                  cJSON *take_tree)
{
    set_type(resp, status, form);
    resp->body.max = RESPOND_BODY_MAX;
    print_formed(form, take_tree, &resp->body);
    json_free(take_tree);
}

void respond_text(struct response *resp, int status, const char *text)
{
    resp->status = status;
    respond_header(resp, "Content-Type", "text/plain; charset=utf-8");
    respond_header(resp, "X-Content-Type-Options", "nosniff");
    buf_puts(&resp->body, text);
}

void respond_not_found(struct response *resp)
{
    respond_text(resp, 404, "404 page not found\n");
}

/* One of the quoted tags of If-None-Match, or *. */
static bool is_cached(const struct request *req, const char *etag)
{
    const char *match = pairs_get_ci(&req->headers, "If-None-Match");
    return match && (strcmp(match, "*") == 0 || strstr(match, etag));
}

bool respond_etag(const struct request *req, const char *hash, struct response *resp)
{
    char etag[ETAG_SIZE];
    snprintf(etag, sizeof etag, "\"%s\"", hash);
    respond_header(resp, "Etag", etag);
    if (!is_cached(req, etag))
        return false;
    resp->status = 304;
    return true;
}

void respond_busy(struct response *resp)
{
    respond_header(resp, "Retry-After", "1");
    respond_text(resp, 429, "Too many requests, please try again later.\n");
}

static int make_style(const struct answer *a, struct table_style *ret, struct err *err)
{
    struct table_style s = {.view = table_view_of(a->kind),
                            .api_version = a->form->transform_version,
                            .now_unix_ms = clock_unix_ms(a->clock)};
    if (table_parse_include(pairs_get(&a->req->params, "includeObject"), &s.include, err) < 0)
        return -err->code;
    *ret = s;
    return 0;
}

static void print_row(const struct table_style *style, const struct object *o, struct buf *out)
{
    SCOPED(json_free_p) cJSON *tree = object_tree(o);
    table_print_row(style, tree, out);
}

static void print_partial(const char *api_version, const struct object *o, struct buf *out)
{
    SCOPED(json_free_p) cJSON *tree = object_tree(o);
    table_print_partial(api_version, tree, out);
}

static int print_object_table(const struct answer *a, const struct object *o, struct buf *out,
                              struct err *err)
{
    struct table_style style;
    SCOPED(buf_fini) struct buf metadata = {0};
    if (make_style(a, &style, err) < 0)
        return -err->code;
    if (o->rev > 0)
        buf_printf(&metadata, "{\"resourceVersion\":\"%" PRId64 "\"}", o->rev);
    else
        buf_puts(&metadata, "{}");
    table_print_head(&style, true, buf_cstr(&metadata), out);
    print_row(&style, o, out);
    table_print_tail(out);
    return 0;
}

int respond_object(const struct answer *a, int status, const struct object *o,
                   struct response *resp, struct err *err)
{
    resp->body.max = RESPOND_BODY_MAX;
    switch (a->form->transform) {
    case TRANSFORM_NONE:
        object_write(o, &resp->body);
        break;
    case TRANSFORM_TABLE:
        if (print_object_table(a, o, &resp->body, err) < 0)
            return -err->code;
        break;
    case TRANSFORM_PARTIAL:
        print_partial(a->form->transform_version, o, &resp->body);
        break;
    case TRANSFORM_PARTIAL_LIST:
        return err_set(err, ERR_UNKNOWN, "content is not a list");
    }
    respond_json(resp, status, a->form);
    return 0;
}

/* {"resourceVersion":...}; a plain list always has continue. */
static void print_list_metadata(const struct list_result *list, bool always_continue,
                                struct buf *out)
{
    const char *token = list->continue_token ? list->continue_token : "";
    buf_putc(out, '{');
    if (*token || always_continue) {
        buf_puts(out, "\"continue\":");
        buf_json_string(out, token, strlen(token));
        buf_putc(out, ',');
    }
    if (*token && list->remaining >= 0)
        buf_printf(out, "\"remainingItemCount\":%" PRId64 ",", list->remaining);
    buf_printf(out, "\"resourceVersion\":\"%" PRId64 "\"}", list->rev);
}

static void print_list(const struct kind *kind, const struct list_result *list, struct buf *out)
{
    SCOPED_FREE char *version = kind_api_version(kind);
    buf_printf(out, "{\"apiVersion\":\"%s\",\"items\":[", version);
    for (size_t i = 0; i < list->n; i++) {
        if (i > 0)
            buf_putc(out, ',');
        object_write(list->objects[i], out);
    }
    buf_printf(out, "],\"kind\":\"%s\",\"metadata\":", kind->list_kind);
    print_list_metadata(list, true, out);
    buf_putc(out, '}');
}

static int print_list_table(const struct answer *a, const struct list_result *list, struct buf *out,
                            struct err *err)
{
    struct table_style style;
    SCOPED(buf_fini) struct buf metadata = {0};
    if (make_style(a, &style, err) < 0)
        return -err->code;
    print_list_metadata(list, false, &metadata);
    table_print_head(&style, true, buf_cstr(&metadata), out);
    for (size_t i = 0; i < list->n; i++) {
        if (i > 0)
            buf_putc(out, ',');
        print_row(&style, list->objects[i], out);
    }
    table_print_tail(out);
    return 0;
}

/* An empty list has null for items, as kube-apiserver's. */
static void print_list_partial(const char *api_version, const struct list_result *list,
                               struct buf *out)
{
    buf_printf(out, "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"%s\",\"metadata\":",
               api_version);
    print_list_metadata(list, false, out);
    buf_puts(out, list->n ? ",\"items\":[" : ",\"items\":null");
    for (size_t i = 0; i < list->n; i++) {
        if (i > 0)
            buf_putc(out, ',');
        print_partial(api_version, list->objects[i], out);
    }
    buf_puts(out, list->n ? "]}" : "}");
}

int respond_list(const struct answer *a, const struct list_result *list, struct response *resp,
                 struct err *err)
{
    resp->body.max = RESPOND_BODY_MAX;
    switch (a->form->transform) {
    case TRANSFORM_NONE:
        print_list(a->kind, list, &resp->body);
        break;
    case TRANSFORM_TABLE:
        if (print_list_table(a, list, &resp->body, err) < 0)
            return -err->code;
        break;
    case TRANSFORM_PARTIAL_LIST:
        print_list_partial(a->form->transform_version, list, &resp->body);
        break;
    case TRANSFORM_PARTIAL:
        return err_set(err, ERR_NOT_ACCEPTABLE,
                       "you requested PartialObjectMetadata, but the requested object is a list "
                       "(*unstructured.UnstructuredList)");
    }
    if (buf_failed(&resp->body))
        return err_set(err, ERR_TOO_LARGE,
                       "the list is too long for one answer, ask for it in pages (limit)");
    respond_json(resp, 200, a->form);
    return 0;
}
