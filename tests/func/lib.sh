# What the functional tests share: a real sandbox-apiserver over a real etcd, without a cluster. Each script speaks TAP and can be
# run alone:
#     SERVER=build/gcc/sandbox-apiserver bash tests/func/verbs.sh
# Sourced, not run. Sets WORK (a folder that goes at the end), LOAD (the program of load.c), SLOW (not empty for builds with a
# sanitizer, which get smaller numbers). Everything started here listens on 127.0.0.1 and is ended by its own pid.
# shellcheck shell=bash disable=SC2034
set -uo pipefail
export LC_ALL=C
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
: "${SERVER:=$ROOT/build/gcc/sandbox-apiserver}"
# shellcheck source=tests/lib/tap.sh
. "$ROOT/tests/lib/tap.sh"
# shellcheck source=tests/lib/within.sh
. "$ROOT/tests/lib/within.sh"
# shellcheck source=tests/lib/children.sh
. "$ROOT/tests/lib/children.sh"
# shellcheck source=tests/lib/etcd.sh
. "$ROOT/tests/lib/etcd.sh"
OUT=$(cd "$(dirname "$SERVER")" && pwd) || exit 1
SLOW=''
case $(basename "$OUT") in *-address* | *-undefined* | *-thread*) SLOW=1 ;; esac
WORK=$(mktemp -d)
ETCD_DIR=$WORK/etcd ETCD_URL=''
SERVER_PID='' PORT='' URL='' STARTS=0 # an empty PORT: any
PIDS=() # of what a test has in the background
WRAP=() # put before the server's own command line
CLUSTER=(--without-cluster) # how the server reaches a cluster
SANDBOXES=/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes
EXTENSIONS=/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default
JSON=(-H 'Content-Type: application/json')
DATA=$WORK/data # of a server without a cluster

# ---- figures and time ----

# at_most TEXT CEILING VALUE UNIT: prints the figure; only release builds are held to it.
at_most() {
    echo "# $1: $3 $4 (ceiling $2)"
    [ -z "$SLOW" ] || return 0
    if [ "$3" -le "$2" ]; then ok "$1: at most $2 $4"; else not_ok "$1: at most $2 $4" "it is $3 $4"; fi
}

now_ms() { echo $((${EPOCHREALTIME/./} / 1000)); }

# ---- certificates ----

authority() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$WORK/$1.key" -out "$WORK/$1.crt" -days 2 \
        -subj "/CN=$1" -addext 'basicConstraints=critical,CA:TRUE' -addext 'keyUsage=critical,keyCertSign,cRLSign' 2>/dev/null
}

# leaf NAME AUTHORITY SUBJECT USAGE
leaf() {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$WORK/$1.key" -out "$WORK/$1.csr" -subj "$3" 2>/dev/null
    openssl x509 -req -in "$WORK/$1.csr" -CA "$WORK/$2.crt" -CAkey "$WORK/$2.key" -set_serial "0x$(openssl rand -hex 12)" -days 2 \
        -out "$WORK/$1.crt" -extfile <(printf 'extendedKeyUsage=%s\nsubjectAltName=DNS:localhost,DNS:sandbox-apiserver.default.svc,IP:127.0.0.1\n' "$4") 2>/dev/null
}

authority serving-ca
authority client-ca
leaf serving serving-ca /CN=sandbox-apiserver serverAuth
leaf admin client-ca /O=system:masters/CN=admin clientAuth

# ---- etcd and the server ----

# etcd_up [PROGRAM]: starts etcd, or starts it again with the data and the port it had.
etcd_up() {
    ETCD=${1:-${ETCD:-}}
    ETCD_URL=$(mkdir -p "$ETCD_DIR" && etcd_start "$ETCD_DIR") && return
    not_ok "etcd starts" "$(tail -n 3 "$ETCD_DIR/log")"
    exit 1
}

# The processes below are not children of this shell, so they are gone when the kernel says so.
etcd_signal() { kill -"$1" "$(cat "$ETCD_DIR/pid")"; }
etcd_kill() {
    local pid
    pid=$(cat "$ETCD_DIR/pid")
    kill -9 "$pid"
    within 10 eval "! kill -0 $pid"
}

# etcd_revision: of the newest write to the store, whoever made it.
etcd_revision() {
    local answer
    answer=$(curl -s --max-time 10 -d '{"key":"AA==","range_end":"AA==","count_only":true}' "$ETCD_URL/v3/kv/range")
    [[ $answer =~ \"revision\":\"([0-9]+)\" ]] && echo "${BASH_REMATCH[1]}"
}

# etcd_history FIRST LAST: revisions of all writes to sandboxes from FIRST on, as etcd itself remembers them; LAST is the last.
etcd_history() {
    local watcher
    jq -cn --arg first "$1" '{create_request: {start_revision: $first, key: ("/registry/agents.x-k8s.io/sandboxes/" | @base64),
        range_end: ("/registry/agents.x-k8s.io/sandboxes0" | @base64)}}' >"$WORK/history-request"
    curl -sN --max-time 30 --data-binary "@$WORK/history-request" "$ETCD_URL/v3/watch" >"$WORK/history" &
    watcher=$!
    within 20 grep -q "\"mod_revision\":\"$2\"" "$WORK/history"
    kill "$watcher"
    wait "$watcher" 2>/dev/null
    jq -r '.result.events[]?.kv.mod_revision' "$WORK/history"
}

# Every program for etcd there is here, newest last.
etcd_programs() {
    local p
    for p in /usr/bin/etcd /var/cache/agent-sandbox/kube-v*/etcd; do [ -x "$p" ] && echo "$p"; done
}

# server_launch [FLAG...]: one try on $PORT.
server_launch() {
    STARTS=$((STARTS + 1))
    SERVER_LOG=$WORK/server-$STARTS.log
    : >"$SERVER_LOG"
    "${WRAP[@]}" "$SERVER" "${CLUSTER[@]}" --bind-address=127.0.0.1 --secure-port="$PORT" --etcd-servers="$ETCD_URL" \
        --tls-cert-file="$WORK/serving.crt" --tls-private-key-file="$WORK/serving.key" --client-ca-file="$WORK/client-ca.crt" \
        "$@" </dev/null >"$SERVER_LOG" 2>&1 &
    SERVER_PID=$!
    until PORT_LINE=$(grep -m1 'serving address=' "$SERVER_LOG"); do
        if ! kill -0 "$SERVER_PID" 2>/dev/null; then
            SERVER_PID=''
            return 1
        fi
        sleep 0.01
    done
    PORT=$(sed 's/.* port=\([0-9]*\).*/\1/' <<<"$PORT_LINE")
    URL=https://127.0.0.1:$PORT
}

# server_start [FLAG...]: a new process; on the port it had before, if it had one, so that clients find it again. Returns when it
# listens. A port by chance is one below those the kernel gives to clients, and may be taken all the same.
server_start() {
    local i
    if [ -n "$PORT" ]; then
        server_launch "$@"
        return
    fi
    for i in {1..5}; do
        PORT=$(etcd_random_port)
        server_launch "$@" && return
    done
    return 1
}

is_ready() { curl -sf --max-time 5 --cacert "$WORK/serving-ca.crt" -o /dev/null "$URL/readyz"; }

# server_up [FLAG...]: starts it and waits until it is ready.
server_up() {
    server_start "$@" && within 30 is_ready && return 0
    not_ok "the server starts" "$(tail -n 20 "$SERVER_LOG")"
    exit 1
}

# server_stop: SIGTERM; returns its exit code.
server_stop() {
    kill -TERM "$SERVER_PID" 2>/dev/null
    wait "$SERVER_PID" 2>/dev/null
    local rc=$?
    SERVER_PID=''
    return $rc
}

server_kill() {
    kill -9 "$SERVER_PID"
    wait "$SERVER_PID" 2>/dev/null
    SERVER_PID=''
}

# KiB that the server holds in memory; of the server itself, not of what it was wrapped in.
server_rss_kib() { awk '/^VmRSS/ { print $2 }' "/proc/$SERVER_PID/status"; }

# ---- a server without a cluster ----

# standalone_launch: one try on $PORT; returns when it listens.
standalone_launch() {
    STARTS=$((STARTS + 1))
    SERVER_LOG=$WORK/server-$STARTS.log
    "$SERVER" --standalone --data-dir="$DATA" --secure-port="$PORT" --etcd-program="$(etcd_program)" </dev/null >"$SERVER_LOG" 2>&1 &
    SERVER_PID=$!
    within 60 eval "grep -q 'kubeconfig file=' '$SERVER_LOG' || ! kill -0 $SERVER_PID" && kill -0 "$SERVER_PID" 2>/dev/null
}

# The namespace that tests write to is made when the server leads.
has_namespace() { api GET /api/v1/namespaces/default && [ "$CODE" = 200 ]; }

standalone_up() {
    for _ in {1..5}; do
        [ -n "$PORT" ] || PORT=$(etcd_random_port)
        standalone_launch && break
        PORT=''
    done
    URL=https://127.0.0.1:$PORT
    cp "$DATA/ca.crt" "$WORK/serving-ca.crt"
    AS=(--cert "$DATA/admin.crt" --key "$DATA/admin.key")
    within 60 is_ready && within 60 has_namespace && return
    not_ok "the server starts" "$(tail -n 20 "$SERVER_LOG")"
    exit 1
}

# issue NAME SUBJECT: a client certificate of the authority in DATA.
issue() {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$WORK/$1.key" -out "$WORK/$1.csr" -subj "$2" 2>/dev/null
    openssl x509 -req -in "$WORK/$1.csr" -CA "$DATA/ca.crt" -CAkey "$DATA/ca.key" -set_serial "0x$(openssl rand -hex 12)" -days 2 \
        -out "$WORK/$1.crt" 2>/dev/null
}

# ---- requests ----

AS=(--cert "$WORK/admin.crt" --key "$WORK/admin.key")
VIA=() # curl chooses HTTP/2 when the server has it; or --http1.1

# as NAME: which certificate requests come with from now on; as nobody: none.
as() { if [ "$1" = nobody ]; then AS=(); else AS=(--cert "$WORK/$1.crt" --key "$WORK/$1.key"); fi; }

# api METHOD PATH [CURL-ARGUMENT...]: sets CODE (000 = no answer) and BODY; the headers are in $WORK/headers.
api() {
    local method=$1 path=$2
    shift 2
    : >"$WORK/body"
    CODE=$(curl -sS --globoff --path-as-is --max-time 60 -A func/1 --cacert "$WORK/serving-ca.crt" "${AS[@]}" "${VIA[@]}" -X "$method" -D "$WORK/headers" \
        -o "$WORK/body" -w '%{http_code}' "$@" "$URL$path" 2>"$WORK/curl-error") || [ "$CODE" != 000 ] || BODY=$(<"$WORK/curl-error")
    [ "$CODE" != 000 ] || alive
    [ "$CODE" = 000 ] || BODY=$(tr -d '\000' <"$WORK/body")
}

# alive: the server has not ended by itself; else nothing that follows means anything.
alive() {
    [ -z "$SERVER_PID" ] || kill -0 "$SERVER_PID" 2>/dev/null || {
        not_ok "the server is alive" "$(tail -n 20 "$SERVER_LOG")"
        exit 1
    }
}

# q JQ-ARGUMENT...: looks into the last answer.
q() { jq -r "$@" "$WORK/body" 2>&1; }

header() { tr -d '\r' <"$WORK/headers" | awk -v name="$1" -F': ' 'tolower($1) == tolower(name) { sub(/^[^:]*: /, ""); print }'; }

# answers TEXT CODE METHOD PATH [CURL-ARGUMENT...]
answers() {
    local text=$1 code=$2
    shift 2
    api "$@"
    if [ "$CODE" = "$code" ]; then ok "$text"; else not_ok "$text" "expected $code, got $CODE: $BODY"; fi
}

# sandbox NAME [JQ-PROGRAM]: the JSON of a small one, changed by the program.
sandbox() {
    jq -cn --arg name "$1" '{apiVersion: "agents.x-k8s.io/v1beta1", kind: "Sandbox", metadata: {name: $name},
        spec: {podTemplate: {spec: {containers: [{name: "main", image: "example.org/app:1"}]}}}} | '"${2:-.}"
}

# load MODE ARGUMENT...: the program of load.c against the server.
load() {
    local mode=$1
    shift
    "$LOAD" "$mode" -U "$URL" -c "$WORK" "$@"
}

# In the background; its output is $WORK/NAME.out, its pid LOAD_PID.
load_behind() {
    local name=$1
    shift
    "$LOAD" "$1" -U "$URL" -c "$WORK" "${@:2}" >"$WORK/$name.out" 2>&1 &
    LOAD_PID=$!
    PIDS+=("$LOAD_PID")
}

# load_result NAME PID TEXT: waits for it; it must have found nothing wrong.
load_result() {
    local rc=0
    wait "$2" || rc=$?
    grep '^# ' "$WORK/$1.out" || :
    if [ $rc = 0 ]; then ok "$3"; else not_ok "$3" "exit code $rc"$'\n'"$(cat "$WORK/$1.out")"; fi
}

# The client need not have the sanitizer of the server: the plain build's is faster.
BUILD=$(basename "$OUT")
LOAD=$ROOT/build/${BUILD%%-*}/tests/func/load
[ -x "$LOAD" ] || LOAD=$OUT/tests/func/load

# ---- end ----

finish() {
    local rc=$? reports
    trap - EXIT
    trap '' TERM INT HUP PIPE # what was begun here ends here, whoever reads of it
    end_children KILL "${PIDS[@]}"
    if [ -n "$SERVER_PID" ]; then
        server_stop
        is "the server ends with exit code 0" 0 $?
    fi
    [ ! -s "$ETCD_DIR/pid" ] || etcd_signal CONT 2>/dev/null
    etcd_stop "$ETCD_DIR"
    reports=$(cat "$WORK"/server-*.log 2>/dev/null | grep -A30 -E 'ERROR: (Address|Leak)Sanitizer|WARNING: ThreadSanitizer|runtime error:' | head -n 60)
    [ -z "$SLOW" ] || is "the sanitizer has nothing to report" "" "$reports"
    if [ $BAD != 0 ]; then tail -qn 8 "$WORK"/server-*.log 2>/dev/null | cut -c1-300 | sed 's/^/# log: /'; fi
    if [ -n "${KEEP:-}" ]; then echo "# kept: $WORK"; else rm -rf "$WORK"; fi
    echo "1..$NUMBER"
    [ $rc != 0 ] || [ $BAD = 0 ] || rc=1
    exit $rc
}
trap finish EXIT
trap 'exit 143' TERM INT HUP PIPE

# need PROGRAM...: without them there is nothing to run.
need() {
    local p
    for p in "$@"; do
        command -v "$p" >/dev/null || { skip "$(basename "$0")" "no $p here" && exit 0; }
    done
}
[ -x "$SERVER" ] || { not_ok "a server to test" "$SERVER is not built" && exit 1; }
need curl jq openssl
etcd_program >/dev/null 2>&1 || { skip "$(basename "$0")" "no etcd here" && exit 0; }
[ -x "$LOAD" ] || { not_ok "the program of load.c" "$LOAD is not built" && exit 1; }
