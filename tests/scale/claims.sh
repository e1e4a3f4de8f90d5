# A thousand clients want a sandbox at the same moment, from a pool of 400, through three replicas of the server, whose leader is
# killed again and again. Whatever happens: every claim gets one Sandbox, no Sandbox two claims, the members that were ready are all
# used, and nothing that was acknowledged is lost. At least as many are warm as the pool had: members made in place of the first ones
# are ready before the last claims come, and are taken by the same rules; exactly as many as there were is what pool.sh shows (300 of
# 300) and, without a refill, tests/unit/registry/bind_test. What etcd itself remembers, revision by revision, is the witness.
#     ROUNDS=20 bash tests/scale/claims.sh
# shellcheck shell=bash source=tests/scale/lib.sh
. "$(dirname "$0")/lib.sh"
CLAIMS=1000 MEMBERS=400 ROUNDS=${ROUNDS:-2} LEADS_MS=5000

# killing: SIGKILL to whoever leads, and the same replica started again, until the file says stop. The first in the middle of the rush,
# each of the others once it has led for a while: on a busy machine who takes over needs longer than that to begin.
killing() {
    local n next
    KILLS=0
    next=$(($(now_ms) + 500))
    until [ -e "$WORK/settled" ]; do
        sleep 0.1
        n=$(leader) || continue
        [ "$next" != 0 ] || next=$(($(now_ms) + LEADS_MS))
        [ "$(now_ms)" -ge "$next" ] || continue
        replica_end "$n" KILL
        replica_start "$n"
        KILLS=$((KILLS + 1)) next=0
    done
}

round() {
    local text="round $1" begin report
    ETCD_DIR=$WORK/etcd-$1 KUBE_DIR=$WORK/kube-$1
    etcd_up ''
    kube_up
    node_up --nodes 3
    replicas_up 3
    pool_make pool $MEMBERS
    within 180 pool_is pool $MEMBERS || not_ok "$text: the pool fills" "$BODY"
    begin=$(now_ms)
    rm -f "$WORK/settled" "$WORK/claimed"
    # The shell forgets how a child ended once another has its number, and the killing makes many.
    { "$SCALE/claimers" -U "$(urls)" -c "$WORK" -n $CLAIMS -t $CLAIMS -P pool -d 120 >"$WORK/claimers.out" 2>&1; echo $? >"$WORK/claimed"; } &
    PIDS+=($!)
    settled_watch & # beside us, for what the killing starts are children of this shell
    PIDS+=($!)
    killing
    within 180 test -s "$WORK/claimed"
    is "$text: every claimer is answered, none wrongly" 0 "$(cat "$WORK/claimed")"
    grep '^#' "$WORK/claimers.out" || cat "$WORK/claimers.out"
    is "$text: all claims settle" Ready "$(cat "$WORK/settled")"
    echo "# $text: $KILLS kills, $(($(now_ms) - begin)) ms until all are Ready"
    made_again
    report=$("$SCALE/history" -e "$ETCD_URL") || not_ok "$text: the history is sound" "$report"
    grep '^#' <<<"$report"
    check_totals "$text" "$(tail -n 1 <<<"$report")"
    scale_down
    rm -rf "$ETCD_DIR" "$KUBE_DIR"
}

# settled_watch: writes the file when all claims are Ready, or time is up.
settled_watch() {
    local end=$(($(now_ms) + (SLOW ? 600000 : 180000))) i=0
    until [ "$(now_ms)" -gt $end ]; do
        i=$(((i + 1) % 3)) && at $i
        if is_ready && claims_ready $CLAIMS; then
            echo Ready >"$WORK/settled"
            return
        fi
        sleep 1
    done
    echo "time is up" >"$WORK/settled"
}

# made_again: the pool refills, and every Sandbox has its Pod.
made_again() {
    within 120 pool_is pool $MEMBERS || not_ok "the pool fills again" "$BODY"
    api GET "$SANDBOXES?resourceVersion=0"
    is "as many Pods as Sandboxes, one each" "$(q -r '.items[].metadata.uid' | sort | md5sum)" \
        "$(kube GET /api/v1/namespaces/default/pods | jq -r '.items[].metadata.ownerReferences[0].uid' | sort | md5sum)"
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
