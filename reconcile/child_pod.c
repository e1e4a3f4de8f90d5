/* The Pod of a Sandbox: made from podTemplate (S9), and an existing one's metadata kept in line
 * with it (S11). The spec of an existing Pod is never compared nor changed. */
#include <stdlib.h>
#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "reconcile/child.h"
#include "reconcile/keys.h"

const char *pod_phase(const cJSON *pod)
{
    return json_str_or(pod, "status.phase", "");
}

static const cJSON *template_map(const cJSON *sandbox, const char *map)
{
    return json_get(json_at(sandbox, "spec.podTemplate.metadata"), map);
}

/* Who a Sandbox was made by, as far as Pods tell; NULL when it does not say. */
static const char *created_by(const cJSON *sandbox)
{
    const char *by = meta_label(sandbox, LABEL_CREATED_BY);
    return by && *by ? created_by_known(by) : NULL;
}

/* System labels a Pod should have; NULL value = should not have it. */
struct system_label {
    const char *key, *value;
};
#define SYSTEM_LABELS 3

static void system_labels(const cJSON *sandbox, struct system_label out[SYSTEM_LABELS])
{
    const cJSON *owner = owner_controller(sandbox);
    bool by_extension = str_has_prefix(json_str_or(owner, "apiVersion", ""), GROUP_EXTENSIONS "/");
    bool by_pool = by_extension && str_equal(json_str(owner, "kind"), "SandboxWarmPool");
    const char *template_hash = by_extension ? meta_label(sandbox, LABEL_TEMPLATE_REF_HASH) : NULL;
    const char *pool = by_pool ? meta_label(sandbox, LABEL_WARM_POOL) : NULL;
    out[0] = (struct system_label){LABEL_TEMPLATE_REF_HASH,
                                   template_hash && *template_hash ? template_hash : NULL};
    out[1] = (struct system_label){LABEL_WARM_POOL, pool && *pool ? pool : NULL};
    out[2] = (struct system_label){LABEL_CREATED_BY, created_by(sandbox)};
}

/* Sorted, comma-joined keys of a podTemplate map that are passed on to the Pod. */
static char *managed_keys(const cJSON *map)
{
    size_t n = 0, room = json_len(map);
    const char **keys = xcalloc(room + 1, sizeof *keys);
    const cJSON *entry;
    cJSON_ArrayForEach(entry, map)
    {
        if (!meta_key_is_reserved(entry->string))
            keys[n++] = entry->string;
    }
    qsort(keys, n, sizeof *keys, str_cmp_ptr);
    struct buf out = {0};
    for (size_t i = 0; i < n; i++) {
        buf_puts(&out, i ? "," : "");
        buf_puts(&out, keys[i]);
    }
    free(keys);
    return buf_take(&out, NULL);
}

static cJSON *passed_on(const cJSON *map)
{
    cJSON *out = json_object();
    const cJSON *entry;
    cJSON_ArrayForEach(entry, map)
    {
        if (!meta_key_is_reserved(entry->string) && cJSON_IsString(entry))
            json_set_str(out, entry->string, entry->valuestring);
    }
    return out;
}

static cJSON *desired_labels(const cJSON *sandbox)
{
    cJSON *labels = passed_on(template_map(sandbox, "labels"));
    char hash[NAME_HASH_SIZE];
    tracking_hash(sandbox, hash);
    json_set_str(labels, LABEL_NAME_HASH, hash);
    struct system_label system[SYSTEM_LABELS];
    system_labels(sandbox, system);
    for (size_t i = 0; i < SYSTEM_LABELS; i++) {
        if (system[i].value)
            json_set_str(labels, system[i].key, system[i].value);
    }
    return labels;
}

static cJSON *desired_annotations(const cJSON *sandbox)
{
    cJSON *annotations = passed_on(template_map(sandbox, "annotations"));
    SCOPED_FREE char *labels = managed_keys(template_map(sandbox, "labels"));
    SCOPED_FREE char *own = managed_keys(template_map(sandbox, "annotations"));
    if (*labels)
        json_set_str(annotations, ANNOTATION_PROPAGATED_LABELS, labels);
    if (*own)
        json_set_str(annotations, ANNOTATION_PROPAGATED_ANNOTATIONS, own);
    return annotations;
}

/* Volumes of the template that no claim template replaces, then one volume per claim template. */
static void merge_volumes(cJSON *pod_spec, const cJSON *sandbox)
{
    const cJSON *templates = json_at(sandbox, "spec.volumeClaimTemplates"), *v;
    if (json_len(templates) == 0)
        return;
    cJSON *volumes = json_array();
    struct map *replaced = map_new();
    cJSON_ArrayForEach(v, templates)
    {
        map_put(replaced, json_str_or(v, "metadata.name", ""), replaced);
    }
    cJSON_ArrayForEach(v, json_get(pod_spec, "volumes"))
    {
        if (!map_get(replaced, json_str_or(v, "name", "")))
            json_push(volumes, json_copy(v));
    }
    map_free(replaced);
    const cJSON *t;
    cJSON_ArrayForEach(t, templates)
    {
        SCOPED_FREE char *claim = pvc_name(sandbox, t);
        cJSON *volume = json_object(), *source = json_object();
        json_set_str(source, "claimName", claim);
        json_set_str(volume, "name", json_str_or(t, "metadata.name", ""));
        json_set(volume, "persistentVolumeClaim", source);
        json_push(volumes, volume);
    }
    json_set(pod_spec, "volumes", volumes);
}

cJSON *pod_desired(const cJSON *sandbox)
{
    cJSON *pod = json_object(), *meta = json_object(), *owners = json_array();
    json_set_str(pod, "apiVersion", "v1");
    json_set_str(pod, "kind", "Pod");
    json_set_str(meta, "name", meta_name(sandbox));
    json_set_str(meta, "namespace", meta_namespace(sandbox));
    json_set(meta, "labels", desired_labels(sandbox));
    json_set(meta, "annotations", desired_annotations(sandbox));
    json_push(owners, owner_reference(sandbox));
    json_set(meta, "ownerReferences", owners);
    json_set(pod, "metadata", meta);
    cJSON *spec = json_copy(json_at(sandbox, "spec.podTemplate.spec"));
    if (!spec)
        spec = json_object();
    merge_volumes(spec, sandbox);
    json_set(pod, "spec", spec);
    return pod;
}

/* Sets key in a merge patch's map when the Pod has another value; value NULL = remove it when
 * there. */
static void patch_entry(cJSON *patch_map, const char *key, const char *is, const char *should_be)
{
    if (str_equal(is, should_be))
        return;
    if (should_be)
        json_set_str(patch_map, key, should_be);
    else
        json_set(patch_map, key, json_null());
}

/* Keys that an earlier pass (or version) passed on and that are no longer wanted are removed. keep
 * is a reserved key that stays. */
static void drop_stale(cJSON *patch_map, const cJSON *pod, const char *map, const cJSON *wanted,
                       const char *recorded, const char *const *keep)
{
    SCOPED_FREE char *copy = xstrdup(recorded ? recorded : "");
    for (char *key = copy, *next; key; key = next) {
        next = strchr(key, ',');
        if (next)
            *next++ = '\0';
        bool is_kept = !*key || (json_get(wanted, key) && !meta_key_is_reserved(key));
        for (size_t i = 0; keep[i] && !is_kept; i++)
            is_kept = str_equal(keep[i], key);
        if (!is_kept && json_get(json_get(json_get(pod, "metadata"), map), key))
            json_set(patch_map, key, json_null());
    }
}

/* The list of passed-on keys; an empty one is written only over an existing one. */
static void patch_record(cJSON *annotations, const cJSON *pod, const char *key, const cJSON *wanted)
{
    SCOPED_FREE char *keys = managed_keys(wanted);
    const char *is = meta_annotation(pod, key);
    if (*keys || is)
        patch_entry(annotations, key, is, keys);
}

static void patch_wanted(cJSON *patch_map, const cJSON *pod, const char *map, const cJSON *wanted)
{
    const cJSON *entry;
    cJSON_ArrayForEach(entry, wanted)
    {
        if (meta_key_is_reserved(entry->string) || !cJSON_IsString(entry))
            continue;
        const cJSON *is = json_get(json_get(json_get(pod, "metadata"), map), entry->string);
        /* As the original: an empty value is not added to a Pod that lacks the key. */
        if (!is && !*entry->valuestring)
            continue;
        patch_entry(patch_map, entry->string, cJSON_IsString(is) ? is->valuestring : NULL,
                    entry->valuestring);
    }
}

static cJSON *patch_labels(const cJSON *sandbox, const cJSON *pod)
{
    static const char *const keep[] = {LABEL_NAME_HASH, NULL};
    const cJSON *wanted = template_map(sandbox, "labels");
    cJSON *labels = json_object();
    char hash[NAME_HASH_SIZE];
    tracking_hash(sandbox, hash);
    drop_stale(labels, pod, "labels", wanted, meta_annotation(pod, ANNOTATION_PROPAGATED_LABELS),
               keep);
    patch_entry(labels, LABEL_NAME_HASH, meta_label(pod, LABEL_NAME_HASH), hash);
    patch_wanted(labels, pod, "labels", wanted);
    struct system_label system[SYSTEM_LABELS];
    system_labels(sandbox, system);
    for (size_t i = 0; i < SYSTEM_LABELS; i++) {
        json_remove(labels, system[i].key); /* what drop_stale may have said */
        patch_entry(labels, system[i].key, meta_label(pod, system[i].key), system[i].value);
    }
    return labels;
}

static cJSON *patch_annotations(const cJSON *sandbox, const cJSON *pod)
{
    static const char *const keep[] = {ANNOTATION_PROPAGATED_LABELS,
                                       ANNOTATION_PROPAGATED_ANNOTATIONS, NULL};
    const cJSON *wanted = template_map(sandbox, "annotations");
    cJSON *annotations = json_object();
    drop_stale(annotations, pod, "annotations", wanted,
               meta_annotation(pod, ANNOTATION_PROPAGATED_ANNOTATIONS), keep);
    patch_wanted(annotations, pod, "annotations", wanted);
    patch_record(annotations, pod, ANNOTATION_PROPAGATED_LABELS, template_map(sandbox, "labels"));
    patch_record(annotations, pod, ANNOTATION_PROPAGATED_ANNOTATIONS, wanted);
    return annotations;
}

cJSON *pod_patch(const cJSON *sandbox, const cJSON *pod, bool adopt)
{
    SCOPED(json_free_p) cJSON *labels = patch_labels(sandbox, pod);
    SCOPED(json_free_p) cJSON *annotations = patch_annotations(sandbox, pod);
    if (json_len(labels) == 0 && json_len(annotations) == 0 && !adopt)
        return NULL;
    cJSON *patch = json_object(), *meta = json_object();
    json_set_str(meta, "uid", meta_uid(pod)); /* of another incarnation: the API server refuses */
    if (json_len(labels))
        json_set(meta, "labels", steal(&labels));
    if (json_len(annotations))
        json_set(meta, "annotations", steal(&annotations));
    if (adopt)
        json_set(meta, "ownerReferences", owner_references_with(pod, sandbox));
    json_set(patch, "metadata", meta);
    return patch;
}
