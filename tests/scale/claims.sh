# A thousand clients want a sandbox at the same moment, from a pool of 400, through three replicas of the server, whose leader is
# killed again and again. Whatever happens: every claim gets one Sandbox, no Sandbox two claims, the members that were ready are all
# used, and nothing that was acknowledged is lost. What etcd itself remembers, revision by revision, is the witness.
#     ROUNDS=20 bash tests/scale/claims.sh
# shellcheck shell=bash source=tests/scale/lib.sh
. "$(dirname "$0")/lib.sh"
CLAIMS=1000 MEMBERS=400 ROUNDS=${ROUNDS:-2} KILL_EVERY_MS=5000

# killing: SIGKILL to whoever leads, and the same replica started again, until the file says stop.
killing() {
    local n next
    KILLS=0
    next=$(($(now_ms) + 500)) # the first one in the middle of the rush
    until [ -e "$WORK/settled" ]; do
        sleep 0.1
        [ "$(now_ms)" -ge $next ] || continue
        n=$(leader) || continue
        replica_end "$n" KILL
        replica_start "$n"
        KILLS=$((KILLS + 1)) next=$(($(now_ms) + KILL_EVERY_MS))
        at $(((n + 1) % 3))
    done
}

round() {
    local text="round $1" claimers begin=0 report
    pool_make "pool-$1" $MEMBERS
    within 180 pool_is "pool-$1" $MEMBERS || not_ok "$text: the pool fills" "$BODY"
    begin=$(now_ms)
    "$SCALE/claimers" -U "$(urls)" -c "$WORK" -n $CLAIMS -t $CLAIMS -p "c$1" -P "pool-$1" -d 120 >"$WORK/claimers.out" 2>&1 &
    claimers=$!
    PIDS+=("$claimers")
    rm -f "$WORK/settled"
    # Who waits for the claims is beside us, for the killing starts children of this shell.
    settled_watch $((CLAIMS * $1)) &
    PIDS+=($!)
    killing
    wait "$claimers"
    is "$text: every claimer is answered, none wrongly" 0 $?
    grep '^#' "$WORK/claimers.out" || cat "$WORK/claimers.out"
    is "$text: all claims settle" Ready "$(cat "$WORK/settled")"
    echo "# $text: $KILLS kills, $(($(now_ms) - begin)) ms until all are Ready"
    made_again "pool-$1"
    report=$("$SCALE/history" -e "$ETCD_URL") || not_ok "$text: the history is sound" "$report"
    grep '^#' <<<"$report"
    check_totals "$text" "$1" "$(tail -n 1 <<<"$report")"
}

# settled_watch CLAIMS: writes the file when so many claims are Ready, or time is up.
settled_watch() {
    local end=$(($(now_ms) + 180000)) i=0
    until [ "$(now_ms)" -gt $end ]; do
        i=$(((i + 1) % 3)) && at $i
        api GET "$EXTENSIONS/sandboxclaims?resourceVersion=0" 2>/dev/null
        if [ "$CODE" = 200 ] && [ "$(q "[.items[] | select(any(.status.conditions[]?; .type == \"Ready\" and .status == \"True\"))] | length")" = "$1" ]; then
            echo Ready >"$WORK/settled"
            return
        fi
        sleep 0.5
    done
    echo "time is up" >"$WORK/settled"
}

# made_again POOL: the pool refills, and every Sandbox has its Pod.
made_again() {
    within 120 pool_is "$1" $MEMBERS || not_ok "$1 fills again" "$BODY"
    api GET "$SANDBOXES?resourceVersion=0"
    is "$1: as many Pods as Sandboxes, one each" "$(q -r '.items[].metadata.uid' | sort | md5sum)" \
        "$(kube GET /api/v1/namespaces/default/pods | jq -r '.items[].metadata.ownerReferences[0].uid' | sort | md5sum)"
}

# check_totals TEXT ROUND LINE
check_totals() {
    local claims warm cold unbound ready wrong n=$((CLAIMS * $2))
    IFS=' =' read -r _ claims _ warm _ cold _ unbound _ ready _ wrong <<<"$3"
    is "$1: every claim is there, bound and ready, and the history is sound" "$n 0 $n 0" "$claims $unbound $ready $wrong"
    if [ "$warm" -ge $((MEMBERS * $2)) ] && [ $((warm + cold)) = $n ]; then ok "$1: at least the $MEMBERS members that were there are used: $warm warm, $cold cold"; else not_ok "$1: members are used" "$3"; fi
}

etcd_up
kube_up
node_up --nodes 3
replicas_up 3
for ((ROUND = 1; ROUND <= ROUNDS; ROUND++)); do round $ROUND; done
