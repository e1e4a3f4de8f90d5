/* The order of admission. Each step is a function on the tree; what a step may find is said where
 * it is defined. Source of the order: docs/kubernetes-api.md 15, 17, 19, 22. */
#include "admission/admit.h"

#include <stdarg.h>

#include "admission/checks.h"
#include "admission/steps.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/default.h"
#include "openapi/kinds.h"
#include "openapi/prune.h"
#include "openapi/validate.h"

/* ---- shared by the steps ---- */

cJSON *metadata_of(const struct admission *a)
{
    return json_get(a->object, "metadata");
}

void admission_fini(struct admission *a)
{
    free(a->managers);
    free(a->managers_as_stored);
    err_fini(&a->manager_causes);
}

void warn(const struct admission *a, const char *fmt, ...)
{
    if (!a->warnings)
        return;
    va_list args;
    va_start(args, fmt);
    SCOPED_FREE char *text = xvasprintf(fmt, args);
    va_end(args);
    pairs_add(a->warnings, text, "");
}

/* ---- small steps ---- */

static int step_defaults(struct admission *a, struct err *err)
{
    (void)err;
    if (a->req->is_applied)
        prune_nulls_of_apply(a->object, a->req->kind->shape);
    else
        prune_nulls(a->object, a->req->kind->shape);
    default_apply(a->object, a->req->kind->shape);
    return 0;
}

/* What is no int64 is written as Go writes its float64: 1.0 as 1. Last, since validation tells the
 * two apart. */
static int step_numbers(struct admission *a, struct err *err)
{
    (void)err;
    json_settle_floats(a->object);
    return 0;
}

/* ---- validation ---- */

static bool is_blocking(const char *reason)
{
    static const char *const reasons[] = {"FieldValueRequired", "FieldValueNotSupported",
                                          "FieldValueTooLong", "FieldValueTooMany",
                                          "FieldValueTypeInvalid"};
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (strcmp(reason, reasons[i]) == 0)
            return true;
    return false;
}

static bool has_blocking(const struct err *causes)
{
    for (size_t i = 0; i < causes->n_causes; i++)
        if (is_blocking(causes->causes[i].reason))
            return true;
    return false;
}

/* Of an object of another kind or version than the URL's not more is checked than what its lists
 * repeat, and all is said under the wrong name. */
static int check_type(const struct admission *a, struct err *err)
{
    const struct kind *k = a->req->kind;
    SCOPED(err_fini) struct err causes = {0};
    const struct validate_opts opts = {
        .old = a->req->old, .only_lists = true, .may_repeat = k->checks != NULL};
    SCOPED_FREE char *expected = kind_api_version(k);
    const char *kind = json_str_or(a->object, "kind", ""),
               *version = json_str_or(a->object, "apiVersion", "");
    const char *slash = strchr(version, '/');
    SCOPED_FREE char *group = slash ? xstrndup(version, (size_t)(slash - version)) : xstrdup("");
    SCOPED(buf_fini) struct buf quoted = {0};
    if (strcmp(version, expected) != 0) {
        buf_go_quote(&quoted, version, strlen(version));
        err_cause(&causes, "FieldValueInvalid", "apiVersion", "Invalid value: %s: must be %s",
                  buf_cstr(&quoted), expected);
    }
    if (strcmp(kind, k->kind) != 0) {
        buf_clear(&quoted);
        buf_go_quote(&quoted, kind, strlen(kind));
        err_cause(&causes, "FieldValueInvalid", "kind", "Invalid value: %s: must be %s",
                  buf_cstr(&quoted), k->kind);
    }
    if (causes.n_causes)
        validate_tree(a->object, k->shape, &opts, &causes, NULL);
    return err_invalid(&causes, group, kind, json_str_or(a->object, "metadata.name", ""), err);
}

static int step_validate(struct admission *a, struct err *err)
{
    const struct kind *k = a->req->kind;
    SCOPED(err_fini) struct err causes = {0};
    int rc = check_type(a, err);
    if (rc < 0)
        return rc;
    metadata_validate(a, &causes);
    struct validate_opts opts = {
        .old = a->req->old, .only_status = !a->is_main, .may_repeat = k->checks != NULL};
    validate_tree(a->object, k->shape, &opts, &causes, NULL);
    if (a->is_main)
        checks_validate(k, a->object, a->req->is_system ? NULL : a->req->old, &causes);
    rules_validate(a, has_blocking(&causes), &causes);
    return err_invalid(&causes, k->group, k->kind, json_str_or(a->object, "metadata.name", ""),
                       err);
}

/* ---- the order ---- */

static const admit_step decoding[] = {step_type_meta, step_metadata_types, step_unknown_fields,
                                      step_version};

enum when { ON_CREATE = 1, ON_UPDATE = 2, ALWAYS = 3 };
static const struct {
    admit_step run;
    enum when when;
} steps[] = {
    {step_encode, ALWAYS},           {step_defaults, ALWAYS},
    {step_identity, ALWAYS},         {step_namespace_state, ON_CREATE},
    {step_preconditions, ON_UPDATE}, {step_tidy, ALWAYS},
    {step_created, ON_CREATE},       {step_managed_fields, ALWAYS},
    {step_status, ALWAYS},           {step_path_defaults, ALWAYS},
    {step_account, ON_CREATE},       {step_owners, ALWAYS},
    {step_stored, ON_UPDATE},        {step_generate_name, ON_CREATE},
    {step_generation, ON_UPDATE},    {step_write_managers, ALWAYS},
    {step_validate, ALWAYS},         {step_finalizer_warnings, ALWAYS},
    {step_hints, ON_CREATE},         {step_numbers, ALWAYS},
};

static int run_decoding(struct admission *a, struct err *err)
{
    if (!cJSON_IsObject(a->object))
        return err_set(err, ERR_BAD_REQUEST,
                       "the object provided is unrecognized (must be of type %s)",
                       a->req->kind->kind);
    for (size_t i = 0; i < ARRAY_LEN(decoding); i++) {
        int rc = decoding[i](a, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int run_steps(struct admission *a, struct err *err)
{
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        if (!(steps[i].when & (a->is_update ? ON_UPDATE : ON_CREATE)))
            continue;
        int rc = steps[i].run(a, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static struct admission start(const struct admit_env *env, const struct admit_request *req,
                              cJSON *object, struct pairs *warnings)
{
    return (struct admission){.env = env,
                              .req = req,
                              .object = object,
                              .warnings = warnings,
                              .is_update = req->operation == ADMIT_UPDATE,
                              .is_main = !req->is_status};
}

int admit_decode(const struct admit_env *env, const struct admit_request *req, cJSON *object,
                 struct pairs *warnings, struct err *err)
{
    struct admission a = start(env, req, object, warnings);
    return run_decoding(&a, err);
}

int admit(const struct admit_env *env, const struct admit_request *req, cJSON *object,
          struct pairs *warnings, struct err *err)
{
    struct admission a = start(env, req, object, warnings);
    int rc = req->is_decoded ? 0 : run_decoding(&a, err);
    if (rc == 0)
        rc = run_steps(&a, err);
    admission_fini(&a);
    return rc;
}
