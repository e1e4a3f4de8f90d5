/* Does the object belong where it was sent: name and namespace of the URL, a namespace that takes
 * new objects, and, for an update, the very object and version that the client saw. Source:
 * docs/kubernetes-api.md 14.1, 17, 30.1. */
#include <stdlib.h>

#include "admission/steps.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"

static int check_namespace(struct admission *a, struct err *err)
{
    const char *expected = a->req->namespace_name ? a->req->namespace_name : "";
    const char *given = json_str_or(a->object, "metadata.namespace", "");
    if (given[0] && strcmp(given, expected) != 0)
        return err_set(err, ERR_BAD_REQUEST,
                       "the namespace of the provided object does not match the namespace sent on "
                       "the request");
    if (expected[0])
        json_set_str(metadata_of(a), "namespace", expected);
    else
        json_remove(metadata_of(a), "namespace");
    return 0;
}

int admit_check_name(const cJSON *object, const char *url_name, struct err *err)
{
    const char *name = json_str_or(object, "metadata.name", "");
    if (name[0] == '\0')
        return err_set(
            err, ERR_BAD_REQUEST,
            "the name of the object (%s based on URL) was undeterminable: name must be provided",
            url_name);
    if (strcmp(name, url_name) != 0)
        return err_set(err, ERR_BAD_REQUEST,
                       "the name of the object (%s) does not match the name on the URL (%s)", name,
                       url_name);
    return 0;
}

int step_identity(struct admission *a, struct err *err)
{
    int rc = check_namespace(a, err);
    return rc < 0 || !a->req->name ? rc : admit_check_name(a->object, a->req->name, err);
}

/* ---- the namespace ---- */

static int refuse_absent(const char *namespace_name, struct err *err)
{
    SCOPED(buf_fini) struct buf quoted = {0};
    buf_go_quote(&quoted, namespace_name, strlen(namespace_name));
    err_set(err, ERR_NOT_FOUND, "namespaces %s not found", buf_cstr(&quoted));
    err_details(err, NULL, "namespaces", namespace_name, NULL);
    return -ERR_NOT_FOUND;
}

static int refuse_terminating(const struct admission *a, const char *namespace_name,
                              struct err *err)
{
    const struct kind *k = a->req->kind;
    const char *name = json_str_or(a->object, "metadata.name", "");
    SCOPED_FREE char *resource = kind_resource_name(k);
    err_set(err, ERR_FORBIDDEN,
            "%s \"%s\" is forbidden: unable to create new content in namespace %s because it is "
            "being terminated",
            resource, name, namespace_name);
    err_cause(err, "NamespaceTerminating", "metadata.namespace", "namespace %s is being terminated",
              namespace_name);
    err_details(err, k->group, k->plural, name, NULL);
    return -ERR_FORBIDDEN;
}

int step_namespace_state(struct admission *a, struct err *err)
{
    const char *name = a->req->namespace_name;
    enum namespace_state state = NAMESPACE_ACTIVE;
    if (!a->env->namespace_state || !name || !name[0])
        return 0;
    int rc = a->env->namespace_state(a->env->ctx, name, &state, err);
    if (rc < 0)
        return rc;
    return state == NAMESPACE_ABSENT        ? refuse_absent(name, err)
           : state == NAMESPACE_TERMINATING ? refuse_terminating(a, name, err)
                                            : 0;
}

/* ---- the version that the client saw ---- */

static int refuse_update(const struct admission *a, const char *why, struct err *err)
{
    const struct kind *k = a->req->kind;
    SCOPED_FREE char *resource = kind_resource_name(k);
    err_set(err, ERR_CONFLICT, "Operation cannot be fulfilled on %s \"%s\": %s", resource,
            a->req->name, why);
    err_details(err, k->group, k->plural, a->req->name, NULL);
    return -ERR_CONFLICT;
}

/* A PUT of another uid is a failed precondition; in a patch it is a change of what cannot be
 * changed (validation). The key in the text is the one kube-apiserver would use. */
static int check_uid(const struct admission *a, struct err *err)
{
    const struct kind *k = a->req->kind;
    const char *given = json_str_or(a->object, "metadata.uid", "");
    const char *stored = json_str_or(a->req->old, "metadata.uid", "");
    if (a->req->is_patch || given[0] == '\0' || strcmp(given, stored) == 0)
        return 0;
    SCOPED_FREE char *why = xasprintf(
        "StorageError: invalid object, Code: 4, Key: /registry/%s/%s/%s/%s, ResourceVersion: 0, "
        "AdditionalErrorMsg: Precondition failed: UID in precondition: %s, UID in object meta: %s",
        k->group, k->plural, a->req->namespace_name ? a->req->namespace_name : "", a->req->name,
        given, stored);
    return refuse_update(a, why, err);
}

static int refuse_missing_version(const struct admission *a, struct err *err)
{
    static const char field[] = "metadata.resourceVersion",
                      text[] = "Invalid value: 0: must be specified for an update";
    const struct kind *k = a->req->kind;
    SCOPED(err_fini) struct err e = {0};
    SCOPED_FREE char *resource = kind_resource_name(k);
    err_set(&e, ERR_INVALID, "%s \"%s\" is invalid: %s: %s", resource, a->req->name, field, text);
    err_cause(&e, "FieldValueInvalid", field, "%s", text);
    err_details(&e, k->group, k->plural, a->req->name, NULL);
    return err_move(err, &e);
}

static bool is_number(const char *s)
{
    return *s != '\0' && strspn(s, "0123456789") == strlen(s);
}

int step_preconditions(struct admission *a, struct err *err)
{
    const char *given = json_str_or(a->object, "metadata.resourceVersion", "");
    const char *stored = json_str_or(a->req->old, "metadata.resourceVersion", "");
    uint64_t rev = 0, stored_rev = 0;
    int rc = check_uid(a, err);
    if (rc < 0)
        return rc;
    if (given[0] && str_to_u64(given, &rev) < 0) {
        SCOPED(buf_fini) struct buf quoted = {0};
        buf_go_quote(&quoted, given, strlen(given));
        return err_set(err, ERR_UNKNOWN, "strconv.ParseUint: parsing %s: %s", buf_cstr(&quoted),
                       is_number(given) ? "value out of range" : "invalid syntax");
    }
    if (rev == 0)
        return a->req->kind->is_builtin ? 0 : refuse_missing_version(a, err);
    if (str_to_u64(stored, &stored_rev) == 0 && rev == stored_rev)
        return 0;
    return refuse_update(a,
                         "the object has been modified; please apply your changes to the latest "
                         "version and try again",
                         err);
}
