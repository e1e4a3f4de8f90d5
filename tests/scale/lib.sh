# What the tests at scale share: several sandbox-apiservers on one etcd, a real kube-apiserver over an etcd of its own, and simulated
# nodes that bind Pods and say that they run. No controller manager, no scheduler, no kubelet: nothing but us and the API. The programs
# of Kubernetes are those that hack/cluster has built. Everything listens on 127.0.0.1.
# Sourced, not run; what tests/func/lib.sh has is here too.
# shellcheck shell=bash disable=SC2034 source=tests/func/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../func/lib.sh"
NODE=$OUT/sandbox-node
SCALE=$ROOT/build/${BUILD%%-*}/tests/scale
[ -d "$SCALE" ] || SCALE=$OUT/tests/scale
# shellcheck source=tests/lib/kube.sh
. "$ROOT/tests/lib/kube.sh"
kube_is_built || { skip "$(basename "$0")" "$NO_KUBE" && exit 0; }
NODE_PID=''
REPLICA_PIDS=() REPLICA_PORTS=()
FLAGS=() # of every replica
STUCK_S=${SLOW:+600} # how long nothing may move before it is taken for stuck; how fast it moves is the machine's affair
STUCK_S=${STUCK_S:-180}

# soon COMMAND...: it succeeds in the end.
soon() { within "$STUCK_S" "$@"; }

# reaches GOAL COMMAND...: the number it prints becomes GOAL; it is waited for as long as that grows. REACHED is what it printed last.
reaches() {
    local goal=$1 most=0 end=$((SECONDS + STUCK_S)) began
    shift
    until began=${EPOCHREALTIME/./} && REACHED=$("$@" 2>/dev/null) && [ "$REACHED" = "$goal" ]; do
        if [[ $REACHED =~ ^[0-9]+$ ]] && [ "$REACHED" -gt "$most" ]; then most=$REACHED end=$((SECONDS + STUCK_S)); fi
        [ $SECONDS -lt $end ] || return 1
        rest "$began"
    done
}

# ---- the cluster ----

# kube_count RESOURCE VERB [SUBRESOURCE]: successful calls of a kind that kube-apiserver has answered so far.
kube_count() {
    kube GET /metrics | awk -v resource="resource=\"$1\"" -v verb="verb=\"$2\"" -v sub_resource="subresource=\"${3:-}\"" '
        /^apiserver_request_total/ && index($0, resource) && index($0, verb) && index($0, sub_resource) && /code="2/ { n += $NF }
        END { print n + 0 }'
}

# node_up [FLAG...]: the simulated nodes.
node_up() {
    "$NODE" --simulate --schedule --kubeconfig "$WORK/kubeconfig" "$@" </dev/null >"$WORK/node.log" 2>&1 &
    NODE_PID=$!
    PIDS+=("$NODE_PID")
}

# ---- replicas ----

# replica_start I [FLAG...]: starts the I-th server, or starts it again on its port.
replica_start() {
    local i=$1
    shift
    PORT=${REPLICA_PORTS[$i]:-} SERVER_PID=''
    server_start --leader-elect-identity="replica-$i" --etcd-compaction-interval=86400 "${FLAGS[@]}" "$@" || {
        not_ok "replica $i starts" "$(tail -n 20 "$SERVER_LOG")"
        exit 1
    }
    REPLICA_PIDS[i]=$SERVER_PID REPLICA_PORTS[i]=$PORT
    PIDS+=("$SERVER_PID")
    SERVER_PID=''
}

# at I: requests go to that replica from now on.
at() { PORT=${REPLICA_PORTS[$1]} URL=https://127.0.0.1:${REPLICA_PORTS[$1]}; }

replicas_up() {
    local i
    for ((i = 0; i < $1; i++)); do replica_start "$i" "${@:2}"; done
    for ((i = 0; i < $1; i++)); do
        at "$i"
        soon is_ready || { not_ok "replica $i is ready" "$(tail -n 20 "$SERVER_LOG")" && exit 1; }
    done
    at 0
}

# replica_end I SIGNAL: by signal; prints its exit code.
replica_end() {
    local pid=${REPLICA_PIDS[$1]} rc=0
    kill -"$2" "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null || rc=$?
    REPLICA_PIDS[$1]=''
    return $rc
}

# leader: number of the replica that leads, as the store says; fails when none does.
leader() {
    local value
    value=$(curl -s --max-time 5 -d '{"key":"'"$(printf /agent-sandbox/leader/reconciler | base64 -w0)"'"}' "$ETCD_URL/v3/kv/range" |
        jq -r '.kvs[0].value // empty' | base64 -d 2>/dev/null)
    [[ $value =~ replica-([0-9]+) ]] && echo "${BASH_REMATCH[1]}"
}

urls() {
    local port list=''
    for port in "${REPLICA_PORTS[@]}"; do list=$list,https://127.0.0.1:$port; done
    echo "${list#,}"
}

# ---- objects ----

# made PATH JSON: creates it.
made() {
    api POST "$1" "${JSON[@]}" -d "$2"
    [ "$CODE" = 201 ] || { not_ok "POST $1" "$CODE $BODY" && return 1; }
}

# pool_make NAME REPLICAS [JQ-PROGRAM for the template]: a template and a pool of that name.
pool_make() {
    made "$EXTENSIONS/sandboxtemplates" "$(jq -cn --arg name "$1" '{apiVersion: "extensions.agents.x-k8s.io/v1beta1", kind: "SandboxTemplate",
        metadata: {name: $name}, spec: {networkPolicyManagement: "Unmanaged", podTemplate: {spec: {containers: [{name: "main",
        image: "example.org/app:1"}]}}}} | '"${3:-.}")"
    made "$EXTENSIONS/sandboxwarmpools" "$(jq -cn --arg name "$1" --argjson n "$2" '{apiVersion: "extensions.agents.x-k8s.io/v1beta1",
        kind: "SandboxWarmPool", metadata: {name: $name}, spec: {replicas: $n, sandboxTemplateRef: {name: $name}}}')"
}

# pool_ready NAME: how many of its members are ready; nothing when it has more members than it should.
pool_ready() { api GET "$EXTENSIONS/sandboxwarmpools/$1" && q 'select(.status.replicas <= .spec.replicas) | .status.readyReplicas // 0'; }
# pool_fills NAME REPLICAS: it has so many members, and all are ready.
pool_fills() { reaches "$2" pool_ready "$1"; }
pool_is() { [ "$(pool_ready "$1")" = "$2" ]; }

# claim NAME POOL [JQ-PROGRAM]
claim() {
    jq -cn --arg name "$1" --arg pool "$2" '{apiVersion: "extensions.agents.x-k8s.io/v1beta1", kind: "SandboxClaim",
        metadata: {name: $name}, spec: {warmPoolRef: {name: $pool}}} | '"${3:-.}"
}

# ready_claims: how many are Ready now, as the replica at hand has them.
ready_claims() { api GET "$EXTENSIONS/sandboxclaims?resourceVersion=0" && q '[.items[] | select(any(.status.conditions[]?; .type == "Ready" and .status == "True"))] | length'; }
claims_settle() { reaches "$1" ready_claims; }

# ---- end ----

# scale_down: ends what runs, each part as it should end.
scale_down() {
    local i
    for i in "${!REPLICA_PIDS[@]}"; do
        [ -n "${REPLICA_PIDS[$i]}" ] || continue
        kill -CONT "${REPLICA_PIDS[$i]}" 2>/dev/null
        replica_end "$i" TERM
        is "replica $i ends with exit code 0" 0 $?
    done
    if [ -n "$NODE_PID" ]; then
        kill "$NODE_PID" 2>/dev/null
        wait "$NODE_PID"
        is "the simulated node ends with exit code 0" 0 $?
    fi
    kube_down
    etcd_stop "$ETCD_DIR"
    REPLICA_PIDS=() REPLICA_PORTS=() NODE_PID='' PORT='' SERVER_PID=''
}

scale_finish() {
    local rc=$?
    trap - EXIT
    scale_down
    if [ $BAD != 0 ] && [ -s "$WORK/node.log" ]; then tail -n 5 "$WORK/node.log" | sed 's/^/# node: /'; fi
    (exit $rc)
    finish
}
trap scale_finish EXIT
