/* Is the tree, as text, an object of that kind? Metadata must have Go's types, since clients know
 * it as a Go struct and the texts of its decoder; the rest is held against the table: what the
 * table does not know is removed, and refused or warned of as the client asked. Source:
 * docs/kubernetes-api.md 15, 22. */
#include "admission/steps.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/goprint.h"
#include "openapi/gotype.h"
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

/* Of the object as it is sent; without a group it is all of apiVersion. */
static const char *given_version(const struct admission *a)
{
    const char *version = json_str_or(a->object, "apiVersion", ""), *slash = strchr(version, '/');
    return slash ? slash + 1 : version;
}

static int refuse_body(const struct admission *a, const char *as_kind, const char *why,
                       struct err *err)
{
    return err_set(err, ERR_BAD_REQUEST, "%s in version \"%s\" cannot be handled as a %s: %s",
                   json_str_or(a->object, "kind", ""), given_version(a), as_kind, why);
}

static int refuse_decoding(const struct admission *a, const char *why, struct err *err)
{
    if (!a->req->is_patch)
        return refuse_body(a, a->req->kind->kind, why, err);
    SCOPED_FREE char *patched = patched_text(a);
    return refuse_patched(patched, why, err);
}

/* ---- kind and apiVersion ---- */

/* What a patch did to either is judged in validation, unless the kind is gone. */
int step_type_meta(struct admission *a, struct err *err)
{
    if (json_str_or(a->object, "kind", "")[0] == '\0') {
        SCOPED_FREE char *text = patched_text(a);
        SCOPED_FREE char *why = xasprintf("Object 'Kind' is missing in '%s'", text);
        if (a->req->is_patch)
            return refuse_patched(text, why, err);
        return err_set(err, ERR_BAD_REQUEST,
                       "the object provided is unrecognized (must be of type %s): %s",
                       a->req->kind->kind, why);
    }
    if (!a->req->is_patch && cJSON_IsNull(json_get(a->object, "apiVersion")))
        return refuse_decoding(
            a, ".apiVersion accessor error: <nil> is of the type <nil>, expected string", err);
    return 0;
}

/* Last, so that what else is wrong with the body is said or warned of. */
int step_version(struct admission *a, struct err *err)
{
    SCOPED_FREE char *expected = kind_api_version(a->req->kind);
    return a->req->is_patch ? 0 : gotype_check_version(a->object, expected, err);
}

/* ---- types of metadata ---- */

/* From here on metadata is an object. */
int step_metadata_types(struct admission *a, struct err *err)
{
    const cJSON *metadata = metadata_of(a);
    SCOPED_FREE char *why = NULL;
    if (a->req->is_applied && cJSON_IsObject(metadata))
        gotype_forget_unreadable(metadata_of(a));
    if (metadata && !cJSON_IsNull(metadata)) /* printed once more there before it is decoded */
        json_settle_floats(metadata_of(a));
    if (metadata && !cJSON_IsNull(metadata))
        why = gotype_check_metadata(metadata);
    if (why)
        return refuse_decoding(a, why, err);
    if (!cJSON_IsObject(metadata))
        json_set(a->object, "metadata", json_object());
    gotype_settle_metadata(metadata_of(a));
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
    if (a->req->is_patch)
        return refuse_patched(patched, why, err);
    if (*given_version(a) == '\0')
        return err_set(err, ERR_BAD_REQUEST,
                       "Object 'apiVersion' is missing in 'object has no apiVersion field'");
    return refuse_body(a, json_str_or(a->object, "kind", ""), why, err);
}

static void warn_of_findings(struct admission *a, const struct pairs *unknown)
{
    const struct pairs *findings = a->req->decode_findings;
    for (size_t i = 0; findings && i < findings->n; i++)
        warn(a, "%s", findings->v[i].name);
    for (size_t i = 0; i < unknown->n; i++)
        warn(a, "unknown field \"%s\"", unknown->v[i].name);
}

/* What every object has, as a shape; fields is the space for it. */
enum { COMMON_FIELDS = 3 };
static struct shape common_shape(const struct shape *shape, struct field fields[COMMON_FIELDS + 1])
{
    static const char *const names[COMMON_FIELDS] = {"apiVersion", "kind", "metadata"};
    size_t n = 0;
    for (const struct field *f = shape->fields; f->name; f++)
        for (size_t i = 0; i < COMMON_FIELDS; i++)
            if (strcmp(f->name, names[i]) == 0)
                fields[n++] = *f;
    fields[n] = (struct field){0};
    return (struct shape){.name = shape->name, .fields = fields};
}

/* Of another kind nothing but metadata is known, and of another version of the kind that it has
 * nothing else. Refusing either is validation's. */
static void prune(cJSON *object, const struct kind *k, struct pairs *unknown)
{
    struct field fields[COMMON_FIELDS + 1];
    const struct shape common = common_shape(k->shape, fields);
    const char *version = json_str_or(object, "apiVersion", ""), *slash = strchr(version, '/');
    size_t group_len = slash ? (size_t)(slash - version) : 0;
    bool is_group = strlen(k->group) == group_len && memcmp(version, k->group, group_len) == 0;
    if (!is_group || strcmp(json_str_or(object, "kind", ""), k->kind) != 0) {
        SCOPED(json_free_p) cJSON *head = json_object();
        json_set(head, "metadata", json_detach(object, "metadata"));
        prune_unknown(head, &common, unknown);
        json_set(object, "metadata", json_detach(head, "metadata"));
    } else {
        bool is_version = strcmp(slash ? slash + 1 : version, k->version) == 0;
        prune_unknown(object, is_version ? k->shape : &common, unknown);
    }
}

/* Removed in every mode; repeated members were settled by the reader. Order: repeated, metadata's,
 * others by path. */
int step_unknown_fields(struct admission *a, struct err *err)
{
    SCOPED(pairs_fini) struct pairs unknown = {0};
    bool is_strict = a->req->field_validation == FIELD_VALIDATION_STRICT;
    SCOPED_FREE char *patched = is_strict && a->req->is_patch ? patched_text(a) : NULL;
    prune(a->object, a->req->kind, &unknown);
    if (unknown.n > 1)
        qsort(unknown.v, unknown.n, sizeof *unknown.v, compare_unknown);
    if (is_strict)
        return refuse_strictly(a, patched, &unknown, err);
    if (a->req->field_validation == FIELD_VALIDATION_WARN)
        warn_of_findings(a, &unknown);
    return 0;
}
