# `make run`, as README has it: server, node, image, pool, claim and a command, and what kubectl does then; twice, after kill -9 of either
# and both, in the foreground, and its end, after which nothing is left. Without make itself and without packages: the image is made
# before, where there is a network.
# shellcheck shell=bash disable=SC2034 source=tests/node/lib.sh
IMAGE=$(cd "$(dirname "$0")/../.." && pwd)/build/python-image.tar
if [ -z "${NODE_TEST_INSIDE:-}" ] && ! [ "$IMAGE" -nt "$(dirname "$0")/../../node/image.c" ]; then
    "$(dirname "${SERVER:-$(dirname "$IMAGE")/gcc/sandbox-apiserver}")/sandbox-node" image build python --output "$IMAGE" >/dev/null 2>"$IMAGE.log" || rm -f "$IMAGE"
fi
STANDALONE=1 ALONE=1
. "$(dirname "$0")/lib.sh"
[ -s "$IMAGE" ] || { skip run "no image with Python: $(tail -n 1 "$IMAGE.log")" && exit 0; }
KUBECTL=${KUBECTL:-$(command -v kubectl || find /var/cache/agent-sandbox -path '*/kube-v*/kubectl' 2>/dev/null | sort | tail -n 1)}
[ -n "$KUBECTL" ] || { skip run "there is no kubectl" && exit 0; }
export RUN_FOLDER=$WORK/run SANDBOX_OUT=$OUT KUBECTL
DATA=$RUN_FOLDER/node
ETCD_BIN=$(etcd_program) && PATH=$(dirname "$ETCD_BIN"):$PATH
k() { "$KUBECTL" --kubeconfig="$RUN_FOLDER/server/admin.kubeconfig" --cache-dir="$WORK/kubectl-cache" "$@"; }

# run_says TEXT COMMAND: hack/run ends well, with a result.
run_says() {
    SAID=$(hack/run "$2" 2>&1)
    like "$1" '^Python 3\..* says 42$' "$SAID"
}
# containers: ids of those that run, a line each; and of all Pods together with their uids, what must stay the same.
containers() { node_podman ps -q --no-trunc --filter label=node.agent-sandbox.dev/pod-uid | sort; }
uids() { k get pods -A -o jsonpath='{range .items[*]}{.metadata.uid}{"\n"}{end}' | sort; }
uids_of_containers() { node_podman ps -a --format '{{index .Labels "node.agent-sandbox.dev/pod-uid"}}' | sort -u; }
full() { [ "$(k get swp python -o jsonpath='{.status.readyReplicas}')" = 2 ] && [ "$(containers | wc -l)" = 6 ] && [ "$(uids)" = "$(uids_of_containers)" ]; }
is_full() { if within 60 full; then ok "$1"; else not_ok "$1" "$(k get swp,pods; node_podman ps -a)"; fi; }
pid_of() { cut -d' ' -f1 "$RUN_FOLDER/run/$1.pid"; }
same_again() {
    run_says "$1" detached
    is_full "$1: pool and claim have their containers, and there are no others"
    is "$1: they are the same" "$CONTAINERS" "$(containers)"
}
cd "$ROOT" || exit 1
mkdir -p "$DATA"
if ! { "$NODE" image build --data "$DATA" && node_podman load -qi "$IMAGE"; } >"$WORK/image.log" 2>&1; then
    skip run "no engine runs here: $(tail -n 1 "$WORK/image.log")"
    exit 0
fi

# ---- the first time ----

run_says "from nothing to a command in a Sandbox" detached
printf '%s\n' "$SAID" | sed 's/^/# /'
is_full "the pool is full beside the claim"
CONTAINERS=$(containers)
POD=$(k get sandboxclaim session -o jsonpath='{.status.sandbox.name}')

# ---- kubectl ----

SEEN=$(k get sandboxes,sandboxclaims,swp,pods -A 2>&1)
for kind in sandbox.agents sandboxclaim.extensions sandboxwarmpool.extensions pod/; do like "kubectl get -A shows $kind" "^default +$kind" "$SEEN"; done
is "kubectl exec has its exit code" 7 "$(k exec "$POD" -- sh -c 'exit 7' >/dev/null 2>&1; echo $?)"
is "and its input" HELLO "$(echo hello | k exec -i "$POD" -- tr a-z A-Z)"
like "kubectl describe names the Pod's node and events" '^Node: +' "$(k describe pod "$POD")"
k create namespace other >/dev/null
k apply -n other -f examples/hello/sandbox.yaml >/dev/null
k run -n other talker --image="$BUSYBOX" --image-pull-policy=IfNotPresent --restart=Never -- sh -c 'echo said; trap "exit 0" TERM; sleep 1000 & wait' >/dev/null
t "kubectl wait sees the example Ready" k wait -n other --for=condition=Ready sandbox/hello --timeout=60s
t "and the Pod of kubectl run" k wait -n other --for=condition=Ready pod/talker --timeout=60s
is "kubectl logs" said "$(k logs -n other talker)"
k port-forward -n other pod/hello 18080:8080 >"$WORK/forward.log" 2>&1 &
FORWARD=$!
PIDS+=("$FORWARD")
within 20 grep -q Forwarding "$WORK/forward.log"
like "kubectl port-forward" '^hello from hello' "$(curl -s --max-time 20 http://127.0.0.1:18080/)"
kill "$FORWARD"
t "kubectl delete namespace" k delete namespace other --timeout=90s
is_full "and only what was in it is gone"

# ---- again ----

same_again "a second time"
like "beside one that is busy it says that it runs" 'it runs already in .*/run' "$(flock "$RUN_FOLDER/lock" hack/run detached 2>&1)"
like "in the foreground, too" 'it runs already in .*/run, detached' "$(hack/run up 2>&1)"
kill -9 "$(pid_of sandbox-apiserver)"
same_again "after kill -9 of the server"
kill -9 "$(pid_of sandbox-node)"
same_again "after kill -9 of the node"
kill -9 "$(pid_of sandbox-node)" "$(pid_of sandbox-apiserver)"
same_again "after kill -9 of both"
kill -9 "$(pid_of sandbox-node)"
k delete pod --force --grace-period=0 "$(k get pods -o name | grep -vF "/$POD" | head -n 1 | cut -d/ -f2)" >/dev/null 2>&1
run_says "after kill -9 of the node and the loss of a Pod" detached
is_full "the pool is full again, and no container is left over"

# ---- the end ----

everything_gone() {
    [ -z "$(node_podman ps -aq)" ] && ! grep -q " $DATA/" /proc/self/mountinfo && ! ip -o link | grep -qE 'sandbox[0-9]|veth' && [ -z "$(ls /run/netns)" ] &&
        [ -z "$(find /var/lib/cni -name '10.*')" ] && ! nft list ruleset | grep -qE 'CNI|sandbox' && ! pgrep -f "$RUN_FOLDER/" >/dev/null
}
gone_now() { if within 20 everything_gone; then ok "$1"; else not_ok "$1" "$(node_podman ps -a; grep " $DATA/" /proc/self/mountinfo; ip -o link; ls /run/netns; find /var/lib/cni; nft list ruleset; pgrep -af "$RUN_FOLDER/")"; fi; }
t "make run-stop" hack/run stop
gone_now "leaves no process, container, mount, interface, address and rule"
run_says "it starts again with what was stored" detached
is "the claim has the Sandbox it had" "$POD" "$(k get sandboxclaim session -o jsonpath='{.status.sandbox.name}')"
hack/run stop >/dev/null
hack/run >"$WORK/up.log" 2>&1 &
UP=$!
PIDS+=("$UP")
t "in the foreground it runs on" within 90 grep -q 'Ctrl-C ends it' "$WORK/up.log"
like "a second one says so" "it runs already in .*/run, as process $UP" "$(hack/run 2>&1)"
kill -TERM "$UP"
wait "$UP"
is "and ends with exit code 0" 0 $?
gone_now "with everything of its own"
t "make run-stop PURGE=1" hack/run purge
t "removes its folder" test ! -e "$RUN_FOLDER"
