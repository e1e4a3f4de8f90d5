/* Who owns which field after this write. Worked out on the object as the client means it, behind
 * defaults and before anything of it is put back, since what the endpoint does not take is not the
 * writer's either; written to the object at the end. A failure to work it out fails no write: the
 * stored list stays. Source: docs/kubernetes-api.md 15, 28.7, 29.3, 29.4. */
#include "admission/apply_parts.h"
#include "admission/steps.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"

#define SUBRESOURCE_MAX 256 /* bytes */

struct recording { /* lives for one step: sets borrow from the object, which later steps change */
    struct admission *a;
    const cJSON *sent; /* the client's list */
    struct managers m, stored;
    bool is_sent; /* m began with the client's list */
    const char *version, *writer, *now;
};

static void recording_fini(struct recording *r)
{
    managers_fini(&r->m);
    managers_fini(&r->stored);
}

/* ---- the list that the write starts from ---- */

/* The client's where it may give one. False = it gives none that makes sense. */
static bool read_sent(struct recording *r)
{
    bool is_stored_one = cJSON_IsRaw(r->sent); /* a patch left it as it is */
    if (!r->a->is_main || r->a->req->is_scale || !r->sent || is_stored_one)
        return false;
    return managers_is_reset(r->sent) || (managers_read(&r->m, r->sent, true) == 0 && r->m.n > 0);
}

static void copy_stored(struct recording *r)
{
    size_t n = r->stored.n;
    r->m.v = arena_alloc(&r->m.arena, n * sizeof *r->m.v);
    r->m.n = r->m.cap = n;
    if (n)
        memcpy(r->m.v, r->stored.v, n * sizeof *r->m.v);
}

/* ---- the three ways of a write ---- */

static void record_endpoint(struct recording *r, const char *subresource,
                            const struct comparison *c)
{
    const struct manager_id writer = {
        .name = r->writer, .version = r->version, .subresource = subresource};
    managers_record(&r->m, &writer, c,
                    managers_reset_fields(&r->m.arena, r->a->req->kind, subresource), r->now);
}

/* What of the object this endpoint drops nobody validates, but it must have the right types, on a
 * subresource also the right kind. The rest has, or the write will be refused. */
static bool dropped_parts_fit(const struct recording *r)
{
    const struct admission *a = r->a;
    const struct shape *shape = a->req->kind->shape;
    const cJSON *status = json_get(a->object, "status");
    if (!a->is_main)
        return str_equal(json_str(a->object, "apiVersion"), r->version) &&
               str_equal(json_str(a->object, "kind"), a->req->kind->kind) &&
               merge_fits(a->object, shape, true, NULL);
    if (!status || a->req->is_system)
        return true;
    SCOPED(json_free_p) cJSON *part = json_object();
    json_add(part, "status", json_copy(status));
    return merge_fits(part, shape, true, NULL);
}

static bool record_update(struct recording *r)
{
    const struct admission *a = r->a;
    const struct shape *shape = a->req->kind->shape;
    struct comparison c;
    if (!dropped_parts_fit(r))
        return false;
    if (a->is_update && r->m.n == 0)
        return true; /* not followed until somebody applies */
    managers_adapt(&r->m, shape);
    merge_compare(&r->m.arena, a->req->old, a->object, shape, &c);
    record_endpoint(r, a->is_main ? "" : "status", &c);
    if (a->is_main && a->req->is_system && a->req->kind->has_status)
        record_endpoint(r, "status", &c); /* it writes both at once */
    managers_limit(&r->m);
    return true;
}

static bool record_scale(struct recording *r)
{
    const struct admission *a = r->a;
    const char *path = a->req->kind->scale->spec_replicas;
    scale_record(&r->m, a->req->kind, r->writer, r->version, json_i64_or(a->req->old, path, 0),
                 json_i64_or(a->object, path, 0));
    return true;
}

/* False = nobody can tell. */
static bool record(struct recording *r)
{
    const cJSON *stored = json_at(r->a->req->old, "metadata.managedFields");
    bool makes_sense = managers_read(&r->stored, stored, false) == 0;
    if (r->a->req->is_applied)
        return managers_read(&r->m, r->sent, false) == 0; /* worked out by apply */
    r->is_sent = read_sent(r);
    if (!makes_sense && !r->is_sent)
        return false;
    if (!r->is_sent)
        copy_stored(r);
    if (!managers_know_version(&r->m, r->version))
        return false;
    return r->a->req->is_scale ? record_scale(r) : record_update(r);
}

static char *print(struct managers *m)
{
    SCOPED(buf_fini) struct buf text = {0};
    if (m->n == 0)
        return NULL;
    managers_print(m, &text);
    return buf_take(&text, NULL);
}

/* What of a client's list no server would have written. Behind print, which gives the places. */
static void check_sent(const struct recording *r, struct err *causes)
{
    for (size_t i = 0; r->is_sent && i < r->m.n; i++) {
        SCOPED_FREE char *name = xasprintf("metadata.managedFields[%zu].manager", i);
        name_check_manager(r->m.v[i].name, name, causes);
        SCOPED_FREE char *subresource = xasprintf("metadata.managedFields[%zu].subresource", i);
        if (strlen(r->m.v[i].subresource) > SUBRESOURCE_MAX)
            err_cause(causes, "FieldValueTooLong", subresource,
                      "Too long: may not be more than %d bytes", SUBRESOURCE_MAX);
    }
}

int step_managed_fields(struct admission *a, struct err *err)
{
    const struct kind *k = a->req->kind;
    char now[CLOCK_TEXT_SIZE];
    SCOPED_FREE char *version = kind_api_version(k);
    SCOPED(json_free_p) cJSON *sent = json_detach(metadata_of(a), "managedFields");
    SCOPED(recording_fini)
    struct recording r = {.a = a,
                          .sent = sent,
                          .version = version,
                          .writer =
                              a->req->manager && *a->req->manager ? a->req->manager : "unknown",
                          .now = now};
    (void)err;
    clock_print_rfc3339(clock_unix_s(a->env->clock), now);
    a->keeps_managers = !record(&r);
    if (a->keeps_managers)
        return 0;
    a->managers = print(&r.m);
    check_sent(&r, &a->manager_causes);
    if (a->managers && managers_equal_but_time(&r.stored, &r.m))
        a->managers_as_stored = print(&r.stored);
    return 0;
}

/* ---- the end ---- */

static bool differs(const cJSON *a, const cJSON *b, const char *ignored)
{
    const cJSON *member;
    cJSON_ArrayForEach(member, a)
    {
        if (strcmp(member->string, ignored) != 0 &&
            !json_equal(member, json_get(b, member->string)))
            return true;
    }
    return false;
}

/* Nothing but the managers differs from what is stored. */
static bool is_as_stored(const struct admission *a)
{
    const cJSON *old = a->req->old, *metadata = metadata_of(a), *stored = json_get(old, "metadata");
    return !differs(a->object, old, "metadata") && !differs(old, a->object, "metadata") &&
           !differs(metadata, stored, "managedFields") &&
           !differs(stored, metadata, "managedFields");
}

/* A write that would change only times changes nothing. */
int step_write_managers(struct admission *a, struct err *err)
{
    cJSON *list = NULL;
    (void)err;
    if (a->keeps_managers)
        list = json_copy(json_at(a->req->old, "metadata.managedFields"));
    else if (a->managers_as_stored && strcmp(a->managers, a->managers_as_stored) != 0 &&
             is_as_stored(a))
        list = json_raw(steal(&a->managers_as_stored));
    else if (a->managers)
        list = json_raw(steal(&a->managers));
    json_remove(metadata_of(a), "managedFields");
    if (list)
        json_set(metadata_of(a), "managedFields", list);
    return 0;
}

void admit_record(const struct admit_env *env, const struct kind *kind, const char *manager,
                  const cJSON *before, cJSON *object)
{
    const struct admit_request req = {.kind = kind,
                                      .operation = ADMIT_UPDATE,
                                      .is_system = true,
                                      .manager = manager,
                                      .old = before};
    SCOPED(admission_fini)
    struct admission a = {
        .env = env, .req = &req, .object = object, .is_update = true, .is_main = true};
    json_remove(metadata_of(&a), "managedFields"); /* a copy of what is stored */
    step_managed_fields(&a, NULL);
    step_write_managers(&a, NULL);
}
