/* The garbage collector. The index says whom to look at; whether an owner is there is asked of the
 * store itself, so a late index deletes nothing. Source: Kubernetes' garbage collection: an object
 * whose owners are all gone goes; orphan takes the references away instead; foregroundDeletion
 * waits for the dependents that block it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "reconcile/house_pass.h"
#include "reconcile/peek.h"

#define WAIT_MS 500   /* for dependents that take their time */
#define CHANGED_MS 10 /* one that changed while it was to be deleted: judge it again */
static const char orphan[] = "orphan", foreground[] = "foregroundDeletion";

/* ---- keys ---- */

static size_t kind_index(const struct kind *kind)
{
    size_t i = 0;
    while (kinds_served[i] != kind)
        i++;
    return i;
}

char *owners_key(const struct object *o)
{
    return xasprintf("%zu/%s/%s", kind_index(o->kind), o->namespace_name, o->name);
}

/* *ret_namespace is the caller's; the name's place in key is returned. */
static const char *split_key(const char *key, const struct kind **ret_kind, char **ret_namespace)
{
    const char *slash = strchr(key, '/');
    SCOPED_FREE char *index = xstrndup(key, (size_t)(slash - key));
    int64_t i = 0;
    (void)str_to_i64(index, &i);
    *ret_kind = kinds_served[i];
    return pass_key_split(slash + 1, ret_namespace);
}

/* ---- the index: by the uids of owners ---- */

static char **uids_of(const cJSON *refs)
{
    char **uids = NULL;
    const cJSON *ref;
    cJSON_ArrayForEach(ref, refs)
    {
        strv_add(&uids, xstrdup(json_str_or(ref, "uid", "")));
    }
    return uids;
}

void owners_note(struct links *owners, const struct object *object, bool is_delete,
                 void (*look)(void *ctx, const char *key), void *ctx)
{
    SCOPED(json_free_p) cJSON *refs = object_peek(object, "metadata", "ownerReferences");
    SCOPED_FREE char *key = owners_key(object);
    char **uids = is_delete ? NULL : uids_of(refs);
    bool has_owners = uids != NULL, has_news = links_set(owners, key, uids);
    if ((has_news && has_owners) || (!is_delete && object->is_terminating))
        look(ctx, key);
    char **keys = is_delete ? links_to(owners, object->uid) : NULL;
    for (size_t i = 0; keys && keys[i]; i++)
        look(ctx, keys[i]);
    strv_free(keys);
}

/* ---- owners as they are ---- */

enum owner_state { OWNER_THERE, OWNER_WAITING, OWNER_GONE };

static bool is_in_foreground(const struct object *o)
{
    SCOPED(json_free_p) cJSON *finalizers = object_peek(o, "metadata", "finalizers");
    return o->is_terminating && json_has_str(finalizers, foreground);
}

/* One that is deleted in the foreground waits for what it owns. Of a kind that is not served
 * nothing is known, so it counts as there. */
static int owner_state(const struct pass_env *env, const struct object *o, const cJSON *ref,
                       enum owner_state *ret, struct err *err)
{
    const char *version = json_str_or(ref, "apiVersion", ""), *slash = strchr(version, '/');
    SCOPED_FREE char *group = xstrndup(version, slash ? (size_t)(slash - version) : 0);
    const struct kind *kind = kind_find_by_kind(group, json_str_or(ref, "kind", ""));
    SCOPED(object_unref_p) struct object *owner = NULL;
    struct err e = {0};
    *ret = OWNER_THERE;
    if (!kind)
        return 0;
    int rc = registry_get(env->registry, kind, kind->is_cluster_scoped ? "" : o->namespace_name,
                          json_str_or(ref, "name", ""), (struct read_version){READ_LATEST, 0},
                          clock_monotonic_ms(env->clock) + PASS_TIMEOUT_MS, &owner, &e);
    if (rc < 0 && rc != -ERR_NOT_FOUND)
        return err_move(err, &e);
    err_fini(&e);
    if (!owner || strcmp(owner->uid, json_str_or(ref, "uid", "")) != 0)
        *ret = OWNER_GONE;
    else if (is_in_foreground(owner))
        *ret = OWNER_WAITING;
    return 0;
}

/* ---- changes ---- */

/* Takes references to these owners away. */
struct removal {
    char *const *uids; /* NULL-terminated */
};

static bool remove_references(void *ctx, cJSON *object)
{
    const struct removal *r = ctx;
    cJSON *refs = json_at(object, "metadata.ownerReferences");
    bool is_changed = false;
    for (cJSON *ref = refs ? refs->child : NULL, *next; ref; ref = next) {
        next = ref->next;
        if (!strv_has(r->uids, json_str_or(ref, "uid", "")))
            continue;
        json_remove_node(refs, ref);
        is_changed = true;
    }
    return is_changed;
}

static bool remove_finalizer(void *ctx, cJSON *object)
{
    return json_remove_str(json_at(object, "metadata.finalizers"), ctx);
}

static int drop_finalizer(const struct pass_env *env, const struct object *o, const char *name,
                          struct err *err)
{
    SCOPED_FREE char *copy = xstrdup(name);
    return house_forgive(house_change(env, o, remove_finalizer, copy, err), err);
}

static int drop_references(const struct pass_env *env, const struct object *o, char *const *uids,
                           struct err *err)
{
    struct removal removal = {uids};
    return house_forgive(house_change(env, o, remove_references, &removal, err), err);
}

/* Only as it was judged: who took it over meanwhile keeps it. */
static int delete_object(const struct pass_env *env, const struct object *o,
                         const char *propagation, struct loop_result *ret, struct err *err)
{
    char rev[24];
    snprintf(rev, sizeof rev, "%" PRId64, o->rev);
    struct pass_delete del = {.kind = o->kind,
                              .namespace_name = o->namespace_name,
                              .name = o->name,
                              .uid = o->uid,
                              .resource_version = rev,
                              .propagation = propagation};
    int rc = pass_delete(env, &del, err);
    if (rc == -ERR_CONFLICT)
        ret->again_after_ms = CHANGED_MS;
    return house_forgive(rc, err);
}

/* ---- what its owners ask for ---- */

/* What is owned goes with the last of its owners, itself in the foreground when one of them waits
 * for it and it owns something in turn; references to others that are gone go alone. */
static int follow_owners(const struct pass_env *env, struct links *owners, const struct object *o,
                         struct loop_result *ret, struct err *err)
{
    SCOPED(json_free_p) cJSON *refs = object_peek(o, "metadata", "ownerReferences");
    char **lost = NULL, **owned = NULL;
    size_t there = 0, waiting = 0;
    int rc = 0;
    const cJSON *ref;
    cJSON_ArrayForEach(ref, refs)
    {
        enum owner_state state;
        rc = owner_state(env, o, ref, &state, err);
        if (rc < 0)
            break;
        there += state == OWNER_THERE;
        waiting += state == OWNER_WAITING;
        if (state != OWNER_THERE)
            strv_add(&lost, xstrdup(json_str_or(ref, "uid", "")));
    }
    if (waiting > 0)
        owned = links_to(owners, o->uid);
    if (rc == 0 && lost && there == 0)
        rc = delete_object(env, o, owned ? "Foreground" : NULL, ret, err);
    else if (rc == 0 && lost)
        rc = drop_references(env, o, lost, err);
    strv_free(lost);
    strv_free(owned);
    return rc;
}

/* ---- finalizers of an owner ---- */

static bool blocks(const struct object *dependent, const char *owner_uid)
{
    SCOPED(json_free_p) cJSON *refs = object_peek(dependent, "metadata", "ownerReferences");
    const cJSON *ref;
    cJSON_ArrayForEach(ref, refs)
    {
        if (str_equal(json_str(ref, "uid"), owner_uid))
            return json_bool_or(ref, "blockOwnerDeletion", false);
    }
    return false;
}

static int each_dependent(const struct pass_env *env, struct links *owners,
                          const struct object *owner, bool is_orphaning, char *const *keys,
                          size_t *ret_blocking, struct loop_result *ret, struct err *err)
{
    char *const uids[] = {owner->uid, NULL};
    int rc = 0;
    for (; rc == 0 && keys && *keys; keys++) {
        const struct kind *kind;
        SCOPED_FREE char *namespace_name = NULL;
        const char *name = split_key(*keys, &kind, &namespace_name);
        SCOPED(object_unref_p) struct object *o = NULL;
        rc = pass_get(env, kind, namespace_name, name, &o, err);
        if (rc < 0 || !o)
            continue;
        if (is_orphaning) {
            rc = drop_references(env, o, uids, err);
            continue;
        }
        *ret_blocking += blocks(o, owner->uid);
        if (!o->is_terminating)
            rc = follow_owners(env, owners, o, ret, err);
    }
    return rc;
}

/* 1 = it has such a finalizer, and all that there is to do now is done. */
static int finalize(const struct pass_env *env, struct links *owners, const struct object *o,
                    struct loop_result *ret, struct err *err)
{
    SCOPED(json_free_p) cJSON *finalizers = object_peek(o, "metadata", "finalizers");
    bool is_orphaning = json_has_str(finalizers, orphan);
    size_t blocking = 0;
    if (!o->is_terminating || (!is_orphaning && !is_in_foreground(o)))
        return 0;
    char **keys = links_to(owners, o->uid);
    int rc = each_dependent(env, owners, o, is_orphaning, keys, &blocking, ret, err);
    strv_free(keys);
    if (rc == 0 && blocking > 0)
        ret->again_after_ms = WAIT_MS;
    else if (rc == 0)
        rc = drop_finalizer(env, o, is_orphaning ? orphan : foreground, err);
    return rc < 0 ? rc : 1;
}

/* ---- the pass ---- */

int house_owners_pass(const struct pass_env *env, struct links *owners, const char *key,
                      struct loop_result *ret, struct err *err)
{
    const struct kind *kind;
    SCOPED_FREE char *namespace_name = NULL;
    const char *name = split_key(key, &kind, &namespace_name);
    SCOPED(object_unref_p) struct object *o = NULL;
    int rc = pass_get(env, kind, namespace_name, name, &o, err);
    if (rc < 0 || !o)
        return rc;
    rc = finalize(env, owners, o, ret, err);
    return rc != 0 || o->is_terminating ? rc < 0 ? rc : 0 : follow_owners(env, owners, o, ret, err);
}
