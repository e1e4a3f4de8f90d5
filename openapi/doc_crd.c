/* A kind as the CustomResourceDefinition that it could have been; see doc.h. */
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "openapi/columns.h"
#include "openapi/doc.h"
#include "openapi/doc_schema.h"

static cJSON *names(const struct kind *kind)
{
    cJSON *out = json_object();
    json_set_str(out, "kind", kind->kind);
    json_set_str(out, "listKind", kind->list_kind);
    json_set_str(out, "plural", kind->plural);
    cJSON *short_names = json_array();
    for (const char *const *name = kind->short_names; name && *name; name++)
        json_push(short_names, json_string(*name));
    json_set(out, "shortNames", short_names);
    json_set_str(out, "singular", kind->singular);
    return out;
}

static cJSON *columns(const struct column *c)
{
    cJSON *list = json_array();
    for (; c->name; c++) {
        cJSON *one = json_object();
        json_set_str(one, "jsonPath", c->path);
        json_set_str(one, "name", c->name);
        json_set_str(one, "type", column_type_name(c->type));
        if (c->priority)
            json_set_int(one, "priority", c->priority);
        json_push(list, one);
    }
    return list;
}

static void set_path(cJSON *out, const char *key, const char *path)
{
    SCOPED_FREE char *text = xasprintf(".%s", path);
    json_set_str(out, key, text);
}

static cJSON *subresources(const struct kind *kind)
{
    cJSON *out = json_object();
    if (kind->scale) {
        cJSON *scale = json_object();
        set_path(scale, "labelSelectorPath", kind->scale->selector);
        set_path(scale, "specReplicasPath", kind->scale->spec_replicas);
        set_path(scale, "statusReplicasPath", kind->scale->status_replicas);
        json_set(out, "scale", scale);
    }
    if (kind->has_status)
        json_set(out, "status", json_object());
    return out;
}

/* What a rule points at has to be declared there, and of metadata only the name may be. */
static void declare_name(cJSON *schema, const struct shape *shape)
{
    bool is_pointed_at = false;
    for (const struct rule *r = shape->rules; r && r->rule; r++)
        is_pointed_at = is_pointed_at || (!r->is_added && str_equal(r->field, "metadata.name"));
    if (!is_pointed_at)
        return;
    cJSON *properties = json_object(), *name = json_object();
    json_set_str(name, "type", "string");
    json_set(properties, "name", name);
    json_set(json_get(json_get(schema, "properties"), "metadata"), "properties", properties);
}

static cJSON *version(const struct kind *kind)
{
    cJSON *out = json_object(), *schema = json_object(), *parts = subresources(kind);
    cJSON *object = doc_schema_kind(kind, DOC_CRD);
    declare_name(object, kind->shape);
    if (kind->columns)
        json_set(out, "additionalPrinterColumns", columns(kind->columns));
    json_set_str(out, "name", kind->version);
    json_set(schema, "openAPIV3Schema", object);
    json_set(out, "schema", schema);
    json_set_bool(out, "served", true);
    json_set_bool(out, "storage", true);
    json_set(out, "subresources", parts);
    return out;
}

void doc_crd_print(const struct kind *kind, struct buf *out)
{
    SCOPED(json_free_p) cJSON *crd = json_object();
    cJSON *metadata = json_object(), *spec = json_object(), *versions = json_array();
    SCOPED_FREE char *name = xasprintf("%s.%s", kind->plural, kind->group);
    json_set_str(crd, "apiVersion", "apiextensions.k8s.io/v1");
    json_set_str(crd, "kind", "CustomResourceDefinition");
    json_set_str(metadata, "name", name);
    json_set(crd, "metadata", metadata);
    json_set_str(spec, "group", kind->group);
    json_set(spec, "names", names(kind));
    json_set_str(spec, "scope", "Namespaced");
    json_push(versions, version(kind));
    json_set(spec, "versions", versions);
    json_set(crd, "spec", spec);
    json_print(crd, out);
}
