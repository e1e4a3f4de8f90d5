/* From header fields and DATA to struct request; from struct response to a response and its DATA.
 * What is only needed until the answer (the request above all) is a call, freed then, so that a
 * watch keeps little. A call whose stream ends while a worker has it becomes an orphan and is freed
 * when the worker hands it back. */
#include "apiserver/http/h2_exchange.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/http/respond.h"

/* Taken from the budget for a request, besides its head. */
#define EXCHANGE_BYTES ((size_t)2 << 10)
#define FIELD_BYTES 32        /* counted for a header field besides its text. RFC 9113, 6.5.2 */
#define BODY_TIMEOUT_MS 60000 /* from the end of a request's head to the end of its body */
/* So many times max_body is read of a body that is too large before its answer: there are clients
 * (curl before 8) that take being stopped for a failure and miss the answer, and a proxy that hears
 * it early stops its client. */
#define DRAIN_FACTOR 8

struct h2_call {
    struct work work; /* first */
    struct mail mail;
    struct h2_call *prev, *next;  /* orphans */
    struct h2 *h;                 /* NULL = the connection is gone */
    struct h2_exchange *exchange; /* NULL = the stream is gone */
    const struct h2_config *config;
    struct mailbox *box;
    struct peer *peer;
    atomic_bool is_abandoned; /* nobody waits for the answer */
    bool is_started;          /* a worker has it, or had */
    bool is_head_too_large;
    bool is_refused; /* does not fit beside the others */
    size_t counted;  /* bytes taken from the budget */
    size_t list_bytes;
    struct buf cookie;
    struct request req;
    struct response resp;
};

static int64_t now_ms(void)
{
    return clock_monotonic_ms(&clock_system);
}

/* ---- calls ---- */

static void answer(struct h2_exchange *x);

static void unlink_orphan(struct h2_call *call)
{
    if (!call->h)
        return;
    if (call->prev)
        call->prev->next = call->next;
    else
        call->h->orphans = call->next;
    if (call->next)
        call->next->prev = call->prev;
    call->h->n_orphans--;
}

static void make_orphan(struct h2_call *call)
{
    struct h2 *h = call->h;
    atomic_store(&call->is_abandoned, true);
    call->exchange = NULL;
    call->next = h->orphans;
    if (h->orphans)
        h->orphans->prev = call;
    h->orphans = call;
    h->n_orphans++;
}

static void give_back(struct h2_call *call)
{
    budget_give(call->config->bodies, call->counted);
    call->counted = 0;
    buf_fini(&call->req.body);
}

static void call_free(struct h2_call *call)
{
    give_back(call);
    response_fini(&call->resp);
    request_fini(&call->req);
    buf_fini(&call->cookie);
    peer_unref(call->peer);
    free(call);
}

/* A worker has handed it back. */
static void open_call(struct mail *m)
{
    struct h2_call *call = (struct h2_call *)(void *)((char *)m - offsetof(struct h2_call, mail));
    if (!call->exchange) {
        unlink_orphan(call);
        call_free(call);
        return;
    }
    struct h2 *h = call->h;
    answer(call->exchange);
    h->notify(h->ctx);
}

/* On a worker. A request that was taken back before its turn costs nothing. */
static void run_call(struct work *work)
{
    struct h2_call *call = (struct h2_call *)work;
    if (!atomic_load(&call->is_abandoned))
        call->config->handler(call->config->ctx, &call->req, &call->resp);
    mailbox_post(call->box, &call->mail);
}

void h2_call_forget(struct h2_call *orphans)
{
    for (struct h2_call *call = orphans; call; call = call->next)
        call->h = NULL;
}

static struct h2_call *call_new(struct h2_exchange *x)
{
    struct h2 *h = x->h;
    struct h2_call *call = xcalloc(1, sizeof *call);
    call->work.run = run_call;
    call->mail.open = open_call;
    call->h = h;
    call->exchange = x;
    call->config = h->config;
    call->box = h->box;
    call->peer = peer_ref(h->peer);
    call->req.remote_addr = xstrdup(h->peer->addr);
    call->req.chain = h->peer->chain;
    call->req.n_chain = h->peer->n_chain;
    call->req.body.max = h->config->max_body;
    return call;
}

/* False when it does not fit beside the others; what it had is given back then. */
static bool take(struct h2_call *call, size_t n)
{
    if (call->is_refused)
        return false;
    if (budget_take(call->config->bodies, n)) {
        call->counted += n;
        return true;
    }
    call->is_refused = true;
    give_back(call);
    return false;
}

static void start_work(struct h2_exchange *x)
{
    struct h2_call *call = x->call;
    struct workers *workers = call->config->workers;
    call->is_started = true;
    call->req.start_ms = now_ms();
    if (!call->is_refused && !workers) {
        run_call(&call->work);
    } else if (call->is_refused || !workers_put(workers, &call->work)) {
        respond_busy(&call->resp);
        answer(x);
    }
}

/* ---- the request ---- */

static void go_on(struct h2_exchange *x)
{
    if (!x->is_deferred)
        return;
    x->is_deferred = false;
    x->since_ms = now_ms();
    nghttp2_session_resume_data(x->h->session, x->id);
}

static void open_wake(struct mail *m)
{
    struct h2_exchange *x = (struct h2_exchange *)m;
    go_on(x);
    x->h->notify(x->h->ctx);
}

struct h2_exchange *h2_exchange_new(struct h2 *h, int32_t id)
{
    struct h2_exchange *x = xcalloc(1, sizeof *x);
    x->h = h;
    x->id = id;
    x->to_read = (uint64_t)h->config->max_body * DRAIN_FACTOR;
    x->call = call_new(x);
    x->next = h->exchanges;
    if (h->exchanges)
        h->exchanges->prev = x;
    h->exchanges = x;
    h->n_exchanges++;
    take(x->call, EXCHANGE_BYTES);
    return x;
}

static void unlink_exchange(struct h2_exchange *x)
{
    struct h2 *h = x->h;
    if (x->prev)
        x->prev->next = x->next;
    else
        h->exchanges = x->next;
    if (x->next)
        x->next->prev = x->prev;
    if (--h->n_exchanges == 0)
        h->idle_since_ms = now_ms();
}

void h2_exchange_free(struct h2_exchange *x)
{
    flow_fini(&x->flow);
    if (x->call && x->call->is_started)
        make_orphan(x->call);
    else if (x->call)
        call_free(x->call);
    unlink_exchange(x);
    buf_fini(&x->out);
    free(x);
}

static bool is_name(struct str name, const char *want)
{
    return str_eq(name, want);
}

static void put_path(struct request *req, struct str path)
{
    const char *mark = memchr(path.p, '?', path.n);
    size_t n = mark ? (size_t)(mark - path.p) : path.n;
    req->path = xstrndup(path.p, n);
    req->query = mark ? xstrndup(mark + 1, path.n - n - 1) : xstrdup("");
}

/* RFC 9113, 8.3.1: the authority is the host, whatever a field of that name says; 8.2.3: crumbs of
 * a cookie are one. */
static void put_field(struct h2_call *call, struct str name, struct str value)
{
    struct request *req = &call->req;
    bool is_authority = is_name(name, ":authority");
    if (is_name(name, ":method") && !req->method) {
        req->method = xstrndup(value.p, value.n);
    } else if (is_name(name, ":path") && !req->path) {
        put_path(req, value);
    } else if (is_name(name, "cookie")) {
        if (call->cookie.len > 0)
            buf_puts(&call->cookie, "; ");
        buf_append(&call->cookie, value.p, value.n);
    } else if (is_authority || name.p[0] != ':') {
        SCOPED_FREE char *n = is_authority ? xstrdup("host") : xstrndup(name.p, name.n);
        SCOPED_FREE char *v = xstrndup(value.p, value.n);
        if (strcmp(n, "host") != 0 || !pairs_get(&req->headers, "host"))
            pairs_add(&req->headers, n, v);
    }
}

void h2_exchange_put_header(struct h2_exchange *x, struct str name, struct str value)
{
    struct h2_call *call = x->call;
    if (!call)
        return;
    size_t n = name.n + value.n + FIELD_BYTES;
    call->list_bytes += n;
    if (call->list_bytes > H2_HEADERS_MAX)
        call->is_head_too_large = true;
    if (!call->is_head_too_large && take(call, n))
        put_field(call, name, value);
}

static void refuse(struct h2_exchange *x, int status, const char *text)
{
    x->call->is_started = true;
    respond_text(&x->call->resp, status, text);
    answer(x);
}

/* kube-apiserver has told its client to go on and sends us the body at once; our 100 would reach
 * that client as the answer's status, and the real one (201, 422) be lost on the way. */
static bool is_aggregator(struct request *req)
{
    return pairs_get(&req->headers, "x-remote-user");
}

static void send_continue(struct h2_exchange *x)
{
    static uint8_t name[] = ":status", value[] = "100";
    nghttp2_nv status = {
        .name = name, .namelen = sizeof name - 1, .value = value, .valuelen = sizeof value - 1};
    nghttp2_submit_headers(x->h->session, NGHTTP2_FLAG_NONE, x->id, NULL, &status, 1, NULL);
}

/* What came of a body that is too large is of no use, and what follows is thrown away. */
static void drop_body(struct h2_call *call)
{
    call->req.body_too_large = true;
    budget_give(call->config->bodies, call->req.body.len);
    call->counted -= call->req.body.len;
    buf_fini(&call->req.body);
}

void h2_exchange_head_done(struct h2_exchange *x)
{
    struct h2_call *call = x->call;
    struct request *req = &call->req;
    x->since_ms = now_ms();
    if (call->cookie.len > 0)
        pairs_add(&req->headers, "cookie", buf_cstr(&call->cookie));
    if (call->is_head_too_large) {
        refuse(x, 431, "431 Request Header Fields Too Large\n");
        return;
    }
    if (call->is_refused) {
        start_work(x);
        return;
    }
    if (!req->method || strcmp(req->method, "CONNECT") == 0 || !req->path) {
        refuse(x, 501, "501 Not Implemented\n");
        return;
    }
    const char *length = pairs_get(&req->headers, "content-length"),
               *expect = pairs_get(&req->headers, "expect");
    bool is_waiting = expect && strcasecmp(expect, "100-continue") == 0;
    uint64_t n = 0;
    if (length && str_to_u64(length, &n) == 0 && n > call->config->max_body) {
        drop_body(call);
        if (is_waiting || n > x->to_read) {
            x->to_read = 0;
            start_work(x);
        }
    } else if (is_waiting && !is_aggregator(req)) {
        send_continue(x);
    }
}

bool h2_exchange_put_body(struct h2_exchange *x, const uint8_t *p, size_t n)
{
    struct h2_call *call = x->call;
    x->to_read -= n < x->to_read ? n : x->to_read;
    if (!call || call->is_started) {
        h2_exchange_stop_body(x); /* answered early */
    } else if (call->req.body_too_large || n > call->config->max_body - call->req.body.len) {
        drop_body(call);
        if (x->to_read == 0)
            start_work(x);
    } else if (!take(call, n)) {
        start_work(x);
    } else {
        buf_append(&call->req.body, p, n);
    }
    return x->to_read > 0;
}

/* After the whole of an answer, NO_ERROR tells that it is good although the request was not
 * complete (RFC 9113, 8.1). */
void h2_exchange_stop_body(struct h2_exchange *x)
{
    if (x->is_answer_sent && !x->is_body_over && x->to_read == 0)
        h2_exchange_reset(x, NGHTTP2_NO_ERROR);
}

void h2_exchange_body_done(struct h2_exchange *x)
{
    x->is_body_over = true;
    if (x->call && !x->call->is_started)
        start_work(x);
}

void h2_exchange_reset(struct h2_exchange *x, uint32_t code)
{
    if (!x->is_reset)
        nghttp2_submit_rst_stream(x->h->session, NGHTTP2_FLAG_NONE, x->id, code);
    x->is_reset = true;
}

/* ---- the answer ---- */

static ssize_t read_answer(nghttp2_session *session, int32_t id, uint8_t *out, size_t max,
                           uint32_t *flags, nghttp2_data_source *source, void *ctx)
{
    (void)session;
    (void)id;
    (void)ctx;
    struct h2_exchange *x = source->ptr;
    struct buf *spare = x->h->spare;
    if (!x->out.data)
        buf_borrow(&x->out, spare);
    if (x->out_off == x->out.len && !x->flow.is_over && !flow_pull(&x->flow, &x->out)) {
        buf_give_back(&x->out, spare, FLOW_SPARE);
        x->is_deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    if (buf_failed(&x->out))
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    size_t n = x->out.len - x->out_off;
    n = n < max ? n : max;
    if (n > 0)
        memcpy(out, x->out.data + x->out_off, n);
    x->out_off += n;
    x->since_ms = now_ms();
    if (x->out_off == x->out.len) {
        buf_give_back(&x->out, spare, FLOW_SPARE); /* a quiet stream holds no memory */
        x->out_off = 0;
        if (x->flow.is_over)
            *flags |= NGHTTP2_DATA_FLAG_EOF;
    }
    return (ssize_t)n;
}

static nghttp2_nv field(char *name, char *value)
{
    return (nghttp2_nv){.name = (uint8_t *)name,
                        .namelen = strlen(name),
                        .value = (uint8_t *)value,
                        .valuelen = strlen(value)};
}

/* Those of the connection have no place here (RFC 9113, 8.2.2). Names become lower case. */
static bool may_send(struct pair *h)
{
    static const char *const refused[] = {"connection", "keep-alive", "proxy-connection",
                                          "transfer-encoding", "upgrade"};
    for (char *c = h->name; *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
    for (size_t i = 0; i < ARRAY_LEN(refused); i++)
        if (strcmp(h->name, refused[i]) == 0)
            return false;
    nghttp2_nv nv = field(h->name, h->value);
    return nghttp2_check_header_name(nv.name, nv.namelen) &&
           nghttp2_check_header_value(nv.value, nv.valuelen);
}

static void print_date(char *out, size_t n)
{
    time_t now = (time_t)clock_unix_s(&clock_system);
    struct tm tm = {0};
    gmtime_r(&now, &tm);
    if (strftime(out, n, "%a, %d %b %Y %H:%M:%S GMT", &tm) == 0)
        out[0] = '\0';
}

static int submit(struct h2_exchange *x, struct response *resp, const char *length, bool has_data)
{
    static char status_name[] = ":status", date_name[] = "date", length_name[] = "content-length";
    char status[16], date[64], length_value[32];
    nghttp2_data_provider data = {.source.ptr = x, .read_callback = read_answer};
    nghttp2_nv *nv = xcalloc(resp->headers.n + 3, sizeof *nv);
    size_t n = 0;
    snprintf(status, sizeof status, "%d", resp->status);
    snprintf(length_value, sizeof length_value, "%s", length ? length : "");
    print_date(date, sizeof date);
    nv[n++] = field(status_name, status);
    for (size_t i = 0; i < resp->headers.n; i++)
        if (may_send(&resp->headers.v[i]))
            nv[n++] = field(resp->headers.v[i].name, resp->headers.v[i].value);
    nv[n++] = field(date_name, date);
    if (length)
        nv[n++] = field(length_name, length_value);
    int r = nghttp2_submit_response(x->h->session, x->id, nv, n, has_data ? &data : NULL);
    free(nv);
    return r;
}

static bool may_have_body(int status)
{
    return status >= 200 && status != 204 && status != 304;
}

/* Takes the answer out of the call, which is freed. */
static void answer(struct h2_exchange *x)
{
    struct h2_call *call = steal(&x->call);
    struct response *resp = &call->resp;
    bool is_head = call->req.method && strcmp(call->req.method, "HEAD") == 0;
    bool has_body = may_have_body(resp->status);
    char length[32];
    snprintf(length, sizeof length, "%zu", resp->body.len);
    const char *told = has_body && !resp->stream ? length : NULL;
    bool is_over = !resp->stream || x->h->notice_at_ms || x->h->is_input_over;
    if (has_body && !is_head) {
        x->out = steal(&resp->body);
        if (resp->stream)
            flow_start(&x->flow, steal(&resp->stream), x->h->box, open_wake);
    }
    x->flow.is_over = is_over;
    x->since_ms = now_ms();
    if (submit(x, resp, told, x->flow.stream || x->out.len > 0) != 0)
        h2_exchange_reset(x, NGHTTP2_INTERNAL_ERROR);
    call_free(call);
}

void h2_exchange_end(struct h2_exchange *x)
{
    if (!x->flow.stream)
        return;
    x->flow.is_over = true;
    go_on(x);
}

/* A head that has begun has its deadline in the connection: there is only one at a time. */
bool h2_exchange_tick(struct h2_exchange *x, int64_t now)
{
    bool is_in_body = x->call && !x->call->is_started && x->since_ms;
    bool is_sending = !x->call && !x->is_deferred;
    int64_t limit = is_in_body ? BODY_TIMEOUT_MS : x->h->config->idle_timeout_ms;
    if (!is_in_body && !is_sending)
        return true;
    if (now - x->since_ms > limit && !x->is_reset) {
        log_info("stream ended, client too slow peer=%s stream=%d", x->h->peer->addr, x->id);
        h2_exchange_reset(x, NGHTTP2_CANCEL);
    }
    return false;
}
