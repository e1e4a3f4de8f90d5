/* /livez, /readyz and /healthz. Each health root runs the checks it knows, in order;
 * readyz has a check of its own that fails once the server drains. Source:
 * docs/kubernetes-api.md 10. */
#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/metric.h"
#include "apiserver/http/handler.h"
#include "apiserver/http/respond.h"

#define CHECKS_MAX 32

static bool always_ok(void *ctx)
{
    return ctx == NULL;
}

static bool not_draining(void *ctx)
{
    struct pipeline *p = ctx;
    return !atomic_load(&p->is_draining);
}

struct checks {
    struct health_check v[CHECKS_MAX];
    size_t n;
};

static struct checks checks_of(struct pipeline *p, bool is_ready)
{
    struct checks c = {0};
    c.v[c.n++] = (struct health_check){.name = "ping", .ok = always_ok};
    for (const struct health_check *h = p->config.checks; h && h->name && c.n < CHECKS_MAX - 1; h++)
        if (is_ready || !h->is_ready_only)
            c.v[c.n++] = *h;
    if (is_ready)
        c.v[c.n++] = (struct health_check){.name = "shutdown", .ok = not_draining, .ctx = p};
    return c;
}

static bool is_excluded(const struct request *req, const char *name)
{
    for (size_t i = 0; i < req->params.n; i++)
        if (strcmp(req->params.v[i].name, "exclude") == 0 &&
            strcmp(req->params.v[i].value, name) == 0)
            return true;
    return false;
}

static bool is_check(const struct checks *c, const char *name)
{
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->v[i].name, name) == 0)
            return true;
    return false;
}

/* Names that were to be left out and that no check has. */
static void print_unmatched(const struct request *req, const struct checks *c, struct buf *out)
{
    SCOPED(buf_fini) struct buf names = {0};
    for (size_t i = 0; i < req->params.n; i++) {
        const char *value = req->params.v[i].value;
        if (strcmp(req->params.v[i].name, "exclude") != 0 || is_check(c, value))
            continue;
        if (names.len)
            buf_puts(&names, ", ");
        buf_json_string(&names, value, strlen(value));
    }
    if (names.len)
        buf_printf(out, "warn: some health checks cannot be excluded: no matches for %s\n",
                   buf_cstr(&names));
}

/* One line a check; true when all are fine. */
static bool run_checks(const struct request *req, const struct checks *c, struct buf *out)
{
    bool is_fine = true;
    for (size_t i = 0; i < c->n; i++) {
        const struct health_check *h = &c->v[i];
        if (is_excluded(req, h->name)) {
            buf_printf(out, "[+]%s excluded: ok\n", h->name);
        } else if (h->ok(h->ctx)) {
            buf_printf(out, "[+]%s ok\n", h->name);
        } else {
            buf_printf(out, "[-]%s failed: reason withheld\n", h->name);
            is_fine = false;
        }
    }
    print_unmatched(req, c, out);
    return is_fine;
}

static void serve_root(const struct request *req, const struct checks *c, const char *root,
                       struct response *resp)
{
    SCOPED(buf_fini) struct buf lines = {0};
    bool is_fine = run_checks(req, c, &lines),
         is_verbose = pairs_get(&req->params, "verbose") != NULL;
    if (is_fine && !is_verbose) {
        respond_text(resp, 200, "ok");
        return;
    }
    buf_printf(&lines, "%s check %s\n", root, is_fine ? "passed" : "failed");
    respond_text(resp, is_fine ? 200 : 500, buf_cstr(&lines));
}

static void serve_single(const struct checks *c, const char *name, struct response *resp)
{
    for (size_t i = 0; i < c->n; i++) {
        if (strcmp(c->v[i].name, name) != 0)
            continue;
        bool is_fine = c->v[i].ok(c->v[i].ctx);
        respond_text(resp, is_fine ? 200 : 500,
                     is_fine ? "ok" : "internal server error: the check failed\n");
        return;
    }
    respond_not_found(resp);
}

int health_serve(struct pipeline *p, struct request *req, struct response *resp, struct err *err)
{
    const char *path = req->route.path + 1, *slash = strchr(path, '/');
    SCOPED_FREE char *root = xstrndup(path, slash ? (size_t)(slash - path) : strlen(path));
    struct checks c = checks_of(p, strcmp(root, "livez") != 0);
    (void)err; /* never fails: a failed check is an answer */
    if (slash && slash[1])
        serve_single(&c, slash + 1, resp);
    else
        serve_root(req, &c, root, resp);
    return 0;
}
