/* POST .../activity: somebody uses the object. What it means is the kind's (struct activity_ops);
 * here is only how it is asked and answered: no body is looked at, the answer is a Status, since
 * the right to this subresource is not one to read the object. ?wait=30s answers once the object is
 * ready. */
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/metric.h"
#include "apiserver/http/handler.h"
#include "apiserver/http/params.h"
#include "apiserver/http/respond.h"
#include "apiserver/http/status.h"

static const struct {
    const char *label, *text;
} outcomes[] = {
    [ACTIVITY_NONE] = {"coalesced", "nothing to note"},
    [ACTIVITY_NOTED] = {"noted", "noted"},
    [ACTIVITY_WOKEN] = {"woken", "woken"},
};

static struct metric reports = {
    .name = "agent_sandbox_activity_reports_total",
    .help = "Reports of activity: noted (written), coalesced (nothing to write), woken, refused.",
    .type = METRIC_COUNTER,
    .labels = {"result"},
};

static void count(const char *result)
{
    metric_add(&reports, 1, (const char *const[]){result});
}

/* When to stop waiting, monotonic; 0 = not asked to wait. */
static int wait_until(const struct request *req, int64_t *ret_ms, struct err *err)
{
    const char *text = pairs_get(&req->params, "wait");
    int64_t ns;
    *ret_ms = 0;
    if (!text || !*text)
        return 0;
    if (params_duration(text, &ns, err) < 0)
        return err_wrap(err, "invalid wait specified in the request URL");
    int64_t until_ms = clock_monotonic_ms(&clock_system) + (ns > 0 ? ns / MS_NS : 0);
    *ret_ms = until_ms < req->deadline_ms ? until_ms : req->deadline_ms;
    return 0;
}

/* A place among those who wait, so that they never hold all workers. */
static bool take_place(struct pipeline *p)
{
    if (atomic_fetch_add(&p->waits, 1) < p->config.max_waits)
        return true;
    atomic_fetch_sub(&p->waits, 1);
    return false;
}

static int await(struct pipeline *p, struct activity_request request, int64_t until_ms,
                 struct err *err)
{
    request.deadline_ms = until_ms;
    int rc = registry_await_ready(p->config.registry, &request, err);
    atomic_fetch_sub(&p->waits, 1);
    return rc;
}

static cJSON *answer_tree(const struct request *req, enum activity outcome)
{
    const struct route *r = &req->route;
    cJSON *tree = status_success(r->group, r->resource, r->name, NULL);
    json_set_str(tree, "message", outcomes[outcome].text);
    json_set_int(tree, "code", 200);
    return tree;
}

int verb_activity(struct pipeline *p, struct request *req, struct response *resp, struct err *err)
{
    const struct route *r = &req->route;
    struct negotiated form;
    struct write_options options;
    int64_t until_ms;
    enum activity outcome;
    if (handler_check_name(req, err) < 0 ||
        negotiate(&req->headers, &req->params, NEGOTIATE_RESOURCE, &form, err) < 0 ||
        params_write(req, "CreateOptions", &options, err) < 0 ||
        wait_until(req, &until_ms, err) < 0)
        return -(int)err->code;
    struct activity_request request = {.kind = r->kind,
                                       .namespace_name = r->namespace_name,
                                       .name = r->name,
                                       .ops = p->config.activity,
                                       .dry_run = options.dry_run,
                                       .deadline_ms = req->deadline_ms};
    if (until_ms && !take_place(p)) {
        respond_busy(resp);
        return 0;
    }
    int rc = registry_activity(p->config.registry, &request, &outcome, err);
    count(rc < 0 ? "refused" : outcomes[outcome].label);
    if (until_ms && (rc < 0 || options.dry_run))
        atomic_fetch_sub(&p->waits, 1);
    else if (until_ms)
        rc = await(p, request, until_ms, err);
    if (rc < 0)
        return rc;
    respond_tree(resp, 200, &form, answer_tree(req, outcome));
    return 0;
}
