# A server without a cluster (--standalone) and the etcd that it starts, with a simulated node: it serves the kinds of Kubernetes that sandboxes
# need, empties namespaces, deletes what lost its owner, and makes Sandboxes of Pods like in a cluster. kubectl is used where it is.
# shellcheck shell=bash disable=SC2119 source=tests/func/lib.sh
. "$(dirname "$0")/lib.sh"
NODE=$OUT/sandbox-node
CORE=/api/v1/namespaces/default
[ -x "$NODE" ] || { skip "$(basename "$0")" "sandbox-node is not built" && exit 0; }

# there PATH JQ-CONDITION: what GET answers fulfils it. gone PATH: 404.
there() { api GET "$1" && [ "$CODE" = 200 ] && jq -e "$2" "$WORK/body" >/dev/null; }
gone() { api GET "$1" && [ "$CODE" = 404 ]; }

# post PATH JSON: creates it.
post() { answers "creates $(jq -r '.kind + " " + .metadata.name' <<<"$2")" 201 POST "$1" "${JSON[@]}" -d "$2"; }

# etcd_pid: of the server's own.
etcd_pid() { pgrep -P "$SERVER_PID"; }

standalone_up

# ---- what is served, and to whom ----

is "kubeconfigs and keys are their owner's alone" "" "$(find "$DATA" -type f ! -perm 600)"
api GET /api
is "the core group is told of" v1 "$(q '.versions[]')"
api GET /api/v1
has "with its kinds" "configmaps events namespaces namespaces/finalize namespaces/status nodes" "$(q '[.resources[].name] | join(" ")')"
is "namespaces are in none" false "$(q '.resources[] | select(.name == "namespaces") | .namespaced')"
api GET /openapi/v3/api/v1
is "documents say how lists are merged" name \
    "$(q '.components.schemas["io.k8s.api.core.v1.Pod"].properties.spec.properties.containers["x-kubernetes-patch-merge-key"]')"
AS=()
api GET "$CORE/pods"
is "nobody in particular may nothing" 403 "$CODE"
AS=(--cert "$DATA/admin.crt" --key "$DATA/admin.key")
t "there are namespaces from the start" within 20 there /api/v1/namespaces/kube-node-lease '.status.phase == "Active"'
t "with a ServiceAccount each" within 20 there "$CORE/serviceaccounts/default" '.kind == "ServiceAccount"'
answers "no Pod in a namespace that is not there" 404 POST /api/v1/namespaces/nowhere/pods "${JSON[@]}" -d '{"apiVersion":"v1","kind":"Pod",
    "metadata":{"name":"a"},"spec":{"containers":[{"name":"a","image":"b"}]}}'

CRDS=/apis/apiextensions.k8s.io/v1/customresourcedefinitions
t "our kinds are found among the definitions" within 20 there "$CRDS/sandboxes.agents.x-k8s.io" \
    '.spec.names.kind == "Sandbox" and (.status.conditions | map(select(.type == "Established" and .status == "True")) | length == 1)'
answers "which nobody may change" 405 DELETE "$CRDS/sandboxes.agents.x-k8s.io"

# ---- rules, defaults, patches ----

post "$CORE/secrets" '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s"},"stringData":{"a":"plain"}}'
is "a secret's plain text is stored as base64" 'cGxhaW4= Opaque' "$(q '.data.a + " " + .type')"
answers "its type stays" 422 PATCH "$CORE/secrets/s" -H 'Content-Type: application/merge-patch+json' -d '{"type":"other"}'
post "$CORE/pods" '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"schedulerName":"nobody","containers":[
    {"name":"a","image":"x","env":[{"name":"E","value":"1"}]},{"name":"b","image":"y"}]}}'
is "a Pod's defaults" 'Always 30 Pending default' \
    "$(q '[.spec.restartPolicy, .spec.terminationGracePeriodSeconds, .status.phase, .spec.serviceAccountName] | map(tostring) | join(" ")')"
answers "a strategic merge patch" 200 PATCH "$CORE/pods/p" -H 'Content-Type: application/strategic-merge-patch+json' -d '{"spec":{"containers":[
    {"name":"b","image":"z"},{"name":"a","image":"w"}]}}'
is "merges containers by name" 'a=w:E b=z:' \
    "$(q '[.spec.containers[] | .name + "=" + .image + ":" + ([.env[]?.name] | join(","))] | join(" ")')"
answers "other fields of a Pod stay" 422 PATCH "$CORE/pods/p" -H 'Content-Type: application/strategic-merge-patch+json' -d '{"spec":{"containers":[
    {"name":"a","env":[{"name":"F","value":"2"}]}]}}'
answers "our own kinds take none, as custom resources" 415 PATCH "$SANDBOXES/x" -H 'Content-Type: application/strategic-merge-patch+json' -d '{}'
answers "containers cannot be taken away" 422 PATCH "$CORE/pods/p" -H 'Content-Type: application/strategic-merge-patch+json' -d '{"spec":{"containers":[
    {"$patch":"delete","name":"b"}]}}'
answers "a Service without an address that nobody forwards" 422 POST "$CORE/services" "${JSON[@]}" -d '{"apiVersion":"v1","kind":"Service",
    "metadata":{"name":"s"},"spec":{"ports":[{"port":1}]}}'
answers "a Pod without a node goes at once" 200 DELETE "$CORE/pods/p"
t "and is gone" gone "$CORE/pods/p"

# ---- protocol buffers ----

# protobuf FILE BYTES: the printf format in an envelope, as a body.
protobuf() { printf 'k8s\0'"$2" >"$WORK/$1" && PROTOBUF=(-H 'Content-Type: application/vnd.kubernetes.protobuf' --data-binary "@$WORK/$1"); }
protobuf map '\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x0f\x0a\x05\x0a\x03map\x12\x06\x0a\x01k\x12\x01v'
answers "a ConfigMap as protocol buffers" 201 POST "$CORE/configmaps" "${PROTOBUF[@]}"
is "is what JSON would have made" 'map v' "$(q '.metadata.name + " " + .data.k')"
protobuf deletion '\x0a\x13\x0a\x02v1\x12\x0dDeleteOptions\x12\x06\x12\x04\x0a\x02no'
answers "options of a deletion as well" 409 DELETE "$CORE/configmaps/map" "${PROTOBUF[@]}"
has "with their preconditions" 'the UID in the precondition (no) does not match' "$BODY"
protobuf cut '\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x0f\x0a\x06'
answers "an envelope that is cut off" 400 POST "$CORE/configmaps" "${PROTOBUF[@]}"
has "is said to be" 'must be of type ConfigMap): unexpected EOF (6b3873000a0f0a027631' "$BODY"
protobuf broken '\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x02\x0a\x06'
answers "and an object that is" 400 POST "$CORE/configmaps" "${PROTOBUF[@]}"
has "with its kind" 'ConfigMap in version \"v1\" cannot be handled as a ConfigMap: unexpected EOF' "$BODY"
protobuf unknown '\x0a\x0c\x0a\x02v9\x12\x06Nobody\x12\x00'
answers "a kind that is none" 400 POST "$CORE/configmaps" "${PROTOBUF[@]}"
has "is told" 'no kind \"Nobody\" is registered for version \"v9\"' "$BODY"
answers "JSON as protocol buffers" 400 POST "$CORE/configmaps" -H 'Content-Type: application/vnd.kubernetes.protobuf' -d '{}'
has "is none" 'does not appear to be a protobuf message, expected prefix [107 56 115 0] ({})' "$BODY"
answers "our own kinds are not taken so, as custom resources" 415 POST "$SANDBOXES" "${PROTOBUF[@]}"
answers "nor options of their deletion" 415 DELETE "$SANDBOXES/x" "${PROTOBUF[@]}"

# ---- users and their roles ----

# issue NAME SUBJECT: a client certificate of the server's authority.
issue() {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$WORK/$1.key" -out "$WORK/$1.csr" -subj "$2" 2>/dev/null
    openssl x509 -req -in "$WORK/$1.csr" -CA "$DATA/ca.crt" -CAkey "$DATA/ca.key" -set_serial "0x$(openssl rand -hex 12)" -days 2 \
        -out "$WORK/$1.crt" 2>/dev/null
}
as_admin() { AS=(--cert "$DATA/admin.crt" --key "$DATA/admin.key"); }
RBAC=/apis/rbac.authorization.k8s.io/v1
issue jane /O=team/CN=jane
as jane
answers "a user without a role may not look" 403 GET "$CORE/configmaps"
answers "but may see what is served" 200 GET /apis
answers "and ask what it may do" 201 POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews "${JSON[@]}" -d '{"apiVersion":
    "authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"namespace":"default","verb":"list","resource":"configmaps"}}}'
is "which is nothing" false "$(q .status.allowed)"
as_admin
t "there are roles from the start" within 20 there "$RBAC/clusterroles/view" '.rules | length > 1'
post "$RBAC/namespaces/default/roles" '{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"reader"},"rules":[
    {"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list"]},{"apiGroups":["rbac.authorization.k8s.io"],"resources":["*"],"verbs":["create"]}]}'
post "$RBAC/namespaces/default/rolebindings" '{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"readers"},
    "roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"reader"},"subjects":[{"kind":"Group","name":"team"}]}'
as jane
answers "a role counts at once" 200 GET "$CORE/configmaps"
answers "where it is given" 403 GET /api/v1/configmaps
answers "for what it gives" 403 GET "$CORE/secrets"
answers "and who may make roles gives no rights away by that" 403 POST "$RBAC/namespaces/default/roles" "${JSON[@]}" -d '{"apiVersion":
    "rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"more"},"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}'
has "for that is another right" 'cannot escalate resource' "$BODY"
as_admin
post "$RBAC/namespaces/default/roles" '{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"all"},"rules":[
    {"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}'
post "$RBAC/namespaces/default/rolebindings" '{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"owners"},
    "roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"all"},"subjects":[{"kind":"User","name":"jane"}]}'
post "$RBAC/clusterroles" '{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"default"},"rules":[]}'
as jane
answers "who may everything in a namespace has no way through it to what is in none" 404 GET "$RBAC/namespaces/default/clusterroles/default"
answers "whatever its name is" 404 PATCH "$RBAC/namespaces/default/clusterrolebindings/default?fieldManager=jane" -H 'Content-Type: application/apply-patch+yaml' -d '{
    "apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"default"},
    "roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"User","name":"jane"}]}'
answers "but to the namespace itself" 200 GET /api/v1/namespaces/default
as_admin
answers "they lose that" 200 DELETE "$RBAC/namespaces/default/rolebindings/owners"
as jane
answers "a review of another's rights is not for everybody" 403 POST /apis/authorization.k8s.io/v1/subjectaccessreviews "${JSON[@]}" -d '{}'
as_admin
answers "but for who may" 201 POST /apis/authorization.k8s.io/v1/subjectaccessreviews "${JSON[@]}" -d '{"apiVersion":"authorization.k8s.io/v1",
    "kind":"SubjectAccessReview","spec":{"user":"x","groups":["team"],"resourceAttributes":{"namespace":"default","verb":"get","resource":"configmaps","name":"a"}}}'
is "and tells why" 'RBAC: allowed by RoleBinding "readers" of Role "reader"' "$(q .status.reason)"

post "$RBAC/namespaces/default/rolebindings" '{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"robots"},
    "roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"reader"},"subjects":[{"kind":"ServiceAccount","name":"robot"}]}'
post "$CORE/serviceaccounts" '{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"robot"}}'
answers "a token for an account" 201 POST "$CORE/serviceaccounts/robot/token" "${JSON[@]}" -d '{"apiVersion":"authentication.k8s.io/v1",
    "kind":"TokenRequest","spec":{}}'
token=$(q .status.token)
AS=(-H "Authorization: Bearer $token")
answers "who has it may what the account may" 200 GET "$CORE/configmaps"
answers "and no more" 403 GET "$CORE/secrets"
has "under the account's name" 'User \"system:serviceaccount:default:robot\" cannot' "$BODY"
AS=(-H "Authorization: Bearer ${token%?}$([ "${token: -1}" = A ] && echo B || echo A)")
answers "a token that was changed is nobody's" 401 GET "$CORE/configmaps"
as_admin
answers "a review of the token" 201 POST /apis/authentication.k8s.io/v1/tokenreviews "${JSON[@]}" -d "$(jq -cn --arg t "$token" \
    '{apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec: {token: $t}}')"
is "says whose it is" system:serviceaccount:default:robot "$(q .status.user.username)"
POD='"apiVersion":"v1","kind":"Pod","spec":{"serviceAccountName":"robot","containers":[{"name":"a","image":"i"}]}'
answers "a Pod of the account" 201 POST "$CORE/pods" "${JSON[@]}" -d "{$POD,\"metadata\":{\"name\":\"of-robot\"}}"
is "gets its token, the authority and its namespace" "token kube-root-ca.crt namespace /var/run/secrets/kubernetes.io/serviceaccount" \
    "$(q '(.spec.volumes[0].projected.sources | "\(.[0].serviceAccountToken.path) \(.[1].configMap.name) \(.[2].downwardAPI.items[0].path)") + " " + .spec.containers[0].volumeMounts[0].mountPath')"
answers "the authority" 200 GET "$CORE/configmaps/kube-root-ca.crt"
is "is the one that the server shows" "$(cat "$DATA/ca.crt")" "$(q '.data["ca.crt"]')"
answers "it goes" 200 DELETE "$CORE/configmaps/kube-root-ca.crt"
t "and comes back" within 20 there "$CORE/configmaps/kube-root-ca.crt" '.data["ca.crt"] | length > 100'
OF_SLICE=/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes
t "the server has a Service of its own" within 20 there "$CORE/services/kubernetes" '.metadata.labels == {component: "apiserver", provider: "kubernetes"} and
    .spec.clusterIP == "None" and .spec.ports == [{name: "https", port: 443, protocol: "TCP", targetPort: '"$PORT"'}]'
t "which leads to it" within 20 there "$OF_SLICE" '.endpoints[0].addresses == ["127.0.0.1"] and .ports[0].port == '"$PORT"' and .metadata.labels["kubernetes.io/service-name"] == "kubernetes"'
for path in "$CORE/services/kubernetes" "$OF_SLICE"; do
    api GET "$path"
    uid=$(q .metadata.uid)
    answers "it goes" 200 DELETE "$path"
    t "and comes back" within 20 there "$path" ".metadata.uid != \"$uid\""
done
answers "somebody else's address" 200 PATCH "$OF_SLICE" -H 'Content-Type: application/merge-patch+json' -d '{"endpoints":[{"addresses":["10.6.6.6"]}]}'
t "does not stay" within 20 there "$OF_SLICE" '.endpoints[0].addresses == ["127.0.0.1"]'
answers "the account goes" 200 DELETE "$CORE/serviceaccounts/robot"
answers "a Pod of an account that is not there" 403 POST "$CORE/pods" "${JSON[@]}" -d "{$POD,\"metadata\":{\"name\":\"of-nobody\"}}"
is "is refused with the reason" 'pods "of-nobody" is forbidden: error looking up service account default/robot: serviceaccount "robot" not found' "$(q .message)"
answers "the other Pod goes" 200 DELETE "$CORE/pods/of-robot?gracePeriodSeconds=0"
AS=(-H "Authorization: Bearer $token")
answers "and its token is worth nothing" 401 GET "$CORE/configmaps"
as_admin

# ---- a node, and Sandboxes ----

"$NODE" --simulate --name=node-a --kubeconfig="$DATA/node.kubeconfig" </dev/null >"$WORK/node.log" 2>&1 &
PIDS+=($!)
t "the node is there and ready" within 30 there /api/v1/nodes/node-a '.status.conditions[] | select(.type == "Ready") | .status == "True"'
post "$SANDBOXES" "$(sandbox sb '.spec.service = true')"
t "a Sandbox becomes Ready" within 30 there "$SANDBOXES/sb" '.status.conditions[]? | select(.type == "Ready") | .status == "True"'
has "fewer work at once than in a cluster" 'name=sandbox workers=8' "$(<"$SERVER_LOG")"
t "its Pod runs on the node" there "$CORE/pods/sb" '.spec.nodeName == "node-a" and .status.phase == "Running"'
SLICES="/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3Dsb"
t "behind its Service is its Pod's address" within 30 there "$SLICES" '.items[0].endpoints[0] | .conditions.ready and .targetRef.name == "sb"'
address=$(q '.items[0].endpoints[0].addresses[0]')
api GET "$CORE/pods/sb"
is "the very same" "$(q .status.podIP)" "$address"
api GET "$CORE/pods?fieldSelector=spec.nodeName%3Dnode-a"
is "Pods are found by their node" sb "$(q '[.items[].metadata.name] | join(" ")')"
api GET "$CORE/pods" -H 'Accept: application/json;as=Table;v=v1;g=meta.k8s.io'
is "and shown as people know them" '1/1 Running' "$(q '.rows[0].cells[1:3] | join(" ")')"
post "$EXTENSIONS/sandboxtemplates" '{"apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxTemplate","metadata":{"name":"t"},
    "spec":{"podTemplate":{"spec":{"containers":[{"name":"main","image":"x"}]}}}}'
post "$EXTENSIONS/sandboxwarmpools" '{"apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxWarmPool","metadata":{"name":"w"},
    "spec":{"replicas":2,"sandboxTemplateRef":{"name":"t"}}}'
t "a pool of 2 is ready" within 30 there "$EXTENSIONS/sandboxwarmpools/w" '.status.readyReplicas == 2'
post "$EXTENSIONS/sandboxclaims" '{"apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxClaim","metadata":{"name":"c"},
    "spec":{"warmPoolRef":{"name":"w"}}}'
like "a claim has its Sandbox in the answer to its POST" '^w-' "$(q .status.sandbox.name)"
t "the pool is filled again" within 30 there "$EXTENSIONS/sandboxwarmpools/w" '.status.readyReplicas == 2'

# ---- events: one store, two groups ----

post "$CORE/events" '{"apiVersion":"v1","kind":"Event","metadata":{"name":"e"},"involvedObject":{"kind":"Sandbox","name":"sb","namespace":"default"},
    "reason":"R","message":"words","type":"Normal"}'
api GET /apis/events.k8s.io/v1/namespaces/default/events/e
is "an Event of the core group in the other's form" 'events.k8s.io/v1 sb words' "$(q '[.apiVersion, .regarding.name, .note] | join(" ")')"
post /apis/events.k8s.io/v1/namespaces/default/events '{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"f"},"eventTime":
    "2030-01-01T00:00:00.000000Z","regarding":{"kind":"Pod","name":"x","namespace":"default"},"reason":"R","note":"other words","type":"Warning",
    "action":"A","reportingController":"c","reportingInstance":"i"}'
api GET "$CORE/events?fieldSelector=involvedObject.name%3Dx"
is "and the other way round, by its field" 'f other words' "$(q '.items[] | .metadata.name + " " + .message')"

# ---- what goes with what ----

answers "a Sandbox is deleted" 200 DELETE "$SANDBOXES/sb"
t "its Pod goes with it" within 30 gone "$CORE/pods/sb"
t "and its Service" within 30 gone "$CORE/services/sb"
t "with the addresses behind it" within 30 there "$SLICES" '.items == []'
post "$CORE/configmaps" '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"owner"}}'
owner=$(q .metadata.uid)
post "$CORE/configmaps" "$(jq -cn --arg uid "$owner" '{apiVersion: "v1", kind: "ConfigMap", metadata: {name: "owned", ownerReferences:
    [{apiVersion: "v1", kind: "ConfigMap", name: "owner", uid: $uid}]}}')"
answers "an owner is deleted, but what it owns shall stay" 200 DELETE "$CORE/configmaps/owner?propagationPolicy=Orphan"
t "the owner goes" within 30 gone "$CORE/configmaps/owner"
t "and its dependent has no owner any more" there "$CORE/configmaps/owned" '.metadata.ownerReferences == null or .metadata.ownerReferences == []'
post "$CORE/configmaps" "$(jq -cn --arg uid "$owner" '{apiVersion: "v1", kind: "ConfigMap", metadata: {name: "late", ownerReferences:
    [{apiVersion: "v1", kind: "ConfigMap", name: "owner", uid: $uid}]}}')"
t "whose owner is gone already goes, too" within 30 gone "$CORE/configmaps/late"

# ---- volumes ----

STORAGE='"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}'
answers "there is a class of volumes from the start" 200 GET /apis/storage.k8s.io/v1/storageclasses/standard
post "$CORE/persistentvolumeclaims" '{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"disk"},"spec":{'"$STORAGE"'}}'
t "a claim gets a volume that is made for it" within 30 there "$CORE/persistentvolumeclaims/disk" '.status.phase == "Bound" and .status.capacity.storage == "1Gi"'
volume=$(q .spec.volumeName)
api GET "/api/v1/persistentvolumes?limit=5" -H 'Accept: application/json;as=Table;v=v1;g=meta.k8s.io'
is "volumes are shown as people know them" "$volume 1Gi RWO Delete Bound default/disk standard" "$(q '.rows[0].cells[0:7] | join(" ")')"
post /api/v1/persistentvolumes '{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"shelf"},"spec":{"accessModes":["ReadWriteOnce"],"capacity":{
    "storage":"2Gi"},"storageClassName":"own","hostPath":{"path":"/srv/shelf"}}}'
t "one that somebody made waits for a claim" within 30 there /api/v1/persistentvolumes/shelf '.status.phase == "Available"'
post "$CORE/persistentvolumeclaims" '{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"own"},"spec":{"storageClassName":"own",'"$STORAGE"'}}'
t "and gets it" within 30 there "$CORE/persistentvolumeclaims/own" '.spec.volumeName == "shelf" and .status.phase == "Bound"'
post "$CORE/pods" '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"writer"},"spec":{"terminationGracePeriodSeconds":0,"containers":[{"name":"a","image":"x"}],
    "volumes":[{"name":"disk","persistentVolumeClaim":{"claimName":"disk"}},{"name":"late","persistentVolumeClaim":{"claimName":"late"}}]}}'
t "a Pod waits for its claims" within 30 there "$CORE/pods/writer" \
    '.status.conditions[]? | select(.type == "PodScheduled") | .message == "persistentvolumeclaim \"late\" not found"'
post "$CORE/persistentvolumeclaims" '{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"late"},"spec":{'"$STORAGE"'}}'
t "and runs once they are bound" within 30 there "$CORE/pods/writer" '.status.phase == "Running"'
for claim in disk own; do answers "claim $claim is deleted" 200 DELETE "$CORE/persistentvolumeclaims/$claim"; done
t "an unused one is gone" within 30 gone "$CORE/persistentvolumeclaims/own"
t "its volume is kept" within 30 there /api/v1/persistentvolumes/shelf '.status.phase == "Released"'
t "one in use stays" there "$CORE/persistentvolumeclaims/disk" '.metadata.deletionTimestamp != null'
answers "until its Pod goes" 200 DELETE "$CORE/pods/writer"
t "then it is gone" within 30 gone "$CORE/persistentvolumeclaims/disk"
t "and so is its volume" within 30 gone "/api/v1/persistentvolumes/$volume"

# ---- one is killed, then both ----

before=$(etcd_pid)
kill -9 "$before"
t "an etcd that is killed is started again" within 30 eval "etcd_pid | grep -qv '^$before\$'"
t "and what was there is there" within 30 there "$CORE/configmaps/owned" '.kind == "ConfigMap"'
before=$(etcd_pid)
server_kill
t "an etcd whose server is killed ends" within 30 eval "! kill -0 $before"
standalone_up
kill -9 "$(etcd_pid)" "$SERVER_PID"
wait "$SERVER_PID" 2>/dev/null
SERVER_PID=''
standalone_up
t "what was there is there after a kill of server and store" there "$EXTENSIONS/sandboxclaims/c" '.status.sandbox.name != null'
t "with its Pods" there "$CORE/pods" '.items | length == 3'
post /api/v1/namespaces '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"work"}}'
post /apis/agents.x-k8s.io/v1beta1/namespaces/work/sandboxes "$(sandbox sb)"
t "Sandboxes go on becoming Ready" within 40 there /apis/agents.x-k8s.io/v1beta1/namespaces/work/sandboxes/sb \
    '.status.conditions[]? | select(.type == "Ready") | .status == "True"'

# ---- kubectl ----

KUBECTL=$(find /var/cache/agent-sandbox -maxdepth 2 -name kubectl -type f -executable 2>/dev/null | sort | tail -n 1)
KUBECTL=${KUBECTL:-$(command -v kubectl)}
kc() { "$KUBECTL" --kubeconfig="$DATA/admin.kubeconfig" --cache-dir="$WORK/kube-cache" "$@" 2>&1; }
if [ -n "$KUBECTL" ]; then
    like "kubectl get" 'sb +1/1 +Running' "$(kc get pods -A)"
    like "kubectl describe" 'Ready +True' "$(kc -n work describe pod sb)"
    cat >"$WORK/cm.yaml" <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: applied, namespace: work}
spec: {containers: [{name: a, image: one}]}
Y
    has "kubectl apply makes" created "$(kc apply -f "$WORK/cm.yaml")"
    sed -i 's/image: one/image: two/' "$WORK/cm.yaml"
    has "and changes by a strategic merge patch" configured "$(kc apply -f "$WORK/cm.yaml")"
    is "what was changed" two "$(kc -n work get pod applied -o 'jsonpath={.spec.containers[0].image}')"
    has "kubectl explain" nodeName "$(kc explain pod.spec.nodeName)"
    while read -r outcome command; do
        read -ra words <<<"$command"
        like "kubectl $command" "$outcome" "$(kc -n work "${words[@]}")"
    done <<'COMMANDS'
created create namespace typed
created create configmap typed --from-literal=a=b
created create secret generic typed --from-literal=a=b
created create secret docker-registry typed-login --docker-username=a --docker-password=b
created create serviceaccount typed
created create role typed --verb=get,list --resource=pods
created create rolebinding typed --role=typed --serviceaccount=work:typed
created create clusterrole typed --verb=get --resource=pods
created create clusterrolebinding typed --clusterrole=typed --user=jane
created create service externalname typed --external-name=example.org
created run typed --image=example.org/app --port=80 --labels=a=b --env=A=B -- sleep 1
exposed expose pod typed --port=80 --target-port=http --cluster-ip=None --name=exposed
^ey.*[.].*[.] create token typed --duration=10m
^yes auth can-i list pods --as=system:serviceaccount:work:typed
^no auth can-i list secrets --as=system:serviceaccount:work:typed
^pods.*get.list auth can-i --list --as=system:serviceaccount:work:typed
^Username.*admin auth whoami
deleted delete pod typed --grace-period=0 --force
deleted delete clusterrole,clusterrolebinding,ns typed
COMMANDS
    is "what they made is what they said" 'b http' \
        "$(kc -n work get configmap typed -o 'jsonpath={.data.a}') $(kc -n work get service exposed -o 'jsonpath={.spec.ports[0].targetPort}')"
    has "kubectl delete ns waits until all is gone" deleted "$(timeout 60 "$KUBECTL" --kubeconfig="$DATA/admin.kubeconfig" delete ns work 2>&1)"
else
    skip "kubectl" "none here"
    answers "a namespace is deleted" 200 DELETE /api/v1/namespaces/work
fi
t "the namespace is gone" within 30 gone /api/v1/namespaces/work
api GET /api/v1/pods
is "with its Pods" "" "$(q '.items[] | select(.metadata.namespace == "work") | .metadata.name')"

# ---- the end ----

before=$(etcd_pid)
server_stop
is "the server ends with exit code 0" 0 $?
t "and its etcd with it" eval "! kill -0 $before"
