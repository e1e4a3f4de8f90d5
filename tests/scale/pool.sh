# What pools and claims cost, counted where it arrives: at kube-apiserver and in our etcd. Then how little an idle server does.
#     MEMBERS=10000 QUIET=600 bash tests/scale/pool.sh     how long it is watched at rest, in seconds, and with how many Sandboxes
# shellcheck shell=bash source=tests/scale/lib.sh
. "$(dirname "$0")/lib.sh"
MEMBERS=${MEMBERS:-1000} QUIET=${QUIET:-20} CLAIMS=300

# pod_calls: creations, changes (of status apart) and deletions of Pods that kube-apiserver has answered.
pod_calls() { echo "$(kube_count pods POST) $(kube_count pods PATCH) $(kube_count pods PUT) $(kube_count pods DELETE)"; }
# same: nothing of that moved for a second, nor did events come.
calls() { echo "$(pod_calls) $(kube_count events POST)"; }
same() {
    local before
    before=$(calls)
    sleep 1
    [ "$(calls)" = "$before" ]
}

# metric NAME: sum of the server's own counter.
metric() { api GET /metrics && awk -v name="$1" '$1 ~ "^" name "([{]|$)" { n += $NF } END { print n + 0 }' "$WORK/body"; }

# conflicts: writes of ours that the cluster has answered with 409.
kube_conflicts() { kube GET /metrics | awk '/^apiserver_request_total/ && /code="409"/ && /resource="pods"/ { n += $NF } END { print n + 0 }'; }

etcd_up ''
kube_up
node_up --nodes 3
replicas_up 1

# resident_kb: memory of the server.
resident_kb() { awk '/^VmRSS/ { print $2 }' "/proc/${REPLICA_PIDS[0]}/status"; }
# pool_begins NAME: it has its first members.
pool_begins() { api GET "$EXTENSIONS/sandboxwarmpools/$1" && q -e '.status.replicas > 0' >/dev/null; }
RESIDENT=$(resident_kb) BEGIN=$(now_ms)
pool_make big "$MEMBERS"
soon pool_begins big
pool_make beside 5
t "a pool of 5 fills beside it" pool_fills beside 5
api GET "$EXTENSIONS/sandboxwarmpools/big"
at_most "the first one is not waited for: of its members are ready" $((MEMBERS / 5)) "$(q '.status.readyReplicas // 0')" Sandboxes
t "a pool of $MEMBERS fills" pool_fills big "$MEMBERS"
echo "# it took $(($(now_ms) - BEGIN)) ms"
is "with $MEMBERS Pods created, and 5, not one more" $((MEMBERS + 5)) "$(kube_count pods POST)"

# ---- at rest ----

# cpu_ms: processor time of the server's threads so far.
cpu_ms() { cat "/proc/${REPLICA_PIDS[0]}"/task/*/schedstat | awk '{ ns += $1 } END { print int(ns / 1000000) }'; }
soon same # counts of members are gathered, and the last events come
REVISION=$(etcd_revision) CPU=$(cpu_ms) CALLS=$(pod_calls) BEGIN=$(now_ms)
sleep "$QUIET"
TOOK=$(($(now_ms) - BEGIN)) CPU=$(($(cpu_ms) - CPU))
is "at rest with $MEMBERS Sandboxes nothing is written to our etcd in $QUIET s" "$REVISION" "$(etcd_revision)"
is "nor to the cluster's Pods" "$CALLS" "$(pod_calls)"
echo "# memory at rest: $(resident_kb) KiB, $((($(resident_kb) - RESIDENT) * 1024 / MEMBERS)) bytes for a member with its Pod"
echo "# processor time at rest: $CPU ms in $TOOK ms, $((CPU * 10000 / TOOK)) hundredths of a per cent of a core"
at_most "a server at rest takes of one core" 100 $((CPU * 10000 / TOOK)) "hundredths of a per cent"

# ---- only asked ----

REVISION=$(etcd_revision)
t "200 claims are tried with dryRun" "$SCALE/claimers" -U "$(urls)" -c "$WORK" -n 200 -t 50 -p dry -P big -D
is "nothing is written for them" "$REVISION" "$(etcd_revision)"
is "and nobody is taken aside" 0 "$(metric sandbox_claim_bindings_total)"

# ---- a burst as large as the pool ----

pool_make burst $CLAIMS
t "a pool of $CLAIMS fills" pool_fills burst $CLAIMS
soon same
read -r POSTS PATCHES _ <<<"$(pod_calls)"
EVENTS=$(kube_count events POST)
"$SCALE/claimers" -U "$(urls)" -c "$WORK" -n $CLAIMS -t 100 -p burst -P burst -d "$STUCK_S" >"$WORK/claimers.out" 2>&1
is "$CLAIMS claims at once: all are answered" 0 $?
cat "$WORK/claimers.out"
has "all are bound in their POST, without a conflict" "$CLAIMS bound and 0 unbound" "$(cat "$WORK/claimers.out")"
# A member may change a last time, by its own Pod, between the choice and the write: then another one is taken.
RACES=$(metric sandbox_claim_binding_conflicts_total)
if [ "$RACES" -le $((CLAIMS / 50)) ]; then ok "hardly a race for a member is lost: $RACES"; else not_ok "hardly a race for a member is lost" "$RACES of $CLAIMS"; fi
t "all are Ready" claims_settle $CLAIMS
t "the pool is full again" pool_fills burst $CLAIMS
soon same
read -r POSTS_NOW PATCHES_NOW _ <<<"$(pod_calls)"
is "$CLAIMS Pods made anew, not one more" $CLAIMS $((POSTS_NOW - POSTS))
is "a claim costs the cluster one change of its Pod" $CLAIMS $((PATCHES_NOW - PATCHES))
is "and one event, the Sandbox made in its place two" $((3 * CLAIMS)) $(($(kube_count events POST) - EVENTS))
is "the cluster refused nothing" 0 "$(kube_conflicts)"
REPORT=$("$SCALE/history" -e "$ETCD_URL") || not_ok "the history is sound" "$REPORT"
grep '^#' <<<"$REPORT"
is "each claim cost two revisions of our etcd, from its POST to the labelled Pod" "# revisions per warm claim: 2 x$CLAIMS" "$(grep 'per warm' <<<"$REPORT")"

# ---- cold ----

pool_make empty 0
"$SCALE/claimers" -U "$(urls)" -c "$WORK" -n 100 -t 20 -p cold -P empty -d "$STUCK_S" >"$WORK/claimers.out" 2>&1
is "100 claims on an empty pool: all are answered" 0 $?
t "all are Ready" claims_settle $((CLAIMS + 100))
REPORT=$("$SCALE/history" -e "$ETCD_URL") || not_ok "the history is sound" "$REPORT"
grep '^#' <<<"$REPORT"
# What everybody can see, a revision each: claim stored, Sandbox made, claim bound, Pod made, the claim says so, Pod on a node, Sandbox
# Ready, claim Ready. Steps that come together are one.
MOST=$(grep 'per cold' <<<"$REPORT" | tr ' ' '\n' | awk '/^[0-9]+$/ && $1 > most { most = $1 } END { print most + 0 }')
if [ "$MOST" -le 8 ] && [ "$MOST" -ge 5 ]; then ok "a cold claim costs a revision for each visible step, at most 8"; else not_ok "a cold claim costs at most 8 revisions" "it is $MOST"; fi
REVISION=$(etcd_revision)
sleep 3
is "and then nothing more" "$REVISION" "$(etcd_revision)"
