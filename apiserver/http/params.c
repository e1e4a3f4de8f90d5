/* Conversion first (400), then the checks of combinations (422), each with the text a client of
 * kube-apiserver knows. */
#include "apiserver/http/params.h"

#include <inttypes.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/http/body.h"
#include "apiserver/http/negotiate.h"
#include "apiserver/http/route.h"
#include "apiserver/registry/continue.h"
#include "apiserver/registry/select.h"

/* Bytes kept of a User-Agent. Source: docs/kubernetes-api.md 29.2 */
#define AGENT_MANAGER_MAX 128

/* ---- 422 ---- */

/* Adds the overall message of a 422 about options: CreateOptions.meta.k8s.io "" is invalid: ...
 * Returns 0 when there are no causes. */
static int invalid(struct err *causes, const char *options_kind, struct err *err)
{
    return err_invalid(causes, "meta.k8s.io", options_kind, "", err);
}

static void cause_forbidden(struct err *causes, const char *field, const char *why)
{
    err_cause(causes, "FieldValueForbidden", field, "Forbidden: %s", why);
}

static void cause_unsupported(struct err *causes, const char *field, const char *value,
                              const char *supported)
{
    SCOPED(buf_fini) struct buf quoted = {0};
    buf_go_quote(&quoted, value, strlen(value));
    err_cause(causes, "FieldValueNotSupported", field,
              "Unsupported value: %s: supported values: %s", buf_cstr(&quoted), supported);
}

/* ---- numbers ---- */

static bool is_digits(const char *s)
{
    s += *s == '-' || *s == '+';
    return *s && strspn(s, "0123456789") == strlen(s);
}

static int bad_number(const char *function, const char *text, bool is_range, struct err *err)
{
    SCOPED(buf_fini) struct buf quoted = {0};
    buf_go_quote(&quoted, text, strlen(text));
    return err_set(err, ERR_BAD_REQUEST, "strconv.%s: parsing %s: %s", function, buf_cstr(&quoted),
                   is_range ? "value out of range" : "invalid syntax");
}

int params_int(const struct pairs *params, const char *name, int64_t *ret, struct err *err)
{
    const char *text = pairs_get(params, name);
    *ret = 0;
    if (!text || str_to_i64(text + (*text == '+'), ret) == 0)
        return 0;
    return bad_number("ParseInt", text, is_digits(text), err);
}

static int parse_version(const char *text, int64_t *ret, struct err *err)
{
    uint64_t v;
    if (str_to_u64(text, &v) < 0)
        return bad_number("ParseUint", text, is_digits(text) && *text != '-' && *text != '+', err);
    *ret = v > INT64_MAX ? INT64_MAX : (int64_t)v;
    return 0;
}

static int bad_version(const char *text, enum err_code code, const char *prefix, struct err *cause,
                       struct err *err)
{
    SCOPED(buf_fini) struct buf quoted = {0};
    buf_go_quote(&quoted, text, strlen(text));
    err_set(err, code, "%sresourceVersion: Invalid value: %s: %s", prefix, buf_cstr(&quoted),
            err_text(cause));
    err_fini(cause);
    return -(int)code;
}

static struct read_version version_of(const char *text, int64_t rev, enum read_match match)
{
    if (!text || !*text)
        return (struct read_version){.match = READ_LATEST};
    if (rev == 0)
        return (struct read_version){.match = READ_ANY};
    return (struct read_version){.match = match, .rev = rev};
}

int params_version(const char *text, struct read_version *ret, struct err *err)
{
    struct err cause = {0};
    int64_t rev = 0;
    if (text && *text && parse_version(text, &rev, &cause) < 0)
        return bad_version(text, ERR_UNKNOWN, "", &cause, err);
    *ret = version_of(text, rev, READ_AT_LEAST);
    return 0;
}

int params_list_version(const struct list_options *o, bool is_paged, struct read_version *ret,
                        struct err *err)
{
    struct err cause = {0};
    int64_t rev = 0;
    const char *text = o->resource_version;
    bool goes_on = o->continue_token && *o->continue_token;
    SCOPED(continue_point_fini) struct continue_point point = {0};
    if (goes_on && continue_parse(o->continue_token, &point, err) < 0)
        return -(int)err->code;
    if (goes_on && text && *text && strcmp(text, "0") != 0)
        return err_set(err, ERR_BAD_REQUEST,
                       "specifying resource version is not allowed when using continue");
    if (text && *text && parse_version(text, &rev, &cause) < 0)
        return bad_version(text, ERR_BAD_REQUEST, "invalid resource version: ", &cause, err);
    bool is_exact = o->match && *o->match ? strcmp(o->match, "Exact") == 0 : is_paged;
    *ret = version_of(text, rev, is_exact ? READ_EXACT : READ_AT_LEAST);
    return 0;
}

/* ---- list and watch ---- */

static void check_list(const struct list_options *o, struct err *causes)
{
    static const char field[] = "resourceVersionMatch";
    if (o->match && *o->match) {
        if (!o->resource_version || !*o->resource_version)
            cause_forbidden(causes, field,
                            "resourceVersionMatch is forbidden unless resourceVersion is provided");
        if (o->continue_token && *o->continue_token)
            cause_forbidden(causes, field,
                            "resourceVersionMatch is forbidden when continue is provided");
        if (strcmp(o->match, "Exact") != 0 && strcmp(o->match, "NotOlderThan") != 0)
            cause_unsupported(causes, field, o->match, "\"Exact\", \"NotOlderThan\", \"\"");
        if (strcmp(o->match, "Exact") == 0 && str_equal(o->resource_version, "0"))
            cause_forbidden(
                causes, field,
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
    }
    if (o->has_initial)
        cause_forbidden(causes, "sendInitialEvents", "sendInitialEvents is forbidden for list");
}

static void check_watch(const struct list_options *o, struct err *causes)
{
    static const char field[] = "resourceVersionMatch";
    bool is_not_older = str_equal(o->match, "NotOlderThan");
    if (o->has_initial && !is_not_older)
        cause_forbidden(causes, field,
                        "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    if (!o->match || !*o->match)
        return;
    if (!o->has_initial)
        cause_forbidden(
            causes, field,
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
    if (!is_not_older)
        cause_unsupported(causes, field, o->match, "\"NotOlderThan\"");
    if (o->continue_token && *o->continue_token)
        cause_forbidden(causes, field,
                        "resourceVersionMatch is forbidden when continue is provided");
}

bool params_from_any(const struct list_options *o)
{
    return !o->resource_version || !*o->resource_version || strcmp(o->resource_version, "0") == 0;
}

/* A watch from no version, or from "0", is one with initial events, as kube-apiserver's defaults
 * have it since 1.34. */
static void default_watch(struct list_options *o)
{
    if (!params_from_any(o) || o->has_initial || (o->match && *o->match))
        return;
    o->has_initial = o->initial = true;
    o->match = "NotOlderThan";
}

void list_options_fini(struct list_options *o)
{
    selector_free(o->selector);
    *o = (struct list_options){0};
}

static int convert_list(const struct request *req, struct list_options *ret, struct err *err)
{
    const struct pairs *params = &req->params;
    *ret = (struct list_options){.resource_version = pairs_get(params, "resourceVersion"),
                                 .match = pairs_get(params, "resourceVersionMatch"),
                                 .continue_token = pairs_get(params, "continue"),
                                 .bookmarks = route_flag(params, "allowWatchBookmarks"),
                                 .has_initial = pairs_get(params, "sendInitialEvents") != NULL,
                                 .initial = route_flag(params, "sendInitialEvents")};
    int r = params_int(params, "timeoutSeconds", &ret->timeout_s, err);
    if (r == 0)
        r = params_int(params, "limit", &ret->limit, err);
    if (r == 0)
        r = selector_read(req->route.kind, pairs_get(params, "labelSelector"),
                          pairs_get(params, "fieldSelector"), &ret->selector, err);
    return r;
}

/* The name in the path (or in the field selector, which is the same one then) must be that of the
 * selector, and is when there is none. */
static int check_name(const struct request *req, struct list_options *o, struct err *err)
{
    const char *wanted = req->route.name, *selected = selector_name(o->selector);
    if (!*wanted || (selected && strcmp(selected, wanted) == 0))
        return 0;
    if (selector_has_fields(o->selector))
        return err_set(err, ERR_BAD_REQUEST,
                       "fieldSelector metadata.name doesn't match requested name");
    selector_add_name(o->selector, wanted);
    return 0;
}

int params_list(const struct request *req, bool is_watch, struct list_options *ret, struct err *err)
{
    SCOPED(list_options_fini) struct list_options o = {0};
    SCOPED(err_fini) struct err causes = {0};
    int r = convert_list(req, &o, err);
    if (r < 0)
        return r;
    if (is_watch)
        default_watch(&o);
    (is_watch ? check_watch : check_list)(&o, &causes);
    if ((r = invalid(&causes, "ListOptions", err)) < 0 ||
        (r = selector_check(o.selector, err)) < 0 || (r = check_name(req, &o, err)) < 0)
        return r;
    if (o.limit < 0 || str_equal(o.resource_version, "0"))
        o.limit = 0; /* any version: the whole list is at hand, and there are no pages */
    *ret = steal(&o);
    return 0;
}

/* ---- writes ---- */

/* The only legal value is All; several are shown as a list. */
static void check_dry_run(const char *const *values, size_t n, bool *ret, struct err *causes)
{
    SCOPED(buf_fini) struct buf list = {0};
    bool is_good = true;
    for (size_t i = 0; i < n; i++) {
        is_good &= strcmp(values[i], "All") == 0;
        buf_putc(&list, i ? ',' : '[');
        buf_json_string(&list, values[i], strlen(values[i]));
    }
    buf_putc(&list, ']');
    *ret = n > 0 && is_good;
    if (!is_good)
        err_cause(causes, "FieldValueNotSupported", "dryRun",
                  "Unsupported value: %s: supported values: \"All\"", buf_cstr(&list));
}

static void check_dry_run_query(struct request *req, bool *ret, struct err *causes)
{
    const char **values = arena_alloc(&req->arena, req->params.n * sizeof *values);
    size_t n = 0;
    for (size_t i = 0; i < req->params.n; i++)
        if (strcmp(req->params.v[i].name, "dryRun") == 0)
            values[n++] = req->params.v[i].value;
    check_dry_run(values, n, ret, causes);
}

static void check_validation(const char *text, enum field_validation *ret, struct err *causes)
{
    if (!text || !*text || strcmp(text, "Warn") == 0)
        *ret = FIELD_VALIDATION_WARN;
    else if (strcmp(text, "Strict") == 0)
        *ret = FIELD_VALIDATION_STRICT;
    else if (strcmp(text, "Ignore") == 0)
        *ret = FIELD_VALIDATION_IGNORE;
    else
        cause_unsupported(causes, "fieldValidation", text,
                          "\"\", \"Ignore\", \"Strict\", \"Warn\"");
}

/* The printable runes up to end, as many as there is room for; a broken byte is U+FFFD. Source:
 * docs/kubernetes-api.md 29.2. */
static void print_runes(const char *s, const char *end, size_t max, struct buf *out)
{
    static const char broken[] = "\xef\xbf\xbd";
    for (size_t n; s < end; s += n ? n : 1) {
        uint32_t rune;
        n = str_utf8_decode(s, (size_t)(end - s), &rune);
        const char *bytes = n ? s : broken;
        size_t len = n ? n : sizeof broken - 1;
        if (n && !name_is_printable(s, n, rune))
            continue;
        if (out->len + len > max)
            break;
        buf_append(out, bytes, len);
    }
}

/* The query's fieldManager, else the User-Agent up to its first '/'. */
static const char *manager_of(struct request *req)
{
    const char *given = pairs_get(&req->params, "fieldManager");
    const char *agent = pairs_get_ci(&req->headers, "User-Agent");
    SCOPED(buf_fini) struct buf name = {0};
    if (given && *given)
        print_runes(given, given + strlen(given), SIZE_MAX, &name);
    else if (agent)
        print_runes(agent, agent + strcspn(agent, "/"), AGENT_MANAGER_MAX, &name);
    return arena_strdup(&req->arena, name.len ? buf_cstr(&name) : "unknown");
}

static int write_options(struct request *req, const char *options_kind, struct err *causes,
                         struct write_options *ret, struct err *err)
{
    struct write_options o = {
        .guard = req->guard, .warnings = &req->warnings, .deadline_ms = req->deadline_ms};
    const char *manager = pairs_get(&req->params, "fieldManager");
    name_check_manager(manager ? manager : "", "fieldManager", causes);
    check_dry_run_query(req, &o.dry_run, causes);
    check_validation(pairs_get(&req->params, "fieldValidation"), &o.field_validation, causes);
    int r = invalid(causes, options_kind, err);
    if (r < 0)
        return r;
    o.field_manager = manager_of(req);
    *ret = o;
    return 0;
}

int params_write(struct request *req, const char *options_kind, struct write_options *ret,
                 struct err *err)
{
    SCOPED(err_fini) struct err causes = {0};
    if (pairs_get(&req->params, "force") && strcmp(options_kind, "PatchOptions") == 0)
        cause_forbidden(&causes, "force", "may not be specified for non-apply patch");
    return write_options(req, options_kind, &causes, ret, err);
}

int params_apply(struct request *req, struct write_options *ret, bool *ret_force, struct err *err)
{
    SCOPED(err_fini) struct err causes = {0};
    const char *manager = pairs_get(&req->params, "fieldManager");
    if (!manager || !*manager)
        err_cause(&causes, "FieldValueRequired", "fieldManager",
                  "Required value: is required for apply patch");
    *ret_force = route_flag(&req->params, "force");
    return write_options(req, "PatchOptions", &causes, ret, err);
}

/* ---- delete ---- */

struct member { /* of DeleteOptions, with Go's name of its type */
    const char *path, *struct_path, *go_type;
    int cjson_types;
};

/* A number must be written as an int64. */
static int check_int64(const cJSON *node, const char *struct_path, struct err *err)
{
    int64_t ignored;
    if (!cJSON_IsNumber(node) || (json_node_is_int(node) && json_node_i64(node, &ignored) == 0))
        return 0;
    SCOPED_FREE char *number = json_to_str(node);
    return err_set(err, ERR_BAD_REQUEST,
                   "json: cannot unmarshal number %s into Go struct field %s of type int64", number,
                   struct_path);
}

static int check_member(const cJSON *tree, const struct member *m, struct err *err)
{
    const cJSON *node = json_at(tree, m->path);
    if (!node || cJSON_IsNull(node) || (node->type & 0xff & m->cjson_types))
        return check_int64(node, m->struct_path, err);
    return err_set(err, ERR_BAD_REQUEST,
                   "json: cannot unmarshal %s into Go struct field %s of type %s",
                   body_go_type(node), m->struct_path, m->go_type);
}

/* To delete what cannot be read. */
#define UNSAFE "ignoreStoreReadErrorWithClusterBreakingPotential"

static int check_delete_types(const cJSON *tree, struct err *err)
{
    static const struct member members[] = {
        {"gracePeriodSeconds", "DeleteOptions.gracePeriodSeconds", "int64", cJSON_Number},
        {"preconditions", "DeleteOptions.preconditions", "v1.Preconditions", cJSON_Object},
        {"preconditions.uid", "Preconditions.preconditions.uid", "types.UID", cJSON_String},
        {"preconditions.resourceVersion", "Preconditions.preconditions.resourceVersion", "string",
         cJSON_String},
        {"orphanDependents", "DeleteOptions.orphanDependents", "bool", cJSON_True | cJSON_False},
        {"propagationPolicy", "DeleteOptions.propagationPolicy", "v1.DeletionPropagation",
         cJSON_String},
        {"dryRun", "DeleteOptions.dryRun", "[]string", cJSON_Array},
        {UNSAFE, "DeleteOptions." UNSAFE, "bool", cJSON_True | cJSON_False},
    };
    const cJSON *item;
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        if (check_member(tree, &members[i], err) < 0)
            return -ERR_BAD_REQUEST;
    cJSON_ArrayForEach(item, json_get(tree, "dryRun"))
    {
        if (!cJSON_IsString(item) && !cJSON_IsNull(item))
            return err_set(err, ERR_BAD_REQUEST,
                           "json: cannot unmarshal %s into Go struct field DeleteOptions.dryRun of "
                           "type string",
                           body_go_type(item));
    }
    return 0;
}

static void check_delete(const struct delete_options *o, struct err *causes)
{
    static const char field[] = "propagationPolicy";
    if (!o->propagation)
        return;
    if (o->orphan_dependents >= 0) {
        SCOPED(buf_fini) struct buf quoted = {0};
        buf_go_quote(&quoted, o->propagation, strlen(o->propagation));
        err_cause(causes, "FieldValueInvalid", field,
                  "Invalid value: %s: orphanDependents and deletionPropagation cannot be both set",
                  buf_cstr(&quoted));
    }
    if (strcmp(o->propagation, "Foreground") != 0 && strcmp(o->propagation, "Background") != 0 &&
        strcmp(o->propagation, "Orphan") != 0)
        cause_unsupported(causes, field, o->propagation,
                          "\"Foreground\", \"Background\", \"Orphan\", \"nil\"");
}

static void set_grace(struct delete_options *o, bool is_given, int64_t grace_s)
{
    o->has_grace = is_given;
    o->grace_s = grace_s > 0 ? grace_s : 0;
}

static int delete_from_query(struct request *req, struct delete_options *o, struct err *causes,
                             struct err *err)
{
    const char *grace = pairs_get(&req->params, "gracePeriodSeconds");
    int64_t grace_s = 0;
    if (params_int(&req->params, "gracePeriodSeconds", &grace_s, err) < 0)
        return -ERR_BAD_REQUEST;
    set_grace(o, grace && *grace, grace_s);
    o->uid = pairs_get(&req->params, "uid");
    o->resource_version = pairs_get(&req->params, "resourceVersion");
    o->propagation = pairs_get(&req->params, "propagationPolicy");
    if (pairs_get(&req->params, "orphanDependents"))
        o->orphan_dependents = route_flag(&req->params, "orphanDependents");
    check_dry_run_query(req, &o->dry_run, causes);
    return 0;
}

static void delete_dry_run(const cJSON *list, struct arena *arena, bool *ret, struct err *causes)
{
    const char **values = arena_alloc(arena, json_len(list) * sizeof *values);
    const cJSON *item;
    size_t n = 0;
    cJSON_ArrayForEach(item, list) values[n++] = cJSON_IsNull(item) ? "" : item->valuestring;
    check_dry_run(values, n, ret, causes);
}

static int delete_from_body(struct request *req, struct delete_options *o, cJSON **ret_tree,
                            struct err *causes, struct err *err)
{
    cJSON *tree = NULL;
    if (body_decode_options(req, "meta.k8s.io/v1", "DeleteOptions", NULL, &tree, err) < 0)
        return -err->code;
    *ret_tree = tree;
    if (check_delete_types(tree, err) < 0)
        return -err->code;
    o->uid = json_str(tree, "preconditions.uid");
    o->resource_version = json_str(tree, "preconditions.resourceVersion");
    o->propagation = json_str(tree, "propagationPolicy");
    set_grace(o, cJSON_IsNumber(json_get(tree, "gracePeriodSeconds")),
              json_i64_or(tree, "gracePeriodSeconds", 0));
    if (cJSON_IsBool(json_get(tree, "orphanDependents")))
        o->orphan_dependents = json_bool_or(tree, "orphanDependents", false);
    delete_dry_run(json_get(tree, "dryRun"), &req->arena, &o->dry_run, causes);
    return 0;
}

int params_delete(struct request *req, struct delete_options *ret, cJSON **ret_tree,
                  struct err *err)
{
    struct delete_options o = {
        .orphan_dependents = -1, .guard = req->guard, .deadline_ms = req->deadline_ms};
    SCOPED(err_fini) struct err causes = {0};
    SCOPED(json_free_p) cJSON *tree = NULL;
    int r = req->body.len || req->body_too_large ? delete_from_body(req, &o, &tree, &causes, err)
                                                 : delete_from_query(req, &o, &causes, err);
    if (r < 0)
        return r;
    check_delete(&o, &causes);
    r = invalid(&causes, "DeleteOptions", err);
    if (r < 0)
        return r;
    *ret = o;
    *ret_tree = steal(&tree);
    return 0;
}

/* ---- durations ---- */

static const struct {
    const char *name;
    double ns;
} units[] = {{"ns", 1},   {"us", 1e3}, {"\302\265s", 1e3}, {"\316\274s", 1e3},
             {"ms", 1e6}, {"s", 1e9},  {"m", 60e9},        {"h", 3600e9}};

/* One number with its unit; the number of bytes, 0 when it is none, and then *why what Go says of
 * it. */
static size_t duration_part(const char *s, double *ret_ns, char **why)
{
    size_t digits = strspn(s, "0123456789."), unit = strcspn(s + digits, "0123456789.");
    char *end;
    if (!digits || !strpbrk(s, "0123456789") || digits > 30)
        return 0;
    double v = strtod(s, &end);
    if ((size_t)(end - s) != digits)
        return 0;
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (strlen(units[i].name) == unit && strncmp(s + digits, units[i].name, unit) == 0) {
            *ret_ns = v * units[i].ns;
            return digits + unit;
        }
    SCOPED_FREE char *name = xstrndup(s + digits, unit);
    *why = unit ? xasprintf("unknown unit \"%s\" in", name) : xstrdup("missing unit in");
    return 0;
}

int params_duration(const char *text, int64_t *ret_ns, struct err *err)
{
    const char *at = text + (*text == '-' || *text == '+');
    double total = 0, part = 0;
    size_t n = 0;
    SCOPED_FREE char *why = NULL;
    if (strcmp(at, "0") == 0) {
        *ret_ns = 0;
        return 0;
    }
    do {
        n = duration_part(at, &part, &why);
        at += n;
        total += part;
    } while (n && *at);
    SCOPED(buf_fini) struct buf quoted = {0};
    buf_go_quote(&quoted, text, strlen(text));
    if (!n || total >= 0x1p63)
        return err_set(err, ERR_BAD_REQUEST, "%s duration %s", why ? why : "invalid",
                       buf_cstr(&quoted));
    *ret_ns = *text == '-' ? -(int64_t)total : (int64_t)total;
    return 0;
}
