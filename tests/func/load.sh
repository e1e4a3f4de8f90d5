# Many clients at once, in three equal rounds: no answer is wrong, a hundred watches see the same and miss nothing, and the memory
# of the server stays where it was. Then a new certificate without a restart, and an end with open watches.
# shellcheck shell=bash source=tests/func/lib.sh
. "$(dirname "$0")/lib.sh"
CLIENTS=64 WATCHES=100 ROUND=5 # seconds
[ -z "$SLOW" ] || CLIENTS=24 WATCHES=30 ROUND=4

etcd_up
server_up --watch-history=4000 # full after about one round

# round NAME: everybody at once; then the watches must agree with etcd and with the list.
round() {
    local first watcher
    api GET "$SANDBOXES?limit=1"
    first=$(q .metadata.resourceVersion)
    load_behind watch watch -n "$WATCHES" -r "$first" -u "end-$1" -o "$WORK/events" -d 90
    watcher=$LOAD_PID
    within 30 grep -q open "$WORK/watch.out" || not_ok "$1: the watches open" "$(cat "$WORK/watch.out")"
    t "$1: $CLIENTS clients are answered as they should be" load mix -t "$CLIENTS" -d "$ROUND" -p "$1" -s 1000
    answers "$1: the last event" 201 POST "$SANDBOXES" "${JSON[@]}" -d "$(sandbox "end-$1")"
    load_result watch "$watcher" "$1: $WATCHES watches see every event once and in order"
    is "$1: the events are those that etcd remembers" "$(etcd_history $((first + 1)) "$(tail -n 1 "$WORK/events" | cut -d' ' -f1)" | md5sum)" \
        "$(cut -d' ' -f1 "$WORK/events" | md5sum)"
    api DELETE "$SANDBOXES/end-$1"
    RSS=$(server_rss_kib)
    echo "# $1: memory afterwards: $((RSS / 1024)) MiB"
}

round first
round second
BEFORE=$RSS
round third
# The first rounds fill caches and the history; then memory has to stay, but for what is chance.
at_most "growth of memory in the third round" 8192 $((RSS - BEFORE)) KiB
api GET /metrics
is "no answer had a code of 500 and more" "" "$(grep -E '^apiserver_request_total\{.*code="5' <<<"$BODY")"

# ---- a new certificate ----
serial() { openssl s_client -connect "127.0.0.1:$PORT" </dev/null 2>/dev/null | openssl x509 -noout -serial; }
OLD=$(serial)
load_behind quiet watch -n 1 -r "$(etcd_revision)" -u after -d 60
QUIET=$LOAD_PID
within 10 grep -q open "$WORK/quiet.out"
leaf serving serving-ca /CN=sandbox-apiserver serverAuth
kill -HUP "$SERVER_PID"
renewed() { [ "$(serial)" = "$(openssl x509 -in "$WORK/serving.crt" -noout -serial)" ]; }
t "SIGHUP takes the new certificate" within 5 renewed
like "which is another" '^serial=' "$(serial | grep -vx "$OLD")"
cp "$WORK/serving.key" "$WORK/good.key"
openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$WORK/serving.key" 2>/dev/null
kill -HUP "$SERVER_PID"
t "a key that does not fit is reported" within 5 grep -q 'certificate not reloaded, the old one stays' "$SERVER_LOG"
t "and the old certificate stays" renewed
cp "$WORK/good.key" "$WORK/serving.key"
answers "writes go on" 201 POST "$SANDBOXES" "${JSON[@]}" -d "$(sandbox after)"
load_result quiet "$QUIET" "a watch lives through it"

# ---- the end ----
load_behind ending watch -n "$WATCHES" -1 -r "$(etcd_revision)" -d 60
ENDING=$LOAD_PID
within 30 grep -q open "$WORK/ending.out" || not_ok "watches for the end open" "$(cat "$WORK/ending.out")"
BEGIN=$(now_ms)
server_stop
is "SIGTERM with open watches: exit code" 0 $?
at_most "SIGTERM with open watches: time" 5000 $(($(now_ms) - BEGIN)) ms
load_result ending "$ENDING" "the watches end with a last chunk"
server_up
answers "a new process goes on where it ended" 200 GET "$SANDBOXES/after"

# ---- the end under load: no answer is cut off ----
load_behind writing create -n 100000 -t 8 -p late -l "$WORK/ledger" -d 1
WRITING=$LOAD_PID
within 10 grep -q acknowledged "$WORK/ledger"
BEGIN=$(now_ms)
server_stop
is "SIGTERM with writers: exit code" 0 $?
at_most "SIGTERM with writers: time" 5000 $(($(now_ms) - BEGIN)) ms
kill "$WRITING"
wait "$WRITING" 2>/dev/null
is "every answer but those about the end is complete" "" "$(awk 'NF != 5 && !last { print } { last = 0 }' "$WORK/ledger" | head -n -1)"
server_up
cp "$WORK/ledger" "$WORK/cut"
head -n -1 "$WORK/cut" >"$WORK/ledger" # the last line may be half of one
NOT_KEPT=$(join -v1 <(awk '$2 == "acknowledged" { print $1 }' "$WORK/ledger" | sort) <(api GET "$SANDBOXES" && q '.items[].metadata.name' | sort))
is "what was acknowledged until the end is there" "" "$NOT_KEPT"

# ---- the end while clients still come: who spreads them may hear of it late ----
server_stop
server_up --shutdown-delay-duration=2 --shutdown-grace=30
kill -TERM "$SERVER_PID"
SERVED=''
for _ in {1..16}; do
    api GET "$SANDBOXES/after" >/dev/null
    SERVED="$SERVED $CODE"
    sleep 0.3
done
is "after SIGTERM who comes anew is served, for longer than the delay" "$(printf ' 200%.0s' {1..16})" "$SERVED"
ended() { ! is_ready && ! kill -0 "$SERVER_PID" 2>/dev/null; } # a probe is not somebody who comes
t "when nobody comes any more the server ends" within 15 ended
server_stop
is "with exit code" 0 $?
server_up
