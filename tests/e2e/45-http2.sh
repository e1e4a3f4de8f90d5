#!/bin/bash
# The aggregator's way to the server: many watches on few connections of HTTP/2, each event to each of them, and an orderly end.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
[ -n "$CLUSTER_NETNS" ] || { skip "the server's metrics" "the cluster has no network of its own" && exit 0; }
namespace "$NS"
WATCHES=30
# metric PATTERN: the sum of its series, 0 without.
metric() { server_metrics | awk -v p="$1" '$0 ~ p { n += $2 } END { print n + 0 }'; }
watching() { [ "$(metric '^apiserver_longrunning_requests.*resource="sandboxes".*scope="namespace"')" -ge "$1" ]; }
not_watching() { [ "$(metric '^apiserver_longrunning_requests.*resource="sandboxes".*scope="namespace"')" = 0 ]; }
seen() { [ "$(grep -l "\"name\":\"$1\"" "$WORK"/watch.* 2>/dev/null | wc -l)" = $WATCHES ]; }

pids=()
for i in $(seq $WATCHES); do
    curl -sN --max-time 120 --cacert "$CLUSTER_CA" --cert "$CLUSTER_PKI/admin.crt" --key "$CLUSTER_PKI/admin.key" \
        "$CLUSTER_API$GROUP/namespaces/$NS/sandboxes?watch=true" >"$WORK/watch.$i" &
    pids+=($!)
done
t "$WATCHES clients watch through kube-apiserver" within 20 watching $WATCHES
# Its own, the one that asks, and those that end: far fewer than there are watches.
connections=$(metric '^agent_sandbox_http_connections.*protocol="h2"')
is "on few connections of HTTP/2, not one each: $connections" yes "$([ "$connections" -ge 1 ] && [ "$connections" -le 6 ] && echo yes)"
is "and none of HTTP/1.1" 0 "$(metric '^agent_sandbox_http_connections.*protocol="http/1.1"')"
create one >/dev/null
t "each of them sees a Sandbox that is made" within 20 seen one
kill "${pids[@]:0:10}"
t "who goes is not watched for any longer" within 20 eval '! watching 21'
pids=("${pids[@]:10}")
kubectl -n "$SYSTEM" rollout restart deployment/sandbox-apiserver >/dev/null
kubectl -n "$SYSTEM" rollout status deployment/sandbox-apiserver --timeout 120s >/dev/null
ended=0
for pid in "${pids[@]}"; do wait "$pid" && ended=$((ended + 1)); done
is "the others end in order when the server is replaced" 20 "$ended"
t "and it is served again" within 30 kubectl -n "$NS" get sandbox one
t "to nobody who watches" within 20 not_watching
