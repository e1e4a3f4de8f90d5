/* The way to etcd that calls and watches share: endpoints, TLS files, and which endpoint works. Any
 * thread. */
#pragma once

#include "storage/etcd.h"

struct etcd_conn;
struct etcd_conn *etcd_conn_new(struct fetch *fetch, const struct etcd_config *config);
void etcd_conn_free(struct etcd_conn *c);

enum etcd_call {
    ETCD_READ,
    ETCD_WRITE
}; /* may it be sent twice? decides what an unknown outcome is called */
/* POST body to path (/v3/kv/range); ret is the answer of a call that etcd carried out. Endpoints
 * are tried in turn while nothing was sent; a read is tried again in any case. Errors as in
 * store.h. */
int etcd_conn_call(struct etcd_conn *c, enum etcd_call kind, const char *path,
                   const struct buf *body, int64_t deadline_ms, struct fetch_response *ret,
                   struct err *err);
/* Opens a stream at the endpoint that works; *ret_endpoint is for etcd_conn_failed. */
struct fetch_stream *etcd_conn_open(struct etcd_conn *c, const char *path, const struct buf *body,
                                    size_t *ret_endpoint);
/* That endpoint does not work; the next call goes to another one. */
void etcd_conn_failed(struct etcd_conn *c, size_t endpoint);
