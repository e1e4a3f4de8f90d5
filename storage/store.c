/* What all stores share: the thin wrappers over the table, release of results, and the end of a
 * prefix. */
#include "storage/store.h"

#include <string.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/mem.h"

void store_kv_fini(struct store_kv *kv)
{
    if (kv == NULL)
        return;
    free(kv->key);
    free(kv->value);
    *kv = (struct store_kv){0};
}

static void kvs_free(struct store_kv *kvs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        store_kv_fini(&kvs[i]);
    free(kvs);
}

void store_page_fini(struct store_page *p)
{
    if (p == NULL)
        return;
    kvs_free(p->kvs, p->n);
    *p = (struct store_page){0};
}

void store_txn_result_fini(struct store_txn_result *r)
{
    if (r == NULL)
        return;
    kvs_free(r->current, r->n_current);
    *r = (struct store_txn_result){0};
}

int store_range(struct store *s, const char *from, const char *end, int64_t limit, int64_t rev,
                bool keys_only, int64_t deadline_ms, struct store_page *ret, struct err *err)
{
    return s->v->range(s, from, end, limit, rev, keys_only, deadline_ms, ret, err);
}

int store_get(struct store *s, const char *key, int64_t deadline_ms, struct store_kv *ret,
              int64_t *ret_rev, struct err *err)
{
    SCOPED(store_page_fini) struct store_page page = {0};
    int r = s->v->range(s, key, NULL, 1, 0, false, deadline_ms, &page, err);
    if (r < 0)
        return r;
    if (ret_rev != NULL)
        *ret_rev = page.rev;
    if (page.n == 0)
        return err_set(err, ERR_NOT_FOUND, "key \"%s\" not found", key);
    *ret = steal(&page.kvs[0]);
    return 0;
}

int store_revision(struct store *s, int64_t deadline_ms, int64_t *ret_rev, struct err *err)
{
    /* The answer to any linearizable read carries the newest revision; this one reads at most one
     * key's name. */
    SCOPED(store_page_fini) struct store_page page = {0};
    int r = s->v->range(s, "/", NULL, 1, 0, true, deadline_ms, &page, err);
    if (r == 0)
        *ret_rev = page.rev;
    return r;
}

int store_txn(struct store *s, const struct store_txn *txn, int64_t deadline_ms,
              struct store_txn_result *ret, struct err *err)
{
    return s->v->txn(s, txn, deadline_ms, ret, err);
}

struct store_watch *store_watch(struct store *s, const char *prefix, int64_t start_rev,
                                const struct store_watch_ops *ops, void *ctx)
{
    return s->v->watch(s, prefix, start_rev, ops, ctx);
}

void store_unwatch(struct store *s, struct store_watch *w)
{
    if (w != NULL)
        s->v->unwatch(w);
}

int store_compact(struct store *s, int64_t rev, int64_t deadline_ms, struct err *err)
{
    return s->v->compact(s, rev, deadline_ms, err);
}

int store_lease_grant(struct store *s, int64_t ttl_s, int64_t deadline_ms, int64_t *ret_id,
                      struct err *err)
{
    return s->v->lease_grant(s, ttl_s, deadline_ms, ret_id, err);
}

int store_lease_keepalive(struct store *s, int64_t id, int64_t deadline_ms, int64_t *ret_ttl_s,
                          struct err *err)
{
    return s->v->lease_keepalive(s, id, deadline_ms, ret_ttl_s, err);
}

int store_lease_revoke(struct store *s, int64_t id, int64_t deadline_ms, struct err *err)
{
    return s->v->lease_revoke(s, id, deadline_ms, err);
}

int store_status(struct store *s, int64_t deadline_ms, int64_t *ret_db_bytes, struct err *err)
{
    return s->v->status(s, deadline_ms, ret_db_bytes, err);
}

void store_free(struct store *s)
{
    if (s != NULL)
        s->v->free(s);
}

char *store_prefix_end(const char *prefix)
{
    char *end = xstrdup(prefix);
    size_t n = strlen(end);
    while (n > 0 && (unsigned char)end[n - 1] == 0xff)
        n--;
    end[n] = '\0';
    if (n > 0)
        end[n - 1] = (char)((unsigned char)end[n - 1] + 1);
    return end;
}
