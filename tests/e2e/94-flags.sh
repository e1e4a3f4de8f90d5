#!/bin/bash
# M-t005: the reconciler's flags reach the parts that they are for.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
[ "$CLUSTER_NODE" != fake ] || { skip "flags" "the cluster has a fake node" && exit 0; }
namespace "$NS"
evict=cluster-autoscaler.kubernetes.io/safe-to-evict

with_arguments --cluster-domain=example.test --disable-sandbox-events --disable-claim-events --disable-claim-observability-annotations \
    --enable-warm-pool-eviction=false --sandbox-warm-pool-max-refill-rate=0.5 || bail "the server does not start with them"
template t red | kubectl -n "$NS" create -f - >/dev/null
pool p t 3 | kubectl -n "$NS" create -f - >/dev/null
t "M-t005 the refill rate makes the others wait" within 60 kubectl -n "$NS" wait --for=jsonpath='{.status.readyReplicas}'=3 sandboxwarmpool/p --timeout 60s
made=$(kubectl -n "$NS" get sandboxes -o 'jsonpath={range .items[*]}{.metadata.creationTimestamp}{"\n"}{end}' | sort | xargs -n 1 date +%s -d | xargs)
is "M-t005 two seconds or so apart" yes "$(awk '{ if ($2 > $1 && $3 > $2 && $3 - $1 > 2) print "yes"; else print }' <<<"$made")"
is "M-t005 members are not marked for eviction" "" "$(kubectl -n "$NS" get sandboxes -o "jsonpath={.items[*].spec.podTemplate.metadata.annotations.${evict//./\\.}}")"
claim c p | kubectl -n "$NS" create -f - >/dev/null
t "M-t005 a claim is ready" kubectl -n "$NS" wait --for=condition=Ready sandboxclaim/c --timeout 30s
name=$(value sandboxclaim/c .status.sandbox.name)
is "M-t005 the cluster's domain is in its Service's name" "$name.$NS.svc.example.test" "$(value "sandbox/$name" .status.serviceFQDN)"
is "M-t005 it has no stamp of its first sight" "" "$(value sandboxclaim/c '.metadata.annotations.agents\.x-k8s\.io/controller-first-observed-at')"
is "M-t005 nothing was told of Sandboxes and claims" "" \
    "$(kubectl -n "$NS" get events.events.k8s.io -o 'jsonpath={range .items[*]}{.reportingController}{"\n"}{end}' | grep -E '^sandbox(claim)?-controller$')"
