/* SandboxWarmPool: a number of sandboxes kept ready for claims. Source: docs/resources.md 7. */
#include "openapi/kinds.h"
#include "openapi/kinds/meta.h"
#include "openapi/shape.h"

static const char *const update_types[] = {"Recreate", "OnReplenish", NULL};

static const struct field fields_template_ref[] = {
    {.name = "name",
     .type = F_STRING,
     .flags = FIELD_REQUIRED,
     .doc = "Name of the SandboxTemplate."},
    {0},
};
static const struct shape shape_template_ref = {
    .name = "SandboxTemplateRef",
    .fields = fields_template_ref,
    .doc = "A template of the same namespace.",
};

static const struct field fields_update_strategy[] = {
    {.name = "type",
     .type = F_STRING,
     .dflt = "\"OnReplenish\"",
     .oneof = update_types,
     .doc = "Recreate replaces sandboxes of an old template at once; OnReplenish leaves them until "
            "they are claimed."},
    {0},
};
static const struct shape shape_update_strategy = {
    .name = "UpdateStrategy",
    .fields = fields_update_strategy,
    .doc = "What happens to waiting sandboxes when the template changes.",
};

static const struct field fields_spec[] = {
    {.name = "replicas",
     .type = F_INT32,
     .dflt = "1",
     .has_min = true,
     .doc = "Number of unclaimed sandboxes to keep."},
    {.name = "sandboxTemplateRef",
     .type = F_OBJECT,
     .of = &shape_template_ref,
     .flags = FIELD_REQUIRED,
     .doc = "The template of the pool's sandboxes."},
    {.name = "updateStrategy",
     .type = F_OBJECT,
     .of = &shape_update_strategy,
     .doc = "What happens to waiting sandboxes when the template changes."},
    {0},
};
static const struct shape shape_spec = {
    .name = "SandboxWarmPoolSpec",
    .fields = fields_spec,
    .doc = "How many sandboxes to keep, and of what kind.",
};

static const struct field fields_status[] = {
    FIELD_CONDITIONS(
        "What keeps the pool from filling: Progressing. Absent as long as nothing did."),
    {.name = "observedGeneration",
     .type = F_INT64,
     .has_min = true,
     .doc = "The metadata.generation that this status was computed from."},
    {.name = "readyReplicas",
     .type = F_INT32,
     .doc = "Number of the pool's sandboxes that are ready."},
    {.name = "replicas", .type = F_INT32, .doc = "Number of the pool's sandboxes."},
    {.name = "selector",
     .type = F_STRING,
     .doc = "Label selector that finds the pool's sandboxes and their pods."},
    {0},
};
static const struct shape shape_status = {
    .name = "SandboxWarmPoolStatus",
    .fields = fields_status,
    .doc = "What was seen of the pool.",
};

static const struct field fields_pool[] = {
    FIELD_API_VERSION,
    FIELD_KIND,
    FIELD_METADATA,
    {.name = "spec",
     .type = F_OBJECT,
     .of = &shape_spec,
     .flags = FIELD_REQUIRED,
     .doc = "How many sandboxes to keep, and of what kind."},
    {.name = "status",
     .type = F_OBJECT,
     .of = &shape_status,
     .flags = FIELD_STATUS,
     .doc = "What was seen of the pool."},
    {0},
};
static const struct shape shape_pool = {
    .name = "SandboxWarmPool",
    .ref = "io.x-k8s.agents.extensions.v1beta1.SandboxWarmPool",
    .fields = fields_pool,
    .doc = "A number of sandboxes kept running, so that claims need not wait.",
};

static const struct column columns[] = {
    {.name = "Ready", .type = COL_INTEGER, .path = ".status.readyReplicas"},
    {.name = "Desired", .type = COL_INTEGER, .path = ".spec.replicas"},
    {.name = "Age", .type = COL_DATE, .path = ".metadata.creationTimestamp"},
    {0},
};
static const char *const short_names[] = {"swp", NULL};
static const struct scale_paths scale = {
    .spec_replicas = "spec.replicas",
    .status_replicas = "status.replicas",
    .selector = "status.selector",
};

const struct kind kind_sandbox_warm_pool = {
    .group = "extensions.agents.x-k8s.io",
    .version = "v1beta1",
    .kind = "SandboxWarmPool",
    .list_kind = "SandboxWarmPoolList",
    .plural = "sandboxwarmpools",
    .singular = "sandboxwarmpool",
    .short_names = short_names,
    .has_status = true,
    .scale = &scale,
    .columns = columns,
    .shape = &shape_pool,
    .schema_name = "io.x-k8s.agents.extensions.v1beta1.SandboxWarmPool",
    .doc = "A number of sandboxes kept running, so that claims need not wait.",
};
