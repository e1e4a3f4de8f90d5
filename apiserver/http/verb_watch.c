/* Watch: a stream of lines over the registry's events. Errors before the stream starts are HTTP
 * errors, but for a version that is too old or too new: those are events, as kube-apiserver has
 * them. Source: docs/kubernetes-api.md 24. */
#include <inttypes.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/http/handler.h"
#include "apiserver/http/params.h"
#include "apiserver/http/respond.h"
#include "apiserver/http/route.h"
#include "apiserver/http/socket.h"
#include "apiserver/http/status.h"
#include "apiserver/http/table.h"

#define TIMEOUT_MAX_S ((int64_t)365 * 86400) /* whatever was asked for */
#define TIMEOUT_MIN_MS                                                                             \
    ((uint64_t)1800000) /* without timeoutSeconds: random from here up to twice as much */

/* Made on a worker thread, then owned by the transport's I/O thread. wake comes from the registry's
 * thread. */
struct watch_stream {
    struct stream stream; /* first */
    struct watch *watch;  /* NULL when there is nothing but first_error */
    atomic_bool is_armed; /* the transport has set wake before */
    const struct kind *kind;
    const char *scope; /* for metrics; static */
    enum transform transform;
    struct table_style style; /* api_version of a PartialObjectMetadata is here too */
    const struct clock *clock;
    bool has_columns; /* the next Table is the first */
    struct err first_error;
    bool is_over;
};

static void wake(void *ctx)
{
    struct watch_stream *w = ctx;
    if (atomic_load(&w->is_armed) && w->stream.wake)
        w->stream.wake(w->stream.wake_ctx);
}

/* What an event's line begins with. */
#define HEAD(type)                                                                                 \
    {                                                                                              \
        "{\"type\":\"" type "\",\"object\":", sizeof "{\"type\":\"" type "\",\"object\":" - 1      \
    }
static const struct str heads[] = {
    [WATCH_ADDED] = HEAD("ADDED"),     [WATCH_MODIFIED] = HEAD("MODIFIED"),
    [WATCH_DELETED] = HEAD("DELETED"), [WATCH_BOOKMARK] = HEAD("BOOKMARK"),
    [WATCH_ERROR] = HEAD("ERROR"),
};

static void print_status(const struct err *err, struct buf *out)
{
    SCOPED(json_free_p) cJSON *status = status_tree(err);
    json_print(status, out);
}

static void print_bookmark(struct watch_stream *w, const struct watch_event *e, struct buf *out)
{
    if (w->transform == TRANSFORM_TABLE)
        table_print_bookmark_table(&w->style, w->has_columns, e->rev, e->is_initial_end, out);
    else if (w->transform == TRANSFORM_PARTIAL)
        table_print_bookmark_partial(w->style.api_version, e->rev, e->is_initial_end, out);
    else
        table_print_bookmark(w->kind, e->rev, e->is_initial_end, out);
}

static void print_table(struct watch_stream *w, const struct object *o, struct buf *out)
{
    SCOPED(json_free_p) cJSON *tree = object_tree(o);
    SCOPED(buf_fini) struct buf metadata = {0};
    w->style.now_unix_ms = clock_unix_ms(w->clock);
    buf_printf(&metadata, "{\"resourceVersion\":\"%" PRId64 "\"}", o->rev);
    table_print_head(&w->style, w->has_columns, buf_cstr(&metadata), out);
    table_print_row(&w->style, tree, out);
    table_print_tail(out);
}

static void print_object(struct watch_stream *w, const struct object *o, struct buf *out)
{
    if (w->transform == TRANSFORM_NONE) {
        object_write(o, out);
    } else if (w->transform == TRANSFORM_TABLE) {
        print_table(w, o, out);
    } else {
        SCOPED(json_free_p) cJSON *tree = object_tree(o);
        table_print_partial(w->style.api_version, tree, out);
    }
}

static void begin_line(enum watch_type type, struct buf *out)
{
    buf_append(out, heads[type].p, heads[type].n);
}

static void end_line(struct watch_stream *w, enum watch_type type, struct buf *out)
{
    buf_append(out, "}\n", 2);
    w->has_columns &= type == WATCH_ERROR;
}

static void print_change(struct watch_stream *w, enum watch_type type, const struct object *o,
                         struct buf *out)
{
    begin_line(type, out);
    print_object(w, o, out);
    end_line(w, type, out);
}

/* Whole objects as they are stored are printed in one go (watch_each_change); a projection takes
 * too long for that. */
struct print {
    struct watch_stream *stream;
    struct buf *out;
    size_t until;
};

static bool put_change(void *ctx, enum watch_type type, const struct object *o)
{
    struct print *p = ctx;
    print_change(p->stream, type, o, p->out);
    return p->out->len < p->until;
}

static void print_event(struct watch_stream *w, const struct watch_event *e, struct buf *out)
{
    if (e->object) {
        print_change(w, e->type, e->object, out);
        return;
    }
    begin_line(e->type, out);
    if (e->type == WATCH_ERROR)
        print_status(&e->err, out);
    else
        print_bookmark(w, e, out);
    end_line(w, e->type, out);
}

static int pull_error(struct watch_stream *w, struct buf *out)
{
    struct watch_event e = {.type = WATCH_ERROR, .err = w->first_error};
    if (w->is_over)
        return -1;
    w->is_over = true;
    print_event(w, &e, out);
    return 1;
}

static int pull(struct stream *s, struct buf *out)
{
    struct watch_stream *w = (struct watch_stream *)s;
    if (!w->watch)
        return pull_error(w, out);
    struct print print = {.stream = w, .out = out, .until = out->len + STREAM_BYTES};
    atomic_store(&w->is_armed, true); /* before looking: whatever comes after wakes */
    while (out->len < print.until) {
        struct watch_event e = {0};
        int r = 0;
        if (w->transform == TRANSFORM_NONE)
            watch_each_change(w->watch, put_change, &print);
        if (out->len >= print.until)
            break;
        if ((r = watch_next(w->watch, &e)) <= 0)
            return r;
        print_event(w, &e, out);
        watch_event_fini(&e);
    }
    return 1;
}

static void close_stream(struct stream *s)
{
    struct watch_stream *w = (struct watch_stream *)s;
    if (w->watch)
        watch_close(w->watch);
    metrics_watch(w->kind, w->scope, -1);
    err_fini(&w->first_error);
    free(w);
}

static struct watch_stream *stream_new(struct pipeline *p, const struct request *req,
                                       const struct negotiated *form)
{
    const struct route *r = &req->route;
    struct watch_stream *w = xcalloc(1, sizeof *w);
    w->stream = (struct stream){.pull = pull, .close = close_stream};
    w->kind = r->kind;
    w->scope = *r->name ? "resource" : *r->namespace_name ? "namespace" : "cluster";
    w->transform = form->transform;
    w->style = (struct table_style){.view = table_view_of(r->kind),
                                    .api_version = form->transform_version};
    w->clock = p->config.clock;
    w->has_columns = true;
    metrics_watch(w->kind, w->scope, 1);
    return w;
}

static int64_t timeout_of(struct pipeline *p, const struct list_options *o)
{
    if (o->timeout_s > 0)
        return (o->timeout_s < TIMEOUT_MAX_S ? o->timeout_s : TIMEOUT_MAX_S) * 1000;
    if (o->timeout_s < 0)
        return 1; /* over already */
    return (int64_t)(TIMEOUT_MIN_MS + rand_below(p->config.randomness, TIMEOUT_MIN_MS));
}

/* 24.2: which objects come first, and from which version on events are sent. Takes the selector. */
static int fill_request(struct pipeline *p, struct request *req, struct list_options *o,
                        struct watch_request *ret, struct err *err)
{
    struct watch_request w = {.kind = req->route.kind,
                              .namespace_name = req->route.namespace_name,
                              .send_initial = o->initial,
                              .send_initial_end = o->has_initial && o->initial && o->bookmarks,
                              .bookmarks = o->bookmarks,
                              .timeout_ms = timeout_of(p, o),
                              .deadline_ms = req->deadline_ms};
    int r = params_version(o->resource_version, &w.version, err);
    if (r < 0)
        return r;
    w.take_selector = steal(&o->selector);
    *ret = w;
    return 0;
}

/* /watch/... without ?watch is read as kube-apiserver reads a list, and from any version it begins
 * with the present objects all the same, but without the mark behind them. */
static int read_options(const struct request *req, struct list_options *ret, struct err *err)
{
    bool is_asked = route_flag(&req->params, "watch");
    int r = params_list(req, is_asked, ret, err);
    if (r == 0 && !is_asked)
        ret->initial = params_from_any(ret);
    return r;
}

/* Told within the stream, for clients look for it there. */
static bool is_told_inside(const struct err *err)
{
    bool is_future = err->code == ERR_TIMEOUT && err->n_causes &&
                     strcmp(err->causes[0].reason, "ResourceVersionTooLarge") == 0;
    return is_future || err->code == ERR_EXPIRED;
}

/* YAML and lists cannot be streamed; the shape of a list is caught as for a single object. */
static int negotiate_watch(struct request *req, struct negotiated *ret,
                           enum table_include *ret_include, struct err *err)
{
    if (negotiate(&req->headers, &req->params, NEGOTIATE_WATCH, ret, err) < 0)
        return -(int)err->code;
    if (ret->transform == TRANSFORM_PARTIAL_LIST)
        return err_set(err, ERR_UNKNOWN, "content is not a list");
    if (ret->transform != TRANSFORM_TABLE)
        return 0;
    return table_parse_include(pairs_get(&req->params, "includeObject"), ret_include, err);
}

int verb_watch(struct pipeline *p, struct request *req, struct response *resp, struct err *err)
{
    struct negotiated form;
    SCOPED(list_options_fini) struct list_options options = {0};
    struct watch_request request;
    enum table_include include = TABLE_METADATA;
    bool is_socket = socket_is_wanted(req);
    if (negotiate_watch(req, &form, &include, err) < 0 || read_options(req, &options, err) < 0 ||
        (is_socket && socket_check(req, err) < 0) ||
        fill_request(p, req, &options, &request, err) < 0)
        return -(int)err->code;
    struct watch_stream *w = stream_new(p, req, &form);
    w->style.include = include;
    int r = registry_watch(p->config.registry, &request, wake, w, &w->watch, err);
    if (r < 0 && is_told_inside(err)) {
        err_move(&w->first_error, err);
    } else if (r < 0) {
        close_stream(&w->stream);
        return r;
    }
    resp->stream = &w->stream;
    if (is_socket) {
        socket_upgrade(req, resp);
        return 0;
    }
    resp->status = 200;
    respond_header(resp, "Content-Type", "application/json");
    return 0;
}
