#!/bin/bash
# Pools and claims with containers that really run: claims bound in their POST, the refill, a template that changes under both update
# strategies, the NetworkPolicy of a template, many Sandboxes at once, and a namespace that goes with all of it in it.
# Names of steps carry the ids of the behaviour checklist (tests/controllers.list).
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
namespace "$NS"
[ "$CLUSTER_NODE" != fake ] || { skip "pools" "the cluster has a fake node" && exit 0; }
CLAIMS=/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/$NS/sandboxclaims

ready_members() { value sandboxwarmpool/p .status.readyReplicas; }
full() { [ "$(ready_members)" = "$1" ] && [ "$(value sandboxwarmpool/p .status.replicas)" = "$1" ]; }
pool_hash() { value sandboxwarmpool/p .status.selector; }
members() { kubectl -n "$NS" get sandboxes -l "$(pool_hash)" -o 'jsonpath={range .items[*]}{.metadata.uid}{"\n"}{end}' | sort; }
# colours: what the pods of the pool's members were made with, each once.
colours() {
    kubectl -n "$NS" get pods -l "$(pool_hash)" -o 'jsonpath={range .items[*]}{.spec.containers[0].env[0].value}{"\n"}{end}' | sort -u | xargs
}
rolled() { full 5 && [ "$(colours)" = "$1" ]; }
paint() {
    kubectl -n "$NS" patch sandboxtemplate t --type json \
        -p "[{\"op\":\"replace\",\"path\":\"/spec/podTemplate/spec/containers/0/env/0/value\",\"value\":\"$1\"}]" >/dev/null
}

template t red | kubectl -n "$NS" create -f - >/dev/null
pool p t 5 | kubectl -n "$NS" create -f - >/dev/null
t "a pool of five gets five ready members" within 90 full 5
before=$(members)

policy=$(kubectl -n "$NS" get networkpolicy t-network-policy -o json)
is "the template's policy selects its pods" "$(value sandboxtemplate/t '.metadata.labels.agents\.x-k8s\.io/sandbox-template-ref-hash')" \
    "$(jq -r '.spec.podSelector.matchLabels["agents.x-k8s.io/sandbox-template-ref-hash"]' <<<"$policy")"
is "all five of them" 5 "$(kubectl -n "$NS" get pods -o name -l "agents.x-k8s.io/sandbox-template-ref-hash=$(jq -r '.spec.podSelector.matchLabels[]' <<<"$policy")" | wc -l)"
ROUTER='[{from: [{namespaceSelector: {matchLabels: {"kubernetes.io/metadata.name": "agent-sandbox-system"}},
    podSelector: {matchLabels: {app: "sandbox-router"}}}]}]'
t "only the router may connect" jq -e ".spec.ingress == $ROUTER" <<<"$policy"
is "nothing private may be connected to" '10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 169.254.0.0/16 fc00::/7 fe80::/10' \
    "$(jq -r '[.spec.egress[].to[].ipBlock.except[]] | join(" ")' <<<"$policy")"

# Five claims, each Ready in the answer to its POST.
bound=()
for i in 1 2 3 4 5; do
    answer=$(claim "c$i" p | request POST "$CLAIMS" -H 'Content-Type: application/yaml' --data-binary @-)
    bound+=("$(jq -r '"\(.status.sandbox.name) \([.status.conditions[]? | select(.type == "Ready") | .status] | first)"' <<<"$answer")")
done
is "C-t121 five claims are Ready in the replies to their POSTs" 5 "$(printf '%s\n' "${bound[@]}" | grep -c ' True$')"
is "C-t121 each has a Sandbox of its own" 5 "$(printf '%s\n' "${bound[@]}" | sort -u | wc -l)"
t "the pool fills up to five again" within 90 full 5
is "none of the members is one of the claimed" 0 "$(comm -12 <(members) <(echo "$before") | wc -l)"
claimed=$(kubectl -n "$NS" get pods -l '!agents.x-k8s.io/warm-pool-sandbox' -o 'jsonpath={range .items[*]}{.metadata.uid}{"\n"}{end}' | sort)
is "the pods of claims have left the pool" 5 "$(wc -l <<<"$claimed")"
name=${bound[0]% *}
is "C-t124 the claim owns its Sandbox" SandboxClaim/c1 "$(value "sandbox/$name" '.metadata.ownerReferences[0].kind')/$(value "sandbox/$name" '.metadata.ownerReferences[0].name')"
kubectl -n "$NS" get sandboxclaims --field-selector metadata.name=c1 -w -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}{"\n"}' >"$WORK/readiness" 2>&1 & # it may be over soon
watch=$!
t "C-t124 the claim is Ready" within 30 grep -qx True "$WORK/readiness"
kubectl -n "$NS" delete pod "$name" --wait=false >/dev/null
t "C-t124 without its pod the claim is not Ready" within 30 grep -qx False "$WORK/readiness"
kill $watch
t "C-t124 and Ready again with a new one" kubectl -n "$NS" wait --for=condition=Ready sandboxclaim/c1 --timeout 60s

# --- the template changes ---
kept=$(members)
paint blue
sleep 3
is "W-t120 OnReplenish: members stay when the template changes" "$kept" "$(members)"
is "W-t120 and so do their pods" red "$(colours)"
kubectl -n "$NS" delete sandbox "$(kubectl -n "$NS" get sandboxes -l "$(pool_hash)" -o 'jsonpath={.items[0].metadata.name}')" >/dev/null
t "W-t120 what is made later follows it" within 90 rolled "blue red"
kubectl -n "$NS" patch sandboxwarmpool p --type merge -p '{"spec":{"updateStrategy":{"type":"Recreate"}}}' >/dev/null
t "W-t121 Recreate: all stale members are replaced" within 120 rolled blue
paint green
t "W-t121 and again when the template changes" within 120 rolled green
is "claimed ones are left alone" "$(comm -12 <(echo "$claimed") <(kubectl -n "$NS" get pods -o 'jsonpath={range .items[*]}{.metadata.uid}{"\n"}{end}' | sort) | wc -l)" 4
kept=$(members)
kubectl -n "$NS" patch sandboxtemplate t --type merge -p '{"spec":{"podTemplate":{"metadata":{"labels":{"a":"b"}}}}}' >/dev/null
sleep 3
is "W-t124 metadata alone rolls nothing" "$kept" "$(members)"
kubectl -n "$NS" scale sandboxwarmpool p --replicas 2 >/dev/null
t "kubectl scale shrinks the pool" within 60 full 2

# --- many at once ---
for i in $(seq 12); do
    sandbox "many-$i"
    echo ---
done | kubectl -n "$NS" create -f - >/dev/null
t "S-t149 twelve Sandboxes made at once become ready" kubectl -n "$NS" wait --for=condition=Ready sandbox --timeout 120s \
    many-1 many-2 many-3 many-4 many-5 many-6 many-7 many-8 many-9 many-10 many-11 many-12

# --- the namespace goes ---
t "the namespace goes with pool, claims and Sandboxes in it" kubectl delete namespace "$NS" --timeout 150s
t "nothing of it is listed" gone_everywhere "$NS"
