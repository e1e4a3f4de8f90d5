# What the files of the contract share. A file is a list of functions
#     check_67() { # a second create is AlreadyExists
# one for each number of the conformance checklist (docs/contract.md tells where it comes from), run in the order in which they
# stand. A check makes its requests and looks at the answers with the words below; every word that does not hold is noted, and the
# check has failed. `return` ends it early, `skip REASON` says that it cannot be run here.
#
# ROADS in a file names the roads its checks are run along, by default both: `aggregator` (through kube-apiserver) and `direct`
# (straight to the server's port). `own` is a process that the file starts itself (own_up). A check passes when it does on each.
# Run by tests/contract/run, or alone: tests/contract/run 67, tests/contract/run 40-create.
# Sourced, not run. shellcheck shell=bash disable=SC2034
set -uo pipefail
export LC_ALL=C.UTF-8
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(cd "$HERE/../.." && pwd)
CLUSTER=$ROOT/hack/cluster/cluster
FILE=$(basename "${BASH_SOURCE[-1]}" .sh)
SYSTEM=agent-sandbox-system
SERVICE=sandbox-apiserver.$SYSTEM.svc
A=/apis/agents.x-k8s.io/v1beta1
E=/apis/extensions.agents.x-k8s.io/v1beta1
IMAGE=localhost/agent-sandbox/busybox:dev

# Everything here runs inside the cluster's network, where Services and their names are.
if [ -z "${CONTRACT_INSIDE:-}" ]; then exec env CONTRACT_INSIDE=1 "$CLUSTER" run bash "$(readlink -f "${BASH_SOURCE[-1]}")" "$@"; fi
settings=$("$CLUSTER" env) || exit 1
eval "$settings"
WORK=$(mktemp -d)
export KUBECACHEDIR=$WORK/kube-cache
ROADS='aggregator direct'
ROAD=aggregator NS='' B='' W='' T='' C=''
NAMESPACES=() PIDS=() WHY=() LATE=() NOTE='' CHECK=0
declare -A RESULT DETAIL TEXT TOOK URL CA

# ---- who asks whom ----

# asks_kubernetes: kube-apiserver answers from CustomResourceDefinitions (tests/contract/run --crd), and speaks protobuf.
asks_kubernetes() { [ -n "${CONTRACT_CRD:-}" ]; }

URL[aggregator]=$CLUSTER_API CA[aggregator]=$CLUSTER_CA
URL[direct]=https://$SERVICE CA[direct]=$WORK/serving-ca.crt
asks_kubernetes || kubectl get apiservice v1beta1.agents.x-k8s.io -o 'jsonpath={.spec.caBundle}' | base64 -d >"${CA[direct]}"
cp "$CLUSTER_PKI"/{admin,front-proxy-client}.{crt,key} "$WORK"
chmod 600 "$WORK"/*.key

# certificate NAME SUBJECT [AUTHORITY]: $WORK/NAME.crt and .key, of a client, signed by the cluster's `ca` or `front-proxy-ca`.
certificate() {
    local base=$WORK/$1
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$base.key" -out "$base.csr" -subj "$2" 2>/dev/null
    openssl x509 -req -in "$base.csr" -CA "$CLUSTER_PKI/${3:-ca}.crt" -CAkey "$CLUSTER_PKI/${3:-ca}.key" -set_serial "0x$(openssl rand -hex 12)" \
        -days 1 -extfile <(printf 'basicConstraints=CA:FALSE\nextendedKeyUsage=clientAuth\n') -out "$base.crt" 2>/dev/null
}

# serving_certificate NAME AUTHORITY SUBJECT-ALTERNATIVE-NAMES: makes the authority as well when there is none of that name.
serving_certificate() {
    local base=$WORK/$1 ca=$WORK/$2
    [ -e "$ca.crt" ] || openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$ca.key" -out "$ca.crt" -days 2 \
        -subj "/CN=$2" -addext 'basicConstraints=critical,CA:TRUE' -addext 'keyUsage=critical,keyCertSign,cRLSign' 2>/dev/null
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$base.key" -out "$base.csr" -subj /CN=contract 2>/dev/null
    openssl x509 -req -in "$base.csr" -CA "$ca.crt" -CAkey "$ca.key" -set_serial "0x$(openssl rand -hex 12)" -days 2 -out "$base.crt" \
        -extfile <(printf 'extendedKeyUsage=serverAuth\nsubjectAltName=%s\n' "$3") 2>/dev/null
}

# ---- requests: each sets CODE (000 = no answer) and BODY, the headers are in $WORK/headers ----

# api METHOD PATH [BODY [CURL-ARGUMENT...]]: along the road of this run. Before it may stand VIA=ROAD, IDENTITY=NAME (a certificate
# of $WORK, or nobody; default admin), TYPE=MEDIA-TYPE (none: no such header), ACCEPT=MEDIA-TYPE. A body @FILE is read from it.
api() {
    local method=$1 path=$2 body=${3:-} via=${VIA:-$ROAD} who=${IDENTITY:-admin} request=()
    shift $(($# < 3 ? $# : 3))
    case $method in HEAD) request+=(-I) ;; *) request+=(-X "$method") ;; esac
    [ "$who" = nobody ] || request+=(--cert "$WORK/$who.crt" --key "$WORK/$who.key")
    [ -z "${ACCEPT:-}" ] || request+=(-H "Accept: $ACCEPT")
    if [ -n "$body" ]; then
        case ${TYPE:=application/json} in none) request+=(-H Content-Type:) ;; *) request+=(-H "Content-Type: $TYPE") ;; esac
        case $body in @*) ;; *) printf '%s' "$body" >"$WORK/request" && body=@$WORK/request ;; esac
        request+=(-H Expect: --data-binary "$body")
    fi
    : >"$WORK/body"
    : >"$WORK/headers"
    read -r CODE SECONDS_TAKEN SECONDS_TO_CONNECT REDIRECT < <(curl -sS --globoff --path-as-is --max-time "${MAX_TIME:-65}" -A contract/1 --cacert "${CA[$via]}" \
        "${request[@]}" -D "$WORK/headers" -o "$WORK/body" -w '%{http_code} %{time_total} %{time_pretransfer} %{redirect_url}' "$@" "${URL[$via]}$path" 2>"$WORK/curl")
    if [ "$CODE" = 000 ]; then BODY=$(<"$WORK/curl"); else { BODY=$(<"$WORK/body"); } 2>/dev/null; fi
}
ca() { VIA=aggregator api "$@"; }
cu() { VIA=direct api "$@"; }
own() { VIA=own api "$@"; }
anyone() { IDENTITY=nobody VIA=direct api "$@"; }
# cx USER METHOD PATH [BODY [CURL-ARGUMENT...]]: what the front proxy would send for that user. An empty one: it names nobody.
cx() {
    local user=$1
    shift
    [ $# -ge 3 ] || set -- "$1" "$2" ""
    IDENTITY=front-proxy-client VIA=${VIA:-direct} api "$@" ${user:+-H "X-Remote-User: $user"}
}
merge() { TYPE=application/merge-patch+json api PATCH "$@"; }
jsonpatch() { TYPE=application/json-patch+json api PATCH "$@"; }
# apply PATH BODY [MANAGER [QUERY]]
apply() { TYPE=application/apply-patch+yaml api PATCH "$1?fieldManager=${3:-one}${4:+&$4}" "$2"; }

# kc KUBECTL-ARGUMENT...: in the namespace of this run; sets OUT and RC.
kc() { OUT=$(kubectl -n "$NS" "$@" 2>&1) && RC=0 || RC=$?; }

# q JQ-ARGUMENT...: looks into the last answer.
q() { jq -r "$@" "$WORK/body" 2>&1; }
header() { tr -d '\r' <"$WORK/headers" | awk -v name="$1" 'BEGIN { FS = ": " } tolower($1) == tolower(name) { sub(/^[^:]*: ?/, ""); print }'; }
version() { q .metadata.resourceVersion; }

# ---- objects: NAME [JQ-PROGRAM that changes it] ----

# object GROUP KIND SPEC NAME [JQ-PROGRAM]
object() {
    local plain="{\"apiVersion\":\"$1.x-k8s.io/v1beta1\",\"kind\":\"$2\",\"metadata\":{\"name\":\"$4\"},\"spec\":$3}"
    if [ -n "${5:-}" ]; then jq -c "$5" <<<"$plain"; else echo "$plain"; fi
}
POD='{"podTemplate":{"spec":{"containers":[{"name":"main","image":"example.org/app:1"}]}}}'
sandbox() { object agents Sandbox "$POD" "$@"; }
template() { object extensions.agents SandboxTemplate "$POD" "$@"; }
pool() { object extensions.agents SandboxWarmPool '{"replicas":1,"sandboxTemplateRef":{"name":"t"}}' "$@"; }
claim() { object extensions.agents SandboxClaim '{"warmPoolRef":{"name":"p"}}' "$@"; }

# make NAME [JQ-PROGRAM]: a Sandbox that has to be created; RV is its version. make_pool the same with a SandboxWarmPool.
make() {
    api POST "$B" "$(sandbox "$@")"
    RV=$(version)
    code 201
}
make_pool() {
    api POST "$W" "$(pool "$@")"
    RV=$(version)
    code 201
}
# stored NAME JQ-EXPRESSION: of a Sandbox as it is read back.
stored() { api GET "$B/$1" && q "$2"; }

# ---- what has to hold ----

fail() { WHY+=("line ${LINE:-${BASH_LINENO[0]}}: $*"); }
is() { [ "$1" = "$2" ] || { LINE=${LINE:-${BASH_LINENO[0]}} fail "expected $1, got ${2:0:600}"; }; }
like() { grep -qE -- "$1" <<<"$2" || { LINE=${LINE:-${BASH_LINENO[0]}} fail "nothing matches $1 in: ${2:0:600}"; }; }
has() { [[ $2 == *"$1"* ]] || { LINE=${LINE:-${BASH_LINENO[0]}} fail "not found: $1 in: ${2:0:600}"; }; }
hasnt() { [[ $2 != *"$1"* ]] || { LINE=${LINE:-${BASH_LINENO[0]}} fail "found: $1 in: ${2:0:600}"; }; }
less() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a < b) }'; }
below() { less "$2" "$1" || { LINE=${LINE:-${BASH_LINENO[0]}} fail "$2 is not below $1"; }; }
# code CODE...: the last answer has one of them; otherwise the function that asked may as well return.
code() {
    local c
    for c in "$@"; do [ "$CODE" != "$c" ] || return 0; done
    LINE=${LINE:-${BASH_LINENO[0]}} fail "expected code $*, got $CODE: ${BODY:0:600}"
    return 1
}
# refused CODE REASON [WORDS-OF-THE-MESSAGE]: the last answer is such a Status.
refused() {
    local LINE=${BASH_LINENO[0]} status
    code "$1" || return 1
    status=$(q '"\(.kind) \(.code) \(.reason // "none")\n\(.message)"')
    is "Status $1 $2" "${status%%$'\n'*}"
    has "${3:-}" "${status#*$'\n'}"
}
# cause REASON FIELD [WORDS]: one of the causes of the last answer.
cause() {
    local LINE=${BASH_LINENO[0]}
    has "$1 $2: ${3:-}" "$(q '.details.causes[]? | "\(.reason) \(.field): \(.message)"')"
}
# warns WORDS: a Warning header of the last answer has them.
warns() { LINE=${BASH_LINENO[0]} has "$1" "$(header Warning)"; }

# SECONDS below are what the contract gives, on a machine that does nothing else. A busy one has PATIENCE times as long.
: "${PATIENCE:=5}"
# within SECONDS COMMAND...: tries until it succeeds.
within() {
    local end=$((${EPOCHREALTIME//./} + $1 * PATIENCE * 1000000))
    shift
    until "$@" >/dev/null 2>&1; do
        [ "${EPOCHREALTIME//./}" -lt "$end" ] || return 1
        sleep "${STEP:-0.1}"
    done
}
# soon SECONDS COMMAND...: it must succeed until then; that it was late is noted.
soon() {
    local began=$EPOCHREALTIME LINE=${LINE:-${BASH_LINENO[0]}}
    if within "$@"; then took "$1" "$(since "$began")" "${*:2}"; else fail "not within $PATIENCE times $1 s: ${*:2}"; fi
}
# took SECONDS ACTUAL WHAT: it may not have taken longer.
took() {
    LINE=${LINE:-${BASH_LINENO[0]}} below $(($1 * PATIENCE)) "$2"
    ! less $(($1 + 1)) "$2" || LATE+=("$(printf '%03d took %s s instead of %s: %.80s' "$CHECK" "$2" "$1" "${3:-}")")
}
# since MOMENT: the seconds that have passed, of one that was $EPOCHREALTIME.
since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f", b - a }'; }

# A check that cannot be run says why and returns.
skip() { NOTE="skip $*"; }
# What is still to come: our server calls no admission webhooks. Checks of them run against kube-apiserver alone (--crd).
webhooks_are_called() { asks_kubernetes || { skip "to come: the server calls no admission webhooks yet (docs/kubernetes-api.md, 30)" && return 1; }; }
# only ROAD: the check makes no sense along another one.
only() {
    [ "$ROAD" != "$1" ] || return 0
    NOTE=elsewhere
    return 1
}

# ---- watches ----

# watch_open NAME PATH [CURL-ARGUMENT...]: in the background along the road of this run, until watch_close or the end of the file.
watch_open() {
    local name=$1 path=$2 via=${VIA:-$ROAD} accept=()
    shift 2
    [ -z "${ACCEPT:-}" ] || accept=(-H "Accept: $ACCEPT")
    : >"$WORK/$name.watch"
    : >"$WORK/$name.headers"
    curl -sSN --globoff --max-time 300 -A contract/1 --cacert "${CA[$via]}" --cert "$WORK/admin.crt" --key "$WORK/admin.key" "${accept[@]}" \
        -D "$WORK/$name.headers" "$@" "${URL[$via]}$path" >"$WORK/$name.watch" 2>"$WORK/$name.error" &
    WATCH_PID=$!
    PIDS+=("$WATCH_PID")
    echo "$WATCH_PID" >"$WORK/$name.pid"
    STEP=0.01 within 10 grep -q '^HTTP/' "$WORK/$name.headers" || fail "watch $name: no answer"
}
watch_close() { kill "$(cat "$WORK/$1.pid")" 2>/dev/null; }
# watch_end NAME SECONDS: the server ends it by itself until then; the exit code is curl's (0 = a clean end).
watch_end() {
    local pid
    pid=$(cat "$WORK/$1.pid")
    within "$2" eval "! kill -0 $pid" || { LINE=${BASH_LINENO[0]} fail "watch $1 goes on" && return 1; }
    wait "$pid"
}
# events NAME [JQ-EXPRESSION]: what came until now, one line each.
events() { jq -r "${2:-\"\\(.type) \\(.object.metadata.name)\"}" "$WORK/$1.watch" 2>&1; }
# came NAME COUNT: waits for that many lines.
has_lines() { [ "$(wc -l <"$1")" -ge "$2" ]; }
came() { STEP=0.02 within "${3:-5}" has_lines "$WORK/$1.watch" "$2" || { LINE=${BASH_LINENO[0]} fail "watch $1: $(wc -l <"$WORK/$1.watch") events instead of $2"; }; }

# ---- namespaces and rights ----

# namespace NAME: goes at the end.
namespace() {
    kubectl create namespace "$1" >/dev/null && NAMESPACES+=("$1")
}
# role USER VERBS RESOURCES [KUBECTL-ARGUMENT...]: in the namespace of this run.
role() {
    local name=$1-$RANDOM
    kubectl -n "$NS" create role "$name" --verb "$2" --resource "$3" "${@:4}" >/dev/null &&
        kubectl -n "$NS" create rolebinding "$name" --role "$name" --user "$1" >/dev/null
}

# ---- a process of our own, with its own etcd: URL[own] ----

SERVER=${SERVER:-$ROOT/build/gcc/sandbox-apiserver}
OWN_PID='' OWN_PORT='' ETCD_DIR=$WORK/etcd ETCD_URL=''
# shellcheck source=tests/lib/etcd.sh
. "$ROOT/tests/lib/etcd.sh"
# shellcheck source=tests/lib/children.sh
. "$ROOT/tests/lib/children.sh"
OWN_KUBECONFIG=$KUBECONFIG

# own_up [FLAG...]: starts it, or starts it again on the port and with the data it had, and waits until it is ready. The reconciler is
# off: the one in the cluster does not know this store.
own_up() {
    [ -x "$SERVER" ] || { skip "$SERVER is not built" && return 1; }
    [ -n "$ETCD_URL" ] || ETCD_URL=$(mkdir -p "$ETCD_DIR" && ETCD=$CLUSTER_BIN/etcd etcd_start "$ETCD_DIR") || { fail "etcd does not start" && return 1; }
    [ -e "$WORK/own.crt" ] || serving_certificate own own-ca "DNS:localhost,IP:127.0.0.1,IP:$CLUSTER_ADDRESS"
    [ -n "$OWN_PORT" ] || OWN_PORT=$(etcd_random_port)
    "$SERVER" --bind-address="${OWN_ADDRESS:-127.0.0.1}" --secure-port="$OWN_PORT" --etcd-servers="$ETCD_URL" --kubeconfig="$OWN_KUBECONFIG" \
        --tls-cert-file="$WORK/own.crt" --tls-private-key-file="$WORK/own.key" --reconcile=false "$@" </dev/null >>"$WORK/own.log" 2>&1 &
    OWN_PID=$!
    URL[own]=https://${OWN_ADDRESS:-127.0.0.1}:$OWN_PORT CA[own]=$WORK/own-ca.crt
    within 30 own_is_ready || { fail "the server does not become ready: $(tail -n 3 "$WORK/own.log")" && return 1; }
}
own_is_ready() { curl -sf --max-time 5 --cacert "${CA[own]}" "${URL[own]}/readyz"; }
own_down() {
    [ -n "$OWN_PID" ] || return 0
    kill "$OWN_PID" 2>/dev/null
    wait "$OWN_PID" 2>/dev/null
    local rc=$?
    OWN_PID=''
    return $rc
}
etcd_signal() { kill -"$1" "$(cat "$ETCD_DIR/pid")"; }
etcd_call() { curl -s --max-time 10 -d "$2" "$ETCD_URL/v3/$1"; }
# etcd_compact: forgets everything before now.
etcd_compact() {
    local revision
    revision=$(etcd_call kv/range '{"key":"AA=="}' | jq -r .header.revision)
    etcd_call kv/compaction "{\"revision\":\"$revision\",\"physical\":true}" >/dev/null
}

# helper ARGUMENT...: helper.py in the background; HELPER_PORT is where it listens.
helper() {
    local out=$WORK/helper-$RANDOM
    : >"$out"
    python3 "$HERE/helper.py" "$@" >"$out" 2>"$out.err" &
    HELPER_PID=$!
    PIDS+=("$HELPER_PID")
    within 10 grep -q '^port ' "$out" || fail "helper.py: $(tail -n 3 "$out.err")"
    HELPER_PORT=$(sed -n 's/^port //p' "$out")
}

# ---- running ----

checks() { grep -oE '^check_[0-9]+\(\)' "$HERE/$FILE.sh" | grep -oE '[0-9]+'; }
wanted() {
    [ -z "${CONTRACT_ONLY:-}" ] || grep -qx -- "$1" <<<"$CONTRACT_ONLY"
}

# open_road ROAD: the namespace and paths of this run.
open_road() {
    ROAD=$1
    NS=contract-$FILE-$ROAD-$RANDOM
    B=$A/namespaces/$NS/sandboxes W=$E/namespaces/$NS/sandboxwarmpools T=$E/namespaces/$NS/sandboxtemplates C=$E/namespaces/$NS/sandboxclaims
    namespace "$NS"
    if declare -F prepare >/dev/null; then prepare; fi
}

# carry_out NUMBER: one check along one road. Failed beats passed, passed beats skipped.
carry_out() {
    local n=$1 t=$EPOCHREALTIME
    WHY=() NOTE='' CHECK=$n
    "check_$n"
    TOOK[$n]=$(awk -v s="${TOOK[$n]:-0}" -v more="$(since "$t")" 'BEGIN { printf "%.1f", s + more }')
    if [ ${#WHY[@]} -gt 0 ]; then
        RESULT[$n]=failed
        DETAIL[$n]+=$(printf '%s: %s\n' "$ROAD" "${WHY[@]}" | sed "s/^/#   /")$'\n'
    elif [ -z "$NOTE" ]; then
        [ "${RESULT[$n]:-}" = failed ] || RESULT[$n]=passed
    elif [ "$NOTE" != elsewhere ] && [ -z "${RESULT[$n]:-}" ]; then
        RESULT[$n]=${NOTE/#skip/skipped}
    fi
}

# run_checks: the last line of a file.
run_checks() {
    local n count=0 text
    if asks_kubernetes; then ROADS=aggregator; fi
    if [ -n "${CONTRACT_OWN:-}" ]; then # check 217: somebody else's process
        ROADS=own
        read -r "URL[own]" "CA[own]" <<<"$CONTRACT_OWN"
    fi
    for road in $ROADS; do
        open_road "$road"
        for n in $(checks); do
            wanted "$n" && carry_out "$n"
        done
    done
    for n in $(checks); do
        wanted "$n" || continue
        count=$((count + 1))
        text="$(printf '%03d' "$n") $(sed -n "s/^check_$n() { # //p" "$HERE/$FILE.sh")"
        [[ ${TOOK[$n]} == [01].* ]] || text+=" (${TOOK[$n]} s)"
        case ${RESULT[$n]:=skipped it needs another road} in
        passed) echo "ok $count - $text" ;;
        skipped*) echo "ok $count - $text # skip ${RESULT[$n]#skipped }" ;;
        *) echo "not ok $count - $text" && printf '%s' "${DETAIL[$n]:-}" ;;
        esac
    done
    [ ${#LATE[@]} = 0 ] || printf '# late: %s\n' "${LATE[@]}"
    echo "1..$count"
}

finish() {
    trap - EXIT
    if declare -F restore >/dev/null; then restore; fi
    end_children TERM "${PIDS[@]}"
    if [ -s "$ETCD_DIR/pid" ]; then etcd_signal CONT 2>/dev/null; fi
    own_down
    etcd_stop "$ETCD_DIR"
    [ ${#NAMESPACES[@]} -eq 0 ] || kubectl delete namespace --ignore-not-found --wait=false "${NAMESPACES[@]}" >/dev/null 2>&1
    if [ -n "${KEEP:-}" ]; then echo "# kept: $WORK"; else rm -rf "$WORK"; fi
}
trap finish EXIT
trap 'exit 143' TERM INT HUP
