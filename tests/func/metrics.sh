# What a server without a cluster tells about itself after some requests.
# shellcheck shell=bash source=tests/func/lib.sh
. "$(dirname "$0")/lib.sh"
etcd_up
server_up
api POST "$SANDBOXES" "${JSON[@]}" -d '{"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox","metadata":{"name":"a"},"spec":{"podTemplate":{"spec":{"containers":[]}}}}'
api GET "$SANDBOXES"
api GET /metrics
is "GET /metrics" 200 "$CODE"
t "it is described, well formed and bounded" "$ROOT/tests/metrics" "$WORK/body"
like "the object is counted" '^apiserver_storage_objects\{resource="sandboxes.agents.x-k8s.io"\} 1$' "$BODY"
like "with its size" '^agent_sandbox_cache_bytes\{resource="sandboxes.agents.x-k8s.io",part="objects"\} [1-9][0-9]*$' "$BODY"
like "and its write" '^agent_sandbox_watch_lag_seconds_count [1-9]' "$BODY"
api DELETE "$SANDBOXES/a"
api GET /metrics
like "an object that is gone takes no room" '^agent_sandbox_cache_bytes\{resource="sandboxes.agents.x-k8s.io",part="objects"\} 0$' "$BODY"
server_stop
