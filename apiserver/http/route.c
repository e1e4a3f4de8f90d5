/* The path is unescaped as a whole, trimmed of slashes and split; then the segments are read from
 * left to right as kube-apiserver's request info does, odd corners included. */
#include "apiserver/http/route.h"

#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "apiserver/base/url.h"
#include "apiserver/registry/select.h"
#include "openapi/kinds.h"

#define SEGMENTS_MAX 16 /* later ones mean nothing */

bool route_flag(const struct pairs *params, const char *name)
{
    const char *text = pairs_get(params, name);
    return text && strcasecmp(text, "false") != 0 && strcmp(text, "0") != 0;
}

struct segments {
    const char *v[SEGMENTS_MAX];
    size_t n;
};

/* Cuts path (changed in place) at its slashes. */
static struct segments split(char *path)
{
    struct segments s = {0};
    path += strspn(path, "/");
    size_t len = strlen(path);
    while (len && path[len - 1] == '/')
        path[--len] = '\0';
    for (char *at = path; len && at && s.n < SEGMENTS_MAX;) {
        char *slash = strchr(at, '/');
        if (slash)
            *slash = '\0';
        s.v[s.n++] = at;
        at = slash ? slash + 1 : NULL;
    }
    return s;
}

static struct segments rest_of(struct segments s, size_t from)
{
    struct segments r = {0};
    for (size_t i = from; i < s.n; i++)
        r.v[r.n++] = s.v[i];
    return r;
}

static const char *verb_of_method(const char *method)
{
    static const struct {
        const char *method, *verb;
    } verbs[] = {{"GET", "get"},    {"HEAD", "get"},    {"POST", "create"},
                 {"PUT", "update"}, {"PATCH", "patch"}, {"DELETE", "delete"}};
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (strcmp(method, verbs[i].method) == 0)
            return verbs[i].verb;
    return "";
}

static const char *lower(struct arena *a, const char *s)
{
    char *out = arena_strdup(a, s);
    for (char *c = out; *c; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c |= 0x20;
    return out;
}

/* The name that the field selector demands, when it could be a segment of a path. */
static const char *selected_name(struct request *req)
{
    const char *text = pairs_get(&req->params, "fieldSelector");
    struct selector *selector = NULL;
    const char *name = NULL;
    if (text && selector_parse_of(req->route.kind, NULL, text, &selector, NULL) == 0)
        name = selector_name(selector);
    bool is_legal =
        name && *name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !strpbrk(name, "/%");
    name = is_legal ? arena_strdup(&req->arena, name) : "";
    selector_free(selector);
    return name;
}

/* GET and DELETE without a name mean the collection. */
static void refine_verb(struct request *req)
{
    struct route *r = &req->route;
    if (*r->name)
        return;
    if (strcmp(r->verb, "delete") == 0)
        r->verb = "deletecollection";
    if (strcmp(r->verb, "get") != 0 && strcmp(r->verb, "watch") != 0)
        return;
    if (strcmp(r->verb, "get") == 0)
        r->verb = route_flag(&req->params, "watch") ? "watch" : "list";
    r->name = selected_name(req);
}

/* What follows /apis/<g>/<v> or /api/<v>, at least one segment. */
static void read_resource(struct request *req, struct segments s)
{
    struct route *r = &req->route;
    bool is_watch = strcmp(s.v[0], "watch") == 0, is_proxy = strcmp(s.v[0], "proxy") == 0;
    r->verb = verb_of_method(req->method);
    if (s.n > 1 && is_proxy)
        r->verb = "proxy";
    if (s.n > 1 && is_watch)
        r->verb = "watch";
    if (s.n > 1 && (is_watch || is_proxy))
        s = rest_of(s, 1);
    if (s.n > 1 && strcmp(s.v[0], "namespaces") == 0) {
        r->namespace_name = s.v[1];
        if (s.n > 2 && strcmp(s.v[2], "status") != 0 && strcmp(s.v[2], "finalize") != 0)
            s = rest_of(s, 2);
    }
    r->resource = s.v[0];
    r->name = s.n > 1 ? s.v[1] : "";
    r->subresource = s.n > 2 && !is_proxy ? s.v[2] : "";
    r->kind = kind_find(r->group, r->version, r->resource);
    refine_verb(req);
}

int route_parse(struct request *req, struct err *err)
{
    url_parse_query(req->query ? req->query : "", &req->params);
    SCOPED_FREE char *unescaped = url_unescape(STR(req->path), false);
    if (!unescaped)
        return err_set(err, ERR_BAD_REQUEST, "400 Bad Request");
    req->route = (struct route){.verb = lower(&req->arena, req->method),
                                .group = "",
                                .version = "",
                                .resource = "",
                                .subresource = "",
                                .namespace_name = "",
                                .name = ""};
    struct segments s = split(arena_strdup(&req->arena, unescaped));
    req->route.path = arena_strdup(&req->arena, unescaped);
    if (str_has_prefix(unescaped, "//"))
        return 0; /* nothing is there */
    bool is_core = s.n >= 3 && strcmp(s.v[0], "api") == 0;
    if (!is_core && (s.n < 4 || strcmp(s.v[0], "apis") != 0))
        return 0;
    req->route.is_resource = true;
    req->route.group = is_core ? "" : s.v[1];
    req->route.version = is_core ? s.v[1] : s.v[2];
    read_resource(req, rest_of(s, is_core ? 2 : 3));
    return 0;
}

const char *route_group_resource(struct request *req)
{
    const struct route *r = &req->route;
    return arena_printf(&req->arena, "%s%s%s", r->resource, *r->group ? "." : "", r->group);
}
