#!/bin/bash
# What the server tells about itself after a small life of a pool, claims, a suspension, an end: the series that dashboards and load
# tests of the original ask for, with their labels and buckets.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
[ "$CLUSTER_NODE" != fake ] || { skip "the server's metrics" "the cluster has a fake node" && exit 0; }
namespace "$NS"
ns() { kubectl -n "$NS" "$@"; }
apply() { ns apply -f - >/dev/null; }
NOW=$(date -u +%Y-%m-%dT%H:%M:%SZ)

# claim NAME: one that carries the times from which startup is measured.
claim() {
    apply <<E
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxClaim
metadata:
  name: $1
  annotations: {agents.x-k8s.io/webhook-first-observed-at: "$NOW", agents.x-k8s.io/client-first-requested-at: "$NOW"}
spec: {warmPoolRef: {name: p}}
E
}

apply <<E
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxTemplate
metadata: {name: t}
spec:
  podTemplate:
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: $IMAGE, command: [sleep, "100000"]}]
---
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxWarmPool
metadata: {name: p}
spec: {replicas: 1, sandboxTemplateRef: {name: t}}
E
t "a pool is ready" ns wait --for=jsonpath='{.status.readyReplicas}'=1 sandboxwarmpool/p --timeout 60s
claim c
t "a claim is ready" ns wait --for=condition=Ready sandboxclaim/c --timeout 60s
name=$(value sandboxclaim/c .status.sandbox.name)
ns patch sandbox "$name" --type merge -p '{"spec":{"operatingMode":"Suspended"}}' >/dev/null
t "its Sandbox is suspended" ns wait --for=condition=Suspended "sandbox/$name" --timeout 60s
ns patch sandbox "$name" --type merge -p '{"spec":{"operatingMode":"Running"}}' >/dev/null
t "and resumed" ns wait --for=condition=Ready "sandbox/$name" --timeout 60s
sandbox timed "shutdownTime: \"2020-01-01T00:00:00Z\"" | apply
t "another comes to its end" ns wait --for=jsonpath='{.status.conditions[?(@.type=="Ready")].reason}'=SandboxExpired sandbox/timed --timeout 30s
apply <<E
apiVersion: agents.x-k8s.io/v1beta1
kind: Sandbox
metadata: {name: short}
spec:
  podTemplate:
    metadata: {annotations: {node.agent-sandbox.dev/fault: exit}} # for a simulated node, which does not run it
    spec: {restartPolicy: Never, containers: [{name: main, image: $IMAGE, command: ["true"]}]}
E
t "and another is done" ns wait --for=condition=Finished sandbox/short --timeout 60s

scrape() { server_metrics | sed '1s/^200 //' >"$WORK/scrape"; }
# has_series PATTERN: one of the scrape's lines matches.
has_series() { scrape && grep -qE "$1" "$WORK/scrape"; }
t "the resumption is measured" within 20 has_series "^agent_sandbox_resume_latency_ms_count.*namespace=\"$NS\".* [1-9]"
while IFS= read -r line; do
    case $line in
    "ok "*) ok "${line#ok * - }" ;;
    "not ok "*) not_ok "${line#not ok * - }" ;;
    "#"*) echo "$line" ;;
    esac
done < <("$ROOT/tests/metrics" --original "$WORK/scrape")
like "the claim was warm" "^agent_sandbox_claim_creation_total\{namespace=\"$NS\",sandbox_template=\"t\",launch_type=\"warm\",warmpool_name=\"p\",pod_condition=\"ready\",created_by=\"unknown\"\} 1$" \
    "$(grep '^agent_sandbox_claim_creation_total' "$WORK/scrape")"
like "one Sandbox has expired" "^agent_sandbox_expired_total\{namespace=\"$NS\",.*shutdown_policy=\"Retain\"\} 1$" "$(grep '^agent_sandbox_expired' "$WORK/scrape")"
is "no event was dropped" "" "$(grep '^agent_sandbox_events_total{result="dropped"}' "$WORK/scrape")"
