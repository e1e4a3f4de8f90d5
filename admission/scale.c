/* The paths of a scale subresource, on every write: besides the schema, kube-apiserver reads them as Go integers and a string.
 * Source: kubernetes-api.md 13.6. */
#include "admission/steps.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/goprint.h"

/* The node at a dotted path; NULL when it or a parent is absent. *ret_stop is a parent that has no members, if one is met. */
static const cJSON *nested(const cJSON *tree, const char *path, const cJSON **ret_stop)
{
    const cJSON *node = tree;
    while (*path) {
        size_t n = strcspn(path, ".");
        SCOPED_FREE char *name = xstrndup(path, n);
        if (!node || cJSON_IsNull(node))
            return NULL;
        if (!cJSON_IsObject(node)) {
            *ret_stop = node;
            return NULL;
        }
        node = json_get(node, name);
        path += n + (path[n] == '.');
    }
    return node;
}

static void refuse_type(const char *field, const char *zero, const cJSON *node, const char *expected,
                        struct err *causes)
{
    SCOPED(buf_fini) struct buf value = {0};
    goprint_value(node, &value);
    err_cause(causes, "FieldValueInvalid", field,
              "Invalid value: %s: %s accessor error: %s is of the type %s, expected %s", zero, field, buf_cstr(&value),
              goprint_type(node), expected);
}

static const char parent_type[] = "map[string]interface{}";

static void check_replicas(const struct admission *a, const char *path, struct err *causes)
{
    SCOPED_FREE char *field = xasprintf(".%s", path);
    const cJSON *stop = NULL, *node = nested(a->object, path, &stop);
    int64_t n;
    if (stop) {
        refuse_type(field, "0", stop, parent_type, causes);
        return;
    }
    if (!node)
        return;
    if (!cJSON_IsNumber(node) || !goprint_is_int64(node) || json_node_i64(node, &n) < 0)
        refuse_type(field, "0", node, "int64", causes);
    else if (n < 0)
        err_cause(causes, "FieldValueInvalid", field, "Invalid value: %lld: should be a non-negative integer",
                  (long long)n);
    else if (n > INT32_MAX)
        err_cause(causes, "FieldValueInvalid", field, "Invalid value: %lld: should be less than or equal to %d",
                  (long long)n, INT32_MAX);
}

static void check_selector(const struct admission *a, const char *path, struct err *causes)
{
    SCOPED_FREE char *field = xasprintf(".%s", path);
    const cJSON *stop = NULL, *node = nested(a->object, path, &stop);
    if (stop)
        refuse_type(field, "\"\"", stop, parent_type, causes);
    else if (node && !cJSON_IsString(node))
        refuse_type(field, "\"\"", node, "string", causes);
}

void scale_validate(const struct admission *a, struct err *causes)
{
    const struct scale_paths *scale = a->req->kind->scale;
    if (!scale)
        return;
    check_replicas(a, scale->spec_replicas, causes);
    check_replicas(a, scale->status_replicas, causes);
    if (scale->selector)
        check_selector(a, scale->selector, causes);
}
