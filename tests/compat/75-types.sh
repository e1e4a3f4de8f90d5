#!/bin/bash
# Tools that know no kind beforehand: the types of the cluster's Swagger document, by which Argo CD and others compare; discovery of all
# there is, from which backups are made.
# shellcheck source=tests/compat/lib.sh
. "$(dirname "$0")/lib.sh"
namespace "$NS"
programs=$("$CLIENTS" go)
[ -x "$programs/types" ] || bail "there is no client-go: tests/compat/clients make go"

for n in 1 2; do
    sandbox "box-$n" "operatingMode: Suspended"
    echo ---
    template "template-$n" any
    echo ---
    pool "pool-$n" "template-$n" 0
    echo ---
    claim "claim-$n" nobody
    echo ---
done | k create -f - >/dev/null
merged() { kubectl get --raw /openapi/v2 | jq -e '.definitions["io.x-k8s.agents.v1beta1.Sandbox"]' >/dev/null; }
t "kube-apiserver has merged the description of our kinds" within 120 merged
relay "$programs/types" "$KUBECONFIG" "$NS"
