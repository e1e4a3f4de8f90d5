/* Sandbox: one isolated, stateful pod. Source: docs/resources.md 4
 * (podFailurePolicy, name rule). */
#include "openapi/kinds.h"
#include "openapi/kinds/meta.h"
#include "openapi/shape.h"

static const char *const operating_modes[] = {"Running", "Suspended", NULL};
static const char *const shutdown_policies[] = {"Delete", "Retain", NULL};
static const char *const failure_policies[] = {"Ignore", "Recreate", NULL};

static const struct field fields_spec[] = {
    {.name = "operatingMode",
     .type = F_STRING,
     .dflt = "\"Running\"",
     .oneof = operating_modes,
     .doc = "Running keeps the pod; Suspended deletes it and keeps the sandbox, its service and "
            "its volumes."},
    {.name = "podFailurePolicy",
     .type = F_STRING,
     .oneof = failure_policies,
     .doc = "What to do when the pod has failed: Ignore (also when absent) leaves it, Recreate "
            "replaces it."},
    {.name = "podTemplate",
     .type = F_OBJECT,
     .of = &shape_pod_template,
     .flags = FIELD_REQUIRED,
     .doc = "The pod to run."},
    {.name = "service",
     .type = F_BOOL,
     .doc = "true gives the sandbox a headless service of its name, false takes it away; when "
            "absent none is made, and one "
            "that is there already stays."},
    {.name = "shutdownPolicy",
     .type = F_STRING,
     .dflt = "\"Retain\"",
     .oneof = shutdown_policies,
     .doc = "What becomes of the sandbox at shutdownTime: Delete removes it, Retain keeps the "
            "object without pod and service."},
    {.name = "shutdownTime", .type = F_TIME, .doc = "When the sandbox expires. Without it, never."},
    FIELD_VOLUME_CLAIM_TEMPLATES("Volume claims made for this sandbox, each named after template "
                                 "and sandbox. Cannot be changed."),
    {0},
};
static const struct rule rules_spec[] = {
    {.rule = "has(self.volumeClaimTemplates) ? has(oldSelf.volumeClaimTemplates) && "
             "self.volumeClaimTemplates == oldSelf.volumeClaimTemplates : "
             "!has(oldSelf.volumeClaimTemplates)",
     .message = "volumeClaimTemplates is immutable"},
    RULE_VOLUME_NAMES,
    {0},
};
static const struct shape shape_spec = {
    .name = "SandboxSpec",
    .fields = fields_spec,
    .rules = rules_spec,
    .doc = "What the sandbox shall be.",
};

static const struct field fields_status[] = {
    FIELD_CONDITIONS("State in short: Ready, Suspended, PodScheduled, Finished."),
    {.name = "nodeName",
     .type = F_STRING,
     .doc = "Node that the pod was placed on, while there is a pod."},
    {.name = "podIPs",
     .type = F_LIST,
     .item = F_STRING,
     .list = LIST_UNDECLARED,
     .doc = "Addresses of the pod, while there is a pod."},
    {.name = "selector",
     .type = F_STRING,
     .doc = "Label selector that finds the pod of this sandbox."},
    {.name = "service",
     .type = F_STRING,
     .doc = "Name of the headless service, when there is one."},
    {.name = "serviceFQDN", .type = F_STRING, .doc = "DNS name of the service inside the cluster."},
    {0},
};
static const struct shape shape_status = {
    .name = "SandboxStatus",
    .fields = fields_status,
    .doc = "What was seen of the sandbox.",
};

static const struct field fields_sandbox[] = {
    FIELD_API_VERSION,
    FIELD_KIND,
    FIELD_METADATA,
    {.name = "spec",
     .type = F_OBJECT,
     .of = &shape_spec,
     .flags = FIELD_REQUIRED,
     .doc = "What the sandbox shall be."},
    {.name = "status",
     .type = F_OBJECT,
     .of = &shape_status,
     .flags = FIELD_STATUS,
     .doc = "What was seen of the sandbox."},
    {0},
};
/* The service has the sandbox's name, which must then be a DNS label. Checked on every write,
 * status included. */
static const struct rule rules_sandbox[] = {
    {.rule = "!has(self.spec.service) || !self.spec.service || size(self.metadata.name) <= 63",
     .message = "must have at most 63 characters when spec.service is true: it names the service",
     .field = "metadata.name"},
    {.rule = "!has(self.spec.service) || !self.spec.service || !self.metadata.name.contains('.')",
     .message = "must not contain dots when spec.service is true: it names the service",
     .field = "metadata.name",
     .is_added = true},
    RULE_VOLUME_CLAIM_NAMES,
    {0},
};
static const struct shape shape_sandbox = {
    .name = "Sandbox",
    .ref = "io.x-k8s.agents.v1beta1.Sandbox",
    .fields = fields_sandbox,
    .rules = rules_sandbox,
    .doc = "An isolated environment for one agent: a pod with a stable name, storage and a life of "
           "its own.",
};

static const struct column columns[] = {
    {.name = "Ready", .type = COL_STRING, .path = ".status.conditions[?(@.type=='Ready')].status"},
    {.name = "Reason", .type = COL_STRING, .path = ".status.conditions[?(@.type=='Ready')].reason"},
    {.name = "Age", .type = COL_DATE, .path = ".metadata.creationTimestamp"},
    {0},
};
static const char *const short_names[] = {"sandbox", NULL};

const struct kind kind_sandbox = {
    .group = "agents.x-k8s.io",
    .version = "v1beta1",
    .kind = "Sandbox",
    .list_kind = "SandboxList",
    .plural = "sandboxes",
    .singular = "sandbox",
    .short_names = short_names,
    .has_status = true,
    .has_activity = true,
    .durations = idle_durations,
    .columns = columns,
    .shape = &shape_sandbox,
    .schema_name = "io.x-k8s.agents.v1beta1.Sandbox",
    .doc = "An isolated environment for one agent: a pod with a stable name, storage and a life of "
           "its own.",
};
