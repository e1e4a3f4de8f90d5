# Sandboxes on one machine: a server without a cluster, and a node that runs their Pods; pools, claims, both killed.
# shellcheck shell=bash disable=SC2034 source=tests/node/lib.sh
STANDALONE=1
. "$(dirname "$0")/lib.sh"

NODE_FLAGS=(--allowed-host-paths="$WORK/shelf")
real_node_up "the node registers itself with a server without a cluster"
SANDBOXES=/apis/agents.x-k8s.io/v1beta1/namespaces/default
EXTENSIONS=/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default

# create PATH JSON
create() { kube POST "$1" -H 'Content-Type: application/json' -d "$2" >/dev/null; }
# is_ready_object PATH: its condition says so.
is_ready_object() { kube GET "$1" | jq -e "$READY" >/dev/null; }
# ready TEXT PATH
ready() { if within 90 is_ready_object "$2"; then ok "$1"; else not_ok "$1" "$(kube GET "$2" | jq -c .status; kube GET "$PODS" | jq -c '.items[].status'; tail -n 5 "$WORK/node.log")"; fi; }

# ---- the example ----

kube POST "$SANDBOXES/sandboxes" -H 'Content-Type: application/yaml' --data-binary "@$ROOT/examples/hello/sandbox.yaml" >/dev/null
ready "the example becomes Ready" "$SANDBOXES/sandboxes/hello"
IP=$(kube GET "$SANDBOXES/sandboxes/hello" | jq -r '.status.podIPs[0]')
like "it serves its page at the address of its status" "^hello from hello, first started" "$(curl -s --max-time 10 "http://$IP:8080/")"

# ---- what a Pod has of its account ----

pod known 'del(.spec.nodeName, .spec.automountServiceAccountToken)'
comes "a Pod that does not say no has a token" known "$READY"
account() { inside known cat "/var/run/secrets/kubernetes.io/serviceaccount/$1"; }
is "and its namespace" default "$(account namespace)"
is "and the server's authority" "$(cat "$WORK/server/ca.crt")" "$(account ca.crt)"
like "the server knows the token" 'system:serviceaccount:default:default' \
    "$(curl -s --cacert "$WORK/server/ca.crt" -H "Authorization: Bearer $(account token)" "$URL$PODS" | jq -r .message)"
pod_delete known

# ---- volumes: folders of the node's, and of the machine where that is allowed ----

CLAIMS=/api/v1/namespaces/default/persistentvolumeclaims
folders() { (cd "$DATA/claims" && echo *) | tr ' ' '\n' | sort; }
KEPT=$(kube GET "$CLAIMS/data-hello" | jq -r .metadata.uid)
is "the example's claim is bound to a folder that bears its uid" "Bound pvc-$KEPT $KEPT" "$(kube GET "$CLAIMS/data-hello" | jq -r '.status.phase + " " + .spec.volumeName') $(folders)"
SPEC='"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}'
create "$CLAIMS" '{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "brief"}, "spec": {'"$SPEC"'}}'
for place in shelf forbidden; do
    mkdir -p "$WORK/$place"
    create /api/v1/persistentvolumes '{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "'$place'"}, "spec": {"accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Mi"}, "storageClassName": "'$place'", "hostPath": {"path": "'"$WORK/$place"'"}}}'
    create "$CLAIMS" '{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "'$place'"}, "spec": {"storageClassName": "'$place'", '"$SPEC"'}}'
done
for claim in brief shelf forbidden; do
    pod "with-$claim" 'del(.spec.nodeName) | .spec.volumes = [{name: "v", persistentVolumeClaim: {claimName: "'$claim'"}}] | main(.volumeMounts = [{name: "v", mountPath: "/v"}]) |
        run("echo written > /v/file; sleep 100000")'
done
for claim in brief shelf; do comes "a Pod with the claim $claim runs" "with-$claim" "$READY"; done
brief=$(kube GET "$CLAIMS/brief" | jq -r .metadata.uid)
is "what it writes is in the folder of its claim" written "$(cat "$DATA/claims/$brief/file")"
is "or where the volume is that somebody made" written "$(cat "$WORK/shelf/file")"
told_of_mount() { kube GET "/api/v1/namespaces/default/events?fieldSelector=reason=FailedMount" | jq -e 'any(.items[]; .message | contains("--allowed-host-paths"))' >/dev/null; }
t "a volume elsewhere on the machine is not mounted, as an event says" within 60 told_of_mount
is "and nothing was written there" "" "$(ls "$WORK/forbidden")"
for claim in brief shelf forbidden; do kube DELETE "$CLAIMS/$claim" >/dev/null; done
t "a claim in use stays" kube GET "$CLAIMS/brief"
for claim in brief shelf forbidden; do pod_delete "with-$claim"; done
claim_gone() { ! kube GET "$CLAIMS/$1" 2>/dev/null; }
for claim in brief shelf forbidden; do t "without its Pod the claim $claim goes" within 60 claim_gone "$claim"; done
is "the volume that was made for it as well; others are kept" "Bound Released Released" \
    "$(kube GET /api/v1/persistentvolumes | jq -r '[.items[].status.phase] | sort | join(" ")')"

# ---- a pool ----

create "$EXTENSIONS/sandboxtemplates" '{"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxTemplate", "metadata": {"name": "box"}, "spec": {
    "networkPolicyManagement": "Unmanaged", "podTemplate": {"spec": {"terminationGracePeriodSeconds": 1, "containers": [{"name": "main", "image": "'$BUSYBOX'",
    "command": ["sleep", "100000"]}]}}}}'
create "$EXTENSIONS/sandboxwarmpools" '{"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxWarmPool", "metadata": {"name": "box"}, "spec": {"replicas": 2,
    "sandboxTemplateRef": {"name": "box"}}}'
pool_is_full() { kube GET "$EXTENSIONS/sandboxwarmpools/box" | jq -e '.status.readyReplicas == 2' >/dev/null; }
t "a pool of two fills with real containers" within 90 pool_is_full
CLAIM='{"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim", "metadata": {"name": "mine"}, "spec": {"warmPoolRef": {"name": "box"}}}'
is "a claim is bound and Ready in the answer to its POST" True "$(kube POST "$EXTENSIONS/sandboxclaims" -H 'Content-Type: application/json' -d "$CLAIM" |
    jq -r '.status.conditions[] | select(.type == "Ready") | .status')"
POD=$(kube GET "$EXTENSIONS/sandboxclaims/mine" | jq -r .status.sandbox.name)
is "a command runs in its container" 42 "$(inside "$POD" sh -c 'echo $((6 * 7))')"
t "the pool fills again" within 90 pool_is_full

is "another's stable name leads to it" "$IP" "$(inside "$POD" nslookup hello.default.svc.cluster.local | awk '/^Address/ { a = $NF } END { print a }')"
is "so does the short one" "$IP" "$(inside "$POD" nslookup hello | awk '/^Address/ { a = $NF } END { print a }')"

# ---- both are killed ----

ID=$(container "$POD")
server_kill
node_kill 9
standalone_up
real_node_up "server and node start again after kill -9 of both"
ready "the claim is Ready still" "$EXTENSIONS/sandboxclaims/mine"
is "in the same container" "$ID" "$(container "$POD")"
t "the pool is full" within 90 pool_is_full

only_kept() { [ "$(folders)" = "$KEPT" ]; }
t "of claims' folders only that of a claim is left" within 30 only_kept
is "with its data" 1 "$(grep -c started "$DATA/claims/$KEPT/starts")"
is "and what somebody gave away has kept what was written" written "$(cat "$WORK/shelf/file")"

# ---- the machine goes down ----

# machine_down: server, node, engine, its monitors and all containers at once; what a restart takes with it besides is taken away.
machine_down() {
    local pids place
    pids=$(node_podman ps -q | xargs -r env CONTAINERS_CONF="$DATA/containers.conf" CONTAINERS_STORAGE_CONF="$DATA/storage.conf" podman \
        --root="$DATA/storage" --runroot="$DATA/run" --tmpdir="$DATA/tmp" --storage-driver="$DRIVER" inspect --format '{{.State.ConmonPid}} {{.State.Pid}}')
    server_kill
    node_kill 9
    # The monitors first, so that they tell nobody how the containers end.
    for pid in $(awk '{ print $1 }' <<<"$pids") $(awk '{ print $2 }' <<<"$pids"); do kill -9 "$pid"; done
    within 20 engine_rests
    for place in "$DATA/storage" "$DATA/pods" /run/netns; do
        awk -v at="$place/" 'index($5, at) == 1 { print $5 }' /proc/self/mountinfo | sort -r | xargs -r -n 1 umount -l 2>/dev/null
    done
    rm -rf /run/netns/* /var/lib/cni/networks "$DATA/boot-id" # the addresses: as Podman tells systemd-tmpfiles
    ip link delete sandbox0
}
pod once 'del(.spec.nodeName) | .spec.restartPolicy = "Never" | .spec.volumes = [{name: "v", hostPath: {path: "'"$WORK/shelf"'"}}] |
    main(.volumeMounts = [{name: "v", mountPath: "/v"}]) | run("echo begun >> /v/once; sleep 100000")'
comes "a Pod runs that is to run once" once "$READY"
UID_BEFORE=$(get "$POD" .metadata.uid)
machine_down
standalone_up
real_node_up "server and node start when the machine does"
comes "what was to run once has failed" once '.status.phase == "Failed"'
is "with a reason" "137 ContainerStatusUnknown" "$(get once '.status.containerStatuses[0].state.terminated | "\(.exitCode) \(.reason)"')"
is "and has not run again" 1 "$(grep -c begun "$WORK/shelf/once")"
pod_delete once
comes "what runs for ever runs again" "$POD" "$READY and .status.containerStatuses[0].restartCount == 1 and .metadata.uid == \"$UID_BEFORE\""
is "in another container" no "$([ "$ID" = "$(container "$POD")" ] && echo yes || echo no)"
comes "the example as well" hello "$READY and .status.containerStatuses[0].restartCount == 1"
IP=$(get hello .status.podIP)
tells_address() { [ "$IP" = "$(kube GET "$SANDBOXES/sandboxes/hello" | jq -r '.status.podIPs[0]')" ]; }
t "its Sandbox tells the address that it has now" within 60 tells_address
like "it serves its page there" "^hello from hello, first started" "$(curl -s --retry 10 --retry-connrefused --max-time 10 "http://$IP:8080/")"
name_leads_there() { [ "$IP" = "$(inside "$POD" nslookup hello.default.svc.cluster.local | awk '/^Address/ { a = $NF } END { print a }')" ]; }
t "which is what its name leads to" within 60 name_leads_there
t "the pool is full again" within 90 pool_is_full

# ---- the end ----

kube DELETE "$SANDBOXES/sandboxes/hello" >/dev/null
name_is_gone() { [[ $(inside "$POD" nslookup hello.default.svc.cluster.local 2>&1) == *NXDOMAIN* ]]; }
t "with a Sandbox its name goes" within 60 name_is_gone
kube DELETE "$EXTENSIONS/sandboxwarmpools/box" >/dev/null
kube DELETE "$EXTENSIONS/sandboxclaims/mine" >/dev/null
no_pods() { kube GET "$PODS" | jq -e '.items == []' >/dev/null; }
t "with pool, claim and Sandbox their Pods go" within 120 no_pods
nothing_left "nothing is left of them on the machine"
