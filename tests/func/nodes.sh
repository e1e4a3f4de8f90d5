# What nodes may do on a server without a cluster, by their certificates: two nodes of names of their own, one of which reaches for what is
# the other's, and the node of the folder, which has any name. Texts are those of a kube-apiserver with the Node authorizer and NodeRestriction.
# shellcheck shell=bash disable=SC2119 source=tests/func/lib.sh
. "$(dirname "$0")/lib.sh"
CORE=/api/v1/namespaces/default
LEASES=/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases
MERGE=(-H 'Content-Type: application/merge-patch+json')
STATUS='{"status":{"phase":"Running"}}'

# says TEXT CODE MESSAGE METHOD PATH [CURL-ARGUMENT...]: a Status with that message.
says() {
    local text=$1 code=$2 message=$3
    shift 3
    api "$@"
    is "$text" "$code $message" "$CODE $(q .message)"
}

post() { answers "creates $(jq -r '.kind + " " + .metadata.name' <<<"$2")" 201 POST "$1" "${JSON[@]}" -d "$2"; }
as_admin() { AS=(--cert "$DATA/admin.crt" --key "$DATA/admin.key"); }
as_local() { AS=(--cert "$DATA/node.crt" --key "$DATA/node.key"); }
node() { echo '{"apiVersion":"v1","kind":"Node","metadata":{"name":"'"$1"'","labels":{"kubernetes.io/hostname":"'"$1"'"'"${2:-}"'}}}'; }
lease() { echo '{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"'"$1"'"},"spec":{"holderIdentity":"'"$1"'"}}'; }

# pod NAME NODE SECRET ACCOUNT: of a node, with a Secret, a ConfigMap of the same name, a claim of the same name, and a token for "vault".
pod() {
    post "$CORE/pods" "$(jq -cn --arg name "$1" --arg node "$2" --arg secret "$3" --arg account "$4" '{apiVersion: "v1", kind: "Pod", metadata: {name: $name},
        spec: {nodeName: $node, serviceAccountName: $account, containers: [{name: "a", image: "b", envFrom: [{configMapRef: {name: $secret}}]}],
            volumes: [{name: "s", secret: {secretName: $secret}}, {name: "c", persistentVolumeClaim: {claimName: $secret}},
                {name: "t", projected: {sources: [{serviceAccountToken: {path: "t", audience: "vault"}}]}}]}}')"
}

# request POD UID [AUDIENCE...]: the JSON of a TokenRequest.
request() {
    jq -cn --arg pod "$1" --arg uid "$2" '{apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: {audiences: $ARGS.positional,
        boundObjectRef: {apiVersion: "v1", kind: "Pod", name: $pod, uid: $uid}}}' --args "${@:3}"
}
token() { echo "$CORE/serviceaccounts/$1/token"; }

standalone_up
issue n1 /O=system:nodes/CN=system:node:n1
issue n2 /O=system:nodes/CN=system:node:n2
issue nobody-in-particular /O=system:nodes/CN=n1

for o in one two other; do
    post "$CORE/secrets" '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"'$o'"}}'
    post "$CORE/configmaps" '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"'$o'"}}'
    post "$CORE/persistentvolumeclaims" '{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"'$o'"},
        "spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Mi"}}}}'
    post "$CORE/serviceaccounts" '{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"'$o'"}}'
done
pod first n1 one one
UID1=$(q .metadata.uid)
pod second n2 two two
UID2=$(q .metadata.uid)

# ---- its Node and Lease ----

as n2
post /api/v1/nodes "$(node n2)"
post "$LEASES" "$(lease n2)"
as n1
says "no Node but its own" 403 'nodes "n9" is forbidden: node "n1" is not allowed to modify node "n9"' POST /api/v1/nodes "${JSON[@]}" -d "$(node n9)"
says "nor with labels that others believe" 403 'nodes "n1" is forbidden: node "n1" is not allowed to set the following labels: a.k8s.io/b, node-restriction.kubernetes.io/trusted' \
    POST /api/v1/nodes "${JSON[@]}" -d "$(node n1 ',"node-restriction.kubernetes.io/trusted":"yes","a.k8s.io/b":"","mine":""')"
post /api/v1/nodes "$(node n1)"
is "which says whose it is" system:node:n1 "$(q '.metadata.annotations["sandbox-apiserver/node-user"]')"
answers "it tells of its status" 200 PATCH /api/v1/nodes/n1/status "${MERGE[@]}" -d '{"status":{"nodeInfo":{"kubeletVersion":"x"}}}'
answers "and reads it" 200 GET /api/v1/nodes/n1
answers "and changes it" 200 PATCH /api/v1/nodes/n1 "${MERGE[@]}" -d '{"metadata":{"labels":{"mine":"x"},"annotations":null}}'
is "which stays its own" system:node:n1 "$(q '.metadata.annotations["sandbox-apiserver/node-user"]')"
says "but not what it is kept from" 403 'nodes "n1" is forbidden: node "n1" is not allowed to modify taints' PATCH /api/v1/nodes/n1 "${MERGE[@]}" \
    -d '{"spec":{"taints":[{"key":"a","effect":"NoSchedule"}]}}'
says "nor labels that others believe" 403 'nodes "n1" is forbidden: is not allowed to modify labels: a.kubernetes.io/b' PATCH /api/v1/nodes/n1 "${MERGE[@]}" \
    -d '{"metadata":{"labels":{"a.kubernetes.io/b":"x"}}}'
says "nor does it go by itself" 403 'nodes "n1" is forbidden: User "system:node:n1" cannot delete resource "nodes" in API group "" at the cluster scope' \
    DELETE /api/v1/nodes/n1
says "the other's status is not its own" 403 'nodes "n2" is forbidden: node "n1" is not allowed to modify node "n2"' PATCH /api/v1/nodes/n2/status "${MERGE[@]}" \
    -d '{"status":{"addresses":[{"type":"InternalIP","address":"10.6.6.6"}]}}'
says "nor is its Node" 403 'nodes "n2" is forbidden: User "system:node:n1" cannot get resource "nodes" in API group "" at the cluster scope: '"node 'n1' cannot read 'n2', only its own Node object" \
    GET /api/v1/nodes/n2
says "nor are all" 403 'nodes is forbidden: User "system:node:n1" cannot list resource "nodes" in API group "" at the cluster scope: '"node 'n1' cannot read all nodes, only its own Node object" \
    GET /api/v1/nodes
post "$LEASES" "$(lease n1)"
answers "it renews its Lease" 200 PATCH "$LEASES/n1" "${MERGE[@]}" -d '{"spec":{"leaseDurationSeconds":40}}'
says "and not the other's" 403 'leases.coordination.k8s.io "n2" is forbidden: User "system:node:n1" cannot patch resource "leases" in API group "coordination.k8s.io" in the namespace "kube-node-lease": can only access node lease with the same name as the requesting node' \
    PATCH "$LEASES/n2" "${MERGE[@]}" -d '{"spec":{"leaseDurationSeconds":1}}'
says "nor makes one for another" 403 'leases.coordination.k8s.io "n9" is forbidden: can only access node lease with the same name as the requesting node' \
    POST "$LEASES" "${JSON[@]}" -d "$(lease n9)"
answers "nor elsewhere" 403 POST "${LEASES/kube-node-lease/default}" "${JSON[@]}" -d "$(lease n1)"

# ---- what its Pods refer to ----

none() { echo "$2 \"$3\" is forbidden: User \"system:node:n1\" cannot $1 resource \"$2\" in API group \"\" in the namespace \"default\": no relationship found between node 'n1' and this object"; }
for kind in secrets configmaps persistentvolumeclaims serviceaccounts; do
    answers "$kind of its Pod" 200 GET "$CORE/$kind/one"
    says "$kind of the other's" 403 "$(none get $kind two)" GET "$CORE/$kind/two"
    says "$kind of nobody" 403 "$(none get $kind other)" GET "$CORE/$kind/other"
    answers "all $kind" 403 GET "$CORE/$kind"
    answers "nor writes it" 403 PATCH "$CORE/$kind/one" "${MERGE[@]}" -d '{"metadata":{"labels":{"a":"b"}}}'
    answers "nor deletes it" 403 DELETE "$CORE/$kind/one"
done
answers "of a Secret of its Pod a list" 200 GET "$CORE/secrets?fieldSelector=metadata.name%3Done"
answers "which has it alone" 403 GET "$CORE/secrets?fieldSelector=metadata.name%3Dtwo"
answers "in its namespace" 403 GET "/api/v1/secrets?fieldSelector=metadata.name%3Done"
answers "what it needs of all" 200 GET "/apis/networking.k8s.io/v1/networkpolicies"
answers "but not of Services" 403 GET "$CORE/services"
as nobody-in-particular
answers "the group alone gives nothing of that" 403 GET "$CORE/secrets/one"
answers "nor a Node" 403 POST /api/v1/nodes "${JSON[@]}" -d "$(node n3)"
as_admin
post /apis/authorization.k8s.io/v1/subjectaccessreviews '{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","metadata":{"name":""},"spec":{"user":"system:node:n1",
    "groups":["system:nodes"],"resourceAttributes":{"verb":"get","resource":"secrets","namespace":"default","name":"two"}}}'
is "who asks is told the same" "false no relationship found between node 'n1' and this object" "$(q '.status | "\(.allowed) \(.reason)"')"

# ---- its Pods ----

as n1
answers "it tells of its Pod" 200 PATCH "$CORE/pods/first/status" "${MERGE[@]}" -d "$STATUS"
says "and not of the other's" 403 'pods "second" is forbidden: node "n1" can only update pod status for pods with spec.nodeName set to itself' \
    PATCH "$CORE/pods/second/status" "${MERGE[@]}" -d "$STATUS"
says "nor ends it" 403 'pods "second" is forbidden: node "n1" can only delete pods with spec.nodeName set to itself' DELETE "$CORE/pods/second?gracePeriodSeconds=0"
answers "nor its own otherwise" 403 PATCH "$CORE/pods/first" "${MERGE[@]}" -d '{"metadata":{"labels":{"a":"b"}}}'
answers "nor makes one" 403 POST "$CORE/pods" "${JSON[@]}" -d '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"mirror"},"spec":{"nodeName":"n1","containers":[{"name":"a","image":"b"}]}}'
answers "nor takes one" 403 POST "$CORE/pods/second/binding" "${JSON[@]}" -d '{"target":{"name":"n1"}}'
answers "of one that is not there it is told so" 404 DELETE "$CORE/pods/third"

# ---- tokens ----

answers "a token of its Pod's account, for whom it asks" 201 POST "$(token one)" "${JSON[@]}" -d "$(request first "$UID1" vault)"
says "not for another" 403 'serviceaccounts "one" is forbidden: audience "bank" not found in pod spec volume, system:node:n1 is not authorized to request tokens for this audience' \
    POST "$(token one)" "${JSON[@]}" -d "$(request first "$UID1" bank)"
says "nor for several" 403 'serviceaccounts "one" is forbidden: node may only request 0 or 1 audiences' POST "$(token one)" "${JSON[@]}" -d "$(request first "$UID1" vault bank)"
answers "for the server, as its account has it" 201 POST "$(token one)" "${JSON[@]}" -d "$(request first "$UID1")"
says "not without the Pod" 403 'serviceaccounts "one" is forbidden: node requested token not bound to a pod' POST "$(token one)" "${JSON[@]}" -d '{"spec":{"audiences":["vault"]}}'
says "nor by its name alone" 403 'serviceaccounts "one" is forbidden: node requested token with a pod binding without a uid' POST "$(token one)" "${JSON[@]}" -d "$(request first "" vault)"
answers "nor for the one that was" 409 POST "$(token one)" "${JSON[@]}" -d "$(request first "$UID2" vault)"
says "nor of another account" 403 "$(none create serviceaccounts/token two | sed 's/^serviceaccounts.token/serviceaccounts/')" POST "$(token two)" "${JSON[@]}" -d "$(request first "$UID1" vault)"
as_admin
pod third n1 one two
as n1
says "nor of its Pod's account for the Pod of another" 403 'serviceaccounts "two" is forbidden: node requested token bound to a pod scheduled on a different node' \
    POST "$(token two)" "${JSON[@]}" -d "$(request second "$UID2" vault)"
says "nor for a Pod of another account" 400 'cannot bind token for serviceaccount "two" to pod running with different serviceaccount name.' \
    POST "$(token two)" "${JSON[@]}" -d "$(request first "$UID1" vault)"

# ---- what goes ----

answers "it ends its Pod" 200 DELETE "$CORE/pods/first?gracePeriodSeconds=0"
answers "another still refers to it" 200 GET "$CORE/secrets/one"
answers "and ends, too" 200 DELETE "$CORE/pods/third?gracePeriodSeconds=0"
says "then it has nothing there any more" 403 "$(none get secrets one)" GET "$CORE/secrets/one"

# ---- the folder's node, whatever its name ----

as_local
post /api/v1/nodes "$(node mine)"
answers "its status" 200 PATCH /api/v1/nodes/mine/status "${MERGE[@]}" -d '{"status":{"nodeInfo":{"kubeletVersion":"x"}}}'
post "$LEASES" "$(lease mine)"
post /api/v1/nodes "$(node also)"
as_admin
pod local mine other other
UID3=$(q .metadata.uid)
as_local
answers "a Secret of its Pod" 200 GET "$CORE/secrets/other"
answers "a token" 201 POST "$(token other)" "${JSON[@]}" -d "$(request local "$UID3" vault)"
answers "its Pod's status" 200 PATCH "$CORE/pods/local/status" "${MERGE[@]}" -d "$STATUS"
says "not what is another node's" 403 'secrets "two" is forbidden: User "system:node:local" cannot get resource "secrets" in API group "" in the namespace "default": '"no relationship found between node 'local' and this object" \
    GET "$CORE/secrets/two"
says "nor its Node" 403 'nodes "n2" is forbidden: node "local" is not allowed to modify node "n2"' PATCH /api/v1/nodes/n2/status "${MERGE[@]}" -d "$STATUS"
answers "nor its Lease" 403 PATCH "$LEASES/n2" "${MERGE[@]}" -d '{"spec":{"leaseDurationSeconds":1}}'
answers "nor its Pod" 403 DELETE "$CORE/pods/second?gracePeriodSeconds=0"
as n2
answers "and the others nothing of its own" 403 GET "$CORE/secrets/other"
answers "nor its Node" 403 PATCH /api/v1/nodes/mine/status "${MERGE[@]}" -d "$STATUS"
issue mine /O=system:nodes/CN=system:node:mine
as mine
answers "who comes with a certificate of that name" 200 PATCH /api/v1/nodes/mine/status "${MERGE[@]}" -d '{"status":{"nodeInfo":{"kubeletVersion":"y"}}}'
answers "has what its Pods have" 200 GET "$CORE/secrets/other"
as_local
answers "and has it alone from then on" 403 GET "$CORE/secrets/other"
answers "for the folder's node has another" 403 PATCH "$CORE/pods/local/status" "${MERGE[@]}" -d '{"status":{"phase":"Failed"}}'
answers "it has its second name still" 200 PATCH /api/v1/nodes/also/status "${MERGE[@]}" -d '{"status":{"nodeInfo":{"kubeletVersion":"z"}}}'
