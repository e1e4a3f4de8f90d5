/* SandboxTemplate: what sandboxes of a pool or a claim look like. Source: docs/resources.md 5. */
#include "openapi/kinds.h"
#include "openapi/kinds/meta.h"
#include "openapi/shape.h"

static const char *const management_modes[] = {"Managed", "Unmanaged", NULL};
static const char *const env_policies[] = {"Allowed", "Overrides", "Disallowed", NULL};
static const char *const volume_policies[] = {"Disallowed", "Allowed", "Overrides", NULL};

static const struct field fields_network_policy[] = {
    {.name = "egress",
     .type = F_LIST,
     .item = F_OBJECT,
     .of = &shape_network_policy_egress,
     .list = LIST_UNDECLARED,
     .doc = "Traffic that the pods may send. None when empty or absent."},
    {.name = "ingress",
     .type = F_LIST,
     .item = F_OBJECT,
     .of = &shape_network_policy_ingress,
     .list = LIST_UNDECLARED,
     .doc = "Traffic that the pods may receive. None when empty or absent."},
    {0},
};
static const struct shape shape_network_policy = {
    .name = "NetworkPolicySpec",
    .fields = fields_network_policy,
    .doc =
        "Which traffic the pods may have. Pods and policy types are filled in by the controller.",
};

static const struct field fields_spec[] = {
    {.name = "envVarsInjectionPolicy",
     .type = F_STRING,
     .dflt = "\"Disallowed\"",
     .oneof = env_policies,
     .doc = "Whether claims may add environment variables: Allowed adds new names, Overrides "
            "replaces too, Disallowed refuses."},
    {.name = "networkPolicy",
     .type = F_OBJECT,
     .of = &shape_network_policy,
     .doc =
         "Rules for the pods' traffic, used as they are. Absent means a strict built-in policy."},
    {.name = "networkPolicyManagement",
     .type = F_STRING,
     .dflt = "\"Managed\"",
     .oneof = management_modes,
     .doc = "Managed keeps a network policy for the pods; Unmanaged keeps none and ignores "
            "networkPolicy."},
    {.name = "podTemplate",
     .type = F_OBJECT,
     .of = &shape_pod_template,
     .flags = FIELD_REQUIRED,
     .doc = "The pod of each sandbox made from this template."},
    {.name = "service",
     .type = F_BOOL,
     .doc = "Value of spec.service of each sandbox made from this template."},
    FIELD_VOLUME_CLAIM_TEMPLATES("Volume claims of each sandbox made from this template."),
    {.name = "volumeClaimTemplatesPolicy",
     .type = F_STRING,
     .dflt = "\"Disallowed\"",
     .oneof = volume_policies,
     .doc = "Whether claims may bring volume claims: Allowed adds new names, Overrides replaces "
            "too, Disallowed refuses."},
    {0},
};
static const struct rule rules_spec[] = {RULE_VOLUME_NAMES, {0}};
static const struct shape shape_spec = {
    .name = "SandboxTemplateSpec",
    .fields = fields_spec,
    .rules = rules_spec,
    .doc = "What sandboxes made from this template look like.",
};

static const struct field fields_template[] = {
    FIELD_API_VERSION,
    FIELD_KIND,
    FIELD_METADATA,
    {.name = "spec",
     .type = F_OBJECT,
     .of = &shape_spec,
     .flags = FIELD_REQUIRED,
     .doc = "What sandboxes made from this template look like."},
    {0},
};
/* Its network policy is NAME-network-policy. */
static const struct rule rules_template[] = {
    {.rule = "(has(self.spec.networkPolicyManagement) && "
             "self.spec.networkPolicyManagement == 'Unmanaged') || size(self.metadata.name) <= 238",
     .message = "must have at most 238 characters unless networkPolicyManagement is Unmanaged: "
                "with -network-policy behind, it names the network policy",
     .field = "metadata.name",
     .is_added = true},
    {0},
};
static const struct shape shape_template = {
    .name = "SandboxTemplate",
    .ref = "io.x-k8s.agents.extensions.v1beta1.SandboxTemplate",
    .fields = fields_template,
    .rules = rules_template,
    .doc = "A blueprint of sandboxes for warm pools and claims.",
};

static const char *const short_names[] = {"sandboxtemplate", NULL};

const struct kind kind_sandbox_template = {
    .group = "extensions.agents.x-k8s.io",
    .version = "v1beta1",
    .kind = "SandboxTemplate",
    .list_kind = "SandboxTemplateList",
    .plural = "sandboxtemplates",
    .singular = "sandboxtemplate",
    .short_names = short_names,
    .shape = &shape_template,
    .schema_name = "io.x-k8s.agents.extensions.v1beta1.SandboxTemplate",
    .doc = "A blueprint of sandboxes for warm pools and claims.",
};
