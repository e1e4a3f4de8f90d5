#!/bin/bash
# Recorded scenes: scripts of API operations, and what the original controllers made of them on a real control plane. They come
# from outside the project, so this skips where they are not at hand ($AGENT_SANDBOX_SHARED, or ../shared beside the tree).
# Which checks may differ, and why, is in docs/reconcile.md; all others must pass, and those must differ.
# The scenes want nodes on which every pod runs at once, no default StorageClass and short periods of pools: all is put back.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
SHARED=${AGENT_SANDBOX_SHARED:-$ROOT/../shared}
[ -d "$SHARED/data/scenes" ] || { skip "recorded scenes" "they are not at hand" && exit 0; }
[ "$CLUSTER_NODE" = real ] || { skip "recorded scenes" "the server is not in this cluster" && exit 0; }
FAKE_NODE=$(find "$(dirname "$CLUSTER_BIN")"/helpers-* -name fake-node -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d' ' -f2)
REAL_NODE=$(kubectl get nodes -o 'jsonpath={.items[0].metadata.name}')
FAKE_NODES=(scenes-1 scenes-2)
DEFAULT_CLASS=storageclass.kubernetes.io/is-default-class
PERIODS=(--sandbox-warm-pool-readiness-grace-period=20s --sandbox-warm-pool-unschedulable-recheck-interval=5s)

nodes=()
put_back() {
    kill "${nodes[@]}" 2>/dev/null
    kubectl delete node --ignore-not-found "${FAKE_NODES[@]}" >/dev/null
    kubectl uncordon "$REAL_NODE" >/dev/null
    kubectl annotate --overwrite storageclass standard "$DEFAULT_CLASS=true" >/dev/null
    finish
}
trap put_back EXIT

with_arguments "${PERIODS[@]}" || bail "the server does not start with short periods"
kubectl annotate --overwrite storageclass standard "$DEFAULT_CLASS=false" >/dev/null
# Only now: the server's own pod must not come to a fake node.
for name in "${FAKE_NODES[@]}"; do
    "$FAKE_NODE" -kubeconfig "$KUBECONFIG" -node "$name" >"$WORK/$name.log" 2>&1 &
    nodes+=($!)
done
fake_nodes_are_ready() { kubectl wait --for=condition=Ready node/scenes-1 node/scenes-2 --timeout 5s; }
within 60 fake_nodes_are_ready || bail "the fake nodes are not ready: $(tail -n 2 "$WORK"/scenes-*.log)"
kubectl cordon "$REAL_NODE" >/dev/null

"$ROOT/tests/e2e/scenes" "$SHARED/tools/scenes/scenes.py" "$SHARED/data/scenes" "$ROOT/docs/reconcile.md" -j 4 --server "$CLUSTER_API" \
    --ca "$CLUSTER_CA" --cert "$CLUSTER_PKI/admin.crt" --key "$CLUSTER_PKI/admin.key" >"$WORK/scenes" 2>&1
if ! grep -qE '^(not )?ok ' "$WORK/scenes"; then
    not_ok "the scenes can be played" "$(cat "$WORK/scenes")"
    exit 1
fi
while IFS= read -r line; do
    case $line in
    "ok "*) ok "${line#ok }" ;;
    "not ok "*) not_ok "${line#not ok }" ;;
    *) echo "#  $line" | cut -c1-600 ;;
    esac
done <"$WORK/scenes"
