# A thousand clients want a sandbox at the same moment, from a pool of 400, through three replicas of the server, whose leader is
# killed again and again. Whatever happens: every claim gets one Sandbox, no Sandbox two claims, the members that were ready are all
# used, and nothing that was acknowledged is lost. At least as many are warm as the pool had: members made in place of the first ones
# are ready before the last claims come, and are taken by the same rules; exactly as many as there were is what pool.sh shows (300 of
# 300) and, without a refill, tests/unit/registry/bind_test. What etcd itself remembers, revision by revision, is the witness.
#     ROUNDS=20 bash tests/scale/claims.sh
# shellcheck shell=bash source=tests/scale/lib.sh
. "$(dirname "$0")/lib.sh"
CLAIMS=1000 MEMBERS=400 ROUNDS=${ROUNDS:-1}
RUSH=100 # writes to the store, of claimers most, before the leader is killed for the first time
STEP=100 # so many more claims are Ready before it is killed again

# killing: SIGKILL to whoever leads, and the same replica started again, until the file says stop. First in the middle of the rush, then
# whenever leaders have come a step further: each dies at work, however long a busy machine takes to get there.
killing() {
    local n goal=0 first
    KILLS=0
    first=$(($(etcd_revision) + RUSH))
    until [ -e "$WORK/settled" ]; do
        sleep 0.1
        if [ $KILLS = 0 ]; then is_written "$first"; else [ "$(ready_now)" -ge $goal ]; fi || continue
        n=$(leader) || continue
        goal=$(($(ready_now) + STEP))
        replica_end "$n" KILL
        replica_start "$n"
        KILLS=$((KILLS + 1))
    done
}

# is_written REVISION: the store has come so far.
is_written() { local now; now=$(etcd_revision) && [ "$now" -ge "$1" ]; }

round() {
    local text="round $1" begin report
    ETCD_DIR=$WORK/etcd-$1 KUBE_DIR=$WORK/kube-$1
    etcd_up ''
    kube_up
    node_up --nodes 3
    replicas_up 3
    pool_make pool $MEMBERS
    pool_fills pool $MEMBERS || not_ok "$text: the pool fills" "$BODY"
    begin=$(now_ms)
    rm -f "$WORK/settled" "$WORK/claimed" "$WORK/ready"
    # The shell forgets how a child ended once another has its number, and the killing makes many.
    { "$SCALE/claimers" -U "$(urls)" -c "$WORK" -n $CLAIMS -t $CLAIMS -P pool -d "$STUCK_S" >"$WORK/claimers.out" 2>&1; echo $? >"$WORK/claimed"; } &
    PIDS+=($!)
    settled_watch & # beside us, for what the killing starts are children of this shell
    PIDS+=($!)
    killing
    soon test -s "$WORK/claimed"
    is "$text: every claimer is answered, none wrongly" 0 "$(cat "$WORK/claimed")"
    grep '^#' "$WORK/claimers.out" || cat "$WORK/claimers.out"
    is "$text: all claims settle" Ready "$(cat "$WORK/settled")"
    echo "# $text: $KILLS kills, $(($(now_ms) - begin)) ms until all are Ready"
    if [ $KILLS -ge 3 ]; then ok "$text: a leader died again and again"; else not_ok "$text: a leader died again and again" "$KILLS times"; fi
    made_again "$text"
    report=$("$SCALE/history" -e "$ETCD_URL") || not_ok "$text: the history is sound" "$report"
    grep '^#' <<<"$report"
    check_totals "$text" "$(tail -n 1 <<<"$report")"
    scale_down
    rm -rf "$ETCD_DIR" "$KUBE_DIR"
}

# ready_anywhere: how many claims some replica has as Ready; ready_now reads what it found last.
ready_anywhere() { at $((RANDOM % 3)) && is_ready && ready_claims | tee "$WORK/ready"; }
ready_now() { local n=0; [ ! -s "$WORK/ready" ] || read -r n <"$WORK/ready"; [[ $n =~ ^[0-9]+$ ]] || n=0; echo "$n"; }

# settled_watch: writes the file when all claims are Ready, or no more become so.
settled_watch() {
    if reaches $CLAIMS ready_anywhere; then echo Ready; else echo "$(ready_now) of $CLAIMS, none more in $STUCK_S s"; fi >"$WORK/settled.new"
    mv "$WORK/settled.new" "$WORK/settled"
}

# owned_pods: the Sandboxes that have a Pod.
owned_pods() { comm -12 <(q -r '.items[].metadata.uid' | sort) <(pod_owners | sort -u) | wc -l; }
pod_owners() { kube GET /api/v1/namespaces/default/pods | jq -r '.items[].metadata.ownerReferences[0].uid'; }
sandboxes_with_pod() { api GET "$SANDBOXES?resourceVersion=0" && owned_pods; }

# made_again TEXT: the pool refills, and every Sandbox has its Pod.
made_again() {
    at 0
    t "$1: the pool fills again" pool_fills pool $MEMBERS
    t "$1: each Sandbox gets its Pod" reaches $((CLAIMS + MEMBERS)) sandboxes_with_pod
    api GET "$SANDBOXES?resourceVersion=0"
    is "$1: as many Pods as Sandboxes, one each" "$(q -r '.items[].metadata.uid' | sort | md5sum)" "$(pod_owners | sort | md5sum)"
}

# check_totals TEXT LINE
check_totals() {
    local claims warm cold unbound ready wrong
    IFS=' =' read -r _ claims _ warm _ cold _ unbound _ ready _ wrong <<<"$2"
    is "$1: every claim is there, bound and ready, and the history is sound" "$CLAIMS 0 $CLAIMS 0" "$claims $unbound $ready $wrong"
    if [ "$warm" -ge $MEMBERS ] && [ $((warm + cold)) = $CLAIMS ]; then
        ok "$1: the $MEMBERS members that were there are used, and some made meanwhile: $warm warm, $cold cold"
    else
        not_ok "$1: the members that were there are used" "$2"
    fi
}

for ((ROUND = 1; ROUND <= ROUNDS; ROUND++)); do round $ROUND; done
