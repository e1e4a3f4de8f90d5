# How a program in a Pod reaches the API server of a machine without a cluster: name, token and certificate as in a cluster; who may not;
# and that policies judge it.
# shellcheck shell=bash disable=SC2034 source=tests/node/lib.sh
STANDALONE=1
. "$(dirname "$0")/lib.sh"
command -v nsenter >/dev/null || { skip api "there is no nsenter" && exit 0; }

real_node_up "the node starts"
TOKEN='.spec.serviceAccountName = "tester" | .spec.volumes = [{name: "token", projected: {sources: [{serviceAccountToken: {path: "token"}}]}}] |
    main(.volumeMounts = [{name: "token", mountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}])'
kube POST /api/v1/namespaces/default/serviceaccounts -H 'Content-Type: application/json' -d '{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "tester"}}' >/dev/null
pod with-token "$TOKEN"
pod own-names "$TOKEN"' | .spec.dnsPolicy = "None" | .spec.dnsConfig = {nameservers: ["192.0.2.9"]}'
pod without
for name in with-token own-names without; do comes "the Pod $name runs" "$name" "$READY"; done

# from POD [CURL-ARGUMENT...]: what the server answers to a client in the Pod's network, which trusts the authority of the server alone.
from() {
    local pid port
    pid=$(node_podman inspect --format '{{.State.Pid}}' "$(container "$1")")
    nsenter --target "$pid" --net curl -sS --max-time 20 --cacert "$WORK/server/ca.crt" --connect-to "::10.90.0.1:" "${@:2}" 2>&1
}
variable() { inside "$1" sh -c "echo \$$2"; }
URL_INSIDE=https://$(variable with-token KUBERNETES_SERVICE_HOST):$(variable with-token KUBERNETES_SERVICE_PORT)
is "its environment says where" https://kubernetes.default.svc:443 "$URL_INSIDE"
is "that of a Pod without a token says nothing" "" "$(variable without KUBERNETES_SERVICE_HOST)"
is "the name leads to the node's address on the bridge" 10.90.0.1 "$(inside with-token nslookup kubernetes.default.svc.cluster.local | awk '/^Address/ { a = $NF } END { print a }')"
like "a program looks it up" '^Connecting to kubernetes.default.svc:443 \(10\.90\.0\.1:443\)' "$(inside with-token wget -O /dev/null "$URL_INSIDE/version")"
like "even where the Pod has name servers of its own" '^Connecting to kubernetes.default.svc:443 \(10\.90\.0\.1:443\)' "$(inside own-names wget -O /dev/null "$URL_INSIDE/version")"
is "the server shows a certificate of that name, and knows the token" "system:serviceaccount:default:tester" \
    "$(from with-token -H "Authorization: Bearer $(inside with-token cat /var/run/secrets/kubernetes.io/serviceaccount/token)" -H 'Content-Type: application/json' \
        -d '{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}' "$URL_INSIDE/apis/authentication.k8s.io/v1/selfsubjectreviews" | jq -r .status.userInfo.username)"
like "a Pod without a token is not let in" 'curl: \((35|56)\)' "$(from without "$URL_INSIDE/version")"
like "nor is the machine itself" 'curl: \((35|56)\)' "$(curl -sSk --max-time 20 https://10.90.0.1/version 2>&1)"

# ---- policies ----

answers() { [ "$(from with-token -o /dev/null -w '%{http_code}' "$URL_INSIDE/version")" = 403 ]; } # nobody may that
silent() { [[ $(from with-token --max-time 2 "$URL_INSIDE/version") == *timed\ out* ]]; }
t "without a policy it answers" answers
POLICIES=/apis/networking.k8s.io/v1/namespaces/default/networkpolicies
policy() {
    kube PUT "$POLICIES/judge" -H 'Content-Type: application/json' -d '{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "judge"}, "spec": {"podSelector": {},
        "policyTypes": ["Egress"], "egress": [{"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["'"$1"'"]}}]}]}}' >/dev/null
}
kube POST "$POLICIES" -H 'Content-Type: application/json' -d '{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "judge"}, "spec": {"podSelector": {}, "policyTypes": ["Egress"]}}' >/dev/null
t "a policy that allows nothing cuts it off" within 30 silent
policy 10.91.0.0/16
t "one that allows its address lets it answer" within 30 answers
policy 10.0.0.0/8
t "one that allows all but private addresses does not" within 30 silent
kube DELETE "$POLICIES/judge" >/dev/null

# ---- again, and switched off ----

node_kill 9
real_node_up "the node starts again after kill -9"
t "what runs reaches the server through it" within 30 answers
node_kill TERM
real_node_up "it starts with --pod-api-port=0" --pod-api-port=0
pod off "$TOKEN"
comes "a Pod with a token runs" off "$READY"
is "nothing says where the server is" "" "$(variable off KUBERNETES_SERVICE_HOST)$(inside off grep kubernetes /etc/hosts)"
like "and nobody answers there" 'curl: \(7\)' "$(from off "$URL_INSIDE/version")"
for name in with-token own-names without off; do pod_delete "$name"; done
nothing_left "nothing is left of them on the machine"
