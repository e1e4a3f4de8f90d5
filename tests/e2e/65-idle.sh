#!/bin/bash
# A Sandbox that nobody uses is suspended, and comes back with its data when somebody does.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
namespace "$NS"
[ "$CLUSTER_NODE" != fake ] || { skip "idle Sandboxes" "the cluster has a fake node" && exit 0; }
ACTIVITY=$GROUP/namespaces/$NS/sandboxes
ns() { kubectl -n "$NS" "$@"; }
# report NAME [QUERY]: activity, as its right allows; prints the message of the answer.
report() { request POST "$ACTIVITY/$1/activity${2:-}" | grep -o '"message":"[^"]*"'; }
idle_since() { value "$1" '.metadata.annotations.sandbox-apiserver/idle-since'; }
# suspended KIND/NAME
suspended() { [ "$(value "$1" .spec.operatingMode)" = Suspended ]; }

wrong() { sed 's/idle-timeout: .*/idle-timeout: soon/' "$ROOT/examples/idle/sandbox.yaml" | ns create -f -; }
refused "an idle timeout that is none is refused" 'idle-timeout.*must be a duration' wrong
sed 's/idle-timeout: .*/idle-timeout: 20s/' "$ROOT/examples/idle/sandbox.yaml" | ns apply -f - >/dev/null
t "the example runs" ns wait --for=condition=Ready sandbox/idle --timeout 60s
volume=$(value pvc/data-idle .spec.volumeName)
end=$((SECONDS + 30))
while [ $SECONDS -lt $end ]; do
    report idle >/dev/null
    sleep 1
done
is "in use it runs on, longer than its timeout" Running "$(value sandbox/idle .spec.operatingMode)"
left=$(date +%s)
t "left alone it is suspended" within 60 suspended sandbox/idle
took=$(($(date +%s) - left))
is "not before its time ($took s)" yes "$([ $took -ge 18 ] && echo yes)"
t "and says so as any suspended one" ns wait --for=condition=Suspended sandbox/idle --timeout 60s
t "its pod is gone" within 30 gone "$NS" pod/idle
is "its volume claim is not" "Bound $volume" "$(value pvc/data-idle .status.phase) $(value pvc/data-idle .spec.volumeName)"
like "since when is written down" '^[0-9-]+T[0-9:]+Z$' "$(idle_since sandbox/idle)"
like "an event tells why" 'Suspended after 20s without activity' "$(ns get events.events.k8s.io -o 'jsonpath={.items[*].note}')"
is "activity wakes it, and waits until it is ready" '"message":"woken"' "$(report idle '?wait=30s')"
is "it is ready then" True "$(value sandbox/idle '.status.conditions[?(@.type=="Ready")].status')"
lacks containers "its data is there" || is "its data is there" 2 "$(ns exec idle -- grep -c started /data/starts)"
is "nothing is left of its sleep" "" "$(idle_since sandbox/idle)"

ns patch sandbox idle --type merge -p '{"spec":{"operatingMode":"Suspended"}}' >/dev/null
t "suspended by its user" ns wait --for=condition=Suspended sandbox/idle --timeout 60s
report idle >/dev/null
is "activity does not wake it" "409 Suspended" "$(cat "$WORK/code") $(value sandbox/idle .spec.operatingMode)"

# The right to report is a right of its own.
ns create serviceaccount router >/dev/null
ns create role reporter --verb=create --resource=sandboxes/activity >/dev/null
ns create rolebinding reporter --role=reporter --serviceaccount="$NS:router" >/dev/null
as=(--as "system:serviceaccount:$NS:router")
is "who may report" yes "$(ns auth can-i create sandboxes --subresource activity "${as[@]}" 2>&1)"
is "may not read" no "$(ns auth can-i get sandboxes "${as[@]}" 2>&1)"
