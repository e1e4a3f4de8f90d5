/* Labels, annotations and other fixed names that the reconciler reads and writes. Source: resources.md 8, 9. */
#pragma once

#define LABEL_NAME_HASH "agents.x-k8s.io/sandbox-name-hash" /* the tracking label */
#define LABEL_ADOPTABLE "agents.x-k8s.io/adoptable"
#define LABEL_WARM_POOL "agents.x-k8s.io/warm-pool-sandbox"
#define LABEL_TEMPLATE_REF_HASH "agents.x-k8s.io/sandbox-template-ref-hash"
#define LABEL_CREATED_BY "agents.x-k8s.io/created-by"
#define LABEL_POD_TEMPLATE_HASH "agents.x-k8s.io/sandbox-pod-template-hash" /* informational */
#define LABEL_BLUEPRINT_HASH "agents.x-k8s.io/sandbox-template-hash"
#define LABEL_LAUNCH_TYPE "agents.x-k8s.io/launch-type"
#define LAUNCH_WARM "warm"
#define LAUNCH_COLD "cold"
#define LABEL_CLAIM_UID "agents.x-k8s.io/claim-uid"
#define ANNOTATION_POD_NAME "agents.x-k8s.io/pod-name"
#define ANNOTATION_PROPAGATED_LABELS "agents.x-k8s.io/propagated-labels"
#define ANNOTATION_PROPAGATED_ANNOTATIONS "agents.x-k8s.io/propagated-annotations"
#define ANNOTATION_TRACE_CONTEXT "opentelemetry.io/trace-context"
#define ANNOTATION_TEMPLATE_REF "agents.x-k8s.io/sandbox-template-ref"
#define ANNOTATION_SAFE_TO_EVICT "cluster-autoscaler.kubernetes.io/safe-to-evict"
#define GROUP_AGENTS "agents.x-k8s.io"
#define GROUP_EXTENSIONS "extensions.agents.x-k8s.io"
#define KIND_SANDBOX "Sandbox"
#define KIND_CLAIM "SandboxClaim"
#define KIND_POOL "SandboxWarmPool"
#define KIND_TEMPLATE "SandboxTemplate"
#define FIELD_MANAGER "sandbox-controller" /* also the reporting controller of events */
