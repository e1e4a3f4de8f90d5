/* PersistentVolumeClaims get a volume: one that is there and suits, or one that is made for them;
 * volumes are let go when their claim is gone; nothing goes while it is used. */
#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/kube/local_volume.h"
#include "openapi/kinds/builtin.h"
#include "reconcile/house_pass.h"
#include "reconcile/peek.h"
#include "reconcile/volume.h"

#define DEFAULT_CLASS "storageclass.kubernetes.io/is-default-class"
#define CLAIM_HELD "kubernetes.io/pvc-protection"
#define VOLUME_HELD "kubernetes.io/pv-protection"

/* ---- which claims a Pod uses ---- */

char **house_claims_of(const struct object *pod)
{
    SCOPED(json_free_p) cJSON *volumes = object_peek(pod, "spec", "volumes");
    char **keys = NULL;
    const cJSON *v;
    cJSON_ArrayForEach(v, volumes)
    {
        const char *name = json_str(v, "persistentVolumeClaim.claimName");
        if (name)
            strv_add(&keys, pass_key(pod->namespace_name, name));
    }
    return keys;
}

int house_missing_claim(const struct pass_env *env, const struct object *pod, char **ret,
                        struct err *err)
{
    char **keys = house_claims_of(pod);
    int rc = 0;
    for (size_t i = 0; rc == 0 && keys && keys[i] && !*ret; i++) {
        const char *name = strchr(keys[i], '/') + 1;
        SCOPED(object_unref_p) struct object *claim = NULL;
        rc = pass_get(env, &kind_persistent_volume_claim, pod->namespace_name, name, &claim, err);
        if (rc < 0)
            break;
        SCOPED(json_free_p) cJSON *phase = claim ? object_peek(claim, "status", "phase") : NULL;
        if (!claim)
            *ret = xasprintf("persistentvolumeclaim \"%s\" not found", name);
        else if (claim->is_terminating) /* it may go before the Pod is on its node */
            *ret = xasprintf("persistentvolumeclaim \"%s\" is being deleted", name);
        else if (!cJSON_IsString(phase) || strcmp(phase->valuestring, "Bound") != 0)
            *ret = xstrdup("pod has unbound immediate PersistentVolumeClaims");
    }
    strv_free(keys);
    return rc;
}

/* On a node, and not ended. */
static bool uses_claims(const struct object *pod)
{
    SCOPED(json_free_p)
    cJSON *node = object_peek(pod, "spec", "nodeName"),
          *phase = object_peek(pod, "status", "phase");
    const char *is = cJSON_IsString(phase) ? phase->valuestring : "";
    return cJSON_IsString(node) && node->valuestring[0] && strcmp(is, "Succeeded") != 0 &&
           strcmp(is, "Failed") != 0;
}

static int is_used(const struct pass_env *env, struct links *users, const char *claim_key,
                   bool *ret, struct err *err)
{
    char **pods = links_to(users, claim_key);
    int rc = 0;
    *ret = false;
    for (size_t i = 0; rc == 0 && pods && pods[i] && !*ret; i++) {
        SCOPED_FREE char *namespace_name = NULL;
        const char *name = pass_key_split(pods[i], &namespace_name);
        SCOPED(object_unref_p) struct object *pod = NULL;
        rc = pass_get(env, &kind_pod, namespace_name, name, &pod, err);
        *ret = rc == 0 && pod && uses_claims(pod);
    }
    strv_free(pods);
    return rc;
}

/* ---- writes ---- */

static bool drop(void *ctx, cJSON *object)
{
    return json_remove_str(json_at(object, "metadata.finalizers"), ctx);
}

static int let_go(const struct pass_env *env, const struct object *o, const char *finalizer,
                  struct err *err)
{
    SCOPED(json_free_p) cJSON *finalizers = object_peek(o, "metadata", "finalizers");
    SCOPED_FREE char *copy = xstrdup(finalizer);
    return json_has_str(finalizers, finalizer)
               ? house_forgive(house_change(env, o, drop, copy, err), err)
               : 0;
}

struct phase {
    const char *name, *message;
};

static bool set_phase(void *ctx, cJSON *object)
{
    const struct phase *p = ctx;
    return volume_set_phase(object, p->name, p->message);
}

static int enter(const struct pass_env *env, const struct object *o, const char *phase,
                 const char *message, struct err *err)
{
    struct phase p = {phase, message};
    SCOPED(json_free_p) cJSON *present = object_peek(o, "status", "phase");
    if (cJSON_IsString(present) && strcmp(present->valuestring, phase) == 0)
        return 0;
    return house_forgive(house_change(env, o, set_phase, &p, err), err);
}

/* ---- classes ---- */

static bool is_default(const cJSON *class_tree)
{
    const cJSON *is = json_get(json_at(class_tree, "metadata.annotations"), DEFAULT_CLASS);
    return cJSON_IsString(is) && strcmp(is->valuestring, "true") == 0;
}

/* The first by name; *ret NULL when no class is the default. */
static int default_class(const struct pass_env *env, cJSON **ret, struct err *err)
{
    SCOPED(list_result_fini) struct list_result classes = {0};
    const struct list_request list = {
        .kind = &kind_storage_class, .version = {READ_ANY, 0}, .deadline_ms = house_deadline(env)};
    int rc = registry_list(env->registry, &list, &classes, err);
    for (size_t i = 0; rc == 0 && i < classes.n && !*ret; i++) {
        SCOPED(json_free_p) cJSON *tree = object_tree(classes.objects[i]);
        if (is_default(tree))
            *ret = steal(&tree);
    }
    return rc;
}

/* *ret NULL: there is no such class. A claim that names none is of the default one from now on. */
static int class_of(const struct pass_env *env, cJSON *claim, cJSON **ret, struct err *err)
{
    const char *name = json_str(claim, "spec.storageClassName");
    SCOPED(object_unref_p) struct object *o = NULL;
    int rc;
    if (!name) {
        rc = default_class(env, ret, err);
        if (rc == 0 && *ret)
            json_set_at(claim, "spec.storageClassName",
                        json_string(json_str_or(*ret, "metadata.name", "")));
        return rc;
    }
    rc = *name ? pass_get(env, &kind_storage_class, "", name, &o, err) : 0;
    if (rc == 0 && o)
        *ret = object_tree(o);
    return rc;
}

int house_class_pass(const struct pass_env *env, struct err *err)
{
    cJSON *class = house_named("storage.k8s.io/v1", "StorageClass", "standard");
    cJSON *annotations = json_ensure_object(json_get(class, "metadata"), "annotations");
    json_set_str(annotations, DEFAULT_CLASS, "true");
    json_set_str(class, "provisioner", LOCAL_VOLUME_DRIVER);
    return pass_ensure(env, &kind_storage_class, "", class, HOUSE_MANAGER, err);
}

/* ---- a volume for a claim ---- */

/* The smallest that suits; one that is reserved for the claim comes first. */
static int choose(const struct pass_env *env, const struct object *claim, const cJSON *claim_tree,
                  struct object **ret, struct err *err)
{
    SCOPED(list_result_fini) struct list_result volumes = {0};
    const struct list_request list = {.kind = &kind_persistent_volume,
                                      .version = {READ_ANY, 0},
                                      .deadline_ms = house_deadline(env)};
    struct object *best = NULL;
    int64_t best_size = 0;
    int rc = registry_list(env->registry, &list, &volumes, err);
    for (size_t i = 0; rc == 0 && i < volumes.n; i++) {
        struct object *o = volumes.objects[i];
        SCOPED(json_free_p) cJSON *ref = object_peek(o, "spec", "claimRef");
        enum volume_hold hold = volume_hold(ref, claim);
        if (hold == VOLUME_TAKEN)
            continue;
        SCOPED(json_free_p) cJSON *tree = object_tree(o);
        int64_t size = hold == VOLUME_RESERVED ? -1 : volume_size(tree);
        if (hold == VOLUME_FREE && !volume_suits(o, tree, claim_tree))
            continue;
        if (!best || size < best_size) {
            best = o;
            best_size = size;
        }
    }
    *ret = best ? object_ref(best) : NULL;
    return rc;
}

static int provision(const struct pass_env *env, const struct object *claim,
                     const cJSON *claim_tree, const cJSON *class_tree, struct object **ret,
                     struct err *err)
{
    struct err e = {0};
    SCOPED_FREE char *name = volume_name_for(claim);
    if (!str_equal(json_str(class_tree, "provisioner"), LOCAL_VOLUME_DRIVER) ||
        json_at(claim_tree, "spec.selector"))
        return 0;
    int rc = pass_create(env, &kind_persistent_volume, "",
                         volume_make(claim, claim_tree, class_tree), HOUSE_MANAGER, ret, &e);
    if (rc == -ERR_ALREADY_EXISTS) { /* made, but the claim does not know it yet */
        err_fini(&e);
        return pass_get(env, &kind_persistent_volume, "", name, ret, err);
    }
    return rc < 0 ? err_move(err, &e) : 0;
}

/* The volume that the claim names, NULL when it is not there, or is free and not what the claim
 * asks for: a change of either brings the next look. */
static int named_volume(const struct pass_env *env, const struct object *claim,
                        const cJSON *claim_tree, const char *name, struct object **ret,
                        struct err *err)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    int rc = pass_get(env, &kind_persistent_volume, "", name, &o, err);
    if (rc < 0 || !o)
        return rc;
    SCOPED(json_free_p) cJSON *tree = object_tree(o);
    if (volume_hold(json_at(tree, "spec.claimRef"), claim) != VOLUME_FREE ||
        volume_satisfies(tree, claim_tree))
        *ret = steal(&o);
    return 0;
}

/* *ret NULL: there is none, and nobody here makes one. */
static int find_volume(const struct pass_env *env, const struct object *claim, cJSON *claim_tree,
                       struct object **ret, struct err *err)
{
    SCOPED(json_free_p) cJSON *class_tree = NULL;
    const char *wanted = json_str_or(claim_tree, "spec.volumeName", "");
    if (*wanted)
        return named_volume(env, claim, claim_tree, wanted, ret, err);
    int rc = class_of(env, claim_tree, &class_tree, err);
    if (rc == 0)
        rc = choose(env, claim, claim_tree, ret, err);
    if (rc == 0 && !*ret)
        rc = provision(env, claim, claim_tree, class_tree, ret, err);
    return rc;
}

struct pair_up {
    const struct object *claim;
    const cJSON *volume;
};

static bool give(void *ctx, cJSON *volume)
{
    return volume_give(volume, ((struct pair_up *)ctx)->claim);
}

static bool take(void *ctx, cJSON *claim)
{
    return volume_take(claim, ((struct pair_up *)ctx)->volume);
}

static bool belongs_to(const cJSON *volume, const struct object *claim)
{
    return str_equal(json_str(volume, "spec.claimRef.uid"), claim->uid);
}

/* First the volume says whose it is, which only one claim can bring it to; then the claim. */
static int bind(const struct pass_env *env, const struct object *claim, const struct object *volume,
                struct err *err)
{
    SCOPED(json_free_p) cJSON *tree = object_tree(volume);
    SCOPED(object_unref_p) struct object *given = NULL;
    struct pair_up pair = {.claim = claim, .volume = tree};
    if (!belongs_to(tree, claim)) {
        struct pass_update update = {.kind = &kind_persistent_volume,
                                     .namespace_name = "",
                                     .name = volume->name,
                                     .uid = volume->uid,
                                     .change = give,
                                     .ctx = &pair,
                                     .field_manager = HOUSE_MANAGER};
        int rc = pass_update(env, &update, &given, err);
        if (rc < 0)
            return rc;
        json_free(tree);
        pair.volume = tree = object_tree(given);
        if (!belongs_to(tree, claim))
            return err_set(err, ERR_CONFLICT, "volume %s went to another claim", volume->name);
    }
    int rc = house_forgive(house_change(env, claim, take, &pair, err), err);
    if (rc == 0)
        log_info("claim bound claim=%s/%s volume=%s", claim->namespace_name, claim->name,
                 volume->name);
    return rc;
}

/* A claim whose volume is gone has lost its data. */
static int look_after(const struct pass_env *env, const struct object *claim, const cJSON *tree,
                      struct err *err)
{
    SCOPED(object_unref_p) struct object *volume = NULL;
    int rc = pass_get(env, &kind_persistent_volume, "", json_str_or(tree, "spec.volumeName", ""),
                      &volume, err);
    return rc < 0 || volume ? rc : enter(env, claim, "Lost", "its volume is gone", err);
}

int house_claim_pass(const struct pass_env *env, struct links *users, const char *key,
                     struct err *err)
{
    SCOPED_FREE char *namespace_name = NULL;
    const char *name = pass_key_split(key, &namespace_name);
    SCOPED(object_unref_p) struct object *claim = NULL, *volume = NULL;
    bool used;
    int rc = pass_get(env, &kind_persistent_volume_claim, namespace_name, name, &claim, err);
    if (rc < 0 || !claim)
        return rc;
    if (claim->is_terminating) {
        rc = is_used(env, users, key, &used, err);
        return rc < 0 || used ? rc : let_go(env, claim, CLAIM_HELD, err);
    }
    SCOPED(json_free_p) cJSON *tree = object_tree(claim);
    if (strcmp(json_str_or(tree, "status.phase", ""), "Pending") != 0)
        return look_after(env, claim, tree, err);
    rc = find_volume(env, claim, tree, &volume, err);
    return rc < 0 || !volume ? rc : bind(env, claim, volume, err);
}

/* ---- what becomes of volumes ---- */

/* *ret: the claim that the volume names is there. That it is not is asked of the store itself: what
 * is let go may be deleted. */
static int has_claim(const struct pass_env *env, const cJSON *volume, bool *ret, struct err *err)
{
    static const struct read_version versions[] = {{READ_ANY, 0}, {READ_LATEST, 0}};
    *ret = false;
    for (size_t i = 0; i < ARRAY_LEN(versions) && !*ret; i++) {
        SCOPED(object_unref_p) struct object *claim = NULL;
        struct err e = {0};
        int rc = registry_get(env->registry, &kind_persistent_volume_claim,
                              json_str_or(volume, "spec.claimRef.namespace", ""),
                              json_str_or(volume, "spec.claimRef.name", ""), versions[i],
                              house_deadline(env), &claim, &e);
        if (rc < 0 && rc != -ERR_NOT_FOUND)
            return err_move(err, &e);
        err_fini(&e);
        *ret = claim && belongs_to(volume, claim);
    }
    return 0;
}

static int reclaim(const struct pass_env *env, const struct object *volume, const cJSON *tree,
                   struct err *err)
{
    if (strcmp(json_str_or(tree, "spec.persistentVolumeReclaimPolicy", ""), "Delete") != 0)
        return enter(env, volume, "Released", NULL, err);
    if (!volume_is_ours(tree))
        return enter(env, volume, "Failed", "nobody here deletes volumes of this kind", err);
    struct pass_delete del = {.kind = &kind_persistent_volume,
                              .namespace_name = "",
                              .name = volume->name,
                              .uid = volume->uid};
    return house_forgive(pass_delete(env, &del, err), err);
}

int house_volume_pass(const struct pass_env *env, const char *name, struct err *err)
{
    SCOPED(object_unref_p) struct object *volume = NULL;
    bool is_claimed = false;
    int rc = pass_get(env, &kind_persistent_volume, "", name, &volume, err);
    if (rc < 0 || !volume)
        return rc;
    SCOPED(json_free_p) cJSON *tree = object_tree(volume);
    bool is_bound = json_str_or(tree, "spec.claimRef.uid", "")[0] != '\0';
    if (is_bound)
        rc = has_claim(env, tree, &is_claimed, err);
    if (rc < 0)
        return rc;
    if (volume->is_terminating)
        return is_claimed ? 0 : let_go(env, volume, VOLUME_HELD, err);
    if (is_bound && !is_claimed)
        return reclaim(env, volume, tree, err);
    return enter(env, volume, is_bound ? "Bound" : "Available", NULL, err);
}
