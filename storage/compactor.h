/* Throws away history that nobody can ask for any more: every period, the store is compacted to the
 * revision it had one period before, so that between one and two periods of history stay. Every
 * replica may run one: compacting to a revision that is gone already does nothing. Source of the
 * habit and of its 5 minutes: kube-apiserver's --etcd-compaction-interval. */
#pragma once

#include "storage/store.h"

struct store_compactor;
/* store is borrowed. period_ms 0 = 5 minutes. */
struct store_compactor *store_compactor_start(struct store *store, int64_t period_ms);
void store_compactor_stop(struct store_compactor *c); /* frees; NULL is fine */
