/* One thread, two states. A follower reads the key now and then and, when it is absent, grants a
 * lease and creates it. A leader renews the lease and looks that the key is still its own. It gives
 * up a fifth of the TTL before the lease can end, counted from before the last renewal that
 * succeeded was sent: so it has stopped when the next one starts, as long as both clocks run at
 * about the same pace. */
#include "storage/lease.h"

#include <inttypes.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/metric.h"
#include "apiserver/base/thread.h"

#define TTL_DEFAULT_S 15
#define POLL_DEFAULT_MS 250
#define CALL_MS 5000 /* ceiling of a call while following or giving up */

static struct metric leads_metric = {
    .name = "leader_election_master_status",
    .help = "1 while this server leads, else 0.",
    .type = METRIC_GAUGE,
    .labels = {"name"},
};

struct store_leader {
    struct store *store;
    char *holder, *key;
    int64_t ttl_s, renew_ms, poll_ms;
    const struct store_leader_ops *ops;
    void *ctx;
    pthread_t thread;

    pthread_mutex_t lock; /* guards what follows, up to the blank line */
    pthread_cond_t woken;
    bool is_stopped, is_suspected;
    bool is_leading;
    int64_t fence_rev;  /* create revision of our key */
    int64_t give_up_ms; /* when we stop leading unless the lease is renewed */
    char *seen_holder;  /* NULL = nobody */

    /* of the thread */
    int64_t lease;   /* 0 = none */
    bool has_looked; /* at the key, and the store said what is there */
};

static int64_t now_ms(void)
{
    return clock_monotonic_ms(&clock_system);
}

static bool is_stopped(struct store_leader *l)
{
    pthread_mutex_lock(&l->lock);
    bool is = l->is_stopped;
    pthread_mutex_unlock(&l->lock);
    return is;
}

static void see_holder(struct store_leader *l, const char *value, size_t n)
{
    SCOPED(json_free_p) cJSON *tree = NULL;
    char *holder = NULL;
    if (value != NULL && json_parse(value, n, NULL, &tree, NULL) == 0)
        holder = xstrdup(json_str_or(tree, "holder", ""));
    pthread_mutex_lock(&l->lock);
    if (holder != NULL && !str_equal(holder, l->seen_holder))
        log_debug("leader key=%s holder=\"%s\"", l->key, holder);
    free(l->seen_holder);
    l->seen_holder = holder;
    pthread_mutex_unlock(&l->lock);
}

/* ---- becoming the leader ---- */

static char *identity(const struct store_leader *l)
{
    char at[CLOCK_TEXT_SIZE];
    clock_print_rfc3339_micro(clock_unix_ms(&clock_system) * 1000, at);
    SCOPED(json_free_p) cJSON *tree = json_object();
    json_set_str(tree, "holder", l->holder);
    json_set_str(tree, "acquiredAt", at);
    return json_to_str(tree);
}

/* The lease's time is counted from since_ms, when the call that made or renewed it had not been
 * sent yet. */
static void set_give_up(struct store_leader *l, int64_t since_ms)
{
    l->give_up_ms = since_ms + l->ttl_s * 1000 * 4 / 5;
}

static void begin(struct store_leader *l, int64_t fence_rev, int64_t since_ms)
{
    pthread_mutex_lock(&l->lock);
    l->is_leading = true;
    l->is_suspected = false;
    l->fence_rev = fence_rev;
    set_give_up(l, since_ms);
    pthread_mutex_unlock(&l->lock);
    metric_set(&leads_metric, 1, (const char *const[]){l->key});
    log_debug("leading key=%s rev=%" PRId64, l->key, fence_rev);
    l->ops->on_started(l->ctx);
}

static void drop_lease(struct store_leader *l)
{
    if (l->lease != 0)
        store_lease_revoke(l->store, l->lease, now_ms() + CALL_MS, NULL);
    l->lease = 0;
}

/* Is the key there with our lease? Its create revision, 0 = no. Negative when the store does not
 * say. */
static int64_t read_own(struct store_leader *l, int64_t deadline_ms)
{
    SCOPED(store_kv_fini) struct store_kv kv = {0};
    int r = store_get(l->store, l->key, deadline_ms, &kv, NULL, NULL);
    if (r < 0 && r != -ERR_NOT_FOUND)
        return r;
    see_holder(l, kv.value, kv.value_len);
    return kv.key != NULL && kv.lease == l->lease ? kv.create_rev : 0;
}

/* Create the key if nobody has. Its create revision when we got it, else 0 or negative. */
static int64_t create_key(struct store_leader *l, int64_t deadline_ms)
{
    SCOPED_FREE char *value = identity(l);
    struct store_compare absent = {.key = l->key, .target = STORE_CREATE, .rev = 0};
    struct store_op put = {
        .key = l->key, .value = value, .value_len = strlen(value), .lease = l->lease};
    struct store_txn txn = {.compares = &absent, .n_compares = 1, .ops = &put, .n_ops = 1};
    SCOPED(store_txn_result_fini) struct store_txn_result result = {0};
    int r = store_txn(l->store, &txn, deadline_ms, &result, NULL);
    if (r == -ERR_UNDETERMINED)
        return read_own(l, deadline_ms);
    return r < 0 ? r : result.succeeded ? result.rev : 0;
}

/* The key is held under our own name, and we have only just begun: a process of ours led and died
 * without giving it back. Its lease ends now, not when its time is up. Should that process live
 * after all, it is stopped by that as by any other loss of the key. */
static bool drop_leftover(struct store_leader *l, int64_t lease)
{
    if (!str_equal(l->seen_holder, l->holder) || lease == 0)
        return false;
    log_info("the leader before us had our name, taking over key=%s holder=\"%s\"", l->key,
             l->holder);
    return store_lease_revoke(l->store, lease, now_ms() + CALL_MS, NULL) == 0;
}

static bool is_vacant(struct store_leader *l)
{
    SCOPED(store_kv_fini) struct store_kv kv = {0};
    int r = store_get(l->store, l->key, now_ms() + CALL_MS, &kv, NULL, NULL);
    if (r < 0 && r != -ERR_NOT_FOUND)
        return false;
    bool is_first = !l->has_looked;
    l->has_looked = true;
    if (r == -ERR_NOT_FOUND)
        return true;
    see_holder(l, kv.value, kv.value_len);
    return is_first && drop_leftover(l, kv.lease);
}

static void campaign(struct store_leader *l)
{
    if (!is_vacant(l))
        return;
    int64_t since_ms = now_ms();
    if (store_lease_grant(l->store, l->ttl_s, since_ms + CALL_MS, &l->lease, NULL) < 0)
        return;
    int64_t rev = create_key(l, since_ms + l->ttl_s * 1000 / 2);
    if (rev > 0) {
        see_holder(l, NULL, 0);
        begin(l, rev, since_ms);
    } else {
        drop_lease(l); /* if it holds the key after all, the key goes with it */
    }
}

/* ---- being the leader ---- */

static void end(struct store_leader *l, const char *why)
{
    pthread_mutex_lock(&l->lock);
    l->is_leading = false;
    pthread_mutex_unlock(&l->lock);
    metric_set(&leads_metric, 0, (const char *const[]){l->key});
    log_debug("not leading any more key=%s why=\"%s\"", l->key, why);
    l->ops->on_stopped(l->ctx, why);
    drop_lease(l);
}

/* Renew and check. Returns why we lead no more, or NULL. */
static const char *renew(struct store_leader *l, int64_t give_up_ms, int64_t fence_rev)
{
    int64_t since_ms = now_ms(), ttl_s = 0;
    int r = store_lease_keepalive(l->store, l->lease, give_up_ms, &ttl_s, NULL);
    if (r == -ERR_NOT_FOUND)
        return "the lease is gone";
    int64_t rev = r < 0 ? r : read_own(l, give_up_ms);
    if (rev < 0)
        return NULL; /* not known; there is still time */
    if (rev != fence_rev)
        return "the key is not ours";
    pthread_mutex_lock(&l->lock);
    set_give_up(l, since_ms);
    l->is_suspected = false;
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* One round of leading: sleep until it is time to renew, then do. */
static void lead(struct store_leader *l)
{
    pthread_mutex_lock(&l->lock);
    int64_t give_up_ms = l->give_up_ms;
    int64_t renewed_ms = give_up_ms - l->ttl_s * 1000 * 4 / 5;
    int64_t next_ms = renewed_ms + l->renew_ms, now = now_ms();
    if (next_ms <= now) /* the last try failed: more often now */
        next_ms = now + l->renew_ms / 5 + 1;
    if (next_ms > give_up_ms)
        next_ms = give_up_ms;
    while (!l->is_stopped && !l->is_suspected && now_ms() < next_ms)
        thread_cond_wait_until(&l->woken, &l->lock, next_ms);
    bool is_asked_to_stop = l->is_stopped;
    l->is_suspected = false;
    int64_t fence_rev = l->fence_rev;
    pthread_mutex_unlock(&l->lock);
    const char *why = is_asked_to_stop         ? "stopped"
                      : now_ms() >= give_up_ms ? "the lease could not be renewed"
                                               : renew(l, give_up_ms, fence_rev);
    if (why != NULL)
        end(l, why);
}

/* ---- the thread ---- */

static void follow(struct store_leader *l)
{
    campaign(l);
    int64_t until_ms = now_ms() + l->poll_ms;
    pthread_mutex_lock(&l->lock);
    while (!l->is_leading && !l->is_stopped && now_ms() < until_ms)
        thread_cond_wait_until(&l->woken, &l->lock, until_ms);
    pthread_mutex_unlock(&l->lock);
}

static void *leader_main(void *arg)
{
    struct store_leader *l = arg;
    while (l->is_leading || !is_stopped(l)) { /* only this thread changes is_leading */
        if (l->is_leading)
            lead(l);
        else
            follow(l);
    }
    return NULL;
}

struct store_leader *store_leader_start(struct store *store,
                                        const struct store_leader_config *config,
                                        const struct store_leader_ops *ops, void *ctx)
{
    struct store_leader *l = xcalloc(1, sizeof *l);
    l->store = store;
    l->holder = xstrdup(config->holder);
    l->key = xstrdup(config->key != NULL ? config->key : STORE_LEADER_KEY);
    l->ttl_s = config->ttl_s > 0 ? config->ttl_s : TTL_DEFAULT_S;
    l->renew_ms = config->renew_ms > 0 ? config->renew_ms : l->ttl_s * 1000 / 3;
    l->poll_ms = config->poll_ms > 0 ? config->poll_ms : POLL_DEFAULT_MS;
    l->ops = ops;
    l->ctx = ctx;
    pthread_mutex_init(&l->lock, NULL);
    thread_cond_init(&l->woken);
    thread_start(&l->thread, "store leader", leader_main, l);
    return l;
}

void store_leader_stop(struct store_leader *l)
{
    if (l == NULL)
        return;
    pthread_mutex_lock(&l->lock);
    l->is_stopped = true;
    pthread_cond_signal(&l->woken);
    pthread_mutex_unlock(&l->lock);
    pthread_join(l->thread, NULL);
    pthread_cond_destroy(&l->woken);
    pthread_mutex_destroy(&l->lock);
    free(l->seen_holder);
    free(l->holder);
    free(l->key);
    free(l);
}

/* ---- asked from any thread ---- */

bool store_leader_fence(struct store_leader *l, struct store_compare *ret)
{
    pthread_mutex_lock(&l->lock);
    /* The thread may not have woken up yet, after a pause of the whole process. */
    bool is_leading = l->is_leading && now_ms() < l->give_up_ms;
    if (is_leading)
        *ret = (struct store_compare){.key = l->key, .target = STORE_CREATE, .rev = l->fence_rev};
    pthread_mutex_unlock(&l->lock);
    return is_leading;
}

bool store_leader_is_leading(struct store_leader *l)
{
    struct store_compare fence;
    return store_leader_fence(l, &fence);
}

void store_leader_suspect(struct store_leader *l)
{
    pthread_mutex_lock(&l->lock);
    l->is_suspected = true;
    pthread_cond_signal(&l->woken);
    pthread_mutex_unlock(&l->lock);
}

char *store_leader_holder(struct store_leader *l)
{
    pthread_mutex_lock(&l->lock);
    char *holder = xstrdup(l->is_leading            ? l->holder
                           : l->seen_holder != NULL ? l->seen_holder
                                                    : "");
    pthread_mutex_unlock(&l->lock);
    return holder;
}
