/* Paths and queries to request attributes, as rows. */
#include "apiserver/http/route.h"

#include "openapi/kinds.h"
#include "tests/lib/suite.h"

#define A "/apis/agents.x-k8s.io/v1beta1"

static void request_init(struct request *req, const char *method, const char *url)
{
    size_t n = strcspn(url, "?");
    *req = (struct request){.method = xstrdup(method),
                            .path = xstrndup(url, n),
                            .query = xstrdup(url[n] ? url + n + 1 : "")};
}

struct row {
    const char *method, *url;
    const char *attributes; /* verb|namespace|resource|name|subresource|known; non-resource:
                               verb|path; NULL = bad URL */
};

static const struct row rows[] = {
    /* what there is */
    {"GET", A "/namespaces/n/sandboxes/a", "get|n|sandboxes|a||yes"},
    {"HEAD", A "/namespaces/n/sandboxes/a", "get|n|sandboxes|a||yes"},
    {"PUT", A "/namespaces/n/sandboxes/a", "update|n|sandboxes|a||yes"},
    {"PATCH", A "/namespaces/n/sandboxes/a/status", "patch|n|sandboxes|a|status|yes"},
    {"DELETE", A "/namespaces/n/sandboxes/a", "delete|n|sandboxes|a||yes"},
    {"DELETE", A "/namespaces/n/sandboxes", "deletecollection|n|sandboxes|||yes"},
    {"POST", A "/namespaces/n/sandboxes", "create|n|sandboxes|||yes"},
    {"POST", A "/namespaces/n/sandboxes/a", "create|n|sandboxes|a||yes"},
    {"PUT", A "/namespaces/n/sandboxes", "update|n|sandboxes|||yes"},
    {"GET", A "/namespaces/n/sandboxes", "list|n|sandboxes|||yes"},
    {"GET", A "/sandboxes", "list||sandboxes|||yes"},
    {"GET", A "/sandboxes/a", "get||sandboxes|a||yes"},
    {"GET", "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/n/sandboxwarmpools/p/scale",
     "get|n|sandboxwarmpools|p|scale|yes"},
    /* watch */
    {"GET", A "/sandboxes?watch=true", "watch||sandboxes|||yes"},
    {"GET", A "/sandboxes?watch=1", "watch||sandboxes|||yes"},
    {"GET", A "/sandboxes?watch", "watch||sandboxes|||yes"},
    {"GET", A "/sandboxes?watch=", "watch||sandboxes|||yes"},
    {"GET", A "/sandboxes?watch=yes", "watch||sandboxes|||yes"},
    {"GET", A "/sandboxes?watch=FALSE", "list||sandboxes|||yes"},
    {"GET", A "/sandboxes?watch=0", "list||sandboxes|||yes"},
    {"GET", A "/sandboxes?watch=0&watch=1", "list||sandboxes|||yes"},
    {"GET", A "/namespaces/n/sandboxes/a?watch=1", "get|n|sandboxes|a||yes"},
    {"GET", A "/watch/sandboxes", "watch||sandboxes|||yes"},
    {"GET", A "/watch/namespaces/n/sandboxes/a", "watch|n|sandboxes|a||yes"},
    {"POST", A "/watch/namespaces/n/sandboxes", "watch|n|sandboxes|||yes"},
    {"GET", A "/proxy/namespaces/n/sandboxes/a/b", "proxy|n|sandboxes|a||yes"},
    /* the name that a field selector demands */
    {"GET", A "/namespaces/n/sandboxes?fieldSelector=metadata.name%3Da", "list|n|sandboxes|a||yes"},
    {"GET", A "/namespaces/n/sandboxes?watch=1&fieldSelector=metadata.name%3Da",
     "watch|n|sandboxes|a||yes"},
    {"GET", A "/namespaces/n/sandboxes?fieldSelector=metadata.name!%3Da", "list|n|sandboxes|||yes"},
    {"GET", A "/namespaces/n/sandboxes?fieldSelector=metadata.name%3D..", "list|n|sandboxes|||yes"},
    {"GET", A "/namespaces/n/sandboxes?fieldSelector=metadata.name%3Da%252Fb",
     "list|n|sandboxes|||yes"},
    {"DELETE", A "/namespaces/n/sandboxes?fieldSelector=metadata.name%3Da",
     "deletecollection|n|sandboxes|||yes"},
    /* odd paths */
    {"GET", A "/namespaces/n/sandboxes/", "list|n|sandboxes|||yes"},
    {"GET", A "/namespaces/n/sandboxes/a/status/x/y", "get|n|sandboxes|a|status|yes"},
    {"GET", A "/namespaces//sandboxes", "list||sandboxes|||yes"},
    {"GET", A "/namespaces/n/sandboxes//a", "list|n|sandboxes||a|yes"},
    {"GET", A "/namespaces/n/sandboxes/./a", "get|n|sandboxes|.|a|yes"},
    {"GET", A "/namespaces/n/sandboxes/x/../a", "get|n|sandboxes|x|..|yes"},
    {"GET", A "/namespaces/n/sandboxes/a%2Fb", "get|n|sandboxes|a|b|yes"},
    {"GET", A "/namespaces/n/sandboxes/%61", "get|n|sandboxes|a||yes"},
    {"GET", A "/namespaces/n/sandboxes/a%20b", "get|n|sandboxes|a b||yes"},
    {"GET", A "/namespaces/n/sandboxes/a+b", "get|n|sandboxes|a+b||yes"},
    {"GET", A "/namespaces/n/sandboxes/a%25b", "get|n|sandboxes|a%b||yes"},
    {"GET", A "/namespaces/n/sandboxes/a%00b", "get|n|sandboxes|a\300\200b||yes"},
    {"GET", A "/namespaces/n/sandboxes/a;b", "get|n|sandboxes|a;b||yes"},
    {"GET", A "/namespaces/n", "get|n|namespaces|n||no"},
    {"GET", A "/namespaces", "list||namespaces|||no"},
    {"GET", A "/namespaces/n/nothings", "list|n|nothings|||no"},
    {"GET", A "/namespaces/n/Sandboxes", "list|n|Sandboxes|||no"},
    {"GET", A "/namespaces/n/sandboxclaims", "list|n|sandboxclaims|||no"},
    {"GET", "/apis/agents.x-k8s.io/v1/namespaces/n/sandboxes", "list|n|sandboxes|||no"},
    {"GET", "/apis//agents.x-k8s.io/v1beta1/namespaces/n/sandboxes",
     "get||v1beta1|namespaces|n|no"},
    {"OPTIONS", A "/namespaces/n/sandboxes", "|n|sandboxes|||yes"},
    {"get", A "/namespaces/n/sandboxes", "|n|sandboxes|||yes"},
    /* no resources */
    {"GET", "/", "get|/"},
    {"GET", "/apis", "get|/apis"},
    {"POST", A, "post|" A},
    {"GET", A "/", "get|" A "/"},
    {"GET", "/openapi/v3/apis/agents.x-k8s.io/v1beta1",
     "get|/openapi/v3/apis/agents.x-k8s.io/v1beta1"},
    {"GET", "/readyz", "get|/readyz"},
    {"FOO", "/x%2fy", "foo|/x/y"},
    /* broken escapes */
    {"GET", A "/namespaces/n/sandboxes/a%zz", NULL},
    {"GET", A "/namespaces/n/sandboxes/a%2", NULL},
    {"GET", "/%", NULL},
};

static char *attributes(const struct request *req)
{
    const struct route *r = &req->route;
    if (!r->is_resource)
        return xasprintf("%s|%s", r->verb, r->path);
    return xasprintf("%s|%s|%s|%s|%s|%s", r->verb, r->namespace_name, r->resource, r->name,
                     r->subresource, r->kind ? "yes" : "no");
}

START_TEST(test_row)
{
    const struct row *row = &rows[_i];
    SCOPED(request_fini) struct request req;
    SCOPED(err_fini) struct err err = {0};
    request_init(&req, row->method, row->url);
    int r = route_parse(&req, &err);
    if (!row->attributes) {
        ck_assert_msg(r == -ERR_BAD_REQUEST, "%s", row->url);
        ck_assert_str_eq(err_text(&err), "400 Bad Request");
        return;
    }
    ck_assert_msg(r == 0, "%s", row->url);
    SCOPED_FREE char *got = attributes(&req);
    ck_assert_msg(strcmp(got, row->attributes) == 0, "%s %s gave %s", row->method, row->url, got);
}
END_TEST

SUITE(route)
{
    LOOP("path", test_row, 0, ARRAY_LEN(rows));
}
