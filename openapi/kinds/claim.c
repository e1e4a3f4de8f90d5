/* SandboxClaim: a request for one sandbox, from a warm pool if it can be. Source:
 * docs/resources.md 6.
 */
#include "openapi/kinds.h"
#include "openapi/kinds/meta.h"
#include "openapi/shape.h"

static const char *const shutdown_policies[] = {"Delete", "DeleteForeground", "Retain", NULL};

static const struct field fields_env[] = {
    {.name = "containerName",
     .type = F_STRING,
     .doc = "Container or init container that gets the variable. Empty means the first container."},
    {.name = "name", .type = F_STRING, .flags = FIELD_REQUIRED, .doc = "Name of the variable."},
    {.name = "value",
     .type = F_STRING,
     .flags = FIELD_REQUIRED,
     .doc = "Its value, taken literally; may be empty."},
    {0},
};
static const struct shape shape_env = {
    .name = "EnvVar",
    .fields = fields_env,
    .doc = "An environment variable of one container.",
};

static const struct field fields_lifecycle[] = {
    {.name = "shutdownPolicy",
     .type = F_STRING,
     .dflt = "\"Retain\"",
     .oneof = shutdown_policies,
     .doc = "What becomes of an expired claim: Retain keeps it and deletes its sandbox, Delete "
            "deletes both, DeleteForeground "
            "deletes the claim once everything below it is gone."},
    {.name = "shutdownTime",
     .type = F_TIME,
     .doc = "When the claim expires. Without it, not at a fixed time."},
    {.name = "ttlSecondsAfterFinished",
     .type = F_INT32,
     .has_min = true,
     .doc = "Seconds that the claim outlives its finished pod; 0 expires it at once. Without it, "
            "the pod's end is no matter."},
    {0},
};
static const struct shape shape_lifecycle = {
    .name = "Lifecycle",
    .fields = fields_lifecycle,
    .doc = "When the claim ends, and how.",
};

static const struct field fields_pool_ref[] = {
    {.name = "name",
     .type = F_STRING,
     .flags = FIELD_REQUIRED,
     .doc = "Name of the SandboxWarmPool."},
    {0},
};
static const struct shape shape_pool_ref = {
    .name = "SandboxWarmPoolRef",
    .fields = fields_pool_ref,
    .doc = "A warm pool of the same namespace.",
};

static const struct field fields_spec[] = {
    {.name = "additionalPodMetadata",
     .type = F_OBJECT,
     .of = &shape_pod_metadata,
     .doc = "Labels and annotations put on the pod besides those of the template. Which keys may "
            "be used is up to the server's "
            "settings."},
    {.name = "env",
     .type = F_LIST,
     .item = F_OBJECT,
     .of = &shape_env,
     .list = LIST_ATOMIC,
     .doc = "Environment variables for the containers. With any, a new sandbox is started instead "
            "of taking one of the pool."},
    {.name = "lifecycle",
     .type = F_OBJECT,
     .of = &shape_lifecycle,
     .doc = "When the claim ends. Without it, never."},
    FIELD_VOLUME_CLAIM_TEMPLATES(
        "Volume claims besides or instead of the template's, as its policy allows. With any, a new "
        "sandbox is started instead of taking one of the pool."),
    {.name = "warmPoolRef",
     .type = F_OBJECT,
     .of = &shape_pool_ref,
     .flags = FIELD_REQUIRED,
     .doc = "The pool to take a sandbox from."},
    {0},
};
static const struct rule rules_spec[] = {RULE_VOLUME_NAMES, {0}};
static const struct shape shape_spec = {
    .name = "SandboxClaimSpec",
    .fields = fields_spec,
    .rules = rules_spec,
    .doc = "What sandbox is asked for.",
};

static const struct field fields_sandbox[] = {
    {.name = "name", .type = F_STRING, .doc = "Name of the sandbox that belongs to this claim."},
    {.name = "podIPs",
     .type = F_LIST,
     .item = F_STRING,
     .list = LIST_UNDECLARED,
     .doc = "Addresses of that sandbox's pod."},
    {0},
};
static const struct shape shape_sandbox_status = {
    .name = "SandboxStatus",
    .fields = fields_sandbox,
    .doc = "The sandbox that belongs to this claim.",
};

static const struct field fields_status[] = {
    FIELD_CONDITIONS("State in short: Ready, and Finished once the pod has ended."),
    {.name = "sandbox",
     .type = F_OBJECT,
     .of = &shape_sandbox_status,
     .doc = "The sandbox that belongs to this claim; without a name as long as there is none."},
    {0},
};
static const struct shape shape_status = {
    .name = "SandboxClaimStatus",
    .fields = fields_status,
    .doc = "What was seen of the claim.",
};

static const struct field fields_claim[] = {
    FIELD_API_VERSION,
    FIELD_KIND,
    FIELD_METADATA,
    {.name = "spec",
     .type = F_OBJECT,
     .of = &shape_spec,
     .flags = FIELD_REQUIRED,
     .doc = "What sandbox is asked for."},
    {.name = "status",
     .type = F_OBJECT,
     .of = &shape_status,
     .flags = FIELD_STATUS,
     .doc = "What was seen of the claim."},
    {0},
};
/* A bound claim that names another pool would move its running pod under the network policy of that
 * pool's template. */
static const struct rule rules_claim[] = {
    {.rule = "!has(oldSelf.status) || !has(oldSelf.status.sandbox) || "
             "!has(oldSelf.status.sandbox.name) || oldSelf.status.sandbox.name == '' || "
             "self.spec.warmPoolRef.name == oldSelf.spec.warmPoolRef.name",
     .message = "cannot change any more: the claim has its sandbox",
     .field = "spec.warmPoolRef",
     .is_added = true},
    RULE_VOLUME_CLAIM_NAMES,
    {0},
};
static const struct shape shape_claim = {
    .name = "SandboxClaim",
    .ref = "io.x-k8s.agents.extensions.v1beta1.SandboxClaim",
    .fields = fields_claim,
    .rules = rules_claim,
    .doc = "A request for one sandbox, served from a warm pool at once when it has one ready.",
};

static const struct column columns[] = {
    {.name = "Ready", .type = COL_STRING, .path = ".status.conditions[?(@.type=='Ready')].status"},
    {.name = "Sandbox", .type = COL_STRING, .path = ".status.sandbox.name"},
    {.name = "Reason", .type = COL_STRING, .path = ".status.conditions[?(@.type=='Ready')].reason"},
    {.name = "Age", .type = COL_DATE, .path = ".metadata.creationTimestamp"},
    {0},
};
static const char *const short_names[] = {"sandboxclaim", NULL};

const struct kind kind_sandbox_claim = {
    .group = "extensions.agents.x-k8s.io",
    .version = "v1beta1",
    .kind = "SandboxClaim",
    .list_kind = "SandboxClaimList",
    .plural = "sandboxclaims",
    .singular = "sandboxclaim",
    .short_names = short_names,
    .has_status = true,
    .durations = idle_durations,
    .columns = columns,
    .shape = &shape_claim,
    .schema_name = "io.x-k8s.agents.extensions.v1beta1.SandboxClaim",
    .doc = "A request for one sandbox, served from a warm pool at once when it has one ready.",
};
