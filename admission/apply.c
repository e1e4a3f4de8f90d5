/* One apply; see apply.h. Source of the order: structured-merge-diff's merge.Updater.Apply and the
 * chain of apimachinery's field managers around it. */
#include "admission/apply.h"

#include <string.h>

#include "admission/apply_parts.h"
#include "admission/managers.h"
#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"

/* ---- the body ---- */

static const char *go_type(const cJSON *node)
{
    return cJSON_IsString(node)   ? "string"
           : cJSON_IsNumber(node) ? "number"
           : cJSON_IsBool(node)   ? "bool"
                                  : "array";
}

/* A body that is empty or null is an object without anything. */
static int check_map(const cJSON *patch, struct err *err)
{
    if (cJSON_IsObject(patch) || cJSON_IsNull(patch))
        return 0;
    return err_set(err, ERR_BAD_REQUEST,
                   "error decoding patch: error unmarshaling JSON: while decoding JSON: json: "
                   "cannot unmarshal %s into Go value of type map[string]interface {}",
                   go_type(patch));
}

/* group/version, Kind=kind as Go prints it: a version that is none counts as nothing at all. */
static char *type_text(const cJSON *object)
{
    const char *version = json_str_or(object, "apiVersion", ""), *slash = strchr(version, '/');
    if (!*version || (slash && strchr(slash + 1, '/')))
        return xasprintf("/, Kind=%s", *version ? "" : json_str_or(object, "kind", ""));
    return xasprintf("%s%s, Kind=%s", slash ? "" : "/", version, json_str_or(object, "kind", ""));
}

int apply_check_type(const cJSON *patch, const char *version, const char *kind, struct err *err)
{
    if (check_map(patch, err) < 0)
        return -ERR_BAD_REQUEST;
    if (strcmp(json_str_or(patch, "apiVersion", ""), version) == 0 &&
        strcmp(json_str_or(patch, "kind", ""), kind) == 0)
        return 0;
    SCOPED_FREE char *given = type_text(patch);
    return err_set(err, ERR_BAD_REQUEST, "invalid object type: %s", given);
}

/* Go reads the list as nothing unless all its items are objects. */
int apply_check_managers(const cJSON *patch, struct err *err)
{
    const cJSON *list = json_at(patch, "metadata.managedFields"), *item;
    bool is_list = cJSON_IsArray(list);
    cJSON_ArrayForEach(item, list) is_list &= cJSON_IsObject(item);
    return is_list ? err_set(err, ERR_BAD_REQUEST, "metadata.managedFields must be nil") : 0;
}

int apply_check_fits(const cJSON *tree, const struct shape *shape, const char *what,
                     bool may_repeat, struct err *err)
{
    SCOPED(buf_fini) struct buf why = {0};
    if (merge_fits(tree, shape, may_repeat, &why))
        return 0;
    SCOPED_FREE char *type = type_text(tree);
    return err_set(err, ERR_UNKNOWN, "failed to create typed %s object (%s/%s; %s): %s", what,
                   json_str_or(tree, "metadata.namespace", ""),
                   json_str_or(tree, "metadata.name", ""), type, buf_cstr(&why));
}

/* ---- the state of one apply ---- */

struct applying {
    const struct apply *a;
    const cJSON *live, *patch;
    const struct shape *shape;
    struct managers m;
    struct manager_id id;
    const struct fieldset *reset;
    const struct fieldset *last, *set; /* of the manager: before, now */
    char now[CLOCK_TEXT_SIZE];
    cJSON *merged; /* owned */
};

static void applying_fini(struct applying *s)
{
    managers_fini(&s->m);
    json_free(s->merged);
}

static int read_managers(struct applying *s, struct err *err)
{
    if (managers_read(&s->m, json_at(s->live, "metadata.managedFields"), false) == 0 &&
        managers_know_version(&s->m, s->id.version))
        return 0;
    return err_set(err, ERR_UNKNOWN, "failed to decode managed fields");
}

/* What was there before anybody applied belongs to somebody, so that it is not overwritten
 * unseen. */
static void record_before(struct applying *s)
{
    const struct manager_id before = {
        .name = "before-first-apply", .version = s->id.version, .subresource = s->id.subresource};
    struct comparison c;
    if (s->m.n > 0)
        return;
    merge_compare(&s->m.arena, NULL, s->live, s->shape, &c);
    managers_record(&s->m, &before, &c, s->reset, s->now);
}

/* ---- what is left out now ---- */

static const struct fieldset *leaves(struct applying *s, const struct fieldset *without)
{
    return merge_named(&s->m.arena, merge_leaves(&s->m.arena, s->merged, s->shape, without),
                       s->shape);
}

static const struct fieldset *owned_by_all(struct applying *s)
{
    const struct fieldset *all = NULL;
    for (size_t i = 0; i < s->m.n; i++)
        all = fieldset_union(&s->m.arena, all, s->m.v[i].fields);
    return merge_named(&s->m.arena, all, s->shape);
}

/* Takes from merged what the manager applied before, unless somebody owns it now or owns something
 * inside of it. What nobody owns stays where its parent stays. Source: merge.Updater.prune. */
static void prune(struct applying *s)
{
    struct arena *a = &s->m.arena;
    if (!s->last)
        return;
    const struct fieldset *last = merge_named(a, s->last, s->shape), *all = leaves(s, NULL);
    const struct fieldset *kept = fieldset_union(a, leaves(s, last), owned_by_all(s));
    const struct fieldset *pruned = leaves(s, fieldset_difference(a, all, kept));
    const struct fieldset *gone =
        fieldset_intersection(a, fieldset_difference(a, all, pruned), last);
    if (!gone)
        return;
    cJSON *rest = merge_without(a, s->merged, s->shape, gone);
    json_free(s->merged);
    s->merged = rest;
}

/* ---- whose fields change ---- */

/* Others lose what changes; refused unless that is wanted. */
static int settle(struct applying *s, const struct comparison *c, struct err *err)
{
    struct arena *a = &s->m.arena;
    const struct fieldset *changed =
        fieldset_exclude(a, fieldset_union(a, c->modified, c->added), s->reset);
    const struct fieldset *removed = fieldset_exclude(a, c->removed, s->reset);
    const struct manager *self = managers_find(&s->m, &s->id);
    struct conflicts conflicts = {.arena = a};
    for (size_t i = 0; i < s->m.n; i++)
        if (&s->m.v[i] != self)
            conflicts_add(&conflicts, &s->m.v[i],
                          fieldset_intersection(a, s->m.v[i].fields, changed));
    if (!s->a->force && strcmp(s->a->manager, LAST_APPLIED_MANAGER) == 0)
        last_applied_allow(&conflicts, s->live, s->shape);
    if (!s->a->force && conflicts_refuse(&conflicts, s->id.version, err) < 0)
        return -ERR_CONFLICT;
    const struct fieldset *lost = fieldset_union(a, changed, removed);
    for (size_t i = 0; i < s->m.n; i++)
        if (&s->m.v[i] != self)
            s->m.v[i].fields = fieldset_difference(a, s->m.v[i].fields, lost);
    return 0;
}

/* Without a change of the object an old time stays, and a new entry has none. */
static void finish_entry(struct applying *s)
{
    struct manager *self = managers_find(&s->m, &s->id);
    self->fields = fieldset_difference(&s->m.arena, self->fields, managers_unowned_fields());
    if (!json_equal(s->live, s->merged))
        self->time = s->now;
    managers_drop_empty(&s->m);
}

void apply_set_managers(struct managers *m, cJSON *object)
{
    SCOPED(buf_fini) struct buf text = {0};
    cJSON *list = NULL, *metadata = json_ensure_object(object, "metadata");
    json_remove(metadata, "managedFields");
    managers_print(m, &text);
    if (m->n > 0 && json_parse(buf_cstr(&text), text.len, NULL, &list, NULL) == 0)
        json_set(metadata, "managedFields", list);
}

/* ---- the order ---- */

static int check(struct applying *s, struct err *err)
{
    int rc = read_managers(s, err);
    if (rc < 0 || (rc = apply_check_managers(s->patch, err)) < 0 ||
        (rc = apply_check_fits(s->patch, s->shape, "patch", false, err)) < 0)
        return rc;
    return apply_check_fits(s->live, s->shape, "live", true, err);
}

static int run(struct applying *s, cJSON **ret, struct err *err)
{
    struct comparison c;
    int rc = check(s, err);
    if (rc < 0)
        return rc;
    record_before(s);
    managers_adapt(&s->m, s->shape);
    s->merged = merge_apply(&s->m.arena, s->live, s->patch, s->shape);
    s->set = fieldset_exclude(&s->m.arena, merge_leaves(&s->m.arena, s->patch, s->shape, NULL),
                              s->reset);
    struct manager *self = managers_get(&s->m, &s->id);
    s->last = self->fields;
    self->fields = s->set;
    self->version = s->id.version;
    prune(s);
    merge_compare(&s->m.arena, s->live, s->merged, s->shape, &c);
    rc = settle(s, &c, err);
    if (rc < 0)
        return rc;
    finish_entry(s);
    if (strcmp(s->a->manager, LAST_APPLIED_MANAGER) == 0)
        last_applied_renew(s->merged, s->patch);
    apply_set_managers(&s->m, s->merged);
    *ret = steal(&s->merged);
    return 0;
}

int apply_run(const struct apply *a, const cJSON *patch, const cJSON *live, cJSON **ret,
              struct err *err)
{
    const struct kind *k = a->kind;
    if (strcmp(a->subresource, "scale") == 0)
        return apply_run_scale(a, patch, live, ret, err);
    SCOPED_FREE char *version = kind_api_version(k);
    SCOPED(json_free_p) cJSON *nothing = NULL;
    SCOPED(applying_fini)
    struct applying s = {.a = a,
                         .live = live,
                         .patch = patch,
                         .shape = k->shape,
                         .id = {a->manager, version, a->subresource, .is_applier = true}};
    int rc = apply_check_type(patch, version, k->kind, err);
    if (rc < 0)
        return rc;
    if (!live) {
        nothing = json_object();
        json_set_str(nothing, "apiVersion", version);
        json_set_str(nothing, "kind", k->kind);
        s.live = nothing;
    }
    clock_print_rfc3339(a->now_unix_s, s.now);
    s.reset = managers_reset_fields(&s.m.arena, k, a->subresource);
    return run(&s, ret, err);
}
