/* One short function a stop. None of them knows a kind or touches the store. A record of who did
 * what (audit) stands between the limits and authorization, so that refusals are in it. */
#include "apiserver/http/filter.h"

#include <stdlib.h>

#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/http/judge.h"
#include "apiserver/http/node_access.h"
#include "apiserver/http/params.h"
#include "apiserver/http/reach.h"
#include "apiserver/http/respond.h"
#include "apiserver/http/route.h"
#include "apiserver/http/socket.h"
#include "apiserver/http/status.h"
#include "openapi/kinds.h"
#include "openapi/kinds/builtin.h"

#define AUDIT_ID_MAX 64                   /* bytes of an id that came with the request */
#define WRITE_TIMEOUT_MS ((int64_t)34000) /* of one write. Source: docs/kubernetes-api.md 11 */

static bool is_of_health(const char *path)
{
    return str_has_prefix(path, "/livez") || str_has_prefix(path, "/readyz") ||
           str_has_prefix(path, "/healthz");
}

/* ---- received ---- */

static int enter_received(struct pipeline *p, struct request *req, struct response *resp,
                          struct err *err)
{
    (void)resp, (void)err;
    if (req->start_ms == 0) /* else the transport has set it, and time in its queue counts */
        req->start_ms = clock_monotonic_ms(&clock_system);
    req->deadline_ms = req->start_ms + p->config.request_timeout_ms;
    req->max_body = p->config.max_body;
    if (!is_of_health(req->path))
        atomic_fetch_add(&p->asked, 1);
    return FILTER_GO_ON;
}

static void leave_received(struct pipeline *p, struct request *req, struct response *resp)
{
    int64_t took_ms = clock_monotonic_ms(&clock_system) - req->start_ms;
    (void)p;
    metrics_request(req, resp, took_ms);
    log_debug("request method=%s path=%s user=%s status=%d ms=%lld trace=%s", req->method,
              req->path, req->user.name ? req->user.name : "-", resp->status, (long long)took_ms,
              req->trace ? req->trace : "-");
    log_set_id(NULL);
}

/* ---- audit id and trace ---- */

static bool is_visible(const char *s)
{
    for (; *s; s++)
        if (*s <= 0x20 || *s == 0x7f)
            return false;
    return true;
}

/* A traceparent of version 00: VERSION-TRACE-SPAN-FLAGS in lower-case hex, ids not all zero.
 * Source: W3C Trace Context. Another one is not passed on. */
static bool is_traceparent(const char *s)
{
    static const char form[] = "00-hhhhhhhhhhhhhhhhhhhhhhhhhhhhhhhh-hhhhhhhhhhhhhhhh-hh";
    if (strlen(s) != sizeof form - 1)
        return false;
    for (size_t i = 0; i < sizeof form - 1; i++) {
        bool is_hex = (s[i] >= '0' && s[i] <= '9') || (s[i] >= 'a' && s[i] <= 'f');
        if (form[i] == 'h' ? !is_hex : s[i] != form[i])
            return false;
    }
    return strspn(s + 3, "0") < 32 && strspn(s + 36, "0") < 16;
}

static void take_trace(struct request *req)
{
    const char *given = pairs_get_ci(&req->headers, "traceparent");
    if (given && is_traceparent(given))
        req->trace = given;
}

static int enter_audit_id(struct pipeline *p, struct request *req, struct response *resp,
                          struct err *err)
{
    const char *given = pairs_get_ci(&req->headers, "Audit-Id");
    char uuid[RAND_UUID_SIZE];
    (void)resp;
    (void)err;
    take_trace(req);
    if (given && *given && is_visible(given)) {
        req->id = arena_strndup(&req->arena, given, strnlen(given, AUDIT_ID_MAX));
    } else {
        rand_uuid(p->config.randomness, uuid);
        req->id = arena_strdup(&req->arena, uuid);
    }
    log_set_id(req->id);
    return FILTER_GO_ON;
}

/* ---- URL ---- */

static int enter_url(struct pipeline *p, struct request *req, struct response *resp,
                     struct err *err)
{
    (void)p;
    if (route_parse(req, err) == 0)
        return FILTER_GO_ON;
    resp->status = 400;
    respond_header(resp, "Content-Type", "text/plain; charset=utf-8");
    buf_puts(&resp->body, err_text(err));
    return FILTER_ANSWERED;
}

/* ---- deadline ---- */

static bool is_verb(const struct request *req, const char *verb)
{
    return strcmp(req->route.verb, verb) == 0;
}

static bool is_watch(const struct request *req)
{
    return req->route.is_resource && is_verb(req, "watch");
}

/* What may go on for as long as it likes holds no worker meanwhile, and has limits of its own. */
static bool is_long_running(const struct request *req)
{
    return is_watch(req) || reach_is_one(req);
}

static bool is_write(const struct request *req)
{
    return !is_verb(req, "get") && !is_verb(req, "list") && !is_verb(req, "watch") &&
           !is_verb(req, "head");
}

/* Less than anything takes: kube-apiserver does not even begin, and answers with a Status that has
 * lost its kind. */
static int respond_late(struct response *resp)
{
    resp->status = 504;
    respond_header(resp, "Content-Type", "text/plain; charset=utf-8");
    buf_puts(&resp->body,
             "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"Timeout: request did not "
             "complete within the allotted timeout\",\"reason\":\"Timeout\",\"details\":{},"
             "\"code\":504}\n");
    return FILTER_ANSWERED;
}

static int enter_deadline(struct pipeline *p, struct request *req, struct response *resp,
                          struct err *err)
{
    int64_t limit_ms = p->config.request_timeout_ms, asked_ns = 0;
    const char *text = pairs_get(&req->params, "timeout");
    if (is_long_running(req))
        return FILTER_GO_ON;
    if (text && *text && params_duration(text, &asked_ns, err) < 0)
        return err_wrap(err, "invalid timeout specified in the request URL - time");
    if (asked_ns > 0 && asked_ns < MS_NS)
        return respond_late(resp);
    if (asked_ns > 0 && asked_ns / MS_NS < limit_ms)
        limit_ms = asked_ns / MS_NS;
    if (req->route.is_resource && is_write(req) && !is_verb(req, "deletecollection") &&
        limit_ms > WRITE_TIMEOUT_MS)
        limit_ms = WRITE_TIMEOUT_MS;
    req->deadline_ms = req->start_ms + limit_ms;
    return FILTER_GO_ON;
}

/* ---- who ---- */

static int enter_authenticate(struct pipeline *p, struct request *req, struct response *resp,
                              struct err *err)
{
    struct credentials creds = {
        .chain = req->chain, .n_chain = req->n_chain, .headers = &req->headers};
    (void)resp;
    return auth_identify(p->config.auth, &creds, &req->user, err);
}

/* ---- room ---- */

static bool is_exempt(const struct request *req)
{
    return is_long_running(req) || is_of_health(req->route.path) ||
           user_in_group(&req->user, "system:masters");
}

static int enter_limit(struct pipeline *p, struct request *req, struct response *resp,
                       struct err *err)
{
    bool writes = is_write(req);
    atomic_int *count = writes ? &p->writes : &p->reads;
    int max = writes ? p->config.max_writes : p->config.max_reads;
    (void)err;
    if (is_long_running(req))
        return FILTER_GO_ON;
    if (atomic_fetch_add(count, 1) < max || is_exempt(req)) {
        metrics_in_flight(writes, 1);
        return FILTER_GO_ON;
    }
    atomic_fetch_sub(count, 1);
    respond_busy(resp);
    return FILTER_ANSWERED;
}

static void leave_limit(struct pipeline *p, struct request *req, struct response *resp)
{
    bool writes = is_write(req);
    (void)resp;
    if (is_long_running(req))
        return;
    atomic_fetch_sub(writes ? &p->writes : &p->reads, 1);
    metrics_in_flight(writes, -1);
}

/* ---- allowed? ---- */

static bool has_selectors(const struct request *req)
{
    return req->route.is_resource &&
           (is_verb(req, "list") || is_verb(req, "watch") || is_verb(req, "deletecollection"));
}

/* Selectors that do not parse are left out here; the verb refuses them. */
static void add_requirements(const struct request *req, cJSON **ret_fields, cJSON **ret_labels)
{
    struct selector *s = NULL;
    const char *labels = pairs_get(&req->params, "labelSelector"),
               *fields = pairs_get(&req->params, "fieldSelector");
    if (!has_selectors(req) || (!labels && !fields) ||
        selector_parse_of(req->route.kind, labels, fields, &s, NULL) < 0)
        return;
    *ret_fields = selector_field_requirements(s);
    *ret_labels = selector_label_requirements(s);
    selector_free(s);
}

/* Writing a role or binding is giving rights away, which is a right of its own; taking them is
 * not. */
static bool gives_rights(const struct request *req)
{
    return req->route.kind && req->route.kind->write_verb && is_write(req) &&
           !is_verb(req, "delete") && !is_verb(req, "deletecollection");
}

/* What reaches into a Pod is more than reading it, whatever the method: browsers' WebSockets come
 * by GET. */
static const char *further_verb(const struct request *req)
{
    if (gives_rights(req))
        return req->route.kind->write_verb;
    return reach_is_upgrade(req) && is_verb(req, "get") ? "create" : NULL;
}

static int enter_authorize(struct pipeline *p, struct request *req, struct response *resp,
                           struct err *err)
{
    SCOPED(json_free_p) cJSON *fields = NULL, *labels = NULL;
    const struct judge *judge = p->config.judge;
    req->guard = node_access_guard(judge ? judge->nodes : NULL, &req->user, &req->arena);
    add_requirements(req, &fields, &labels);
    struct access access = handler_access(req);
    access.field_selector = fields;
    access.label_selector = labels;
    int result = auth_authorize(p->config.auth, &req->user, &access, err);
    const char *further = further_verb(req);
    if (result == 0 && further) {
        access.verb = further;
        result = auth_authorize(p->config.auth, &req->user, &access, err);
    }
    if (result == -ERR_FORBIDDEN)
        respond_header(resp, "X-Content-Type-Options", "nosniff");
    return result;
}

/* ---- the verb ---- */

static handler_fn *find_verb(const struct request *req)
{
    static const struct {
        const char *subresource, *verb;
        handler_fn *fn;
    } verbs[] = {
        {"", "get", verb_get},
        {"", "list", verb_list},
        {"", "watch", verb_watch},
        {"", "create", verb_create},
        {"", "update", verb_update},
        {"", "patch", verb_patch},
        {"", "delete", verb_delete},
        {"", "deletecollection", verb_deletecollection},
        {"status", "get", verb_get},
        {"status", "update", verb_update},
        {"status", "patch", verb_patch},
        {"scale", "get", verb_scale_get},
        {"scale", "update", verb_scale_update},
        {"scale", "patch", verb_scale_patch},
        {"activity", "create", verb_activity},
        {"binding", "create", verb_binding},
        {"token", "create", verb_token},
        {"log", "get", verb_reach},
        {"exec", "get", verb_reach},
        {"exec", "create", verb_reach},
        {"attach", "get", verb_reach},
        {"attach", "create", verb_reach},
        {"portforward", "get", verb_reach},
        {"portforward", "create", verb_reach},
        {"finalize", "update", verb_update},
    };
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (strcmp(req->route.subresource, verbs[i].subresource) == 0 &&
            is_verb(req, verbs[i].verb))
            return verbs[i].fn;
    return NULL;
}

static bool has_subresource(const struct kind *kind, const char *name)
{
    return !*name || (kind->has_status && strcmp(name, "status") == 0) ||
           (kind->scale && strcmp(name, "scale") == 0) ||
           (kind->has_activity && strcmp(name, "activity") == 0) || kind_subresource(kind, name);
}

static int no_subresource(struct request *req, struct err *err)
{
    const struct route *r = &req->route;
    SCOPED(buf_fini) struct buf quoted = {0};
    buf_go_quote(&quoted, r->name, strlen(r->name));
    err_set(err, ERR_NOT_FOUND, "%s %s not found", route_group_resource(req), buf_cstr(&quoted));
    return err_details(err, r->group, r->resource, r->name, NULL);
}

static int no_verb(struct request *req, struct err *err)
{
    if (reach_is_one(req)) {
        err_set(err, ERR_METHOD_NOT_ALLOWED,
                "the server does not allow this method on the requested resource");
        err->has_details = true;
        return -ERR_METHOD_NOT_ALLOWED;
    }
    err_set(err, ERR_METHOD_NOT_ALLOWED, "%s is not supported on resources of kind \"%s\"",
            req->route.verb, route_group_resource(req));
    return err_details(err, req->route.group, req->route.resource, NULL, NULL);
}

/* The path has a namespace exactly where the kind has one; lists may be of all. A Namespace is, for
 * authorizers, in itself. Anything else that is in none must not be reached through one: who asks
 * was judged by what he may there. */
static bool is_misplaced(const struct request *req)
{
    const struct route *r = &req->route;
    if (!r->kind->is_cluster_scoped)
        return !*r->namespace_name && !is_verb(req, "list") && !is_verb(req, "watch");
    bool is_in_itself = r->kind == &kind_namespace && strcmp(r->namespace_name, r->name) == 0;
    return *r->namespace_name && !is_in_itself;
}

static int serve_resource(struct pipeline *p, struct request *req, struct response *resp,
                          struct err *err)
{
    struct route *r = &req->route;
    if (!r->kind || is_misplaced(req)) {
        respond_not_found(resp);
        return 0;
    }
    if (r->kind->is_cluster_scoped)
        r->namespace_name = "";
    if (!has_subresource(r->kind, r->subresource))
        return no_subresource(req, err);
    if (reach_is_one(req) && strcmp(req->method, "HEAD") == 0)
        return no_verb(req, err);
    handler_fn *fn = r->kind->is_read_only && is_write(req) ? NULL : find_verb(req);
    if (r->kind->is_review)
        fn = fn == verb_create ? verb_review : NULL;
    return fn ? fn(p, req, resp, err) : no_verb(req, err);
}

static int enter_serve(struct pipeline *p, struct request *req, struct response *resp,
                       struct err *err)
{
    const char *upgrade = pairs_get_ci(&req->headers, "Upgrade");
    if (upgrade && req->route.is_resource && !reach_is_one(req) && !socket_is_wanted(req))
        return err_set(err, ERR_BAD_REQUEST, "this server does not upgrade connections");
    int r = req->route.is_resource ? serve_resource(p, req, resp, err)
                                   : nonresource_serve(p, req, resp, err);
    return r < 0 ? r : FILTER_ANSWERED;
}

const struct filter filters[] = {
    {"received", enter_received, leave_received},
    {"audit-id", enter_audit_id, NULL},
    {"url", enter_url, NULL},
    {"deadline", enter_deadline, NULL},
    {"authenticate", enter_authenticate, NULL},
    {"limit", enter_limit, leave_limit},
    {"authorize", enter_authorize, NULL},
    {"serve", enter_serve, NULL},
    {0},
};
