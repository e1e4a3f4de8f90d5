#!/bin/bash
# The cluster's own controllers at their work on our kinds: garbage collector in both directions, namespace deletion, quota's counting.
# shellcheck source=tests/compat/lib.sh
. "$(dirname "$0")/lib.sh"
namespace "$NS"
# With their groups, for others may have kinds of the same names.
KINDS=(sandbox.agents.x-k8s.io sandbox{claim,template,warmpool}.extensions.agents.x-k8s.io)
declare -A KIND=([${KINDS[0]}]=Sandbox [${KINDS[1]}]=SandboxClaim [${KINDS[2]}]=SandboxTemplate [${KINDS[3]}]=SandboxWarmPool [configmap]=ConfigMap)
# gv KIND: its apiVersion.
gv() { case $1 in configmap) echo v1 ;; *) echo "${1#*.}/v1beta1" ;; esac; }

# object KIND NAME [METADATA]: one that has no pods. METADATA: more members, as JSON without the braces.
object() {
    local spec
    case $1 in
    sandbox.*) spec='{operatingMode: Suspended, podTemplate: {spec: {containers: [{name: main, image: a}]}}}' ;;
    sandboxclaim.*) spec='{warmPoolRef: {name: nobody}}' ;;
    sandboxtemplate.*) spec='{podTemplate: {spec: {containers: [{name: main, image: a}]}}}' ;;
    sandboxwarmpool.*) spec='{replicas: 0, sandboxTemplateRef: {name: nobody}}' ;;
    configmap) printf -- '---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: "%s"%s}\n' "$2" "${3:+, $3}" && return ;;
    esac
    printf -- '---\napiVersion: %s\nkind: %s\nmetadata: {name: "%s"%s}\nspec: %s\n' "$(gv "$1")" "${KIND[$1]}" "$2" "${3:+, $3}" "$spec"
}
# owned_by KIND NAME [MORE]: metadata that names the owner.
owned_by() {
    printf '"ownerReferences": [{"apiVersion": "%s", "kind": "%s", "name": "%s", "uid": "%s"%s}]' \
        "$(gv "$1")" "${KIND[$1]}" "$2" "$(value "$1/$2" .metadata.uid)" "${3:+, $3}"
}
HOLD='"finalizers": ["compat.test/hold"]'
make() { object "$@" | k create -f - >/dev/null; }
release() { k patch "$@" --type merge -p '{"metadata":{"finalizers":null}}' >/dev/null; }
orphaned() { [ -z "$(value "$1" .metadata.ownerReferences)" ]; }
going() { [ -n "$(value "$1" .metadata.deletionTimestamp)" ]; }
still() { kubectl -n "$NS" get "$1" -o name >/dev/null; }

# --- our kinds own, and are owned; in the background ---
make configmap parent
for kind in "${KINDS[@]}"; do
    make "$kind" owner
    make configmap "of-$kind" "$(owned_by "$kind" owner)"
    make "$kind" child "$(owned_by configmap parent)"
done
k delete configmap parent >/dev/null
for kind in "${KINDS[@]}"; do k delete "$kind" owner --wait=false >/dev/null; done
for kind in "${KINDS[@]}"; do
    t "what a ${KIND[$kind]} owned is collected" within 60 gone "$NS" "configmap/of-$kind"
    t "a ${KIND[$kind]} is collected when its owner went" within 60 gone "$NS" "$kind/child"
done
make "${KINDS[0]}" lost '"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "parent", "uid": "00000000-0000-4000-8000-000000000000"}]'
t "one whose owner never was is collected" within 60 gone "$NS" "${KINDS[0]}/lost"

# --- in the foreground: the owner waits for those that block it ---
for kind in "${KINDS[@]}"; do
    make "$kind" front
    make configmap "in-$kind" "$(owned_by "$kind" front '"blockOwnerDeletion": true'), $HOLD"
    make configmap "over-$kind"
    make "$kind" under "$(owned_by configmap "over-$kind" '"blockOwnerDeletion": true'), $HOLD"
    k delete "$kind/front" "configmap/over-$kind" --cascade=foreground --wait=false >/dev/null
done
for kind in "${KINDS[@]}"; do
    t "foreground: what a ${KIND[$kind]} owns goes first" within 60 going "configmap/in-$kind"
    like "the ${KIND[$kind]} waits" foregroundDeletion "$(value "$kind/front" .metadata.finalizers)"
    t "an owned ${KIND[$kind]} goes before its owner" within 60 going "$kind/under"
    t "which waits for it" still "configmap/over-$kind"
    release configmap "in-$kind"
    release "$kind" under
done
for kind in "${KINDS[@]}"; do t "then both ${KIND[$kind]} and owner end" within 60 gone "$NS" "$kind/front" "$kind/under" "configmap/over-$kind"; done

# --- orphans stay ---
make configmap parent
for kind in "${KINDS[@]}"; do
    make "$kind" leaver
    make configmap "left-by-$kind" "$(owned_by "$kind" leaver)"
    make "$kind" left "$(owned_by configmap parent)"
    k delete "$kind" leaver --cascade=orphan --wait=false >/dev/null
done
k delete configmap parent --cascade=orphan --wait=false >/dev/null
for kind in "${KINDS[@]}"; do
    t "orphan: what a ${KIND[$kind]} owned has no owner any more" within 60 orphaned "configmap/left-by-$kind"
    t "the ${KIND[$kind]} is gone" within 60 gone "$NS" "$kind/leaver"
    t "a ${KIND[$kind]} that was owned stays" within 60 orphaned "$kind/left"
done

# --- quota: its controller counts ours. Refusing is the work of kube-apiserver's admission, which sees only what it stores itself. ---
counted() { [ "$(kubectl -n "$NS" get quota count -o json | jq -c .status.used)" = "$1" ]; }
if ! lacks quota "IL-140: the quota controller counts Sandboxes and pools"; then
    k create quota count --hard=count/sandboxes.agents.x-k8s.io=5,count/sandboxwarmpools.extensions.agents.x-k8s.io=5 >/dev/null
    t "IL-140: the quota controller counts Sandboxes and pools" within 60 counted '{"count/sandboxes.agents.x-k8s.io":"1","count/sandboxwarmpools.extensions.agents.x-k8s.io":"1"}'
fi

# --- the end of a namespace with all four kinds in it, held by finalizers ---
for kind in "${KINDS[@]}"; do make "$kind" held "$HOLD"; done
kubectl delete namespace "$NS" --wait=false >/dev/null
remaining() { [ "$(kubectl get namespace "$NS" -o json | jq -r '.status.conditions[] | select(.type == "NamespaceFinalizersRemaining") | .status')" = True ]; }
t "the namespace says that finalizers hold it" within 60 remaining
like "which and how many" 'compat.test/hold in 4 resource instances' "$(kubectl get namespace "$NS" -o json | jq -r '.status.conditions[].message')"
for kind in "${KINDS[@]}"; do like "and that a ${KIND[$kind]} is left" "${kind%%.*}(es|s)\.${kind#*.} has 1 resource instances" "$(kubectl get namespace "$NS" -o json | jq -r '.status.conditions[].message')"; done
for kind in "${KINDS[@]}"; do release "$kind" held; done
t "without them it ends" kubectl wait --for=delete "namespace/$NS" --timeout 90s
