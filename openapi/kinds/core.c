/* The core group, as far as sandboxes, kubectl and the clients need it. Defaults and rules are
 * those that clients rely on: what a kubelet or a controller would miss otherwise, and what may not
 * change under a running Pod. Source: the Kubernetes API reference, v1.37. */
#include "openapi/kinds.h"
#include "openapi/kinds/builtin.h"

#define COLUMN_DATA                                                                                \
    {                                                                                              \
        .name = "Data", .type = COL_INTEGER, .cell = CELL_COUNT, .path = ".data",                  \
        .doc = "Number of entries."                                                                \
    }
static const struct column age_alone[] = {COLUMN_AGE, {0}};

/* ---- ConfigMap and Secret ---------------------------------------------------------------- */

#define RULE_IMMUTABLE(member, message_text)                                                       \
    {                                                                                              \
        .rule = "!has(oldSelf.immutable) || !oldSelf.immutable || "                                \
                "(has(self." member ") ? has(oldSelf." member ") && self." member                  \
                " == oldSelf." member " : !has(oldSelf." member "))",                              \
        .message = message_text, .reason = "FieldValueForbidden", .field = member,                 \
        .is_added = true                                                                           \
    }
#define RULE_STAYS_IMMUTABLE                                                                       \
    {                                                                                              \
        .rule = "!has(oldSelf.immutable) || !oldSelf.immutable || "                                \
                "(has(self.immutable) && self.immutable)",                                         \
        .message = "field is immutable when `immutable` is set", .reason = "FieldValueForbidden",  \
        .field = "immutable", .is_added = true                                                     \
    }
const struct rule rules_config_map[] = {
    RULE_STAYS_IMMUTABLE,
    RULE_IMMUTABLE("data", "field is immutable when `immutable` is set"),
    RULE_IMMUTABLE("binaryData", "field is immutable when `immutable` is set"),
    {0},
};
static const struct column columns_config_map[] = {
    COLUMN_DATA,
    COLUMN_AGE,
    {0},
};
const struct kind kind_config_map = {
    .group = "",
    .version = "v1",
    .kind = "ConfigMap",
    .list_kind = "ConfigMapList",
    .plural = "configmaps",
    .singular = "configmap",
    .short_names = (const char *const[]){"cm", NULL},
    .is_builtin = true,
    .columns = columns_config_map,
    .checks = checks_config_map,
    .shape = &shape_config_map,
    .schema_name = "io.k8s.api.core.v1.ConfigMap",
    .doc = "Settings as texts, for Pods to read.",
};

const struct rule rules_secret[] = {
    RULE_STAYS_IMMUTABLE,
    RULE_IMMUTABLE("data", "field is immutable when `immutable` is set"),
    {.rule = "!has(self.data) || self.data.all(k, size(self.data[k]) % 4 == 0 && "
             "self.data[k].matches('^[A-Za-z0-9+/]*={0,2}$'))",
     .message = "values are base64",
     .field = "data",
     .is_added = true},
    {0},
};
static const struct path_default defaults_secret[] = {
    {.path = "type", .value = "\"Opaque\""},
    {0},
};
static const struct column columns_secret[] = {
    {.name = "Type", .type = COL_STRING, .path = ".type", .doc = "What the entries are for."},
    COLUMN_DATA,
    COLUMN_AGE,
    {0},
};
const struct kind kind_secret = {
    .group = "",
    .version = "v1",
    .kind = "Secret",
    .list_kind = "SecretList",
    .plural = "secrets",
    .singular = "secret",
    .is_builtin = true,
    .defaults = defaults_secret,
    .encodes = {"stringData", "data"},
    .field_labels = (const char *const[]){"type", NULL},
    .columns = columns_secret,
    .checks = checks_secret,
    .shape = &shape_secret,
    .schema_name = "io.k8s.api.core.v1.Secret",
    .doc = "Keys, tokens and other things that few may read.",
};

/* ---- Event ------------------------------------------------------------------------------- */

static const struct column columns_core_event[] = {
    COLUMNS_EVENT(".involvedObject.name", ".message"),
    {0},
};
const struct kind kind_core_event = {
    .group = "",
    .version = "v1",
    .kind = "Event",
    .list_kind = "EventList",
    .plural = "events",
    .singular = "event",
    .short_names = (const char *const[]){"ev", NULL},
    .is_builtin = true,
    .field_labels =
        (const char *const[]){
            "involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
            "involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion",
            "involvedObject.fieldPath", "reason", "reportingComponent", "source", "type", NULL},
    .columns = columns_core_event,
    .shape = &shape_core_event,
    .schema_name = "io.k8s.api.core.v1.Event",
    .doc = "Something that happened to an object.",
};

/* ---- Namespace --------------------------------------------------------------------------- */

static const char *const update_alone[] = {"update", NULL};
static const char *const create_alone[] = {"create", NULL};
static const char *const get_alone[] = {"get", NULL};
static const char *const create_get[] = {"create", "get", NULL};

static const struct path_default defaults_namespace[] = {
    {.path = "spec.finalizers", .value = "[\"kubernetes\"]", .is_first = true},
    {.path = "status.phase", .value = "\"Active\"", .is_first = true},
    {0},
};
static const struct column columns_namespace[] = {
    {.name = "Status",
     .type = COL_STRING,
     .path = ".status.phase",
     .doc = "Active or Terminating."},
    COLUMN_AGE,
    {0},
};
const struct kind kind_namespace = {
    .group = "",
    .version = "v1",
    .kind = "Namespace",
    .list_kind = "NamespaceList",
    .plural = "namespaces",
    .singular = "namespace",
    .short_names = (const char *const[]){"ns", NULL},
    .is_cluster_scoped = true,
    .is_builtin = true,
    .name_form = NAME_LABEL,
    .holders = "spec.finalizers",
    .subresources =
        (const struct subresource[]){{"finalize", update_alone, "", "v1", "Namespace"}, {0}},
    .defaults = defaults_namespace,
    .field_labels = (const char *const[]){"status.phase", NULL},
    .has_status = true,
    .columns = columns_namespace,
    .shape = &shape_namespace,
    .schema_name = "io.k8s.api.core.v1.Namespace",
    .doc = "A part of the server, with names of its own.",
};

/* ---- Node -------------------------------------------------------------------------------- */

static const struct column columns_node[] = {
    {.name = "Status",
     .type = COL_STRING,
     .cell = CELL_NODE_STATUS,
     .path = ".status.conditions[?(@.type=='Ready')].status",
     .doc = "Whether Pods can run there."},
    COLUMN_AGE,
    {.name = "Version",
     .type = COL_STRING,
     .path = ".status.nodeInfo.kubeletVersion",
     .doc = "Version of what runs the Pods."},
    {.name = "Internal-IP",
     .type = COL_STRING,
     .path = ".status.addresses[?(@.type=='InternalIP')].address",
     .priority = 1,
     .doc = "Address of the node."},
    {0},
};
const struct kind kind_node = {
    .group = "",
    .version = "v1",
    .kind = "Node",
    .list_kind = "NodeList",
    .plural = "nodes",
    .singular = "node",
    .short_names = (const char *const[]){"no", NULL},
    .is_cluster_scoped = true,
    .is_builtin = true,
    .field_labels = (const char *const[]){"spec.unschedulable", NULL},
    .has_status = true,
    .columns = columns_node,
    .shape = &shape_node,
    .schema_name = "io.k8s.api.core.v1.Node",
    .doc = "A machine that runs Pods.",
};

/* ---- volumes ----------------------------------------------------------------------------- */

static const struct path_default defaults_volume[] = {
    {.path = "metadata.finalizers", .value = "[\"kubernetes.io/pv-protection\"]", .is_first = true},
    {.path = "spec.persistentVolumeReclaimPolicy", .value = "\"Retain\""},
    {.path = "spec.volumeMode", .value = "\"Filesystem\""},
    {.path = "status.phase", .value = "\"Pending\"", .is_first = true},
    {0},
};
static const struct column columns_volume[] = {
    {.name = "Capacity", .type = COL_STRING, .path = ".spec.capacity.storage", .doc = "Its size."},
    {.name = "Access Modes",
     .type = COL_STRING,
     .cell = CELL_ACCESS_MODES,
     .path = ".spec.accessModes",
     .doc = "How it may be mounted."},
    {.name = "Reclaim Policy",
     .type = COL_STRING,
     .path = ".spec.persistentVolumeReclaimPolicy",
     .doc = "What becomes of it when its claim goes."},
    {.name = "Status",
     .type = COL_STRING,
     .cell = CELL_PHASE,
     .path = ".status.phase",
     .doc = "Available, Bound ..."},
    {.name = "Claim",
     .type = COL_STRING,
     .cell = CELL_CLAIM,
     .path = ".spec.claimRef.name",
     .doc = "Whose it is."},
    {.name = "StorageClass",
     .type = COL_STRING,
     .path = ".spec.storageClassName",
     .doc = "Its class."},
    {.name = "Reason", .type = COL_STRING, .path = ".status.reason", .doc = "Why it is so."},
    COLUMN_AGE,
    {.name = "VolumeMode",
     .type = COL_STRING,
     .path = ".spec.volumeMode",
     .priority = 1,
     .doc = "Filesystem or Block."},
    {0},
};
const struct kind kind_persistent_volume = {
    .group = "",
    .version = "v1",
    .kind = "PersistentVolume",
    .list_kind = "PersistentVolumeList",
    .plural = "persistentvolumes",
    .singular = "persistentvolume",
    .short_names = (const char *const[]){"pv", NULL},
    .is_cluster_scoped = true,
    .is_builtin = true,
    .defaults = defaults_volume,
    .has_status = true,
    .columns = columns_volume,
    .shape = &shape_persistent_volume,
    .schema_name = "io.k8s.api.core.v1.PersistentVolume",
    .doc = "Storage of the machine.",
};

const struct rule rules_persistent_volume_claim[] = {
    {.rule = "!has(oldSelf.spec) || (has(self.spec) && "
             "self.spec.accessModes == oldSelf.spec.accessModes && "
             "(has(oldSelf.spec.storageClassName) ? has(self.spec.storageClassName) && "
             "self.spec.storageClassName == oldSelf.spec.storageClassName : true) && "
             "(has(oldSelf.spec.volumeName) ? has(self.spec.volumeName) && "
             "self.spec.volumeName == oldSelf.spec.volumeName : true))",
     .message = "access modes, class and volume of a claim cannot be changed",
     .reason = "FieldValueForbidden",
     .field = "spec",
     .is_added = true},
    {0},
};
static const struct path_default defaults_volume_claim[] = {
    {.path = "metadata.finalizers",
     .value = "[\"kubernetes.io/pvc-protection\"]",
     .is_first = true},
    {.path = "spec.volumeMode", .value = "\"Filesystem\""},
    {.path = "status.phase", .value = "\"Pending\"", .is_first = true},
    {0},
};
static const struct column columns_volume_claim[] = {
    {.name = "Status",
     .type = COL_STRING,
     .cell = CELL_PHASE,
     .path = ".status.phase",
     .doc = "Pending or Bound."},
    {.name = "Volume", .type = COL_STRING, .path = ".spec.volumeName", .doc = "What it got."},
    {.name = "Capacity",
     .type = COL_STRING,
     .path = ".status.capacity.storage",
     .doc = "Its size."},
    {.name = "Access Modes",
     .type = COL_STRING,
     .cell = CELL_ACCESS_MODES,
     .path = ".status.accessModes",
     .doc = "How it may be mounted."},
    {.name = "StorageClass",
     .type = COL_STRING,
     .path = ".spec.storageClassName",
     .doc = "Its class."},
    COLUMN_AGE,
    {.name = "VolumeMode",
     .type = COL_STRING,
     .path = ".spec.volumeMode",
     .priority = 1,
     .doc = "Filesystem or Block."},
    {0},
};
const struct kind kind_persistent_volume_claim = {
    .group = "",
    .version = "v1",
    .kind = "PersistentVolumeClaim",
    .list_kind = "PersistentVolumeClaimList",
    .plural = "persistentvolumeclaims",
    .singular = "persistentvolumeclaim",
    .short_names = (const char *const[]){"pvc", NULL},
    .is_builtin = true,
    .defaults = defaults_volume_claim,
    .has_status = true,
    .columns = columns_volume_claim,
    .checks = checks_persistent_volume_claim,
    .shape = &shape_persistent_volume_claim,
    .schema_name = "io.k8s.api.core.v1.PersistentVolumeClaim",
    .doc = "A request for storage.",
};

/* ---- Pod --------------------------------------------------------------------------------- */

/* What runs stays what it is; images may be changed, and a node is given once. */
const struct rule rules_pod[] = {
    {.rule = "has(self.spec)",
     .message = "the spec of a pod is required",
     .reason = "FieldValueRequired",
     .field = "spec",
     .is_added = true},
    {.rule = "!has(oldSelf.spec) || !has(oldSelf.spec.nodeName) || oldSelf.spec.nodeName == '' || "
             "(has(self.spec) && has(self.spec.nodeName) && "
             "self.spec.nodeName == oldSelf.spec.nodeName)",
     .message = "a pod stays on the node that it was bound to",
     .reason = "FieldValueForbidden",
     .field = "spec.nodeName",
     .is_added = true},
    {.rule = "!has(oldSelf.spec) || (has(self.spec) && "
             "size(self.spec.containers) == size(oldSelf.spec.containers) && "
             "self.spec.containers.all(c, oldSelf.spec.containers.exists(o, o.name == c.name)))",
     .message = "pod updates may not add or remove containers",
     .reason = "FieldValueForbidden",
     .field = "spec.containers",
     .is_added = true},
    {0},
};
#define DEFAULTS_CONTAINER(list)                                                                   \
    {.path = "spec." list "[].imagePullPolicy", .value = "\"IfNotPresent\""},                      \
        {.path = "spec." list "[].terminationMessagePath", .value = "\"/dev/termination-log\""},   \
        {.path = "spec." list "[].terminationMessagePolicy", .value = "\"File\""},                 \
        {.path = "spec." list "[].resources.requests", .from = "limits"},                          \
    {                                                                                              \
        .path = "spec." list "[].resources", .value = "{}"                                         \
    }
#define DEFAULTS_PROBE(name)                                                                       \
    {.path = "spec.containers[]." name ".timeoutSeconds", .value = "1"},                           \
        {.path = "spec.containers[]." name ".periodSeconds", .value = "10"},                       \
        {.path = "spec.containers[]." name ".successThreshold", .value = "1"},                     \
        {.path = "spec.containers[]." name ".failureThreshold", .value = "3"},                     \
        {.path = "spec.containers[]." name ".httpGet.path", .value = "\"/\""},                     \
    {                                                                                              \
        .path = "spec.containers[]." name ".httpGet.scheme", .value = "\"HTTP\""                   \
    }
static const struct path_default defaults_pod[] = {
    {.path = "spec.restartPolicy", .value = "\"Always\""},
    {.path = "spec.dnsPolicy", .value = "\"ClusterFirst\""},
    {.path = "spec.terminationGracePeriodSeconds", .value = "30"},
    {.path = "spec.schedulerName", .value = "\"default-scheduler\""},
    {.path = "spec.securityContext", .value = "{}"},
    {.path = "spec.enableServiceLinks", .value = "true"},
    {.path = "spec.serviceAccountName", .value = "\"default\"", .is_first = true},
    DEFAULTS_CONTAINER("containers"),
    DEFAULTS_CONTAINER("initContainers"),
    DEFAULTS_PROBE("livenessProbe"),
    DEFAULTS_PROBE("readinessProbe"),
    DEFAULTS_PROBE("startupProbe"),
    {.path = "spec.containers[].env[].valueFrom.fieldRef.apiVersion", .value = "\"v1\""},
    {.path = "spec.volumes[].emptyDir", .value = "{}", .is_alone = true},
    {.path = "spec.volumes[].secret.defaultMode", .value = "420"},
    {.path = "spec.volumes[].configMap.defaultMode", .value = "420"},
    {.path = "spec.volumes[].downwardAPI.defaultMode", .value = "420"},
    {.path = "spec.volumes[].projected.defaultMode", .value = "420"},
    {.path = "status.phase", .value = "\"Pending\"", .is_first = true},
    {0},
};
static const struct column columns_pod[] = {
    {.name = "Ready",
     .type = COL_STRING,
     .cell = CELL_POD_READY,
     .path = ".status.phase",
     .doc = "Containers that are ready, of all."},
    {.name = "Status",
     .type = COL_STRING,
     .cell = CELL_POD_STATUS,
     .path = ".status.phase",
     .doc = "The phase, or what keeps the Pod from running."},
    {.name = "Restarts",
     .type = COL_STRING,
     .cell = CELL_POD_RESTARTS,
     .path = ".status.phase",
     .doc = "How often its containers were started again."},
    COLUMN_AGE,
    {.name = "IP",
     .type = COL_STRING,
     .path = ".status.podIP",
     .priority = 1,
     .doc = "Address of the Pod."},
    {.name = "Node",
     .type = COL_STRING,
     .path = ".spec.nodeName",
     .priority = 1,
     .doc = "Where it runs."},
    {0},
};
const struct kind kind_pod = {
    .group = "",
    .version = "v1",
    .kind = "Pod",
    .list_kind = "PodList",
    .plural = "pods",
    .singular = "pod",
    .short_names = (const char *const[]){"po", NULL},
    .categories = (const char *const[]){"all", NULL},
    .is_builtin = true,
    .has_grace = true,
    .subresources =
        (const struct subresource[]){{"attach", create_get, "", "v1", "PodAttachOptions"},
                                     {"binding", create_alone, "", "v1", "Binding"},
                                     {"exec", create_get, "", "v1", "PodExecOptions"},
                                     {"log", get_alone, "", "v1", "Pod"},
                                     {"portforward", create_get, "", "v1", "PodPortForwardOptions"},
                                     {0}},
    .defaults = defaults_pod,
    .field_labels =
        (const char *const[]){"spec.nodeName", "spec.restartPolicy", "spec.schedulerName",
                              "spec.serviceAccountName", "spec.hostNetwork", "status.phase",
                              "status.podIP", "status.nominatedNodeName", NULL},
    .has_status = true,
    .columns = columns_pod,
    .checks = checks_pod,
    .shape = &shape_pod,
    .schema_name = "io.k8s.api.core.v1.Pod",
    .doc = "Containers that run together on one machine.",
};

/* ---- Service and ServiceAccount ---------------------------------------------------------- */

/* Nothing here forwards packets, so a virtual address would be a promise that is not kept. */
const struct rule rules_service[] = {
    {.rule = "has(self.spec) && ((has(self.spec.clusterIP) && self.spec.clusterIP == 'None') || "
             "(has(self.spec.type) && self.spec.type == 'ExternalName'))",
     .message = "there is no service proxy on this server: clusterIP must be None (or type "
                "ExternalName)",
     .field = "spec.clusterIP",
     .is_added = true},
    {0},
};
static const struct path_default defaults_service[] = {
    {.path = "spec.type", .value = "\"ClusterIP\""},
    {.path = "spec.sessionAffinity", .value = "\"None\""},
    {.path = "spec.internalTrafficPolicy", .value = "\"Cluster\""},
    {.path = "spec.ports[].targetPort", .from = "port"},
    {.path = "status.loadBalancer", .value = "{}", .is_first = true},
    {0},
};
static const struct column columns_service[] = {
    {.name = "Type", .type = COL_STRING, .path = ".spec.type", .doc = "How it is reached."},
    {.name = "Cluster-IP", .type = COL_STRING, .path = ".spec.clusterIP", .doc = "Its address."},
    COLUMN_AGE,
    {0},
};
const struct kind kind_service = {
    .group = "",
    .version = "v1",
    .kind = "Service",
    .list_kind = "ServiceList",
    .plural = "services",
    .singular = "service",
    .short_names = (const char *const[]){"svc", NULL},
    .categories = (const char *const[]){"all", NULL},
    .is_builtin = true,
    .name_form = NAME_LABEL,
    .defaults = defaults_service,
    .field_labels = (const char *const[]){"spec.clusterIP", "spec.type", NULL},
    .has_status = true,
    .columns = columns_service,
    .checks = checks_service,
    .shape = &shape_service,
    .schema_name = "io.k8s.api.core.v1.Service",
    .doc = "A name for Pods.",
};

const struct kind kind_service_account = {
    .group = "",
    .version = "v1",
    .kind = "ServiceAccount",
    .list_kind = "ServiceAccountList",
    .plural = "serviceaccounts",
    .singular = "serviceaccount",
    .short_names = (const char *const[]){"sa", NULL},
    .is_builtin = true,
    .subresources =
        (const struct subresource[]){
            {"token", create_alone, "authentication.k8s.io", "v1", "TokenRequest"}, {0}},
    .columns = age_alone,
    .shape = &shape_service_account,
    .schema_name = "io.k8s.api.core.v1.ServiceAccount",
    .doc = "Who a Pod is for the server.",
};
