# The control plane: etcd, kube-apiserver, controller manager, scheduler, the provisioner of local volumes, and the
# fake node where no real one can run. Sourced, not run.
# shellcheck shell=bash
etcd_up() {
    local client peer
    client=https://127.0.0.1:$(port_of etcd)
    peer=http://127.0.0.1:$(port_of etcd-peer)
    # No fsync: this is a test cluster, and a machine that crashes may lose it.
    proc_start etcd "$BIN/etcd" --name default --data-dir "$STATE/etcd" --unsafe-no-fsync \
        --listen-client-urls "$client" --advertise-client-urls "$client" \
        --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "default=$peer" \
        --cert-file "$PKI/etcd.crt" --key-file "$PKI/etcd.key" --client-cert-auth --trusted-ca-file "$PKI/ca.crt" \
        --quota-backend-bytes 4294967296 --log-level warn
    proc_wait etcd 30 "${IN_CLUSTER[@]}" curl -sf --cacert "$PKI/ca.crt" --cert "$PKI/etcd-client.crt" \
        --key "$PKI/etcd-client.key" "$client/health"
}

apiserver_start() {
    local address=(--advertise-address "$ADDR")
    # A loopback address may not be published as endpoint of the Service "kubernetes".
    [ "$NET_KIND" = netns ] || address=(--endpoint-reconciler-type none)
    # shellcheck disable=SC2086
    proc_start kube-apiserver "$BIN/kube-apiserver" --bind-address "$ADDR" --secure-port "$(port_of kube-apiserver)" \
        "${address[@]}" \
        --etcd-servers "https://127.0.0.1:$(port_of etcd)" --etcd-cafile "$PKI/ca.crt" \
        --etcd-certfile "$PKI/etcd-client.crt" --etcd-keyfile "$PKI/etcd-client.key" \
        --tls-cert-file "$PKI/apiserver.crt" --tls-private-key-file "$PKI/apiserver.key" --client-ca-file "$PKI/ca.crt" \
        --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction --allow-privileged \
        --service-cluster-ip-range "$SERVICE_RANGE" \
        --service-account-issuer https://kubernetes.default.svc.cluster.local \
        --service-account-key-file "$PKI/sa.pub" --service-account-signing-key-file "$PKI/sa.key" \
        --kubelet-client-certificate "$PKI/kubelet-client.crt" --kubelet-client-key "$PKI/kubelet-client.key" \
        --kubelet-certificate-authority "$PKI/ca.crt" --kubelet-preferred-address-types InternalIP \
        --requestheader-client-ca-file "$PKI/front-proxy-ca.crt" --requestheader-allowed-names front-proxy-client \
        --requestheader-username-headers X-Remote-User --requestheader-group-headers X-Remote-Group \
        --requestheader-extra-headers-prefix X-Remote-Extra- \
        --proxy-client-cert-file "$PKI/front-proxy-client.crt" --proxy-client-key-file "$PKI/front-proxy-client.key" \
        --profiling=false ${AGENT_SANDBOX_APISERVER_ARGS:-}
}

apiserver_wait() { proc_wait kube-apiserver 90 kube get --raw /readyz; }

controllers_start() {
    local config
    config=$STATE/kube-controller-manager.kubeconfig
    # shellcheck disable=SC2086
    proc_start kube-controller-manager "$BIN/kube-controller-manager" --kubeconfig "$config" \
        --authentication-kubeconfig "$config" --authorization-kubeconfig "$config" \
        --bind-address 127.0.0.1 --secure-port "$(port_of kube-controller-manager)" --leader-elect=false \
        --use-service-account-credentials --root-ca-file "$PKI/ca.crt" \
        --service-account-private-key-file "$PKI/sa.key" \
        --cluster-signing-cert-file "$PKI/ca.crt" --cluster-signing-key-file "$PKI/ca.key" \
        --service-cluster-ip-range "$SERVICE_RANGE" --allocate-node-cidrs=false \
        --kube-api-qps 200 --kube-api-burst 400 ${AGENT_SANDBOX_KCM_ARGS:-}
    config=$STATE/kube-scheduler.kubeconfig
    cat >"$STATE/scheduler.yaml" <<E
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: "$config", qps: 500, burst: 1000}
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 2
E
    # shellcheck disable=SC2086
    proc_start kube-scheduler "$BIN/kube-scheduler" --config "$STATE/scheduler.yaml" \
        --authentication-kubeconfig "$config" --authorization-kubeconfig "$config" \
        --bind-address 127.0.0.1 --secure-port "$(port_of kube-scheduler)" ${AGENT_SANDBOX_SCHEDULER_ARGS:-}
    proc_start local-volumes "$HELPERS/local-volumes" --kubeconfig "$STATE/local-volumes.kubeconfig" \
        --folder "$STATE/volumes" --node "$NODE_NAME"
}

controllers_wait() {
    proc_wait kube-controller-manager 60 kube -n default get serviceaccount default
    proc_wait kube-scheduler 60 "${IN_CLUSTER[@]}" curl -skf "https://127.0.0.1:$(port_of kube-scheduler)/readyz"
}

# What a cluster has besides its programs: storage class, roles, and for a real node the Service of its DNS.
objects_apply() {
    local log=$STATE/log/objects.log
    {
        cat "$HERE/lib/objects.yaml"
        [ "$NODE_KIND" != real ] || sed -e "s/@NODE_ADDRESS@/$ADDR/" -e "s/@DNS_ADDRESS@/$DNS_ADDR/" "$HERE/lib/dns.yaml"
    } >"$STATE/objects.yaml"
    kube apply --server-side --force-conflicts --field-manager hack-cluster -f "$STATE/objects.yaml" >"$log" 2>&1 ||
        die_log "the cluster's own objects were refused" "$log"
}

fakenode_start() {
    proc_start fake-node "$HELPERS/fake-node" --kubeconfig "$STATE/fake-node.kubeconfig" --node "$NODE_NAME"
}

fakenode_wait() { proc_wait fake-node 30 kube wait --for=condition=Ready "node/$NODE_NAME" --timeout 1s; }
