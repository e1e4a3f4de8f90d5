#!/bin/bash
# The server's pod is replaced: the API groups come back, objects are the same, watches go on, Sandboxes run on.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
namespace "$NS"

create before >/dev/null
t "a Sandbox is ready" kubectl -n "$NS" wait --for=condition=Ready sandbox/before --timeout 60s
pod=$(value pod/before .metadata.uid)
old=$(value sandbox/before '.metadata.uid}/{.metadata.resourceVersion')
# An informer as controllers have it: kubectl's own watch ends with its connection, so a list and a watch from its version.
version=$(kubectl get --raw "$GROUP/namespaces/$NS/sandboxes" | jq -r .metadata.resourceVersion)

began=$EPOCHREALTIME
t "the server's pod is deleted, and another one becomes ready" lose_server
services_available
t "the list is served" within 30 kubectl -n "$NS" get sandboxes
echo "# served again $(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }') s after the deletion"
is "the object is the same" "$old" "$(value sandbox/before '.metadata.uid}/{.metadata.resourceVersion')"
is "its pod runs on" "$pod" "$(value pod/before .metadata.uid)"

create after >/dev/null
t "a new Sandbox becomes ready" kubectl -n "$NS" wait --for=condition=Ready sandbox/after --timeout 60s
events=$(timeout 5 curl -sN --cacert "$CLUSTER_CA" --cert "$CLUSTER_PKI/admin.crt" --key "$CLUSTER_PKI/admin.key" \
    "$CLUSTER_API$GROUP/namespaces/$NS/sandboxes?watch=true&resourceVersion=$version&timeoutSeconds=3")
is "a watch resumes from a version of before the restart" "ADDED after" \
    "$(printf '%s\n' "$events" | jq -r 'select(.type == "ADDED") | "\(.type) \(.object.metadata.name)"')"
like "and sees all that came after" '^MODIFIED after True$' "$(printf '%s\n' "$events" |
    jq -r '"\(.type) \(.object.metadata.name) \([.object.status.conditions[]? | select(.type == "Ready") | .status] | first)"')"

# --- its etcd ---
t "etcd comes back after its pod was deleted" lose_store
t "the same objects are served again" within 60 kubectl -n "$NS" get sandbox before after
t "and can be written" within 30 kubectl -n "$NS" label sandbox after e2e=yes --overwrite
