/* The PersistentVolumeClaims of a Sandbox, one per template (S5). They are made or adopted, never
 * changed, never deleted: they go with the Sandbox. */
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "reconcile/child.h"
#include "reconcile/keys.h"

char *pvc_name(const cJSON *sandbox, const cJSON *template)
{
    return xasprintf("%s-%s", json_str_or(template, "metadata.name", ""), meta_name(sandbox));
}

cJSON *pvc_desired(const cJSON *sandbox, const cJSON *template)
{
    SCOPED_FREE char *name = pvc_name(sandbox, template);
    char hash[NAME_HASH_SIZE];
    tracking_hash(sandbox, hash);
    cJSON *pvc = json_object(), *meta = json_object(), *owners = json_array();
    json_set_str(pvc, "apiVersion", "v1");
    json_set_str(pvc, "kind", "PersistentVolumeClaim");
    json_set_str(meta, "name", name);
    json_set_str(meta, "namespace", meta_namespace(sandbox));
    cJSON *labels = json_copy(json_at(template, "metadata.labels"));
    json_set(meta, "labels", labels ? labels : json_object());
    json_set_str(json_get(meta, "labels"), LABEL_NAME_HASH, hash);
    const cJSON *annotations = json_at(template, "metadata.annotations");
    if (annotations)
        json_set(meta, "annotations", json_copy(annotations));
    json_push(owners, owner_reference(sandbox));
    json_set(meta, "ownerReferences", owners);
    json_set(pvc, "metadata", meta);
    json_set(pvc, "spec", json_copy(json_get(template, "spec")));
    return pvc;
}

cJSON *pvc_adopt_patch(const cJSON *sandbox, const cJSON *pvc)
{
    cJSON *patch = json_object(), *meta = json_object();
    char hash[NAME_HASH_SIZE];
    tracking_hash(sandbox, hash);
    json_set_str(meta, "uid", meta_uid(pvc));
    /* Only what carries the label is watched, and so missed when it goes. */
    json_set_str(json_ensure_object(meta, "labels"), LABEL_NAME_HASH, hash);
    json_set(meta, "ownerReferences", owner_references_with(pvc, sandbox));
    json_set(patch, "metadata", meta);
    return patch;
}
