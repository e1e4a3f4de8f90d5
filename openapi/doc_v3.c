/* The OpenAPI v3 documents and their index; see doc.h. Source of forms: docs/kubernetes-api.md
 * 9. */
#include "openapi/doc.h"

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/rand.h"
#include "apiserver/base/str.h"
#include "openapi/doc_paths.h"
#include "openapi/doc_schema.h"
#include "openapi/kinds.h"

static cJSON *info(void)
{
    cJSON *out = json_object();
    json_set_str(out, "title", "Agent Sandbox");
    json_set_str(out, "version", "v1");
    return out;
}

void doc_v3_print(const char *group, const char *version, struct buf *out)
{
    SCOPED(json_free_p) cJSON *document = json_object();
    cJSON *paths = json_object(), *components = json_object(), *schemas = json_object();
    bool with_scale = false;
    for (const struct kind *const *k = kinds_served; *k; k++) {
        if (!str_equal((*k)->group, group) || !str_equal((*k)->version, version))
            continue;
        SCOPED_FREE char *list = xasprintf("%sList", (*k)->schema_name);
        doc_paths_add(paths, *k, DOC_V3);
        json_set(schemas, (*k)->schema_name, doc_schema_kind(*k, DOC_V3));
        json_set(schemas, list, doc_schema_list(*k, DOC_V3));
        with_scale |= (*k)->scale != NULL;
    }
    doc_schema_add_shared(schemas, with_scale, DOC_V3);
    json_set_str(document, "openapi", "3.0.0");
    json_set(document, "info", info());
    json_set(document, "paths", paths);
    json_set(components, "schemas", schemas);
    json_set(document, "components", components);
    json_print(document, out);
}

static void add_to_index(cJSON *paths, const struct kind *kind)
{
    SCOPED_FREE char *path = kind_api_path(kind);
    const char *key = path + 1; /* without its slash */
    if (json_get(paths, key))
        return;
    SCOPED(buf_fini) struct buf document = {0};
    char hash[129];
    doc_v3_print(kind->group, kind->version, &document);
    digest_sha512_hex(document.data, document.len, hash);
    SCOPED_FREE char *url = xasprintf("/openapi/v3/%s?hash=%s", key, hash);
    cJSON *entry = json_object();
    json_set_str(entry, "serverRelativeURL", url);
    json_set(paths, key, entry);
}

void doc_v3_print_index(struct buf *out)
{
    SCOPED(json_free_p) cJSON *index = json_object();
    cJSON *paths = json_object();
    for (const struct kind *const *k = kinds_served; *k; k++)
        add_to_index(paths, *k);
    json_set(index, "paths", paths);
    json_print(index, out);
}
