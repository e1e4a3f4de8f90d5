# Sandboxes on one machine: a server without a cluster, and a node that runs their Pods; pools, claims, both killed.
# shellcheck shell=bash disable=SC2034 source=tests/node/lib.sh
STANDALONE=1
. "$(dirname "$0")/lib.sh"

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

# ---- both are killed ----

ID=$(container "$POD")
server_kill
node_kill 9
standalone_up
real_node_up "server and node start again after kill -9 of both"
ready "the claim is Ready still" "$EXTENSIONS/sandboxclaims/mine"
is "in the same container" "$ID" "$(container "$POD")"
t "the pool is full" within 90 pool_is_full

# ---- the end ----

kube DELETE "$EXTENSIONS/sandboxwarmpools/box" >/dev/null
kube DELETE "$EXTENSIONS/sandboxclaims/mine" >/dev/null
kube DELETE "$SANDBOXES/sandboxes/hello" >/dev/null
no_pods() { kube GET "$PODS" | jq -e '.items == []' >/dev/null; }
t "with pool, claim and Sandbox their Pods go" within 120 no_pods
nothing_left "nothing is left of them on the machine"
