/* What is not the client's to set: system fields, the status where it has an endpoint of its own,
 * generation; and what is tidied silently: names drawn, owners named twice. Source:
 * docs/kubernetes-api.md 14, 15, 17, 19. */
#include "admission/steps.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"

#define GENERATED_BASE_MAX 58 /* bytes kept of generateName */
#define GENERATED_SUFFIX 5    /* characters drawn */

/* ---- status ---- */

/* The status endpoint takes status alone and leaves all else as it is stored, the metadata of the
 * body included. */
static void take_only_status(struct admission *a)
{
    cJSON *status = json_detach(a->object, "status");
    cJSON *version = json_detach(metadata_of(a), "resourceVersion");
    while (a->object->child)
        json_remove(a->object, a->object->child->string);
    const cJSON *member;
    cJSON_ArrayForEach(member, a->req->old)
    {
        if (strcmp(member->string, "status") != 0)
            json_set(a->object, member->string, json_copy(member));
    }
    if (status)
        json_set(a->object, "status", status);
    if (version)
        json_set(metadata_of(a), "resourceVersion", version);
}

int step_status(struct admission *a, struct err *err)
{
    (void)err;
    if (!a->req->kind->has_status)
        return 0;
    if (!a->is_main) {
        take_only_status(a);
        return 0;
    }
    if (a->req->is_system)
        return 0; /* the reconciler writes metadata and status of one pass at once */
    json_remove(a->object, "status");
    const cJSON *stored = a->is_update ? json_get(a->req->old, "status") : NULL;
    if (stored)
        json_set(a->object, "status", json_copy(stored));
    return 0;
}

/* ---- system fields ---- */

static void set_created(struct admission *a, cJSON *metadata)
{
    static const char *const wiped[] = {"uid", "creationTimestamp", "deletionTimestamp",
                                        "deletionGracePeriodSeconds", "generation"};
    char uid[RAND_UUID_SIZE], now[CLOCK_TEXT_SIZE];
    for (size_t i = 0; i < ARRAY_LEN(wiped); i++)
        json_remove(metadata, wiped[i]);
    rand_uuid(a->env->randomness, uid);
    clock_print_rfc3339(clock_unix_s(a->env->clock), now);
    json_set_str(metadata, "uid", uid);
    json_set_str(metadata, "creationTimestamp", now);
    json_set_int(metadata, "generation", 1);
}

/* The stored value wins; with only_absent, what the client sent stays for validation to judge. */
static void keep_stored(const struct admission *a, cJSON *metadata, const char *name,
                        bool only_absent)
{
    const cJSON *stored = json_get(json_get(a->req->old, "metadata"), name);
    if (only_absent && json_get(metadata, name))
        return;
    json_remove(metadata, name);
    if (stored)
        json_set(metadata, name, json_copy(stored));
}

static void set_stored(const struct admission *a, cJSON *metadata)
{
    static const char *const forced[] = {"name", "namespace", "creationTimestamp", "generation"};
    static const char *const immutable[] = {"uid", "deletionTimestamp",
                                            "deletionGracePeriodSeconds"};
    if (json_str_or(metadata, "uid", "")[0] == '\0')
        json_remove(metadata, "uid");
    if (json_at(a->req->old, "metadata.deletionTimestamp"))
        json_remove(metadata, "deletionTimestamp"); /* a time once set is not looked at */
    for (size_t i = 0; i < ARRAY_LEN(forced); i++)
        keep_stored(a, metadata, forced[i], false);
    for (size_t i = 0; i < ARRAY_LEN(immutable); i++)
        keep_stored(a, metadata, immutable[i], true);
}

/* Go prints no empty members of metadata, so they are no change either. */
static void drop_empty(cJSON *metadata)
{
    for (cJSON *m = metadata->child, *next; m; m = next) {
        next = m->next;
        bool is_empty = (cJSON_IsObject(m) || cJSON_IsArray(m)) && !m->child;
        if (is_empty || (cJSON_IsString(m) && m->valuestring[0] == '\0'))
            json_remove(metadata, m->string);
    }
}

int step_tidy(struct admission *a, struct err *err)
{
    (void)err;
    json_remove(metadata_of(a), "selfLink");
    drop_empty(metadata_of(a));
    return 0;
}

int step_created(struct admission *a, struct err *err)
{
    (void)err;
    set_created(a, metadata_of(a));
    return 0;
}

int step_stored(struct admission *a, struct err *err)
{
    (void)err;
    set_stored(a, metadata_of(a));
    return 0;
}

int step_generate_name(struct admission *a, struct err *err)
{
    (void)err;
    cJSON *metadata = metadata_of(a);
    const char *base = json_str_or(metadata, "generateName", "");
    if (json_str_or(metadata, "name", "")[0] || base[0] == '\0')
        return 0;
    char suffix[GENERATED_SUFFIX + 1];
    rand_name_suffix(a->env->randomness, suffix, GENERATED_SUFFIX);
    SCOPED_FREE char *name = xasprintf("%.*s%s", GENERATED_BASE_MAX, base, suffix);
    json_set_str(metadata, "name", name);
    return 0;
}

/* ---- generation ---- */

/* A member of a that counts for generation and that b has not or has otherwise. */
static bool has_other(const cJSON *a, const cJSON *b, bool status_counts)
{
    const cJSON *member;
    cJSON_ArrayForEach(member, a)
    {
        bool counts = strcmp(member->string, "metadata") != 0 &&
                      (status_counts || strcmp(member->string, "status") != 0);
        if (counts && !json_equal(member, json_get(b, member->string)))
            return true;
    }
    return false;
}

/* Anything differs but metadata, and status where it has an endpoint of its own. */
static bool moves_generation(const struct admission *a)
{
    bool status_counts = !a->req->kind->has_status;
    return has_other(a->object, a->req->old, status_counts) ||
           has_other(a->req->old, a->object, status_counts);
}

int step_generation(struct admission *a, struct err *err)
{
    (void)err;
    cJSON *metadata = metadata_of(a);
    if (a->is_main && moves_generation(a))
        json_set_int(metadata, "generation",
                     json_i64_or(a->req->old, "metadata.generation", 0) + 1);
    return 0;
}

/* ---- owners ---- */

static bool is_earlier_equal(const cJSON *list, const cJSON *item)
{
    for (const cJSON *o = list->child; o && o != item; o = o->next)
        if (json_equal(o, item))
            return true;
    return false;
}

#define OWNERS_COMPARED_MAX 1000 /* comparing each with each must stay cheap */

/* The same reference twice is kept once, with a warning that names each uid as often as it was
 * dropped. */
int step_owners(struct admission *a, struct err *err)
{
    (void)err;
    cJSON *owners = json_get(metadata_of(a), "ownerReferences");
    if (!a->is_main || !cJSON_IsArray(owners) || json_len(owners) > OWNERS_COMPARED_MAX)
        return 0;
    SCOPED(buf_fini) struct buf uids = {0};
    cJSON *kept = json_array();
    const cJSON *o;
    cJSON_ArrayForEach(o, owners)
    {
        if (is_earlier_equal(owners, o))
            buf_printf(&uids, "%s%s", uids.len ? ", " : "", json_str_or(o, "uid", ""));
        else
            json_push(kept, json_copy(o));
    }
    json_set(metadata_of(a), "ownerReferences", kept);
    if (uids.len > 0)
        warn(a,
             ".metadata.ownerReferences contains duplicate entries%s; API server dedups owner "
             "references in 1.20+, and "
             "may reject such requests as early as 1.24; please fix your requests; duplicate "
             "UID(s) observed: %s",
             a->req->is_patch ? " after mutating admission happens" : "", buf_cstr(&uids));
    return 0;
}

/* ---- finalizers ---- */

/* New finalizers without a path are allowed, but may meet another's of the same name. */
int step_finalizer_warnings(struct admission *a, struct err *err)
{
    (void)err;
    const cJSON *stored = json_at(a->req->old, "metadata.finalizers"), *f;
    cJSON_ArrayForEach(f, json_get(metadata_of(a), "finalizers"))
    {
        static const char *const known[] = {"orphan", "foregroundDeletion", "kubernetes"};
        bool is_fine = !cJSON_IsString(f) || strchr(f->valuestring, '/') ||
                       json_has_str(stored, f->valuestring);
        for (size_t i = 0; i < ARRAY_LEN(known) && !is_fine; i++)
            is_fine = strcmp(f->valuestring, known[i]) == 0;
        if (is_fine)
            continue;
        warn(a,
             "metadata.finalizers: \"%s\": prefer a domain-qualified finalizer name %sto avoid "
             "accidental conflicts "
             "with other finalizer writers",
             f->valuestring, strchr(f->valuestring, '.') ? "including a path (/) " : "");
    }
    return 0;
}
