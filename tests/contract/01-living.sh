# With the reconciler at work: what clients wait for and look at while a Sandbox lives.
. "$(dirname "$0")/lib.sh"
ROADS=aggregator
living() { sandbox "$1" ".spec.podTemplate.spec = {terminationGracePeriodSeconds: 1, containers: [{name: \"main\", image: \"$IMAGE\", command: [\"sleep\", \"100000\"]}]}"; }

check_209() { # kubectl wait returns promptly, for a condition and for the deletion
    [ "$CLUSTER_NODE" = real ] || { skip "the cluster has a fake node" && return; }
    living waited >"$WORK/waited.json"
    kc create -f "$WORK/waited.json"
    kc wait sandbox/waited --for=condition=Ready --timeout=150s
    is "0 sandbox.agents.x-k8s.io/waited condition met" "$RC $OUT"
    local began=$EPOCHREALTIME
    kc wait sandbox/waited --for=condition=Ready --timeout=10s
    is "0 sandbox.agents.x-k8s.io/waited condition met" "$RC $OUT"
    took 2 "$(since "$began")"
    kubectl -n "$NS" wait sandbox/waited --for=delete --timeout=100s >"$WORK/wait" 2>&1 &
    local waiter=$!
    sleep 0.5
    kc delete sandbox waited
    began=$EPOCHREALTIME
    wait $waiter || fail "wait --for=delete: $(<"$WORK/wait")"
    took 2 "$(since "$began")"
}

described() { kubectl -n "$NS" describe sandbox told | grep -A20 '^Events:' | grep -E 'Normal|Warning'; }
check_210() { # kubectl describe shows the events recorded for it
    living told >"$WORK/told.json"
    kc create -f "$WORK/told.json"
    soon 20 described
    kc get events -o json
    like '^agents.x-k8s.io/v1beta1 Sandbox told [0-9a-f-]{36}$' \
        "$(jq -r '.items[] | .involvedObject | select(.name == "told") | "\(.apiVersion) \(.kind) \(.name) \(.uid)"' <<<"$OUT")"
    kc delete sandbox told --wait=false
}

run_checks
