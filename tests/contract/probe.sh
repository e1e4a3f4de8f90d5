# What is there already: one line each, `FEATURE yes` or `FEATURE REASON`. A check that needs a feature is skipped with the reason.
. "$(dirname "$0")/lib.sh"
namespace "${NS:=contract-probe-$RANDOM}"
B=$A/namespaces/$NS/sandboxes
ROAD=direct
say() { if [ "$2" = 0 ]; then echo "$1 yes"; else echo "$1 $3"; fi; }

TYPE=application/apply-patch+yaml api PATCH "$B/probe?fieldManager=probe&dryRun=All" "$(sandbox probe)"
test "$CODE" = 201
say apply $? "server-side apply is not there yet"
api POST "$B" "$(sandbox tracked)"
test "$(q '.metadata.managedFields | length')" = 1
say tracking $? "managedFields are not there yet"

# A webhook that cannot be reached and must be.
kubectl apply -f - >/dev/null <<E
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: $NS}
webhooks:
- name: probe.contract.test
  admissionReviewVersions: [v1]
  sideEffects: None
  timeoutSeconds: 2
  clientConfig: {url: "https://127.0.0.1:1/"}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: $NS}}
  rules: [{apiGroups: [agents.x-k8s.io], apiVersions: ["*"], operations: [CREATE], resources: [sandboxes]}]
E
webhook_works() { api POST "$B?dryRun=All" "$(sandbox hooked)" && [ "$CODE" = 500 ]; }
within 5 webhook_works
say webhooks $? "admission webhooks are not there yet"
kubectl delete validatingwebhookconfiguration "$NS" >/dev/null

kubectl -n "$NS" create quota none --hard count/sandboxes.agents.x-k8s.io=0 >/dev/null
quota_works() { api POST "$B?dryRun=All" "$(sandbox counted)" && [ "$CODE" = 403 ]; }
within 3 quota_works
say quota $? "ResourceQuota is not enforced yet"
