# What client-go has for commands in Pods and for their ports, over SPDY and over websockets, through a server without a cluster to a node's
# real containers.
# shellcheck shell=bash disable=SC2034 source=tests/node/lib.sh
STANDALONE=1
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/lib/relay.sh
. "$ROOT/tests/lib/relay.sh"
STREAMS=$("$ROOT/tests/compat/clients" go)/streams
[ -x "$STREAMS" ] || { skip "client-go" "it is not there: tests/compat/clients make go" && exit 0; }

real_node_up "the node starts" --port 0
pod streams
comes "a Pod becomes Ready" streams "$READY"
relay env "$STREAMS" "$WORK/server/admin.kubeconfig" default streams
t "the node is there still" kill -0 "$NODE_PID"
pod_delete streams
gone "its Pod goes" streams
nothing_left "nothing is left of it on the machine"
