#include "reconcile/volume.h"

#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/quantity.h"
#include "apiserver/kube/local_volume.h"
#include "apiserver/registry/select.h"

#define BY_CONTROLLER "pv.kubernetes.io/bound-by-controller"
#define COMPLETED "pv.kubernetes.io/bind-completed"
#define PROVISIONED_BY "pv.kubernetes.io/provisioned-by"

static void annotate(cJSON *object, const char *key, const char *value)
{
    json_set_str(json_ensure_object(json_ensure_object(object, "metadata"), "annotations"), key,
                 value);
}

static void copy(cJSON *to, const char *to_path, const cJSON *from)
{
    if (from)
        json_set_at(to, to_path, json_copy(from));
}

static bool is_text_at(const cJSON *a, const char *a_path, const cJSON *b, const char *b_path,
                       const char *otherwise)
{
    return strcmp(json_str_or(a, a_path, otherwise), json_str_or(b, b_path, otherwise)) == 0;
}

/* ---- a volume for a claim ---- */

static cJSON *reference(const struct object *claim)
{
    cJSON *ref = json_object();
    json_set_str(ref, "apiVersion", "v1");
    json_set_str(ref, "kind", "PersistentVolumeClaim");
    json_set_str(ref, "name", claim->name);
    json_set_str(ref, "namespace", claim->namespace_name);
    json_set_str(ref, "uid", claim->uid);
    return ref;
}

char *volume_name_for(const struct object *claim)
{
    return xasprintf("pvc-%s", claim->uid);
}

cJSON *volume_make(const struct object *claim, const cJSON *claim_tree, const cJSON *class_tree)
{
    cJSON *v = json_object();
    SCOPED_FREE char *name = volume_name_for(claim);
    json_set_str(v, "apiVersion", "v1");
    json_set_str(v, "kind", "PersistentVolume");
    json_set_at(v, "metadata.name", json_string(name));
    annotate(v, PROVISIONED_BY, LOCAL_VOLUME_DRIVER);
    copy(v, "spec.accessModes", json_at(claim_tree, "spec.accessModes"));
    copy(v, "spec.capacity.storage", json_at(claim_tree, "spec.resources.requests.storage"));
    json_set_at(v, "spec.claimRef", reference(claim));
    json_set_at(v, "spec.csi.driver", json_string(LOCAL_VOLUME_DRIVER));
    json_set_at(v, "spec.csi.volumeHandle", json_string(claim->uid));
    copy(v, "spec.mountOptions", json_get(class_tree, "mountOptions"));
    json_set_at(v, "spec.persistentVolumeReclaimPolicy",
                json_string(json_str_or(class_tree, "reclaimPolicy", "Delete")));
    json_set_at(v, "spec.storageClassName",
                json_string(json_str_or(class_tree, "metadata.name", "")));
    json_set_at(v, "spec.volumeMode",
                json_string(json_str_or(claim_tree, "spec.volumeMode", "Filesystem")));
    json_set_at(v, "status.phase", json_string("Bound"));
    return v;
}

bool volume_is_ours(const cJSON *volume)
{
    return strcmp(json_str_or(volume, "spec.csi.driver", ""), LOCAL_VOLUME_DRIVER) == 0;
}

/* ---- does it suit? ---- */

enum volume_hold volume_hold(const cJSON *claim_ref, const struct object *claim)
{
    const char *uid = json_str_or(claim_ref, "uid", "");
    if (!claim_ref)
        return VOLUME_FREE;
    bool is_named = strcmp(json_str_or(claim_ref, "name", ""), claim->name) == 0 &&
                    strcmp(json_str_or(claim_ref, "namespace", ""), claim->namespace_name) == 0;
    return is_named && (!*uid || strcmp(uid, claim->uid) == 0) ? VOLUME_RESERVED : VOLUME_TAKEN;
}

int64_t volume_size(const cJSON *volume)
{
    int64_t milli = -1;
    (void)quantity_read_milli(json_at(volume, "spec.capacity.storage"), &milli);
    return milli;
}

static bool is_large_enough(const cJSON *volume, const cJSON *claim)
{
    int64_t wanted = 0;
    return quantity_read_milli(json_at(claim, "spec.resources.requests.storage"), &wanted) == 0 &&
           volume_size(volume) >= wanted;
}

static bool has_modes(const cJSON *volume, const cJSON *claim)
{
    const cJSON *mode;
    cJSON_ArrayForEach(mode, json_at(claim, "spec.accessModes"))
    {
        if (!json_has_str(json_at(volume, "spec.accessModes"), mode->valuestring))
            return false;
    }
    return true;
}

static void print_expression(const cJSON *e, struct buf *out)
{
    static const struct {
        const char *op, *before, *between, *after;
    } ops[] = {{"In", "", " in (", ")"},
               {"NotIn", "", " notin (", ")"},
               {"Exists", "", "", ""},
               {"DoesNotExist", "!", "", ""}};
    const char *comma = "";
    for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
        if (strcmp(json_str_or(e, "operator", ""), ops[i].op) != 0)
            continue;
        buf_printf(out, "%s%s%s%s", out->len ? "," : "", ops[i].before, json_str_or(e, "key", ""),
                   ops[i].between);
        const cJSON *value;
        cJSON_ArrayForEach(value, json_get(e, "values"))
        {
            buf_printf(out, "%s%s", comma, cJSON_IsString(value) ? value->valuestring : "");
            comma = ",";
        }
        buf_puts(out, ops[i].after);
    }
}

/* A selector that cannot be read selects nothing. */
static bool has_labels(const struct object *volume, const cJSON *selector)
{
    SCOPED(buf_fini) struct buf text = {0};
    struct selector *s = NULL;
    const cJSON *x;
    cJSON_ArrayForEach(x, json_get(selector, "matchLabels"))
    {
        buf_printf(&text, "%s%s=%s", text.len ? "," : "", x->string,
                   cJSON_IsString(x) ? x->valuestring : "");
    }
    cJSON_ArrayForEach(x, json_get(selector, "matchExpressions"))
    {
        print_expression(x, &text);
    }
    if (selector_parse(buf_cstr(&text), NULL, &s, NULL) < 0)
        return false;
    bool is_match = selector_matches(s, volume);
    selector_free(s);
    return is_match;
}

bool volume_satisfies(const cJSON *volume_tree, const cJSON *claim_tree)
{
    bool is_class =
        !json_str(claim_tree, "spec.storageClassName") ||
        is_text_at(volume_tree, "spec.storageClassName", claim_tree, "spec.storageClassName", "");
    return is_class &&
           is_text_at(volume_tree, "spec.volumeMode", claim_tree, "spec.volumeMode",
                      "Filesystem") &&
           has_modes(volume_tree, claim_tree) && is_large_enough(volume_tree, claim_tree);
}

bool volume_suits(const struct object *volume, const cJSON *volume_tree, const cJSON *claim_tree)
{
    return !volume->is_terminating && volume_satisfies(volume_tree, claim_tree) &&
           is_text_at(volume_tree, "spec.storageClassName", claim_tree, "spec.storageClassName",
                      "") &&
           has_labels(volume, json_at(claim_tree, "spec.selector"));
}

/* ---- both as they are then ---- */

bool volume_set_phase(cJSON *object, const char *phase, const char *message)
{
    cJSON *status = json_ensure_object(object, "status");
    if (strcmp(json_str_or(status, "phase", ""), phase) == 0)
        return false;
    json_set_str(status, "phase", phase);
    json_remove(status, "message");
    if (message)
        json_set_str(status, "message", message);
    return true;
}

bool volume_give(cJSON *volume, const struct object *claim)
{
    enum volume_hold hold = volume_hold(json_at(volume, "spec.claimRef"), claim);
    if (hold == VOLUME_TAKEN)
        return false;
    bool is_given = json_str_or(volume, "spec.claimRef.uid", "")[0] != '\0';
    if (hold == VOLUME_FREE)
        annotate(volume, BY_CONTROLLER, "yes");
    if (!is_given)
        json_set_at(volume, "spec.claimRef", reference(claim));
    return volume_set_phase(volume, "Bound", NULL) || !is_given;
}

bool volume_take(cJSON *claim, const cJSON *volume)
{
    const char *name = json_str_or(volume, "metadata.name", "");
    if (!json_str_or(claim, "spec.volumeName", "")[0]) {
        json_set_at(claim, "spec.volumeName", json_string(name));
        annotate(claim, BY_CONTROLLER, "yes");
    }
    if (strcmp(json_str_or(claim, "status.phase", ""), "Bound") == 0)
        return false;
    annotate(claim, COMPLETED, "yes");
    copy(claim, "spec.storageClassName", json_at(volume, "spec.storageClassName"));
    copy(claim, "status.accessModes", json_at(volume, "spec.accessModes"));
    copy(claim, "status.capacity", json_at(volume, "spec.capacity"));
    return volume_set_phase(claim, "Bound", NULL);
}
