#!/bin/bash
# client-go as controllers have it: informers by WatchList and by list and watch, RetryWatcher, the pager; through kube-apiserver and at
# the server's own port, over HTTP/2 and HTTP/1.1. The server is killed and replaced below them, and forgets its history.
# shellcheck source=tests/compat/lib.sh
. "$(dirname "$0")/lib.sh"
namespace "$NS"
lacks aggregator || [ -n "$CLUSTER_NETNS" ] || { skip "the server's own port" "the cluster has no network of its own" && exit 0; }
programs=$("$CLIENTS" go)
[ -x "$programs/watches" ] || bail "there is no client-go: tests/compat/clients make go"
server_certificate

# What happens to the server meanwhile; `watches` calls these.
# forget_history: neither etcd nor a server that starts anew knows what was before, and the old one is gone.
forget_history() {
    local revision
    revision=$(etcd_call kv/range '{"key":"AA=="}' | jq -r .header.revision) &&
        etcd_call kv/compaction "{\"revision\":\"$revision\",\"physical\":true}" && replace_server && within 60 one_server
}
declare -f kill_server replace_server secret_file etcd_call forget_history within rest one_server >"$WORK/server"
export SYSTEM WORK CLUSTER CLUSTER_STATE

relay env BASH_ENV="$WORK/server" "$CLUSTER" run "$programs/watches" "$KUBECONFIG" "$NS" "$SERVER_URL" "$WORK/serving-ca.crt"
