/* Writing one object. A transaction whose outcome is unknown (the connection broke behind it) is
 * carried to a certain end before anything is said: the key is read back, and when it shows nothing
 * of the write, the same transaction is sent again, which can do no harm because both compare the
 * same revision: at most one of them ever happens. When the key was changed by others meanwhile,
 * the history tells whether our write was among the changes. */
#include <inttypes.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/metric.h"
#include "apiserver/base/thread.h"
#include "apiserver/registry/cache.h"

static struct metric writes_metric = {
    .name = "apiserver_storage_writes_total",
    .help = "Objects written to the store or deleted from it, by resource.",
    .type = METRIC_COUNTER,
    .labels = {"resource"},
};

static const double lag_s[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                               0.25,  0.5,    1,     2.5,  5,     0};
static struct metric lag_metric = {
    .name = "agent_sandbox_watch_lag_seconds",
    .help =
        "From the store's answer to a write of this server until its own watch of the store has "
        "brought it.",
    .type = METRIC_HISTOGRAM,
    .buckets = lag_s,
};

#define AGAIN_MIN_MS 20 /* between tries; doubles up to */
#define AGAIN_MAX_MS 500

static int64_t now_ms(void)
{
    return clock_monotonic_ms(&clock_system);
}

void commit_wait(struct registry *r, int64_t rev, int64_t deadline_ms)
{
    int64_t from_ms = now_ms(), until_ms = from_ms + REV_WAIT_MS;
    (void)registry_wait_rev(r, rev, until_ms < deadline_ms ? until_ms : deadline_ms);
    metric_observe(&lag_metric, (double)(now_ms() - from_ms) / 1000, NULL);
}

/* ---- what is there ---- */

int current_stored(struct registry *r, struct table *t, const char *op, const char *namespace_name,
                   const char *name, int64_t deadline_ms, struct object **ret, struct err *err)
{
    SCOPED_FREE char *key = key_of_object(t, namespace_name, name);
    SCOPED(store_kv_fini) struct store_kv kv = {0};
    SCOPED(err_fini) struct err e = {0};
    int rc = store_get(r->store, key, deadline_ms, &kv, NULL, &e);
    if (rc == -ERR_NOT_FOUND)
        return refuse_not_found(t->kind, name, err);
    if (rc < 0)
        return refuse_store(t->kind, op, &e, err);
    return current_of_race(t, name, &kv, ret, err);
}

int current_of_race(struct table *t, const char *name, struct store_kv *kv, struct object **ret,
                    struct err *err)
{
    if (!kv->key)
        return refuse_not_found(t->kind, name, err);
    if (alias_object(t->kind, kv, ret, NULL) < 0)
        return refuse_unreadable(t->kind, name, err);
    return 0;
}

char *object_print_stored(cJSON *tree, size_t *ret_len)
{
    cJSON *metadata = json_get(tree, "metadata");
    if (metadata)
        json_remove(metadata, "resourceVersion");
    json_sort(tree);
    SCOPED(buf_fini) struct buf out = {0};
    json_print(tree, &out);
    return buf_take(&out, ret_len);
}

/* ---- is it ours? ---- */

/* The key shows exactly what we meant: our bytes, or nothing. */
static bool is_our_state(const struct commit *c, const struct store_kv *kv)
{
    if (!c->json)
        return !kv->key;
    return kv->key && kv->mod_rev > c->seen_rev && kv->value_len == c->stored_len &&
           memcmp(kv->value, c->stored, c->stored_len) == 0;
}

/* A create whose object was changed since: the uid is ours, nobody else could have made it. */
static bool is_our_child(const struct commit *c, const struct store_kv *kv)
{
    if (!c->json || c->seen_rev != 0 || !kv->key)
        return false;
    struct object *o = NULL;
    struct store_kv copy = {.value = xmemdup(kv->value, kv->value_len + 1),
                            .value_len = kv->value_len,
                            .mod_rev = kv->mod_rev};
    if (alias_object(c->table->kind, &copy, &o, NULL) < 0)
        return false;
    bool is_ours = strcmp(o->uid, c->uid) == 0;
    object_unref(o);
    return is_ours;
}

/* Our write among the changes up to rev, which the cache has to have. 0 = it did not happen. */
static int64_t find_our_write(const struct commit *c)
{
    struct table *t = c->table;
    pthread_rwlock_rdlock(&t->lock);
    int64_t rev =
        table_find_write(t, c->namespace_name, c->name, c->seen_rev, c->uid, c->json, !c->json);
    pthread_rwlock_unlock(&t->lock);
    return rev;
}

/* After an unknown outcome, with the key's state at store revision rev. */
enum finding { OURS, NOT_YET, OTHERS, UNCLEAR };
static enum finding judge_state(const struct commit *c, const struct store_kv *kv, int64_t rev,
                                int64_t *ret_rev)
{
    if (is_our_state(c, kv)) {
        *ret_rev = c->json ? kv->mod_rev : rev;
        return OURS;
    }
    if (is_our_child(c, kv)) {
        *ret_rev = kv->create_rev;
        return OURS;
    }
    if (kv->key && kv->mod_rev == c->seen_rev)
        return NOT_YET;
    if (registry_wait_rev(c->registry, rev, c->deadline_ms) < 0)
        return UNCLEAR;
    *ret_rev = find_our_write(c);
    if (*ret_rev != 0)
        return OURS;
    return !kv->key && c->seen_rev == 0 ? NOT_YET : OTHERS;
}

/* ---- the transaction ---- */

static void count_write(const struct table *t)
{
    metric_add(&writes_metric, 1, (const char *const[]){t->kind->plural});
}

/* The compares are in this order: the object, the one beside it, the fence. */
static int send(const struct commit *c, const char *key, struct store_txn_result *ret,
                struct err *err)
{
    const struct commit_beside *b = c->beside;
    SCOPED_FREE char *beside_key = b ? key_of_object(b->table, b->namespace_name, b->name) : NULL;
    struct store_compare compares[3] = {{key, STORE_MOD, c->seen_rev}};
    struct store_op ops[2] = {{.key = key, .value = c->stored, .value_len = c->stored_len}};
    struct store_txn txn = {.compares = compares, .n_compares = 1, .ops = ops, .n_ops = 1};
    if (b) {
        compares[txn.n_compares++] = (struct store_compare){beside_key, STORE_MOD, b->seen_rev};
        if (!b->is_kept)
            ops[txn.n_ops++] = (struct store_op){beside_key, b->json, b->json_len, 0};
    }
    if (c->fence)
        compares[txn.n_compares++] = *c->fence;
    return store_txn(c->registry->store, &txn, c->deadline_ms, ret, err);
}

/* Lets a moment pass, longer each time; false when the server stops. */
static bool pause_before_again(const struct commit *c, int64_t *wait_ms)
{
    bool is_stopping =
        registry_wait_rev(c->registry, INT64_MAX, now_ms() + *wait_ms) == -ERR_CANCELLED;
    *wait_ms = 2 * *wait_ms < AGAIN_MAX_MS ? 2 * *wait_ms : AGAIN_MAX_MS;
    return !is_stopping;
}

static int give_up(struct err *err)
{
    return err_set(err, ERR_UNDETERMINED, "the outcome of a write is not known");
}

/* The read-back of an unknown outcome: until the store answers or time is up
 * (-ERR_UNDETERMINED). */
static int read_back(const struct commit *c, const char *key, enum finding *ret, int64_t *ret_rev,
                     struct store_kv *ret_kv, struct err *err)
{
    int64_t wait_ms = AGAIN_MIN_MS;
    do {
        SCOPED(store_kv_fini) struct store_kv kv = {0};
        int64_t rev = 0;
        int rc = store_get(c->registry->store, key, c->deadline_ms, &kv, &rev, NULL);
        if (rc == -ERR_CANCELLED) /* the process ends */
            break;
        *ret = rc == 0 || rc == -ERR_NOT_FOUND ? judge_state(c, &kv, rev, ret_rev) : UNCLEAR;
        if (*ret != UNCLEAR) {
            *ret_kv = steal(&kv);
            return 0;
        }
    } while (now_ms() < c->deadline_ms && pause_before_again(c, &wait_ms));
    return give_up(err);
}

static bool is_at(const struct store_kv *kv, int64_t rev)
{
    return kv->key ? kv->mod_rev == rev : rev == 0;
}

/* A transaction that did not hold: who was in the way? */
static int judge_refusal(const struct commit *c, const struct store_kv *current, struct err *err)
{
    const struct registry *r = c->registry;
    if (!is_at(&current[0], c->seen_rev))
        return COMMIT_RACED;
    if (c->beside && !is_at(&current[1], c->beside->seen_rev))
        return COMMIT_BESIDE_RACED;
    if (r->on_fenced)
        r->on_fenced(r->fence_ctx);
    return refuse_conflict(c->table->kind, c->name, err, "no longer leader");
}

/* One try, as commit_run; SEND_AGAIN: nothing of it was done. */
#define SEND_AGAIN (COMMIT_BESIDE_RACED + 1)
static int try_once(const struct commit *c, const char *key, bool is_again, int64_t *ret_rev,
                    struct store_kv *ret_current, struct err *err)
{
    SCOPED(store_txn_result_fini) struct store_txn_result res = {0};
    SCOPED(store_kv_fini) struct store_kv kv = {0};
    enum finding finding = OTHERS;
    int rc = send(c, key, &res, err);
    if (rc == 0 && res.succeeded) {
        *ret_rev = res.rev;
        return COMMITTED;
    }
    if (rc == 0) {
        /* An earlier try may have happened after it was read back, and be what this one ran
         * into. */
        if (is_again)
            finding = judge_state(c, &res.current[0], res.rev, ret_rev);
        if (finding == UNCLEAR)
            return give_up(err);
        rc = finding == OURS ? COMMITTED : judge_refusal(c, res.current, err);
        *ret_current = steal(&res.current[0]);
        return rc;
    }
    if (rc != -ERR_UNDETERMINED || (rc = read_back(c, key, &finding, ret_rev, &kv, err)) < 0)
        return rc;
    if (finding == NOT_YET)
        return SEND_AGAIN;
    *ret_current = steal(&kv);
    return finding == OURS ? COMMITTED : COMMIT_RACED;
}

int commit_run(const struct commit *given, int64_t *ret_rev, struct store_kv *ret_current,
               struct err *err)
{
    struct commit with_stored = *given;
    const struct commit *c = &with_stored;
    SCOPED_FREE char *stored =
        alias_stored_bytes(c->table->kind, c->json, c->json_len, &with_stored.stored_len);
    with_stored.stored = stored ? stored : c->json;
    with_stored.stored_len = stored ? with_stored.stored_len : c->json_len;
    SCOPED_FREE char *key = key_of_object(c->table, c->namespace_name, c->name);
    SCOPED(err_fini) struct err e = {0};
    int64_t wait_ms = AGAIN_MIN_MS;
    int rc = try_once(c, key, false, ret_rev, ret_current, &e);
    while (rc == SEND_AGAIN) {
        if (now_ms() >= c->deadline_ms || !pause_before_again(c, &wait_ms))
            rc = give_up(&e);
        else
            rc = try_once(c, key, true, ret_rev, ret_current, &e);
    }
    if (rc < 0)
        return refuse_store(c->table->kind, c->op, &e, err);
    if (rc == COMMITTED) {
        count_write(c->table);
        if (c->beside && !c->beside->is_kept)
            count_write(c->beside->table);
    }
    return rc;
}
