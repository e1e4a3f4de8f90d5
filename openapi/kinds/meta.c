/* The building blocks that the four kinds share: condition, pod template, pod metadata, volume
 * claim template, and their fields apiVersion, kind, metadata. Source: docs/resources.md 3. */
#include "openapi/kinds/meta.h"

#include "openapi/kinds.h"
#include "openapi/shape.h"

static const char *const condition_statuses[] = {"True", "False", "Unknown", NULL};

static const struct field fields_condition[] = {
    {.name = "lastTransitionTime",
     .type = F_TIME,
     .flags = FIELD_REQUIRED,
     .doc = "When the status last changed from one value to another; whole seconds."},
    {.name = "message",
     .type = F_STRING,
     .flags = FIELD_REQUIRED,
     .max_length = 32768,
     .doc = "What happened, for people. May be empty."},
    {.name = "observedGeneration",
     .type = F_INT64,
     .has_min = true,
     .doc = "The metadata.generation that this condition was computed from; an older one means it "
            "is out of date."},
    {.name = "reason",
     .type = F_STRING,
     .flags = FIELD_REQUIRED,
     .min_length = 1,
     .max_length = 1024,
     .pattern = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
     .doc = "Why the condition has its status, as one CamelCase word for programs."},
    {.name = "status",
     .type = F_STRING,
     .flags = FIELD_REQUIRED,
     .oneof = condition_statuses,
     .doc = "True, False or Unknown."},
    {.name = "type",
     .type = F_STRING,
     .flags = FIELD_REQUIRED,
     .max_length = 316,
     .pattern = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
                "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
     .doc = "What the condition is about: a CamelCase word, with a DNS prefix and a slash if it is "
            "not one of ours."},
    {0},
};
const struct duration_annotation idle_durations[] = {
    {ANNOTATION_IDLE_TIMEOUT, 1000, INT64_C(8760) * 3600 * 1000, "from 1s to 8760h, like 15m"},
    {0},
};

const struct shape shape_condition = {
    .name = "Condition",
    .fields = fields_condition,
    .doc = "One aspect of the observed state of an object.",
};

static const struct field fields_pod_metadata[] = {
    {.name = "annotations", .type = F_MAP, .item = F_STRING, .doc = "Annotations for the pod."},
    {.name = "labels", .type = F_MAP, .item = F_STRING, .doc = "Labels for the pod."},
    {0},
};
const struct shape shape_pod_metadata = {
    .name = "PodMetadata",
    .fields = fields_pod_metadata,
    .doc = "Labels and annotations that the pod gets.",
};

static const struct field fields_pod_template[] = {
    {.name = "metadata",
     .type = F_OBJECT,
     .of = &shape_pod_metadata,
     .doc = "Labels and annotations for the pod. Changes reach a running pod."},
    {.name = "spec",
     .type = F_OBJECT,
     .of = &shape_pod_spec,
     .flags = FIELD_REQUIRED,
     .doc = "What the pod runs, as in any pod. Changes take effect when the pod is next created."},
    {0},
};
const struct shape shape_pod_template = {
    .name = "PodTemplate",
    .fields = fields_pod_template,
    .doc = "The pod of a sandbox.",
};

static const struct field fields_volume_claim_metadata[] = {
    {.name = "annotations",
     .type = F_MAP,
     .item = F_STRING,
     .doc = "Annotations for the volume claim."},
    {.name = "labels", .type = F_MAP, .item = F_STRING, .doc = "Labels for the volume claim."},
    {.name = "name",
     .type = F_STRING,
     .doc = "Name of the volume in the pod, and the first part of the volume claim's name."},
    {0},
};
static const struct shape shape_volume_claim_metadata = {
    .name = "VolumeClaimMetadata",
    .fields = fields_volume_claim_metadata,
    .doc = "Name, labels and annotations of a volume claim.",
};

static const struct field fields_volume_claim_template[] = {
    {.name = "metadata",
     .type = F_OBJECT,
     .of = &shape_volume_claim_metadata,
     .doc = "Name, labels and annotations of the volume claim."},
    {.name = "spec",
     .type = F_OBJECT,
     .of = &shape_pvc_spec,
     .flags = FIELD_REQUIRED,
     .doc = "What storage to ask for, as in any volume claim."},
    {0},
};
const struct shape shape_volume_claim_template = {
    .name = "PersistentVolumeClaimTemplate",
    .fields = fields_volume_claim_template,
    .doc = "A volume claim made for each sandbox and mounted by its name.",
};
