#!/bin/bash
# Uninstalling leaves the cluster working and the data in place; installing again brings everything back.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
namespace "$NS"
create box >/dev/null
t "a Sandbox is ready" kubectl -n "$NS" wait --for=condition=Ready sandbox/box --timeout 60s
pod=$(value pod/box .metadata.uid)
box=$(value sandbox/box .metadata.uid)

out=$("$ROOT/hack/uninstall" 2>&1)
is "hack/uninstall succeeds" 0 $?
like "and says what remains of the installation" "persistentvolumeclaim/data-etcd-0" "$out"
like "and which children of Sandboxes" "pod -n $NS box" "$out"
refused "the group is gone" 'could not find the requested resource' kubectl get --raw "$GROUP"
kubectl create namespace "$NS-other" >/dev/null
t "IL-126: another namespace can be deleted" kubectl delete namespace "$NS-other" --timeout 60s
# The garbage collector looks again after up to 30 s when it meets owners of a kind it does not know.
sleep 35
is "the pod is still the same" "$pod" "$(value pod/box .metadata.uid)"

t "hack/install again" "$ROOT/hack/install" --dev
t "the Sandbox is listed again" within 30 kubectl -n "$NS" get sandbox box
is "it is the same" "$box" "$(value sandbox/box .metadata.uid)"
is "its pod as well" "$pod" "$(value pod/box .metadata.uid)"
t "it can be deleted" kubectl -n "$NS" delete sandbox box --timeout 60s
t "and its pod goes with it" within 60 gone "$NS" pod/box
