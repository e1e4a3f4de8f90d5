/* Schemas of fields and shapes as OpenAPI v3, Swagger 2.0 or the structural schema of a
 * CustomResourceDefinition. Shared by the documents doc_v3.c, doc_v2.c and doc_crd.c. Pure; any
 * thread. */
#pragma once

#include <cjson/cJSON.h>

#include "openapi/shape.h"

enum doc_form {
    DOC_V3,  /* defaults, anyOf; references below components.schemas */
    DOC_V2,  /* neither defaults nor anyOf; references below definitions */
    DOC_CRD, /* everything inlined, metadata a plain object */
};

/* {"$ref": ...} to a component. Owned by the caller, as everything here. */
cJSON *doc_schema_ref(const char *name, enum doc_form form);
/* A kind's schema and that of its list, with their x-kubernetes-group-version-kind. */
cJSON *doc_schema_kind(const struct kind *kind, enum doc_form form);
cJSON *doc_schema_list(const struct kind *kind, enum doc_form form);
/* {"group","kind","version"} */
cJSON *doc_schema_gvk(const char *group, const char *version, const char *kind);
/* The shared types that documents of these kinds refer to; form DOC_V3 or DOC_V2. Added to an
 * object by name. */
void doc_schema_add_shared(cJSON *components, bool with_scale, enum doc_form form);
