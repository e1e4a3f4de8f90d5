/* PUT, PATCH and every other change of a stored object: read, change, admit, write if nobody wrote
 * in between, else again from what is there now. The first try works on the cached object. Because
 * that may be old, nothing is refused and nothing is called unchanged on its word: the store is
 * asked first. */
#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/registry/cache.h"

struct updater {
    struct registry *registry;
    struct table *table;
    const struct update_request *req;
    const struct write_options *opts;
    int64_t deadline_ms;
    struct object *old; /* what this try works on */
    bool is_old_cached;
    struct pairs warnings; /* of this try */
    struct object *result; /* of a try that is done */
    bool is_unchanged;
};

static void updater_fini(struct updater *u)
{
    object_unref(u->old);
    object_unref(u->result);
    pairs_fini(&u->warnings);
}

static void set_old(struct updater *u, struct object *take_old, bool is_cached)
{
    object_unref(u->old);
    u->old = take_old;
    u->is_old_cached = is_cached;
}

/* An object on its way out goes when its last finalizer does. Source: docs/kubernetes-api.md 17. */
bool object_is_held(const struct kind *kind, const cJSON *tree)
{
    return kind->holders && json_len(json_at(tree, kind->holders)) > 0;
}

int ask_guard(const struct write_guard *guard, const struct kind *kind, const cJSON *old,
              cJSON *object, struct err *err)
{
    return guard ? guard->check(guard->ctx, kind, old, object, err) : 0;
}

static bool is_last_step(const struct object *old, const cJSON *tree)
{
    return old->is_terminating && !object_is_held(old->kind, tree) &&
           json_len(json_at(tree, "metadata.finalizers")) == 0 &&
           json_i64_or(tree, "metadata.deletionGracePeriodSeconds", 0) == 0;
}

/* Nothing is there, and that will do. */
static bool becomes_missing(const struct updater *u, int rc, struct err *err)
{
    if (rc != -ERR_NOT_FOUND || !u->req->may_create)
        return false;
    err_fini(err);
    return true;
}

/* Writes json over the old state, or removes the object. 0 = done (result set), 1 = old was
 * replaced by what is there now. */
static int store_change(struct updater *u, char *take_json, size_t len, bool is_removal,
                        struct err *err)
{
    SCOPED_FREE char *json = take_json;
    SCOPED(store_kv_fini) struct store_kv current = {0};
    struct table *t = u->table;
    struct commit commit = {
        .registry = u->registry,
        .table = t,
        .op = u->req->is_patch ? "patch" : "update",
        .namespace_name = u->old->namespace_name,
        .name = u->old->name,
        .uid = u->old->uid,
        .json = is_removal ? NULL : json,
        .json_len = is_removal ? 0 : len,
        .seen_rev = u->old->rev,
        .fence = u->opts->fence,
        .deadline_ms = u->deadline_ms,
    };
    int64_t rev = 0;
    int rc = commit_run(&commit, &rev, &current, err);
    if (rc < 0)
        return rc;
    if (rc == COMMIT_RACED) {
        struct object *now = NULL;
        rc = current_of_race(t, u->old->name, &current, &now, err);
        if (rc < 0 && !becomes_missing(u, rc, err))
            return rc;
        set_old(u, now, false);
        return 1;
    }
    commit_wait(u->registry, rev, u->deadline_ms);
    /* A removed object is shown as it would have been stored, at its last revision. */
    return object_from_bytes(t->kind, steal(&json), len, is_removal ? u->old->rev : rev, &u->result,
                             err);
}

static struct admit_request admission_of(const struct updater *u, const cJSON *old_tree)
{
    return (struct admit_request){
        .kind = u->table->kind,
        .operation = ADMIT_UPDATE,
        .is_status = u->req->is_status,
        .is_scale = u->req->is_scale,
        .is_applied = u->req->is_applied,
        .is_patch = u->req->is_patch,
        .is_system = u->opts->is_system,
        .namespace_name = u->req->namespace_name ? u->req->namespace_name : "",
        .name = u->req->name,
        .manager = u->opts->field_manager,
        .old = old_tree,
        .field_validation = u->opts->field_validation,
        .decode_findings = u->opts->decode_findings,
        .is_decoded = u->req->sent != NULL,
    };
}

static int admit_change(struct updater *u, const cJSON *old_tree, cJSON *tree, struct err *err)
{
    const struct admit_request request = admission_of(u, old_tree);
    int rc = admit(u->registry->admit, &request, tree, &u->warnings, err);
    return rc < 0 ? rc : ask_guard(u->opts->guard, u->table->kind, old_tree, tree, err);
}

/* A whole object is judged as such once, whatever is stored. */
static int decode_sent(struct updater *u, struct err *err)
{
    const struct admit_request request = admission_of(u, NULL);
    int rc = admit_decode(u->registry->admit, &request, u->req->sent, u->opts->warnings, err);
    return rc < 0 ? rc : admit_check_name(u->req->sent, u->req->name, err);
}

/* Reads the object from the store. 1 = it is another one than the try worked on, which is over. */
static int look_again(struct updater *u, struct err *err)
{
    struct object *stored = NULL;
    int rc = current_stored(u->registry, u->table, u->req->is_patch ? "patch" : "update",
                            u->req->namespace_name, u->req->name, u->deadline_ms, &stored, err);
    if (rc < 0 && !becomes_missing(u, rc, err))
        return rc;
    bool is_other = !u->old || !stored || stored->rev != u->old->rev;
    set_old(u, stored, false);
    return is_other;
}

/* One try without an old state: 0 = done, 1 = again. */
static int create_first(struct updater *u, struct err *err)
{
    SCOPED(json_free_p) cJSON *tree = NULL;
    const struct missing m = {.registry = u->registry,
                              .table = u->table,
                              .req = u->req,
                              .opts = u->opts,
                              .deadline_ms = u->deadline_ms,
                              .warnings = &u->warnings};
    int rc = u->req->change(u->req->ctx, NULL, &tree, err);
    if (rc == 0)
        rc = create_missing(&m, tree, &u->result, err);
    if (rc == 0)
        *u->req->ret_created = true;
    if (rc == 1)
        rc = look_again(u, err);
    return rc;
}

/* One try on u->old: 0 = done, 1 = again. */
static int update_once(struct updater *u, struct err *err)
{
    if (!u->old) {
        pairs_fini(&u->warnings);
        return create_first(u, err);
    }
    SCOPED(json_free_p) cJSON *old_tree = object_tree_to_change(u->old), *tree = NULL;
    pairs_fini(&u->warnings);
    int rc = u->req->change(u->req->ctx, old_tree, &tree, err);
    if (rc < 0 || (rc = admit_change(u, old_tree, tree, err)) < 0)
        return rc;
    bool is_removal = is_last_step(u->old, tree);
    size_t len;
    SCOPED_FREE char *json = object_print_stored(tree, &len);
    u->is_unchanged =
        !is_removal && len == u->old->json_len && memcmp(json, u->old->json, len) == 0;
    if (u->is_unchanged) {
        u->result = object_ref(u->old);
        return 0;
    }
    if (u->opts->dry_run)
        return object_from_bytes(u->table->kind, steal(&json), len, u->old->rev, &u->result, err);
    return store_change(u, steal(&json), len, is_removal, err);
}

/* After a try on a cached object that was refused (with refusal) or left it unchanged: 0 = that
 * stands, 1 = again. */
static int confirm(struct updater *u, struct err *refusal)
{
    SCOPED(err_fini) struct err e = {0};
    int rc = look_again(u, &e);
    if (rc == 1) {
        object_unref(u->result);
        u->result = NULL;
    }
    return rc < 0 ? err_move(refusal, &e) : rc;
}

static int update_loop(struct updater *u, struct err *err)
{
    for (;;) {
        bool was_cached = u->is_old_cached;
        int rc = update_once(u, err);
        bool is_doubtful =
            was_cached && (rc < 0 || (rc == 0 && (u->is_unchanged || u->opts->dry_run)));
        if (is_doubtful) {
            int confirmed = confirm(u, err);
            if (confirmed <= 0)
                return confirmed < 0 ? confirmed : rc;
            rc = 1;
        }
        if (rc != 1)
            return rc;
        if (clock_monotonic_ms(&clock_system) >= u->deadline_ms)
            return refuse_modified(u->table->kind, u->req->name, err);
        err_fini(err);
    }
}

static void hand_on_warnings(struct updater *u)
{
    for (size_t i = 0; u->opts->warnings && i < u->warnings.n; i++)
        pairs_add(u->opts->warnings, u->warnings.v[i].name, u->warnings.v[i].value);
}

int registry_update(struct registry *r, const struct update_request *req,
                    const struct write_options *opts, struct object **ret, struct err *err)
{
    SCOPED(updater_fini)
    struct updater u = {.registry = r,
                        .table = registry_table(r, req->kind),
                        .req = req,
                        .opts = opts,
                        .deadline_ms = opts->deadline_ms};
    SCOPED(err_fini) struct err e = {0};
    struct object *cached = NULL;
    deadline_default(&u.deadline_ms);
    if (req->sent && decode_sent(&u, err) < 0)
        return -(int)err->code;
    if (registry_wait_loaded(r, req->kind, err) < 0)
        return -ERR_UNAVAILABLE;
    if (current_cached(r, u.table, req->namespace_name, req->name, &cached) == 0)
        set_old(&u, cached, true);
    else if (look_again(&u, &e) < 0)
        return err_move(err, &e);
    int rc = update_loop(&u, &e);
    hand_on_warnings(&u);
    if (rc < 0)
        return err_move(err, &e);
    *ret = steal(&u.result);
    return 0;
}
