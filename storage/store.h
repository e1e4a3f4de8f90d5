/* Keys, bytes, revisions: what the server needs of a store, as a table of functions. Behind it
 * stand etcd's JSON gateway (etcd.h) and an in-memory twin with the same contract and faults on
 * demand (memstore.h). Knows no kind.
 *
 * A revision numbers a committed transaction; all keys put by one transaction share it. Keys are
 * NUL-terminated text. All functions block up to their deadline and may be called from any thread.
 *
 * Errors everywhere: ERR_UNAVAILABLE the store was not reached and nothing was sent;
 * ERR_SERVER_TIMEOUT a read did not answer in time; ERR_UNDETERMINED a write was sent and its
 * outcome is unknown (read back before saying anything); ERR_EXPIRED the revision was compacted;
 * ERR_CANCELLED shutting down; ERR_TOO_LARGE the store refuses the size; ERR_TOO_MANY no space left
 * (quota alarm). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apiserver/base/err.h"

struct store_kv {
    char *key;
    char *value; /* NUL-terminated after value_len bytes */
    size_t value_len;
    int64_t create_rev, mod_rev;
    int64_t lease; /* id, 0 = none */
};
void store_kv_fini(struct store_kv *kv);

struct store_page { /* starts as {0} */
    struct store_kv *kvs;
    size_t n;
    bool more;     /* there are further keys in the range */
    int64_t count; /* keys in the whole range at that revision */
    int64_t rev;   /* the revision that was read */
};
void store_page_fini(struct store_page *p);

enum store_target { STORE_MOD, STORE_CREATE }; /* which revision of the key a compare looks at */
struct store_compare {
    const char *key;
    enum store_target target;
    int64_t rev; /* must be equal; 0 = the key must not exist */
};
struct store_op {
    const char *key;
    const char *value; /* NULL = delete the key */
    size_t value_len;
    int64_t lease; /* for a put; 0 = none */
};
#define STORE_TXN_MAX 16 /* compares and operations each */
struct store_txn {
    const struct store_compare *compares;
    size_t n_compares;
    const struct store_op *ops; /* done all or none, when every compare holds */
    size_t n_ops;
};
struct store_txn_result { /* starts as {0} */
    bool succeeded;
    int64_t rev; /* of the transaction when it wrote, else the store's current one */
    /* When it did not succeed: the current state of each compared key, in the order of compares
     * (key NULL = absent). */
    struct store_kv *current;
    size_t n_current;
};
void store_txn_result_fini(struct store_txn_result *r);

struct store_event {
    bool is_delete;
    struct store_kv kv; /* for a delete: only key and mod_rev (the deletion's revision) */
    /* the state before; prev.key == NULL when there was none or it is not known (compacted) */
    struct store_kv prev;
};
/* Callbacks of a watch; they run one at a time on a thread of the store's and may not call back
 * into the store. on_events gets all events of one or more whole revisions, in order; events are
 * borrowed (use steal on their members to keep them). rev is the newest revision that is covered by
 * all calls so far: everything up to it has been delivered. It is also called with n == 0 when only
 * rev moved. */
struct store_watch_ops {
    void (*on_events)(void *ctx, struct store_event *events, size_t n, int64_t rev);
    /* The watch is lost and cannot be resumed by itself: ERR_EXPIRED (its next revision was
     * compacted; compact_rev tells how far) or ERR_CANCELLED. No call follows. Broken connections
     * are mended by the store and not reported here. */
    void (*on_lost)(void *ctx, const struct err *err, int64_t compact_rev);
    /* The connection broke (false) or works again (true). May be NULL. */
    void (*on_link)(void *ctx, bool is_up);
};

struct store;
struct store_watch;
struct store_vtable {
    /* Keys in [from, end) in order, at most limit (0 = all), at revision rev (0 = newest,
     * linearizable). keys_only leaves values out. end NULL = only the key from; end "" = no end.
     * Fewer than limit keys may come although more is set (an answer has a ceiling in bytes); to go
     * on, start from the last key with "\001" appended, at the page's rev. ERR_EXPIRED also when
     * rev lies in the future. */
    int (*range)(struct store *s, const char *from, const char *end, int64_t limit, int64_t rev,
                 bool keys_only, int64_t deadline_ms, struct store_page *ret, struct err *err);
    int (*txn)(struct store *s, const struct store_txn *txn, int64_t deadline_ms,
               struct store_txn_result *ret, struct err *err);
    /* Every key with that prefix ("" = all), from revision start_rev (inclusive; 0 = from now: the
     * first on_events call, with n == 0, says which revision that is). Unwatch before the store is
     * freed. */
    struct store_watch *(*watch)(struct store *s, const char *prefix, int64_t start_rev,
                                 const struct store_watch_ops *ops, void *ctx);
    void (*unwatch)(struct store_watch *w); /* waits until no callback runs; frees */
    int (*compact)(struct store *s, int64_t rev, int64_t deadline_ms, struct err *err);
    int (*lease_grant)(struct store *s, int64_t ttl_s, int64_t deadline_ms, int64_t *ret_id,
                       struct err *err);
    /* ERR_NOT_FOUND: expired */
    int (*lease_keepalive)(struct store *s, int64_t id, int64_t deadline_ms, int64_t *ret_ttl_s,
                           struct err *err);
    int (*lease_revoke)(struct store *s, int64_t id, int64_t deadline_ms, struct err *err);
    /* Health for readyz: 0, or why not. */
    int (*status)(struct store *s, int64_t deadline_ms, int64_t *ret_db_bytes, struct err *err);
    void (*free)(struct store *s);
};
struct store { /* embedded first in each implementation */
    const struct store_vtable *v;
};

/* Thin wrappers; deadline_ms is a point of clock_monotonic_ms(&clock_system). */
int store_range(struct store *s, const char *from, const char *end, int64_t limit, int64_t rev,
                bool keys_only, int64_t deadline_ms, struct store_page *ret, struct err *err);
/* One key. ret is {0}-started and owned by the caller. ERR_NOT_FOUND when absent; *ret_rev (may be
 * NULL) is the revision read. */
int store_get(struct store *s, const char *key, int64_t deadline_ms, struct store_kv *ret,
              int64_t *ret_rev, struct err *err);
/* The store's newest revision, linearizable. */
int store_revision(struct store *s, int64_t deadline_ms, int64_t *ret_rev, struct err *err);
int store_txn(struct store *s, const struct store_txn *txn, int64_t deadline_ms,
              struct store_txn_result *ret, struct err *err);
struct store_watch *store_watch(struct store *s, const char *prefix, int64_t start_rev,
                                const struct store_watch_ops *ops, void *ctx);
void store_unwatch(struct store *s, struct store_watch *w);
int store_compact(struct store *s, int64_t rev, int64_t deadline_ms, struct err *err);
int store_lease_grant(struct store *s, int64_t ttl_s, int64_t deadline_ms, int64_t *ret_id,
                      struct err *err);
int store_lease_keepalive(struct store *s, int64_t id, int64_t deadline_ms, int64_t *ret_ttl_s,
                          struct err *err);
int store_lease_revoke(struct store *s, int64_t id, int64_t deadline_ms, struct err *err);
int store_status(struct store *s, int64_t deadline_ms, int64_t *ret_db_bytes, struct err *err);
void store_free(struct store *s);
/* The end of the range of keys that begin with prefix (last byte + 1); owned by the caller. "" (no
 * end) for "". */
char *store_prefix_end(const char *prefix);
