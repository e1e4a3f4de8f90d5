# What the tests of sandbox-node share: real containers by Podman, Pods of a real kube-apiserver, or with STANDALONE=1 of a server of
# ours without a cluster; all in namespaces of their own,
# so that neither bridge nor packet rules touch the machine's and every process ends with the test. Skips, with the reason, where that
# cannot be.
# With ALONE=1 nothing is started.
# Sourced, not run; what tests/scale/lib.sh has is here too.
# shellcheck shell=bash disable=SC2034 source=tests/scale/lib.sh
if [ -z "${NODE_TEST_INSIDE:-}" ]; then
    refuse() { echo "ok 1 - $(basename "$0") # skip $1" && echo "1..1" && exit 0; }
    [ "$(id -u)" = 0 ] || refuse "only root runs containers"
    for program in podman runc busybox ip iptables jq; do
        command -v "$program" >/dev/null || refuse "no $program here (hack/deps node installs it)"
    done
    unshare --net --mount --pid --fork --mount-proc true 2>/dev/null || refuse "no network namespaces here"
    NODE_TEST_INSIDE=1 exec unshare --net --mount --pid --fork --kill-child --mount-proc bash "$0" "$@"
fi
ip link set lo up
# kube-apiserver wants an address beside loopback, and the engine a way out; nobody answers there.
ip link add out0 type veth peer name out1 && ip address add 192.0.2.2/24 dev out0 && ip link set out0 up && ip link set out1 up
ip route add default via 192.0.2.1
mount --make-rprivate /
# Where addresses are noted that are given away, where the engine keeps the network namespaces of containers, and the node names of Services.
for folder in /var/lib/cni /run/netns /run/sandbox-node; do mkdir -p $folder && mount -t tmpfs tmpfs $folder; done
if [ -n "${STANDALONE:-}" ]; then
    # shellcheck source=tests/func/lib.sh
    . "$(dirname "${BASH_SOURCE[0]}")/../func/lib.sh"
    NODE=$OUT/sandbox-node NODE_PID=''
    kube() { curl -sS --fail --globoff --max-time 60 --cacert "$WORK/server/ca.crt" --cert "$WORK/server/admin.crt" --key "$WORK/server/admin.key" -X "$1" "${@:3}" "$URL$2"; }
else
    . "$(dirname "${BASH_SOURCE[0]}")/../scale/lib.sh"
fi
DATA=$WORK/node
NODE_NAME=node-1
BUSYBOX=localhost/agent-sandbox/busybox:dev
NODE_FLAGS=()

# podman ARGUMENT...: the node's own engine, from outside.
node_podman() {
    CONTAINERS_CONF=$DATA/containers.conf CONTAINERS_STORAGE_CONF=$DATA/storage.conf podman --root="$DATA/storage" --runroot="$DATA/run" \
        --tmpdir="$DATA/tmp" --network-config-dir="$DATA/networks" --cgroup-manager=cgroupfs --storage-driver="$DRIVER" --runtime=runc "$@"
}
DRIVER=${DRIVER:-overlay}

# real_node_up TEXT [FLAG...]: the node that runs containers is there, and registered.
real_node_up() {
    local text=$1
    shift
    "$NODE" --kubeconfig "$WORK/kubeconfig" --name "$NODE_NAME" --data "$DATA" --storage-driver "$DRIVER" --port 0 "${NODE_FLAGS[@]}" "$@" \
        </dev/null >>"$WORK/node.log" 2>&1 &
    NODE_PID=$!
    PIDS+=("$NODE_PID")
    if within 60 node_is_ready_or_gone && kill -0 "$NODE_PID" 2>/dev/null; then ok "$text"; else not_ok "$text" "$(tail -n 5 "$WORK/node.log")"; fi
}
node_is_ready_or_gone() { ! kill -0 "$NODE_PID" 2>/dev/null || kube GET "/api/v1/nodes/$NODE_NAME"; }

# node_kill SIGNAL
node_kill() {
    local rc=0
    kill -"$1" "$NODE_PID"
    wait "$NODE_PID" 2>/dev/null || rc=$?
    NODE_PID=''
    return $rc
}

PODS=/api/v1/namespaces/default/pods

# pod NAME JQ-PROGRAM: creates one of busybox that sleeps, changed by the program. .main is its first container in it.
pod() {
    jq -cn --arg name "$1" --arg node "$NODE_NAME" --arg image "$BUSYBOX" '
        def main(f): .spec.containers[0] |= f;
        def run(s): main(.command = ["sh", "-c", s]);
        {apiVersion: "v1", kind: "Pod", metadata: {name: $name}, spec: {nodeName: $node, terminationGracePeriodSeconds: 1,
            automountServiceAccountToken: false, containers: [{name: "main", image: $image, command: ["sleep", "100000"]}]}} | '"${2:-.}" |
        kube POST "$PODS" -H 'Content-Type: application/json' -d @- >/dev/null
}

# get NAME JQ-PROGRAM: of the Pod as the cluster has it.
get() { kube GET "$PODS/$1" | jq -r "$2"; }
# pod_is NAME JQ-CONDITION
pod_is() { kube GET "$PODS/$1" 2>/dev/null | jq -e "$2" >/dev/null; }
# comes TEXT NAME JQ-CONDITION [SECONDS]: it becomes so.
comes() {
    if within "${4:-60}" pod_is "$2" "$3"; then ok "$1"; else not_ok "$1" "$(get "$2" '.status' 2>&1; tail -n 5 "$WORK/node.log")"; fi
}
READY='any(.status.conditions[]?; .type == "Ready" and .status == "True")'
pod_gone() { ! kube GET "$PODS/$1" 2>/dev/null; }
# gone TEXT NAME [SECONDS]
gone() { if within "${3:-60}" pod_gone "$2"; then ok "$1"; else not_ok "$1" "$(get "$2" .; tail -n 5 "$WORK/node.log")"; fi; }
pod_delete() { kube DELETE "$PODS/$1${2:-}" >/dev/null; }

# container POD [NAME]: id of the one that runs.
container() {
    local uid
    uid=$(get "$1" .metadata.uid)
    node_podman ps -q --no-trunc --filter "label=node.agent-sandbox.dev/pod-uid=$uid" --filter "label=node.agent-sandbox.dev/container=${2:-main}"
}
# inside POD COMMAND...: its output.
inside() {
    local id
    id=$(container "$1")
    node_podman exec "$id" "${@:2}" 2>&1
}
# said POD [NAME]: what the newest run of a container has written.
said() { node_podman logs "$(get "$1" "[.status.containerStatuses[]?, .status.initContainerStatuses[]?] | .[] | select(.name == \"${2:-main}\") | .containerID" | sed 's|podman://||')" 2>&1; }

# nothing_left TEXT: no container, no folder, no mount, no interface, no address and no network namespace of any Pod.
nothing_is_left() {
    [ -z "$(node_podman ps -aq)" ] && [ -z "$(ls "$DATA/pods")" ] && ! grep -q " $DATA/pods/" /proc/self/mountinfo &&
        ! ip -o link | grep -q 'master sandbox0' && [ -z "$(find /var/lib/cni -name '10.*')" ] && [ -z "$(ls /run/netns)" ]
}
nothing_left() {
    if within 60 nothing_is_left; then ok "$1"; else not_ok "$1" "$(node_podman ps -a; ls "$DATA/pods"; grep " $DATA/pods/" /proc/self/mountinfo; ip -o link; find /var/lib/cni; ls /run/netns)"; fi
}

# engine_rests: nothing of this test's engine runs; another's, or one that has ended and was not waited for, does not count.
engine_rests() { ! pgrep -f "^[^ ]*(podman|conmon) .*$DATA/"; }
node_finish() {
    local rc=$? end=scale_finish
    [ -z "${STANDALONE:-}" ] || end=finish
    # What the node runs outlives it.
    [ -z "$NODE_PID" ] || node_kill TERM 2>/dev/null || :
    # The first time those that hold a Pod's namespaces are refused, for others need them.
    if [ -d "$DATA/storage" ]; then node_podman rm -af -t 0 || node_podman rm -af -t 0; fi >/dev/null 2>&1
    within 20 engine_rests # it tidies up after containers, in processes of their own
    umount -l "$DATA/storage/overlay" 2>/dev/null
    (exit $rc)
    $end
}
trap node_finish EXIT

# standalone_up: a server without a cluster, on the port it had.
standalone_up() {
    [ -n "$PORT" ] || PORT=$(etcd_random_port)
    STARTS=$((STARTS + 1))
    SERVER_LOG=$WORK/server-$STARTS.log
    "$SERVER" --standalone --data-dir="$WORK/server" --secure-port="$PORT" --etcd-program="$(etcd_program)" </dev/null >"$SERVER_LOG" 2>&1 &
    SERVER_PID=$!
    URL=https://127.0.0.1:$PORT
    within 60 kube GET /readyz && return
    not_ok "the server starts" "$(tail -n 20 "$SERVER_LOG")"
    exit 1
}

[ -z "${ALONE:-}" ] || return 0
if [ -n "${STANDALONE:-}" ]; then
    standalone_up
    cp "$WORK/server/node.kubeconfig" "$WORK/kubeconfig"
else
    etcd_up ''
    kube_up
fi
"$NODE" image build --data "$DATA" --storage-driver "$DRIVER" >"$WORK/image.log" 2>&1 || {
    skip "$(basename "$0")" "no engine runs here: $(tail -n 1 "$WORK/image.log")"
    exit 0
}
