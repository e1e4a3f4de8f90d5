# The real node: containerd, kubelet, kube-proxy and CoreDNS, with pods on point-to-point links of the cluster's
# network namespace. Sourced, not run.
# shellcheck shell=bash
SOCKET=$RUN/containerd.sock

ctr_node() { ctr -a "$SOCKET" -n k8s.io "$@"; }

node_images_make() {
    local image made=1
    for image in pause busybox; do
        [ "$STATE/images/$image.tar" -nt "$ROOT/hack/image" ] || made=
    done
    [ -z "$made" ] || return 0
    "$ROOT/hack/image" -o "$STATE/images" pause busybox >"$STATE/log/images.log" 2>&1 ||
        die_log "making the images failed" "$STATE/log/images.log"
}

# image_load ARCHIVE: unless this very archive was loaded before.
image_load() {
    local sum list=$STATE/node/images.loaded
    [ -e "$1" ] || die "there is no archive $1 (hack/image makes them)"
    sum=$(sha256sum <"$1" | cut -d' ' -f1)
    if grep -qsx "$sum ${1##*/}" "$list"; then return; fi
    ctr_node images import "$1" >"$STATE/log/image-load.log" 2>&1 ||
        die_log "containerd refused the archive $1" "$STATE/log/image-load.log"
    # A newer archive takes the tag of the older one of its name, so that one is not loaded any more.
    { grep -v " ${1##*/}\$" "$list" 2>/dev/null || true; } >"$list.new"
    echo "$sum ${1##*/}" >>"$list.new"
    mv "$list.new" "$list"
}

# overlayfs, unless the state folder lies on an overlay itself.
snapshotter() {
    if [ "$(stat -f -c %T "$STATE")" = overlayfs ]; then echo native; else echo overlayfs; fi
}

# Without CAP_SYS_RESOURCE (bit 24) nobody may lower a process's OOM score, and pod sandboxes ask for it.
oom_restricted() {
    local bits
    bits=$(awk '$1 == "CapEff:" { print $2 }' /proc/self/status)
    if [ $(((0x$bits >> 24) & 1)) = 1 ]; then echo false; else echo true; fi
}

containerd_start() {
    ! proc_alive containerd || return 0
    mkdir -p "$STATE/node/cni.d"
    cat >"$STATE/node/containerd.toml" <<E
version = 2
root = "$STATE/node/containerd"
state = "$RUN/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs", "io.containerd.tracing.processor.v1.otlp"]
[grpc]
  address = "$SOCKET"
[plugins."io.containerd.internal.v1.opt"]
  path = "$STATE/node/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/agent-sandbox/pause:dev"
  restrict_oom_score_adj = $(oom_restricted)
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$STATE/node/cni.d"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "$(snapshotter)"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
E
    # Point-to-point links rather than a bridge: replies always pass through the node, whose rules undo a Service's
    # address, whatever the kernel does with bridged packets.
    cat >"$STATE/node/cni.d/10-pods.conflist" <<E
{"cniVersion": "0.4.0", "name": "pods", "plugins": [
  {"type": "ptp", "ipMasq": false,
   "ipam": {"type": "host-local", "dataDir": "$STATE/node/addresses",
            "ranges": [[{"subnet": "$POD_RANGE"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
E
    # After a restart no pod has an address any more; after a crash of containerd alone they all still do.
    [ -n "$(cgroup_pids kubepods)" ] || rm -rf "$STATE/node/addresses"
    proc_start containerd containerd --config "$STATE/node/containerd.toml"
}

containerd_wait() {
    proc_wait containerd 30 ctr_node version
    image_load "$STATE/images/pause.tar"
    image_load "$STATE/images/busybox.tar"
}

node_start() {
    printf 'nameserver %s\nsearch svc.cluster.local cluster.local\noptions ndots:5\n' "$DNS_ADDR" >"$STATE/node/resolv.conf"
    kubelet_start
    kubeproxy_start
    coredns_start
}

kubelet_start() {
    ! proc_alive kubelet || return 0
    cat >"$STATE/node/kubelet.yaml" <<E
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $ADDR
port: 10250
healthzBindAddress: 127.0.0.1
readOnlyPort: 0
tlsCertFile: $PKI/kubelet-server.crt
tlsPrivateKeyFile: $PKI/kubelet-server.key
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $PKI/ca.crt}}
authorization: {mode: Webhook}
containerRuntimeEndpoint: unix://$SOCKET
cgroupDriver: cgroupfs
cgroupRoot: /$CGROUP
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
resolvConf: $STATE/node/resolv.conf
clusterDNS: ["$DNS_ADDR"]
clusterDomain: cluster.local
volumePluginDir: /var/lib/kubelet/volume-plugins
maxPods: 500
# A test's pods are never thrown out because the machine's disk is full.
evictionHard: {memory.available: "0%", nodefs.available: "0%", imagefs.available: "0%", nodefs.inodesFree: "0%"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
imageMinimumGCAge: 8760h
kubeAPIQPS: 200
kubeAPIBurst: 400
fileCheckFrequency: 0s
httpCheckFrequency: 0s
E
    # shellcheck disable=SC2086
    proc_start kubelet "$BIN/kubelet" --config "$STATE/node/kubelet.yaml" --kubeconfig "$STATE/node.kubeconfig" \
        --hostname-override "$NODE_NAME" --node-ip "$ADDR" ${AGENT_SANDBOX_KUBELET_ARGS:-}
}

kubeproxy_start() {
    ! proc_alive kube-proxy || return 0
    cat >"$STATE/node/kube-proxy.yaml" <<E
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
hostnameOverride: $NODE_NAME
clusterCIDR: $POD_RANGE
bindAddress: $ADDR
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
clientConnection: {kubeconfig: "$STATE/kube-proxy.kubeconfig"}
# These settings belong to the whole machine, so they stay as they are.
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
iptables: {minSyncPeriod: 100ms, localhostNodePorts: false}
E
    proc_start kube-proxy "$BIN/kube-proxy" --config "$STATE/node/kube-proxy.yaml"
}

coredns_start() {
    ! proc_alive coredns || return 0
    cat >"$STATE/node/Corefile" <<E
.:53 {
    bind $ADDR
    errors
    health 127.0.0.1:8080
    ready 127.0.0.1:8181
    cache 1
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        kubeconfig $STATE/coredns.kubeconfig
        pods insecure
        ttl 1
    }
}
E
    proc_start coredns "$COREDNS_DIR/coredns" -conf "$STATE/node/Corefile"
}

node_is_ready() {
    # The Node may still say so from an earlier run, so the kubelet itself is asked as well.
    "${IN_CLUSTER[@]}" curl -sf http://127.0.0.1:10248/healthz &&
        [ "$(kube get node "$NODE_NAME" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')" = True ]
}

node_wait() {
    proc_wait kubelet 90 node_is_ready
    proc_wait kube-proxy 30 "${IN_CLUSTER[@]}" curl -sf http://127.0.0.1:10256/healthz
    proc_wait coredns 30 "${IN_CLUSTER[@]}" curl -sf http://127.0.0.1:8181/ready
}
