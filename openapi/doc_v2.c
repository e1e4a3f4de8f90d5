/* The Swagger 2.0 document of all groups; see doc.h. */
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/doc.h"
#include "openapi/doc_paths.h"
#include "openapi/doc_schema.h"
#include "openapi/kinds.h"

void doc_v2_print(struct buf *out)
{
    SCOPED(json_free_p) cJSON *document = json_object();
    cJSON *paths = json_object(), *definitions = json_object(), *info = json_object();
    for (const struct kind *const *k = kinds_served; *k; k++) {
        SCOPED_FREE char *list = xasprintf("%sList", (*k)->schema_name);
        doc_paths_add(paths, *k, DOC_V2);
        json_set(definitions, (*k)->schema_name, doc_schema_kind(*k, DOC_V2));
        json_set(definitions, list, doc_schema_list(*k, DOC_V2));
    }
    doc_schema_add_shared(definitions, true, DOC_V2);
    json_set_str(info, "title", "Agent Sandbox");
    json_set_str(info, "version", "v1");
    json_set_str(document, "swagger", "2.0");
    json_set(document, "info", info);
    json_set(document, "paths", paths);
    json_set(document, "definitions", definitions);
    json_set(document, "parameters", doc_paths_parameters());
    json_print(document, out);
}
