# NetworkPolicies with real packets: between sandboxes of two namespaces, the machine, and an outside that the test makes itself. Every
# cell (who, whom, protocol, port) is tried and compared with what the policies mean (policy_matrix.py), after each change of policies,
# labels and addresses, with a node that is dead, and with addresses that are not one's own.
# shellcheck shell=bash disable=SC2034,SC2016 source=tests/node/lib.sh
STANDALONE=1
. "$(dirname "$0")/lib.sh"
for program in python3 nft nsenter sysctl; do
    command -v "$program" >/dev/null || { skip "$(basename "$0")" "no $program here" && exit 0; }
done
MATRIX=$ROOT/tests/node/policy_matrix.py
POLICIES=/apis/networking.k8s.io/v1/namespaces
MACHINE=10.90.0.1 OUTSIDE=(198.51.100.10 198.51.100.20)

create() { kube POST "$1" "${JSON[@]}" -d "$2" >/dev/null; }
merge() { kube PATCH "$1" -H 'Content-Type: application/merge-patch+json' -d "$2" >/dev/null; }

# box NAMESPACE NAME LABELS PORTS: a sandbox; it says hello on 7000.
box() {
    PODS=/api/v1/namespaces/$1/pods pod "$2" '.metadata.labels = '"$3"' | main(.ports = '"$4"') | run("nc -ll -p 7000 -e echo hello")'
}
# policy NAMESPACE NAME SPEC: made or changed.
policy() {
    kube PATCH "$POLICIES/$1/networkpolicies/$2?fieldManager=test&force=true" -H 'Content-Type: application/apply-patch+yaml' -d '{"apiVersion":
        "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "'"$2"'"}, "spec": '"$3"'}' >/dev/null
}
policy_delete() { kube DELETE "$POLICIES/$1/networkpolicies/$2" >/dev/null; }

# where NAMESPACE/NAME: network namespace, address and container of the Pod's sandbox.
where() { jq -r --arg pod "$1" '.[$pod] | "\(.netns) \(.ip) \(.id)"' "$WORK/places"; }
# look_for_places: of all sandboxes that run.
look_for_places() {
    local ids
    mapfile -t ids < <(node_podman ps -q --filter "name=[.]pause[.]")
    node_podman inspect "${ids[@]}" |
        jq 'map({key: .Config.Labels["node.agent-sandbox.dev/pod"], value: {netns: .NetworkSettings.SandboxKey,
            id: .Id, ip: .NetworkSettings.Networks["agent-sandbox"].IPAddress}}) | from_entries' >"$WORK/places"
}
# serve_in NETNS ADDRESS...: until its namespace's test ends.
serve_in() {
    local enter=()
    [ -z "$1" ] || enter=(nsenter --net="$1")
    "${enter[@]}" python3 "$MATRIX" serve "${@:2}" >"$WORK/served" 2>>"$WORK/serve.log" &
    PIDS+=($!)
    within 20 grep -q ready "$WORK/served" || not_ok "packets are answered in $1" "$(tail -n 3 "$WORK/serve.log")"
}
# serve_all: in each sandbox that has no server yet.
SERVED=' '
serve_all() {
    local netns ip
    while read -r netns ip; do
        [[ $SERVED == *" $netns "* ]] && continue
        serve_in "$netns" "$ip"
        SERVED+="$netns "
    done < <(jq -r '.[] | "\(.netns) \(.ip)"' "$WORK/places")
}

try_matrix() {
    jq -n --argjson policies "$(kube GET /apis/networking.k8s.io/v1/networkpolicies)" --argjson pods "$(kube GET /api/v1/pods)" \
        --argjson namespaces "$(kube GET /api/v1/namespaces)" --slurpfile places "$WORK/places" --arg machine $MACHINE '{policies: $policies.items, pods:
        $pods.items, namespaces: $namespaces.items, places: $places[0], machine: $machine, outside: {netns: "/run/netns/outside", ips: $ARGS.positional}}' \
        --args "${OUTSIDE[@]}" | python3 "$MATRIX" compare >"$WORK/matrix" 2>&1
}
# matrix TEXT: every cell is as it should be, soon.
matrix() {
    if within 20 try_matrix; then ok "$1 ($(tail -n 1 "$WORK/matrix"))"; else not_ok "$1" "$(cat "$WORK/matrix")"; fi
}
# now_matrix TEXT: at once, for what must not have changed.
now_matrix() {
    if try_matrix; then ok "$1 ($(tail -n 1 "$WORK/matrix"))"; else not_ok "$1" "$(cat "$WORK/matrix")"; fi
}
# reaches NAMESPACE/NAME ADDRESS: by a packet of ICMP from there.
reaches() { nsenter --net="$(where "$1" | cut -d' ' -f1)" busybox ping -c 1 -W 2 "$2" >/dev/null 2>&1; }

# ---- where there are no rights for it ----

dropped() { setpriv --bounding-set=-net_admin --inh-caps=-net_admin "$@"; }
dropped "$NODE" --kubeconfig "$WORK/kubeconfig" --name refused --data "$WORK/refused" --storage-driver "$DRIVER" --port 0 </dev/null >"$WORK/refused.log" 2>&1
is "a node that may not set rules does not start" 1 $?
has "and says why, and what to do" "network policies cannot be enforced here (--allow-unenforced-policies runs Pods nevertheless)" "$(cat "$WORK/refused.log")"
umount -l "$WORK/refused/storage/overlay" 2>/dev/null

# ---- sandboxes, machine, outside ----

real_node_up "the node starts"
is "it has no rules as long as it has no Pod" "" "$(nft list tables)"
ip netns add outside
ip link add beyond0 type veth peer name beyond1 netns outside
ip address add 198.51.100.1/24 dev beyond0 && ip link set beyond0 up
for address in "${OUTSIDE[@]}"; do ip -n outside address add "$address/24" dev beyond1; done
ip -n outside link set beyond1 up && ip -n outside route add default via 198.51.100.1
create /api/v1/namespaces '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "left"}}'
create /api/v1/namespaces '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "right", "labels": {"team": "blue"}}}'
box left a '{app: "web", tier: "front"}' '[{name: "http", containerPort: 8080}]'
box left b '{app: "db"}' '[{name: "http", containerPort: 80}, {name: "dns", containerPort: 54, protocol: "UDP"}]'
box right c '{app: "web"}' '[{name: "http", containerPort: 81}]'
box right d '{app: "tool"}' '[]'
create "$EXTENSIONS/sandboxtemplates" '{"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxTemplate", "metadata": {"name": "box"}, "spec": {
    "podTemplate": {"spec": {"terminationGracePeriodSeconds": 1, "containers": [{"name": "main", "image": "'$BUSYBOX'", "command": ["sleep", "100000"]}]}}}}'
create "$EXTENSIONS/sandboxwarmpools" '{"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxWarmPool", "metadata": {"name": "box"},
    "spec": {"replicas": 1, "sandboxTemplateRef": {"name": "box"}}}'
five_are_ready() { kube GET /api/v1/pods | jq -e '[.items[] | select('"$READY"')] | length == 5' >/dev/null; }
t "five sandboxes become Ready, one of them of a template" within 90 five_are_ready
[ "$BAD" = 0 ] || exit 1
look_for_places
serve_in "" $MACHINE
serve_in /run/netns/outside "${OUTSIDE[@]}"
serve_all
matrix "without policies of one's own everything passes, but for the sandbox of the template, which reaches the public only"
read -r NETNS_A IP_A _ < <(where left/a)
read -r NETNS_B IP_B _ < <(where left/b)
read -r NETNS_D IP_D _ < <(where right/d)
hello() { [ "$(node_podman exec "$(PODS=/api/v1/namespaces/left/pods container b)" nc -w 2 "$IP_A" 7000 2>/dev/null </dev/null)" = hello ]; }
t "a container's own program reaches another's" within 10 hello

# ---- one policy after the other ----

policy left deny '{"podSelector": {}, "policyTypes": ["Ingress"]}'
matrix "nothing comes in where a policy allows nothing"
policy left web '{"podSelector": {"matchLabels": {"app": "web"}}, "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "db"}}}], "ports": [{"port": 80},
    {"port": 54, "protocol": "UDP"}]}]}'
matrix "but for what another policy allows: Pods of the namespace, by label, two ports"
if hello; then not_ok "a container's own program is stopped at another port"; else ok "a container's own program is stopped at another port"; fi
policy left web '{"podSelector": {"matchLabels": {"app": "web"}}, "ingress": [{"from": [{"namespaceSelector": {"matchLabels": {"team": "blue"}},
    "podSelector": {"matchLabels": {"app": "web"}}}]}]}'
matrix "a namespace and Pods in it, together"
policy left web '{"podSelector": {"matchLabels": {"app": "web"}}, "ingress": [{"from": [{"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]}},
    {"podSelector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}}]}]}'
matrix "or either of the two, by expressions"
policy right out '{"podSelector": {"matchLabels": {"app": "tool"}}, "policyTypes": ["Egress"], "egress": [{"ports": [{"port": 80, "endPort": 90}, {"port": 54, "protocol": "UDP"}]}]}'
matrix "what goes out, by a range of ports"
policy right out '{"podSelector": {}, "egress": [{"to": [{"namespaceSelector": {}}], "ports": [{"port": "http"}, {"port": "dns", "protocol": "UDP"}]}]}'
matrix "by names of ports, each Pod's own number"
policy left web '{"podSelector": {}, "ingress": [{"ports": [{"port": "http"}]}, {"from": [{"ipBlock": {"cidr": "198.51.100.0/24", "except": ["198.51.100.10/32"]}}],
    "ports": [{"port": 95}]}, {"from": [{"ipBlock": {"cidr": "198.51.100.8/29"}}], "ports": [{"port": 81}]}]}'
matrix "what comes in by names of ports, and by blocks of addresses"
policy right out '{"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"to": [{"ipBlock": {"cidr": "198.51.0.0/16", "except": ["198.51.100.16/28"]}},
    {"ipBlock": {"cidr": "10.90.0.0/31"}}]}]}'
matrix "what goes out by blocks of addresses, the machine's too"
policy right out '{"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}'
matrix "neither in nor out, but from the machine"

# ---- before the first container ----

policy right early '{"podSelector": {"matchLabels": {"app": "early"}}, "policyTypes": ["Egress"]}'
policy right out '{"podSelector": {"matchLabels": {"app": "nobody"}}}'
PODS=/api/v1/namespaces/right/pods
pod early '.metadata.labels = {app: "early"} | run("for i in 1 2 3 4; do nc -w 1 '"$(where right/d | cut -d' ' -f2)"' 7000 </dev/null; done; echo tried; sleep 100000")'
has_tried() { said early | grep -q tried; }
t "a Pod tries to reach another as soon as it starts" within 60 has_tried
has "and never did" "nc: timed out" "$(said early)"
if said early | grep -q hello; then not_ok "not even once" "$(said early)"; else ok "not even once"; fi
pod_delete early
gone "it ends" early
PODS=/api/v1/namespaces/default/pods

# ---- labels ----

merge /api/v1/namespaces/left/pods/a '{"metadata": {"labels": {"app": "other"}}}'
policy left web '{"podSelector": {"matchLabels": {"app": "other"}}, "ingress": [{"from": [{"namespaceSelector": {"matchLabels": {"team": "red"}}}]}]}'
policy_delete right out
matrix "labels of a Pod change"
merge /api/v1/namespaces/right '{"metadata": {"labels": {"team": "red"}}}'
matrix "labels of a namespace change"

# ---- connections that run ----

nsenter --net="$NETNS_D" python3 "$MATRIX" hold "$IP_A" 80 "$WORK/held" 2>>"$WORK/serve.log" &
PIDS+=($!)
held() { cat "$WORK/held"; }
moves() { local n; n=$(held); sleep 0.5; [ "$(held)" -gt "$n" ]; }
stands() { local n; n=$(held); sleep 2; [ "$(held)" = "$n" ]; }
t "a connection runs" within 20 moves
policy left web '{"podSelector": {"matchLabels": {"app": "other"}}}'
t "it stops when nothing allows it any more" within 20 stands
policy left web '{"podSelector": {"matchLabels": {"app": "other"}}, "ingress": [{}]}'
t "and goes on when something does" within 60 moves

# ---- other addresses, a dead node ----

policy left web '{"podSelector": {"matchLabels": {"app": "other"}}, "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "db"}}}]}]}'
matrix "one Pod is let in"
node_podman kill "$(where left/b | cut -d' ' -f3)" >/dev/null
has_moved() { look_for_places && five_are_ready && read -r netns _ < <(where left/b) && [ "$netns" != null ] && [ "$netns" != "$NETNS_B" ]; }
t "its sandbox breaks down and is made anew" within 60 has_moved
serve_all
matrix "it is let in from where it is now"
echo "# resident memory of the node: $(awk '/^VmRSS/ { print $2 }' "/proc/$NODE_PID/status") KiB"
node_kill 9
now_matrix "a node that is killed leaves the rules"
policy left web '{"podSelector": {"matchLabels": {"app": "other"}}, "ingress": [{"from": [{"ipBlock": {"cidr": "0.0.0.0/0"}}], "ports": [{"port": 81}]}]}'
real_node_up "started again it goes on"
matrix "with the policies as they are now"
nft flush ruleset
policy left web '{"podSelector": {"matchLabels": {"app": "other"}}, "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "db"}}}], "ports": [{"port": 80}]}]}'
matrix "rules that somebody took away are there again with the next change"

# ---- addresses that are not one's own ----

read -r NETNS_B IP_B _ < <(where left/b)
policy left web '{"podSelector": {"matchLabels": {"app": "other"}}, "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "db"}}}]}]}'
matrix "one Pod is let in by its address"
t "it is" within 10 reaches left/b "$IP_A"
as_b() { nsenter --net="$NETNS_D" busybox ping -c 2 -W 1 -I "$IP_B" "$IP_A"; }
MAC_B=$(nsenter --net="$NETNS_B" ip -j link show eth0 | jq -r '.[0].address')
nsenter --net="$NETNS_D" sh -c "ip address add $IP_B/32 dev eth0"
if as_b >/dev/null 2>&1; then not_ok "another with its address is not"; else ok "another with its address is not"; fi
nsenter --net="$NETNS_D" sh -c "ip link set eth0 down && ip link set eth0 address $MAC_B && ip link set eth0 up"
if as_b >/dev/null 2>&1; then not_ok "nor with its hardware address as well"; else ok "nor with its hardware address as well"; fi
t "nobody else has lost it by that" within 10 reaches left/b "$IP_A"
LOCAL_A=$(nsenter --net="$NETNS_A" ip -j -6 address show dev eth0 | jq -r '.[0].addr_info[0].local')
nsenter --net="$NETNS_B" busybox ping -6 -c 2 -W 1 -I eth0 "$LOCAL_A" >/dev/null 2>&1
is "IPv6, which Pods have no address of, does not pass" 1 $?

# ---- the end ----

kube DELETE "$EXTENSIONS/sandboxwarmpools/box" >/dev/null
for pod in left/a left/b right/c right/d; do kube DELETE "/api/v1/namespaces/${pod%/*}/pods/${pod#*/}" >/dev/null; done
no_pods() { kube GET /api/v1/pods | jq -e '.items == []' >/dev/null; }
t "the Pods go" within 60 no_pods
no_rules() { ! nft list tables | grep -q sandbox_node; }
t "their rules go with the last of them" within 20 no_rules
ip netns delete outside
nothing_left "nothing is left of them on the machine"

# ---- not enforced, as asked for ----

node_kill TERM
is "the node ends with exit code 0" 0 $?
real_node_up "a node starts that enforces nothing, as it is told" --allow-unenforced-policies
t "its log says so" within 20 grep -q "network policies are NOT enforced on this node" "$WORK/node.log"
box left open '{app: "db"}' '[]'
box right free '{app: "db"}' '[]'
says_open() { kube GET /api/v1/namespaces/left/pods/open | jq -e 'any(.status.conditions[]; .type == "node.agent-sandbox.dev/NetworkPolicyEnforced" and .status == "False")' >/dev/null; }
t "a Pod that a policy selects says so" within 60 says_open
has_event() { kube GET /api/v1/namespaces/left/events | jq -e 'any(.items[]; .reason == "NetworkPolicyNotEnforced" and .involvedObject.name == "open")' >/dev/null; }
t "so does an event" within 20 has_event
PODS=/api/v1/namespaces/right/pods
comes "another becomes Ready" free "$READY"
is "and has nothing to say" 0 "$(get free '[.status.conditions[] | select(.type | contains("NetworkPolicy"))] | length')"
policy_delete left deny
says_nothing() { ! says_open; }
t "nor has the first when no policy selects it any more" within 20 says_nothing
is "there are no rules" "" "$(nft list tables | grep sandbox_node)"
kube DELETE /api/v1/namespaces/left/pods/open >/dev/null && pod_delete free
t "the Pods go" within 60 no_pods
