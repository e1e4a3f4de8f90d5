/* What must hold inside objects of the core group, beyond types: the checks of kube-apiserver that
 * people meet. Those that look at several members at once are rules (core.c). Source: the
 * Kubernetes API reference, and kube-apiserver v1.37 asked (tests/func/core-rules.cases). */
#include "openapi/kinds/builtin.h"

#define ONE_OF(...)                                                                                \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }
#define REQUIRED(at)                                                                               \
    {                                                                                              \
        .path = (at), .check = CHECK_REQUIRED                                                      \
    }
#define ENUM(at, ...)                                                                              \
    {                                                                                              \
        .path = (at), .check = CHECK_ENUM, .values = ONE_OF(__VA_ARGS__)                           \
    }
#define CHECK(at, what)                                                                            \
    {                                                                                              \
        .path = (at), .check = (what)                                                              \
    }
#define RANGE(at, least, most)                                                                     \
    {                                                                                              \
        .path = (at), .check = CHECK_RANGE, .min = (least), .max = (most)                          \
    }
#define NAME(at) REQUIRED(at), CHECK(at, CHECK_LABEL)
#define UNIQUE(at)                                                                                 \
    {                                                                                              \
        .path = (at), .check = CHECK_UNIQUE                                                        \
    }
#define RANGE_OR_ZERO(at, least, most)                                                             \
    {                                                                                              \
        .path = (at), .check = CHECK_RANGE, .min = (least), .max = (most), .skips_zero = true      \
    }
#define UID_MAX 2147483647
#define PORT_MAX 65535

/* ---- ConfigMap and Secret ---------------------------------------------------------------- */

const struct path_check checks_config_map[] = {
    CHECK("data", CHECK_CONFIG_KEYS),
    CHECK("binaryData", CHECK_CONFIG_KEYS),
    {0},
};

#define KEY_OF_TYPE(key, type)                                                                     \
    {                                                                                              \
        .path = "data[" key "]", .check = CHECK_REQUIRED, .when_path = "type", .when = (type)      \
    }
const struct path_check checks_secret[] = {
    CHECK("data", CHECK_CONFIG_KEYS),
    CHECK("type", CHECK_IMMUTABLE),
    KEY_OF_TYPE("tls.crt", "kubernetes.io/tls"),
    KEY_OF_TYPE("tls.key", "kubernetes.io/tls"),
    KEY_OF_TYPE("ssh-privatekey", "kubernetes.io/ssh-auth"),
    KEY_OF_TYPE(".dockerconfigjson", "kubernetes.io/dockerconfigjson"),
    KEY_OF_TYPE(".dockercfg", "kubernetes.io/dockercfg"),
    {0},
};

/* ---- PersistentVolumeClaim --------------------------------------------------------------- */

const struct path_check checks_persistent_volume_claim[] = {
    {.path = "spec.accessModes",
     .check = CHECK_REQUIRED,
     .text = "at least 1 access mode is required"},
    ENUM("spec.accessModes[-]", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce",
         "ReadWriteOncePod"),
    {.path = "spec.accessModes", .check = CHECK_ALONE, .text = "ReadWriteOncePod"},
    {.path = "spec.resources.requests[storage]",
     .check = CHECK_REQUIRED,
     .shown = "spec.resources[storage]"},
    {.path = "spec.resources.requests[storage]",
     .check = CHECK_SIZE,
     .shown = "spec.resources[storage]"},
    CHECK("spec.storageClassName", CHECK_SUBDOMAIN),
    ENUM("spec.volumeMode", "Block", "Filesystem"),
    {0},
};

/* ---- Pod --------------------------------------------------------------------------------- */

#define HANDLER(at, fourth)                                                                        \
    {.path = (at),                                                                                 \
     .check = CHECK_ONE_OF,                                                                        \
     .values = ONE_OF("exec", "httpGet", "tcpSocket", fourth),                                     \
     .text = "handler type"},                                                                      \
        REQUIRED(at ".exec.command"), CHECK(at ".httpGet.port", CHECK_PORT),                       \
        ENUM(at ".httpGet.scheme", "HTTP", "HTTPS"), CHECK(at ".tcpSocket.port", CHECK_PORT)
#define PROBE(at)                                                                                  \
    HANDLER(at, "grpc"), CHECK(at ".initialDelaySeconds", CHECK_NOT_NEGATIVE),                     \
        CHECK(at ".timeoutSeconds", CHECK_NOT_NEGATIVE),                                           \
        CHECK(at ".periodSeconds", CHECK_NOT_NEGATIVE),                                            \
        CHECK(at ".successThreshold", CHECK_NOT_NEGATIVE),                                         \
        CHECK(at ".failureThreshold", CHECK_NOT_NEGATIVE)
#define KEY_REFERENCE(at)                                                                          \
    REQUIRED(at ".key"), CHECK(at ".key", CHECK_CONFIG_KEY), CHECK(at ".name", CHECK_SUBDOMAIN)
#define MOUNTS(at)                                                                                 \
    REQUIRED(at "[].name"),                                                                        \
        {.path = at "[].name", .check = CHECK_REFERS, .other = "spec.volumes[].name"},             \
        REQUIRED(at "[].mountPath"),                                                               \
        {.path = at "[].mountPath", .check = CHECK_UNIQUE, .text = "must be unique"},              \
        CHECK(at "[-].subPath", CHECK_RELATIVE), CHECK(at "[-].subPathExpr", CHECK_RELATIVE)
#define SOURCE(at)                                                                                 \
    {                                                                                              \
        .path = at, .check = CHECK_SOURCE,                                                         \
        .values = ONE_OF("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef",        \
                         "fileKeyRef"),                                                            \
        .text = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, "         \
                "`secretKeyRef` or `fileKeyRef`"                                                   \
    }
/* Of containers of each sort, apart from their names. */
#define CONTAINER(at)                                                                              \
    REQUIRED(at ".image"), CHECK(at ".image", CHECK_TRIMMED),                                      \
        HANDLER(at ".lifecycle.postStart", "sleep"), HANDLER(at ".lifecycle.preStop", "sleep"),    \
        PROBE(at ".livenessProbe"), RANGE(at ".livenessProbe.successThreshold", 1, 1),             \
        PROBE(at ".readinessProbe"), PROBE(at ".startupProbe"),                                    \
        RANGE(at ".startupProbe.successThreshold", 1, 1),                                          \
        CHECK(at ".ports[].name", CHECK_PORT_NAME), UNIQUE(at ".ports[].name"),                    \
        REQUIRED(at ".ports[].containerPort"),                                                     \
        RANGE_OR_ZERO(at ".ports[].containerPort", 1, PORT_MAX),                                   \
        RANGE_OR_ZERO(at ".ports[].hostPort", 1, PORT_MAX),                                        \
        ENUM(at ".ports[].protocol", "SCTP", "TCP", "UDP"), REQUIRED(at ".env[].name"),            \
        CHECK(at ".env[].name", CHECK_ENV_NAME), SOURCE(at ".env[]"),                              \
        REQUIRED(at ".env[].valueFrom.fieldRef.fieldPath"),                                        \
        KEY_REFERENCE(at ".env[].valueFrom.configMapKeyRef"),                                      \
        KEY_REFERENCE(at ".env[].valueFrom.secretKeyRef"),                                         \
        CHECK(at ".envFrom[].configMapRef.name", CHECK_SUBDOMAIN),                                 \
        CHECK(at ".envFrom[].secretRef.name", CHECK_SUBDOMAIN), MOUNTS(at ".volumeMounts"),        \
        ENUM(at ".imagePullPolicy", "Always", "IfNotPresent", "Never"),                            \
        ENUM(at ".terminationMessagePolicy", "File", "FallbackToLogsOnError"),                     \
        CHECK(at ".resources.limits", CHECK_QUANTITIES),                                           \
        CHECK(at ".resources.requests", CHECK_QUANTITIES), CHECK(at ".resources", CHECK_LIMITS),   \
        RANGE(at ".securityContext.runAsUser", 0, UID_MAX),                                        \
        RANGE(at ".securityContext.runAsGroup", 0, UID_MAX),                                       \
        ENUM(at ".securityContext.procMount", "Default", "Unmasked")
#define KEYS_TO_PATHS(at)                                                                          \
    CHECK(at ".defaultMode", CHECK_MODE), REQUIRED(at ".items[].key"),                             \
        REQUIRED(at ".items[].path"), CHECK(at ".items[].path", CHECK_RELATIVE),                   \
        CHECK(at ".items[].mode", CHECK_MODE)

const struct path_check checks_pod[] = {
    NAME("spec.volumes[].name"),
    UNIQUE("spec.volumes[].name"),
    {.path = "spec.volumes[]",
     .check = CHECK_ONE_OF,
     .values =
         ONE_OF("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore",
                "secret", "nfs", "iscsi", "glusterfs", "persistentVolumeClaim", "rbd", "cinder",
                "cephfs", "flocker", "downwardAPI", "fc", "flexVolume", "configMap", "azureFile",
                "vsphereVolume", "quobyte", "azureDisk", "storageos", "portworxVolume", "scaleIO",
                "projected", "csi", "ephemeral", "photonPersistentDisk", "image"),
     .text = "volume type"},
    REQUIRED("spec.volumes[].hostPath.path"),
    CHECK("spec.volumes[].hostPath.path", CHECK_NO_DOTS),
    ENUM("spec.volumes[].hostPath.type", "", "BlockDevice", "CharDevice", "Directory",
         "DirectoryOrCreate", "File", "FileOrCreate", "Socket"),
    REQUIRED("spec.volumes[].secret.secretName"),
    KEYS_TO_PATHS("spec.volumes[].secret"),
    REQUIRED("spec.volumes[].configMap.name"),
    KEYS_TO_PATHS("spec.volumes[].configMap"),
    REQUIRED("spec.volumes[].persistentVolumeClaim.claimName"),
    CHECK("spec.volumes[].projected.defaultMode", CHECK_MODE),
    CHECK("spec.volumes[].downwardAPI.defaultMode", CHECK_MODE),
    REQUIRED("spec.containers"),
    NAME("spec.containers[].name"),
    UNIQUE("spec.containers[].name"),
    CONTAINER("spec.containers[]"),
    NAME("spec.initContainers[].name"),
    {.path = "spec.initContainers[].name",
     .check = CHECK_UNIQUE,
     .other = "spec.containers[].name"},
    CONTAINER("spec.initContainers[]"),
    ENUM("spec.restartPolicy", "Always", "OnFailure", "Never"),
    ENUM("spec.dnsPolicy", "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
    {.path = "spec.dnsConfig",
     .check = CHECK_REQUIRED,
     .text = "must provide `dnsConfig` when `dnsPolicy` is None",
     .when_path = "spec.dnsPolicy",
     .when = "None"},
    CHECK("spec.nodeSelector", CHECK_LABELS),
    RANGE("spec.securityContext.runAsUser", 0, UID_MAX),
    RANGE("spec.securityContext.runAsGroup", 0, UID_MAX),
    RANGE("spec.securityContext.fsGroup", 0, UID_MAX),
    CHECK("spec.serviceAccountName", CHECK_SUBDOMAIN),
    CHECK("spec.nodeName", CHECK_SUBDOMAIN),
    RANGE("spec.activeDeadlineSeconds", 1, UID_MAX),
    CHECK("spec.hostname", CHECK_LABEL),
    CHECK("spec.subdomain", CHECK_LABEL),
    ENUM("spec.tolerations[].effect", "NoSchedule", "PreferNoSchedule", "NoExecute"),
    {.path = "spec",
     .check = CHECK_FROZEN,
     .values = ONE_OF("containers[].image", "initContainers[].image", "activeDeadlineSeconds",
                      "tolerations", "schedulingGates"),
     .text = "pod updates may not change fields other than `spec.containers[*].image`,"
             "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
             "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to "
             "be set to 1 if it was previously negative)"},
    {0},
};

/* ---- Service ----------------------------------------------------------------------------- */

const struct path_check checks_service[] = {
    CHECK("spec.ports", CHECK_NAMED),
    CHECK("spec.ports[].name", CHECK_LABEL),
    UNIQUE("spec.ports[].name"),
    RANGE("spec.ports[].port", 1, PORT_MAX),
    ENUM("spec.ports[].protocol", "SCTP", "TCP", "UDP"),
    CHECK("spec.ports[].targetPort", CHECK_PORT),
    {.path = "spec.ports[]", .check = CHECK_UNIQUE, .values = ONE_OF("port", "protocol")},
    CHECK("spec.selector", CHECK_LABELS),
    ENUM("spec.sessionAffinity", "ClientIP", "None"),
    ENUM("spec.type", "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"),
    {.path = "spec.externalName",
     .check = CHECK_REQUIRED,
     .when_path = "spec.type",
     .when = "ExternalName"},
    CHECK("spec.externalName", CHECK_SUBDOMAIN),
    ENUM("spec.internalTrafficPolicy", "Cluster", "Local"),
    {0},
};
