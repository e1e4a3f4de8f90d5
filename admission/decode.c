/* Is the tree, as text, an object of that kind? Metadata must have Go's types, since clients know
 * it as a Go struct and the texts of its decoder; the rest is held against the table: what the
 * table does not know is removed, and refused or warned of as the client asked. Source:
 * docs/kubernetes-api.md 15, 22. */
#include "admission/gotime.h"
#include "admission/steps.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/goprint.h"
#include "openapi/kinds.h"
#include "openapi/prune.h"

/* ---- refusals ---- */

/* The object as a patch made it, for the text of the refusal; members sorted. */
static char *patched_text(const struct admission *a)
{
    SCOPED(json_free_p) cJSON *copy = json_copy(a->object);
    json_sort(copy);
    return json_to_str(copy);
}

static int refuse_patched(const char *patched, const char *why, struct err *err)
{
    SCOPED(err_fini) struct err e = {0};
    SCOPED(buf_fini) struct buf quoted = {0};
    goprint_quoted(patched, &quoted);
    err_set(&e, ERR_INVALID, " \"\" is invalid: patch: Invalid value: %s: %s", buf_cstr(&quoted),
            why);
    err_cause(&e, "FieldValueInvalid", "patch", "Invalid value: %s: %s", buf_cstr(&quoted), why);
    e.has_details = true;
    return err_move(err, &e);
}

static int refuse_body(const struct admission *a, const char *why, struct err *err)
{
    const struct kind *k = a->req->kind;
    return err_set(err, ERR_BAD_REQUEST, "%s in version \"%s\" cannot be handled as a %s: %s",
                   k->kind, k->version, k->kind, why);
}

static int refuse_decoding(const struct admission *a, const char *why, struct err *err)
{
    if (!a->req->is_patch)
        return refuse_body(a, why, err);
    SCOPED_FREE char *patched = patched_text(a);
    return refuse_patched(patched, why, err);
}

/* ---- kind and apiVersion ---- */

/* A body of another version is refused here; what a patch did to either is judged in validation,
 * unless the kind is gone. */
int step_group_version(struct admission *a, struct err *err)
{
    const struct kind *k = a->req->kind;
    const char *version = json_str_or(a->object, "apiVersion", "");
    if (json_str_or(a->object, "kind", "")[0] == '\0') {
        SCOPED_FREE char *text = patched_text(a);
        SCOPED_FREE char *why = xasprintf("Object 'Kind' is missing in '%s'", text);
        if (a->req->is_patch)
            return refuse_patched(text, why, err);
        return err_set(err, ERR_BAD_REQUEST,
                       "the object provided is unrecognized (must be of type %s): %s", k->kind,
                       why);
    }
    SCOPED_FREE char *expected = kind_api_version(k);
    if (a->req->is_patch || strcmp(version, expected) == 0)
        return 0;
    return err_set(err, ERR_BAD_REQUEST,
                   "the API version in the data (%s) does not match the expected API version (%s)",
                   version, expected);
}

/* ---- types of metadata ---- */

enum go_type {
    GO_STRING,
    GO_INT64,
    GO_BOOL,
    GO_TIME,
    GO_STRING_MAP,
    GO_STRINGS,
    GO_STRUCTS,
    GO_ANY
};
struct go_field {
    const char *name;
    enum go_type type;
    const char *type_name;         /* in texts; of the items for GO_STRUCTS */
    const char *struct_name;       /* GO_STRUCTS: v1.OwnerReference without v1. */
    const struct go_field *fields; /* GO_STRUCTS */
};

/* By name: Go meets them in that order. Source of the types: apimachinery's ObjectMeta,
 * OwnerReference, ManagedFieldsEntry. */
static const struct go_field owner_fields[] = {
    {"apiVersion", GO_STRING, "string"},
    {"blockOwnerDeletion", GO_BOOL, "bool"},
    {"controller", GO_BOOL, "bool"},
    {"kind", GO_STRING, "string"},
    {"name", GO_STRING, "string"},
    {"uid", GO_STRING, "types.UID"},
    {0},
};
static const struct go_field manager_fields[] = {
    {"apiVersion", GO_STRING, "string"},
    {"fieldsType", GO_STRING, "string"},
    {"fieldsV1", GO_ANY, NULL},
    {"manager", GO_STRING, "string"},
    {"operation", GO_STRING, "v1.ManagedFieldsOperationType"},
    {"subresource", GO_STRING, "string"},
    {"time", GO_TIME, NULL},
    {0},
};
static const struct go_field metadata_fields[] = {
    {"annotations", GO_STRING_MAP, "map[string]string"},
    {"creationTimestamp", GO_TIME, NULL},
    {"deletionGracePeriodSeconds", GO_INT64, "int64"},
    {"deletionTimestamp", GO_TIME, NULL},
    {"finalizers", GO_STRINGS, "[]string"},
    {"generateName", GO_STRING, "string"},
    {"generation", GO_INT64, "int64"},
    {"labels", GO_STRING_MAP, "map[string]string"},
    {"managedFields", GO_STRUCTS, "v1.ManagedFieldsEntry", "ManagedFieldsEntry", manager_fields},
    {"name", GO_STRING, "string"},
    {"namespace", GO_STRING, "string"},
    {"ownerReferences", GO_STRUCTS, "v1.OwnerReference", "OwnerReference", owner_fields},
    {"resourceVersion", GO_STRING, "string"},
    {"selfLink", GO_STRING, "string"},
    {"uid", GO_STRING, "types.UID"},
    {0},
};

static const char *json_word(const cJSON *node)
{
    return cJSON_IsString(node)   ? "string"
           : cJSON_IsNumber(node) ? "number"
           : cJSON_IsBool(node)   ? "bool"
           : cJSON_IsArray(node)  ? "array"
                                  : "object";
}

/* json: cannot unmarshal WHAT into Go struct field WHERE of type TYPE; owned. */
static char *type_error(const cJSON *node, const char *where, const char *type)
{
    return xasprintf("json: cannot unmarshal %s into Go struct field %s of type %s",
                     json_word(node), where, type);
}

static char *check_int64(const cJSON *node, const char *where)
{
    int64_t ignored;
    if (!cJSON_IsNumber(node))
        return type_error(node, where, "int64");
    if (json_node_is_int(node) && json_node_i64(node, &ignored) == 0)
        return NULL;
    SCOPED_FREE char *number = json_to_str(node);
    return xasprintf("json: cannot unmarshal number %s into Go struct field %s of type int64",
                     number, where);
}

static char *check_time(const cJSON *node)
{
    if (!cJSON_IsString(node))
        return xasprintf("json: cannot unmarshal %s into Go value of type string", json_word(node));
    return gotime_check_rfc3339(node->valuestring);
}

static char *check_struct(const cJSON *node, const struct go_field *fields, const char *path);

/* Every item or member a string; a null counts as "". */
static char *check_strings(const cJSON *node, const char *where)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, node)
    {
        if (!cJSON_IsString(item) && !cJSON_IsNull(item))
            return type_error(item, where, "string");
    }
    return NULL;
}

static char *check_structs(const cJSON *node, const struct go_field *f, const char *where)
{
    SCOPED_FREE char *list_type = xasprintf("[]%s", f->type_name);
    SCOPED_FREE char *inner = xasprintf("%s.%s", f->struct_name, f->name);
    if (!cJSON_IsArray(node))
        return type_error(node, where, list_type);
    const cJSON *item;
    cJSON_ArrayForEach(item, node)
    {
        if (cJSON_IsNull(item))
            continue;
        if (!cJSON_IsObject(item))
            return type_error(item, where, f->type_name);
        char *why = check_struct(item, f->fields, inner);
        if (why)
            return why;
    }
    return NULL;
}

static char *check_member(const cJSON *node, const struct go_field *f, const char *path)
{
    SCOPED_FREE char *where = xasprintf("%s.%s", path, f->name);
    switch (f->type) {
    case GO_STRING:
        return cJSON_IsString(node) ? NULL : type_error(node, where, f->type_name);
    case GO_BOOL:
        return cJSON_IsBool(node) ? NULL : type_error(node, where, f->type_name);
    case GO_INT64:
        return check_int64(node, where);
    case GO_TIME:
        return check_time(node);
    case GO_STRING_MAP:
        return cJSON_IsObject(node) ? check_strings(node, where)
                                    : type_error(node, where, f->type_name);
    case GO_STRINGS:
        return cJSON_IsArray(node) ? check_strings(node, where)
                                   : type_error(node, where, f->type_name);
    case GO_STRUCTS:
        return check_structs(node, f, where);
    case GO_ANY:
        return NULL;
    }
    return NULL;
}

/* The text of the first wrong member, owned; NULL when all are right. */
static char *check_struct(const cJSON *node, const struct go_field *fields, const char *path)
{
    for (const struct go_field *f = fields; f->name; f++) {
        const cJSON *member = json_get(node, f->name);
        bool is_given = member && !cJSON_IsNull(member) && !cJSON_IsRaw(member);
        char *why = is_given ? check_member(member, f, path) : NULL;
        if (why)
            return why;
    }
    return NULL;
}

/* From here on metadata is an object. */
int step_metadata_types(struct admission *a, struct err *err)
{
    const cJSON *metadata = metadata_of(a);
    SCOPED_FREE char *why = NULL;
    if (metadata && !cJSON_IsNull(metadata))
        why = cJSON_IsObject(metadata)
                  ? check_struct(metadata, metadata_fields, "ObjectMeta")
                  : xasprintf("json: cannot unmarshal %s into Go value of type v1.ObjectMeta",
                              json_word(metadata));
    if (why)
        return refuse_decoding(a, why, err);
    if (!cJSON_IsObject(metadata))
        json_set(a->object, "metadata", json_object());
    return 0;
}

/* ---- unknown and repeated members ---- */

#define YAML_MARK "line " /* findings of the YAML reader: line 5: key "name" already set in map */

/* The reader of YAML reports all its findings as one error. */
static void print_findings(const struct pairs *findings, struct buf *out)
{
    bool has_yaml = false;
    for (size_t i = 0; findings && i < findings->n; i++) {
        if (!str_has_prefix(findings->v[i].name, YAML_MARK)) {
            buf_printf(out, "%s%s", out->len ? ", " : "", findings->v[i].name);
            continue;
        }
        if (!has_yaml)
            buf_printf(out, "%syaml: unmarshal errors:", out->len ? ", " : "");
        buf_printf(out, "\n  %s", findings->v[i].name);
        has_yaml = true;
    }
}

static int compare_unknown(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    bool x_meta = str_has_prefix(x->name, "metadata."),
         y_meta = str_has_prefix(y->name, "metadata.");
    return x_meta != y_meta ? y_meta - x_meta : strcmp(x->name, y->name);
}

static int refuse_strictly(const struct admission *a, const char *patched,
                           const struct pairs *unknown, struct err *err)
{
    SCOPED(buf_fini) struct buf list = {0};
    print_findings(a->req->decode_findings, &list);
    for (size_t i = 0; i < unknown->n; i++)
        buf_printf(&list, "%sunknown field \"%s\"", list.len ? ", " : "", unknown->v[i].name);
    if (list.len == 0)
        return 0;
    SCOPED_FREE char *why = xasprintf("strict decoding error: %s", buf_cstr(&list));
    return a->req->is_patch ? refuse_patched(patched, why, err) : refuse_body(a, why, err);
}

static void warn_of_findings(struct admission *a, const struct pairs *unknown)
{
    const struct pairs *findings = a->req->decode_findings;
    for (size_t i = 0; findings && i < findings->n; i++)
        warn(a, "%s", findings->v[i].name);
    for (size_t i = 0; i < unknown->n; i++)
        warn(a, "unknown field \"%s\"", unknown->v[i].name);
}

/* Removed in every mode; repeated members were settled by the reader. Order: repeated, metadata's,
 * others by path. */
int step_unknown_fields(struct admission *a, struct err *err)
{
    SCOPED(pairs_fini) struct pairs unknown = {0};
    bool is_strict = a->req->field_validation == FIELD_VALIDATION_STRICT;
    SCOPED_FREE char *patched = is_strict && a->req->is_patch ? patched_text(a) : NULL;
    prune_unknown(a->object, a->req->kind->shape, &unknown);
    if (unknown.n > 1)
        qsort(unknown.v, unknown.n, sizeof *unknown.v, compare_unknown);
    if (is_strict)
        return refuse_strictly(a, patched, &unknown, err);
    if (a->req->field_validation == FIELD_VALIDATION_WARN)
        warn_of_findings(a, &unknown);
    return 0;
}
