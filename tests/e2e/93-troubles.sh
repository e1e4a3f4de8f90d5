#!/bin/bash
# What Ready says when a Sandbox cannot come to be: a real quota, Pod Security, an image that is not there, no room on any node, a
# container that always ends. First in the message, under the original's reasons; then with --detailed-ready-reasons by name, for
# claims too; and everything heals when its cause goes.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
[ "$CLUSTER_NODE" != fake ] || { skip "troubles" "the cluster has a fake node" && exit 0; }
namespace "$NS"
namespace "$NS-guarded"
kubectl label namespace "$NS-guarded" pod-security.kubernetes.io/enforce=restricted >/dev/null

ready() { kubectl -n "$1" get "$2" -o 'jsonpath={range .status.conditions[?(@.type=="Ready")]}{.status} {.reason}: {.message}{end}'; }
# says NAMESPACE OBJECT PATTERN: its Ready condition reads so by now.
says() { ready "$1" "$2" | grep -qE "$3"; }
# told TEXT NAMESPACE OBJECT PATTERN
told() { if within 60 says "$2" "$3" "$4"; then ok "$1"; else not_ok "$1" "not $4: $(ready "$2" "$3")"; fi; }
# broken NAME SED-EXPRESSION: a Sandbox that sleeps, changed.
broken() { sandbox "$1" | sed -e "$2" | kubectl -n "$NS" create -f - >/dev/null; }

# all_say QUOTA ADMISSION IMAGE NODE CRASH: the reason that Ready gives for each.
all_say() {
    told "quota: $1, in the cluster's words" "$NS" sandbox/many "^False $1: Error seen: pods \"many\" is forbidden: exceeded quota"
    told "admission: $2, in the cluster's words" "$NS-guarded" sandbox/bare "^False $2: Error seen: pods \"bare\" is forbidden: violates PodSecurity"
    told "image: $3, in the kubelet's words" "$NS" sandbox/image "^False $3: Pod exists with phase: Pending; container \"main\" waits: (ErrImage|ImagePull|ErrImageNeverPull).*localhost/none"
    told "no room: $4" "$NS" sandbox/huge "^False $4: Pod exists with phase: Pending"
    told "crashes: $5, in the kubelet's words" "$NS" sandbox/crash "^False $5: Pod is Running but not Ready; container \"main\" (ended: Error, exit code 1|waits: CrashLoopBackOff: back-off)"
}

broken image 's,image: .*,image: localhost/none:1,'
broken crash 's/command: .*/command: ["false"]/'
broken huge 's,image: .*,&\n        resources: {requests: {cpu: "900"}},'
t "their pods are there" within 30 kubectl -n "$NS" get pod/image pod/crash pod/huge
kubectl -n "$NS" create quota pods --hard=pods=3 >/dev/null
t "the quota counts them" within 30 eval '[ "$(value resourcequota/pods .status.used.pods)" = 3 ]'
create many >/dev/null
sandbox bare | kubectl -n "$NS-guarded" create -f - >/dev/null
all_say ReconcilerError ReconcilerError DependenciesNotReady DependenciesNotReady DependenciesNotReady
like "no room: PodScheduled says it" '^Unschedulable .*Insufficient cpu' \
    "$(value sandbox/huge '.status.conditions[?(@.type=="PodScheduled")].reason') $(value sandbox/huge '.status.conditions[?(@.type=="PodScheduled")].message')"
like "an event tells of the refused pod" 'exceeded quota' \
    "$(kubectl -n "$NS" get events.events.k8s.io -o 'jsonpath={range .items[?(@.reason=="SandboxPodCreateFailed")]}{.note}{"\n"}{end}')"

with_arguments --detailed-ready-reasons || bail "the server does not start with --detailed-ready-reasons"
for object in sandbox/many sandbox/image sandbox/huge sandbox/crash; do kubectl -n "$NS" annotate "$object" look=again >/dev/null; done
kubectl -n "$NS-guarded" annotate sandbox/bare look=again >/dev/null
all_say QuotaExceeded AdmissionRefused ImagePullFailed Unschedulable CrashLoop
template t red | kubectl -n "$NS" create -f - >/dev/null
pool p t 0 | kubectl -n "$NS" create -f - >/dev/null
claim refused p | kubectl -n "$NS" create -f - >/dev/null
told "a claim passes it on" "$NS" sandboxclaim/refused '^False QuotaExceeded: Error seen: .*exceeded quota'

kubectl -n "$NS" delete resourcequota pods >/dev/null
kubectl label namespace "$NS-guarded" pod-security.kubernetes.io/enforce- >/dev/null
for object in sandbox/many sandboxclaim/refused; do
    t "without the quota $object becomes ready" kubectl -n "$NS" wait --for=condition=Ready "$object" --timeout 90s
done
t "without Pod Security sandbox/bare becomes ready" kubectl -n "$NS-guarded" wait --for=condition=Ready sandbox/bare --timeout 90s
