/* Who owns replicas when a Scale is written: of the parent's managers those that own its replicas
 * count, as managers of the Scale. Source: docs/kubernetes-api.md 20, 28.8; apimachinery's
 * ScaleHandler. What it loses there (an owner's entry twice in the list) is kept here. */
#include <string.h>

#include "admission/apply_parts.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "openapi/kinds/apimachinery.h"

#define SCALE_VERSION "autoscaling/v1"

/* spec.replicas as a set. */
static const struct fieldset *replicas_field(struct arena *arena, const struct kind *kind)
{
    enum { STEPS_MAX = 8 };
    const char *names[STEPS_MAX + 1] = {NULL};
    char *rest = arena_strdup(arena, kind->scale->spec_replicas), *name;
    for (size_t i = 0; i < STEPS_MAX && (name = strsep(&rest, ".")); i++)
        names[i] = name;
    return fieldset_of_path(arena, names);
}

/* The old owners lose the field; nobody gets it when the number is 0, which a Scale does not
 * say. */
static void hand_over(struct managers *m, const struct manager_id *writer,
                      const struct fieldset *field, bool is_said)
{
    for (size_t i = 0; i < m->n; i++)
        m->v[i].fields = fieldset_difference(&m->arena, m->v[i].fields, field);
    if (is_said) {
        struct manager *entry = managers_get(m, writer);
        entry->fields = fieldset_union(&m->arena, entry->fields, field);
        entry->time = NULL;
    }
    managers_drop_empty(m);
}

static bool is_owned(const struct managers *m, const struct fieldset *field)
{
    struct arena scratch = {0};
    bool is = false;
    for (size_t i = 0; i < m->n && !is; i++)
        is = fieldset_intersection(&scratch, m->v[i].fields, field) != NULL;
    arena_fini(&scratch);
    return is;
}

void scale_record(struct managers *m, const struct kind *kind, const char *writer,
                  const char *version, int64_t before, int64_t after)
{
    const struct manager_id id = {.name = writer, .version = version, .subresource = "scale"};
    const struct fieldset *field = replicas_field(&m->arena, kind);
    if (before != after && is_owned(m, field))
        hand_over(m, &id, field, after != 0);
}

/* ---- apply ---- */

static int check_place(const struct apply *a, const cJSON *patch, struct err *err)
{
    const char *name = json_str_or(patch, "metadata.name", ""),
               *namespace_name = json_str_or(patch, "metadata.namespace", "");
    if (*namespace_name && strcmp(namespace_name, a->namespace_name) != 0)
        return err_set(err, ERR_BAD_REQUEST,
                       "the namespace of the provided object does not match the namespace sent on "
                       "the request");
    if (*name && strcmp(name, a->name) != 0)
        return err_set(err, ERR_BAD_REQUEST,
                       "the name of the object (%s) does not match the name on the URL (%s)", name,
                       a->name);
    return 0;
}

static int check_scale(const struct apply *a, const cJSON *patch, struct err *err)
{
    int rc = apply_check_type(patch, SCALE_VERSION, "Scale", err);
    if (rc < 0 || (rc = apply_check_managers(patch, err)) < 0 ||
        (rc = apply_check_fits(patch, &shape_scale, "patch", false, err)) < 0)
        return rc;
    return check_place(a, patch, err);
}

struct scaling {
    struct managers m;
    struct manager_id id;
    const struct fieldset *field;
    int64_t before, after;
    bool is_said; /* the Scale names a number, be it null */
};

/* Also what nobody owns yet is somebody's; and what the manager alone named before, and does not
 * now, becomes 0. */
static void prepare(struct scaling *s, const cJSON *patch)
{
    const struct manager_id before = {
        .name = "before-first-apply", .version = s->id.version, .subresource = "scale"};
    if (!is_owned(&s->m, s->field) && s->before != 0)
        managers_get(&s->m, &before)->fields = s->field;
    s->is_said = json_at(patch, "spec.replicas") != NULL;
    s->after = s->is_said ? json_i64_or(patch, "spec.replicas", 0) : s->before;
    struct manager *self = managers_find(&s->m, &s->id);
    if (s->is_said || !self)
        return;
    self->fields = NULL;
    if (!is_owned(&s->m, s->field))
        s->after = 0;
}

static int settle(struct scaling *s, bool force, struct err *err)
{
    struct conflicts conflicts = {.arena = &s->m.arena};
    struct manager *self = managers_find(&s->m, &s->id);
    for (size_t i = 0; s->after != s->before && i < s->m.n; i++)
        if (&s->m.v[i] != self)
            conflicts_add(&conflicts, &s->m.v[i],
                          fieldset_intersection(&s->m.arena, s->m.v[i].fields, s->field));
    if (!force && conflicts_refuse(&conflicts, SCALE_VERSION, err) < 0)
        return -ERR_CONFLICT;
    for (size_t i = 0; s->after != s->before && i < s->m.n; i++)
        if (&s->m.v[i] != self)
            s->m.v[i].fields = fieldset_difference(&s->m.arena, s->m.v[i].fields, s->field);
    if (s->is_said)
        managers_get(&s->m, &s->id)->fields = s->field;
    managers_drop_empty(&s->m);
    return 0;
}

/* The parent with the Scale's number, and with the version and uid that the Scale insists on. */
static cJSON *scaled(const struct scaling *s, const struct kind *kind, const cJSON *patch,
                     const cJSON *parent)
{
    static const char *const preconditions[] = {"resourceVersion", "uid"};
    const cJSON *number = json_at(patch, "spec.replicas");
    bool is_number = cJSON_IsNumber(number);
    cJSON *out = json_copy(parent), *metadata = json_ensure_object(out, "metadata");
    for (size_t i = 0; i < ARRAY_LEN(preconditions); i++) {
        const char *value = json_str_or(json_get(patch, "metadata"), preconditions[i], "");
        if (*value)
            json_set_str(metadata, preconditions[i], value);
    }
    if (is_number || s->after != s->before)
        json_set_at(out, kind->scale->spec_replicas,
                    is_number ? json_copy(number) : json_int(s->after));
    return out;
}

int apply_run_scale(const struct apply *a, const cJSON *patch, const cJSON *parent, cJSON **ret,
                    struct err *err)
{
    const struct kind *k = a->kind;
    SCOPED_FREE char *version = kind_api_version(k);
    struct scaling s = {.id = {a->manager, version, "scale", .is_applier = true},
                        .before = json_i64_or(parent, k->scale->spec_replicas, 0)};
    int rc = check_scale(a, patch, err);
    if (rc < 0)
        return rc;
    if (managers_read(&s.m, json_at(parent, "metadata.managedFields"), false) < 0) {
        managers_fini(&s.m);
        return err_set(err, ERR_UNKNOWN, "failed to decode managed fields");
    }
    s.field = replicas_field(&s.m.arena, k);
    prepare(&s, patch);
    rc = settle(&s, a->force, err);
    if (rc == 0) {
        *ret = scaled(&s, k, patch, parent);
        apply_set_managers(&s.m, *ret);
    }
    managers_fini(&s.m);
    return rc;
}
