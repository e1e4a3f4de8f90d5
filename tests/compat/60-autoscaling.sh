#!/bin/bash
# HorizontalPodAutoscaler and kubectl autoscale on a SandboxWarmPool: the controller reads its scale, finds its pods by the selector,
# and writes its size, by limits and by a metric that is fed here.
# shellcheck source=tests/compat/lib.sh
. "$(dirname "$0")/lib.sh"
namespace "$NS"
METRICS=v1beta1.external.metrics.k8s.io
PORT=$((20000 + RANDOM % 10000))

{ template sleeper any && echo --- && pool pool sleeper 1; } | k create -f - >/dev/null
size() { value swp/pool .spec.replicas; }
has_size() { [ "$(size)" = "$1" ]; }
stands_at() { [ "$(value swp/pool .status.replicas)/$(value hpa/pool .status.currentReplicas)" = "$1/$1" ]; }
condition() { [ "$(value hpa/pool ".status.conditions[?(@.type==\"$1\")].status")" = True ]; }

# --- limits ---
is "kubectl autoscale" "horizontalpodautoscaler.autoscaling/pool autoscaled" "$(k autoscale swp pool --min 2 --max 4)"
is "aims at the pool" "extensions.agents.x-k8s.io/v1beta1/SandboxWarmPool" "$(value hpa/pool .spec.scaleTargetRef.apiVersion)/$(value hpa/pool .spec.scaleTargetRef.kind)"
t "fewer than the least are made more" within 60 has_size 2
t "the pool has them and the autoscaler sees them" within 60 stands_at 2
k scale swp pool --replicas 6 >/dev/null
t "more than the most are made fewer" within 60 has_size 4
like "the number is the autoscaler's, by /scale" 'kube-controller-manager Update scale' \
    "$(kubectl -n "$NS" get swp pool --show-managed-fields -o 'jsonpath={range .metadata.managedFields[*]}{.manager} {.operation} {.subresource}{"\n"}{end}')"
k delete hpa pool >/dev/null

# --- a metric ---
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1 -subj "/CN=metrics" -addext "subjectAltName=DNS:metrics.$NS.svc" \
    -keyout "$WORK/key.pem" -out "$WORK/cert.pem" 2>/dev/null
echo 2 >"$WORK/waiting"
"$CLUSTER" run python3 "$COMPAT/python/metrics.py" "$PORT" "$WORK/cert.pem" "$WORK/key.pem" "$WORK/waiting" >"$WORK/metrics" 2>&1 &
k create service externalname metrics --external-name localhost --tcp "$PORT:$PORT" >/dev/null
withdraw() { kubectl delete apiservice $METRICS --ignore-not-found >/dev/null 2>&1; }
trap 'withdraw; finish' EXIT # one without a server behind it would hold every namespace
kubectl apply -f - >/dev/null <<Y
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: $METRICS}
spec:
  {group: external.metrics.k8s.io, version: v1beta1, groupPriorityMinimum: 100, versionPriority: 100,
   caBundle: "$(base64 -w0 "$WORK/cert.pem")", service: {name: metrics, namespace: $NS, port: $PORT}}
Y
t "a metric is served" kubectl wait --for=condition=Available apiservice/$METRICS --timeout 60s
k apply -f - >/dev/null <<Y
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: pool}
spec:
  scaleTargetRef: {apiVersion: extensions.agents.x-k8s.io/v1beta1, kind: SandboxWarmPool, name: pool}
  minReplicas: 1
  maxReplicas: 5
  behavior: {scaleDown: {stabilizationWindowSeconds: 0, policies: [{type: Pods, value: 10, periodSeconds: 1}]}}
  metrics:
  - {type: External, external: {metric: {name: waiting}, target: {type: AverageValue, averageValue: "1"}}}
Y
t "the pool follows it down" within 90 has_size 2
t "the autoscaler says that it can read the scale" within 30 condition AbleToScale
t "and that the metric works" within 30 condition ScalingActive
echo 3 >"$WORK/waiting"
t "and up" within 90 has_size 3
t "with as many members" within 60 stands_at 3
# A plain value is divided by the pods that are ready: they are found by the scale's selector.
k patch hpa pool --type json -p '[{"op":"replace","path":"/spec/metrics/0/external/target","value":{"type":"Value","value":"3"}}]' >/dev/null
k wait --for=condition=Ready sandboxes --all --timeout 60s >/dev/null
echo 5 >"$WORK/waiting"
t "a ratio to the pods that are ready, by the selector" within 90 has_size 5
withdraw
k delete hpa pool >/dev/null
