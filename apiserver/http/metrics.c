/* What the HTTP layer counts about itself, under the names that monitoring of kube-apiservers
 * expects, and GET /metrics. Source: docs/kubernetes-api.md 10. */
#include <stdio.h>

#include "apiserver/base/mem.h"
#include "apiserver/base/metric.h"
#include "apiserver/http/handler.h"
#include "apiserver/http/respond.h"

static const double durations_s[] = {0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1,  1.25, 1.5, 2,
                                     3,     4,     5,    6,   8,   10,  15,  20,  30, 45,   60,  0};

static struct metric request_total = {
    .name = "apiserver_request_total",
    .help = "Requests answered, by verb, what they were about, and HTTP status.",
    .type = METRIC_COUNTER,
    .labels = {"verb", "dry_run", "group", "version", "resource", "subresource", "scope",
               "component", "code"},
};
static struct metric request_duration = {
    .name = "apiserver_request_duration_seconds",
    .help = "Time from the arrival of a request to its answer; of watches, to their start.",
    .type = METRIC_HISTOGRAM,
    .labels = {"verb", "dry_run", "group", "version", "resource", "subresource", "scope",
               "component"},
    .buckets = durations_s,
};
static struct metric in_flight = {
    .name = "apiserver_current_inflight_requests",
    .help = "Requests being worked on, watches left out.",
    .type = METRIC_GAUGE,
    .labels = {"request_kind"},
};
static struct metric long_running = {
    .name = "apiserver_longrunning_requests",
    .help = "Watches that are open.",
    .type = METRIC_GAUGE,
    .labels = {"verb", "group", "version", "resource", "subresource", "scope", "component"},
};

static bool is_apply(const struct request *req)
{
    enum body_type type;
    return negotiate_patch(&req->headers, true, &type, NULL) == 0 && type == BODY_APPLY;
}

/* The verb in capitals; what nobody serves is one series, whatever clients invent. */
static const char *verb_label(const struct request *req)
{
    static const char *const verbs[][2] = {
        {"get", "GET"},       {"list", "LIST"},
        {"watch", "WATCH"},   {"create", "POST"},
        {"update", "PUT"},    {"patch", "PATCH"},
        {"delete", "DELETE"}, {"deletecollection", "DELETECOLLECTION"},
        {"post", "POST"},     {"head", "HEAD"},
        {"put", "PUT"},
    };
    for (size_t i = 0; req->route.verb && i < ARRAY_LEN(verbs); i++)
        if (strcmp(req->route.verb, verbs[i][0]) == 0)
            return strcmp(verbs[i][1], "PATCH") == 0 && is_apply(req) ? "APPLY" : verbs[i][1];
    return "other";
}

struct labels { /* shared by several metrics; values are static, or of the kind */
    const char *verb, *dry_run, *group, *version, *resource, *subresource, *scope;
};

static const char *subresource_label(const char *name)
{
    static const char *const known[] = {"status", "scale", "activity"};
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (strcmp(name, known[i]) == 0)
            return known[i];
    return "";
}

static struct labels labels_of(const struct request *req)
{
    const struct route *r = &req->route;
    struct labels l = {.verb = verb_label(req),
                       .dry_run = "",
                       .group = "",
                       .version = "",
                       .resource = "",
                       .subresource = "",
                       .scope = ""};
    if (!r->kind)
        return l;
    l.group = r->kind->group;
    l.version = r->kind->version;
    l.resource = r->kind->plural;
    l.subresource = subresource_label(r->subresource);
    l.scope = *r->name ? "resource" : *r->namespace_name ? "namespace" : "cluster";
    const char *dry_run = pairs_get(&req->params, "dryRun");
    if (dry_run && strcmp(dry_run, "All") == 0)
        l.dry_run = "All";
    return l;
}

void metrics_request(const struct request *req, const struct response *resp, int64_t took_ms)
{
    struct labels l = labels_of(req);
    char code[16];
    snprintf(code, sizeof code, "%d", resp->status);
    const char *const values[] = {l.verb,        l.dry_run, l.group,     l.version, l.resource,
                                  l.subresource, l.scope,   "apiserver", code};
    metric_add(&request_total, 1, values);
    metric_observe(&request_duration, (double)took_ms / 1000, values);
}

void metrics_in_flight(bool is_write, int by)
{
    metric_add(&in_flight, by, (const char *[]){is_write ? "mutating" : "readOnly"});
}

void metrics_watch(const struct kind *kind, const char *scope, int by)
{
    metric_add(&long_running, by,
               (const char *[]){"WATCH", kind->group, kind->version, kind->plural, "", scope,
                                "apiserver"});
}

int metrics_serve(struct pipeline *p, struct request *req, struct response *resp, struct err *err)
{
    (void)p, (void)req, (void)err;
    metric_print_all(&resp->body);
    resp->status = 200;
    respond_header(resp, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    return 0;
}
