/* Cells of Table rows; see columns.h. Source: docs/kubernetes-api.md 26.1. */
#include "openapi/columns.h"

#include <string.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/columns_builtin.h"
#include "openapi/goprint.h"

/* The texts that kube-apiserver gives the columns it adds by itself are part of its answers like
 * its error texts are, and clients that compare tables see them. Source: recorded answers of
 * v1.37. */
static const char name_doc[] =
    "Name must be unique within a namespace. Is required when creating resources, although some "
    "resources may allow a client "
    "to request the generation of an appropriate name automatically. Name is primarily intended "
    "for creation idempotence and "
    "configuration definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
static const char age_doc[] =
    "CreationTimestamp is a timestamp representing the server time when this object was created. "
    "It is not guaranteed to be "
    "set in happens-before order across separate operations. Clients may not set this value. It is "
    "represented in RFC3339 "
    "form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

static const struct column default_columns[] = {
    {.name = "Age", .type = COL_DATE, .path = ".metadata.creationTimestamp", .doc = age_doc},
    {0},
};

const char *column_type_name(enum column_type type)
{
    static const char *const names[] = {
        [COL_STRING] = "string",   [COL_INTEGER] = "integer", [COL_NUMBER] = "number",
        [COL_BOOLEAN] = "boolean", [COL_DATE] = "date",
    };
    return names[type];
}

static const struct column *columns_of(const struct kind *kind)
{
    return kind->columns ? kind->columns : default_columns;
}

static cJSON *definition(const char *name, const char *type, const char *format, const char *doc,
                         int priority)
{
    cJSON *d = json_object();
    json_set_str(d, "name", name);
    json_set_str(d, "type", type);
    json_set_str(d, "format", format);
    json_set_str(d, "description", doc);
    json_set_int(d, "priority", priority);
    return d;
}

cJSON *columns_definitions(const struct kind *kind)
{
    cJSON *list = json_array();
    json_push(list, definition("Name", "string", "name", name_doc, 0));
    for (const struct column *c = columns_of(kind); c->name; c++) {
        SCOPED_FREE char *made =
            xasprintf("Custom resource definition column (in JSONPath format): %s", c->path);
        json_push(list, definition(c->name, column_type_name(c->type), "", c->doc ? c->doc : made,
                                   c->priority));
    }
    return list;
}

/* ---- paths ------------------------------------------------------------------------------- */

/* The item of a list that [0] or [?(@.key=='value')] means; text starts after the bracket and
 * *ret_rest points past it. */
static const cJSON *select_item(const cJSON *list, const char *text, const char **ret_rest)
{
    static const char filter[] = "?(@.";
    const char *end = strstr(text, strncmp(text, filter, 4) == 0 ? "')]" : "]");
    if (!end || !cJSON_IsArray(list))
        return NULL;
    const cJSON *item = list->child;
    if (strncmp(text, filter, 4) != 0) {
        *ret_rest = end + 1;
        SCOPED_FREE char *digits = xstrndup(text, (size_t)(end - text));
        int64_t index;
        if (str_to_i64(digits, &index) < 0 || index < 0)
            return NULL;
        while (item && index-- > 0)
            item = item->next;
        return item;
    }
    *ret_rest = end + 3;
    const char *equals = strstr(text, "=='");
    if (!equals || equals > end)
        return NULL;
    SCOPED_FREE char *key = xstrndup(text + 4, (size_t)(equals - text - 4));
    SCOPED_FREE char *value = xstrndup(equals + 3, (size_t)(end - equals - 3));
    while (item && !str_equal(json_str(item, key), value))
        item = item->next;
    return item;
}

const cJSON *columns_path(const cJSON *tree, const char *path)
{
    const char *p = path;
    while (tree && *p) {
        if (*p == '[') {
            tree = select_item(tree, p + 1, &p);
            continue;
        }
        p += *p == '.';
        size_t n = strcspn(p, ".[");
        SCOPED_FREE char *name = xstrndup(p, n);
        tree = json_get(tree, name);
        p += n;
    }
    return tree;
}

/* ---- cells ------------------------------------------------------------------------------- */

static cJSON *string_cell(const cJSON *value)
{
    SCOPED(buf_fini) struct buf text = {0};
    if (cJSON_IsNull(value))
        return json_null();
    if (cJSON_IsObject(value) || cJSON_IsArray(value))
        json_print(value, &text);
    else
        goprint_value(value, &text);
    return json_string(buf_cstr(&text));
}

#define GO_ZERO_TIME_MS (INT64_C(-62135596800) * 1000) /* year 1, Go's time.Time{} */

static cJSON *date_cell(const cJSON *value, int64_t now_unix_ms)
{
    char text[CLOCK_TEXT_SIZE];
    int64_t at_ms;
    if (!cJSON_IsString(value))
        return json_null();
    if (!*value->valuestring || str_equal(value->valuestring, "null"))
        return json_string("<unknown>");
    if (clock_parse_rfc3339(value->valuestring, &at_ms) < 0)
        return json_string("<invalid>");
    if (at_ms == GO_ZERO_TIME_MS)
        return json_string("<unknown>");
    clock_print_age(now_unix_ms - at_ms, text);
    return json_string(text);
}

static cJSON *integer_cell(const cJSON *value)
{
    int64_t n;
    if (!cJSON_IsNumber(value))
        return json_null();
    if (json_node_i64(value, &n) < 0)
        n = value->valuedouble >= 9e18    ? INT64_MAX
            : value->valuedouble <= -9e18 ? INT64_MIN
                                          : (int64_t)value->valuedouble;
    return json_int(n);
}

static cJSON *cell(const struct column *c, const cJSON *value, int64_t now_unix_ms)
{
    if (!value)
        return json_null();
    switch (c->type) {
    case COL_STRING:
        return string_cell(value);
    case COL_INTEGER:
        return integer_cell(value);
    case COL_DATE:
        return date_cell(value, now_unix_ms);
    case COL_NUMBER:
        return cJSON_IsNumber(value) ? json_copy(value) : json_null();
    case COL_BOOLEAN:
        return cJSON_IsBool(value) ? json_boolean(cJSON_IsTrue(value)) : json_null();
    }
    return json_null();
}

cJSON *columns_cells(const struct kind *kind, const cJSON *object, int64_t now_unix_ms)
{
    cJSON *cells = json_array();
    json_push(cells, json_string(json_str_or(object, "metadata.name", "")));
    for (const struct column *c = columns_of(kind); c->name; c++)
        json_push(cells, c->cell == CELL_VALUE ? cell(c, columns_path(object, c->path), now_unix_ms)
                                               : columns_builtin_cell(c, object, now_unix_ms));
    return cells;
}
