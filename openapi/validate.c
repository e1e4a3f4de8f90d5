/* Validation of a tree against its table; see validate.h. Each rule's words and quirks are those of
 * kube-apiserver v1.37 for CustomResourceDefinitions. Source: docs/kubernetes-api.md 13.6, and the
 * server asked about what is not written there.
 *
 * The first walk looks for anything wrong. Only if there was something, and there is a stored
 * object to compare with, a second walk leaves out what did not change (ratcheting); so valid
 * writes never pay for comparisons. */
#include "openapi/validate.h"

#include <string.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "openapi/goprint.h"
#include "openapi/kinds.h"
#include "openapi/listtype.h"
#include "openapi/pattern.h"
#include "openapi/unchanged.h"
#include "openapi/validate_scale.h"
#include "openapi/walk.h"

#define INVALID "FieldValueInvalid"
#define TYPE_INVALID "FieldValueTypeInvalid"
/* 2^53-1: up to here a float64 counts as integer. */
#define JSON_INTEGER_MAX ((int64_t)9007199254740991)

struct check {
    struct err *causes;
    struct err
        list_causes; /* of list maps and sets, which are judged by a rule of their own on updates */
    const char *prefix; /* of field paths, not of texts: "status", or NULL */
    bool structural;
};

/* ---- reporting --------------------------------------------------------------------------- */

/* The field path: prefix and path. */
static void print_field(const struct check *c, const char *path, struct buf *out)
{
    buf_puts(out, c->prefix ? c->prefix : "");
    if (c->prefix && *path && *path != '[')
        buf_putc(out, '.');
    buf_puts(out, path);
}

/* "Invalid value: VALUE: PATH in body RULE"; value is printed already. */
static void report_body(struct check *c, const struct walk_path *path, const char *reason,
                        const char *value, const char *rule)
{
    SCOPED(buf_fini) struct buf text = {0}, field = {0};
    walk_path_print(path, &text);
    print_field(c, buf_cstr(&text), &field);
    (void)err_cause(c->causes, reason, buf_cstr(&field), "Invalid value: %s: %s in body %s", value,
                    buf_cstr(&text), rule);
    c->structural |= strcmp(reason, TYPE_INVALID) == 0;
}

/* A cause on the field whose text has nothing of the path. */
static void report_plain(struct check *c, const struct walk_path *path, const char *reason,
                         const char *message)
{
    SCOPED(buf_fini) struct buf text = {0}, field = {0};
    walk_path_print(path, &text);
    print_field(c, buf_cstr(&text), &field);
    (void)err_cause(c->causes, reason, buf_cstr(&field), "%s", message);
    c->structural = true;
}

/* Errors that carry no path in kube-apiserver: field <nil>, or status on the status subresource. */
static void report_pathless(struct check *c, const struct walk_path *path, const char *before,
                            const char *after)
{
    SCOPED(buf_fini) struct buf text = {0};
    walk_path_print(path, &text);
    (void)err_cause(c->causes, INVALID, c->prefix ? c->prefix : "<nil>",
                    "Invalid value: \"\": %s%s%s", before, buf_cstr(&text), after);
}

static void report_type(struct check *c, const struct walk_path *path, const char *expected,
                        const char *found)
{
    SCOPED(buf_fini) struct buf value = {0}, rule = {0};
    goprint_quoted(found, &value);
    buf_printf(&rule, "must be of type %s: %s", expected, buf_cstr(&value));
    report_body(c, path, TYPE_INVALID, buf_cstr(&value), buf_cstr(&rule));
}

/* ---- scalars ----------------------------------------------------------------------------- */

static const char *json_type(const cJSON *value)
{
    if (cJSON_IsObject(value))
        return "object";
    if (cJSON_IsArray(value))
        return "array";
    if (cJSON_IsString(value))
        return "string";
    if (cJSON_IsBool(value))
        return "boolean";
    if (cJSON_IsNull(value))
        return "null";
    return goprint_is_int64(value) ? "integer" : "number";
}

/* A number without a fraction that a float64 holds exactly: 2.0, 3e9. */
static bool is_integral_float(const cJSON *value)
{
    int64_t v;
    return json_node_i64(value, &v) == 0 && v <= JSON_INTEGER_MAX && v >= -JSON_INTEGER_MAX;
}

/* The name that kube-apiserver gives a value of the wrong type where the schema has a format. */
static const char *format_of(const cJSON *value)
{
    if (cJSON_IsNumber(value))
        return goprint_is_int64(value) ? "int64" : "float64";
    return cJSON_IsNull(value) ? "null" : "";
}

static void check_integer_type(struct check *c, const cJSON *value, const char *format,
                               const struct walk_path *path)
{
    if (cJSON_IsNumber(value)) {
        if (!goprint_is_int64(value) && !is_integral_float(value))
            report_type(c, path, format, "float64");
    } else if (cJSON_IsString(value) || cJSON_IsArray(value) || cJSON_IsNull(value)) {
        report_type(c, path, "integer", json_type(value));
    } else {
        report_type(c, path, format, format_of(value));
    }
}

static void check_integer_range(struct check *c, const cJSON *value, int64_t min, int64_t max,
                                const char *after, const struct walk_path *path)
{
    int64_t v;
    if (json_node_i64(value, &v) == 0 && v >= min && v <= max)
        return;
    SCOPED(buf_fini) struct buf before = {0};
    buf_printf(&before, "Checked value must be of type integer %s in ", after);
    report_pathless(c, path, buf_cstr(&before), "");
}

static void check_bounds(struct check *c, const cJSON *value, const struct field *f,
                         const struct walk_path *path)
{
    int64_t v;
    bool exact = json_node_i64(value, &v) == 0;
    bool too_small = f->has_min && (exact ? v < f->min : value->valuedouble < (double)f->min);
    bool too_large = f->has_max && (exact ? v > f->max : value->valuedouble > (double)f->max);
    if (!too_small && !too_large)
        return;
    SCOPED(buf_fini) struct buf printed = {0}, rule = {0};
    goprint_number(value, &printed);
    buf_printf(&rule, "should be %s than or equal to %lld", too_small ? "greater" : "less",
               (long long)(too_small ? f->min : f->max));
    report_body(c, path, INVALID, buf_cstr(&printed), buf_cstr(&rule));
}

static void check_integer(struct check *c, const cJSON *value, const struct field *f,
                          const struct walk_path *path)
{
    bool is_32 = f->type == F_INT32;
    check_integer_type(c, value, is_32 ? "int32" : "int64", path);
    if (!cJSON_IsNumber(value))
        return;
    check_integer_range(c, value, is_32 ? INT32_MIN : INT64_MIN, is_32 ? INT32_MAX : INT64_MAX,
                        is_32 ? "with format int32" : "with format int64", path);
    check_bounds(c, value, f, path);
}

static void report_string(struct check *c, const cJSON *value, const struct walk_path *path,
                          const char *reason, const char *rule)
{
    SCOPED(buf_fini) struct buf printed = {0};
    goprint_quoted(value->valuestring, &printed);
    report_body(c, path, reason, buf_cstr(&printed), rule);
}

/* Only the first of these is reported. */
static void check_text(struct check *c, const cJSON *value, const struct field *f,
                       const char *pattern, const struct walk_path *path)
{
    SCOPED(buf_fini) struct buf rule = {0};
    bool has_length = f->max_length || f->min_length;
    int64_t n = has_length ? (int64_t)str_utf8_count(value->valuestring) : 0;
    if (f->max_length && n > f->max_length) {
        buf_printf(&rule, "Too long: may not be more than %lld bytes", (long long)f->max_length);
        report_plain(c, path, "FieldValueTooLong", buf_cstr(&rule));
    } else if (n < f->min_length) {
        buf_printf(&rule, "should be at least %lld chars long", (long long)f->min_length);
        report_string(c, value, path, INVALID, buf_cstr(&rule));
    } else if (pattern && !pattern_matches(pattern, value->valuestring)) {
        buf_printf(&rule, "should match '%s'", pattern);
        report_string(c, value, path, INVALID, buf_cstr(&rule));
    }
}

/* kube-apiserver lets a list pass as date-time, by accident; here it is a type error. */
static void check_time(struct check *c, const cJSON *value, const struct walk_path *path)
{
    int64_t at_ms;
    if (cJSON_IsArray(value) || cJSON_IsNull(value)) {
        report_type(c, path, "string", json_type(value));
    } else if (!cJSON_IsString(value)) {
        report_type(c, path, "date-time", format_of(value));
    } else if (clock_parse_rfc3339(value->valuestring, &at_ms) < 0) {
        report_type(c, path, "date-time", value->valuestring);
    }
}

static void check_int_or_string(struct check *c, const cJSON *value, const struct field *f,
                                const struct walk_path *path)
{
    if (cJSON_IsString(value)) {
        check_text(c, value, f, f->type == F_QUANTITY ? PATTERN_QUANTITY : f->pattern, path);
        return;
    }
    if (cJSON_IsNull(value)) {
        report_type(c, path, "integer,string", "null");
        return;
    }
    if (cJSON_IsNumber(value) && (goprint_is_int64(value) || is_integral_float(value)))
        return;
    report_type(c, path, "integer,string", json_type(value));
    report_pathless(c, path, "\"", "\" must validate at least one schema (anyOf)");
    report_type(c, path, "integer", json_type(value));
    if (cJSON_IsNumber(value))
        check_integer_range(c, value, INT64_MIN, INT64_MAX, "(default format)", path);
}

static void check_enum(struct check *c, const cJSON *value, const struct field *f,
                       const struct walk_path *path)
{
    SCOPED(buf_fini) struct buf text = {0};
    for (const char *const *word = f->oneof; *word; word++)
        if (cJSON_IsString(value) && strcmp(value->valuestring, *word) == 0)
            return;
    buf_puts(&text, "Unsupported value: ");
    goprint_bad_value(value, &text);
    buf_puts(&text, ": supported values: ");
    for (const char *const *word = f->oneof; *word; word++)
        buf_printf(&text, "%s\"%s\"", word == f->oneof ? "" : ", ", *word);
    report_plain(c, path, "FieldValueNotSupported", buf_cstr(&text));
}

/* ---- objects and lists ------------------------------------------------------------------- */

static void check_value(struct check *c, const cJSON *value, const struct field *f,
                        const struct walk_path *path, const cJSON *old);

static void check_required(struct check *c, const cJSON *object, const struct shape *shape,
                           const struct walk_path *path)
{
    for (const struct field *f = shape->fields; f->name; f++) {
        if (!(f->flags & FIELD_REQUIRED) || json_get(object, f->name))
            continue;
        struct walk_path here = {.up = path, .name = f->name};
        report_plain(c, &here, "FieldValueRequired", "Required value");
    }
}

static void check_members(struct check *c, const cJSON *object, const struct shape *shape,
                          const struct walk_path *path, const cJSON *old)
{
    check_required(c, object, shape, path);
    const cJSON *member;
    cJSON_ArrayForEach(member, object)
    {
        const struct field *f = shape_field(shape, member->string);
        struct walk_path here = {.up = path, .name = member->string};
        if (f)
            check_value(c, member, f, &here, old ? json_get(old, member->string) : NULL);
    }
}

static void check_map(struct check *c, const cJSON *object, const struct field *f,
                      const struct walk_path *path, const cJSON *old)
{
    struct field item = walk_item_field(f);
    const cJSON *member;
    cJSON_ArrayForEach(member, object)
    {
        struct walk_path here = {.up = path, .name = member->string};
        check_value(c, member, &item, &here, old ? json_get(old, member->string) : NULL);
    }
}

struct duplicates {
    struct check *c;
    const struct walk_path *path;
};

static void report_duplicate(void *ctx, size_t index, const cJSON *item, const char *key)
{
    struct duplicates *d = ctx;
    SCOPED(buf_fini) struct buf text = {0}, field = {0}, value = {0};
    struct walk_path here = {.up = d->path, .index = index};
    walk_path_print(&here, &text);
    print_field(d->c, buf_cstr(&text), &field);
    if (key) {
        (void)err_cause(&d->c->list_causes, "FieldValueDuplicate", buf_cstr(&field),
                        "Duplicate value: %s", key);
        return;
    }
    goprint_bad_value(item, &value);
    (void)err_cause(&d->c->list_causes, INVALID, buf_cstr(&field),
                    "Invalid value: %s: must be an object for an array of list-type map",
                    buf_cstr(&value));
}

static void check_length(struct check *c, const cJSON *list, const struct field *f,
                         const struct walk_path *path)
{
    if (!f->min_items && !f->max_items)
        return;
    int64_t n = (int64_t)json_len(list);
    SCOPED(buf_fini) struct buf text = {0}, value = {0};
    if (f->max_items && n > f->max_items) {
        buf_printf(&text, "Too many: %lld: must have at most %lld items", (long long)n,
                   (long long)f->max_items);
        report_plain(c, path, "FieldValueTooMany", buf_cstr(&text));
    } else if (n < f->min_items) {
        buf_printf(&value, "%lld", (long long)n);
        buf_printf(&text, "should have at least %lld items", (long long)f->min_items);
        report_body(c, path, INVALID, buf_cstr(&value), buf_cstr(&text));
    }
}

static void check_items(struct check *c, const cJSON *list, const struct field *f,
                        const struct walk_path *path, const cJSON *old)
{
    struct map *index = unchanged_index(old, f);
    struct field item_field = walk_item_field(f);
    struct walk_path here = {.up = path};
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        check_value(c, item, &item_field, &here, unchanged_counterpart(index, item, f));
        here.index++;
    }
    map_free(index);
    listtype_find_duplicates(list, f, report_duplicate, &(struct duplicates){c, path});
    check_length(c, list, f, path);
}

/* The JSON type of a row that is checked by nothing but its type, "" for the others. */
static const char *container_type(enum field_type type)
{
    switch (type) {
    case F_OBJECT:
    case F_MAP:
    case F_EMPTY:
        return "object";
    case F_LIST:
        return "array";
    case F_STRING:
        return "string";
    case F_BOOL:
        return "boolean";
    case F_NUMBER:
        return "number";
    default:
        return "";
    }
}

static bool has_type(const cJSON *value, const char *type)
{
    return strcmp(json_type(value), type) == 0 ||
           (cJSON_IsNumber(value) && strcmp(type, "number") == 0);
}

static void check_typed(struct check *c, const cJSON *value, const struct field *f,
                        const struct walk_path *path, const cJSON *old)
{
    const char *type = container_type(f->type);
    if (!has_type(value, type)) {
        report_type(c, path, type, json_type(value));
        return;
    }
    switch (f->type) {
    case F_OBJECT:
        check_members(c, value, f->of, path, old);
        break;
    case F_MAP:
        check_map(c, value, f, path, old);
        break;
    case F_LIST:
        check_items(c, value, f, path, old);
        break;
    case F_STRING:
        check_text(c, value, f, f->pattern, path);
        break;
    case F_NUMBER:
        check_bounds(c, value, f, path);
        break;
    default:
        break;
    }
}

/* old is the stored value that value came from, or NULL; what did not change is not checked. */
static void check_value(struct check *c, const cJSON *value, const struct field *f,
                        const struct walk_path *path, const cJSON *old)
{
    if (f->type == F_ANY || f->type == F_META || (old && unchanged_value(value, old, f)))
        return;
    switch (f->type) {
    case F_INT32:
    case F_INT64:
        check_integer(c, value, f, path);
        break;
    case F_TIME:
        check_time(c, value, path);
        break;
    case F_QUANTITY:
    case F_INT_OR_STRING:
        check_int_or_string(c, value, f, path);
        break;
    default:
        check_typed(c, value, f, path, old);
        break;
    }
    if (f->oneof)
        check_enum(c, value, f, path);
}

/* ---- the whole --------------------------------------------------------------------------- */

static void check_tree(struct check *c, const cJSON *tree, const struct shape *shape,
                       const struct validate_opts *opts, const cJSON *old)
{
    if (!opts->only_status) {
        check_members(c, tree, shape, NULL, old);
        return;
    }
    const struct field *f = shape_field(shape, "status");
    const cJSON *status = json_get(tree, "status");
    c->prefix = "status";
    if (f && status)
        check_value(c, status, f, NULL, old ? json_get(old, "status") : NULL);
}

static void move_causes(struct err *to, struct err *from)
{
    for (size_t i = 0; i < from->n_causes; i++)
        (void)err_cause(to, from->causes[i].reason, from->causes[i].field, "%s",
                        from->causes[i].message);
    err_fini(from);
}

/* Whether the stored object itself breaks a list type; then the new one may, too. */
static bool old_breaks_lists(const struct shape *shape, const struct validate_opts *opts)
{
    SCOPED(err_fini) struct err causes = {0};
    struct check c = {.causes = &causes};
    check_tree(&c, opts->old, shape, opts, NULL);
    bool breaks = c.list_causes.n_causes > 0;
    err_fini(&c.list_causes);
    return breaks;
}

static void check_changes(struct check *c, const cJSON *tree, const struct shape *shape,
                          const struct validate_opts *opts)
{
    SCOPED(err_fini) struct err again = {0};
    struct check changed = {.causes = &again};
    check_tree(&changed, tree, shape, opts, opts->old);
    err_fini(&changed.list_causes);
    err_fini(c->causes);
    move_causes(c->causes, &again);
    c->structural = changed.structural;
    if (c->list_causes.n_causes && old_breaks_lists(shape, opts))
        err_fini(&c->list_causes);
}

int validate_tree(const cJSON *tree, const struct shape *shape, const struct validate_opts *opts,
                  struct err *causes, bool *ret_structural)
{
    SCOPED(err_fini) struct err found = {0};
    struct check c = {.causes = &found};
    check_tree(&c, tree, shape, opts, NULL);
    if (opts->old && (found.n_causes || c.list_causes.n_causes))
        check_changes(&c, tree, shape, opts);
    if (opts->may_repeat)
        err_fini(&c.list_causes);
    if (opts->only_lists)
        err_fini(&found);
    move_causes(&found, &c.list_causes);
    if (!opts->only_lists)
        validate_scale(tree, shape, opts->only_status, &found);
    bool failed = found.n_causes > 0;
    if (ret_structural)
        *ret_structural = c.structural;
    move_causes(causes, &found);
    return failed ? -ERR_INVALID : 0;
}
