# Delete, and the cluster's garbage collector.
. "$(dirname "$0")/lib.sh"

# owned NAME UID [BLOCKS]: a ConfigMap that belongs to a Sandbox of that name.
owned() {
    jq -n --arg name "$1" --arg uid "$2" --argjson blocks "${3:-false}" '{apiVersion: "v1", kind: "ConfigMap", metadata: {$name,
        ownerReferences: [{apiVersion: "agents.x-k8s.io/v1beta1", kind: "Sandbox", $name, $uid, blockOwnerDeletion: $blocks}]}}' |
        kubectl -n "$NS" create -f - >/dev/null
}
is_gone() { [ -z "$(kubectl -n "$NS" get "$@" --ignore-not-found -o name)" ]; }
delete() { api DELETE "$B/$1" "$2" "${@:3}"; }

check_113() { # delete answers with a Status
    make a113
    local uid
    uid=$(q .metadata.uid)
    delete a113 '{"propagationPolicy":"Background"}'
    is "200 Status Success a113 agents.x-k8s.io sandboxes $uid" "$CODE $(q '"\(.kind) \(.status) \(.details.name) \(.details.group) \(.details.kind) \(.details.uid)"')"
    only aggregator || return
    make a113b
    kc delete sandbox a113b
    is 0 $RC
    like '^sandbox.agents.x-k8s.io "a113b" deleted' "$OUT"
}

check_114() { # a finalizer holds it
    make a114 '.metadata.finalizers = ["contract.test/f"]'
    delete a114 ""
    is "200 Sandbox 0 2" "$CODE $(q '"\(.kind) \(.metadata.deletionGracePeriodSeconds) \(.metadata.generation)"')"
    like '^20.*Z$' "$(q .metadata.deletionTimestamp)"
    local since
    since=$(q .metadata.deletionTimestamp)
    api GET "$B"
    has a114 "$(q '.items[].metadata.name')"
    sleep 1
    delete a114 ""
    is "200 $since 2" "$CODE $(q '"\(.metadata.deletionTimestamp) \(.metadata.generation)"')"
    merge "$B/a114" '{"metadata":{"finalizers":null}}'
}

check_115() { # taking the last finalizer away ends it
    make a115 '.metadata.finalizers = ["contract.test/f"]'
    delete a115 ""
    watch_open "last-$ROAD" "$B?watch=true&resourceVersion=$(version)&fieldSelector=metadata.name%3Da115"
    merge "$B/a115" '{"metadata":{"finalizers":null}}'
    is "200 Sandbox" "$CODE $(q .kind)"
    came "last-$ROAD" 1
    is "DELETED a115" "$(events "last-$ROAD")"
    watch_close "last-$ROAD"
    api GET "$B/a115"
    code 404
}

check_116() { # no new finalizer while it is going
    make a116 '.metadata.finalizers = ["contract.test/f"]'
    delete a116 ""
    merge "$B/a116" '{"metadata":{"finalizers":["contract.test/f","contract.test/g"]}}'
    refused 422 Invalid
    cause FieldValueForbidden metadata.finalizers 'Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"contract.test/g"}'
    merge "$B/a116" '{"metadata":{"finalizers":null}}'
}

check_117() { # the name is taken until it has gone
    make a117 '.metadata.finalizers = ["contract.test/f"]'
    delete a117 ""
    api POST "$B" "$(sandbox a117)"
    refused 409 AlreadyExists 'object is being deleted: sandboxes.agents.x-k8s.io "a117" already exists'
    merge "$B/a117" '{"metadata":{"finalizers":null}}'
}

check_118() { # foreground: what belongs to it goes first
    only aggregator || return
    make a118
    owned a118 "$(q .metadata.uid)" true
    kubectl -n "$NS" patch configmap a118 --type merge -p '{"metadata":{"finalizers":["contract.test/hold"]}}' >/dev/null
    kc delete sandbox a118 --cascade=foreground --wait=false
    soon 15 configmap_is_going a118
    api GET "$B/a118"
    is '200 ["foregroundDeletion"]' "$CODE $(q -c .metadata.finalizers)"
    kubectl -n "$NS" patch configmap a118 --type merge -p '{"metadata":{"finalizers":null}}' >/dev/null
    soon 15 is_gone sandbox/a118
    soon 1 is_gone configmap/a118
}
configmap_is_going() { [ -n "$(kubectl -n "$NS" get configmap "$1" -o 'jsonpath={.metadata.deletionTimestamp}')" ]; }

check_119() { # orphan: what belongs to it stays, without an owner
    only aggregator || return
    make a119
    owned a119 "$(q .metadata.uid)"
    kc delete sandbox a119 --cascade=orphan
    soon 15 is_gone sandbox/a119
    sleep 1
    is '' "$(kubectl -n "$NS" get configmap a119 -o 'jsonpath={.metadata.ownerReferences}')"
}

check_120() { # background: it goes at once, what belongs to it soon after
    only aggregator || return
    make a120
    owned a120 "$(q .metadata.uid)"
    kc delete sandbox a120 --cascade=background --wait=false
    soon 1 is_gone sandbox/a120
    soon 15 is_gone configmap/a120
}

check_121() { # what belongs to a Sandbox that never was is collected
    only aggregator || return
    owned a121 11111111-2222-4333-8444-555555555555
    soon 45 is_gone configmap/a121
}

check_123() { # preconditions
    make a123
    delete a123 '{"preconditions":{"uid":"wrong"}}'
    refused 409 Conflict "the UID in the precondition (wrong) does not match the UID in record"
    delete a123 '{"preconditions":{"resourceVersion":"1"}}'
    refused 409 Conflict "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record ($RV)"
    delete a123 "{\"preconditions\":{\"resourceVersion\":\"$RV\"}}"
    code 200
}

check_124() { # two policies at once
    make a124
    delete a124 '{"orphanDependents":true,"propagationPolicy":"Background"}'
    refused 422 Invalid "orphanDependents and deletionPropagation cannot be both set"
    delete a124 '{"propagationPolicy":"Nope"}'
    refused 422 Invalid 'propagationPolicy: Unsupported value: "Nope": supported values: "Foreground", "Background", "Orphan", "nil"'
}

check_125() { # every apiVersion of DeleteOptions
    local options
    for options in '{"apiVersion":"agents.x-k8s.io/v1beta1","kind":"DeleteOptions"}' '{}' '{"apiVersion":"v1","kind":"DeleteOptions"}' '{"apiVersion":"meta.k8s.io/v1","kind":"DeleteOptions"}'; do
        make a125
        delete a125 "$options"
        code 200
    done
}

check_126() { # a collection by label
    make a126 '.metadata.labels = {x: "y"}'
    make a126b '.metadata.labels = {x: "y"}'
    make a126c
    api DELETE "$B?labelSelector=x%3Dy"
    is "200 SandboxList a126 a126b" "$CODE $(q '"\(.kind) \([.items[].metadata.name] | join(" "))"')"
    api GET "$B"
    is a126c "$(q '.items[].metadata.name' | grep a126)"
}

check_127() { # a namespace with 500 Sandboxes goes within a minute
    only direct || return
    local full=$NS-full began
    kubectl create namespace "$full" >/dev/null
    seq 500 | sed "s|.*|url=\"${URL[direct]}$A/namespaces/$full/sandboxes\"\noutput=/dev/null|" >"$WORK/many"
    sandbox x 'del(.metadata.name) | .metadata.generateName = "m-"' >"$WORK/generate"
    curl -sSZ --parallel-max 8 --cacert "${CA[direct]}" --cert "$WORK/admin.crt" --key "$WORK/admin.key" -H 'Content-Type: application/json' \
        --data-binary "@$WORK/generate" -K "$WORK/many" || fail "creating failed"
    is 500 "$(kubectl -n "$full" get sandboxes -o name | wc -l)"
    began=$SECONDS
    kubectl delete namespace "$full" --timeout 300s >/dev/null || fail "it stays"
    took 60 $((SECONDS - began)) "the end of the namespace"
}

check_129() { # quota: the cluster counts what is used; one too many is not refused yet (docs/kubernetes-api.md, 30)
    only aggregator || return
    namespace "$NS-quota"
    local path=$A/namespaces/$NS-quota/sandboxes left=2
    used() { [ "$(kubectl -n "$NS-quota" get quota q -o 'jsonpath={.status.used.count/sandboxes\.agents\.x-k8s\.io}')" = "$1" ]; }
    api POST "$path" "$(sandbox a)" && code 201
    api POST "$path" "$(sandbox b)" && code 201
    kubectl -n "$NS-quota" create quota q --hard count/sandboxes.agents.x-k8s.io=2 >/dev/null
    soon 15 used 2
    api POST "$path" "$(sandbox c)"
    if asks_kubernetes; then refused 403 Forbidden "exceeded quota: q" && left=1; else code 201; fi
    api DELETE "$path/a" # makes the controller count again
    soon 30 used $left
}

run_checks
