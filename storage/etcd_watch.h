/* A watch over etcd's stream. One stream at a time, resumed after the last whole revision that was
 * delivered; a thread of its own reads, parses and calls back. What it does not read waits with
 * etcd.
 *
 * The stream always covers the whole key space of our etcd and other prefixes are left out here:
 * every revision has an event, so the newest event seen says exactly how far the watch is. Neither
 * a header's revision (ahead of the events while the watch catches up) nor the answer to a progress
 * request (wrong in 3.4.23) would. */
#pragma once

#include "storage/etcd_conn.h"

struct etcd_watch_limits {
    int64_t idle_ms;  /* silence after which etcd is asked how far it is */
    int64_t lag_ms;   /* how long the stream may be behind that answer before it is cut */
    int64_t probe_ms; /* ceiling of such a question; unwatch may have to wait for it */
    int64_t backoff_min_ms, backoff_max_ms; /* between attempts to resume, doubling, with jitter */
    size_t document_max; /* bytes of one; beyond it the stream is cut and resumed */
};
extern const struct etcd_watch_limits etcd_watch_defaults;

/* As store_watch. prefix is copied; conn, ops and limits are borrowed. */
struct store_watch *etcd_watch_new(struct etcd_conn *conn, const char *prefix, int64_t start_rev,
                                   const struct store_watch_ops *ops, void *ctx,
                                   const struct etcd_watch_limits *limits);
void etcd_watch_free(struct store_watch *w);
