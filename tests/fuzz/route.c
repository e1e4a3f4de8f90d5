/* Fuzz target for paths and queries: METHOD, a blank, the URL. Whatever comes, every attribute is a
 * string, a resource has one, and what was read from the path has no slash in it. */
#include <stdint.h>
#include <stdlib.h>

#include "apiserver/base/mem.h"
#include "apiserver/http/route.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_route(const struct route *r)
{
    const char *const segments[] = {r->group,       r->version,        r->resource,
                                    r->subresource, r->namespace_name, r->name};
    require(r->verb && r->path);
    for (size_t i = 0; i < ARRAY_LEN(segments); i++)
        require(segments[i] && !strchr(segments[i], '/'));
    require(!r->kind || r->is_resource);
    require(!r->is_resource || r->version);
    if (strcmp(r->verb, "deletecollection") == 0 && r->is_resource)
        require(!*r->name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    SCOPED_FREE char *text = xstrndup((const char *)data, size);
    SCOPED(request_fini) struct request req = {0};
    SCOPED(err_fini) struct err err = {0};
    char *url = strchr(text, ' '), *query = url ? strchr(url, '?') : NULL;
    if (url)
        *url++ = '\0';
    if (query)
        *query++ = '\0';
    req.method = xstrdup(text);
    req.path = xstrdup(url ? url : "");
    req.query = xstrdup(query ? query : "");
    if (route_parse(&req, &err) == 0)
        check_route(&req.route);
    else
        require(err.code == ERR_BAD_REQUEST);
    return 0;
}
