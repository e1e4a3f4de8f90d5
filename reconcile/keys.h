/* Labels, annotations and other fixed names that the reconciler reads and writes. Source: resources.md 8, 9. */
#pragma once

#define LABEL_NAME_HASH "agents.x-k8s.io/sandbox-name-hash" /* the tracking label */
#define LABEL_ADOPTABLE "agents.x-k8s.io/adoptable"
#define LABEL_WARM_POOL "agents.x-k8s.io/warm-pool-sandbox"
#define LABEL_TEMPLATE_REF_HASH "agents.x-k8s.io/sandbox-template-ref-hash"
#define LABEL_CREATED_BY "agents.x-k8s.io/created-by"
#define ANNOTATION_POD_NAME "agents.x-k8s.io/pod-name"
#define ANNOTATION_PROPAGATED_LABELS "agents.x-k8s.io/propagated-labels"
#define ANNOTATION_PROPAGATED_ANNOTATIONS "agents.x-k8s.io/propagated-annotations"
#define ANNOTATION_TRACE_CONTEXT "opentelemetry.io/trace-context"
#define GROUP_AGENTS "agents.x-k8s.io"
#define GROUP_EXTENSIONS "extensions.agents.x-k8s.io"
#define SANDBOX_API_VERSION "agents.x-k8s.io/v1beta1"
#define FIELD_MANAGER "sandbox-controller" /* also the reporting controller of events */
