#!/bin/bash
# Deleting a namespace that holds Sandboxes comes to an end, and nothing is created in one that is going.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
namespace "$NS"
none_left() { local left && left=$(kubectl -n "$NS" get sandboxes -o name) && [ -z "$left" ]; }

for n in 1 2 3; do create "box-$n" >/dev/null; done
t "three Sandboxes become ready" kubectl -n "$NS" wait --for=condition=Ready sandbox --all --timeout 90s
# A finalizer on a ConfigMap keeps the namespace in the state Terminating for a while.
kubectl -n "$NS" create configmap hold >/dev/null
kubectl -n "$NS" patch configmap hold --type merge -p '{"metadata":{"finalizers":["e2e.agent-sandbox.dev/hold"]}}' >/dev/null
kubectl delete namespace "$NS" --wait=false >/dev/null
t "all Sandboxes go while it is Terminating" within 60 none_left
refused "a Sandbox is refused meanwhile" "because it is being terminated" create late
kubectl -n "$NS" patch configmap hold --type merge -p '{"metadata":{"finalizers":null}}' >/dev/null
t "the namespace's deletion ends" kubectl wait --for=delete "namespace/$NS" --timeout 90s
is "no pod of it is left" "" "$(kubectl get pods -A -o name --field-selector "metadata.namespace=$NS")"
refused "a Sandbox in a namespace that is not there is refused" 'namespaces "[^"]*" not found' \
    create late
