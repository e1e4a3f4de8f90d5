# Names, folders, messages and settings shared by all parts of hack/cluster. Sourced, not run.
# shellcheck shell=bash disable=SC2034
NAME=${AGENT_SANDBOX_CLUSTER:-dev}
if [ "$(id -u)" = 0 ]; then
    STATE=${AGENT_SANDBOX_STATE:-/var/lib/agent-sandbox}/cluster-$NAME
    CACHE=${AGENT_SANDBOX_CACHE:-/var/cache/agent-sandbox}
    RUN=/run/asb-$NAME # short: a Unix socket's path has 107 bytes at most
else
    STATE=${AGENT_SANDBOX_STATE:-${XDG_STATE_HOME:-$HOME/.local/state}/agent-sandbox}/cluster-$NAME
    CACHE=${AGENT_SANDBOX_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/agent-sandbox}
    RUN=$STATE/run/asb
fi
NETNS=/run/netns/asb-$NAME
SERVICE_RANGE=10.96.0.0/16
DNS_ADDR=10.96.0.10
POD_RANGE=10.244.0.0/20
NODE_NAME=node-1

say() { printf '%s\n' "$*"; }

# die TEXT: an end that the text explains in full.
die() {
    trap - ERR
    [ -z "${STEP:-}" ] || printf ' failed\n' >&2
    printf 'cluster: %s\n' "$*" >&2
    exit 1
}

usage_error() {
    printf 'cluster: %s\n' "$*" >&2
    echo "run hack/cluster/cluster --help" >&2
    exit 2
}

# die_log TEXT LOGFILE: as die, with where the log is and how it ends.
die_log() {
    trap - ERR
    [ -z "${STEP:-}" ] || printf ' failed\n' >&2
    printf 'cluster: %s; the end of its log %s:\n' "$1" "$2" >&2
    tail -n 15 "$2" 2>/dev/null | cut -c1-400 | sed 's/^/    /' >&2
    exit 1
}

trap 'die "${STEP:+step \"$STEP\": }command failed in ${BASH_SOURCE[0]##*/} line $LINENO: $BASH_COMMAND"' ERR

seconds_since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }'; }

# step TEXT FUNCTION ARG...: runs the function and prints how long it took.
step() {
    local began=$EPOCHREALTIME
    STEP=$1
    shift
    printf '  %-34s' "$STEP"
    "$@"
    printf '%7s s\n' "$(seconds_since "$began")"
    STEP=
}

[[ $NAME =~ ^[a-z0-9]([-a-z0-9]{0,9}[a-z0-9])?$ ]] ||
    die "the cluster's name must be 1 to 11 of a-z, 0-9 and - (it becomes part of an interface name), not \"$NAME\""
[[ $STATE != *[[:space:]\"\'\\]* ]] || die "the state folder's path may hold no blanks or quotes: $STATE"

# Only one up or down of a cluster at a time. The descriptor is closed for everything that is started.
lock_state() {
    mkdir -p "$STATE/run" "$STATE/log"
    exec 9>"$STATE/lock"
    flock -n 9 || {
        echo "waiting for another up or down of cluster $NAME"
        flock -w 300 9 || die "another up or down of cluster $NAME still runs"
    }
}

# What was chosen at the first start, kept so that every later command sees the same cluster.
NODE_KIND='' NODE_WHY='' NET_KIND='' ADDR='' HOST_ADDR='' FAKE_NOTE='' PORT_BASE=0
settings_load() {
    local key value
    [ -e "$STATE/settings" ] || return 0
    while IFS='=' read -r key value; do
        case $key in
        node) NODE_KIND=$value ;;
        why) NODE_WHY=$value ;;
        net) NET_KIND=$value ;;
        address) ADDR=$value ;;
        host) HOST_ADDR=$value ;;
        port) PORT_BASE=$value ;;
        esac
    done <"$STATE/settings"
    settings_derive
}

settings_derive() {
    FAKE_NOTE=
    [ "$NODE_KIND" = real ] || FAKE_NOTE=", with a FAKE NODE (no container ever runs)"
    if [ "$NET_KIND" = netns ]; then IN_CLUSTER=(nsenter "--net=$NETNS" "--mount=$RUN/mnt" --); else IN_CLUSTER=(); fi
}

settings_save() {
    printf 'node=%s\nwhy=%s\nnet=%s\naddress=%s\nhost=%s\nport=%s\n' "$NODE_KIND" "$NODE_WHY" "$NET_KIND" "$ADDR" \
        "$HOST_ADDR" "$PORT_BASE" >"$STATE/settings.new"
    mv "$STATE/settings.new" "$STATE/settings"
}

# port_of COMPONENT: the port that the component serves, or null.
port_of() {
    local fixed offset
    case $1 in
    etcd) fixed=2379 offset=0 ;;
    etcd-peer) fixed=2380 offset=1 ;;
    kube-apiserver) fixed=6443 offset=2 ;;
    kube-controller-manager) fixed=10257 offset=3 ;;
    kube-scheduler) fixed=10259 offset=4 ;;
    kubelet) fixed=10250 offset='' ;;
    kube-proxy) fixed=10256 offset='' ;;
    coredns) fixed=53 offset='' ;;
    *) fixed=null offset='' ;;
    esac
    if [ "$NET_KIND" = netns ] || [ -z "$offset" ]; then echo "$fixed"; else echo $((PORT_BASE + offset)); fi
}

kube() { "$BIN/kubectl" --kubeconfig "$STATE/admin.kubeconfig" --request-timeout 10s "$@"; }
