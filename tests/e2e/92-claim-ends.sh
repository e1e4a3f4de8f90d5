#!/bin/bash
# How claims end, with real pods and the cluster's own garbage collector: each policy at shutdownTime, and time to live after the pod
# has finished. Names of steps carry the ids of the behaviour checklist (tests/controllers.list).
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
namespace "$NS"
[ "$CLUSTER_NODE" != fake ] || { skip "ends of claims" "the cluster has a fake node" && exit 0; }
FINALIZER=e2e.example/held

ready() { kubectl -n "$NS" wait --for=condition=Ready "sandboxclaim/$1" --timeout 60s; }
reason() { value "sandboxclaim/$1" '.status.conditions[?(@.type=="Ready")].reason'; }
has_reason() { [ "$(reason "$1")" = "$2" ]; }
# in_time SECONDS: that far from now, as JSON members of a lifecycle.
in_time() { echo "shutdownTime: \"$(date -u -d "+$1 seconds" +%Y-%m-%dT%H:%M:%SZ)\""; }
hold() { kubectl -n "$NS" patch "pod/$1" --type merge -p "{\"metadata\":{\"finalizers\":[\"$FINALIZER\"]}}" >/dev/null; }
let_go() { kubectl -n "$NS" patch "pod/$1" --type merge -p '{"metadata":{"finalizers":null}}' >/dev/null; }
terminates() { [ -n "$(value "$1" .metadata.deletionTimestamp)" ]; }
end_now() { kubectl -n "$NS" patch "sandboxclaim/$1" --type merge -p "{\"spec\":{\"lifecycle\":{$(in_time -1 | sed 's/shutdownTime/"&"/')}}}" >/dev/null; }

template t red | kubectl -n "$NS" create -f - >/dev/null
template brief red 'sleep 4' Never | kubectl -n "$NS" create -f - >/dev/null
pool p t 0 | kubectl -n "$NS" create -f - >/dev/null
pool quick brief 0 | kubectl -n "$NS" create -f - >/dev/null

# --- at shutdownTime ---
claim retain p "$(in_time 3600), shutdownPolicy: Retain" | kubectl -n "$NS" create -f - >/dev/null
claim delete p "$(in_time 3600), shutdownPolicy: Delete" | kubectl -n "$NS" create -f - >/dev/null
claim front p "$(in_time 3600), shutdownPolicy: DeleteForeground" | kubectl -n "$NS" create -f - >/dev/null
for name in retain delete front; do t "claim $name is ready" ready $name; done
is "a pod runs for it" Running "$(value pod/retain .status.phase)"
for name in retain delete; do end_now $name; done
t "C-t063 Retain: Sandbox, Service and pod go" within 60 gone "$NS" sandbox/retain service/retain pod/retain
is "C-t063 Retain: the claim stays and says why" ClaimExpired "$(reason retain)"
is "C-t063 Retain: it names no Sandbox any more" "" "$(value sandboxclaim/retain .status.sandbox.name)"
t "C-t067 Delete: claim, Sandbox, Service and pod go" within 60 gone "$NS" sandboxclaim/delete sandbox/delete service/delete pod/delete
kubectl -n "$NS" patch sandboxclaim retain --type merge -p '{"spec":{"lifecycle":{"shutdownTime":null}}}' >/dev/null
t "a retained claim whose time is taken away gets another Sandbox" ready retain
t "C-t079 a finalizer holds the pod" hold front
end_now front
t "C-t079 DeleteForeground: the claim is being deleted" within 30 terminates sandboxclaim/front
like "C-t079 it waits for what it owns" foregroundDeletion "$(value sandboxclaim/front .metadata.finalizers)"
t "C-t079 the pod is being deleted" within 30 terminates pod/front
sleep 3
is "C-t079 claim and Sandbox stay until the pod is gone" 2 "$(kubectl -n "$NS" get sandboxclaim/front sandbox/front -o name | wc -l)"
is "C-t079 and the claim says that it expired" ClaimExpired "$(reason front)"
t "C-t079 the pod is let go" let_go front
t "C-t079 then everything goes" within 60 gone "$NS" sandboxclaim/front sandbox/front service/front pod/front

# --- time to live after the end of the pod ---
claim ttl-front quick 'ttlSecondsAfterFinished: 3, shutdownPolicy: DeleteForeground' | kubectl -n "$NS" create -f - >/dev/null
claim ttl quick 'ttlSecondsAfterFinished: 3, shutdownPolicy: Delete' | kubectl -n "$NS" create -f - >/dev/null
claim ttl-zero quick 'ttlSecondsAfterFinished: 0, shutdownPolicy: Retain' | kubectl -n "$NS" create -f - >/dev/null
claim no-ttl quick 'shutdownPolicy: Delete' | kubectl -n "$NS" create -f - >/dev/null
t "C-t080 its pod is there" within 30 hold ttl-front
t "C-t080 the pod finishes" kubectl -n "$NS" wait --for=condition=Finished sandboxclaim/ttl-front --timeout 60s
t "C-t080 time over: the claim is being deleted" within 30 terminates sandboxclaim/ttl-front
sleep 2
is "C-t080 claim and Sandbox stay while the pod is held" 2 "$(kubectl -n "$NS" get sandboxclaim/ttl-front sandbox/ttl-front -o name | wc -l)"
t "C-t080 the pod is let go" let_go ttl-front
t "C-t080 then everything goes" within 60 gone "$NS" sandboxclaim/ttl-front sandbox/ttl-front service/ttl-front pod/ttl-front
t "C-t081 Delete: claim, Sandbox, Service and pod go" within 60 gone "$NS" sandboxclaim/ttl sandbox/ttl service/ttl pod/ttl
t "C-t084 Retain with none: the claim says that it expired" within 60 has_reason ttl-zero ClaimExpired
t "C-t084 the Sandbox goes" within 60 gone "$NS" sandbox/ttl-zero
is "C-t084 how the pod ended stays" True "$(value sandboxclaim/ttl-zero '.status.conditions[?(@.type=="Finished")].status')"
is "C-t083 without a time to live it is kept" PodSucceeded "$(reason no-ttl)"
