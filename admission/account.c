/* What a Pod gets from its ServiceAccount when it is made: the secrets to pull images with, and in
 * each container a folder with a token, the cluster's authority and the namespace, unless Pod or
 * account say no. Source: the Kubernetes documentation, admission controller ServiceAccount and
 * "Configure Service Accounts for Pods". */
#include <string.h>

#include "admission/names.h"
#include "admission/steps.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/rand.h"
#include "openapi/kinds/builtin.h"

#define MOUNT_PATH "/var/run/secrets/kubernetes.io/serviceaccount"
#define SUFFIX 5 /* letters behind the volume's name */

static bool mounts_at(const cJSON *container, const char *path)
{
    const cJSON *mount;
    cJSON_ArrayForEach(mount, json_get(container, "volumeMounts"))
    {
        if (str_equal(json_str(mount, "mountPath"), path))
            return true;
    }
    return false;
}

static cJSON *ensure_list(cJSON *object, const char *name)
{
    if (!cJSON_IsArray(json_get(object, name)))
        json_set(object, name, json_array());
    return json_get(object, name);
}

/* In all containers of the list that have nothing there yet; whether there was one. */
static bool mount_in(cJSON *containers, const char *volume)
{
    bool has_any = false;
    cJSON *container;
    cJSON_ArrayForEach(container, containers)
    {
        if (!cJSON_IsObject(container) || mounts_at(container, MOUNT_PATH))
            continue;
        cJSON *mount = json_object();
        json_set_str(mount, "name", volume);
        json_set_bool(mount, "readOnly", true);
        json_set_str(mount, "mountPath", MOUNT_PATH);
        json_push(ensure_list(container, "volumeMounts"), mount);
        has_any = true;
    }
    return has_any;
}

static void mount_token(const struct admission *a, cJSON *spec)
{
    static const char sources[] =
        "{\"defaultMode\":420,\"sources\":["
        "{\"serviceAccountToken\":{\"expirationSeconds\":3607,\"path\":\"token\"}},"
        "{\"configMap\":{\"name\":\"" KUBE_ROOT_CA "\","
        "\"items\":[{\"key\":\"ca.crt\",\"path\":\"ca.crt\"}]}},"
        "{\"downwardAPI\":{\"items\":[{\"path\":\"namespace\","
        "\"fieldRef\":{\"apiVersion\":\"v1\",\"fieldPath\":\"metadata.namespace\"}}]}}]}";
    char suffix[SUFFIX + 1];
    rand_name_suffix(a->env->randomness, suffix, SUFFIX);
    SCOPED_FREE char *name = xasprintf("kube-api-access-%s", suffix);
    bool has_any = mount_in(json_get(spec, "initContainers"), name);
    has_any |= mount_in(json_get(spec, "containers"), name);
    cJSON *projected = NULL;
    if (!has_any || json_parse_str(sources, &projected, NULL) < 0)
        return;
    cJSON *volume = json_object();
    json_set_str(volume, "name", name);
    json_set(volume, "projected", projected);
    json_push(ensure_list(spec, "volumes"), volume);
}

static int refuse(const struct admission *a, const char *account, const char *why, struct err *err)
{
    const struct kind *k = a->req->kind;
    const char *name = json_str_or(a->object, "metadata.name", "");
    err_set(err, ERR_FORBIDDEN,
            "%s \"%s\" is forbidden: error looking up service account %s/%s: %s", k->plural, name,
            a->req->namespace_name, account, why);
    err_details(err, k->group, k->plural, name, NULL);
    return -ERR_FORBIDDEN;
}

/* The account, the caller's. Every namespace has a default one, or will in a moment; what can be no
 * name is for validation to refuse. */
static int find_account(const struct admission *a, const char *name, cJSON **ret, struct err *err)
{
    SCOPED(err_fini) struct err e = {0}, causes = {0};
    if (name_check_object(name, false, NAME_SUBDOMAIN, "", &causes) > 0) {
        *ret = json_object();
        return 0;
    }
    int rc = a->env->service_account(a->env->ctx, a->req->namespace_name, name, ret, &e);
    if (rc == -ERR_NOT_FOUND && strcmp(name, "default") == 0) {
        *ret = json_object();
        return 0;
    }
    SCOPED_FREE char *why = rc == -ERR_NOT_FOUND
                                ? xasprintf("serviceaccount \"%s\" not found", name)
                                : xstrdup(err_text(&e));
    return rc < 0 ? refuse(a, name, why, err) : 0;
}

int step_account(struct admission *a, struct err *err)
{
    cJSON *spec = json_get(a->object, "spec");
    if (a->req->kind != &kind_pod || !a->is_main || !a->env->service_account ||
        !cJSON_IsObject(spec))
        return 0;
    SCOPED(json_free_p) cJSON *account = NULL;
    int rc = find_account(a, json_str_or(spec, "serviceAccountName", "default"), &account, err);
    if (rc < 0)
        return rc;
    const cJSON *secrets = json_get(account, "imagePullSecrets");
    if (json_len(json_get(spec, "imagePullSecrets")) == 0 && json_len(secrets) > 0)
        json_set(spec, "imagePullSecrets", json_copy(secrets));
    bool may = json_bool_or(account, "automountServiceAccountToken", true);
    if (json_bool_or(spec, "automountServiceAccountToken", may))
        mount_token(a, spec);
    return 0;
}
