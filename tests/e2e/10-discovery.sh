#!/bin/bash
# The API groups as kubectl and its like see them through kube-apiserver.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"

services_available
lacks aggregator "its message is that of a passed check" || is "its message is that of a passed check" "all checks passed" \
    "$(kubectl get apiservice "${APISERVICES[0]}" -o 'jsonpath={.status.conditions[?(@.type=="Available")].message}')"

resources=$(kubectl api-resources --api-group=agents.x-k8s.io --no-headers)
like "api-resources lists sandboxes" '^sandboxes +sandbox +agents.x-k8s.io/v1beta1 +true +Sandbox$' "$resources"
resources=$(kubectl api-resources --api-group=extensions.agents.x-k8s.io --no-headers)
for kind in SandboxClaim SandboxTemplate SandboxWarmPool; do
    like "api-resources lists $kind" " extensions.agents.x-k8s.io/v1beta1 +true +$kind\$" "$resources"
done
verbs=$(kubectl get --raw "$GROUP" | jq -r '.resources[] | select(.name == "sandboxes") | .verbs | sort | join(",")')
is "sandboxes have all verbs" create,delete,deletecollection,get,list,patch,update,watch "$verbs"
like "the group is in the aggregated discovery document" Sandbox \
    "$(request GET /apis -H 'Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList' |
        jq -r '.items[] | select(.metadata.name == "agents.x-k8s.io") | .versions[].resources[].responseKind.kind')"

# kube-apiserver collects the documents once a minute.
merged_openapi() { kubectl get --raw /openapi/v3 | grep -F "${GROUP#/}"; }
t "the merged OpenAPI names the group" within 90 merged_openapi
explained=$(kubectl explain sandbox.spec 2>&1)
for field in podTemplate volumeClaimTemplates service shutdownTime shutdownPolicy operatingMode; do
    like "explain sandbox.spec has $field" "^ +${field}[[:space:]]" "$explained"
done
explained=$(kubectl explain sandbox --recursive 2>&1)
lines=$(printf '%s\n' "$explained" | wc -l)
if [ "$lines" -gt 500 ]; then ok "explain --recursive shows the whole PodSpec"; else not_ok "explain --recursive shows the whole PodSpec" "only $lines lines: $explained"; fi
for kind in sandboxclaim sandboxtemplate sandboxwarmpool; do
    like "explain $kind has a spec" '^ +spec[[:space:]]' "$(kubectl explain "$kind" 2>&1)"
done
like "an unknown field is said to be none" 'field "nonsense" does not exist' "$(kubectl explain sandbox.spec.nonsense 2>&1)"
missing=$(kubectl explain sandbox.spec.podTemplate.spec.containers.livenessProbe.httpGet 2>&1)
like "explain goes down into a probe" '^ +port[[:space:]]' "$missing"
is "an unknown resource is 404" 404 "$(request GET "$GROUP/nonsense" >/dev/null; cat "$WORK/code")"
