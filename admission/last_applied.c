/* The annotation in which kubectl keeps what it applied, from before the server knew of managers.
 * Who goes from one way to the other must neither meet conflicts with himself nor leave an old
 * annotation behind. Source: docs/kubernetes-api.md 28.6; apimachinery's lastAppliedManager and
 * lastAppliedUpdater. */
#include <string.h>

#include "admission/apply_parts.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/goprint.h"

static const char annotation[] = "kubectl.kubernetes.io/last-applied-configuration";
/* Bytes of all keys and values. Source: docs/kubernetes-api.md 14.5. */
#define ANNOTATIONS_MAX 262144

static const char *text_of(const cJSON *object)
{
    const cJSON *value = json_get(json_at(object, "metadata.annotations"), annotation);
    return cJSON_IsString(value) ? value->valuestring : "";
}

/* The object in the annotation, NULL when it is none of that type. */
static cJSON *read_annotation(const cJSON *live, const struct shape *shape)
{
    const struct json_opts lenient = {.flags = JSON_REPLACE_BAD_UTF8 | JSON_KEEP_LAST_DUPLICATE};
    const char *text = text_of(live);
    cJSON *applied = NULL;
    if (json_parse(text, strlen(text), &lenient, &applied, NULL) < 0)
        return NULL;
    bool is_right = str_equal(json_str(applied, "apiVersion"), json_str(live, "apiVersion")) &&
                    str_equal(json_str(applied, "kind"), json_str(live, "kind")) &&
                    merge_fits(applied, shape, false, NULL);
    if (!is_right) {
        json_free(applied);
        return NULL;
    }
    return applied;
}

void last_applied_allow(struct conflicts *conflicts, const cJSON *live, const struct shape *shape)
{
    struct arena *a = conflicts->arena;
    SCOPED(json_free_p) cJSON *applied = read_annotation(live, shape);
    struct comparison c;
    if (!applied)
        return;
    merge_compare(a, applied, live, shape, &c);
    const struct fieldset *unchanged = merge_leaves(a, applied, shape, NULL);
    unchanged = fieldset_difference(a, unchanged, fieldset_union(a, c.modified, c.removed));
    conflicts_allow(conflicts, unchanged);
}

static size_t size_of(const cJSON *annotations)
{
    size_t bytes = 0;
    const cJSON *a;
    cJSON_ArrayForEach(a, annotations)
    {
        bytes += strlen(a->string) + (cJSON_IsString(a) ? strlen(a->valuestring) : 0);
    }
    return bytes;
}

void last_applied_renew(cJSON *object, const cJSON *patch)
{
    if (text_of(object)[0] == '\0')
        return;
    SCOPED(json_free_p) cJSON *applied = json_copy(patch);
    SCOPED(buf_fini) struct buf text = {0};
    cJSON *annotations = json_at(object, "metadata.annotations");
    json_remove(json_at(applied, "metadata.annotations"), annotation);
    goprint_bad_value(applied, &text);
    buf_putc(&text, '\n');
    json_set_str(annotations, annotation, buf_cstr(&text));
    if (size_of(annotations) > ANNOTATIONS_MAX)
        json_remove(annotations, annotation);
}
