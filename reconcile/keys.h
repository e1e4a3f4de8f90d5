/* Labels, annotations and other fixed names that the reconciler reads and writes. Source:
 * docs/resources.md 8, 9. */
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
#define ANNOTATION_SANDBOX_NAME                                                                    \
    "agents.x-k8s.io/sandbox-name" /* the assignment; as a label: its deprecated form */
#define ANNOTATION_FIRST_OBSERVED_AT "agents.x-k8s.io/controller-first-observed-at"
#define ANNOTATION_FIRST_READY_AT "agents.x-k8s.io/claim-first-ready-at"
#define ANNOTATION_WEBHOOK_OBSERVED_AT "agents.x-k8s.io/webhook-first-observed-at"
#define ANNOTATION_CLIENT_REQUESTED_AT "agents.x-k8s.io/client-first-requested-at"
#define ANNOTATION_SAFE_TO_EVICT "cluster-autoscaler.kubernetes.io/safe-to-evict"
/* Ours; a prefix without a dot is no domain, so it can be nobody else's. */
/* ANNOTATION_IDLE_TIMEOUT, the user's, stands in openapi/kinds.h */
#define ANNOTATION_ACTIVE_UNTIL "sandbox-apiserver/active-until"
#define ANNOTATION_IDLE_SINCE "sandbox-apiserver/idle-since" /* suspended for being idle */
#define GROUP_AGENTS "agents.x-k8s.io"
#define GROUP_EXTENSIONS "extensions.agents.x-k8s.io"
#define POLICY_SUFFIX "-network-policy" /* of a template's NetworkPolicy, after its name */
#define KIND_SANDBOX "Sandbox"
#define KIND_CLAIM "SandboxClaim"
#define KIND_POOL "SandboxWarmPool"
#define KIND_TEMPLATE "SandboxTemplate"
#define IDLE_MANAGER "sandbox-idle"        /* who suspends and wakes, in managedFields */
#define FIELD_MANAGER "sandbox-controller" /* also the reporting controller of events */
