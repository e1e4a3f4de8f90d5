# What Sandboxes with real containers cost on one machine, without a cluster: from a POST to Ready for one whose image is there, one after
# the other; the POSTs of claims on a pool of real containers, in a row over one connection, each bound and Ready in its reply, while the
# pool fills up again behind them and once more from a pool that does not; many Sandboxes at once, the memory of server and node when the
# last is Ready and at rest, and that nothing of them is left.
# Prints figures and holds nobody to times: that is for a machine that does nothing else.
#     COLD=20 CLAIMS=100 CROWD=200 SERVER=build/gcc/sandbox-apiserver bash tests/bench/containers.sh
# shellcheck shell=bash disable=SC2034 source=tests/node/lib.sh
STANDALONE=1
. "$(dirname "$0")/../node/lib.sh"
: "${COLD:=20}" "${CLAIMS:=100}" "${CROWD:=200}"
SANDBOXES=/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes
EXTENSIONS=/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default

# spread: of the numbers on stdin the median and the 90th and 100th percentile.
spread() { sort -n | awk '{ v[NR] = $1 } END { if (NR) printf "median %s, 90%% %s, most %s", v[int((NR + 1) / 2)], v[int((NR * 9 + 9) / 10)], v[NR] }'; }
# memory PID: resident now, and at most so far.
memory() { awk '/^VmRSS/ { now = $2 } /^VmHWM/ { most = $2 } END { printf "%.1f MB resident, at most %.1f MB", now / 1024, most / 1024 }' "/proc/$1/status"; }
memory_kb() { awk '/^VmRSS/ { print $2 }' "/proc/$1/status"; }
CONTAINERS='[{"name": "main", "image": "'$BUSYBOX'", "command": ["sh", "-c", "trap '\''exit 0'\'' TERM; sleep infinity & wait"]}]'
sandbox() { jq -cn --arg name "$1" --argjson containers "$CONTAINERS" '{apiVersion: "agents.x-k8s.io/v1beta1", kind: "Sandbox", metadata: {name: $name, labels: {of: "bench"}},
    spec: {podTemplate: {spec: {automountServiceAccountToken: false, containers: $containers}}}}'; }
is_ready_sandbox() { kube GET "$SANDBOXES/$1" | jq -e "$READY" >/dev/null; }
ready_sandboxes() { kube GET "$SANDBOXES?labelSelector=of=bench" | jq "[.items[] | select($READY)] | length"; }
all_ready() { [ "$(ready_sandboxes)" = "$1" ]; }
no_pods() { kube GET "$PODS" | jq -e '.items == []' >/dev/null; }
drop() { kube DELETE "$SANDBOXES?labelSelector=of=bench" >/dev/null; }

real_node_up "the node is there"

# ---- cold ----

for ((i = 0; i < COLD; i++)); do
    sandbox "cold-$i" >"$WORK/body"
    begin=$(now_ms)
    kube POST "$SANDBOXES" "${JSON[@]}" --data-binary "@$WORK/body" >/dev/null
    within 60 is_ready_sandbox "cold-$i" || break
    echo $(($(now_ms) - begin)) >>"$WORK/cold"
done
is "Sandboxes become Ready one after the other" "$COLD" "$(wc -l <"$WORK/cold")"
echo "# from POST to Ready, ms, $COLD of them: $(spread <"$WORK/cold")"
drop
t "their Pods go" within 120 no_pods

# ---- claims ----

jq -cn --argjson containers "$CONTAINERS" '{apiVersion: "extensions.agents.x-k8s.io/v1beta1", kind: "SandboxTemplate", metadata: {name: "box"},
    spec: {networkPolicyManagement: "Unmanaged", podTemplate: {spec: {containers: $containers}}}}' | kube POST "$EXTENSIONS/sandboxtemplates" "${JSON[@]}" -d @- >/dev/null
begin=$(now_ms)
jq -cn --argjson n "$CLAIMS" '{apiVersion: "extensions.agents.x-k8s.io/v1beta1", kind: "SandboxWarmPool", metadata: {name: "box"}, spec: {replicas: $n,
    sandboxTemplateRef: {name: "box"}}}' | kube POST "$EXTENSIONS/sandboxwarmpools" "${JSON[@]}" -d @- >/dev/null
pool_is_full() { kube GET "$EXTENSIONS/sandboxwarmpools/box" | jq -e ".status.readyReplicas == $CLAIMS" >/dev/null; }
t "a pool of $CLAIMS fills" within 300 pool_is_full
echo "# it took $(($(now_ms) - begin)) ms"
# claim_row NAME TEXT: claims NAME-0, NAME-1, ...
claim_row() {
    local i
    for ((i = 0; i < CLAIMS; i++)); do
        [ "$i" = 0 ] || echo next
        printf 'url = "%s%s/sandboxclaims"\nheader = "Content-Type: application/json"\ndata = "{\\"apiVersion\\": \\"extensions.agents.x-k8s.io/v1beta1\\", \\"kind\\": \\"SandboxClaim\\", ' "$URL" "$EXTENSIONS"
        printf '\\"metadata\\": {\\"name\\": \\"%s-%d\\"}, \\"spec\\": {\\"warmPoolRef\\": {\\"name\\": \\"box\\"}}}"\n' "$1" "$i"
        printf 'cacert = "%s/ca.crt"\ncert = "%s/admin.crt"\nkey = "%s/admin.key"\noutput = "%s/%s-%d"\nwrite-out = "%%{time_total}\\n"\nsilent\n' \
            "$WORK/server" "$WORK/server" "$WORK/server" "$WORK" "$1" "$i"
    done >"$WORK/row"
    curl -K "$WORK/row" | awk '{ print $1 * 1000 }' >"$WORK/claimed"
    is "claims are bound and Ready in the reply, $2" "$CLAIMS" "$(cat "$WORK/$1"-* | jq -s "[.[] | select($READY)] | length")"
    echo "# of the POST of a claim, ms, $CLAIMS in a row, $2: $(spread <"$WORK/claimed")"
}
claim_row claim "while the pool fills up again"
t "the pool fills up again" within 300 pool_is_full
kube DELETE "$EXTENSIONS/sandboxtemplates/box" >/dev/null # without it no members are made
claim_row still "from a pool that does not"
kube DELETE "$EXTENSIONS/sandboxwarmpools/box" >/dev/null
kube DELETE "$EXTENSIONS/sandboxclaims" >/dev/null
t "their Pods go" within 300 no_pods
nothing_left "nothing is left of them"

# ---- many at once ----

for ((i = 0; i < CROWD; i++)); do sandbox "crowd-$i" >"$WORK/body-$i"; done
begin=$(now_ms)
for ((i = 0; i < CROWD; i++)); do kube POST "$SANDBOXES" "${JSON[@]}" --data-binary "@$WORK/body-$i" >/dev/null; done
echo "# $CROWD were created in $(($(now_ms) - begin)) ms"
t "$CROWD Sandboxes are Ready" within 600 all_ready "$CROWD"
echo "# after $(($(now_ms) - begin)) ms, $(node_podman ps -q | wc -l) containers"
echo "# server: $(memory "$SERVER_PID")"
echo "# node: $(memory "$NODE_PID")"
for pid in $(pgrep -P "$SERVER_PID" etcd) $(pgrep -P "$NODE_PID" podman); do echo "# $(tr '\0' ' ' <"/proc/$pid/cmdline" | cut -d' ' -f1): $(memory "$pid")"; done
sleep 10
echo "# at rest: server $(memory "$SERVER_PID"), node $(memory "$NODE_PID")"
at_most "memory of the server" 60000 "$(memory_kb "$SERVER_PID")" KB
at_most "memory of the node" 60000 "$(memory_kb "$NODE_PID")" KB
begin=$(now_ms)
drop
t "their Pods go" within 600 no_pods
echo "# after $(($(now_ms) - begin)) ms"
nothing_left "nothing is left of them"
