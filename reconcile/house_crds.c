/* The CustomResourceDefinitions of our own kinds, as this version of the server has them. */
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/doc.h"
#include "openapi/kinds.h"
#include "openapi/kinds/builtin.h"
#include "reconcile/house_pass.h"

static cJSON *condition(const char *type, const char *reason, const char *message, const char *now)
{
    cJSON *c = json_object();
    json_set_str(c, "lastTransitionTime", now);
    json_set_str(c, "message", message);
    json_set_str(c, "reason", reason);
    json_set_str(c, "status", "True");
    json_set_str(c, "type", type);
    return c;
}

static cJSON *make_status(const struct kind *kind, const cJSON *spec, const struct clock *clock)
{
    cJSON *status = json_object(), *conditions = json_array(), *versions = json_array();
    char now[CLOCK_TEXT_SIZE];
    clock_print_rfc3339(clock_unix_s(clock), now);
    json_push(conditions, condition("NamesAccepted", "NoConflicts", "no conflicts found", now));
    json_push(conditions, condition("Established", "InitialNamesAccepted",
                                    "the initial names have been accepted", now));
    json_push(versions, json_string(kind->version));
    json_set(status, "acceptedNames", json_copy(json_get(spec, "names")));
    json_set(status, "conditions", conditions);
    json_set(status, "storedVersions", versions);
    return status;
}

/* ctx is the spec that it shall have. */
static bool renew(void *ctx, cJSON *object)
{
    if (json_equal(json_get(object, "spec"), ctx))
        return false;
    json_set(object, "spec", json_copy(ctx));
    return true;
}

static int ensure(const struct pass_env *env, const struct kind *kind, struct err *err)
{
    const struct kind *of = &kind_custom_resource_definition;
    SCOPED(object_unref_p) struct object *present = NULL;
    SCOPED(buf_fini) struct buf text = {0};
    SCOPED(json_free_p) cJSON *object = NULL;
    doc_crd_print(kind, &text);
    int rc = json_parse_str(buf_cstr(&text), &object, err);
    if (rc < 0)
        return rc;
    const char *name = json_str_or(object, "metadata.name", "");
    rc = pass_get(env, of, "", name, &present, err);
    if (rc < 0)
        return rc;
    if (!present) {
        json_set(object, "status", make_status(kind, json_get(object, "spec"), env->clock));
        return pass_create(env, of, "", steal(&object), HOUSE_MANAGER, NULL, err);
    }
    struct pass_update update = {.kind = of,
                                 .namespace_name = "",
                                 .name = name,
                                 .change = renew,
                                 .ctx = json_get(object, "spec"),
                                 .field_manager = HOUSE_MANAGER};
    return pass_update(env, &update, NULL, err);
}

int house_crds_pass(const struct pass_env *env, struct err *err)
{
    int rc = 0;
    for (const struct kind *const *k = kinds_all; *k && rc == 0; k++)
        rc = ensure(env, *k, err);
    return rc;
}
