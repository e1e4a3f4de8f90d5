/* A path is followed part by part, with the text of the field growing along. Source of order and
 * texts: Kubernetes' pkg/apis/core/validation, as kube-apiserver v1.37 answers; that they are the
 * same is tried by tests/func/core-rules.sh. */
#include "admission/checks.h"

#include <math.h>

#include "admission/admit.h"
#include "admission/names.h"
#include "apiserver/base/buf.h"
#include "apiserver/base/json.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "openapi/goprint.h"
#include "openapi/kinds.h"
#include "openapi/semantic.h"

struct run {
    const struct path_check *row;
    const struct kind *kind;
    const cJSON *object, *old; /* old: NULL = none */
    struct err *causes;
    struct map *others; /* CHECK_REFERS: the values that there are */
};

/* ---- what is said ---- */

static void refuse(const struct run *r, const char *field, const cJSON *value, const char *text)
{
    SCOPED(buf_fini) struct buf shown = {0};
    goprint_bad_value(value, &shown);
    err_cause(r->causes, "FieldValueInvalid", field, "Invalid value: %s: %s", buf_cstr(&shown),
              text);
}

static void refuse_text(const struct run *r, const char *field, const char *value, const char *text)
{
    SCOPED(json_free_p) cJSON *node = json_string(value);
    refuse(r, field, node, text);
}

static void require(const struct run *r, const char *field, const char *text)
{
    err_cause(r->causes, "FieldValueRequired", field, "Required value%s%s", text ? ": " : "",
              text ? text : "");
}

/* ---- one value ---- */

static const char *text_of(const cJSON *node)
{
    return cJSON_IsString(node) ? node->valuestring : "";
}

static bool is_empty(const cJSON *node)
{
    int64_t n;
    if (cJSON_IsNumber(node))
        return json_node_i64(node, &n) == 0 && n == 0;
    if (cJSON_IsString(node))
        return !*node->valuestring;
    return !node || cJSON_IsNull(node) ||
           ((cJSON_IsArray(node) || cJSON_IsObject(node)) && !node->child);
}

static void check_enum(const struct run *r, const char *field, const cJSON *node)
{
    SCOPED(buf_fini) struct buf text = {0};
    const char *value = text_of(node);
    for (const char *const *v = r->row->values; *v; v++)
        if (strcmp(*v, value) == 0)
            return;
    buf_puts(&text, "Unsupported value: ");
    goprint_bad_value(node, &text);
    for (const char *const *v = r->row->values; *v; v++)
        buf_printf(&text, "%s\"%s\"", v == r->row->values ? ": supported values: " : ", ", *v);
    err_cause(r->causes, "FieldValueNotSupported", field, "%s", buf_cstr(&text));
}

static void check_range(const struct run *r, const char *field, const cJSON *node, int64_t min,
                        int64_t max)
{
    int64_t n;
    if (json_node_i64(node, &n) == 0 && n >= min && n <= max)
        return;
    SCOPED_FREE char *text = min == max ? xasprintf("must be %lld", (long long)min)
                                        : xasprintf("must be between %lld and %lld, inclusive",
                                                    (long long)min, (long long)max);
    refuse(r, field, node, text);
}

/* Source: apimachinery's IsValidPortName. */
static void check_port_name(const struct run *r, const char *field, const cJSON *node)
{
    const char *s = text_of(node);
    size_t n = strlen(s);
    if (n > 15)
        refuse(r, field, node, "must be no more than 15 characters");
    if (strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") != n)
        refuse(r, field, node,
               "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    if (!strpbrk(s, "abcdefghijklmnopqrstuvwxyz"))
        refuse(r, field, node, "must contain at least one letter (a-z)");
    if (strstr(s, "--"))
        refuse(r, field, node, "must not contain consecutive hyphens");
    if (n && (s[0] == '-' || s[n - 1] == '-'))
        refuse(r, field, node, "must not begin or end with a hyphen");
}

/* Source: apimachinery's IsConfigMapKey. */
static void check_config_key(const struct run *r, const char *field, const char *key)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    size_t n = strlen(key), good = 0;
    if (n > 253)
        refuse_text(r, field, key, "must be no more than 253 characters");
    while (good < n && (strchr(letters, key[good]) || strchr("-_.", key[good])))
        good++;
    if (!n || good < n)
        refuse_text(r, field, key,
                    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
                    "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation "
                    "is '[-._a-zA-Z0-9]+')");
    if (strcmp(key, ".") == 0)
        refuse_text(r, field, key, "must not be '.'");
    else if (strcmp(key, "..") == 0)
        refuse_text(r, field, key, "must not be '..'");
    else if (str_has_prefix(key, ".."))
        refuse_text(r, field, key, "must not start with '..'");
}

static void check_env_name(const struct run *r, const char *field, const cJSON *node)
{
    for (const char *p = text_of(node); *p; p++)
        if (*p < ' ' || *p > '~' || *p == '=') {
            refuse(r, field, node,
                   "a valid environment variable name must consist only of printable ASCII "
                   "characters other than '='");
            return;
        }
}

static void check_labels(const struct run *r, const char *field, const cJSON *labels)
{
    const cJSON *l;
    cJSON_ArrayForEach(l, labels)
    {
        name_check_label_key(l->string, field, r->causes);
        name_check_label_value(text_of(l), field, r->causes);
    }
}

static bool has_dots(const char *path)
{
    for (const char *p = path; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL)
        if (str_has_prefix(p, "..") && (p[2] == '/' || p[2] == '\0'))
            return true;
    return false;
}

static void check_path(const struct run *r, const char *field, const cJSON *node, bool is_relative)
{
    if (is_relative && *text_of(node) == '/')
        refuse(r, field, node, "must be a relative path");
    if (has_dots(text_of(node)))
        refuse(r, field, node, "must not contain '..'");
}

static void check_trimmed(const struct run *r, const char *field, const cJSON *node)
{
    static const char blanks[] = " \t\r\n\v\f";
    const char *s = text_of(node);
    size_t n = strlen(s);
    if (n && (strchr(blanks, s[0]) || strchr(blanks, s[n - 1])))
        refuse(r, field, node, "must not have leading or trailing whitespace");
}

/* As a number, near enough; nan of what is no quantity. */
static double quantity_of(const cJSON *node)
{
    SCOPED(buf_fini) struct buf form = {0};
    char *end;
    if (cJSON_IsNumber(node))
        return node->valuedouble;
    semantic_quantity(text_of(node), &form);
    double v = strtod(buf_cstr(&form), &end);
    return *end || end == buf_cstr(&form) ? (double)NAN : v;
}

static void refuse_quantity(const struct run *r, const char *field, const cJSON *node,
                            const char *text)
{
    if (cJSON_IsString(node)) {
        refuse(r, field, node, text);
        return;
    }
    SCOPED_FREE char *number = json_to_str(node);
    refuse_text(r, field, number, text);
}

static void check_quantities(const struct run *r, const char *field, const cJSON *node)
{
    const cJSON *q;
    cJSON_ArrayForEach(q, node)
    {
        SCOPED_FREE char *at = xasprintf("%s[%s]", field, q->string);
        if (quantity_of(q) < 0)
            refuse_quantity(r, at, q, "must be greater than or equal to 0");
    }
}

static void check_config_keys(const struct run *r, const char *field, const cJSON *node)
{
    const cJSON *member;
    cJSON_ArrayForEach(member, node)
    {
        SCOPED_FREE char *at = xasprintf("%s[%s]", field, member->string);
        check_config_key(r, at, member->string);
    }
}

static void check_one_of(const struct run *r, const char *field, const cJSON *node)
{
    size_t n = 0;
    for (const char *const *v = r->row->values; *v; v++) {
        const cJSON *member = json_get(node, *v);
        if (!member || cJSON_IsNull(member) || n++ == 0)
            continue;
        SCOPED_FREE char *at = xasprintf("%s.%s", field, *v);
        err_cause(r->causes, "FieldValueForbidden", at, "Forbidden: may not specify more than 1 %s",
                  r->row->text);
    }
    SCOPED_FREE char *text = xasprintf("must specify a %s", r->row->text);
    if (n == 0)
        require(r, field, text);
}

/* Whichever members a row names are there. */
static size_t count_members(const struct run *r, const cJSON *node)
{
    size_t n = 0;
    for (const char *const *v = r->row->values; *v; v++)
        n += cJSON_IsObject(json_get(node, *v));
    return n;
}

static void check_source(const struct run *r, const char *field, const cJSON *variable)
{
    const cJSON *source = json_get(variable, "valueFrom");
    SCOPED_FREE char *at = xasprintf("%s.valueFrom", field);
    if (!cJSON_IsObject(source))
        return;
    size_t n = count_members(r, source);
    if (n == 0)
        refuse_text(r, at, "", r->row->text);
    else if (*json_str_or(variable, "value", ""))
        refuse_text(r, at, "", "may not be specified when `value` is not empty");
    else if (n > 1)
        refuse_text(r, at, "", "may not have more than one field specified at a time");
}

static void check_named(const struct run *r, const char *field, const cJSON *list)
{
    const cJSON *item;
    size_t i = 0;
    if (json_len(list) < 2)
        return;
    cJSON_ArrayForEach(item, list)
    {
        SCOPED_FREE char *at = xasprintf("%s[%zu].name", field, i++);
        if (!*json_str_or(item, "name", ""))
            require(r, at, NULL);
    }
}

static void check_limits(const struct run *r, const char *field, const cJSON *resources)
{
    const cJSON *request;
    SCOPED_FREE char *at = xasprintf("%s.requests", field);
    cJSON_ArrayForEach(request, json_get(resources, "requests"))
    {
        const cJSON *limit = json_get(json_get(resources, "limits"), request->string);
        if (!limit || !(quantity_of(request) > quantity_of(limit)))
            continue;
        SCOPED_FREE char *most =
            cJSON_IsString(limit) ? xstrdup(text_of(limit)) : json_to_str(limit);
        SCOPED_FREE char *text =
            xasprintf("must be less than or equal to %s limit of %s", request->string, most);
        refuse_quantity(r, at, request, text);
    }
}

/* Away with what may change, at LIST[].MEMBER or a member. How many items there were, else 0. */
static size_t thaw(cJSON *object, const char *path)
{
    const char *brackets = strstr(path, "[].");
    SCOPED_FREE char *name = xstrndup(path, brackets ? (size_t)(brackets - path) : strlen(path));
    cJSON *item, *list = json_get(object, name);
    if (!brackets) {
        json_remove(object, name);
        return 0;
    }
    cJSON_ArrayForEach(item, list)
    {
        json_remove(item, brackets + strlen("[]."));
    }
    return json_len(list);
}

static void check_frozen(const struct run *r, const char *field, const cJSON *node)
{
    const struct field *row = shape_field(r->kind->shape, r->row->path);
    SCOPED(json_free_p) cJSON *now = json_copy(node), *before = NULL;
    if (!r->old || !row)
        return;
    before = json_copy(json_at(r->old, r->row->path));
    for (const char *const *v = r->row->values; *v; v++)
        if (thaw(now, *v) != thaw(before, *v))
            return; /* who counts them tells */
    if (!semantic_equal(row->of, now, before))
        err_cause(r->causes, "FieldValueForbidden", field, "Forbidden: %s", r->row->text);
}

static void check_immutable(const struct run *r, const char *field, const cJSON *node)
{
    if (r->old && !json_equal(node, json_at(r->old, r->row->path)))
        refuse(r, field, node, "field is immutable");
}

static void check_name(const struct run *r, const char *field, const cJSON *node)
{
    if (strlen(text_of(node)) > 63)
        refuse(r, field, node, "must be no more than 63 characters");
    else
        name_check_object(text_of(node), false, NAME_LABEL, field, r->causes);
}

static void check_alone(const struct run *r, const char *field, const cJSON *node)
{
    if (json_len(node) < 2 || !json_has_str(node, r->row->text))
        return;
    err_cause(r->causes, "FieldValueForbidden", field,
              "Forbidden: may not use %s with other access modes", r->row->text);
}

static void check_subdomain(const struct run *r, const char *field, const cJSON *node)
{
    name_check_object(text_of(node), false, NAME_SUBDOMAIN, field, r->causes);
}

static void check_port(const struct run *r, const char *field, const cJSON *node)
{
    if (cJSON_IsString(node))
        check_port_name(r, field, node);
    else
        check_range(r, field, node, 1, 65535);
}

static void check_key(const struct run *r, const char *field, const cJSON *node)
{
    check_config_key(r, field, text_of(node));
}

static void check_bounds(const struct run *r, const char *field, const cJSON *node)
{
    check_range(r, field, node, r->row->min, r->row->max);
}

static void check_not_negative(const struct run *r, const char *field, const cJSON *node)
{
    int64_t n;
    if (json_node_i64(node, &n) == 0 && n < 0)
        refuse(r, field, node, "must be greater than or equal to 0");
}

static void check_mode(const struct run *r, const char *field, const cJSON *node)
{
    int64_t n;
    if (json_node_i64(node, &n) == 0 && (n < 0 || n > 0777))
        refuse(r, field, node, "must be a number between 0 and 0777 (octal), both inclusive");
}

static void check_size(const struct run *r, const char *field, const cJSON *node)
{
    if (quantity_of(node) <= 0)
        refuse_quantity(r, field, node, "must be greater than zero");
}

static void check_no_dots(const struct run *r, const char *field, const cJSON *node)
{
    check_path(r, field, node, false);
}

static void check_relative(const struct run *r, const char *field, const cJSON *node)
{
    check_path(r, field, node, true);
}

/* Of what is there; what is not, or empty, or one of several, is another check's. */
static void (*const checks_of_present[])(const struct run *r, const char *field,
                                         const cJSON *node) = {
    [CHECK_ENUM] = check_enum,
    [CHECK_LABEL] = check_name,
    [CHECK_SUBDOMAIN] = check_subdomain,
    [CHECK_PORT_NAME] = check_port_name,
    [CHECK_PORT] = check_port,
    [CHECK_CONFIG_KEY] = check_key,
    [CHECK_CONFIG_KEYS] = check_config_keys,
    [CHECK_LABELS] = check_labels,
    [CHECK_ENV_NAME] = check_env_name,
    [CHECK_RANGE] = check_bounds,
    [CHECK_NOT_NEGATIVE] = check_not_negative,
    [CHECK_MODE] = check_mode,
    [CHECK_QUANTITIES] = check_quantities,
    [CHECK_SIZE] = check_size,
    [CHECK_TRIMMED] = check_trimmed,
    [CHECK_NO_DOTS] = check_no_dots,
    [CHECK_RELATIVE] = check_relative,
    [CHECK_NAMED] = check_named,
    [CHECK_SOURCE] = check_source,
    [CHECK_LIMITS] = check_limits,
    [CHECK_IMMUTABLE] = check_immutable,
    [CHECK_FROZEN] = check_frozen,
    [CHECK_ALONE] = check_alone,
};

static void check_present(const struct run *r, const char *field, const cJSON *node)
{
    size_t check = r->row->check;
    if (check < ARRAY_LEN(checks_of_present) && checks_of_present[check])
        checks_of_present[check](r, field, node);
}

static void check_leaf(const struct run *r, const char *field, const cJSON *node)
{
    const char *shown = r->row->shown ? r->row->shown : field;
    SCOPED(buf_fini) struct buf value = {0};
    if (r->row->check == CHECK_REQUIRED && is_empty(node))
        require(r, shown, r->row->text);
    else if (r->row->check == CHECK_ONE_OF && node)
        check_one_of(r, shown, node);
    else if (r->row->check == CHECK_REFERS && !map_get(r->others, text_of(node))) {
        buf_go_quote(&value, text_of(node), strlen(text_of(node)));
        err_cause(r->causes, "FieldValueNotFound", shown, "Not found: %s", buf_cstr(&value));
    } else if (!is_empty(node) || (cJSON_IsNumber(node) && !r->row->skips_zero))
        check_present(r, shown, node);
}

/* ---- among others ---- */

/* The texts at LIST[].MEMBER. */
static void collect(const cJSON *object, const char *path, struct map *to)
{
    const char *brackets = strstr(path, "[].");
    SCOPED_FREE char *list = xstrndup(path, (size_t)(brackets - path));
    const cJSON *item;
    cJSON_ArrayForEach(item, json_at(object, list))
    {
        const cJSON *value = json_get(item, brackets + strlen("[]."));
        if (cJSON_IsString(value))
            (void)map_put(to, value->valuestring, to);
    }
}

/* What may not be there twice: a member of an item, or some of its members together. */
static cJSON *key_of(const struct run *r, const cJSON *item, const char *name)
{
    if (!r->row->values)
        return json_copy(json_get(item, name));
    cJSON *key = json_object();
    for (const char *const *v = r->row->values; *v; v++)
        if (json_get(item, *v))
            json_set(key, *v, json_copy(json_get(item, *v)));
    return key;
}

/* name: of the member, with its dot; "" = the items. */
static void check_unique(const struct run *r, const char *field, const cJSON *list,
                         const char *name)
{
    struct map *seen = map_new();
    const cJSON *item;
    size_t i = 0;
    if (r->row->other)
        collect(r->object, r->row->other, seen);
    cJSON_ArrayForEach(item, list)
    {
        SCOPED(json_free_p) cJSON *key = key_of(r, item, name + (*name == '.'));
        SCOPED_FREE char *at = xasprintf("%s[%zu]%s", field, i++, name);
        SCOPED(buf_fini) struct buf shown = {0};
        goprint_bad_value(key, &shown);
        if (is_empty(key) ||
            !map_put(seen, cJSON_IsString(key) ? key->valuestring : buf_cstr(&shown), seen))
            continue;
        if (r->row->text)
            refuse(r, at, key, r->row->text);
        else
            err_cause(r->causes, "FieldValueDuplicate", at, "Duplicate value: %s",
                      buf_cstr(&shown));
    }
    map_free(seen);
}

/* ---- the way ---- */

static void follow(const struct run *r, const char *path, const char *field, const cJSON *node);

static void follow_items(const struct run *r, const char *path, const char *field,
                         const cJSON *list)
{
    bool is_shown = path[1] == ']';
    const char *rest = strchr(path, ']') + 1;
    const cJSON *item;
    size_t i = 0;
    if (r->row->check == CHECK_UNIQUE && (!*rest || !strpbrk(rest + 1, ".["))) {
        check_unique(r, field, list, rest);
        return;
    }
    cJSON_ArrayForEach(item, list)
    {
        SCOPED_FREE char *at = is_shown ? xasprintf("%s[%zu]", field, i++) : xstrdup(field);
        follow(r, rest, at, item);
    }
}

/* path: what is left of it behind node, which field is the text of. */
static void follow(const struct run *r, const char *path, const char *field, const cJSON *node)
{
    if (!*path) {
        check_leaf(r, field, node);
        return;
    }
    if (str_has_prefix(path, "[]") || str_has_prefix(path, "[-]")) {
        follow_items(r, path, field, node);
        return;
    }
    bool is_key = *path == '[';
    const char *start = path + (is_key || *path == '.');
    size_t n = is_key ? strcspn(start, "]") : strcspn(start, ".[");
    SCOPED_FREE char *name = xstrndup(start, n);
    SCOPED_FREE char *at = is_key   ? xasprintf("%s[%s]", field, name)
                           : *field ? xasprintf("%s.%s", field, name)
                                    : xstrdup(name);
    if (cJSON_IsObject(node))
        follow(r, start + n + is_key, at, json_get(node, name));
    else if (is_key || r->row->shown) /* what is not there lacks it too */
        follow(r, start + n + is_key, at, NULL);
}

static void run_rows(struct run *r)
{
    for (r->row = r->kind->checks; r->row->path; r->row++) {
        if (r->row->when_path &&
            strcmp(json_str_or(r->object, r->row->when_path, ""), r->row->when) != 0)
            continue;
        r->others = map_new();
        if (r->row->check == CHECK_REFERS)
            collect(r->object, r->row->other, r->others);
        follow(r, r->row->path, "", r->object);
        map_free(r->others);
    }
}

static bool has_cause(const struct err *causes, const struct err_cause *c)
{
    for (size_t i = 0; i < causes->n_causes; i++)
        if (strcmp(causes->causes[i].field, c->field) == 0 &&
            strcmp(causes->causes[i].message, c->message) == 0)
            return true;
    return false;
}

void checks_validate(const struct kind *kind, const cJSON *object, const cJSON *old,
                     struct err *causes)
{
    SCOPED(err_fini) struct err found = {0}, before = {0};
    if (!kind->checks)
        return;
    run_rows(&(struct run){.kind = kind, .object = object, .old = old, .causes = &found});
    if (found.n_causes && old)
        run_rows(&(struct run){.kind = kind, .object = old, .causes = &before});
    for (size_t i = 0; i < found.n_causes; i++) {
        const struct err_cause *c = &found.causes[i];
        if (!has_cause(&before, c) && !has_cause(causes, c))
            err_cause(causes, c->reason, c->field, "%s", c->message);
    }
}
