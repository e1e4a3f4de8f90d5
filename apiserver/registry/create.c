/* POST: admission, then one transaction that wants the key absent. A generated name that is taken
 * is drawn again. A claim is bound in the same transaction when there is somebody for it. */
#include "apiserver/base/clock.h"
#include "apiserver/base/crash.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/registry/bind_try.h"
#include "apiserver/registry/cache.h"

#define NAME_ATTEMPTS 8 /* for a generated name. Source: docs/kubernetes-api.md 14.4 */

static int refuse_taken(const struct table *t, const char *name, const struct object *present,
                        bool is_generated, struct err *err)
{
    return refuse_exists(t->kind, name, present && present->is_terminating, is_generated, err);
}

/* The version that a client sent. A create may name none or 0, and a dry run any, since
 * kube-apiserver's store alone refuses one; what is no number at all is ignored, as upstream
 * does. */
static int check_version(const cJSON *object, const struct write_options *opts, struct err *err)
{
    uint64_t rev;
    if (opts->dry_run ||
        str_to_u64(json_str_or(object, "metadata.resourceVersion", ""), &rev) < 0 || rev == 0)
        return 0;
    return err_set(err, ERR_UNKNOWN, "resourceVersion should not be set on objects to be created");
}

static bool is_name_generated(const cJSON *object)
{
    return json_str_or(object, "metadata.name", "")[0] == '\0' &&
           json_str_or(object, "metadata.generateName", "")[0] != '\0';
}

struct creation {
    struct registry *registry;
    struct table *table;
    const char *namespace_name;
    const struct write_options *opts;
    int64_t deadline_ms;
    /* Of a taken name it is said that another may be drawn: at the last of many attempts, and at
     * the only one with a name that might have been drawn. */
    bool is_generated;
    const struct update_request *update; /* of what is not there; NULL = POST */
};

static int create_dry(const struct creation *c, const cJSON *object, char *take_json, size_t len,
                      struct object **ret, struct err *err)
{
    SCOPED_FREE char *json = take_json;
    SCOPED(object_unref_p) struct object *present = NULL;
    SCOPED(bind_try_fini) struct bind_try t;
    const struct kind *kind = c->table->kind;
    const char *name = json_str_or(object, "metadata.name", "");
    const struct read_version latest = {READ_LATEST, 0};
    bool may_bind = bind_try_begin(&t, c->registry, kind, c->namespace_name, object, NULL, true);
    int rc = registry_reach(c->registry, kind, "create", latest, c->deadline_ms, err);
    if (rc < 0)
        return rc;
    rc = current_cached(c->registry, c->table, c->namespace_name, name, &present);
    if (rc != -ERR_NOT_FOUND)
        return refuse_taken(c->table, name, present, c->is_generated, err);
    if (may_bind && bind_try_next(&t, object))
        return object_from_bytes(kind, steal(&t.claim_json), t.claim_len, 0, ret, err);
    return object_from_bytes(kind, steal(&json), len, 0, ret, err);
}

/* What is to be stored in one try: the object, or the claim as it is bound with its member. */
struct attempt {
    char **json; /* whose owner hands it on after success */
    size_t len;
    const struct commit_beside *beside;
};

/* 0 = stored, 1 = only the member was in the way. */
static int create_attempt(const struct creation *c, const cJSON *object, const struct attempt *a,
                          struct object **ret, struct err *err)
{
    SCOPED(store_kv_fini) struct store_kv current = {0};
    SCOPED(object_unref_p) struct object *present = NULL;
    const char *name = json_str_or(object, "metadata.name", "");
    struct commit commit = {
        .registry = c->registry,
        .table = c->table,
        .op = "create",
        .namespace_name = c->namespace_name,
        .name = name,
        .uid = json_str_or(object, "metadata.uid", ""),
        .json = *a->json,
        .json_len = a->len,
        .beside = a->beside,
        .fence = c->opts->fence,
        .deadline_ms = c->deadline_ms,
    };
    int64_t rev = 0;
    int rc = commit_run(&commit, &rev, &current, err);
    if (rc == COMMIT_RACED) {
        (void)current_of_race(c->table, name, &current, &present, NULL);
        return refuse_taken(c->table, name, present, c->is_generated, err);
    }
    if (rc != COMMITTED)
        return rc < 0 ? rc : 1;
    if (a->beside)
        CRASH_POINT(CLAIM_STORED);
    commit_wait(c->registry, rev, c->deadline_ms);
    return object_from_bytes(c->table->kind, steal(a->json), a->len, rev, ret, err);
}

/* A claim with the best member that nobody takes first. 0 = stored, 1 = not bound. */
static int create_bound(const struct creation *c, const cJSON *object, struct object **ret,
                        struct err *err)
{
    SCOPED(bind_try_fini) struct bind_try t;
    if (!bind_try_begin(&t, c->registry, c->table->kind, c->namespace_name, object, NULL, false))
        return 1;
    int rc = 1;
    while (rc == 1 && bind_try_next(&t, object)) {
        struct attempt a = {&t.claim_json, t.claim_len, &t.beside};
        CRASH_POINT(CLAIM_CHOSEN);
        rc = create_attempt(c, object, &a, ret, err);
        if (rc == 1)
            bind_try_lost(&t);
    }
    if (rc >= 0)
        bind_try_count(&t, "post", rc == 0);
    if (rc == 0)
        bind_try_won(&t);
    return rc;
}

static int create_for_real(const struct creation *c, const cJSON *object, char *take_json,
                           size_t len, struct object **ret, struct err *err)
{
    SCOPED_FREE char *json = take_json;
    int rc = create_bound(c, object, ret, err);
    if (rc <= 0)
        return rc;
    struct attempt plain = {&json, len, NULL};
    return create_attempt(c, object, &plain, ret, err);
}

/* What is known of the object once it is right, and before it is stored. */
static int check_admitted(const struct creation *c, cJSON *object, struct err *err)
{
    int rc = ask_guard(c->opts->guard, c->table->kind, NULL, object, err);
    if (rc < 0)
        return rc;
    return c->update ? c->update->may_create(c->update->ctx, err)
                     : check_version(object, c->opts, err);
}

/* Admission and storing of one tree, which is used up. */
static int create_once(const struct creation *c, cJSON *object, struct pairs *warnings,
                       struct object **ret, struct err *err)
{
    const struct write_options *opts = c->opts;
    struct admit_request request = {
        .kind = c->table->kind,
        .operation = ADMIT_CREATE,
        .is_system = opts->is_system,
        .is_patch = c->update && c->update->is_patch,
        .is_applied = c->update && c->update->is_applied,
        .namespace_name = c->namespace_name,
        .name = c->update ? c->update->name : NULL,
        .manager = opts->field_manager,
        .field_validation = opts->field_validation,
        .decode_findings = opts->decode_findings,
    };
    int rc = admit(c->registry->admit, &request, object, warnings, err);
    if (rc < 0 || (rc = check_admitted(c, object, err)) < 0)
        return rc;
    size_t len;
    char *json = object_print_stored(object, &len);
    return opts->dry_run ? create_dry(c, object, json, len, ret, err)
                         : create_for_real(c, object, json, len, ret, err);
}

int create_missing(const struct missing *m, cJSON *object, struct object **ret, struct err *err)
{
    const struct update_request *req = m->req;
    struct creation c = {.registry = m->registry,
                         .table = m->table,
                         .namespace_name = req->namespace_name ? req->namespace_name : "",
                         .opts = m->opts,
                         .deadline_ms = m->deadline_ms,
                         .update = req};
    int rc = create_once(&c, object, m->warnings, ret, err);
    if (rc != -ERR_ALREADY_EXISTS)
        return rc;
    err_fini(err);
    return 1;
}

int registry_create(struct registry *r, const struct kind *kind, const char *namespace_name,
                    cJSON *take_object, const struct write_options *opts, struct object **ret,
                    struct err *err)
{
    SCOPED(json_free_p) cJSON *original = take_object;
    struct creation c = {.registry = r,
                         .table = registry_table(r, kind),
                         .namespace_name = namespace_name ? namespace_name : "",
                         .opts = opts,
                         .deadline_ms = opts->deadline_ms};
    deadline_default(&c.deadline_ms);
    if (registry_wait_loaded(r, kind, err) < 0)
        return -ERR_UNAVAILABLE;
    c.is_generated = json_str_or(original, "metadata.generateName", "")[0] != '\0';
    if (!is_name_generated(original))
        return create_once(&c, original, opts->warnings, ret, err);
    int rc = -ERR_ALREADY_EXISTS;
    for (int attempt = 1; attempt <= NAME_ATTEMPTS && rc == -ERR_ALREADY_EXISTS; attempt++) {
        SCOPED(json_free_p) cJSON *object = json_copy(original);
        c.is_generated = attempt == NAME_ATTEMPTS;
        rc = create_once(&c, object, attempt == 1 ? opts->warnings : NULL, ret, err);
    }
    return rc;
}
