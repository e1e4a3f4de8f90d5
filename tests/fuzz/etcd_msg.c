/* Fuzz target for storage/etcd_msg: whatever a server sends, each reader either fills its result
 * consistently or says why not and leaves nothing behind; and a stream falls into the same
 * documents however it is cut into pieces. */
#include <stdint.h>
#include <stdlib.h>

#include "apiserver/base/mem.h"
#include "storage/etcd_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* A reader's result and its error tell the same. */
static void require_outcome(int r, const struct err *err)
{
    require(r == 0 || (r == -(int)err->code && *err_text(err)));
}

static void check_kv(const struct store_kv *kv)
{
    require(kv->key[0] != '\0' && kv->value[kv->value_len] == '\0');
}

static void check_range(const char *p, size_t n)
{
    SCOPED(store_page_fini) struct store_page page = {0};
    SCOPED(err_fini) struct err err = {0};
    int r = etcd_msg_read_range(p, n, 0, &page, &err);
    require_outcome(r, &err);
    require((r == 0) == (page.rev > 0));
    for (size_t i = 0; i < page.n; i++)
        check_kv(&page.kvs[i]);
}

static void check_txn(const char *p, size_t n)
{
    static const struct store_compare compares[] = {{.key = "a"}, {.key = "b"}};
    const struct store_txn txn = {.compares = compares, .n_compares = 2};
    SCOPED(store_txn_result_fini) struct store_txn_result result = {0};
    SCOPED(err_fini) struct err err = {0};
    int r = etcd_msg_read_txn(p, n, &txn, &result, &err);
    require_outcome(r, &err);
    require(r < 0 || result.n_current == (result.succeeded ? 0 : 2));
    for (size_t i = 0; i < result.n_current; i++)
        if (result.current[i].key != NULL)
            check_kv(&result.current[i]);
}

static void check_small(const char *p, size_t n)
{
    int64_t v = -1;
    SCOPED(err_fini) struct err err = {0};
    require_outcome(etcd_msg_read_lease_grant(p, n, &v, &err), &err);
    require_outcome(etcd_msg_read_keepalive(p, n, &v, &err), &err);
    require_outcome(etcd_msg_read_status(p, n, &v, &err), &err);
    for (int is_write = 0; is_write < 2; is_write++) {
        int r = etcd_msg_read_error(503, p, n, is_write, &err);
        require(r < 0);
        require_outcome(r, &err);
    }
}

static void check_watch(const char *p, size_t n)
{
    SCOPED(etcd_watch_msg_fini) struct etcd_watch_msg m = {0};
    SCOPED(err_fini) struct err err = {0};
    require_outcome(etcd_msg_read_watch(p, n, "/a", &m, &err), &err);
    for (size_t i = 0; i < m.n_events; i++) {
        check_kv(&m.events[i].kv);
        require(str_has_prefix(m.events[i].kv.key, "/a"));
        if (m.events[i].prev.key != NULL)
            check_kv(&m.events[i].prev);
    }
}

/* Ends of the documents in p, fed piece by piece. */
static void split(const char *p, size_t n, size_t piece, struct buf *ret_ends)
{
    struct etcd_split s = {0};
    for (size_t from = 0; from < n; from += piece) {
        size_t to = n - from < piece ? n : from + piece, k;
        for (size_t at = from; (k = etcd_split_next(&s, p + at, to - at)) > 0;) {
            at += k;
            require(at <= to);
            buf_append(ret_ends, &at, sizeof at);
        }
    }
}

static void check_split(const char *p, size_t n)
{
    SCOPED(buf_fini) struct buf whole = {0}, pieces = {0};
    split(p, n, n + 1, &whole);
    split(p, n, 1, &pieces);
    require(whole.len == pieces.len);
    require(whole.len == 0 || memcmp(whole.data, pieces.data, whole.len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data;
    check_range(p, size);
    check_txn(p, size);
    check_small(p, size);
    check_watch(p, size);
    check_split(p, size);
    return 0;
}
