# What the command line may say: the version's text, and bounds. A bad value ends the program at once with code 2 and one line that
# names flag and value, before a file is read or anything is contacted. Names carry the ids of the behaviour checklist (M-t...).
# shellcheck shell=bash source=tests/func/lib.sh
. "$(dirname "$0")/lib.sh"

PROGRAM=("$SERVER" --tls-cert-file "$WORK/none" --tls-private-key-file "$WORK/none")

# says CODE TEXT ARGUMENT...: what the program prints and how it ends.
says() {
    local code=$1 text=$2 out rc=0
    shift 2
    out=$(timeout 20 "${PROGRAM[@]}" "$@" 2>&1) || rc=$?
    is "$text: ends with $code" "$code" "$rc"
    OUTPUT=$out
}

# bad FLAG VALUE WHY
bad() {
    says 2 "M-t019 $1=$2" "$1=$2"
    is "M-t019 $1=$2: says why" "sandbox-apiserver: $1: \"$2\" is no $3" "$OUTPUT"
}

says 0 "M-t017 version" --version
like "M-t017 version: name and version" '^sandbox-apiserver [^ ]+$' "$OUTPUT"
is "M-t017 version: one line" 1 "$(wc -l <<<"$OUTPUT")"

for kind in sandbox sandbox-claim sandbox-template sandbox-warm-pool; do
    bad --$kind-concurrent-workers 0 'number from 1 to 1000'
    bad --$kind-concurrent-workers x 'number from 1 to 1000'
done
bad --sandbox-warm-pool-max-batch-size 0 'number from 1 to 100000'
for rate in -1 nan inf; do bad --sandbox-warm-pool-max-refill-rate $rate 'number of at least 0'; done
bad --sandbox-warm-pool-readiness-grace-period 0s 'duration like 20s or 5m above 0'
bad --sandbox-warm-pool-unschedulable-recheck-interval -1s 'duration like 20s or 5m above 0'
bad --sandbox-warm-pool-replenish-delay -1s 'duration like 20s or 5m'
bad --secure-port 70000 'number from 0 to 65535'

says 2 "IL-060 a resolver that is no address" --tls-cert-file=x --tls-private-key-file=x --sandbox-policy-resolvers=dns.example
has "IL-060 a resolver that is no address: says why" "--sandbox-policy-resolvers are addresses" "$OUTPUT"

# together WHAT WHY ARGUMENT...: what flags say together is wrong.
together() {
    local what=$1 why=$2
    shift 2
    says 2 "$what" "$@"
    has "$what: says why" "sandbox-apiserver: $why" "$OUTPUT"
}
together "a log level that is none" "--log-level is debug, info, warn or error" --log-level=loud
together "a store that is none" "--store is etcd or memory" --store=disk
together "no servers of etcd" "--etcd-servers is empty" --etcd-servers=
together "a certificate for etcd without its key" "--etcd-certfile and --etcd-keyfile go together" --etcd-certfile=x
together "authorities of clients without the front proxy's" "--client-ca-file and --requestheader-client-ca-file go together" --client-ca-file=x
together "no cluster and nobody who may come" "--without-cluster needs --client-ca-file" --without-cluster
together "no cluster and a kubeconfig" "--without-cluster needs --client-ca-file" --without-cluster --client-ca-file=x --kubeconfig=x
together "standalone with a certificate" "--standalone makes its certificates itself" --standalone
PROGRAM=("$SERVER")
together "no certificate" "--tls-cert-file and --tls-private-key-file are required"
together "standalone with a cluster" "--standalone makes its certificates itself, and has no cluster" --standalone --kubeconfig=x
PROGRAM=("$SERVER" --tls-cert-file "$WORK/none" --tls-private-key-file "$WORK/none")

says 2 "M-t019 a flag that does not exist" --nonsense
has "M-t019 a flag that does not exist: is named" "'--nonsense'" "$OUTPUT"

PROGRAM=("$OUT/sandbox-node")
says 2 "sandbox-node with a folder that is not absolute" --data=here
has "sandbox-node with a folder that is not absolute: says so" "--data must be absolute" "$OUTPUT"
says 2 "sandbox-node image without a verb" image
says 1 "sandbox-node image build without a busybox" image build --busybox="$WORK/none" --output="$WORK/image.tar"
says 2 "sandbox-node with a fault that is none" --simulate --fault=nonsense=5
has "sandbox-node with a fault that is none: is named" '"nonsense=5" is no FAULT=PERCENT' "$OUTPUT"
says 2 "sandbox-node with more than all Pods" --simulate --fault=crash=101
says 1 "sandbox-node without a kubeconfig to read" --simulate --kubeconfig "$WORK/none"
says 0 "sandbox-node's help" --help
for fault in slow never-ready crash exit image-pull unschedulable; do has "sandbox-node's help names the fault $fault" "$fault" "$OUTPUT"; done

# ---- the serving certificate (the original's was for webhooks, which are not here) ----

ends_at_once() { ! server_launch "$@" && says_in_log; }
says_in_log() { grep -q "cannot start: .*$WORK/" "$SERVER_LOG"; }
ALONE=(--store=memory)
PORT=$(etcd_random_port) ETCD_URL=http://127.0.0.1:1
cat "$WORK/serving.crt" "$WORK/serving.key" >"$WORK/both.pem"
echo rubbish >"$WORK/rubbish"
t "M-t016 a certificate file that is not there ends it, and is named" ends_at_once "${ALONE[@]}" --tls-cert-file="$WORK/none"
t "M-t016 a key file that is not there does, too" ends_at_once "${ALONE[@]}" --tls-private-key-file="$WORK/none"
t "M-t014 so does a file that is no certificate" ends_at_once "${ALONE[@]}" --tls-cert-file="$WORK/rubbish"
t "M-t014 so does a key of another certificate" ends_at_once "${ALONE[@]}" --tls-private-key-file="$WORK/admin.key"
server_up "${ALONE[@]}" --tls-cert-file="$WORK/both.pem" --tls-private-key-file="$WORK/both.pem"
t "M-t013 M-t016 files of any name, certificate and key in one, are served" is_ready
