#include "tests/lib/http_fixture.h"

#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdlib.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "storage/memstore.h"
#include "tests/lib/certs.h"
#include "tests/lib/suite.h"

static struct identity {
    const char *name;
    struct cert_der cert;
} identities[] = {{"admin", {0}}, {"jane", {0}}, {"eve", {0}}};

static struct cert_der read_cert(const char *path)
{
    FILE *f = fopen(path, "r");
    unsigned char *der = NULL;
    X509 *x = f ? PEM_read_X509(f, NULL, NULL, NULL) : NULL;
    int n = x ? i2d_X509(x, &der) : -1;
    if (n < 0)
        abort();
    fclose(f);
    X509_free(x);
    unsigned char *copy = xmemdup(der, (size_t)n);
    OPENSSL_free(der);
    return (struct cert_der){.p = copy, .n = (size_t)n};
}

void http_fixture_init(void)
{
    certs_init();
    certs_make("ca", NULL, "/CN=ca", CERTS_CA, 10);
    certs_make("other", NULL, "/CN=other", CERTS_CA, 10);
    certs_make("admin", "ca", "/O=system:masters/CN=admin", CERTS_CLIENT, 10);
    certs_make("jane", "ca", "/O=users/CN=jane", CERTS_CLIENT, 10);
    certs_make("eve", "other", "/O=system:masters/CN=eve", CERTS_CLIENT, 10);
    for (size_t i = 0; i < ARRAY_LEN(identities); i++) {
        SCOPED_FREE char *file = xasprintf("%s.crt", identities[i].name);
        identities[i].cert = read_cert(certs_path(file));
    }
}

static bool is_ready(void *ctx)
{
    return ((struct http_fixture *)ctx)->is_ready;
}

static int namespace_state(void *ctx, const char *name, enum namespace_state *ret, struct err *err)
{
    (void)ctx, (void)err;
    *ret = strcmp(name, "missing") == 0  ? NAMESPACE_ABSENT
           : strcmp(name, "ending") == 0 ? NAMESPACE_TERMINATING
                                         : NAMESPACE_ACTIVE;
    return 0;
}

static void wait_for_registry(struct registry *r)
{
    for (int i = 0; i < 5000 && !registry_is_synced(r); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    ck_assert(registry_is_synced(r));
}

void http_fixture_open(struct http_fixture *f, const struct pipeline_config *opts)
{
    static struct health_check checks[] = {{.name = "store", .ok = is_ready, .is_ready_only = true},
                                           {0}};
    struct err err = {0};
    *f = (struct http_fixture){.is_ready = true};
    clock_fake_init(&f->clock, HTTP_NOW_S * 1000);
    rand_fixed_init(&f->random, 1);
    f->admit = (struct admit_env){
        .clock = &f->clock.clock, .randomness = &f->random.r, .namespace_state = namespace_state};
    f->store = memstore_new();
    static const char *const domains[] = {"sandbox.users.io", NULL};
    struct claim_settings settings = {.label_domains = domains};
    claim_binder_init(&f->binder, &settings, &f->clock.clock);
    f->registry = registry_new(&(struct registry_config){
        .store = f->store, .kinds = kinds_all, .admit = &f->admit, .bind = &f->binder.ops});
    registry_start(f->registry);
    struct auth_config auth = {.clock = &clock_system,
                               .client_ca_file = certs_path("ca.crt"),
                               .requestheader_ca_file = certs_path("ca.crt")};
    ck_assert_msg(auth_new(&auth, &f->auth, &err) == 0, "%s", err_text(&err));
    struct pipeline_config config = opts ? *opts : (struct pipeline_config){0};
    checks[0].ctx = f;
    config.registry = f->registry;
    config.auth = f->auth;
    config.clock = &f->clock.clock;
    config.randomness = &f->random.r;
    config.checks = checks;
    f->max_body = config.max_body ? config.max_body : (size_t)3 << 20;
    idle_activity_init(&f->activity, &f->clock.clock);
    config.activity = &f->activity.ops;
    f->pipeline = pipeline_new(&config);
    wait_for_registry(f->registry);
}

void http_fixture_close(struct http_fixture *f)
{
    registry_stop(f->registry);
    pipeline_free(f->pipeline);
    auth_free(f->auth);
    registry_free(f->registry);
    store_free(f->store);
}

/* ---- requests ---- */

static const char *end_of_line(const char *p, const char *end)
{
    const char *at = memchr(p, '\n', (size_t)(end - p));
    return at ? at : end;
}

static void parse_first_line(const char *p, const char *end, struct request *req)
{
    const char *blank = memchr(p, ' ', (size_t)(end - p));
    const char *url = blank ? blank + 1 : end, *query = memchr(url, '?', (size_t)(end - url));
    req->method = xstrndup(p, (size_t)((blank ? blank : end) - p));
    req->path = xstrndup(url, (size_t)((query ? query : end) - url));
    req->query = query ? xstrndup(query + 1, (size_t)(end - query - 1)) : xstrdup("");
}

static void parse_header(const char *p, const char *end, struct request *req)
{
    const char *colon = memchr(p, ':', (size_t)(end - p));
    if (!colon)
        return;
    SCOPED_FREE char *name = xstrndup(p, (size_t)(colon - p));
    for (colon++; colon < end && *colon == ' ';)
        colon++;
    SCOPED_FREE char *value = xstrndup(colon, (size_t)(end - colon));
    pairs_add(&req->headers, name, value);
}

static void parse_request(const char *text, size_t n, struct request *req)
{
    const char *end = text + n, *eol = end_of_line(text, end);
    parse_first_line(text, eol, req);
    while (eol < end) {
        const char *line = eol + 1;
        eol = end_of_line(line, end);
        if (eol == line) {
            const char *body = eol < end ? eol + 1 : end;
            buf_append(&req->body, body, (size_t)(end - body));
            return;
        }
        parse_header(line, eol, req);
    }
}

void http_fixture_send(struct http_fixture *f, const char *user, const char *request, size_t n,
                       struct response *ret)
{
    SCOPED(request_fini) struct request req = {.remote_addr = xstrdup("127.0.0.1")};
    *ret = (struct response){0};
    parse_request(request, n, &req);
    if (req.body.len > f->max_body) { /* as the transport does */
        buf_fini(&req.body);
        req.body_too_large = true;
    }
    for (size_t i = 0; i < ARRAY_LEN(identities); i++)
        if (str_equal(user, identities[i].name)) {
            req.chain = &identities[i].cert;
            req.n_chain = 1;
        }
    pipeline_handle(f->pipeline, &req, ret);
}

/* ---- streams ---- */

struct waiter {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool is_woken;
};

static void wake(void *ctx)
{
    struct waiter *w = ctx;
    pthread_mutex_lock(&w->mutex);
    w->is_woken = true;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->mutex);
}

static bool wait_woken(struct waiter *w, int64_t wait_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += wait_ms / 1000;
    until.tv_nsec += wait_ms % 1000 * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&w->mutex);
    int r = 0;
    while (!w->is_woken && r == 0)
        r = pthread_cond_timedwait(&w->cond, &w->mutex, &until);
    bool is_woken = w->is_woken;
    w->is_woken = false;
    pthread_mutex_unlock(&w->mutex);
    return is_woken;
}

static size_t count_lines(const struct buf *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->len; i++)
        n += b->data[i] == '\n';
    return n;
}

void http_fixture_pull(struct response *resp, size_t max_lines, int64_t wait_ms)
{
    static struct waiter waiter = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};
    struct stream *s = resp->stream;
    if (!s)
        return;
    if (!s->wake) {
        s->wake_ctx = &waiter;
        s->wake = wake;
    }
    while (count_lines(&resp->body) < max_lines) {
        int r = s->pull(s, &resp->body);
        if (r < 0 || (r == 0 && !wait_woken(&waiter, wait_ms)))
            return;
    }
}

/* ---- answers ---- */

static void strip_managed_fields(cJSON *tree)
{
    cJSON *child;
    if (!cJSON_IsObject(tree) && !cJSON_IsArray(tree))
        return;
    if (cJSON_IsObject(tree))
        json_remove(tree, "managedFields");
    cJSON_ArrayForEach(child, tree) strip_managed_fields(child);
}

static bool is_uuid(const char *s)
{
    for (int i = 0; i < 36; i++) {
        bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (is_dash ? s[i] != '-' : !strchr("0123456789abcdef", s[i]) || !s[i])
            return false;
    }
    return true;
}

/* Number of the uid among those seen. */
static size_t number_uid(struct pairs *uids, const char *uuid)
{
    SCOPED_FREE char *text = xstrndup(uuid, 36);
    for (size_t i = 0; i < uids->n; i++)
        if (strcmp(uids->v[i].name, text) == 0)
            return i + 1;
    pairs_add(uids, text, "");
    return uids->n;
}

static void print_normal(const char *text, struct pairs *uids, struct buf *out)
{
    for (; *text; text++) {
        if (strlen(text) >= 36 && is_uuid(text)) {
            buf_printf(out, "<uid-%zu>", number_uid(uids, text));
            text += 35;
        } else {
            buf_putc(out, *text);
        }
    }
}

static void print_json(const char *text, size_t n, struct pairs *uids, struct buf *out)
{
    SCOPED(json_free_p) cJSON *tree = NULL;
    SCOPED(buf_fini) struct buf printed = {0};
    if (json_parse(text, n, NULL, &tree, NULL) < 0) {
        buf_append(&printed, text, n);
    } else {
        strip_managed_fields(tree);
        json_sort(tree);
        json_print(tree, &printed);
    }
    print_normal(buf_cstr(&printed), uids, out);
}

static void print_headers(const struct response *resp, struct buf *out)
{
    static const char *const usual[][2] = {{"Content-Type", "application/json"},
                                           {"Cache-Control", "no-cache, private"}};
    char **lines = xcalloc(resp->headers.n + 1, sizeof *lines);
    size_t n = 0;
    for (size_t i = 0; i < resp->headers.n; i++) {
        const struct pair *h = &resp->headers.v[i];
        bool is_usual = strcmp(h->name, "Audit-Id") == 0;
        for (size_t k = 0; k < ARRAY_LEN(usual); k++)
            is_usual |= strcmp(h->name, usual[k][0]) == 0 && strcmp(h->value, usual[k][1]) == 0;
        if (!is_usual)
            lines[n++] = xasprintf("%s: %s\n", h->name, h->value);
    }
    qsort(lines, n, sizeof *lines, str_cmp_ptr);
    for (size_t i = 0; i < n; i++) {
        buf_puts(out, lines[i]);
        free(lines[i]);
    }
    free(lines);
}

char *http_fixture_text(const struct response *resp, struct pairs *uids)
{
    SCOPED(buf_fini) struct buf out = {0};
    const char *type = pairs_get(&resp->headers, "Content-Type"), *body = buf_cstr(&resp->body),
               *end = body + resp->body.len;
    buf_printf(&out, "%d\n", resp->status);
    print_headers(resp, &out);
    buf_putc(&out, '\n');
    if (!type || !str_has_prefix(type, "application/json") ||
        pairs_get(&resp->headers, "Content-Encoding")) {
        print_normal(body, uids, &out);
        return buf_take(&out, NULL);
    }
    const char *layout = strstr(body, "\n ")                 ? "indented\n"
                         : resp->body.len && end[-1] != '\n' ? "without line end\n"
                                                             : "";
    buf_puts(&out, layout);
    if (*layout == 'i') {
        print_json(body, resp->body.len, uids, &out);
        return buf_take(&out, NULL);
    }
    for (const char *eol; body < end; body = eol + 1) {
        eol = end_of_line(body, end);
        print_json(body, (size_t)(eol - body), uids, &out);
        buf_putc(&out, '\n');
    }
    return buf_take(&out, NULL);
}
