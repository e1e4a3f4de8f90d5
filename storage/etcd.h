/* The store over etcd's JSON gateway (/v3/kv/range, txn, compaction, /v3/watch, /v3/lease), through
 * base/fetch. Works with etcd 3.4, 3.5 and 3.6. */
#pragma once

#include "apiserver/base/fetch.h"
#include "storage/store.h"

struct etcd_config {
    const char *const *endpoints; /* https://127.0.0.1:2379, ended by NULL; tried in order, the one
                                     that works is kept */
    const char *ca_file, *cert_file, *key_file; /* NULL for plain http */
    int64_t call_timeout_ms;                    /* ceiling of one call; 0 = 10,000 */
};
/* Config strings are copied. fetch is borrowed and must outlive the store. Never NULL; nothing is
 * sent yet. */
struct store *etcd_new(struct fetch *fetch, const struct etcd_config *config);
