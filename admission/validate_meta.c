/* Validation of metadata. On an update kube-apiserver asks several of its layers, and each reports;
 * clients see a cause as often as it was found, so we repeat it as often. Source:
 * docs/kubernetes-api.md 13.6, 14.3 to 14.6. */
#include "admission/names.h"
#include "admission/steps.h"
#include "apiserver/base/duration.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/goprint.h"

#define ANNOTATIONS_MAX ((size_t)256 << 10) /* bytes of keys and values together */
#define UPDATE_LAYERS 3 /* that look at labels, annotations and owners on an update */
#define UPDATE_PAIR 2   /* that look at what is immutable, and at added finalizers */

static void refuse(struct err *causes, const char *field, const cJSON *value, const char *text)
{
    SCOPED(buf_fini) struct buf shown = {0};
    goprint_bad_value(value, &shown);
    err_cause(causes, "FieldValueInvalid", field, "Invalid value: %s: %s", buf_cstr(&shown), text);
}

/* ---- labels and annotations ---- */

static void check_labels(const cJSON *labels, struct err *causes)
{
    const cJSON *l;
    cJSON_ArrayForEach(l, labels)
    {
        name_check_label_key(l->string, "metadata.labels", causes);
        if (cJSON_IsString(l))
            name_check_label_value(l->valuestring, "metadata.labels", causes);
    }
}

static void check_annotations(const cJSON *annotations, struct err *causes)
{
    size_t bytes = 0;
    const cJSON *a;
    cJSON_ArrayForEach(a, annotations)
    {
        name_check_annotation_key(a->string, "metadata.annotations", causes);
        bytes += strlen(a->string) + (cJSON_IsString(a) ? strlen(a->valuestring) : 0);
    }
    if (bytes > ANNOTATIONS_MAX)
        err_cause(causes, "FieldValueTooLong", "metadata.annotations",
                  "Too long: may not be more than %zu bytes", ANNOTATIONS_MAX);
}

/* Those that this server acts on. */
static void check_durations(const struct kind *kind, const cJSON *annotations, struct err *causes)
{
    int64_t ms;
    for (const struct duration_annotation *d = kind->durations; d && d->key; d++) {
        const cJSON *value = json_get(annotations, d->key);
        if (!cJSON_IsString(value) ||
            (duration_parse_ms(value->valuestring, &ms) == 0 && ms >= d->min_ms && ms <= d->max_ms))
            continue;
        SCOPED_FREE char *field = xasprintf("metadata.annotations[%s]", d->key);
        SCOPED_FREE char *text = xasprintf("must be a duration %s", d->range);
        refuse(causes, field, value, text);
    }
}

/* ---- owners ---- */

/* As Go prints its struct. */
static cJSON *owner_as_go(const cJSON *owner)
{
    static const char *const order[] = {"apiVersion", "kind",       "name",
                                        "uid",        "controller", "blockOwnerDeletion"};
    cJSON *o = json_object();
    for (size_t i = 0; i < ARRAY_LEN(order); i++) {
        const cJSON *member = json_get(owner, order[i]);
        if (member)
            json_set(o, order[i], json_copy(member));
        else if (i < 4)
            json_set_str(o, order[i], "");
    }
    return o;
}

static void require(const cJSON *owner, const char *name, const char *path, struct err *causes)
{
    if (json_str_or(owner, name, "")[0])
        return;
    SCOPED_FREE char *field = xasprintf("%s.%s", path, name);
    err_cause(causes, "FieldValueRequired", field, "Required value: must not be empty");
}

static void check_owner_version(const cJSON *owner, const char *path, struct err *causes)
{
    const char *version = json_str_or(owner, "apiVersion", "");
    const char *slash = strchr(version, '/');
    SCOPED_FREE char *field = xasprintf("%s.apiVersion", path);
    if (version[0] == '\0')
        err_cause(causes, "FieldValueRequired", field, "Required value: must not be empty");
    else if (slash && (slash[1] == '\0' || strchr(slash + 1, '/')))
        refuse(causes, field, json_get(owner, "apiVersion"),
               "must be <group>/<version> or <version>");
}

static void check_owner(const cJSON *owner, size_t i, struct err *causes)
{
    SCOPED_FREE char *path = xasprintf("metadata.ownerReferences[%zu]", i);
    check_owner_version(owner, path, causes);
    require(owner, "kind", path, causes);
    require(owner, "name", path, causes);
    require(owner, "uid", path, causes);
    if (strcmp(json_str_or(owner, "apiVersion", ""), "v1") == 0 &&
        strcmp(json_str_or(owner, "kind", ""), "Event") == 0) {
        SCOPED(json_free_p) cJSON *shown = owner_as_go(owner);
        refuse(causes, path, shown, "/v1, Kind=Event is disallowed from being an owner");
    }
}

/* The references are shown as a Go struct prints: their members in its order, not sorted. */
static void refuse_controllers(const cJSON *owners, const cJSON *first, const cJSON *other,
                               struct err *causes)
{
    SCOPED(json_free_p) cJSON *list = json_array();
    SCOPED(buf_fini) struct buf shown = {0};
    const cJSON *o;
    cJSON_ArrayForEach(o, owners)
    {
        json_push(list, owner_as_go(o));
    }
    json_print(list, &shown);
    err_cause(causes, "FieldValueInvalid", "metadata.ownerReferences",
              "Invalid value: %s: Only one reference can have Controller set to true. Found "
              "\"true\" in references for "
              "%s/%s and %s/%s",
              buf_cstr(&shown), json_str_or(first, "kind", ""), json_str_or(first, "name", ""),
              json_str_or(other, "kind", ""), json_str_or(other, "name", ""));
}

#define CONTROLLERS_SAID_MAX 3 /* each such text shows the whole list */

static void check_owners(const cJSON *owners, struct err *causes)
{
    const cJSON *owner, *controller = NULL;
    size_t i = 0, said = 0;
    cJSON_ArrayForEach(owner, owners)
    {
        check_owner(owner, i++, causes);
        if (!json_bool_or(owner, "controller", false))
            continue;
        if (controller && said++ < CONTROLLERS_SAID_MAX)
            refuse_controllers(owners, controller, owner, causes);
        controller = controller ? controller : owner;
    }
}

/* ---- finalizers ---- */

static void check_finalizers(const cJSON *finalizers, struct err *causes)
{
    const cJSON *f;
    cJSON_ArrayForEach(f, finalizers)
    {
        if (cJSON_IsString(f))
            name_check_label_key(f->valuestring, "metadata.finalizers", causes);
    }
    if (json_has_str(finalizers, "orphan") && json_has_str(finalizers, "foregroundDeletion"))
        refuse(causes, "metadata.finalizers", finalizers,
               "finalizer orphan and foregroundDeletion cannot be both set");
}

/* While an object is on its way out its finalizers may only get fewer. */
static void check_added_finalizers(const cJSON *stored, const cJSON *finalizers, struct err *causes)
{
    SCOPED(pairs_fini) struct pairs added = {0};
    const cJSON *f;
    cJSON_ArrayForEach(f, finalizers)
    {
        if (cJSON_IsString(f) && !json_has_str(stored, f->valuestring) &&
            !pairs_get(&added, f->valuestring))
            pairs_add(&added, f->valuestring, "");
    }
    if (added.n == 0)
        return;
    qsort(added.v, added.n, sizeof *added.v, str_cmp_ptr); /* by name */
    SCOPED(buf_fini) struct buf list = {0};
    for (size_t i = 0; i < added.n; i++) {
        buf_puts(&list, i ? ", " : "");
        goprint_quoted(added.v[i].name, &list);
    }
    for (int i = 0; i < UPDATE_PAIR; i++)
        err_cause(causes, "FieldValueForbidden", "metadata.finalizers",
                  "Forbidden: no new finalizers can be added if the object is being deleted, found "
                  "new finalizers "
                  "[]string{%s}",
                  buf_cstr(&list));
}

/* ---- what cannot be changed ---- */

static bool is_same_value(const cJSON *a, const cJSON *b)
{
    int64_t x, y;
    bool are_times = cJSON_IsString(a) && cJSON_IsString(b) &&
                     clock_parse_rfc3339(a->valuestring, &x) == 0 &&
                     clock_parse_rfc3339(b->valuestring, &y) == 0;
    return are_times ? x == y : json_equal(a, b);
}

static void check_immutable(const struct admission *a, struct err *causes)
{
    static const char *const names[] = {"uid", "deletionTimestamp", "deletionGracePeriodSeconds"};
    const cJSON *metadata = metadata_of(a), *stored = json_get(a->req->old, "metadata");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const cJSON *value = json_get(metadata, names[i]);
        if (!value || is_same_value(value, json_get(stored, names[i])))
            continue;
        SCOPED_FREE char *field = xasprintf("metadata.%s", names[i]);
        for (int n = 0; n < UPDATE_PAIR; n++)
            refuse(causes, field, value, "field is immutable");
    }
}

/* ---- the whole ---- */

static void check_name(const struct kind *kind, const cJSON *metadata, struct err *causes)
{
    const char *name = json_str_or(metadata, "name", ""),
               *base = json_str_or(metadata, "generateName", "");
    if (base[0])
        name_check_object(base, true, kind->name_form, "metadata.generateName", causes);
    if (name[0])
        name_check_object(name, false, kind->name_form, "metadata.name", causes);
    else
        err_cause(causes, "FieldValueRequired", "metadata.name",
                  "Required value: name or generateName is required");
}

static void check_layer(const struct admission *a, const cJSON *metadata, struct err *causes)
{
    for (size_t i = 0; i < a->manager_causes.n_causes; i++)
        err_cause(causes, a->manager_causes.causes[i].reason, a->manager_causes.causes[i].field,
                  "%s", a->manager_causes.causes[i].message);
    check_labels(json_get(metadata, "labels"), causes);
    check_annotations(json_get(metadata, "annotations"), causes);
    check_owners(json_get(metadata, "ownerReferences"), causes);
}

void metadata_validate(const struct admission *a, struct err *causes)
{
    const cJSON *metadata = metadata_of(a), *stored = json_get(a->req->old, "metadata");
    const cJSON *finalizers = json_get(metadata, "finalizers");
    check_finalizers(finalizers, causes);
    for (int i = 0; i < (a->is_update ? UPDATE_LAYERS : 1); i++)
        check_layer(a, metadata, causes);
    check_durations(a->req->kind, json_get(metadata, "annotations"), causes);
    if (!a->is_update) {
        check_name(a->req->kind, metadata, causes);
        return;
    }
    check_immutable(a, causes);
    if (json_get(stored, "deletionTimestamp"))
        check_added_finalizers(json_get(stored, "finalizers"), finalizers, causes);
}
