# What the end-to-end tests share. Each of them speaks TAP, makes a namespace of its own, and can be run alone against a
# running cluster (hack/cluster/cluster up) with the server in it (hack/install --dev):
#     bash tests/e2e/20-lifecycle.sh
# Sourced, not run. Sets NS (the test's namespace), WORK (a folder that goes at the end), API, SYSTEM, and kubectl's
# environment.
# shellcheck shell=bash disable=SC2034
set -uo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
CLUSTER=${TEST_CLUSTER:-$ROOT/hack/cluster/cluster} # or tests/standalone/try, which answers the same words
SYSTEM=agent-sandbox-system
APISERVICES=(v1beta1.agents.x-k8s.io v1beta1.extensions.agents.x-k8s.io)
GROUP=/apis/agents.x-k8s.io/v1beta1
IMAGE=localhost/agent-sandbox/busybox:dev
WORK=$(mktemp -d)
LAST_TRY=$WORK/within
NAMESPACES=()
# shellcheck source=tests/lib/tap.sh
. "$ROOT/tests/lib/tap.sh"
# shellcheck source=tests/lib/within.sh
. "$ROOT/tests/lib/within.sh"

# refused TEXT PATTERN COMMAND...: the command fails and says something that matches.
refused() {
    local text=$1 pattern=$2 out
    shift 2
    if out=$("$@" 2>&1); then not_ok "$text" "$* succeeded: $out"; else like "$text" "$pattern" "$out"; fi
}

# gone NAMESPACE KIND/NAME...: none of them exists. An error other than NotFound does not count as gone.
gone() {
    local ns=$1 left
    shift
    left=$(kubectl -n "$ns" get "$@" --ignore-not-found -o name) && [ -z "$left" ]
}

# bail TEXT: nothing in this file can be tested.
bail() {
    not_ok "$1"
    exit 1
}

# namespace NAME: makes one that goes at the end.
namespace() {
    kubectl create namespace "$1" >/dev/null || bail "namespace $1 cannot be made"
    NAMESPACES+=("$1")
}

# sandbox NAME [LINE-OF-SPEC]: a manifest of one container that sleeps, on the standard output.
sandbox() {
    cat <<E
apiVersion: agents.x-k8s.io/v1beta1
kind: Sandbox
metadata: {name: $1}
spec:
${2:+  $2
}  podTemplate:
    spec:
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: $IMAGE
        command: [sh, -c, "trap 'exit 0' TERM; sleep 100000 & wait"]
E
}

# template NAME COLOUR [COMMAND [RESTART-POLICY]]: a SandboxTemplate with a Service and one container that sleeps, or runs the command,
# which ends by itself (a simulated node, which runs nothing, is told so); COLOUR is in its environment, to change.
template() {
    cat <<E
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxTemplate
metadata: {name: $1}
spec:
  service: true
  podTemplate:
${3:+    metadata: {annotations: {node.agent-sandbox.dev/fault: exit\}\}
}    spec:
      restartPolicy: ${4:-Always}
      terminationGracePeriodSeconds: 1
      containers:
      - name: main
        image: $IMAGE
        env: [{name: COLOUR, value: $2}]
        command: [sh, -c, "${3:-trap 'exit 0' TERM; sleep 100000 & wait}"]
E
}

# pool NAME TEMPLATE REPLICAS
pool() {
    cat <<E
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxWarmPool
metadata: {name: $1}
spec: {replicas: $3, sandboxTemplateRef: {name: $2}}
E
}

# claim NAME POOL [LIFECYCLE]: the lifecycle as members of a YAML mapping.
claim() {
    cat <<E
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxClaim
metadata: {name: $1}
spec: {warmPoolRef: {name: $2}${3:+, lifecycle: {$3\}}}
E
}

# gone_everywhere NAMESPACE: nothing of our kinds is in it.
gone_everywhere() {
    local left
    left=$(kubectl -n "$1" get sandboxes,sandboxclaims,sandboxwarmpools,sandboxtemplates -o name) && [ -z "$left" ]
}

# create NAME [KUBECTL-ARGUMENT...]: a Sandbox that sleeps, in the test's namespace.
create() { sandbox "$1" | kubectl create -n "$NS" "${@:2}" -f -; }

# client NAME: a pod in the test's namespace to ask others from.
client() {
    {
        kubectl -n "$NS" run "$1" --image "$IMAGE" --image-pull-policy IfNotPresent --restart Never \
            --overrides '{"spec":{"terminationGracePeriodSeconds":1}}' --command -- sleep 100000 &&
            kubectl -n "$NS" wait --for=condition=Ready "pod/$1" --timeout 60s
    } >/dev/null || bail "the pod to ask from does not start"
}

# value KIND/NAME PATH: one value of an object in the test's namespace.
value() { kubectl -n "$NS" get "$1" -o "jsonpath={$2}"; }

# request METHOD PATH [CURL-ARGUMENT...]: as cluster-admin through kube-apiserver. Prints the body; the code is in $WORK/code.
request() {
    local method=$1 path=$2
    shift 2
    curl -sS --max-time 60 -A e2e --cacert "$CLUSTER_CA" --cert "$CLUSTER_PKI/admin.crt" --key "$CLUSTER_PKI/admin.key" \
        -X "$method" -o "$WORK/body" -w '%{http_code}' "$CLUSTER_API$path" "$@" >"$WORK/code"
    cat "$WORK/body"
}

# secret_file SECRET FILE: what is in it.
secret_file() { kubectl -n "$SYSTEM" get secret "$1" -o "jsonpath={.data.${2/./\\.}}" | base64 -d; }
# server_certificate: the authority of the server's own port, at SERVER_URL, is in $WORK/serving-ca.crt.
SERVER_URL=https://sandbox-apiserver.$SYSTEM.svc
server_certificate() { secret_file sandbox-apiserver-tls ca.crt >"$WORK/serving-ca.crt"; }

# direct PATH [CURL-ARGUMENT...]: straight to the server's own port, past kube-apiserver. Prints `CODE BODY`.
direct() {
    local path=$1
    shift
    server_certificate
    "$CLUSTER" run curl -sS --max-time 20 -A e2e --cacert "$WORK/serving-ca.crt" -w '\n%{http_code}' \
        "$SERVER_URL$path" "$@" >"$WORK/direct" 2>&1
    echo "$(tail -n 1 "$WORK/direct") $(head -n -1 "$WORK/direct")"
}

# services_available: kube-apiserver finds the server.
services_available() {
    local service
    ! lacks aggregator "${APISERVICES[@]/%/ is Available}" || return 0
    for service in "${APISERVICES[@]}"; do
        t "$service is Available" kubectl wait --for=condition=Available "apiservice/$service" --timeout 60s
    done
}

# server_metrics: of the server itself, after the code of the answer.
server_metrics() {
    direct /metrics --cert "$CLUSTER_PKI/front-proxy-client.crt" --key "$CLUSTER_PKI/front-proxy-client.key" \
        -H 'X-Remote-User: admin' -H 'X-Remote-Group: system:masters'
}

# lacks PART [TEXT...]: nothing of a real cluster; elsewhere the texts of what cannot be tried are said to be skipped, with the reason.
lacks() { return 1; }

# certificate NAME SUBJECT [CA]: a client certificate signed by an authority of the cluster (ca, front-proxy-ca) or, for
# CA "self", by nobody. Files $WORK/NAME.crt and .key.
certificate() {
    local name=$1 subject=$2 ca=${3:-ca}
    local key=$WORK/$name.key crt=$WORK/$name.crt
    openssl ecparam -name prime256v1 -genkey -noout -out "$key" 2>/dev/null
    if [ "$ca" = self ]; then
        openssl req -x509 -new -key "$key" -sha256 -days 1 -subj "$subject" -addext extendedKeyUsage=clientAuth -out "$crt" 2>/dev/null
        return
    fi
    openssl req -new -key "$key" -sha256 -subj "$subject" -out "$WORK/csr" 2>/dev/null
    openssl x509 -req -in "$WORK/csr" -CA "$CLUSTER_PKI/$ca.crt" -CAkey "$CLUSTER_PKI/$ca.key" -set_serial "$RANDOM" -days 1 \
        -sha256 -extfile <(printf 'basicConstraints=CA:FALSE\nextendedKeyUsage=clientAuth\n') -out "$crt" 2>/dev/null
}

# deploy PATH VALUE: replaces a part of the server's Deployment (JSON) and waits until only pods of that form serve.
deploy() {
    kubectl -n "$SYSTEM" patch deployment sandbox-apiserver --type json -p "[{\"op\":\"replace\",\"path\":\"$1\",\"value\":$2}]" >/dev/null &&
        kubectl -n "$SYSTEM" rollout status deployment/sandbox-apiserver --timeout 120s >/dev/null &&
        within 60 one_server
}

# one_server: the old one has ended, so it leads no more.
one_server() { [ "$(kubectl -n "$SYSTEM" get pods -o name -l app.kubernetes.io/component=server | wc -l)" = 1 ]; }

# rolled_out WORKLOAD: once its controller has seen that the pod is going.
rolled_out() { sleep 1 && kubectl -n "$SYSTEM" rollout status "$1" --timeout 60s; }
# lose_server, lose_store: its pod is deleted, and another one becomes ready.
lose_server() {
    kubectl -n "$SYSTEM" delete "$(kubectl -n "$SYSTEM" get pods -l app.kubernetes.io/component=server -o name)" --wait=false && rolled_out deployment/sandbox-apiserver
}
lose_store() { kubectl -n "$SYSTEM" delete pod etcd-0 --wait=false && rolled_out statefulset/etcd; }
# kill_server: its process in the pod of the cluster, as a crash would.
kill_server() {
    local container process
    container=$(kubectl -n "$SYSTEM" get pods -l app.kubernetes.io/component=server -o 'jsonpath={.items[0].status.containerStatuses[0].containerID}')
    process=$(grep -l -- "${container#*//}" /proc/[0-9]*/cgroup 2>/dev/null | grep -oE '[0-9]+')
    [ -n "$container" ] && [ -n "$process" ] && kill -KILL "$process"
}
# etcd_call METHOD BODY: of the server's store; the certificates that it needs are fetched once.
etcd_call() {
    local file
    for file in ca.crt tls.crt tls.key; do [ -s "$WORK/etcd-$file" ] || secret_file sandbox-apiserver-etcd "$file" >"$WORK/etcd-$file"; done
    curl -sSf --max-time 10 --cacert "$WORK/etcd-ca.crt" --cert "$WORK/etcd-tls.crt" --key "$WORK/etcd-tls.key" -d "$2" "https://etcd.$SYSTEM.svc:2379/v3/$1"
}
# replace_server: by another one of the same form; returns when it serves.
replace_server() { kubectl -n "$SYSTEM" rollout restart deployment/sandbox-apiserver && kubectl -n "$SYSTEM" rollout status deployment/sandbox-apiserver --timeout 120s; }

# with_arguments ARGUMENT...: the server runs with these as well, until the end of the test.
ARGUMENTS=/spec/template/spec/containers/0/args
ARGUMENTS_BEFORE=
with_arguments() {
    ARGUMENTS_BEFORE=${ARGUMENTS_BEFORE:-$(kubectl -n "$SYSTEM" get deployment sandbox-apiserver -o json | jq -c '.spec.template.spec.containers[0].args')}
    deploy "$ARGUMENTS" "$(jq -c '. + $ARGS.positional' --args -- "$@" <<<"$ARGUMENTS_BEFORE")"
}

finish() {
    local job
    [ -z "$ARGUMENTS_BEFORE" ] || deploy "$ARGUMENTS" "$ARGUMENTS_BEFORE" || not_ok "the server has its own arguments again"
    for job in $(jobs -p); do kill "$job" 2>/dev/null; done
    [ ${#NAMESPACES[@]} -eq 0 ] || kubectl delete namespace --ignore-not-found --wait=false "${NAMESPACES[@]}" >/dev/null 2>&1
    rm -rf "$WORK"
    echo "1..$NUMBER"
    [ "$BAD" = 0 ] || exit 1
}
trap finish EXIT

"$CLUSTER" status >/dev/null || bail "there is no running cluster: hack/cluster/cluster up"
settings=$("$CLUSTER" env)
eval "$settings"
NS=e2e-$(basename "${BASH_SOURCE[-1]}" .sh)-$RANDOM
[ -n "${WITHOUT_SERVER:-}" ] || lacks aggregator || kubectl get apiservice "${APISERVICES[@]}" >/dev/null 2>&1 || bail "the server is not installed: hack/install --dev"
