/* Requests are printed member by member; answers are parsed strictly and read with a small visitor
 * that turns every member that is there but of the wrong form into one ERR_INTERNAL. */
#include "storage/etcd_msg.h"

#include <assert.h>
#include <inttypes.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"

#define DEPTH_MAX 32 /* an answer of etcd is 6 deep */

/* ---- requests ---- */

static void put_bytes(struct buf *out, const char *name, const void *p, size_t n)
{
    buf_printf(out, "\"%s\":\"", name);
    buf_base64(out, p, n);
    buf_putc(out, '"');
}

/* etcd has no empty key; the key of one zero byte comes before all that we use, and as an end means
 * "no end". */
static void put_key(struct buf *out, const char *name, const char *key)
{
    size_t n = strlen(key);
    put_bytes(out, name, key, n == 0 ? 1 : n);
}

void etcd_msg_range(struct buf *out, const struct etcd_range *r)
{
    buf_putc(out, '{');
    put_key(out, "key", r->from);
    if (r->end != NULL) {
        buf_putc(out, ',');
        put_key(out, "range_end", r->end);
    }
    if (r->limit > 0)
        buf_printf(out, ",\"limit\":\"%" PRId64 "\"", r->limit);
    if (r->rev > 0)
        buf_printf(out, ",\"revision\":\"%" PRId64 "\"", r->rev);
    if (r->keys_only)
        buf_puts(out, ",\"keys_only\":true");
    buf_putc(out, '}');
}

static void put_compare(struct buf *out, const struct store_compare *c)
{
    bool is_mod = c->target == STORE_MOD;
    buf_putc(out, '{');
    put_key(out, "key", c->key);
    buf_printf(out, ",\"target\":\"%s\",\"result\":\"EQUAL\",\"%s\":\"%" PRId64 "\"}",
               is_mod ? "MOD" : "CREATE", is_mod ? "mod_revision" : "create_revision", c->rev);
}

static void put_op(struct buf *out, const struct store_op *op)
{
    buf_puts(out, op->value == NULL ? "{\"request_delete_range\":{" : "{\"request_put\":{");
    put_key(out, "key", op->key);
    if (op->value != NULL) {
        buf_putc(out, ',');
        put_bytes(out, "value", op->value, op->value_len);
        if (op->lease != 0)
            buf_printf(out, ",\"lease\":\"%" PRId64 "\"", op->lease);
    }
    buf_puts(out, "}}");
}

void etcd_msg_txn(struct buf *out, const struct store_txn *txn)
{
    assert(txn->n_compares <= STORE_TXN_MAX && txn->n_ops <= STORE_TXN_MAX);
    buf_puts(out, "{\"compare\":[");
    for (size_t i = 0; i < txn->n_compares; i++) {
        buf_puts(out, i > 0 ? "," : "");
        put_compare(out, &txn->compares[i]);
    }
    buf_puts(out, "],\"success\":[");
    for (size_t i = 0; i < txn->n_ops; i++) {
        buf_puts(out, i > 0 ? "," : "");
        put_op(out, &txn->ops[i]);
    }
    buf_puts(out, "],\"failure\":[");
    for (size_t i = 0; i < txn->n_compares; i++) {
        buf_puts(out, i > 0 ? ",{\"request_range\":{" : "{\"request_range\":{");
        put_key(out, "key", txn->compares[i].key);
        buf_puts(out, "}}");
    }
    buf_puts(out, "]}");
}

void etcd_msg_compact(struct buf *out, int64_t rev)
{
    buf_printf(out, "{\"revision\":\"%" PRId64 "\"}", rev);
}

void etcd_msg_lease_grant(struct buf *out, int64_t ttl_s)
{
    buf_printf(out, "{\"TTL\":\"%" PRId64 "\"}", ttl_s);
}

void etcd_msg_lease_id(struct buf *out, int64_t id)
{
    buf_printf(out, "{\"ID\":\"%" PRId64 "\"}", id);
}

void etcd_msg_watch(struct buf *out, int64_t start_rev)
{
    buf_puts(out, "{\"create_request\":{");
    put_key(out, "key", "");
    buf_putc(out, ',');
    put_key(out, "range_end", "");
    if (start_rev > 0)
        buf_printf(out, ",\"start_revision\":\"%" PRId64 "\"", start_rev);
    buf_puts(out, ",\"prev_kv\":true,\"fragment\":true}}");
}

/* ---- members of answers ---- */

static int unreadable(struct err *err, const char *what)
{
    err_set(err, ERR_INTERNAL, "unreadable answer of etcd: %s", what);
    return -ERR_INTERNAL;
}

/* The tree of a whole answer, an object. */
static int parse(const char *p, size_t n, cJSON **ret, struct err *err)
{
    struct json_opts opts = {.max_depth = DEPTH_MAX};
    SCOPED(err_fini) struct err why = {0};
    cJSON *tree = NULL;
    if (json_parse(p, n, &opts, &tree, &why) < 0)
        return unreadable(err, err_text(&why));
    if (!cJSON_IsObject(tree)) {
        json_free(tree);
        return unreadable(err, "not an object");
    }
    *ret = tree;
    return 0;
}

static int read_i64(const cJSON *object, const char *name, int64_t *ret, struct err *err)
{
    const cJSON *node = json_get(object, name);
    *ret = 0;
    if (node == NULL)
        return 0;
    if (cJSON_IsString(node) ? str_to_i64(node->valuestring, ret) == 0
                             : json_node_i64(node, ret) == 0)
        return 0;
    return unreadable(err, name);
}

static bool read_bool(const cJSON *object, const char *name)
{
    return cJSON_IsTrue(json_get(object, name));
}

/* Bytes, NUL-terminated; "" when absent. */
static int read_bytes(const cJSON *object, const char *name, char **ret, size_t *ret_len,
                      struct err *err)
{
    const cJSON *node = json_get(object, name);
    SCOPED(buf_fini) struct buf b = {0};
    if (node != NULL && !cJSON_IsString(node))
        return unreadable(err, name);
    if (node != NULL && !buf_unbase64(&b, node->valuestring, strlen(node->valuestring)))
        return unreadable(err, name);
    if (buf_failed(&b)) {
        err_set(err, ERR_TOO_LARGE, "a value in etcd is too large");
        return -ERR_TOO_LARGE;
    }
    *ret = buf_take(&b, ret_len);
    return 0;
}

static int read_key(const cJSON *kv, char **ret, struct err *err)
{
    SCOPED_FREE char *key = NULL;
    size_t n = 0;
    int r = read_bytes(kv, "key", &key, &n, err);
    if (r < 0)
        return r;
    if (n == 0 || memchr(key, '\0', n))
        return unreadable(err, "a key that is empty or holds a zero byte");
    *ret = steal(&key);
    return 0;
}

static int read_kv(const cJSON *node, struct store_kv *ret, struct err *err)
{
    SCOPED(store_kv_fini) struct store_kv kv = {0};
    int r = read_key(node, &kv.key, err);
    if (r == 0)
        r = read_bytes(node, "value", &kv.value, &kv.value_len, err);
    if (r == 0)
        r = read_i64(node, "create_revision", &kv.create_rev, err);
    if (r == 0)
        r = read_i64(node, "mod_revision", &kv.mod_rev, err);
    if (r == 0)
        r = read_i64(node, "lease", &kv.lease, err);
    if (r == 0)
        *ret = steal(&kv);
    return r;
}

/* An array member; absent is empty. */
static int read_array(const cJSON *object, const char *name, const cJSON **ret, struct err *err)
{
    *ret = json_get(object, name);
    return *ret == NULL || cJSON_IsArray(*ret) ? 0 : unreadable(err, name);
}

static int read_kvs(const cJSON *range, struct store_page *page, struct err *err)
{
    const cJSON *kvs = NULL, *kv;
    int r = read_array(range, "kvs", &kvs, err);
    if (r < 0 || kvs == NULL)
        return r;
    page->kvs = xcalloc(json_len(kvs), sizeof *page->kvs);
    cJSON_ArrayForEach(kv, kvs)
    {
        r = read_kv(kv, &page->kvs[page->n], err);
        if (r < 0)
            return r;
        page->n++;
    }
    return 0;
}

static int read_rev(const cJSON *tree, int64_t *ret, struct err *err)
{
    return read_i64(json_get(tree, "header"), "revision", ret, err);
}

/* ---- answers ---- */

static int read_range(const cJSON *tree, struct store_page *page, struct err *err)
{
    int r = read_kvs(tree, page, err);
    if (r == 0)
        r = read_i64(tree, "count", &page->count, err);
    if (r == 0)
        r = read_rev(tree, &page->rev, err);
    page->more = read_bool(tree, "more");
    return r;
}

int etcd_msg_read_range(const char *p, size_t n, int64_t rev, struct store_page *ret,
                        struct err *err)
{
    SCOPED(json_free_p) cJSON *tree = NULL;
    SCOPED(store_page_fini) struct store_page page = {0};
    int r = parse(p, n, &tree, err);
    if (r == 0)
        r = read_range(tree, &page, err);
    if (r < 0)
        return r;
    if (page.rev <= 0)
        return unreadable(err, "no revision"); /* else nothing could be told from an empty store */
    if (rev > 0)
        page.rev = rev; /* the header's is the newest one in any case */
    *ret = steal(&page);
    return 0;
}

/* What the failure branch read: one range of one key for each compare. */
static int read_current(const cJSON *tree, struct store_txn_result *ret, struct err *err)
{
    const cJSON *responses = NULL, *response;
    int r = read_array(tree, "responses", &responses, err);
    size_t i = 0;
    cJSON_ArrayForEach(response, responses)
    {
        SCOPED(store_page_fini) struct store_page page = {0};
        if (r == 0 && i == ret->n_current)
            r = unreadable(err, "too many responses");
        if (r == 0)
            r = read_kvs(json_get(response, "response_range"), &page, err);
        if (r < 0)
            return r;
        if (page.n > 0)
            ret->current[i] = steal(&page.kvs[0]);
        i++;
    }
    return r == 0 && i < ret->n_current ? unreadable(err, "too few responses") : r;
}

int etcd_msg_read_txn(const char *p, size_t n, const struct store_txn *txn,
                      struct store_txn_result *ret, struct err *err)
{
    SCOPED(json_free_p) cJSON *tree = NULL;
    SCOPED(store_txn_result_fini) struct store_txn_result result = {0};
    int r = parse(p, n, &tree, err);
    if (r == 0)
        r = read_rev(tree, &result.rev, err);
    if (r == 0 && result.rev <= 0)
        r = unreadable(err, "no revision");
    if (r < 0)
        return r;
    result.succeeded = read_bool(tree, "succeeded");
    if (!result.succeeded) {
        result.n_current = txn->n_compares;
        result.current = xcalloc(txn->n_compares, sizeof *result.current);
        r = read_current(tree, &result, err);
    }
    if (r == 0)
        *ret = steal(&result);
    return r;
}

int etcd_msg_read_lease_grant(const char *p, size_t n, int64_t *ret_id, struct err *err)
{
    SCOPED(json_free_p) cJSON *tree = NULL;
    int64_t id = 0;
    int r = parse(p, n, &tree, err);
    if (r == 0)
        r = read_i64(tree, "ID", &id, err);
    if (r == 0 && id == 0)
        r = unreadable(err, "no lease ID");
    if (r == 0)
        *ret_id = id;
    return r;
}

/* The error document of a stream, or of a failed call: gRPC code and text. In 3.4 and 3.5 the text
 * is there twice. */
static int read_grpc_error(const cJSON *tree, int status, bool is_write, struct err *err);

/* The `result` of a streamed answer's document. */
static int read_result(const cJSON *tree, const cJSON **ret, struct err *err)
{
    const cJSON *error = json_get(tree, "error");
    if (cJSON_IsObject(error))
        return read_grpc_error(error, 200, false, err);
    *ret = json_get(tree, "result");
    return cJSON_IsObject(*ret) ? 0 : unreadable(err, "no result");
}

int etcd_msg_read_keepalive(const char *p, size_t n, int64_t *ret_ttl_s, struct err *err)
{
    SCOPED(json_free_p) cJSON *tree = NULL;
    const cJSON *result = NULL;
    int64_t ttl_s = 0;
    int r = parse(p, n, &tree, err);
    if (r == 0)
        r = read_result(tree, &result, err);
    if (r == 0)
        r = read_i64(result, "TTL", &ttl_s, err);
    if (r < 0)
        return r;
    if (ttl_s <= 0)
        return err_set(err, ERR_NOT_FOUND, "requested lease not found");
    *ret_ttl_s = ttl_s;
    return 0;
}

int etcd_msg_read_status(const char *p, size_t n, int64_t *ret_db_bytes, struct err *err)
{
    SCOPED(json_free_p) cJSON *tree = NULL;
    int64_t bytes = 0;
    int r = parse(p, n, &tree, err);
    if (r == 0)
        r = read_i64(tree, "dbSize", &bytes, err);
    if (r < 0)
        return r;
    if (json_get(tree, "leader") == NULL)
        return err_set(err, ERR_UNAVAILABLE, "etcd has no leader");
    *ret_db_bytes = bytes;
    return 0;
}

/* ---- errors ---- */

/* A text that tells more than its gRPC code. Source: etcd api/v3rpc/rpctypes/error.go. */
struct text_row {
    const char *text;
    enum err_code code;
};
static const struct text_row texts[] = {
    {"required revision has been compacted", ERR_EXPIRED},
    {"required revision is a future revision", ERR_EXPIRED},
    {"request is too large", ERR_TOO_LARGE},
    {"message larger than max", ERR_TOO_LARGE}, /* gRPC's own ceiling, for requests and answers */
    {"database space exceeded", ERR_TOO_MANY},
    {"requested lease not found", ERR_NOT_FOUND},
    /* These are told before anything is proposed, so that a write has not happened. */
    {"etcdserver: too many requests", ERR_UNAVAILABLE},
    {"etcdserver: no leader", ERR_UNAVAILABLE},
    {"etcdserver: not capable", ERR_UNAVAILABLE},
};

enum { /* Source: google.golang.org/grpc/codes */
       GRPC_CANCELLED = 1,
       GRPC_UNKNOWN = 2,
       GRPC_INVALID_ARGUMENT = 3,
       GRPC_DEADLINE_EXCEEDED = 4,
       GRPC_NOT_FOUND = 5,
       GRPC_PERMISSION_DENIED = 7,
       GRPC_FAILED_PRECONDITION = 9,
       GRPC_OUT_OF_RANGE = 11,
       GRPC_UNIMPLEMENTED = 12,
       GRPC_UNAVAILABLE = 14,
       GRPC_UNAUTHENTICATED = 16,
};

/* Unavailable says a time-out of consensus as well as a refused call, so after it nothing is known
 * about a write. */
static enum err_code code_of_grpc(int64_t grpc, bool is_write)
{
    switch (grpc) {
    case GRPC_CANCELLED:
    case GRPC_DEADLINE_EXCEEDED:
        return is_write ? ERR_UNDETERMINED : ERR_SERVER_TIMEOUT;
    case GRPC_UNAVAILABLE:
        return is_write ? ERR_UNDETERMINED : ERR_UNAVAILABLE;
    case GRPC_NOT_FOUND:
        return ERR_NOT_FOUND;
    case GRPC_OUT_OF_RANGE:
        return ERR_EXPIRED;
    case GRPC_INVALID_ARGUMENT:
    case GRPC_FAILED_PRECONDITION:
    case GRPC_PERMISSION_DENIED:
    case GRPC_UNIMPLEMENTED:
    case GRPC_UNAUTHENTICATED:
        return ERR_INTERNAL; /* we asked wrongly or are set up wrongly; nothing was done */
    default:
        return is_write ? ERR_UNDETERMINED : ERR_INTERNAL;
    }
}

static enum err_code code_of_text(const char *text)
{
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (strstr(text, texts[i].text) != NULL)
            return texts[i].code;
    return ERR_NONE;
}

static int read_grpc_error(const cJSON *tree, int status, bool is_write, struct err *err)
{
    int64_t grpc = GRPC_UNKNOWN;
    const cJSON *code_node = json_get(tree, "code");
    if (code_node == NULL)
        code_node = json_get(tree, "grpc_code"); /* of a stream's error in 3.4 and 3.5 */
    if (code_node != NULL && json_node_i64(code_node, &grpc) < 0)
        grpc = GRPC_UNKNOWN;
    const char *text = json_str(tree, "message");
    if (text == NULL)
        text = json_str_or(tree, "error", "no text");
    enum err_code code = code_of_text(text);
    if (code == ERR_NONE)
        code = code_of_grpc(grpc, is_write);
    if (code == ERR_TOO_LARGE)
        return err_set(err, code, "etcdserver: request is too large");
    return err_set(err, code, "etcd answers %d: %.300s", status, text);
}

int etcd_msg_read_error(int status, const char *p, size_t n, bool is_write, struct err *err)
{
    SCOPED(json_free_p) cJSON *tree = NULL;
    if (parse(p, n, &tree, NULL) == 0)
        return read_grpc_error(tree, status, is_write, err);
    /* Not etcd's own answer: something in between, or another server. */
    if (status == 502 || status == 503 || status == 504)
        return err_set(err, is_write ? ERR_UNDETERMINED : ERR_UNAVAILABLE, "etcd answers %d",
                       status);
    return err_set(err, is_write && status >= 500 ? ERR_UNDETERMINED : ERR_INTERNAL,
                   "etcd answers %d", status);
}

/* ---- the watch stream ---- */

static void event_fini(struct store_event *e)
{
    store_kv_fini(&e->kv);
    store_kv_fini(&e->prev);
}

void etcd_watch_msg_fini(struct etcd_watch_msg *m)
{
    if (m == NULL)
        return;
    for (size_t i = 0; i < m->n_events; i++)
        event_fini(&m->events[i]);
    free(m->events);
    free(m->cancel_reason);
    *m = (struct etcd_watch_msg){0};
}

/* The key of a stranger (one with a zero byte) counts as outside the prefix: the watch must go
 * on. */
static int read_is_ours(const cJSON *kv, const char *prefix, bool *ret, struct err *err)
{
    SCOPED_FREE char *key = NULL;
    size_t n;
    int r = read_bytes(kv, "key", &key, &n, err);
    if (r == 0)
        *ret = n > 0 && strlen(key) == n && str_has_prefix(key, prefix);
    return r;
}

/* Adds the event to m when its key is below the prefix. */
static int read_event(const cJSON *node, const char *prefix, struct etcd_watch_msg *m,
                      struct err *err)
{
    const cJSON *kv = json_get(node, "kv"), *prev = json_get(node, "prev_kv");
    const char *type = json_str(node, "type");
    bool is_ours = false;
    if (kv == NULL)
        return unreadable(err, "an event without a key");
    int r = read_i64(kv, "mod_revision", &m->last_rev, err);
    if (r == 0)
        r = read_is_ours(kv, prefix, &is_ours, err);
    if (r < 0 || !is_ours)
        return r;
    struct store_event *e =
        &m->events[m->n_events++]; /* counted first, so that it is released if broken */
    e->is_delete = str_equal(type, "DELETE");
    r = read_kv(kv, &e->kv, err);
    if (r == 0 && prev != NULL)
        r = read_kv(prev, &e->prev, err);
    return r;
}

static int read_watch(const cJSON *result, const char *prefix, struct etcd_watch_msg *m,
                      struct err *err)
{
    const cJSON *events = NULL, *event;
    m->is_created = read_bool(result, "created");
    m->is_canceled = read_bool(result, "canceled");
    m->is_fragment = read_bool(result, "fragment");
    const char *reason = json_str(result, "cancel_reason");
    m->cancel_reason = reason == NULL ? NULL : xstrdup(reason);
    int r = read_rev(result, &m->rev, err);
    if (r == 0)
        r = read_i64(result, "compact_revision", &m->compact_rev, err);
    if (r == 0)
        r = read_array(result, "events", &events, err);
    if (r < 0 || events == NULL)
        return r;
    m->events = xcalloc(json_len(events), sizeof *m->events);
    cJSON_ArrayForEach(event, events)
    {
        r = read_event(event, prefix, m, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int etcd_msg_read_watch(const char *p, size_t n, const char *prefix, struct etcd_watch_msg *ret,
                        struct err *err)
{
    SCOPED(json_free_p) cJSON *tree = NULL;
    SCOPED(etcd_watch_msg_fini) struct etcd_watch_msg m = {0};
    const cJSON *result = NULL;
    int r = parse(p, n, &tree, err);
    if (r == 0)
        r = read_result(tree, &result, err);
    if (r == 0)
        r = read_watch(result, prefix, &m, err);
    if (r == 0)
        *ret = steal(&m);
    return r;
}

/* Inside a string most bytes are plain: base64 of values. */
static size_t skip_string(struct etcd_split *s, const char *p, size_t i, size_t n)
{
    for (; i < n && s->in_string; i++) {
        if (s->is_escaped)
            s->is_escaped = false;
        else if (p[i] == '\\')
            s->is_escaped = true;
        else if (p[i] == '"')
            s->in_string = false;
    }
    return i;
}

size_t etcd_split_next(struct etcd_split *s, const char *p, size_t n)
{
    size_t i = 0;
    while (i < n) {
        if (s->in_string) {
            i = skip_string(s, p, i, n);
            continue;
        }
        char c = p[i++];
        if (c == '"')
            s->in_string = true;
        else if (c == '{' || c == '[')
            s->depth++;
        else if ((c == '}' || c == ']') && (s->depth == 0 || --s->depth == 0)) {
            *s = (struct etcd_split){0};
            return i;
        }
    }
    return 0;
}
