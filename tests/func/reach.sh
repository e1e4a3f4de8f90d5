# Into Pods through a server without a cluster: logs, and the raw connections of exec, attach and portforward, between clients and a node that
# reach.py plays. What nodes are trusted, who may, what is refused, and that many of them harm nobody.
# shellcheck shell=bash disable=SC2119 source=tests/func/lib.sh
. "$(dirname "$0")/lib.sh"
need python3
DATA=$WORK/data
CORE=/api/v1/namespaces/default
HERE=$(dirname "$0")
IDLE=200
[ -z "$SLOW" ] || IDLE=50

# launch [FLAG...]: one try on $PORT; returns when it listens.
launch() {
    STARTS=$((STARTS + 1))
    SERVER_LOG=$WORK/server-$STARTS.log
    "$SERVER" --standalone --store=memory --data-dir="$DATA" --secure-port="$PORT" "$@" </dev/null >"$SERVER_LOG" 2>&1 &
    SERVER_PID=$!
    within 60 eval "grep -q 'kubeconfig file=' '$SERVER_LOG' || ! kill -0 $SERVER_PID" && kill -0 "$SERVER_PID" 2>/dev/null
}

as_admin() { AS=(--cert "$DATA/admin.crt" --key "$DATA/admin.key"); }
post() { answers "creates $(jq -r '.kind + " " + .metadata.name' <<<"$2")" 201 POST "$1" "${JSON[@]}" -d "$2"; }

up() {
    for _ in {1..5}; do
        PORT=$(etcd_random_port)
        launch "$@" && break
    done
    URL=https://127.0.0.1:$PORT
    cp "$DATA/ca.crt" "$WORK/serving-ca.crt"
    cp "$DATA/admin.crt" "$DATA/admin.key" "$WORK"
    as_admin
    within 60 is_ready || { not_ok "the server starts" "$(tail -n 20 "$SERVER_LOG")" && exit 1; }
}

# play NAME: a node's server with that certificate; sets NODE_PORT.
play() {
    mkfifo "$WORK/port"
    python3 "$HERE/reach.py" node "$WORK" "$1.crt" "$1.key" "$DATA/ca.crt" >"$WORK/port" 2>"$WORK/node.err" &
    PIDS+=($!)
    read -r NODE_PORT <"$WORK/port"
    rm "$WORK/port"
}

# node NAME PORT: the object of a node that says it serves there.
node() {
    post /api/v1/nodes '{"apiVersion":"v1","kind":"Node","metadata":{"name":"'"$1"'"}}'
    answers "which serves on a port" 200 PATCH "/api/v1/nodes/$1/status" -H 'Content-Type: application/merge-patch+json' -d \
        '{"status":{"addresses":[{"type":"Hostname","address":"'"$1"'"},{"type":"InternalIP","address":"127.0.0.1"}],"daemonEndpoints":{"kubeletEndpoint":{"Port":'"$2"'}}}}'
}

# pod NAME NODE CONTAINER...: of a node.
pod() {
    local name=$1 node=$2
    shift 2
    post "$CORE/pods" "$(jq -cn --arg name "$name" --arg node "$node" '{apiVersion: "v1", kind: "Pod", metadata: {name: $name},
        spec: ({containers: [$ARGS.positional[] | {name: ., image: "x"}]} + if $node == "" then {schedulerName: "none"} else {nodeName: $node} end)}' --args "$@")"
}

# says TEXT CODE MESSAGE METHOD PATH [CURL-ARGUMENT...]: the Status.
says() {
    local text=$1 code=$2 message=$3
    shift 3
    api "$@"
    is "$text" "$code $message" "$CODE $(q .message)"
}

up
issue jane /O=team/CN=jane
t "there is a namespace to work in" within 20 eval 'api GET "$CORE/serviceaccounts/default" && [ "$CODE" = 200 ]'
play "$DATA/node"
node local "$NODE_PORT"
pod p local echo short follow pieces quiet large waiting failing rude silent
pod one '' main
pod two nowhere a b
UP=(--http1.1 -H 'Connection: Upgrade' -H 'Upgrade: SPDY/3.1')

# ---- what is said about it ----

api GET /api/v1
is "discovery tells of them" 'pods/attach PodAttachOptions create,get;pods/exec PodExecOptions create,get;pods/log Pod get;pods/portforward PodPortForwardOptions create,get' \
    "$(q '[.resources[] | select(.name | test("^pods/(attach|exec|log|portforward)$")) | .name + " " + .kind + " " + (.verbs | join(","))] | join(";")')"

# paths: of the last document, what clients are made of: operations, what they are of, parameters.
paths() {
    q '.paths | to_entries[] | select(.key | test("/pods/{name}/(attach|exec|log|portforward)$")) | .value |
        ([.get, .post | values | .operationId + ":" + ."x-kubernetes-action" + ":" + ."x-kubernetes-group-version-kind".kind] | join(" ")) + " " +
        ([.parameters[] | if has("$ref") then .["$ref"] | sub(".*/"; "") | sub("-[^-]*$"; "") | sub("-vgW.*|-tJG.*"; "") else .name end] | join(","))' | sort
}
PATHS='connectCoreV1GetNamespacedPodAttach:connect:PodAttachOptions connectCoreV1PostNamespacedPodAttach:connect:PodAttachOptions container,stderr,stdin,stdout,tty,name,namespace
connectCoreV1GetNamespacedPodExec:connect:PodExecOptions connectCoreV1PostNamespacedPodExec:connect:PodExecOptions command,container,stderr,stdin,stdout,tty,name,namespace
connectCoreV1GetNamespacedPodPortforward:connect:PodPortForwardOptions connectCoreV1PostNamespacedPodPortforward:connect:PodPortForwardOptions ports,name,namespace
readCoreV1NamespacedPodLog:get:Pod container,follow,insecureSkipTLSVerifyBackend,limitBytes,previous,sinceSeconds,stream,tailLines,timestamps,name,namespace,pretty'
api GET /openapi/v3/api/v1
is "so does the document that clients are made of" "$PATHS" "$(paths)"
api GET /openapi/v2
is "and its older form" "$PATHS" "$(paths)"

# ---- options and refusals, in kube-apiserver's words ----

P=$CORE/pods
says "a log of no Pod" 404 'pods "nope" not found' GET "$P/nope/log"
says "a negative number of lines" 422 'PodLogOptions "one" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0' \
    GET "$P/one/log?tailLines=-1"
says "no number" 400 'strconv.ParseInt: parsing "x": invalid syntax' GET "$P/one/log?tailLines=x"
says "nothing at all" 422 'PodLogOptions "one" is invalid: [limitBytes: Invalid value: 0: must be greater than 0, sinceSeconds: Invalid value: 0: must be greater than 0]' \
    GET "$P/one/log?limitBytes=0&sinceSeconds=0"
says "two beginnings" 422 'PodLogOptions "one" is invalid: []: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified' \
    GET "$P/one/log?sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z"
says "no time" 400 'parsing time "gestern" as "2006-01-02T15:04:05Z07:00": cannot parse "gestern" as "2006"' GET "$P/one/log?sinceTime=gestern"
says "one of two streams" 422 'PodLogOptions "one" is invalid: stream: Forbidden: may not be specified' GET "$P/one/log?stream=Stdout"
answers "a Pod without a node has logged nothing" 204 GET "$P/one/log?sinceTime="
says "which of several containers?" 400 'a container name must be specified for pod two, choose one of: [a b]' GET "$P/two/log"
says "none of them" 400 'container c is not valid for pod two' GET "$P/two/log?container=c"
says "a node that is not there" 404 'pods "nowhere" not found' GET "$P/two/log?container=a"
says "a Pod without a node runs nothing" 400 'pod one does not have a host assigned' POST "$P/one/exec?command=x&stdout=1" "${UP[@]}"
says "no Pod to forward to" 404 'pods "nope" not found' GET "$P/nope/portforward" "${UP[@]}"
says "no port" 400 'cannot convert to []int32: strconv.ParseUint: parsing "x": invalid syntax' GET "$P/p/portforward?ports=x" "${UP[@]}"
says "over HTTP/2 there is no upgrade" 400 'Upgrade request required' POST "$P/p/exec?command=echo&stdin=1&container=echo"
says "nor without asking" 400 'Upgrade request required' GET "$P/p/exec?command=echo&stdin=1&container=echo" --http1.1
says "nor by another method" 405 'the server does not allow this method on the requested resource' PUT "$P/p/exec" "${UP[@]}"
says "logs are not written" 405 'the server does not allow this method on the requested resource' POST "$P/p/log"

# ---- who may ----

RBAC=/apis/rbac.authorization.k8s.io/v1/namespaces/default
post "$RBAC/roles" '{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"get"},"rules":[{"apiGroups":[""],"resources":["pods/exec","pods/log"],"verbs":["get"]}]}'
as jane
answers "a user without a role reads no log" 403 GET "$P/p/log?container=short"
as_admin
post "$RBAC/rolebindings" '{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"get"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"get"},
    "subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"jane"}]}'
as jane
answers "with the right to get it she does" 200 GET "$P/p/log?container=short"
is "and gets it whole, over HTTP/2" $'one\ntwo' "$BODY"
says "to get is not enough to run" 403 'pods "p" is forbidden: User "jane" cannot create resource "pods/exec" in API group "" in the namespace "default"' \
    GET "$P/p/exec?command=echo&stdin=1&container=echo" "${UP[@]}"
as_admin

# ---- bytes ----

# run_client [ARGUMENT...]: the lines of reach.py as tests of ours.
run_client() {
    local line n=0
    while IFS= read -r line; do
        n=$((n + 1))
        case $line in
        ok\ *) ok "${line#ok }" ;;
        *) not_ok "${line#not ok }" ;;
        esac
    done < <(python3 "$HERE/reach.py" client "$PORT" "$WORK" "$@" 2>&1)
    [ "$n" != 0 ] || not_ok "reach.py tests something"
}

answers "a token of an account" 201 POST "$CORE/serviceaccounts/default/token" "${JSON[@]}" -d '{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}'
q .status.token >"$WORK/token"
post "$RBAC/rolebindings" '{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"edit"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"edit"},
    "subjects":[{"kind":"ServiceAccount","name":"default","namespace":"default"}]}'
run_client

# ---- which nodes are believed ----

LOCAL_PORT=$NODE_PORT
node machine "$NODE_PORT"
pod m machine short
answers "the folder's own node, by whatever name" 200 GET "$P/m/log"
issue first /O=system:nodes/CN=system:node:first
play "$WORK/first"
node first "$NODE_PORT"
pod f first short
answers "another node of the authority's, by its own" 200 GET "$P/f/log"
node other "$NODE_PORT"
pod q other main
says "who answers for a node must be that node" 500 'error dialing backend: tls: who answers does not hold the certificate of system:node:other' \
    GET "$P/q/log"
authority strangers
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$WORK/strange.key" -out "$WORK/strange.csr" -subj /O=system:nodes/CN=system:node:strange 2>/dev/null
openssl x509 -req -in "$WORK/strange.csr" -CA "$WORK/strangers.crt" -CAkey "$WORK/strangers.key" -set_serial 1 -days 2 -out "$WORK/strange.crt" 2>/dev/null
play "$WORK/strange"
node strange "$NODE_PORT"
pod r strange main
api GET "$P/r/log"
is "and of our authority" 500 "$CODE"
like "which is said" 'error dialing backend: tls: (unable to get local issuer certificate|unable to verify the first certificate)' "$(q .message)"
api POST "$P/r/exec?command=x&stdout=1" "${UP[@]}"
is "the same for what is run" 500 "$CODE"
node away "$(etcd_random_port)"
pod s away main
api GET "$P/s/log"
like "a node that is away" '^500 error dialing backend: dial tcp 127.0.0.1:[0-9]+: connect: Connection refused$' "$CODE $(q .message)"
post /api/v1/nodes '{"apiVersion":"v1","kind":"Node","metadata":{"name":"mute"}}'
pod u mute main
says "a node that does not say where it is" 503 'node mute does not say where it can be reached' GET "$P/u/log"

# ---- many ----

threads() { ls "/proc/$SERVER_PID/task" | wc -l; }
BEFORE=$(threads)
exec 3< <(python3 "$HERE/reach.py" idle "$PORT" "$WORK" "$IDLE" 2>&1)
read -r -t 120 line <&3
is "many may be open" open "$line"
MORE=$(($(threads) - BEFORE))
is "without a thread each" yes "$([ "$MORE" -lt $((IDLE / 4)) ] && echo yes || echo "$MORE more threads")"
api GET /metrics
is "they are counted" yes "$(awk -v n="$IDLE" '/^agent_sandbox_pod_streams{type="raw"}/ { print($2 >= n ? "yes" : $2) }' "$WORK/body")"
for _ in {1..20}; do api GET "$P/one" && [ "$CODE" = 200 ] || break; done
is "and harm no other request" 200 "$CODE"
answers "nor a log" 200 GET "$P/p/log?container=short"
api POST "$P/p/exec?command=echo&stdin=1&container=echo" "${UP[@]}" --max-time 5 </dev/null
is "nor one more" 101 "$(awk 'NR == 1 { print $2 }' "$WORK/headers")"

# ---- the end ----

server_stop
is "the server ends in order while they are open" 0 $?
read -r -t 60 line <&3
is "and ends all of them" "ended $IDLE" "$line"

# ---- ceilings ----

up --max-pod-streams=2 --streaming-connection-idle-timeout=2s
node local "$LOCAL_PORT"
pod p local echo short
run_client idle
exec 3< <(python3 "$HERE/reach.py" idle "$PORT" "$WORK" 2 2>&1)
read -r -t 60 line <&3
answers "there may be so many and no more" 429 POST "$P/p/exec?command=wait&stdin=1&container=echo" "${UP[@]}"
read -r -t 60 line <&3
is "those that are idle for too long end" "ended 2" "$line"
t "and leave their places" within 10 eval 'api GET "$P/p/log?container=short" && [ "$CODE" = 200 ]'
