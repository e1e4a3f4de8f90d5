#!/bin/bash
# Server-side apply by a real kubectl: made and unchanged, conflicts and force, unset by omission, the change from client-side
# apply, /status and /scale, and who owns what afterwards.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
namespace "$NS"

# apply MANAGER [KUBECTL-ARGUMENT...]: what stands on the standard input.
apply() { kubectl -n "$NS" apply --server-side --field-manager "$1" "${@:2}" -f - 2>&1; }
# managers KIND/NAME: `MANAGER OPERATION SUBRESOURCE` of each entry, in order.
managers() { kubectl -n "$NS" get "$1" --show-managed-fields -o 'jsonpath={range .metadata.managedFields[*]}{.manager} {.operation} {.subresource}{"\n"}{end}'; }
# labelled NAME LABEL...: a partial Sandbox that is only meant to add labels.
labelled() {
    local name=$1
    shift
    printf 'apiVersion: agents.x-k8s.io/v1beta1\nkind: Sandbox\nmetadata: {name: %s, labels: {%s}}\n' "$name" "$(IFS=, && echo "$*")"
}
applied_by_jane() { labelled box "by: jane" | apply jane --as jane; }
image() { labelled "$1" | sed 's/, labels: {}//' && printf 'spec: {podTemplate: {spec: {containers: [{name: main, image: "%s"}]}}}\n' "$2"; }

# --- made, unchanged, changed ---
is "apply makes what is not there" "sandbox.agents.x-k8s.io/box serverside-applied" "$(sandbox box | apply alice)"
t "the Sandbox is ready" kubectl -n "$NS" wait --for=condition=Ready sandbox/box --timeout 60s
has "the applier owns the spec" "alice Apply " "$(managers sandbox/box)"
has "the controller the status" "sandbox-controller Update status" "$(managers sandbox/box)"
like "an applier comes before those who update" '^alice Apply' "$(managers sandbox/box | head -n 1)"
before=$(value sandbox/box .metadata.resourceVersion)
sandbox box | apply alice >/dev/null
is "a second apply changes nothing" "$before" "$(value sandbox/box .metadata.resourceVersion)"
out=$(labelled box "dry: run" | apply carol --dry-run=server -o 'jsonpath={.metadata.labels.dry}')
is "a dry run says what would be" run "$out"
is "and does nothing" "$before" "$(value sandbox/box .metadata.resourceVersion)"

# --- two appliers ---
labelled box "team: blue" | apply bob >/dev/null
is "another one adds a label" blue "$(value sandbox/box .metadata.labels.team)"
is "and leaves the rest" "$IMAGE" "$(value sandbox/box '.spec.podTemplate.spec.containers[0].image')"
out=$(image box other:1 | apply bob)
has "a field of somebody else is a conflict" 'Apply failed with 1 conflict: conflict with "alice"' "$out"
has "which names the field" '.spec.podTemplate.spec.containers[name="main"].image' "$out"
is "nothing was changed" "$IMAGE" "$(value sandbox/box '.spec.podTemplate.spec.containers[0].image')"
is "nor was the label unset" blue "$(value sandbox/box .metadata.labels.team)"
image box "$IMAGE" | apply bob >/dev/null
is "the same value is shared, and what is left out goes" "" "$(value sandbox/box .metadata.labels.team)"
image box other:1 | apply bob --force-conflicts >/dev/null
is "force takes the field" other:1 "$(value sandbox/box '.spec.podTemplate.spec.containers[0].image')"
has "then the first one is in conflict" 'conflict with "bob"' "$(sandbox box | apply alice)"
sandbox box | apply alice --force-conflicts >/dev/null
is "and takes it back" "$IMAGE" "$(value sandbox/box '.spec.podTemplate.spec.containers[0].image')"
kubectl -n "$NS" label sandbox box team=red >/dev/null
has "who labels is in the way of who applies" 'conflict with "kubectl-label"' "$(labelled box "team: blue" | apply bob)"

# --- from kubectl's own apply to the server's ---
sandbox old "operatingMode: Running" | kubectl -n "$NS" apply -f - >/dev/null
annotation='.metadata.annotations.kubectl\.kubernetes\.io/last-applied-configuration'
like "client-side apply left its annotation" '"kind":"Sandbox"' "$(value sandbox/old "$annotation")"
out=$(sandbox old "operatingMode: Suspended" | kubectl -n "$NS" apply --server-side -f - 2>&1)
is "server-side apply goes on from it without a conflict" "sandbox.agents.x-k8s.io/old serverside-applied" "$out"
is "with the new value" Suspended "$(value sandbox/old .spec.operatingMode)"
has "the fields are the applier's" "kubectl Apply " "$(managers sandbox/old)"
is "and no longer those of the client-side apply" "" "$(managers sandbox/old | grep client-side-apply)"
out=$(sandbox old "operatingMode: Running" | kubectl -n "$NS" apply -f - 2>&1)
has "the way back works too" "sandbox.agents.x-k8s.io/old configured" "$out"

# --- what else may be applied ---
status() { labelled box | sed 's/, labels: {}//' && printf 'status: {conditions: [{type: Seen, status: "True", reason: Test, message: "", lastTransitionTime: "2020-01-01T00:00:00Z"}]}\n'; }
has "conditions are one field, and the controller's" 'conflict with "sandbox-controller" with subresource "status"' \
    "$(status | apply watcher --subresource status)"
is "force writes them" "sandbox.agents.x-k8s.io/box serverside-applied" "$(status | apply watcher --subresource status --force-conflicts)"
status | apply watcher >/dev/null
is "the main endpoint takes no status" "" "$(managers sandbox/box | grep -x 'watcher Apply ')"

pool() {
    cat <<Y
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxWarmPool
metadata: {name: pool}
spec: {replicas: $1, sandboxTemplateRef: {name: nobody}}
Y
}
pool 0 | apply alice >/dev/null
kubectl -n "$NS" scale sandboxwarmpool pool --replicas 1 >/dev/null
is "scale scales" 1 "$(value sandboxwarmpool/pool .spec.replicas)"
has "whoever scaled owns the number" "kubectl Update scale" "$(managers sandboxwarmpool/pool)"
has "and is in the way of who applied it" 'conflict with "kubectl" with subresource "scale"' "$(pool 0 | apply alice)"

# --- refusals ---
kubectl -n "$NS" create role patcher --verb get,patch --resource sandboxes.agents.x-k8s.io >/dev/null
kubectl -n "$NS" create rolebinding jane-patcher --role patcher --user jane >/dev/null
t "who may patch may apply" within 10 applied_by_jane
has "but not make anything" 'User "jane" cannot create resource "sandboxes"' "$(sandbox fresh | apply jane --as jane)"
is "so nothing was made" "" "$(kubectl -n "$NS" get sandbox fresh --ignore-not-found)"
out=$( (sandbox box && echo "  nonsense: 1") | apply alice --validate=strict)
has "an unknown field" '.spec.nonsense: field not declared in schema' "$out"
