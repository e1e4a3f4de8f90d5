/* Who leads among the replicas: a key in our store bound to a lease that the leader keeps alive.
 * Whoever creates the key leads; when its lease ends, by revocation or because nobody renewed it,
 * the key goes and the others race for it.
 *
 * A process that finds, when it begins, the key held under its own name takes it over at once: its
 * predecessor died. So holders of one name must not run at the same time, or the last one leads.
 *
 * That alone cannot stop a leader that was paused and does not know yet that it is one no more. So
 * every write a leader makes carries a compare on the key's create revision (store_leader_fence),
 * which the store checks in the same transaction. A thread of its own does all this; any thread may
 * call. */
#pragma once

#include "storage/store.h"

#define STORE_LEADER_KEY "/agent-sandbox/leader/reconciler"

/* Called on the leader's thread, in turn. While one runs the lease is not renewed: on_started
 * returns soon; on_stopped returns when nothing is done as the leader any more, at best within the
 * margin between giving up and the lease's end (a fifth of ttl_s). */
struct store_leader_ops {
    void (*on_started)(void *ctx);
    void (*on_stopped)(void *ctx, const char *why); /* why: text for a log */
};
struct store_leader_config {
    const char *holder; /* who we are, shown to people; copied */
    const char *key;    /* NULL = STORE_LEADER_KEY; copied */
    int64_t ttl_s;      /* of the lease; 0 = 15 */
    int64_t renew_ms;   /* 0 = a third of ttl_s */
    int64_t poll_ms;    /* how often a follower looks whether the key is gone; 0 = 250 */
};

struct store_leader;
/* Starts to campaign. store and ops are borrowed. */
struct store_leader *store_leader_start(struct store *store,
                                        const struct store_leader_config *config,
                                        const struct store_leader_ops *ops, void *ctx);
/* Stops leading (on_stopped), gives the lease back so that another one takes over at once, and
 * frees. NULL is fine. */
void store_leader_stop(struct store_leader *l);

bool store_leader_is_leading(struct store_leader *l);
/* The compare that every write of the leader carries. False when we do not lead: then nothing may
 * be written. Its key lives as long as l. A write whose fence did not hold calls
 * store_leader_suspect. */
bool store_leader_fence(struct store_leader *l, struct store_compare *ret);
/* Look now whether the key is still ours, and stop leading if not. Does not wait. */
void store_leader_suspect(struct store_leader *l);
/* Who leads as far as we know, "" = nobody; owned by the caller. */
char *store_leader_holder(struct store_leader *l);
