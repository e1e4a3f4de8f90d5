/* Schemas; see doc_schema.h. Which keys there are, and where, is as kube-apiserver v1.37 publishes
 * custom resources and its own shared types. */
#include "openapi/doc_schema.h"

#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "openapi/kinds/apimachinery.h"
#include "openapi/pattern.h"
#include "openapi/walk.h"

static cJSON *field_schema(const struct field *f, bool is_shared, enum doc_form form);

cJSON *doc_schema_ref(const char *name, enum doc_form form)
{
    SCOPED_FREE char *ref =
        xasprintf("#/%s/%s", form == DOC_V2 ? "definitions" : "components/schemas", name);
    cJSON *s = json_object();
    json_set_str(s, "$ref", ref);
    return s;
}

cJSON *doc_schema_gvk(const char *group, const char *version, const char *kind)
{
    cJSON *gvk = json_object();
    json_set_str(gvk, "group", group);
    json_set_str(gvk, "kind", kind);
    json_set_str(gvk, "version", version);
    return gvk;
}

static void set_words(cJSON *schema, const char *key, const char *const *words)
{
    cJSON *list = json_array();
    for (; *words; words++)
        json_push(list, json_string(*words));
    json_set(schema, key, list);
}

/* A description beside a reference: v3 wraps the reference in allOf, v2 has them side by side. */
static cJSON *described_ref(const char *name, const char *doc, enum doc_form form)
{
    cJSON *s = json_object();
    if (doc)
        json_set_str(s, "description", doc);
    cJSON *ref = doc_schema_ref(name, form);
    if (form == DOC_V2) {
        json_set_str(s, "$ref", json_str(ref, "$ref"));
        json_free(ref);
    } else {
        cJSON *all_of = json_array();
        json_push(all_of, ref);
        json_set(s, "allOf", all_of);
    }
    return s;
}

static void set_type(cJSON *schema, const char *type, const char *format)
{
    json_set_str(schema, "type", type);
    if (format)
        json_set_str(schema, "format", format);
}

static void set_int_or_string(cJSON *schema, enum doc_form form)
{
    json_set_bool(schema, "x-kubernetes-int-or-string", true);
    if (form == DOC_V2)
        return;
    cJSON *any_of = json_array();
    static const char *const types[] = {"integer", "string"};
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        cJSON *one = json_object();
        json_set_str(one, "type", types[i]);
        json_push(any_of, one);
    }
    json_set(schema, "anyOf", any_of);
}

/* Type and format of a scalar row. */
static void set_scalar(cJSON *schema, const struct field *f, enum doc_form form)
{
    switch (f->type) {
    case F_STRING:
        set_type(schema, "string", NULL);
        break;
    case F_BOOL:
        set_type(schema, "boolean", NULL);
        break;
    case F_INT32:
        set_type(schema, "integer", "int32");
        break;
    case F_INT64:
        set_type(schema, "integer", "int64");
        break;
    case F_NUMBER:
        set_type(schema, "number", NULL);
        break;
    case F_TIME:
        set_type(schema, "string", "date-time");
        break;
    case F_QUANTITY:
        json_set_str(schema, "pattern", PATTERN_QUANTITY);
        set_int_or_string(schema, form);
        break;
    case F_INT_OR_STRING:
        set_int_or_string(schema, form);
        break;
    case F_ANY:
        json_set_bool(schema, "x-kubernetes-preserve-unknown-fields", true);
        break;
    default: /* F_EMPTY, F_META */
        set_type(schema, "object", NULL);
        break;
    }
}

static void set_constraints(cJSON *schema, const struct field *f)
{
    if (f->oneof)
        set_words(schema, "enum", f->oneof);
    if (f->has_min)
        json_set_int(schema, "minimum", f->min);
    if (f->has_max)
        json_set_int(schema, "maximum", f->max);
    if (f->max_length)
        json_set_int(schema, "maxLength", f->max_length);
    if (f->min_length)
        json_set_int(schema, "minLength", f->min_length);
    if (f->max_items)
        json_set_int(schema, "maxItems", f->max_items);
    if (f->min_items)
        json_set_int(schema, "minItems", f->min_items);
    if (f->pattern)
        json_set_str(schema, "pattern", f->pattern);
}

/* The zero value that Go's own types publish as the default of a required scalar. */
static cJSON *zero_default(const struct field *f)
{
    if (f->type == F_STRING)
        return json_string("");
    return f->type == F_INT32 || f->type == F_INT64 ? json_int(0) : NULL;
}

static void set_default(cJSON *schema, const struct field *f, bool is_shared, enum doc_form form)
{
    if (form == DOC_V2)
        return;
    cJSON *dflt = f->dflt                                         ? walk_default(f)
                  : is_shared && (f->flags & FIELD_REQUIRED) != 0 ? zero_default(f)
                                                                  : NULL;
    if (dflt)
        json_set(schema, "default", dflt);
}

/* Go's own types also say how strategic merge treats their lists. */
static void set_list_type(cJSON *schema, const struct field *f, bool is_shared)
{
    if (f->list == LIST_UNDECLARED)
        return;
    static const char *const names[] = {
        [LIST_ATOMIC] = "atomic", [LIST_SET] = "set", [LIST_MAP] = "map"};
    if (f->list == LIST_MAP)
        set_words(schema, "x-kubernetes-list-map-keys", f->keys);
    json_set_str(schema, "x-kubernetes-list-type", names[f->list]);
    if (!is_shared || !f->merge_key)
        return;
    if (*f->merge_key)
        json_set_str(schema, "x-kubernetes-patch-merge-key", f->merge_key);
    json_set_str(schema, "x-kubernetes-patch-strategy", "merge");
}

static cJSON *shape_body(const struct shape *shape, bool is_shared, enum doc_form form);

/* Items have no text of their own besides that of their shape. */
static cJSON *item_schema(const struct field *f, bool is_shared, enum doc_form form)
{
    struct field item = walk_item_field(f);
    if (item.of && item.of->ref && form != DOC_CRD)
        return doc_schema_ref(item.of->ref, form);
    item.doc = item.of ? item.of->doc : NULL;
    return field_schema(&item, is_shared, form);
}

static const char *ref_of(const struct field *f, enum doc_form form)
{
    if (form == DOC_CRD || f->type == F_LIST || f->type == F_MAP)
        return NULL;
    if (f->type == F_META)
        return shape_object_meta.ref;
    return f->of ? f->of->ref : NULL;
}

static cJSON *field_schema(const struct field *f, bool is_shared, enum doc_form form)
{
    const char *ref = ref_of(f, form);
    cJSON *s = ref                   ? described_ref(ref, f->doc, form)
               : f->type == F_OBJECT ? shape_body(f->of, is_shared, form)
                                     : json_object();
    if (f->doc && !(f->type == F_META && form == DOC_CRD)) /* a definition may say nothing of it */
        json_set_str(s, "description", f->doc);
    if (f->type == F_LIST) {
        set_type(s, "array", NULL);
        json_set(s, "items", item_schema(f, is_shared, form));
        set_list_type(s, f, is_shared);
    } else if (f->type == F_MAP) {
        set_type(s, "object", NULL);
        json_set(s, "additionalProperties", item_schema(f, is_shared, form));
    } else if (!ref && f->type != F_OBJECT) {
        set_scalar(s, f, form);
    }
    if (f->is_atomic)
        json_set_str(s, "x-kubernetes-map-type", "atomic");
    set_default(s, f, is_shared, form);
    set_constraints(s, f);
    return s;
}

static cJSON *required_names(const struct shape *shape)
{
    cJSON *names = json_array();
    for (const struct field *f = shape->fields; f && f->name; f++)
        if (f->flags & FIELD_REQUIRED)
            json_push(names, json_string(f->name));
    return names;
}

/* The rules that the documents show, as a list; NULL when there are none. */
static cJSON *rules_of(const struct shape *shape)
{
    cJSON *list = NULL;
    for (const struct rule *r = shape->rules; r && r->rule; r++) {
        if (r->is_added)
            continue;
        cJSON *rule = json_object();
        list = list ? list : json_array();
        json_set_str(rule, "rule", r->rule);
        json_set_str(rule, "message", r->message);
        if (r->message_expression)
            json_set_str(rule, "messageExpression", r->message_expression);
        if (r->is_old_optional)
            json_set_bool(rule, "optionalOldSelf", true);
        if (r->reason)
            json_set_str(rule, "reason", r->reason);
        if (r->field) {
            SCOPED_FREE char *path = xasprintf(".%s", r->field);
            json_set_str(rule, "fieldPath", path);
        }
        json_push(list, rule);
    }
    return list;
}

/* Go's own types, by their names. */
static bool is_shared_ref(const char *ref)
{
    return ref && str_has_prefix(ref, "io.k8s.");
}

/* type, required, properties, rules; no description. What is inlined is as what it is inlined
 * in. */
static cJSON *shape_body(const struct shape *shape, bool is_shared, enum doc_form form)
{
    cJSON *s = json_object(), *required = required_names(shape);
    set_type(s, "object", NULL);
    if (required->child)
        json_set(s, "required", required);
    else
        json_free(required);
    if (shape->fields) {
        cJSON *properties = json_object();
        for (const struct field *f = shape->fields; f->name; f++)
            json_set(properties, f->name, field_schema(f, is_shared, form));
        json_set(s, "properties", properties);
    }
    cJSON *rules = rules_of(shape);
    if (rules)
        json_set(s, "x-kubernetes-validations", rules);
    return s;
}

static cJSON *shape_schema(const struct shape *shape, enum doc_form form)
{
    cJSON *s = shape_body(shape, is_shared_ref(shape->ref), form);
    json_set_str(s, "description", shape->doc);
    return s;
}

static void set_gvk(cJSON *schema, cJSON *take_gvk)
{
    cJSON *list = json_array();
    json_push(list, take_gvk);
    json_set(schema, "x-kubernetes-group-version-kind", list);
}

cJSON *doc_schema_kind(const struct kind *kind, enum doc_form form)
{
    cJSON *s = shape_schema(kind->shape, form);
    if (form != DOC_CRD)
        set_gvk(s, doc_schema_gvk(kind->group, kind->version, kind->kind));
    return s;
}

static const struct shape *shared_shape(const char *name)
{
    for (const struct shape *const *s = shapes_shared; *s; s++)
        if (strcmp((*s)->name, name) == 0)
            return *s;
    return NULL;
}

cJSON *doc_schema_list(const struct kind *kind, enum doc_form form)
{
    SCOPED_FREE char *items_doc = xasprintf("The objects of kind %s.", kind->kind);
    SCOPED_FREE char *doc = xasprintf("A list of %s objects.", kind->kind);
    const struct shape reference = {.name = kind->kind, .ref = kind->schema_name};
    const struct field fields[] = {
        {.name = "apiVersion", .type = F_STRING, .doc = "Group and version of this list's form."},
        {.name = "items",
         .type = F_LIST,
         .item = F_OBJECT,
         .of = &reference,
         .list = LIST_UNDECLARED,
         .flags = FIELD_REQUIRED,
         .doc = items_doc},
        {.name = "kind", .type = F_STRING, .doc = "What this list is, in CamelCase."},
        {.name = "metadata",
         .type = F_OBJECT,
         .of = shared_shape("ListMeta"),
         .doc = "What every list has."},
        {0},
    };
    const struct shape list = {.name = kind->list_kind, .doc = doc, .fields = fields};
    cJSON *s = shape_schema(&list, form);
    set_gvk(s, doc_schema_gvk(kind->group, kind->version, kind->list_kind));
    return s;
}

/* The kind that a shared type is by itself, or NULL. Not in Swagger 2.0: kube-apiserver merges that
 * document with its own, where our type gets another name for its other descriptions, and two types
 * of one kind are an error for those who make a parser of it. Source: managedfields.NewGVKParser.
 */
static cJSON *kind_of_shared(const struct shape *shape, enum doc_form form)
{
    if (form == DOC_V2)
        return NULL;
    if (strcmp(shape->name, "Scale") == 0)
        return doc_schema_gvk("autoscaling", "v1", shape->name);
    if (strcmp(shape->name, "Status") == 0 || strcmp(shape->name, "DeleteOptions") == 0)
        return doc_schema_gvk("", "v1", shape->name);
    return NULL;
}

/* Bare types: a moment is text, the two others are whatever the client sends. */
static cJSON *shared_schema(const struct shape *shape, enum doc_form form)
{
    cJSON *gvk = kind_of_shared(shape, form);
    cJSON *s = shape_schema(shape, form);
    if (strcmp(shape->name, "Time") == 0)
        set_type(s, "string", "date-time");
    if (strcmp(shape->name, "OwnerReference") == 0)
        json_set_str(s, "x-kubernetes-map-type", "atomic");
    if (gvk)
        set_gvk(s, gvk);
    return s;
}

void doc_schema_add_shared(cJSON *components, bool with_scale, enum doc_form form)
{
    for (const struct shape *const *s = shapes_shared; *s; s++)
        if (with_scale || !str_has_prefix((*s)->ref, "io.k8s.api.autoscaling."))
            json_set(components, (*s)->ref, shared_schema(*s, form));
}
