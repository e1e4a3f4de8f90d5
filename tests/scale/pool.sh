# shellcheck shell=bash source=tests/scale/lib.sh
. "$(dirname "$0")/lib.sh"
etcd_up
kube_up
node_up --nodes 3
replicas_up 1
B=$(now_ms)
pool_make big 1000
within 120 pool_is big 1000 || not_ok "fills"
echo "# fill took $(($(now_ms) - B)) ms"
is "pods created" 1000 "$(kube_count pods POST)"
echo "# node: $(tail -n 2 "$WORK/node.log")"
