/* One binding: take a candidate aside, let the table of functions say how both objects will look,
 * write both if neither changed. A member that was lost to somebody else stays away until this
 * cache has seen the change; a lost claim ends the matter. */
#include "apiserver/registry/bind.h"

#include "apiserver/base/clock.h"
#include "apiserver/base/crash.h"
#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/metric.h"
#include "apiserver/base/rand.h"
#include "apiserver/registry/bind_try.h"

#define RESERVED_MS 60000 /* longer than any request; ends when a thread never came back */
#define LOST_MS 1000      /* a lost member's change is here by then */
#define SKIPPED_MS 5000   /* before a member that did not suit is judged again without a change */
#define LOST_MAX 16       /* races that one claim may lose before it is stored unbound */
#define SPREAD_MS 2000    /* after a lost race candidates are drawn from */
#define SPREAD_OVER 16    /* so many, because somebody else takes from the same pools */

static struct metric bindings_metric = {
    .name = "sandbox_claim_bindings_total",
    .help = "Claims that were to be bound to a pool member, by where and how that ended.",
    .type = METRIC_COUNTER,
    .labels = {"by", "result"},
};
static struct metric conflicts_metric = {
    .name = "sandbox_claim_binding_conflicts_total",
    .help = "Pool members that were chosen for a claim and taken or changed by others first.",
    .type = METRIC_COUNTER,
};

struct bind {
    const struct bind_ops *ops;
    struct bind_index *index;
    int64_t spread_until_ms; /* atomic, monotonic */
    int64_t bound_ms;        /* atomic, monotonic: when a claim was bound last; 0 = none was */
};

static int64_t now_ms(void)
{
    return clock_monotonic_ms(&clock_system);
}

struct bind *bind_new(const struct bind_ops *ops)
{
    if (!ops)
        return NULL;
    struct bind *b = xcalloc(1, sizeof *b);
    b->ops = ops;
    b->index = bind_index_new();
    return b;
}

void bind_free(struct bind *b)
{
    if (!b)
        return;
    bind_index_free(b->index);
    free(b);
}

/* ---- the index follows the cache ---- */

static void note_state(struct bind *b, const char *item, const struct object *o)
{
    SCOPED(json_free_p) cJSON *tree = NULL;
    struct bind_member member = {.node = ""};
    if (!o->is_terminating && pairs_get(&o->labels, b->ops->member_label))
        tree = object_tree(o);
    if (tree && b->ops->describe(b->ops->ctx, tree, &member))
        bind_index_put(b->index, item, &member);
    else
        bind_index_remove(b->index, item);
}

void bind_note(struct bind *b, const struct table *t, const char *item, const struct change *c)
{
    if (!b || t->kind != b->ops->member)
        return;
    if (c->is_delete)
        bind_index_remove(b->index, item);
    else
        note_state(b, item, c->now);
}

static bool note_each(void *ctx, const char *item, void *value)
{
    note_state(ctx, item, value);
    return true;
}

void bind_reload(struct bind *b, const struct registry *r)
{
    if (!b)
        return;
    bind_index_clear(b->index);
    omap_each(registry_table(r, b->ops->member)->objects, NULL, note_each, b);
}

/* ---- one try ---- */

void bind_try_fini(struct bind_try *t)
{
    if (t->item && t->is_reserved)
        bind_index_release(t->bind->index, t->item);
    if (t->plan)
        t->bind->ops->plan_free(t->plan);
    object_unref(t->member);
    json_free(t->member_tree);
    free(t->claim_json);
    free(t->member_json);
    free(t->item);
}

/* Forgets the candidate of the last try; its reservation has been seen to. */
static void drop_candidate(struct bind_try *t)
{
    object_unref(t->member);
    json_free(t->member_tree);
    free(t->claim_json);
    free(t->member_json);
    free(t->item);
    t->member = NULL;
    t->member_tree = NULL;
    t->claim_json = t->member_json = t->item = NULL;
    t->is_reserved = false;
}

static void put_aside(struct bind_try *t, int64_t for_ms)
{
    if (t->is_reserved)
        bind_index_put_aside(t->bind->index, t->item, now_ms() + for_ms);
    drop_candidate(t);
}

void bind_try_lost(struct bind_try *t)
{
    int64_t now = now_ms();
    metric_add(&conflicts_metric, 1, NULL);
    __atomic_store_n(&t->bind->spread_until_ms, now + SPREAD_MS, __ATOMIC_RELAXED);
    t->n_lost++;
    put_aside(t, LOST_MS);
}

void bind_try_won(struct bind_try *t)
{
    t->is_reserved = false; /* it leaves the index by its own change */
    __atomic_store_n(&t->bind->bound_ms, now_ms(), __ATOMIC_RELAXED);
}

int64_t registry_bound_ago_ms(const struct registry *r)
{
    int64_t at_ms = r->bind ? __atomic_load_n(&r->bind->bound_ms, __ATOMIC_RELAXED) : 0;
    return at_ms ? now_ms() - at_ms : INT64_MAX;
}

static unsigned spread(const struct bind *b, int64_t now)
{
    if (__atomic_load_n(&b->spread_until_ms, __ATOMIC_RELAXED) <= now)
        return 0;
    return (unsigned)rand_below(&rand_system, SPREAD_OVER);
}

/* Takes the next candidate aside; false when there is none. */
static bool choose(struct bind_try *t)
{
    struct bind *b = t->bind;
    int64_t now = now_ms(), until = t->is_dry ? 0 : now + RESERVED_MS;
    if (t->only) {
        /* A certain one: whoever holds it decides, so it is tried once, reserved or not. */
        if (t->was_tried)
            return false;
        t->was_tried = true;
        t->item = xasprintf("%s/%s", t->namespace_name, t->only);
        t->is_reserved = !t->is_dry && bind_index_take_item(b->index, t->item, now, until);
        return true;
    }
    /* What is not taken aside would be met again. */
    unsigned skip = t->is_dry ? t->n_skipped : spread(b, now);
    SCOPED_FREE char *name =
        bind_index_take(b->index, t->namespace_name, t->plan->pool, skip, now, until);
    if (!name)
        return false;
    t->item = xasprintf("%s/%s", t->namespace_name, name);
    t->is_reserved = !t->is_dry;
    return true;
}

/* The member as the store would get it: an update like any other, generation and validation
 * included. */
static int admit_member(struct bind_try *t, cJSON *tree, struct err *err)
{
    struct admit_request request = {
        .kind = t->bind->ops->member,
        .operation = ADMIT_UPDATE,
        .is_system = true,
        .manager = t->bind->ops->manager,
        .namespace_name = t->namespace_name,
        .name = t->member->name,
        .old = t->member_tree,
    };
    return admit(t->registry->admit, &request, tree, NULL, err);
}

static enum bind_verdict judge(struct bind_try *t, const cJSON *claim)
{
    const struct bind_ops *ops = t->bind->ops;
    SCOPED(json_free_p) cJSON *new_claim = NULL, *new_member = NULL;
    SCOPED(err_fini) struct err err = {0};
    const char *name = strchr(t->item, '/') + 1;
    if (current_cached(t->registry, registry_table(t->registry, ops->member), t->namespace_name,
                       name, &t->member) < 0)
        return BIND_SKIP;
    t->member_tree = object_tree(t->member);
    enum bind_verdict verdict =
        ops->adopt(ops->ctx, t->plan, claim, t->member_tree, &new_claim, &new_member);
    if (verdict != BIND_TAKE)
        return verdict;
    if (admit_member(t, new_member, &err) < 0) {
        log_warn("pool member cannot be adopted, the next one is tried sandbox=%s: %s", t->item,
                 err_text(&err));
        return BIND_SKIP;
    }
    admit_record(t->registry->admit, ops->claim, ops->manager, claim, new_claim);
    t->claim_json = object_print_stored(new_claim, &t->claim_len);
    t->member_json = object_print_stored(new_member, &t->beside.json_len);
    t->beside.table = registry_table(t->registry, ops->member);
    t->beside.namespace_name = t->namespace_name;
    t->beside.name = t->member->name;
    t->beside.json = t->member_json;
    t->beside.seen_rev = t->member->rev;
    return BIND_TAKE;
}

bool bind_try_next(struct bind_try *t, const cJSON *claim)
{
    while (t->n_lost < LOST_MAX && choose(t)) {
        switch (judge(t, claim)) {
        case BIND_TAKE:
            return true;
        case BIND_LEAVE:
            if (t->is_reserved)
                bind_index_release(t->bind->index, t->item);
            drop_candidate(t);
            return false;
        case BIND_SKIP:
            put_aside(t, SKIPPED_MS);
            if (t->n_skipped++ == SPREAD_OVER && t->is_dry)
                return false;
            break;
        }
    }
    return false;
}

bool bind_try_begin(struct bind_try *t, struct registry *r, const struct kind *kind,
                    const char *namespace_name, const cJSON *claim, const char *only, bool is_dry)
{
    *t = (struct bind_try){.registry = r,
                           .bind = r->bind,
                           .namespace_name = namespace_name,
                           .only = only,
                           .is_dry = is_dry};
    if (!t->bind || t->bind->ops->claim != kind)
        return false;
    t->plan = t->bind->ops->plan(t->bind->ops->ctx, r, claim);
    return t->plan != NULL;
}

void bind_try_count(const struct bind_try *t, const char *by, bool is_bound)
{
    const char *result = is_bound ? "bound" : t->n_lost >= LOST_MAX ? "contended" : "nobody";
    if (t->plan && !t->is_dry)
        metric_add(&bindings_metric, 1, (const char *const[]){by, result});
}

/* ---- a claim that is stored already ---- */

struct binder {
    struct registry *registry;
    struct table *table;
    const struct bind_request *req;
    const struct write_options *opts;
    int64_t deadline_ms;
    cJSON *claim;
};

static int objects_of_try(struct bind_try *t, const struct binder *b, int64_t rev,
                          struct object **ret_claim, struct object **ret_member, struct err *err)
{
    SCOPED(object_unref_p) struct object *member = NULL;
    int rc = object_from_bytes(t->bind->ops->member, steal(&t->member_json), t->beside.json_len,
                               rev, &member, err);
    if (rc == 0)
        rc = object_from_bytes(b->table->kind, steal(&t->claim_json), t->claim_len, rev, ret_claim,
                               err);
    if (rc == 0)
        *ret_member = steal(&member);
    return rc;
}

/* 0 = bound, 1 = the member was lost. */
static int bind_once(const struct binder *b, struct bind_try *t, struct object **ret_claim,
                     struct object **ret_member, struct err *err)
{
    const struct object *claim = b->req->claim;
    SCOPED(store_kv_fini) struct store_kv current = {0};
    struct commit commit = {
        .registry = b->registry,
        .table = b->table,
        .op = "update",
        .namespace_name = claim->namespace_name,
        .name = claim->name,
        .uid = claim->uid,
        .json = t->claim_json,
        .json_len = t->claim_len,
        .seen_rev = claim->rev,
        .beside = &t->beside,
        .fence = b->opts->fence,
        .deadline_ms = b->deadline_ms,
    };
    int64_t rev = 0;
    CRASH_POINT(BIND_CHOSEN);
    int rc = commit_run(&commit, &rev, &current, err);
    if (rc == COMMIT_RACED)
        return refuse_modified(b->table->kind, claim->name, err);
    if (rc != COMMITTED)
        return rc < 0 ? rc : 1;
    CRASH_POINT(BIND_STORED);
    commit_wait(b->registry, rev, b->deadline_ms);
    bind_try_won(t);
    return objects_of_try(t, b, rev, ret_claim, ret_member, err);
}

static int bind_loop(const struct binder *b, struct bind_try *t, bool *ret_bound,
                     struct object **ret_claim, struct object **ret_member, struct err *err)
{
    while (bind_try_next(t, b->claim)) {
        int rc = bind_once(b, t, ret_claim, ret_member, err);
        *ret_bound = rc == 0;
        if (rc <= 0)
            return rc;
        bind_try_lost(t);
    }
    return 0;
}

int registry_bind(struct registry *r, const struct bind_request *req,
                  const struct write_options *opts, enum bind_outcome *ret,
                  struct object **ret_claim, struct object **ret_member, struct err *err)
{
    struct binder b = {.registry = r,
                       .table = registry_table(r, req->claim->kind),
                       .req = req,
                       .opts = opts,
                       .deadline_ms = opts->deadline_ms};
    SCOPED(json_free_p) cJSON *claim = object_tree(req->claim);
    SCOPED(bind_try_fini) struct bind_try t;
    const char *namespace_name = req->claim->namespace_name;
    bool is_bound = false;
    deadline_default(&b.deadline_ms);
    b.claim = claim;
    *ret = BIND_NOBODY;
    if (!bind_try_begin(&t, r, req->claim->kind, namespace_name, claim, req->member, false))
        return 0;
    int rc = bind_loop(&b, &t, &is_bound, ret_claim, ret_member, err);
    if (rc < 0)
        return rc;
    bind_try_count(&t, "reconciler", is_bound);
    if (is_bound)
        *ret = BIND_DONE;
    else if (!req->member &&
             bind_index_count(t.bind->index, namespace_name, t.plan->pool, BIND_PENDING) > 0)
        *ret = BIND_WAITING;
    return 0;
}
