/* One row a document: where it is, how it is negotiated, its bytes and their hash. */
#include "apiserver/http/documents.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/rand.h"
#include "apiserver/http/negotiate.h"
#include "apiserver/http/respond.h"
#include "openapi/discovery.h"
#include "openapi/doc.h"
#include "openapi/kinds.h"

#define DOCUMENTS_MAX 64
#define IMMUTABLE_S ((int64_t)365 * 86400) /* how long a document named by its hash may be kept */

enum document_type {
    DOC_PLAIN,    /* discovery, version: JSON or YAML, no validators */
    DOC_OPENAPI,  /* JSON alone, with an ETag */
    DOC_VERSIONED /* and immutable under its hash */
};
struct document {
    char *path;
    enum document_type type;
    struct buf json;
    char hash[129];
};
struct documents {
    struct document v[DOCUMENTS_MAX];
    size_t n;
    struct aggregated {
        struct document v2, v2beta1;
    } core, groups; /* aggregated discovery, at /api and /apis */
};

static void document_fini(struct document *d)
{
    free(d->path);
    buf_fini(&d->json);
}

static void hash_document(struct document *d)
{
    digest_sha512_hex(buf_cstr(&d->json), d->json.len, d->hash);
}

/* Takes json over. */
static void add(struct documents *d, enum document_type type, char *take_path,
                struct buf *take_json)
{
    assert(d->n < DOCUMENTS_MAX); /* three a group-version */
    struct document *to = &d->v[d->n++];
    *to = (struct document){.path = take_path, .type = type, .json = steal(take_json)};
    hash_document(to);
}

static bool is_known(const struct documents *d, const char *path)
{
    for (size_t i = 0; i < d->n; i++)
        if (strcmp(d->v[i].path, path) == 0)
            return true;
    return false;
}

static void add_group_version(struct documents *d, const struct kind *kind)
{
    struct buf json = {0};
    char *path = kind_api_path(kind);
    if (is_known(d, path)) {
        free(path);
        return;
    }
    discovery_print_resources(kind->group, kind->version, &json);
    add(d, DOC_PLAIN, path, &json);
    doc_v3_print(kind->group, kind->version, &json);
    add(d, DOC_VERSIONED, xasprintf("/openapi/v3%s", path), &json);
    if (!kind->group[0])
        return;
    path = xasprintf("/apis/%s", kind->group);
    if (is_known(d, path)) {
        free(path);
        return;
    }
    discovery_print_group(kind->group, &json);
    add(d, DOC_PLAIN, path, &json);
}

/* Any client may read gitVersion as a semantic version; it says which kube-apiserver this server
 * answers like. */
static void print_version(struct buf *out)
{
#if defined __x86_64__
    static const char machine[] = "amd64";
#elif defined __aarch64__
    static const char machine[] = "arm64";
#else
    static const char machine[] = "unknown";
#endif
    bool is_dirty = str_has_suffix(VERSION, "-dirty");
    buf_puts(out, "{\"major\":\"1\",\"minor\":\"37\",\"gitVersion\":\"v1.37.2+agent-sandbox\","
                  "\"gitCommit\":");
    buf_json_string(out, VERSION, strlen(VERSION));
    buf_printf(out,
               ",\"gitTreeState\":\"%s\",\"buildDate\":\"1970-01-01T00:00:00Z\",\"goVersion\":"
               "\"none\",\"compiler\":\"gcc\","
               "\"platform\":\"linux/%s\"}",
               is_dirty ? "dirty" : "clean", machine);
}

static void print_root(const struct documents *d, struct buf *out)
{
    static const char *const others[] = {"/api",        "/apis",    "/healthz",
                                         "/livez",      "/metrics", "/openapi/v2",
                                         "/openapi/v3", "/readyz",  "/version"};
    const char *paths[DOCUMENTS_MAX + ARRAY_LEN(others)];
    size_t n = 0;
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        paths[n++] = others[i];
    for (size_t i = 0; i < d->n; i++)
        if (str_has_prefix(d->v[i].path, "/api/") || str_has_prefix(d->v[i].path, "/apis/"))
            paths[n++] = d->v[i].path;
    qsort(paths, n, sizeof paths[0], str_cmp_ptr);
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "%s\"%s\"", i ? "," : "{\"paths\":[", paths[i]);
    buf_puts(out, "]}");
}

static void add_single(struct documents *d)
{
    struct buf json = {0};
    print_root(d, &json);
    add(d, DOC_PLAIN, xstrdup(""), &json);
    discovery_print_core(&json);
    add(d, DOC_PLAIN, xstrdup("/api"), &json);
    discovery_print_groups(&json);
    add(d, DOC_PLAIN, xstrdup("/apis"), &json);
    print_version(&json);
    add(d, DOC_PLAIN, xstrdup("/version"), &json);
    doc_v3_print_index(&json);
    add(d, DOC_OPENAPI, xstrdup("/openapi/v3"), &json);
    doc_v2_print(&json);
    add(d, DOC_OPENAPI, xstrdup("/openapi/v2"), &json);
}

static void aggregated_init(struct aggregated *a, bool of_core)
{
    discovery_print_aggregated("v2", of_core, &a->v2.json);
    hash_document(&a->v2);
    discovery_print_aggregated("v2beta1", of_core, &a->v2beta1.json);
    hash_document(&a->v2beta1);
}

static void aggregated_fini(struct aggregated *a)
{
    document_fini(&a->v2);
    document_fini(&a->v2beta1);
}

struct documents *documents_new(void)
{
    struct documents *d = xcalloc(1, sizeof *d);
    for (size_t i = 0; kinds_served[i]; i++)
        add_group_version(d, kinds_served[i]);
    add_single(d);
    aggregated_init(&d->core, true);
    aggregated_init(&d->groups, false);
    return d;
}

void documents_free(struct documents *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->n; i++)
        document_fini(&d->v[i]);
    aggregated_fini(&d->core);
    aggregated_fini(&d->groups);
    free(d);
}

static void serve_aggregated(const struct document *doc, const char *version,
                             const struct request *req, struct response *resp)
{
    char type[128];
    snprintf(type, sizeof type,
             "application/json;g=apidiscovery.k8s.io;v=%s;as=APIGroupDiscoveryList", version);
    respond_header(resp, "Vary", "Accept");
    respond_header(resp, "Cache-Control", "public");
    if (respond_etag(req, doc->hash, resp))
        return;
    buf_append(&resp->body, buf_cstr(&doc->json), doc->json.len);
    respond_json(resp, 200, &(struct negotiated){0});
    respond_header(resp, "Content-Type", type);
}

static int serve_plain(const struct documents *d, const struct document *doc,
                       const struct request *req, struct response *resp, struct err *err)
{
    struct negotiated form;
    const char *aggregated = NULL;
    bool is_groups = strcmp(doc->path, "/apis") == 0;
    const struct aggregated *both = is_groups ? &d->groups : &d->core;
    bool is_core = strcmp(doc->path, "/api") == 0 && kind_group_version_served("", "v1");
    int r = is_groups || is_core
                ? negotiate_discovery(&req->headers, &req->params, &aggregated, &form, err)
                : negotiate(&req->headers, &req->params, NEGOTIATE_PLAIN, &form, err);
    if (r < 0)
        return r;
    if (aggregated) {
        serve_aggregated(strcmp(aggregated, "v2") == 0 ? &both->v2 : &both->v2beta1, aggregated,
                         req, resp);
        return 0;
    }
    if (strcmp(doc->path, "/version") == 0)
        form.is_pretty = form.media == MEDIA_JSON;
    buf_append(&resp->body, buf_cstr(&doc->json), doc->json.len);
    respond_json(resp, 200, &form);
    return 0;
}

/* A year from now in the form of HTTP dates, which is in English whatever the locale. */
static void respond_expires(struct response *resp)
{
    static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    char text[64];
    time_t at = (time_t)(clock_unix_s(&clock_system) + IMMUTABLE_S);
    struct tm tm;
    gmtime_r(&at, &tm);
    snprintf(text, sizeof text, "%s, %02d %s %d %02d:%02d:%02d GMT", days[tm.tm_wday % 7],
             tm.tm_mday, months[tm.tm_mon % 12], tm.tm_year + 1900, tm.tm_hour, tm.tm_min,
             tm.tm_sec);
    respond_header(resp, "Expires", text);
}

/* A document asked for by another hash is the present one all the same, but not to be kept: a
 * redirection would not get through the aggregator. The index is for everybody; a refusal of the
 * others has no body. */
static void serve_openapi(const struct document *doc, const struct request *req,
                          struct response *resp)
{
    const char *hash = pairs_get(&req->params, "hash");
    if (strcmp(doc->path, "/openapi/v2") == 0)
        respond_header(resp, "Vary", "Accept-Encoding, Accept");
    else if (doc->type == DOC_VERSIONED)
        respond_header(resp, "Vary", "Accept");
    resp->status = 406;
    if (strcmp(doc->path, "/openapi/v3") != 0 && !negotiate_takes_json(&req->headers))
        return;
    if (doc->type == DOC_VERSIONED && str_equal(hash, doc->hash)) {
        respond_header(resp, "Cache-Control", "public, immutable");
        respond_expires(resp);
    }
    if (respond_etag(req, doc->hash, resp))
        return;
    resp->status = 200;
    respond_header(resp, "Content-Type", "application/json");
    buf_append(&resp->body, buf_cstr(&doc->json), doc->json.len);
}

int documents_serve(const struct documents *d, const struct request *req, const char *path,
                    struct response *resp, bool *ret_found, struct err *err)
{
    for (size_t i = 0; i < d->n; i++) {
        const struct document *doc = &d->v[i];
        if (strcmp(doc->path, path) != 0)
            continue;
        *ret_found = true;
        if (doc->type == DOC_PLAIN)
            return serve_plain(d, doc, req, resp, err);
        serve_openapi(doc, req, resp);
        return 0;
    }
    *ret_found = false;
    return 0;
}
