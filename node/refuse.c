/* Tables name the fields that are known; a field that is in none of them is not supported. */
#include "node/refuse.h"

#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "node/env.h"
#include "node/plan.h"

#define VOLUMES_MAX 500
#define MOUNTS_MAX 500         /* of a container */
#define WHY_MAX ((size_t)1024) /* bytes of a message */

struct findings {
    const struct refuse_policy *policy;
    const cJSON *pod;
    struct buf *why;
    bool is_forbidden;
};

static void found(struct findings *f, bool is_forbidden, const char *path, const char *problem)
{
    f->is_forbidden = f->is_forbidden || is_forbidden;
    if (f->why->len < WHY_MAX)
        buf_printf(f->why, "%s%s: %s", f->why->len ? "; " : "", path, problem);
}

/* ---- fields ---- */

/* What a field's presence means. Those whose value matters have a function of their own. */
enum rule {
    FINE,       /* handled by the node, or nothing that concerns it */
    ONLY_FALSE, /* fine unless true; true reaches out of the Pod */
    ONLY_EMPTY, /* not supported unless it says nothing */
};
struct field {
    const char *name;
    enum rule rule;
    void (*check)(struct findings *f, const char *path, const cJSON *value); /* or NULL */
};

static bool says_nothing(const cJSON *value)
{
    return cJSON_IsNull(value) || cJSON_IsFalse(value) ||
           ((cJSON_IsObject(value) || cJSON_IsArray(value)) && !value->child);
}

static const struct field *field_find(const struct field *fields, const char *name)
{
    for (; fields->name; fields++) {
        if (strcmp(fields->name, name) == 0)
            return fields;
    }
    return NULL;
}

static void check_fields(struct findings *f, const char *path, const cJSON *object,
                         const struct field *fields)
{
    const cJSON *member;
    cJSON_ArrayForEach(member, object)
    {
        SCOPED_FREE char *at = xasprintf("%s.%.80s", path, member->string);
        const struct field *field = field_find(fields, member->string);
        if (!field || field->rule == ONLY_EMPTY) {
            if (!says_nothing(member))
                found(f, false, at, "is not supported");
        } else if (field->rule == ONLY_FALSE && !says_nothing(member)) {
            found(f, true, at, "is not allowed");
        } else if (field->check) {
            field->check(f, at, member);
        }
    }
}

static void check_items(struct findings *f, const char *path, const cJSON *list,
                        const struct field *fields)
{
    const cJSON *item;
    size_t i = 0;
    cJSON_ArrayForEach(item, list)
    {
        SCOPED_FREE char *at = xasprintf("%s[%zu]", path, i++);
        check_fields(f, at, item, fields);
    }
}

/* Names become parts of paths. */
static void check_name(struct findings *f, const char *path, const cJSON *value)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    const char *name = cJSON_IsString(value) ? value->valuestring : "";
    if (!*name || strlen(name) > 63 || name[strspn(name, letters)] != '\0')
        found(f, true, path, "is no name of lower-case letters, digits and hyphens");
}

/* ---- security ---- */

static void check_added(struct findings *f, const char *path, const cJSON *value)
{
    const cJSON *capability;
    cJSON_ArrayForEach(capability, value)
    {
        const char *name = cJSON_IsString(capability) ? capability->valuestring : "";
        if (str_has_prefix(name, "CAP_"))
            name += 4;
        if (!f->policy->capabilities || !strv_has(f->policy->capabilities, name)) {
            SCOPED_FREE char *text = xasprintf("capability \"%.40s\" is not allowed", name);
            found(f, true, path, text);
        }
    }
}

static const struct field capability_fields[] = {
    {"add", FINE, check_added}, {"drop", FINE, NULL}, {0}};

static void check_capabilities(struct findings *f, const char *path, const cJSON *value)
{
    check_fields(f, path, value, capability_fields);
}

static void check_profile(struct findings *f, const char *path, const cJSON *value)
{
    const char *type = json_str_or(value, "type", "");
    if (strcmp(type, "RuntimeDefault") != 0)
        found(f, strcmp(type, "Unconfined") == 0, path, "only RuntimeDefault is supported");
}

static void check_proc_mount(struct findings *f, const char *path, const cJSON *value)
{
    if (!cJSON_IsString(value) || strcmp(value->valuestring, "Default") != 0)
        found(f, true, path, "only Default is allowed");
}

static void check_groups_policy(struct findings *f, const char *path, const cJSON *value)
{
    if (!cJSON_IsString(value) || strcmp(value->valuestring, "Merge") != 0)
        found(f, false, path, "only Merge is supported");
}

static const struct field container_security[] = {
    {"allowPrivilegeEscalation", FINE, NULL},
    {"capabilities", FINE, check_capabilities},
    {"privileged", ONLY_FALSE, NULL},
    {"procMount", FINE, check_proc_mount},
    {"readOnlyRootFilesystem", FINE, NULL},
    {"runAsGroup", FINE, NULL},
    {"runAsNonRoot", FINE, NULL},
    {"runAsUser", FINE, NULL},
    {"seccompProfile", FINE, check_profile},
    {0},
};
static const struct field pod_security[] = {
    {"fsGroup", FINE, NULL},
    {"fsGroupChangePolicy", FINE, NULL},
    {"runAsGroup", FINE, NULL},
    {"runAsNonRoot", FINE, NULL},
    {"runAsUser", FINE, NULL},
    {"seccompProfile", FINE, check_profile},
    {"supplementalGroups", FINE, NULL},
    {"supplementalGroupsPolicy", FINE, check_groups_policy},
    {0},
};

static void check_container_security(struct findings *f, const char *path, const cJSON *value)
{
    check_fields(f, path, value, container_security);
}

static void check_pod_security(struct findings *f, const char *path, const cJSON *value)
{
    check_fields(f, path, value, pod_security);
}

/* ---- containers ---- */

static bool leads_out(const char *path)
{
    if (*path == '/')
        return true;
    for (const char *part = path; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0'))
            return true;
    }
    return false;
}

static void check_sub_path(struct findings *f, const char *path, const cJSON *value)
{
    if (!cJSON_IsString(value) || leads_out(value->valuestring))
        found(f, true, path, "leads out of the volume");
}

static void check_mount_path(struct findings *f, const char *path, const cJSON *value)
{
    bool is_good =
        cJSON_IsString(value) && value->valuestring[0] == '/' && !leads_out(value->valuestring + 1);
    if (!is_good)
        found(f, true, path, "must be absolute and without \"..\"");
}

static void check_propagation(struct findings *f, const char *path, const cJSON *value)
{
    if (!cJSON_IsString(value) || strcmp(value->valuestring, "None") != 0)
        found(f, true, path, "only None is allowed");
}

static const struct field mount_fields[] = {
    {"mountPath", FINE, check_mount_path},
    {"mountPropagation", FINE, check_propagation},
    {"name", FINE, NULL},
    {"readOnly", FINE, NULL},
    {"subPath", FINE, check_sub_path},
    {0},
};

static void check_mounts(struct findings *f, const char *path, const cJSON *value)
{
    if (json_len(value) > MOUNTS_MAX)
        found(f, true, path, "too many mounts");
    check_items(f, path, value, mount_fields);
}

static const struct field port_fields[] = {
    {"containerPort", FINE, NULL}, {"name", FINE, NULL}, {"protocol", FINE, NULL}, {0}};

static void check_ports(struct findings *f, const char *path, const cJSON *value)
{
    check_items(f, path, value, port_fields);
}

static void check_env(struct findings *f, const char *path, const cJSON *value)
{
    if (json_len(value) > ENV_MAX)
        found(f, true, path, "too many variables");
}

/* Only the Pod itself is asked: elsewhere it would be the node that reaches there. */
static void check_action(struct findings *f, const char *path, const cJSON *value)
{
    if (*json_str_or(value, "host", "")) {
        SCOPED_FREE char *at = xasprintf("%s.host", path);
        found(f, true, at, "is not allowed");
    }
}

static const struct field probe_table[] = {
    {"exec", FINE, NULL},
    {"failureThreshold", FINE, NULL},
    {"httpGet", FINE, check_action},
    {"initialDelaySeconds", FINE, NULL},
    {"periodSeconds", FINE, NULL},
    {"successThreshold", FINE, NULL},
    {"tcpSocket", FINE, check_action},
    {"terminationGracePeriodSeconds", FINE, NULL},
    {"timeoutSeconds", FINE, NULL},
    {0},
};

static void check_probe(struct findings *f, const char *path, const cJSON *value)
{
    check_fields(f, path, value, probe_table);
}

static const struct field hook_fields[] = {
    {"exec", FINE, NULL}, {"httpGet", FINE, check_action}, {"sleep", FINE, NULL}, {0}};

static void check_hook(struct findings *f, const char *path, const cJSON *value)
{
    check_fields(f, path, value, hook_fields);
}

static const struct field lifecycle_fields[] = {
    {"postStart", FINE, check_hook}, {"preStop", FINE, check_hook}, {0}};

static void check_lifecycle(struct findings *f, const char *path, const cJSON *value)
{
    check_fields(f, path, value, lifecycle_fields);
}

static const char *const resources_known[] = {"cpu", "memory", "ephemeral-storage"};

static void check_amounts(struct findings *f, const char *path, const cJSON *value)
{
    const cJSON *amount;
    cJSON_ArrayForEach(amount, value)
    {
        bool is_known = false;
        for (size_t i = 0; i < ARRAY_LEN(resources_known); i++)
            is_known = is_known || strcmp(amount->string, resources_known[i]) == 0;
        SCOPED_FREE char *at = xasprintf("%s.%.80s", path, amount->string);
        if (!is_known)
            found(f, false, at, "this machine has none of it");
    }
}

static const struct field resource_fields[] = {
    {"limits", FINE, check_amounts}, {"requests", FINE, check_amounts}, {0}};

static void check_resources(struct findings *f, const char *path, const cJSON *value)
{
    check_fields(f, path, value, resource_fields);
}

static const struct field container_fields[] = {
    {"args", FINE, NULL},
    {"command", FINE, NULL},
    {"env", FINE, check_env},
    {"envFrom", FINE, NULL},
    {"image", FINE, NULL},
    {"imagePullPolicy", FINE, NULL},
    {"lifecycle", FINE, check_lifecycle},
    {"livenessProbe", FINE, check_probe},
    {"name", FINE, check_name},
    {"ports", FINE, check_ports},
    {"readinessProbe", FINE, check_probe},
    {"resizePolicy", FINE, NULL}, /* nothing is resized */
    {"resources", FINE, check_resources},
    {"restartPolicy", FINE, NULL},
    {"securityContext", FINE, check_container_security},
    {"startupProbe", FINE, check_probe},
    {"stdin", FINE, NULL},
    {"stdinOnce", FINE, NULL},
    {"terminationMessagePath", FINE, check_mount_path},
    {"terminationMessagePolicy", FINE, NULL},
    {"tty", FINE, NULL},
    {"volumeMounts", FINE, check_mounts},
    {"workingDir", FINE, NULL},
    {0},
};

static void check_containers(struct findings *f, const char *path, const cJSON *value)
{
    if (json_len(value) > PLAN_CONTAINERS_MAX / 2)
        found(f, true, path, "too many containers");
    check_items(f, path, value, container_fields);
}

/* ---- volumes ---- */

size_t refuse_allowed_length(const char *path, char *const *folders)
{
    size_t least = 0;
    if (*path != '/' || leads_out(path + 1))
        return 0;
    for (; folders && *folders; folders++) {
        size_t n = strlen(*folders);
        while (n > 1 && (*folders)[n - 1] == '/')
            n--;
        bool is_it = n > 0 && strncmp(path, *folders, n) == 0 &&
                     (n == 1 || path[n] == '/' || path[n] == '\0');
        if (is_it && (least == 0 || n < least))
            least = n;
    }
    return least;
}

static void check_host_path(struct findings *f, const char *path, const cJSON *value)
{
    const char *type = json_str_or(value, "type", "");
    if (!refuse_allowed_length(json_str_or(value, "path", ""), f->policy->host_paths))
        found(f, true, path, "this folder of the machine is not allowed");
    else if (*type && strcmp(type, "Directory") != 0 && strcmp(type, "DirectoryOrCreate") != 0 &&
             strcmp(type, "File") != 0)
        found(f, false, path, "this type is not supported");
}

static const struct field projection_fields[] = {
    {"configMap", FINE, NULL},
    {"downwardAPI", FINE, NULL},
    {"secret", FINE, NULL},
    {"serviceAccountToken", FINE, NULL},
    {0},
};

static void check_sources(struct findings *f, const char *path, const cJSON *value)
{
    check_items(f, path, value, projection_fields);
}

static const struct field projected_fields[] = {
    {"defaultMode", FINE, NULL}, {"sources", FINE, check_sources}, {0}};

static void check_projected(struct findings *f, const char *path, const cJSON *value)
{
    check_fields(f, path, value, projected_fields);
}

static const struct field volume_fields[] = {
    {"configMap", FINE, NULL},
    {"downwardAPI", FINE, NULL},
    {"emptyDir", FINE, NULL},
    {"hostPath", FINE, check_host_path},
    {"name", FINE, check_name},
    {"persistentVolumeClaim", FINE, NULL},
    {"projected", FINE, check_projected},
    {"secret", FINE, NULL},
    {0},
};

static void check_volumes(struct findings *f, const char *path, const cJSON *value)
{
    if (json_len(value) > VOLUMES_MAX)
        found(f, true, path, "too many volumes");
    check_items(f, path, value, volume_fields);
}

/* ---- the Pod ---- */

static void check_host_users(struct findings *f, const char *path, const cJSON *value)
{
    if (cJSON_IsFalse(value))
        found(f, false, path, "user namespaces are not supported");
}

const char *refuse_runtime(const cJSON *pod, const struct refuse_policy *policy)
{
    const char *name = json_str_or(pod, "spec.runtimeClassName", "");
    size_t n = strlen(name);
    for (char *const *row = policy->runtimes; n > 0 && row && *row; row++) {
        if (strncmp(*row, name, n) == 0 && (*row)[n] == '=')
            return *row + n + 1;
    }
    return NULL;
}

static void check_runtime(struct findings *f, const char *path, const cJSON *value)
{
    (void)value;
    if (!refuse_runtime(f->pod, f->policy))
        found(f, false, path, "there is no runtime for this class here");
}

static void check_dns_policy(struct findings *f, const char *path, const cJSON *value)
{
    (void)value;
    if (str_equal(json_str(f->pod, "spec.dnsPolicy"), "ClusterFirstWithHostNet"))
        found(f, true, path, "only for Pods of the machine's own network");
}

static const struct field spec_fields[] = {
    {"activeDeadlineSeconds", FINE, NULL},
    {"affinity", FINE, NULL},
    {"automountServiceAccountToken", FINE, NULL},
    {"containers", FINE, check_containers},
    {"dnsConfig", FINE, NULL},
    {"dnsPolicy", FINE, check_dns_policy},
    {"enableServiceLinks", FINE, NULL},
    {"hostAliases", FINE, NULL},
    {"hostIPC", ONLY_FALSE, NULL},
    {"hostNetwork", ONLY_FALSE, NULL},
    {"hostPID", ONLY_FALSE, NULL},
    {"hostUsers", FINE, check_host_users},
    {"hostname", FINE, NULL},
    {"imagePullSecrets", FINE, NULL},
    {"initContainers", FINE, check_containers},
    {"nodeName", FINE, NULL},
    {"nodeSelector", FINE, NULL},
    {"overhead", FINE, NULL},
    {"preemptionPolicy", FINE, NULL},
    {"priority", FINE, NULL},
    {"priorityClassName", FINE, NULL},
    {"readinessGates", FINE, NULL},
    {"restartPolicy", FINE, NULL},
    {"runtimeClassName", FINE, check_runtime},
    {"schedulerName", FINE, NULL},
    {"securityContext", FINE, check_pod_security},
    {"serviceAccount", FINE, NULL},
    {"serviceAccountName", FINE, NULL},
    {"setHostnameAsFQDN", FINE, NULL},
    {"shareProcessNamespace", FINE, NULL},
    {"subdomain", FINE, NULL},
    {"terminationGracePeriodSeconds", FINE, NULL},
    {"tolerations", FINE, NULL},
    {"topologySpreadConstraints", FINE, NULL},
    {"volumes", FINE, check_volumes},
    {0},
};

const char *refuse_pod(const cJSON *pod, const struct refuse_policy *policy, struct buf *why)
{
    struct findings f = {.policy = policy, .pod = pod, .why = why};
    check_name(&f, "metadata.uid", json_at(pod, "metadata.uid"));
    check_fields(&f, "spec", json_get(pod, "spec"), spec_fields);
    if (why->len == 0)
        return NULL;
    return f.is_forbidden ? REFUSE_FORBIDDEN : REFUSE_UNSUPPORTED;
}
