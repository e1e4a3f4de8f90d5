# Servers that stop, restart and change their certificates, with the cluster looking on. Runs alone.
. "$(dirname "$0")/lib.sh"
ROADS=aggregator
SERVICES=(v1beta1.agents.x-k8s.io v1beta1.extensions.agents.x-k8s.io)

condition() { kubectl get apiservice "${1:-${SERVICES[0]}}" -o 'jsonpath={.status.conditions[?(@.type=="Available")].status} {.status.conditions[?(@.type=="Available")].reason} {.status.conditions[?(@.type=="Available")].message}'; }
is_available() { [[ $(condition "${SERVICES[0]}") == True* ]] && [[ $(condition "${SERVICES[1]}") == True* ]]; }
is_unavailable() { [[ $(condition) == False* ]]; }
scale_to() { kubectl -n "$SYSTEM" scale deployment sandbox-apiserver --replicas "$1" >/dev/null; }
server_pods() { kubectl -n "$SYSTEM" get pods -l app.kubernetes.io/component=server -o "jsonpath=$1"; }
# rolled_out [COUNT]: that many servers, and those that went have ended.
rolled_out() {
    kubectl -n "$SYSTEM" rollout status deployment/sandbox-apiserver --timeout 300s >/dev/null
    soon 60 servers_are "${1:-1}"
}
servers_are() { [ "$(server_pods '{.items[*].metadata.name}' | wc -w)" = "$1" ]; }
served() { kubectl -n "$NS" get sandboxes; }

# Whatever happens below, what belongs to a Sandbox that exists stays (check 122).
prepare() {
    make owner
    local n uid
    uid=$(q .metadata.uid)
    for n in 1 2 3; do
        jq -n --arg name "kept-$n" --arg uid "$uid" '{apiVersion: "v1", kind: "ConfigMap", metadata: {$name, ownerReferences:
            [{apiVersion: "agents.x-k8s.io/v1beta1", kind: "Sandbox", name: "owner", $uid, blockOwnerDeletion: true}]}}' | kubectl -n "$NS" create -f - >/dev/null
    done
    WATCHED_SINCE=$SECONDS
}
restore() {
    scale_to 1
    [ ! -e "$WORK/tls.json" ] || kubectl replace --force -f "$WORK/tls.json" >/dev/null
    [ ! -e "$WORK/tls.json" ] || trust "$(<"$WORK/bundle")"
    kubectl delete apiservice v1beta1.contract.test --ignore-not-found >/dev/null
    rolled_out
}

check_3() { # a stopped server is noticed within 40 s
    scale_to 0
    soon 40 is_unavailable
    like '^False (MissingEndpoints|FailedDiscoveryCheck|EndpointsNotFound) ' "$(condition)"
}

check_4() { # meanwhile its kinds are 503 and all others work
    kc get sandboxes
    is 1 $RC
    like 'ServiceUnavailable|unable to handle the request' "$OUT"
    ca GET "$B"
    code 503
    kc get pods
    is 0 $RC
    # A namespace that is deleted now cannot end (128), for kube-apiserver says that it does not know all that might be in it. It looks
    # once a minute, and when the APIService changes.
    soon 60 servers_are 0
    kubectl annotate apiservice "${SERVICES[@]}" contract.test/look=now >/dev/null
    V2='application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
    stale() { ACCEPT=$V2 ca GET /apis && [ "$(q '[.items[] | select(.metadata.name | endswith("agents.x-k8s.io")) | .versions[].freshness] | unique | join(" ")')" = Stale ]; }
    soon 60 stale
    kubectl create namespace "$NS-held" >/dev/null
    kubectl delete namespace "$NS-held" --wait=false >/dev/null
    blocked() { kubectl get namespace "$NS-held" -o 'jsonpath={.status.conditions[?(@.type=="NamespaceDeletionDiscoveryFailure")].status}' | grep True; }
}

check_6() { # a certificate without the Service's name is refused
    OWN_ADDRESS=$CLUSTER_ADDRESS # made for localhost and the node's address
    own_up || return
    kubectl apply -f - >/dev/null <<E
apiVersion: v1
kind: Service
metadata: {name: nameless, namespace: $NS}
spec: {ports: [{name: https, port: 443, targetPort: $OWN_PORT}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: nameless, namespace: $NS, labels: {kubernetes.io/service-name: nameless}}
addressType: IPv4
ports: [{name: https, port: $OWN_PORT}]
endpoints: [{addresses: [$CLUSTER_ADDRESS]}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.contract.test}
spec:
  group: contract.test
  version: v1beta1
  groupPriorityMinimum: 10
  versionPriority: 10
  service: {namespace: $NS, name: nameless, port: 443}
  caBundle: $(base64 -w0 "${CA[own]}")
E
    refuses_name() { condition v1beta1.contract.test | grep -E '^False FailedDiscoveryCheck .*x509: certificate is valid for localhost, not nameless'; }
    soon 20 refuses_name
    kubectl delete apiservice v1beta1.contract.test >/dev/null
    own_down
}

check_5() { # restarted, it is available within 35 s
    within 60 blocked && HELD=yes
    scale_to 1
    soon 35 is_available
    soon 5 served
    kubectl annotate apiservice "${SERVICES[@]}" contract.test/look- >/dev/null
}

# trust BUNDLE: what both APIServices check the certificate against.
trust() {
    local service
    for service in "${SERVICES[@]}"; do
        kubectl patch apiservice "$service" --type merge -p "{\"spec\":{\"caBundle\":\"$1\"}}" >/dev/null
    done
}
serial() { openssl s_client -connect "$SERVICE:443" -servername "$SERVICE" </dev/null 2>/dev/null | openssl x509 -noout -serial; }
shows() { [ "$(serial)" = "$1" ]; }
# notice: a changed pod makes the kubelet look at its Secrets again at once.
notice() { kubectl -n "$SYSTEM" annotate pods -l app.kubernetes.io/component=server "contract.test/notice=$RANDOM" --overwrite >/dev/null; }

check_7() { # certificate and authority are exchanged without a restart or a gap
    local pod before new
    kubectl -n "$SYSTEM" get secret sandbox-apiserver-tls -o json | jq 'del(.metadata.uid, .metadata.resourceVersion, .metadata.creationTimestamp, .metadata.managedFields)' >"$WORK/tls.json"
    kubectl get apiservice "${SERVICES[0]}" -o 'jsonpath={.spec.caBundle}' >"$WORK/bundle"
    pod=$(server_pods '{.items[*].metadata.uid}')
    before=$(serial)
    serving_certificate next next-ca "DNS:$SERVICE"
    new=$(openssl x509 -noout -serial -in "$WORK/next.crt")
    trust "$( (base64 -d "$WORK/bundle" && cat "$WORK/next-ca.crt") | base64 -w0)" # both, then the new certificate, then the new one alone
    : >"$WORK/gaps"
    (while [ ! -e "$WORK/enough" ]; do served >/dev/null 2>>"$WORK/gaps" && is_available || echo "gap" >>"$WORK/gaps"; done) &
    local asker=$!
    kubectl -n "$SYSTEM" patch secret sandbox-apiserver-tls --type merge -p "$(jq -n --rawfile crt "$WORK/next.crt" --rawfile key "$WORK/next.key" \
        '{data: {"tls.crt": ($crt | @base64), "tls.key": ($key | @base64)}}')" >/dev/null
    notice
    soon 100 shows "$new"
    trust "$(base64 -w0 "$WORK/next-ca.crt")"
    sleep 2
    soon 10 is_available
    touch "$WORK/enough"
    wait $asker
    is "" "$(<"$WORK/gaps")"
    is "$pod 0" "$(server_pods '{.items[*].metadata.uid} {.items[*].status.containerStatuses[0].restartCount}')"
    [ "$before" != "$new" ] || fail "the certificate is the same"
    # Back to the installation's own.
    trust "$( (base64 -d "$WORK/bundle" && cat "$WORK/next-ca.crt") | base64 -w0)"
    kubectl replace -f "$WORK/tls.json" >/dev/null
    notice
    soon 100 shows "$before"
    trust "$(<"$WORK/bundle")"
    soon 10 is_available
    rm "$WORK/tls.json"
}

check_52() { # two replicas have the same documents
    scale_to 2
    rolled_out 2
    local ip hashes=''
    for ip in $(server_pods '{.items[*].status.podIP}'); do
        cu GET /openapi/v3 "" --connect-to "$SERVICE:443:$ip:6443"
        code 200
        hashes+="$(q -c .)"$'\n'
    done
    is 2 "$(grep -c . <<<"$hashes")"
    is 1 "$(grep . <<<"$hashes" | sort -u | wc -l)"
    soon 10 is_available
}

check_213() { # of two replicas one ends under load: no write fails, watches resume without a gap
    [ -x "$ROOT/build/gcc/tests/func/load" ] || { skip "build/gcc/tests/func/load is not built: make func-targets" && return; }
    local n first gone
    first=$(ca GET "$B" && version)
    # Writers and a watcher as client-go is: kubectl repeats what is refused for a moment; the watcher resumes from its last version.
    for n in 1 2; do
        (
            i=0
            while [ ! -e "$WORK/stop" ]; do
                i=$((i + 1))
                kubectl -n "$NS" annotate sandbox owner "w$n=$i" --overwrite >/dev/null 2>>"$WORK/lost" || echo "write $n $i failed" >>"$WORK/lost"
            done
            echo $i >"$WORK/wrote-$n"
        ) &
    done
    : >"$WORK/lost"
    : >"$WORK/seen"
    (
        rv=$first
        while [ ! -e "$WORK/stop" ]; do
            curl -sN --max-time 40 --cacert "$CLUSTER_CA" --cert "$WORK/admin.crt" --key "$WORK/admin.key" \
                "$CLUSTER_API$B?watch=true&timeoutSeconds=4&resourceVersion=$rv" | grep --line-buffered '"type"' | tee "$WORK/piece" >>"$WORK/seen"
            rv=$(tail -n 1 "$WORK/piece" | jq -r '.object.metadata.resourceVersion // empty')
            : "${rv:=$first}"
            first=$rv
        done
    ) &
    soon 10 has_lines "$WORK/seen" 5
    gone=$(server_pods '{.items[0].metadata.name}')
    kubectl -n "$SYSTEM" delete pod "$gone" --timeout 300s >/dev/null || fail "$gone stays"
    rolled_out 2
    soon 10 has_lines "$WORK/seen" $(($(wc -l <"$WORK/seen") + 5))
    touch "$WORK/stop"
    wait
    is "" "$(<"$WORK/lost")"
    # Each write once and in order, as far as the watcher came.
    jq -r '.object.metadata | "\(.annotations.w1 // 0)"' "$WORK/seen" | uniq >"$WORK/w1"
    is "" "$(awk 'NR > 1 && $1 != last + 1 { print "after " last " came " $1 } { last = $1 }' "$WORK/w1")"
    is "" "$(jq -r .object.metadata.resourceVersion "$WORK/seen" | sort -n | uniq -d)"
    scale_to 1
    rolled_out
}

check_122() { # a server that restarts again and again costs no dependent its life
    local n before kept='configmap/kept-1 configmap/kept-2 configmap/kept-3'
    another_runs() { local now && now=$(server_pods '{.items[?(@.status.phase=="Running")].metadata.uid}') && [ -n "$now" ] && [ "$now" != "$before" ]; }
    for n in 1 2 3; do
        before=$(server_pods '{.items[*].metadata.uid}')
        kubectl -n "$SYSTEM" delete pod -l app.kubernetes.io/component=server --grace-period 0 --force --wait=false >/dev/null 2>&1
        soon 20 another_runs
    done
    rolled_out
    soon 40 is_available
    while [ $((SECONDS - WATCHED_SINCE)) -lt 60 ]; do sleep 1; done
    is "$kept" "$(kubectl -n "$NS" get configmaps -o name | grep kept | xargs)"
    # That the garbage collector works: what belongs to nobody goes.
    jq -n '{apiVersion: "v1", kind: "ConfigMap", metadata: {name: "stray", ownerReferences: [{apiVersion: "agents.x-k8s.io/v1beta1", kind: "Sandbox", name: "owner", uid: "11111111-2222-4333-8444-555555555555"}]}}' |
        kubectl -n "$NS" create -f - >/dev/null
    stray_is_gone() { [ -z "$(kubectl -n "$NS" get configmap stray --ignore-not-found -o name)" ]; }
    soon 60 stray_is_gone
    is "$kept" "$(kubectl -n "$NS" get configmaps -o name | grep kept | xargs)"
}

check_128() { # a namespace deleted while it was stopped goes then
    is yes "${HELD:-no condition NamespaceDeletionDiscoveryFailure}"
    held_is_gone() { [ -z "$(kubectl get namespace "$NS-held" --ignore-not-found -o name)" ]; }
    soon 60 held_is_gone
}

run_checks
