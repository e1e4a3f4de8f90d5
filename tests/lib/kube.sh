# A real kube-apiserver over an etcd of its own, on 127.0.0.1: nothing but the API, no controller manager, no scheduler, no kubelet. The
# program is the one that hack/cluster has built. Everybody may do everything.
#   kube_up        starts it; sets CLUSTER (flags with which our server finds it), KUBE_URL, KUBE_PID, $WORK/kubeconfig
#   kube_down      ends it and its etcd
# Sourced after tests/func/lib.sh, whose certificates and words it uses; skips the test where there is no kube-apiserver.
# shellcheck shell=bash disable=SC2034
KUBE_BIN=$(find /var/cache/agent-sandbox -maxdepth 1 -name 'kube-v*' -type d 2>/dev/null | sort -V | tail -n 1)
KUBE_DIR=$WORK/kube KUBE_URL='' KUBE_PID=''
kube_is_built() { [ -x "$KUBE_BIN/kube-apiserver" ]; }
NO_KUBE="no kube-apiserver here (hack/cluster/cluster build makes it)"

kube_launch() {
    local port=$1
    "$KUBE_BIN/kube-apiserver" --bind-address 127.0.0.1 --secure-port "$port" --endpoint-reconciler-type none \
        --etcd-servers "$KUBE_ETCD" --tls-cert-file "$WORK/serving.crt" --tls-private-key-file "$WORK/serving.key" \
        --client-ca-file "$WORK/client-ca.crt" --authorization-mode AlwaysAllow --disable-admission-plugins ServiceAccount \
        --requestheader-client-ca-file "$WORK/front-proxy-ca.crt" --requestheader-allowed-names front-proxy \
        --requestheader-username-headers X-Remote-User --requestheader-group-headers X-Remote-Group \
        --requestheader-extra-headers-prefix X-Remote-Extra- \
        --proxy-client-cert-file "$WORK/front-proxy.crt" --proxy-client-key-file "$WORK/front-proxy.key" \
        --service-cluster-ip-range 10.96.0.0/16 --service-account-issuer https://localhost \
        --service-account-key-file "$WORK/serving.crt" --service-account-signing-key-file "$WORK/serving.key" \
        --profiling=false </dev/null >"$KUBE_DIR/log" 2>&1 &
    KUBE_PID=$!
    PIDS+=("$KUBE_PID")
    KUBE_URL=https://127.0.0.1:$port
    within 90 kube_is_ready_or_gone && kill -0 "$KUBE_PID" 2>/dev/null
}
kube_is_ready_or_gone() { ! kill -0 "$KUBE_PID" 2>/dev/null || kube GET /readyz; }

# kube METHOD PATH [CURL-ARGUMENT...]: prints the answer; fails unless it is a success.
kube() {
    local method=$1 path=$2
    shift 2
    curl -sS --fail --globoff --max-time 60 --cacert "$WORK/serving-ca.crt" --cert "$WORK/admin.crt" --key "$WORK/admin.key" \
        -X "$method" "$@" "$KUBE_URL$path"
}

kube_up() {
    mkdir -p "$KUBE_DIR/etcd"
    authority front-proxy-ca
    leaf front-proxy front-proxy-ca /CN=front-proxy clientAuth
    KUBE_ETCD=$(etcd_start "$KUBE_DIR/etcd") || { not_ok "the cluster's etcd starts" && exit 1; }
    kube_launch "$(etcd_random_port)" || kube_launch "$(etcd_random_port)" || {
        not_ok "kube-apiserver starts" "$(tail -n 5 "$KUBE_DIR/log")"
        exit 1
    }
    cat >"$WORK/kubeconfig" <<C
apiVersion: v1
kind: Config
current-context: it
contexts: [{name: it, context: {cluster: it, user: it}}]
clusters: [{name: it, cluster: {server: "$KUBE_URL", certificate-authority: "$WORK/serving-ca.crt"}}]
users: [{name: it, user: {client-certificate: "$WORK/admin.crt", client-key: "$WORK/admin.key"}}]
C
    CLUSTER=(--kubeconfig "$WORK/kubeconfig" --requestheader-client-ca-file "$WORK/front-proxy-ca.crt" --requestheader-allowed-names front-proxy)
    within 30 kube GET /api/v1/namespaces/default
}

# kube_aggregates: it serves our two groups by asking the server on $PORT. A Service that is only a name needs no cluster network.
kube_aggregates() {
    local group
    kube POST /api/v1/namespaces/default/services "${JSON[@]}" >/dev/null -d '{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "sandbox-apiserver"},
        "spec": {"type": "ExternalName", "externalName": "localhost"}}'
    for group in agents extensions.agents; do
        kube POST /apis/apiregistration.k8s.io/v1/apiservices "${JSON[@]}" >/dev/null -d "$(jq -cn --arg group "$group.x-k8s.io" --argjson port "$PORT" \
            --arg ca "$(base64 -w0 "$WORK/serving-ca.crt")" '{apiVersion: "apiregistration.k8s.io/v1", kind: "APIService", metadata: {name: "v1beta1.\($group)"},
            spec: {$group, version: "v1beta1", groupPriorityMinimum: 2000, versionPriority: 10, caBundle: $ca,
                service: {namespace: "default", name: "sandbox-apiserver", $port}}}')"
    done
    for group in agents extensions.agents; do
        within 60 kube_has_group "$group.x-k8s.io" || { not_ok "kube-apiserver finds the server" "$(kube GET /apis/apiregistration.k8s.io/v1/apiservices)" && exit 1; }
    done
}
kube_has_group() { kube GET "/openapi/v3" | grep -qF "apis/$1/v1beta1" && kube GET "/apis/$1/v1beta1"; }

kube_down() {
    [ -z "$KUBE_PID" ] || { kill -9 "$KUBE_PID" && wait "$KUBE_PID"; } 2>/dev/null
    KUBE_PID=''
    etcd_stop "$KUBE_DIR/etcd"
}
