/* The messages of etcd's JSON gateway, written and read without any I/O. Its conventions: 64-bit
 * integers are decimal strings, bytes are base64, a member whose value is zero is absent. Any
 * thread. */
#pragma once

#include "apiserver/base/buf.h"
#include "storage/store.h"

/* ---- requests, appended to out ---- */

struct etcd_range {
    const char *from, *end; /* as in store_range: end NULL = one key, "" = no end */
    int64_t limit, rev;
    bool keys_only;
};
void etcd_msg_range(struct buf *out, const struct etcd_range *r);
void etcd_msg_txn(struct buf *out, const struct store_txn *txn);
void etcd_msg_compact(struct buf *out, int64_t rev);
void etcd_msg_lease_grant(struct buf *out, int64_t ttl_s);
void etcd_msg_lease_id(struct buf *out, int64_t id);     /* keepalive and revoke */
void etcd_msg_watch(struct buf *out, int64_t start_rev); /* all keys, with their state before */

/* ---- answers: 0, or ERR_INTERNAL when they are not what etcd sends ---- */

int etcd_msg_read_range(const char *p, size_t n, int64_t rev, struct store_page *ret,
                        struct err *err);
int etcd_msg_read_txn(const char *p, size_t n, const struct store_txn *txn,
                      struct store_txn_result *ret, struct err *err);
int etcd_msg_read_lease_grant(const char *p, size_t n, int64_t *ret_id, struct err *err);
/* ERR_NOT_FOUND when the lease is gone: etcd answers that with no TTL. */
int etcd_msg_read_keepalive(const char *p, size_t n, int64_t *ret_ttl_s, struct err *err);
/* ERR_UNAVAILABLE when the member has no leader. */
int etcd_msg_read_status(const char *p, size_t n, int64_t *ret_db_bytes, struct err *err);
/* Puts the error of an answer whose status is not 200 into err: its gRPC code and text, seen by who
 * wanted to write or to read (store.h says what the outcomes mean). Returns -code, never 0. */
int etcd_msg_read_error(int status, const char *p, size_t n, bool is_write, struct err *err);

/* ---- the watch stream ---- */

struct etcd_watch_msg { /* starts as {0} */
    bool is_created, is_canceled;
    bool is_fragment;           /* more of the same revisions follows */
    int64_t rev;                /* of the header; not to be trusted while the watch catches up */
    int64_t compact_rev;        /* of a cancelled one: where its history begins; else 0 */
    char *cancel_reason;        /* may be NULL */
    struct store_event *events; /* those whose key begins with the prefix */
    size_t n_events;
    int64_t last_rev; /* of the last event, whatever its key; 0 = none */
};
void etcd_watch_msg_fini(struct etcd_watch_msg *m);
/* One document. An `error` document gives the error it stands for, as a read. */
int etcd_msg_read_watch(const char *p, size_t n, const char *prefix, struct etcd_watch_msg *ret,
                        struct err *err);

/* Finds where a JSON document ends in bytes that come in pieces. Starts as {0}, and is so again
 * after each end. */
struct etcd_split {
    unsigned depth;
    bool in_string, is_escaped;
};
/* Looks at p[0..n), which follows what was looked at before. Returns how many of them belong to the
 * current document when it ends there (white space between documents counts with the one after it),
 * else 0. */
size_t etcd_split_next(struct etcd_split *s, const char *p, size_t n);
