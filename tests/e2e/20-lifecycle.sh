#!/bin/bash
# A Sandbox from its creation to its end, with a container that really runs: pod, Service, volume, suspend, resume,
# deletion by the cluster's own garbage collector.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
namespace "$NS"
[ "$CLUSTER_NODE" != fake ] || { skip "life of a Sandbox" "the cluster has a fake node" && exit 0; }

apply_hello() { kubectl -n "$NS" apply -f "$ROOT/examples/hello/sandbox.yaml"; }
apply_unchanged() { apply_hello | grep unchanged; }
# replaced UID: the pod hello is another one than that.
replaced() { local now && now=$(value pod/hello .metadata.uid) && [ -n "$now" ] && [ "$now" != "$1" ]; }
volume_gone() { local left && left=$(kubectl get pv "$1" --ignore-not-found -o name) && [ -z "$left" ]; }

kubectl -n "$NS" -v 6 get sandboxes -w --no-headers >"$WORK/watch" 2>"$WORK/watch.log" &
watch=$!
t "get -w has begun" within 30 grep -qF "/$NS/sandboxes" "$WORK/watch.log"
t "apply of the hello example" apply_hello
t "a second apply changes nothing" apply_unchanged
t "kubectl wait for Ready" kubectl -n "$NS" wait --for=condition=Ready sandbox/hello --timeout 60s
is "its pod runs on the kubelet" Running "$(value pod/hello .status.phase)"
like "the columns are NAME READY REASON AGE" '^NAME +READY +REASON +AGE$' "$(kubectl -n "$NS" get sandboxes)"
like "the row says that it is ready" '^hello +True +DependenciesReady +[0-9]+s$' "$(kubectl -n "$NS" get sandbox hello --no-headers)"
t "get -w showed it becoming ready" within 10 grep -qE '^hello +True ' "$WORK/watch"
t "get -w showed it before that" grep -qE '^hello +(False|Unknown|<none>)? ' "$WORK/watch"
is "status has the pod's address" "$(value pod/hello .status.podIP)" "$(value sandbox/hello '.status.podIPs[0]')"
is "status has the node's name" "$(value pod/hello .spec.nodeName)" "$(value sandbox/hello .status.nodeName)"
is "status has the Service's name" "hello.$NS.svc.cluster.local" "$(value sandbox/hello .status.serviceFQDN)"
is "the selector in the status finds the pod" pod/hello "$(kubectl -n "$NS" get pods -o name -l "$(value sandbox/hello .status.selector)")"
is "the Service is headless" None "$(value service/hello .spec.clusterIP)"
is "the pod belongs to the Sandbox" "Sandbox/hello" "$(value pod/hello '.metadata.ownerReferences[0].kind')/$(value pod/hello '.metadata.ownerReferences[0].name')"
is "the volume claim is bound" Bound "$(value pvc/data-hello .status.phase)"
lacks containers "exec runs a command in it" || is "exec runs a command in it" 10001 "$(kubectl -n "$NS" exec hello -- id -u 2>&1)"

if ! lacks containers "another pod gets its page by the Service's full name"; then
    client ask
    page=$(kubectl -n "$NS" exec ask -- wget -qO- "http://hello.$NS.svc.cluster.local:8080/index.html" 2>&1)
    like "another pod gets its page by the Service's full name" '^hello from hello, first started' "$page"
    is "and by its short name" "$page" "$(kubectl -n "$NS" exec ask -- wget -qO- http://hello:8080/index.html 2>&1)"
fi

old=$(value pod/hello .metadata.uid)
t "suspend" kubectl -n "$NS" patch sandbox hello --type merge -p '{"spec":{"operatingMode":"Suspended"}}'
t "condition Suspended becomes true" kubectl -n "$NS" wait --for=condition=Suspended sandbox/hello --timeout 60s
t "the pod goes" within 30 gone "$NS" pod/hello
is "the volume claim stays" Bound "$(value pvc/data-hello .status.phase)"
like "it is not ready any more" '^hello +False ' "$(kubectl -n "$NS" get sandbox hello --no-headers)"
is "status names no address any more" "" "$(value sandbox/hello .status.podIPs)"

t "resume" kubectl -n "$NS" patch sandbox hello --type merge -p '{"spec":{"operatingMode":"Running"}}'
t "it becomes ready again" kubectl -n "$NS" wait --for=condition=Ready sandbox/hello --timeout 60s
t "it is a new pod" replaced "$old"
if ! lacks containers "with the old data"; then
    is "with the old data" "$page" "$(kubectl -n "$NS" exec ask -- wget -qO- http://hello:8080/index.html 2>&1)"
    is "started twice on the same volume" 2 "$(kubectl -n "$NS" exec hello -- grep -c started /data/starts)"
fi

# A pod that dies from outside is made again.
old=$(value pod/hello .metadata.uid)
kubectl -n "$NS" delete pod hello --wait=false >/dev/null
t "a deleted pod is replaced" within 60 replaced "$old"
t "and the Sandbox ready once more" kubectl -n "$NS" wait --for=condition=Ready sandbox/hello --timeout 60s

volume=$(value pvc/data-hello .spec.volumeName)
t "delete" kubectl -n "$NS" delete sandbox hello --timeout 60s
t "the garbage collector takes pod, Service and volume claim" within 60 gone "$NS" pod/hello service/hello pvc/data-hello
t "and the volume goes with its claim" within 60 volume_gone "$volume"
is "no Sandbox is listed" "" "$(kubectl -n "$NS" get sandboxes -o name)"
kill $watch 2>/dev/null

sandbox timed "shutdownTime: \"$(date -u -d '+10 seconds' +%Y-%m-%dT%H:%M:%SZ)\"" | kubectl -n "$NS" apply -f - >/dev/null
t "a Sandbox with a shutdownTime runs until then" kubectl -n "$NS" wait --for=condition=Ready sandbox/timed --timeout 30s
t "and its pod goes when it has come" within 30 gone "$NS" pod/timed
like "the Sandbox is kept and says so" '^timed +False +SandboxExpired' "$(kubectl -n "$NS" get sandbox timed --no-headers)"
