/* Into a Pod: GET .../pods/NAME/log streams what its node answers; GET or POST .../exec, attach and
 * portforward hand the connection over to it. The Pod's node is asked as a kubelet is; what the
 * protocols on these connections say is between client and node. Source: kube-apiserver v1.37's
 * answers. */
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/http/dial.h"
#include "apiserver/http/handler.h"
#include "apiserver/http/node_access.h"
#include "apiserver/http/reach.h"
#include "apiserver/http/respond.h"
#include "apiserver/http/tunnel.h"
#include "openapi/kinds/builtin.h"

#define REFUSAL_MAX ((size_t)50000) /* bytes of a node's answer that is none we wanted */

/* Where a request goes. */
struct target {
    cJSON *pod, *node; /* node NULL = the Pod is on none */
    const char *container;
    const char *address;
    int port;
};

static void target_fini(struct target *t)
{
    json_free(t->pod);
    json_free(t->node);
}

/* ---- where to ---- */

static int read_tree(struct pipeline *p, const struct request *req, const struct kind *kind,
                     const char *namespace_name, const char *name, cJSON **ret, struct err *err)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    int rc = registry_get(p->config.registry, kind, namespace_name, name,
                          (struct read_version){READ_LATEST, 0}, req->deadline_ms, &o, err);
    if (rc == 0)
        *ret = object_tree(o);
    return rc;
}

/* The node's absence reads as the Pod's there, too. */
static int read_node(struct pipeline *p, const struct request *req, const char *name, cJSON **ret,
                     struct err *err)
{
    SCOPED(err_fini) struct err e = {0};
    int rc = read_tree(p, req, &kind_node, "", name, ret, &e);
    if (rc != -ERR_NOT_FOUND)
        return rc < 0 ? err_move(err, &e) : 0;
    err_set(err, ERR_NOT_FOUND, "pods \"%s\" not found", name);
    return err_details(err, "", "pods", name, NULL);
}

static int find_target(struct pipeline *p, const struct request *req, struct target *ret,
                       struct err *err)
{
    const struct route *r = &req->route;
    if (handler_check_name(req, err) < 0 || reach_check(req, err) < 0 ||
        read_tree(p, req, r->kind, r->namespace_name, r->name, &ret->pod, err) < 0 ||
        reach_container(req, ret->pod, &ret->container, err) < 0)
        return -(int)err->code;
    const char *node = json_str_or(ret->pod, "spec.nodeName", "");
    if (!*node)
        return 0;
    if (read_node(p, req, node, &ret->node, err) < 0)
        return -(int)err->code;
    return reach_endpoint(ret->node, &ret->address, &ret->port, err);
}

/* ---- asking the node ---- */

static bool is_passed_on(const struct pair *header)
{
    static const char *const names[] = {"Upgrade", "X-Stream-Protocol-Version"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcasecmp(header->name, names[i]) == 0)
            return true;
    return strncasecmp(header->name, "Sec-WebSocket-", 14) == 0;
}

static void print_request(const struct request *req, const struct target *t, struct buf *out)
{
    bool is_ipv6 = strchr(t->address, ':') != NULL;
    buf_printf(out, "%s ", req->method);
    reach_path(req, t->container, out);
    buf_printf(out, " HTTP/1.1\r\nHost: %s%s%s:%d\r\nUser-Agent: sandbox-apiserver\r\n",
               is_ipv6 ? "[" : "", t->address, is_ipv6 ? "]" : "", t->port);
    if (reach_is_upgrade(req)) {
        buf_puts(out, "Connection: Upgrade\r\n");
        for (size_t i = 0; i < req->headers.n; i++)
            if (is_passed_on(&req->headers.v[i]))
                buf_printf(out, "%s: %s\r\n", req->headers.v[i].name, req->headers.v[i].value);
    } else {
        buf_puts(out, "Connection: close\r\n");
    }
    buf_puts(out, strcmp(req->method, "POST") == 0 ? "Content-Length: 0\r\n\r\n" : "\r\n");
}

/* What a node answered, and the line it may go on on. */
struct asked {
    struct line line;
    struct reply reply;
    struct buf ahead;
};

static void asked_fini(struct asked *a)
{
    line_fini(&a->line);
    reply_fini(&a->reply);
    buf_fini(&a->ahead);
}

static int ask(struct pipeline *p, const struct request *req, const struct target *t,
               struct asked *ret, struct err *err)
{
    SCOPED(buf_fini) struct buf text = {0};
    const struct dial_node node = {json_str_or(t->node, "metadata.name", ""),
                                   node_access_has_user(t->node)};
    int rc = dial(p->config.dialer, &node, t->address, t->port, req->deadline_ms, &ret->line, err);
    if (rc < 0)
        return rc;
    print_request(req, t, &text);
    return line_ask(&ret->line, &text, req->deadline_ms, &ret->reply, &ret->ahead, err);
}

static void read_refusal(const struct request *req, struct asked *a)
{
    line_read_body(&a->line, &a->reply, REFUSAL_MAX, req->deadline_ms, &a->ahead);
    if (a->ahead.len > REFUSAL_MAX) {
        a->ahead.len = REFUSAL_MAX;
        a->ahead.data[REFUSAL_MAX] = '\0';
    }
}

/* ---- a log ---- */

/* What a node says against it, as a Status. */
static int refuse_log(const struct request *req, struct asked *a, struct err *err)
{
    read_refusal(req, a);
    const char *text = buf_cstr(&a->ahead), *name = req->route.name;
    if (a->reply.status == 400)
        return err_set(err, ERR_BAD_REQUEST, "%s", text);
    if (a->reply.status == 500) {
        err_set(err, ERR_INTERNAL, "Internal error occurred: %s", text);
        err_cause(err, NULL, NULL, "%s", text);
        return -ERR_INTERNAL;
    }
    err_set(err, err_from_status(a->reply.status, ""), "%s ( pods/log %s)", text, name);
    err_details(err, "", "pods/log", name, NULL);
    return -(int)err->code;
}

static int answer_log(struct pipeline *p, const struct request *req, const struct target *t,
                      struct response *resp, struct err *err)
{
    SCOPED(asked_fini) struct asked a = {0};
    if (ask(p, req, t, &a, err) < 0)
        return -(int)err->code;
    if (a.reply.status < 200 || a.reply.status > 206)
        return refuse_log(req, &a, err);
    resp->status = 200;
    respond_header(resp, "Content-Type", "text/plain");
    resp->stream = tunnels_log(p->config.tunnels, &a.line, &a.reply, &a.ahead);
    return 0;
}

/* ---- a raw connection ---- */

static bool wants_upgrade(const struct request *req)
{
    for (size_t i = 0; i < req->headers.n; i++)
        if (strcasecmp(req->headers.v[i].name, "Connection") == 0 &&
            strcasestr(req->headers.v[i].value, "upgrade"))
            return req->can_upgrade;
    return false;
}

/* Of the connection between us and the node, not of what it carries. */
static bool is_of_hop(const char *name)
{
    static const char *const names[] = {
        "Connection", "Date", "Keep-Alive", "Content-Length", "Transfer-Encoding", "Trailer"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcasecmp(name, names[i]) == 0)
            return true;
    return false;
}

static void pass_on_headers(const struct reply *r, struct response *resp)
{
    for (size_t i = 0; i < r->headers.n; i++)
        if (!is_of_hop(r->headers.v[i].name))
            pairs_add(&resp->headers, r->headers.v[i].name, r->headers.v[i].value);
}

static int answer_upgrade(struct pipeline *p, const struct request *req, const struct target *t,
                          struct response *resp, bool *ret_is_open, struct err *err)
{
    SCOPED(asked_fini) struct asked a = {0};
    if (ask(p, req, t, &a, err) < 0)
        return -(int)err->code;
    bool is_upgrade = a.reply.state == REPLY_RAW && pairs_get_ci(&a.reply.headers, "Upgrade");
    if (a.reply.state == REPLY_RAW && !is_upgrade)
        return err_set(err, ERR_UNKNOWN, "the node's answer does not say what it upgrades to");
    pass_on_headers(&a.reply, resp);
    resp->status = a.reply.status;
    *ret_is_open = is_upgrade;
    if (is_upgrade) {
        resp->upgrade = tunnels_raw(p->config.tunnels, &a.line, &a.ahead);
        return 0;
    }
    read_refusal(req, &a);
    resp->body = steal(&a.ahead);
    return 0;
}

/* ---- both ---- */

static int answer(struct pipeline *p, const struct request *req, const struct target *t,
                  struct response *resp, struct err *err)
{
    bool is_log = !reach_is_upgrade(req), is_open = is_log;
    if (!p->config.tunnels)
        return err_set(err, ERR_UNAVAILABLE, "this server does not reach nodes");
    if (!tunnels_take_place(p->config.tunnels)) {
        respond_busy(resp);
        return 0;
    }
    int rc =
        is_log ? answer_log(p, req, t, resp, err) : answer_upgrade(p, req, t, resp, &is_open, err);
    if (rc < 0 || !is_open)
        tunnels_give_place(p->config.tunnels);
    return rc;
}

int verb_reach(struct pipeline *p, struct request *req, struct response *resp, struct err *err)
{
    SCOPED(target_fini) struct target t = {0};
    bool is_upgrade = reach_is_upgrade(req);
    if (find_target(p, req, &t, err) < 0)
        return -(int)err->code;
    if (!t.node && is_upgrade)
        return err_set(err, ERR_BAD_REQUEST, "pod %s does not have a host assigned",
                       req->route.name);
    if (is_upgrade && !wants_upgrade(req))
        return err_set(err, ERR_BAD_REQUEST, "Upgrade request required");
    if (t.node)
        return answer(p, req, &t, resp, err);
    resp->status = 204; /* nothing was logged yet */
    return 0;
}
