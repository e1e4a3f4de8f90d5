# `make run`, as README has it: server, node, image, pool, claim and a command, and what kubectl does then; what it takes from a fresh
# clone and the next time; twice, after kill -9 of either and both, in the foreground, and its end, after which nothing is left. Without
# packages; the clone is built and the image is made before, where there is a network.
# shellcheck shell=bash disable=SC2034 source=tests/node/lib.sh
IMAGE=$(cd "$(dirname "$0")/../.." && pwd)/build/python-image.tar

# spent FIGURES COMMAND...: notes what it took: seconds, and seconds of processors. What it says is in FIGURES.log.
spent() {
    local TIMEFORMAT='%R %U %S'
    { time "${@:2}" >"$1.log" 2>&1; } 2>"$1"
}
# Nothing but Debian's packages is there: no ccache, no image, no flags of a make around this.
alone() { env -i PATH="$PATH" CCACHE_DISABLE=1 "$@"; }
# from_fresh_clone FOLDER: the files of the tree as they are now, built; and the image.
from_fresh_clone() {
    mkdir -p "$1/clone" "${IMAGE%/*}"
    (cd "${IMAGE%/*}/.." && git ls-files -z | tar --null --files-from=- --ignore-failed-read -cf -) 2>/dev/null | tar -C "$1/clone" -xf -
    spent "$1/build" alone make -s -C "$1/clone" -j"$(nproc)" all &&
        spent "$1/again" alone make -s -C "$1/clone" -j"$(nproc)" all &&
        spent "$1/image" alone "$1/clone/build/gcc/sandbox-node" image build python --output "$IMAGE.new" && mv "$IMAGE.new" "$IMAGE"
    rm -rf "$1/clone" "$IMAGE.new"
}
if [ -z "${NODE_TEST_INSIDE:-}" ]; then
    FRESH=$(mktemp -d)
    export FRESH
    [ "$(id -u)" != 0 ] || from_fresh_clone "$FRESH"
fi
STANDALONE=1 ALONE=1
. "$(dirname "$0")/lib.sh"
mv "$FRESH" "$WORK/fresh"
FRESH=$WORK/fresh
[ -s "$IMAGE" ] || { skip run "no image with Python: $(tail -qn 1 "$FRESH"/*.log)" && exit 0; }
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
    spent "$FRESH/again.run" run_says "$1" detached
    cat "$FRESH/again.run.log"
    is_full "$1: pool and claim have their containers, and there are no others"
    is "$1: they are the same" "$CONTAINERS" "$(containers)"
}
cd "$ROOT" || exit 1
mkdir -p "$DATA"
if ! { "$NODE" image build --data "$DATA" && spent "$FRESH/load" node_podman load -qi "$IMAGE"; } >"$WORK/image.log" 2>&1; then
    skip run "no engine runs here: $(tail -n 1 "$WORK/image.log")"
    exit 0
fi

# ---- the first time ----

# in_time TEXT SECONDS FIGURES...: all together took no longer, on two cores and no others' work; with it as much longer as there is of it.
in_time() {
    local took load
    read -r load _ </proc/loadavg
    took=$(cat "${@:3}" | awk '{ all += $1; own += $2 + $3 } END { printf "%.1f s, of processors %.1f s", all, own }')
    printf '# %s: %s, at a load of %s on %s cores\n' "$1" "$took" "$load" "$(nproc)"
    t "$1: at most $2 s" awk -v took="${took%% *}" -v most="$2" -v load="$load" -v cores="$(nproc)" \
        'BEGIN { exit took > most * (load > cores ? load / cores : 1) * (cores < 2 ? 2 : 1) }'
}

spent "$FRESH/first" run_says "from nothing to a command in a Sandbox" detached
cat "$FRESH/first.log"
printf '%s\n' "$SAID" | sed 's/^/# /'
if [ -s "$FRESH/image" ]; then
    is "built once there is nothing to build" "" "$(cat "$FRESH/again.log")"
    for part in build image load first; do echo "# $part: $(cut -d' ' -f1 "$FRESH/$part") s"; done
    in_time "from a fresh clone to a result" 180 "$FRESH"/{build,image,load,first}
else
    skip "from a fresh clone to a result" "no fresh build here: $(tail -qn 1 "$FRESH"/*.log)"
fi
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
[ ! -s "$FRESH/image" ] || in_time "the second time" 10 "$FRESH"/{again,again.run}
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
