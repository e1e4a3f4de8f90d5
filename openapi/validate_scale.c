/* The paths of the scale subresource; see validate_scale.h. */
#include "openapi/validate_scale.h"

#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/goprint.h"
#include "openapi/kinds.h"

static const struct kind *kind_of_shape(const struct shape *shape)
{
    for (const struct kind *const *k = kinds_served; *k; k++)
        if ((*k)->shape == shape)
            return *k;
    return NULL;
}

/* Looks at a two-part path as apimachinery's accessors do. Returns the value if it has the expected
 * Go type; NULL when it is absent, and when it or its parent is something else, which is
 * reported. */
static const cJSON *scale_value(struct err *causes, const cJSON *tree, const char *path,
                                const char *expected)
{
    SCOPED_FREE char *parent = xstrndup(path, strcspn(path, "."));
    const cJSON *value = json_get(tree, parent);
    if (!value || cJSON_IsNull(value))
        return NULL;
    bool is_string = strcmp(expected, "string") == 0;
    if (cJSON_IsObject(value)) {
        value = json_get(value, path + strlen(parent) + 1);
        if (!value || (is_string ? cJSON_IsString(value) : goprint_is_int64(value)))
            return value;
    } else {
        expected = "map[string]interface{}";
    }
    SCOPED_FREE char *field = xasprintf(".%s", path);
    SCOPED(buf_fini) struct buf printed = {0};
    goprint_value(value, &printed);
    (void)err_cause(causes, "FieldValueInvalid", field,
                    "Invalid value: %s: .%s accessor error: %s is of the type %s, expected %s",
                    is_string ? "\"\"" : "0", path, buf_cstr(&printed), goprint_type(value),
                    expected);
    return NULL;
}

static void check_scale_count(struct err *causes, const cJSON *tree, const char *path)
{
    const cJSON *value = scale_value(causes, tree, path, "int64");
    int64_t n;
    if (!value || json_node_i64(value, &n) < 0 || (n >= 0 && n <= INT32_MAX))
        return;
    SCOPED_FREE char *field = xasprintf(".%s", path);
    (void)err_cause(causes, "FieldValueInvalid", field, "Invalid value: %lld: %s", (long long)n,
                    n < 0 ? "should be a non-negative integer"
                          : "should be less than or equal to 2147483647");
}

void validate_scale(const cJSON *tree, const struct shape *shape, bool only_status,
                    struct err *causes)
{
    const struct kind *kind = kind_of_shape(shape);
    if (!kind || !kind->scale)
        return;
    if (!only_status)
        check_scale_count(causes, tree, kind->scale->spec_replicas);
    check_scale_count(causes, tree, kind->scale->status_replicas);
    (void)scale_value(causes, tree, kind->scale->selector, "string");
}
