/* The store in memory: for tests, and for --store=memory. Same contract as etcd, with faults on
 * demand. */
#pragma once

#include "storage/store.h"

struct store *memstore_new(void);
/* Keep at most that many revisions of history (older ones count as compacted); default 100,000. */
void memstore_set_history(struct store *s, size_t revisions);

enum memstore_fault {
    MEMSTORE_OK,
    MEMSTORE_UNAVAILABLE,       /* nothing happens, the call fails */
    MEMSTORE_UNDETERMINED_DONE, /* a write happens, the call fails */
    MEMSTORE_UNDETERMINED_LOST, /* a write does not happen, the call fails so that it might have */
};
/* Called before each range ("range"), txn ("txn"), lease call ("lease") and status ("status") with
 * the number of the call from 1, all kinds counted together since this was set; NULL = no faults. A
 * read, and a lease's keepalive, fails the same way for both undetermined faults:
 * ERR_SERVER_TIMEOUT. Runs with the store locked: it may not call the store. */
void memstore_set_fault(struct store *s,
                        enum memstore_fault (*fault)(void *ctx, const char *call, uint64_t n),
                        void *ctx);
/* Breaks the watch links until called again with false: no events arrive, on_link(false) is
 * reported. */
void memstore_set_watch_down(struct store *s, bool is_down);
