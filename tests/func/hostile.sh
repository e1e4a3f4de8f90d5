# A hostile neighbour costs nothing: while everything bad there is comes from many connections, one good client reads, writes and watches,
# gets every answer and every event as it should, and hardly later than when it is alone; and afterwards nothing is left of the others.
# shellcheck shell=bash source=tests/func/lib.sh
. "$(dirname "$0")/lib.sh"
need python3
FIRE=6 # seconds
SLOWER=40 # times the median of the good client alone, on a machine whose cores the bad ones work on too

etcd_up
server_up
hostile() { python3 "$ROOT/tests/func/hostile.py" "$1" "$PORT" "$WORK" "${@:2}"; }
# held: descriptors and threads of the server.
held() { echo "$(find "/proc/$SERVER_PID/fd" -mindepth 1 2>/dev/null | wc -l) $(find "/proc/$SERVER_PID/task" -mindepth 1 -maxdepth 1 | wc -l)"; }
let_go() {
    local descriptors threads
    read -r descriptors threads <<<"$(held)"
    [ "$descriptors" -le "$DESCRIPTORS" ] && [ "$threads" -le "$THREADS" ]
}
metric() { api GET /metrics && awk -v name="$1" 'index($0, name) == 1 { n += $NF } END { print n + 0 }' "$WORK/body"; }
nothing_open() { [ "$(metric apiserver_longrunning_requests)" = 0 ] && [ "$(metric apiserver_current_inflight_requests)" -le 1 ]; }
median() { sed -n 's/.*median \([0-9]*\) us.*/\1/p' "$WORK/$1.good"; }

# under_fire NAME: good and bad at once; then everything that the bad ones held is given back.
under_fire() {
    hostile bad "$((FIRE + 2))" "$ROOT/tests/fuzz/corpus" >"$WORK/$1.bad" 2>&1 &
    local bad=$! rc=0
    sleep 1
    t "$1: the good client gets every answer and every event" eval "hostile good $FIRE >$WORK/$1.good || { cat $WORK/$1.good && false; }"
    wait $bad || rc=$?
    grep '^# ' "$WORK/$1.bad"
    if [ $rc = 0 ]; then ok "$1: each bad input ends in an answer or a closed connection"; else not_ok "$1: each bad input ends in an answer or a closed connection" "$(cat "$WORK/$1.bad")"; fi
    t "$1: descriptors and threads are what they were" within 30 let_go
    t "$1: and nothing is in flight" within 30 nothing_open
    RSS=$(server_rss_kib)
    echo "# $1: $(tail -n 1 "$WORK/$1.good"); $(held) descriptors and threads; $((RSS / 1024)) MiB"
}

t "alone the good client is answered" eval "hostile good 4 >$WORK/alone.good || { cat $WORK/alone.good && false; }"
echo "# alone: $(tail -n 1 "$WORK/alone.good")"
read -r DESCRIPTORS THREADS <<<"$(held)"
DESCRIPTORS=$((DESCRIPTORS + 8)) # connections to etcd, and of whoever asks just now
# The first fires fill caches and what the allocator keeps for each thread; some of it goes back in a quiet moment.
ROUNDS=(first second third)
[ -z "$SLOW" ] || ROUNDS=(first)
RSS=0 MOST=0
for ROUND in "${ROUNDS[@]}"; do
    [ "$RSS" -le "$MOST" ] || MOST=$RSS
    under_fire "$ROUND"
done
at_most "memory after the last fire, beyond the most after others" 16384 $((RSS - MOST)) KiB
at_most "the good client's median under fire, of its own alone" "$((SLOWER * 100))" "$((100 * $(median "$ROUND") / $(median alone)))" "per cent"
api GET "/apis/agents.x-k8s.io/v1beta1/sandboxes"
is "nothing is left of any of them" "200 0" "$CODE $(q '.items | length')"
