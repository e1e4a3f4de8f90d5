#include "reconcile/child.h"

#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "reconcile/keys.h"

static const char *meta_str(const cJSON *o, const char *member)
{
    return json_str_or(json_get(o, "metadata"), member, "");
}

const char *meta_name(const cJSON *o)
{
    return meta_str(o, "name");
}

const char *meta_namespace(const cJSON *o)
{
    return meta_str(o, "namespace");
}

const char *meta_uid(const cJSON *o)
{
    return meta_str(o, "uid");
}

/* Keys hold dots, so no path walk here. */
static const char *meta_entry(const cJSON *o, const char *map, const char *key)
{
    const cJSON *v = json_get(json_get(json_get(o, "metadata"), map), key);
    return cJSON_IsString(v) ? v->valuestring : NULL;
}

const char *meta_label(const cJSON *o, const char *key)
{
    return meta_entry(o, "labels", key);
}

const char *meta_annotation(const cJSON *o, const char *key)
{
    return meta_entry(o, "annotations", key);
}

bool meta_is_terminating(const cJSON *o)
{
    return json_str(o, "metadata.deletionTimestamp") != NULL;
}

bool meta_key_is_reserved(const char *key)
{
    return str_has_prefix(key, GROUP_AGENTS "/") || str_has_prefix(key, GROUP_EXTENSIONS "/") ||
           str_equal(key, ANNOTATION_TRACE_CONTEXT);
}

const char *created_by_known(const char *value)
{
    static const char *const known[] = {"go-client", "python-client", "controller"};
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (str_equal(value, known[i]))
            return known[i];
    }
    return "unknown";
}

const cJSON *owner_reference_that_controls(const cJSON *references)
{
    const cJSON *ref;
    cJSON_ArrayForEach(ref, references)
    {
        if (json_bool_or(ref, "controller", false))
            return ref;
    }
    return NULL;
}

const cJSON *owner_controller(const cJSON *child)
{
    return owner_reference_that_controls(json_at(child, "metadata.ownerReferences"));
}

enum ownership owner_class(const cJSON *child, const cJSON *sandbox)
{
    const cJSON *ref = owner_controller(child);
    if (!ref)
        return UNOWNED;
    return str_equal(json_str(ref, "uid"), meta_uid(sandbox)) ? OWNED : FOREIGN;
}

void tracking_hash(const cJSON *sandbox, char out[NAME_HASH_SIZE])
{
    digest_name_hash(meta_name(sandbox), out);
}

void tracking_selector(const cJSON *sandbox, struct buf *out)
{
    char hash[NAME_HASH_SIZE];
    tracking_hash(sandbox, hash);
    buf_printf(out, "%s=%s", LABEL_NAME_HASH, hash);
}

bool owner_may_adopt(const cJSON *child, const cJSON *sandbox)
{
    char hash[NAME_HASH_SIZE];
    tracking_hash(sandbox, hash);
    return str_equal(meta_label(child, LABEL_ADOPTABLE), "true") ||
           str_equal(meta_label(child, LABEL_NAME_HASH), hash);
}

bool owner_is_kind(const cJSON *ref, const char *group, const char *kind)
{
    size_t n = strlen(group);
    const char *api_version = json_str_or(ref, "apiVersion", "");
    return str_equal(json_str(ref, "kind"), kind) && strncmp(api_version, group, n) == 0 &&
           api_version[n] == '/';
}

const char *owner_label(const cJSON *ref)
{
    static const char *const kinds[] = {KIND_CLAIM, KIND_POOL};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (owner_is_kind(ref, GROUP_EXTENSIONS, kinds[i]))
            return kinds[i];
    }
    return "None";
}

cJSON *owner_reference(const cJSON *owner)
{
    cJSON *ref = json_object();
    json_set_str(ref, "apiVersion", json_str_or(owner, "apiVersion", ""));
    json_set_str(ref, "kind", json_str_or(owner, "kind", ""));
    json_set_str(ref, "name", meta_name(owner));
    json_set_str(ref, "uid", meta_uid(owner));
    json_set_bool(ref, "controller", true);
    json_set_bool(ref, "blockOwnerDeletion", true);
    return ref;
}

/* Both name the same object, of whatever version and incarnation. */
static bool is_same_referent(const cJSON *a, const cJSON *b)
{
    const char *x = json_str_or(a, "apiVersion", ""), *y = json_str_or(b, "apiVersion", "");
    size_t n = strcspn(x, "/");
    return n == strcspn(y, "/") && strncmp(x, y, n) == 0 &&
           str_equal(json_str(a, "kind"), json_str(b, "kind")) &&
           str_equal(json_str(a, "name"), json_str(b, "name"));
}

cJSON *owner_references_with(const cJSON *child, const cJSON *owner)
{
    cJSON *refs = json_copy(json_at(child, "metadata.ownerReferences")), *ref;
    if (!refs)
        refs = json_array();
    cJSON *mine = owner_reference(owner);
    cJSON_ArrayForEach(ref, refs)
    {
        if (is_same_referent(ref, mine)) {
            json_replace_item(refs, ref, mine);
            return refs;
        }
    }
    json_push(refs, mine);
    return refs;
}

char *owner_foreign_text(const char *what, const cJSON *child, const cJSON *sandbox)
{
    const cJSON *ref = owner_controller(child);
    return xasprintf("%s \"%s\" is owned by %s/%s (UID: %s), not by sandbox \"%s\"", what,
                     meta_name(child), json_str_or(ref, "kind", ""), json_str_or(ref, "name", ""),
                     json_str_or(ref, "uid", ""), meta_name(sandbox));
}

char *owner_refusal_text(const char *what, const cJSON *child)
{
    return xasprintf("cannot adopt unowned %s \"%s\": missing required pool authorization label "
                     "(\"" LABEL_ADOPTABLE "\") or sandbox tracking label (\"" LABEL_NAME_HASH
                     "\")",
                     what, meta_name(child));
}
