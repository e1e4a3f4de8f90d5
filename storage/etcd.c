/* The table of store.h over etcd's gateway: each call is one message there and one back. */
#include "storage/etcd.h"

#include "apiserver/base/clock.h"
#include "apiserver/base/mem.h"
#include "storage/etcd_conn.h"
#include "storage/etcd_msg.h"
#include "storage/etcd_watch.h"

#define PAGE_KEYS 500 /* of a range without limit: some megabytes an answer */

struct etcd {
    struct store store;
    struct etcd_conn *conn;
};

static struct etcd *etcd_of(struct store *s)
{
    return (struct etcd *)(void *)s; /* store is its first member */
}

static int range_once(struct etcd *e, const struct etcd_range *range, int64_t deadline_ms,
                      struct store_page *ret, struct err *err)
{
    SCOPED(buf_fini) struct buf body = {0};
    SCOPED(fetch_response_fini) struct fetch_response res = {0};
    etcd_msg_range(&body, range);
    int r = etcd_conn_call(e->conn, ETCD_READ, "/v3/kv/range", &body, deadline_ms, &res, err);
    if (r < 0)
        return r;
    return etcd_msg_read_range(buf_cstr(&res.body), res.body.len, range->rev, ret, err);
}

/* A page of large values may be more than an answer may have: then ask for fewer. */
static int range_page(struct etcd *e, struct etcd_range range, int64_t deadline_ms,
                      struct store_page *ret, struct err *err)
{
    SCOPED(err_fini) struct err why = {0};
    for (;;) {
        int r = range_once(e, &range, deadline_ms, ret, &why);
        if (r == 0)
            return 0;
        if (r != -ERR_TOO_LARGE || range.limit <= 1)
            return err_move(err, &why);
        range.limit = range.limit > 8 ? range.limit / 8 : 1;
    }
}

/* Appends the keys of from, which becomes empty. The first page says what holds for all: count and
 * revision. */
static void page_append(struct store_page *to, struct store_page *from)
{
    if (to->n == 0) {
        *to = steal(from);
        return;
    }
    to->kvs = xreallocarray(to->kvs, to->n + from->n, sizeof *to->kvs);
    for (size_t i = 0; i < from->n; i++)
        to->kvs[to->n++] = from->kvs[i];
    to->more = from->more;
    free(from->kvs);
    *from = (struct store_page){0};
}

static int range_all(struct etcd *e, struct etcd_range range, int64_t deadline_ms,
                     struct store_page *ret, struct err *err)
{
    SCOPED(store_page_fini) struct store_page all = {0};
    SCOPED_FREE char *from = NULL;
    range.limit = PAGE_KEYS;
    do {
        SCOPED(store_page_fini) struct store_page page = {0};
        int r = range_page(e, range, deadline_ms, &page, err);
        if (r < 0)
            return r;
        page_append(&all, &page);
        if (all.more && all.n > 0) {
            free(from);
            range.from = from = xasprintf("%s\001", all.kvs[all.n - 1].key);
            range.rev = all.rev;
        }
    } while (all.more && all.n > 0);
    *ret = steal(&all);
    return 0;
}

static int etcd_range(struct store *s, const char *from, const char *end, int64_t limit,
                      int64_t rev, bool keys_only, int64_t deadline_ms, struct store_page *ret,
                      struct err *err)
{
    struct etcd_range range = {
        .from = from, .end = end, .limit = limit, .rev = rev, .keys_only = keys_only};
    if (limit > 0 || end == NULL)
        return range_page(etcd_of(s), range, deadline_ms, ret, err);
    return range_all(etcd_of(s), range, deadline_ms, ret, err);
}

static int etcd_txn(struct store *s, const struct store_txn *txn, int64_t deadline_ms,
                    struct store_txn_result *ret, struct err *err)
{
    SCOPED(buf_fini) struct buf body = {0};
    SCOPED(fetch_response_fini) struct fetch_response res = {0};
    etcd_msg_txn(&body, txn);
    if (buf_failed(&body))
        return err_set(err, ERR_TOO_LARGE, "etcdserver: request is too large");
    int r =
        etcd_conn_call(etcd_of(s)->conn, ETCD_WRITE, "/v3/kv/txn", &body, deadline_ms, &res, err);
    if (r < 0)
        return r;
    r = etcd_msg_read_txn(buf_cstr(&res.body), res.body.len, txn, ret, err);
    /* Something was done and we cannot tell what. */
    return r == -ERR_INTERNAL
               ? err_set(err, ERR_UNDETERMINED, "unreadable answer of etcd to a transaction")
               : r;
}

static struct store_watch *etcd_watch(struct store *s, const char *prefix, int64_t start_rev,
                                      const struct store_watch_ops *ops, void *ctx)
{
    return etcd_watch_new(etcd_of(s)->conn, prefix, start_rev, ops, ctx, &etcd_watch_defaults);
}

static int etcd_compact(struct store *s, int64_t rev, int64_t deadline_ms, struct err *err)
{
    SCOPED(buf_fini) struct buf body = {0};
    SCOPED(fetch_response_fini) struct fetch_response res = {0};
    etcd_msg_compact(&body, rev);
    return etcd_conn_call(etcd_of(s)->conn, ETCD_WRITE, "/v3/kv/compaction", &body, deadline_ms,
                          &res, err);
}

static int etcd_lease_grant(struct store *s, int64_t ttl_s, int64_t deadline_ms, int64_t *ret_id,
                            struct err *err)
{
    SCOPED(buf_fini) struct buf body = {0};
    SCOPED(fetch_response_fini) struct fetch_response res = {0};
    etcd_msg_lease_grant(&body, ttl_s);
    int r = etcd_conn_call(etcd_of(s)->conn, ETCD_WRITE, "/v3/lease/grant", &body, deadline_ms,
                           &res, err);
    return r < 0 ? r : etcd_msg_read_lease_grant(buf_cstr(&res.body), res.body.len, ret_id, err);
}

static int etcd_lease_keepalive(struct store *s, int64_t id, int64_t deadline_ms,
                                int64_t *ret_ttl_s, struct err *err)
{
    SCOPED(buf_fini) struct buf body = {0};
    SCOPED(fetch_response_fini) struct fetch_response res = {0};
    etcd_msg_lease_id(&body, id);
    /* It can be sent twice without harm, like a read. */
    int r = etcd_conn_call(etcd_of(s)->conn, ETCD_READ, "/v3/lease/keepalive", &body, deadline_ms,
                           &res, err);
    return r < 0 ? r : etcd_msg_read_keepalive(buf_cstr(&res.body), res.body.len, ret_ttl_s, err);
}

static int etcd_lease_revoke(struct store *s, int64_t id, int64_t deadline_ms, struct err *err)
{
    SCOPED(buf_fini) struct buf body = {0};
    SCOPED(fetch_response_fini) struct fetch_response res = {0};
    etcd_msg_lease_id(&body, id);
    return etcd_conn_call(etcd_of(s)->conn, ETCD_WRITE, "/v3/lease/revoke", &body, deadline_ms,
                          &res, err);
}

/* The member answers, knows a leader, and a quorum carries out a read. A quota alarm is no reason
 * to be unready: reads go on. */
static int etcd_status(struct store *s, int64_t deadline_ms, int64_t *ret_db_bytes, struct err *err)
{
    SCOPED(buf_fini) struct buf body = {0};
    SCOPED(fetch_response_fini) struct fetch_response res = {0};
    int64_t rev, bytes;
    buf_puts(&body, "{}");
    int r = etcd_conn_call(etcd_of(s)->conn, ETCD_READ, "/v3/maintenance/status", &body,
                           deadline_ms, &res, err);
    if (r == 0)
        r = etcd_msg_read_status(buf_cstr(&res.body), res.body.len, &bytes, err);
    if (r == 0)
        r = store_revision(s, deadline_ms, &rev, err);
    if (r == 0)
        *ret_db_bytes = bytes;
    return r;
}

static void etcd_free(struct store *s)
{
    struct etcd *e = etcd_of(s);
    etcd_conn_free(e->conn);
    free(e);
}

static const struct store_vtable etcd_vtable = {
    .range = etcd_range,
    .txn = etcd_txn,
    .watch = etcd_watch,
    .unwatch = etcd_watch_free,
    .compact = etcd_compact,
    .lease_grant = etcd_lease_grant,
    .lease_keepalive = etcd_lease_keepalive,
    .lease_revoke = etcd_lease_revoke,
    .status = etcd_status,
    .free = etcd_free,
};

struct store *etcd_new(struct fetch *fetch, const struct etcd_config *config)
{
    struct etcd *e = xcalloc(1, sizeof *e);
    e->store.v = &etcd_vtable;
    e->conn = etcd_conn_new(fetch, config);
    return &e->store;
}
