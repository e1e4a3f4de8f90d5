/* Runs the filters, writes the error if one came back, and gives every answer what every answer
 * has. */
#include "apiserver/http/pipeline.h"

#include <zlib.h>

#include "apiserver/base/mem.h"
#include "apiserver/http/filter.h"
#include "apiserver/http/respond.h"
#include "apiserver/http/status.h"

#define DEFAULT_READS 400
#define DEFAULT_WRITES 200
#define DEFAULT_WAITS 8 /* a quarter of the usual workers */
#define DEFAULT_TIMEOUT_MS 60000
#define DEFAULT_BODY ((size_t)3 << 20)
#define GZIP_FROM                                                                                  \
    ((size_t)128                                                                                   \
     << 10) /* bytes; shorter answers are sent as they are. Source: docs/kubernetes-api.md 12.3 */

struct pipeline *pipeline_new(const struct pipeline_config *config)
{
    struct pipeline *p = xcalloc(1, sizeof *p);
    p->config = *config;
    if (!p->config.max_reads)
        p->config.max_reads = DEFAULT_READS;
    if (!p->config.max_writes)
        p->config.max_writes = DEFAULT_WRITES;
    if (!p->config.request_timeout_ms)
        p->config.request_timeout_ms = DEFAULT_TIMEOUT_MS;
    if (!p->config.max_body)
        p->config.max_body = DEFAULT_BODY;
    if (!p->config.max_waits)
        p->config.max_waits = DEFAULT_WAITS;
    p->documents = documents_new();
    return p;
}

void pipeline_free(struct pipeline *p)
{
    if (!p)
        return;
    documents_free(p->documents);
    free(p);
}

void pipeline_drain(struct pipeline *p)
{
    atomic_store(&p->is_draining, true);
}

unsigned long pipeline_asked(const struct pipeline *p)
{
    return atomic_load(&p->asked);
}

/* Compresses src into dst; false when zlib fails, and src stays the answer. */
static bool deflate_into(const struct buf *src, struct buf *dst)
{
    z_stream z = {.next_in = (Bytef *)src->data, .avail_in = (uInt)src->len};
    if (deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK) /* + 16: gzip's head and tail */
        return false;
    size_t bound = deflateBound(&z, (uLong)src->len);
    *dst =
        (struct buf){.data = xmalloc(bound + 1), .cap = bound + 1, .max = RESPOND_BODY_MAX + bound};
    z.next_out = (Bytef *)dst->data;
    z.avail_out = (uInt)bound;
    bool is_done = deflate(&z, Z_FINISH) == Z_STREAM_END;
    dst->len = z.total_out;
    dst->data[dst->len] = '\0';
    deflateEnd(&z);
    return is_done;
}

static void compress_body(const struct request *req, struct response *resp)
{
    SCOPED(buf_fini) struct buf packed = {0};
    bool fits = resp->body.len > GZIP_FROM && resp->body.len <= RESPOND_BODY_MAX;
    if (!fits || !negotiate_takes_gzip(&req->headers) || !deflate_into(&resp->body, &packed))
        return;
    buf_fini(&resp->body);
    resp->body = steal(&packed);
    respond_header(resp, "Content-Encoding", "gzip");
    const char *vary = pairs_get_ci(&resp->headers, "Vary");
    if (!vary || !strstr(vary, "Accept-Encoding"))
        pairs_add(&resp->headers, "Vary", "Accept-Encoding");
}

/* kube-apiserver has put these on the answer before it asks us, and adds ours to them: its client
 * would see them twice. */
static void say_usual(const struct request *req, struct response *resp)
{
    bool is_routed =
        req->route.verb != NULL; /* a broken URL is refused as Go's HTTP server does, barely */
    if (req->user.is_proxied)
        return;
    respond_header(resp, "Audit-Id", req->id);
    if (is_routed && !pairs_get_ci(&resp->headers, "Cache-Control"))
        respond_header(resp, "Cache-Control", "no-cache, private");
}

/* What every answer has, and HEAD has not. */
static void finish(struct request *req, struct response *resp)
{
    say_usual(req, resp);
    status_warn(&req->warnings, resp);
    if (strcmp(req->method, "HEAD") == 0 && resp->stream) {
        resp->stream->close(resp->stream);
        resp->stream = NULL;
    }
    compress_body(req, resp);
}

void pipeline_handle(void *pipeline, struct request *req, struct response *resp)
{
    struct pipeline *p = pipeline;
    SCOPED(err_fini) struct err err = {0};
    size_t passed = 0;
    int r;
    while ((r = filters[passed].enter(p, req, resp, &err)) == FILTER_GO_ON)
        passed++;
    if (r < 0)
        status_respond(req, &err, resp);
    finish(req, resp);
    while (passed-- > 0)
        if (filters[passed].leave)
            filters[passed].leave(p, req, resp);
}
