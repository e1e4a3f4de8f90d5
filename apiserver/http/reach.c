/* A row for each of the four, a row for each option. */
#include "apiserver/http/reach.h"

#include <arpa/inet.h>
#include <inttypes.h>

#include "apiserver/base/fetch.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/http/params.h"
#include "apiserver/http/route.h"
#include "openapi/gotime.h"

/* How an option is written in the query that the node gets. */
enum form {
    FORM_WORDS,  /* as they came, each by itself */
    FORM_FLAG,   /* a word when it is set */
    FORM_NUMBER, /* as it came, the first one */
    FORM_TIME,   /* the same, unless it is empty */
    FORM_PORTS,  /* numbers, joined by commas */
};
struct option {
    const char *name, *node_name;
    enum form form;
    const char *set; /* FORM_FLAG: the word */
};
static const struct option log_options[] = {
    {"follow", "follow", FORM_FLAG, "true"},         {"previous", "previous", FORM_FLAG, "true"},
    {"timestamps", "timestamps", FORM_FLAG, "true"}, {"sinceSeconds", "sinceSeconds", FORM_NUMBER},
    {"sinceTime", "sinceTime", FORM_TIME},           {"tailLines", "tailLines", FORM_NUMBER},
    {"limitBytes", "limitBytes", FORM_NUMBER},       {0},
};
#define STREAM_OPTIONS                                                                             \
    {"stdin", "input", FORM_FLAG, "1"}, {"stdout", "output", FORM_FLAG, "1"},                      \
        {"stderr", "error", FORM_FLAG, "1"},                                                       \
    {                                                                                              \
        "tty", "tty", FORM_FLAG, "1"                                                               \
    }
static const struct option attach_options[] = {STREAM_OPTIONS, {0}};
static const struct option exec_options[] = {
    STREAM_OPTIONS, {"command", "command", FORM_WORDS}, {0}};
static const struct option port_options[] = {{"ports", "port", FORM_PORTS}, {0}};

static const struct way {
    const char *subresource, *node_path;
    const struct option *options;
    bool has_container, is_upgrade;
} ways[] = {
    {"log", "containerLogs", log_options, true, false},
    {"exec", "exec", exec_options, true, true},
    {"attach", "attach", attach_options, true, true},
    {"portforward", "portForward", port_options, false, true},
    {NULL, "", (const struct option[]){{0}}, false, false}, /* none of them */
};

static const struct way *find_way(const struct request *req)
{
    const struct way *way = ways;
    while (way->subresource && strcmp(way->subresource, req->route.subresource) != 0)
        way++;
    return way;
}

bool reach_is_one(const struct request *req)
{
    return req->route.is_resource && find_way(req)->subresource;
}

bool reach_is_upgrade(const struct request *req)
{
    return req->route.is_resource && find_way(req)->is_upgrade;
}

/* ---- the options ---- */

static void check_at_least(const struct request *req, const char *name, int64_t least,
                           const char *text, struct err *causes)
{
    int64_t n;
    if (pairs_get(&req->params, name) && params_int(&req->params, name, &n, NULL) == 0 && n < least)
        err_cause(causes, "FieldValueInvalid", name, "Invalid value: %" PRId64 ": %s", n, text);
}

static int check_log(const struct request *req, struct err *err)
{
    SCOPED(err_fini) struct err causes = {0};
    const char *since_s = pairs_get(&req->params, "sinceSeconds"),
               *since = pairs_get(&req->params, "sinceTime");
    check_at_least(req, "tailLines", 0, "must be greater than or equal to 0", &causes);
    check_at_least(req, "limitBytes", 1, "must be greater than 0", &causes);
    if (since_s && since && *since)
        err_cause(&causes, "FieldValueForbidden", "[]",
                  "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified");
    else
        check_at_least(req, "sinceSeconds", 1, "must be greater than 0", &causes);
    if (pairs_get(&req->params, "stream"))
        err_cause(&causes, "FieldValueForbidden", "stream", "Forbidden: may not be specified");
    return err_invalid(&causes, "", "PodLogOptions", req->route.name, err);
}

/* Each of them; a port may be any number here, what it is good for is the node's to say. */
static int check_ports(const struct request *req, const char *name, struct err *err)
{
    for (size_t i = 0; i < req->params.n; i++) {
        const struct pair *p = &req->params.v[i];
        uint64_t port;
        if (strcmp(p->name, name) != 0 || str_to_u64(p->value, &port) == 0)
            continue;
        SCOPED(buf_fini) struct buf quoted = {0};
        buf_go_quote(&quoted, p->value, strlen(p->value));
        return err_set(err, ERR_BAD_REQUEST,
                       "cannot convert to []int32: strconv.ParseUint: parsing %s: invalid syntax",
                       buf_cstr(&quoted));
    }
    return 0;
}

static int check_time(const struct request *req, struct err *err)
{
    const char *text = pairs_get(&req->params, "sinceTime");
    SCOPED_FREE char *wrong = text && *text ? gotime_check_rfc3339(text) : NULL;
    return wrong ? err_set(err, ERR_BAD_REQUEST, "%s", wrong) : 0;
}

int reach_check(const struct request *req, struct err *err)
{
    const struct way *way = find_way(req);
    for (const struct option *o = way->options; o->name; o++) {
        int64_t n;
        if ((o->form == FORM_NUMBER && params_int(&req->params, o->name, &n, err) < 0) ||
            (o->form == FORM_PORTS && check_ports(req, o->name, err) < 0))
            return -(int)err->code;
    }
    if (way->options != log_options)
        return 0;
    return check_time(req, err) < 0 ? -(int)err->code : check_log(req, err);
}

/* ---- the container ---- */

static const char *const container_lists[] = {"spec.initContainers", "spec.containers",
                                              "spec.ephemeralContainers"};

static bool has_container(const cJSON *pod, const char *name)
{
    const cJSON *c;
    for (size_t i = 0; i < ARRAY_LEN(container_lists); i++) {
        cJSON_ArrayForEach(c, json_at(pod, container_lists[i]))
        {
            if (str_equal(json_str(c, "name"), name))
                return true;
        }
    }
    return false;
}

static void list_containers(const cJSON *pod, struct buf *out)
{
    const cJSON *c;
    for (size_t i = 0; i < ARRAY_LEN(container_lists); i++) {
        cJSON_ArrayForEach(c, json_at(pod, container_lists[i]))
        {
            buf_printf(out, "%s%s", out->len ? " " : "", json_str_or(c, "name", ""));
        }
    }
}

int reach_container(const struct request *req, const cJSON *pod, const char **ret_container,
                    struct err *err)
{
    const char *name = pairs_get(&req->params, "container"), *pod_name = req->route.name;
    const cJSON *containers = json_at(pod, "spec.containers");
    *ret_container = "";
    if (!find_way(req)->has_container)
        return 0;
    if (name && *name && !has_container(pod, name))
        return err_set(err, ERR_BAD_REQUEST, "container %s is not valid for pod %s", name,
                       pod_name);
    if ((!name || !*name) && json_len(containers) != 1) {
        SCOPED(buf_fini) struct buf all = {0};
        list_containers(pod, &all);
        return err_set(err, ERR_BAD_REQUEST,
                       "a container name must be specified for pod %s, choose one of: [%s]",
                       pod_name, buf_cstr(&all));
    }
    *ret_container = name && *name ? name : json_str_or(containers->child, "name", "");
    return 0;
}

/* ---- the node ---- */

static void add_name(struct buf *out, const struct option *o, bool *has_query)
{
    buf_printf(out, "%c%s=", *has_query ? '&' : '?', o->node_name);
    *has_query = true;
}

static bool is_set(const struct request *req, const struct option *o)
{
    const char *first = pairs_get(&req->params, o->name);
    if (o->form == FORM_FLAG)
        return route_flag(&req->params, o->name);
    return first && (o->form != FORM_TIME || *first);
}

static void add_option(const struct request *req, const struct option *o, struct buf *out,
                       bool *has_query)
{
    bool is_one = o->form == FORM_FLAG || o->form == FORM_NUMBER || o->form == FORM_TIME;
    size_t n_added = 0;
    for (size_t i = 0; i < req->params.n && is_set(req, o); i++) {
        const struct pair *p = &req->params.v[i];
        if (strcmp(p->name, o->name) != 0 || (is_one && n_added))
            continue;
        if (n_added == 0 || o->form == FORM_WORDS)
            add_name(out, o, has_query);
        else
            buf_putc(out, ',');
        fetch_escape(o->set ? o->set : p->value, out);
        n_added++;
    }
}

void reach_path(const struct request *req, const char *container, struct buf *ret)
{
    const struct way *way = find_way(req);
    bool has_query = false;
    buf_printf(ret, "/%s/", way->node_path);
    fetch_escape(req->route.namespace_name, ret);
    buf_putc(ret, '/');
    fetch_escape(req->route.name, ret);
    if (way->has_container) {
        buf_putc(ret, '/');
        fetch_escape(container, ret);
    }
    for (const struct option *o = way->options; o->name; o++)
        add_option(req, o, ret, &has_query);
}

static bool is_numeric(const char *address)
{
    unsigned char any[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, address, any) == 1 || inet_pton(AF_INET6, address, any) == 1;
}

int reach_endpoint(const cJSON *node, const char **ret_address, int *ret_port, struct err *err)
{
    static const char *const types[] = {"InternalIP", "ExternalIP", "Hostname"};
    int64_t port = json_i64_or(node, "status.daemonEndpoints.kubeletEndpoint.Port", 0);
    const cJSON *a;
    for (size_t i = 0; i < ARRAY_LEN(types) && port > 0 && port <= UINT16_MAX; i++) {
        cJSON_ArrayForEach(a, json_at(node, "status.addresses"))
        {
            const char *address = json_str_or(a, "address", "");
            if (!str_equal(json_str(a, "type"), types[i]) || !is_numeric(address))
                continue;
            *ret_address = address;
            *ret_port = (int)port;
            return 0;
        }
    }
    return err_set(err, ERR_UNAVAILABLE, "node %s does not say where it can be reached",
                   json_str_or(node, "metadata.name", ""));
}
