/* Kinds of Kubernetes' named groups: Lease, EndpointSlice, Event, NetworkPolicy, StorageClass, and
 * those of RBAC.
 * Source: the Kubernetes API reference, v1.37. */
#include "openapi/kinds.h"
#include "openapi/kinds/builtin.h"

static const struct column columns_lease[] = {
    {.name = "Holder", .type = COL_STRING, .path = ".spec.holderIdentity", .doc = "Whose it is."},
    COLUMN_AGE,
    {0},
};
const struct kind kind_lease = {
    .group = "coordination.k8s.io",
    .version = "v1",
    .kind = "Lease",
    .list_kind = "LeaseList",
    .plural = "leases",
    .singular = "lease",
    .is_builtin = true,
    .columns = columns_lease,
    .shape = &shape_lease,
    .schema_name = "io.k8s.api.coordination.v1.Lease",
    .doc = "A right that somebody holds for a while.",
};

const struct rule rules_endpoint_slice[] = {
    {.rule = "self.addressType == oldSelf.addressType",
     .message = "field is immutable",
     .field = "addressType",
     .is_added = true},
    {0},
};
static const struct column columns_endpoint_slice[] = {
    {.name = "AddressType", .type = COL_STRING, .path = ".addressType", .doc = "IPv4, IPv6, FQDN."},
    COLUMN_AGE,
    {0},
};
const struct kind kind_endpoint_slice = {
    .group = "discovery.k8s.io",
    .version = "v1",
    .kind = "EndpointSlice",
    .list_kind = "EndpointSliceList",
    .plural = "endpointslices",
    .singular = "endpointslice",
    .is_builtin = true,
    .columns = columns_endpoint_slice,
    .shape = &shape_endpoint_slice,
    .schema_name = "io.k8s.api.discovery.v1.EndpointSlice",
    .doc = "Addresses behind a Service.",
};

static const struct column columns_event[] = {
    COLUMNS_EVENT(".regarding.name", ".note"),
    {0},
};
static const struct rename renames_event[] = {
    {"regarding", "involvedObject"},
    {"note", "message"},
    {"reportingController", "reportingComponent"},
    {"deprecatedSource", "source"},
    {"deprecatedFirstTimestamp", "firstTimestamp"},
    {"deprecatedLastTimestamp", "lastTimestamp"},
    {"deprecatedCount", "count"},
    {0},
};
const struct kind kind_event = {
    .group = "events.k8s.io",
    .version = "v1",
    .kind = "Event",
    .list_kind = "EventList",
    .plural = "events",
    .singular = "event",
    .short_names = (const char *const[]){"ev", NULL},
    .is_builtin = true,
    .stored_as = &kind_core_event,
    .renames = renames_event,
    .field_labels =
        (const char *const[]){"regarding.kind", "regarding.namespace", "regarding.name",
                              "regarding.uid", "regarding.apiVersion", "regarding.resourceVersion",
                              "regarding.fieldPath", "reason", "reportingController", "type", NULL},
    .columns = columns_event,
    .shape = &shape_event,
    .schema_name = "io.k8s.api.events.v1.Event",
    .doc = "Something that happened to an object.",
};

static const struct column columns_network_policy[] = {
    {.name = "Pod-Selector",
     .type = COL_STRING,
     .cell = CELL_LABELS,
     .path = ".spec.podSelector.matchLabels",
     .doc = "Labels of the Pods that it is about."},
    COLUMN_AGE,
    {0},
};
static const struct path_default defaults_network_policy[] = {
    {.path = "spec.policyTypes", .value = "[\"Ingress\"]"},
    {.path = "spec.ingress[].ports[].protocol", .value = "\"TCP\""},
    {.path = "spec.egress[].ports[].protocol", .value = "\"TCP\""},
    {0},
};
const struct kind kind_network_policy = {
    .group = "networking.k8s.io",
    .version = "v1",
    .kind = "NetworkPolicy",
    .list_kind = "NetworkPolicyList",
    .plural = "networkpolicies",
    .singular = "networkpolicy",
    .short_names = (const char *const[]){"netpol", NULL},
    .is_builtin = true,
    .defaults = defaults_network_policy,
    .columns = columns_network_policy,
    .shape = &shape_network_policy,
    .schema_name = "io.k8s.api.networking.v1.NetworkPolicy",
    .doc = "Who may talk to certain Pods, and to whom they may.",
};

/* ---- StorageClass ------------------------------------------------------------------------- */

const struct rule rules_storage_class[] = {
    {.rule = "self.provisioner == oldSelf.provisioner && "
             "(has(oldSelf.reclaimPolicy) ? has(self.reclaimPolicy) && "
             "self.reclaimPolicy == oldSelf.reclaimPolicy : true)",
     .message = "provisioner and reclaim policy of a class cannot be changed",
     .reason = "FieldValueForbidden",
     .field = "provisioner",
     .is_added = true},
    {.rule = "!has(self.reclaimPolicy) || self.reclaimPolicy in ['Delete', 'Retain']",
     .message = "Delete or Retain",
     .reason = "FieldValueNotSupported",
     .field = "reclaimPolicy",
     .is_added = true},
    {0},
};
static const struct path_default defaults_storage_class[] = {
    {.path = "reclaimPolicy", .value = "\"Delete\""},
    {.path = "volumeBindingMode", .value = "\"Immediate\""},
    {0},
};
static const struct column columns_storage_class[] = {
    {.name = "Provisioner",
     .type = COL_STRING,
     .path = ".provisioner",
     .doc = "Who makes its volumes."},
    {.name = "ReclaimPolicy",
     .type = COL_STRING,
     .path = ".reclaimPolicy",
     .doc = "What becomes of a volume when its claim goes."},
    {.name = "VolumeBindingMode",
     .type = COL_STRING,
     .path = ".volumeBindingMode",
     .doc = "When a claim gets its volume."},
    {.name = "AllowVolumeExpansion",
     .type = COL_BOOLEAN,
     .path = ".allowVolumeExpansion",
     .doc = "Whether claims may be made larger."},
    COLUMN_AGE,
    {0},
};
const struct kind kind_storage_class = {
    .group = "storage.k8s.io",
    .version = "v1",
    .kind = "StorageClass",
    .list_kind = "StorageClassList",
    .plural = "storageclasses",
    .singular = "storageclass",
    .short_names = (const char *const[]){"sc", NULL},
    .is_cluster_scoped = true,
    .is_builtin = true,
    .defaults = defaults_storage_class,
    .columns = columns_storage_class,
    .shape = &shape_storage_class,
    .schema_name = "io.k8s.api.storage.v1.StorageClass",
    .doc = "A way of making volumes.",
};

/* ---- RBAC -------------------------------------------------------------------------------- */

#define RULE_ROLE_REF                                                                              \
    {                                                                                              \
        .rule = "self.roleRef == oldSelf.roleRef", .message = "cannot change roleRef",             \
        .field = "roleRef", .is_added = true                                                       \
    }
const struct rule rules_role_binding[] = {
    RULE_ROLE_REF,
    {.rule = "self.roleRef.kind in ['Role', 'ClusterRole']",
     .message = "Role or ClusterRole",
     .field = "roleRef.kind",
     .is_added = true},
    {0},
};
const struct rule rules_cluster_role_binding[] = {
    RULE_ROLE_REF,
    {.rule = "self.roleRef.kind == 'ClusterRole'",
     .message = "must be ClusterRole",
     .field = "roleRef.kind",
     .is_added = true},
    {0},
};
static const struct path_default defaults_binding[] = {
    {.path = "roleRef.apiGroup", .value = "\"rbac.authorization.k8s.io\""},
    {0},
};
static const struct column columns_role[] = {
    {.name = "Created At",
     .type = COL_STRING,
     .path = ".metadata.creationTimestamp",
     .doc = "When it was made."},
    {0},
};
static const struct column columns_binding[] = {
    {.name = "Role", .type = COL_STRING, .path = ".roleRef.name", .doc = "What it gives."},
    COLUMN_AGE,
    {0},
};
#define RBAC(c_kind, plural_name, singular_name, text)                                             \
    .group = "rbac.authorization.k8s.io", .version = "v1", .kind = c_kind,                         \
    .list_kind = c_kind "List", .plural = plural_name, .singular = singular_name,                  \
    .is_builtin = true, .name_form = NAME_SEGMENT, .schema_name = "io.k8s.api.rbac.v1." c_kind,    \
    .doc = text

const struct kind kind_role = {
    RBAC("Role", "roles", "role", "What may be done in a namespace."),
    .write_verb = "escalate",
    .columns = columns_role,
    .shape = &shape_role,
};
const struct kind kind_cluster_role = {
    RBAC("ClusterRole", "clusterroles", "clusterrole", "What may be done everywhere."),
    .write_verb = "escalate",
    .is_cluster_scoped = true,
    .columns = columns_role,
    .shape = &shape_cluster_role,
};
const struct kind kind_role_binding = {
    RBAC("RoleBinding", "rolebindings", "rolebinding", "Who has a role in a namespace."),
    .write_verb = "bind",
    .defaults = defaults_binding,
    .columns = columns_binding,
    .shape = &shape_role_binding,
};
const struct kind kind_cluster_role_binding = {
    RBAC("ClusterRoleBinding", "clusterrolebindings", "clusterrolebinding",
         "Who has a role everywhere."),
    .write_verb = "bind",
    .is_cluster_scoped = true,
    .defaults = defaults_binding,
    .columns = columns_binding,
    .shape = &shape_cluster_role_binding,
};
