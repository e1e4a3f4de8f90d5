/* Everything that is no resource, by path. Slashes at the end are ignored as far as kube-apiserver
 * does, and nobody is ever redirected. */
#include "apiserver/base/mem.h"
#include "apiserver/http/handler.h"
#include "apiserver/http/respond.h"

static bool is_below(const char *path, const char *root)
{
    size_t n = strlen(root);
    return strncmp(path, root, n) == 0 && (path[n] == '/' || !path[n]);
}

static handler_fn *find_handler(const char *path)
{
    static const struct {
        const char *root;
        handler_fn *fn;
    } rows[] = {{"/healthz", health_serve},
                {"/livez", health_serve},
                {"/readyz", health_serve},
                {"/ui", ui_serve}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (is_below(path, rows[i].root))
            return rows[i].fn;
    return strcmp(path, "/metrics") == 0 ? metrics_serve : NULL;
}

/* All of what is below /apis, one of anything else, none of a schema. */
static void trim_slashes(char *path)
{
    size_t n = strlen(path), least = str_has_prefix(path, "/openapi/") ? n
                                     : str_has_prefix(path, "/apis/")  ? sizeof "/apis" - 1
                                                                       : n - (n > 0);
    while (n > least && path[n - 1] == '/')
        path[--n] = '\0';
}

int nonresource_serve(struct pipeline *p, struct request *req, struct response *resp,
                      struct err *err)
{
    char *path = arena_strdup(&req->arena, req->route.path);
    bool is_found = false;
    trim_slashes(path);
    handler_fn *fn = find_handler(path);
    if (fn)
        return fn(p, req, resp, err);
    int r = documents_serve(p->documents, req, path, resp, &is_found, err);
    if (r < 0 || is_found)
        return r;
    if (is_below(path, "/openapi/v3"))
        resp->status = 404; /* without a body, as kube-apiserver */
    else
        respond_not_found(resp);
    return 0;
}
