/* DELETE. An object without finalizers goes at once; with finalizers, the client's or those of the
 * garbage collector that the propagation policy asks for, it becomes terminating and goes when the
 * last one is removed (update.c). Source: docs/kubernetes-api.md 18. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/crash.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/registry/cache.h"

static const char orphan[] = "orphan", foreground[] = "foregroundDeletion";

struct deleter {
    struct registry *registry;
    struct table *table;
    const char *namespace_name, *name;
    const struct delete_options *opts;
    int64_t deadline_ms;
    struct object *old;
    struct object *result;
    bool is_gone;
    int64_t rev; /* of the write; 0 = none */
};

static void deleter_fini(struct deleter *d)
{
    object_unref(d->old);
    object_unref(d->result);
}

/* ---- preconditions ---- */

/* These name the kind where other conflicts name the resource. */
static int refuse_precondition(const struct deleter *d, struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static int refuse_precondition(const struct deleter *d, struct err *err, const char *fmt, ...)
{
    const struct kind *k = d->table->kind;
    va_list args;
    va_start(args, fmt);
    SCOPED_FREE char *why = xvasprintf(fmt, args);
    va_end(args);
    err_set(err, ERR_CONFLICT, "Operation cannot be fulfilled on %s%s%s \"%s\": %s", k->kind,
            k->group[0] ? "." : "", k->group, d->name, why);
    err_details(err, k->group, k->kind, d->name, NULL);
    return -ERR_CONFLICT;
}

static int check_preconditions(const struct deleter *d, struct err *err)
{
    const struct delete_options *o = d->opts;
    if (o->uid && strcmp(o->uid, d->old->uid) != 0)
        return refuse_precondition(
            d, err,
            "the UID in the precondition (%s) does not match the UID in record (%s). The object "
            "might have been deleted and then recreated",
            o->uid, d->old->uid);
    char rev[24];
    snprintf(rev, sizeof rev, "%" PRId64, d->old->rev);
    if (o->resource_version && strcmp(o->resource_version, rev) != 0)
        return refuse_precondition(
            d, err,
            "the ResourceVersion in the precondition (%s) does not match the ResourceVersion in "
            "record (%s). The object might have been modified",
            o->resource_version, rev);
    return 0;
}

/* ---- what becomes of it ---- */

/* Does the policy, or what is stored when there is none, ask for that finalizer of the garbage
 * collector? */
static bool wants_finalizer(const struct delete_options *o, const cJSON *stored, const char *name)
{
    bool is_orphan = name == orphan;
    if (o->orphan_dependents >= 0)
        return is_orphan && o->orphan_dependents == 1;
    if (o->propagation)
        return strcmp(o->propagation, is_orphan ? "Orphan" : "Foreground") == 0;
    return json_has_str(stored, name);
}

/* The finalizers that remain, as a new list; the stored one as it is when it names the same. */
static cJSON *remaining_finalizers(const struct delete_options *o, const cJSON *stored)
{
    bool wants_orphan = wants_finalizer(o, stored, orphan),
         wants_foreground = wants_finalizer(o, stored, foreground);
    if (wants_orphan == json_has_str(stored, orphan) &&
        wants_foreground == json_has_str(stored, foreground))
        return stored ? json_copy(stored) : json_array();
    cJSON *list = json_array();
    const cJSON *f;
    cJSON_ArrayForEach(f, stored)
    {
        if (cJSON_IsString(f) && strcmp(f->valuestring, orphan) != 0 &&
            strcmp(f->valuestring, foreground) != 0)
            json_push(list, json_copy(f));
    }
    if (wants_orphan)
        json_push(list, json_string(orphan));
    if (wants_foreground)
        json_push(list, json_string(foreground));
    return list;
}

/* Marks the object as terminating, once; a time that is later than the grace period's end is moved
 * to that, never one that is earlier. */
static void mark_terminating(cJSON *metadata, int64_t grace_s, int64_t now_unix_ms)
{
    const char *stored = json_str(metadata, "deletionTimestamp");
    int64_t at_ms, end_ms = now_unix_ms + grace_s * 1000;
    json_set_int(metadata, "deletionGracePeriodSeconds", grace_s);
    if (stored && clock_parse_rfc3339(stored, &at_ms) == 0 && at_ms <= end_ms)
        return;
    char text[CLOCK_TEXT_SIZE];
    clock_print_rfc3339(end_ms / 1000, text);
    json_set_str(metadata, "deletionTimestamp", text);
    if (!stored)
        json_set_int(metadata, "generation", json_i64_or(metadata, "generation", 0) + 1);
}

/* ---- one try: 0 = done, 1 = old was replaced by what is there now ---- */

static int delete_commit(struct deleter *d, const char *json, size_t len, struct err *err)
{
    SCOPED(store_kv_fini) struct store_kv current = {0};
    const struct delete_reason *reason = d->opts->reason;
    struct commit_beside beside = {.is_kept = true};
    if (reason) {
        beside.table = registry_table(d->registry, reason->kind);
        beside.namespace_name = reason->namespace_name;
        beside.name = reason->name;
        beside.seen_rev = reason->rev;
    }
    struct commit commit = {
        .registry = d->registry,
        .table = d->table,
        .op = "delete",
        .namespace_name = d->old->namespace_name,
        .name = d->old->name,
        .uid = d->old->uid,
        .json = json,
        .json_len = len,
        .seen_rev = d->old->rev,
        .beside = reason ? &beside : NULL,
        .fence = d->opts->fence,
        .deadline_ms = d->deadline_ms,
    };
    int rc = commit_run(&commit, &d->rev, &current, err);
    if (rc == COMMITTED)
        CRASH_POINT(DELETE_STORED);
    if (rc < 0 || rc == COMMITTED)
        return rc;
    if (rc == COMMIT_BESIDE_RACED)
        return refuse_conflict(d->table->kind, d->name, err, "%s \"%s\" has been modified",
                               reason->kind->kind, reason->name);
    struct object *now = NULL;
    rc = current_of_race(d->table, d->name, &current, &now, err);
    if (rc < 0)
        return rc;
    object_unref(d->old);
    d->old = now;
    return 1;
}

static int remove_object(struct deleter *d, struct err *err)
{
    int rc = d->opts->dry_run ? 0 : delete_commit(d, NULL, 0, err);
    if (rc == 0) {
        d->result = object_ref(d->old);
        d->is_gone = true;
    }
    return rc;
}

static int terminate_object(struct deleter *d, cJSON *tree, cJSON *take_finalizers, int64_t grace_s,
                            struct err *err)
{
    cJSON *metadata = json_get(tree, "metadata");
    if (take_finalizers->child) {
        json_set(metadata, "finalizers", take_finalizers);
    } else {
        json_remove(metadata, "finalizers");
        json_free(take_finalizers);
    }
    mark_terminating(metadata, grace_s, clock_unix_ms(d->registry->admit->clock));
    if (d->table->kind->holders)
        json_set_at(tree, "status.phase", json_string("Terminating"));
    size_t len;
    SCOPED_FREE char *json = object_print_stored(tree, &len);
    if (len == d->old->json_len && memcmp(json, d->old->json, len) == 0) {
        d->result = object_ref(d->old);
        return 0;
    }
    int rc = d->opts->dry_run ? 0 : delete_commit(d, json, len, err);
    if (rc != 0)
        return rc;
    int64_t rev = d->opts->dry_run ? d->old->rev : d->rev;
    return object_from_bytes(d->table->kind, steal(&json), len, rev, &d->result, err);
}

#define GRACE_S 30 /* of a Pod that says none. Source: Kubernetes' default of its spec */
/* So that its end is a time that clients can read. */
#define GRACE_MAX_S ((int64_t)INT32_MAX)

/* Seconds that whoever runs the object has to end it: what was asked for, else what it says itself;
 * none where nobody runs it, and never more than were given before. */
static int64_t grace_of(const struct deleter *d, const cJSON *tree)
{
    const char *phase = json_str_or(tree, "status.phase", "");
    bool is_over = strcmp(phase, "Succeeded") == 0 || strcmp(phase, "Failed") == 0;
    if (!d->table->kind->has_grace || is_over || !json_str_or(tree, "spec.nodeName", "")[0])
        return 0;
    int64_t own = json_i64_or(tree, "spec.terminationGracePeriodSeconds", GRACE_S);
    int64_t grace_s = d->opts->has_grace ? d->opts->grace_s : own > 0 ? own : 1;
    int64_t before = json_i64_or(tree, "metadata.deletionGracePeriodSeconds", grace_s);
    bool is_marked = json_str(tree, "metadata.deletionTimestamp") != NULL;
    grace_s = is_marked && before < grace_s ? before : grace_s;
    return grace_s < GRACE_MAX_S ? grace_s : GRACE_MAX_S;
}

static int delete_once(struct deleter *d, struct err *err)
{
    int rc = check_preconditions(d, err);
    if (rc < 0)
        return rc;
    SCOPED(json_free_p) cJSON *tree = object_tree(d->old);
    if ((rc = ask_guard(d->opts->guard, d->table->kind, tree, NULL, err)) < 0)
        return rc;
    cJSON *finalizers = remaining_finalizers(d->opts, json_at(tree, "metadata.finalizers"));
    int64_t grace_s = grace_of(d, tree);
    if (json_len(finalizers) > 0 || grace_s > 0 || object_is_held(d->table->kind, tree))
        return terminate_object(d, tree, finalizers, grace_s, err);
    json_free(finalizers);
    return remove_object(d, err);
}

/* ---- the loop ---- */

static int read_old(struct deleter *d, bool *ret_is_other, struct err *err)
{
    struct object *stored = NULL;
    int rc = current_stored(d->registry, d->table, "delete", d->namespace_name, d->name,
                            d->deadline_ms, &stored, err);
    if (rc < 0)
        return rc;
    *ret_is_other = !d->old || stored->rev != d->old->rev;
    object_unref(d->old);
    d->old = stored;
    return 0;
}

/* The first try works on the cached object; a refusal on its word, or that there is nothing to
 * write, is only believed when the store agrees. */
static int delete_loop(struct deleter *d, struct err *err)
{
    bool is_other,
        is_cached = current_cached(d->registry, d->table, d->namespace_name, d->name, &d->old) == 0;
    if (!is_cached && read_old(d, &is_other, err) < 0)
        return -(int)err->code;
    for (;;) {
        int rc = delete_once(d, err);
        bool is_refused = rc == -ERR_CONFLICT || rc == -ERR_FORBIDDEN;
        bool is_doubtful = is_cached && (is_refused || (rc == 0 && d->rev == 0));
        if (is_doubtful) {
            SCOPED(err_fini) struct err e = {0};
            if (read_old(d, &is_other, &e) < 0)
                return err_move(err, &e);
            rc = is_other ? 1 : rc;
        }
        if (rc <= 0)
            return rc;
        is_cached = d->is_gone = false;
        object_unref(d->result);
        d->result = NULL;
        if (clock_monotonic_ms(&clock_system) >= d->deadline_ms)
            return refuse_conflict(d->table->kind, d->name, err, "the object keeps being modified");
        err_fini(err);
    }
}

static int delete_run(struct deleter *d, struct err *err)
{
    SCOPED(err_fini) struct err e = {0};
    int rc = delete_loop(d, &e);
    return rc < 0 ? err_move(err, &e) : 0;
}

int registry_delete(struct registry *r, const struct kind *kind, const char *namespace_name,
                    const char *name, const struct delete_options *opts, struct object **ret,
                    bool *ret_deleted, struct err *err)
{
    SCOPED(deleter_fini)
    struct deleter d = {.registry = r,
                        .table = registry_table(r, kind),
                        .namespace_name = namespace_name ? namespace_name : "",
                        .name = name,
                        .opts = opts,
                        .deadline_ms = opts->deadline_ms};
    deadline_default(&d.deadline_ms);
    if (registry_wait_loaded(r, kind, err) < 0)
        return -ERR_UNAVAILABLE;
    int rc = delete_run(&d, err);
    if (rc < 0)
        return rc;
    commit_wait(r, d.rev, d.deadline_ms);
    *ret = steal(&d.result);
    *ret_deleted = d.is_gone;
    return 0;
}

/* ---- collections ---- */

/* The items one by one; the cache is waited for once, behind the last. */
int registry_delete_collection(struct registry *r, const struct list_request *list,
                               const struct delete_options *opts, struct list_result *ret,
                               struct err *err)
{
    SCOPED(list_result_fini) struct list_result found = {0};
    int64_t deadline_ms = opts->deadline_ms, rev = 0;
    deadline_default(&deadline_ms);
    int rc = registry_list(r, list, &found, err);
    for (size_t i = 0; rc == 0 && i < found.n; i++) {
        SCOPED(deleter_fini)
        struct deleter d = {.registry = r,
                            .table = registry_table(r, list->kind),
                            .namespace_name = found.objects[i]->namespace_name,
                            .name = found.objects[i]->name,
                            .opts = opts,
                            .deadline_ms = deadline_ms};
        rc = delete_run(&d, err);
        if (rc == -ERR_NOT_FOUND) {
            err_fini(err); /* gone already */
            rc = 0;
        }
        rev = d.rev > rev ? d.rev : rev;
    }
    commit_wait(r, rev, deadline_ms);
    if (rc == 0)
        *ret = steal(&found);
    return rc;
}
